// SPDX-License-Identifier: MIT
// sorted.ts: tables that are here as a whole, with their order in the address: a link shows the same rows.
import type { Asked } from "../ask";
import { nextSort, type Order, type Rows, useTableRows } from "../rows";
import type { Table } from "../types";
import { go, param } from "../url";

export function useSortedTable(table: Table | undefined, start: { sort?: string; order?: Order } = {}, asked?: Asked<unknown>): Rows {
    const sort = param("sort");
    const known = table?.columns.some((column) => column.name === sort) === true;
    const by = known && sort !== null ? { sort, order: (param("order") ?? "desc") as Order } : start;
    const rows = useTableRows(table, by, asked);
    return { ...rows, setSort: (column) => go({ set: { ...nextSort(column, rows.sort, rows.order, rows.columns) } }, "replace") };
}
