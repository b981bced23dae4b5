// SPDX-License-Identifier: MIT
// SqlChart.tsx: an answer of SQL as a chart: line, bar, histogram, scatter, heat map. Columns are chosen beside it; the table of
// the answer is one button away.
import { useMemo } from "preact/hooks";
import { Bars } from "../components/Bars";
import { Chart } from "../components/Chart";
import { HeatMap } from "../components/HeatMap";
import { useSize } from "../components/hooks";
import { firstWhere } from "../draw/canvas";
import { type HeatModel, ticks } from "../draw/heat";
import * as format from "../format";
import { spellKind } from "../components/Cells";
import { columnIndex, isNumeric } from "../rows";
import type { Column, Table } from "../types";
import type { ChartType, ChartWish } from "./notebook";

export const CHARTS: readonly (readonly [ChartType, string, string])[] = [
    ["table", "Table", "The rows"], ["line", "Line", "One column against another, as a line"], ["bar", "Bars", "A bar for each row"],
    ["histogram", "Histogram", "How often values occur"], ["scatter", "Scatter", "A point for each row"], ["heat", "Heat map", "How many rows in each part of two columns"],
];

/* The wish, where it fits the answer; else what fits it. */
function fitting(wish: ChartWish, columns: readonly Column[]): ChartWish {
    const numbers = columns.filter((column) => isNumeric(column.kind)).map((column) => column.name);
    const all = columns.map((column) => column.name);
    const text = columns.find((column) => !isNumeric(column.kind))?.name;
    const pick = (name: string | undefined, from: readonly string[], usual: string | undefined) => (name !== undefined && from.includes(name) ? name : usual);
    const x = wish.type === "bar" ? pick(wish.x, all, text ?? all[0]) : pick(wish.x, numbers, numbers[0]);
    const y = pick(wish.y, numbers, numbers.find((name) => name !== x) ?? numbers[0]);
    const weight = pick(wish.weight, numbers, undefined);
    return { type: wish.type, ...(x === undefined ? {} : { x }), ...(y === undefined ? {} : { y }), ...(weight === undefined ? {} : { weight }) };
}

export function ChartColumns({ wish, columns, onChange }: { wish: ChartWish; columns: readonly Column[]; onChange: (wish: ChartWish) => void }) {
    const numbers = columns.filter((column) => isNumeric(column.kind));
    const now = fitting(wish, columns);
    const choose = (label: string, name: "x" | "y" | "weight", from: readonly Column[], none?: string) => (
        <label class="compare"><span class="muted">{label}</span>
            <select value={now[name] ?? ""} onChange={(event) => {
                const { [name]: _, ...rest } = wish;
                onChange(event.currentTarget.value === "" ? rest : { ...wish, [name]: event.currentTarget.value });
            }}>
                {none !== undefined && <option value="">{none}</option>}
                {from.map((column) => <option key={column.name} value={column.name}>{column.name}</option>)}
            </select>
        </label>
    );
    switch (wish.type) {
        case "table": return null;
        case "bar": return <>{choose("of", "x", columns)}{choose("length", "y", numbers)}</>;
        case "histogram": return choose("of", "x", numbers);
        case "heat": return <>{choose("across", "x", numbers)}{choose("up", "y", numbers)}{choose("shade", "weight", numbers, "rows")}</>;
        default: return <>{choose("across", "x", numbers)}{choose("up", "y", numbers)}</>;
    }
}

/* ---- Numbers counted in equal parts of their range ---- */

/* Ranges that go over three powers of ten and more are parted by the logarithm: sizes and lifetimes are such. */
interface Scale {
    edges: number[]; // one more than there are bins
    isLog: boolean;
}

