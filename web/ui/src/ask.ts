// SPDX-License-Identifier: MIT
// ask.ts: questions to the source, and what has come of them.
//
//   const tree = useAnswer<Tree>("tree", { metric: metric.value, direction: "down" });
//   return <States of={tree}>{(data) => <Flame tree={data} />}</States>;
//
// The filters of the address, the process and the other side of a difference are asked along: see url.ts.
// - While a new answer is on its way the last one stays (`data`, with `stale` true): nothing flickers.
// - A question that nobody waits for is aborted, and the server stops working on it. While the window is dragged the
//   one in flight is let finish and the newest follows it: else no answer would ever come before the next move.
// - While the pointer rests the exact answers are asked ahead (ahead.ts), so that they are there when it is let go.
// - Answers are kept (by what was asked and the source's generation), so going back asks nothing; equal questions of
//   two components are one.
// - What takes long shows progress: see `progress`, and running (all that is on its way, for the header).
import { signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useReducer, useRef } from "preact/hooks";
import { Ahead } from "./ahead";
import { Problem, transport } from "./api";
import { generationOf, isOpening } from "./session";
import { fullNames } from "./settings";
import type { Answer } from "./types";
import { dragging, filterQuery, sourceId, spellQuery, wholeQuery } from "./url";

export type ParamValue = string | number | boolean | readonly string[] | null | undefined;
export interface Progress {
    done: number;
    total: number;
    what?: string;
}
export interface Asked<T> {
    state: "loading" | "ready" | "failed" | "cancelled" | "idle";
    data: T | undefined;
    answer: Answer<T> | undefined;
    error: Problem | undefined;
    progress: Progress | undefined;
    stale: boolean; // data is of an older question
    held?: boolean; // its question waits for the end of a drag: nothing is on its way
    cancel(): void;
    again(): void;
}
export interface AskOptions {
    wire?: (bytes: ArrayBuffer) => unknown; // reads application/vnd.memtrace.columns
    plain?: boolean; // without the filters of the address: of the whole source
    main?: boolean; // what the view is about: its exactness, command and SQL are shown by the frame
    exact?: boolean; // never snapped, also while dragging: not asked until the drag is over
    dragged?: Record<string, ParamValue>; // more parameters, while dragging
}

/* ---- One question ---- */

interface Flight {
    key: string;
    path: string;
    promise: Promise<unknown>;
    abort: AbortController;
    waiting: number;
    progress: Progress | undefined;
    listeners: Set<() => void>;
    since: number;
    ahead: boolean; // nobody waits for it yet
    slow: ReturnType<typeof setTimeout> | undefined;
}
const flights = new Map<string, Flight>();

/* All that is on its way, for the header's progress and its cancel button. */
export const running = signal<readonly Flight[]>([]);
function tellRunning(): void {
    running.value = [...flights.values()].filter((flight) => !flight.ahead);
    ahead.look();
}
export function cancelAll(): void {
    for (const flight of flights.values()) flight.abort.abort();
}

/* The last answers, the newest at the end; together no larger than KEPT_BYTES. */
const kept = new Map<string, { value: unknown; bytes: number }>();
const KEPT = 64;
const KEPT_BYTES = 32 << 20;
let keptBytes = 0;

function keep(key: string, value: unknown, bytes: number): void {
    drop(key);
    if (bytes > KEPT_BYTES / 2) return;
    kept.set(key, { value, bytes });
    keptBytes += bytes;
    for (const [oldest] of kept) {
        if (kept.size <= KEPT && keptBytes <= KEPT_BYTES) break;
        drop(oldest);
    }
}
function drop(key: string): void {
    keptBytes -= kept.get(key)?.bytes ?? 0;
    kept.delete(key);
}
export function forgetAnswers(): void {
    kept.clear();
    keptBytes = 0;
}

let jobs = 0;
const PROGRESS_AFTER_MS = 150;

function fly(key: string, path: string, wire: AskOptions["wire"], isAhead = false): Flight {
    const known = flights.get(key);
    if (known !== undefined) {
        if (known.ahead && !isAhead) {
            known.ahead = false;
            tellRunning();
        }
        return known;
    }
    const abort = new AbortController();
    const flight: Flight = {
        key, path, abort, waiting: 0, progress: undefined, listeners: new Set(), since: performance.now(),
        promise: Promise.resolve(), ahead: isAhead, slow: undefined,
    };
    const job = `${Date.now().toString(36)}-${++jobs}`;
    // Only sources have streams that could tell of progress.
    const isOfSource = path.startsWith("/r/");
    const withJob = isOfSource ? `${path}${path.includes("?") ? "&" : "?"}job=${job}` : path;
    const tell = () => void (flight.ahead ? (flight.slow = setTimeout(tell, PROGRESS_AFTER_MS)) : followProgress(flight, job));
    if (isOfSource) flight.slow = setTimeout(tell, PROGRESS_AFTER_MS);
    flight.promise = fetchAnswer(withJob, wire, abort.signal)
        .then(({ value, bytes }) => {
            // Nobody drags to the same place twice, and what others asked would have to go.
            if (!/[?&]snap=1/.test(path)) keep(key, value, bytes);
            return value;
        })
        .finally(() => {
            clearTimeout(flight.slow);
            land(flight);
            // The stream of its progress has nothing more to say.
            abort.abort();
        });
    flights.set(key, flight);
    tellRunning();
    return flight;
}

