// SPDX-License-Identifier: MIT
// Inspector.tsx: at the right, what is known of the chosen function, path, block or mapping, and where to go from it.
import type { ComponentChildren, ComponentType } from "preact";
import { useAnswer } from "../ask";
import { choose, chosen, type Chosen, type Figure } from "../chosen";
import { bytesText, FrameText, PathText, placeText, spellKind } from "../components/Cells";
import { Chart } from "../components/Chart";
import { IconButton } from "../components/Icon";
import { States } from "../components/States";
import * as format from "../format";
import { sandwichHref, sourceHref, through, viewChange } from "../links";
import { cell, numberCell, pathFrames, type Row, rowsOf, textCell } from "../rows";
import { metricTitle, metricUnit, useThreadNames } from "../summaries";
import type { Block, Callers, Cell, Frame, MappingHistory, Path, Table, Tree } from "../types";
import { type Change, href, metric } from "../url";

export function Inspector() {
    const what = chosen.value;
    if (what === null) return null;
    const [title, Details] = (Object.hasOwn(PAGES, what.kind) ? PAGES[what.kind] : undefined) ?? ["Details", Plain];
    return (
        <aside class="inspector" aria-label="Details">
            <div class="inspector-head">
                <h2>{title}</h2>
                <IconButton small icon="close" label="Close the details (Escape)" onClick={() => choose(null)} />
            </div>
            <div class="inspector-body" key={`${what.kind}:${what.id}`}>
                <Details what={what} />
            </div>
        </aside>
    );
}
const PAGES: Partial<Record<string, readonly [string, ComponentType<{ what: Chosen }>]>> = {
    function: ["Function", FunctionDetails], path: ["Call path", PathDetails], block: ["Block", BlockDetails], mapping: ["Mapping", MappingDetails], file: ["File", Plain],
};

function Plain({ what }: { what: Chosen }) {
    return (
        <>
            <p class="inspector-name code">{what.id}</p>
            <Figures of={what.figures} />
        </>
    );
}

function Figures({ of }: { of: readonly Figure[] | undefined }) {
    if (of === undefined || of.length === 0) return null;
    return (
        <dl class="inspector-figures">
            {of.map((one) => (
                <div key={one.label}>
                    <dt>{one.label}</dt>
                    <dd class="number" title={one.kind === "bytes" && one.value !== null ? `${format.count(one.value)} bytes` : undefined}>
                        {typeof one.value === "number" ? spellKind(one.kind, one.value) : (one.value ?? "–")}
                        {one.of !== undefined && one.of > 0 && one.value !== null && <span class="muted"> {format.percent(one.value, one.of)}</span>}
                    </dd>
                </div>
            ))}
        </dl>
    );
}

function PathFrames({ frames }: { frames: readonly Frame[] }) {
    return (
        <ol class="path-frames">
            {frames.map((frame, index) => (
                <li key={index}>
                    <button type="button" class="plain" onClick={() => choose({ kind: "function", id: frame.function, frame })}><FrameText of={frame} place={false} /></button>
                    {frame.file === undefined ? <span class="place">{placeText(frame)}</span> : <a class="place" href={sourceHref(frame)}>{placeText(frame)}</a>}
                </li>
            ))}
        </ol>
    );
}

function PathSection({ title, frames }: { title: string; frames: readonly Frame[] }) {
    return (
        <section>
            <h3>{title}</h3>
            <PathFrames frames={frames} />
        </section>
    );
}

function Links({ children }: { children: ComponentChildren }) {
    return <nav class="inspector-links" aria-label="From here">{children}</nav>;
}
function LinkTo({ to, children }: { to: Change | string; children: ComponentChildren }) {
    return <a class="button small" href={typeof to === "string" ? to : href(to)}>{children}</a>;
}

/* ---- A function ---- */

