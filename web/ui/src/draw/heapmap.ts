// SPDX-License-Identifier: MIT
// heapmap.ts: the heap as a map of addresses: each region of it a heading and a strip of cells in rows, from left to right
// and top to bottom; the shade of a cell says how much of it is in use. components/HeapMap.tsx makes a figure of it.
//
// Addresses are bigints: they have up to 64 bits. A cell is `step` bytes; the last one of a region may be cut.
import { firstWhere } from "./canvas";

export interface HeapRegion {
    start: bigint;
    end: bigint;
    name: string;
    cells: readonly number[]; // 0: nothing is in use, 255: all
    live: number | undefined; // bytes, where they are known
    blocks: number | undefined;
}
export interface HeapModel {
    regions: readonly HeapRegion[];
    step: number;
}
export interface Strip {
    region: HeapRegion;
    top: number; // of its heading
    rows: number;
}
export interface HeapLayout {
    strips: readonly Strip[];
    perRow: number;
    height: number;
    model: HeapModel;
}
export interface CellPlace {
    strip: number;
    cell: number;
}

export const CELL = 9; // pixels from one cell to the next
export const HEAD = 22;
const APART = 10;

export function layoutHeap(model: HeapModel, width: number): HeapLayout {
    const perRow = Math.max(1, Math.floor(width / CELL));
    let top = 0;
    const strips = model.regions.map((region) => {
        const strip = { region, top, rows: Math.max(1, Math.ceil(region.cells.length / perRow)) };
        top += HEAD + strip.rows * CELL + APART;
        return strip;
    });
    return { strips, perRow, height: Math.max(0, top - APART), model };
}

/** The first strip that ends below y. */
export function stripBelow(layout: HeapLayout, y: number): number {
    const { strips } = layout;
    return firstWhere(0, strips.length, (index) => strips[index]!.top + HEAD + strips[index]!.rows * CELL > y);
}

export function cellAtPoint(layout: HeapLayout, x: number, y: number): CellPlace | null {
    const index = stripBelow(layout, y);
    const strip = layout.strips[index];
    if (strip === undefined || y < strip.top + HEAD || x < 0) return null;
    const column = Math.floor(x / CELL);
    const cell = Math.floor((y - strip.top - HEAD) / CELL) * layout.perRow + column;
    return column >= layout.perRow || cell >= strip.region.cells.length ? null : { strip: index, cell };
}

/** The upper left corner of a cell. */
export function cellCorner(layout: HeapLayout, at: CellPlace): { x: number; y: number } {
    const top = (layout.strips[at.strip]?.top ?? 0) + HEAD;
    return { x: (at.cell % layout.perRow) * CELL, y: top + Math.floor(at.cell / layout.perRow) * CELL };
}

/** One cell or row further; from the end of a strip into the next one. */
export function moveCell(layout: HeapLayout, at: CellPlace, columns: number, rows: number): CellPlace {
    const cell = at.cell + columns + rows * layout.perRow;
    const count = layout.strips[at.strip]?.region.cells.length ?? 0;
    if (cell >= 0 && cell < count) return { strip: at.strip, cell };
    const next = at.strip + (cell < 0 ? -1 : 1);
    const other = layout.strips[next];
    if (other === undefined) return { strip: at.strip, cell: cell < 0 ? 0 : Math.max(0, count - 1) };
    if (rows === 0) return { strip: next, cell: cell < 0 ? other.region.cells.length - 1 : 0 };
    const column = at.cell % layout.perRow;
    const row = cell < 0 ? other.rows - 1 : 0;
    return { strip: next, cell: Math.min(other.region.cells.length - 1, row * layout.perRow + column) };
}

/** Addresses of a cell, the end not included. */
export function cellRange(model: HeapModel, region: HeapRegion, cell: number): { start: bigint; end: bigint } {
    const start = region.start + BigInt(cell) * BigInt(model.step);
    const end = start + BigInt(model.step);
    return { start, end: end < region.end ? end : region.end };
}

/** The cell that an address lies in. null: none does. */
export function placeOf(model: HeapModel, address: bigint): CellPlace | null {
    const strip = model.regions.findIndex((region) => region.start <= address && address < region.end);
    const region = model.regions[strip];
    if (region === undefined) return null;
    return { strip, cell: Math.min(region.cells.length - 1, Number((address - region.start) / BigInt(model.step))) };
}