/* null: there is no number. */
export function scaleOf(values: readonly number[], most: number): Scale | null {
    const known = values.filter(Number.isFinite);
    if (known.length === 0) return null;
    const least = known.reduce((a, b) => Math.min(a, b));
    const top = known.reduce((a, b) => Math.max(a, b));
    if (least === top) return { edges: [least, least + Math.max(1, Math.abs(least) * 1e-9)], isLog: false };
    const positive = known.reduce((a, b) => (b > 0 ? Math.min(a, b) : a), Infinity);
    const isLog = least >= 0 && top / positive >= 1000;
    const whole = known.every(Number.isInteger);
    if (!isLog) {
        const count = whole ? Math.min(most, top - least + 1) : most;
        // Whole numbers: bins of a whole width, or some would hold more numbers than others.
        const width = whole ? Math.ceil((top - least + 1) / count) : (top - least) / count;
        const bins = whole ? Math.ceil((top - least + 1) / width) : count;
        return { edges: Array.from({ length: bins + 1 }, (_, index) => least + index * width), isLog };
    }
    const [low, high] = [Math.log(positive), Math.log(top)];
    const edges = Array.from({ length: most + 1 }, (_, index) => Math.exp(low + ((high - low) * index) / most));
    edges[0] = positive;
    edges[most] = top * (1 + 1e-9);
    return { edges: least === 0 ? [0, ...edges] : edges, isLog };
}

/* The bin of a number; -1: none. The last one has its upper edge, too. */
export function binOf(scale: Scale, value: number): number {
    const { edges } = scale;
    const last = edges.length - 2;
    if (!Number.isFinite(value) || value < (edges[0] ?? 0) || value > (edges[last + 1] ?? 0)) return -1;
    return firstWhere(1, last + 1, (bin) => (edges[bin] ?? Infinity) > value) - 1;
}

export function histogram(values: readonly number[], scale: Scale): number[] {
    const counts = new Array<number>(scale.edges.length - 1).fill(0);
    for (const value of values) {
        const bin = binOf(scale, value);
        if (bin >= 0) counts[bin] = (counts[bin] ?? 0) + 1;
    }
    return counts;
}

/* [x][y]: how many pairs, or the sum of their weights. */
export function grid(xs: readonly number[], ys: readonly number[], weights: readonly number[] | null, x: Scale, y: Scale): number[][] {
    const cells = Array.from({ length: x.edges.length - 1 }, () => new Array<number>(y.edges.length - 1).fill(0));
    xs.forEach((value, index) => {
        const column = binOf(x, value);
        const row = binOf(y, ys[index] ?? NaN);
        const one = cells[column];
        if (one !== undefined && row >= 0) one[row] = (one[row] ?? 0) + (weights === null ? 1 : Math.max(0, weights[index] ?? 0));
    });
    return cells;
}

/* At most so many, evenly taken. */
export function thinned<T>(items: readonly T[], most: number): T[] {
    if (items.length <= most) return [...items];
    return Array.from({ length: most }, (_, index) => items[Math.floor((index * items.length) / most)] as T);
}

/* ---- Charts ---- */

const HEIGHT = 250;

export function SqlChart({ table, wish }: { table: Table; wish: ChartWish }) {
    const now = fitting(wish, table.columns);
    const isBar = now.type === "bar";
    if (now.x === undefined || (now.y === undefined && now.type !== "histogram")) return <p class="state empty">{isBar ? "Bars need a column of numbers." : "This chart needs columns of numbers."}</p>;
    if (table.rows.length === 0) return <p class="state empty">The answer has no rows.</p>;
    const column = (name: string) => table.columns[columnIndex(table, name)] as Column;
    const numbers = (name: string) => {
        const index = columnIndex(table, name);
        return table.rows.map((row) => (row[index] === null || row[index] === undefined ? NaN : Number(row[index])));
    };
    const x = column(now.x);
    const y = now.y === undefined ? x : column(now.y);
    switch (now.type) {
        case "line": return <Lines x={x} y={y} xs={numbers(x.name)} ys={numbers(y.name)} />;
        case "bar": return <RowBars x={x} y={y} labels={table.rows.map((row) => spell(x, row[columnIndex(table, x.name)] ?? null))} values={numbers(y.name)} />;
        case "histogram": return <Histogram x={x} values={numbers(x.name)} />;
        case "scatter": return <Scatter x={x} y={y} xs={numbers(x.name)} ys={numbers(y.name)} />;
        case "heat": return <Heat x={x} y={y} xs={numbers(x.name)} ys={numbers(y.name)} weight={now.weight === undefined ? null : column(now.weight)} weights={now.weight === undefined ? null : numbers(now.weight)} />;
        default: return null;
    }
}
const spell = (column: Column, value: unknown): string =>
    value === null || value === undefined ? "–" : isNumeric(column.kind) ? spellKind(column.kind, Number(value)) : String(value);

