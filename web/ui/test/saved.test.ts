// SPDX-License-Identifier: MIT
// saved.test.ts: what a saved page answers from the data inside of it, reckoned by hand.
//
//   main ─┬─ parse ── malloc_it (10 bytes at maximum, 1 block)
//         ├─ parse ── parse ── malloc_it is one call further in: recursion (20, 2)
//         └─ dump (5, 1)            and 3 calls of 7 bytes that were left out below main
import assert from "node:assert/strict";
import test from "node:test";
import { Problem } from "../src/api";
import { answer } from "../src/saved/answers";
import { Data, regexOf, type Saved } from "../src/saved/data";
import type { Answer, Summary, Table, Tree } from "../src/types";

const zero = [0, 0, 0, 0, 0, 0, 0, 0];
const saved: Saved = {
    generator: "MemTrace 1.2", source: "day.mtr", selected: "", executable: "/bin/day", command: ["./day", "x"], pid: 7, live: false, ended: true,
    duration_ns: 4e9, live_blocks: 3, frees: 1, peak_error_bytes: 0, lost: 0, contexts: 6, events: 9, sampled: false,
    costs: [], warnings: [], thread_count: 0, threads: [], timeline: [[0, 0, 100, 0], [1e9, 42, 200, 4], [4e9, 10, 150, 5]], marks: [[5e8, "loaded"]],
    calls: {
        of: 10, kept: 7, least_share: 0.01,
        //       all main parse malloc parse malloc dump | left out below main
        parent: [0, 0, 1, 2, 2, 4, 1, 1],
        function: [4, 0, 1, 2, 1, 2, 3, 4],
        note: [0, 0, 0, 1, 2, 0, 0, 3],
        line: [0, 5, 10, 11, 12, 11, 20, 0],
        self: [[0, 0, 0, 10, 0, 20, 5, 7], zero, zero, zero, zero],
        side: [[0, 0, 0, 1, 0, 2, 1, 3], zero, zero, zero, zero],
    },
    functions: { name: ["main", "parse", "malloc_it", "dump<int>()"], file: [1, 1, 0, 2], module: [3, 3, 3, 3], kind: [0, 0, 1, 0] },
    strings: ["", "day.c", "dump.c", "/bin/day"],
};
const data = new Data(saved);
const ask = <T>(path: string): T => (answer(data, path) as Answer<T>).data;

test("sums are the totals, what was left out included", () => {
    const summary = ask<Summary>("/r/1");
    assert.equal(summary.totals.maximum_bytes, 42);
    assert.equal(summary.totals.maximum_ns, 1e9);
    assert.equal(summary.resident?.peak_bytes, 200);
    assert.match(summary.warnings[0] ?? "", /^3 calls of 10 are left out/);
});

test("the tree down from main", () => {
    const tree = ask<Tree>("/r/1/tree?metric=maximum");
    const names = Array.from(tree.nodes.frame, (frame) => tree.frames[frame]?.function ?? "all");
    assert.deepEqual(names, ["all", "main", "parse", "3 smaller calls", "dump<int>()", "parse", "malloc_it", "malloc_it"]);
    assert.deepEqual(Array.from(tree.nodes.main), [42, 42, 30, 7, 5, 20, 10, 20]);
    assert.deepEqual(Array.from(tree.nodes.parent), [0, 0, 1, 1, 1, 2, 2, 5]);
    assert.deepEqual(Array.from(tree.nodes.side), [7, 7, 3, 3, 1, 2, 1, 2]);
    assert.equal(ask<Tree>("/r/1/tree?metric=maximum&min-share=20").cut, 2, "what bears less than 8.4 is cut");
});

test("the tree up from what allocates", () => {
    const tree = ask<Tree>("/r/1/tree?metric=maximum&direction=up");
    const first = Array.from(tree.nodes.parent).flatMap((parent, node) => (node > 0 && parent === 0 ? [[tree.frames[tree.nodes.frame[node]!]?.function, tree.nodes.main[node]]] : []));
    assert.deepEqual(first, [["malloc_it", 30], ["3 smaller calls", 7], ["dump<int>()", 5]]);
});

test("functions: what calls itself counts once", () => {
    const { rows, frames } = ask<Table>("/r/1/functions?metric=maximum");
    const found = Object.fromEntries(rows.map((row) => [frames?.[row[0] as number]?.function, row.slice(1, 3)]));
    assert.deepEqual(found, { main: [0, 42], parse: [0, 30], malloc_it: [30, 30], "dump<int>()": [5, 5] });
    const sorted = ask<Table>("/r/1/functions?metric=maximum&sort=self&order=desc&limit=2");
    assert.deepEqual(sorted.rows.map((row) => row[1]), [30, 5]);
    assert.equal(sorted.next, "2");
});

test("around a function", () => {
    const around = ask<{ main: number; self: number; callers: Tree; callees: Tree }>("/r/1/callers?focus=parse&metric=maximum");
    assert.equal(around.main, 30);
    assert.equal(around.self, 0);
    assert.deepEqual(Array.from(around.callers.nodes.main), [30, 30]);
    assert.deepEqual(Array.from(around.callees.nodes.main), [30, 20, 10, 20], "parse, then parse in it and malloc_it");
    assert.throws(() => ask("/r/1/callers?focus=none&metric=maximum"), Problem);
});

test("filters are those of call paths", () => {
    assert.equal(ask<Summary>("/r/1?function=%5Edump").totals.maximum_bytes, 5);
    assert.equal(ask<Summary>("/r/1?not-function=parse").totals.maximum_bytes, 12);
    assert.equal(ask<Summary>("/r/1?file=day.c&not-file=dump").totals.maximum_bytes, 37);
    assert.throws(() => ask("/r/1?function=("), /not a regular expression/);
    assert.ok(regexOf("[[:alpha:]]+[[:digit:]]").test("ab1"));
});

test("search says what it found", () => {
    const found = ask<{ functions: string[]; main: number; share: number }>("/r/1/search?regex=parse%7Cmalloc&metric=maximum");
    assert.deepEqual(found.functions, ["malloc_it", "parse"]);
    assert.equal(found.main, 30);
    assert.equal(found.share, 30 / 42);
});

test("paths and one path", () => {
    const { rows, paths, frames } = ask<Table>("/r/1/paths?metric=maximum");
    assert.deepEqual(rows.map((row) => row[2]), [20, 10, 7, 5]);
    assert.deepEqual(paths?.[0]?.map((frame) => frames?.[frame]?.function), ["malloc_it", "parse", "parse", "main"]);
    assert.equal(ask<{ frames: unknown[] }>(`/r/1/paths/${String(rows[0]?.[0])}`).frames.length, 4);
    assert.throws(() => ask("/r/1/paths/c999"), Problem);
});

test("what it has not, it says", () => {
    assert.throws(() => ask("/r/1/blocks"), /memtrace serve/);
    assert.equal((answer(data, "/session") as { sources: unknown[] }).sources.length, 1);
});