/* It is no longer on its way: whoever asks the same asks anew. */
function land(flight: Flight): void {
    if (flights.get(flight.key) === flight) flights.delete(flight.key);
    tellRunning();
}
function giveUp(flight: Flight): void {
    land(flight);
    flight.abort.abort();
}

const ahead = new Ahead({
    isBusy: () => [...flights.values()].some((flight) => !flight.ahead),
    isOn: (key) => flights.has(key),
    has: (key) => kept.has(key) || flights.has(key),
    start({ key, path, wire }) {
        const flight = fly(key, path, wire, true);
        flight.promise.catch(() => undefined); // who waits for it is told
        return () => flight.ahead && giveUp(flight);
    },
});

async function fetchAnswer(path: string, wire: AskOptions["wire"], signal: AbortSignal) {
    if (wire === undefined || transport().isLocal === true) {
        const value = await transport().get(path, signal);
        return { value, bytes: estimate(value) };
    }
    const { type, bytes } = await transport().getBytes(path, "application/vnd.memtrace.columns, application/json", signal);
    const value = type.startsWith("application/json") ? JSON.parse(new TextDecoder().decode(bytes)) : wire(bytes);
    return { value, bytes: bytes.byteLength };
}

/* About what an answer holds in memory, without spelling it: its first rows stand for all. */
function estimate(value: unknown, depth = 0): number {
    if (typeof value === "string") return 16 + value.length;
    if (typeof value !== "object" || value === null) return 8;
    if (Array.isArray(value)) {
        const some = value.slice(0, 8);
        const each = some.reduce<number>((sum, one) => sum + estimate(one, depth + 1), 0) / (some.length || 1);
        return 16 + each * value.length;
    }
    return depth > 8 ? 64 : Object.values(value).reduce<number>((sum, one) => sum + estimate(one, depth + 1), 32);
}

async function followProgress(flight: Flight, job: string): Promise<void> {
    const source = /^\/r\/([^/?]+)/.exec(flight.path)?.[1];
    if (source === undefined) return;
    try {
        await transport().stream(`/r/${source}/events?job=${job}`, "", (event) => {
            if (event.event !== "progress") return;
            flight.progress = event.data as Progress;
            for (const listener of flight.listeners) listener();
            tellRunning();
        }, flight.abort.signal);
    } catch {
        // Progress is a comfort: without it the answer comes as well.
    }
}

/* Asks once, outside components (commands, palette): with the filters of the address, or `plain` without.
 * Of the source: an envelope (Answer<...>). */
export async function ask<T>(endpoint: string, params: Record<string, ParamValue> = {}, plain = false): Promise<T> {
    const path = pathOf(endpoint, params, plain, false);
    const key = `${generationOf(sourceId.peek())} ${path}`;
    const before = kept.get(key);
    if (before !== undefined) return before.value as T;
    return (await fly(key, path, undefined).promise) as T;
}

export function pathOf(
    endpoint: string, params: Record<string, ParamValue>, plain: boolean, snap: boolean,
): string {
    const outside = endpoint.startsWith("/");
    const query = new URLSearchParams(outside ? "" : plain ? wholeQuery.value : filterQuery.value);
    if (!outside && fullNames.value === "yes" && !query.has("full-names")) query.append("full-names", "");
    // A parameter stands for the filter of its name: null leaves that out.
    for (const [name, value] of Object.entries(params)) {
        query.delete(name);
        if (value === null || value === undefined || value === false) continue;
        if (typeof value === "object") for (const one of value) query.append(name, one);
        else query.append(name, value === true ? "1" : String(value));
    }
    if (snap) query.append("snap", "1");
    const text = spellQuery(query);
    const base = outside ? endpoint : `/r/${sourceId.value}/${endpoint}`.replace(/\/$/, "");
    return text === "" ? base : `${base}?${text}`;
}

/* ---- The hook ---- */

