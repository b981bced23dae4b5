// SPDX-License-Identifier: MIT
// summary.tsx: the first screen: what the program held, in words and figures, what holds it, and what looks wrong.
import type { ComponentChildren } from "preact";
import { useAnswer, type Asked } from "../ask";
import { bytesText, PathText, shortFunction, shortModule } from "../components/Cells";
import { Icon } from "../components/Icon";
import { States } from "../components/States";
import * as format from "../format";
import { pathChange, viewChange } from "../links";
import { cell, numberCell, pathFrames, type Row, rowsOf, textCell } from "../rows";
import { endText } from "../session";
import { isLeft, isNarrowed, isWindowed, metricTitle, useSuppressed } from "../summaries";
import type { Finding, Frame, Summary, Table } from "../types";
import { changeTo, filterQuery, flag, href } from "../url";

const PATHS = 8;

export default function SummaryView() {
    const summary = useAnswer<Summary>("", {}, { main: true });
    const paths = useAnswer<Table>("paths", { metric: "maximum", limit: PATHS });
    const findings = useAnswer<{ findings: Finding[] }>("findings", { limit: 12 }, { exact: true });
    return (
        <States of={summary}>
            {(data) => (
                <div class="summary">
                    <Headline of={data} window={summary.answer?.window} />
                    <Warnings of={data} />
                    <Tiles of={data} />
                    {!isNarrowed() && <Resident of={data} />}
                    <div class="summary-columns">
                        <Holders of={paths} total={data.totals.peak_bytes} />
                        <Findings of={findings} />
                    </div>
                </div>
            )}
        </States>
    );
}

/* ---- Words ---- */

function Headline({ of, window }: { of: Summary; window: { from_ns: number; to_ns: number | null } | undefined }) {
    const { totals } = of;
    const program = shortModule(of.program) || "The program";
    const areAll = flag("all-processes") && (of.live || of.kind === "run");
    const name = areAll ? `${program} and the others of its run` : program;
    const selected = isNarrowed();
    const suppressed = useSuppressed();
    const when = windowText(window, of.duration_ns);
    if (totals.allocations === 0 && totals.peak_bytes === 0 && totals.live_bytes === 0) {
        return <div class="headline"><h1>{selected ? `Nothing of ${name} is selected: no allocation fits all filters.` : `${name} allocated nothing.`}</h1></div>;
    }
    const held = Math.max(0, totals.live_bytes - (suppressed?.bytes ?? 0));
    const share = format.percent(held, totals.peak_bytes);
    return (
        <div class="headline">
            <h1>
                {when}{selected ? `${when === "" ? "What" : "what"} is selected of ` : ""}{name} held at most <b>{bytesText(totals.peak_bytes)}</b>
                {totals.peak_ns > 0 && when === "" && <>, {format.duration(totals.peak_ns)} after it began</>}
                {of.live ? <>, and {areAll ? "hold" : "holds"} <b>{bytesText(held)}</b> now.</> :
                    held === 0 ? isLeft() ? ", and held nothing when it was detached from." : `, and freed all of it${suppressed === undefined ? "" : ` but ${bytesText(suppressed.bytes)} that is suppressed`}.` : <>; <b>{bytesText(held)}</b> {isWindowed() ? "were still held at the end of the window" : isLeft() ? "were held when it was detached from" : "were never freed"} ({share} of that).</>}
            </h1>
            <p class="muted"><span class="code">{of.command_line}</span> {runText(of)}{of.sampling !== null && `; sampled${of.sampling.sample_bytes ? `, one allocation in ${format.bytes(of.sampling.sample_bytes)}` : ""}: figures are estimates`}{suppressed !== undefined && `; ${bytesText(suppressed.bytes)} of suppressed leaks is not counted`}</p>
        </div>
    );
}
/* "From 1.2 s to 2.0 s, ": nothing where it is all of the time. */
function windowText(window: { from_ns: number; to_ns: number | null } | undefined, duration: number): string {
    if (window === undefined || !(isWindowed() || filterQuery.value.has("from"))) return "";
    const to = window.to_ns ?? duration;
    return window.from_ns > 0 ? `From ${format.duration(window.from_ns)} to ${to >= duration ? "the end" : format.duration(to)} ` : `Until ${format.duration(to)} `;
}

function runText(of: Summary): string {
    const began = new Date(Number(of.start_realtime_ns) / 1e6);
    const when = Number(of.start_realtime_ns) > 0 ? ` began ${began.toLocaleString()},` : "";
    return `${of.pid > 0 ? `process ${of.pid},` : ""}${when} ${of.live ? "has run" : "ran"} ${format.duration(of.duration_ns)}${of.end && !of.live ? `, ${of.end === "killed" && of.kind !== "live" ? "killed, or ended abruptly" : endText(of.end)}` : ""}`;
}

/* ---- Figures ---- */

/** What is left of the heap that the program had when it was attached to. */
function beforeText({ before_bytes, before_freed_bytes, before_frees }: Summary["totals"]): string {
    return before_bytes === 0 && before_frees === 0 ? "" :
        `, and ${bytesText(before_bytes)} of ${bytesText(before_bytes + before_freed_bytes)} from before the attach`;
}

