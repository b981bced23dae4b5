// SPDX-License-Identifier: MIT
// views/sizes.tsx: how large blocks are: a bar for each power of two, the same over time as a heat map, and by call path.
// A bar is a link: it adds the filter size. The bars are a table, so they need no twin.
//
// measure: what the bars count. A rectangle in the map becomes the filters allocated and size.
import { useMemo } from "preact/hooks";
import { useActions } from "../actions";
import { useAnswer, type Asked } from "../ask";
import { hashOf, ofPaths } from "../chosen";
import { Bars } from "../components/Bars";
import { spellKind } from "../components/Cells";
import { Choice } from "../components/Choice";
import { Split } from "../components/Split";
import { States } from "../components/States";
import { DataTable } from "../components/Table";
import type { HeatRect } from "../draw/heat";
import * as format from "../format";
import { useSortedTable } from "../rows";
import type * as Api from "../types";
import { go, href, param } from "../url";
import { type TimeBin, TimeMap } from "./TimeMap";

interface SizeClass {
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

type Sizes = Api.Sizes & { classes: SizeClass[] };

type Measure = "allocations" | "total_bytes" | "live_blocks" | "live_bytes";
const MEASURES: readonly (readonly [Measure, string, string])[] = [
    ["allocations", "Allocations", "How many blocks of this size were allocated"],
    ["total_bytes", "Bytes allocated", "What they are together"],
    ["live_blocks", "Live blocks", "How many were not freed"],
    ["live_bytes", "Live bytes", "What those are together"],
];

export default function SizesView() {
    const asked = useAnswer<Sizes>("sizes", { over: "time", per: "path" }, { main: true });
    return (
        <States of={asked} empty={asked.data !== undefined && used(asked.data.classes).length === 0 ? "No block fits all filters." : undefined}>
            {(data) => (
                <Split name="sizes" direction="column" size={352} least={180} label="Resize the charts">
                    <Split name="sizes-charts" direction="row" size={470} least={260} label="Resize the bars">
                        <SizeBars classes={data.classes} />
                        <SizeMap data={data} />
                    </Split>
                    <SizePaths table={data.paths} asked={asked} />
                </Split>
            )}
        </States>
    );
}

/* ---- Bars ---- */

function SizeBars({ classes }: { classes: readonly SizeClass[] }) {
    const measure = (MEASURES.find(([id]) => id === param("measure"))?.[0] ?? "allocations") as Measure;
    const shown = used(classes);
    const kind = measure.endsWith("bytes") ? "bytes" : "count";
    const most = shown.reduce((max, one) => Math.max(max, one[measure]), 0);
    const total = shown.reduce((sum, one) => sum + one[measure], 0);
    useActions(MEASURES.map(([id, title]) => ({ group: "Sizes", title: `Bars: ${title.toLowerCase()}`, run: () => go({ set: { measure: id } }, "replace") })));
    return (
        <section class="panel card size-bars" aria-label="Sizes">
            <div class="card-head">
                <Choice label="What the bars count" value={measure} options={MEASURES} onChange={(now) => go({ set: { measure: now === "allocations" ? null : now } }, "replace")} />
            </div>
            <div class="size-rows">
                <Bars isThin isText caption={`${MEASURES.find(([id]) => id === measure)?.[1]} by size; total ${spellKind(kind, total)}`} head={["Size", "Bar", measure, "Share"]}
                    rows={shown.map((one) => ({
                        key: one.from, name: <a href={href({ set: { size: sizeRange(one.from, one.to) } })} title="Only blocks of these sizes">{classText(one)}</a>, share: one[measure] / most,
                        cells: (
                            <>
                                <td class="number" title={kind === "bytes" ? `${format.count(one[measure])} bytes` : undefined}>{spellKind(kind, one[measure])}</td>
                                <td class="number muted">{format.percent(one[measure], total)}</td>
                            </>
                        ),
                    }))} />
            </div>
        </section>
    );
}

/* ---- Over time ---- */

function SizeMap({ data }: { data: Sizes }) {
    const classes = useMemo(() => used(data.classes), [data]);
    const { time = [] } = data;
    if (time.length === 0) return <div />;
    return (
        <div class="panel">
            <TimeMap label="Allocations by time (across) and size (up)" height={272} time={time} rows={classes} counts={data.counts} first={data.classes.indexOf(classes[0] as SizeClass)}
                filtersOf={(rect) => ({ ...sizeBrush(rect, time, classes) })} yTitle="size" ticks={6}
                rowText={classText} rowTick={({ to }) => (to === null ? "more" : format.bytes(to + 1).replace(".0 ", " "))}
                hint="Drag over the map to choose blocks by time and size." />
        </div>
    );
}

/* ---- By path ---- */

function SizePaths({ table, asked }: { table: Api.Table | undefined; asked: Asked<Sizes> }) {
    const rows = useSortedTable(table, { sort: "allocations", order: "desc" }, asked);
    return (
        <DataTable label="Sizes by call path" rows={rows} share={{ column: "allocations" }}
            columns={[{ name: "allocations", width: "7rem" }, { name: "least_bytes", width: "5.5rem" }, { name: "p50_bytes", heading: "Median", width: "5.5rem" },
                { name: "p90_bytes", heading: "90% up to", width: "6.5rem" }, { name: "most_bytes", width: "5.5rem" }, "path"]}
            {...ofPaths} onOpen={(row) => go({ set: { path: hashOf(row) } })} />
    );
}