/* endpoint: "tree", "" (the summary), or with a leading / outside the source. null: nothing is asked (yet). */
export function useAnswer<T>(
    endpoint: string | null, params: Record<string, ParamValue> = {}, options: AskOptions = {},
): Asked<T> {
    const snap = dragging.value && options.plain !== true && options.exact !== true;
    const held = options.exact === true && dragging.value;
    // A part that still stands while the page goes to a source that is being opened waits with it.
    const waits = endpoint === null || (!endpoint.startsWith("/") && isOpening(sourceId.value));
    const path = waits ? null : pathOf(endpoint, snap ? { ...params, ...options.dragged } : params, options.plain === true, snap);
    const keyOf = (of: string) => `${generationOf(sourceId.value)} ${of}`;
    const key = path === null ? null : keyOf(path);
    const [, redraw] = useReducer((n: number) => n + 1, 0);
    const asker = useRef<Asker<T> | undefined>(undefined);
    asker.current ??= new Asker<T>(() => redraw(undefined));
    const mine = asker.current;
    // Before the change is painted, not after it: the answer comes a frame sooner.
    useLayoutEffect(() => {
        if (!held) mine.want(key, path, options.wire, snap);
    }, [key, held]);
    const asked = held ? { ...mine.asked(key), held } : mine.asked(key);
    // Sums alone: what takes a pass over all events is not asked in case that it is wanted.
    const exactly = snap && !waits && asked.answer?.via === "slices" ? pathOf(endpoint, params, false, false) : null;
    useLayoutEffect(() => ahead.want(mine, exactly === null ? null : { key: keyOf(exactly), path: exactly, wire: options.wire }), [exactly]);
    useEffect(() => () => {
        mine.end();
        ahead.want(mine, null);
    }, []);
    useEffect(() => {
        if (options.main === true) mainAnswer.value = asked.answer;
    }, [asked.answer, options.main]);
    useEffect(() => () => {
        if (options.main === true) mainAnswer.value = undefined;
    }, []);
    return asked;
}

/* What the view that is open has asked with `main`. */
export const mainAnswer = signal<Answer<unknown> | undefined>(undefined);

/* One who asks, and what stands there meanwhile. Exported for tests. */
export class Asker<T> {
    private key: string | null = null;
    private next: { key: string; path: string; wire: AskOptions["wire"] } | undefined;
    private flight: Flight | undefined;
    private shown: { key: string; answer: Answer<T> } | undefined;
    private error: Problem | undefined;
    private state: Asked<T>["state"] = "idle";
    private question: { path: string; wire: AskOptions["wire"] } | undefined;

    constructor(private readonly redraw: () => void) {}

    want(key: string | null, path: string | null, wire: AskOptions["wire"], snap: boolean): void {
        if (key === null || path === null) {
            this.leave();
            this.key = null;
            this.state = "idle";
            return this.redraw();
        }
        if (snap && this.flight !== undefined) {
            this.next = { key, path, wire };
            this.key = key;
            return;
        }
        this.leave();
        this.start(key, path, wire);
    }

    private start(key: string, path: string, wire: AskOptions["wire"]): void {
        this.key = key;
        this.question = { path, wire };
        this.error = undefined;
        const before = kept.get(key);
        if (before !== undefined) {
            kept.delete(key);
            kept.set(key, before);
            this.take(key, before.value as Answer<T>);
            return;
        }
        this.state = "loading";
        const flight = fly(key, path, wire);
        flight.waiting++;
        flight.listeners.add(this.redraw);
        this.flight = flight;
        this.redraw();
        flight.promise.then(
            (value) => this.landed(flight, key, value as Answer<T>),
            (error: unknown) => this.failed(flight, error),
        );
    }

    private landed(flight: Flight, key: string, answer: Answer<T>): void {
        if (this.flight !== flight) return;
        this.flight = undefined;
        this.take(key, answer);
        this.goOn();
    }

    private take(key: string, answer: Answer<T>): void {
        this.shown = { key, answer };
        this.state = "ready";
        this.redraw();
    }

    private failed(flight: Flight, error: unknown): void {
        if (this.flight !== flight) return;
        this.flight = undefined;
        if (error instanceof Problem) {
            this.error = error;
            this.state = "failed";
        } else if (flight.abort.signal.aborted) this.state = "cancelled";
        else {
            this.error = new Problem(0, "Broken", error instanceof Error ? error.message : String(error));
            this.state = "failed";
        }
        this.redraw();
        this.goOn();
    }

    private goOn(): void {
        const next = this.next;
        this.next = undefined;
        if (next !== undefined) this.start(next.key, next.path, next.wire);
    }

    private leave(): void {
        this.next = undefined;
        const flight = this.flight;
        this.flight = undefined;
        if (flight === undefined) return;
        flight.listeners.delete(this.redraw);
        if (--flight.waiting === 0) giveUp(flight);
    }

    end(): void {
        this.leave();
    }

    asked(key: string | null): Asked<T> {
        const answer = this.shown?.answer;
        const waits = key !== null && key !== this.key;
        return {
            state: waits ? "loading" : this.state,
            data: answer?.data,
            answer,
            error: waits ? undefined : this.error,
            progress: this.flight?.progress,
            stale: answer !== undefined && this.shown?.key !== key,
            cancel: () => this.flight?.abort.abort(),
            again: () => {
                if (this.key !== null && this.question !== undefined) this.start(this.key, this.question.path, this.question.wire);
            },
        };
    }
}
