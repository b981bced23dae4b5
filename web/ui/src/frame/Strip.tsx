// SPDX-License-Identifier: MIT
// Strip.tsx: the timeline above all views: what was held over the whole run, and the window that everything is about.
//
// Dragging chooses a window: while the pointer is down answers may be snapped to slices (url.ts: dragging), and are
// exact when it is let go. Alt-drag chooses a second one, to compare with. By keyboard the two edges are sliders.
// The chart is always of the whole run; where filters are given, what they select is drawn into it.
import { useMemo, useRef, useState } from "preact/hooks";
import { useActions } from "../actions";
import { useAnswer } from "../ask";
import { Dialog } from "../components/Dialog";
import { IconButton } from "../components/Icon";
import { spellKind } from "../components/Chart";
import * as format from "../format";
import type { Mark } from "../summaries";
import { stripSeries } from "../settings";
import type { IntervalSeries, SeriesName, Summary, Timeline } from "../types";
import { filterQuery, go, place, sourceId } from "../url";
import { Drag, markText, resolution, rounded, spanOf, spanParams, type Span, type TimeContext } from "../window";
import { baseGone } from "./Header";
import { barAt, barsOf, draggedSpan, drawnMarks, nearest, spanText, stepMarks, type Grip } from "./stripmath";
import { StripPlot, type StripBox } from "./StripPlot";

const POINTS = 700;
const NO_WINDOW = { from: null, to: null, at: null, between: null, base: null };

export function Strip({ whole, marks }: { whole: Summary | undefined; marks: readonly Mark[] }) {
    const has = whole?.has["timeline"] !== false;
    const series = stripSeries.value;
    const timeline = useAnswer<Timeline>(whole !== undefined && has ? "timeline" : null, { points: POINTS, series }, { plain: true });
    const filtered = [...filterQuery.value.keys()].some((name) => !NO_NARROWING.has(name) && !name.startsWith("base"));
    const selected = useAnswer<Timeline>(filtered && has ? "timeline" : null, { points: POINTS, series: "live", ...NO_WINDOW }, { exact: true });
    if (whole === undefined) return <div class="strip" />;
    if (!has) return null;
    const data = timeline.data;
    if (timeline.state === "failed") return <div class="strip state failed">{timeline.error?.message}</div>;
    if (data === undefined) return <div class="strip" aria-busy="true" />;
    if (data.time_ns.length < 2) return null;
    return <StripOf timeline={data} selected={filtered ? selected.data : undefined} whole={whole} marks={marks} />;
}
const NO_NARROWING = new Set(["from", "to", "at", "between", "process", "all-processes", "full-names", "all-frames", "by", "base"]);

interface StripOfProps {
    timeline: Timeline;
    selected: Timeline | undefined;
    whole: Summary;
    marks: readonly Mark[];
}

function StripOf({ timeline, selected, whole, marks }: StripOfProps) {
    const duration = Math.max(whole.duration_ns, timeline.time_ns.at(-1) ?? 0, 1);
    const context: TimeContext = { duration, maximum: timeline.maximum?.time_ns ?? whole.totals.peak_ns, marks };
    const query = place.value.query;
    const span = spanOf(query, context);
    const isDifference = query.get("base") === sourceId.value;
    const base = isDifference ? (spanOf(query, context, "base-") ?? { from: 0, to: duration }) : null;
    const [at, setAt] = useState<number | null>(null);
    const [twin, setTwin] = useState(false);
    const [box, setBox] = useState<StripBox>({ left: 0, width: 1 });

    // Only recordings know windows: a profile has sums of all of the time.
    const fixed = SAVED || whole.has["events"] === false;
    const set = (now: Span | null, how: "push" | "replace" = "push") => go({ set: spanParams(now, duration) }, how);
    useStripActions({ fixed, span, set, marks, duration });
    const index = at === null ? -1 : nearest(timeline.time_ns, at);
    const step = resolution(duration, box.width);
    const [choosing, setChoosing] = useState(false);
    return (
        <section class="strip" aria-label="Timeline">
            <StripLegend timeline={timeline} selected={selected} index={index} span={span} duration={duration} onAll={() => set(null)} onTable={() => setTwin(true)} onChoose={() => setChoosing(true)} />
            <div class="strip-chart">
                <StripPlot timeline={timeline} selected={selected} duration={duration} onBox={setBox} />
                <Brush fixed={fixed} box={box} duration={duration} step={step} span={span} base={base} marks={marks} maximum={timeline.maximum?.time_ns}
                    onHover={setAt} onAll={() => set(null)} set={set} />
            </div>
            {twin && <StripTable timeline={timeline} marks={marks} onClose={() => setTwin(false)} onPick={(now) => {
                set(now);
                setTwin(false);
            }} duration={duration} />}
            {choosing && <SeriesDialog missing={timeline.missing} onClose={() => setChoosing(false)} />}
        </section>
    );
}

