// SPDX-License-Identifier: MIT
// Strip.tsx: the timeline above all views: what was held over the whole run, and the window that everything is about.
//
// Dragging chooses a window: while the pointer is down answers may be snapped to slices (url.ts: dragging), and are
// exact when it is let go. Alt-drag chooses a second one, to compare with. By keyboard the two edges are sliders.
// The chart is always of the whole run; where filters are given, what they select is drawn into it.
import type uPlot from "uplot";
import { useMemo, useRef, useState } from "preact/hooks";
import { useActions } from "../actions";
import { useAnswer } from "../ask";
import { Dialog } from "../components/Dialog";
import { IconButton } from "../components/Icon";
import { axisText, spellKind } from "../components/Cells";
import { byteSplits, colourOf, PlainTable, sampled, usePlot } from "../components/Chart";
import { takeStep, useSize } from "../components/hooks";
import * as format from "../format";
import { isNarrowed, type Mark } from "../summaries";
import { stripSeries } from "../settings";
import type { IntervalSeries, SeriesName, Summary, Timeline } from "../types";
import { baseGone, go, place, sourceId } from "../url";
import { Drag, markText, NO_WINDOW, resolution, rounded, spanOf, spanParams, type Span, type TimeContext } from "../window";
import { type Bar, barAt, barsOf, draggedSpan, drawnMarks, nearest, spanText, sparseLine, stepMarks, type Grip } from "./stripmath";

const POINTS = 700;

export function Strip({ whole, marks }: { whole: Summary | undefined; marks: readonly Mark[] }) {
    const has = whole?.has["timeline"] !== false;
    const series = stripSeries.value;
    const timeline = useAnswer<Timeline>(whole !== undefined && has ? "timeline" : null, { points: POINTS, series }, { plain: true });
    const filtered = isNarrowed();
    const selected = useAnswer<Timeline>(filtered && has ? "timeline" : null, { points: POINTS, series: "live", ...NO_WINDOW, base: null }, { exact: true });
    if (whole === undefined) return <div class="strip" />;
    if (!has) return null;
    const data = timeline.data;
    if (timeline.state === "failed") return <div class="strip state failed">{timeline.error?.message}</div>;
    if (data === undefined) return <div class="strip" aria-busy="true" />;
    if (data.time_ns.length < 2) return null;
    return <StripOf timeline={data} selected={filtered ? selected.data : undefined} whole={whole} marks={marks} />;
}

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

/* ---- Lines and bars ---- */

/*
 * What was held, resident memory and other bytes are lines; low behind them are bars for the rates of allocations and
 * frees, which have a scale of their own. So has the address space, which is larger than all else by far. Resident memory
 * is looked at now and then: a dot is a look, a line joins looks that follow each other soon, and what is faint and dashed
 * between others is not known.
 */
interface StripBox {
    left: number;
    width: number;
}
interface StripPlotProps {
    timeline: Timeline;
    selected: Timeline | undefined;
    duration: number;
    onBox: (box: StripBox) => void;
}
/* Bars take the lowest part of the height. */
const RATE_PART = 0.3;

/* Allocations are filled, frees are strokes on the same scale. */
function drawRates(plot: uPlot, timeline: Timeline): void {
    const { ctx, bbox } = plot;
    const [rates, frees] = [barsOf(timeline, "rate"), barsOf(timeline, "frees")];
    const most = [...rates, ...frees].reduce((a, bar) => Math.max(a, bar.value), 0);
    if (most === 0) return;
    const x = (ns: number) => plot.valToPos(ns, "x", true);
    const height = (bar: Bar) => (bar.value / most) * bbox.height * RATE_PART;
    const base = bbox.top + bbox.height;
    ctx.save();
    ctx.fillStyle = colourOf("--system");
    ctx.globalAlpha = 0.7;
    for (const bar of rates) ctx.fillRect(x(bar.from), base - height(bar), Math.max(1, x(bar.to) - x(bar.from) - devicePixelRatio), height(bar));
    ctx.globalAlpha = 1;
    ctx.fillStyle = colourOf("--series-4");
    for (const bar of frees) if (bar.value > 0) ctx.fillRect(x(bar.from), base - height(bar), Math.max(1, x(bar.to) - x(bar.from)), 1.5 * devicePixelRatio);
    ctx.restore();
}

