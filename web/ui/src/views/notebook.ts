// SPDX-License-Identifier: MIT
// notebook.ts: a notebook of SQL: its cells, how it is kept in the browser, and written as Markdown that others read, too;
// text in cells (a little of Markdown); what kind of values the columns of an answer have.
import { keep, readKept } from "../settings";
import type { Cell, Column, Kind, Table } from "../types";

export type ChartType = "table" | "line" | "bar" | "histogram" | "scatter" | "heat";
export interface ChartWish {
    type: ChartType;
    x?: string;
    y?: string;
    weight?: string;
}
export interface NoteCell {
    id: string;
    kind: "sql" | "text";
    text: string;
    chart?: ChartWish;
}

let count = 0;
const newId = (): string => `c${Date.now().toString(36)}${(++count).toString(36)}`;
export const textCell = (text: string): NoteCell => ({ id: newId(), kind: "text", text });
export const sqlCell = (text: string, chart?: ChartWish): NoteCell => ({ id: newId(), kind: "sql", text, ...(chart === undefined ? {} : { chart }) });

/* ---- Kept ---- */

const KEY = "memtrace-notebook";
const MOST = 200;

export function parseCells(text: string | null): NoteCell[] | null {
    if (text === null) return null;
    try {
        const given: unknown = JSON.parse(text);
        if (!Array.isArray(given)) return null;
        const cells = given.slice(0, MOST).flatMap((one: Partial<NoteCell>): NoteCell[] =>
            (one.kind === "sql" || one.kind === "text") && typeof one.text === "string"
                ? [{ id: newId(), kind: one.kind, text: one.text, ...(isChart(one.chart) ? { chart: one.chart } : {}) }] : []);
        return cells.length === 0 ? null : cells;
    } catch {
        return null;
    }
}
const TYPES: readonly string[] = ["table", "line", "bar", "histogram", "scatter", "heat"];
function isChart(given: unknown): given is ChartWish {
    return typeof given === "object" && given !== null && TYPES.includes((given as ChartWish).type) &&
        ["x", "y", "weight"].every((name) => ["string", "undefined"].includes(typeof (given as Record<string, unknown>)[name]));
}
export const loadCells = (): NoteCell[] | null => parseCells(readKept(KEY));
export const keepCells = (cells: readonly NoteCell[]): void => keep(KEY, JSON.stringify(cells));

/* ---- As Markdown ---- */

export function toMarkdown(cells: readonly NoteCell[]): string {
    return cells.map((cell) => {
        if (cell.kind === "text") return cell.text.trim();
        const { type, x, y, weight } = cell.chart ?? { type: "table" };
        const wish = type === "table" ? "" : ` ${[`chart=${type}`, ...(x ? [`x=${x}`] : []), ...(y ? [`y=${y}`] : []), ...(weight ? [`weight=${weight}`] : [])].join(" ")}`;
        return "```sql" + wish + "\n" + cell.text.trim() + "\n```";
    }).join("\n\n") + "\n";
}

export function fromMarkdown(text: string): NoteCell[] {
    const cells: NoteCell[] = [];
    const add = (kind: NoteCell["kind"], part: string, chart?: ChartWish) => {
        if (part.trim() !== "") cells.push({ id: newId(), kind, text: part.trim(), ...(chart === undefined ? {} : { chart }) });
    };
    let at = 0;
    for (const found of text.matchAll(/^```sql([^\n]*)\n([\s\S]*?)^```[ \t]*$/gm)) {
        add("text", text.slice(at, found.index));
        const wish = Object.fromEntries([...(found[1] ?? "").matchAll(/(\w+)=(\S+)/g)].map((one) => [one[1] ?? "", one[2] ?? ""]));
        const chart = { type: wish["chart"], ...(wish["x"] ? { x: wish["x"] } : {}), ...(wish["y"] ? { y: wish["y"] } : {}), ...(wish["weight"] ? { weight: wish["weight"] } : {}) };
        add("sql", found[2] ?? "", isChart(chart) ? chart : undefined);
        at = (found.index ?? 0) + found[0].length;
    }
    add("text", text.slice(at));
    return cells;
}

/* ---- Text ---- */

export type Inline = { kind: "" | "bold" | "code"; text: string };
export type Block = { kind: "heading" | "text" | "item"; level: number; inline: Inline[] };