function FunctionDetails({ what }: { what: Chosen }) {
    const asked = useAnswer<Callers>("callers", { focus: what.id, metric: metric.value, depth: 2 });
    const name = what.id;
    // The call that was chosen has a line, all places of the function together have none.
    const frame = what.frame?.line ? what.frame : (asked.data?.focus ?? what.frame);
    return (
        <>
            <FrameName frame={frame} name={name} />
            <Figures of={what.figures} />
            <Links>
                <LinkTo to={sandwichHref(name)}>Callers and callees<kbd>s</kbd></LinkTo>
                {frame?.file !== undefined && <LinkTo to={sourceHref(frame)}>Source<kbd>o</kbd></LinkTo>}
                <LinkTo to={{ set: through(name) }}>Only paths through it</LinkTo>
                <LinkTo to={{ set: through(name, "not-function") }}>Without it</LinkTo>
                <LinkTo to={viewChange("blocks", through(name))}>Its blocks</LinkTo>
            </Links>
            <States of={asked}>
                {(data) => (
                    <>
                        {what.figures === undefined && <Figures of={[
                            { label: metricTitle(metric.value), value: data.main, kind: metricUnit(metric.value) },
                            { label: "by itself", value: data.self, kind: metricUnit(metric.value), of: data.main },
                        ]} />}
                        <Nearest title="Called by" tree={data.callers} total={data.main} />
                        <Nearest title="Calls" tree={data.callees} total={data.main} />
                    </>
                )}
            </States>
        </>
    );
}

function FrameName({ frame, name }: { frame: Frame | undefined; name: string }) {
    return (
        <div class="inspector-name">
            <span class={`function ${frame?.kind ?? ""}`}>{name}</span>
            {frame !== undefined && <span class="muted inspector-place" title={`${frame.file ?? ""}\n${frame.module}`}>{placeText(frame)}</span>}
        </div>
    );
}

const NEAREST = 6;

function Nearest({ title, tree, total }: { title: string; tree: Tree; total: number }) {
    const { parent, frame: frames, main: costs } = tree.nodes;
    const children = Array.from(parent, (above, node) => ({ node, above, main: costs[node] ?? 0 }))
        .filter(({ node, above }) => node > 0 && above === 0).sort((a, b) => b.main - a.main);
    if (children.length === 0) return null;
    return (
        <section class="nearest">
            <h3>{title}</h3>
            <ul>
                {children.slice(0, NEAREST).map(({ node, main }) => {
                    const frame = tree.frames[frames[node] ?? -1];
                    if (frame === undefined) return null;
                    return (
                        <li key={node}>
                            <button type="button" class="plain nearest-row" onClick={() => choose({ kind: "function", id: frame.function, frame })}>
                                <FrameText of={frame} place={false} />
                                <span class="number" title={tree.unit === "bytes" ? `${format.count(main)} bytes` : undefined}>{spellKind(tree.unit, main)}</span>
                                <span class="number share">{format.percent(main, total)}</span>
                            </button>
                        </li>
                    );
                })}
            </ul>
            {children.length > NEAREST && <p class="muted">and {format.items(children.length - NEAREST, "other")}</p>}
        </section>
    );
}

/* ---- A path ---- */

type PathAnswer = Path & Record<string, unknown>;
const PATH_FIGURES: readonly (readonly [string, string, Figure["kind"]])[] = [
    ["peak_bytes", "at the maximum", "bytes"], ["live_bytes", "never freed", "bytes"], ["live_blocks", "blocks of that", "count"],
    ["total_bytes", "allocated", "bytes"], ["allocations", "allocations", "count"], ["frees", "frees", "count"], ["temporary", "temporary", "count"],
    ["average", "on average", "bytes"], ["average_size", "on average", "bytes"], ["average_lifetime", "lived on average", "duration"],
];

function PathDetails({ what }: { what: Chosen }) {
    const asked = useAnswer<PathAnswer>(`paths/${encodeURIComponent(what.id)}`, { path: null });
    return (
        <States of={asked}>
            {(data) => (
                <>
                    <p class="muted">hash <span class="code">{data.hash}</span></p>
                    <Figures of={what.figures ?? PATH_FIGURES.flatMap(([name, label, kind]) => (typeof data[name] === "number" ? [{ label, kind, value: data[name] }] : []))} />
                    <Links>
                        <LinkTo to={{ set: { path: data.hash } }}>Only this path</LinkTo>
                        <LinkTo to={viewChange("blocks", { path: data.hash })}>Its blocks</LinkTo>
                    </Links>
                    {data.timeline !== null && data.timeline !== undefined && (
                        <Chart label="Held over time" height={90} time={data.timeline.time_ns} series={[{ label: "held", values: data.timeline.live, kind: "bytes", fill: true }]} />
                    )}
                    <h3>Frames, the allocating one first</h3>
                    <PathFrames frames={data.frames} />
                    <Histogram title="Sizes" rows={data.sizes?.map((one) => ({ label: `≤ ${format.bytes(one.to)}`, count: one.count }))} />
                    <Histogram title="Lifetimes" rows={data.lifetimes?.map((one) => ({ label: one.to_ns === null ? `> ${format.duration(one.from_ns)}` : `< ${format.duration(one.to_ns)}`, count: one.count }))} />
                </>
            )}
        </States>
    );
}