function Lines({ x, y, xs, ys }: { x: Column; y: Column; xs: number[]; ys: number[] }) {
    const data = useMemo(() => {
        const points = xs.map((value, index) => [value, ys[index] ?? NaN] as const).filter(([value]) => Number.isFinite(value)).sort((a, b) => a[0] - b[0]);
        return { time: points.map(([value]) => value), values: points.map(([, value]) => (Number.isFinite(value) ? value : null)) };
    }, [xs.length, x.name, y.name, xs[0], ys[0], xs.at(-1), ys.at(-1)]);
    return <Chart label={`${y.name} by ${x.name}`} height={HEIGHT} xKind={x.kind} time={data.time} series={[{ label: y.name, values: data.values, kind: y.kind, fill: true }]} />;
}

const BARS = 60;

function RowBars({ x, y, labels, values }: { x: Column; y: Column; labels: string[]; values: number[] }) {
    const most = values.slice(0, BARS).reduce((max, value) => Math.max(max, Number.isFinite(value) ? Math.abs(value) : 0), 0);
    return (
        <div class="sql-bars" tabIndex={0} role="region" aria-label={`${y.name} of each ${x.name}`}>
            <Bars isText head={[x.name, "Bar", y.name]} rows={labels.slice(0, BARS).map((label, index) => ({
                key: index, name: label, title: label, share: Number.isFinite(values[index]) ? Math.abs(values[index] ?? 0) / most : 0,
                cells: <td class="number">{spell(y, Number.isFinite(values[index]) ? values[index] : null)}</td>,
            }))} />
            {labels.length > BARS && <p class="muted">The first {BARS} of {format.items(labels.length, "row")}.</p>}
        </div>
    );
}

const rangeText = (scale: Scale, bin: number, column: Column): string => {
    const [from, to] = [scale.edges[bin] ?? 0, scale.edges[bin + 1] ?? 0];
    // Bins of one whole number are that number.
    return to - from === 1 && Number.isInteger(from) ? spell(column, from) : `${spell(column, from)} to ${spell(column, to)}`;
};

function Histogram({ x, values }: { x: Column; values: number[] }) {
    const scale = scaleOf(values, 28);
    if (scale === null) return <p class="state empty">There are no numbers in {x.name}.</p>;
    const counts = histogram(values, scale);
    const most = Math.max(...counts);
    const known = counts.reduce((sum, count) => sum + count, 0);
    return (
        <div class="sql-bars" tabIndex={0} role="region" aria-label={`How often ${x.name} has which value`}>
            <Bars isThin isEmpty head={[x.name, "Bar", "Rows", "Share"]} rows={counts.map((count, bin) => ({
                key: bin, name: rangeText(scale, bin, x), share: count / most,
                cells: <><td class="number">{format.count(count)}</td><td class="number muted">{format.percent(count, known)}</td></>,
            }))} />
        </div>
    );
}

/* ---- Two numbers of each row ---- */

const POINTS = 4000;
const LEFT = 66;
const BOTTOM = 22;

/* Places from 0 to 1 along the range of the values, by the logarithm where they go far. */
function placing(values: number[], kind: Column["kind"]): { at: (value: number) => number; ticks: number[] } {
    const known = values.filter(Number.isFinite);
    const [least, top] = [known.reduce((a, b) => Math.min(a, b), Infinity), known.reduce((a, b) => Math.max(a, b), -Infinity)];
    const isLog = least > 0 && top / least >= 1000;
    // Bytes are read in powers of two.
    const base = kind === "bytes" ? 2 : 10;
    const scaled = (value: number) => (isLog ? Math.log(value) / Math.log(base) : value);
    const [from, to] = [scaled(least), scaled(top)];
    const found = isLog ? ticks(Math.ceil(from), Math.floor(to), 8).filter(Number.isInteger).map((power) => base ** power) : ticks(least, top, 6);
    return { at: (value) => (to > from ? (scaled(value) - from) / (to - from) : 0.5), ticks: found };
}

