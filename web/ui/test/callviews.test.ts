// SPDX-License-Identifier: MIT
// callviews.test.ts: what flame graph, call tree and source decide without a page.
import assert from "node:assert/strict";
import { test } from "node:test";
import { buildTree } from "../src/draw/calltree";
import type { Tree } from "../src/types";
import { callsOf, changeOf, describeCall, figureOf, nextFound, sideHeading } from "../src/views/calls";
import { lifetime } from "../src/format";
import { sortTable } from "../src/rows";
import { mergeLines, throughLine, withoutCalls } from "../src/views/source";
import { hotPath, visibleNodes } from "../src/views/tree";

/* main: a 60 (c 50 (d 20, e 20), own 10), b 30 */
const NODES = { parent: [0, 0, 1, 1, 2, 4, 4], frame: [-1, 0, 1, 2, 3, 4, 5], main: [90, 90, 60, 30, 50, 20, 20], side: [9, 9, 6, 3, 5, 2, 2], self: [0, 0, 10, 30, 10, 20, 20] };
const TREE: Tree = {
    metric: "maximum", unit: "bytes", side_unit: "count", total: 90, cut: 0, nodes: NODES,
    frames: ["main", "a", "b", "c", "d", "e"].map((name) => ({ function: name, module: name < "c" ? "/bin/prog" : "/lib/libx.so", kind: name < "c" ? "own" : "library" })),
};

test("beside the peak stand allocations in all, not blocks", () => {
    const heading = (metric: Tree["metric"]) => sideHeading({ ...TREE, metric });
    assert.deepEqual((["maximum", "temporary", "cumulative", "leaked", "shutdown"] as const).map(heading),
        ["Allocations in all", "Allocations in all", "Allocations in all", "Blocks", "Blocks"]);
    const main = describeCall(callsOf(TREE, [], "main", false), 1);
    assert.match(main, /, 9 allocations in all, library$/);
    assert.match(describeCall(callsOf({ ...TREE, metric: "leaked" }, [], "main", false), 1), /, 9 blocks, library$/);
});

test("the hot path ends where no call has half of it", () => {
    const tree = buildTree(NODES);
    const path = hotPath(tree, 0).map((node) => tree.frame[node]);
    assert.deepEqual(path, [-1, 0, 1, 3]);
});

test("rows are the calls of what is open, in order", () => {
    const tree = buildTree(NODES);
    const named = (open: number[]) => visibleNodes(tree, (node) => open.includes(tree.frame[node]!)).map((node) => tree.frame[node]);
    assert.deepEqual(named([]), [-1]);
    assert.deepEqual(named([-1, 0, 3]), [-1, 0, 1, 2]);
    assert.deepEqual(named([-1, 0, 1, 3]), [-1, 0, 1, 3, 4, 5, 2]);
});

test("a collapsed library is a frame of its kind, by its name without folders", () => {
    const calls = callsOf(TREE, [{ kind: "collapse", name: "/lib/libx.so" }], "main", false);
    const library = calls.frames[calls.tree.frame[4]!]!;
    assert.deepEqual([library.function, library.kind], ["libx.so", "library"]);
    assert.equal(calls.tree.main[4], 50);
    assert.equal(calls.tree.self[4], 50);
});

test("figures: share, or of a difference the change with its sign", () => {
    const plain = callsOf(TREE, [], "main", false);
    assert.equal(changeOf(plain), null);
    assert.equal(figureOf(plain, 2), "60 B · 66.7%");
    const nodes = { ...NODES, base: [95, 95, 80, 15, 80, 40, 40] };
    const difference = callsOf({ ...TREE, nodes }, [], "both", false);
    assert.deepEqual([figureOf(difference, 2), figureOf(difference, 3)], ["-20 B", "+15 B"]);
    assert.deepEqual([changeOf(difference)!(2), changeOf(difference)!(3)], [-0.25, 0.5]);
});

test("next and previous found go around", () => {
    const found = { hit: Uint8Array.from([0, 1, 0, 1]), count: 2, main: 0, base: 0 };
    assert.deepEqual([nextFound(found, 0, 1), nextFound(found, 1, 1), nextFound(found, 3, 1), nextFound(found, 1, -1)], [1, 3, 1, 3]);
});

test("functions of one line are added up", () => {
    const line = { line: 7, function: "f<int>", maximum: 1, leaked: 2, cumulative: 3, allocations: 4, temporary: 5, paths: 6, self_maximum: 1, self_leaked: 0, self_cumulative: 0, self_allocations: 1, self_temporary: 0 };
    const merged = mergeLines([{ ...line, line: 9 }, line, { ...line, function: "f<char>" }, { ...line, function: "f<long>" }]);
    assert.deepEqual(merged.map((one) => [one.line, one.function, one.maximum, one.paths]), [[7, "f<int>, …", 3, 18], [9, "f<int>", 1, 6]]);
    assert.deepEqual(merged.map(withoutCalls).map((one) => [one.maximum, one.leaked, one.allocations]), [[3, 0, 3], [1, 0, 1]]);
});

test("paths through a line: the same function elsewhere is another line", () => {
    const frame = (name: string, line: number, file = "a.c") => ({ function: name, file, line, module: "m", kind: "own" as const });
    const table = {
        columns: [{ name: "hash", heading: "", kind: "hash" as const }, { name: "path", heading: "", kind: "path" as const }],
        rows: [["1", 0], ["2", 1], ["3", 2]], total: 3, paths: [[0, 1], [0, 2], [3, 1]],
        frames: [frame("f", 3), frame("main", 9), frame("main", 12), frame("g", 9, "b.c")],
    };
    const hashes = (line: number, file: string) => throughLine(table, file, line).rows.map((row) => row[0]);
    assert.deepEqual([hashes(9, "a.c"), hashes(3, "a.c"), hashes(9, "b.c"), hashes(4, "a.c")], [["1", "3"], ["1", "2"], ["3"], []]);
});

test("lifetimes are spelled as the commands spell them", () => {
    assert.equal(lifetime(0, 1 << 22), "<4.2 ms");
    assert.equal(lifetime(11_900_000, 1 << 22), "11.9 ms");
    assert.equal(lifetime(1 << 22, undefined), "<4.2 ms");
    assert.equal(lifetime(2 ** 50, undefined), ">312 h 44 min");
});

test("rows without a value come last, whichever way is up", () => {
    const table = { columns: [{ name: "age", heading: "age", kind: "duration" as const }], rows: [[2], [null], [3], [1]], total: 4 };
    assert.deepEqual(sortTable(table, "age", "asc").flat(), [1, 2, 3, null]);
    assert.deepEqual(sortTable(table, "age", "desc").flat(), [3, 2, 1, null]);
});
