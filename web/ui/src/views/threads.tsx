// SPDX-License-Identifier: MIT
// views/threads.tsx: what each thread allocated and freed, and who freed whose blocks: a matrix (a table: it needs no
// twin). A cell is a link that adds the filters thread and freed-by.
//
// measure=bytes: the matrix in bytes.
import { useMemo } from "preact/hooks";
import { useActions } from "../actions";
import { useAnswer, type Asked } from "../ask";
import { spellKind } from "../components/Cells";
import { Choice } from "../components/Choice";
import { Split } from "../components/Split";
import { States } from "../components/States";
import { DataTable } from "../components/Table";
import * as format from "../format";
import { viewChange } from "../links";
import { cell, largestIn, numberCell, type Row, rowsOf, textCell, useSortedTable } from "../rows";
import { namesOf } from "../summaries";
import type { Cell, Table } from "../types";
import { go, href, param } from "../url";

const MOST = 5000;

export default function Threads() {
    const threads = useAnswer<Table>("threads", { limit: MOST, sort: "allocations", order: "desc" }, { main: true });
    const foreign = useAnswer<Table>("foreign", { limit: MOST });
    return (
        <States of={threads} empty={threads.data?.rows.length === 0 ? "Threads are not known: the file is too old, or the program ended at once." : undefined}>
            {(table) => (
                <Split name="threads" direction="column" size={230} least={90} label="Resize the table">
                    <ThreadTable table={table} asked={threads} />
                    <div class="panel">
                        <States of={foreign}>{(freed) => <MatrixBox threads={table} foreign={freed} />}</States>
                    </div>
                </Split>
            )}
        </States>
    );
}

function ThreadTable({ table, asked }: { table: Table; asked: Asked<Table> }) {
    const rows = useSortedTable(table, { sort: "total_bytes", order: "desc" }, asked);
    const names = useMemo(() => namesOf(table), [table]);
    const id = (row: Row) => textCell(row, "id");
    return (
        <DataTable label="Threads" rows={rows} share={{ column: "total_bytes" }} selected={(row) => param("thread") === id(row)}
            columns={[
                { name: "name", heading: "Thread", width: "minmax(9rem, 2fr)", render: (row) => <span title={`the kernel's number: ${String(cell(row, "tid"))}`}>{names.get(id(row))}</span> },
                { name: "start_ns", heading: "From", width: "5.5rem" },
                { name: "end_ns", heading: "To", width: "5.5rem", render: (_, value: Cell) => (value === null ? <span class="muted">the end</span> : format.duration(Number(value))) },
                { name: "allocations", width: "7rem" }, { name: "total_bytes", heading: "Allocated", width: "6.5rem" },
                { name: "frees", width: "6.5rem" }, { name: "freed_bytes", heading: "Freed", width: "6.5rem" },
                { name: "freed_for_others", heading: "Of others", width: "6.5rem", about: "Blocks that it freed, but other threads had allocated" },
                { name: "live_bytes", heading: largestIn(table, "end_ns") > 0 ? "Still held" : "Held", width: "6.5rem", about: "Of what it allocated" },
                { name: "*", without: ["id", "tid", "alive", "freed_for_others_bytes"] },
            ]}
            onSelect={() => undefined} onOpen={(row) => go({ set: { thread: id(row) } })} />
    );
}

/* ---- Who freed whose ---- */

const SIDE = 24; // threads with a row and a column: the busiest ones
const STEPS = 5;

interface Matrix {
    threads: { id: string; name: string }[];
    freed: number[][]; // [owner][freer]
    never: number[] | null; // what of each owner nobody freed; null: not known in this unit
    left: number; // threads that are not shown
    shade: (value: number) => number; // 0: nothing; 1 to 5
}

