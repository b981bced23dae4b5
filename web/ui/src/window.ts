// SPDX-License-Identifier: MIT
// window.ts: the window of time: from the text of the address to nanoseconds and back, and how dragging moves it.
//
// Only to draw: what a window selects is the server's to say.
import { batch } from "@preact/signals";
import { time as spellTime } from "./format";
import { dragging, go, place, type Place } from "./url";

export interface Span {
    from: number;
    to: number;
}
export interface TimeContext {
    duration: number;
    maximum: number | undefined;
    marks: readonly { name: string; time: number }[];
}

const UNITS: Record<string, number> = { ns: 1, us: 1e3, ms: 1e6, s: 1e9, min: 60e9, h: 3600e9, "": 1e9 };

/* undefined: it cannot be told here. */
export function parseTime(text: string, context: TimeContext): number | undefined {
    if (text === "start") return 0;
    if (text === "end") return context.duration;
    if (text === "peak") return context.maximum;
    const mark = /^mark:(.*?)(?:#(\d+))?$/s.exec(text);
    if (mark !== null) return context.marks.filter((one) => one.name === mark[1])[Number(mark[2] ?? 1) - 1]?.time;
    const given = /^(\d*\.?\d+)(%|[a-z]*)$/.exec(text);
    if (given === null) return undefined;
    const number = Number(given[1]);
    if (given[2] === "%") return (number / 100) * context.duration;
    const unit = UNITS[given[2] ?? ""];
    return unit === undefined ? undefined : number * unit;
}

/* The window that the address says, or with prefix "base-" the other one. null: all of the time. */
export function spanOf(query: URLSearchParams, context: TimeContext, prefix = ""): Span | null {
    const named = (name: string): number | undefined => {
        const text = query.get(prefix + name);
        return text === null ? undefined : parseTime(text, context);
    };
    const between = query.get(`${prefix}between`)?.split(",");
    if (between !== undefined) {
        const from = parseTime(`mark:${between[0]}`, context);
        const to = context.marks.find((mark) => from !== undefined && mark.time > from && mark.name === between[1]?.split("#")[0])?.time;
        return from === undefined || to === undefined ? null : { from, to };
    }
    const from = named("from");
    const to = named("to") ?? named("at");
    return from === undefined && to === undefined ? null : { from: from ?? 0, to: to ?? context.duration };
}

/* No finer than what can be pointed at: 1, 2 or 5 times a power of ten nanoseconds. */
export function resolution(duration: number, pixels: number): number {
    const rough = Math.max(1, duration / Math.max(1, pixels) / 2);
    const power = 10 ** Math.floor(Math.log10(rough));
    return [1, 2, 5].map((one) => one * power).findLast((one) => one <= rough) ?? power;
}
export const rounded = (ns: number, step: number): number => Math.round(ns / step) * step;

/* Takes the window out of the address. */
export const NO_WINDOW = { from: null, to: null, at: null, between: null };

/* What the address says of a window; edges at the ends of time are left out. */
export function spanParams(span: Span | null, duration: number, prefix = ""): Record<string, string | null> {
    const gone = { [`${prefix}at`]: null, [`${prefix}between`]: null };
    if (span === null) return { ...gone, [`${prefix}from`]: null, [`${prefix}to`]: null };
    return {
        ...gone,
        [`${prefix}from`]: span.from <= 0 ? null : spellTime(span.from),
        [`${prefix}to`]: span.to >= duration ? null : spellTime(span.to),
    };
}

/* "mark:loaded", "mark:request#3": how the address names the mark at this moment. null: there is none. */
export function markText(marks: readonly { name: string; time: number }[], ns: number): string | null {
    const mark = marks.find((one) => one.time === ns && one.name !== "");
    if (mark === undefined || mark.name.includes("#")) return null;
    const same = marks.filter((one) => one.name === mark.name);
    const number = same.indexOf(mark) + 1;
    return `mark:${mark.name}${number > 1 ? `#${number}` : ""}`;
}

/*
 * A drag: the page follows the pointer, and answers may be snapped. Its end makes one entry in the history: Back
 * undoes the whole drag.
 */
export class Drag {
    private readonly before: Place = place.peek();

    move(set: Record<string, string | null>): void {
        batch(() => {
            dragging.value = true;
            go({ set });
        });
    }

    end(): void {
        batch(() => {
            dragging.value = false;
            go({});
        });
    }

    cancel(): void {
        batch(() => {
            dragging.value = false;
            place.value = this.before;
        });
    }
}