/* ---- Keys ---- */

interface StripActions {
    fixed: boolean;
    span: Span | null;
    set: (span: Span | null) => void;
    marks: readonly Mark[];
    duration: number;
}
function useStripActions({ fixed, span, set, marks, duration }: StripActions): void {
    const group = "Timeline";
    // Edges at marks are named by them: that is exact, and says more.
    const step = (by: 1 | -1) => {
        const next = stepMarks(marks, duration, span, by);
        const told = spanParams(next, duration);
        const named = (ns: number | undefined, usual: string | null | undefined) => (usual == null || ns === undefined ? null : (markText(marks, ns) ?? usual));
        go({ set: { ...told, from: named(next?.from, told["from"]), to: named(next?.to, told["to"]) } });
    };
    useActions(fixed ? [] : [
        { group, title: "To the next mark", keys: ["]"], run: () => step(1) },
        { group, title: "To the mark before", keys: ["["], run: () => step(-1) },
        { group, title: "What was held at the maximum", keys: ["p"], run: () => go({ set: { from: null, to: null, between: null, at: place.peek().query.get("at") === "peak" ? null : "peak" } }) },
        { group, title: "All of the time", keys: ["a"], run: () => set(null) },
        { group, title: "Keep this window, to compare others with it", keys: ["="], run: () => go({ set: { base: sourceId.peek(), ...spanParams(span, duration, "base-") } }) },
        { group, title: "Compare with nothing", run: () => go({ set: baseGone() }) },
    ]);
}

/* ---- The window ---- */

interface BrushProps {
    fixed: boolean;
    box: StripBox;
    duration: number;
    step: number;
    span: Span | null;
    base: Span | null;
    marks: readonly Mark[];
    maximum: number | undefined;
    onHover: (ns: number | null) => void;
    onAll: () => void;
    set: (span: Span | null, how?: "push" | "replace") => void;
}
const HANDLE_PX = 6;
const CLICK_PX = 3;

