// SPDX-License-Identifier: MIT
// views/tree.tsx: the call tree as a table, level by level. What is open stands in the address as open=MARK,MARK...;
// without it the hot path is.
import { useEffect, useId, useMemo, useState } from "preact/hooks";
import { useActions } from "../actions";
import { changeText, FrameText, spellKind } from "../components/Cells";
import { hasModifier, takeStep } from "../components/hooks";
import { Menu } from "../components/Menu";
import { ScrollBox, takeCopy, useScroll } from "../components/Table";
import { type CallTree, markOf, pathTo } from "../draw/calltree";
import * as format from "../format";
import { go, param } from "../url";
import { callActions, callMenu, type Calls, chooseCall, everything, sideAbout, sideHeading, useCallView } from "./calls";
import { CallView } from "./CallTools";

const ROW_PX = 24;
const OPEN_MOST = 200; // in the address; it would get too long for a link

/* The widest call of each, as long as it has at least half of its caller's. */
export function hotPath(tree: CallTree, from: number): number[] {
    const path = [from];
    for (let node = from; tree.first[node]! < tree.first[node + 1]!; ) {
        const call = tree.first[node]!;
        if (tree.weight[call]! * 2 < tree.weight[node]!) break;
        path.push(call);
        node = call;
    }
    return path;
}

/* What is seen: the calls of all that is open, in order. */
export function visibleNodes(tree: CallTree, isOpen: (node: number) => boolean): number[] {
    const rows: number[] = [];
    const waiting = tree.size > 0 ? [0] : [];
    for (let node = waiting.pop(); node !== undefined; node = waiting.pop()) {
        rows.push(node);
        if (!isOpen(node)) continue;
        for (let call = tree.first[node + 1]! - 1; call >= tree.first[node]!; call--) waiting.push(call);
    }
    return rows;
}

function useOpen(calls: Calls | undefined) {
    const text = param("open");
    const open = useMemo(() => {
        if (calls === undefined) return new Set<string>();
        const nodes = hotPath(calls.tree, 0);
        return new Set(text === null ? nodes.map((node) => markOf(calls.marks, node)) : text.split(","));
    }, [calls, text]);
    const [more, setMore] = useState<Set<string> | null>(null); // where the address has no room for it
    useEffect(() => setMore(null), [text, calls]);
    const put = (to: Set<string>) => {
        if (to.size > OPEN_MOST) setMore(to);
        else go({ set: { open: to.size === 0 ? "none" : [...to].join(",") } }, "replace");
    };
    return { open: more ?? open, put };
}

export default function Tree() {
    const view = useCallView((calls, node) => {
        openAll([0, ...pathTo(calls.tree, node).slice(0, -1)]);
        chooseCall(calls, node);
    });
    const { calls, call } = view;
    const { open, put } = useOpen(calls);
    const openAll = (nodes: readonly number[]) => {
        if (calls !== undefined) put(new Set([...open, ...nodes.map((node) => markOf(calls.marks, node))]));
    };
    const openHot = () => openAll(calls === undefined ? [] : hotPath(calls.tree, call));
    const group = "Call tree";
    useActions([
        ...view.foundActions(group),
        { group, title: "Open the hot path below the chosen call", keys: ["x"], run: openHot },
        { group, title: "Open, close, go in and out", keys: ["Left, Right"], hidden: true, run: focusTable },
        { group, title: "Open all beside the chosen call", keys: ["*"], hidden: true, run: focusTable },
        ...callActions(calls, call),
    ]);
    const tools = (
        <>
            <button type="button" title="Open the calls that cost most below the chosen one (x)" onClick={openHot}>Hot path</button>
            <button type="button" onClick={() => put(new Set())}>Close all</button>
        </>
    );
    return (
        <CallView view={view} focus={focusTable} tools={tools}>
            {(shown) => <CallTable calls={shown} open={open} chosen={call} hit={view.searched?.found?.hit ?? null} stale={view.asked.stale} onOpen={put} />}
        </CallView>
    );
}

const focusTable = () => document.querySelector<HTMLElement>(".call-table")?.focus();

