// SPDX-License-Identifier: MIT
// notebook.test.ts: the SQL notebook: kept and read back, Markdown, text in cells, kinds of columns, bins of charts, colours
// and completion of SQL.
import assert from "node:assert/strict";
import test from "node:test";
import { binOf, grid, histogram, scaleOf, thinned } from "../src/views/SqlChart";
import { complete, sqlPieces } from "../src/components/SqlEditor";
import { firstCells, fromMarkdown, kindOf, type NoteCell, parseCells, readText, STARTERS, toCsv, toMarkdown, typed } from "../src/views/notebook";
import type { Kind } from "../src/types";

const plain = (cells: readonly NoteCell[] | null) => cells?.map(({ id: _, ...rest }) => rest);

test("a notebook comes back from the browser and from Markdown", () => {
    const cells: NoteCell[] = [
        { id: "1", kind: "text", text: "# Title\n\nSome `code`." },
        { id: "2", kind: "sql", text: "SELECT 1", chart: { type: "heat", x: "a", y: "b", weight: "c" } },
        { id: "3", kind: "sql", text: "SELECT '```' AS x\nFROM t" },
    ];
    assert.deepEqual(plain(parseCells(JSON.stringify(cells))), plain(cells));
    assert.deepEqual(plain(fromMarkdown(toMarkdown(cells))), plain(cells));
    assert.deepEqual(plain(fromMarkdown(toMarkdown(firstCells(true)))), plain(firstCells(true))?.map((one) => (one.chart?.type === "table" ? { kind: one.kind, text: one.text } : one)));
});

test("what is no notebook is none", () => {
    for (const text of [null, "", "{}", "[]", "[1,2]", '[{"kind":"sql"}]', '[{"kind":"evil","text":"x"}]', "nonsense"]) assert.equal(parseCells(text), null, String(text));
    assert.deepEqual(plain(parseCells('[{"kind":"sql","text":"x","chart":{"type":"evil"}}]')), [{ kind: "sql", text: "x" }]);
});

test("text: headings, lists, paragraphs, and all else as it stands", () => {
    const blocks = readText("# A **b**\ntext `c`\ngoes on\n\n- one\n- two <b>x</b>");
    assert.deepEqual(blocks.map((block) => block.kind), ["heading", "text", "item", "item"]);
    assert.deepEqual(blocks[0]?.inline, [{ kind: "", text: "A " }, { kind: "bold", text: "b" }]);
    assert.equal(blocks[1]?.inline.map((one) => one.text).join(""), "text c goes on");
    assert.deepEqual(blocks[3]?.inline, [{ kind: "", text: "two <b>x</b>" }]);
    assert.deepEqual(readText("** * `"), [{ kind: "text", level: 0, inline: [{ kind: "", text: "** * `" }] }]);
});

test("kinds of columns by their names and values", () => {
    const of = (name: string, ...values: (number | string | null)[]): Kind => kindOf(name, values);
    assert.equal(of("live_bytes", 5), "bytes");
    assert.equal(of("size", 5, null), "bytes");
    assert.equal(of("last_size", 5), "bytes");
    assert.equal(of("lifetime", 5), "duration");
    assert.equal(of("mean_duration", 5.5), "duration");
    assert.equal(of("address", "140737488355328000"), "address");
    assert.equal(of("blocks", 5), "count");
    assert.equal(of("share", 0.5), "real");
    assert.equal(of("function", "main"), "text");
    assert.equal(of("hash", "42bfec89d1a5dd68"), "hash");
    assert.equal(of("size", null), "text");
    const table = typed({ columns: [{ name: "address", heading: "", kind: "any" }], rows: [[93836000000000], [null], ["9223372036854775807"]], total: 3 });
    assert.deepEqual(table.rows, [["0x" + (93836000000000).toString(16)], [null], ["0x7fffffffffffffff"]]);
});

test("CSV as RFC 4180 has it", () => {
    const columns = ["a", "b\"c"].map((name) => ({ name, heading: "", kind: "any" as Kind }));
    assert.equal(toCsv({ columns, rows: [[1, "x,y"], [null, "line\nbreak"]], total: 2 }), 'a,"b""c"\r\n1,"x,y"\r\n,"line\nbreak"\r\n');
});

