// SPDX-License-Identifier: MIT
// session.ts: what the server has opened. A source's generation goes up with each new state of a running program:
// answers of an older one are no answers any more (ask.ts), unless the page is paused.
import { computed, signal } from "@preact/signals";
import type { Session, Source } from "./types";
import { sourceId } from "./url";

export const session = signal<Session | null>(null);
export const sources = computed<readonly Source[]>(() => session.value?.sources ?? []);
export const source = computed<Source | undefined>(() =>
    sources.value.find((one) => String(one.id) === sourceId.value) ?? undefined,
);
export const generations = signal<Readonly<Record<string, number>>>({});

export function generationOf(id: string): number {
    return generations.value[id] ?? 0;
}

export function putSource(changed: Source): void {
    const now = session.peek();
    if (now === null) return;
    const others = now.sources.filter((one) => one.id !== changed.id);
    session.value = { ...now, sources: [...others, changed].sort((a, b) => a.id - b.id) };
}
