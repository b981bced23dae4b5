// SPDX-License-Identifier: MIT
// views/lifetimes.tsx: how long blocks lived: a heat map of when they were freed × how old they were then, and
// percentiles by call path. A rectangle in the map becomes the filters freed and lifetime.
import { useMemo } from "preact/hooks";
import { useAnswer, type Asked } from "../ask";
import { hashOf, ofPaths } from "../chosen";
import { axisText } from "../components/Cells";
import { Split } from "../components/Split";
import { Empty, States } from "../components/States";
import { DataTable } from "../components/Table";
import type { HeatRect } from "../draw/heat";
import * as format from "../format";
import { cell, numberCell, type Row, rowsOf, useSortedTable } from "../rows";
import { useWhole } from "../summaries";
import type { Cell, Lifetimes, Table } from "../types";
import { filterQuery, go } from "../url";
import { type TimeBin, TimeMap } from "./TimeMap";

type Bucket = Lifetimes["buckets"][number];
type OverTime = Required<Pick<Lifetimes, "buckets" | "time" | "counts">>;

export default function LifetimesView() {
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

function LifetimeMap({ data }: { data: OverTime }) {
    const rows = lastUsed(data.counts) + 1;
    const buckets = useMemo(() => data.buckets.slice(0, Math.max(rows, 3)), [data, rows]);
    return (
        <TimeMap label="Blocks by when they were freed (across) and how long they had lived (up)" height={244} time={data.time} rows={buckets} counts={data.counts}
            filtersOf={(rect) => ({ ...brushText(rect, data.time, buckets) })} before="freed from " yTitle="lived" ticks={9}
            rowText={(bucket) => `lived ${bucketText(bucket)}`} rowTick={({ to_ns }) => (to_ns === null ? "longer" : axisText("duration", to_ns))}
            about="Ages are counted in ticks of the recording's clock: a block near the edge of a class may be in the next one."
            hint="Drag over the map to choose blocks by time and age, then look at them in any view." />
    );
}

/* ---- By path ---- */

function Percentiles({ alone = false }: { alone?: boolean }) {
    const asked = useAnswer<Lifetimes>("lifetimes", { per: "path" }, { main: alone });
    return (
        <div class="panel">
            <States of={asked} empty={asked.data !== undefined && asked.data.percentiles === undefined ? "Nothing that is selected was freed." : undefined}>
                {(data) => <PercentileTable data={data} asked={asked} alone={alone} />}
            </States>
        </div>
    );
}

const AGES = [["p50_ns", "Half within"], ["p90_ns", "90% within"], ["p99_ns", "99% within"], ["longest_ns", "Longest"]] as const;

function PercentileTable({ data, asked, alone }: { data: Lifetimes; asked: Asked<Lifetimes>; alone: boolean }) {
    const rows = useSortedTable(data.percentiles, { sort: "freed", order: "desc" }, asked);
    const age = (_: Row, value: Cell) => (value === null ? <span class="muted" aria-label="none">–</span> :
        <span title={`${format.count(value as format.Quantity)} ns`}>{format.lifetime(Number(value), data.finest_ns)}</span>);
    return (
        <>
            <AllLine of={data.all} finest_ns={data.finest_ns} />
            {alone && <p class="muted">When blocks were freed is known only from a recording: <span class="code">memtrace record -- PROGRAM</span> adds a map over time.</p>}
            <div class="grow">
                <DataTable label="Lifetimes by call path" rows={rows} share={{ column: "freed" }}
                    columns={[{ name: "freed", heading: "Freed", width: "7rem" }, ...AGES.map(([name, heading]) => ({ name, heading, width: "6.5rem", render: age })), "path"]}
                    {...ofPaths} onOpen={(row) => go({ set: { path: hashOf(row) } })} />
            </div>
        </>
    );
}

/* "Of 418,933 blocks that were freed, half lived <4.2 ms, ..." */
function AllLine({ of, finest_ns }: { of: Table | undefined; finest_ns: number | undefined }) {
    const row = of === undefined ? undefined : rowsOf(of)[0];
    if (row === undefined) return <Empty>Nothing was freed.</Empty>;
    const time = (name: string) => {
        const ns = cell(row, name);
        return <b class="number">{ns === null ? "–" : format.lifetime(Number(ns), finest_ns).replace(/^(?=\d)/, "at most ")}</b>;
    };
    const selected = filterQuery.value.size > 0;
    return (
        <p class="line">
            Of <b class="number">{format.count(numberCell(row, "freed"))}</b> blocks {selected ? "that are selected and " : ""}that were freed, half lived {time("p50_ns")}, 90% {time("p90_ns")}, 99% {time("p99_ns")}
            {cell(row, "longest_ns") !== null && <>, the oldest {format.lifetime(numberCell(row, "longest_ns"), finest_ns)}</>}.
        </p>
    );
}