/* Of two tables of the server: what each thread freed, and of that what was others'. */
export function freedMatrix(threads: Table, foreign: Table, unit: "blocks" | "bytes", most: number): Matrix {
    const names = namesOf(threads);
    const work = (row: Row) => numberCell(row, "allocations") + numberCell(row, "frees");
    const shown = rowsOf(threads).sort((a, b) => work(b) - work(a)).slice(0, most);
    const ids = shown.map((row) => textCell(row, "id"));
    const [all, others] = unit === "blocks" ? ["frees", "freed_for_others"] as const : ["freed_bytes", "freed_for_others_bytes"] as const;
    const freed = shown.map((row, index) => ids.map((_, other) => (other === index ? Math.max(0, numberCell(row, all) - numberCell(row, others)) : 0)));
    for (const row of rowsOf(foreign)) {
        const owner = ids.indexOf(textCell(row, "owner")), freer = ids.indexOf(textCell(row, "freer"));
        if (owner >= 0 && freer >= 0) freed[owner]![freer]! += numberCell(row, unit);
    }
    const largest = Math.max(0, ...freed.flat());
    return {
        threads: ids.map((id) => ({ id, name: names.get(id) ?? id })),
        freed,
        never: unit === "bytes" ? shown.map((row) => numberCell(row, "live_bytes")) : null,
        left: threads.rows.length - shown.length,
        shade: (value) => (value <= 0 || largest <= 0 ? 0 : Math.max(1, Math.ceil((Math.log1p(value) / Math.log1p(largest)) * STEPS))),
    };
}

function MatrixBox({ threads, foreign }: { threads: Table; foreign: Table }) {
    const measure = param("measure") === "bytes" ? "bytes" : "blocks";
    const matrix = useMemo(() => freedMatrix(threads, foreign, measure, SIDE), [threads, foreign, measure]);
    const set = (now: "blocks" | "bytes") => go({ set: { measure: now === "blocks" ? null : now } }, "replace");
    useActions([{ group: "Threads", title: "Matrix in blocks or bytes", keys: ["b"], run: () => set(measure === "bytes" ? "blocks" : "bytes") }]);
    const others = foreign.rows.length;
    return (
        <>
            <div class="toolbar">
                <h2>Who freed whose blocks</h2>
                <Choice label="Unit" value={measure} options={[["blocks", "Blocks"], ["bytes", "Bytes"]]} onChange={set} />
                <span class="muted">{others === 0 ? "Each thread freed only what it had allocated itself." : "A square adds filters; what threads freed of their own is framed."}</span>
                <span class="space" />
                {others > 0 && <a class="button small" href={href(viewChange("flame", { "freed-by-others": true, metric: "allocations" }))}>Flame graph of blocks freed by others</a>}
            </div>
            <div class="grow matrix-box" tabIndex={0} role="region" aria-label="Who freed whose blocks">
                <MatrixTable matrix={matrix} text={(value) => spellKind(measure === "bytes" ? "bytes" : "count", value)} />
            </div>
        </>
    );
}

function MatrixTable({ matrix, text }: { matrix: Matrix; text: (value: number) => string }) {
    return (
        <table class="matrix">
            <thead>
                <tr>
                    <th scope="col" class="matrix-corner"><span class="muted">allocated by ↓, freed by →</span></th>
                    {matrix.threads.map((one) => <th key={one.id} scope="col"><span>{one.name}</span></th>)}
                    {matrix.never !== null && <th scope="col"><span>never freed</span></th>}
                </tr>
            </thead>
            <tbody>
                {matrix.threads.map((owner, row) => (
                    <tr key={owner.id}>
                        <th scope="row">{owner.name}</th>
                        {matrix.threads.map((freer, column) => {
                            const value = matrix.freed[row]?.[column] ?? 0;
                            return (
                                <td key={freer.id} class={`heat-${matrix.shade(value)}${row === column ? " own" : ""}`}>
                                    {value === 0 ? <span class="muted">–</span> : (
                                        <a href={href({ set: { thread: owner.id, "freed-by": freer.id } })} title={`Allocated by ${owner.name}, freed by ${freer.name}: ${text(value)}`}>{text(value)}</a>
                                    )}
                                </td>
                            );
                        })}
                        {matrix.never !== null && (
                            <td class="never">{(matrix.never[row] ?? 0) === 0 ? <span class="muted">–</span> :
                                <a href={href({ set: { thread: owner.id, leaked: true } })}>{text(matrix.never[row] ?? 0)}</a>}</td>
                        )}
                    </tr>
                ))}
            </tbody>
            {matrix.left > 0 && <caption>{format.items(matrix.left, "other thread")} did less, and {matrix.left === 1 ? "is" : "are"} left out.</caption>}
        </table>
    );
}