function Brush({ fixed, box, duration, step, span, base, marks, maximum, onHover, onAll }: BrushProps) {
    const held = useRef<{ grip: Grip; at: number; span: Span; drag: Drag | null; x: number } | null>(null);
    const element = useRef<HTMLDivElement>(null);
    const shown = useMemo(() => drawnMarks(marks, duration, box.width), [marks, duration, box.width]);
    const place_ = (ns: number) => `${(100 * Math.max(0, Math.min(ns, duration))) / duration}%`;
    const timeAt = (event: PointerEvent): number => {
        const left = element.current?.getBoundingClientRect().left ?? 0;
        return Math.max(0, Math.min(1, (event.clientX - left) / box.width)) * duration;
    };
    const gripAt = (event: PointerEvent, at: number): Grip => {
        if (event.altKey) return "base";
        if (span === null) return "new";
        const px = (ns: number) => Math.abs(((ns - at) / duration) * box.width);
        if (px(span.from) <= HANDLE_PX && span.from > 0) return "from";
        if (px(span.to) <= HANDLE_PX && span.to < duration) return "to";
        const inTop = event.clientY - (element.current?.getBoundingClientRect().top ?? 0) < 10;
        return inTop && at > span.from && at < span.to ? "move" : "new";
    };
    const down = (event: PointerEvent) => {
        if (fixed || event.button !== 0) return;
        const at = timeAt(event);
        element.current?.setPointerCapture(event.pointerId);
        held.current = { grip: gripAt(event, at), at, span: span ?? { from: 0, to: duration }, drag: null, x: event.clientX };
    };
    const move = (event: PointerEvent) => {
        const at = timeAt(event);
        onHover(at);
        const now = held.current;
        if (now === null || (now.drag === null && Math.abs(event.clientX - now.x) < CLICK_PX)) return;
        now.drag ??= new Drag();
        // At once: browsers tell of one move a frame.
        const dragged = draggedSpan(now.grip, now.span, now.at, at, duration, step);
        now.drag.move(now.grip === "base"
            ? { base: sourceId.peek(), ...spanParams(dragged, duration, "base-") }
            : spanParams(dragged, duration));
    };
    const up = () => {
        held.current?.drag?.end();
        held.current = null;
    };
    const cancel = () => {
        held.current?.drag?.cancel();
        held.current = null;
    };
    const near = (event: PointerEvent) => {
        if (fixed) return;
        const at = timeAt(event);
        const grip = gripAt(event, at);
        if (element.current !== null) element.current.style.cursor = grip === "from" || grip === "to" ? "ew-resize" : grip === "move" ? "grab" : "crosshair";
    };
    return (
        <div ref={element} class="brush" style={{ left: `${box.left}px`, width: `${box.width}px` }} onPointerDown={down}
            onPointerMove={(event) => {
                near(event);
                move(event);
            }}
            onPointerUp={up} onPointerCancel={cancel} onPointerLeave={() => held.current === null && onHover(null)} onDblClick={fixed ? undefined : onAll}>
            {shown.map(({ mark, hasName }, index) => (
                <span key={index} class={`strip-mark${mark.what === "mark" ? "" : " other"}`} style={{ left: place_(mark.time) }} title={`${mark.what === "mark" ? "" : `${mark.what} `}${mark.name}: ${format.duration(mark.time)}`}>
                    {hasName && <span class="strip-mark-name">{mark.name}</span>}
                </span>
            ))}
            {maximum !== undefined && <span class="strip-maximum" style={{ left: place_(maximum) }} title={`maximum: ${format.duration(maximum)}`} />}
            {span !== null && (
                <>
                    <span class="strip-mask" style={{ left: "0", width: place_(span.from) }} />
                    <span class="strip-mask" style={{ left: place_(span.to), right: "0" }} />
                    <span class="strip-window" style={{ left: place_(span.from), width: place_(span.to - span.from) }} />
                </>
            )}
            {base !== null && <span class="strip-window base" style={{ left: place_(base.from), width: place_(base.to - base.from) }}><span class="strip-window-name">compared with</span></span>}
            {!fixed && <Edge label="Window begins" at={span?.from ?? 0} least={0} most={(span?.to ?? duration) - step} duration={duration} step={step} place={place_}
                span={(at) => ({ from: at, to: span?.to ?? duration })} />}
            {!fixed && <Edge label="Window ends" at={span?.to ?? duration} least={(span?.from ?? 0) + step} most={duration} duration={duration} step={step} place={place_}
                span={(at) => ({ from: span?.from ?? 0, to: at })} />}
        </div>
    );
}

interface EdgeProps {
    label: string;
    at: number;
    least: number;
    most: number;
    duration: number;
    step: number;
    place: (ns: number) => string;
    span: (at: number) => Span;
}
const SETTLE_MS = 500;

/*
 * An edge of the window as a slider. The other edge is at least a step away: an empty window shows nothing. Keys that follow
 * each other are one drag: one step back in the history.
 */
