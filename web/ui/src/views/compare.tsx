// SPDX-License-Identifier: MIT
// views/compare.tsx: what changed from one file or window to another: totals side by side, both timelines above each
// other, and functions with what they hold more or less. Any other view shows the same difference: it is in the address
// (base, base-...). Without one: what could be compared.
import { useMemo } from "preact/hooks";
import { useActions } from "../actions";
import { useAnswer } from "../ask";
import { functionOf, ofFunctions } from "../chosen";
import { bytesText, changeText, FrameText, spellKind } from "../components/Cells";
import { Chart } from "../components/Chart";
import { Split } from "../components/Split";
import { States } from "../components/States";
import { type ColumnSpec, DataTable } from "../components/Table";
import { FILTERS } from "../filters";
import * as format from "../format";
import { openSandwich, viewChange } from "../links";
import { largestIn, numberCell, useRows } from "../rows";
import { source, sources } from "../session";
import { type Mark, metricTitle, metricUnit, useMarks, useSuppressed, useWhole } from "../summaries";
import type { Kind, Summary, Timeline } from "../types";
import { baseGone, go, href, isDifference, metric, place, sourceId, type Value } from "../url";
import { NO_WINDOW } from "../window";

export default function Compare() {
    return isDifference.value ? <Difference /> : <Chooser />;
}

/* ---- The two sides in an address: `base` and the filters base-...; one alone, both exchanged ---- */

type Set = Record<string, Value>;
const NAMES: readonly string[] = [...FILTERS.map((filter) => filter.name), "process", "all-processes"];

/* The filters of one side, by their plain names. */
export function sideOf(query: URLSearchParams, other: boolean): Record<string, string[]> {
    const found: Record<string, string[]> = {};
    for (const name of NAMES) {
        const values = query.getAll(other ? `base-${name}` : name);
        if (values.length > 0) found[name] = values;
    }
    return found;
}

/* Takes all out that says what is compared. */
function cleared(query: URLSearchParams): Set {
    const set: Set = { base: null };
    for (const name of query.keys()) if (name.startsWith("base-") || NAMES.includes(name)) set[name] = null;
    return set;
}

export function thisAlone(query: URLSearchParams): Set {
    return { ...cleared(query), ...sideOf(query, false) };
}
export function otherAlone(query: URLSearchParams): Set {
    return { ...cleared(query), ...sideOf(query, true), r: query.get("base") ?? query.get("r") };
}
export function exchanged(query: URLSearchParams): Set {
    const set: Set = { ...cleared(query), ...sideOf(query, true), r: query.get("base") ?? query.get("r"), base: query.get("r") ?? "1" };
    for (const [name, values] of Object.entries(sideOf(query, false))) set[`base-${name}`] = values;
    return set;
}

/* "from 1.5 s to 3 s, function ^parse_": what a side is, in words. "" : all of it. */
export function sideText(side: Record<string, string[]>): string {
    const { from, to, at, between, ...others } = side;
    const when = between !== undefined ? `between ${between[0]?.replace(",", " and ")}` :
        at !== undefined ? `at ${at[0]}` :
        from !== undefined && to !== undefined ? `from ${from[0]} to ${to[0]}` :
        from !== undefined ? `from ${from[0]} on` : to !== undefined ? `until ${to[0]}` : "";
    const rest = Object.entries(others).flatMap(([name, values]) => values.map((value) => (value === "" ? name : `${name} ${value}`)));
    return [when, ...rest].filter((text) => text !== "").join(", ");
}

/* ---- What could be compared ---- */

/* Pairs of windows that one often wants. */
interface WindowPair {
    title: string;
    about: string;
    set: Record<string, string>;
}
export function windowPairs(marks: readonly Pick<Mark, "name" | "time">[]): WindowPair[] {
    const pairs: WindowPair[] = [
        { title: "What is held at the end, and half-way", about: "what grew in the second half", set: { at: "100%", "base-at": "50%" } },
        { title: "The second half, and the first", about: "what was allocated in each", set: { from: "50%", "base-to": "50%" } },
        { title: "The end, and the maximum", about: "what was given back since, and what stayed", set: { at: "100%", "base-at": "peak" } },
    ];
    const names = [...new Set(marks.map((mark) => mark.name).filter((name) => name !== "" && !name.includes("#")))];
    for (const name of names.slice(0, 4)) {
        const same = marks.filter((mark) => mark.name === name);
        if (same.length < 2) continue;
        const last = same.length;
        pairs.push({ title: `Mark ${name}: the last time, and the ${last > 2 ? "second" : "first"}`, about: `what grew from one ${name} to another`, set: { at: `mark:${name}#${last}`, "base-at": last > 2 ? `mark:${name}#2` : `mark:${name}` } });
    }
    const [first, second] = names;
    if (first !== undefined && second !== undefined) pairs.push({ title: `Mark ${second}, and mark ${first}`, about: "what is held at one more than at the other", set: { at: `mark:${second}`, "base-at": `mark:${first}` } });
    return pairs;
}

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
                                    <a href={href({ set: { ...NO_WINDOW, ...one.set, base: own } })}><b>{one.title}</b><span class="muted">{one.about}</span></a>
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

