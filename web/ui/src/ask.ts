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
import { Ahead, type Question } from "./ahead";
import { Problem, problemOf, transport, type Wire } from "./api";
import { generationOf, isOpening } from "./session";
import { fullNames } from "./settings";
import type { Answer } from "./types";
import { dragging, filterQuery, putParams, sourceId, spellQuery, type Value, wholeQuery } from "./url";

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
    again(): unknown;
}
export interface AskOptions {
    wire?: Wire;
    plain?: boolean; // without the filters of the address: of the whole source
    main?: boolean; // what the view is about: its exactness, command and SQL are shown by the frame
    exact?: boolean; // never snapped, also while dragging: not asked until the drag is over
    dragged?: Record<string, Value>; // more parameters, while dragging
}

/* ---- One question ---- */

interface Flight {
    key: string;
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

let jobs = 0;
export const newJob = (): string => `${Date.now().toString(36)}-${++jobs}`;
export const PROGRESS_AFTER_MS = 150; // what is answered at once needs no stream beside it

/* Tells how far the work for a question is. Progress is a comfort: without it the answer comes as well. */
export function followJob(source: string, job: string, take: (progress: Progress) => void, signal: AbortSignal): void {
    transport().stream(`/r/${source}/events?job=${job}`, "", (event) => {
        if (event.event === "progress") take(event.data as Progress);
    }, signal).catch(() => undefined);
}

function fly({ key, path, wire }: Question, isAhead = false): Flight {
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
        key, abort, waiting: 0, progress: undefined, listeners: new Set(), since: performance.now(),
        promise: Promise.resolve(), ahead: isAhead, slow: undefined,
    };
    const job = newJob();
    // Only sources have streams that could tell of progress.
    const source = /^\/r\/([^/?]+)/.exec(path)?.[1];
    const withJob = source === undefined ? path : `${path}${path.includes("?") ? "&" : "?"}job=${job}`;
    const wait = () => (flight.slow = setTimeout(tell, PROGRESS_AFTER_MS));
    const tell = () => {
        if (flight.ahead) return wait();
        followJob(source ?? "", job, (progress) => {
            flight.progress = progress;
            for (const listener of flight.listeners) listener();
            tellRunning();
        }, abort.signal);
    };
    if (source !== undefined) wait();
    flight.promise = transport().get(withJob, abort.signal, wire)
        .then((value) => {
            // Nobody drags to the same place twice, and what others asked would have to go.
            if (!/[?&]snap=1/.test(path)) keep(key, value, estimate(value));
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
    start(question) {
        const flight = fly(question, true);
        flight.promise.catch(() => undefined); // who waits for it is told
        return () => flight.ahead && giveUp(flight);
    },
});

/* About what an answer holds in memory, without spelling it: its first rows stand for all. */
function estimate(value: unknown, depth = 0): number {
    if (typeof value === "string") return 16 + value.length;
    if (typeof value !== "object" || value === null) return 8;
    if (ArrayBuffer.isView(value)) return value.byteLength;
    if (Array.isArray(value)) {
        const some = value.slice(0, 8);
        const each = some.reduce<number>((sum, one) => sum + estimate(one, depth + 1), 0) / (some.length || 1);
        return 16 + each * value.length;
    }
    return depth > 8 ? 64 : Object.values(value).reduce<number>((sum, one) => sum + estimate(one, depth + 1), 32);
}

/* Asks once, outside components (commands, palette): with the filters of the address, or `plain` without.
 * Of the source: an envelope (Answer<...>). */
export async function ask<T>(endpoint: string, params: Record<string, Value> = {}, plain = false): Promise<T> {
    const path = pathOf(endpoint, params, plain, false);
    const key = `${generationOf(sourceId.peek())} ${path}`;
    const before = kept.get(key);
    if (before !== undefined) return before.value as T;
    return (await fly({ key, path, wire: undefined }).promise) as T;
}

export function pathOf(endpoint: string, params: Record<string, Value>, plain: boolean, snap: boolean): string {
    const outside = endpoint.startsWith("/");
    const query = new URLSearchParams(outside ? "" : plain ? wholeQuery.value : filterQuery.value);
    if (!outside && fullNames.value === "yes" && !query.has("full-names")) query.append("full-names", "");
    // A parameter stands for the filter of its name: null leaves that out.
    putParams(query, params, "1");
    if (snap) query.append("snap", "1");
    const text = spellQuery(query);
    const base = outside ? endpoint : `/r/${sourceId.value}/${endpoint}`.replace(/\/$/, "");
    return text === "" ? base : `${base}?${text}`;
}

/* ---- The hook ---- */

/* endpoint: "tree", "" (the summary), or with a leading / outside the source. null: nothing is asked (yet). */
export function useAnswer<T>(endpoint: string | null, params: Record<string, Value> = {}, options: AskOptions = {}): Asked<T> {
    const { plain = false, wire } = options;
    const snap = dragging.value && !plain && options.exact !== true;
    const held = options.exact === true && dragging.value;
    // A part that still stands while the page goes to a source that is being opened waits with it.
    const waits = endpoint === null || (!endpoint.startsWith("/") && isOpening(sourceId.value));
    const questionOf = (path: string): Question => ({ key: `${generationOf(sourceId.value)} ${path}`, path, wire });
    const question = waits ? null : questionOf(pathOf(endpoint, snap ? { ...params, ...options.dragged } : params, plain, snap));
    const key = question?.key ?? null;
    const [, redraw] = useReducer((n: number) => n + 1, 0);
    const asker = useRef<Asker<T> | undefined>(undefined);
    asker.current ??= new Asker<T>(() => redraw(undefined));
    const mine = asker.current;
    // Before the change is painted, not after it: the answer comes a frame sooner.
    useLayoutEffect(() => {
        if (!held) mine.want(question, snap);
    }, [key, held]);
    const asked = held ? { ...mine.asked(key), held } : mine.asked(key);
    // Sums alone: what takes a pass over all events is not asked in case that it is wanted.
    const exactly = snap && !waits && asked.answer?.via === "slices" ? questionOf(pathOf(endpoint, params, false, false)) : null;
    useLayoutEffect(() => ahead.want(mine, exactly), [exactly?.path]);
    useEffect(() => () => {
        mine.leave();
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
    private question: Question | null = null; // the newest
    private next: Question | undefined; // it waits for the one on its way
    private flight: Flight | undefined;
    private shown: { key: string; answer: Answer<T> } | undefined;
    private error: Problem | undefined;
    private state: Asked<T>["state"] = "idle";

    constructor(private readonly redraw: () => void) {}

    want(question: Question | null, snap: boolean): void {
        this.question = question;
        if (question !== null && snap && this.flight !== undefined) {
            this.next = question;
            return;
        }
        this.leave();
        if (question !== null) return this.start(question);
        this.state = "idle";
        this.redraw();
    }

    private start(question: Question): void {
        const { key } = question;
        this.error = undefined;
        const before = kept.get(key);
        if (before !== undefined) {
            kept.delete(key);
            kept.set(key, before);
            this.take(key, before.value as Answer<T>);
            return;
        }
        this.state = "loading";
        const flight = fly(question);
        flight.waiting++;
        flight.listeners.add(this.redraw);
        this.flight = flight;
        this.redraw();
        const landed = (then: () => void) => {
            if (this.flight !== flight) return;
            this.flight = undefined;
            then();
            this.goOn();
        };
        flight.promise.then(
            (value) => landed(() => this.take(key, value as Answer<T>)),
            (error: unknown) => landed(() => this.fail(error, flight.abort.signal.aborted)),
        );
    }

    private take(key: string, answer: Answer<T>): void {
        this.shown = { key, answer };
        this.state = "ready";
        this.redraw();
    }

    private fail(error: unknown, isAborted: boolean): void {
        const isCancelled = isAborted && !(error instanceof Problem);
        this.state = isCancelled ? "cancelled" : "failed";
        if (!isCancelled) this.error = problemOf(error);
        this.redraw();
    }

    private goOn(): void {
        const next = this.next;
        this.next = undefined;
        if (next !== undefined) this.start(next);
    }

    /* Nothing is waited for any more. */
    leave(): void {
        this.next = undefined;
        const flight = this.flight;
        this.flight = undefined;
        if (flight === undefined) return;
        flight.listeners.delete(this.redraw);
        if (--flight.waiting === 0) giveUp(flight);
    }

    asked(key: string | null): Asked<T> {
        const answer = this.shown?.answer;
        const waits = key !== null && key !== this.question?.key;
        return {
            state: waits ? "loading" : this.state,
            data: answer?.data,
            answer,
            error: waits ? undefined : this.error,
            progress: this.flight?.progress,
            stale: answer !== undefined && this.shown?.key !== key,
            cancel: () => this.flight?.abort.abort(),
            again: () => this.question !== null && this.start(this.question),
        };
    }
}
