// SPDX-License-Identifier: MIT
// answers.ts: the questions of the page, answered from the data inside of it. Shapes are the server's (types.ts).
import { Problem } from "../api";
import { count, items, percent } from "../format";
import type { Answer, Cell, Column, Frame, Kind, Summary, Table, Timeline } from "../types";
import { COSTS, type Data, regexOf, type SavedMetric, selected, sums } from "./data";
import { type Cost, treeDown, treesAround, treeUp } from "./trees";

type Query = URLSearchParams;

/* What was asked for, of one set of filters: sums are made once. */
class Question {
    readonly chosen: Uint8Array;
    constructor(
        readonly data: Data,
        readonly query: Query,
    ) {
        this.chosen = selected(data, query);
    }

    cost(): Cost {
        const metric = (this.query.get("metric") ?? "maximum") as SavedMetric;
        if (!(metric in COSTS)) throw new Problem(400, "Bad Request", `a saved page has no figures of ${metric}`);
        const isCount = metric === "allocations" || metric === "temporary";
        const main = sums(this.data, COSTS[metric], this.chosen);
        const side = sums(this.data, COSTS[metric], this.chosen, "side");
        return { metric, unit: isCount ? "count" : "bytes", sideUnit: metric === "allocations" ? "bytes" : "count", main, side };
    }

    total(cost: number, which: "self" | "side" = "self"): number {
        return sums(this.data, cost, this.chosen, which).all[0]!;
    }
}

/* ---- Tables ---- */

const column = (name: string, heading: string, kind: Kind): Column => ({ name, heading, kind });

/* Sorted and cut as was asked. */
function table(query: Query, columns: Column[], rows: Cell[][], more: Partial<Table> = {}): Table {
    const at = columns.findIndex((one) => one.name === query.get("sort"));
    const sorted = at < 0 ? rows : rows.slice().sort((a, b) => (query.get("order") === "asc" ? 1 : -1) * compare(text(a[at]), text(b[at])));
    const from = Number(query.get("cursor") ?? 0);
    const limit = Number(query.get("limit") ?? rows.length);
    const part = sorted.slice(from, from + limit);
    return { columns, rows: part, total: rows.length, ...(from + limit < rows.length ? { next: String(from + limit) } : {}), ...more };
    function text(cell: Cell | undefined): Cell {
        if (typeof cell !== "number") return cell ?? null;
        const kind = columns[at]?.kind;
        if (kind === "frame") return more.frames?.[cell]?.function ?? "";
        if (kind === "path") return more.frames?.[more.paths?.[cell]?.[0] ?? -1]?.function ?? "";
        return cell;
    }
}
function compare(a: Cell, b: Cell): number {
    if (typeof a === "number" && typeof b === "number") return a - b;
    return String(a ?? "") < String(b ?? "") ? -1 : String(a ?? "") > String(b ?? "") ? 1 : 0;
}

/* Frames of a table, each once. */
class Frames {
    readonly list: Frame[] = [];
    private readonly numbers = new Map<string, number>();
    constructor(private readonly data: Data) {}
    number(call: number): number {
        const frame = this.data.frame(call);
        const key = JSON.stringify(frame);
        let found = this.numbers.get(key);
        if (found === undefined) {
            found = this.list.push(frame) - 1;
            this.numbers.set(key, found);
        }
        return found;
    }
}

/* ---- Answers ---- */

function summary(ask: Question): Summary {
    const { data, chosen } = ask;
    const { saved } = data;
    const total = (cost: number) => ask.total(cost);
    const blocks = ask.total(COSTS.leaked, "side");
    const peak = saved.timeline.reduce((best, point) => (point[1] > best[1] ? point : best), [0, 0, 0, 0]);
    const residents = saved.timeline.map((point) => point[2]);
    return {
        program: saved.executable, command_line: saved.command.join(" "), pid: saved.pid, kind: saved.events > 0 ? "recording" : "profile",
        started_unix_ns: 0, duration_ns: saved.duration_ns, ended: saved.ended ? "ended" : saved.live ? "running" : "killed", live: saved.live,
        totals: {
            maximum_bytes: total(COSTS.maximum), maximum_ns: peak[0], maximum_error_bytes: saved.peak_error_bytes,
            live_bytes: total(COSTS.leaked), live_blocks: blocks, total_bytes: total(COSTS.cumulative), allocations: total(COSTS.allocations),
            frees: total(COSTS.allocations) - blocks, freed_bytes: total(COSTS.cumulative) - total(COSTS.leaked), temporary: total(COSTS.temporary),
            context_count: contexts(data, chosen), lost: saved.lost,
        },
        resident: residents.some((one) => one > 0)
            ? { peak_bytes: residents.reduce((a, b) => Math.max(a, b), 0), at_maximum_bytes: peak[2], end_bytes: residents.at(-1) ?? 0 } : null,
        sampled: saved.sampled ? {} : null,
        warnings: [...saved.warnings, ...leftOut(data), ...(saved.selected === "" ? [] : [`This page was saved with ${saved.selected}: it has nothing else.`])],
        lost: [], slices: 0,
        has: { events: false, slices: false, marks: saved.marks.length > 0, threads: saved.threads.length > 0, mappings: false, timeline: saved.timeline.length > 1, processes: false },
    };
}
function leftOut({ saved }: Data): string[] {
    const { of, kept, least_share: least } = saved.calls;
    if (of <= kept) return [];
    return [`${items(of - kept, "call")} of ${count(of)} are left out of this page, none with more than ${percent(least, 1)} of anything; sums have all.`];
}
function contexts(data: Data, chosen: Uint8Array): number {
    if (chosen.every((one) => one === 1)) return data.saved.contexts;
    const allocations = data.saved.calls.self[COSTS.allocations] ?? [];
    return allocations.reduce((count, own, call) => count + (own > 0 && chosen[call] === 1 ? 1 : 0), 0);
}

