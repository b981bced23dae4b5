// SPDX-License-Identifier: MIT
// views/heap.tsx: where the blocks lie: a map of addresses at one moment, the heap over time to choose that moment from,
// pages by how full they are, holes, and who keeps nearly empty pages.
//
// The moment is the filter `at`: all views are then about it. Without one this view is about when most lay unused. While
// it is dragged, `moment` stands in the address: the map then comes from the coarse history (snapped), and is exact when
// the slider is let go. start, end: a part of the addresses; cell: the cell that is chosen; part: the table below.
import { useMemo, useRef } from "preact/hooks";
import { useActions } from "../actions";
import { useAnswer } from "../ask";
import { hashOf, ofPaths } from "../chosen";
import { Bars } from "../components/Bars";
import { bytesText } from "../components/Cells";
import { Chart } from "../components/Chart";
import { Choice } from "../components/Choice";
import { HeapMap } from "../components/HeapMap";
import { Split } from "../components/Split";
import { States } from "../components/States";
import { DataTable } from "../components/Table";
import { addressRange, cellRange, type HeapModel, hex, placeOf, refined, zoomed } from "../draw/heapmap";
import * as format from "../format";
import { viewChange } from "../links";
import { largestIn, numberCell, type Row, rowsOf, textCell, useRows } from "../rows";
import { useMarks, useWhole } from "../summaries";
import type { Heap as HeapAnswer, HeapHistory, Table } from "../types";
import { go, href, param, place } from "../url";
import { markText, NO_WINDOW, parseTime } from "../window";

const CELLS = 6000; // more than fit a screen at once
type Opens = { at?: string };

export default function Heap() {
    const moment = param("moment");
    const shape = { cells: CELLS, start: param("start"), end: param("end") };
    const isGiven = moment !== null || Object.keys(NO_WINDOW).some((name) => param(name) !== null);
    const history = useAnswer<HeapHistory>(isGiven ? null : "heap/history", NO_WINDOW);
    const most = history.data?.most.time_ns;
    // Where no moment is given it is that at which most lay unused: at the end the heap is emptiest.
    const opens: Opens = isGiven || most === undefined || most === 0 ? {} : { at: format.time(most) };
    const ready = isGiven || history.data !== undefined || history.state === "failed";
    const exact = useAnswer<HeapAnswer>(moment === null && ready ? "heap" : null, { ...shape, ...opens }, { main: true });
    const coarse = useAnswer<HeapAnswer>(moment === null ? null : "heap", { ...shape, moment, ...NO_WINDOW }, { main: moment !== null });
    const shown = moment === null ? exact : coarse;
    return (
        <div class="panel heap-view">
            <Scrubber at={shown.data?.at_ns ?? exact.data?.at_ns} wanted={!isGiven || moment !== null || exact.data !== undefined || exact.state !== "loading"} />
            <div class="grow">
                <Split name="heap" direction="column" size={172} end least={90} label="Resize the table">
                    <div class="panel">
                        <States of={shown.data === undefined && exact.data !== undefined ? exact : shown} empty={shown.data?.regions.length === 0 ? "Nothing was held at this moment." : undefined}>
                            {(data) => <HeapPicture data={data} opens={opens} />}
                        </States>
                    </div>
                    <Parts wanted={exact.data !== undefined} opens={opens} />
                </Split>
            </div>
        </div>
    );
}

/* ---- Time ---- */

/* wanted: the map goes first, as its pass and this one would slow each other down. Once it was there it stays. */
function Scrubber({ at, wanted }: { at: number | undefined; wanted: boolean }) {
    const begun = useRef(false);
    begun.current ||= wanted;
    const history = useAnswer<HeapHistory>(begun.current ? "heap/history" : null, NO_WINDOW);
    const whole = useWhole();
    const marks = useMarks(whole.data?.has["marks"]);
    return (
        <div class="heap-history">
            <States of={history} empty={!begun.current ? "It is read when the map is there." : history.data?.time_ns.length === 0 ? "Nothing was allocated." : undefined} ready={!begun.current}>
                {(data) => <History data={data} at={at} marks={marks} maximum={whole.data?.totals.peak_ns} duration={whole.data?.duration_ns ?? 0} />}
            </States>
        </div>
    );
}