function Tiles({ of }: { of: Summary }) {
    const { totals } = of;
    const suppressed = useSuppressed() ?? { bytes: 0, blocks: 0 };
    const heldBytes = Math.max(0, totals.live_bytes - suppressed.bytes);
    const heldBlocks = Math.max(0, totals.live_blocks - suppressed.blocks);
    const error = (name: string) => of.sampling?.standard_errors?.[name];
    const plus = (name: string, text: string) => (error(name) === undefined ? text : `± ${name === "allocations" ? format.count(error(name) ?? 0) : bytesText(Math.round(error(name) ?? 0))}, ${text}`);
    const average = totals.allocations > 0 ? totals.total_bytes / totals.allocations : 0;
    return (
        <ul class="tiles">
            <Tile title="At maximum" metric="maximum" value={bytesText(totals.peak_bytes)} exact={`${format.count(totals.peak_bytes)} bytes`}
                more={totals.peak_error_bytes > 0 ? `the true maximum is within ${bytesText(totals.peak_error_bytes)} of it, since threads count apart` : plus("peak_bytes", totals.peak_ns > 0 ? `at ${format.duration(totals.peak_ns)}` : flag("all-processes") ? "if all were at their maximum at once" : "")} />
            <Tile title={metricTitle("leaked", of.live)} metric="leaked" value={bytesText(heldBytes)} exact={`${format.count(heldBytes)} bytes`}
                more={plus("live_bytes", `in ${format.items(heldBlocks, "block")}${suppressed.blocks > 0 ? `; ${bytesText(suppressed.bytes)} suppressed, not counted` : ""}`) + beforeText(totals)} />
            <Tile title="Allocated" metric="cumulative" value={bytesText(totals.total_bytes)} exact={`${format.count(totals.total_bytes)} bytes`}
                more={plus("total_bytes", `${bytesText(Math.round(average))} on average`)} />
            <Tile title="Allocations" metric="allocations" value={format.count(totals.allocations)}
                more={plus("allocations", `${of.sampling === null ? `${format.count(totals.frees)} frees, ` : ""}${format.items(totals.contexts, "call path")}`)} />
            <Tile title="Temporary" metric="temporary" value={format.count(totals.temporary)}
                more={totals.allocations > 0 ? `${format.percent(totals.temporary, totals.allocations)} of all allocations` : ""} />
        </ul>
    );
}

function Tile({ title, metric, value, exact, more }: { title: string; metric: string; value: string; exact?: string; more: string }) {
    return (
        <li>
            <a class="tile" href={href(viewChange("flame", { metric }))} title={exact}>
                <span class="tile-title">{title}</span>
                <span class="tile-value">{value}</span>
                <span class="tile-more">{more}</span>
            </a>
        </li>
    );
}

/* ---- Resident memory against what was asked for ---- */

/* What was resident when the program held most, taken apart. */
interface ResidentParts {
    asked: number;
    resident: number;
    own: number;
    rest: number; // code, stacks, the allocator
    untouched: number; // of what was asked for: at least
    isThen: boolean; // measured while that much was held; else the most at any time
}

type Told = Pick<NonNullable<Summary["resident"]>, "at_peak_bytes" | "peak_bytes" | "own_bytes"> | null;

/* resident = asked - untouched + own + rest. null: nothing is known. */
export function residentParts(asked: number, told: Told): ResidentParts | null {
    const then = told?.at_peak_bytes ?? 0;
    // It was measured now and then: a figure from before the maximum may be below what was held then.
    const isThen = then >= asked && then > 0;
    const resident = isThen ? then : (told?.peak_bytes ?? 0);
    if (resident === 0 || asked === 0) return null;
    const beyond = Math.max(0, resident - asked);
    // MemTrace's own tables grow with the heap: what they have now bounds what they had then.
    const own = Math.min(told?.own_bytes ?? 0, beyond);
    return { asked, resident, own, rest: beyond - own, untouched: Math.max(0, asked - resident), isThen };
}

function Resident({ of }: { of: Summary }) {
    const parts = residentParts(of.totals.peak_bytes, of.resident);
    if (parts === null) return null;
    const { asked, resident, own, rest, untouched, isThen } = parts;
    const whole = Math.max(resident, asked);
    const part = (bytes: number) => ({ flex: `${Math.max(0.002, bytes / whole)} 0 0` });
    const when = isThen ? "When it held most" : "At most";
    return (
        <section class="against card" aria-label="Resident memory">
            <p>
                {when}, <b>{bytesText(resident)}</b> were resident and <b>{bytesText(asked)}</b> asked for:{" "}
                {own > 0 ? <><b>{bytesText(own)}</b> are MemTrace's own{rest > 0 ? ", " : ". "}</> : null}{rest > 0 ? <>the other {bytesText(rest)} are code, stacks, the allocator and {of.has["events"] === false ? "holes" : <a href={href(viewChange("heap"))}>holes</a>}. <a href={href(viewChange("mappings"))}>What is mapped</a></> :
                    <>{untouched > 0 && <>at least {bytesText(untouched)} of what was asked for was not touched. </>}<a href={href(viewChange("mappings"))}>What is mapped</a></>}
            </p>
            <div class="against-bar" aria-hidden="true">
                <span class="against-asked" style={part(Math.min(asked, resident))} />
                {own > 0 ? <span class="against-own" style={part(own)} /> : null}
                {rest > 0 ? <span class="against-rest" style={part(rest)} /> : untouched > 0 ? <span class="against-untouched" style={part(untouched)} /> : null}
            </div>
        </section>
    );
}

