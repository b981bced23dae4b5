// SPDX-License-Identifier: MIT
// flamelayout.ts: which boxes of a flame graph can be seen, and where; and what lies under a point. Work is
// proportional to the boxes that are seen, not to the tree. Called by flame.ts. Knows no canvas.

import type { CallTree } from "./calltree";
import { firstWhere } from "./canvas";

/** What is looked at: this part of the root's weight, on so many pixels. */
export interface FlameWindow {
    left: number;
    width: number;
    pixels: number;
    /** Boxes narrower than this are one strip together. */
    least: number;
    /** Rows below this are not asked for. */
    rows: number;
}

/** Boxes by row: those of row r are row[r] .. row[r + 1] - 1. node < 0: calls too narrow, of node -1 - node. */
export class Boxes {
    node = new Int32Array(1024);
    x = new Float32Array(1024);
    width = new Float32Array(1024);
    count = 0;
    row: number[] = [];

    clear(): void {
        this.count = 0;
        this.row.length = 0;
    }

    push(node: number, x: number, width: number): void {
        if (this.count === this.node.length) this.grow();
        this.node[this.count] = node;
        this.x[this.count] = x;
        this.width[this.count] = width;
        this.count++;
    }

    get rows(): number {
        return this.row.length - 1;
    }

    private grow(): void {
        const wider = <T extends Int32Array | Float32Array>(from: T, to: T): T => {
            to.set(from);
            return to;
        };
        this.node = wider(this.node, new Int32Array(2 * this.count));
        this.x = wider(this.x, new Float32Array(2 * this.count));
        this.width = wider(this.width, new Float32Array(2 * this.count));
    }
}

/** The calls of one box. They are sorted by weight: after the first narrow one all are narrow. */
function layCalls(tree: CallTree, caller: number, window: FlameWindow, boxes: Boxes): void {
    const from = tree.first[caller]!, to = tree.first[caller + 1]!;
    if (from === to) return;
    const scale = window.pixels / window.width;
    const right = window.left + window.width;
    const first = firstWhere(from, to, (call) => tree.left[call]! + tree.weight[call]! > window.left);
    for (let call = first; call < to; call++) {
        const left = tree.left[call]!, weight = tree.weight[call]!;
        if (left >= right) return;
        if (weight * scale < window.least) {
            const end = tree.left[to - 1]! + tree.weight[to - 1]!;
            const x = Math.max((left - window.left) * scale, 0);
            const strip = Math.min((end - window.left) * scale, window.pixels) - x;
            if (strip >= window.least) boxes.push(-1 - caller, x, strip);
            return;
        }
        const x = Math.max((left - window.left) * scale, 0);
        boxes.push(call, x, Math.min((left + weight - window.left) * scale, window.pixels) - x);
    }
}

/** All that can be seen, row by row from the root. */
export function layBoxes(tree: CallTree, window: FlameWindow, boxes: Boxes): void {
    boxes.clear();
    boxes.row.push(0);
    if (tree.size === 0 || !(window.width > 0)) return;
    boxes.push(0, 0, window.pixels);
    boxes.row.push(1);
    for (let row = 1; row < window.rows; row++) {
        const from = boxes.row[row - 1]!, to = boxes.row[row]!;
        for (let at = from; at < to; at++) {
            const caller = boxes.node[at]!;
            if (caller >= 0) layCalls(tree, caller, window, boxes);
        }
        if (boxes.count === to) return;
        boxes.row.push(boxes.count);
    }
}

/** The index of the box at a pixel of a row; -1: none is there. */
export function boxAt(boxes: Boxes, row: number, x: number): number {
    if (row < 0 || row >= boxes.rows) return -1;
    const end = boxes.row[row + 1]!;
    const found = firstWhere(boxes.row[row]!, end, (box) => boxes.x[box]! + boxes.width[box]! > x);
    return found < end && boxes.x[found]! <= x ? found : -1;
}
