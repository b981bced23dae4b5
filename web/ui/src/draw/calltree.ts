// SPDX-License-Identifier: MIT
// calltree.ts: a tree of calls as columns, ordered so that it can be drawn and searched quickly, and what may be
// done to it: merging, hiding, collapsing. Called by the flame graph, the call tree and the sandwich. Knows no page.

/** What /tree answers: parents precede their calls, node 0 is the root and has frame -1. */
export interface TreeColumns {
    parent: ArrayLike<number>;
    frame: ArrayLike<number>;
    main: ArrayLike<number>;
    side: ArrayLike<number>;
    self: ArrayLike<number>;
    base?: ArrayLike<number> | undefined;
}

/** How wide a call is drawn: by what it costs after, before, or both. Only differences have the last two. */
export type Weight = "main" | "base" | "both";

/**
  * The same tree, breadth first, the widest call of each caller first:
  *   the calls of i are first[i] .. first[i + 1] - 1, and parent[i] < i;
  *   the calls of depth d are level[d] .. level[d + 1] - 1, and left[] rises within them;
  *   left[i] .. left[i] + weight[i] lies within that of parent[i].
  */
export interface CallTree {
    size: number;
    parent: Int32Array;
    frame: Int32Array;
    main: Float64Array;
    side: Float64Array;
    self: Float64Array;
    base: Float64Array | null;
    weight: Float64Array;
    left: Float64Array;
    depth: Int32Array;
    first: Int32Array;
    level: Int32Array;
    /** The node's number in what it was made of. */
    origin: Int32Array;
}

function weigh(columns: TreeColumns, weight: Weight): Float64Array {
    const size = columns.parent.length;
    const base = columns.base;
    const out = new Float64Array(size);
    for (let i = 0; i < size; i++) {
        const before = base === undefined ? 0 : base[i]!;
        out[i] = weight === "base" ? before : columns.main[i]! + (weight === "both" ? before : 0);
    }
    return out;
}

/** Where the calls of each node stand in one list: starts[i] .. starts[i + 1] - 1. */
function listChildren(parent: ArrayLike<number>): { starts: Int32Array; list: Int32Array } {
    const size = parent.length;
    const starts = new Int32Array(size + 2);
    for (let i = 1; i < size; i++) starts[parent[i]! + 2]!++;
    for (let i = 2; i < size + 2; i++) starts[i]! += starts[i - 1]!;
    const list = new Int32Array(Math.max(size - 1, 0));
    for (let i = 1; i < size; i++) list[starts[parent[i]! + 1]!++] = i;
    return { starts, list };
}

/** Widest first, ties in the order they came. Most lists are short, or come sorted. */
function sortByWeight(list: Int32Array, from: number, to: number, weight: Float64Array): void {
    if (to - from > 16) {
        list.subarray(from, to).sort((a, b) => weight[b]! - weight[a]! || a - b);
        return;
    }
    for (let i = from + 1; i < to; i++) {
        const node = list[i]!;
        let at = i;
        for (; at > from && weight[list[at - 1]!]! < weight[node]!; at--) list[at] = list[at - 1]!;
        list[at] = node;
    }
}

/* Array.from() with a function would take ten times as long. */
function fill<T extends Int32Array | Float64Array>(to: T, from: ArrayLike<number>, order: Int32Array): T {
    for (let i = 0; i < order.length; i++) to[i] = from[order[i]!]!;
    return to;
}

export function buildTree(columns: TreeColumns, by: Weight = "main"): CallTree {
    const size = columns.parent.length;
    const weight = weigh(columns, by);
    const { starts, list } = listChildren(columns.parent);
    const origin = new Int32Array(size);
    const parent = new Int32Array(size);
    const depth = new Int32Array(size);
    const first = new Int32Array(size + 1);
    const levels: number[] = [0];
    parent[0] = -1;
    let end = Math.min(size, 1);
    for (let i = 0; i < size; i++) {
        if (i === levels[levels.length - 1]) {
            levels.push(end); // the first call of the next depth, if there is one
        }
        const node = origin[i]!;
        first[i] = end;
        sortByWeight(list, starts[node]!, starts[node + 1]!, weight);
        for (let at = starts[node]!; at < starts[node + 1]!; at++) {
            origin[end] = list[at]!;
            parent[end] = i;
            depth[end] = depth[i]! + 1;
            end++;
        }
    }
    first[size] = end;
    if (levels[levels.length - 1] !== size) levels.push(size);
    const pick = (from: ArrayLike<number>): Float64Array => fill(new Float64Array(size), from, origin);
    const tree: CallTree = {
        size, parent, depth, first, origin,
        frame: fill(new Int32Array(size), columns.frame, origin),
        main: pick(columns.main), side: pick(columns.side), self: pick(columns.self),
        base: columns.base === undefined ? null : pick(columns.base),
        weight: pick(weight), left: new Float64Array(size),
        level: Int32Array.from(levels),
    };
    for (let i = 0; i < size; i++) {
        let left = tree.left[i]!;
        for (let call = first[i]!; call < first[i + 1]!; call++) {
            tree.left[call] = left;
            left += tree.weight[call]!;
        }
    }
    return tree;
}