/* ---- What holds it ---- */

function Holders({ of, total }: { of: Asked<Table>; total: number }) {
    return (
        <section class="card holders" aria-labelledby="holders-title">
            <div class="card-head">
                <h2 id="holders-title">What held memory at the maximum</h2>
                <span class="space" />
                <a href={href(viewChange("flame", { metric: "maximum" }))}>Flame graph</a>
                <a href={href(viewChange("paths", { metric: "maximum" }))}>All call paths</a>
            </div>
            <States of={of} empty={of.data?.rows.length === 0 ? "Nothing was held." : undefined}>
                {(table) => {
                    const rows = rowsOf(table).slice(0, PATHS);
                    const hasPlaces = rows.some((row) => placeOf(pathFrames(row, cell(row, "path"))) !== undefined);
                    return <ol class="holder-list">{rows.map((row) => <Holder key={row.index} row={row} total={total} hasPlaces={hasPlaces} />)}</ol>;
                }}
            </States>
        </section>
    );
}

/* Where own code allocates, as far as debug information tells. */
const placeOf = (frames: readonly Frame[]): Frame | undefined => frames.find((frame) => frame.kind === "own" && frame.file !== undefined);

function Holder({ row, total, hasPlaces }: { row: Row; total: number; hasPlaces: boolean }) {
    const bytes = numberCell(row, "peak_bytes");
    const frames = pathFrames(row, cell(row, "path"));
    const place = placeOf(frames);
    return (
        <li>
            <a class={`holder${hasPlaces ? "" : " placeless"}`} href={href(pathChange(textCell(row, "hash")))}>
                <span class="holder-share number">{format.percent(bytes, total)}</span>
                <span class="holder-bytes number" title={`${format.count(bytes)} bytes`}>{bytesText(bytes)}</span>
                <span class="holder-path">
                    <PathText frames={frames} most={5} />
                    <span class="holder-bar" aria-hidden="true"><span style={{ width: total > 0 ? `${(100 * bytes) / total}%` : "0" }} /></span>
                </span>
                {hasPlaces && <span class="holder-place muted">{place === undefined ? "" : `${shortModule(place.file ?? "")}:${place.line ?? "?"}`}</span>}
            </a>
        </li>
    );
}

/* ---- What looks wrong ---- */

const SIGNS: Record<string, string> = {
    leak: "leak", growth: "grows", temporary: "temporary", slack: "slack", pinned: "pinned", realloc: "grows by realloc",
    foreign: "other thread", peak: "maximum", fragmentation: "holes",
};

function Findings({ of }: { of: Asked<{ findings: Finding[] }> }) {
    return (
        <section class={`card findings${of.held === true && of.stale ? " stale" : ""}`} aria-labelledby="findings-title">
            <div class="card-head"><h2 id="findings-title">Findings</h2><span class="space" /><span class="muted">most important first</span></div>
            <States of={of} empty={of.data?.findings.length === 0 ? "Nothing looks wrong: no leak, few temporaries, no large holes." : undefined}>
                {({ findings }) => <ol>{findings.map((one, index) => <FindingRow key={index} of={one} />)}</ol>}
            </States>
        </section>
    );
}

/* The address that a finding names, with the source and process of this page. */
function findingHref(address: string): string {
    const { view, set } = changeTo(address);
    return href(viewChange(view, set));
}

function FindingRow({ of }: { of: Finding }) {
    const value = of.bytes !== undefined ? bytesText(of.bytes) : of.count !== undefined ? format.count(of.count) : "";
    return (
        <li>
            <a class="finding" href={findingHref(of.view)} title={`${of.title}\n${of.sentence}\n\n${of.command}`}>
                <span class="finding-title"><span class={`finding-kind ${of.kind}`}>{SIGNS[of.kind] ?? of.kind}</span>{shortFunction(of.title)}</span>
                <span class="finding-value number">{value}<Icon name="right" /></span>
                <span class="finding-sentence">{shortFunction(of.sentence)}</span>
            </a>
        </li>
    );
}

function Warnings({ of }: { of: Summary }) {
    const lines: ComponentChildren[] = [
        ...of.warnings,
        ...of.lost.filter((one) => one.count > 0).map((one) => `${format.count(one.count)} ${one.what} were lost.`),
    ];
    if (lines.length === 0) return null;
    return (
        <section class="card warnings" aria-label="Warnings">
            {lines.map((line, index) => <p key={index}><Icon name="warning" />{line}</p>)}
        </section>
    );
}
