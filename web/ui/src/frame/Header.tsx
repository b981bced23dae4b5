// SPDX-License-Identifier: MIT
// Header.tsx: which file, what it is compared with, which process; what is on its way; palette, settings, help.
import { cancelAll, running, useAnswer } from "../ask";
import { Popover } from "../components/Dialog";
import { Icon, IconButton } from "../components/Icon";
import { ProgressBar } from "../components/States";
import { useDelayed } from "../components/hooks";
import { shortModule } from "../components/Cells";
import * as format from "../format";
import { endText, liveStates, paused, source, sources, successorOf } from "../session";
import { fullNames, shortcuts, theme, units } from "../settings";
import { rowsOf, textCell } from "../rows";
import type { Source, Summary, Table } from "../types";
import { baseGone, flag, go, href, isFile, param, sourceId } from "../url";
import { helpOpen } from "./Help";
import { paletteOpen } from "./Palette";
import type { Signal } from "@preact/signals";

export function Header({ whole }: { whole: Summary | undefined }) {
    return (
        <header class="header">
            <a class="brand" href={href({ view: "summary", only: true })} aria-label="MemTrace: summary of the whole file">
                <span class="brand-sign" aria-hidden="true"><i /><i /><i /></span>MemTrace
            </a>
            <SourceChooser whole={whole} />
            <CompareChooser />
            {whole?.has["processes"] && <ProcessChooser whole={whole} />}
            <LiveSign />
            <span class="space" />
            <Running />
            <button type="button" class="palette-button" onClick={() => (paletteOpen.value = true)}>
                <Icon name="search" />Search<kbd>Ctrl K</kbd>
            </button>
            <Settings />
            <IconButton icon="help" label="Help and keys (?)" onClick={() => (helpOpen.value = true)} />
        </header>
    );
}

function SourceChooser({ whole }: { whole: Summary | undefined }) {
    const many = sources.value.length > 1;
    const name = source.value?.name ?? "No file";
    return (
        <span class="source">
            {many ? (
                <select aria-label="File" value={sourceId.value} onChange={(event) => go({ only: true, set: { r: event.currentTarget.value } })}>
                    {sources.value.map((one) => <option key={one.id} value={one.id}>{one.name}</option>)}
                </select>
            ) : <strong class="source-name" title={source.value?.path}>{whole?.program === undefined ? name : shortModule(whole.program)}</strong>}
            {whole !== undefined && <span class="muted source-about" title={whole.command_line}>{aboutText(whole)}</span>}
            {!isFile && <a class="button small" href={href({ view: "files" })}>Open…</a>}
        </span>
    );
}

function aboutText(whole: Summary): string {
    const kind = { profile: "profile", recording: "recording", run: "run", live: "running program" }[whole.kind];
    const process = whole.pid > 0 ? `, process ${whole.pid}` : "";
    return `${kind}${process}, ${format.duration(whole.duration_ns)}`;
}

function CompareChooser() {
    const base = param("base");
    const others = sources.value.filter((one) => String(one.id) !== sourceId.value);
    const window = base === sourceId.value;
    if (others.length === 0 && base === null) return null;
    const choose = (value: string) => go({
        set: { base: value || null, "base-from": null, "base-to": null, ...(value === "" ? baseGone() : {}) },
    });
    return (
        <label class="compare"><span class="muted">compared with</span>
            <select value={base ?? ""} onChange={(event) => choose(event.currentTarget.value)}>
                <option value="">nothing</option>
                {window && <option value={sourceId.value}>another window</option>}
                {others.map((one) => <option key={one.id} value={one.id}>{one.name}</option>)}
            </select>
        </label>
    );
}