const SHAPE = ["full-names", "all-frames", "by"];

function useSides() {
    const query = place.value.query;
    const base = query.get("base") ?? sourceId.value;
    const one = sideOf(query, false);
    const other = sideOf(query, true);
    const shape = Object.fromEntries(SHAPE.filter((name) => query.has(name)).map((name) => [name, query.get(name)]));
    const nameOf = (id: string) => sources.value.find((found) => String(found.id) === id)?.name ?? `file ${id}`;
    return {
        base, one, other, shape,
        oneName: nameOf(sourceId.value), otherName: nameOf(base),
        noBase: baseGone(),
    };
}

function Difference() {
    const sides = useSides();
    const now = useAnswer<Summary>("", sides.noBase);
    const before = useAnswer<Summary>(`/r/${sides.base}`, { ...sides.other, ...sides.shape });
    const query = place.value.query;
    const swap = () => go({ set: exchanged(place.peek().query) });
    useActions([
        { group: "Compare", title: "Exchange both sides", keys: ["x"], run: swap },
        { group: "Compare", title: "This side alone", run: () => go({ set: thisAlone(place.peek().query) }) },
        { group: "Compare", title: "The other side alone", run: () => go({ set: otherAlone(place.peek().query) }) },
    ]);
    return (
        <Split name="compare" direction="column" size={324} least={150} label="Resize the table">
            <div class="panel compare-top">
                <div class="compare-sides">
                    <SideHead kind="before" title="before" name={sides.otherName} text={sideText(sides.other)} link={href({ view: "summary", set: otherAlone(query) })} />
                    <button type="button" class="small" onClick={swap} title="Exchange both sides (x)">⇄<span class="hidden">Exchange both sides</span></button>
                    <SideHead kind="after" title="after" name={sides.oneName} text={sideText(sides.one)} link={href({ view: "summary", set: thisAlone(query) })} />
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
                    const delta = a === undefined || b === undefined ? undefined : b - a;
                    return (
                        <tr key={title}>
                            <th scope="row">{title}</th>
                            <td class="number" title={a === undefined ? undefined : format.count(a)}>{spellKind(kind, a)}</td>
                            <td class="number" title={b === undefined ? undefined : format.count(b)}>{spellKind(kind, b)}</td>
                            <td class="number">{delta === undefined ? "–" : <Delta value={delta} unit={kind} />}</td>
                            <td class="number muted">{delta === undefined || a === undefined || a === 0 || delta === 0 ? "" : `${delta > 0 ? "+" : ""}${format.percent(delta, a)}`}</td>
                        </tr>
                    );
                })}
            </tbody>
        </table>
    );
}

/* With its sign: the colour never says it alone. */
function Delta({ value, unit }: { value: number; unit: Kind }) {
    return <span class={`delta ${value > 0 ? "more" : value < 0 ? "less" : "same"}`} title={format.count(value)}>{value === 0 ? "same" : changeText(value, unit)}</span>;
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
    const rows = useRows("functions", { metric: metric.value }, { main: true, sort: "delta", order: "desc" });
    const unit = metricUnit(metric.value);
    const most = useMemo(() => (rows.asked.data === undefined ? 0 : largestIn(rows.asked.data, "delta")), [rows.asked.data]);
    const columns: (string | ColumnSpec)[] = [
        { name: "delta", heading: "Change", width: "15rem", render: (_, value) => <span class="delta-cell"><DeltaBar value={Number(value ?? 0)} most={most} /><Delta value={Number(value ?? 0)} unit={unit} /></span> },
        { name: "base_total", heading: "Before", width: "6.5rem" }, { name: "total", heading: "After", width: "6.5rem" },
        { name: "function", render: (row) => {
            const of = functionOf(row);
            return <span class="presence"><Presence before={numberCell(row, "base_total")} now={numberCell(row, "total")} />{of === undefined ? null : <FrameText of={of} />}</span>;
        } },
    ];
    return (
        <div class="panel">
            <p class="line"><b>{metricTitle(metric.value)}</b>, by function: itself and all that it called. Click the heading <i>Change</i> to see first what became less.</p>
            <div class="grow">
                <DataTable label="Functions" rows={rows} columns={columns} empty="Both sides are the same: nothing in either of them."
                    {...ofFunctions} onOpen={(row) => {
                        const of = functionOf(row);
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
