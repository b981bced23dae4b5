// SPDX-License-Identifier: MIT
// processtree.ts: processes of a run as a tree, in the order in which they began: who forked whom, and what a process
// became by exec (another image of the same number, one after the other).
import type { Cell, Table } from "../types";

export interface TreeRow {
    cells: Cell[];
    depth: number;
    isImage: boolean; // what the process above it became
}

export function processTree(table: Table): TreeRow[] {
    const at = (row: readonly Cell[], name: string) => row[table.columns.findIndex((column) => column.name === name)] ?? null;
    const byPid = new Map<string, Cell[][]>();
    const start = (row: readonly Cell[]) => Number(at(row, "start_ns") ?? 0);
    const sorted = [...table.rows].sort((a, b) => start(a) - start(b) || Number(at(a, "image") ?? 0) - Number(at(b, "image") ?? 0));
    for (const row of sorted) {
        const pid = String(at(row, "pid"));
        byPid.set(pid, [...(byPid.get(pid) ?? []), row]);
    }
    const children = new Map<string, string[]>();
    const roots: string[] = [];
    for (const [pid, images] of byPid) {
        const parent = String(at(images[0] ?? [], "parent_pid"));
        if (parent !== pid && byPid.has(parent)) children.set(parent, [...(children.get(parent) ?? []), pid]);
        else roots.push(pid);
    }
    const rows: TreeRow[] = [];
    const seen = new Set<string>();
    const walk = (pid: string, depth: number) => {
        if (seen.has(pid)) return; // numbers may have been used again
        seen.add(pid);
        (byPid.get(pid) ?? []).forEach((cells, index) => rows.push({ cells, depth, isImage: index > 0 }));
        for (const child of children.get(pid) ?? []) walk(child, depth + 1);
    };
    for (const root of roots) walk(root, 0);
    // Parents that are each other's children: numbers used again.
    for (const pid of byPid.keys()) walk(pid, 0);
    return rows;
}
