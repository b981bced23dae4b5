// SPDX-License-Identifier: MIT
// sides.test.ts: the two sides of a difference: one alone, both exchanged, words; windows that are offered.
import assert from "node:assert/strict";
import test from "node:test";
import { changed, parsePlace, spellPlace } from "../src/url";
import { exchanged, otherAlone, sideOf, sideText, thisAlone, windowPairs } from "../src/views/compare";

const at = parsePlace("/compare?r=1&metric=leaked&base=2&from=1s&function=a&function=b&base-to=2s&base-leaked&process=77");

test("each side has its own filters", () => {
    assert.deepEqual(sideOf(at.query, false), { from: ["1s"], function: ["a", "b"], process: ["77"] });
    assert.deepEqual(sideOf(at.query, true), { to: ["2s"], leaked: [""] });
});

test("one side alone is a view without a difference", () => {
    const one = changed(at, { set: thisAlone(at.query) });
    assert.deepEqual([...one.query].sort(), [["from", "1s"], ["function", "a"], ["function", "b"], ["metric", "leaked"], ["process", "77"], ["r", "1"]]);
    const other = changed(at, { set: otherAlone(at.query) });
    assert.deepEqual([...other.query].sort(), [["leaked", ""], ["metric", "leaked"], ["r", "2"], ["to", "2s"]]);
});

test("exchanged twice is as before", () => {
    const once = changed(at, { set: exchanged(at.query) });
    assert.equal(once.query.get("r"), "2");
    assert.equal(once.query.get("base"), "1");
    assert.deepEqual(once.query.getAll("base-function"), ["a", "b"]);
    const twice = changed(once, { set: exchanged(once.query) });
    assert.deepEqual([...twice.query].sort(), [...at.query].sort());
    assert.ok(spellPlace(twice).startsWith("/compare?"));
});

test("words", () => {
    assert.equal(sideText({}), "");
    assert.equal(sideText({ from: ["1s"], to: ["2s"], function: ["^a$"] }), "from 1s to 2s, function ^a$");
    assert.equal(sideText({ between: ["a,b"] }), "between a and b");
    assert.equal(sideText({ at: ["peak"], leaked: [""] }), "at peak, leaked");
});

test("windows by marks, where there are some", () => {
    assert.equal(windowPairs([]).length, 3);
    const marks = ["load", "round", "round", "round"].map((name, index) => ({ name, time: index }));
    const sets = windowPairs(marks).slice(3).map((one) => one.set);
    assert.deepEqual(sets, [{ at: "mark:round#3", "base-at": "mark:round#2" }, { at: "mark:round", "base-at": "mark:load" }]);
});
