// SPDX-License-Identifier: MIT
// HeatMap.tsx: a heat map as a figure: canvas, axes, legend, a rectangle to be brushed, and a table as its twin.
//
//   <HeatMap label="Blocks freed" model={model} columnText={(column) => "1.2 s to 1.3 s"} rowText={(row) => "4 to 16 ms"}
//       rowTick={(row) => "16 ms"} xTicks={[{ at: 1e9, text: "1 s" }]} spell={format.count} selection={rect} onSelect={setRect} />
//
// - Dragging chooses a rectangle of cells, a click one cell; onSelect(null): Escape.
// - By keyboard: arrows walk (Shift: extend the rectangle), Enter chooses, `t` shows the table. What lies under the
//   cursor is told to screen readers.
// - xTicks stand at values of the model's edges.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { fitCanvas } from "../draw/canvas";
import { cellAt, columnLeft, largest, paintHeat, rectBox, rectOf, rowTop, SHADES, sumOf, type HeatBox, type HeatCell, type HeatModel, type HeatRect } from "../draw/heat";
import { shownTheme } from "../settings";
import { ChartFigure, colourOf, heatColours } from "./Chart";
import { hasModifier, takeStep, useSize } from "./hooks";

interface HeatMapProps {
    label: string;
    model: HeatModel;
    columnText: (column: number, last: number) => string; // of one, or of several together
    rowText: (row: number) => string;
    rowTick: (row: number) => string; // of its upper border, or of the row itself (tickAt "middle")
    tickAt?: "border" | "middle";
    xTicks: readonly { at: number; text: string }[];
    yTitle: string;
    spell: (value: number) => string;
    height: number;
    selection?: HeatRect | null;
    onSelect?: (rect: HeatRect | null) => void;
}

const LEFT = 74;
const BOTTOM = 20;
const TOP = 6;
const RIGHT = 10;

export function HeatMap(props: HeatMapProps) {
    const { label, model, height, spell, onSelect } = props;
    const { ref, width } = useSize<HTMLDivElement>();
    const canvas = useRef<HTMLCanvasElement>(null);
    const [isTwin, setTwin] = useState(false);
    const [hover, setHover] = useState<HeatCell | null>(null);
    const [cursor, setCursor] = useState<HeatCell | null>(null);
    const [drag, setDrag] = useState<{ from: HeatCell; to: HeatCell } | null>(null);
    const most = useMemo(() => largest(model), [model]);
    const box: HeatBox = { left: LEFT, top: TOP, width: Math.max(1, width - LEFT - RIGHT), height: Math.max(1, height - TOP - BOTTOM) };
    const rect = drag !== null ? rectOf(drag.from, drag.to) : (props.selection ?? null);

    useLayoutEffect(() => {
        if (canvas.current !== null && width > 0) paint(canvas.current, props, box, width, height, most, rect, hover ?? cursor);
    }, [model, width, height, most, rect?.from.column, rect?.from.row, rect?.to.column, rect?.to.row, hover, cursor, shownTheme.value, isTwin]);

    const place = (event: PointerEvent): HeatCell | null => {
        const bounds = canvas.current?.getBoundingClientRect();
        return bounds === undefined ? null : cellAt(model, box, event.clientX - bounds.left, event.clientY - bounds.top);
    };
    const from = useRef<HeatCell | null>(null);
    const walk = (across: number, up: number, extend: boolean) => {
        const now = cursor ?? { column: -Math.min(0, across) * (model.columns - 1), row: 0 };
        const to = cursor === null ? now : {
            column: Math.max(0, Math.min(model.columns - 1, now.column + across)), row: Math.max(0, Math.min(model.rows - 1, now.row + up)),
        };
        setDrag(extend ? { from: drag?.from ?? now, to } : null);
        setCursor(to);
    };
    const select = (wanted: HeatRect | null) => {
        setDrag(null);
        onSelect?.(wanted);
    };
    const key = (event: KeyboardEvent) => {
        const extend = event.shiftKey;
        if (!hasModifier(event)) takeStep(event, {
            ArrowLeft: () => walk(-1, 0, extend), ArrowRight: () => walk(1, 0, extend), ArrowUp: () => walk(0, 1, extend), ArrowDown: () => walk(0, -1, extend),
            Enter: cursor !== null && (() => select(drag !== null ? rectOf(drag.from, drag.to) : rectOf(cursor, cursor))),
            Escape: (drag !== null || (props.selection ?? null) !== null) && (() => select(null)),
            t: () => setTwin(true),
        });
    };
    useEffect(() => setCursor(null), [model]);

    const at = hover ?? cursor;
    const told = rect !== null && (drag !== null) && (rect.from.column !== rect.to.column || rect.from.row !== rect.to.row)
        ? `${spell(sumOf(model, rect))} in ${(rect.to.column - rect.from.column + 1) * (rect.to.row - rect.from.row + 1)} cells`
        : at !== null && at.column < model.columns && at.row < model.rows ? `${props.columnText(at.column, at.column)}, ${props.rowText(at.row)}: ${spell(model.value(at.column, at.row))}` : "";
    return (
        <ChartFigure label={label} kind="heat" at={told} isTwin={isTwin} setTwin={setTwin} legend={<HeatLegend most={most} spell={spell} />} twin={() => twinOf(props)}>
            <div ref={ref} class={`plot heat-plot${onSelect === undefined ? "" : " brushed"}`} style={{ height: `${height}px` }} tabIndex={0} role="application"
                aria-roledescription="heat map" aria-label={`${label}: arrows walk, Shift and arrows choose several cells, Enter takes them, t shows a table`}
                onKeyDown={key} onBlur={() => setCursor(null)}>
                <canvas ref={canvas} aria-hidden="true" onPointerLeave={() => setHover(null)}
                    onPointerDown={(event) => {
                        const cell = place(event);
                        if (event.button !== 0 || onSelect === undefined || cell === null) return;
                        event.currentTarget.setPointerCapture(event.pointerId);
                        from.current = cell;
                        setDrag({ from: cell, to: cell });
                    }}
                    onPointerMove={(event) => {
                        const cell = place(event);
                        setHover(cell);
                        if (from.current !== null && cell !== null) setDrag({ from: from.current, to: cell });
                    }}
                    onPointerUp={(event) => {
                        const cell = place(event);
                        if (from.current !== null && cell !== null) onSelect?.(rectOf(from.current, cell));
                        from.current = null;
                        setDrag(null);
                    }}
                    onPointerCancel={() => {
                        from.current = null;
                        setDrag(null);
                    }} />
                <span class="hidden" role="status">{cursor === null ? "" : told}</span>
            </div>
        </ChartFigure>
    );
}

