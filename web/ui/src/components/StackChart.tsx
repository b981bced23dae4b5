// SPDX-License-Identifier: MIT
// StackChart.tsx: parts of a whole over time, one on top of the other, with a legend and a table as its twin.
//
//   <StackChart label="Resident memory by mapping" times={times} layers={layers} kind="bytes" onPick={(ns) => ...} />
//
// By keyboard: Left and Right walk through the moments, which are told; `t` shows the table.
import { useMemo, useState } from "preact/hooks";
import { ticks } from "../draw/heat";
import * as format from "../format";
import type { Kind } from "../types";
import { axisText, spellKind } from "./Cells";
import { ChartFigure, sampled, TWIN_ROWS } from "./Chart";
import { takeStep, useSize } from "./hooks";

interface StackChartProps {
    label: string;
    times: readonly number[];
    layers: readonly Layer[];
    kind: Kind;
    height: number;
}

/* ---- Layers ---- */

interface Layer {
    name: string;
    values: number[]; // of each moment
}
export interface Sample {
    time: number;
    name: string;
    value: number;
}

/* By moment and name; the `most` largest names (by their largest value) have layers, others are in the last. */
export function layersOf(samples: readonly Sample[], most: number, others: string): { times: number[]; layers: Layer[] } {
    const times = [...new Set(samples.map((one) => one.time))].sort((a, b) => a - b);
    const place = new Map(times.map((time, index) => [time, index]));
    const byName = new Map<string, number[]>();
    for (const { time, name, value } of samples) {
        let values = byName.get(name);
        if (values === undefined) byName.set(name, (values = new Array<number>(times.length).fill(0)));
        const at = place.get(time) ?? 0;
        values[at] = (values[at] ?? 0) + value;
    }
    const sorted = [...byName].map(([name, values]) => ({ name, values, peak: Math.max(...values) })).sort((a, b) => b.peak - a.peak || (a.name < b.name ? -1 : 1));
    const layers: Layer[] = sorted.slice(0, most).map(({ name, values }) => ({ name, values }));
    const rest = sorted.slice(most);
    if (rest.length > 0) layers.push({ name: others, values: times.map((_, at) => rest.reduce((sum, one) => sum + (one.values[at] ?? 0), 0)) });
    return { times, layers };
}

/* Each layer with all below it, the first at the bottom. */
export function stacked(layers: readonly Layer[]): number[][] {
    const sums: number[][] = [];
    layers.forEach(({ values }, index) => sums.push(values.map((value, at) => value + (sums[index - 1]?.[at] ?? 0))));
    return sums;
}

/* ---- Drawing ---- */

const LEFT = 62;
const BOTTOM = 20;
const TOP = 8;
const RIGHT = 12;

export function StackChart({ label, times, layers, kind, height }: StackChartProps) {
    const { ref, width } = useSize<HTMLDivElement>();
    const [at, setAt] = useState<number | null>(null);
    const [isTwin, setTwin] = useState(false);
    const sums = useMemo(() => stacked(layers), [layers]);
    const most = Math.max(1, ...(sums.at(-1) ?? []));
    const [first, last] = [times[0] ?? 0, times.at(-1) ?? 1];
    const [wide, tall] = [Math.max(1, width - LEFT - RIGHT), height - TOP - BOTTOM];
    const x = (time: number) => LEFT + (last > first ? ((time - first) / (last - first)) * wide : 0);
    const y = (value: number) => TOP + tall - (value / most) * tall;
    const area = (index: number) => {
        const upper = times.map((time, i) => `${x(time).toFixed(1)},${y(sums[index]?.[i] ?? 0).toFixed(1)}`);
        const lower = times.map((time, i) => `${x(time).toFixed(1)},${y(sums[index - 1]?.[i] ?? 0).toFixed(1)}`).reverse();
        return `M${[...upper, ...lower].join("L")}Z`;
    };
    const nearest = (pixel: number) => times.reduce((best, time, index) => (Math.abs(x(time) - pixel) < Math.abs(x(times[best] ?? 0) - pixel) ? index : best), 0);
    const when = at === null ? "" : format.duration(times[at] ?? 0);
    const told = at === null ? "" : `${when}: ${layers.map((layer) => `${layer.name} ${spellKind(kind, layer.values[at] ?? 0)}`).join(", ")}`;
    const step = (by: 1 | -1) => setAt(Math.max(0, Math.min(times.length - 1, (at ?? (by > 0 ? -1 : times.length)) + by)));
    return (
        <ChartFigure label={label} kind="stack" at={at === null ? "" : `${when}, together ${spellKind(kind, sums.at(-1)?.[at] ?? 0)}`} isTwin={isTwin} setTwin={setTwin}
            twin={() => ({
                head: ["Time", ...layers.map((layer) => layer.name)],
                rows: sampled(times.length, TWIN_ROWS).map((index) => [format.duration(times[index] ?? 0), ...layers.map((layer) => spellKind(kind, layer.values[index] ?? 0))]),
            })}>
            <div class="stack-box">
                <div ref={ref} class="plot stack-plot" style={{ height: `${height}px` }} tabIndex={0} role="slider" aria-label={`${label}: moment`} aria-valuemin={0} aria-valuemax={Math.max(0, times.length - 1)}
                    aria-valuenow={at ?? 0} aria-valuetext={told || label} onKeyDown={(event) => takeStep(event, { ArrowLeft: () => step(-1), ArrowRight: () => step(1), t: () => setTwin(true) })}
                    onPointerMove={(event) => setAt(nearest(event.clientX - event.currentTarget.getBoundingClientRect().left))} onPointerLeave={() => setAt(null)}>
                    <svg width={width} height={height} aria-hidden="true">
                        {byteTicks(most).map((tick) => (
                            <g key={tick}>
                                <line class="grid" x1={LEFT} x2={LEFT + wide} y1={y(tick)} y2={y(tick)} />
                                <text class="tick" x={LEFT - 6} y={y(tick) + 4} text-anchor="end">{axisText(kind, tick)}</text>
                            </g>
                        ))}
                        {layers.map((layer, index) => <path key={layer.name} class={`layer-${index % 7}`} d={area(index)} />)}
                        {ticks(first, last, 8).map((tick) => <text key={tick} class="tick" x={x(tick)} y={height - 5} text-anchor="middle">{axisText("duration", tick)}</text>)}
                        {at !== null && <line class="at" x1={x(times[at] ?? 0)} x2={x(times[at] ?? 0)} y1={TOP} y2={TOP + tall} />}
                    </svg>
                </div>
                <ul class="stack-legend">
                    {layers.map((layer, index) => (
                        <li key={layer.name} title={layer.name}>
                            <span class={`swatch layer-${index % 7}`} />
                            <span class="stack-name">{layer.name}</span>
                            <span class="number">{spellKind(kind, layer.values[at ?? times.length - 1] ?? 0)}</span>
                        </li>
                    )).reverse()}
                </ul>
            </div>
        </ChartFigure>
    );
}

/* Powers of two apart, at most five. */
function byteTicks(most: number): number[] {
    const step = 2 ** Math.ceil(Math.log2(most / 4));
    return Array.from({ length: Math.floor(most / step) + 1 }, (_, index) => index * step);
}
