// SPDX-License-Identifier: MIT
// format.test.ts: the page spells numbers as the commands do: expected values are those of tests/unit/number_test.c
// and of C's printf.
import assert from "node:assert/strict";
import test from "node:test";
import * as format from "../src/format";

test("bytes", () => {
    const cases: [format.Quantity, string][] = [
        [0, "0 B"], [27, "27 B"], [1023, "1023 B"], [1024, "1.0 KiB"], [1258291, "1.2 MiB"], [1047552, "1023.0 KiB"],
        [1048524, "1023.9 KiB"], [1048525, "1.0 MiB"], ["18446744073709551615", "16.0 EiB"], [1280, "1.2 KiB"], [1792, "1.8 KiB"],
        [1024 * 1024 * 1024, "1.0 GiB"], [-1536, "-1.5 KiB"],
    ];
    for (const [value, text] of cases) assert.equal(format.bytes(value), text);
});

test("ties round to even, as in C", () => {
    // printf "%.1f": 1.25 -> 1.2, 1.75 -> 1.8, 0.25 -> 0.2, 2.25 -> 2.2
    assert.equal(format.bytes(1.25 * 1024), "1.2 KiB");
    assert.equal(format.bytes(1.75 * 1024), "1.8 KiB");
    assert.equal(format.percent(1, 400), "0.2%");
    assert.equal(format.percent(9, 400), "2.2%");
    assert.equal(format.percent(3, 400), "0.8%");
});

test("changes carry their sign", () => {
    assert.equal(format.change(1024), "+1.0 KiB");
    assert.equal(format.change(-27), "-27 B");
    assert.equal(format.change(0), "0 B");
});

test("counts", () => {
    assert.equal(format.count(12903424), "12,903,424");
    assert.equal(format.count(999), "999");
    assert.equal(format.count(1000), "1,000");
    assert.equal(format.count(-1234567), "-1,234,567");
    assert.equal(format.count("18446744073709551615"), "18,446,744,073,709,551,615");
    assert.equal(format.items(1, "block"), "1 block");
    assert.equal(format.items(2000, "block"), "2,000 blocks");
    assert.equal(format.items(3, "process"), "3 processes");
});

test("percentages", () => {
    assert.equal(format.percent(0, 0), "-");
    assert.equal(format.percent(0, 10), "0.0%");
    assert.equal(format.percent(1, 10000), "<0.1%");
    assert.equal(format.percent(123, 1000), "12.3%");
});

test("durations", () => {
    const cases: [number, string][] = [
        [0, "0 ns"], [999, "999 ns"], [1500, "1.5 us"], [250e6, "250.0 ms"], [1.5e9, "1.5 s"], [125e9, "2 min 5 s"], [11400e9, "3 h 10 min"],
    ];
    for (const [value, text] of cases) assert.equal(format.duration(value), text);
});

test("times are read back to the nanosecond", () => {
    assert.equal(format.time(0), "0s");
    assert.equal(format.time(1_500_000_000), "1.5s");
    assert.equal(format.time(123_456_789), "123.456789ms");
    assert.equal(format.time(12_345_678_901), "12.345678901s");
    assert.equal(format.time(250), "250ns");
});

test("what is not known is a dash, and no zero", () => {
    assert.deepEqual([format.bytes(null), format.count(undefined), format.duration(null)], ["–", "–", "–"]);
});
