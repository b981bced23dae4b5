// SPDX-License-Identifier: MIT
// flamepaint.ts: paints the boxes of a flame graph on a canvas: colours, labels, the outline of what is chosen, the
// small map of a deep graph. Called by flame.ts, which says what is seen and where.

import { type CallTree, fnv } from "./calltree";
import { type Colour, mix, parseColour } from "./canvas";
import { formsOf, Ruler } from "./elide";
import type { Boxes } from "./flamelayout";

export const ROW = 20; // pixels from one row to the next
const LABEL_LEAST = 28; // narrower boxes have no label
const PADDING = 5;
const FADED = 0.35; // what is not looked for

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
    /** The graph has the keyboard: then the root is outlined, too, where it is chosen. */
    focused: boolean;
}

/** Which boxes are painted, and where: those from first to last - 1. */
interface Scene {
    context: CanvasRenderingContext2D;
    boxes: Boxes;
    first: number;
    last: number;
    rows: Int32Array; // of first and those behind it
    yOf: (row: number) => number; // the upper edge of a row on the canvas
    marks: FlameMarks;
}

interface Palette {
    /** By kind, then shade. */
    fills: string[][];
    less: string[];
    more: string[];
    same: string;
    strip: string;
    hit: string;
    /** By fill: what is legible on it. */
    inks: Map<string, string>;
    /** On what is faded since something else is looked for. */
    fadedInk: string;
    outline: string;
    veil: string;
    font: string;
}

const SHADES = 3;
const STEPS = 4;
const DARK_INK = "#10151c", LIGHT_INK = "#f2f5f9";