interface CallTableProps {
    calls: Calls;
    open: Set<string>;
    chosen: number;
    hit: Uint8Array | null;
    stale: boolean;
    onOpen: (open: Set<string>) => void;
}

function CallTable({ calls, open, chosen, hit, stale, onOpen }: CallTableProps) {
    const { tree, data, marks } = calls;
    const id = useId();
    const [menu, setMenu] = useState<{ node: number; x: number; y: number } | null>(null);
    const isOpen = (node: number) => open.has(markOf(marks, node));
    const rows = useMemo(() => visibleNodes(tree, isOpen), [calls, open]);
    const scroll = useScroll(rows.length, ROW_PX);
    const current = Math.max(rows.indexOf(chosen), 0);
    const isLaid = scroll.pageRows > 1; // before, nothing could be said to be out of sight
    useEffect(() => {
        if (isLaid) scroll.show(current);
    }, [current, calls, isLaid]);

    const columns = columnsOf(calls);
    const hasCalls = (node: number) => tree.first[node]! < tree.first[node + 1]!;
    const toggle = (node: number, to = !isOpen(node)) => {
        const next = new Set(open);
        next.delete("none");
        if (to) next.add(markOf(marks, node));
        else next.delete(markOf(marks, node));
        onOpen(next);
    };
    const move = (row: number) => {
        const node = rows[Math.max(0, Math.min(row, rows.length - 1))];
        if (node !== undefined) chooseCall(calls, node);
    };
    const key = (event: KeyboardEvent) => {
        const node = rows[current] ?? 0;
        if (takeCopy(event, () => [nameOf(calls, node), ...columns.map((column) => column.text(node))].join("\t")) || hasModifier(event)) return;
        const openMenu = () => {
            const box = document.getElementById(`${id}-${node}`)?.getBoundingClientRect();
            setMenu({ node, x: (box?.left ?? 0) + indent(tree.depth[node]!), y: box?.bottom ?? 0 });
        };
        takeStep(event, {
            ...scroll.steps(current, move),
            ArrowRight: () => (hasCalls(node) && !isOpen(node) ? toggle(node, true) : move(current + 1)),
            ArrowLeft: () => (hasCalls(node) && isOpen(node) ? toggle(node, false) : move(rows.indexOf(tree.parent[node]!))),
            "*": () => onOpen(new Set([...open, ...siblingsOf(tree, node).map((one) => markOf(marks, one))])),
            " ": () => hasCalls(node) && toggle(node),
            Enter: !event.shiftKey && (() => hasCalls(node) && toggle(node)),
            ContextMenu: node > 0 && openMenu, F10: node > 0 && event.shiftKey && openMenu,
        });
    };

    const rowOf = (at: number, place: { transform: string }) => {
        const node = rows[at]!;
        const level = tree.depth[node]!;
        const from = node === 0 ? 0 : tree.first[tree.parent[node]!]!;
        return (
            <div key={node} id={`${id}-${node}`} role="row" aria-level={level + 1} aria-selected={node === chosen}
                aria-expanded={hasCalls(node) ? isOpen(node) : undefined} aria-posinset={node - from + 1}
                aria-setsize={siblingCount(tree, node)} aria-rowindex={at + 2} style={place}
                class={`call-row${node === chosen ? " selected" : ""}${hit?.[node] === 1 ? " found" : ""}`}
                onClick={() => chooseCall(calls, node)} onDblClick={() => hasCalls(node) && toggle(node)}
                onContextMenu={(event) => {
                    event.preventDefault();
                    chooseCall(calls, node);
                    if (node !== 0) setMenu({ node, x: event.clientX, y: event.clientY });
                }}>
                <div role="gridcell" class="call-name" style={{ paddingLeft: `${indent(level)}px` }}>
                    <button type="button" class="plain twist" tabIndex={-1} aria-hidden="true" disabled={!hasCalls(node)}
                        onClick={(event) => {
                            event.stopPropagation();
                            toggle(node);
                        }}>{hasCalls(node) ? (isOpen(node) ? "▾" : "▸") : ""}</button>
                    {node === 0 ? <span class="function">{nameOf(calls, node)}</span> : <FrameText of={calls.frames[tree.frame[node]!]!} />}
                </div>
                {columns.map((column) => (
                    <div key={column.heading} role="gridcell" class={`cell numeric${column.bar ? " bar" : ""}`}
                        style={column.bar ? { "--bar": `${100 * barOf(calls, node)}%` } : undefined}>{column.text(node)}</div>
                ))}
            </div>
        );
    };
    const head = (
        <>
            <div role="columnheader" class="heading">Function</div>
            {columns.map((column) => <div key={column.heading} role="columnheader" class="heading numeric" title={column.about}>{column.heading}</div>)}
        </>
    );
    return (
        <>
            <ScrollBox scroll={scroll} tracks={`minmax(18rem, 1fr) ${columns.map((column) => column.width).join(" ")}`} class={`call-table${stale ? " stale" : ""}`}
                role="treegrid" aria-label="Call tree" aria-rowcount={rows.length + 1} aria-activedescendant={`${id}-${rows[current] ?? 0}`} onKeyDown={key}
                head={head} below={data.cut > 0 && <div class="call-cut muted">{format.items(data.cut, "smaller call")} left out</div>}>
                {scroll.rows(rowOf)}
            </ScrollBox>
            {/* Outside: what is within a table is placed by it, not by the window. */}
            {menu !== null && <Menu label={nameOf(calls, menu.node)} at={menu} items={callMenu(calls, menu.node)} onClose={() => setMenu(null)} />}
        </>
    );
}

