// SPDX-License-Identifier: MIT
// rows.ts: rows of a table, fetched in pages as they are scrolled to; ten million are as good as ten.
//
//   const rows = useRows("blocks", { live: 1 }, { sort: "size", order: "desc" });
//   <DataTable label="Blocks" rows={rows} onOpen={(row) => ...} />
//   const rows = useSortedTable(summary.processes)         // of a table that is there in whole: sorted here
//   const rows = useTableRows(functions.data)              // the same beside another table
//
// A page is PAGE rows; the cursor of the server is the number of the row that it begins with.
// Pages that have not been looked at for long are forgotten.
// A view's table has its order in the address (sort, order): a link shows the same rows.
import { useMemo, useReducer, useRef, useState } from "preact/hooks";
import { useAnswer, pathOf, type AskOptions, type Asked } from "./ask";
import { transport } from "./api";
import type { Answer, Cell, Column, Frame, Kind, Table } from "./types";
import { go, param, type Value } from "./url";

export const PAGE = 200;
const KEPT_PAGES = 40;

export interface Row {
    index: number;
    cells: Cell[];
    table: Table; // where frames and paths of the cells are
}
export type Order = "asc" | "desc";
/* Without `sort` as the rows come. */
export interface Sorting {
    sort?: string | undefined;
    order?: Order;
}
export interface Rows {
    columns: readonly Column[];
    total: number;
    row(index: number): Row | null; // null: on its way
    want(first: number, last: number): void;
    sort: string | undefined;
    order: Order;
    setSort: ((column: string) => void) | undefined; // undefined: cannot be sorted
    asked: Asked<Table>; // of the first page: loading, error, exactness
}

/* ---- Cells ---- */

export const columnIndex = (table: Table, name: string): number =>
    table.columns.findIndex((column) => column.name === name);
export const rowsOf = (table: Table): Row[] => table.rows.map((cells, index) => ({ index, cells, table }));
export function cell(row: Row, name: string): Cell {
    const index = columnIndex(row.table, name);
    return index < 0 ? null : (row.cells[index] ?? null);
}
export const numberCell = (row: Row, name: string): number => Number(cell(row, name) ?? 0);
export const textCell = (row: Row, name: string): string => String(cell(row, name) ?? "");
export function frameOf(row: Row, value: Cell): Frame | undefined {
    return typeof value === "number" ? row.table.frames?.[value] : undefined;
}
/* Frames of a path cell, the allocating function first. */
export function pathFrames(row: Row, value: Cell): Frame[] {
    const indices = typeof value === "number" ? row.table.paths?.[value] : undefined;
    return (indices ?? []).map((index) => row.table.frames?.[index]).filter((frame) => frame !== undefined);
}
/* The largest size of what a column has in the rows that are here. */
export function largestIn(table: Table, name: string): number {
    const index = columnIndex(table, name);
    return table.rows.reduce((most, cells) => Math.max(most, Math.abs(Number(cells[index] ?? 0))), 0);
}
const NUMBERS: readonly Kind[] = ["count", "bytes", "signed", "real", "percent", "duration"];
export const isNumeric = (kind: Kind): boolean => NUMBERS.includes(kind);

/* ---- From the server ---- */

const putOrder = (sorting: Sorting): void => go({ set: { ...sorting } }, "replace");

export function useRows(endpoint: string, params: Record<string, Value>, options: AskOptions & Sorting = {}): Rows {
    const sort = param("sort") ?? options.sort;
    const order = (param("order") ?? options.order ?? "desc") as Order;
    const sorted = sort === undefined ? params : { ...params, sort, order };
    const first = useAnswer<Table>(endpoint, { ...sorted, limit: PAGE }, options);
    const [, redraw] = useReducer((n: number) => n + 1, 0);
    const pages = useRef(new Pages(() => redraw(undefined)));
    pages.current.about(first.answer, (start) =>
        pathOf(endpoint, { ...sorted, limit: PAGE, cursor: start }, options.plain === true, false));
    const table = first.data;
    return {
        columns: table?.columns ?? [],
        total: table?.total ?? 0,
        row: (index) => pages.current.row(index),
        want: (from, to) => pages.current.want(from, to),
        sort,
        order,
        setSort: (column) => putOrder(nextSort(column, sort, order, table?.columns)),
        asked: first,
    };
}

/* The same column again turns the order; another begins where one looks first: numbers with the largest. */
export function nextSort(column: string, sort: string | undefined, order: Order, columns: readonly Column[] | undefined): Sorting {
    if (column === sort) return { sort, order: order === "asc" ? "desc" : "asc" };
    const kind = columns?.find((one) => one.name === column)?.kind ?? "text";
    const isText = ["text", "word", "frame", "path", "hash", "address"].includes(kind);
    return { sort: column, order: isText ? "asc" : "desc" };
}

class Pages {
    private first: Answer<Table> | undefined;
    private tables = new Map<number, Table>();
    private asking = new Map<number, AbortController>();
    private pathAt: (start: number) => string = () => "";
    constructor(private readonly redraw: () => void) {}

