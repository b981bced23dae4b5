// SPDX-License-Identifier: MIT
// views/processes.tsx: the processes of a run as a tree: when each ran, what it held. Enter shows one alone; all views are
// then about it (process), or about all together (all-processes).
import { useMemo } from "preact/hooks";
import { useAnswer } from "../ask";
import { States } from "../components/States";
import { DataTable } from "../components/Table";
import * as format from "../format";
import { viewChange } from "../links";
import { cell, largestIn, numberCell, type Row, type Rows, rowsOf, textCell, useTableRows } from "../rows";
import { shortModule } from "../components/Cells";
import type { Cell, Table } from "../types";
import { flag, go, href, param } from "../url";

const MOST = 20_000;

interface TreeRow {
    cells: Cell[];
    depth: number;
    isImage: boolean; // what the process above it became
}

/* In the order in which they began: who forked whom, and what a process became by exec (another image of the same number,
 * one after the other). */
export function processTree(table: Table): TreeRow[] {
    const sorted = rowsOf(table).sort((a, b) => numberCell(a, "start_ns") - numberCell(b, "start_ns") || numberCell(a, "image") - numberCell(b, "image"));
    const byPid = groupedBy(sorted, (row) => textCell(row, "pid"));
    const isRoot = (pid: string, parent: string) => parent === pid || !byPid.has(parent);
    const parentOf = (pid: string) => textCell(byPid.get(pid)![0]!, "parent_pid");
    const roots = [...byPid.keys()].filter((pid) => isRoot(pid, parentOf(pid)));
    const children = groupedBy([...byPid.keys()].filter((pid) => !roots.includes(pid)), parentOf);
    const rows: TreeRow[] = [];
    const seen = new Set<string>();
    const walk = (pid: string, depth: number) => {
        if (seen.has(pid)) return; // numbers may have been used again
        seen.add(pid);
        byPid.get(pid)?.forEach(({ cells }, index) => rows.push({ cells, depth, isImage: index > 0 }));
        for (const child of children.get(pid) ?? []) walk(child, depth + 1);
    };
    // After the roots, parents that are each other's children: numbers used again.
    for (const pid of [...roots, ...byPid.keys()]) walk(pid, 0);
    return rows;
}
function groupedBy<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
    const groups = new Map<string, T[]>();
    for (const item of items) {
        const group = groups.get(keyOf(item));
        if (group === undefined) groups.set(keyOf(item), [item]);
        else group.push(item);
    }
    return groups;
}

export default function Processes() {
    const asked = useAnswer<Table>("processes", { limit: MOST }, { plain: true, main: true });
    return (
        <States of={asked} empty={asked.data?.rows.length === 0 ? "This file is of one process. For all that a program starts: memtrace record --children all -- PROGRAM" : undefined}>
            {(table) => <Tree table={table} />}
        </States>
    );
}

function Tree({ table }: { table: Table }) {
    const tree = useMemo(() => processTree(table), [table]);
    const ordered = useMemo<Table>(() => ({ ...table, rows: tree.map((row) => row.cells) }), [tree]);
    // The order is the tree's: it cannot be sorted.
    const rows: Rows = { ...useTableRows(ordered), sort: undefined, setSort: undefined };
    const end = Math.max(1, largestIn(table, "end_ns"));
    const pid = (row: Row) => textCell(row, "pid");
    const name = (row: Row) => {
        const { depth = 0, isImage = false } = tree[row.index] ?? {};
        const program = String(cell(row, "name") ?? shortModule(String(cell(row, "program") ?? "?")));
        return (
            <span class="process" style={{ paddingLeft: `${depth * 18}px` }} title={String(cell(row, "command") ?? cell(row, "program") ?? "")}>
                <span class="muted" aria-hidden="true">{isImage ? "↳ " : depth > 0 ? "└ " : ""}</span>
                <b>{program}</b> {isImage && <span class="tag">by exec</span>}{cell(row, "light") === 1 && <span class="tag">small</span>} <span class="muted">{String(cell(row, "command") ?? "")}</span>
            </span>
        );
    };
    const life = (row: Row) => {
        const from = numberCell(row, "start_ns");
        const to = cell(row, "end_ns") === null ? end : numberCell(row, "end_ns");
        return (
            <span class="gantt" title={`${format.duration(from)} to ${format.duration(to)}`}>
                <span style={{ left: `${(100 * from) / end}%`, width: `${Math.max(0.4, (100 * (to - from)) / end)}%` }} />
            </span>
        );
    };
    const kept = (row: Row) => cell(row, "file") !== null || table.rows.length === 1;
    return (
        <div class="panel">
            <div class="toolbar">
                <span><b>{format.items(new Set(tree.map((row) => row.cells[0])).size, "process")}</b> <span class="muted">in {format.duration(end)}</span></span>
                <span class="space" />
                <a class="button small" href={href(viewChange("summary", { process: null, "all-processes": true }))} aria-current={flag("all-processes") ? "true" : undefined}>All together</a>
                <a class="button small" href={href(viewChange("summary", { process: null, "all-processes": null }))}>The one that held most</a>
            </div>
            <div class="grow">
                <DataTable label="Processes" rows={rows} share={{ column: "peak_bytes" }} selected={(row) => param("process") === pid(row)}
                    columns={[
                        { name: "program", heading: "Process", width: "minmax(18rem, 4fr)", render: name },
                        { name: "pid", heading: "PID", width: "5rem", render: (_, value: Cell) => String(value) },
                        { name: "start_ns", heading: "When it ran", width: "minmax(9rem, 2fr)", render: life },
                        { name: "peak_bytes", heading: "Held at most", width: "6.5rem" }, { name: "live_bytes", heading: "Not freed", width: "6rem" },
                        { name: "total_bytes", heading: "Allocated", width: "6.5rem" }, { name: "allocations", width: "7rem" }, { name: "end", heading: "How it ended", width: "7rem", render: (_, value: Cell) => (value === "execed" ? "by exec" : String(value ?? "")) },
                    ]}
                    onSelect={() => undefined}
                    onOpen={(row) => kept(row) && go(viewChange("summary", { process: pid(row), "all-processes": null }))} />
            </div>
            <p class="line">Enter or a double click shows one process alone: all views are then about it.</p>
        </div>
    );
}
