// SPDX-License-Identifier: MIT
// Chart.tsx: lines over time (uPlot), with a table as its twin: what is drawn can be read, and walked by keyboard. And what
// other charts have of it: the figure around a chart (ChartFigure), a plot in its box (usePlot), colours of the theme.
//
//   <Chart label="Live bytes" time={t.time_ns} series={[{ label: "live", values, kind: "bytes", colour: "--series-1", fill: true }]}
//       mark={time_ns} height={120} onPick={(time_ns) => ...} />
//
// - kind decides how values are spelled; series of another kind than the first get the right axis.
// - colour: the name of a custom property of theme.css (--series-1 ... --series-6): it follows light and dark.
// - x: other than time: xKind "bytes", "count" ...; default "duration" (nanoseconds).
// - Left and Right move the cursor, which tells its values to screen readers; Enter picks; `t` shows the table.
import type { ComponentChildren } from "preact";
import uPlot from "uplot";
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { ramp } from "../draw/canvas";
import { shownTheme, units } from "../settings";
import type { Kind } from "../types";
import { axisText, spellKind } from "./Cells";
import { hasModifier, takeStep, useSize } from "./hooks";

interface Series {
    label: string;
    values: ArrayLike<number | null>;
    kind: Kind;
    colour?: string;
    fill?: boolean;
    dash?: boolean;
}
interface ChartProps {
    label: string;
    time: ArrayLike<number>;
    series: readonly Series[];
    mark?: number; // a line there
    xKind?: Kind;
    height: number;
    onPick?: (x: number) => void;
}

export const colourOf = (name: string): string =>
    getComputedStyle(document.documentElement).getPropertyValue(name).trim() || "#888";
/* From nothing, then in so many steps to the most. */
export const heatColours = (steps: number): string[] =>
    [colourOf("--heat-0"), ...ramp(["--heat-1", "--heat-2", "--heat-3", "--heat-4", "--heat-5"].map(colourOf), steps)];
const seriesColour = (series: Series, index: number): string => series.colour ?? `--series-${(index % 6) + 1}`;

/* ---- What is around each chart ---- */

interface PlainTableProps {
    class?: string;
    cell?: string; // class of its cells
    head: readonly string[];
    rows: readonly (readonly string[])[];
}
/* A table of text whose first column names the rows. */
export function PlainTable({ class: name, cell, head, rows }: PlainTableProps) {
    return (
        <table class={name}>
            <thead><tr>{head.map((text, index) => <th key={index} scope="col">{text}</th>)}</tr></thead>
            <tbody>
                {rows.map(([title, ...cells], index) => (
                    <tr key={index}>
                        <th scope="row" class={cell}>{title}</th>
                        {cells.map((text, at) => <td key={at} class={cell}>{text}</td>)}
                    </tr>
                ))}
            </tbody>
        </table>
    );
}
/* Which of so many points a table has, at most: who reads a table wants its shape, not each point. */
export function sampled(length: number, most: number): number[] {
    const step = Math.max(1, Math.ceil(length / most));
    return Array.from({ length: Math.ceil(length / step) }, (_, index) => index * step);
}
export const TWIN_ROWS = 60;

interface FigureProps {
    label: string;
    kind?: string; // a class more
    legend?: ComponentChildren;
    at: string; // what the cursor is at
    isTwin: boolean;
    setTwin: (isTwin: boolean) => void;
    twin: () => PlainTableProps;
    children: ComponentChildren;
}
export function ChartFigure({ label, kind = "", legend, at, isTwin, setTwin, twin, children }: FigureProps) {
    const id = useId();
    return (
        <figure class={`chart ${kind}`} aria-labelledby={id}>
            <figcaption id={id}>
                <span class="chart-title">{label}</span>
                {legend}
                <span class="chart-at number">{at}</span>
                <button type="button" class="small plain" aria-pressed={isTwin} onClick={() => setTwin(!isTwin)}>{isTwin ? "Chart" : "Table"}</button>
            </figcaption>
            {isTwin ? <div class="twin" tabIndex={0} role="region" aria-label={`${label}: table`}><PlainTable {...twin()} /></div> : children}
        </figure>
    );
}

