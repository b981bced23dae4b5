// SPDX-License-Identifier: MIT
// answers.ts: answers from the data that a saved page has inside: the server's own where it wrote them (web/server/
// onefile.c), and what is made of sums (sums.ts). What needs more than sums is refused with the command that has it.
import { Problem, saveBlob, type Transport } from "../api";
import { BY_PATH } from "../filters";
import { rowsOf, sortTable, textCell, type Order } from "../rows";
import { COLUMNS, isSum, type LineSum, SUM_METRICS, Sums, type SumMetric, type SumsData, type SumsOptions } from "./sums";
import type { Answer, Cell, Column, Frame, Session, Summary, Table, Timeline, Tree } from "../types";

/* What the page finds in itself. */
export interface Embedded {
    session: Session & { by_line: boolean; all_frames: boolean };
    answers: Record<string, Answer<never> | { title: string; status: number; detail: string }>;
}

/* Filters by what stands on a path. */
const OF_PATHS: Record<string, (frame: Frame) => string> = {
    function: (frame) => frame.function, file: (frame) => frame.file ?? "", module: (frame) => frame.module,
};

/* Parameters that are no filters. */
const OTHERS: ReadonlySet<string> = new Set(["metric", "direction", "depth", "limit", "min-share", "sort", "order", "cursor", "focus", "regex", "series", "points",
    "graphs", "by", "full-names", "all-frames", "job", "snap", "all", "passes", "sizes", "within", "text"]);

export async function unpack(packed: string): Promise<Embedded> {
    const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return JSON.parse(await new Response(stream).text()) as Embedded;
}

export function embeddedTransport(data: Embedded): Transport {
    const answers = new Answers(data);
    return {
        async get(path) {
            return answers.get(path);
        },
        async post() {
            throw answers.needsFile();
        },
        async stream() {
            // Nothing happens to a saved page.
        },
        async save(path, name) {
            saveBlob(new Blob([JSON.stringify(answers.get(path))]), name);
        },
    };
}

class Answers {
    private readonly sums: Sums;
    private filters: string[] = []; // of the question, as the command has them
    constructor(private readonly data: Embedded) {
        this.sums = new Sums(this.known<SumsData>("sums").data);
    }

    /* Of what it is made of. */
    private known<T>(name: string): Answer<T> {
        const answer = this.data.answers[name];
        if (answer === undefined) throw this.needsFile();
        if ("status" in answer) throw new Problem(answer.status, answer.title, answer.detail);
        return answer;
    }
    needsFile(what = "This needs the file itself"): Problem {
        return new Problem(501, "A saved page", `${what}: memtrace serve ${this.data.session.sources[0]?.path ?? "FILE"}`);
    }

    get(path: string): unknown {
        const [where = "", text = ""] = path.split(/\?(.*)/s);
        const query = new URLSearchParams(text);
        if (where === "/session") return this.data.session;
        if (where === "/sources") return { opened: this.data.session.sources, found: [] };
        if (where === "/command") return { command: this.needsFile("").message.slice(2), sql: null };
        const [, endpoint = "", rest] = /^\/r\/1(?:\/([a-z]+)(?:\/(.*))?)?$/.exec(where) ?? [];
        return this.ofSource(endpoint, rest === undefined ? undefined : decodeURIComponent(rest), query);
    }

    private ofSource(endpoint: string, rest: string | undefined, query: URLSearchParams): unknown {
        if (query.has("base")) throw this.needsFile("A difference needs the files themselves");
        const options = this.options(query);
        switch (endpoint) {
            case "": return this.summary(options);
            case "timeline": return this.timeline(query, options);
            case "tree": return this.tree(query, options);
            case "callers": return this.callers(query, options);
            case "search": return this.search(query, options);
            case "functions": return this.functions(query, options);
            case "paths": return rest === undefined ? this.paths(query, options) : this.path(rest);
            case "files": return rest === undefined ? this.table("files", query) : this.file(rest, options);
            case "findings": return this.known("findings");
            default:
                if (rest !== undefined) throw this.needsFile();
                return this.table(endpoint, query);
        }
    }

    /* ---- What is selected ---- */