function Edge({ label, at, least, most, duration, step, place: placeOf, span }: EdgeProps) {
    const drag = useRef<Drag | null>(null);
    const timer = useRef(0);
    const to = (ns: number) => {
        drag.current ??= new Drag();
        drag.current.move(spanParams(span(rounded(Math.max(least, Math.min(most, ns)), step)), duration));
        clearTimeout(timer.current);
        timer.current = window.setTimeout(settle, SETTLE_MS);
    };
    const settle = () => {
        clearTimeout(timer.current);
        drag.current?.end();
        drag.current = null;
    };
    const key = (event: KeyboardEvent) => {
        const small = Math.max(step, duration / 200);
        const by = event.shiftKey ? duration / 10 : small;
        const steps: Record<string, number> = {
            ArrowRight: at + by, ArrowUp: at + by, ArrowLeft: at - by, ArrowDown: at - by,
            PageUp: at + duration / 10, PageDown: at - duration / 10, Home: least, End: most,
        };
        const wanted = steps[event.key];
        if (wanted === undefined) return;
        event.preventDefault();
        event.stopPropagation();
        to(wanted);
    };
    return (
        <span class="strip-edge" role="slider" tabIndex={0} aria-label={label} aria-valuemin={least / 1e6} aria-valuemax={most / 1e6}
            aria-valuenow={at / 1e6} aria-valuetext={format.duration(at)} style={{ left: placeOf(at) }} onKeyDown={key} onBlur={settle} />
    );
}


/* ---- Words beside it ---- */

interface LegendProps {
    timeline: Timeline;
    selected: Timeline | undefined;
    index: number;
    span: Span | null;
    duration: number;
    onAll: () => void;
    onTable: () => void;
    onChoose: () => void;
}
const WORDS: Record<SeriesName, string> = { live: "held", resident: "resident", swap: "swapped out", virtual: "mapped", leaked: "never freed", rate: "allocations", frees: "frees" };
const ABOUT: Record<SeriesName, string> = {
    live: "Bytes of the heap", resident: "Resident memory as the kernel reported it each time it was asked: a dot each; in between it is not known", swap: "As the kernel says of the process",
    virtual: "All that is mapped, touched or not; on a scale of its own", leaked: "The part of what was allocated by then that is never freed. Needs a pass over all events",
    rate: "Allocations per second, counted in each interval", frees: "Frees per second, counted in each interval",
};
const NAMES = Object.keys(WORDS) as SeriesName[];
const isInterval = (name: SeriesName): name is IntervalSeries => name === "rate" || name === "frees" || name === "leaked";
const chosenSeries = (): SeriesName[] => NAMES.filter((name) => stripSeries.value.split(",").includes(name));

const spellSeries = (name: SeriesName, value: number | null): string =>
    name === "rate" || name === "frees" ? (value === null ? "–" : `${format.roughly(value)}/s`) : spellKind("bytes", value);

/* At this point or moment. */
function seriesAt(timeline: Timeline, name: SeriesName, index: number): number | null {
    return isInterval(name) ? (barAt(barsOf(timeline, name), timeline.time_ns[index] ?? 0)?.value ?? null) : (timeline.series[name]?.[index] ?? null);
}
function mostOf(timeline: Timeline, name: SeriesName): number | null {
    const values = isInterval(name) ? timeline.intervals?.[name] : timeline.series[name];
    return values?.reduce<number>((most, one) => Math.max(most, one ?? 0), 0) ?? null;
}

