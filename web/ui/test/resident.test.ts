// SPDX-License-Identifier: MIT
// resident.test.ts: the parts of resident memory add up to it, and none is less than nothing.
import assert from "node:assert/strict";
import test from "node:test";
import { worthText } from "../src/components/Exact";
import * as format from "../src/format";
import { residentParts } from "../src/views/summary";

test("what a figure is worth is said in words", () => {
    assert.equal(worthText({ exact: "bound", error: 41 * 1024 }, format.bytes), "the true maximum is within 41.0 KiB of it");
    assert.equal(worthText({ exact: "bound" }, format.bytes), "the maximum may be higher");
    assert.equal(worthText({ exact: "estimate", error: 2048 }, format.bytes), "estimate ± 2.0 KiB");
    assert.equal(worthText({ exact: "exact" }, format.bytes), "exact");
});

const CASES = [
    { name: "all three", asked: 10, told: { at_peak_bytes: 30, peak_bytes: 40, own_bytes: 5 }, parts: [30, 5, 15, 0, true] },
    { name: "MemTrace's own is all that is beyond", asked: 10, told: { at_peak_bytes: 14, peak_bytes: 40, own_bytes: 9 }, parts: [14, 4, 0, 0, true] },
    { name: "measured before the maximum", asked: 50, told: { at_peak_bytes: 14, peak_bytes: 60, own_bytes: 3 }, parts: [60, 3, 7, 0, false] },
    { name: "not all was touched", asked: 50, told: { at_peak_bytes: 14, peak_bytes: 20, own_bytes: 3 }, parts: [20, 0, 0, 30, false] },
];

for (const { name, asked, told, parts } of CASES) {
    test(name, () => {
        const found = residentParts(asked, told);
        assert.ok(found !== null);
        assert.deepEqual([found.resident, found.own, found.rest, found.untouched, found.isThen], parts);
        assert.equal(found.resident, asked - found.untouched + found.own + found.rest);
    });
}

test("nothing is known", () => {
    assert.equal(residentParts(10, null), null);
    assert.equal(residentParts(0, { at_peak_bytes: 5, peak_bytes: 5, own_bytes: 1 }), null);
});
