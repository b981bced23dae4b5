// SPDX-License-Identifier: MIT
// heat.ts: heat maps: a matrix of numbers as shades on a canvas (lifetimes, sizes over time, SQL). Which cell lies where,
// which shade a number has, which rectangle two cells span; components/HeatMap.tsx makes a figure of it.
//
// Row 0 is at the bottom, as on an axis. Columns are as wide as what they stand for: `edges` are their borders, as
// many as columns and one more. Shades go by the logarithm: 1 is seen beside 1,000,000.
import { firstWhere } from "./canvas";

export interface HeatModel {
    columns: number;
    rows: number;
    value: (column: number, row: number) => number;
    edges?: ArrayLike<number>;
}
export interface HeatCell {
    column: number;
    row: number;
}
/** Both ends belong to it. */
export interface HeatRect {
    from: HeatCell;
    to: HeatCell;
}
export interface HeatBox {
    left: number;
    top: number;
    width: number;
    height: number;
}

export const SHADES = 32;

/** 0: nothing; else 1 to SHADES. */
export function shadeOf(value: number, most: number): number {
    if (!(value > 0) || !(most > 0)) return 0;
    if (most <= 1) return SHADES;
    const share = Math.log1p(Math.min(value, most)) / Math.log1p(most);
    return Math.max(1, Math.ceil(share * SHADES));
}

export function largest(model: HeatModel): number {
    let most = 0;
    for (let column = 0; column < model.columns; column++) {
        for (let row = 0; row < model.rows; row++) most = Math.max(most, model.value(column, row));
    }
    return most;
}

export function rectOf(a: HeatCell, b: HeatCell): HeatRect {
    return {
        from: { column: Math.min(a.column, b.column), row: Math.min(a.row, b.row) },
        to: { column: Math.max(a.column, b.column), row: Math.max(a.row, b.row) },
    };
}
export function sumOf(model: HeatModel, rect: HeatRect): number {
    let sum = 0;
    for (let column = rect.from.column; column <= rect.to.column; column++) {
        for (let row = rect.from.row; row <= rect.to.row; row++) sum += model.value(column, row);
    }
    return sum;
}

/* ---- Places ---- */

/** Where a column begins, in pixels from the left of the box; of `columns` itself: where the last one ends. */
export function columnLeft(model: HeatModel, box: HeatBox, column: number): number {
    const { edges, columns } = model;
    if (edges === undefined) return box.left + (box.width * column) / columns;
    const first = edges[0] ?? 0;
    const span = (edges[columns] ?? 1) - first;
    return box.left + (span > 0 ? (box.width * ((edges[column] ?? first) - first)) / span : 0);
}
/** Where a row begins, from the top of the box: its upper border. */
export const rowTop = (model: HeatModel, box: HeatBox, row: number): number =>
    box.top + (box.height * (model.rows - 1 - row)) / model.rows;

/** The cell at a place; places outside belong to the nearest one. null: there are none. */
export function cellAt(model: HeatModel, box: HeatBox, x: number, y: number): HeatCell | null {
    if (model.columns === 0 || model.rows === 0) return null;
    const column = firstWhere(1, model.columns, (one) => columnLeft(model, box, one) > x) - 1;
    const row = model.rows - 1 - Math.floor(((y - box.top) / box.height) * model.rows);
    return { column, row: Math.max(0, Math.min(model.rows - 1, row)) };
}

/** Numbers between which an axis is easily read: 1, 2 or 5 times a power of ten apart. */
export function ticks(from: number, to: number, most: number): number[] {
    const rough = (to - from) / Math.max(1, most);
    if (!(rough > 0)) return [];
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough * (1 - 1e-9)) ?? 10 * power;
    const found: number[] = [];
    for (let number = Math.ceil(from / step - 1e-9) + 0; number * step <= to * (1 + 1e-12); number++) found.push(number * step);
    return found;
}

/* ---- Painting ---- */

/** colours: SHADES and one more, the first for nothing. Pixels are of the canvas's context, already scaled. */
export function paintHeat(ctx: CanvasRenderingContext2D, model: HeatModel, box: HeatBox, colours: readonly string[], most: number): void {
    ctx.fillStyle = colours[0] ?? "#888888";
    ctx.fillRect(box.left, box.top, box.width, box.height);
    const tall = box.height / model.rows;
    const gapY = tall > 6 ? 1 : 0;
    for (let column = 0; column < model.columns; column++) {
        const left = columnLeft(model, box, column);
        const width = columnLeft(model, box, column + 1) - left;
        const gapX = width > 6 ? 1 : 0;
        for (let row = 0; row < model.rows; row++) {
            const shade = shadeOf(model.value(column, row), most);
            if (shade === 0) continue;
            ctx.fillStyle = colours[shade] ?? "#888888";
            ctx.fillRect(left, rowTop(model, box, row), Math.max(0.5, width - gapX), Math.max(0.5, tall - gapY));
        }
    }
}

/** The borders of a rectangle of cells. */
export function rectBox(model: HeatModel, box: HeatBox, rect: HeatRect): HeatBox {
    const left = columnLeft(model, box, rect.from.column);
    const top = rowTop(model, box, rect.to.row);
    return {
        left, top,
        width: columnLeft(model, box, rect.to.column + 1) - left,
        height: rowTop(model, box, rect.from.row) + box.height / model.rows - top,
    };
}
