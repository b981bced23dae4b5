// SPDX-License-Identifier: MIT
// views/live.tsx: a running program: what it holds now, and what grew since a mark. Space sets the mark anew; while the page is
// paused the program and the counting go on. When the program has ended, even by SIGKILL, its last numbers stay.
//
// The mark is a state of the program that passes: it is kept as long as the page is open, not in the address.
import { signal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { useActions } from "../actions";
import { useAnswer } from "../ask";
import { choose, isChosen } from "../chosen";
import { bytesText, changeText } from "../components/Cells";
import { IconButton } from "../components/Icon";
import { States } from "../components/States";
import { DataTable } from "../components/Table";
import * as format from "../format";
import { viewChange } from "../links";
import { cell, pathFrames, type Row } from "../rows";
import { endText, paused, source } from "../session";
import { useSelected } from "../summaries";
import type { Ended, Summary, Table } from "../types";
import { flag, go, href, sourceId } from "../url";
import { foundText, openFound, programText, useSources } from "./found";
import { growthOf, type Snapshot, snapshotOf } from "./growth";
import type { View } from "./index";
import { useSortedTable } from "./sorted";
import { Together } from "./together";

const PATHS = 20_000;
const marks = signal<Readonly<Record<string, Snapshot>>>({});

function Live() {
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

function Growth({ now, mark }: { now: Table; mark: Snapshot }) {
    const table = useMemo(() => growthOf(now, mark), [now, mark]);
    const rows = useSortedTable(table, { sort: "grew_bytes", order: "desc" });
    const hash = (row: Row) => String(cell(row, "hash") ?? "");
    return (
        <DataTable label="Call paths that grew" rows={rows} share={{ column: "grew_bytes" }} empty="No call path allocated or freed anything since the mark."
            columns={[{ name: "grew_bytes", width: "7rem" }, { name: "grew_blocks", width: "6rem" }, { name: "live_bytes", width: "6.5rem" }, { name: "live_blocks", width: "6.5rem" }, { name: "allocations", width: "9rem" }, "path"]}
            selected={(row) => isChosen("path", hash(row))} onSelect={(row) => choose({ kind: "path", id: hash(row), frame: pathFrames(row, cell(row, "path"))[0] })}
            onOpen={(row) => go(viewChange("flame", { path: hash(row), metric: "leaked" }))} />
    );
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

export const view: View = { Component: Live };
