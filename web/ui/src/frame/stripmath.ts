// SPDX-License-Identifier: MIT
// stripmath.ts: what the timeline strip reckons: rates, where dragging takes the window to, steps between marks.
import * as format from "../format";
import type { Timeline } from "../types";
import { rounded, type Span } from "../window";

export function nearest(times: readonly number[], at: number): number {
    let low = 0;
    let high = times.length - 1;
    while (low < high) {
        const middle = (low + high) >> 1;
        if ((times[middle] ?? 0) < at) low = middle + 1;
        else high = middle;
    }
    return low > 0 && at - (times[low - 1] ?? 0) < (times[low] ?? 0) - at ? low - 1 : low;
}

/* The stretches between marks, one after the other; before the first and after the last there is one, too. */
export function stepMarks(marks: readonly { time: number }[], duration: number, span: Span | null, by: 1 | -1): Span | null {
    const edges = [...new Set([0, ...marks.map((mark) => mark.time).filter((time) => time > 0 && time < duration), duration])].sort((a, b) => a - b);
    const at = span === null ? (by > 0 ? -1 : edges.length - 1) : edges.findIndex((edge) => edge >= span.from - 0.5);
    const next = Math.max(0, Math.min(edges.length - 2, at + by));
    const from = edges[next] ?? 0;
    const to = edges[next + 1] ?? duration;
    return from === 0 && to === duration ? null : { from, to };
}

export type Grip = "new" | "from" | "to" | "move" | "base";
/* Where the pointer has taken the window to. Too small a one would say nothing: at least one step stays. */
export function draggedSpan(grip: Grip, before: Span, began: number, at: number, duration: number, step: number): Span {
    const now = rounded(at, step);
    let from = before.from;
    let to = before.to;
    if (grip === "from") from = now;
    else if (grip === "to") to = now;
    else if (grip === "move") {
        const shift = Math.max(-before.from, Math.min(duration - before.to, rounded(at - began, step)));
        return { from: before.from + shift, to: before.to + shift };
    } else {
        from = rounded(began, step);
        to = now;
    }
    if (from > to) [from, to] = [to, from];
    return { from: Math.max(0, from), to: Math.min(duration, Math.max(to, from + step)) };
}

/* "40.3 – 100.8 ms": the unit once, where it is the same. */
export function spanText({ from, to }: Span): string {
    const [first, last] = [format.duration(from), format.duration(to)];
    const unit = last.slice(last.indexOf(" "));
    return `${first.endsWith(unit) && !/ .* /.test(last) ? first.slice(0, -unit.length) : first} – ${last}`;
}

/* Allocations per second in equal parts of the time. Points of a timeline are where something was highest, some a
 * nanosecond apart: a rate between two of them says nothing, what came to pass in a part does. */
export function ratesOf(timeline: Timeline, duration: number, parts: number): number[] {
    const rates = new Array<number>(parts).fill(0);
    const width = duration / parts;
    const times = timeline.time_ns;
    for (let i = 1; i < times.length; i++) {
        const [from, to] = [times[i - 1] ?? 0, times[i] ?? 0];
        const happened = ((timeline.series.rate?.[i] ?? 0) * (to - from)) / 1e9;
        const [first, last] = [Math.floor(from / width), Math.min(parts - 1, Math.floor(to / width))];
        for (let part = first; part <= last && happened > 0; part++) {
            const inside = Math.min(to, (part + 1) * width) - Math.max(from, part * width);
            rates[part] = (rates[part] ?? 0) + (happened * Math.max(0, to > from ? inside / (to - from) : 1) * 1e9) / width;
        }
    }
    return rates;
}