function timeline(data: Data): Timeline {
    const points = data.saved.timeline;
    const rate = points.map((point, index): number | null => {
        const before = points[index - 1];
        return before === undefined || point[0] <= before[0] ? null : ((point[3] - before[3]) * 1e9) / (point[0] - before[0]);
    });
    const peak = points.reduce((best, point) => (point[1] > best[1] ? point : best), [0, 0, 0, 0]);
    const residents = points.map((point) => (point[2] > 0 ? point[2] : null));
    return { time_ns: points.map((point) => point[0]), series: { live: points.map((point) => point[1]), resident: residents, rate }, maximum: { time_ns: peak[0], bytes: peak[1] } };
}

function functions(question: Question): Table {
    const { data, query } = question;
    const cost = question.cost();
    const frames = new Frames(data);
    const byFunction = new Map<number, { call: number; self: number; all: number; side: number }>();
    const inside = new Map<number, Set<number>>(); // by call: functions on its path
    for (let call = 1; call < data.saved.calls.kept; call++) {
        const number = data.functionOf(call);
        const above = inside.get(data.parent(call)) ?? new Set<number>();
        const isOuter = !above.has(number);
        inside.set(call, isOuter ? new Set(above).add(number) : above);
        if (cost.main.all[call] === 0) continue;
        const sum = byFunction.get(number) ?? { call, self: 0, all: 0, side: 0 };
        sum.self += cost.main.self[call]!;
        if (isOuter) {
            sum.all += cost.main.all[call]!;
            sum.side += cost.side.all[call]!;
        }
        byFunction.set(number, sum);
    }
    const total = cost.main.all[0]!;
    const rows = [...byFunction.values()].sort((a, b) => b.all - a.all || b.self - a.self)
        .map((one): Cell[] => [frames.number(one.call), one.self, one.all, (100 * one.all) / (total || 1), one.side]);
    const columns = [column("function", "function", "frame"), column("self", "self", cost.unit), column("total", "total", cost.unit), column("share", "share", "percent"), column("blocks", cost.sideUnit === "bytes" ? "bytes" : "blocks", cost.sideUnit)];
    return table(query, columns, rows, { frames: frames.list });
}

const PATH_COLUMNS = [
    column("hash", "hash", "hash"), column("path", "call path", "path"), column("peak_bytes", "peak", "bytes"), column("live_bytes", "live", "bytes"),
    column("live_blocks", "blocks", "count"), column("total_bytes", "allocated", "bytes"), column("allocations", "allocations", "count"), column("temporary", "temporary", "count"),
];
const pathFigures = (data: Data, call: number): number[] => {
    const { self, side } = data.saved.calls;
    const of = (cost: number) => self[cost]?.[call] ?? 0;
    return [of(COSTS.maximum), of(COSTS.leaked), side[COSTS.leaked]?.[call] ?? 0, of(COSTS.cumulative), of(COSTS.allocations), of(COSTS.temporary)];
};

function paths(question: Question): Table {
    const { data, query, chosen } = question;
    const cost = question.cost();
    const frames = new Frames(data);
    const calls: number[] = [];
    for (let call = 1; call < data.size; call++) {
        const bears = query.has("sort") ? (data.saved.calls.self[COSTS.allocations]?.[call] ?? 0) : cost.main.self[call]!;
        if (chosen[call] === 1 && bears > 0) calls.push(call);
    }
    calls.sort((a, b) => cost.main.self[b]! - cost.main.self[a]!);
    const lists = calls.map((call) => data.chain(call).map((at) => frames.number(at)));
    const rows = calls.map((call, index): Cell[] => [`c${call}`, index, ...pathFigures(data, call)]);
    return table(query, PATH_COLUMNS, rows, { frames: frames.list, paths: lists });
}