interface HistoryProps {
    data: HeapHistory;
    at: number | undefined;
    marks: readonly { name: string; time: number }[];
    maximum: number | undefined;
    duration: number;
}
function History({ data, at, marks, maximum, duration }: HistoryProps) {
    const end = data.time_ns.at(-1) ?? 1;
    const text = param("moment") ?? param("at");
    const wanted = text === null ? undefined : parseTime(text, { duration, maximum, marks });
    const now = wanted ?? at ?? end;
    const before = useRef<string | null>(null);
    const scrub = (ns: number) => {
        if (param("moment") === null) before.current = param("at");
        go({ set: { moment: format.time(ns) } }, "replace");
    };
    /* One entry in the history for a whole drag. */
    const settle = (ns: number, name?: string) => {
        go({ set: { moment: null } }, "replace");
        go({ set: { ...NO_WINDOW, at: name ?? markText(marks, ns) ?? format.time(ns), moment: null } });
    };
    const step = (by: number) => {
        const index = data.time_ns.findLastIndex((time) => time <= now);
        const to = data.time_ns[Math.max(0, Math.min(data.time_ns.length - 1, index + by))];
        if (to !== undefined) settle(to);
    };
    useActions([
        { group: "Heap", title: "A little earlier", keys: [","], run: () => step(-Math.max(1, Math.round(data.time_ns.length / 100))) },
        { group: "Heap", title: "A little later", keys: ["."], run: () => step(Math.max(1, Math.round(data.time_ns.length / 100))) },
        { group: "Heap", title: "When the most lay unused", run: () => settle(data.most.time_ns) },
        { group: "Heap", title: "At the maximum", run: () => settle(maximum ?? 0, "peak") },
        { group: "Heap", title: "At the end", run: () => go({ set: { ...NO_WINDOW, at: "end", moment: null } }) },
    ]);
    const series = [
        { label: "pages with blocks", values: data.spread, kind: "bytes" as const, colour: "--series-2" },
        { label: "held", values: data.live, kind: "bytes" as const, colour: "--series-1", fill: true },
        ...(data.resident.some((value) => value !== null) ? [{ label: "resident", values: data.resident, kind: "bytes" as const, colour: "--series-6", dash: true }] : []),
    ];
    return (
        <div class="chart-box">
            <Chart label="The heap over time" height={92} time={data.time_ns} series={series} mark={now} onPick={(ns) => settle(ns)} />
            <div class="scrub">
                <input type="range" min={data.time_ns[0] ?? 0} max={end} step={Math.max(1, Math.round(end / 1000))} value={now} aria-label="Moment that the map shows"
                    aria-valuetext={format.duration(now)}
                    onInput={(event) => scrub(Number(event.currentTarget.value))} onChange={(event) => settle(Number(event.currentTarget.value))} />
            </div>
            <div class="toolbar scrub-line">
                <span>At <b class="number">{format.duration(now)}</b></span>
                <button type="button" class="small" onClick={() => settle(maximum ?? 0, "peak")}>Maximum</button>
                <button type="button" class="small" onClick={() => settle(data.most.time_ns)} title={`${bytesText(data.most.unused_bytes)} lay unused on pages with blocks`}>Most unused</button>
                <button type="button" class="small" onClick={() => go({ set: { ...NO_WINDOW, at: "end", moment: null } })}>End</button>
                <span class="muted hint">Drag the slider, or <kbd>,</kbd> <kbd>.</kbd></span>
            </div>
        </div>
    );
}

/* ---- The map ---- */

