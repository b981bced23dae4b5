// SPDX-License-Identifier: MIT
// ranges.ts: what lies under a heat map's cells, as values of filters and as words: times, lifetimes, classes of size; and
// rectangles of cells as the address has them.
import type { HeatRect } from "../draw/heat";
import * as format from "../format";

export interface TimeBin {
    from_ns: number;
    to_ns: number;
}
export interface Bucket {
    from_ns: number;
    to_ns: number | null;
}

/* ---- Lifetimes ---- */

/* Buckets that nothing is in at the end are left out: the last one begins after weeks. */
export function lastUsed(counts: readonly (readonly number[])[]): number {
    return counts.reduce((last, row) => Math.max(last, row.findLastIndex((count) => count > 0)), -1);
}
export function bucketText(of: Bucket): string {
    if (of.to_ns === null) return `longer than ${format.duration(of.from_ns)}`;
    return of.from_ns === 0 ? `less than ${format.duration(of.to_ns)}` : `${format.duration(of.from_ns)} to ${format.duration(of.to_ns)}`;
}

/* As values of the filters freed and lifetime: both ends of a range belong to it. */
export function brushText(rect: HeatRect, time: readonly TimeBin[], buckets: readonly Bucket[]): { freed: string; lifetime: string } {
    const [from, to] = [time[rect.from.column]?.from_ns ?? 0, time[rect.to.column]?.to_ns ?? 0];
    const low = buckets[rect.from.row]?.from_ns ?? 0;
    const high = buckets[rect.to.row]?.to_ns ?? null;
    // What is freed with the last event belongs to it; without an end, what is never freed would, too.
    const isLast = rect.to.column === time.length - 1;
    return {
        freed: `${format.time(from)}..${format.time(isLast ? to : to - 1)}`,
        lifetime: `${low === 0 ? "" : format.time(low)}..${high === null ? "" : format.time(high - 1)}`,
    };
}
export function brushRect(text: string | null, time: readonly TimeBin[], buckets: readonly Bucket[]): HeatRect | null {
    if (text === null) return null;
    for (let c0 = 0; c0 < time.length; c0++) {
        for (let r0 = 0; r0 < buckets.length; r0++) {
            const one = brushText({ from: { column: c0, row: r0 }, to: { column: c0, row: r0 } }, time, buckets);
            const [freed = "", lifetime = ""] = text.split("/");
            if (one.freed.split("..")[0] !== freed.split("..")[0] || one.lifetime.split("..")[0] !== lifetime.split("..")[0]) continue;
            const column = time.findIndex((_, c) => brushText({ from: { column: c, row: r0 }, to: { column: c, row: r0 } }, time, buckets).freed.split("..")[1] === freed.split("..")[1]);
            const row = buckets.findIndex((_, r) => brushText({ from: { column: c0, row: r }, to: { column: c0, row: r } }, time, buckets).lifetime.split("..")[1] === lifetime.split("..")[1]);
            return column < c0 || row < r0 ? null : { from: { column: c0, row: r0 }, to: { column, row } };
        }
    }
    return null;
}

/* ---- Sizes ---- */

export interface SizeClass {
    from: number;
    to: number | null;
    allocations: number;
    total_bytes: number;
    live_blocks: number;
    live_bytes: number;
}
/* From the first class that has blocks to the last one. */
export function used(classes: readonly SizeClass[]): SizeClass[] {
    const first = classes.findIndex((one) => one.allocations > 0 || one.live_blocks > 0);
    const last = classes.findLastIndex((one) => one.allocations > 0 || one.live_blocks > 0);
    return first < 0 ? [] : classes.slice(first, last + 1);
}
export function classText(of: Pick<SizeClass, "from" | "to">): string {
    if (of.to === null) return `${format.bytes(of.from)} and more`;
    return of.from === of.to ? format.bytes(of.from) : `${format.bytes(of.from).replace(".0 ", " ")} to ${format.bytes(of.to + 1).replace(".0 ", " ")}`;
}
export const sizeRange = (from: number, to: number | null): string => (from === to ? String(from) : `${from}..${to ?? ""}`);

/* As values of the filters allocated and size. */
export function sizeBrush(rect: HeatRect, time: readonly TimeBin[], classes: readonly SizeClass[]): { allocated: string; size: string } {
    const to = time[rect.to.column]?.to_ns ?? 0;
    return {
        allocated: `${format.time(time[rect.from.column]?.from_ns ?? 0)}..${format.time(rect.to.column === time.length - 1 ? to : to - 1)}`,
        size: sizeRange(classes[rect.from.row]?.from ?? 0, classes[rect.to.row]?.to ?? null),
    };
}
export function sizeRect(text: string | null, time: readonly TimeBin[], classes: readonly SizeClass[]): HeatRect | null {
    if (text === null) return null;
    const [allocated = "", size = ""] = text.split("/");
    const at = (column: number, row: number) => sizeBrush({ from: { column, row }, to: { column, row } }, time, classes);
    const [start, end] = allocated.split("..");
    const [low, high] = size.includes("..") ? size.split("..") : [size, size];
    const edge = (value: string, side: 0 | 1) => (value.includes("..") ? value.split("..")[side] : value);
    const from = { column: time.findIndex((_, c) => edge(at(c, 0).allocated, 0) === start), row: classes.findIndex((_, r) => edge(at(0, r).size, 0) === low) };
    const to = { column: time.findIndex((_, c) => edge(at(c, 0).allocated, 1) === end), row: classes.findIndex((_, r) => edge(at(0, r).size, 1) === high) };
    return Math.min(from.column, from.row, to.column, to.row) < 0 ? null : { from, to };
}
