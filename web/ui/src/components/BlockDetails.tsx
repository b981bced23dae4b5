// SPDX-License-Identifier: MIT
// BlockDetails.tsx: what the inspector says of a block (path, who freed it, its chain of reallocations, its neighbours)
// and of a mapping (what is in memory of it over time, who mapped it).
import { useAnswer } from "../ask";
import { choose, type Chosen, type Figure } from "../chosen";
import * as format from "../format";
import { viewChange } from "../links";
import { columnIndex, pathFrames, type Row } from "../rows";
import type { Cell, Frame, Table } from "../types";
import { href } from "../url";
import { bytesText, PathText } from "./Cells";
import { Chart } from "./Chart";
import { Figures, PathFrames } from "./Details";
import { States } from "./States";
import { useThreadNames } from "./threads";

/* ---- A block ---- */

interface BlockAnswer {
    block: Record<string, Cell>;
    path: Frame[];
    freed_path: Frame[] | null;
    chain?: Table;
    neighbours?: Table;
}

/* id: the block's number, or an address: then the block that lies there. */
export function BlockDetails({ what }: { what: Chosen }) {
    const isAddress = what.id.startsWith("0x");
    const asked = useAnswer<BlockAnswer>(isAddress ? "blocks/at" : `blocks/${encodeURIComponent(what.id)}`, isAddress ? { address: what.id } : {});
    return (
        <States of={asked}>
            {(data) => (
                <>
                    <BlockHead of={data.block} />
                    {asked.answer?.notes?.map((note) => <p key={note} class="note">{note}</p>)}
                    <BlockFigures of={data.block} />
                    <BlockLinks of={data.block} />
                    <section>
                        <h3>Allocated by</h3>
                        <PathFrames frames={data.path} />
                    </section>
                    {data.freed_path !== null && data.freed_path !== undefined && (
                        <section>
                            <h3>Freed by</h3>
                            <PathFrames frames={data.freed_path} />
                        </section>
                    )}
                    <Chain of={data.chain} id={data.block["id"] ?? null} />
                    <Neighbours of={data.neighbours} address={String(data.block["address"] ?? "")} />
                </>
            )}
        </States>
    );
}

function BlockHead({ of }: { of: Record<string, Cell> }) {
    return (
        <p class="inspector-name">
            <span><span class="number">{bytesText(of["size"] as format.Quantity | null)}</span> <span class="muted">at</span> <span class="code">{String(of["address"] ?? "no address")}</span></span>
        </p>
    );
}

function BlockFigures({ of }: { of: Record<string, Cell> }) {
    const threadName = useThreadNames();
    const figures: Figure[] = [];
    const add = (label: string, name: string, kind: Figure["kind"]) => {
        const value = of[name];
        if (value !== null && value !== undefined && value !== "") figures.push({ label, value: typeof value === "boolean" ? (value ? "yes" : "no") : value, kind });
    };
    const thread = (label: string, name: string) => {
        const value = of[name];
        if (value !== null && value !== undefined) figures.push({ label, value: threadName(value), kind: "word" });
    };
    add("size", "size", "bytes");
    if (Number(of["slack"] ?? 0) > 0) add("given beyond that", "slack", "bytes");
    add("allocated at", "birth_ns", "duration");
    const isHeld = of["death_ns"] === null || of["death_ns"] === undefined; // a running program's blocks say nothing of it
    if (isHeld) figures.push({ label: "freed", value: of["birth_ns"] === undefined ? "not yet" : "never", kind: "word" });
    else add("freed at", "death_ns", "duration");
    add(isHeld ? "held for" : "lived", "age_ns", "duration");
    thread("allocated by thread", "thread");
    thread("freed by thread", "freed_by");
    if (Number(of["chain_length"] ?? 1) > 1) add("place in its chain", "chain_length", "count");
    add("scope", "scope", "word");
    add("pool", "pool", "word");
    add("alignment", "alignment", "bytes");
    if (of["mapped"] === 1) figures.push({ label: "has a mapping of its own", value: "yes", kind: "word" });
    return <Figures of={figures} />;
}

const AROUND = 64n << 10n; // bytes to each side that the map of the heap shows

function BlockLinks({ of }: { of: Record<string, Cell> }) {
    const address = of["address"];
    const hash = of["hash"];
    return (
        <nav class="inspector-links" aria-label="From here">
            {typeof address === "string" && of["birth_ns"] !== undefined && <a class="button small" href={href(heapAt(BigInt(address), Number(of["size"] ?? 0), of["birth_ns"] ?? null, of["death_ns"] ?? null))}>Where it lies</a>}
            {typeof hash === "string" && <a class="button small" href={href(viewChange("paths", { chosen: `path:${hash}` }))}>Its call path</a>}
            {typeof hash === "string" && <a class="button small" href={href(viewChange("blocks", { path: hash }))}>Blocks of this path</a>}
        </nav>
    );
}

/* The heap around a block, while it lived. */
function heapAt(address: bigint, size: number, birth: Cell, death: Cell) {
    const start = address > AROUND ? (address - AROUND) & ~4095n : 0n;
    const end = (address + BigInt(size) + AROUND + 4095n) & ~4095n;
    const at = death === null || birth === null ? {} : { at: format.time(Math.max(Number(birth) + 1, Number(death))) };
    return viewChange("heap", { start: `0x${start.toString(16)}`, end: `0x${end.toString(16)}`, ...at });
}

const rowsOf = (table: Table): Row[] => table.rows.map((cells, index) => ({ index, cells, table }));
const at = (row: Row, name: string): Cell => row.cells[columnIndex(row.table, name)] ?? null;

