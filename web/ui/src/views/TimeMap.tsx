// SPDX-License-Identifier: MIT
// TimeMap.tsx: the heat map of the views lifetimes and sizes: time across, a class of blocks in each row. A rectangle in it
// becomes filters, with which any view can be opened: brush=TIME/CLASS in the address, as the values of the two filters.
import { useMemo } from "preact/hooks";
import { axisText } from "../components/Cells";
import { HeatMap } from "../components/HeatMap";
import { sumOf, ticks, type HeatModel, type HeatRect } from "../draw/heat";
import * as format from "../format";
import { viewChange } from "../links";
import { go, href, param } from "../url";

export interface TimeBin {
    from_ns: number;
    to_ns: number;
}
interface TimeMapProps<Row> {
    label: string;
    height: number;
    time: readonly TimeBin[];
    rows: readonly Row[];
    counts: readonly (readonly number[])[] | undefined; // of each time by row
    first?: number; // the row of counts that `rows` begin with
    filtersOf: (rect: HeatRect) => Record<string, string>; // of time, then of the row
    rowText: (row: Row) => string;
    rowTick: (row: Row) => string;
    yTitle: string;
    before?: string; // before a time
    ticks: number;
    hint: string;
    about?: string; // why the number of blocks is about
}

export function TimeMap<Row>({ time, rows, counts, first = 0, filtersOf, rowText, rowTick, before = "", hint, about, ...rest }: TimeMapProps<Row>) {
    const [from, to] = [time[0]?.from_ns ?? 0, time.at(-1)?.to_ns ?? 0];
    const model = useMemo<HeatModel>(() => ({
        columns: time.length, rows: rows.length,
        value: (column, row) => counts?.[column]?.[row + first] ?? 0,
        edges: [...time.map((bin) => bin.from_ns), to],
    }), [time, counts, rows]);
    const brush = param("brush");
    const rect = useMemo(() => rectNamed(brush, time.length, rows.length, filtersOf), [brush, time, rows]);
    const select = (now: HeatRect | null) => go({ set: { brush: now === null ? null : Object.values(filtersOf(now)).join("/") } }, "replace");
    return (
        <>
            <HeatMap label={rest.label} model={model} height={rest.height} yTitle={rest.yTitle} spell={format.count} selection={rect} onSelect={select}
                columnText={(column, last) => `${before}${format.duration(time[column]?.from_ns ?? 0)} to ${format.duration(time[last]?.to_ns ?? 0)}`}
                rowText={(row) => rowText(rows[row]!)} rowTick={(row) => rowTick(rows[row]!)}
                xTicks={ticks(from, to, rest.ticks).map((at) => ({ at, text: axisText("duration", at) }))} />
            {rect === null ? <p class="brush-bar muted">{hint}</p> :
                <BrushBar count={sumOf(model, rect)} filters={filtersOf(rect)} about={about} onClear={() => select(null)} />}
        </>
    );
}

/* What is chosen, and where to go with it. */
function BrushBar({ count, filters, about, onClear }: { count: number; filters: Record<string, string>; about: string | undefined; onClear: () => void }) {
    const set = Object.fromEntries(Object.entries(filters).filter(([, value]) => value !== ".."));
    const names = Object.entries(set).map(([name, value]) => `${name} ${value}`).join(", ");
    return (
        <div class="brush-bar toolbar">
            <span title={about}>{about === undefined ? "" : "about "}<b class="number">{format.items(count, "block")}</b> <span class="muted code">{names}</span></span>
            <a class="button small" href={href(viewChange("blocks", { ...set, all: true }))}>Blocks</a>
            <a class="button small" href={href(viewChange("flame", { ...set, metric: "allocations" }))}>Flame graph</a>
            <a class="button small" href={href(viewChange("paths", { ...set, metric: "allocations" }))}>Call paths</a>
            <a class="button small" href={href({ set: { ...set, brush: null } })}>Filter this view</a>
            <button type="button" class="small plain" onClick={onClear}>Clear</button>
        </div>
    );
}

/* The rectangle whose two filters have these values, with a / between them. null: none has. */
export function rectNamed(text: string | null, columns: number, rows: number, filtersOf: (rect: HeatRect) => Record<string, string>): HeatRect | null {
    if (text === null || rows === 0 || !text.includes("/")) return null;
    const edge = (value: string, side: 0 | 1) => (value.includes("..") ? value.split("..")[side] : value);
    const ranges = text.split("/");
    // What a time is called does not depend on the row, nor that of a row on the time.
    const place = (axis: 0 | 1, side: 0 | 1): number => Array.from({ length: axis === 0 ? columns : rows }, (_, index) => {
        const cell = axis === 0 ? { column: index, row: 0 } : { column: 0, row: index };
        return edge(Object.values(filtersOf({ from: cell, to: cell }))[axis] ?? "", side);
    }).indexOf(edge(ranges[axis] ?? "", side));
    const from = { column: place(0, 0), row: place(1, 0) }, to = { column: place(0, 1), row: place(1, 1) };
    return Math.min(from.column, from.row, to.column - from.column, to.row - from.row) < 0 ? null : { from, to };
}