function modelOf(data: Pick<HeapAnswer, "regions" | "cell_bytes">): HeapModel {
    return {
        step: data.cell_bytes,
        regions: data.regions.map((region) => ({
            start: BigInt(region.start), end: BigInt(region.end), name: region.name ?? "", cells: region.cells, live: region.live_bytes, blocks: region.blocks,
        })),
    };
}

function HeapPicture({ data, opens }: { data: HeapAnswer; opens: Opens }) {
    const model = useMemo(() => (data.live_blocks === undefined ? refined(modelOf(data), CELLS) : modelOf(data)), [data]);
    const text = param("cell");
    const chosen = useMemo(() => addressOf(text), [text]);
    const isPart = param("start") !== null || param("end") !== null;
    const open = (range: string) => go(viewChange("blocks", { address: range, ...(place.peek().query.has("at") ? {} : { at: opens.at ?? null }) }));
    const zoom = (address: bigint, factor: 4 | 0.25) => {
        const part = zoomed(model, address, factor);
        go({ set: { start: part === null ? null : hex(part.start), end: part === null ? null : hex(part.end), cell: hex(address) } });
    };
    const at = chosen === null ? null : placeOf(model, chosen);
    const region = at === null ? undefined : model.regions[at.strip];
    const range = at === null || region === undefined ? null : cellRange(model, region, at.cell);
    return (
        <>
            <HeapLine data={data} />
            <div class="grow card heap-card">
                <HeapMap model={model} chosen={chosen} onChoose={(address) => go({ set: { cell: address === null ? null : hex(address) } }, "replace")} onOpen={open} onZoom={zoom}>
                    {range === null ? <span class="muted hint">click a square, or double-click for its blocks</span> : (
                        <span class="heap-actions">
                            <a class="button small" href={href(viewChange("blocks", { address: addressRange(range), ...opens }))} title={`Blocks at ${hex(range.start)} to ${hex(range.end)}`}>Blocks in {hex(range.start)}</a>
                            {model.step > 4096 && <button type="button" class="small" title="Fewer addresses, smaller squares (+)" onClick={() => zoom(range.start, 4)}>Closer</button>}
                        </span>
                    )}
                    {isPart && (
                        <span class="heap-actions">
                            <button type="button" class="small" title="More addresses (-)" onClick={() => zoom(range?.start ?? model.regions[0]?.start ?? 0n, 0.25)}>Wider</button>
                            <button type="button" class="small" onClick={() => go({ set: { start: null, end: null } })}>Whole heap</button>
                        </span>
                    )}
                </HeapMap>
            </div>
        </>
    );
}
function addressOf(text: string | null): bigint | null {
    return text !== null && /^0x[0-9a-f]{1,16}$/i.test(text) ? BigInt(text) : null;
}

function HeapLine({ data }: { data: HeapAnswer }) {
    const pages = data.pages * 4096;
    return (
        <p class="line">
            <b class="number">{bytesText(data.live_bytes)}</b> held{data.live_blocks === undefined ? "" : ` in ${format.items(data.live_blocks, "block")}`}, on <b class="number">{format.count(data.pages)}</b> pages ({bytesText(pages)}, {format.percent(data.live_bytes, pages)} in use)
            {data.nearly_empty_pages !== undefined && data.nearly_empty_pages > 0 && <>; <b class="number">{format.count(data.nearly_empty_pages)}</b> of them nearly empty</>}
            {data.holes !== undefined ? <>; <b class="number">{bytesText(data.holes_bytes)}</b> in {format.items(data.holes, "hole")}</> : <>; <b class="number">{bytesText(data.holes_bytes)}</b> unused on them</>}
            {data.slack_bytes !== undefined && data.slack_bytes > 0 && <>; <b class="number">{bytesText(data.slack_bytes)}</b> given beyond what was asked for</>}.
        </p>
    );
}

/* ---- Tables ---- */

