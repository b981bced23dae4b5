// SPDX-License-Identifier: MIT
// stack.ts: series that are drawn on top of each other: the largest ones by name, all others together, and their sums.

export interface Layer {
    name: string;
    values: number[]; // of each moment
}
export interface Sample {
    time: number;
    name: string;
    value: number;
}

/** By moment and name; the `most` largest names (by their largest value) have layers, others are in the last. */
export function layersOf(samples: readonly Sample[], most: number, others: string): { times: number[]; layers: Layer[] } {
    const times = [...new Set(samples.map((one) => one.time))].sort((a, b) => a - b);
    const place = new Map(times.map((time, index) => [time, index]));
    const byName = new Map<string, number[]>();
    for (const { time, name, value } of samples) {
        let values = byName.get(name);
        if (values === undefined) byName.set(name, (values = new Array<number>(times.length).fill(0)));
        const at = place.get(time) ?? 0;
        values[at] = (values[at] ?? 0) + value;
    }
    const sorted = [...byName].map(([name, values]) => ({ name, values, peak: Math.max(...values) })).sort((a, b) => b.peak - a.peak || (a.name < b.name ? -1 : 1));
    const layers: Layer[] = sorted.slice(0, most).map(({ name, values }) => ({ name, values }));
    const rest = sorted.slice(most);
    if (rest.length > 0) layers.push({ name: others, values: times.map((_, at) => rest.reduce((sum, one) => sum + (one.values[at] ?? 0), 0)) });
    return { times, layers };
}

/** Each layer with all below it, the first at the bottom. */
export function stacked(layers: readonly Layer[]): number[][] {
    const sums: number[][] = [];
    layers.forEach(({ values }, index) => sums.push(values.map((value, at) => value + (sums[index - 1]?.[at] ?? 0))));
    return sums;
}
