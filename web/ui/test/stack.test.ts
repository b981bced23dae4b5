// SPDX-License-Identifier: MIT
// stack.test.ts: layers of a stacked chart add up to the whole; who freed whose blocks, of the server's two tables.
import assert from "node:assert/strict";
import test from "node:test";
import { layersOf, stacked } from "../src/components/StackChart";
import { freedMatrix } from "../src/views/threads";
import type { Kind, Table } from "../src/types";

const samples = ["a", "b", "c", "d"].flatMap((name, index) => [10, 30, 20].map((time) => ({ time, name, value: (index + 1) * time })));

test("the largest names have layers, all together are the whole", () => {
    const { times, layers } = layersOf([...samples, { time: 20, name: "d", value: 5 }], 2, "others");
    assert.deepEqual(times, [10, 20, 30]);
    assert.deepEqual(layers.map((layer) => layer.name), ["d", "c", "others"]);
    assert.deepEqual(layers[0]?.values, [40, 85, 120]);
    assert.deepEqual(stacked(layers).at(-1), [100, 205, 300]);
    assert.deepEqual(layersOf([], 3, "others"), { times: [], layers: [] });
    assert.equal(layersOf(samples, 9, "others").layers.length, 4, "nothing is left: no layer of others");
});

const table = (names: string[], rows: (number | string)[][]): Table => ({ columns: names.map((name) => ({ name, heading: name, kind: "count" as Kind })), rows, total: rows.length });
const threads = table(["id", "name", "allocations", "frees", "freed_bytes", "freed_for_others", "freed_for_others_bytes", "live_bytes"], [
    [1, "main", 10, 4, 400, 1, 100, 7], [2, "worker", 100, 90, 9000, 0, 0, 1000], [3, "worker", 1, 0, 0, 0, 0, 5],
]);
const foreign = table(["owner", "freer", "blocks", "bytes"], [[2, 1, 1, 100], [9, 1, 5, 5]]);

test("own frees stand on the diagonal, those of others beside it", () => {
    const matrix = freedMatrix(threads, foreign, "blocks", 10);
    assert.deepEqual(matrix.threads.map((one) => one.name), ["worker (2)", "main", "worker (3)"]);
    assert.deepEqual(matrix.freed, [[90, 1, 0], [0, 3, 0], [0, 0, 0]]);
    assert.equal(matrix.never, null);
    assert.deepEqual([matrix.shade(0), matrix.shade(90), matrix.shade(1)], [0, 5, 1]);
});

test("in bytes, and of the busiest threads only", () => {
    const matrix = freedMatrix(threads, foreign, "bytes", 2);
    assert.deepEqual(matrix.freed, [[9000, 100], [0, 300]]);
    assert.deepEqual(matrix.never, [1000, 7]);
    assert.equal(matrix.left, 1);
});
