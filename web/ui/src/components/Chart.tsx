// SPDX-License-Identifier: MIT
// Chart.tsx: lines over time (uPlot), with a table as its twin: what is drawn can be read, and walked by keyboard.
//
//   <Chart label="Live bytes" time={t.time_ns} series={[{ label: "live", values, kind: "bytes", colour: "--series-1", fill: true }]}
//       marks={[{ time_ns, label }]} height={120} onPick={(time_ns) => ...} />
//
// - kind decides how values are spelled; series of another kind than the first get the right axis.
// - colour: the name of a custom property of theme.css (--series-1 ... --series-6): it follows light and dark.
// - x: other than time: xKind "bytes", "count" ...; default "duration" (nanoseconds).
// - Left and Right move the cursor, which tells its values to screen readers; Enter picks; `t` shows the table.
import uPlot from "uplot";
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import * as format from "../format";
import { shownTheme } from "../frame/theme";
import { units } from "../settings";
import type { Kind } from "../types";
import { useSize } from "./hooks";

export interface Series {
    label: string;
    values: ArrayLike<number | null>;
    kind: Kind;
    colour?: string;
    fill?: boolean;
    dash?: boolean;
    steps?: boolean; // a value holds until the next one
}
export interface ChartMark {
    time_ns: number;
    label: string;
    kind?: "mark" | "maximum" | "cursor";
}
interface ChartProps {
    label: string;
    time: ArrayLike<number>;
    series: readonly Series[];
    marks?: readonly ChartMark[];
    xKind?: Kind;
    height?: number;
    axes?: boolean; // default true
    legend?: boolean; // default: where there are several series
    onPick?: (x: number) => void;
}

export function spellKind(kind: Kind, value: number | null): string {
    if (value === null || value === undefined) return "–";
    switch (kind) {
        case "bytes": return units.value === "bytes" ? format.count(value) : format.bytes(value);
        case "signed": return format.change(value);
        case "duration": return format.duration(value);
        case "percent": return format.percent(value, 100);
        case "real": return format.real(value);
        default: return format.count(value);
    }
}

export const colourOf = (name: string): string =>
    getComputedStyle(document.documentElement).getPropertyValue(name).trim() || "#888";
export const seriesColour = (series: Series, index: number): string => series.colour ?? `--series-${(index % 6) + 1}`;

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

/* "4 MiB" on an axis, without the ".0" that a figure has. */
export const axisText = (kind: Kind, value: number): string => spellKind(kind, value).replace(/\.0 /, " ");

function optionsOf(props: ChartProps, width: number, height: number): uPlot.Options {
    const { series, axes = true, xKind = "duration" } = props;
    const text = colourOf("--text-2");
    const grid = colourOf("--line");
    const font = `11px ${colourOf("--font")}`;
    const kinds = [...new Set(series.map((one) => one.kind))];
    const axis = (scale: string, kind: Kind, side: 1 | 2 | 3): uPlot.Axis => ({
        scale, side, stroke: text, font, show: axes, size: side === 2 ? 22 : 62, gap: 4,
        grid: { stroke: grid, width: 1, show: side !== 1 }, ticks: { show: false },
        values: (_, splits) => splits.map((value) => (side !== 2 && value === 0 ? "" : axisText(kind, value))),
        splits: kind === "bytes" ? byteSplits : undefined,
        space: side === 2 ? 90 : 28,
    });
    return {
        width, height, legend: { show: false }, padding: axes ? [6, 24, 0, 0] : [2, 0, 2, 0],
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
                    paths: one.steps ? uPlot.paths.stepped?.({ align: 1 }) : undefined,
                };
            }),
        ],
        hooks: { draw: [(plot) => drawMarks(plot, props.marks ?? [])] },
    };
}
function rangeOf(_: uPlot, low: number | null, high: number | null): [number, number] {
    const from = Math.min(0, low ?? 0);
    const to = high ?? 0;
    return [from * 1.05, to <= from ? from + 1 : to * 1.05];
}

function drawMarks(plot: uPlot, marks: readonly ChartMark[]): void {
    const { ctx } = plot;
    const { top, height } = plot.bbox;
    ctx.save();
    for (const mark of marks) {
        const x = Math.round(plot.valToPos(mark.time_ns, "x", true));
        ctx.strokeStyle = colourOf(mark.kind === "maximum" ? "--accent" : "--mark");
        ctx.lineWidth = devicePixelRatio;
        ctx.setLineDash(mark.kind === "mark" || mark.kind === undefined ? [3 * devicePixelRatio, 3 * devicePixelRatio] : []);
        ctx.beginPath();
        ctx.moveTo(x, top);
        ctx.lineTo(x, top + height);
        ctx.stroke();
    }
    ctx.restore();
}

