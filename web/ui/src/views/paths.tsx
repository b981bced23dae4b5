// SPDX-License-Identifier: MIT
// views/paths.tsx: call paths with all their figures, and a line of what each held over time.
import { choose, isChosen } from "../chosen";
import { Spark } from "../components/Spark";
import { type ColumnSpec, DataTable } from "../components/Table";
import * as format from "../format";
import { viewChange } from "../links";
import { cell, pathFrames, type Row } from "../rows";
import type { Column, Table } from "../types";
import { go, isDifference, metric } from "../url";
import { useSortedRows } from "./functions";
import type { View } from "./index";

interface PathTable extends Table {
    without_cost?: number;
    graphs?: { points: number[]; series: number[][] } | null; // a profile has none
}

/* What is drawn beside a row: no column of the answer. */
const GRAPH: Column = { name: "graph", heading: "Over time", kind: "any", about: "What the path held, each line by itself" };

/* By metric the figures that matter; the inspector has all of them. */
const FIGURES: Record<string, string[]> = {
    maximum: ["peak_bytes", "live_bytes", "total_bytes", "allocations"],
    leaked: ["live_bytes", "live_blocks", "peak_bytes", "allocations"],
    cumulative: ["total_bytes", "allocations", "average_bytes", "peak_bytes"],
    allocations: ["allocations", "total_bytes", "average_bytes", "temporary"],
    temporary: ["temporary", "allocations", "total_bytes", "average_bytes"],
};
const SORT: Record<string, string> = {
    maximum: "peak_bytes", leaked: "live_bytes", cumulative: "total_bytes", allocations: "allocations", temporary: "temporary",
};

function graphOf(row: Row): readonly number[] {
    const table = row.table as PathTable;
    return table.graphs?.series[table.rows.indexOf(row.cells)] ?? [];
}

function Paths() {
    const main = SORT[metric.value] ?? "peak_bytes";
    const rows = useSortedRows("paths", { metric: metric.value, graphs: "1" }, { sort: isDifference.value ? "delta" : main, order: "desc", main: true });
    const hash = (row: Row) => String(cell(row, "hash") ?? "");
    const differs = rows.columns.some((column) => column.name === "delta");
    const hasGraphs = (rows.asked.data as PathTable | undefined)?.graphs?.series.some((values) => values.length > 1) === true;
    const without = (rows.asked.data as PathTable | undefined)?.without_cost ?? 0;
    const columns: (string | ColumnSpec)[] = [
        "path",
        ...(hasGraphs ? [{ name: "graph", width: "7rem", render: (row: Row) => <Spark values={graphOf(row)} /> }] : []),
        ...(differs ? ["state", { name: "delta", width: "8rem" }, "base", main] : (FIGURES[metric.value] ?? FIGURES.maximum!)),
        "hash",
    ].map((one) => (one === "allocations" ? { name: one, width: "7rem" } : one)).filter((one, index, all) => typeof one !== "string" || all.indexOf(one) === index);
    return (
        <div class="table-view">
            <DataTable label="Call paths" rows={{ ...rows, columns: rows.columns.length === 0 ? [] : [...rows.columns, GRAPH] }} columns={columns}
                share={{ column: differs ? "delta" : main }} selected={(row) => isChosen("path", hash(row))}
                onSelect={(row) => choose({ kind: "path", id: hash(row), frame: pathFrames(row, cell(row, "path"))[0] })}
                onOpen={(row) => go(viewChange("flame", { path: hash(row) }))} />
            {without > 0 && <p class="line muted">{format.items(without, "more call path")} {without === 1 ? "has" : "have"} none of this and {without === 1 ? "is" : "are"} not shown.</p>}
        </div>
    );
}

export const view: View = { Component: Paths };
