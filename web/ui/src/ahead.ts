// SPDX-License-Identifier: MIT
// ahead.ts: the exact answers of a window that is being dragged, asked while the pointer rests, so that they are there
// when it is let go.
//
// - One at a time, and at most MOST for one window: the server has a worker left for what is seen.
// - None while an answer is waited for that is shown.
// - Given up as soon as the window moves on, or something that is shown is asked: the server stops working on it.
// Who waits for an answer that was asked ahead joins it (ask.ts); then it is no longer given up.

import type { Wire } from "./api";

export interface Question {
    key: string; // what is asked, of which generation of the source
    path: string;
    wire: Wire | undefined;
}
/* What is on its way, for ask.ts and for tests. */
interface Flights {
    isBusy(): boolean; // an answer that is shown is waited for
    isOn(key: string): boolean; // it is on its way
    has(key: string): boolean; // it is there, or on its way
    start(question: Question): () => void; // returns what gives it up, unless somebody waits for it by then
}

export const REST_MS = 120;
const MOST = 4;

export class Ahead {
    private wishes = new Map<object, Question>();
    private rests = false; // the window has not moved for REST_MS
    private timer: ReturnType<typeof setTimeout> | undefined;
    private now: { key: string; giveUp: () => void } | undefined;
    private asked = new Set<string>(); // since it rests

    constructor(private readonly flights: Flights) {}

    /* What `who` will ask when the window is let go. null: nothing. */
    want(who: object, wish: Question | null): void {
        if (wish === null) this.wishes.delete(who);
        else this.wishes.set(who, wish);
        clearTimeout(this.timer);
        this.rests = false;
        if (![...this.wishes.values()].some((one) => one.key === this.now?.key)) this.giveUp();
        if (this.wishes.size > 0) this.timer = setTimeout(() => this.rest(), REST_MS);
    }

    /* Something has been asked or answered. */
    look(): void {
        if (this.now !== undefined && !this.flights.isOn(this.now.key)) this.now = undefined;
        if (this.flights.isBusy()) {
            // Who lets go asks for all that is shown, one after another: what was asked ahead may be the next of it.
            setTimeout(() => this.flights.isBusy() && this.giveUp());
            return;
        }
        if (!this.rests || this.now !== undefined || this.asked.size >= MOST) return;
        const next = [...this.wishes.values()].find((one) => !this.flights.has(one.key) && !this.asked.has(one.key));
        if (next === undefined) return;
        this.asked.add(next.key);
        this.now = { key: next.key, giveUp: () => undefined };
        this.now.giveUp = this.flights.start(next);
    }

    private rest(): void {
        this.rests = true;
        this.asked.clear();
        this.look();
    }

    private giveUp(): void {
        const now = this.now;
        this.now = undefined;
        if (now !== undefined) this.asked.delete(now.key);
        now?.giveUp();
    }
}
