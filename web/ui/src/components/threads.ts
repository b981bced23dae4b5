// SPDX-License-Identifier: MIT
// threads.ts: how threads are called: by their names where they have one, else by their number.
import { useMemo } from "preact/hooks";
import { useAnswer } from "../ask";
import { columnIndex } from "../rows";
import { useWhole } from "../summaries";
import type { Cell, Table } from "../types";

export const threadName = (id: Cell, name: Cell): string =>
    typeof name === "string" && name !== "" && name !== "-" ? name : `thread ${String(id)}`;

/* Of their numbers (allocations.thread). Equal names are told apart by the number. */
export function namesOf(table: Table | undefined): ReadonlyMap<string, string> {
    const names = new Map<string, string>();
    if (table === undefined) return names;
    const [id, name] = [columnIndex(table, "id"), columnIndex(table, "name")];
    const seen = new Map<Cell, number>();
    for (const row of table.rows) seen.set(row[name] ?? null, (seen.get(row[name] ?? null) ?? 0) + 1);
    for (const row of table.rows) {
        const plain = threadName(row[id] ?? null, row[name] ?? null);
        const many = (seen.get(row[name] ?? null) ?? 0) > 1 && !plain.startsWith("thread ");
        names.set(String(row[id]), many ? `${plain} (${String(row[id])})` : plain);
    }
    return names;
}

const MOST = 2000;
export function useThreadNames(): (id: Cell) => string {
    const whole = useWhole();
    const threads = useAnswer<Table>(whole.data?.has["threads"] === true ? "threads" : null, { limit: MOST, sort: "id", order: "asc" }, { plain: true });
    const names = useMemo(() => namesOf(threads.data), [threads.data]);
    return (id) => (id === null ? "" : (names.get(String(id)) ?? `thread ${String(id)}`));
}
