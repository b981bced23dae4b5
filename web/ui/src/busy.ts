// SPDX-License-Identifier: MIT
// busy.ts: says in <html data-busy> how much is on its way: "0" when no answer is waited for and all is drawn. Read by
// programs that drive the page.
//
// A change makes components draw, and what is drawn may ask again in its effects: the page counts as settled only when
// some frames have passed in which nothing began.
import { effect } from "@preact/signals";

const QUIET_FRAMES = 4;

let outstanding = 0;
let left = 0; // frames until it is quiet
let frame = 0;

function tell(count: number): void {
    document.documentElement.dataset["busy"] = String(count);
}

function look(): void {
    frame = 0;
    if (outstanding > 0) return;
    if (--left > 0) frame = requestAnimationFrame(look);
    else tell(0);
}

/* Something changes that will be drawn. */
export function stir(): void {
    if (typeof document === "undefined") return;
    left = QUIET_FRAMES;
    tell(outstanding + 1);
    if (frame === 0) frame = requestAnimationFrame(look);
}

/* Counts until the promise is settled. */
export function busyWith<T>(promise: Promise<T>): Promise<T> {
    outstanding++;
    stir();
    const done = () => {
        outstanding--;
        stir();
    };
    promise.then(done, done);
    return promise;
}

/* Counts for as long as something is so that comes to its end by itself. */
export function busyWhile(isSo: () => boolean): void {
    let end: (() => void) | undefined;
    effect(() => {
        const so = isSo();
        if (so && end === undefined) void busyWith(new Promise<void>((resolve) => (end = resolve)));
        if (so) return;
        end?.();
        end = undefined;
    });
}