function StripLegend({ timeline, selected, index, span, duration, onAll, onTable, onChoose }: LegendProps) {
    const shown = chosenSeries().filter((name) => timeline.missing.includes(name) || mostOf(timeline, name) !== null);
    const time = index < 0 ? null : (timeline.time_ns[index] ?? 0);
    const value = (name: SeriesName) => (index < 0 ? mostOf(timeline, name) : seriesAt(timeline, name, index));
    return (
        <div class={`strip-legend${shown.length + (selected === undefined ? 0 : 1) > 4 ? " many" : ""}`}>
            <div class="strip-when number">
                {time !== null ? <span>at <b>{format.duration(time)}</b></span> : span !== null ? (
                    <><b>{spanText(span)}</b><IconButton small icon="close" label="All of the time (a)" onClick={onAll} /></>
                ) : <span>all of <b>{format.duration(duration)}</b></span>}
                {!SAVED && <IconButton small icon="more" label="What the timeline shows" onClick={onChoose} />}
                <IconButton small icon="table" label="The timeline as a table" onClick={onTable} />
            </div>
            <dl>
                {selected !== undefined && <div class="strip-series"><dt><span class="swatch selected" />selected</dt><dd class="number">{spellKind("bytes", index >= 0 ? (selected.series.live?.[nearest(selected.time_ns, time ?? 0)] ?? null) : selected.maximum?.bytes ?? null)}</dd></div>}
                {shown.map((name) => (
                    <div key={name} class="strip-series">
                        <dt><span class={`swatch ${name}`} />{WORDS[name]}</dt>
                        {timeline.missing.includes(name) ? <dd class="muted">not recorded</dd> :
                            <dd class="number" title={index < 0 ? "the most" : undefined}>{index < 0 && <span class="muted">≤ </span>}{spellSeries(name, value(name))}</dd>}
                    </div>
                ))}
            </dl>
        </div>
    );
}

/* Which series are drawn. */
function SeriesDialog({ missing, onClose }: { missing: readonly SeriesName[]; onClose: () => void }) {
    const chosen = chosenSeries();
    const set = (name: SeriesName, on: boolean) => {
        stripSeries.value = NAMES.filter((one) => (one === name ? on : chosen.includes(one))).join(",") || "live";
    };
    return (
        <Dialog title="What the timeline shows" onClose={onClose}>
            <div class="series-choice">
                {NAMES.map((name) => (
                    <label key={name}>
                        <input type="checkbox" checked={chosen.includes(name)} onChange={(event) => set(name, event.currentTarget.checked)} />
                        <span class={`swatch ${name}`} />
                        <span>{WORDS[name]}<span class="muted"> {missing.includes(name) ? "Not recorded in this file" : ABOUT[name]}</span></span>
                    </label>
                ))}
            </div>
        </Dialog>
    );
}

const TWIN_ROWS = 100;

function StripTable({ timeline, marks, duration, onClose, onPick }: { timeline: Timeline; marks: readonly Mark[]; duration: number; onClose: () => void; onPick: (span: Span) => void }) {
    const step = Math.max(1, Math.ceil(timeline.time_ns.length / TWIN_ROWS));
    const names = chosenSeries().filter((name) => mostOf(timeline, name) !== null);
    const rows = timeline.time_ns.map((_, index) => index).filter((index) => index % step === 0);
    return (
        <Dialog title="Timeline as a table" class="wide" onClose={onClose}>
            {marks.length > 0 && (
                <div class="dialog-scroll short" tabIndex={0} role="region" aria-label="Marks">
                    <table class="plain-table">
                        <thead><tr><th scope="col">Mark</th><th scope="col">Kind</th><th scope="col">Time</th><th scope="col"><span class="hidden">Choose</span></th></tr></thead>
                        <tbody>
                            {marks.map((mark, index) => (
                                <tr key={index}>
                                    <td>{mark.name}</td><td>{mark.what}</td><td class="number">{format.duration(mark.time)}</td>
                                    <td><button type="button" class="small" onClick={() => onPick({ from: mark.time, to: marks[index + 1]?.time ?? duration })}>From here to the next</button></td>
                                </tr>
                            ))}
                        </tbody>
                    </table>
                </div>
            )}
            <div class="dialog-scroll" tabIndex={0} role="region" aria-label="Values over time">
                <table class="plain-table">
                    <thead><tr><th scope="col">Time</th>{names.map((name) => <th key={name} scope="col">{WORDS[name]}</th>)}</tr></thead>
                    <tbody>
                        {rows.map((index) => (
                            <tr key={index}>
                                <th scope="row" class="number">{format.duration(timeline.time_ns[index] ?? 0)}</th>
                                {names.map((name) => <td key={name} class="number">{spellSeries(name, seriesAt(timeline, name, index))}</td>)}
                            </tr>
                        ))}
                    </tbody>
                </table>
            </div>
        </Dialog>
    );
}
