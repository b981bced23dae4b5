// SPDX-License-Identifier: MIT
// StackChart.tsx: parts of a whole over time, one on top of the other, with a legend and a table as its twin.
//
//   <StackChart label="Resident memory by mapping" times={times} layers={layers} kind="bytes" onPick={(ns) => ...} />
//
// By keyboard: Left and Right walk through the moments, which are told; `t` shows the table.
import { useId, useMemo, useState } from "preact/hooks";
import { stacked, type Layer } from "../draw/stack";
import { ticks } from "../draw/heat";
import * as format from "../format";
import type { Kind } from "../types";
import { axisText, spellKind } from "./Chart";
import { useSize } from "./hooks";

interface StackChartProps {
    label: string;
    times: readonly number[];
    layers: readonly Layer[];
    kind: Kind;
    height?: number;
}
const LEFT = 62;
const BOTTOM = 20;
const TOP = 8;
const RIGHT = 12;

export function StackChart({ label, times, layers, kind, height = 190 }: StackChartProps) {
    const { ref, width } = useSize<HTMLDivElement>();
    const [at, setAt] = useState<number | null>(null);
    const [twin, setTwin] = useState(false);
    const id = useId();
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
    const told = at === null ? "" : `${format.duration(times[at] ?? 0)}: ${layers.map((layer) => `${layer.name} ${spellKind(kind, layer.values[at] ?? 0)}`).join(", ")}`;
    return (
        <figure class="chart stack" aria-labelledby={`${id}-label`}>
            <figcaption id={`${id}-label`}>
                <span class="chart-title">{label}</span>
                <span class="chart-at number">{at === null ? "" : `${format.duration(times[at] ?? 0)}, together ${spellKind(kind, sums.at(-1)?.[at] ?? 0)}`}</span>
                <button type="button" class={`small plain${at === null ? " end" : ""}`} aria-pressed={twin} onClick={() => setTwin(!twin)}>{twin ? "Chart" : "Table"}</button>
            </figcaption>
            {twin ? <StackTwin times={times} layers={layers} kind={kind} label={label} /> : (
                <div class="stack-box">
                    <div ref={ref} class="plot stack-plot" style={{ height: `${height}px` }} tabIndex={0} role="slider" aria-label={`${label}: moment`} aria-valuemin={0} aria-valuemax={Math.max(0, times.length - 1)}
                        aria-valuenow={at ?? 0} aria-valuetext={told || label}
                        onKeyDown={(event) => {
                            const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
                            if (step !== undefined) setAt(Math.max(0, Math.min(times.length - 1, (at ?? (step > 0 ? -1 : times.length)) + step)));
                            else if (event.key === "t") setTwin(true);
                            else return;
                            event.preventDefault();
                            event.stopPropagation();
                        }}
                        onPointerMove={(event) => setAt(nearest(event.clientX - event.currentTarget.getBoundingClientRect().left))} onPointerLeave={() => setAt(null)}>
                        <svg width={width} height={height} aria-hidden="true">
                            {byteTicks(most).map((tick) => (
                                <g key={tick}>
                                    <line class="grid" x1={LEFT} x2={LEFT + wide} y1={y(tick)} y2={y(tick)} />
                                    <text class="tick" x={LEFT - 6} y={y(tick) + 4} text-anchor="end">{axisText(kind, tick)}</text>
                                </g>
                            ))}
                            {layers.map((layer, index) => <path key={layer.name} class={`layer-${index % 7}`} d={area(index)} />)}
                            {ticks(first, last, 8).map((tick) => <text key={tick} class="tick" x={x(tick)} y={height - 5} text-anchor="middle">{format.duration(tick).replace(".0 ", " ")}</text>)}
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
            )}
        </figure>
    );
}

/* Powers of two apart, at most five. */
function byteTicks(most: number): number[] {
    const step = 2 ** Math.ceil(Math.log2(most / 4));
    return Array.from({ length: Math.floor(most / step) + 1 }, (_, index) => index * step);
}

const TWIN_ROWS = 60;

function StackTwin({ label, times, layers, kind }: StackChartProps) {
    const step = Math.max(1, Math.ceil(times.length / TWIN_ROWS));
    const rows = times.map((_, index) => index).filter((index) => index % step === 0);
    return (
        <div class="twin" tabIndex={0} role="region" aria-label={`${label}: table`}>
            <table>
                <thead><tr><th scope="col">Time</th>{layers.map((layer) => <th key={layer.name} scope="col">{layer.name}</th>)}</tr></thead>
                <tbody>
                    {rows.map((index) => (
                        <tr key={index}>
                            <th scope="row">{format.duration(times[index] ?? 0)}</th>
                            {layers.map((layer) => <td key={layer.name}>{spellKind(kind, layer.values[index] ?? 0)}</td>)}
                        </tr>
                    ))}
                </tbody>
            </table>
        </div>
    );
}
