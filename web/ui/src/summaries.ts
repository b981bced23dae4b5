// SPDX-License-Identifier: MIT
// summaries.ts: the answers that many parts need: of the whole source, of what is selected, marks and threads.
import { useMemo } from "preact/hooks";
import { useAnswer, type Asked } from "./ask";
import { cell, columnIndex, numberCell, rowsOf, textCell } from "./rows";
import type { Cell, Metric, Summary, Table } from "./types";
import { source } from "./session";
import { filterQuery } from "./url";

export const useWhole = (): Asked<Summary> => useAnswer<Summary>("", {}, { plain: true });
export const useSelected = (): Asked<Summary> => useAnswer<Summary>("");

export interface Mark {
    name: string;
    time: number;
    what: string;
}
export function useMarks(has: boolean | undefined): readonly Mark[] {
    const marks = useAnswer<Table>(has === true ? "marks" : null, { limit: 2000 }, { plain: true });
    const table = marks.data;
    if (table === undefined) return NO_MARKS;
    let known = marksOf.get(table);
    if (known === undefined) {
        const time = columnIndex(table, "time") < 0 ? "time_ns" : "time";
        known = rowsOf(table).map((row) => ({ name: textCell(row, "name"), time: numberCell(row, time), what: String(cell(row, "what") ?? "mark") }))
            .sort((a, b) => a.time - b.time);
        marksOf.set(table, known);
    }
    return known;
}
const NO_MARKS: readonly Mark[] = [];
const marksOf = new WeakMap<Table, readonly Mark[]>();

/* ---- Threads ---- */

/* How threads are called: by their names where they have one, else by their number. */
export const threadName = (id: Cell, name: Cell): string =>
    typeof name === "string" && name !== "" && name !== "-" ? name : `thread ${String(id)}`;

/* Of their numbers (allocations.thread). Equal names are told apart by the number. */
export function namesOf(table: Table | undefined): ReadonlyMap<string, string> {
    const rows = table === undefined ? [] : rowsOf(table);
    const seen = new Map<Cell, number>();
    for (const row of rows) seen.set(cell(row, "name"), (seen.get(cell(row, "name")) ?? 0) + 1);
    return new Map(rows.map((row) => {
        const id = cell(row, "id"), plain = threadName(id, cell(row, "name"));
        const many = (seen.get(cell(row, "name")) ?? 0) > 1 && !plain.startsWith("thread ");
        return [String(id), many ? `${plain} (${String(id)})` : plain];
    }));
}

const THREADS = 2000;
export function useThreadNames(): (id: Cell) => string {
    const whole = useWhole();
    const threads = useAnswer<Table>(whole.data?.has["threads"] === true ? "threads" : null, { limit: THREADS, sort: "id", order: "asc" }, { plain: true });
    const names = useMemo(() => namesOf(threads.data), [threads.data]);
    return (id) => (id === null ? "" : (names.get(String(id)) ?? `thread ${String(id)}`));
}

/* ---- Suppressed leaks ---- */

/*
 * Of what is leaked, what suppressions take out of the summary and of every view of leaks; or of what was freed at
 * shutdown or never. undefined: none, or not known. What is held in a window, or now, is no leak.
 */
export function useSuppressed(metric: "leaked" | "shutdown" = "leaked"): { bytes: number; blocks: number } | undefined {
    const isAsked = source.value?.live !== true && !isWindowed() && !(SAVED && filterQuery.value.size > 0);
    const asked = useAnswer<Table>(isAsked ? "suppressed" : null, { limit: 1000, metric: metric === "shutdown" ? metric : undefined });
    const table = asked.data;
    if (table === undefined || table.rows.length === 0) return undefined;
    const sum = (name: string) => rowsOf(table).reduce((all, row) => all + numberCell(row, name), 0);
    return { bytes: sum("bytes"), blocks: sum("blocks") };
}

/* ---- Metrics in words ---- */

export interface MetricWords {
    id: Metric;
    title: string;
    about: string;
    unit: "bytes" | "count";
}
const ALL: readonly MetricWords[] = [
    { id: "maximum", title: "At maximum", about: "Bytes held at the moment when the program held most", unit: "bytes" },
    { id: "leaked", title: "Leaked", about: "Bytes that were never freed", unit: "bytes" },
    { id: "cumulative", title: "Allocated", about: "All bytes ever allocated", unit: "bytes" },
    { id: "allocations", title: "Allocations", about: "How many allocations there were", unit: "count" },
    { id: "temporary", title: "Temporary", about: "Allocations that were freed before their thread's next allocation", unit: "count" },
    { id: "shutdown", title: "At shutdown", about: "Bytes freed only after the last allocation, or never", unit: "bytes" },
];

/* A saved page does not know when things were freed. */
export const METRICS: readonly MetricWords[] = SAVED ? ALL.filter((one) => one.id !== "shutdown") : ALL;

/* Whether what is left at the end of a window is shown. */
export const isWindowed = (): boolean => ["to", "at", "between"].some((name) => filterQuery.value.has(name));

/* Do filters leave only a part of what happened, other than of time? */
export const isNarrowed = (): boolean => [...filterQuery.value.keys()].some((name) => !SHAPE.includes(name) && !name.startsWith("base"));
const SHAPE = ["from", "to", "at", "between", "process", "all-processes", "full-names", "all-frames", "by"];

/* Whether the program was detached from and went on: what it held then may have been freed since. */
export const isLeft = (): boolean => source.value?.end === "detached";

/* "Leaked" is what is held at the end of a window, or now, or when the program was detached from. */
export function metricTitle(metric: Metric, live = false): string {
    if (metric === "leaked" && live) return "Held now";
    if (metric === "leaked" && isLeft() && !isWindowed()) return "Held then";
    if (metric === "leaked" && isWindowed()) return "Held at the end";
    return METRICS.find((one) => one.id === metric)?.title ?? metric;
}
export const metricUnit = (metric: Metric): "bytes" | "count" =>
    METRICS.find((one) => one.id === metric)?.unit ?? (metric === "short" ? "count" : "bytes");