function Histogram({ title, rows }: { title: string; rows: { label: string; count: number }[] | undefined }) {
    const shown = rows?.filter((row) => row.count > 0) ?? [];
    if (shown.length === 0) return null;
    const most = Math.max(...shown.map((row) => row.count));
    return (
        <section>
            <h3>{title}</h3>
            <table class="histogram">
                <tbody>
                    {shown.map((row) => (
                        <tr key={row.label}>
                            <th scope="row" class="number">{row.label}</th>
                            <td class="histogram-bar"><span style={{ width: `${(100 * row.count) / most}%` }} /></td>
                            <td class="number">{format.count(row.count)}</td>
                        </tr>
                    ))}
                </tbody>
            </table>
        </section>
    );
}

/* ---- A block ---- */

type BlockAnswer = Block & { block: Record<string, Cell> };

/* id: the block's number, or an address: then the block that lies there. */
function BlockDetails({ what }: { what: Chosen }) {
    const isAddress = what.id.startsWith("0x");
    const asked = useAnswer<BlockAnswer>(isAddress ? "blocks/at" : `blocks/${encodeURIComponent(what.id)}`, isAddress ? { address: what.id } : {});
    return (
        <States of={asked}>
            {(data) => (
                <>
                    <p class="inspector-name">
                        <span><span class="number">{bytesText(data.block["size"] as format.Quantity | null)}</span> <span class="muted">at</span> <span class="code">{String(data.block["address"] ?? "no address")}</span></span>
                    </p>
                    {asked.answer?.notes?.map((note) => <p key={note} class="note">{note}</p>)}
                    <BlockFigures of={data.block} />
                    <BlockLinks of={data.block} />
                    <PathSection title="Allocated by" frames={data.path} />
                    {data.freed_path != null && <PathSection title="Freed by" frames={data.freed_path} />}
                    <Chain of={data.chain} id={data.block["id"] ?? null} />
                    <Neighbours of={data.neighbours} address={String(data.block["address"] ?? "")} />
                </>
            )}
        </States>
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
        <Links>
            {typeof address === "string" && of["birth_ns"] !== undefined && <LinkTo to={heapAt(BigInt(address), Number(of["size"] ?? 0), of["birth_ns"] ?? null, of["death_ns"] ?? null)}>Where it lies</LinkTo>}
            {typeof hash === "string" && <LinkTo to={viewChange("paths", { chosen: `path:${hash}` })}>Its call path</LinkTo>}
            {typeof hash === "string" && <LinkTo to={viewChange("blocks", { path: hash })}>Blocks of this path</LinkTo>}
        </Links>
    );
}

/* The heap around a block, while it lived. */
function heapAt(address: bigint, size: number, birth: Cell, death: Cell) {
    const start = address > AROUND ? (address - AROUND) & ~4095n : 0n;
    const end = (address + BigInt(size) + AROUND + 4095n) & ~4095n;
    const at = death === null || birth === null ? {} : { at: format.time(Math.max(Number(birth) + 1, Number(death))) };
    return viewChange("heap", { start: `0x${start.toString(16)}`, end: `0x${end.toString(16)}`, ...at });
}

