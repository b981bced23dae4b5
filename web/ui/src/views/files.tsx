// SPDX-License-Identifier: MIT
// views/files.tsx: what is open, and what else can be: recordings and profiles of the folders that `memtrace serve` was
// started with, running programs, and what killed ones left.
import { useState } from "preact/hooks";
import { bytesText } from "../components/Cells";
import { ProgressBar } from "../components/States";
import * as format from "../format";
import { endText, sources } from "../session";
import type { Found, Source } from "../types";
import { href, isFile, sourceId } from "../url";
import { foundText, openFound, programText, useSources } from "./found";

const KINDS: Record<string, string> = { profile: "profile", recording: "recording", run: "run of several processes", live: "running program" };

export default function Files() {
    const { data, error, again } = useSources();
    const opened = sources.value;
    const found = (data?.found ?? []).filter((one) => one.source === undefined);
    const running = found.filter((one) => one.kind === "live" || one.running === true || one.pid !== undefined);
    const files = found.filter((one) => !running.includes(one)).sort((a, b) => b.modified_ns - a.modified_ns);
    if (isFile) return <p class="state empty">This page is a file with one recording in it. To open others: memtrace serve</p>;
    return (
        <div class="choose files-view">
            <section class="card">
                <div class="card-head"><h2>Open</h2></div>
                {opened.length === 0 ? <p class="card-body muted">Nothing is open: choose below.</p> : (
                    <ul class="choose-list">{opened.map((one) => <Opened key={one.id} of={one} />)}</ul>
                )}
            </section>
            {error !== undefined && <p class="state failed" role="alert">{error}</p>}
            <section class="card">
                <div class="card-head"><h2>Running programs, and those that left no file</h2><span class="space" /><button type="button" class="small" onClick={again}>Look again</button></div>
                {running.length === 0 ? <p class="card-body muted">No other program runs with MemTrace. Start one: <span class="code">memtrace run -- PROGRAM</span></p> :
                    <ul class="choose-list">{running.map((one) => <FoundRow key={one.path} of={one} />)}</ul>}
            </section>
            <section class="card">
                <div class="card-head"><h2>Files</h2></div>
                {files.length === 0 ? <p class="card-body muted">There are no other recordings or profiles in the folders that memtrace serve was started with. Name more: <span class="code">memtrace serve FOLDER</span></p> :
                    <ul class="choose-list">{files.map((one) => <FoundRow key={one.path} of={one} />)}</ul>}
            </section>
        </div>
    );
}

function Opened({ of }: { of: Source }) {
    const id = String(of.id);
    const about = of.state === "opening" ? `being opened: ${of.what ?? ""}` : of.state === "failed" ? (of.error ?? "could not be opened") : `${KINDS[of.kind] ?? of.kind}${of.kind === "live" && !of.live ? `, ${endText(of.end)}` : ""}`;
    return (
        <li class="file-row">
            <a href={href({ view: "summary", only: true, set: { r: id } })} aria-current={id === sourceId.value ? "true" : undefined}>
                <b>{of.name}</b>{of.path !== of.name && <span class="muted file-path" title={of.path}>{of.path}</span>}
            </a>
            <span class={`file-about ${of.state === "failed" ? "failed" : "muted"}`}>{about}</span>
            {of.state === "opening" && <ProgressBar of={{ done: of.done ?? 0, total: of.total ?? 0 }} />}
            {of.state === "open" && id !== sourceId.value && <a class="button small" href={href({ view: "compare", set: { base: id } })}>Compare with it</a>}
        </li>
    );
}

function FoundRow({ of }: { of: Found }) {
    const [state, setState] = useState<"" | "opening" | string>("");
    const open = () => {
        setState("opening");
        openFound(of).catch((error: Error) => setState(error.message));
    };
    const when = new Date(Number(of.modified_ns) / 1e6);
    const what = of.pid !== undefined ? programText(of) : (KINDS[of.kind] ?? of.kind);
    return (
        <li class="file-row">
            <button type="button" class="plain file-open" onClick={open} disabled={state === "opening"}>
                <b>{foundText(of)}</b>{of.path !== of.name && <span class="muted file-path" title={of.path}>{of.path}</span>}
            </button>
            <span class="file-about muted">{state === "opening" ? "opening …" : what}</span>
            <span class="number file-size">{bytesText(of.bytes)}</span>
            <span class="muted number file-when" title={when.toLocaleString()}>{agoText(Date.now() - when.getTime())}</span>
            {state !== "" && state !== "opening" && <span class="failed" role="alert">{state}</span>}
        </li>
    );
}
/* "3 min 5 s ago" is more exact than anyone wants. */
export function agoText(ms: number): string {
    if (ms < 60_000) return "just now";
    if (ms < 3_600_000) return `${format.items(Math.floor(ms / 60_000), "minute")} ago`;
    if (ms < 86_400_000) return `${format.items(Math.floor(ms / 3_600_000), "hour")} ago`;
    return `${format.items(Math.floor(ms / 86_400_000), "day")} ago`;
}
