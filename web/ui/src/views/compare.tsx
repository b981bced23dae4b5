// SPDX-License-Identifier: MIT
// views/compare.tsx: what changed from one file or window to another: totals side by side, both timelines above each
// other, and functions with what they hold more or less. Any other view shows the same difference: it is in the address
// (base, base-...). Without one: what could be compared.
import { useMemo } from "preact/hooks";
import { useActions } from "../actions";
import { useAnswer, type ParamValue } from "../ask";
import { choose, isChosen } from "../chosen";
import { bytesText, changeText, FrameText } from "../components/Cells";
import { Chart } from "../components/Chart";
import { Split } from "../components/Split";
import { States } from "../components/States";
import { type ColumnSpec, DataTable } from "../components/Table";
import { FILTERS } from "../filters";
import * as format from "../format";
import { openSandwich, viewChange } from "../links";
import { cell, frameOf, numberCell, type Row } from "../rows";
import { source, sources } from "../session";
import { metricTitle, metricUnit, useMarks, useSuppressed, useWhole } from "../summaries";
import type { Kind, Summary, Timeline } from "../types";
import { go, href, isDifference, metric, place, sourceId } from "../url";
import { useSortedRows } from "./functions";
import type { View } from "./index";
import { exchanged, otherAlone, sideOf, sideText, thisAlone, windowPairs } from "./sides";

const NAMES = FILTERS.map((filter) => filter.name);

function Compare() {
    return isDifference.value ? <Difference /> : <Chooser />;
}

/* ---- What could be compared ---- */

function Chooser() {
    const whole = useWhole();
    const marks = useMarks(whole.data?.has["marks"]);
    const others = sources.value.filter((one) => String(one.id) !== sourceId.value && one.state === "open");
    const windows = whole.data === undefined || whole.data.kind === "profile" || whole.data.kind === "live" ? [] : windowPairs(marks);
    const own = sourceId.value;
    return (
        <div class="choose">
            <h1>Compare {source.value?.name ?? "this"} with …</h1>
            <section class="card">
                <div class="card-head"><h2>another file</h2><span class="space" /><a class="button small" href={href({ view: "files" })}>Open one …</a></div>
                {others.length === 0 ? <p class="card-body muted">No other file is open. Start with both: <span class="code">memtrace serve BEFORE AFTER</span></p> : (
                    <ul class="choose-list">
                        {others.map((one) => (
                            <li key={one.id}>
                                <a href={href({ set: { base: String(one.id) } })}><b>{one.name}</b>{one.path !== one.name && <span class="muted">{one.path}</span>}</a>
                            </li>
                        ))}
                    </ul>
                )}
            </section>
            <section class="card">
                <div class="card-head"><h2>another time of the same file</h2></div>
                {windows.length === 0 ? <p class="card-body muted">A profile has sums only. A recording can be compared with itself, from one time to another: <span class="code">memtrace record -- PROGRAM</span></p> : (
                    <>
                        <p class="card-body muted">Hold Alt and drag on the timeline above: that is the time to compare with. Or begin with one of these:</p>
                        <ul class="choose-list">
                            {windows.map((one) => (
                                <li key={one.title}>
                                    <a href={href({ set: { from: null, to: null, at: null, between: null, ...one.set, base: own } })}><b>{one.title}</b><span class="muted">{one.about}</span></a>
                                </li>
                            ))}
                        </ul>
                    </>
                )}
            </section>
        </div>
    );
}

/* ---- The difference ---- */

const NO_BASE = (query: URLSearchParams): Record<string, ParamValue> =>
    Object.fromEntries([...query.keys()].filter((name) => name.startsWith("base")).map((name) => [name, null]));
const SHAPE = ["full-names", "all-frames", "by"];

function useSides() {
    const query = place.value.query;
    const base = query.get("base") ?? sourceId.value;
    const one = sideOf(query, false, NAMES);
    const other = sideOf(query, true, NAMES);
    const shape = Object.fromEntries(SHAPE.filter((name) => query.has(name)).map((name) => [name, query.get(name)]));
    const nameOf = (id: string) => sources.value.find((found) => String(found.id) === id)?.name ?? `file ${id}`;
    return {
        base, one, other, shape,
        oneName: nameOf(sourceId.value), otherName: nameOf(base),
        noBase: NO_BASE(query),
    };
}

