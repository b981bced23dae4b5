// SPDX-License-Identifier: MIT
// views/paths.tsx: call paths with all their figures, and a line of what each held over time.
import { hashOf, ofPaths } from "../chosen";
import { type ColumnSpec, DataTable } from "../components/Table";
import * as format from "../format";
import { viewChange } from "../links";
import { columnIndex, type Row, useRows } from "../rows";
import type { Column, Graphs, Table } from "../types";
import { go, isDifference, metric } from "../url";

type PathTable = Table & { graphs?: Graphs | null }; // a profile has none

/* What is drawn beside a row: no column of the answer. */
const GRAPH: Column = { name: "graph", heading: "Over time", kind: "any", about: "What the path held, each line by itself" };

/* By metric the figures that matter, the first what it is sorted by; the inspector has all of them. */
const FIGURES: Record<string, string[]> = {
    maximum: ["peak_bytes", "live_bytes", "total_bytes", "allocations"],
    leaked: ["live_bytes", "live_blocks", "peak_bytes", "allocations"],
    cumulative: ["total_bytes", "allocations", "average_bytes", "peak_bytes"],
    allocations: ["allocations", "total_bytes", "average_bytes", "temporary"],
    temporary: ["temporary", "allocations", "total_bytes", "average_bytes"],
};

/* A small line of what was held over time. Its figures stand in the row: readers skip it. */
const [WIDTH, HEIGHT] = [96, 18];

function Spark({ values }: { values: readonly number[] }) {
    const most = values.reduce((max, value) => Math.max(max, value), 0);
    if (values.length < 2 || most === 0) return <svg class="spark" width={WIDTH} height={HEIGHT} aria-hidden="true" />;
    const x = (index: number) => ((index / (values.length - 1)) * WIDTH).toFixed(1);
    const y = (value: number) => (HEIGHT - 1 - (value / most) * (HEIGHT - 2)).toFixed(1);
    const line = values.map((value, index) => `${x(index)},${y(value)}`).join(" ");
    return (
        <svg class="spark" width={WIDTH} height={HEIGHT} viewBox={`0 0 ${WIDTH} ${HEIGHT}`} aria-hidden="true">
            <polygon points={`0,${HEIGHT} ${line} ${WIDTH},${HEIGHT}`} />
            <polyline points={line} />
        </svg>
    );
}

function graphOf(row: Row): readonly number[] {
    const table = row.table as PathTable;
    return table.graphs?.series[table.rows.indexOf(row.cells)] ?? [];
}

export default function Paths() {
    const figures = FIGURES[metric.value] ?? FIGURES["maximum"]!;
    const main = figures[0]!;
    const rows = useRows("paths", { metric: metric.value, graphs: "1" }, { sort: isDifference.value ? "delta" : main, order: "desc", main: true });
    const table = rows.asked.data as PathTable | undefined;
    const differs = table !== undefined && columnIndex(table, "delta") >= 0;
    const hasGraphs = table?.graphs?.series.some((values) => values.length > 1) === true;
    const without = table?.without_cost ?? 0;
    const columns: (string | ColumnSpec)[] = [
        "path",
        ...(hasGraphs ? [{ name: "graph", width: "7rem", render: (row: Row) => <Spark values={graphOf(row)} /> }] : []),
        ...(differs ? ["state", { name: "delta", width: "8rem" }, "base", main] : figures),
        "hash",
    ].map((one) => (one === "allocations" ? { name: one, width: "7rem" } : one)).filter((one, index, all) => typeof one !== "string" || all.indexOf(one) === index);
    return (
        <div class="table-view">
            <DataTable label="Call paths" rows={{ ...rows, columns: rows.columns.length === 0 ? [] : [...rows.columns, GRAPH] }} columns={columns}
                share={{ column: differs ? "delta" : main }} {...ofPaths} onOpen={(row) => go(viewChange("flame", { path: hashOf(row) }))} />
            {without > 0 && <p class="line muted">{format.items(without, "more call path")} {without === 1 ? "has" : "have"} none of this and {without === 1 ? "is" : "are"} not shown.</p>}
        </div>
    );
}
