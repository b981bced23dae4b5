// SPDX-License-Identifier: MIT
// views/sandwich.tsx: one function (focus=NAME): above who calls it, below what it calls, between them its own figures and
// what it held over time. All of its places in the program are one here.
import { batch } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { useAnswer } from "../ask";
import { Chart } from "../components/Chart";
import { changeText, FrameText, shortFunction, spellKind } from "../components/Cells";
import { Split } from "../components/Split";
import { States } from "../components/States";
import { choose, chosen as inspected } from "../chosen";
import { markOf, nodeMarked } from "../draw/calltree";
import * as format from "../format";
import type { Callers, Timeline, Tree } from "../types";
import { go, href, metric, param } from "../url";
import { exactly, openSource, through, viewChange } from "../links";
import { type Calls, callMenu, callsOf, sideHeading, showOnly, weightHere } from "./calls";
import { FlameBox } from "./FlameBox";
import { FunctionTable } from "./functions";

/* What the address names, or what the inspector is about. */
function focusHere(): string | null {
    const named = param("focus");
    if (named !== null) return named;
    const what = inspected.value;
    return what?.kind === "function" ? what.id : null;
}

export default function Sandwich() {
    const focus = focusHere();
    if (focus === null) {
        return (
            <div class="call-view">
                <p class="hint">Choose a function: Enter or a double click shows who calls it and what it calls.</p>
                <FunctionTable onOpen={(name) => go({ set: { focus: name } })} />
            </div>
        );
    }
    return <Around key={focus} focus={focus} />;
}

function Around({ focus }: { focus: string }) {
    const asked = useAnswer<Callers>("callers", { focus, metric: metric.value }, { main: true });
    const weight = weightHere();
    const data = asked.data;
    const callers = useMemo(() => (data === undefined ? undefined : callsOf(data.callers, [], weight, true)), [data, weight]);
    const callees = useMemo(() => (data === undefined ? undefined : callsOf(data.callees, [], weight, false)), [data, weight]);
    return (
        <div class="call-view">
            <States of={asked} empty={data !== undefined && data.main === 0 && data.side === 0 && !data.base_main ? <Nowhere focus={focus} note={asked.answer?.notes?.[0]} /> : undefined}>
                {(answer) => callers !== undefined && callees !== undefined && <Both focus={focus} answer={answer} callers={callers} callees={callees} />}
            </States>
        </div>
    );
}

function Nowhere({ focus, note }: { focus: string; note: string | undefined }) {
    return (
        <>
            <p><b>{focus}</b></p>
            <p>{note ?? "No call path with such a cost goes through this function."}</p>
            <button type="button" onClick={() => go({ set: { focus: null, chosen: null } })}>Another function</button>
        </>
    );
}

/* A half that is empty leaves its room to the other. */
function Both({ focus, answer, callers, callees }: { focus: string; answer: Callers; callers: Calls; callees: Calls }) {
    const above = callers.tree.size > 1, below = callees.tree.size > 1;
    const upper = above
        ? <Half label="Callers" title={shortFunction(focus)} calls={callers} upward legend={!below} />
        : <p class="half-note">Nothing calls it: call paths begin here.</p>;
    const lower = (
        <div class="sandwich-rest">
            <Focus answer={answer} />
            {below ? <Half label="Callees" title={shortFunction(focus)} calls={callees} legend /> : <p class="half-note">It calls nothing that allocates: it allocates itself.</p>}
        </div>
    );
    if (!above || !below) return <div class={`sandwich-rest${below ? "" : " upper"}`}>{upper}{lower}</div>;
    return (
        <Split name="sandwich" direction="column" size={Math.min(56 + 20 * callers.tree.level.length, 280)} label="Resize callers and callees">
            {upper}
            {lower}
        </Split>
    );
}

/* In the address: callers=MARK, callees=MARK what is zoomed to, call=callers.MARK the chosen call. */
function Half({ label, title, calls, upward = false, legend }: { label: string; title: string; calls: Calls; upward?: boolean; legend: boolean }) {
    const side = upward ? "callers" : "callees";
    const nodeOf = (mark: string) => nodeMarked(calls.marks, mark);
    const zoomMark = param(side) ?? "", callMark = param("call") ?? "";
    const zoom = useMemo(() => nodeOf(zoomMark), [calls, zoomMark]);
    const chosen = useMemo(() => (callMark.startsWith(side) ? nodeOf(callMark.slice(side.length + 1)) : 0), [calls, callMark]);
    const setZoom = (node: number) => go({ set: { [side]: node === 0 ? null : markOf(calls.marks, node) } });
    return (
        <section class="half" aria-label={label}>
            <FlameBox label={label} calls={calls} zoom={zoom} chosen={chosen} upward={upward} title={title} legend={legend}
                onZoom={setZoom} onChoose={(node) => {
                    const frame = calls.frames[calls.tree.frame[node]!];
                    batch(() => {
                        if (frame !== undefined) choose({ kind: "function", id: frame.function, frame });
                        go({ set: { call: node === 0 ? null : `${side}.${markOf(calls.marks, node)}` } }, "replace");
                    });
                }}
                menu={(node) => callMenu(calls, node, () => setZoom(node), true)} />
        </section>
    );
}

function Focus({ answer }: { answer: Callers }) {
    const { focus, main, self, side, callees } = answer;
    return (
        <div class="focus-bar">
            <div class="focus-name">
                <FrameText of={focus} />
                <span class="focus-tools">
                    <button type="button" onClick={() => showOnly(focus.function)}>Only paths through it</button>
                    {focus.file !== undefined && <button type="button" onClick={() => openSource(focus)}>Source</button>}
                    {["sizes", "lifetimes", "blocks"].map((view) => (
                        <a key={view} class="button" href={href(viewChange(view, through(focus.function)))}>{view[0]!.toUpperCase() + view.slice(1)}</a>
                    ))}
                    <button type="button" onClick={() => go({ set: { focus: null, chosen: null } })}>Another function</button>
                </span>
            </div>
            <dl class="focus-figures">
                <Cost title="With what it calls" value={main} before={answer.base_main} of={callees} />
                <Cost title="Itself" value={self} before={answer.base_self} of={callees} />
                <div><dt>{sideHeading(callees)}</dt><dd class="number">{spellKind(callees.side_unit, side)}</dd></div>
            </dl>
            <Own name={focus.function} />
        </div>
    );
}

/* With its share, or of a difference with what it was before. */
function Cost({ title, value, before, of }: { title: string; value: number; before: number | undefined; of: Tree }) {
    return (
        <div>
            <dt>{title}</dt>
            <dd class="number">
                {spellKind(of.unit, value)}{" "}
                <span class="muted">{before === undefined ? format.percent(value, of.total) : changeText(value - before, of.unit)}</span>
            </dd>
        </div>
    );
}

/* What the paths through it held over time. */
function Own({ name }: { name: string }) {
    const asked = useAnswer<Timeline>("timeline", { function: [exactly(name)], points: 400, series: "live" });
    if (asked.state === "failed") return null; // a profile does not know
    return (
        <div class="focus-chart">
            <States of={asked}>
                {({ time_ns, series: { live } }) => live !== undefined && time_ns.length > 1 && (
                    <Chart label="Held by paths through it" time={time_ns} height={84}
                        series={[{ label: "live", values: live, kind: "bytes", colour: "--series-1", fill: true }]} />
                )}
            </States>
        </div>
    );
}
