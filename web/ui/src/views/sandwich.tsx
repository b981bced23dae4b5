// SPDX-License-Identifier: MIT
// views/sandwich.tsx: one function (focus=NAME): above who calls it, below what it calls, between them its own figures and
// what it held over time. All of its places in the program are one here.
import { useMemo, useState } from "preact/hooks";
import { useAnswer } from "../ask";
import { Chart } from "../components/Chart";
import { FrameText } from "../components/Cells";
import { Split } from "../components/Split";
import { States } from "../components/States";
import { choose, chosen as inspected } from "../chosen";
import * as format from "../format";
import type { Frame, Timeline, Tree } from "../types";
import { go, href, metric, param, params } from "../url";
import { exactly, openSource, viewChange } from "../links";
import { type Calls, callsOf, sideHeading, showOnly, unitText, weightHere } from "./calls";
import { callMenu } from "./flame";
import { FlameBox } from "./FlameBox";
import { FunctionTable } from "./functions";
import type { View } from "./index";

interface CallersAnswer {
    focus: Frame;
    main: number;
    side: number;
    self: number;
    callers: Tree;
    callees: Tree;
}

/* What the address names, or what the inspector is about. */
function focusHere(): string | null {
    const named = param("focus");
    if (named !== null) return named;
    const what = inspected.value;
    return what?.kind === "function" ? what.id : null;
}

function Sandwich() {
    const focus = focusHere();
    if (focus === null) {
        return (
            <div class="call-view">
                <p class="hint">Choose a function: Enter or a double click shows who calls it and what it calls.</p>
                <FunctionTable onOpen={(frame) => go({ set: { focus: frame.function } })} />
            </div>
        );
    }
    return <Around key={focus} focus={focus} />;
}

function Around({ focus }: { focus: string }) {
    const asked = useAnswer<CallersAnswer>("callers", { focus, metric: metric.value }, { main: true });
    const weight = weightHere();
    const data = asked.data;
    const callers = useMemo(() => (data === undefined ? undefined : callsOf(data.callers, [], weight, true)), [data, weight]);
    const callees = useMemo(() => (data === undefined ? undefined : callsOf(data.callees, [], weight, false)), [data, weight]);
    return (
        <div class="call-view">
            <States of={asked}>
                {(answer) => callers !== undefined && callees !== undefined && <Both focus={focus} answer={answer} callers={callers} callees={callees} />}
            </States>
        </div>
    );
}

/* A half that is empty leaves its room to the other. */
function Both({ focus, answer, callers, callees }: { focus: string; answer: CallersAnswer; callers: Calls; callees: Calls }) {
    const above = callers.tree.size > 1, below = callees.tree.size > 1;
    const upper = above
        ? <Half label="Callers" title={focus} calls={callers} upward legend={!below} />
        : <p class="half-note">Nothing calls it: call paths begin here.</p>;
    const lower = (
        <div class="sandwich-rest">
            <Focus answer={answer} />
            {below ? <Half label="Callees" title={focus} calls={callees} legend /> : <p class="half-note">It calls nothing that allocates: it allocates itself.</p>}
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

/* Zoom and choice of a half are passing: what lasts is the focus, and another call is one Enter away. */
function Half({ label, title, calls, upward = false, legend }: { label: string; title: string; calls: Calls; upward?: boolean; legend: boolean }) {
    const [state, setState] = useState({ of: calls, zoom: 0, chosen: 0 });
    const { zoom, chosen } = state.of === calls ? state : { zoom: 0, chosen: 0 };
    const setZoom = (node: number) => setState({ of: calls, zoom: node, chosen });
    const setChosen = (node: number) => setState((now) => ({ of: calls, zoom: now.of === calls ? now.zoom : 0, chosen: node }));
    return (
        <section class="half" aria-label={label}>
            <FlameBox label={label} calls={calls} zoom={zoom} chosen={chosen} upward={upward} title={title} legend={legend}
                onZoom={setZoom} onChoose={(node) => {
                    const frame = calls.frames[calls.tree.frame[node]!];
                    setChosen(node);
                    if (frame !== undefined) choose({ kind: "function", id: frame.function, frame });
                }}
                menu={(node) => callMenu(calls, node, () => setZoom(node), true)} />
        </section>
    );
}

function Focus({ answer }: { answer: CallersAnswer }) {
    const { focus, main, self, side, callees } = answer;
    const text = (value: number) => unitText(callees.unit, value);
    const through = [...params("function").filter((one) => one !== exactly(focus.function)), exactly(focus.function)];
    return (
        <div class="focus-bar">
            <div class="focus-name">
                <FrameText of={focus} />
                <span class="focus-tools">
                    <button type="button" onClick={() => showOnly(focus.function)}>Only paths through it</button>
                    {focus.file !== undefined && <button type="button" onClick={() => openSource(focus)}>Source</button>}
                    {["sizes", "lifetimes", "blocks"].map((view) => (
                        <a key={view} class="button" href={href(viewChange(view, { function: through }))}>{view[0]!.toUpperCase() + view.slice(1)}</a>
                    ))}
                    <button type="button" onClick={() => go({ set: { focus: null, chosen: null } })}>Another function</button>
                </span>
            </div>
            <dl class="focus-figures">
                <div><dt>With what it calls</dt><dd class="number">{text(main)} <span class="muted">{format.percent(main, callees.total)}</span></dd></div>
                <div><dt>Itself</dt><dd class="number">{text(self)} <span class="muted">{format.percent(self, callees.total)}</span></dd></div>
                <div><dt>{sideHeading(callees)}</dt><dd class="number">{unitText(callees.side_unit, side)}</dd></div>
            </dl>
            <Own name={focus.function} />
        </div>
    );
}

/* What the paths through it held over time. */
function Own({ name }: { name: string }) {
    const asked = useAnswer<Timeline>("timeline", { function: [exactly(name)], points: 400, series: "live" });
    const live = asked.data?.series.live;
    if (asked.data === undefined || live === undefined || asked.data.time_ns.length < 2) return null;
    return (
        <Chart label="Held by paths through it" time={asked.data.time_ns} height={84}
            series={[{ label: "live", values: live, kind: "bytes", colour: "--series-1", fill: true }]} />
    );
}

export const view: View = { Component: Sandwich };
