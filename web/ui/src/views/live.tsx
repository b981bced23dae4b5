// SPDX-License-Identifier: MIT
// views/live.tsx: a running program: what it holds now, and what grew since a mark. Space sets the mark anew; while the page is
// paused the program and the counting go on. When the program has ended, even by SIGKILL, its last numbers stay.
//
// The mark is a state of the program that passes: it is kept as long as the page is open, not in the address.
import { signal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { useActions } from "../actions";
import { useAnswer } from "../ask";
import { functionOf, hashOf, ofPaths } from "../chosen";
import { bytesText, changeText } from "../components/Cells";
import { IconButton } from "../components/Icon";
import { States } from "../components/States";
import { DataTable } from "../components/Table";
import * as format from "../format";
import { viewChange } from "../links";
import { cell, numberCell, type Row, rowsOf, textCell, useSortedTable, useTableRows } from "../rows";
import { endText, openSource, paused, source } from "../session";
import { useSelected } from "../summaries";
import type { Cell, Column, Ended, Summary, Table } from "../types";
import { flag, go, href, sourceId } from "../url";
import { foundText, openFound, programText, useSources } from "./found";

const PATHS = 20_000;
const marks = signal<Readonly<Record<string, Snapshot>>>({});

export default function Live() {
    const id = `${sourceId.value}${flag("all-processes") ? " and others" : ""}`;
    const isLive = source.value?.live === true;
    const summary = useSelected();
    const paths = useAnswer<Table>("paths", { metric: "leaked", sort: "live_bytes", order: "desc", limit: PATHS }, { main: true });
    const mark = marks.value[id];
    // Of what is on the page when the key comes, which may be newer than what the key was bound with.
    const shown = useRef({ paths: paths.data, summary: summary.data });
    shown.current = { paths: paths.data, summary: summary.data };
    const setMark = () => {
        const now = shown.current;
        if (now.paths !== undefined && now.summary !== undefined) marks.value = { ...marks.peek(), [id]: snapshotOf(now.paths, totalsOf(now.summary)) };
    };
    useEffect(() => {
        // What is there still may be of another program.
        if (mark === undefined && !paths.stale && !summary.stale) setMark();
    }, [mark === undefined, paths.data === undefined || paths.stale, summary.data === undefined || summary.stale]);
    useActions([
        { group: "Live", title: "Mark: count growth from now on", keys: ["Space"], run: setMark },
        { group: "Live", title: "Pause the page, or go on", keys: ["Shift+P"], run: () => (paused.value = !paused.peek()) },
    ]);
    return (
        <div class="panel">
            <States of={summary}>{(data) => <Figures of={data} mark={mark} isLive={isLive} onMark={setMark} />}</States>
            {isLive && <Together />}
            <div class="grow">
                <States of={paths}>{(table) => (mark === undefined ? <div class="state" /> : <Growth now={table} mark={mark} />)}</States>
            </div>
            <Programs />
        </div>
    );
}

const totalsOf = (of: Summary): Omit<Snapshot, "paths" | "isWhole"> => ({
    at_ns: of.duration_ns, bytes: of.totals.live_bytes, blocks: of.totals.live_blocks, allocations: of.totals.allocations,
});

function Figures({ of, mark, isLive, onMark }: { of: Summary; mark: Snapshot | undefined; isLive: boolean; onMark: () => void }) {
    const seconds = mark === undefined ? 0 : (of.duration_ns - mark.at_ns) / 1e9;
    const grew = mark === undefined ? 0 : of.totals.live_bytes - mark.bytes;
    const since = mark === undefined ? 0 : of.totals.allocations - mark.allocations;
    return (
        <>
            <div class="toolbar">
                <button type="button" class="primary" onClick={onMark} disabled={!isLive}>Mark now<kbd>Space</kbd></button>
                {isLive && <IconButton icon={paused.value ? "play" : "pause"} label={paused.value ? "Go on (Shift P)" : "Pause the page; the program goes on (Shift P)"} onClick={() => (paused.value = !paused.value)} />}
                <span class="muted">{!isLive ? endedText(source.value?.end) : paused.value ? "Paused: the program goes on, and is counted." : mark === undefined ? "" : `Marked ${format.duration(mark.at_ns)} after it began, ${format.duration(Math.max(0, of.duration_ns - mark.at_ns))} ago.`}</span>
            </div>
            <ul class="tiles live-tiles">
                <Tile title={isLive ? "Holds now" : "Held at its end"} value={bytesText(of.totals.live_bytes)} more={`in ${format.items(of.totals.live_blocks, "block")}`} />
                <Tile title="Grew since the mark" value={changeText(grew)} more={mark === undefined ? "" : `${of.totals.live_blocks - mark.blocks >= 0 ? "+" : ""}${format.count(of.totals.live_blocks - mark.blocks)} blocks`} />
                <Tile title="Growth a second" value={seconds > 0 ? changeText(Math.round(grew / seconds)) : "–"} more="on average since the mark" />
                <Tile title="Allocations a second" value={seconds > 0 ? format.roughly(since / seconds) : "–"} more={`${format.count(since)} since the mark`} />
                <Tile title="Resident" value={of.resident === null ? "–" : bytesText(of.resident.end_bytes)} more={of.resident === null ? "" : `at most ${bytesText(of.resident.peak_bytes)}`} />
            </ul>
        </>
    );
}
function endedText(ended: Ended | undefined): string {
    const what = { killed: "A signal ended the program", detached: "The program was detached from", execed: "The process became another program", running: "", copied: "", ended: "" }[ended ?? "ended"];
    return `${what || "The program has ended"}: these are its last numbers.`;
}
function Tile({ title, value, more }: { title: string; value: string; more: string }) {
    return <li class="tile"><span class="tile-title">{title}</span><span class="tile-value">{value}</span><span class="tile-more">{more}</span></li>;
}

/* ---- What grew since the mark ---- */

interface Held {
    bytes: number;
    blocks: number;
    allocations: number;
}
interface Snapshot extends Held {
    at_ns: number;
    paths: ReadonlyMap<string, Held>;
    isWhole: boolean; // of all paths: one that is missing held nothing
}
const heldOf = (row: Row): Held => ({ bytes: numberCell(row, "live_bytes"), blocks: numberCell(row, "live_blocks"), allocations: numberCell(row, "allocations") });

export function snapshotOf(table: Table, totals: Omit<Snapshot, "paths" | "isWhole">): Snapshot {
    return { ...totals, paths: new Map(rowsOf(table).map((row) => [hashOf(row), heldOf(row)])), isWhole: table.rows.length >= table.total };
}

const COLUMNS: readonly Column[] = [
    { name: "grew_bytes", heading: "grew by", kind: "signed", about: "Bytes held now, less those held at the mark" },
    { name: "grew_blocks", heading: "blocks", kind: "count", about: "Blocks held now, less those held at the mark" },
    { name: "live_bytes", heading: "holds", kind: "bytes", about: "Bytes held now" },
    { name: "live_blocks", heading: "in blocks", kind: "count" },
    { name: "allocations", heading: "allocations since", kind: "count" },
    { name: "hash", heading: "hash", kind: "hash" },
    { name: "path", heading: "call path", kind: "path" },
];

/* Paths that grew or shrank, or allocated; those whose part at the mark is not known are left out. */
export function growthOf(now: Table, mark: Snapshot): Table {
    const rows: Cell[][] = [];
    for (const row of rowsOf(now)) {
        const before = mark.paths.get(hashOf(row)) ?? (mark.isWhole ? { bytes: 0, blocks: 0, allocations: 0 } : undefined);
        if (before === undefined) continue;
        const held = heldOf(row);
        const grew = held.bytes - before.bytes, since = held.allocations - before.allocations;
        if (grew === 0 && since === 0) continue;
        rows.push([grew, held.blocks - before.blocks, held.bytes, held.blocks, since, cell(row, "hash"), cell(row, "path")]);
    }
    return { ...now, columns: [...COLUMNS], rows, total: rows.length };
}

function Growth({ now, mark }: { now: Table; mark: Snapshot }) {
    const table = useMemo(() => growthOf(now, mark), [now, mark]);
    const rows = useSortedTable(table, { sort: "grew_bytes", order: "desc" });
    return (
        <DataTable label="Call paths that grew" rows={rows} share={{ column: "grew_bytes" }} empty="No call path allocated or freed anything since the mark."
            columns={[{ name: "grew_bytes", width: "7rem" }, { name: "grew_blocks", width: "6rem" }, { name: "live_bytes", width: "6.5rem" }, { name: "live_blocks", width: "6.5rem" }, { name: "allocations", width: "9rem" }, "path"]}
            {...ofPaths} onOpen={(row) => go(viewChange("flame", { path: hashOf(row), metric: "leaked" }))} />
    );
}

/* ---- Other programs ---- */

const FUNCTIONS = 100;
const MOST = 1000;
const SHOWN = 5;
const ALL = { process: null, "all-processes": true };

/* A program that has started others: what each of them holds now, the sum, and the functions that hold most of it. Nothing
 * is shown where it runs alone. */
function Together() {
    const running = useAnswer<Table>("running", { limit: MOST }, { plain: true });
    return running.data !== undefined && running.data.total > 1 ? <Processes running={running.data} /> : null;
}

function Processes({ running }: { running: Table }) {
    const sum = useAnswer<Summary>("", ALL, { plain: true });
    const functions = useAnswer<Table>("functions", { ...ALL, metric: "leaked", sort: "self", order: "desc", limit: FUNCTIONS }, { plain: true });
    const processes = useTableRows(running, { sort: "live_bytes" });
    const holders = useTableRows(functions.data, { sort: "self" }, functions);
    const isShown = flag("all-processes");
    const name = (row: Row) => `${textCell(row, "name")} (${textCell(row, "pid")})`;
    return (
        <section class="card together" aria-label="All processes that run now">
            <div class="card-head">
                <h2>{format.items(running.total, "process")} run and hold {sum.data === undefined ? "…" : <b title={`${format.count(sum.data.totals.live_bytes)} bytes`}>{bytesText(sum.data.totals.live_bytes)}</b>} together</h2>
                <span class="space" />
                {sum.error !== undefined && <span class="failed" role="alert">{sum.error.message}</span>}
                <a class="button small" href={href({ set: { ...ALL, "all-processes": isShown ? null : true } })}>{isShown ? "This process alone" : "All views of them together"}</a>
            </div>
            <div class="together-tables">
                <DataTable label="Processes that run" rows={processes} share={{ column: "live_bytes" }} fit={SHOWN}
                    columns={[{ name: "name", heading: "Process", render: (row) => <b>{name(row)}</b> }, { name: "live_bytes", heading: "Holds now" }]}
                    onOpen={(row) => void openProcess(numberCell(row, "pid")).catch(() => undefined)} />
                <DataTable label="Functions that hold most of all" rows={holders} share={{ column: "self" }} fit={SHOWN}
                    columns={["function", { name: "self", heading: "Holds now" }]}
                    onOpen={(row) => go(viewChange("sandwich", { ...ALL, metric: "leaked", focus: functionOf(row)?.function ?? null }))} />
            </div>
        </section>
    );
}

async function openProcess(pid: number): Promise<void> {
    const opened = await openSource({ pid });
    go({ only: true, set: { r: String(opened.id) } });
}

/* Others that run with MemTrace, or were killed and left their numbers. */
function Programs() {
    const { data } = useSources();
    const opened = data?.opened.filter((one) => one.kind === "live" || one.live) ?? [];
    const others = data?.found.filter((one) => one.pid !== undefined && one.source === undefined) ?? [];
    if (opened.length + others.length < 2 && others.length === 0) return null;
    return (
        <nav class="toolbar programs" aria-label="Programs that run with MemTrace">
            <span class="muted">Programs:</span>
            {opened.map((one) => <a key={one.id} class="button small" href={href({ only: true, set: { r: String(one.id) } })} aria-current={String(one.id) === sourceId.value ? "true" : undefined}>{one.name}{one.live ? "" : `, ${endText(one.end)}`}</a>)}
            {others.map((one) => <button key={one.path} type="button" class="small" onClick={() => void openFound(one).catch(() => undefined)}>{foundText(one)}, {programText(one)}: open</button>)}
        </nav>
    );
}
