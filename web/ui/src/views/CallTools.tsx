// SPDX-License-Identifier: MIT
// views/CallTools.tsx: what stands above a flame graph or a call tree: direction, search, what was merged or hidden.
import { type ComponentChildren, type RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { useActions } from "../actions";
import { Choice } from "../components/Choice";
import { shortModule } from "../components/Cells";
import * as format from "../format";
import type { Transform } from "../draw/calltree";
import { go, isDifference, param } from "../url";
import { type Calls, directionHere, removeTransform, type Searched, transformsHere, unitText, weightHere } from "./calls";

interface ToolsProps {
    calls: Calls | undefined;
    searched: Searched | null;
    onLeaveSearch: (found: boolean) => void; // back to the graph; found: to what was found
    children?: ComponentChildren;
}

export const turn = () =>
    go({ set: { direction: directionHere() === "up" ? null : "up", zoom: null, call: null, open: null } });

export function CallTools({ calls, searched, onLeaveSearch, children }: ToolsProps) {
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
    const key = (event: KeyboardEvent) => {
        if (event.key === "Enter") put(text);
        else if (event.key === "Escape") {
            setText("");
            put("");
        } else return;
        event.preventDefault();
        event.stopPropagation();
        onLeave(event.key === "Enter");
    };
    return (
        <input ref={input} type="search" class="search" placeholder="Search functions  /" aria-label="Search functions by a regular expression"
            spellcheck={false} value={text} onKeyDown={key} onInput={(event) => {
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
            {functions === 0 ? "Nothing found" : <>{format.items(functions, "function")}, <b class="number">{share}</b> ({unitText(calls.data.unit, main)})</>}
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