const nameOf = (calls: Calls, node: number): string =>
    calls.frames[calls.tree.frame[node]!]?.function ?? everything();

function siblingsOf(tree: CallTree, node: number): number[] {
    const from = node === 0 ? 0 : tree.first[tree.parent[node]!]!;
    return Array.from({ length: siblingCount(tree, node) }, (_, i) => from + i);
}
function siblingCount(tree: CallTree, node: number): number {
    const parent = tree.parent[node]!;
    return parent < 0 ? 1 : tree.first[parent + 1]! - tree.first[parent]!;
}

/* Deep trees shall not push their names out of sight. */
const indent = (level: number): number => 10 * Math.min(level, 16) + 4 * Math.min(Math.max(level - 16, 0), 30);

function barOf({ tree }: Calls, node: number): number {
    if (tree.base === null) return tree.main[node]! / Math.max(tree.main[0]!, 1);
    return Math.min(Math.abs(tree.main[node]! - tree.base[node]!) / Math.max(Math.abs(tree.main[0]! - tree.base[0]!), 1), 1);
}

interface CallColumn {
    heading: string;
    about: string;
    width: string;
    bar?: boolean;
    text: (node: number) => string;
}

function columnsOf({ data, tree, upward }: Calls): CallColumn[] {
    const main = { heading: data.unit === "bytes" ? "Bytes" : "Count", about: "With all that it calls", width: "8rem" };
    const share = { heading: "Share", about: "Of everything", width: "4.5rem", text: (node: number) => format.percent(tree.main[node]!, tree.main[0]!) };
    const self = { heading: "Itself", about: "Without what it calls", width: "7rem", text: (node: number) => (tree.self[node] === 0 ? "–" : spellKind(data.unit, tree.self[node]!)) };
    const side = {
        heading: sideHeading(data), about: sideAbout(data), width: "8rem",
        text: (node: number) => spellKind(data.side_unit, tree.side[node]!),
    };
    const own = upward ? [] : [self];
    const base = tree.base;
    if (base === null) return [{ ...main, bar: true, text: (node) => spellKind(data.unit, tree.main[node]!) }, share, ...own, side];
    return [
        { heading: "Change", about: "From before to after", width: "8rem", bar: true, text: (node) => changeText(tree.main[node]! - base[node]!, data.unit) },
        { heading: "Before", about: "", width: "7rem", text: (node) => spellKind(data.unit, base[node]!) },
        { heading: "After", about: "", width: "7rem", text: (node) => spellKind(data.unit, tree.main[node]!) },
        ...own, side,
    ];
}