    private options(query: URLSearchParams): SumsOptions {
        const { by_line: byLine, all_frames: allFrames } = this.data.session;
        const by = query.get("by");
        const options: SumsOptions = { byLine: by === null ? byLine : by === "line", allFrames: allFrames || query.has("all-frames"), wanted: null };
        this.filters = [];
        for (const [name, value] of query) {
            if (OTHERS.has(name)) continue;
            if (!BY_PATH.has(name)) throw this.needsFile(`A saved page has sums of call paths, and no more: ${name} needs the file itself`);
            this.filters.push(`--${name}`, value);
            this.select((options.wanted ??= this.sums.allPaths()), name, value);
        }
        return options;
    }

    private select(wanted: Uint8Array, name: string, value: string): void {
        const without = name.startsWith("not-");
        if (name === "path") {
            const path = this.sums.find(value);
            const kept = path >= 0 ? wanted[path]! : 0;
            wanted.fill(0);
            if (path >= 0) wanted[path] = kept;
        } else {
            const spell = OF_PATHS[without ? name.slice(4) : name]!;
            const regex = regexOf(value);
            this.sums.narrow(wanted, (frame) => regex.test(spell(frame)), without);
        }
    }

    /* The answer of the server about all, with other data. Of some paths the maximum is not known: they may have held
     * most at another moment. */
    private like<T>(known: Answer<unknown>, data: T, metric: SumMetric | undefined, options: SumsOptions, words: readonly string[] = []): Answer<T> {
        const answer: Answer<T> = { ...known, data, command: withWords(known.command, [...words, ...this.filters]) };
        if (options.wanted !== null && metric === "maximum") {
            answer.exact = "bound";
            answer.notes = [...(known.notes ?? []), "As it was at the whole program's peak: what is selected may have held more at another moment."];
        }
        if (this.sums.data.left_out > 0) {
            answer.notes = [...(answer.notes ?? []), `${this.sums.data.left_out} of the smallest call paths are added up in this file.`];
        }
        return answer;
    }
    private metricOf(query: URLSearchParams): SumMetric {
        const metric = query.get("metric") ?? "maximum";
        if (!isSum(metric)) throw this.needsFile("This metric needs single blocks, and so the file itself");
        return metric;
    }

    /* ---- Summary, timeline, tables ---- */

    private summary(options: SumsOptions): Answer<Summary> {
        const known = this.known<Summary>("summary");
        const has = { ...known.data.has, events: false, mappings: !("status" in (this.data.answers["mappings"] ?? { status: 0 })) };
        const totals = { ...known.data.totals };
        if (options.wanted !== null) {
            const sum = (metric: SumMetric) => this.sums.total(metric, options);
            const column = (name: string) => this.sums.data.cells[name]!.reduce<number>((all, value, path) => all + (options.wanted![path] === 1 ? Number(value) : 0), 0);
            Object.assign(totals, {
                peak_bytes: sum("maximum"), live_bytes: column("live_bytes"), live_blocks: column("live_blocks"), total_bytes: sum("cumulative"),
                allocations: sum("allocations"), temporary: sum("temporary"), frees: column("frees"), contexts: options.wanted.reduce((all, one) => all + one, 0),
            });
        }
        const out = this.sums.data.left_out;
        const warnings = [...known.data.warnings, ...(out > 0 ? [`${out} of the smallest call paths are left out of this file one by one; sums have them.`] : [])];
        return this.like(known, { ...known.data, has, totals, warnings }, "maximum", options);
    }

    private timeline(query: URLSearchParams, options: SumsOptions): Answer<Timeline> {
        if (options.wanted !== null) throw this.needsFile("What these paths held over time is not in a saved page");
        const known = this.known<Timeline>("timeline");
        const wanted = query.get("series")?.split(",");
        const only = <T extends object>(of: T): T => Object.fromEntries(Object.entries(of).filter(([name]) => name === "time_ns" || wanted === undefined || wanted.includes(name))) as T;
        const { intervals, ...data } = known.data;
        return { ...known, data: { ...data, series: only(data.series), ...(intervals === undefined ? {} : { intervals: only(intervals) }) } };
    }

    /* A table that is there as a whole, sorted and cut as it is asked for. */
    private table(name: string, query: URLSearchParams): Answer<Table> {
        const known = this.known<Table>(name);
        return { ...known, data: cut(known.data, query) };
    }

    /* ---- Made of sums ---- */

