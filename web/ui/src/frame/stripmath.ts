// SPDX-License-Identifier: MIT
// stripmath.ts: what the timeline strip reckons: rates, where dragging takes the window to, steps between marks.
import { firstWhere } from "../draw/canvas";
import * as format from "../format";
import type { IntervalSeries, Timeline } from "../types";
import { rounded, type Span } from "../window";

export function nearest(times: readonly number[], at: number): number {
    const low = firstWhere(0, times.length - 1, (index) => (times[index] ?? 0) >= at);
    return low > 0 && at - (times[low - 1] ?? 0) < (times[low] ?? 0) - at ? low - 1 : low;
}

/*
 * What is only looked at now and then (resident memory), of which each point has what was seen last: where it is drawn as
 * known. `line` has the looks; undefined between two that follow each other soon, so that they are joined, else null. Alone
 * looks (`dots`) are joined with nothing. What was seen again as it was before is no look that can be told from none.
 */
export function sparseLine(times: readonly number[], values: readonly (number | null)[], duration: number): { line: (number | null | undefined)[]; dots: number[] } {
    const SOON = duration / 60;
    const looks = [...values.keys()].filter((i) => values[i] != null && (i === 0 || values[i] !== values[i - 1]));
    const line: (number | null | undefined)[] = values.map(() => null);
    const isSoon = (a: number | undefined, b: number | undefined) => a !== undefined && b !== undefined && (times[b] ?? 0) - (times[a] ?? 0) <= SOON;
    for (const [place, i] of looks.entries()) {
        line[i] = values[i];
        if (isSoon(i, looks[place + 1])) line.fill(undefined, i + 1, looks[place + 1]);
    }
    return { line, dots: looks.filter((i, place) => !isSoon(looks[place - 1], i) || !isSoon(i, looks[place + 1])) };
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

/*
 * Which marks are drawn, and which of them with their names. The program's own marks are all drawn while there are few
 * of them; what it says by the hundred (beginnings and ends of scopes) only where it does not lie close to what is drawn. A
 * name needs room before the next mark.
 */
const LETTER_PX = 6.5;
const APART_PX = 14;
const MOST_MARKS = 200;
export function drawnMarks<M extends { time: number; name: string; what: string }>(marks: readonly M[], duration: number, width: number): { mark: M; hasName: boolean }[] {
    const px = (mark: M) => (mark.time / duration) * width;
    const drawn = marks.filter((mark) => mark.what === "mark").slice(0, MOST_MARKS);
    const isFar = (mark: M, from: readonly M[]) => from.every((one) => Math.abs(px(one) - px(mark)) >= APART_PX);
    for (const mark of marks) if (mark.what !== "mark" && mark.name !== "" && drawn.length < MOST_MARKS && isFar(mark, drawn)) drawn.push(mark);
    drawn.sort((a, b) => a.time - b.time);
    // Names of marks come first: a scope has its name only where that leaves theirs their room.
    const named = new Set<M>();
    const wide = (mark: M) => Math.min(90, mark.name.length * LETTER_PX + 6);
    for (const isMark of [true, false]) {
        for (const mark of drawn) {
            if ((mark.what === "mark") !== isMark) continue;
            if (!isMark && [...named].some((one) => one.name === mark.name)) continue; // said once
            const end = px(mark) + wide(mark);
            const ends = (one: M) => px(one) + (named.has(one) ? wide(one) : 0);
            const isFree = drawn.every((one) => one === mark || (one.what !== "mark" && !named.has(one)) || px(one) >= end || ends(one) <= px(mark));
            if (isFree && end <= width + 12) named.add(mark);
        }
    }
    return drawn.map((mark) => ({ mark, hasName: named.has(mark) }));
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

/* What a series has in each interval. */
export interface Bar {
    from: number;
    to: number;
    value: number;
}
export function barsOf(timeline: Timeline, name: IntervalSeries): Bar[] {
    const edges = timeline.intervals?.time_ns ?? [];
    return (timeline.intervals?.[name] ?? []).map((value, i) => ({ from: edges[i] ?? 0, to: edges[i + 1] ?? 0, value: value ?? 0 }));
}
/* The bar over this moment: the last one at the end of time. */
export function barAt(bars: readonly Bar[], at: number): Bar | undefined {
    const found = bars.findIndex((bar) => at < bar.to);
    return found < 0 ? bars.at(-1) : at >= (bars[found]?.from ?? 0) ? bars[found] : undefined;
}