/** As WCAG has it, from 0 to 1. */
function luminance(colour: string): number {
    const [r, g, b] = parseColour(colour).map((part) => {
        const share = part / 255;
        return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    }) as Colour;
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
function inkOn(fill: string): string {
    const light = luminance(fill);
    const contrast = (ink: string): number => {
        const other = luminance(ink);
        return (Math.max(light, other) + 0.05) / (Math.min(light, other) + 0.05);
    };
    return contrast(DARK_INK) >= contrast(LIGHT_INK) ? DARK_INK : LIGHT_INK;
}

function readPalette(host: Element): Palette {
    const style = getComputedStyle(host);
    const read = (name: string): string => style.getPropertyValue("--" + name).trim();
    const surface = read("surface"), same = read("surface-3");
    // Neighbours of one kind differ a little, so that they can be told apart; on dark pages all are dark enough for light ink.
    const shares = luminance(surface) > 0.4 ? [0.42, 0.3, 0.18] : [0.56, 0.48, 0.4];
    const shades = (name: string): string[] => shares.map((share) => mix(read(name), surface, share));
    const steps = (name: string): string[] =>
        Array.from({ length: STEPS }, (_, i) => mix(same, read(name), 0.12 + 0.6 * (i + 1) / STEPS));
    const palette: Palette = {
        fills: [...["own", "library", "system"].map(shades), [same, same, same]],
        less: steps("less"), more: steps("more"), same,
        strip: mix(same, surface, 0.4), hit: read("flame-hit"), inks: new Map(),
        fadedInk: read("text-2"), outline: read("flame-outline"), veil: read("flame-veil"), font: read("font") || "sans-serif",
    };
    for (const fill of [...palette.fills.flat(), ...palette.less, ...palette.more, palette.strip, palette.hit]) {
        palette.inks.set(fill, inkOn(fill));
    }
    return palette;
}

/** Which of its kind's shades a name has. */
function shadeOf(name: string): number {
    const value = fnv(name, 2166136261);
    return ((value ^ (value >>> 13)) >>> 0) % SHADES;
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
        this.shades = Uint8Array.from(model.names, shadeOf);
    }

    private fillOf(node: number): string {
        const { tree, kinds, change } = this.model!;
        if (node < 0) return this.palette.strip;
        const frame = tree.frame[node]!;
        if (change !== null) {
            const share = change(node);
            const step = Math.ceil(Math.min(Math.abs(share), 1) * STEPS) - 1;
            return Math.abs(share) < 0.005 ? this.palette.same : (share < 0 ? this.palette.less : this.palette.more)[step]!;
        }
        return frame < 0 ? this.palette.fills[WHOLE]![1]! : this.palette.fills[kinds[frame]!]![this.shades[frame]!]!;
    }

    /** With what was found in its own colour. */
    private shownFill(node: number, marks: FlameMarks): string {
        return marks.hit !== null && node > 0 && marks.hit[node] === 1 ? this.palette.hit : this.fillOf(node);
    }

    private sceneOf(context: CanvasRenderingContext2D, boxes: Boxes, from: number, to: number, yOf: Scene["yOf"], marks: FlameMarks): Scene {
        const first = boxes.row[from]!, last = boxes.row[to]!;
        const rows = new Int32Array(last - first);
        for (let row = from; row < to; row++) rows.fill(row, boxes.row[row]! - first, boxes.row[row + 1]! - first);
        return { context, boxes, first, last, rows, yOf, marks };
    }

    /** Boxes of one colour after each other: changing the colour costs more than a box. */
    private paintBoxes({ context, boxes, first, last, marks }: Scene, paint: (at: number, isHit: boolean) => void): void {
        const fills = new Map<string, number[]>();
        for (let at = first; at < last; at++) {
            const fill = this.shownFill(boxes.node[at]!, marks);
            const list = fills.get(fill);
            if (list === undefined) fills.set(fill, [at]);
            else list.push(at);
        }
        for (const [fill, list] of fills) {
            const isHit = fill === this.palette.hit;
            context.fillStyle = fill;
            context.globalAlpha = marks.hit !== null && !isHit ? FADED : 1;
            for (const at of list) paint(at, isHit);
        }
        context.globalAlpha = 1;
    }

    /** Rows from .. to - 1 of the boxes are painted. */
    paint(context: CanvasRenderingContext2D, boxes: Boxes, from: number, to: number, yOf: Scene["yOf"], marks: FlameMarks): void {
        const scene = this.sceneOf(context, boxes, from, to, yOf, marks);
        const ratio = context.getTransform().a;
        const snap = (value: number): number => Math.round(value * ratio) / ratio;
        this.paintBoxes(scene, (at) => {
            const x = snap(boxes.x[at]!), end = snap(boxes.x[at]! + boxes.width[at]!);
            context.fillRect(x, yOf(scene.rows[at - scene.first]!), Math.max(end - x - (end - x > 2.5 ? 1 : 0), 1 / ratio), ROW - 1);
        });
        this.paintLabels(scene);
        this.paintMarks(scene);
    }

    private rulerFor(context: CanvasRenderingContext2D): Ruler {
        context.font = `12px ${this.palette.font}`;
        context.textBaseline = "middle";
        this.ruler ??= new Ruler((text) => context.measureText(text).width);
        return this.ruler;
    }

    private formsOf(node: number): string[] {
        const frame = this.model!.tree.frame[node]!;
        return frame < 0 ? [this.model!.title] : this.forms[frame] ??= formsOf(this.model!.names[frame]!);
    }

    private paintLabels({ context, boxes, first, last, rows, yOf, marks }: Scene): void {
        const ruler = this.rulerFor(context);
        for (let at = first; at < last; at++) {
            const node = boxes.node[at]!;
            if (node < 0 || boxes.width[at]! < LABEL_LEAST) continue;
            const room = boxes.width[at]! - 2 * PADDING;
            const label = ruler.fit(this.formsOf(node), room);
            if (label === "") continue;
            const faded = marks.hit !== null && marks.hit[node] !== 1;
            const x = boxes.x[at]! + PADDING, y = yOf(rows[at - first]!) + ROW / 2;
            context.fillStyle = faded ? this.palette.fadedInk : this.palette.inks.get(this.shownFill(node, marks))!;
            context.fillText(label, x, y);
            const behind = x + ruler.width(label) + 10, end = x + room;
            if (end - behind < 40) continue;
            const figure = this.model!.figure(node);
            if (behind + ruler.width(figure) > end) continue;
            context.globalAlpha = 0.78;
            context.fillText(figure, behind, y);
            context.globalAlpha = 1;
        }
    }

    private paintMarks({ context, boxes, first, last, rows, yOf, marks }: Scene): void {
        const { frame } = this.model!.tree;
        const chosenFrame = marks.chosen > 0 ? frame[marks.chosen]! : -2;
        for (let at = first; at < last; at++) {
            const node = boxes.node[at]!;
            if (node < 0) continue;
            const x = boxes.x[at]!, y = yOf(rows[at - first]!), width = Math.max(boxes.width[at]! - 1, 1);
            if (node === marks.chosen && (node > 0 || marks.focused)) {
                context.strokeStyle = this.palette.outline;
                context.lineWidth = 2;
                context.strokeRect(x + 1, y + 1, Math.max(width - 2, 1), ROW - 3);
            } else if (frame[node] === chosenFrame) {
                context.fillStyle = this.palette.outline; // the same function elsewhere
                context.fillRect(x, y + ROW - 3, width, 2);
            }
            if (node === marks.hover) {
                context.fillStyle = this.palette.inks.get(this.fillOf(node))!;
                context.globalAlpha = 0.14;
                context.fillRect(x, y, width, ROW - 1);
                context.globalAlpha = 1;
            }
        }
    }

    /** The whole graph on a narrow strip: what is found is at least two pixels wide and high. */
    paintMap(context: CanvasRenderingContext2D, boxes: Boxes, yOf: Scene["yOf"], rowHeight: number, marks: FlameMarks): void {
        const scene = this.sceneOf(context, boxes, 0, boxes.rows, yOf, marks);
        this.paintBoxes(scene, (at, isHit) => {
            const least = isHit ? 2 : 0;
            context.fillRect(boxes.x[at]!, yOf(scene.rows[at]!), Math.max(boxes.width[at]!, least), Math.max(rowHeight, 1, least));
        });
    }

    get veil(): string {
        return this.palette.veil;
    }
}