    private treeOf(metric: SumMetric, nodes: Tree["nodes"]): Tree {
        const { data } = this.known<Tree>(`tree ${metric}`);
        return { metric, unit: data.unit, side_unit: data.side_unit, total: data.total, frames: [...this.sums.frames], nodes, cut: 0 };
    }

    private tree(query: URLSearchParams, options: SumsOptions): Answer<Tree> {
        const metric = this.metricOf(query);
        const up = query.get("direction") === "up";
        const nodes = this.sums.tree(metric, up, options, Number(query.get("depth") ?? 0));
        const tree = this.treeOf(metric, nodes);
        if (options.wanted !== null) tree.total = nodes.main[0] ?? 0;
        return this.like(this.known(`tree ${metric}`), tree, metric, options, up ? ["--bottom-up"] : []);
    }

    private callers(query: URLSearchParams, options: SumsOptions): Answer<unknown> {
        const metric = this.metricOf(query);
        const name = query.get("focus") ?? "";
        const { focus, root, callers, callees } = this.sums.around(name, metric, options, Number(query.get("depth") ?? 0));
        const frame: Frame = { ...(focus ?? { function: name, module: "", kind: "own" }) };
        delete frame.line;
        delete frame.inlined;
        const answer = this.like(this.known(`tree ${metric}`), {
            focus: frame, ...root, callers: this.treeOf(metric, callers), callees: this.treeOf(metric, callees),
        }, metric, options, ["--show-caller-callee", name]);
        if (focus === undefined) answer.notes = ["No call path with such a cost goes through this function."];
        return answer;
    }

    private search(query: URLSearchParams, options: SumsOptions): Answer<unknown> {
        const metric = this.metricOf(query);
        const regex = regexOf(query.get("regex") ?? "");
        const found = this.sums.frames.map((frame) => regex.test(frame.function));
        const functions = new Set<string>();
        let main = 0, total = 0;
        this.sums.each(metric, options, (path, cost) => {
            const hits = this.sums.path(path).filter((frame) => found[frame]);
            for (const frame of hits) functions.add(this.sums.frames[frame]!.function);
            main += hits.length > 0 ? cost.main : 0;
            total += cost.main;
        });
        const data = { functions: [...functions], count: functions.size, main, total, share: total > 0 ? main / total : 0 };
        return this.like(this.known(`tree ${metric}`), data, metric, options, ["--function", query.get("regex") ?? ""]);
    }

    private functions(query: URLSearchParams, options: SumsOptions): Answer<Table> {
        const metric = this.metricOf(query);
        const known = this.known<Table>(`functions ${metric}`);
        const all = options.wanted === null ? this.known<Tree>(`tree ${metric}`).data.total : this.sums.total(metric, options);
        const frames: Frame[] = [];
        const rows = this.sums.functions(metric, options).map(({ frame, self, total }): Cell[] => {
            const { line, inlined: _, ...plain } = this.sums.frames[frame]!;
            frames.push(options.byLine && line !== undefined ? { ...plain, line } : plain);
            return [frames.length - 1, self.main, total.main, all > 0 ? (100 * total.main) / all : 0, total.side];
        });
        const table: Table = { columns: known.data.columns, rows, total: rows.length, frames };
        return this.like(known, cut(table, query, "total"), metric, options);
    }

    private paths(query: URLSearchParams, options: SumsOptions): Answer<Table> {
        const metric = this.metricOf(query);
        const known = this.known<Table>(`paths ${metric}`);
        const columns = known.data.columns;
        const list: number[] = [];
        this.sums.each(metric, options, (path) => {
            if (!this.sums.isRest(path)) list.push(path);
        });
        // Cells of paths are made for those that are shown; sorted by them they are by the allocating function.
        const rows = list.map((path) => columns.map(({ kind, name }): Cell => (kind === "path" ? path : this.cell(path, name, metric))));
        let all = 0;
        for (let path = 0; path < this.sums.count; path++) if (!this.sums.isRest(path) && options.wanted?.[path] !== 0) all++;
        const table = { columns, rows, total: rows.length, frames: [...this.sums.frames], paths: { length: this.sums.count } as number[][], without_cost: all - rows.length };
        const byPath = columns.find((column) => column.kind === "path" && column.name === query.get("sort"));
        if (byPath !== undefined) table.paths = Array.from({ length: this.sums.count }, (_, path) => this.sums.path(path));
        const shown = cut(table, query, columns.find((column) => column.name === COLUMNS[metric][0])?.name);
        return this.like(known, this.withPaths(shown, columns), metric, options);
    }
    private cell(path: number, name: string, metric: SumMetric): Cell {
        if (metric === "leaked" && name === "live_bytes") return this.sums.cost(path, metric).main;
        if (metric === "leaked" && name === "live_blocks") return this.sums.cost(path, metric).side;
        return this.sums.data.cells[name]?.[path] ?? null;
    }
    /* The paths of the rows, numbered anew. */
    private withPaths(table: Table, columns: readonly Column[]): Table {
        const place = columns.findIndex((column) => column.kind === "path");
        const paths = table.rows.map((row) => this.sums.path(Number(row[place])));
        const rows = table.rows.map((row, index) => row.map((cell, at) => (at === place ? index : cell)));
        return { ...table, rows, paths };
    }

