// SPDX-License-Identifier: MIT
// flamepaint.ts: paints the boxes of a flame graph on a canvas: colours, labels, the outline of what is chosen, the
// small map of a deep graph. Called by flame.ts, which says what is seen and where.

import type { CallTree } from "./calltree";
import { formsOf, Ruler } from "./elide";
import type { Boxes } from "./flamelayout";

export const ROW = 20; // pixels from one row to the next
const LABEL_LEAST = 28; // narrower boxes have no label
const PADDING = 5;

/** What a frame is; the index of its colour. */
export const OWN = 0, LIBRARY = 1, SYSTEM = 2, WHOLE = 3;

/** What is drawn: the tree, and by frame its name, kind and shade. */
export interface FlameModel {
    tree: CallTree;
    names: readonly string[];
    kinds: Uint8Array;
    /** The root's name. */
    title: string;
    /** The number beside a name; of a difference with its sign. */
    figure: (node: number) => string;
    /** -1 (all of it went) to 1 (all of it is new); null: no difference. */
    change: ((node: number) => number) | null;
}

export interface FlameMarks {
    chosen: number;
    hover: number;
    zoom: number;
    hit: Uint8Array | null;
}

interface Palette {
    /** By kind, then shade. */
    fills: string[][];
    less: string[];
    more: string[];
    same: string;
    strip: string;
    ink: string;
    faint: string;
    hit: string;
    hitInk: string;
    outline: string;
    page: string;
    font: string;
}

const SHADES = 3;
const STEPS = 4;

/** "0.86 0.05 70" (lightness, chroma, hue) with the lightness moved. */
function shade(triple: string, lighter: number): string {
    const [l, c, h] = triple.trim().split(/\s+/).map(Number);
    return `oklch(${(l! + lighter).toFixed(3)} ${c} ${h})`;
}

/** From `towards` 0, the colour of no change, to 1, the full one. */
function between(from: string, to: string, share: number): string {
    const a = from.trim().split(/\s+/).map(Number), b = to.trim().split(/\s+/).map(Number);
    const at = (i: number): number => a[i]! + (b[i]! - a[i]!) * share;
    return `oklch(${at(0).toFixed(3)} ${at(1).toFixed(3)} ${b[2]})`;
}

export function readPalette(host: Element): Palette {
    const style = getComputedStyle(host);
    const read = (name: string): string => style.getPropertyValue("--flame-" + name).trim();
    const kinds = ["own", "library", "system", "whole"].map(read);
    const same = read("same");
    const steps = Array.from({ length: STEPS }, (_, i) => (i + 1) / STEPS);
    return {
        fills: kinds.map((kind) => Array.from({ length: SHADES }, (_, i) => shade(kind, (i - 1) * 0.018))),
        less: steps.map((share) => between(same, read("less"), share)),
        more: steps.map((share) => between(same, read("more"), share)),
        same: shade(same, 0),
        strip: shade(read("strip"), 0),
        ink: read("ink"), faint: read("ink-faint"), hit: shade(read("hit"), 0), hitInk: read("hit-ink"),
        outline: read("outline"), page: read("page"),
        font: style.getPropertyValue("font-family") || "sans-serif",
    };
}

function hashOf(text: string): number {
    let value = 2166136261;
    for (let i = 0; i < text.length; i++) {
        value = Math.imul(value ^ text.charCodeAt(i), 16777619);
    }
    return (value ^ (value >>> 13)) >>> 0;
}

export class FlamePainter {
    private palette: Palette;
    private ruler: Ruler | null = null;
    private shades = new Uint8Array(0);
    private forms: (string[] | undefined)[] = [];
    private model: FlameModel | null = null;

    constructor(private readonly host: Element) {
        this.palette = readPalette(host);
    }

    /** After a change of theme or font. */
    restyle(): void {
        this.palette = readPalette(this.host);
        this.ruler = null;
    }

    setModel(model: FlameModel): void {
        this.model = model;
        this.forms = new Array<string[] | undefined>(model.names.length);
        this.shades = Uint8Array.from(model.names, (name) => hashOf(name) % SHADES);
    }

    private fillOf(node: number): string {
        const { tree, kinds, change } = this.model!;
        if (node < 0) {
            return this.palette.strip;
        }
        const frame = tree.frame[node]!;
        if (change !== null) {
            const share = change(node);
            const step = Math.ceil(Math.min(Math.abs(share), 1) * STEPS) - 1;
            return Math.abs(share) < 0.005 ? this.palette.same : (share < 0 ? this.palette.less : this.palette.more)[step]!;
        }
        return frame < 0 ? this.palette.fills[WHOLE]![1]! : this.palette.fills[kinds[frame]!]![this.shades[frame]!]!;
    }

    /** Boxes of one colour after each other: changing the colour costs more than a box. */
    private sortByFill(boxes: Boxes, from: number, to: number, marks: FlameMarks): Map<string, number[]> {
        const fills = new Map<string, number[]>();
        for (let at = from; at < to; at++) {
            const node = boxes.node[at]!;
            const fill = marks.hit !== null && node > 0 && marks.hit[node] === 1 ? this.palette.hit : this.fillOf(node);
            const list = fills.get(fill);
            if (list === undefined) {
                fills.set(fill, [at]);
            } else {
                list.push(at);
            }
        }
        return fills;
    }