/* ---- A plot in its box ---- */

interface PlotProps {
    ref: { readonly current: HTMLElement | null };
    width: number;
    height: number;
    data: readonly ArrayLike<number | null | undefined>[];
    from: readonly unknown[]; // what the data is made of
    options: () => uPlot.Options;
    shape: readonly unknown[]; // what the options are made of: when that changes the plot is made anew
    listen?: (plot: uPlot) => void;
}
export function usePlot({ ref, width, height, data: given, from, options, shape, listen }: PlotProps) {
    const plot = useRef<uPlot | undefined>(undefined);
    const data = given.map((values) => Array.from(values)) as unknown as uPlot.AlignedData;
    useLayoutEffect(() => {
        if (ref.current === null || width === 0 || height === 0) return;
        const made = new uPlot(options(), data, ref.current);
        listen?.(made);
        plot.current = made;
        return () => {
            made.destroy();
            plot.current = undefined;
        };
    }, [width === 0, height, shownTheme.value, units.value, ...shape]);
    useEffect(() => plot.current?.setData(data), from);
    useEffect(() => {
        if (width > 0 && height > 0) plot.current?.setSize({ width, height });
    }, [width, height]);
    return plot;
}

/* Axis ticks at 1024ths for bytes; 1, 2, 5 else. */
export function byteSplits(_: uPlot, __: number, low: number, high: number): number[] {
    const rough = (high - low) / 4;
    if (rough <= 0) return [low];
    let step = 2 ** Math.ceil(Math.log2(rough));
    const unit = 1024 ** Math.floor(Math.log(Math.max(1, step)) / Math.log(1024));
    step = Math.max(1, Math.round(step / unit)) * unit;
    const splits = [];
    for (let at = Math.ceil(low / step) * step; at <= high; at += step) splits.push(at);
    return splits;
}

/* ---- Lines over time ---- */

function optionsOf(props: ChartProps, width: number, height: number): uPlot.Options {
    const { series, mark, xKind = "duration" } = props;
    const text = colourOf("--text-2");
    const grid = colourOf("--line");
    const font = `11px ${colourOf("--font")}`;
    const kinds = [...new Set(series.map((one) => one.kind))];
    const axis = (scale: string, kind: Kind, side: 1 | 2 | 3): uPlot.Axis => ({
        scale, side, stroke: text, font, size: side === 2 ? 22 : 62, gap: 4,
        grid: { stroke: grid, width: 1, show: side !== 1 }, ticks: { show: false },
        values: (_, splits) => splits.map((value) => (side !== 2 && value === 0 ? "" : axisText(kind, value))),
        splits: kind === "bytes" ? byteSplits : undefined,
        space: side === 2 ? 90 : 28,
    });
    return {
        width, height, legend: { show: false }, padding: [6, 24, 0, 0],
        cursor: { y: false, drag: { x: false, y: false }, points: { size: 6 } },
        scales: { x: { time: false }, ...Object.fromEntries(kinds.map((kind) => [kind, { range: rangeOf }])) },
        axes: [
            axis("x", xKind, 2),
            ...kinds.slice(0, 2).map((kind, index) => axis(kind, kind, index === 0 ? 3 : 1)),
        ],
        series: [
            {},
            ...series.map((one, index): uPlot.Series => {
                const colour = colourOf(seriesColour(one, index));
                return {
                    scale: one.kind, label: one.label, stroke: colour, width: 1.5, points: { show: false },
                    fill: one.fill ? colour + "22" : undefined, dash: one.dash ? [4, 3] : undefined,
                };
            }),
        ],
        hooks: { draw: mark === undefined ? [] : [(plot) => drawMark(plot, mark)] },
    };
}
function rangeOf(_: uPlot, low: number | null, high: number | null): [number, number] {
    const from = Math.min(0, low ?? 0);
    const to = high ?? 0;
    return [from * 1.05, to <= from ? from + 1 : to * 1.05];
}