/** The same with smaller cells, as many as `most`: a coarse map then looks like the exact one. */
export function refined(model: HeapModel, most: number): HeapModel {
    const cells = model.regions.reduce((sum, region) => sum + region.cells.length, 0);
    let parts = 1;
    while (cells * parts * 2 <= most && model.step / (parts * 2) >= 4096) parts *= 2;
    if (parts === 1) return model;
    const step = model.step / parts;
    return {
        step,
        regions: model.regions.map((region) => {
            const count = Number((region.end - region.start + BigInt(step) - 1n) / BigInt(step));
            return { ...region, cells: Array.from({ length: count }, (_, index) => region.cells[Math.floor(index / parts)] ?? 0) };
        }),
    };
}

export const hex = (address: bigint): string => "0x" + address.toString(16);
/** "0x1000..0x1fff": as a value of the filter address, both ends included. */
export const addressRange = (range: { start: bigint; end: bigint }): string => `${hex(range.start)}..${hex(range.end - 1n)}`;

/** What to show instead for a closer or wider look around a cell: a power of four times as much. null: all of it. */
export function zoomed(model: HeapModel, address: bigint, factor: 4 | 0.25): { start: bigint; end: bigint } | null {
    const first = model.regions[0];
    const last = model.regions.at(-1);
    if (first === undefined || last === undefined) return null;
    const cells = model.regions.reduce((sum, region) => sum + region.cells.length, 0);
    const bytes = BigInt(Math.max(16, Math.round(cells / factor))) * BigInt(model.step);
    const region = model.regions.find((one) => one.start <= address && address < one.end) ?? first;
    if (factor === 0.25 && bytes >= last.end - first.start) return null;
    let start = address - bytes / 2n;
    if (factor === 4 && start < region.start) start = region.start;
    if (start < 0n) start = 0n;
    start -= start % 4096n;
    return { start, end: start + bytes };
}

/* ---- Painting ---- */

export interface HeapColours {
    levels: readonly string[]; // from empty to full: first of nothing, then at least one
    text: string;
    muted: string;
    outline: string;
    cursor: string;
    font: string;
}

export function levelColour(colours: HeapColours, level: number): string {
    const last = colours.levels.length - 1;
    return colours.levels[level <= 0 ? 0 : 1 + Math.min(last - 1, Math.floor((level / 256) * last))] ?? "#888888";
}

/** What of the layout is seen from `scroll` on. title: what stands above a strip, and beside it. */
export function paintHeap(
    ctx: CanvasRenderingContext2D, layout: HeapLayout, scroll: number, height: number, colours: HeapColours,
    title: (region: HeapRegion) => readonly [string, string], marks: { chosen: CellPlace | null; cursor: CellPlace | null },
): void {
    ctx.textBaseline = "middle";
    for (let index = stripBelow(layout, scroll); index < layout.strips.length; index++) {
        const strip = layout.strips[index];
        if (strip === undefined || strip.top >= scroll + height) break;
        paintTitle(ctx, strip, scroll, colours, title(strip.region));
        paintCells(ctx, layout, strip, scroll, height, colours);
    }
    if (marks.chosen !== null) mark(ctx, layout, marks.chosen, scroll, colours.outline, 2);
    if (marks.cursor !== null) mark(ctx, layout, marks.cursor, scroll, colours.cursor, 1.5);
}

function paintTitle(ctx: CanvasRenderingContext2D, strip: Strip, scroll: number, colours: HeapColours, [name, about]: readonly [string, string]): void {
    const y = strip.top - scroll + HEAD / 2;
    ctx.font = `600 ${colours.font}`;
    ctx.fillStyle = colours.text;
    ctx.fillText(name, 0, y);
    const width = ctx.measureText(name).width;
    ctx.font = colours.font;
    ctx.fillStyle = colours.muted;
    ctx.fillText(about, width + 10, y);
}

function paintCells(ctx: CanvasRenderingContext2D, layout: HeapLayout, strip: Strip, scroll: number, height: number, colours: HeapColours): void {
    const { perRow } = layout;
    const { cells } = strip.region;
    const top = strip.top + HEAD - scroll;
    const first = Math.max(0, Math.floor(-top / CELL));
    const last = Math.min(strip.rows, Math.ceil((height - top) / CELL));
    for (let row = first; row < last; row++) {
        const end = Math.min(cells.length, (row + 1) * perRow);
        for (let cell = row * perRow; cell < end; cell++) {
            ctx.fillStyle = levelColour(colours, cells[cell] ?? 0);
            ctx.fillRect((cell - row * perRow) * CELL, top + row * CELL, CELL - 1, CELL - 1);
        }
    }
}

function mark(ctx: CanvasRenderingContext2D, layout: HeapLayout, at: CellPlace, scroll: number, colour: string, width: number): void {
    const { x, y } = cellCorner(layout, at);
    ctx.strokeStyle = colour;
    ctx.lineWidth = width;
    ctx.strokeRect(x - 1, y - scroll - 1, CELL + 1, CELL + 1);
}