function ProcessChooser({ whole }: { whole: Summary }) {
    const asked = useAnswer<Table>(whole.processes === undefined ? "processes" : null, { limit: 500 }, { plain: true });
    const table = whole.processes ?? asked.data;
    if (table === undefined || table.rows.length < 2) return null;
    // A process that replaced itself by exec stands there once, as what it was at last.
    const programs = new Map<string, string>();
    for (const row of rowsOf(table)) {
        const pid = textCell(row, "pid");
        programs.delete(pid);
        programs.set(pid, shortModule(textCell(row, "name")));
    }
    // A process may be asked for by its name, too: whose figures are shown is known.
    const value = flag("all-processes") ? "all" : param("process") === null ? "" : String(whole.pid);
    const choose = (now: string) => go({ set: { process: now === "all" || now === "" ? null : now, "all-processes": now === "all" } });
    return (
        <label class="compare"><span class="muted">process</span>
            <select value={value} onChange={(event) => choose(event.currentTarget.value)}>
                <option value="">the one that held most</option>
                <option value="all">all together</option>
                {[...programs].map(([pid, name]) => <option key={pid} value={pid}>{pid} {name}</option>)}
            </select>
        </label>
    );
}

/* How the program ended, and what goes on instead of it. */
function EndSign({ of }: { of: Source }) {
    const next = successorOf(of);
    return (
        <span class="live-sign ended">
            {endText(of.end)}
            {next !== undefined && <a class="button small" href={href({ ...(next.kind === "run" ? { view: "summary" } : {}), only: true, set: { r: String(next.id) } })}>{next.kind === "run" ? `The whole run: ${next.name}` : `Now ${next.name}`}</a>}
        </span>
    );
}

function LiveSign() {
    const now = source.value;
    if (now === undefined) return null;
    const state = liveStates.value[String(now.id)];
    if (!now.live) return state === undefined && now.kind !== "live" ? null : <EndSign of={now} />;
    return (
        <span class="live-sign">
            <span class={`live-dot${paused.value ? " paused" : ""}`} aria-hidden="true" />
            {paused.value ? "paused" : "live"}
            {state?.live_bytes !== undefined && <span class="number muted">{format.bytes(state.live_bytes)}</span>}
            <IconButton small icon={paused.value ? "play" : "pause"} label={paused.value ? "Go on" : "Pause the page; the program goes on"}
                onClick={() => (paused.value = !paused.value)} />
        </span>
    );
}

function Running() {
    const flights = running.value;
    if (flights.length === 0) return <span role="status" class="hidden" />;
    return <RunningNow key={flights[0]?.since} count={flights.length} progress={flights.find((one) => one.progress !== undefined)?.progress} />;
}
function RunningNow({ count, progress }: { count: number; progress: { done: number; total: number } | undefined }) {
    const late = useDelayed(250);
    return (
        <span role="status" class={late ? "running" : "hidden"}>
            {late && (
                <>
                    <span class="muted">{format.items(count, "question")}</span>
                    <ProgressBar of={progress} label="Answers on their way" />
                    <button type="button" class="small" onClick={cancelAll}>Cancel</button>
                </>
            )}
        </span>
    );
}

function Choice<T extends string>({ label, of, values }: { label: string; of: Signal<T>; values: readonly (readonly [T, string])[] }) {
    return (
        <div class="choice">
            <span id={`choice-${label}`}>{label}</span>
            <span class="segments" role="radiogroup" aria-labelledby={`choice-${label}`}>
                {values.map(([value, title]) => (
                    <button key={value} type="button" role="radio" aria-checked={of.value === value} onClick={() => (of.value = value)}>{title}</button>
                ))}
            </span>
        </div>
    );
}

function Settings() {
    return (
        <Popover label="Settings" buttonClass="icon plain" class="settings" button={<Icon name="settings" />}>
            {() => (
                <>
                    <Choice label="Colours" of={theme} values={[["auto", "As the system"], ["light", "Light"], ["dark", "Dark"]]} />
                    <Choice label="Sizes" of={units} values={[["short", "12.3 MiB"], ["bytes", "12,897,485"]]} />
                    <Choice label="C++ names" of={fullNames} values={[["no", "Short"], ["yes", "In full"]]} />
                    <Choice label="Keys of one letter" of={shortcuts} values={[["on", "On"], ["off", "Off"]]} />
                    <p class="muted">Kept in this browser, not in the address.</p>
                </>
            )}
        </Popover>
    );
}
