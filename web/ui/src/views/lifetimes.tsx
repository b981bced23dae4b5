// SPDX-License-Identifier: MIT
// views/lifetimes.tsx: how long blocks lived: a heat map of when they were freed × how old they were then, and
// percentiles by call path. A rectangle in the map becomes filters (freed, lifetime), with which any view can be opened.
//
// brush=FREED/LIFETIME in the address is the rectangle, as the values of the two filters.
import { useMemo } from "preact/hooks";
import { useAnswer, type Asked } from "../ask";
import { choose, isChosen } from "../chosen";
import { HeatMap } from "../components/HeatMap";
import { Split } from "../components/Split";
import { Empty, States } from "../components/States";
import { DataTable } from "../components/Table";
import { sumOf, ticks, type HeatModel, type HeatRect } from "../draw/heat";
import * as format from "../format";
import { viewChange } from "../links";
import { cell, pathFrames, type Row } from "../rows";
import { useWhole } from "../summaries";
import type { Cell, Table } from "../types";
import { filterQuery, go, href, param } from "../url";
import { useSortedTable } from "./sorted";
import { brushRect, brushText, bucketText, lastUsed, type Bucket, type TimeBin } from "./ranges";
import type { View } from "./index";

interface OverTime {
    buckets: Bucket[];
    time: TimeBin[];
    counts: number[][];
}
interface ByPath {
    finest_ns?: number; // a recording's clock; a profile has steps
    all?: Table;
    percentiles?: Table;
}

function Lifetimes() {
    const whole = useWhole();
    if (whole.data === undefined) return null;
    if (whole.data.has["events"] === false) return <Percentiles alone />;
    return (
        <Split name="lifetimes" direction="column" size={330} least={160} label="Resize the heat map">
            <OverTimeMap />
            <Percentiles />
        </Split>
    );
}

/* ---- The map ---- */

function OverTimeMap() {
    const asked = useAnswer<OverTime>("lifetimes", { over: "time" }, { main: true });
    return (
        <div class="panel">
            <States of={asked} empty={asked.data !== undefined && isEmpty(asked.data.counts) ? "Nothing that is selected was freed." : undefined}>
                {(data) => <LifetimeMap data={data} />}
            </States>
        </div>
    );
}
const isEmpty = (counts: number[][]): boolean => counts.every((row) => row.every((count) => count === 0));

function LifetimeMap({ data }: { data: OverTime }) {
    const rows = lastUsed(data.counts) + 1;
    const buckets = useMemo(() => data.buckets.slice(0, Math.min(data.buckets.length, Math.max(rows, 3))), [data, rows]);
    const model = useMemo<HeatModel>(() => ({
        columns: data.time.length, rows: buckets.length,
        value: (column, row) => data.counts[column]?.[row] ?? 0,
        edges: [...data.time.map((bin) => bin.from_ns), data.time.at(-1)?.to_ns ?? 0],
    }), [data, buckets]);
    const brush = param("brush");
    const rect = useMemo(() => brushRect(brush, data.time, buckets), [brush, data, buckets]);
    const [from, to] = [data.time[0]?.from_ns ?? 0, data.time.at(-1)?.to_ns ?? 0];
    const select = (now: HeatRect | null) => {
        const text = now === null ? null : brushText(now, data.time, buckets);
        go({ set: { brush: text === null ? null : `${text.freed}/${text.lifetime}` } }, "replace");
    };
    return (
        <>
            <HeatMap label="Blocks by when they were freed (across) and how long they had lived (up)" model={model} height={244}
                columnText={(column, last) => `freed from ${format.duration(data.time[column]?.from_ns ?? 0)} to ${format.duration(data.time[last]?.to_ns ?? 0)}`}
                rowText={(row) => `lived ${bucketText(buckets[row] ?? { from_ns: 0, to_ns: null })}`} yTitle="lived"
                rowTick={(row) => (buckets[row]?.to_ns == null ? "longer" : format.duration(buckets[row].to_ns).replace(".0 ", " "))}
                xTicks={ticks(from, to, 9).map((at) => ({ at, text: format.duration(at).replace(".0 ", " ") }))}
                spell={format.count} selection={rect} onSelect={select} />
            <BrushBar rect={rect} model={model} filters={rect === null ? null : brushText(rect, data.time, buckets)}
                about="Ages are counted in ticks of the recording's clock: a block near the edge of a class may be in the next one."
                hint="Drag over the map to choose blocks by time and age, then look at them in any view." onClear={() => select(null)} />
        </>
    );
}

