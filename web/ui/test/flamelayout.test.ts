// SPDX-License-Identifier: MIT
// flamelayout.test.ts: what is seen of a flame graph, and what lies under a point.
import assert from "node:assert/strict";
import { test } from "node:test";
import { buildTree, type TreeColumns } from "../src/draw/calltree";
import { Boxes, boxAt, type FlameWindow, layBoxes } from "../src/draw/flamelayout";

/* A root with n calls of these weights. */
function broad(weights: number[]): TreeColumns {
    const sum = weights.reduce((all, one) => all + one, 0);
    const none = [0, ...weights.map(() => 0)];
    return { parent: none, frame: none.map((_, i) => i - 1), main: [sum, ...weights], side: none, self: none };
}
function deep(levels: number): TreeColumns {
    const all = Array.from({ length: levels }, (_, i) => i);
    return {
        parent: all.map((i) => Math.max(i - 1, 0)), frame: all.map((i) => i - 1), main: all.map(() => 8),
        side: all.map(() => 0), self: all.map(() => 0),
    };
}
const whole = (columns: TreeColumns, more: Partial<FlameWindow> = {}): FlameWindow => ({
    left: 0, width: columns.main[0]!, pixels: 1000, least: 1, rows: Infinity, ...more,
});
function lay(columns: TreeColumns, more: Partial<FlameWindow> = {}): Boxes {
    const boxes = new Boxes();
    layBoxes(buildTree(columns), whole(columns, more), boxes);
    return boxes;
}
const nodes = (boxes: Boxes) => Array.from(boxes.node.subarray(0, boxes.count));

test("boxes are as wide as their share", () => {
    const boxes = lay(broad([500, 300, 200]));
    assert.deepEqual(nodes(boxes), [0, 1, 2, 3]);
    assert.deepEqual(Array.from(boxes.x.subarray(0, 4)), [0, 0, 500, 800]);
    assert.deepEqual(Array.from(boxes.width.subarray(0, 4)), [1000, 500, 300, 200]);
    assert.deepEqual(boxes.row, [0, 1, 4]);
});

test("calls too narrow are one strip, as wide as they are together", () => {
    const boxes = lay(broad([900, ...new Array<number>(200).fill(0.5)]));
    assert.deepEqual(nodes(boxes), [0, 1, -1]);
    assert.equal(boxes.x[2], 900);
    assert.equal(boxes.width[2], 100);
});

test("calls that are too narrow together are not there", () => {
    assert.deepEqual(nodes(lay(broad([1000, 0.2, 0.2]))), [0, 1]);
});

test("zoomed in, only what overlaps is laid, cut off at the edges", () => {
    const boxes = lay(broad([400, 300, 200, 100]), { left: 500, width: 250 });
    assert.deepEqual(nodes(boxes), [0, 2, 3]);
    assert.deepEqual(Array.from(boxes.x.subarray(0, 3)), [0, 0, 800]);
    assert.deepEqual(Array.from(boxes.width.subarray(0, 3)), [1000, 800, 200]);
});

test("no row is laid that is not asked for", () => {
    assert.equal(lay(deep(20_000), { rows: 50 }).rows, 50);
    assert.equal(lay(deep(20_000)).rows, 20_000);
});

test("a point finds the box that is drawn there", () => {
    const boxes = lay(broad([500, 300, 200]));
    for (const [row, x, node] of [[0, 999.5, 0], [1, 0, 1], [1, 499.9, 1], [1, 500, 2], [1, 999, 3]] as const) {
        assert.equal(boxes.node[boxAt(boxes, row, x)], node, `row ${row}, x ${x}`);
    }
    assert.equal(boxAt(boxes, 1, 1000), -1);
    assert.equal(boxAt(boxes, 1, -1), -1);
    assert.equal(boxAt(boxes, 2, 5), -1);
    assert.equal(boxAt(boxes, -1, 5), -1);
});

test("a point beside all calls, above what the caller holds itself, finds nothing", () => {
    const columns = broad([300]);
    const boxes = lay({ ...columns, main: [1000, 300] }, { width: 1000 });
    assert.equal(boxAt(boxes, 1, 299) >= 0, true);
    assert.equal(boxAt(boxes, 1, 301), -1);
});

test("an empty tree has no boxes but the root", () => {
    assert.deepEqual(nodes(lay(broad([]))), []);
    assert.equal(lay(broad([]), { width: 1 }).count, 1);
});

test("of a million nodes only those are visited that can be seen", () => {
    const size = 1_000_000;
    const parent = new Int32Array(size), main = new Float64Array(size).fill(1), zero = new Float64Array(size);
    for (let i = 1; i < size; i++) parent[i] = (i - 1) >> 2;
    for (let i = size - 1; i > 0; i--) main[parent[i]!]! += main[i]!;
    const boxes = new Boxes();
    layBoxes(buildTree({ parent, frame: parent, main, side: zero, self: zero }),
        { left: 0, width: main[0]!, pixels: 1400, least: 0.7, rows: 60 }, boxes);
    assert.ok(boxes.count > 500 && boxes.count < 6000, `${boxes.count} boxes`);
});
