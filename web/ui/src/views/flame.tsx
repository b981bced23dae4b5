// SPDX-License-Identifier: MIT
// views/flame.tsx: the flame graph. The zoomed call stands in the address as zoom=MARK, the chosen one as call=MARK,
// flip=1 draws callers below.
import { batch } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { type Action, useActions } from "../actions";
import { Choice } from "../components/Choice";
import type { MenuItem } from "../components/Menu";
import { States } from "../components/States";
import { shortModule } from "../components/Cells";
import { choose, chosen, isChosen } from "../chosen";
import { markOf, nodeMarked } from "../draw/calltree";
import type { FlameGraph } from "../draw/flame";
import type { Found } from "../draw/calltree";
import { exactly, openSandwich, openSource, viewChange } from "../links";
import { source } from "../session";
import { metricTitle } from "../summaries";
import type { Metric } from "../types";
import { flag, go, metric, param, params } from "../url";
import { addTransform, type Calls, nothingText, showOnly, useCalls, useSearch } from "./calls";
import { CallTools } from "./CallTools";
import { FlameBox } from "./FlameBox";
import type { View } from "./index";

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
        { label: "Call paths through it", run: () => go(viewChange("paths", { function: [...params("function"), exactly(frame.function)] })) },
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

function Flame() {
    const { asked, calls } = useCalls();
    const searched = useSearch(calls);
    const graph = useRef<FlameGraph | null>(null);
    const flipped = flag("flip");
    const zoomMark = param("zoom") ?? "", callMark = param("call") ?? "";
    const zoom = useMemo(() => (calls === undefined ? 0 : nodeMarked(calls.marks, zoomMark)), [calls, zoomMark]);
    const call = useMemo(() => (calls === undefined ? 0 : nodeMarked(calls.marks, callMark)), [calls, callMark]);
    useFigures(calls, call);
    const setZoom = (node: number) => {
        if (calls !== undefined && node !== zoom) go({ set: { zoom: node === 0 ? null : markOf(calls.marks, node) } });
    };
    const flip = () => go({ set: { flip: flipped ? null : "1" } });
    const walkFound = (from: number, step: 1 | -1) => {
        if (calls === undefined || searched?.found == null || searched.found.count === 0) return;
        graph.current?.walk(nextFound(searched.found, from, step));
    };
    const group = "Flame graph";
    useActions([
        ...(searched === null ? [] : [
            { group, title: "Next call that was found", keys: ["n"], run: () => walkFound(call, 1) },
            { group, title: "Previous call that was found", keys: ["Shift+N"], run: () => walkFound(call, -1) },
        ]),
        { group, title: flipped ? "Icicle: callers on top" : "Flame: callers below", keys: ["f"], run: flip },
        ...(zoom === 0 ? [] : [{ group, title: "Zoom out", keys: ["Escape"], run: () => setZoom(0) }]),
        { group, title: "Go from call to call", keys: ["Left, Right, Up, Down"], hidden: true, run: () => graph.current?.focus() },
        { group, title: "Zoom to the chosen call", keys: ["Enter"], hidden: true, run: () => setZoom(call) },
        ...callActions(calls, call),
    ]);
    const nothing = calls !== undefined && !(calls.tree.weight[0]! > 0);
    return (
        <div class="call-view">
            <CallTools calls={calls} searched={searched} onLeaveSearch={(found) => {
                if (found) walkFound(0, 1);
                graph.current?.focus();
            }}>
                <Choice label="Orientation" value={flipped ? "flame" : "icicle"} onChange={flip} options={[
                    ["icicle", "Icicle", "Callers on top (f)"], ["flame", "Flame", "Callers below (f)"],
                ]} />
                {zoom !== 0 && <button type="button" onClick={() => setZoom(0)} title="Show everything again (Esc)">Zoom out</button>}
            </CallTools>
            <States of={asked} empty={nothing ? nothingText() : undefined}>
                {() => calls !== undefined && (
                    <FlameBox label="Flame graph" calls={calls} zoom={zoom} chosen={call} hit={searched?.found?.hit ?? null}
                        upward={flipped} title={everything()} onZoom={setZoom} grab={graph}
                        onChoose={(node) => chooseCall(calls, node)} menu={(node) => callMenu(calls, node, () => setZoom(node))} />
                )}
            </States>
        </div>
    );
}

export const view: View = { Component: Flame };
