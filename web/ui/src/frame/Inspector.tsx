// SPDX-License-Identifier: MIT
// Inspector.tsx: at the right, what is known of the chosen function, path or block, and where to go from it.
import { useAnswer } from "../ask";
import { choose, chosen, type Chosen, type Figure } from "../chosen";
import { BlockDetails, MappingDetails } from "../components/BlockDetails";
import { bytesText, FrameText, placeText } from "../components/Cells";
import { Chart } from "../components/Chart";
import { Figures, PathFrames } from "../components/Details";
import { IconButton } from "../components/Icon";
import { States } from "../components/States";
import * as format from "../format";
import { exactly, sandwichHref, sourceHref, viewChange } from "../links";
import { metricTitle, metricUnit } from "../summaries";
import type { Frame, Tree } from "../types";
import { href, metric, params } from "../url";

export function Inspector() {
    const what = chosen.value;
    if (what === null) return null;
    const titles = { function: "Function", path: "Call path", block: "Block", file: "File", mapping: "Mapping" };
    return (
        <aside class="inspector" aria-label="Details">
            <div class="inspector-head">
                <h2>{titles[what.kind] ?? "Details"}</h2>
                <IconButton small icon="close" label="Close the details (Escape)" onClick={() => choose(null)} />
            </div>
            <div class="inspector-body" key={`${what.kind}:${what.id}`}>
                {what.kind === "function" ? <FunctionDetails what={what} /> :
                    what.kind === "path" ? <PathDetails what={what} /> :
                    what.kind === "block" ? <BlockDetails what={what} /> :
                    what.kind === "mapping" ? <MappingDetails what={what} /> : <Plain what={what} />}
            </div>
        </aside>
    );
}

function Plain({ what }: { what: Chosen }) {
    return (
        <>
            <p class="inspector-name code">{what.id}</p>
            <Figures of={what.figures} />
        </>
    );
}

/* ---- A function ---- */

interface Callers {
    focus: Frame;
    main: number;
    side: number;
    self: number;
    callers: Tree;
    callees: Tree;
}

function FunctionDetails({ what }: { what: Chosen }) {
    const asked = useAnswer<Callers>("callers", { focus: what.id, metric: metric.value, depth: 2 });
    const name = what.id;
    const through = exactly(name);
    // The call that was chosen has a line, all places of the function together have none.
    const frame = what.frame?.line ? what.frame : (asked.data?.focus ?? what.frame);
    return (
        <>
            <FrameName frame={frame} name={name} />
            <Figures of={what.figures} />
            <nav class="inspector-links" aria-label="From here">
                <a class="button small" href={sandwichHref(name)}>Callers and callees<kbd>s</kbd></a>
                {frame?.file !== undefined && <a class="button small" href={sourceHref(frame)}>Source<kbd>o</kbd></a>}
                <a class="button small" href={href({ set: { function: [...params("function").filter((one) => one !== through), through] } })}>Only paths through it</a>
                <a class="button small" href={href({ set: { "not-function": [...params("not-function").filter((one) => one !== through), through] } })}>Without it</a>
                <a class="button small" href={href(viewChange("blocks", { function: [...params("function").filter((one) => one !== through), through] }))}>Its blocks</a>
            </nav>
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
    const children: { node: number; main: number }[] = [];
    for (let node = 1; node < tree.nodes.parent.length; node++) {
        if (tree.nodes.parent[node] === 0) children.push({ node, main: tree.nodes.main[node] ?? 0 });
    }
    children.sort((a, b) => b.main - a.main);
    if (children.length === 0) return null;
    return (
        <section class="nearest">
            <h3>{title}</h3>
            <ul>
                {children.slice(0, NEAREST).map(({ node, main }) => {
                    const frame = tree.frames[tree.nodes.frame[node] ?? -1];
                    if (frame === undefined) return null;
                    return (
                        <li key={node}>
                            <button type="button" class="plain nearest-row" onClick={() => choose({ kind: "function", id: frame.function, frame })}>
                                <FrameText of={frame} place={false} />
                                <span class="number" title={tree.unit === "bytes" ? `${format.count(main)} bytes` : undefined}>{tree.unit === "bytes" ? bytesText(main) : format.count(main)}</span>
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

interface PathAnswer extends Record<string, unknown> {
    hash: string;
    frames: Frame[];
    timeline: { time_ns: number[]; live: number[] } | null;
    sizes: { from: number; to: number; count: number }[] | null;
    lifetimes: { from_ns: number; to_ns: number | null; count: number }[] | null;
}
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
                    <nav class="inspector-links" aria-label="From here">
                        <a class="button small" href={href({ set: { path: data.hash } })}>Only this path</a>
                        <a class="button small" href={href(viewChange("blocks", { path: data.hash }))}>Its blocks</a>
                    </nav>
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
