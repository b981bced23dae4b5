// SPDX-License-Identifier: MIT
// dragging.test.ts: a drag leaves the history alone until it ends; which of its questions are asked.
import assert from "node:assert/strict";
import test from "node:test";
import { useTransport } from "../src/api";
import { Asker } from "../src/ask";
import { dragging, go, parsePlace, place, spellPlace } from "../src/url";
import { Drag } from "../src/window";

/* What is written to the history: a node has none. */
const written: string[] = [];
Object.assign(globalThis, {
    history: {
        pushState: (_: unknown, __: string, address: string) => written.push(`push ${address}`),
        replaceState: (_: unknown, __: string, address: string) => written.push(`replace ${address}`),
    },
});

test("a drag makes one entry in the history, when it ends", () => {
    go({ view: "flame" });
    written.length = 0;
    const drag = new Drag();
    for (const from of ["1s", "2s", "3s"]) {
        drag.move({ from });
        assert.equal(spellPlace(place.peek()), `/flame?from=${from}`);
        assert.ok(dragging.peek());
    }
    go({ set: { call: "abc" } }, "replace"); // a view that follows
    assert.deepEqual(written, []);
    drag.end();
    assert.deepEqual(written, ["push /flame?from=3s&call=abc"]);
    assert.ok(!dragging.peek());
});

test("a drag that is given up leaves nothing", () => {
    go({ view: "tree", only: true });
    written.length = 0;
    const drag = new Drag();
    drag.move({ from: "1s" });
    drag.cancel();
    assert.equal(spellPlace(place.peek()), "/tree");
    assert.ok(!dragging.peek());
    go({});
    assert.deepEqual(written, []);
});

/* Answers when it is told to. */
function slowServer() {
    const asked: { path: string; answer: () => void; signal: AbortSignal }[] = [];
    useTransport({
        get: (path, signal) => new Promise((resolve, reject) => {
            asked.push({ path: path.replace(/[?&]job=.*/, ""), signal, answer: () => resolve({ data: path }) });
            signal.addEventListener("abort", () => reject(new Error("aborted")));
        }),
        post: () => Promise.reject(new Error("nobody posts")),
        stream: () => Promise.resolve(),
        save: () => Promise.resolve(),
    });
    return asked;
}
const turn = () => new Promise((resolve) => setImmediate(resolve));

test("while dragging the newest question follows the one on its way, those between are never asked", async () => {
    place.value = parsePlace("/functions");
    const asked = slowServer();
    const asker = new Asker<string>(() => undefined);
    const want = (name: string, snap: boolean) => asker.want({ key: name, path: `/r/1/${name}`, wire: undefined }, snap);
    for (const name of ["a", "b", "c", "d"]) want(name, true);
    assert.deepEqual(asked.map(({ path }) => path), ["/r/1/a"]);
    asked[0]!.answer();
    await turn();
    assert.equal(asker.asked("d").data !== undefined, true, "what has come is shown meanwhile");
    assert.deepEqual(asked.map(({ path }) => path), ["/r/1/a", "/r/1/d"]);
    // Let go: nobody waits for the last snapped answer.
    want("exact", false);
    assert.ok(asked[1]!.signal.aborted);
    assert.deepEqual(asked.map(({ path }) => path), ["/r/1/a", "/r/1/d", "/r/1/exact"]);
    asked[2]!.answer();
    await turn();
    assert.equal(asker.asked("exact").state, "ready");
});