function drawMark(plot: uPlot, at: number): void {
    const { ctx } = plot;
    const { top, height } = plot.bbox;
    const x = Math.round(plot.valToPos(at, "x", true));
    ctx.save();
    ctx.strokeStyle = colourOf("--accent");
    ctx.lineWidth = devicePixelRatio;
    ctx.setLineDash([]);
    ctx.beginPath();
    ctx.moveTo(x, top);
    ctx.lineTo(x, top + height);
    ctx.stroke();
    ctx.restore();
}

export function Chart(props: ChartProps) {
    const { label, series, time, height, xKind = "duration" } = props;
    const { ref, width } = useSize<HTMLDivElement>();
    const [isTwin, setTwin] = useState(false);
    const [at, setAt] = useState<number | null>(null);
    const pick = useRef(props.onPick);
    pick.current = props.onPick;
    const plot = usePlot({
        ref, width, height, data: [time, ...series.map((one) => one.values)], from: [time, ...series.map((one) => one.values)],
        options: () => optionsOf(props, width, height),
        shape: [JSON.stringify([series.map((one) => [one.label, one.kind, one.colour, one.fill, one.dash]), xKind]), isTwin, props.mark],
        listen(made) {
            made.over.addEventListener("mousemove", () => setAt(made.cursor.idx ?? null));
            made.over.addEventListener("mouseleave", () => setAt(null));
            made.over.addEventListener("click", () => {
                const x = made.cursor.idx == null ? undefined : made.data[0][made.cursor.idx];
                if (x !== undefined) pick.current?.(x);
            });
        },
    });

    const step = (by: number) => {
        const to = Math.max(0, Math.min(time.length - 1, (at ?? (by > 0 ? -1 : time.length)) + by));
        setAt(to);
        const x = time[to];
        if (plot.current !== undefined && x !== undefined) plot.current.setCursor({ left: plot.current.valToPos(x, "x"), top: 0 });
    };
    const x = at === null ? undefined : time[at];
    const key = (event: KeyboardEvent) => {
        const far = event.shiftKey ? Math.max(1, Math.round(time.length / 20)) : 1;
        if (!hasModifier(event)) takeStep(event, {
            ArrowRight: () => step(far), ArrowLeft: () => step(-far), Enter: x !== undefined && (() => props.onPick?.(x)), t: () => setTwin(!isTwin),
        });
    };
    const when = at === null ? "" : spellKind(xKind, x ?? 0);
    const told = at === null ? "" : `${when}: ${series.map((one) => `${one.label} ${spellKind(one.kind, one.values[at])}`).join(", ")}`;
    return (
        <ChartFigure label={label} at={when} isTwin={isTwin} setTwin={setTwin} legend={series.length > 1 && <Legend series={series} at={at ?? -1} />}
            twin={() => ({
                head: [xKind === "duration" ? "Time" : "Value", ...series.map((one) => one.label)],
                rows: sampled(time.length, TWIN_ROWS).map((index) => [spellKind(xKind, time[index] ?? 0), ...series.map((one) => spellKind(one.kind, one.values[index]))]),
            })}>
            <div ref={ref} class="plot" style={{ height: `${height}px` }} tabIndex={0} role="slider" aria-label={`${label}: position`}
                aria-valuemin={0} aria-valuemax={Math.max(0, time.length - 1)} aria-valuenow={Math.max(0, at ?? 0)} aria-valuetext={told || label} onKeyDown={key} />
        </ChartFigure>
    );
}

function Legend({ series, at }: { series: readonly Series[]; at: number }) {
    return (
        <span class="legend">
            {series.map((one, index) => (
                <span key={one.label} class="legend-item">
                    <span class="swatch" style={{ background: `var(${seriesColour(one, index)})` }} />
                    {one.label}
                    {at >= 0 && <span class="number"> {spellKind(one.kind, one.values[at])}</span>}
                </span>
            ))}
        </span>
    );
}
