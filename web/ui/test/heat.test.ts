// SPDX-License-Identifier: MIT
// heat.test.ts: heat maps: shades, which cell lies where, axes, and that a brushed rectangle comes back from the address.
import assert from "node:assert/strict";
import test from "node:test";
import { ramp } from "../src/draw/canvas";
import { cellAt, columnLeft, largest, rectBox, rectOf, rowTop, shadeOf, SHADES, sumOf, ticks, type HeatModel } from "../src/draw/heat";
import { brushText, bucketText, lastUsed } from "../src/views/lifetimes";
import { classText, sizeBrush, sizeRange, used } from "../src/views/sizes";
import { rectNamed } from "../src/views/TimeMap";

const box = { left: 10, top: 20, width: 400, height: 100 };
const model: HeatModel = { columns: 4, rows: 2, value: (column, row) => column * 10 + row, edges: [0, 100, 200, 300, 400] };

test("shades go by the logarithm, nothing is its own shade", () => {
    assert.equal(shadeOf(0, 1000), 0);
    assert.equal(shadeOf(1000, 1000), SHADES);
    assert.equal(shadeOf(5000, 1000), SHADES);
    assert.ok(shadeOf(1, 1_000_000) >= 1);
    assert.ok(shadeOf(1000, 1_000_000) > SHADES / 3, "a thousandth of the most is well seen");
    assert.equal(shadeOf(3, 0), 0);
    assert.equal(shadeOf(Number.NaN, 10), 0);
});

test("each cell is found at its own place, also in columns of unequal width", () => {
    for (const edges of [undefined, [0, 100, 200, 300, 400], [0, 1, 7, 300, 400]]) {
        const one: HeatModel = { ...model, ...(edges === undefined ? {} : { edges }) };
        if (edges === undefined) delete one.edges;
        for (let column = 0; column < 4; column++) {
            for (let row = 0; row < 2; row++) {
                const x = (columnLeft(one, box, column) + columnLeft(one, box, column + 1)) / 2;
                const y = rowTop(one, box, row) + 25;
                assert.deepEqual(cellAt(one, box, x, y), { column, row });
            }
        }
    }
    assert.deepEqual(cellAt(model, box, -50, 500), { column: 0, row: 0 });
    assert.deepEqual(cellAt(model, box, 5000, -5), { column: 3, row: 1 });
    assert.equal(cellAt({ columns: 0, rows: 0, value: () => 0 }, box, 1, 1), null);
});

test("rectangles: any two corners, sums, borders", () => {
    const rect = rectOf({ column: 3, row: 0 }, { column: 1, row: 1 });
    assert.deepEqual(rect, { from: { column: 1, row: 0 }, to: { column: 3, row: 1 } });
    assert.equal(sumOf(model, rect), 10 + 11 + 20 + 21 + 30 + 31);
    assert.deepEqual(rectBox(model, box, rect), { left: 110, top: 20, width: 300, height: 100 });
    assert.equal(largest(model), 31);
});

test("ticks are round and inside", () => {
    assert.deepEqual(ticks(0, 1000, 5), [0, 200, 400, 600, 800, 1000]);
    assert.deepEqual(ticks(130, 470, 4), [200, 300, 400]);
    assert.deepEqual(ticks(5, 5, 4), []);
    for (const [from, to] of [[0, 7], [3e9, 5.2e9], [1, 1e15]] as const) {
        const found = ticks(from, to, 6);
        assert.ok(found.length >= 2 && found.length <= 7, `${found}`);
        assert.ok(found.every((at) => at >= from - (to - from) / 1e9 && at <= to));
    }
});

test("a ramp begins and ends with its stops", () => {
    assert.deepEqual(ramp(["#000000", "#ffffff"], 3), ["#000000", "#808080", "#ffffff"]);
    const many = ramp(["#102030", "#405060", "#708090"], 5);
    assert.deepEqual([many[0], many[2], many[4]], ["#102030", "#405060", "#708090"]);
});

const time = [{ from_ns: 0, to_ns: 1_000_000 }, { from_ns: 1_000_000, to_ns: 5_500_000 }, { from_ns: 5_500_000, to_ns: 9_000_001 }];
const buckets = [{ from_ns: 0, to_ns: 4096 }, { from_ns: 4096, to_ns: 16384 }, { from_ns: 16384, to_ns: null }];

test("each rectangle of lifetimes comes back from its filters", () => {
    const named = (text: string | null) => rectNamed(text, 3, 3, (rect) => ({ ...brushText(rect, time, buckets) }));
    for (let c0 = 0; c0 < 3; c0++) for (let c1 = c0; c1 < 3; c1++) for (let r0 = 0; r0 < 3; r0++) for (let r1 = r0; r1 < 3; r1++) {
        const rect = rectOf({ column: c0, row: r0 }, { column: c1, row: r1 });
        const text = brushText(rect, time, buckets);
        assert.deepEqual(named(`${text.freed}/${text.lifetime}`), rect);
    }
    assert.equal(named("nonsense"), null);
    assert.equal(named(null), null);
});

test("ranges of filters include both ends, so neighbours do not overlap", () => {
    const at = (column: number, row: number) => brushText(rectOf({ column, row }, { column, row }), time, buckets);
    assert.deepEqual(at(0, 0), { freed: "0s..999.999us", lifetime: "..4.095us" });
    assert.deepEqual(at(1, 1), { freed: "1ms..5.499999ms", lifetime: "4.096us..16.383us" });
    assert.deepEqual(at(2, 2), { freed: "5.5ms..9.000001ms", lifetime: "16.384us.." });
});

test("words of buckets and classes", () => {
    assert.equal(bucketText(buckets[0]!), "less than 4.1 us");
    assert.equal(bucketText(buckets[2]!), "longer than 16.4 us");
    assert.equal(classText({ from: 16, to: 31 }), "16 B to 32 B");
    assert.equal(classText({ from: 1, to: 1 }), "1 B");
    assert.equal(classText({ from: 1024, to: 2047 }), "1 KiB to 2 KiB");
    assert.equal(sizeRange(16, 31), "16..31");
    assert.equal(sizeRange(0, 0), "0");
    assert.equal(sizeRange(8, null), "8..");
    assert.equal(lastUsed([[1, 0, 0], [0, 3, 0]]), 1);
    assert.equal(lastUsed([[0, 0]]), -1);
});

test("classes without blocks at both ends are left out, those between stay", () => {
    const none = { allocations: 0, total_bytes: 0, live_blocks: 0, live_bytes: 0 };
    const classes = [{ from: 0, to: 0, ...none }, { from: 1, to: 1, ...none, allocations: 2 }, { from: 2, to: 3, ...none }, { from: 4, to: 7, ...none, live_blocks: 1 }, { from: 8, to: 15, ...none }];
    assert.deepEqual(used(classes).map((one) => one.from), [1, 2, 4]);
    assert.deepEqual(used([classes[0]!]), []);
    assert.deepEqual(sizeBrush(rectOf({ column: 0, row: 0 }, { column: 1, row: 2 }), time, used(classes)), { allocated: "0s..5.499999ms", size: "1..7" });
});
