// SPDX-License-Identifier: MIT
// views/flame.tsx: the flame graph. The zoomed call stands in the address as zoom=MARK, the chosen one as call=MARK,
// flip=1 draws callers below.
import { useMemo, useRef } from "preact/hooks";
import { useActions } from "../actions";
import { Choice } from "../components/Choice";
import { markOf, nodeMarked } from "../draw/calltree";
import type { FlameGraph } from "../draw/flame";
import { flag, go, param } from "../url";
import { callActions, callMenu, chooseCall, everything, useCallView } from "./calls";
import { CallView } from "./CallTools";
import { FlameBox } from "./FlameBox";

export default function Flame() {
    const graph = useRef<FlameGraph | null>(null);
    const view = useCallView((_, node) => graph.current?.walk(node));
    const { calls, call } = view;
    const flipped = flag("flip");
    const zoomMark = param("zoom") ?? "";
    const zoom = useMemo(() => (calls === undefined ? 0 : nodeMarked(calls.marks, zoomMark)), [calls, zoomMark]);
    const setZoom = (node: number) => {
        if (calls !== undefined && node !== zoom) go({ set: { zoom: node === 0 ? null : markOf(calls.marks, node) } });
    };
    const flip = () => go({ set: { flip: flipped ? null : "1" } });
    const focus = () => graph.current?.focus();
    const group = "Flame graph";
    useActions([
        ...view.foundActions(group),
        { group, title: flipped ? "Icicle: callers on top" : "Flame: callers below", keys: ["f"], run: flip },
        ...(zoom === 0 ? [] : [{ group, title: "Zoom out", keys: ["Escape"], run: () => setZoom(0) }]),
        { group, title: "Go from call to call", keys: ["Left, Right, Up, Down"], hidden: true, run: () => focus() },
        { group, title: "Zoom to the chosen call", keys: ["Enter"], hidden: true, run: () => setZoom(call) },
        ...callActions(calls, call),
    ]);
    const tools = (
        <>
            <Choice label="Orientation" value={flipped ? "flame" : "icicle"} onChange={flip} options={[
                ["icicle", "Icicle", "Callers on top (f)"], ["flame", "Flame", "Callers below (f)"],
            ]} />
            {zoom !== 0 && <button type="button" onClick={() => setZoom(0)} title="Show everything again (Esc)">Zoom out</button>}
        </>
    );
    return (
        <CallView view={view} focus={focus} tools={tools}>
            {(shown) => (
                <FlameBox label="Flame graph" calls={shown} zoom={zoom} chosen={call} hit={view.searched?.found?.hit ?? null}
                    upward={flipped} title={everything()} onZoom={setZoom} grab={graph}
                    onChoose={(node) => chooseCall(shown, node)} menu={(node) => callMenu(shown, node, () => setZoom(node))} />
            )}
        </CallView>
    );
}