/** Outermost first, the node itself last; without the root. */
export function pathTo(tree: CallTree, node: number): number[] {
    const path: number[] = [];
    for (let at = node; at > 0; at = tree.parent[at]!) path.push(at);
    return path.reverse();
}

// ---- Transforms ----

export type Transform =
    | { kind: "merge"; name: string }
    | { kind: "hide"; name: string }
    | { kind: "collapse"; name: string };

/** What a frame becomes. */
const KEEP = 0, MERGE = 1, HIDE = 2, COLLAPSE = 3;

interface Named {
    function: string;
    module: string;
}

/** For each frame its part in the transforms; the last one that names it wins. */
function planOf(frames: readonly Named[], transforms: readonly Transform[]): Uint8Array {
    const plan = new Uint8Array(frames.length);
    for (const transform of transforms) {
        for (let i = 0; i < frames.length; i++) {
            const frame = frames[i]!;
            if (transform.kind === "collapse") {
                if (frame.module === transform.name && plan[i] === KEEP) plan[i] = COLLAPSE;
            } else if (frame.function === transform.name) {
                plan[i] = transform.kind === "merge" ? MERGE : HIDE;
            }
        }
    }
    return plan;
}

/** The tree as it becomes: never more nodes than there were. */
class Rebuilt {
    count = 0;
    readonly parent: Int32Array;
    readonly frame: Int32Array;
    readonly main: Float64Array;
    readonly side: Float64Array;
    readonly self: Float64Array;
    readonly base: Float64Array;
    /** By caller and frame the call, with open addressing: the hash maps of the language take four times as long. */
    private readonly slots: Int32Array;

    constructor(size: number) {
        this.parent = new Int32Array(size);
        this.frame = new Int32Array(size);
        this.main = new Float64Array(size);
        this.side = new Float64Array(size);
        this.self = new Float64Array(size);
        this.base = new Float64Array(size);
        this.slots = new Int32Array(2 ** Math.ceil(Math.log2(2 * size + 2))).fill(-1);
    }

    /** The call of this frame by this caller; made if it is the first. */
    call(parent: number, frame: number): number {
        const mask = this.slots.length - 1;
        const mixed = Math.imul(parent, 0x9e3779b1) ^ Math.imul(frame, 0x85ebca6b);
        let slot = (mixed ^ (mixed >>> 15)) & mask;
        for (let node = this.slots[slot]!; node >= 0; node = this.slots[slot]!) {
            if (this.parent[node] === parent && this.frame[node] === frame) return node;
            slot = (slot + 1) & mask;
        }
        this.slots[slot] = this.count;
        this.parent[this.count] = parent;
        this.frame[this.count] = frame;
        return this.count++;
    }

    columns(withBase: boolean): TreeColumns {
        const { count, parent, frame, main, side, self, base } = this;
        const columns = {
            parent: parent.subarray(0, count), frame: frame.subarray(0, count), main: main.subarray(0, count),
            side: side.subarray(0, count), self: self.subarray(0, count),
        };
        return withBase ? { ...columns, base: base.subarray(0, count) } : columns;
    }
}

/** Takes what was hidden below a node from it and its callers. */
function subtractHidden(made: Rebuilt, hidden: Map<number, number[]>): void {
    for (let i = made.count - 1; i >= 0 && hidden.size > 0; i--) {
        const gone = hidden.get(i);
        if (gone !== undefined) {
            made.main[i]! -= gone[0]!;
            made.side[i]! -= gone[1]!;
            made.base[i]! -= gone[2]!;
            addHidden(hidden, made.parent[i]!, gone);
        }
    }
}

function addHidden(hidden: Map<number, number[]>, node: number, cost: readonly number[]): void {
    const sum = hidden.get(node) ?? [0, 0, 0];
    hidden.set(node, sum.map((value, i) => value + cost[i]!));
}

/**
 * The tree with functions merged into their callers, with everything below functions hidden, and with each run of
 * a library's frames as one. Calls that become alike are added up. extra: what the frames of collapsed libraries
 * are called; they are numbered from frames.length on.
 */
