// SPDX-License-Identifier: MIT
// ahead.test.ts: what is asked ahead of the end of a drag, in which order, and when it is given up.
import assert from "node:assert/strict";
import test from "node:test";
import { Ahead, REST_MS } from "../src/ahead";

/* Flights that land when they are told to. */
function airport() {
    const started: string[] = [], givenUp: string[] = [];
    const inAir = new Set<string>(), there = new Set<string>();
    const visible = new Set<string>();
    const ahead: Ahead = new Ahead({
        isBusy: () => visible.size > 0,
        isOn: (key) => inAir.has(key),
        has: (key) => inAir.has(key) || there.has(key),
        start({ key }) {
            started.push(key);
            inAir.add(key);
            return () => {
                inAir.delete(key);
                givenUp.push(key);
            };
        },
    });
    return {
        ahead, started, givenUp, visible,
        land(key: string) {
            inAir.delete(key);
            there.add(key);
            ahead.look();
        },
    };
}
const wish = (key: string) => ({ key, path: key, wire: undefined });
const rested = () => new Promise((resolve) => setTimeout(resolve, 2 * REST_MS));

test("one after another, once the window rests, and no more than a few", async () => {
    const { ahead, started, land } = airport();
    const keys = ["a", "b", "c", "d", "e", "f"];
    for (const key of keys) ahead.want({}, wish(key));
    assert.deepEqual(started, [], "it may move on at once");
    await rested();
    assert.deepEqual(started, ["a"]);
    ahead.look();
    assert.deepEqual(started, ["a"], "the next one waits");
    for (const key of keys.slice(0, 4)) {
        assert.equal(started.at(-1), key);
        land(key);
    }
    assert.deepEqual(started, ["a", "b", "c", "d"]);
});

test("not before what is seen, and given up for it", async () => {
    const { ahead, started, givenUp, visible } = airport();
    visible.add("seen");
    ahead.want({}, wish("a"));
    await rested();
    assert.deepEqual(started, []);
    visible.clear();
    ahead.look();
    assert.deepEqual(started, ["a"]);
    visible.add("seen, too");
    ahead.look();
    await rested();
    assert.deepEqual(givenUp, ["a"]);
    visible.clear();
    ahead.look();
    assert.deepEqual(started, ["a", "a"], "then it is asked again");
});

test("given up when the window moves on, or the drag ends", async () => {
    const { ahead, started, givenUp } = airport();
    const [one, other] = [{}, {}];
    ahead.want(one, wish("a"));
    ahead.want(other, wish("b"));
    await rested();
    ahead.want(other, wish("b2"));
    assert.deepEqual(givenUp, [], "a is wanted still");
    ahead.want(one, wish("a2"));
    assert.deepEqual(givenUp, ["a"]);
    await rested();
    assert.deepEqual(started, ["a", "a2"]);
    ahead.want(one, null);
    ahead.want(other, null);
    assert.deepEqual(givenUp, ["a", "a2"]);
    await rested();
    assert.deepEqual(started, ["a", "a2"]);
});