function optionsOf(width: number, height: number, duration: number, hasSelected: boolean, drawFirst: (plot: uPlot) => void, dots: () => number[], onBox: (box: StripBox) => void): uPlot.Options {
    const text = colourOf("--text-2");
    const font = `11px ${colourOf("--font")}`;
    const live = colourOf("--series-1");
    return {
        width, height, legend: { show: false }, padding: [8, 28, 0, 0], cursor: { show: false },
        scales: {
            x: { time: false, range: [0, duration] },
            bytes: { range: (_, __, high) => [0, Math.max(1, high * 1.04)] },
            space: { range: (_, __, high) => [0, Math.max(1, high * 1.25)] },
        },
        axes: [
            { scale: "x", stroke: text, font, size: 20, gap: 2, grid: { show: false }, ticks: { show: false }, space: 90, values: (_, splits) => splits.map((ns) => axisText("duration", ns)) },
            { scale: "bytes", stroke: text, font, size: 64, gap: 6, grid: { stroke: colourOf("--line"), width: 1 }, ticks: { show: false }, space: 26, splits: byteSplits, values: (_, splits) => splits.map((value) => (value === 0 ? "" : axisText("bytes", value))) },
        ],
        series: [
            {},
            { scale: "bytes", stroke: colourOf("--series-2") + "66", width: 1, dash: [1, 4], points: { show: false }, spanGaps: true },
            { scale: "bytes", stroke: hasSelected ? live + "88" : live, fill: live + (hasSelected ? "18" : "30"), width: 1.5, points: { show: false }, spanGaps: true },
            { scale: "bytes", stroke: live, fill: live + "66", width: 1.5, points: { show: false }, spanGaps: true, show: hasSelected },
            { scale: "bytes", stroke: colourOf("--series-3"), width: 1.25, points: { show: false }, spanGaps: true },
            { scale: "space", stroke: colourOf("--series-6"), width: 1, dash: [4, 3], points: { show: false }, spanGaps: true },
            { scale: "bytes", stroke: colourOf("--series-5"), width: 1.5, points: { show: false }, spanGaps: true },
            { scale: "bytes", stroke: colourOf("--series-2"), width: 1.25, points: { show: true, size: 5, fill: colourOf("--series-2"), filter: () => dots() }, spanGaps: false },
        ],
        hooks: {
            drawAxes: [drawFirst],
            draw: [(plot) => onBox({ left: plot.bbox.left / devicePixelRatio, width: plot.bbox.width / devicePixelRatio })],
        },
    };
}

/* The selection's points, at the times of the whole: both have the same number of points over the same time. */
function along(times: readonly number[], other: Timeline | undefined): (number | null)[] {
    if (other === undefined) return times.map(() => null);
    let at = 0;
    return times.map((time) => {
        while (at + 1 < other.time_ns.length && (other.time_ns[at + 1] ?? 0) <= time) at++;
        return other.series.live?.[at] ?? null;
    });
}

/* At the times of the points. */
function leakedAlong(timeline: Timeline): (number | null)[] {
    const bars = barsOf(timeline, "leaked");
    return timeline.time_ns.map((time) => barAt(bars, time)?.value ?? null);
}

function StripPlot({ timeline, selected, duration, onBox }: StripPlotProps) {
    const { ref, width, height } = useSize<HTMLDivElement>();
    const series = timeline.series;
    const none = timeline.time_ns.map(() => null);
    const seen = sparseLine(timeline.time_ns, series.resident ?? none, duration);
    const dots = useRef(seen.dots);
    dots.current = seen.dots;
    const now = useRef(timeline);
    now.current = timeline;
    const box = useRef({ left: -1, width: -1 });
    const tell = (now: StripBox) => {
        if (now.left === box.current.left && now.width === box.current.width) return;
        box.current = now;
        onBox(now);
    };
    usePlot({
        ref, width, height, from: [timeline, selected],
        data: [timeline.time_ns, series.resident ?? none, series.live ?? none, along(timeline.time_ns, selected), series.swap ?? none, series.virtual ?? none, leakedAlong(timeline), seen.line],
        options: () => optionsOf(width, height, duration, selected !== undefined, (plot) => drawRates(plot, now.current), () => dots.current, tell),
        shape: [selected === undefined, duration],
    });
    return <div ref={ref} class="strip-plot" aria-hidden="true" />;
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
        takeStep(event, {
            ArrowRight: () => to(at + by), ArrowUp: () => to(at + by), ArrowLeft: () => to(at - by), ArrowDown: () => to(at - by),
            PageUp: () => to(at + duration / 10), PageDown: () => to(at - duration / 10), Home: () => to(least), End: () => to(most),
        });
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
    const names = chosenSeries().filter((name) => mostOf(timeline, name) !== null);
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
                <PlainTable class="plain-table" cell="number" head={["Time", ...names.map((name) => WORDS[name])]}
                    rows={sampled(timeline.time_ns.length, TWIN_ROWS).map((index) => [
                        format.duration(timeline.time_ns[index] ?? 0), ...names.map((name) => spellSeries(name, seriesAt(timeline, name, index))),
                    ])} />
            </div>
        </Dialog>
    );
}