function Difference() {
    const sides = useSides();
    const now = useAnswer<Summary>("", sides.noBase);
    const before = useAnswer<Summary>(`/r/${sides.base}`, { ...sides.other, ...sides.shape });
    const query = place.value.query;
    const swap = () => go({ set: exchanged(place.peek().query, NAMES) });
    useActions([
        { group: "Compare", title: "Exchange both sides", keys: ["x"], run: swap },
        { group: "Compare", title: "This side alone", run: () => go({ set: thisAlone(place.peek().query, NAMES) }) },
        { group: "Compare", title: "The other side alone", run: () => go({ set: otherAlone(place.peek().query, NAMES) }) },
    ]);
    return (
        <Split name="compare" direction="column" size={324} least={150} label="Resize the table">
            <div class="panel compare-top">
                <div class="compare-sides">
                    <SideHead kind="before" title="before" name={sides.otherName} text={sideText(sides.other)} link={href({ view: "summary", set: otherAlone(query, NAMES) })} />
                    <button type="button" class="small" onClick={swap} title="Exchange both sides (x)">⇄<span class="hidden">Exchange both sides</span></button>
                    <SideHead kind="after" title="after" name={sides.oneName} text={sideText(sides.one)} link={href({ view: "summary", set: thisAlone(query, NAMES) })} />
                    <nav class="compare-views" aria-label="The same difference as">
                        <span class="muted">The difference as</span>
                        {([["flame", "flame graph"], ["tree", "call tree"], ["paths", "call paths"], ["source", "source"]] as const).map(([view, title]) => <a key={view} class="button small" href={href(viewChange(view))}>{title}</a>)}
                    </nav>
                </div>
                <div class="compare-figures grow">
                    <States of={before}>
                        {(was) => <States of={now}>{(is) => <Totals was={was} is={is} />}</States>}
                    </States>
                    <Timelines sides={sides} />
                </div>
            </div>
            <Functions />
        </Split>
    );
}

function SideHead({ kind, title, name, text, link }: { kind: string; title: string; name: string; text: string; link: string }) {
    return (
        <a class={`side ${kind}`} href={link} title="Show this side alone">
            <span class="side-title">{title}</span>
            <b>{name}</b>
            <span class="muted">{text === "" ? "all of it" : text}</span>
        </a>
    );
}

type Figure = readonly [string, (of: Summary) => number | undefined, Kind];
const FIGURES: readonly Figure[] = [
    ["At maximum", (of) => of.totals.peak_bytes, "bytes"],
    ["Held at the end", (of) => of.totals.live_bytes, "bytes"],
    ["Blocks of that", (of) => of.totals.live_blocks, "count"],
    ["Allocated", (of) => of.totals.total_bytes, "bytes"],
    ["Allocations", (of) => of.totals.allocations, "count"],
    ["Temporary", (of) => of.totals.temporary, "count"],
    ["Resident, at most", (of) => of.resident?.peak_bytes ?? undefined, "bytes"],
    ["Call paths", (of) => of.totals.contexts, "count"],
];

function Totals({ was, is }: { was: Summary; is: Summary }) {
    const suppressed = useSuppressed();
    return (
        <table class="plain-table totals">
            {suppressed !== undefined && <caption class="muted">Of what is held after, {bytesText(suppressed.bytes)} are suppressed leaks.</caption>}
            <thead><tr><th scope="col"><span class="hidden">Figure</span></th><th scope="col">before</th><th scope="col">after</th><th scope="col">change</th><th scope="col"><span class="hidden">in percent</span></th></tr></thead>
            <tbody>
                {FIGURES.map(([title, of, kind]) => {
                    const [a, b] = [of(was), of(is)];
                    const text = (value: number | undefined) => (value === undefined ? "–" : kind === "bytes" ? bytesText(value) : format.count(value));
                    const delta = a === undefined || b === undefined ? undefined : b - a;
                    return (
                        <tr key={title}>
                            <th scope="row">{title}</th>
                            <td class="number" title={a === undefined ? undefined : format.count(a)}>{text(a)}</td>
                            <td class="number" title={b === undefined ? undefined : format.count(b)}>{text(b)}</td>
                            <td class="number">{delta === undefined ? "–" : <Delta value={delta} unit={kind === "bytes" ? "bytes" : "count"} />}</td>
                            <td class="number muted">{delta === undefined || a === undefined || a === 0 || delta === 0 ? "" : `${delta > 0 ? "+" : ""}${format.percent(delta, a)}`}</td>
                        </tr>
                    );
                })}
            </tbody>
        </table>
    );
}

