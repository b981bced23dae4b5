// SPDX-License-Identifier: MIT
// window.test.ts: times of the address, where dragging takes the window to, marks stepped through.
import assert from "node:assert/strict";
import test from "node:test";
import { draggedSpan, drawnMarks, nearest, barAt, barsOf, spanText, sparseLine, stepMarks } from "../src/frame/stripmath";
import { markText, parseTime, resolution, rounded, spanOf, spanParams } from "../src/window";

const context = { duration: 10e9, maximum: 4e9, marks: [{ name: "loaded", time: 1e9 }, { name: "turn", time: 2e9 }, { name: "turn", time: 5e9 }] };

test("times as the commands take them", () => {
    const cases: [string, number | undefined][] = [
        ["1.5s", 1.5e9], ["250ms", 250e6], ["2min", 120e9], ["1h", 3600e9], ["40%", 4e9], ["3", 3e9], ["start", 0], ["end", 10e9], ["peak", 4e9],
        ["mark:loaded", 1e9], ["mark:turn#2", 5e9], ["mark:none", undefined], ["banana", undefined], ["12345678ns", 12345678], [".5s", 0.5e9],
    ];
    for (const [text, ns] of cases) assert.equal(parseTime(text, context), ns, text);
});

test("the window of an address", () => {
    assert.equal(spanOf(new URLSearchParams("function=a"), context), null);
    assert.deepEqual(spanOf(new URLSearchParams("from=mark:loaded"), context), { from: 1e9, to: 10e9 });
    assert.deepEqual(spanOf(new URLSearchParams("at=peak"), context), { from: 0, to: 4e9 });
    assert.deepEqual(spanOf(new URLSearchParams("between=loaded,turn"), context), { from: 1e9, to: 2e9 });
    assert.deepEqual(spanOf(new URLSearchParams("base-from=1s&base-to=2s"), context, "base-"), { from: 1e9, to: 2e9 });
});

test("what is written is what was chosen; the ends of time are left out", () => {
    assert.deepEqual(spanParams({ from: 1.5e9, to: 10e9 }, 10e9), { from: "1.5s", to: null, at: null, between: null });
    assert.deepEqual(spanParams({ from: 0, to: 123456789 }, 10e9, "base-"), { "base-from": null, "base-to": "123.456789ms", "base-at": null, "base-between": null });
});

test("no finer than a pixel", () => {
    const step = resolution(10e9, 1000);
    assert.equal(step, 5e6);
    assert.equal(rounded(1234567890, step), 1235e6);
    assert.ok(resolution(1, 1e6) >= 1 || resolution(1, 1e6) > 0);
});

test("dragging", () => {
    const before = { from: 2e9, to: 4e9 };
    assert.deepEqual(draggedSpan("new", before, 5e9, 3e9, 10e9, 1e6), { from: 3e9, to: 5e9 }, "backwards");
    assert.deepEqual(draggedSpan("from", before, 2e9, 5e9, 10e9, 1e6), { from: 4e9, to: 5e9 }, "over the other edge");
    assert.deepEqual(draggedSpan("move", before, 3e9, 9e9, 10e9, 1e6), { from: 8e9, to: 10e9 }, "no further than the end");
    assert.deepEqual(draggedSpan("move", before, 3e9, 0, 10e9, 1e6), { from: 0, to: 2e9 });
    const none = draggedSpan("new", before, 5e9, 5e9, 10e9, 1e6);
    assert.ok(none.to > none.from, "never empty");
});

test("marks", () => {
    const marks = context.marks;
    assert.deepEqual(stepMarks(marks, 10e9, null, 1), { from: 0, to: 1e9 });
    assert.deepEqual(stepMarks(marks, 10e9, { from: 0, to: 1e9 }, 1), { from: 1e9, to: 2e9 });
    assert.deepEqual(stepMarks(marks, 10e9, { from: 5e9, to: 10e9 }, 1), { from: 5e9, to: 10e9 });
    assert.deepEqual(stepMarks(marks, 10e9, null, -1), { from: 5e9, to: 10e9 });
    assert.equal(stepMarks([], 10e9, null, 1), null);
    assert.equal(markText(marks, 5e9), "mark:turn#2");
    assert.equal(markText(marks, 1e9), "mark:loaded");
    assert.equal(markText(marks, 3), null);
});

test("bars: a value from one edge to the next", () => {
    const timeline = { time_ns: [0], series: {}, missing: [], intervals: { time_ns: [10, 20, 50], rate: [5, null] }, maximum: { time_ns: 0, bytes: 0 } };
    const bars = barsOf(timeline, "rate");
    assert.deepEqual(bars, [{ from: 10, to: 20, value: 5 }, { from: 20, to: 50, value: 0 }]);
    assert.equal(barAt(bars, 5), undefined);
    assert.equal(barAt(bars, 10)?.value, 5);
    assert.equal(barAt(bars, 20)?.value, 0);
    assert.equal(barAt(bars, 50)?.from, 20);
    assert.deepEqual(barsOf(timeline, "frees"), []);
});

test("nearest and words", () => {
    assert.equal(nearest([0, 10, 20], 14), 1);
    assert.equal(nearest([0, 10, 20], 16), 2);
    assert.equal(nearest([0, 10, 20], 99), 2);
    assert.equal(spanText({ from: 40.3e6, to: 100.8e6 }), "40.3 – 100.8 ms");
    assert.equal(spanText({ from: 635.4e6, to: 2.2e9 }), "635.4 ms – 2.2 s");
});

test("marks are all drawn, scopes where there is room; names where they do not meet", () => {
    const mark = (time: number, name: string) => ({ time, name, what: "mark" });
    const scopes = Array.from({ length: 400 }, (_, index) => ({ time: index * 2.5, name: index % 2 === 0 ? "order" : "", what: index % 2 === 0 ? "scope begin" : "scope end" }));
    const marks = [mark(500, "evening"), mark(560, "night"), mark(565, "late")];
    const drawn = drawnMarks([...scopes, ...marks].sort((a, b) => a.time - b.time), 1000, 1000);
    assert.deepEqual(drawn.filter(({ mark }) => mark.what === "mark").map(({ mark, hasName }) => [mark.name, hasName]), [["evening", true], ["night", false], ["late", true]]);
    const others = drawn.filter(({ mark }) => mark.what !== "mark");
    assert.ok(others.length > 10 && others.length < 80, String(others.length));
    assert.deepEqual(others.filter(({ hasName }) => hasName).map(({ mark }) => mark.time), [0]);
    assert.ok(others.every(({ mark }) => mark.name === "order"));
});

test("resident memory is a line where it was looked at often, and dots where it was not", () => {
    // Seen at 0 and 1 of 60, then at 30; what other points have is what was seen last.
    assert.deepEqual(sparseLine([0, 0.5, 1, 10, 20, 30, 60], [5, 5, 7, 7, 7, 9, 9], 60),
        { line: [5, undefined, 7, null, null, 9, null], dots: [0, 2, 5] });
    const often = Array.from({ length: 100 }, (_, i) => i);
    assert.deepEqual(sparseLine(often, often, 100).dots, [0, 99]); // its ends
    assert.deepEqual(sparseLine([0, 1], [null, null], 1), { line: [null, null], dots: [] });
});