    private path(hash: string): Answer<unknown> {
        const path = this.sums.find(hash);
        if (hash === "") throw new Problem(404, "Not Found", "call paths this deep have no hash in a saved page; memtrace serve shows them");
        if (path < 0) throw new Problem(404, "Not Found", `there is no call path ${hash} in this file`);
        const cells = Object.fromEntries(Object.entries(this.sums.data.cells).map(([name, values]) => [name, values[path] ?? null]));
        const frames = this.sums.path(path).map((frame) => this.sums.frames[frame]);
        return { ...this.known<Table>("paths maximum"), data: { ...cells, hash, frames, timeline: null, sizes: null, lifetimes: null } };
    }

    /* "3", the lines of a file; "3/text" */
    private file(rest: string, options: SumsOptions): Answer<unknown> {
        const known = this.known<Table>("files");
        const [number, text] = rest.split("/");
        const row = rowsOf(known.data).find((one) => textCell(one, "number") === number);
        if (row === undefined) throw new Problem(404, "Not Found", `there is no source file '${number}'`);
        const file = textCell(row, "file");
        if (text !== undefined) {
            const note = `A saved page has no source text. ${this.needsFile("With it").message}`;
            return { ...known, data: { file, state: "missing", text: null, language: "", note } };
        }
        return this.like(known, { file, lines: this.sums.lines(file, options).map((line) => this.line(line)) }, undefined, options);
    }
    private line({ line, frame, paths, self, total }: LineSum) {
        const own = Object.fromEntries(SUM_METRICS.map((metric) => [`self_${metric}`, self[metric]]));
        return { line, function: this.sums.frames[frame]!.function, ...total, ...own, paths };
    }
}

/* The command with more options: behind the one that says what is shown. */
function withWords(command: string, words: readonly string[]): string {
    const plain = words.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replace(/'/g, "'\\''")}'`));
    return words.length === 0 ? command : command.replace(/^memtrace report(?: --[a-z-]+)?/, (all) => `${all} ${plain.join(" ")}`);
}

/* POSIX extended, as near as the browser's own come to it: named classes of letters are spelled out. */
const CLASSES: Record<string, string> = {
    alpha: "A-Za-z", digit: "0-9", alnum: "A-Za-z0-9", upper: "A-Z", lower: "a-z", space: "\\s", xdigit: "0-9A-Fa-f", punct: "!-\\/:-@\\[-`{-~",
};
function regexOf(text: string): RegExp {
    try {
        return new RegExp(text.replace(/\[:([a-z]+):\]/g, (all, name: string) => CLASSES[name] ?? all));
    } catch {
        throw new Problem(400, "Bad Request", `'${text}' is not a regular expression`);
    }
}

function cut(table: Table, query: URLSearchParams, usual?: string): Table {
    const sort = query.get("sort") ?? usual;
    const kind = table.columns.find((column) => column.name === sort)?.kind ?? "text";
    const order = query.get("order") ?? (["text", "word", "frame", "path"].includes(kind) ? "asc" : "desc");
    const from = Number(query.get("cursor") ?? 0);
    const end = from + Number(query.get("limit") ?? 1000);
    const rows = sortTable(table, sort ?? undefined, order as Order);
    return { ...table, rows: rows.slice(from, end), total: rows.length, ...(end < rows.length ? { next: String(end) } : {}) };
}
