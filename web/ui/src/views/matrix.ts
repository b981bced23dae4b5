// SPDX-License-Identifier: MIT
// matrix.ts: who freed whose blocks, of two tables of the server: what each thread freed, and of that what was others'.
import { namesOf } from "../components/threads";
import type { Table } from "../types";

export interface Matrix {
    threads: { id: string; name: string }[];
    freed: number[][]; // [owner][freer]
    never: number[] | null; // what of each owner nobody freed; null: not known in this unit
    left: number; // threads that are not shown
    shade: (value: number) => number; // 0: nothing; 1 to 5
}

const STEPS = 5;

export function freedMatrix(threads: Table, foreign: Table, unit: "blocks" | "bytes", most: number): Matrix {
    const at = (table: Table, row: readonly unknown[], name: string) => row[table.columns.findIndex((column) => column.name === name)];
    const names = namesOf(threads);
    const number = (row: readonly unknown[], name: string) => Number(at(threads, row, name) ?? 0);
    const busy = [...threads.rows].sort((a, b) => number(b, "allocations") + number(b, "frees") - number(a, "allocations") - number(a, "frees"));
    const shown = busy.slice(0, most).map((row) => ({ id: String(at(threads, row, "id")), row }));
    const place = new Map(shown.map((one, index) => [one.id, index]));
    const freed = shown.map(() => new Array<number>(shown.length).fill(0));
    shown.forEach(({ row }, index) => {
        const own = unit === "blocks" ? number(row, "frees") - number(row, "freed_for_others") : number(row, "freed_bytes") - number(row, "freed_for_others_bytes");
        freed[index]![index] = Math.max(0, own);
    });
    for (const row of foreign.rows) {
        const owner = place.get(String(at(foreign, row, "owner")));
        const freer = place.get(String(at(foreign, row, "freer")));
        if (owner !== undefined && freer !== undefined) freed[owner]![freer]! += Number(at(foreign, row, unit) ?? 0);
    }
    const largest = Math.max(0, ...freed.flat());
    return {
        threads: shown.map(({ id }) => ({ id, name: names.get(id) ?? id })),
        freed,
        never: unit === "bytes" ? shown.map(({ row }) => number(row, "live_bytes")) : null,
        left: busy.length - shown.length,
        shade: (value) => (value <= 0 || largest <= 0 ? 0 : Math.max(1, Math.ceil((Math.log1p(value) / Math.log1p(largest)) * STEPS))),
    };
}
