// SPDX-License-Identifier: MIT
// running.test.ts: what grew since a mark, and processes of a run as a tree.
import assert from "node:assert/strict";
import test from "node:test";
import type { Cell, Kind, Table } from "../src/types";
import { growthOf, snapshotOf } from "../src/views/live";
import { processTree } from "../src/views/processes";

const table = (names: string[], rows: Cell[][], total = rows.length): Table => ({ columns: names.map((name) => ({ name, heading: name, kind: "count" as Kind })), rows, total });
const PATHS = ["hash", "path", "live_bytes", "live_blocks", "allocations"];
const totals = { at_ns: 5, bytes: 300, blocks: 3, allocations: 30 };

test("growth is the difference by path; new ones held nothing, idle ones are left out", () => {
    const mark = snapshotOf(table(PATHS, [["a", 0, 100, 1, 10], ["b", 1, 200, 2, 20], ["c", 2, 50, 1, 1]]), totals);
    const growth = growthOf({ ...table(PATHS, [["a", 0, 150, 2, 12], ["b", 1, 80, 1, 20], ["c", 2, 50, 1, 1], ["d", 3, 7, 1, 1]]), frames: [], paths: [] }, mark);
    const rows = growth.rows.map((row) => row.slice(0, 6));
    assert.deepEqual(rows, [[50, 1, 150, 2, 2, "a"], [-120, -1, 80, 1, 0, "b"], [7, 1, 7, 1, 1, "d"]]);
    assert.equal(growth.total, 3);
});

test("of a mark that had only some paths, others are not said to have grown", () => {
    const mark = snapshotOf(table(PATHS, [["a", 0, 100, 1, 10]], 2), totals);
    assert.equal(mark.isWhole, false);
    assert.deepEqual(growthOf(table(PATHS, [["a", 0, 101, 1, 11], ["b", 0, 900, 9, 9]]), mark).rows.map((row) => row[5]), ["a"]);
});

const PROCESSES = ["pid", "parent_pid", "image", "start_ns"];
const shape = (rows: Cell[][]) => processTree(table(PROCESSES, rows)).map((row) => [row.cells[0], row.cells[2], row.depth, row.isImage]);

test("children under their parents, images of one process after each other", () => {
    assert.deepEqual(shape([[3, 2, 1, 30], [1, 0, 1, 0], [2, 1, 2, 25], [2, 1, 1, 20], [4, 1, 1, 10]]), [
        [1, 1, 0, false], [4, 1, 1, false], [2, 1, 1, false], [2, 2, 1, true], [3, 1, 2, false],
    ]);
});

test("what a process became by exec stands below what it was, where both began at one time", () => {
    assert.deepEqual(shape([[7, 1, 2, 20], [7, 1, 3, 20], [7, 1, 1, 20], [1, 0, 2, 0], [1, 0, 1, 0]]), [
        [1, 1, 0, false], [1, 2, 0, true], [7, 1, 1, false], [7, 2, 1, true], [7, 3, 1, true],
    ]);
});

test("each process has a row, also where parents make a circle", () => {
    const rows = shape([[1, 2, 1, 0], [2, 1, 1, 1], [5, 5, 1, 2], [6, 99, 1, 3]]);
    assert.deepEqual(rows.map((row) => row[0]).sort(), [1, 2, 5, 6]);
});
