// SPDX-License-Identifier: MIT
// StripPlot.tsx: the lines of the timeline strip (uPlot): what was held, resident memory and other bytes; and low behind
// them bars for the rates of allocations and frees, which have a scale of their own. So has the address space, which is
// larger than all else by far. Resident memory is looked at now and then: a dot is a look, a line joins looks that follow each
// other soon, and what is faint and dashed between others is not known.
import uPlot from "uplot";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { axisText, byteSplits, colourOf } from "../components/Chart";
import { useSize } from "../components/hooks";
import { units } from "../settings";
import type { Timeline } from "../types";
import { barAt, barsOf, sparseLine, type Bar } from "./stripmath";
import { shownTheme } from "./theme";

export interface StripBox {
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

function optionsOf(width: number, height: number, duration: number, has: { selected: boolean }, drawFirst: (plot: uPlot) => void, dots: () => number[], onBox: (box: StripBox) => void): uPlot.Options {
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
            { scale: "bytes", stroke: has.selected ? live + "88" : live, fill: live + (has.selected ? "18" : "30"), width: 1.5, points: { show: false }, spanGaps: true },
            { scale: "bytes", stroke: live, fill: live + "66", width: 1.5, points: { show: false }, spanGaps: true, show: has.selected },
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

export function StripPlot({ timeline, selected, duration, onBox }: StripPlotProps) {
    const { ref, width, height } = useSize<HTMLDivElement>();
    const plot = useRef<uPlot | undefined>(undefined);
    const series = timeline.series;
    const none = timeline.time_ns.map(() => null);
    const seen = sparseLine(timeline.time_ns, series.resident ?? none, duration);
    const dots = useRef(seen.dots);
    dots.current = seen.dots;
    const data = [timeline.time_ns, series.resident ?? none, series.live ?? none, along(timeline.time_ns, selected), series.swap ?? none, series.virtual ?? none, leakedAlong(timeline), seen.line] as unknown as uPlot.AlignedData;
    const now = useRef(timeline);
    now.current = timeline;
    const box = useRef({ left: -1, width: -1 });
    const tell = (now: StripBox) => {
        if (now.left === box.current.left && now.width === box.current.width) return;
        box.current = now;
        onBox(now);
    };
    useLayoutEffect(() => {
        if (ref.current === null || width === 0 || height === 0) return;
        const made = new uPlot(optionsOf(width, height, duration, { selected: selected !== undefined }, (plot) => drawRates(plot, now.current), () => dots.current, tell), data, ref.current);
        plot.current = made;
        return () => {
            made.destroy();
            plot.current = undefined;
        };
    }, [width === 0, height, shownTheme.value, units.value, selected === undefined, duration]);
    useEffect(() => plot.current?.setData(data), [timeline, selected]);
    useEffect(() => {
        if (width > 0 && height > 0) plot.current?.setSize({ width, height });
    }, [width]);
    return <div ref={ref} class="strip-plot" aria-hidden="true" />;
}