type Part = "pins" | "pages" | "holes" | "slack" | "regions";
const PARTS: readonly (readonly [Part, string, string])[] = [
    ["pins", "Who pins pages", "Call paths whose blocks keep nearly empty pages"],
    ["pages", "Pages by fullness", "How many pages are how full"],
    ["holes", "Holes", "Free stretches between blocks"],
    ["slack", "Slack", "What the allocator gave beyond what was asked for, by call path"],
    ["regions", "Regions", "Where the blocks lie"],
];
const SORTS: Record<Part, string | undefined> = { pins: "pages", pages: undefined, holes: "bytes", slack: "slack_bytes", regions: "live_bytes" };
const EMPTY: Record<Part, string> = {
    pins: "No page is nearly empty.", pages: "There are no pages with blocks.", holes: "There are no holes of a page and more.", slack: "Nothing was given beyond what was asked for.", regions: "Nothing is held.",
};

/* The tables come from the same pass as the map: they are asked when that has been. */
function Parts({ wanted, opens }: { wanted: boolean; opens: Opens }) {
    const part = (PARTS.find(([id]) => id === param("part"))?.[0] ?? "pins") as Part;
    return (
        <div class="panel">
            <div class="toolbar">
                <Choice label="Table" value={part} options={PARTS} onChange={(now) => go({ set: { part: now === "pins" ? null : now, sort: null, order: null } }, "replace")} />
                {param("moment") !== null && <span class="muted">Of the moment before: let the slider go.</span>}
            </div>
            <div class="grow">{!wanted ? <div class="state" /> : part === "pages" ? <Pages opens={opens} /> : <PartTable key={part} part={part} opens={opens} />}</div>
        </div>
    );
}

function PartTable({ part, opens }: { part: Part; opens: Opens }) {
    const share = SORTS[part];
    const rows = useRows(`heap/${part}`, { ...opens }, share === undefined ? {} : { sort: share, order: "desc" });
    const isPlace = part === "holes" || part === "regions";
    const show = (row: Row) => {
        const [start, end] = [textCell(row, "start"), textCell(row, "end")].map((text) => hex(BigInt(text)));
        if (part === "regions") go({ set: { start, end, cell: null } });
        else go({ set: { cell: start } }, "replace");
    };
    return (
        <DataTable label={PARTS.find(([id]) => id === part)?.[1] ?? ""} rows={rows} {...(share === undefined ? {} : { share: { column: share } })} empty={EMPTY[part]}
            columns={rows.columns.filter((one) => one.name !== "hash").map((one) => (one.name === "name" ? { name: "name", render: (_: Row, value: unknown) => (value === null ? "anonymous" : String(value)) } : one.name))}
            selected={ofPaths.selected} onSelect={isPlace ? show : ofPaths.onSelect} onOpen={isPlace ? show : (row) => go(viewChange("blocks", { path: hashOf(row), ...opens }))} />
    );
}

/* Tenths of fullness, as bars. */
function Pages({ opens }: { opens: Opens }) {
    const asked = useAnswer<Table>("heap/pages", { limit: 100, ...opens });
    return (
        <States of={asked} empty={asked.data?.rows.length === 0 ? EMPTY.pages : undefined}>
            {(table) => (
                <div class="card size-rows" tabIndex={0} role="region" aria-label="Pages by fullness">
                    <Bars head={["In use", "Bar", "Pages", "Bytes", "Share"]} rows={rowsOf(table).map((row) => {
                        const from = numberCell(row, "from_percent"), pages = numberCell(row, "pages");
                        return {
                            key: from, name: `${from} to ${numberCell(row, "to_percent")}% in use`, share: pages / Math.max(1, largestIn(table, "pages")),
                            cells: (
                                <>
                                    <td class="number">{format.items(pages, "page")}</td>
                                    <td class="number muted">{bytesText(pages * 4096)}</td>
                                    <td class="number muted">{format.percent(numberCell(row, "percent"), 100)}</td>
                                </>
                            ),
                        };
                    })} />
                </div>
            )}
        </States>
    );
}
