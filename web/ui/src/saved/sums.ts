// SPDX-License-Identifier: MIT
// sums.ts: what call paths cost, as a saved page has it inside (web/server/onefilesums.h), and what the server would make
// of that: trees from both sides, callers and callees, functions, lines. Numbers are the server's: tests compare them.
import type { Cell, Frame, TreeNodes } from "../types";

export interface SumsData {
    cells: Record<string, Cell[]>; // by column of the table of paths
    leaked?: [number[], number[]]; // bytes, blocks: without what is suppressed
    nodes: { depth: number[]; frame: number[] }; // without the root
    ends: number[]; // by path: its node; 0: no frames are known
    frames: Frame[];
    functions: number[]; // by frame
    left_out: number; // paths, which the last `rests` paths stand for
    rests: number;
}
export interface Cost {
    main: number;
    side: number;
}
function addCost(to: Cost, cost: Cost): void {
    to.main += cost.main;
    to.side += cost.side;
}
export type SumMetric = "maximum" | "leaked" | "cumulative" | "allocations" | "temporary";
export const SUM_METRICS: readonly SumMetric[] = ["maximum", "leaked", "cumulative", "allocations", "temporary"];
export const isSum = (metric: string): metric is SumMetric => (SUM_METRICS as readonly string[]).includes(metric);

/* What of a metric stands in which column: the cost, and what is shown beside it. */
export const COLUMNS: Record<SumMetric, [string, string]> = {
    maximum: ["peak_bytes", "allocations"], leaked: ["live_bytes", "live_blocks"], cumulative: ["total_bytes", "allocations"],
    allocations: ["allocations", "total_bytes"], temporary: ["temporary", "allocations"],
};
const UNKNOWN: Frame = { function: "0x0", module: "", kind: "system" };

/* A tree that grows by calls; the root is 0. */
class Growing {
    readonly parent = [0];
    readonly frame = [-1];
    readonly main = [0];
    readonly side = [0];
    readonly self = [0];
    private readonly children = new Map<number, number>();

    constructor(private readonly keys: readonly number[], private readonly folds: boolean) {}

    /* The call of this frame: a function that calls itself is one call. */
    child(parent: number, frame: number): number {
        const key = this.keys[frame]!;
        if (this.folds && parent !== 0 && this.keys[this.frame[parent]!] === key) return parent;
        const place = parent * this.keys.length + key;
        let child = this.children.get(place);
        if (child === undefined) {
            child = this.parent.push(parent) - 1;
            this.frame.push(frame);
            this.main.push(0);
            this.side.push(0);
            this.self.push(0);
            this.children.set(place, child);
        }
        return child;
    }

    add(call: number, cost: Cost): void {
        this.main[call]! += cost.main;
        this.side[call]! += cost.side;
    }

    /* Depth first, the dearest of siblings first, each behind its caller. depth 0: all. */
    nodes(depth: number): TreeNodes {
        const size = this.parent.length;
        const lists: number[][] = Array.from({ length: size }, () => []);
        for (let i = 1; i < size; i++) lists[this.parent[i]!]!.push(i);
        for (const list of lists) {
            list.sort((a, b) => this.main[b]! - this.main[a]! || this.side[b]! - this.side[a]! || a - b).reverse();
        }
        const order: number[] = [];
        const places = new Int32Array(size);
        const levels = new Int32Array(size);
        const waiting = [0];
        while (waiting.length > 0) {
            const at = waiting.pop()!;
            places[at] = order.push(at) - 1;
            if (depth !== 0 && levels[at]! >= depth) continue;
            for (const child of lists[at]!) {
                levels[child] = levels[at]! + 1;
                waiting.push(child);
            }
        }
        return {
            parent: order.map((at) => places[this.parent[at]!]!), frame: order.map((at) => this.frame[at]!),
            main: order.map((at) => this.main[at]!), side: order.map((at) => this.side[at]!), self: order.map((at) => this.self[at]!),
        };
    }
}

export interface FunctionSum {
    frame: number; // one of its frames
    self: Cost;
    total: Cost;
}
export interface LineSum {
    line: number;
    frame: number;
    paths: number;
    self: Record<SumMetric, number>;
    total: Record<SumMetric, number>;
}

/* How paths are shown and which ones. */
export interface SumsOptions {
    byLine: boolean;
    allFrames: boolean; // also each level of a recursion
    wanted: Uint8Array | null; // by path; null: all
}

export class Sums {
    readonly frames: readonly Frame[];
    readonly count: number;
    private readonly parent: Int32Array; // of nodes; the root is 0
    private readonly frame: Int32Array;
    private readonly lineKeys: number[];
    private readonly functionKeys: number[];

    constructor(readonly data: SumsData) {
        this.frames = [...data.frames, UNKNOWN];
        this.count = data.ends.length;
        this.lineKeys = this.frames.map((_, index) => index);
        this.functionKeys = [...data.functions, this.frames.length - 1];
        const size = data.nodes.depth.length + 1;
        this.parent = new Int32Array(size);
        this.frame = new Int32Array(size).fill(-1);
        const above = [0]; // by depth the last node
        for (let i = 1; i < size; i++) {
            const depth = data.nodes.depth[i - 1]!;
            this.frame[i] = data.nodes.frame[i - 1]!;
            this.parent[i] = above[depth - 1]!;
            above[depth] = i;
        }
    }

    private costs(metric: SumMetric): readonly [ArrayLike<Cell>, ArrayLike<Cell>] {
        if (metric === "leaked" && this.data.leaked !== undefined) return this.data.leaked;
        const [main, side] = COLUMNS[metric];
        return [this.data.cells[main]!, this.data.cells[side]!];
    }
    cost(path: number, metric: SumMetric): Cost {
        const [main, side] = this.costs(metric);
        return { main: Number(main[path]), side: Number(side[path]) };
    }