function Chain({ of, id }: { of: Table | undefined; id: Cell }) {
    if (of === undefined || of.rows.length < 2) return null;
    return (
        <section>
            <h3>Its chain: {format.items(of.rows.length, "block")} that reallocations made of each other</h3>
            <ol class="chain">
                {rowsOf(of).map((row) => (
                    <li key={row.index}>
                        <button type="button" class="plain chain-row" aria-current={at(row, "id") === id ? "true" : undefined} onClick={() => choose({ kind: "block", id: String(at(row, "id")) })}>
                            <span class="number">{bytesText(at(row, "size") as format.Quantity | null)}</span>
                            <span class="code muted">{String(at(row, "address") ?? "")}</span>
                            <span class="number muted">{format.duration(at(row, "age_ns") as format.Quantity | null)}</span>
                        </button>
                    </li>
                ))}
            </ol>
        </section>
    );
}

/* What lies beside it when the window ends, as bars of one scale: blocks, and what is free between them. */
function Neighbours({ of, address }: { of: Table | undefined; address: string }) {
    if (of === undefined || of.rows.length === 0) return null;
    const rows = rowsOf(of);
    const most = rows.reduce((sum, row) => Math.max(sum, Number(at(row, "size") ?? 0), Number(at(row, "gap_bytes") ?? 0)), 1);
    const width = (bytes: number) => ({ width: `${Math.max(1, (100 * Math.log1p(bytes)) / Math.log1p(most))}%` });
    return (
        <section>
            <h3>Around it, in the order of addresses</h3>
            <ol class="neighbours">
                {rows.map((row) => {
                    const size = Number(at(row, "size") ?? 0);
                    const gap = Number(at(row, "gap_bytes") ?? 0);
                    const own = String(at(row, "address"));
                    return (
                        <li key={row.index} aria-current={own === address ? "true" : undefined}>
                            <button type="button" class="plain neighbour" title={own} onClick={() => choose({ kind: "block", id: own })}>
                                <span class="neighbour-size number">{bytesText(size)}</span>
                                <span class="neighbour-bar" aria-hidden="true"><span style={width(size)} /></span>
                                <span class="neighbour-path"><PathText frames={pathFrames(row, at(row, "path"))} most={1} /></span>
                            </button>
                            {gap > 0 && (
                                <span class="neighbour gap">
                                    <span class="neighbour-size number">{bytesText(gap)}</span>
                                    <span class="neighbour-bar" aria-hidden="true"><span style={width(gap)} /></span>
                                    <span class="neighbour-path">free</span>
                                </span>
                            )}
                        </li>
                    );
                })}
            </ol>
        </section>
    );
}

/* ---- A mapping ---- */

interface MappingHistory {
    name: string | null;
    history: { time_ns: number[]; rss: number[]; dirty: number[]; swap: number[] };
}

export function MappingDetails({ what }: { what: Chosen }) {
    const history = useAnswer<MappingHistory>(`mappings/${encodeURIComponent(what.id)}`);
    const all = useAnswer<Table>("mappings", { all: 1, limit: 10_000 });
    const table = all.data;
    const cells = table?.rows.find((row) => String(row[columnIndex(table, "id")]) === what.id);
    const row = table === undefined || cells === undefined ? undefined : { index: 0, cells, table };
    return (
        <>
            {row !== undefined && <MappingFigures row={row} />}
            <States of={history}>
                {({ history: now }) => now.time_ns.length > 1 ? (
                    <Chart label="Over time" height={120} time={now.time_ns} series={[
                        { label: "resident", values: now.rss, kind: "bytes", fill: true },
                        { label: "dirty", values: now.dirty, kind: "bytes" },
                        ...(now.swap.some((bytes) => bytes > 0) ? [{ label: "swap", values: now.swap, kind: "bytes" as const }] : []),
                    ]} />
                ) : <p class="muted">It was looked at once, so there is no line over time.</p>}
            </States>
            {row !== undefined && pathFrames(row, at(row, "mapped_by")).length > 0 && (
                <section>
                    <h3>Mapped by</h3>
                    <PathFrames frames={pathFrames(row, at(row, "mapped_by"))} />
                </section>
            )}
        </>
    );
}

function MappingFigures({ row }: { row: Row }) {
    const number = (name: string) => (at(row, name) === null ? null : Number(at(row, name)));
    const size = number("size") ?? 0;
    return (
        <>
            <p class="inspector-name"><span class="path-name">{String(at(row, "path") ?? "anonymous")}</span></p>
            <Figures of={[
                { label: "from", value: String(at(row, "start")), kind: "address" },
                { label: "to", value: String(at(row, "end")), kind: "address" },
                { label: "size", value: size, kind: "bytes" },
                { label: "permissions", value: String(at(row, "permissions") ?? ""), kind: "word" },
                { label: "resident", value: number("rss"), kind: "bytes", of: size },
                { label: "most resident", value: number("peak_rss"), kind: "bytes", of: size },
                { label: "dirty", value: number("dirty"), kind: "bytes", of: size },
                { label: "swapped out", value: number("swap"), kind: "bytes" },
                { label: "first seen", value: number("first_ns"), kind: "duration" },
                { label: at(row, "mapped") === 0 ? "gone after" : "last seen", value: number("last_ns"), kind: "duration" },
            ]} />
            <nav class="inspector-links" aria-label="From here">
                <a class="button small" href={href(viewChange("heap", { start: String(at(row, "start")), end: String(at(row, "end")) }))}>Blocks in it, as a map</a>
                <a class="button small" href={href(viewChange("blocks", { mapping: String(at(row, "id")) }))}>Its blocks</a>
            </nav>
        </>
    );
}
