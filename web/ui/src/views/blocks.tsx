// SPDX-License-Identifier: MIT
// views/blocks.tsx: single blocks, as many as there are: rows are fetched where one looks. A pointer that a debugger
// shows can be pasted: its block opens at the right.
//
// all: blocks that were freed, too. sort and order stand in the address; `chosen` is the block at the right.
import { useState } from "preact/hooks";
import { useActions } from "../actions";
import { ask } from "../ask";
import { choose, hashOf, isChosen } from "../chosen";
import { Choice } from "../components/Choice";
import { Empty } from "../components/States";
import { type ColumnSpec, DataTable } from "../components/Table";
import * as format from "../format";
import { pathChange } from "../links";
import { type Row, textCell, useRows } from "../rows";
import { isNarrowed, isWindowed, useThreadNames, useWhole } from "../summaries";
import type { Answer, Cell } from "../types";
import { flag, go, param } from "../url";

type OrderName = "largest" | "oldest" | "newest" | "other";
const ORDERS: readonly { name: OrderName; sort: string; order: "asc" | "desc" }[] = [
    { name: "largest", sort: "size", order: "desc" },
    { name: "oldest", sort: "birth_ns", order: "asc" },
    { name: "newest", sort: "birth_ns", order: "desc" },
];

export default function Blocks() {
    const whole = useWhole();
    if (whole.data === undefined) return null;
    const hasEvents = whole.data.has["events"] !== false;
    return (
        <div class="table-view blocks-view">
            {hasEvents ? <BlockTable /> : <NoBlocks live={whole.data.live} pid={whole.data.pid} command={whole.data.command_line} />}
        </div>
    );
}

function BlockTable() {
    const all = flag("all");
    const rows = useRows("blocks", { all }, { sort: "size", order: "desc", main: true });
    const threadName = useThreadNames();
    const thread = (_: Row, value: Cell) => (value === null ? <span class="muted" aria-label="none">–</span> : threadName(value));
    const columns: (string | ColumnSpec)[] = [
        { name: "size", width: "5.5rem" }, { name: "address", width: "8.5rem" },
        { name: "age_ns", heading: all ? "Lived" : "Held for", width: "5rem" }, "path",
        { name: "birth_ns", heading: "Allocated", width: "5.5rem" }, ...(all ? [{ name: "death_ns", heading: "Freed", width: "5rem" }] : []),
        { name: "thread", heading: "By thread", width: "6rem", render: thread },
        ...(all ? [{ name: "freed_by", heading: "Freed by", width: "6rem", render: thread }] : []),
        { name: "chain_length", heading: "Reallocated", width: "6rem", about: "How many times it was reallocated: the number of earlier blocks that realloc turned into this one", render: (_: Row, value: Cell) => <>{value === null ? "" : format.count(Math.max(0, Number(value) - 1))}</> },
    ];
    const now = ORDERS.find((one) => one.sort === rows.sort && one.order === rows.order)?.name ?? "other";
    const id = (row: Row) => textCell(row, "id");
    const setOrder = (name: OrderName) => {
        const wanted = ORDERS.find((one) => one.name === name);
        if (wanted !== undefined) go({ set: { sort: wanted.sort, order: wanted.order } }, "replace");
    };
    const setAll = (value: boolean) => go({ set: { all: value } });
    useActions([
        { group: "Blocks", title: "Live blocks, or all that there ever were", keys: ["g"], run: () => setAll(!all) },
        { group: "Blocks", title: "Largest first", run: () => setOrder("largest") },
        { group: "Blocks", title: "Oldest first", run: () => setOrder("oldest") },
        { group: "Blocks", title: "Newest first", run: () => setOrder("newest") },
    ]);
    const windowed = isWindowed();
    return (
        <>
            <div class="toolbar">
                <Choice label="Which blocks" value={all ? "all" : "live"} onChange={(value) => setAll(value === "all")}
                    options={[["live", windowed ? "Held at the end" : "Never freed", "Blocks that are live when the window ends"], ["all", "All", "Also those that were freed (g)"]]} />
                <Choice label="Order" value={now} onChange={setOrder}
                    options={[["largest", "Largest"], ["oldest", "Oldest"], ["newest", "Newest"]]} />
                <span class="muted number">{rows.columns.length === 0 ? "" : format.items(rows.total, "block")}</span>
                <span class="space" />
                <PointerBox />
            </div>
            <DataTable label="Blocks" rows={rows} columns={columns} share={{ column: "size" }} selected={(row) => isChosen("block", id(row))}
                empty={all ? "No block fits all filters." : <><p>{isNarrowed() ? "No block that fits all filters is left." : windowed ? "Nothing was held at the end of this window." : "Everything was freed."}</p><button type="button" onClick={() => setAll(true)}>Show all blocks that there were</button></>}
                onSelect={(row) => choose({ kind: "block", id: id(row) })}
                onOpen={(row) => go(pathChange(hashOf(row)))} />
        </>
    );
}

/* "0x55d0c3" or "55d0c3" as gdb, a crash or a log shows it. null: no address. */
export function parsePointer(text: string): string | null {
    const found = /^(?:\$\d+\s*=\s*)?(?:\([^()]*\)\s*)?(?:0x)?([0-9a-f]{1,16})\b/i.exec(text.trim());
    return found === null ? null : "0x" + (found[1] ?? "").toLowerCase();
}

function PointerBox() {
    const [text, setText] = useState("");
    const [wrong, setWrong] = useState("");
    const [busy, setBusy] = useState(false);
    const find = async () => {
        const address = parsePointer(text);
        if (address === null) return setWrong(text.trim() === "" ? "" : "That is not an address: paste one such as 0x55d0c3a2f010");
        setBusy(true);
        setWrong("");
        try {
            const time = param("at") ?? param("to");
            const found = await ask<Answer<{ block: Record<string, Cell> }>>("blocks/at", { address, ...(time === null ? {} : { time }) });
            const id = found.data.block["id"];
            choose({ kind: "block", id: id === undefined || id === null ? address : String(id) }, "push");
        } catch (error) {
            setWrong((error as Error).message);
        }
        setBusy(false);
    };
    return (
        <form class="pointer" onSubmit={(event) => {
            event.preventDefault();
            void find();
        }}>
            {wrong !== "" && <span class="pointer-wrong" role="alert">{wrong}</span>}
            <input type="text" class="code" placeholder="Paste a pointer: 0x…" aria-label="A pointer, of a debugger or a log: shows its block" aria-invalid={wrong !== ""} spellcheck={false}
                value={text} onInput={(event) => {
                    setText(event.currentTarget.value);
                    setWrong("");
                }} />
            <button type="submit" disabled={busy}>{busy ? "Looking …" : "Find"}</button>
        </form>
    );
}

function NoBlocks({ live, pid, command }: { live: boolean; pid: number; command: string }) {
    return (
        <>
            {live && <div class="toolbar"><span class="muted">Process {pid} runs: the block at a pointer can be found in it.</span><span class="space" /><PointerBox /></div>}
            <Empty>
                <h2>{live ? "No list of blocks while it is only watched" : "A profile has no single blocks"}</h2>
                <p>It has sums by call path. A recording has each block with its address, size, age and path:</p>
                <p class="code code-line">memtrace record -- {command === "" ? "PROGRAM" : command}</p>
            </Empty>
        </>
    );
}