/* What is chosen in a map, and where to go with it. */
export function BrushBar({ rect, model, filters, hint, about, onClear }: {
    rect: HeatRect | null; model: HeatModel; filters: Record<string, string> | null; hint: string; about?: string; onClear: () => void;
}) {
    if (rect === null || filters === null) return <p class="brush-bar muted">{hint}</p>;
    const set = Object.fromEntries(Object.entries(filters).filter(([, value]) => value !== ".."));
    const names = Object.entries(set).map(([name, value]) => `${name} ${value}`).join(", ");
    return (
        <div class="brush-bar toolbar">
            <span title={about}>{about === undefined ? "" : "about "}<b class="number">{format.items(sumOf(model, rect), "block")}</b> <span class="muted code">{names}</span></span>
            <a class="button small" href={href(viewChange("blocks", { ...set, all: true }))}>Blocks</a>
            <a class="button small" href={href(viewChange("flame", { ...set, metric: "allocations" }))}>Flame graph</a>
            <a class="button small" href={href(viewChange("paths", { ...set, metric: "allocations" }))}>Call paths</a>
            <a class="button small" href={href({ set: { ...set, brush: null } })}>Filter this view</a>
            <button type="button" class="small plain" onClick={onClear}>Clear</button>
        </div>
    );
}

/* ---- By path ---- */

function Percentiles({ alone = false }: { alone?: boolean }) {
    const asked = useAnswer<ByPath>("lifetimes", { per: "path" }, { main: alone });
    return (
        <div class="panel">
            <States of={asked} empty={asked.data !== undefined && asked.data.percentiles === undefined ? "Nothing that is selected was freed." : undefined}>
                {(data) => <PercentileTable data={data} asked={asked} alone={alone} />}
            </States>
        </div>
    );
}

const AGES = [["p50_ns", "Half within"], ["p90_ns", "90% within"], ["p99_ns", "99% within"], ["longest_ns", "Longest"]] as const;

function PercentileTable({ data, asked, alone }: { data: ByPath; asked: Asked<ByPath>; alone: boolean }) {
    const rows = useSortedTable(data.percentiles, { sort: "freed", order: "desc" }, asked);
    const hash = (row: Row) => String(cell(row, "hash") ?? "");
    const age = (_: Row, value: Cell) => (value === null ? <span class="muted" aria-label="none">–</span> :
        <span title={`${format.count(value as format.Quantity)} ns`}>{format.lifetime(Number(value), data.finest_ns)}</span>);
    return (
        <>
            <AllLine of={data.all} finest_ns={data.finest_ns} />
            {alone && <p class="muted">When blocks were freed is known only from a recording: <span class="code">memtrace record -- PROGRAM</span> adds a map over time.</p>}
            <div class="grow">
                <DataTable label="Lifetimes by call path" rows={rows} share={{ column: "freed" }}
                    columns={[{ name: "freed", heading: "Freed", width: "7rem" }, ...AGES.map(([name, heading]) => ({ name, heading, width: "6.5rem", render: age })), "path"]}
                    selected={(row) => isChosen("path", hash(row))} onSelect={(row) => choose({ kind: "path", id: hash(row), frame: pathFrames(row, cell(row, "path"))[0] })}
                    onOpen={(row) => go({ set: { path: hash(row) } })} />
            </div>
        </>
    );
}

/* "Of 418,933 blocks that were freed, half lived <4.2 ms, ..." */
function AllLine({ of, finest_ns }: { of: Table | undefined; finest_ns: number | undefined }) {
    const cells = of?.rows[0];
    if (of === undefined || cells === undefined) return <Empty>Nothing was freed.</Empty>;
    const value = (name: string) => cells[of.columns.findIndex((column) => column.name === name)];
    const time = (name: string) => {
        const ns = value(name);
        return <b class="number">{ns == null ? "–" : format.lifetime(Number(ns), finest_ns).replace(/^(?=\d)/, "at most ")}</b>;
    };
    const selected = filterQuery.value.size > 0;
    return (
        <p class="line">
            Of <b class="number">{format.count(Number(value("freed") ?? 0))}</b> blocks {selected ? "that are selected and " : ""}that were freed, half lived {time("p50_ns")}, 90% {time("p90_ns")}, 99% {time("p99_ns")}
            {value("longest_ns") != null && <>, the oldest {format.lifetime(Number(value("longest_ns")), finest_ns)}</>}.
        </p>
    );
}

export const view: View = { Component: Lifetimes };
