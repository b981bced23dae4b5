// SPDX-License-Identifier: MIT
// views/calls.ts: the tree of calls as flame graph and call tree show it: asked for, with the transforms of the address
// done to it, with what a search finds in it. All of it stands in the address:
//
//   direction=up   from the allocating functions outwards        search=REGEX     what is looked for
//   merge=NAME     the function's cost goes to its callers       hide=NAME        without the function and all below it
//   collapse=PATH  a library as one call                         width=after|before   of a difference: one side's bytes
import { batch } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import type { Action } from "../actions";
import { useAnswer, type Asked } from "../ask";
import { choose, chosen, isChosen } from "../chosen";
import { readColumns } from "../columns";
import {
    buildTree, type CallTree, findFrames, type Found, markOf, type Marks, marksOf, nodeMarked, type Transform, transformTree, type Weight,
} from "../draw/calltree";
import { LIBRARY, OWN, SYSTEM, WHOLE } from "../draw/flamepaint";
import { changeText, shortFunction, shortModule, spellKind } from "../components/Cells";
import type { MenuItem } from "../components/Menu";
import * as format from "../format";
import { exactly, openSandwich, openSource, through, viewChange } from "../links";
import { source } from "../session";
import { isLeft, isNarrowed, isWindowed, metricTitle } from "../summaries";
import type { Frame, Metric, Tree } from "../types";
import { go, isDifference, metric, param, params } from "../url";

export interface Calls {
    data: Tree;
    tree: CallTree;
    frames: readonly Frame[]; // also of collapsed libraries
    names: readonly string[];
    kinds: Uint8Array;
    marks: Marks;
    transformed: boolean;
    upward: boolean; // calls lead to callers: then only the first ones allocate themselves
}

/* What is left out then is far below a pixel; the answer says how many calls that are. */
const CALLS_MOST = 500_000;
const LEAST_DRAGGED = 0.0003;

const KINDS: Record<Frame["kind"], number> = { own: OWN, library: LIBRARY, system: SYSTEM };

export function callsOf(data: Tree, transforms: readonly Transform[], weight: Weight, upward: boolean): Calls {
    const { columns, extra } = transformTree(data.nodes, data.frames, transforms);
    const by = data.nodes.base === undefined ? "main" : weight;
    const libraries = extra.map((module): Frame => {
        const kind = data.frames.find((frame) => frame.module === module)?.kind ?? "library";
        return { function: shortModule(module), module, kind };
    });
    const frames = [...data.frames, ...libraries];
    const names = frames.map((frame) => frame.function);
    const tree = buildTree(columns, by);
    return {
        data, tree, frames, names,
        kinds: Uint8Array.from(frames, (frame) => KINDS[frame.kind] ?? WHOLE),
        marks: marksOf(tree, names),
        transformed: transforms.length > 0,
        upward,
    };
}

export function transformsHere(): Transform[] {
    return (["merge", "hide", "collapse"] as const).flatMap((kind) => params(kind).map((name) => ({ kind, name })));
}

/* The widths of a difference: both sides together, unless one is asked for. */
export function weightHere(): Weight {
    if (!isDifference.value) return "main";
    const width = param("width");
    return width === "after" ? "main" : width === "before" ? "base" : "both";
}

export const directionHere = (): "down" | "up" => (param("direction") === "up" ? "up" : "down");

export function useCalls(): { asked: Asked<Tree>; calls: Calls | undefined } {
    // While a window is dragged what is narrower than a pixel is left out: the answer comes sooner.
    const dragged = param("zoom") === null ? { "min-share": LEAST_DRAGGED } : {};
    const asked = useAnswer<Tree>("tree", { metric: metric.value, direction: directionHere(), limit: CALLS_MOST }, { wire: readColumns, main: true, dragged });
    const transforms = transformsHere(), weight = weightHere(), upward = directionHere() === "up";
    const data = asked.data;
    const calls = useMemo(
        () => (data === undefined ? undefined : callsOf(data, transforms, weight, upward)),
        [data, JSON.stringify(transforms), weight],
    );
    return { asked, calls };
}

/* ---- Search ---- */

interface SearchAnswer {
    functions: string[];
    count: number;
    main: number;
    total: number;
    share: number;
}
export interface Searched {
    asked: Asked<SearchAnswer>;
    found: Found | null; // in the tree that is shown
    functions: number;
    main: number; // of what the tree's root bears
}