    /** yOf: the upper edge of a row on the canvas. Rows from .. to - 1 of the boxes are painted. */
    paint(context: CanvasRenderingContext2D, boxes: Boxes, from: number, to: number, yOf: (row: number) => number,
                marks: FlameMarks): void {
        const first = boxes.row[from]!, last = boxes.row[to]!;
        const rows = this.rowsOf(boxes, from, to);
        const ratio = context.getTransform().a;
        const snap = (value: number): number => Math.round(value * ratio) / ratio;
        for (const [fill, list] of this.sortByFill(boxes, first, last, marks)) {
            context.fillStyle = fill;
            context.globalAlpha = marks.hit !== null && fill !== this.palette.hit ? 0.45 : 1;
            for (const at of list) {
                const x = snap(boxes.x[at]!), end = snap(boxes.x[at]! + boxes.width[at]!);
                context.fillRect(x, yOf(rows[at - first]!), Math.max(end - x - (end - x > 2.5 ? 1 : 0), 1 / ratio), ROW - 1);
            }
        }
        context.globalAlpha = 1;
        this.paintLabels(context, boxes, first, last, rows, yOf, marks);
        this.paintMarks(context, boxes, first, last, rows, yOf, marks);
    }

    private rowsOf(boxes: Boxes, from: number, to: number): Int32Array {
        const first = boxes.row[from]!;
        const rows = new Int32Array(boxes.row[to]! - first);
        for (let row = from; row < to; row++) {
            rows.fill(row, boxes.row[row]! - first, boxes.row[row + 1]! - first);
        }
        return rows;
    }

    private rulerFor(context: CanvasRenderingContext2D): Ruler {
        context.font = `12px ${this.palette.font}`;
        context.textBaseline = "middle";
        this.ruler ??= new Ruler((text) => context.measureText(text).width);
        return this.ruler;
    }

    nameOf(node: number): string {
        const frame = this.model!.tree.frame[node]!;
        return frame < 0 ? this.model!.title : this.model!.names[frame]!;
    }

    private formsOf(node: number): string[] {
        const frame = this.model!.tree.frame[node]!;
        return frame < 0 ? [this.model!.title] : this.forms[frame] ??= formsOf(this.model!.names[frame]!);
    }

    private paintLabels(context: CanvasRenderingContext2D, boxes: Boxes, first: number, last: number, rows: Int32Array,
                      yOf: (row: number) => number, marks: FlameMarks): void {
        const ruler = this.rulerFor(context);
        for (let at = first; at < last; at++) {
            const node = boxes.node[at]!;
            if (node < 0 || boxes.width[at]! < LABEL_LEAST) {
                continue;
            }
            const room = boxes.width[at]! - 2 * PADDING;
            const label = ruler.fit(this.formsOf(node), room);
            if (label === "") {
                continue;
            }
            const isHit = marks.hit !== null && marks.hit[node] === 1;
            const x = boxes.x[at]! + PADDING, y = yOf(rows[at - first]!) + ROW / 2;
            context.globalAlpha = marks.hit !== null && !isHit ? 0.6 : 1;
            context.fillStyle = isHit ? this.palette.hitInk : this.palette.ink;
            context.fillText(label, x, y);
            this.paintFigure(context, ruler, node, x + ruler.width(label) + 10, x + room, y, isHit);
        }
        context.globalAlpha = 1;
    }

    private paintFigure(context: CanvasRenderingContext2D, ruler: Ruler, node: number, x: number, end: number, y: number,
                      isHit: boolean): void {
        if (end - x < 40) {
            return;
        }
        const figure = this.model!.figure(node);
        if (x + ruler.width(figure) <= end) {
            context.fillStyle = isHit ? this.palette.hitInk : this.palette.faint;
            context.fillText(figure, x, y);
        }
    }

    private paintMarks(context: CanvasRenderingContext2D, boxes: Boxes, first: number, last: number, rows: Int32Array,
                     yOf: (row: number) => number, marks: FlameMarks): void {
        const chosenFrame = marks.chosen > 0 ? this.model!.tree.frame[marks.chosen]! : -2;
        for (let at = first; at < last; at++) {
            const node = boxes.node[at]!;
            if (node < 0) {
                continue;
            }
            const x = boxes.x[at]!, y = yOf(rows[at - first]!), width = Math.max(boxes.width[at]! - 1, 1);
            if (node === marks.chosen) {
                context.strokeStyle = this.palette.outline;
                context.lineWidth = 2;
                context.strokeRect(x + 1, y + 1, Math.max(width - 2, 1), ROW - 3);
            } else if (this.model!.tree.frame[node] === chosenFrame) {
                context.fillStyle = this.palette.outline; // the same function elsewhere
                context.fillRect(x, y + ROW - 3, width, 2);
            }
            if (node === marks.hover) {
                context.fillStyle = this.palette.ink;
                context.globalAlpha = 0.12;
                context.fillRect(x, y, width, ROW - 1);
                context.globalAlpha = 1;
            }
        }
    }

    /** The whole graph on a narrow strip: rows become at least a pixel high. */
    paintMap(context: CanvasRenderingContext2D, boxes: Boxes, yOf: (row: number) => number, rowHeight: number,
                      marks: FlameMarks): void {
        const rows = this.rowsOf(boxes, 0, boxes.rows);
        for (const [fill, list] of this.sortByFill(boxes, 0, boxes.count, marks)) {
            context.fillStyle = fill;
            for (const at of list) {
                context.fillRect(boxes.x[at]!, yOf(rows[at]!), boxes.width[at]!, Math.max(rowHeight, 1));
            }
        }
    }
}