export function transformTree(
    columns: TreeColumns, frames: readonly Named[], transforms: readonly Transform[],
): { columns: TreeColumns; extra: string[] } {
    if (transforms.length === 0) return { columns, extra: [] };
    const plan = planOf(frames, transforms);
    const extra: string[] = [];
    const libraries = new Map<string, number>();
    const libraryOf = (module: string): number => {
        let frame = libraries.get(module);
        if (frame === undefined) {
            frame = frames.length + extra.push(module) - 1;
            libraries.set(module, frame);
        }
        return frame;
    };
    const size = columns.parent.length;
    const made = new Rebuilt(size);
    const hidden = new Map<number, number[]>();
    const became = new Int32Array(size); // -1: hidden
    for (let i = 0; i < size; i++) {
        const above = i === 0 ? -1 : became[columns.parent[i]!]!;
        let frame = columns.frame[i]! | 0; // in binary columns the root has 2^32 - 1
        const part = frame < 0 ? KEEP : plan[frame]!;
        if (i > 0 && above < 0) {
            became[i] = -1;
            continue;
        }
        if (part === HIDE) {
            became[i] = -1;
            addHidden(hidden, above, [columns.main[i]!, columns.side[i]!, columns.base?.[i] ?? 0]);
            continue;
        }
        if (part === COLLAPSE) frame = libraryOf(frames[frame]!.module);
        if (part === MERGE || (part === COLLAPSE && made.frame[above] === frame)) {
            became[i] = above;
            made.self[above]! += columns.self[i]!;
            continue;
        }
        const node = made.call(above, frame);
        became[i] = node;
        made.main[node]! += columns.main[i]!;
        made.side[node]! += columns.side[i]!;
        made.self[node]! += columns.self[i]!;
        made.base[node]! += columns.base?.[i] ?? 0;
    }
    subtractHidden(made, hidden);
    return { columns: made.columns(columns.base !== undefined), extra };
}

// ---- Finding ----

export interface Found {
    /** By node: it is one of the functions. */
    hit: Uint8Array;
    /** How many nodes are. */
    count: number;
    /** What they bear with all they call, each byte once, within the subtree. */
    main: number;
}

/** matches: by frame. Costs are of what lies below root. */
export function findFrames(tree: CallTree, matches: Uint8Array, root = 0): Found {
    const hit = new Uint8Array(tree.size);
    const within = new Uint8Array(tree.size); // 1: below root, 2: and below a hit, or one
    let count = 0, main = 0;
    for (let i = 0; i < tree.size; i++) {
        const above = i === root ? 1 : i > root ? within[tree.parent[i]!]! : 0;
        const frame = tree.frame[i]!;
        if (frame >= 0 && matches[frame] === 1) {
            hit[i] = 1;
            count++;
            if (above === 1) main += tree.main[i]!;
        }
        within[i] = above === 1 && hit[i] === 1 ? 2 : above;
    }
    return { hit, count, main };
}

// ---- Marks: a node's name in the URL ----

/** By node two hashes of the names on the way to it. They hold while the names do, whatever else is in the tree. */
export interface Marks {
    a: Int32Array;
    b: Int32Array;
}

export function fnv(text: string, seed: number): number {
    let value = seed;
    for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 16777619);
    return value;
}
function hashOf(text: string, seed: number): number {
    const value = fnv(text, seed);
    return value ^ (value >>> 15);
}

export function marksOf(tree: CallTree, names: readonly string[]): Marks {
    const byFrame = names.map((name) => hashOf(name, 0x811c9dc5 | 0));
    const byFrame2 = names.map((name) => hashOf(name, 0x1b873593));
    const a = new Int32Array(tree.size), b = new Int32Array(tree.size);
    for (let i = 1; i < tree.size; i++) {
        const above = tree.parent[i]!, frame = tree.frame[i]!;
        a[i] = Math.imul(a[above]! ^ byFrame[frame]!, 0x85ebca6b) + 0x165667b1;
        b[i] = Math.imul(b[above]! ^ byFrame2[frame]!, 0xc2b2ae35 | 0) + 0x27d4eb2f;
    }
    return { a, b };
}

/** 16 digits. */
export function markOf(marks: Marks, node: number): string {
    const digits = (value: number): string => (value >>> 0).toString(16).padStart(8, "0");
    return digits(marks.a[node]!) + digits(marks.b[node]!);
}

/** The node that has the mark; 0, the root: none has. */
export function nodeMarked(marks: Marks, mark: string): number {
    if (!/^[0-9a-f]{16}$/.test(mark)) return 0;
    const a = parseInt(mark.slice(0, 8), 16) | 0, b = parseInt(mark.slice(8), 16) | 0;
    for (let i = 1; i < marks.a.length; i++) {
        if (marks.a[i] === a && marks.b[i] === b) return i;
    }
    return 0;
}
