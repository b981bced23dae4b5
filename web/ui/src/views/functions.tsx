// SPDX-License-Identifier: MIT
// views/functions.tsx: functions, what they themselves and what they with all they call hold. Enter shows callers and
// callees.
import { choose, isChosen } from "../chosen";
import { DataTable } from "../components/Table";
import { cell, frameOf, nextSort, type Order, type Row, type Rows, type RowsOptions, useRows } from "../rows";
import type { ParamValue } from "../ask";
import type { Frame } from "../types";
import { go, isDifference, metric, param } from "../url";
import { openSandwich } from "../links";
import type { View } from "./index";

/* As useRows(), with the order in the address: a link shows the same rows. */
export function useSortedRows(endpoint: string, params: Record<string, ParamValue>, options: RowsOptions = {}): Rows {
    const sort = param("sort") ?? options.sort;
    const order = (param("order") ?? options.order ?? "desc") as Order;
    const rows = useRows(endpoint, params, { ...options, sort, order });
    return {
        ...rows,
        setSort: (column) => go({ set: { ...nextSort(column, rows.sort, rows.order, rows.columns) } }, "replace"),
    };
}

const DIFFERENCE = ["function", "delta", "base_total", "total", "base_self", "self", "side"];
const SHAPES: Record<string, { width?: string; heading?: string }> = {
    total: { width: "8rem" }, side: { width: "8rem" }, delta: { width: "8rem" }, base_total: { width: "7rem" }, base_self: { width: "7rem" },
};

export function FunctionTable({ onOpen }: { onOpen: (frame: Frame) => void }) {
    const rows = useSortedRows("functions", { metric: metric.value }, { main: true, sort: isDifference.value ? "delta" : "total" });
    const frame = (row: Row) => frameOf(row, cell(row, "function"));
    const differs = rows.columns.some((column) => column.name === "delta");
    const share = differs ? "delta" : "total";
    const columns = (differs ? DIFFERENCE : rows.columns.map((column) => column.name)).map((name) => ({ name, ...SHAPES[name] }));
    return (
        <DataTable label="Functions" rows={rows} columns={columns} share={{ column: share }}
            selected={(row) => isChosen("function", frame(row)?.function ?? "")}
            onSelect={(row) => {
                const of = frame(row);
                if (of !== undefined) choose({ kind: "function", id: of.function, frame: of });
            }}
            onOpen={(row) => {
                const of = frame(row);
                if (of !== undefined) onOpen(of);
            }} />
    );
}

function Functions() {
    return (
        <div class="table-view">
            <FunctionTable onOpen={(frame) => openSandwich(frame.function)} />
        </div>
    );
}

export const view: View = { Component: Functions };