/* How many a shade stands for. */
function HeatLegend({ most, spell }: { most: number; spell: (value: number) => string }) {
    return (
        <span class="heat-legend">
            <span class="number">1</span>
            <span class="heat-ramp" aria-hidden="true" />
            <span class="number">{spell(most)}</span>
        </span>
    );
}

function paint(
    canvas: HTMLCanvasElement, props: HeatMapProps, box: HeatBox, width: number, height: number, most: number,
    rect: HeatRect | null, at: HeatCell | null,
): void {
    const { model } = props;
    const ctx = fitCanvas(canvas, width, height);
    if (ctx === null || model.columns === 0 || model.rows === 0) return;
    paintHeat(ctx, model, box, heatColours(SHADES), most);
    paintAxes(ctx, props, box);
    if (at !== null) outline(ctx, rectBox(model, box, rectOf(at, at)), colourOf("--text-2"), 1);
    if (rect !== null) outline(ctx, rectBox(model, box, rect), colourOf("--accent"), 2);
}
function outline(ctx: CanvasRenderingContext2D, box: HeatBox, colour: string, width: number): void {
    ctx.strokeStyle = colour;
    ctx.lineWidth = width;
    ctx.strokeRect(box.left + 0.5, box.top + 0.5, Math.max(1, box.width - 1), Math.max(1, box.height - 1));
}

function paintAxes(ctx: CanvasRenderingContext2D, props: HeatMapProps, box: HeatBox): void {
    const { model, rowTick, xTicks } = props;
    ctx.font = `11px ${colourOf("--font")}`;
    ctx.fillStyle = colourOf("--text-2");
    ctx.strokeStyle = colourOf("--line");
    ctx.textBaseline = "middle";
    ctx.textAlign = "right";
    const tall = box.height / model.rows;
    const every = Math.max(1, Math.ceil(13 / tall));
    for (let row = 0; row < model.rows; row += every) {
        const y = rowTop(model, box, row) + (props.tickAt === "middle" ? tall / 2 : 0);
        ctx.fillText(rowTick(row), box.left - 6, Math.max(y, 7));
    }
    ctx.textAlign = "center";
    const edges = model.edges;
    const first = edges?.[0] ?? 0;
    const span = (edges?.[model.columns] ?? model.columns) - first;
    for (const tick of xTicks) {
        const x = edges === undefined ? columnLeft(model, box, tick.at) + box.width / model.columns / 2 : box.left + ((tick.at - first) / span) * box.width;
        if (x < box.left - 1 || x > box.left + box.width + 1) continue;
        const half = ctx.measureText(tick.text).width / 2;
        ctx.fillText(tick.text, Math.min(x, box.left + box.width + RIGHT - half), box.top + box.height + 11);
    }
}

/* At most so many columns: a reader of a table wants its shape. Neighbours are added up. */
const TWIN_COLUMNS = 16;

function twinOf({ model, columnText, rowText, spell, yTitle }: HeatMapProps) {
    const each = Math.max(1, Math.ceil(model.columns / TWIN_COLUMNS));
    const groups = Array.from({ length: Math.ceil(model.columns / each) }, (_, index) => [index * each, Math.min(model.columns, (index + 1) * each) - 1] as const);
    const rows = Array.from({ length: model.rows }, (_, index) => model.rows - 1 - index);
    return {
        head: [yTitle, ...groups.map(([from, to]) => columnText(from, to))],
        rows: rows.map((row) => [rowText(row), ...groups.map(([from, to]) => spell(sumOf(model, { from: { column: from, row }, to: { column: to, row } })))]),
    };
}
