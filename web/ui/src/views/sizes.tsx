// SPDX-License-Identifier: MIT
// views/sizes.tsx: how large blocks are: a bar for each power of two, the same over time as a heat map, and by call path.
// A bar is a link: it adds the filter size. The bars are a table, so they need no twin.
//
// measure: what the bars count. brush=ALLOCATED/SIZE is the rectangle in the map, as the values of the two filters.
import { useMemo } from "preact/hooks";
import { useActions } from "../actions";
import { useAnswer, type Asked } from "../ask";
import { choose, isChosen } from "../chosen";
import { bytesText } from "../components/Cells";
import { Choice } from "../components/Choice";
import { HeatMap } from "../components/HeatMap";
import { Split } from "../components/Split";
import { States } from "../components/States";
import { DataTable } from "../components/Table";
import { ticks, type HeatModel, type HeatRect } from "../draw/heat";
import * as format from "../format";
import { cell, pathFrames, type Row } from "../rows";
import type { Table } from "../types";
import { go, href, param } from "../url";
import { BrushBar } from "./lifetimes";
import { useSortedTable } from "./sorted";
import { classText, sizeBrush, sizeRange, sizeRect, type SizeClass, type TimeBin, used } from "./ranges";
import type { View } from "./index";

interface Sizes {
    classes: SizeClass[];
    time?: TimeBin[];
    counts?: number[][];
    paths?: Table;
}

type Measure = "allocations" | "total_bytes" | "live_blocks" | "live_bytes";
const MEASURES: readonly (readonly [Measure, string, string])[] = [
    ["allocations", "Allocations", "How many blocks of this size were allocated"],
    ["total_bytes", "Bytes allocated", "What they are together"],
    ["live_blocks", "Live blocks", "How many were not freed"],
    ["live_bytes", "Live bytes", "What those are together"],
];

function SizesView() {
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
    const isBytes = measure.endsWith("bytes");
    const most = shown.reduce((max, one) => Math.max(max, one[measure]), 0);
    const total = shown.reduce((sum, one) => sum + one[measure], 0);
    const text = (value: number) => (isBytes ? bytesText(value) : format.count(value));
    useActions(MEASURES.map(([id, title]) => ({ group: "Sizes", title: `Bars: ${title.toLowerCase()}`, run: () => go({ set: { measure: id } }, "replace") })));
    return (
        <section class="panel card size-bars" aria-label="Sizes">
            <div class="card-head">
                <Choice label="What the bars count" value={measure} options={MEASURES} onChange={(now) => go({ set: { measure: now === "allocations" ? null : now } }, "replace")} />
            </div>
            <div class="size-rows">
                <table class="bars thin">
                    <caption class="hidden">{MEASURES.find(([id]) => id === measure)?.[1]} by size; total {text(total)}</caption>
                    <thead class="hidden"><tr><th scope="col">Size</th><th scope="col">Bar</th><th scope="col">{measure}</th><th scope="col">Share</th></tr></thead>
                    <tbody>
                        {shown.map((one) => (
                            <tr key={one.from}>
                                <th scope="row"><a href={href({ set: { size: sizeRange(one.from, one.to) } })} title="Only blocks of these sizes">{classText(one)}</a></th>
                                <td class="bars-bar"><span style={{ width: most > 0 ? `${(100 * one[measure]) / most}%` : "0" }} /></td>
                                <td class="number" title={isBytes ? `${format.count(one[measure])} bytes` : undefined}>{text(one[measure])}</td>
                                <td class="number muted">{format.percent(one[measure], total)}</td>
                            </tr>
                        ))}
                    </tbody>
                </table>
            </div>
        </section>
    );
}

/* ---- Over time ---- */

const NO_TIME: TimeBin[] = [];

function SizeMap({ data }: { data: Sizes }) {
    const classes = useMemo(() => used(data.classes), [data]);
    const first = data.classes.indexOf(classes[0] as SizeClass);
    const time = data.time ?? NO_TIME;
    const model = useMemo<HeatModel>(() => ({
        columns: time.length, rows: classes.length,
        value: (column, row) => data.counts?.[column]?.[row + first] ?? 0,
        edges: [...time.map((bin) => bin.from_ns), time.at(-1)?.to_ns ?? 0],
    }), [data, classes]);
    const brush = param("brush");
    const rect = useMemo(() => sizeRect(brush, time, classes), [brush, time, classes]);
    const select = (now: HeatRect | null) => {
        const text = now === null ? null : sizeBrush(now, time, classes);
        go({ set: { brush: text === null ? null : `${text.allocated}/${text.size}` } }, "replace");
    };
    if (time.length === 0) return <div />;
    return (
        <div class="panel">
            <HeatMap label="Allocations by time (across) and size (up)" model={model} height={272}
                columnText={(column, last) => `${format.duration(time[column]?.from_ns ?? 0)} to ${format.duration(time[last]?.to_ns ?? 0)}`}
                rowText={(row) => classText(classes[row] ?? { from: 0, to: 0 })} yTitle="size"
                rowTick={(row) => { const to = classes[row]?.to; return to == null ? "more" : format.bytes(to + 1).replace(".0 ", " "); }}
                xTicks={ticks(time[0]?.from_ns ?? 0, time.at(-1)?.to_ns ?? 0, 6).map((at) => ({ at, text: format.duration(at).replace(".0 ", " ") }))}
                spell={format.count} selection={rect} onSelect={select} />
            <BrushBar rect={rect} model={model} filters={rect === null ? null : sizeBrush(rect, time, classes)}
                hint="Drag over the map to choose blocks by time and size." onClear={() => select(null)} />
        </div>
    );
}

/* ---- By path ---- */

function SizePaths({ table, asked }: { table: Table | undefined; asked: Asked<Sizes> }) {
    const rows = useSortedTable(table, { sort: "allocations", order: "desc" }, asked);
    const hash = (row: Row) => String(cell(row, "hash") ?? "");
    return (
        <DataTable label="Sizes by call path" rows={rows} share={{ column: "allocations" }}
            columns={[{ name: "allocations", width: "7rem" }, { name: "least_bytes", width: "5.5rem" }, { name: "p50_bytes", heading: "Median", width: "5.5rem" },
                { name: "p90_bytes", heading: "90% up to", width: "6.5rem" }, { name: "most_bytes", width: "5.5rem" }, "path"]}
            selected={(row) => isChosen("path", hash(row))} onSelect={(row) => choose({ kind: "path", id: hash(row), frame: pathFrames(row, cell(row, "path"))[0] })}
            onOpen={(row) => go({ set: { path: hash(row) } })} />
    );
}

export const view: View = { Component: SizesView };
