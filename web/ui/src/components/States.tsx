// SPDX-License-Identifier: MIT
// States.tsx: what stands where data is not there: loading with progress and cancel, empty, error, cancelled.
//
//   <States of={asked}>{(data) => <Chart .../>}</States>
//   <States of={asked} empty={data.length === 0 ? "No marks." : undefined}>...
//
// While a newer answer is on its way the old one stays, dimmed by its own component if it likes (asked.stale), with a
// thin bar above it: unless it is only asked when a drag is over (asked.held).
import { type ComponentChildren } from "preact";
import type { Asked, Progress } from "../ask";
import * as format from "../format";
import { useDelayed } from "./hooks";

interface StatesProps<T> {
    of: Asked<T>;
    empty?: ComponentChildren;
    ready?: boolean; // there is something to show, though `data` may be undefined
    children: (data: T) => ComponentChildren;
}

export function States<T>({ of, empty, ready, children }: StatesProps<T>) {
    if (of.state === "failed" || (of.state === "cancelled" && of.data === undefined)) return <Stopped asked={of} />;
    if (of.data === undefined && ready !== true) return <Loading asked={of} />;
    return (
        <>
            {of.stale && of.held !== true && <Waiting asked={of} />}
            {empty === undefined ? children(of.data as T) : <Empty>{empty}</Empty>}
        </>
    );
}

export function Empty({ children }: { children: ComponentChildren }) {
    return <div class="state empty">{children}</div>;
}

function Stopped({ asked }: { asked: Asked<unknown> }) {
    const hasFailed = asked.state === "failed";
    return (
        <div class={hasFailed ? "state failed" : "state"} role={hasFailed ? "alert" : undefined}>
            <p>{hasFailed ? asked.error?.message : "Cancelled."}</p>
            <button type="button" onClick={asked.again}>Ask again</button>
        </div>
    );
}

/* Short waits show nothing: a word that flashes by is worse than none. */
function Loading({ asked }: { asked: Asked<unknown> }) {
    const late = useDelayed(120);
    if (!late) return <div class="state" />;
    return (
        <div class="state" role="status">
            <p>{asked.progress?.what ?? "Reading"}{asked.progress === undefined ? " …" : ""}</p>
            <ProgressBar of={asked.progress} />
            <button type="button" onClick={asked.cancel}>Cancel</button>
        </div>
    );
}

function Waiting({ asked }: { asked: Asked<unknown> }) {
    const late = useDelayed(120);
    if (!late) return null;
    return (
        <div class="waiting" role="status">
            <ProgressBar of={asked.progress} />
            {asked.progress !== undefined && <button type="button" class="small" onClick={asked.cancel}>Cancel</button>}
        </div>
    );
}

export function ProgressBar({ of, label = "Progress" }: { of: Progress | undefined; label?: string }) {
    const known = of !== undefined && of.total > 0;
    return (
        <span class="progress">
            <progress aria-label={label} max={known ? of.total : undefined} value={known ? of.done : undefined} />
            {known && <span class="number">{format.percent(of.done, of.total)}</span>}
        </span>
    );
}