export function Chart(props: ChartProps) {
    const { label, series, time, height = 160 } = props;
    const { ref, width } = useSize<HTMLDivElement>();
    const plot = useRef<uPlot | undefined>(undefined);
    const [twin, setTwin] = useState(false);
    const [at, setAt] = useState<number | null>(null);
    const id = useId();
    const data = [Array.from(time), ...series.map((one) => Array.from(one.values))] as unknown as uPlot.AlignedData;
    const shape = JSON.stringify([series.map((one) => [one.label, one.kind, one.colour, one.fill, one.dash]), props.xKind, props.axes, shownTheme.value, units.value]);
    const pick = useRef(props.onPick);
    pick.current = props.onPick;

    useLayoutEffect(() => {
        const element = ref.current;
        if (element === null || width === 0 || twin) return;
        const made = new uPlot(optionsOf(props, width, height), data, element);
        made.over.addEventListener("mousemove", () => setAt(made.cursor.idx ?? null));
        made.over.addEventListener("mouseleave", () => setAt(null));
        made.over.addEventListener("click", () => {
            const x = made.cursor.idx === null || made.cursor.idx === undefined ? undefined : made.data[0][made.cursor.idx];
            if (x !== undefined) pick.current?.(x);
        });
        plot.current = made;
        return () => {
            made.destroy();
            plot.current = undefined;
        };
    }, [width === 0, shape, height, twin, props.marks]);
    useEffect(() => plot.current?.setData(data), [time, ...series.map((one) => one.values)]);
    useEffect(() => {
        if (width > 0) plot.current?.setSize({ width, height });
    }, [width, height]);

    const step = (by: number) => {
        const to = Math.max(0, Math.min(time.length - 1, (at ?? (by > 0 ? -1 : time.length)) + by));
        setAt(to);
        const x = time[to];
        if (plot.current !== undefined && x !== undefined) plot.current.setCursor({ left: plot.current.valToPos(x, "x"), top: 0 });
    };
    const key = (event: KeyboardEvent) => {
        if (event.ctrlKey || event.metaKey || event.altKey) return;
        const far = Math.max(1, Math.round(time.length / 20));
        if (event.key === "ArrowRight") step(event.shiftKey ? far : 1);
        else if (event.key === "ArrowLeft") step(event.shiftKey ? -far : -1);
        else if (event.key === "Enter" && at !== null && time[at] !== undefined) props.onPick?.(time[at]);
        else if (event.key === "t") setTwin(!twin);
        else return;
        event.preventDefault();
        event.stopPropagation();
    };
    const now = at ?? -1;
    const told = now < 0 ? "" : `${spellKind(props.xKind ?? "duration", time[now] ?? 0)}: ` +
        series.map((one) => `${one.label} ${spellKind(one.kind, one.values[now] ?? null)}`).join(", ");
    return (
        <figure class="chart" aria-labelledby={`${id}-label`}>
            <figcaption id={`${id}-label`}>
                <span class="chart-title">{label}</span>
                {(props.legend ?? series.length > 1) && <Legend series={series} at={now} />}
                <span class="chart-at number">{now >= 0 && spellKind(props.xKind ?? "duration", time[now] ?? 0)}</span>
                <button type="button" class="small plain" aria-pressed={twin} onClick={() => setTwin(!twin)}>{twin ? "Chart" : "Table"}</button>
            </figcaption>
            {twin ? <Twin {...props} /> : (
                <div ref={ref} class="plot" style={{ height: `${height}px` }} tabIndex={0} role="slider" aria-label={`${label}: position`}
                    aria-valuemin={0} aria-valuemax={Math.max(0, time.length - 1)} aria-valuenow={Math.max(0, now)} aria-valuetext={told || label} onKeyDown={key} />
            )}
        </figure>
    );
}

function Legend({ series, at }: { series: readonly Series[]; at: number }) {
    return (
        <span class="legend">
            {series.map((one, index) => (
                <span key={one.label} class="legend-item">
                    <span class="swatch" style={{ background: `var(${seriesColour(one, index)})` }} />
                    {one.label}
                    {at >= 0 && <span class="number"> {spellKind(one.kind, one.values[at] ?? null)}</span>}
                </span>
            ))}
        </span>
    );
}

/* At most so many rows: a reader of a table wants its shape, not each point. */
const TWIN_ROWS = 60;

function Twin({ label, time, series, xKind = "duration" }: ChartProps) {
    const step = Math.max(1, Math.ceil(time.length / TWIN_ROWS));
    const rows = [];
    for (let index = 0; index < time.length; index += step) rows.push(index);
    return (
        <div class="twin" tabIndex={0} role="region" aria-label={`${label}: table`}>
            <table>
                <thead>
                    <tr>
                        <th scope="col">{xKind === "duration" ? "Time" : "Value"}</th>
                        {series.map((one) => <th key={one.label} scope="col">{one.label}</th>)}
                    </tr>
                </thead>
                <tbody>
                    {rows.map((index) => (
                        <tr key={index}>
                            <th scope="row">{spellKind(xKind, time[index] ?? 0)}</th>
                            {series.map((one) => <td key={one.label}>{spellKind(one.kind, one.values[index] ?? null)}</td>)}
                        </tr>
                    ))}
                </tbody>
            </table>
        </div>
    );
}
