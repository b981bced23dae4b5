// SPDX-License-Identifier: MIT
// sqltext.ts: SQL as pieces to be coloured, and what can be completed at a place. Pieces are text with a class, never
// markup. SQLite's dialect, as far as colours go.

export type SqlKind = "" | "keyword" | "string" | "number" | "comment" | "table" | "column";
export interface SqlPiece {
    kind: SqlKind;
    text: string;
}
export interface SqlNames {
    tables: ReadonlySet<string>;
    columns: ReadonlySet<string>;
}

const KEYWORDS = new Set(("select from where and or not in is null like glob regexp between exists case when then else end as on using join left right full " +
    "inner outer cross natural group by having order asc desc nulls first last limit offset union all distinct intersect except with recursive " +
    "values over partition rows range preceding following unbounded current row filter window explain query plan cast collate escape materialized").split(" "));
export const FUNCTIONS = ["count", "sum", "avg", "min", "max", "total", "round", "abs", "coalesce", "ifnull", "iif", "length", "substr", "instr", "replace", "printf", "hex",
    "lower", "upper", "group_concat", "row_number", "rank", "lag", "lead", "ntile", "percent_rank"];

const TOKEN = /(--[^\n]*|\/\*[\s\S]*?(?:\*\/|$))|('(?:[^']|'')*(?:'|$))|(\b\d+(?:\.\d+)?(?:e[+-]?\d+)?\b|0x[0-9a-f]+)|([a-z_][a-z0-9_]*)|("(?:[^"]|"")*(?:"|$))/gi;

export function sqlPieces(text: string, names: SqlNames): SqlPiece[] {
    const pieces: SqlPiece[] = [];
    const put = (kind: SqlKind, part: string) => {
        const last = pieces.at(-1);
        if (part === "") return;
        if (last !== undefined && last.kind === kind) last.text += part;
        else pieces.push({ kind, text: part });
    };
    let at = 0;
    for (const found of text.matchAll(TOKEN)) {
        put("", text.slice(at, found.index));
        const [whole, comment, string, number, word] = found;
        const lower = word?.toLowerCase() ?? "";
        put(comment !== undefined ? "comment" : string !== undefined ? "string" : number !== undefined ? "number" :
            KEYWORDS.has(lower) ? "keyword" : names.tables.has(lower) ? "table" : names.columns.has(lower) ? "column" : "", whole);
        at = (found.index ?? 0) + whole.length;
    }
    put("", text.slice(at));
    return pieces;
}

export interface Completion {
    from: number; // where the word begins that is replaced
    words: string[];
}
const MOST = 8;

/** What may stand where the cursor is; null: nothing that is not there already. */
export function complete(text: string, cursor: number, names: SqlNames, least = 2): Completion | null {
    const word = /[a-z_][a-z0-9_]*$/i.exec(text.slice(0, cursor))?.[0] ?? "";
    if (word.length < least || /[a-z0-9_]/i.test(text[cursor] ?? "")) return null;
    const pieces = sqlPieces(text.slice(0, cursor), names);
    const last = pieces.at(-1);
    if (last?.kind === "comment" || last?.kind === "string") return null;
    const lower = word.toLowerCase();
    const isUpper = word === word.toUpperCase() && word !== lower;
    const keywords = [...KEYWORDS].map((one) => (isUpper ? one.toUpperCase() : one));
    const all = [...names.tables, ...names.columns, ...FUNCTIONS, ...keywords];
    const words = [...new Set(all.filter((one) => one.toLowerCase().startsWith(lower) && one.toLowerCase() !== lower))].slice(0, MOST);
    return words.length === 0 ? null : { from: cursor - word.length, words };
}