test("each number is in exactly one bin", () => {
    for (const values of [[1, 2, 3, 4, 5, 6, 7], [0, 1, 10, 100, 1_000_000], [5, 5, 5], [-3, 0.5, 2], [16, 24, 4096, 1e9], Array.from({ length: 100 }, (_, i) => i)]) {
        const scale = scaleOf(values, 10);
        assert.ok(scale !== null);
        assert.equal(histogram(values, scale).reduce((sum, count) => sum + count, 0), values.length, `${values}`);
        for (let i = 1; i < scale.edges.length; i++) assert.ok((scale.edges[i] ?? 0) > (scale.edges[i - 1] ?? 0));
    }
    assert.equal(scaleOf([NaN], 5), null);
    assert.deepEqual(histogram([1, 1, 2, 3], scaleOf([1, 1, 2, 3], 28)!), [2, 1, 1]);
    const even = histogram(Array.from({ length: 100 }, (_, i) => i), scaleOf(Array.from({ length: 100 }, (_, i) => i), 28)!);
    assert.ok(even.slice(0, -1).every((count) => count === even[0]), "whole numbers, whole bins");
    assert.equal(binOf({ edges: [0, 1, 2], isLog: false }, 2), 1);
    assert.equal(binOf({ edges: [0, 1, 2], isLog: false }, 2.1), -1);
});

test("sizes over many powers of ten are parted by the logarithm", () => {
    const scale = scaleOf([0, 8, 1e6], 6);
    assert.equal(scale?.isLog, true);
    assert.equal(binOf(scale!, 0), 0);
    assert.ok(binOf(scale!, 8) === 1);
    assert.equal(binOf(scale!, 1e6), scale!.edges.length - 2);
});

test("a heat map counts pairs, or adds weights", () => {
    const [x, y] = [{ edges: [0, 1, 2], isLog: false }, { edges: [0, 10, 20], isLog: false }];
    assert.deepEqual(grid([0, 1.5, 1.5, NaN], [5, 15, 16, 1], null, x, y), [[1, 0], [0, 2]]);
    assert.deepEqual(grid([0, 1.5, 1.5, 9], [5, 15, 16, 1], [3, 4, 5, 6], x, y), [[3, 0], [0, 9]]);
    assert.deepEqual(thinned([1, 2, 3, 4, 5, 6], 3), [1, 3, 5]);
});

const names = { tables: new Set(["allocations", "contexts"]), columns: new Set(["size", "lifetime", "live_bytes"]) };

test("colours leave the text as it is", () => {
    for (const text of [...STARTERS.map((one) => one.sql), "SELECT 'it''s' -- c\n/* x", "'open", "", "a.b <> 0x1f AND \"q\""]) {
        assert.equal(sqlPieces(text, names).map((piece) => piece.text).join(""), text);
    }
    const kinds = sqlPieces("select size FROM allocations WHERE x = 'a''b' AND y > 1.5 -- end", names).filter((piece) => piece.kind !== "").map((piece) => [piece.kind, piece.text]);
    assert.deepEqual(kinds, [["keyword", "select"], ["column", "size"], ["keyword", "FROM"], ["table", "allocations"], ["keyword", "WHERE"], ["string", "'a''b'"], ["keyword", "AND"], ["number", "1.5"], ["comment", "-- end"]]);
});

test("completion: what fits the word at the cursor, nothing in strings and comments", () => {
    assert.deepEqual(complete("SELECT li", 9, names), { from: 7, words: ["lifetime", "live_bytes", "like", "limit"] });
    assert.deepEqual(complete("SELECT size FROM al", 19, names)?.words[0], "allocations");
    assert.ok(complete("SEL", 3, names)?.words.includes("SELECT"));
    assert.equal(complete("SELECT 'li", 10, names), null);
    assert.equal(complete("-- li", 5, names), null);
    assert.equal(complete("SELECT l", 8, names), null);
    assert.equal(complete("SELECT lifetime", 9, names), null, "in the middle of a word");
});
