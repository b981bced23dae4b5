// SPDX-License-Identifier: MIT
// views/CallTools.tsx: what stands around a flame graph or a call tree: direction, search, what was merged or hidden; and
// what stands there instead of them.
import { type ComponentChildren, type RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { useActions } from "../actions";
import { Choice } from "../components/Choice";
import { shortModule, spellKind } from "../components/Cells";
import { takeStep } from "../components/hooks";
import { States } from "../components/States";
import * as format from "../format";
import type { Transform } from "../draw/calltree";
import { go, isDifference, param } from "../url";
import { type Calls, type CallViewState, directionHere, nothingText, removeTransform, type Searched, transformsHere, weightHere } from "./calls";

interface CallViewProps {
    view: CallViewState;
    focus: () => void; // of the graph
    tools: ComponentChildren;
    children: (calls: Calls) => ComponentChildren;
}

export function CallView({ view: { asked, calls, searched, walkFound }, focus, tools, children }: CallViewProps) {
    const nothing = calls !== undefined && !(calls.tree.weight[0]! > 0);
    return (
        <div class="call-view">
            <CallTools calls={calls} searched={searched} onLeaveSearch={(found) => {
                if (found) walkFound(0, 1);
                focus();
            }}>
                {tools}
            </CallTools>
            <States of={asked} empty={nothing ? nothingText() : undefined}>
                {() => calls !== undefined && children(calls)}
            </States>
        </div>
    );
}

interface ToolsProps {
    calls: Calls | undefined;
    searched: Searched | null;
    onLeaveSearch: (found: boolean) => void; // back to the graph; found: to what was found
    children: ComponentChildren;
}

const turn = () =>
    go({ set: { direction: directionHere() === "up" ? null : "up", zoom: null, call: null, open: null } });

function CallTools({ calls, searched, onLeaveSearch, children }: ToolsProps) {
    const input = useRef<HTMLInputElement>(null);
    const group = "Calls";
    useActions([
        { group, title: "Search functions", keys: ["/"], run: () => input.current?.focus() },
        { group, title: directionHere() === "up" ? "Top-down: from main" : "Bottom-up: from the allocating functions", keys: ["b"], run: turn },
        ...(param("search") === null ? [] : [
            { group, title: "End the search", keys: ["Escape"], hidden: true, run: () => go({ set: { search: null } }, "replace") },
        ]),
    ]);
    const width = weightHere();
    return (
        <div class="toolbar call-tools">
            <Choice label="Direction" value={directionHere()} onChange={turn} options={[
                ["down", "Top-down", "From main to the allocating functions (b)"],
                ["up", "Bottom-up", "From the allocating functions to main (b)"],
            ]} />
            {children}
            {isDifference.value && calls?.tree.base != null && (
                <Choice label="Widths" value={width} onChange={(to) => go({ set: { width: to === "both" ? null : to === "main" ? "after" : "before" } })}
                    options={[["both", "Both", "As wide as before and after together"], ["base", "Before"], ["main", "After"]]} />
            )}
            <SearchField input={input} onLeave={onLeaveSearch} />
            <SearchResult calls={calls} searched={searched} />
            <TransformChips />
        </div>
    );
}

/* Asked for while one types, but not at each letter; entries of the history are made by Enter alone. */
function SearchField({ input, onLeave }: { input: RefObject<HTMLInputElement | null>; onLeave: (found: boolean) => void }) {
    const here = param("search") ?? "";
    const [text, setText] = useState(here);
    const timer = useRef(0);
    useEffect(() => setText(here), [here]);
    const put = (to: string) => {
        clearTimeout(timer.current);
        if (to !== here) go({ set: { search: to === "" ? null : to } }, "replace");
    };
    const leave = (found: boolean) => {
        if (!found) setText("");
        put(found ? text : "");
        onLeave(found);
    };
    return (
        <input ref={input} type="search" class="search" placeholder="Search functions  /" aria-label="Search functions by a regular expression"
            spellcheck={false} value={text} onKeyDown={(event) => takeStep(event, { Enter: () => leave(true), Escape: () => leave(false) })} onInput={(event) => {
                const to = event.currentTarget.value;
                setText(to);
                clearTimeout(timer.current);
                timer.current = window.setTimeout(() => put(to), 250);
            }} />
    );
}

function SearchResult({ calls, searched }: { calls: Calls | undefined; searched: Searched | null }) {
    if (searched === null || calls === undefined) return null;
    const { asked, functions, main } = searched;
    if (asked.state === "failed") return <span class="search-result wrong" role="alert">{asked.error?.message}</span>;
    if (asked.state !== "ready") return <span class="search-result muted" role="status">…</span>;
    const share = format.percent(main, calls.tree.main[0]!);
    return (
        <span class="search-result" role="status">
            {functions === 0 ? "Nothing found" : <>{format.items(functions, "function")}, <b class="number">{share}</b> ({spellKind(calls.data.unit, main)})</>}
        </span>
    );
}

const VERBS: Record<Transform["kind"], string> = { merge: "merged", hide: "hidden", collapse: "collapsed" };

function TransformChips() {
    return transformsHere().map(({ kind, name }) => {
        const text = kind === "collapse" ? shortModule(name) : name;
        return (
            <span key={`${kind} ${name}`} class="chip transform" title={name}>
                <span class="muted">{VERBS[kind]}</span> <span class="function">{text}</span>
                <button type="button" class="plain" aria-label={`Undo: ${VERBS[kind]} ${text}`} onClick={() => removeTransform(kind, name)}>×</button>
            </span>
        );
    });
}