/* Headings, lists, paragraphs; **bold** and `code` in them. All else is text as it stands. */
export function readText(text: string): Block[] {
    const blocks: Block[] = [];
    let open = false;
    for (const line of text.split("\n")) {
        const heading = /^(#{1,3})\s+(.*)$/.exec(line);
        const item = /^\s*[-*]\s+(.*)$/.exec(line);
        if (line.trim() === "") open = false;
        else if (heading !== null) {
            blocks.push({ kind: "heading", level: heading[1]?.length ?? 1, inline: inlineOf(heading[2] ?? "") });
            open = false;
        } else if (item !== null) {
            blocks.push({ kind: "item", level: 0, inline: inlineOf(item[1] ?? "") });
            open = true;
        } else if (open) blocks.at(-1)?.inline.push({ kind: "", text: " " }, ...inlineOf(line.trim()));
        else {
            blocks.push({ kind: "text", level: 0, inline: inlineOf(line.trim()) });
            open = true;
        }
    }
    return blocks;
}
function inlineOf(text: string): Inline[] {
    return text.split(/(\*\*[^*]+\*\*|`[^`]+`)/).filter((part) => part !== "").map((part) =>
        part.length > 4 && part.startsWith("**") && part.endsWith("**") ? { kind: "bold", text: part.slice(2, -2) } :
        part.length > 2 && part.startsWith("`") && part.endsWith("`") ? { kind: "code", text: part.slice(1, -1) } : { kind: "", text: part });
}

/* ---- Kinds of columns ---- */

const TIMES = /(^|_)(time|born|freed|lifetime|started|ended|begun|duration|chain_born|chain_lifetime|age|loaded|unloaded)$|_ns$/;
const SIZES = /(^|_)(bytes|size|slack|usable|alignment|resident|swap|virtual)$|bytes/;

/* SQL has numbers and text: their names say more. `schema` has the names of columns that a table has. */
export function kindOf(name: string, values: readonly Cell[]): Kind {
    const known = values.filter((value) => value !== null);
    const lower = name.toLowerCase();
    const isNumber = known.length > 0 && known.every((value) => typeof value === "number" || (typeof value === "string" && /^-?\d{16,}$/.test(value)));
    if (!isNumber) return known.length > 0 && known.every((value) => typeof value === "string" && /^[0-9a-f]{16}$/.test(value)) ? "hash" : "text";
    if (lower === "address") return "address";
    if (SIZES.test(lower)) return "bytes";
    if (TIMES.test(lower)) return "duration";
    return known.every((value) => Number.isInteger(Number(value))) ? "count" : "real";
}

/* With kinds instead of "any"; addresses as people read them. */
export function typed(table: Table): Table {
    const columns = table.columns.map((column, index): Column => ({ ...column, heading: column.name, kind: kindOf(column.name, table.rows.slice(0, 200).map((row) => row[index] ?? null)) }));
    const addresses = columns.flatMap((column, index) => (column.kind === "address" ? [index] : []));
    const rows = addresses.length === 0 ? table.rows : table.rows.map((row) =>
        row.map((value, index) => (addresses.includes(index) && value !== null ? "0x" + BigInt(value as number | string).toString(16) : value)));
    return { ...table, columns, rows };
}

/* The answer as CSV (RFC 4180), numbers as they are. */
export function toCsv(table: Table): string {
    const field = (value: Cell) => {
        const text = value === null ? "" : String(value);
        return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    };
    return [table.columns.map((column) => field(column.name)), ...table.rows.map((row) => row.map(field))].map((row) => row.join(",")).join("\r\n") + "\r\n";
}

/* ---- To begin with ---- */

export interface Starter {
    title: string;
    sql: string;
    chart?: ChartWish;
    needs?: "events";
}
export const STARTERS: readonly Starter[] = [
    { title: "Call paths that held most", sql: "SELECT function, file, line, peak_bytes, live_bytes, total_bytes, allocations\nFROM contexts\nORDER BY peak_bytes DESC\nLIMIT 20", chart: { type: "bar", x: "function", y: "peak_bytes" } },
    { title: "Memory over time", sql: "SELECT time, live_bytes, resident_bytes\nFROM timeline", chart: { type: "line", x: "time", y: "live_bytes" } },
    { title: "What each file leaks", sql: "SELECT file, sum(live_bytes) AS leaked_bytes, sum(live_blocks) AS blocks\nFROM contexts\nGROUP BY file\nHAVING leaked_bytes > 0\nORDER BY leaked_bytes DESC" },
    { title: "How large blocks are", sql: "SELECT size\nFROM allocations\nLIMIT 100000", chart: { type: "histogram", x: "size" }, needs: "events" },
    { title: "When blocks were born, and how long they lived", sql: "SELECT born, lifetime, size\nFROM allocations\nWHERE lifetime > 0\nLIMIT 100000", chart: { type: "heat", x: "born", y: "lifetime" }, needs: "events" },
    { title: "Size against lifetime", sql: "SELECT size, lifetime\nFROM allocations\nWHERE lifetime > 0 AND size > 0\nLIMIT 20000", chart: { type: "scatter", x: "size", y: "lifetime" }, needs: "events" },
    { title: "Chains that were reallocated most", sql: "SELECT chain, max(chain_length) AS reallocations, max(size) AS last_size, max(context) AS context\nFROM allocations\nGROUP BY chain\nHAVING reallocations > 3\nORDER BY reallocations DESC\nLIMIT 50", needs: "events" },
    { title: "Large blocks that lived briefly", sql: "SELECT id, address, size, born, lifetime, thread, context\nFROM allocations\nWHERE size >= 65536 AND lifetime < 1000000\nORDER BY size DESC\nLIMIT 100", needs: "events" },
    { title: "Who freed whose blocks", sql: "SELECT owner, freer, blocks, bytes\nFROM foreign_frees\nORDER BY blocks DESC", chart: { type: "heat", x: "freer", y: "owner", weight: "blocks" } },
    { title: "How long scopes took", sql: "SELECT name, count(*) AS times, avg(duration) AS mean_duration, max(duration) AS longest_duration\nFROM scopes\nGROUP BY name\nORDER BY longest_duration DESC" },
];

export function firstCells(hasEvents: boolean): NoteCell[] {
    const [paths, time] = STARTERS;
    const blocks = STARTERS[3];
    return [
        textCell("# Questions of your own\nEvery allocation, call path and thread is a row. **Ctrl-Enter** runs a cell, **Escape** cancels it; double-click text to change it. Filters and the window above hold here, too. The notebook is kept in this browser."),
        sqlCell(paths?.sql ?? "", { type: "table" }),
        sqlCell(time?.sql ?? "", time?.chart),
        ...(hasEvents && blocks !== undefined ? [sqlCell(blocks.sql, blocks.chart)] : []),
    ];
}
