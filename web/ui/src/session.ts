// SPDX-License-Identifier: MIT
// session.ts: what the server has opened, and what happens to it: progress of opening, a running program that moves on,
// a recording whose slices have become finer.
//
// A source's generation goes up with each new state of a running program, and once when slices are finer: answers of an
// older one are no answers any more (ask.ts). While `paused` the page stays where it is; the program and its recording go on.
import { computed, effect, signal } from "@preact/signals";
import { Problem, problemOf, transport } from "./api";
import { busyWhile, busyWith } from "./busy";
import type { Boot, Ended, Session, Source } from "./types";
import { sourceId } from "./url";

export const session = signal<Session | null>(null);
export const sessionProblem = signal<Problem | null>(null);
export const sources = computed<readonly Source[]>(() => session.value?.sources ?? []);
export const source = computed<Source | undefined>(() =>
    sources.value.find((one) => String(one.id) === sourceId.value) ?? undefined,
);
export const paused = signal(false);
/* A link named a file that is not open here. */
export const linkedFileMissing = signal(false);

const generations = signal<Readonly<Record<string, number>>>({});
export const generationOf = (id: string): number => generations.value[id] ?? 0;

interface LiveState {
    generation: number;
    live_bytes?: number;
}
/* The newest state of running programs, by source; also while paused. */
export const liveStates = signal<Readonly<Record<string, LiveState>>>({});
effect(() => {
    if (paused.value) return;
    const newest = Object.entries(liveStates.value).map(([id, state]) => [id, state.generation] as const);
    const now = generations.peek();
    if (newest.some(([id, generation]) => now[id] !== generation)) generations.value = { ...now, ...Object.fromEntries(newest) };
});

/* Of recordings whose slices were coarse: the server has finer ones, so that rates and snapped windows are others now. */
let refining: ReadonlySet<number> = new Set();
effect(() => {
    const before = refining;
    refining = new Set(sources.value.filter((one) => one.refines === true).map((one) => one.id));
    const refined = [...before].filter((id) => !refining.has(id));
    const now = generations.peek();
    if (refined.length > 0) generations.value = { ...now, ...Object.fromEntries(refined.map((id) => [id, (now[id] ?? 0) + 1])) };
});

/* What boot.ts has begun; a saved page has none. */
export const takeBoot = (): Boot | undefined => (globalThis as { memtraceBoot?: Boot }).memtraceBoot;

/* The first answer may be here already: boot.ts has asked. */
let booted = takeBoot()?.session;
async function askSession(): Promise<Session> {
    const early = booted;
    booted = undefined;
    return (early && (await busyWith(early))) ?? ((await transport().get("/session", new AbortController().signal)) as Session);
}

export async function loadSession(): Promise<void> {
    try {
        session.value = await askSession();
        sessionProblem.value = null;
    } catch (error) {
        sessionProblem.value = problemOf(error);
    }
}

/* A program that runs, or has run while the server looked at it. */
export const wasLive = (one: Source): boolean => one.live || one.kind === "live" || one.generation > 1 || liveStates.value[String(one.id)] !== undefined;

/* What a program becomes by exec, and the run of all that it started, come by themselves (web/server/hublive.c): looked
 * for as long as the page is of a program. A server that is gone leaves the page as it is. */
const NEWS_MS = 3000;
export function watchNews(): void {
    setInterval(async () => {
        if (document.hidden || sessionProblem.peek() !== null || !sources.peek().some(wasLive)) return;
        try {
            const now = (await transport().get("/session", new AbortController().signal)) as Session;
            if (JSON.stringify(now) !== JSON.stringify(session.peek())) session.value = now;
        } catch {
            // Whoever asks for something is told.
        }
    }, NEWS_MS);
}

/* The one that goes on where this one has ended: what its process became, or else its run. */
export function successorOf(one: Source): Source | undefined {
    const later = sources.value.filter((other) => other.id > one.id && other.state === "open");
    return later.find((other) => one.end === "execed" && other.pid === one.pid) ?? later.find((other) => other.kind === "run");
}

/* "killed by a signal" */
export function endText(ended: Ended | undefined): string {
    return { ended: "ended", detached: "detached from", execed: "became another program", killed: "killed by a signal", copied: "a copy", running: "ended" }[ended ?? "ended"];
}

/* It cannot be asked yet. */
export const isOpening = (id: string): boolean => sources.value.some((one) => String(one.id) === id && one.state === "opening");

export function putSource(changed: Source): void {
    const now = session.peek();
    if (now === null) return;
    const others = now.sources.filter((one) => one.id !== changed.id);
    session.value = { ...now, sources: [...others, changed].sort((a, b) => a.id - b.id) };
}

/* Opens what /sources lists; true: it is there or on its way. */
export async function openSource(what: { path: string } | { pid: number }): Promise<Source> {
    const opened = (await transport().post("/sources", what, new AbortController().signal)) as Source;
    putSource(opened);
    return opened;
}

/* ---- Following ---- */

interface Told extends Partial<LiveState> {
    what?: string;
    done?: number;
    total?: number;
}
const AGAIN_MS = 1000;

/* Something of it is about to change. */
const isMoving = (one: Source): boolean => one.state === "opening" || one.live || one.refines === true;

/* Listens to a source that is being opened, runs or is refined, for as long as the page is looked at: browsers have six connections
 * to a server, and a hidden tab keeps none of them. */
async function follow(id: string, signal: AbortSignal): Promise<void> {
    let last = "";
    while (!signal.aborted) {
        try {
            await transport().stream(`/r/${id}/events`, last, (event) => {
                if (event.id !== "") last = event.id;
                take(id, event.event, event.data as Told);
            }, signal);
        } catch (error) {
            if (error instanceof Problem && error.status >= 400 && error.status < 500) return;
        }
        if (!needsFollowing(id)) return;
        await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    }
}

const sourceById = (id: string): Source | undefined => sources.peek().find((one) => String(one.id) === id);
const needsFollowing = (id: string): boolean => {
    const one = sourceById(id);
    return one !== undefined && isMoving(one);
};

function take(id: string, event: string, told: Told): void {
    const one = sourceById(id);
    if (one === undefined) return;
    if (event === "progress" && one.state === "opening") putSource({ ...one, ...told });
    else if (event === "live") {
        liveStates.value = { ...liveStates.peek(), [id]: { ...told, generation: told.generation ?? one.generation + 1 } };
        if (one.state !== "open") void loadSession();
    } else void loadSession(); // opened, failed, ended, refined: what it is now
    if (event === "ended") {
        const before = liveStates.peek()[id]?.generation ?? one.generation;
        liveStates.value = { ...liveStates.peek(), [id]: { ...liveStates.peek()[id], generation: before + 0.5 } };
    }
}

const followed = new Map<string, AbortController>();
export function followSources(): void {
    const hidden = signal(document.hidden);
    document.addEventListener("visibilitychange", () => (hidden.value = document.hidden));
    busyWhile(() => isOpening(sourceId.value));
    effect(() => {
        const wanted = hidden.value ? [] : sources.value.filter(isMoving).map((one) => String(one.id));
        for (const [id, abort] of followed) {
            if (wanted.includes(id)) continue;
            abort.abort();
            followed.delete(id);
        }
        for (const id of wanted) {
            if (followed.has(id)) continue;
            const abort = new AbortController();
            followed.set(id, abort);
            void follow(id, abort.signal).finally(() => followed.get(id) === abort && followed.delete(id));
        }
    });
}