/* What the address looks for. The server says which functions those are: its regular expressions are the commands'. */
export function useSearch(calls: Calls | undefined): Searched | null {
    const regex = param("search");
    const asked = useAnswer<SearchAnswer>(regex ? "search" : null, { regex, metric: metric.value });
    const answer = regex && asked.state === "ready" ? asked.data : undefined;
    const found = useMemo(() => {
        if (calls === undefined || answer === undefined) return null;
        const names = new Set(answer.functions);
        return findFrames(calls.tree, Uint8Array.from(calls.frames, (frame) => (names.has(frame.function) ? 1 : 0)));
    }, [calls, answer]);
    if (!regex) return null;
    // What was cut off or merged away the tree does not know: then the server's sum, which is of all, would be another one.
    const main = calls?.transformed === true ? (found?.main ?? 0) : (answer?.main ?? 0);
    return { asked, found, functions: answer?.count ?? 0, main };
}

/* ---- Figures ---- */

/* "3.2 MiB · 51.2%", of a difference "+1.2 MiB" */
export function figureOf({ data, tree }: Calls, node: number): string {
    const main = tree.main[node]!;
    if (tree.base !== null) return changeText(main - tree.base[node]!, data.unit);
    return `${spellKind(data.unit, main)} · ${format.percent(main, tree.main[0]!)}`;
}

/* From -1, all of it went, to 1, all of it is new. */
export function changeOf({ tree }: Calls): ((node: number) => number) | null {
    const base = tree.base;
    if (base === null) return null;
    return (node) => {
        const before = base[node]!, after = tree.main[node]!;
        return (after - before) / Math.max(before, after, 1);
    };
}

export const WHOSE: Record<Frame["kind"], string> = { own: "own code", library: "library", system: "system" };

/* All about a call in one line, for readers and the line below a graph. */
export function describeCall(calls: Calls, node: number): string {
    const { data, tree } = calls;
    const frame = calls.frames[tree.frame[node]!];
    const main = tree.main[node]!;
    const parts = [frame === undefined ? "everything" : shortFunction(frame.function), spellKind(data.unit, main), format.percent(main, tree.main[0]!)];
    if (tree.base !== null) parts.push(`${changeText(main - tree.base[node]!, data.unit)} from ${spellKind(data.unit, tree.base[node]!)}`);
    if (!calls.upward) parts.push(`itself ${spellKind(data.unit, tree.self[node]!)}`);
    parts.push(sideText(calls, node));
    if (frame !== undefined) parts.push(WHOSE[frame.kind]);
    return parts.join(", ");
}

export function sideText({ data, tree }: Calls, node: number): string {
    const side = tree.side[node]!;
    if (data.side_unit === "bytes") return `${spellKind("bytes", side)} in all`;
    return hasBlocks(data) ? format.items(side, "block") : `${format.items(side, "allocation")} in all`;
}
/* Whether the second number is what is held; else it is all that was allocated, freed or not. How many blocks were held at the peak is not known. */
const hasBlocks = (data: Tree): boolean => data.metric === "leaked" || data.metric === "shutdown";
export const sideHeading = (data: Tree): string =>
    data.side_unit === "bytes" ? "Bytes in all" : hasBlocks(data) ? "Blocks" : "Allocations in all";
export const sideAbout = (data: Tree): string =>
    data.side_unit === "bytes" || hasBlocks(data) ? "" : "All that were made there up to the end, whether freed by then or not";

/* ---- What may be done with a function ---- */

export function showOnly(name: string): void {
    if (!params("function").includes(exactly(name))) go({ set: through(name) });
}
export function addTransform(kind: Transform["kind"], name: string): void {
    const now = params(kind);
    if (!now.includes(name)) go({ set: { [kind]: [...now, name] } });
}
export function removeTransform(kind: Transform["kind"], name: string): void {
    go({ set: { [kind]: params(kind).filter((one) => one !== name) } });
}

/* ---- The chosen call ---- */

const EVERYTHING: Record<Metric, string> = {
    maximum: "Everything at the maximum", leaked: "Everything never freed", cumulative: "Everything ever allocated",
    allocations: "All allocations", temporary: "All temporary allocations", shutdown: "Everything freed at shutdown, or never",
    short: "All short-lived allocations",
};

/* The root's name. What is not freed is held now, or at the end of a window. */
export function everything(): string {
    const title = metricTitle(metric.value, source.value?.live);
    return title.startsWith("Held") ? `Everything ${title.toLowerCase()}` : EVERYTHING[metric.value];
}

export function chooseCall(calls: Calls, node: number): void {
    const frame = calls.frames[calls.tree.frame[node]!];
    batch(() => {
        if (frame === undefined) choose(null);
        else choose({ kind: "function", id: frame.function, frame, figures: figuresOf(calls, node) });
        go({ set: { call: node === 0 ? null : markOf(calls.marks, node) } }, "replace");
    });
}

function figuresOf({ data, tree }: Calls, node: number) {
    const kind = data.unit;
    return [
        { label: "this call", value: tree.main[node]!, kind, of: tree.main[0]! },
        { label: "itself", value: tree.self[node]!, kind, of: tree.main[0]! },
        ...(tree.base === null ? [] : [{ label: "before", value: tree.base[node]!, kind }]),
    ];
}