function onePath(data: Data, hash: string): Record<string, unknown> {
    const call = Number(/^c(\d+)$/.exec(hash)?.[1] ?? 0);
    if (call <= 0 || call >= data.size) throw new Problem(404, "Not Found", `there is no call path ${hash} in this page`);
    const names = PATH_COLUMNS.slice(2).map((one) => one.name);
    const figures = pathFigures(data, call);
    return {
        hash, frames: data.chain(call).map((at) => data.frame(at)), timeline: null, sizes: null, lifetimes: null,
        ...Object.fromEntries(names.map((name, index) => [name, figures[index]])),
    };
}

function search(question: Question): Record<string, unknown> {
    const { data, query } = question;
    const regex = regexOf(query.get("regex") ?? "");
    const cost = question.cost();
    const fits = data.saved.functions.name.map((name) => regex.test(name));
    const found = new Set<string>();
    const inside = new Uint8Array(data.size);
    let main = 0;
    for (let call = 1; call < data.size; call++) {
        const isIt = data.isCall(call) && fits[data.functionOf(call)] === true;
        if (isIt) found.add(data.name(call) ?? "");
        if (inside[data.parent(call)] === 1) inside[call] = 1;
        else if (isIt) {
            inside[call] = 1;
            main += cost.main.all[call]!;
        }
    }
    const total = cost.main.all[0]!;
    return { functions: [...found].sort(), count: found.size, main, total, share: total > 0 ? main / total : 0 };
}

function threads(data: Data, query: Query): Table {
    const columns = [
        column("id", "id", "count"), column("tid", "tid", "count"), column("name", "name", "text"), column("allocations", "allocations", "count"), column("total_bytes", "bytes", "bytes"),
        column("frees", "frees", "count"), column("live_bytes", "live", "bytes"), column("freed_for_others", "freed of others", "count"), column("freed_for_others_bytes", "bytes of others", "bytes"),
    ];
    return table(query, columns, data.saved.threads.map((one) => columns.map(({ name }) => one[name] ?? null)));
}

function around(question: Question): Record<string, unknown> {
    const name = question.query.get("focus") ?? "";
    const found = treesAround(question.data, question.cost(), name);
    if (found.first === 0) throw new Problem(404, "Not Found", `no function is named '${name}'`);
    const { first, ...rest } = found;
    return { focus: question.data.frame(first), ...rest };
}

function tree(question: Question): unknown {
    const cost = question.cost();
    const least = (Number(question.query.get("min-share") ?? 0) / 100) * cost.main.all[0]!;
    return question.query.get("direction") === "up" ? treeUp(question.data, cost, least) : treeDown(question.data, cost, least);
}

function answerOf(data: Data, endpoint: string, query: Query): unknown {
    const question = new Question(data, query);
    const [what = "", which] = endpoint.split("/");
    switch (what) {
        case "": return summary(question);
        case "timeline": return timeline(data);
        case "marks": return table(query, [column("time_ns", "time", "duration"), column("what", "what", "text"), column("name", "name", "text")], data.saved.marks.map(([time, name]): Cell[] => [time, "mark", name]));
        case "threads": return threads(data, query);
        case "tree": return tree(question);
        case "functions": return functions(question);
        case "paths": return which === undefined ? paths(question) : onePath(data, decodeURIComponent(which));
        case "callers": return around(question);
        case "search": return search(question);
        case "findings": return { findings: [] };
        default: throw new Problem(404, "Not Found", "a saved page does not have this: open the file itself with memtrace serve");
    }
}

/* path: as the server is asked, "/r/1/tree?metric=maximum". */
export function answer(data: Data, path: string): unknown {
    const { saved } = data;
    const [place = "", text = ""] = path.split(/\?(.*)/s);
    const query = new URLSearchParams(text);
    if (place === "/session") {
        const source = { id: 1, name: saved.source, path: saved.source, kind: saved.events > 0 ? "recording" : "profile", live: false, state: "open", fingerprint: "", generation: 0 };
        return { version: saved.generator.replace(/^MemTrace /, ""), capabilities: [], limits: {}, sources: [source] };
    }
    const command = `memtrace report ${saved.source}`;
    if (place === "/command") return { command, sql: null };
    const endpoint = /^\/r\/[^/]+\/?(.*)$/.exec(place)?.[1];
    if (endpoint === undefined) throw new Problem(404, "Not Found", `a saved page has no ${place}`);
    const before = performance.now();
    const found = answerOf(data, endpoint, query);
    const whole: Answer<unknown> = {
        data: found, window: { from_ns: 0, to_ns: null }, exact: saved.sampled ? "estimate" : "exact", via: "model", ms: performance.now() - before, command,
    };
    return whole;
}
