// SPDX-License-Identifier: MIT
// saved.test.ts: what a saved page makes of the sums inside of it, reckoned by hand.
//
//   main ─┬─ parse ── malloc_it        10 bytes at maximum, 1 allocation, line 11
//         ├─ parse ── parse ── malloc_it     20, 2: one call of parse more
//         ├─ dump                      5, 1
//         └─ (smaller call paths)      7, 3: what was left out
import assert from "node:assert/strict";
import test from "node:test";
import { Problem } from "../src/api";
import { type Embedded, embeddedTransport, unpack } from "../src/saved/answers";
import type { SumsData } from "../src/saved/sums";
import type { Answer, Frame, Table, Tree } from "../src/types";

const frame = (name: string, file: string, line: number): Frame => ({ function: name, file, line, module: "/bin/day", kind: "own" });
const sums: SumsData = {
    cells: {
        hash: ["aa", "bb", "cc", null], peak_bytes: [10, 20, 5, 7], live_bytes: [0, 0, 5, 0], live_blocks: [0, 0, 1, 0],
        total_bytes: [10, 40, 5, 21], allocations: [1, 2, 1, 3], frees: [1, 2, 0, 3], temporary: [0, 0, 0, 1],
    },
    // main, parse, malloc_it, parse, malloc_it, dump, what was left out
    nodes: { depth: [1, 2, 3, 3, 4, 2, 2], frame: [0, 1, 3, 2, 3, 4, 5] },
    ends: [3, 5, 6, 7],
    frames: [frame("main", "day.c", 5), frame("parse", "day.c", 10), frame("parse", "day.c", 12), frame("malloc_it", "day.c", 11),
        frame("dump", "dump.c", 20), { function: "(smaller call paths)", module: "", kind: "system" }],
    functions: [0, 1, 1, 2, 3, 4],
    left_out: 3,
    rests: 1,
};
const told = <T>(data: T): Answer<T> => ({ data, window: { from_ns: 0, to_ns: null }, exact: "exact", via: "model", ms: 1, command: "memtrace report --show-peak day.mtr" });
const head = { metric: "maximum", unit: "bytes", side_unit: "count", total: 42, frames: [], nodes: {}, cut: 0 };
const column = (name: string, kind: string) => ({ name, heading: name, kind });
const page = embeddedTransport({
    session: { version: "1", capabilities: [], limits: {}, sources: [{ id: 1, name: "day.mtr", path: "/tmp/day.mtr" }], by_line: false, all_frames: false },
    answers: {
        summary: told({ totals: { peak_bytes: 42, frees: 6 }, has: { events: true }, warnings: [] }), sums: told(sums),
        "tree maximum": told(head), "tree leaked": told(head),
        "functions maximum": told({ columns: [column("function", "frame"), column("self", "bytes"), column("total", "bytes"), column("share", "percent"), column("blocks", "count")], rows: [], total: 0 }),
        "paths maximum": told({ columns: [column("hash", "hash"), column("path", "path"), column("peak_bytes", "bytes")], rows: [], total: 0 }),
        files: told({ columns: [column("number", "count"), column("file", "text")], rows: [[0, "day.c"]], total: 1 }),
        marks: { title: "Bad Request", status: 400, detail: "no marks here" },
    },
} as unknown as Embedded);
const ask = async <T>(path: string): Promise<Answer<T>> => (await page.get(path, new AbortController().signal)) as Answer<T>;

const flat = ({ nodes, frames }: Tree) => Array.from(nodes.frame, (at, node) => [frames[at]?.function ?? "all", nodes.main[node], nodes.side[node], nodes.self[node], nodes.parent[node]]);