/* The inspector's figures are those of the tree that is shown: also of a page that was opened by a link. */
export function useFigures(calls: Calls | undefined, node: number): void {
    useEffect(() => {
        const frame = calls?.frames[calls.tree.frame[node]!];
        const shown = chosen.peek();
        if (calls === undefined) return;
        if (frame !== undefined && isChosen("function", frame.function)) chooseCall(calls, node);
        else if (frame === undefined && shown?.figures !== undefined) choose({ kind: shown.kind, id: shown.id, frame: shown.frame });
    }, [calls, node]);
}

/* What can be done with the chosen call; its caller is chosen where the call is gone then. */
export function callActions(calls: Calls | undefined, node: number): Action[] {
    const frame = calls?.frames[calls.tree.frame[node]!];
    if (calls === undefined || frame === undefined) return [];
    const group = "The chosen call";
    const leave = () => chooseCall(calls, Math.max(calls.tree.parent[node]!, 0));
    const take = (kind: "merge" | "hide") => batch(() => {
        addTransform(kind, frame.function);
        leave();
    });
    return [
        { group, title: "Only paths through it", keys: ["Shift+Enter"], run: () => showOnly(frame.function) },
        { group, title: "Merge it into its callers", keys: ["m"], run: () => take("merge") },
        { group, title: "Hide it and all below", keys: ["h"], run: () => take("hide") },
        { group, title: "Collapse its library", keys: ["c"], run: () => addTransform("collapse", frame.module) },
    ];
}

/* Of a tree that transforms cannot be done to, `fixed`. */
export function callMenu(calls: Calls, node: number, zoom?: () => void, fixed = false): MenuItem[] {
    const frame = calls.frames[calls.tree.frame[node]!];
    if (frame === undefined) return [];
    return [
        ...(zoom === undefined ? [] : [{ label: "Zoom", key: "Enter", run: zoom }]),
        { label: "Callers and callees", key: "s", run: () => openSandwich(frame.function) },
        ...(frame.file === undefined ? [] : [{ label: "Source", key: "o", run: () => openSource(frame) }]),
        { label: "Only paths through it", key: "Shift+Enter", run: () => showOnly(frame.function) },
        { label: "Call paths through it", run: () => go(viewChange("paths", through(frame.function))) },
        ...(fixed ? [] : [
            { label: "Merge into its callers", key: "m", run: () => addTransform("merge", frame.function) },
            { label: "Hide it and all below", key: "h", run: () => addTransform("hide", frame.function) },
            { label: `Collapse ${shortModule(frame.module)}`, key: "c", run: () => addTransform("collapse", frame.module) },
        ]),
        { label: "Copy its name", run: () => void navigator.clipboard?.writeText(frame.function) },
    ];
}

/* The next call that was found, the widest first on each level; back to the first after the last. */
export function nextFound(found: Found, node: number, step: 1 | -1): number {
    const size = found.hit.length;
    for (let i = 1; i <= size; i++) {
        const at = (node + step * i + size * 2) % size;
        if (found.hit[at] === 1) return at;
    }
    return node;
}

/* What flame graph and call tree have in common: the tree, what is looked for in it, the chosen call (call=MARK in the
 * address). walk: goes to a call that was found. */
export function useCallView(walk: (calls: Calls, node: number) => void) {
    const { asked, calls } = useCalls();
    const searched = useSearch(calls);
    const mark = param("call") ?? "";
    const call = useMemo(() => (calls === undefined ? 0 : nodeMarked(calls.marks, mark)), [calls, mark]);
    useFigures(calls, call);
    const walkFound = (from: number, step: 1 | -1) => {
        if (calls !== undefined && searched?.found != null && searched.found.count > 0) walk(calls, nextFound(searched.found, from, step));
    };
    const foundActions = (group: string): Action[] => (searched === null ? [] : [
        { group, title: "Next call that was found", keys: ["n"], run: () => walkFound(call, 1) },
        { group, title: "Previous call that was found", keys: ["Shift+N"], run: () => walkFound(call, -1) },
    ]);
    return { asked, calls, searched, call, walkFound, foundActions };
}
export type CallViewState = ReturnType<typeof useCallView>;

/* Why a tree has nothing in it. */
export function nothingText(): string {
    if (isNarrowed()) return "Nothing that matches all filters has a cost in this metric.";
    switch (metric.value) {
        case "leaked": return source.value?.live === true ? "Nothing is held now." : isWindowed() ? "Nothing was held at the end of this window." : isLeft() ? "Nothing was held when the program was detached from." : "Everything was freed.";
        case "shutdown": return "Everything was freed before the last allocation.";
        case "temporary": return "Nothing was freed before its thread's next allocation.";
        default: return isWindowed() ? "Nothing was allocated in this window." : "Nothing was allocated.";
    }
}
