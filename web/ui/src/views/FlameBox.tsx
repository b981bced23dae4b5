// SPDX-License-Identifier: MIT
// views/FlameBox.tsx: a flame graph of a tree of calls, with the line about the call under the pointer. Used by the
// views flame and sandwich.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { FlameGraph, type FlameHooks } from "../draw/flame";
import { Menu, type MenuItem } from "../components/Menu";
import { changeText, frameTitle, placeText, shortFunction, spellKind } from "../components/Cells";
import * as format from "../format";
import { shownTheme, units } from "../settings";
import { type Calls, changeOf, describeCall, figureOf, sideText, WHOSE } from "./calls";

interface FlameBoxProps {
    label: string;
    calls: Calls;
    zoom: number;
    chosen: number;
    hit?: Uint8Array | null;
    upward?: boolean;
    title: string; // of the root
    onZoom: (node: number) => void;
    onChoose: (node: number) => void;
    menu: (node: number) => MenuItem[];
    legend?: boolean;
    grab?: { current: FlameGraph | null };
}

export function FlameBox(props: FlameBoxProps) {
    const { calls, label, title, upward = false, hit = null } = props;
    const host = useRef<HTMLDivElement>(null);
    const graph = useRef<FlameGraph | null>(null);
    const [hover, setHover] = useState(-1);
    const [menu, setMenu] = useState<{ node: number; x: number; y: number } | null>(null);
    const now = useRef(props);
    now.current = props;

    useLayoutEffect(() => {
        if (host.current === null) return;
        const hooks: FlameHooks = {
            zoom: (node) => now.current.onZoom(node),
            choose: (node) => now.current.onChoose(node),
            hover: setHover,
            menu: (node, x, y) => setMenu({ node, x, y }),
            describe: (node) => describeCall(now.current.calls, node),
        };
        const made = new FlameGraph(host.current, hooks, label);
        graph.current = made;
        if (props.grab !== undefined) props.grab.current = made;
        return () => {
            made.destroy();
            graph.current = null;
            if (props.grab !== undefined) props.grab.current = null;
        };
    }, [label]);
    useLayoutEffect(() => {
        setHover(-1);
        graph.current?.setUpward(upward);
        graph.current?.setModel({
            tree: calls.tree, names: calls.names.map(shortFunction), kinds: calls.kinds, title,
            figure: (node) => figureOf(calls, node), change: changeOf(calls),
        }, props.zoom, props.chosen);
    }, [calls, title, units.value, label]);
    useLayoutEffect(() => graph.current?.setHits(hit), [hit, calls]);
    useLayoutEffect(() => graph.current?.setUpward(upward), [upward]);
    useLayoutEffect(() => graph.current?.setZoom(props.zoom), [props.zoom]);
    useLayoutEffect(() => graph.current?.setChosen(props.chosen), [props.chosen]);
    useLayoutEffect(() => graph.current?.restyle(), [shownTheme.value]);

    const told = hover >= 0 && hover < calls.tree.size ? hover : props.chosen;
    return (
        <div class="flame-box">
            <div ref={host} class="flame" />
            <div class="flame-foot">
                <CallLine calls={calls} node={told} title={title} />
                {calls.data.cut > 0 && <span class="muted">{format.items(calls.data.cut, "smaller call")} left out</span>}
                {props.legend !== false && <Legend difference={calls.tree.base !== null} />}
            </div>
            {menu !== null && (
                <Menu label={calls.frames[calls.tree.frame[menu.node]!]?.function ?? title} at={menu}
                    items={props.menu(menu.node)} onClose={() => setMenu(null)} />
            )}
        </div>
    );
}

/* What readers hear is in the graph: this line is for the eye, and changes too often to be announced. */
function CallLine({ calls, node, title }: { calls: Calls; node: number; title: string }) {
    const { tree, data } = calls;
    const frame = calls.frames[tree.frame[node]!];
    const main = tree.main[node]!;
    return (
        <div class="call-line" aria-hidden="true" title={frame === undefined ? undefined : frameTitle(frame)}>
            <span class="function">{frame === undefined ? title : shortFunction(frame.function)}</span>
            <span class="number">{spellKind(data.unit, main)}</span>
            <span class="number">{format.percent(main, tree.main[0]!)}</span>
            {tree.base !== null && <span class="number">{changeText(main - tree.base[node]!, data.unit)} from {spellKind(data.unit, tree.base[node]!)}</span>}
            {!calls.upward && <span class="muted">itself <span class="number">{spellKind(data.unit, tree.self[node]!)}</span></span>}
            <span class="muted number">{sideText(calls, node)}</span>
            {frame !== undefined && <span class="muted">{WHOSE[frame.kind]} · {placeText(frame)}</span>}
        </div>
    );
}

function Legend({ difference }: { difference: boolean }) {
    const items = difference
        ? [["less", "− less"], ["same", "the same"], ["more", "+ more"]]
        : [["own", "own code"], ["library", "libraries"], ["system", "system"]];
    return (
        <span class="legend">
            {items.map(([name, text]) => (
                <span key={name} class="legend-item"><span class={`swatch ${name}`} />{text}</span>
            ))}
        </span>
    );
}
