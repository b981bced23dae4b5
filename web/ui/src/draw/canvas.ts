// SPDX-License-Identifier: MIT
// canvas.ts: what all that is drawn needs: the pixels of the screen, colours between two others, a place in what is sorted.

export type Colour = [number, number, number];

/** "#rrggbb" */
export function parseColour(text: string): Colour {
    const digits = /^#([0-9a-f]{6})$/i.exec(text.trim())?.[1] ?? "888888";
    return [0, 2, 4].map((at) => parseInt(digits.slice(at, at + 2), 16)) as Colour;
}

/** From a at share 0 to b at 1. */
export function mix(a: string, b: string, share: number): string {
    const to = parseColour(b);
    const parts = parseColour(a).map((part, i) => Math.round(part + (to[i]! - part) * share));
    return "#" + parts.map((part) => Math.min(Math.max(part, 0), 255).toString(16).padStart(2, "0")).join("");
}

/** So many colours from the first stop to the last, the ends included. */
export function ramp(stops: readonly string[], count: number): string[] {
    return Array.from({ length: count }, (_, index) => {
        const at = count === 1 ? stops.length - 1 : (index / (count - 1)) * (stops.length - 1);
        const low = Math.min(stops.length - 2, Math.floor(at));
        return mix(stops[low]!, stops[low + 1]!, at - low);
    });
}

/** The canvas as large as that in CSS pixels, and empty; null: it cannot be drawn on. */
export function fitCanvas(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D | null {
    canvas.width = Math.round(width * devicePixelRatio);
    canvas.height = Math.round(height * devicePixelRatio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    const context = canvas.getContext("2d");
    context?.scale(devicePixelRatio, devicePixelRatio);
    return context;
}

/** The first of from .. to - 1 for which it holds, as it does for all behind it; to: it holds for none. */
export function firstWhere(from: number, to: number, holds: (index: number) => boolean): number {
    let low = from, high = to;
    while (low < high) {
        const middle = (low + high) >> 1;
        if (holds(middle)) high = middle;
        else low = middle + 1;
    }
    return low;
}
