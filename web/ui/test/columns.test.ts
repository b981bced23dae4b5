// SPDX-License-Identifier: MIT
// columns.test.ts: binary answers, spelled here byte by byte.
import assert from "node:assert/strict";
import { test } from "node:test";
import { readColumns } from "../src/columns";

function answer(head: object, columns: number[]): ArrayBuffer {
    const text = new TextEncoder().encode(JSON.stringify(head));
    const start = Math.ceil((8 + text.length) / 8) * 8;
    const bytes = new Uint8Array(start + columns.length);
    bytes.set([0x4d, 0x54, 0x43, 0x31, text.length & 255, text.length >> 8, 0, 0]);
    bytes.set(text, 8);
    bytes.set(columns, start);
    return bytes.buffer;
}

test("columns of each type, and what is none", () => {
    const head = { via: "model", data: { total: 5, nodes: {
        parent: { type: "u32", offset: 0, length: 2 }, frame: { type: "u32", offset: 8, length: 1 },
        main: { type: "u64", offset: 16, length: 1 }, change: { type: "i64", offset: 32, length: 1 }, share: { type: "f64", offset: 24, length: 1 }, hash: ["a", null],
    } } };
    const read = readColumns(answer(head, [
        1, 0, 0, 0, 2, 1, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xf8, 0x3f,
        0xfd, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    ])) as { via: string; data: { total: number; nodes: Record<string, ArrayLike<number>> } };
    assert.equal(read.via, "model");
    assert.equal(read.data.total, 5);
    assert.deepEqual(Array.from(read.data.nodes.parent!), [1, 258]);
    assert.equal(read.data.nodes.frame![0], 2 ** 32 - 1);
    assert.equal(read.data.nodes.main![0], 2 ** 33);
    assert.equal(read.data.nodes.change![0], -3);
    assert.equal(read.data.nodes.share![0], 1.5);
    assert.deepEqual(read.data.nodes.hash, ["a", null]);
});

test("what is not made of columns, or cut, is refused", () => {
    assert.throws(() => readColumns(new TextEncoder().encode('{"data":{}}').buffer as ArrayBuffer), /not made of columns/);
    assert.throws(() => readColumns(new ArrayBuffer(3)), /not made of columns/);
    const whole = answer({ data: { nodes: { parent: { type: "u32", offset: 0, length: 4 } } } }, [1, 0, 0, 0]);
    assert.throws(() => readColumns(whole), RangeError);
});