/* With its sign: the colour never says it alone. */
function Delta({ value, unit }: { value: number; unit: "bytes" | "count" }) {
    const text = unit === "bytes" ? changeText(value) : value > 0 ? "+" + format.count(value) : format.count(value);
    return <span class={`delta ${value > 0 ? "more" : value < 0 ? "less" : "same"}`} title={format.count(value)}>{value === 0 ? "same" : text}</span>;
}

/* ---- Both timelines ---- */

function Timelines({ sides }: { sides: ReturnType<typeof useSides> }) {
    const shape = { points: 400, series: "live" };
    const now = useAnswer<Timeline>("timeline", { ...shape, ...sides.noBase });
    const before = useAnswer<Timeline>(`/r/${sides.base}/timeline`, { ...shape, ...sides.other, ...sides.shape });
    const line = (of: Timeline, colour: string) => [{ label: "held", values: of.series.live ?? [], kind: "bytes" as const, fill: true, colour }];
    return (
        <div class="panel compare-lines">
            <States of={before}>{(data) => data.time_ns.length > 1 ? <Chart label="Held before" height={88} time={data.time_ns} series={line(data, "--less")} /> : <p class="muted">No timeline of the other side.</p>}</States>
            <States of={now}>{(data) => data.time_ns.length > 1 ? <Chart label="Held after" height={88} time={data.time_ns} series={line(data, "--more")} /> : <p class="muted">No timeline of this side.</p>}</States>
        </div>
    );
}

/* ---- Functions ---- */

function Functions() {
    const rows = useSortedRows("functions", { metric: metric.value }, { main: true, sort: "delta", order: "desc" });
    const unit = metricUnit(metric.value);
    const frame = (row: Row) => frameOf(row, cell(row, "function"));
    const most = useMemo(() => {
        const table = rows.asked.data;
        const at = table?.columns.findIndex((one) => one.name === "delta") ?? -1;
        return table?.rows.reduce((max, row) => Math.max(max, Math.abs(Number(row[at] ?? 0))), 0) ?? 0;
    }, [rows.asked.data]);
    const columns: (string | ColumnSpec)[] = [
        { name: "delta", heading: "Change", width: "15rem", render: (_, value) => <span class="delta-cell"><DeltaBar value={Number(value ?? 0)} most={most} /><Delta value={Number(value ?? 0)} unit={unit} /></span> },
        { name: "base_total", heading: "Before", width: "6.5rem" }, { name: "total", heading: "After", width: "6.5rem" },
        { name: "function", render: (row) => {
            const of = frame(row);
            return <span class="presence"><Presence before={numberCell(row, "base_total")} now={numberCell(row, "total")} />{of === undefined ? null : <FrameText of={of} />}</span>;
        } },
    ];
    return (
        <div class="panel">
            <p class="line"><b>{metricTitle(metric.value)}</b>, by function: itself and all that it called. Click the heading <i>Change</i> to see first what became less.</p>
            <div class="grow">
                <DataTable label="Functions" rows={rows} columns={columns} empty="Both sides are the same: nothing in either of them."
                    selected={(row) => isChosen("function", frame(row)?.function ?? "")}
                    onSelect={(row) => {
                        const of = frame(row);
                        if (of !== undefined) choose({ kind: "function", id: of.function, frame: of });
                    }}
                    onOpen={(row) => {
                        const of = frame(row);
                        if (of !== undefined) openSandwich(of.function);
                    }} />
            </div>
        </div>
    );
}

function DeltaBar({ value, most }: { value: number; most: number }) {
    const share = most > 0 ? Math.min(1, Math.abs(value) / most) * 50 : 0;
    return (
        <span class="delta-bar" aria-hidden="true">
            {value !== 0 && <span class={value > 0 ? "more" : "less"} style={value > 0 ? { left: "50%", width: `${share}%` } : { right: "50%", width: `${share}%` }} />}
        </span>
    );
}
function Presence({ before, now }: { before: number; now: number }) {
    if (before === 0 && now > 0) return <span class="tag more">new</span>;
    if (now === 0 && before > 0) return <span class="tag less">gone</span>;
    return null;
}

export const view: View = { Component: Compare };
