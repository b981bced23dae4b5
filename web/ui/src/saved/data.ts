// SPDX-License-Identifier: MIT
// data.ts: what a saved page (memtrace export --format html) has inside, as analyze/export/htmldata.c writes it, and what
// filters select of it.
//
// A call is an index; callers come before what they call, 0 is all of it. Behind the calls that were kept stand rows for
// those that were left out, one for each caller that has such: so sums are the totals.
import { Problem } from "../api";
import { BY_PATH } from "../filters";
import type { Frame } from "../types";

export interface Saved {
    generator: string;
    source: string;
    selected: string;
    executable: string;
    command: string[];
    pid: number;
    live: boolean;
    ended: boolean;
    duration_ns: number;
    live_blocks: number;
    frees: number;
    peak_error_bytes: number;
    lost: number;
    contexts: number;
    events: number;
    sampled: boolean;
    costs: { name: string; title: string; unit: string; total: number }[];
    warnings: string[];
    thread_count: number;
    threads: Record<string, number | string>[];
    timeline: [number, number, number, number][]; // time, live, resident, allocations so far
    marks: [number, string][];
    calls: {
        of: number;
        kept: number;
        least_share: number;
        parent: number[];
        function: number[];
        note: number[]; // 1 inlined, 2 recursive; of what was left out: how many calls
        line: number[];
        self: number[][]; // by cost
        side: number[][]; // what stands beside it: blocks beside bytes, bytes beside numbers
    };
    functions: { name: string[]; file: number[]; module: number[]; kind: number[] };
    strings: string[];
}

export const COSTS = { maximum: 0, leaked: 1, cumulative: 2, allocations: 3, temporary: 4 } as const;
export type SavedMetric = keyof typeof COSTS;
const KINDS = ["own", "library", "system"] as const;

export class Data {
    readonly size: number;
    constructor(readonly saved: Saved) {
        this.size = saved.calls.parent.length;
    }

    parent = (call: number): number => this.saved.calls.parent[call] ?? 0;
    isCall = (call: number): boolean => call > 0 && call < this.saved.calls.kept;
    functionOf = (call: number): number => this.saved.calls.function[call] ?? 0;

    /* undefined: all of it, or what was left out. */
    name(call: number): string | undefined {
        return this.isCall(call) ? this.saved.functions.name[this.functionOf(call)] : undefined;
    }

    frame(call: number): Frame {
        const { functions, strings, calls } = this.saved;
        if (!this.isCall(call)) {
            return { function: `${calls.note[call] ?? 0} smaller calls`, module: "left out of this page", kind: "system" };
        }
        const number = this.functionOf(call);
        const file = strings[functions.file[number] ?? -1] ?? "";
        const line = calls.line[call] ?? 0;
        return {
            function: functions.name[number] ?? "?",
            module: strings[functions.module[number] ?? -1] ?? "",
            kind: KINDS[functions.kind[number] ?? 0] ?? "own",
            ...(file === "" ? {} : { file }),
            ...(line === 0 ? {} : { line }),
            ...((calls.note[call] ?? 0) & 1 ? { inlined: true } : {}),
        };
    }

    /* The call and its callers, up to main. */
    chain(call: number): number[] {
        const found = [];
        for (let at = call; at > 0; at = this.parent(at)) found.push(at);
        return found;
    }
}

/* ---- Filters ---- */

const WHAT = { function: "name", file: "file", module: "module" } as const;

/* POSIX extended, as near as the browser's own come to it: named classes of letters are spelled out. */
export function regexOf(text: string): RegExp {
    const classes: Record<string, string> = {
        alpha: "A-Za-z", digit: "0-9", alnum: "A-Za-z0-9", upper: "A-Z", lower: "a-z", space: "\\s", xdigit: "0-9A-Fa-f", punct: "!-\\/:-@\\[-`{-~",
    };
    try {
        return new RegExp(text.replace(/\[:([a-z]+):\]/g, (all, name: string) => classes[name] ?? all));
    } catch {
        throw new Problem(400, "Bad Request", `'${text}' is not a regular expression`);
    }
}

/* Of each call, whether what it bears itself is selected. */
export function selected(data: Data, query: URLSearchParams): Uint8Array {
    const chosen = new Uint8Array(data.size).fill(1);
    for (const [name, value] of query) {
        if (!BY_PATH.has(name)) continue;
        const negative = name.startsWith("not-");
        const passes = passesOf(data, WHAT[name.replace("not-", "") as keyof typeof WHAT], regexOf(value));
        for (let call = 0; call < data.size; call++) if ((passes[call] === 1) === negative) chosen[call] = 0;
    }
    return chosen;
}
/* Of each call, whether it or one of its callers fits. */
function passesOf(data: Data, what: "name" | "file" | "module", regex: RegExp): Uint8Array {
    const { functions, strings } = data.saved;
    const fits = functions.name.map((name, number) =>
        regex.test(what === "name" ? name : (strings[(what === "file" ? functions.file : functions.module)[number] ?? -1] ?? "")));
    const passes = new Uint8Array(data.size);
    for (let call = 1; call < data.size; call++) {
        passes[call] = passes[data.parent(call)] === 1 || (data.isCall(call) && fits[data.functionOf(call)] === true) ? 1 : 0;
    }
    return passes;
}

/* ---- Sums ---- */

export interface Sums {
    self: Float64Array;
    all: Float64Array; // with what it calls
}
export function sums(data: Data, cost: number, chosen: Uint8Array, which: "self" | "side" = "self"): Sums {
    const given = data.saved.calls[which][cost] ?? [];
    const self = new Float64Array(data.size);
    for (let call = 0; call < data.size; call++) self[call] = chosen[call] === 1 ? (given[call] ?? 0) : 0;
    const all = self.slice();
    const { kept } = data.saved.calls;
    // Rows of what was left out come last, but their callers are among the calls.
    for (let call = data.size - 1; call >= kept; call--) all[data.parent(call)]! += all[call]!;
    for (let call = kept - 1; call > 0; call--) all[data.parent(call)]! += all[call]!;
    return { self, all };
}