function Chain({ of, id }: { of: Table | undefined; id: Cell }) {
    if (of === undefined || of.rows.length < 2) return null;
    return (
        <section>
            <h3>Its chain: {format.items(of.rows.length, "block")} that reallocations made of each other</h3>
            <ol class="chain">
                {rowsOf(of).map((row) => (
                    <li key={row.index}>
                        <button type="button" class="plain chain-row" aria-current={cell(row, "id") === id ? "true" : undefined} onClick={() => choose({ kind: "block", id: textCell(row, "id") })}>
                            <span class="number">{bytesText(cell(row, "size") as format.Quantity | null)}</span>
                            <span class="code muted">{textCell(row, "address")}</span>
                            <span class="number muted">{format.duration(cell(row, "age_ns") as format.Quantity | null)}</span>
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
    const most = rows.reduce((sum, row) => Math.max(sum, numberCell(row, "size"), numberCell(row, "gap_bytes")), 1);
    const width = (bytes: number) => ({ width: `${Math.max(1, (100 * Math.log1p(bytes)) / Math.log1p(most))}%` });
    return (
        <section>
            <h3>Around it, in the order of addresses</h3>
            <ol class="neighbours">
                {rows.map((row) => {
                    const size = numberCell(row, "size"), gap = numberCell(row, "gap_bytes");
                    const own = textCell(row, "address");
                    return (
                        <li key={row.index} aria-current={own === address ? "true" : undefined}>
                            <button type="button" class="plain neighbour" title={own} onClick={() => choose({ kind: "block", id: own })}>
                                <span class="neighbour-size number">{bytesText(size)}</span>
                                <span class="neighbour-bar" aria-hidden="true"><span style={width(size)} /></span>
                                <span class="neighbour-path"><PathText frames={pathFrames(row, cell(row, "path"))} most={1} /></span>
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

function MappingDetails({ what }: { what: Chosen }) {
    const history = useAnswer<{ history: Required<MappingHistory> }>(`mappings/${encodeURIComponent(what.id)}`);
    const all = useAnswer<Table>("mappings", { all: 1, limit: 10_000 });
    const row = all.data === undefined ? undefined : rowsOf(all.data).find((one) => textCell(one, "id") === what.id);
    const mappers = row === undefined ? [] : pathFrames(row, cell(row, "mapped_by"));
    return (
        <>
            {row !== undefined && <MappingFigures row={row} />}
            <States of={history}>
                {({ history: now }) => now.time_ns.length > 1 ? (
                    <Chart label="Over time" height={120} time={now.time_ns} series={[
                        { label: "resident", values: now.rss, kind: "bytes", fill: true },
                        { label: "dirty", values: now.dirty, kind: "bytes" },
                        ...(now.swap.some((bytes) => (bytes ?? 0) > 0) ? [{ label: "swap", values: now.swap, kind: "bytes" as const }] : []),
                    ]} />
                ) : <p class="muted">It was looked at once, so there is no line over time.</p>}
            </States>
            {mappers.length > 0 && <PathSection title="Mapped by" frames={mappers} />}
        </>
    );
}

function MappingFigures({ row }: { row: Row }) {
    const number = (name: string) => (cell(row, name) === null ? null : numberCell(row, name));
    const size = number("size") ?? 0;
    return (
        <>
            <p class="inspector-name"><span class="path-name">{String(cell(row, "path") ?? "anonymous")}</span></p>
            <Figures of={[
                { label: "from", value: textCell(row, "start"), kind: "address" },
                { label: "to", value: textCell(row, "end"), kind: "address" },
                { label: "size", value: size, kind: "bytes" },
                { label: "permissions", value: textCell(row, "permissions"), kind: "word" },
                { label: "resident", value: number("rss"), kind: "bytes", of: size },
                { label: "most resident", value: number("peak_rss"), kind: "bytes", of: size },
                { label: "dirty", value: number("dirty"), kind: "bytes", of: size },
                { label: "swapped out", value: number("swap"), kind: "bytes" },
                { label: "first seen", value: number("first_ns"), kind: "duration" },
                { label: cell(row, "mapped") === 0 ? "gone after" : "last seen", value: number("last_ns"), kind: "duration" },
            ]} />
            <Links>
                <LinkTo to={viewChange("heap", { start: textCell(row, "start"), end: textCell(row, "end") })}>Blocks in it, as a map</LinkTo>
                <LinkTo to={viewChange("blocks", { mapping: textCell(row, "id") })}>Its blocks</LinkTo>
            </Links>
        </>
    );
}