    about(answer: Answer<Table> | undefined, pathAt: (start: number) => string): void {
        this.pathAt = pathAt;
        if (answer === this.first) return;
        for (const abort of this.asking.values()) abort.abort();
        this.asking.clear();
        this.tables.clear();
        this.first = answer;
        if (answer !== undefined) this.tables.set(0, answer.data);
    }

    row(index: number): Row | null {
        const page = Math.floor(index / PAGE);
        const table = this.tables.get(page);
        const cells = table?.rows[index - page * PAGE];
        return table === undefined || cells === undefined ? null : { index, cells, table };
    }

    want(first: number, last: number): void {
        const total = this.first?.data.total ?? 0;
        const from = Math.floor(Math.max(0, first) / PAGE);
        const to = Math.floor(Math.min(total - 1, last) / PAGE);
        for (const [page, abort] of this.asking) if (page < from || page > to) abort.abort();
        for (let page = from; page <= to; page++) this.fetch(page);
    }

    private fetch(page: number): void {
        const known = this.tables.get(page);
        if (known !== undefined) {
            this.tables.delete(page);
            this.tables.set(page, known);
            return;
        }
        if (this.asking.has(page)) return;
        const abort = new AbortController();
        const of = this.first;
        this.asking.set(page, abort);
        transport()
            .get(this.pathAt(page * PAGE), abort.signal)
            .then((answer) => {
                if (of !== this.first) return;
                this.tables.set(page, (answer as Answer<Table>).data);
                this.forget();
            })
            .catch(() => {
                // The rows stay blank; scrolling there again asks again.
            })
            .finally(() => {
                if (this.asking.get(page) === abort) this.asking.delete(page);
                this.redraw();
            });
    }

    private forget(): void {
        for (const page of this.tables.keys()) {
            if (this.tables.size <= KEPT_PAGES) return;
            if (page !== 0) this.tables.delete(page);
        }
    }
}

/* ---- Of a table that is there ---- */

const nothing: Asked<Table> = {
    state: "ready", data: undefined, answer: undefined, error: undefined, progress: undefined, stale: false,
    cancel: () => undefined, again: () => undefined,
};

function useOrdered(table: Table | undefined, { sort, order = "desc" }: Sorting, put: (sorting: Sorting) => void, asked?: Asked<unknown>): Rows {
    const rows = useMemo(() => (table === undefined ? [] : sortTable(table, sort, order)), [table, sort, order]);
    return {
        columns: table?.columns ?? [],
        total: rows.length,
        row: (index) => {
            const cells = rows[index];
            return table === undefined || cells === undefined ? null : { index, cells, table };
        },
        want: () => undefined,
        sort,
        order,
        setSort: (column) => put(nextSort(column, sort, order, table?.columns)),
        asked: (asked as Asked<Table> | undefined) ?? nothing,
    };
}
export function useTableRows(table: Table | undefined, start: Sorting = {}, asked?: Asked<unknown>): Rows {
    const [chosen, choose] = useState<Sorting | null>(null);
    return useOrdered(table, chosen ?? start, choose, asked);
}
export function useSortedTable(table: Table | undefined, start: Sorting = {}, asked?: Asked<unknown>): Rows {
    const sort = param("sort") ?? "";
    const isKnown = table !== undefined && columnIndex(table, sort) >= 0;
    return useOrdered(table, isKnown ? { sort, order: (param("order") ?? "desc") as Order } : start, putOrder, asked);
}

export function sortTable(table: Table, sort: string | undefined, order: Order): Cell[][] {
    const index = sort === undefined ? -1 : columnIndex(table, sort);
    if (index < 0) return table.rows;
    const sign = order === "asc" ? 1 : -1;
    const column = table.columns[index];
    return table.rows
        .map((cells, place) => ({ cells, place, key: sortKey(table, column, cells[index] ?? null) }))
        .sort((a, b) => byPresence(a.key, b.key) || sign * compare(a.key, b.key) || a.place - b.place)
        .map((one) => one.cells);
}
function sortKey(table: Table, column: Column | undefined, value: Cell): Cell {
    if (column?.kind === "frame" && typeof value === "number") return table.frames?.[value]?.function ?? "";
    if (column?.kind === "path" && typeof value === "number") {
        return table.frames?.[table.paths?.[value]?.[0] ?? -1]?.function ?? "";
    }
    return column !== undefined && isNumeric(column.kind) && typeof value === "string" ? Number(value) : value;
}
/* What has no value comes last, whichever way is up. */
const byPresence = (a: Cell, b: Cell): number => Number(a === null) - Number(b === null);
function compare(a: Cell, b: Cell): number {
    if (a === null || b === null) return 0;
    if (typeof a === "number" && typeof b === "number") return a - b;
    return String(a) < String(b) ? -1 : String(a) > String(b) ? 1 : 0;
}
