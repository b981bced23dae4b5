// SPDX-License-Identifier: MIT
// complete.ts: values of filters that the file itself has: functions, files, marks, threads ...
import { ask } from "../ask";
import * as format from "../format";
import type { Filter } from "../filters";
import { escapeRegex, exactly } from "../links";
import { runQuery } from "../query";
import type { Answer, Cell, Table } from "../types";

export interface Completion {
    value: string;
    about: string;
}

const EXAMPLES: Record<string, readonly string[]> = {
    TIME: ["start", "peak", "end", "50%"], RANGE: ["1", "2..10", "1000.."], SIZES: ["..99", "1K..64K", "1M.."],
    DURATIONS: ["..1ms", "1s..", "10ms..1s"], TIMES: ["start..10%", "1s..2s", "90%..end"], CLASS: ["heap", "mapping", "pool"], ARENA: ["main", "other"],
    PERMISSIONS: [".w.", "..x"],
    SQL: ["size % 4096 = 0", "usable > 2 * size", "reallocated AND lifetime > 1000000", "freed IS NULL AND thread <> 1"],
};

async function column(endpoint: string, name: string, about: string): Promise<Completion[]> {
    const { data } = await ask<Answer<Table>>(endpoint, { limit: 1000 }, true);
    const at = data.columns.findIndex((one) => one.name === name);
    const beside = data.columns.findIndex((one) => one.name === about);
    const seen = new Map<string, Completion>();
    for (const row of data.rows) {
        const value = text(data, row[at] ?? null);
        if (value !== "" && !seen.has(value)) seen.set(value, { value, about: beside < 0 ? "" : spell(data, beside, row[beside] ?? null) });
    }
    return [...seen.values()];
}
const text = (table: Table, cell: Cell): string => (typeof cell === "number" && table.frames?.[cell] !== undefined ? table.frames[cell].function : String(cell ?? ""));
function spell(table: Table, at: number, cell: Cell): string {
    const kind = table.columns[at]?.kind;
    if (kind === "bytes") return format.bytes(Number(cell));
    if (kind === "duration") return format.duration(Number(cell));
    return String(cell ?? "");
}

/* Of rows (value, what it is) that SQL finds in what is selected. */
async function rowsOf(sql: string): Promise<Completion[]> {
    const { data } = await runQuery({ sql, limit: 30 }, new AbortController().signal);
    return data.rows.map(([value, about]) => ({ value: String(value ?? ""), about: String(about ?? "") }));
}
const HASHES = "SELECT hash, function FROM contexts WHERE class = 'heap' ORDER BY total_bytes DESC";
const FREED = "SELECT path_hash(freed_context), function(freed_context) FROM allocations WHERE freed_context IS NOT NULL GROUP BY freed_context ORDER BY count(*) DESC";
const POOLS = "SELECT DISTINCT pool, '' FROM contexts WHERE pool IS NOT NULL ORDER BY 1";

async function functions(value: string): Promise<Completion[]> {
    const typed = value.replace(/[\\^$]/g, "");
    if (typed === "") return [];
    const { data } = await ask<Answer<{ functions: string[] }>>("search", { regex: escapeRegex(typed) }, true);
    return data.functions.slice(0, 30).map((name) => ({ value: exactly(name), about: name }));
}

export async function completions(filter: Filter, value: string): Promise<Completion[]> {
    const examples = (EXAMPLES[filter.value ?? ""] ?? []).map((one) => ({ value: one, about: "" }));
    try {
        return [...(await known(filter, value)), ...examples].filter((one) => matches(one, value, filter)).slice(0, 30);
    } catch {
        return examples;
    }
}
const matches = (one: Completion, value: string, filter: Filter): boolean =>
    filter.complete === "function" || one.value.toLowerCase().includes(value.toLowerCase()) || one.about.toLowerCase().includes(value.toLowerCase());

async function known(filter: Filter, value: string): Promise<Completion[]> {
    switch (filter.complete) {
        case "function": return functions(value);
        case "file": return (await column("files", "file", "maximum")).map((one) => ({ ...one, value: exactly(one.value) }));
        case "module": return (await column("modules", "path", "")).map((one) => ({ ...one, value: exactly(one.value) }));
        case "thread": return column("threads", "name", "total_bytes");
        case "scope": return column("scopes", "name", "");
        case "mark": {
            const marks = await column("marks", "name", "time_ns");
            return filter.name === "between" ? marks : marks.map((one) => ({ ...one, value: `mark:${one.value}` }));
        }
        case "mapping": return column("mappings", "id", "path");
        case "permissions": return column("mappings", "permissions", "");
        case "hash": return rowsOf(filter.name === "freed-path" ? FREED : HASHES);
        case "pool": return rowsOf(POOLS);
        default: return [];
    }
}
