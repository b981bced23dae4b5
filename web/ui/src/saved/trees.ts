// SPDX-License-Identifier: MIT
// trees.ts: trees of a saved page, in the shape that the server answers: down from main, up from what allocates, and
// around one function.
import type { Frame, Metric, Tree } from "../types";
import type { Data, Sums } from "./data";

export interface Cost {
    metric: Metric;
    unit: "bytes" | "count";
    sideUnit: "bytes" | "count";
    main: Sums;
    side: Sums;
}

/* A tree as it grows: calls of one function below the same caller are one node. */
class Growing {
    private readonly parent = [0];
    private readonly frame = [-1];
    private readonly main = [0];
    private readonly side = [0];
    private readonly self = [0];
    private readonly frames: Frame[] = [];
    private readonly children = new Map<string, number>();
    private readonly numbers = new Map<string, number>();
    constructor(private readonly data: Data) {}

    child(of: number, call: number): number {
        const name = this.data.isCall(call) ? this.data.functionOf(call) : -1 - call;
        const key = `${of} ${name}`;
        const known = this.children.get(key);
        if (known !== undefined) return known;
        const made = this.parent.push(of) - 1;
        this.children.set(key, made);
        this.frame.push(this.frameNumber(call));
        this.main.push(0);
        this.side.push(0);
        this.self.push(0);
        return made;
    }

    private frameNumber(call: number): number {
        const frame = this.data.frame(call);
        const key = `${frame.function}\0${frame.line ?? 0}\0${frame.module}\0${frame.inlined ?? ""}`;
        let number = this.numbers.get(key);
        if (number === undefined) {
            number = this.frames.push(frame) - 1;
            this.numbers.set(key, number);
        }
        return number;
    }

    add(node: number, main: number, side: number, self: number): void {
        this.main[node]! += main;
        this.side[node]! += side;
        this.self[node]! += self;
    }

    /* Dearest first below each caller, without what bears less than the least. */
    finish(cost: Cost, total: number, least: number): Tree {
        const order = [0];
        const below: number[][] = this.parent.map(() => []);
        for (let node = 1; node < this.parent.length; node++) below[this.parent[node]!]!.push(node);
        for (const list of below) list.sort((a, b) => this.main[b]! - this.main[a]!);
        let cut = 0;
        for (let at = 0; at < order.length; at++) {
            for (const node of below[order[at]!]!) {
                if (this.main[node]! > 0 && this.main[node]! >= least) order.push(node);
                else cut++;
            }
        }
        const places = new Map(order.map((node, place) => [node, place]));
        const pick = (values: readonly number[]) => order.map((node) => values[node] ?? 0);
        return {
            metric: cost.metric, unit: cost.unit, side_unit: cost.sideUnit, total, frames: this.frames, cut,
            nodes: {
                parent: order.map((node) => places.get(this.parent[node]!) ?? 0),
                frame: pick(this.frame), main: pick(this.main), side: pick(this.side), self: pick(this.self),
            },
        };
    }
}

export function treeDown(data: Data, cost: Cost, least: number): Tree {
    const tree = new Growing(data);
    const nodes = new Int32Array(data.size);
    tree.add(0, cost.main.all[0]!, cost.side.all[0]!, cost.main.self[0]!);
    for (let call = 1; call < data.size; call++) {
        if (cost.main.all[call] === 0) continue;
        nodes[call] = tree.child(nodes[data.parent(call)]!, call);
        tree.add(nodes[call]!, cost.main.all[call]!, cost.side.all[call]!, cost.main.self[call]!);
    }
    return tree.finish(cost, cost.main.all[0]!, least);
}

/* From each call that allocates to main. What was left out stands below the call that has it. */
export function treeUp(data: Data, cost: Cost, least: number): Tree {
    const tree = new Growing(data);
    tree.add(0, cost.main.all[0]!, cost.side.all[0]!, 0);
    for (let call = 1; call < data.size; call++) {
        const main = cost.main.self[call]!;
        if (main === 0) continue;
        let node = 0;
        data.chain(call).forEach((at, depth) => {
            node = tree.child(node, at);
            tree.add(node, main, cost.side.self[call]!, depth === 0 ? main : 0);
        });
    }
    return tree.finish(cost, cost.main.all[0]!, least);
}

export interface Around {
    main: number;
    side: number;
    self: number;
    callers: Tree;
    callees: Tree;
    first: number; // a call of it; 0: there is none
}

/* A function that calls itself counts once: by its outermost call. */
export function treesAround(data: Data, cost: Cost, name: string): Around {
    const [callers, callees] = [new Growing(data), new Growing(data)];
    const inside = new Int32Array(data.size).fill(-1); // the node among callees; -1: outside
    const result = { main: 0, side: 0, self: 0, first: 0 };
    for (let call = 1; call < data.size; call++) {
        const above = inside[data.parent(call)]!;
        const isIt = data.name(call) === name;
        if (isIt) result.self += cost.main.self[call]!;
        if (above >= 0) inside[call] = callees.child(above, call);
        else if (!isIt) continue;
        else {
            inside[call] = 0;
            result.first ||= call;
            result.main += cost.main.all[call]!;
            result.side += cost.side.all[call]!;
            let node = 0;
            for (const at of data.chain(call).slice(1)) {
                node = callers.child(node, at);
                callers.add(node, cost.main.all[call]!, cost.side.all[call]!, 0);
            }
        }
        callees.add(inside[call]!, cost.main.all[call]!, cost.side.all[call]!, cost.main.self[call]!);
    }
    callers.add(0, result.main, result.side, 0);
    const total = cost.main.all[0]!;
    return { ...result, callers: callers.finish(cost, total, 0), callees: callees.finish(cost, total, 0) };
}