function Scatter({ x, y, xs, ys }: { x: Column; y: Column; xs: number[]; ys: number[] }) {
    const { ref, width } = useSize<HTMLDivElement>();
    const pairs = xs.map((value, index) => [value, ys[index] ?? NaN] as const).filter(([a, b]) => Number.isFinite(a) && Number.isFinite(b));
    const shown = thinned(pairs, POINTS);
    const [across, up] = [placing(pairs.map(([a]) => a), x.kind), placing(pairs.map(([, b]) => b), y.kind)];
    const [wide, tall] = [Math.max(1, width - LEFT - 14), HEIGHT - BOTTOM - 8];
    const px = (value: number) => LEFT + across.at(value) * wide;
    const py = (value: number) => 8 + tall - up.at(value) * tall;
    return (
        <figure class="chart stack" aria-label={`${y.name} against ${x.name}`}>
            <figcaption>
                <span class="chart-title">{y.name} against {x.name}</span>
                <span class="muted">{pairs.length > shown.length ? `${format.count(shown.length)} of ${format.items(pairs.length, "row")}, evenly taken` : format.items(pairs.length, "row")}</span>
            </figcaption>
            <div ref={ref} class="plot" style={{ height: `${HEIGHT}px` }}>
                <svg width={width} height={HEIGHT} role="img" aria-label={`${format.items(pairs.length, "point")}; the table has them all`}>
                    {up.ticks.map((tick) => (
                        <g key={tick}>
                            <line class="grid" x1={LEFT} x2={LEFT + wide} y1={py(tick)} y2={py(tick)} />
                            <text class="tick" x={LEFT - 6} y={py(tick) + 4} text-anchor="end">{spell(y, tick).replace(/\.0 /, " ")}</text>
                        </g>
                    ))}
                    {across.ticks.map((tick) => <text key={tick} class="tick" x={px(tick)} y={HEIGHT - 6} text-anchor="middle">{spell(x, tick).replace(/\.0 /, " ")}</text>)}
                    <path class="points" d={shown.map(([a, b]) => `M${px(a).toFixed(1)} ${py(b).toFixed(1)}h0`).join("")} />
                </svg>
            </div>
        </figure>
    );
}

interface HeatProps {
    x: Column;
    y: Column;
    xs: number[];
    ys: number[];
    weight: Column | null;
    weights: number[] | null;
}
function Heat({ x, y, xs, ys, weight, weights }: HeatProps) {
    const across = scaleOf(xs, 64);
    const up = scaleOf(ys, 20);
    const cells = useMemo(() => (across === null || up === null ? [] : grid(xs, ys, weights, across, up)), [xs.length, x.name, y.name, weight?.name, xs[0], ys[0], xs.at(-1), ys.at(-1)]);
    const model = useMemo<HeatModel>(() => ({ columns: cells.length, rows: cells[0]?.length ?? 0, value: (column, row) => cells[column]?.[row] ?? 0 }), [cells]);
    if (across === null || up === null) return <p class="state empty">There are no numbers in {across === null ? x.name : y.name}.</p>;
    const every = Math.max(1, Math.ceil(model.columns / 8));
    const tickBins = Array.from({ length: model.columns }, (_, index) => index).filter((index) => index % every === 0);
    return (
        <HeatMap label={`${weight === null ? "Rows" : weight.name} by ${x.name} (across) and ${y.name} (up)`} model={model} height={HEIGHT} tickAt="middle"
            columnText={(column, last) => `${x.name} ${column === last ? rangeText(across, column, x) : `${spell(x, across.edges[column] ?? 0)} to ${spell(x, across.edges[last + 1] ?? 0)}`}`}
            rowText={(row) => `${y.name} ${rangeText(up, row, y)}`} yTitle={y.name} rowTick={(row) => spell(y, up.edges[row] ?? 0).replace(/\.0 /, " ")}
            xTicks={tickBins.map((bin) => ({ at: bin, text: spell(x, across.edges[bin] ?? 0).replace(/\.0 /, " ") }))}
            spell={(value) => (weight === null ? format.count(value) : spell(weight, value))} />
    );
}
