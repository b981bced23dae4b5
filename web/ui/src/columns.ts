// SPDX-License-Identifier: MIT
// columns.ts: reads application/vnd.memtrace.columns: "MTC1", the length of a JSON head, the head, then columns, each
// 8-aligned and little-endian. In the head, columns of `data.nodes` are {type, offset, length}.
//
// Offsets count from where the columns begin: after the head, at the next multiple of 8.

interface ColumnPlace {
    type: "u32" | "u64" | "f64" | "i32" | "i64";
    offset: number;
    length: number;
}

export function readColumns(bytes: ArrayBuffer): unknown {
    const view = new DataView(bytes);
    const magic = bytes.byteLength < 8 ? "" : new TextDecoder().decode(new Uint8Array(bytes, 0, 4));
    if (magic !== "MTC1") throw new Error("the answer is not made of columns");
    const length = view.getUint32(4, true);
    const head = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 8, length))) as { data: { nodes: object } };
    const start = (8 + length + 7) & ~7;
    const nodes: Record<string, unknown> = {};
    for (const [name, place] of Object.entries(head.data.nodes)) {
        nodes[name] = isPlace(place) ? readColumn(bytes, start, place) : place;
    }
    return { ...head, data: { ...head.data, nodes } };
}

function isPlace(value: unknown): value is ColumnPlace {
    return typeof value === "object" && value !== null && !Array.isArray(value) && "offset" in value;
}

function readColumn(bytes: ArrayBuffer, start: number, { type, offset, length }: ColumnPlace): ArrayLike<number> {
    const at = start + offset;
    switch (type) {
        case "u32": return new Uint32Array(bytes, at, length);
        case "i32": return new Int32Array(bytes, at, length);
        case "f64": return new Float64Array(bytes, at, length);
        case "u64": return wide(new Uint32Array(bytes, at, 2 * length), new Uint32Array(bytes, at, 2 * length));
        case "i64": return wide(new Uint32Array(bytes, at, 2 * length), new Int32Array(bytes, at, 2 * length));
    }
}

/* As doubles: whole up to 2^53, which is 8 PiB. By halves: the language's own whole numbers are objects, one by one. */
function wide(low: Uint32Array, high: Uint32Array | Int32Array): Float64Array {
    const out = new Float64Array(low.length / 2);
    for (let i = 0; i < out.length; i++) out[i] = high[2 * i + 1]! * 2 ** 32 + low[2 * i]!;
    return out;
}