    /* Numbers of the frames, the allocating one first. */
    path(path: number): number[] {
        const frames: number[] = [];
        for (let at = this.data.ends[path]!; at !== 0; at = this.parent[at]!) frames.push(this.frame[at]!);
        return frames.length > 0 ? frames : [this.frames.length - 1];
    }
    isRest(path: number): boolean {
        return path >= this.count - this.data.rests;
    }
    find(hash: string): number {
        return this.data.cells["hash"]!.indexOf(hash);
    }

    /* Calls back for each path that costs something. */
    each(metric: SumMetric, options: SumsOptions, take: (path: number, cost: Cost) => void): void {
        const [main, side] = this.costs(metric);
        for (let path = 0; path < this.count; path++) {
            if (Number(main[path]) === 0 || (options.wanted !== null && options.wanted[path] === 0)) continue;
            take(path, { main: Number(main[path]), side: Number(side[path]) });
        }
    }

    private growing(options: SumsOptions): Growing {
        return new Growing(options.byLine ? this.lineKeys : this.functionKeys, !options.allFrames);
    }

    /* ---- Trees ---- */

    tree(metric: SumMetric, up: boolean, options: SumsOptions, depth = 0): TreeNodes {
        const tree = this.growing(options);
        this.each(metric, options, (path, cost) => {
            const frames = this.path(path);
            if (!up) frames.reverse();
            this.branch(tree, frames, cost, depth);
        });
        return tree.nodes(depth);
    }

    private branch(tree: Growing, frames: readonly number[], cost: Cost, depth: number): void {
        let call = 0;
        tree.add(0, cost);
        for (let i = 0; i < frames.length && (depth === 0 || i < depth); i++) {
            const next = tree.child(call, frames[i]!);
            if (next !== call) tree.add(next, cost);
            call = next;
        }
        tree.self[call]! += cost.main;
    }

    /* A path counts once, however often it goes through the function: its callers stand outside of the outermost, its
     * callees inside of the innermost. */
    around(name: string, metric: SumMetric, options: SumsOptions, depth: number) {
        const callers = this.growing(options), callees = this.growing(options);
        let focus = -1;
        this.each(metric, options, (path, cost) => {
            const frames = this.path(path);
            const isIt = (frame: number) => this.frames[frame]!.function === name;
            const inner = frames.findIndex(isIt), outer = frames.findLastIndex(isIt);
            if (inner < 0) return;
            if (focus < 0) focus = frames[inner]!;
            this.branch(callers, frames.slice(outer + 1), cost, depth);
            this.branch(callees, frames.slice(0, inner).reverse(), cost, depth);
        });
        const root = { main: callees.main[0]!, side: callees.side[0]!, self: callees.self[0]! };
        return { focus: this.frames[focus], root, callers: callers.nodes(depth), callees: callees.nodes(depth) };
    }

    /* ---- By function, by line ---- */

    functions(metric: SumMetric, options: SumsOptions): FunctionSum[] {
        const keys = options.byLine ? this.lineKeys : this.functionKeys;
        const sums: (FunctionSum | undefined)[] = [];
        const seen = new Int32Array(this.frames.length).fill(-1);
        const sumOf = (frame: number) => (sums[keys[frame]!] ??= { frame, self: { main: 0, side: 0 }, total: { main: 0, side: 0 } });
        this.each(metric, options, (path, cost) => {
            const frames = this.path(path);
            addCost(sumOf(frames[0]!).self, cost);
            for (const frame of frames) {
                const key = keys[frame]!;
                if (seen[key] === path) continue;
                seen[key] = path;
                addCost(sumOf(frame).total, cost);
            }
        });
        return sums.filter((sum) => sum !== undefined);
    }

    /* The lines of a file, in their order. */
    lines(file: string, options: SumsOptions): LineSum[] {
        const lines = new Map<number, LineSum>();
        const none = (): Record<SumMetric, number> => ({ maximum: 0, leaked: 0, cumulative: 0, allocations: 0, temporary: 0 });
        const isHere = this.frames.map((frame) => frame.file === file && (frame.line ?? 0) !== 0);
        for (let path = 0; path < this.count; path++) {
            if (options.wanted !== null && options.wanted[path] === 0) continue;
            const frames = this.path(path);
            const met = new Set<LineSum>();
            frames.forEach((frame, place) => {
                if (!isHere[frame]) return;
                const line = this.frames[frame]!.line!;
                let sum = lines.get(line);
                if (sum === undefined) lines.set(line, (sum = { line, frame, paths: 0, self: none(), total: none() }));
                if (place === 0) this.addAll(sum.self, path);
                if (!met.has(sum)) {
                    met.add(sum);
                    sum.paths++;
                    this.addAll(sum.total, path);
                }
            });
        }
        return [...lines.values()].sort((a, b) => a.line - b.line);
    }
    private addAll(to: Record<SumMetric, number>, path: number): void {
        for (const metric of SUM_METRICS) to[metric] += this.cost(path, metric).main;
    }

    /* ---- Which paths ---- */

    /* Those with a frame that a test finds, or without: `wanted` is narrowed. */
    narrow(wanted: Uint8Array, test: (frame: Frame) => boolean, without: boolean): void {
        const found = this.frames.map(test);
        for (let path = 0; path < this.count; path++) {
            if (wanted[path] === 1 && this.path(path).some((frame) => found[frame]) === without) wanted[path] = 0;
        }
    }
    allPaths(): Uint8Array {
        return new Uint8Array(this.count).fill(1);
    }

    total(metric: SumMetric, options: SumsOptions): number {
        let total = 0;
        this.each(metric, options, (_, cost) => (total += cost.main));
        return total;
    }
}
