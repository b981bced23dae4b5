// SPDX-License-Identifier: MIT
// growth.ts: what call paths hold more than at a mark, of two answers about a running program.
import type { Cell, Column, Table } from "../types";

export interface Held {
    bytes: number;
    blocks: number;
    allocations: number;
}
export interface Snapshot {
    at_ns: number;
    bytes: number;
    blocks: number;
    allocations: number;
    paths: ReadonlyMap<string, Held>;
    isWhole: boolean; // of all paths: one that is missing held nothing
}

const at = (table: Table, name: string) => table.columns.findIndex((column) => column.name === name);

export function snapshotOf(table: Table, totals: Omit<Snapshot, "paths" | "isWhole">): Snapshot {
    const [hash, bytes, blocks, allocations] = ["hash", "live_bytes", "live_blocks", "allocations"].map((name) => at(table, name)) as [number, number, number, number];
    const paths = new Map<string, Held>();
    for (const row of table.rows) {
        paths.set(String(row[hash]), { bytes: Number(row[bytes] ?? 0), blocks: Number(row[blocks] ?? 0), allocations: Number(row[allocations] ?? 0) });
    }
    return { ...totals, paths, isWhole: table.rows.length >= table.total };
}

const COLUMNS: readonly Column[] = [
    { name: "grew_bytes", heading: "grew by", kind: "signed", about: "Bytes held now, less those held at the mark" },
    { name: "grew_blocks", heading: "blocks", kind: "count", about: "Blocks held now, less those held at the mark" },
    { name: "live_bytes", heading: "holds", kind: "bytes", about: "Bytes held now" },
    { name: "live_blocks", heading: "in blocks", kind: "count" },
    { name: "allocations", heading: "allocations since", kind: "count" },
    { name: "hash", heading: "hash", kind: "hash" },
    { name: "path", heading: "call path", kind: "path" },
];

/** Paths that grew or shrank, or allocated; those whose part at the mark is not known are left out. */
export function growthOf(now: Table, mark: Snapshot): Table {
    const [hash, bytes, blocks, allocations, path] = ["hash", "live_bytes", "live_blocks", "allocations", "path"].map((name) => at(now, name)) as [number, number, number, number, number];
    const rows: Cell[][] = [];
    for (const row of now.rows) {
        const before = mark.paths.get(String(row[hash])) ?? (mark.isWhole ? { bytes: 0, blocks: 0, allocations: 0 } : undefined);
        if (before === undefined) continue;
        const grew = Number(row[bytes] ?? 0) - before.bytes;
        const since = Number(row[allocations] ?? 0) - before.allocations;
        if (grew === 0 && since === 0) continue;
        rows.push([grew, Number(row[blocks] ?? 0) - before.blocks, row[bytes] ?? 0, row[blocks] ?? 0, since, row[hash] ?? null, row[path] ?? null]);
    }
    return { columns: [...COLUMNS], rows, total: rows.length, ...(now.frames === undefined ? {} : { frames: now.frames }), ...(now.paths === undefined ? {} : { paths: now.paths }) };
}
