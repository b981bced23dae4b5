// SPDX-License-Identifier: MIT
// together.tsx: a running program that has started others: what each of them holds now, the sum, and the functions that
// hold most of it. Nothing is shown where it runs alone.
import { useAnswer } from "../ask";
import { bytesText } from "../components/Cells";
import { DataTable } from "../components/Table";
import * as format from "../format";
import { viewChange } from "../links";
import { cell, frameOf, type Row, useTableRows } from "../rows";
import { openSource } from "../session";
import type { Summary, Table } from "../types";
import { flag, go, href } from "../url";

const FUNCTIONS = 100;
const MOST = 1000;
const SHOWN = 5;
const ALL = { process: null, "all-processes": true };

export function Together() {
    const running = useAnswer<Table>("running", { limit: MOST }, { plain: true });
    return running.data !== undefined && running.data.total > 1 ? <Processes running={running.data} /> : null;
}

function Processes({ running }: { running: Table }) {
    const sum = useAnswer<Summary>("", ALL, { plain: true });
    const functions = useAnswer<Table>("functions", { ...ALL, metric: "leaked", sort: "self", order: "desc", limit: FUNCTIONS }, { plain: true });
    const processes = useTableRows(running, { sort: "live_bytes" });
    const holders = useTableRows(functions.data, { sort: "self" }, functions);
    const isShown = flag("all-processes");
    const name = (row: Row) => `${String(cell(row, "name"))} (${String(cell(row, "pid"))})`;
    return (
        <section class="card together" aria-label="All processes that run now">
            <div class="card-head">
                <h2>{format.items(running.total, "process")} run and hold {sum.data === undefined ? "…" : <b title={`${format.count(sum.data.totals.live_bytes)} bytes`}>{bytesText(sum.data.totals.live_bytes)}</b>} together</h2>
                <span class="space" />
                {sum.error !== undefined && <span class="failed" role="alert">{sum.error.message}</span>}
                <a class="button small" href={href({ set: { ...ALL, "all-processes": isShown ? null : true } })}>{isShown ? "This process alone" : "All views of them together"}</a>
            </div>
            <div class="together-tables">
                <DataTable label="Processes that run" rows={processes} share={{ column: "live_bytes" }} fit={SHOWN}
                    columns={[{ name: "name", heading: "Process", render: (row) => <b>{name(row)}</b> }, { name: "live_bytes", heading: "Holds now" }]}
                    onOpen={(row) => void openProcess(Number(cell(row, "pid"))).catch(() => undefined)} />
                <DataTable label="Functions that hold most of all" rows={holders} share={{ column: "self" }} fit={SHOWN}
                    columns={["function", { name: "self", heading: "Holds now" }]}
                    onOpen={(row) => go(viewChange("sandwich", { ...ALL, metric: "leaked", focus: frameOf(row, cell(row, "function"))?.function ?? null }))} />
            </div>
        </section>
    );
}

async function openProcess(pid: number): Promise<void> {
    const opened = await openSource({ pid });
    go({ only: true, set: { r: String(opened.id) } });
}