test("the tree down from main: a function that calls itself is one call, the dearest first", async () => {
    assert.deepEqual(flat((await ask<Tree>("/r/1/tree?metric=maximum")).data), [
        ["all", 42, 7, 0, 0], ["main", 42, 7, 0, 0], ["parse", 30, 3, 0, 1], ["malloc_it", 30, 3, 30, 2], ["(smaller call paths)", 7, 3, 7, 1], ["dump", 5, 1, 5, 1],
    ]);
    assert.deepEqual(flat((await ask<Tree>("/r/1/tree?metric=leaked")).data), [["all", 5, 1, 0, 0], ["main", 5, 1, 0, 0], ["dump", 5, 1, 5, 1]]);
});

test("the tree up from what allocates", async () => {
    const answer = await ask<Tree>("/r/1/tree?metric=maximum&direction=up");
    assert.deepEqual(flat(answer.data).filter(([, , , , parent], node) => node > 0 && parent === 0).map(([name, main]) => [name, main]),
        [["malloc_it", 30], ["(smaller call paths)", 7], ["dump", 5]]);
    assert.equal(answer.command, "memtrace report --show-peak --bottom-up day.mtr");
});

test("functions, callers, lines: a path counts once", async () => {
    const { rows, frames } = (await ask<Table>("/r/1/functions?metric=maximum")).data;
    assert.deepEqual(rows.map(([at, ...figures]) => [frames?.[Number(at)]?.function, ...figures.map((one) => Math.round(Number(one)))]),
        [["main", 0, 42, 100, 7], ["parse", 0, 30, 71, 3], ["malloc_it", 30, 30, 71, 3], ["(smaller call paths)", 7, 7, 17, 3], ["dump", 5, 5, 12, 1]]);
    const around = (await ask<{ main: number; self: number; callers: Tree; callees: Tree }>("/r/1/callers?focus=parse&metric=maximum")).data;
    assert.deepEqual([around.main, around.self, flat(around.callers).length, flat(around.callees).length], [30, 0, 2, 2]);
    const lines = (await ask<{ lines: Record<string, number>[] }>("/r/1/files/0")).data.lines;
    assert.deepEqual(lines.map(({ line, maximum, self_maximum, paths }) => [line, maximum, self_maximum, paths]), [[5, 42, 0, 4], [10, 30, 0, 2], [11, 30, 30, 2], [12, 20, 0, 1]]);
});

test("call paths: those that are left out are no rows", async () => {
    const { data, notes } = await ask<Table>("/r/1/paths?metric=maximum&limit=2");
    assert.deepEqual(data.rows.map((row) => [row[0], row[2]]), [["bb", 20], ["aa", 10]]);
    assert.deepEqual(data.paths?.[Number(data.rows[0]?.[1])]?.map((at) => data.frames?.[at]?.function), ["malloc_it", "parse", "parse", "main"]);
    assert.deepEqual([data.total, data.next], [3, "2"]);
    assert.match(notes?.join() ?? "", /^3 of the smallest/);
});

test("filters: what they select, and that its maximum is a bound", async () => {
    const answer = await ask<Tree>("/r/1/tree?metric=maximum&function=%5Eparse%24&not-function=nothing");
    assert.deepEqual([answer.data.nodes.main[0], answer.exact], [30, "bound"]);
    assert.equal(answer.command, "memtrace report --show-peak --function '^parse$' --not-function nothing day.mtr");
    assert.equal((await ask<Tree>("/r/1/tree?metric=maximum&path=cc")).data.nodes.main[0], 5);
    assert.equal((await ask<Tree>("/r/1/tree?metric=maximum&file=%5B%5B%3Aalpha%3A%5D%5Dump")).data.nodes.main[0], 5, "POSIX's classes");
});

test("what is not inside says so", async () => {
    for (const path of ["/r/1/blocks", "/r/1/tree?from=1s", "/r/1/tree?metric=shutdown", "/r/1/tree?base=1"]) {
        await assert.rejects(ask(path), (error) => error instanceof Problem && /memtrace serve \/tmp\/day\.mtr$/.test(error.message), path);
    }
    await assert.rejects(ask("/r/1/marks"), /no marks here/);
    await assert.rejects(ask("/r/1/tree?function=("), /regular expression/);
    await assert.rejects(unpack("bm90IHBhY2tlZA=="));
});
