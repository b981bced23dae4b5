// SPDX-License-Identifier: MIT
// heapmap.test.ts: the map of the heap: which cell lies where, walking through it, addresses of a cell, zooming.
import assert from "node:assert/strict";
import test from "node:test";
import { addressRange, CELL, cellAtPoint, cellCorner, cellRange, HEAD, type HeapModel, layoutHeap, levelColour, moveCell, placeOf, refined, stripBelow, zoomed } from "../src/draw/heapmap";

const region = (start: bigint, count: number, step: number, cut = 0n) =>
    ({ start, end: start + BigInt(count * step) - cut, name: "", cells: new Array<number>(count).fill(100), live: undefined, blocks: undefined });
const model: HeapModel = { step: 8192, regions: [region(0x10000n, 25, 8192, 100n), region(0x7f0000000000n, 1, 8192), region(0x7f1200000000n, 11, 8192)] };

test("strips follow each other without overlap", () => {
    const layout = layoutHeap(model, 10 * CELL + 3);
    assert.equal(layout.perRow, 10);
    assert.deepEqual(layout.strips.map((strip) => strip.rows), [3, 1, 2]);
    for (let i = 1; i < 3; i++) {
        const before = layout.strips[i - 1]!;
        assert.ok(layout.strips[i]!.top >= before.top + HEAD + before.rows * CELL);
    }
    assert.equal(layout.height, layout.strips[2]!.top + HEAD + 2 * CELL);
});

test("each cell is found at its own corner, and nothing in headings and behind the last cell", () => {
    const layout = layoutHeap(model, 10 * CELL);
    layout.strips.forEach((strip, index) => {
        for (let cell = 0; cell < strip.region.cells.length; cell++) {
            const { x, y } = cellCorner(layout, { strip: index, cell });
            assert.deepEqual(cellAtPoint(layout, x + 2, y + 2), { strip: index, cell });
        }
        assert.equal(cellAtPoint(layout, 5, strip.top + HEAD / 2), null);
        assert.equal(stripBelow(layout, strip.top), index);
    });
    assert.equal(cellAtPoint(layout, 6 * CELL, cellCorner(layout, { strip: 0, cell: 20 }).y + 1), null, "the row is not full");
    assert.equal(cellAtPoint(layout, 10 * CELL + 1, HEAD + 2), null);
    assert.equal(cellAtPoint(layout, 5, 1e6), null);
});

test("walking goes from strip to strip and stays inside", () => {
    const layout = layoutHeap(model, 10 * CELL);
    assert.deepEqual(moveCell(layout, { strip: 0, cell: 24 }, 1, 0), { strip: 1, cell: 0 });
    assert.deepEqual(moveCell(layout, { strip: 1, cell: 0 }, -1, 0), { strip: 0, cell: 24 });
    assert.deepEqual(moveCell(layout, { strip: 0, cell: 23 }, 0, 1), { strip: 1, cell: 0 });
    assert.deepEqual(moveCell(layout, { strip: 2, cell: 4 }, 0, -1), { strip: 1, cell: 0 });
    assert.deepEqual(moveCell(layout, { strip: 1, cell: 0 }, 0, -1), { strip: 0, cell: 20 });
    assert.deepEqual(moveCell(layout, { strip: 0, cell: 3 }, 0, -1), { strip: 0, cell: 0 });
    assert.deepEqual(moveCell(layout, { strip: 2, cell: 10 }, 8, 0), { strip: 2, cell: 10 });
});

test("addresses of cells cover a region without gaps", () => {
    for (const one of model.regions) {
        let at = one.start;
        one.cells.forEach((_, cell) => {
            const range = cellRange(model, one, cell);
            assert.equal(range.start, at);
            at = range.end;
        });
        assert.equal(at, one.end);
    }
    assert.deepEqual(placeOf(model, 0x10000n + 8192n * 3n + 5n), { strip: 0, cell: 3 });
    assert.equal(placeOf(model, 5n), null);
    assert.equal(addressRange({ start: 0x1000n, end: 0x2000n }), "0x1000..0x1fff");
    assert.equal(addressRange({ start: 0xffffffffff600000n, end: 0xffffffffff601000n }), "0xffffffffff600000..0xffffffffff600fff");
});

test("closer keeps the address and shows a quarter; wider ends with all of it", () => {
    const address = 0x7f1200000000n + 8192n * 5n;
    const part = zoomed(model, address, 4);
    assert.ok(part !== null && part.start <= address && address < part.end);
    assert.ok(part.end - part.start <= BigInt(Math.ceil(37 / 4) * 8192 + 16 * 8192));
    assert.equal(part.start % 4096n, 0n);
    const small: HeapModel = { step: 4096, regions: [region(0x10000n, 8, 4096)] };
    assert.equal(zoomed(small, 0x10000n, 0.25), null);
    assert.equal(zoomed({ step: 4096, regions: [] }, 0n, 4), null);
});

test("what is in use at all has another shade than nothing", () => {
    const colours = { levels: ["none", "a", "b", "c", "d"], text: "", muted: "", outline: "", cursor: "", font: "" };
    assert.equal(levelColour(colours, 0), "none");
    assert.equal(levelColour(colours, 1), "a");
    assert.equal(levelColour(colours, 255), "d");
});

test("a coarse map in smaller squares says the same of each address", () => {
    const coarse: HeapModel = { step: 65536, regions: [{ ...region(0x100000n, 3, 65536), cells: [0, 120, 255] }, region(0x900000n, 2, 65536, 5000n)] };
    const fine = refined(coarse, 100);
    assert.equal(fine.step, 4096);
    assert.deepEqual(fine.regions.map((one) => one.cells.length), [48, 31]);
    assert.deepEqual([0, 15, 16, 31, 32, 47].map((cell) => fine.regions[0]!.cells[cell]), [0, 0, 120, 120, 255, 255]);
    assert.equal(refined(coarse, 5), coarse);
});
