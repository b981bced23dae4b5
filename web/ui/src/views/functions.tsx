// SPDX-License-Identifier: MIT
// views/functions.tsx: functions, what they themselves and what they with all they call hold. Enter shows callers and
// callees.
import { functionOf, ofFunctions } from "../chosen";
import { DataTable } from "../components/Table";
import { openSandwich } from "../links";
import { columnIndex, useRows } from "../rows";
import { isDifference, metric } from "../url";

const DIFFERENCE = ["function", "delta", "base_total", "total", "base_self", "self", "side"];
const WIDTHS: Record<string, string> = { total: "8rem", side: "8rem", delta: "8rem", base_total: "7rem", base_self: "7rem" };

export function FunctionTable({ onOpen }: { onOpen: (name: string) => void }) {
    const rows = useRows("functions", { metric: metric.value }, { main: true, sort: isDifference.value ? "delta" : "total" });
    const differs = rows.asked.data !== undefined && columnIndex(rows.asked.data, "delta") >= 0;
    const names = differs ? DIFFERENCE : rows.columns.map((column) => column.name);
    return (
        <DataTable label="Functions" rows={rows} columns={names.map((name) => ({ name, ...(name in WIDTHS ? { width: WIDTHS[name] } : {}) }))} share={{ column: differs ? "delta" : "total" }}
            {...ofFunctions} onOpen={(row) => {
                const frame = functionOf(row);
                if (frame !== undefined) onOpen(frame.function);
            }} />
    );
}

export default function Functions() {
    return (
        <div class="table-view">
            <FunctionTable onOpen={openSandwich} />
        </div>
    );
}
