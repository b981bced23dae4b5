// SPDX-License-Identifier: MIT
// bins.ts: numbers counted in equal parts of their range, for histograms and heat maps of answers. Ranges that go over
// three powers of ten and more are parted by the logarithm: sizes and lifetimes are such.

export interface Scale {
    edges: number[]; // one more than there are bins
    isLog: boolean;
}

/** null: there is no number. */
export function scaleOf(values: readonly number[], most: number): Scale | null {
    const known = values.filter(Number.isFinite);
    if (known.length === 0) return null;
    const least = known.reduce((a, b) => Math.min(a, b));
    const top = known.reduce((a, b) => Math.max(a, b));
    if (least === top) return { edges: [least, least + Math.max(1, Math.abs(least) * 1e-9)], isLog: false };
    const positive = known.reduce((a, b) => (b > 0 ? Math.min(a, b) : a), Infinity);
    const isLog = least >= 0 && top / positive >= 1000;
    const whole = known.every(Number.isInteger);
    if (!isLog) {
        const count = whole ? Math.min(most, top - least + 1) : most;
        // Whole numbers: bins of a whole width, or some would hold more numbers than others.
        const width = whole ? Math.ceil((top - least + 1) / count) : (top - least) / count;
        const bins = whole ? Math.ceil((top - least + 1) / width) : count;
        return { edges: Array.from({ length: bins + 1 }, (_, index) => least + index * width), isLog };
    }
    const [low, high] = [Math.log(positive), Math.log(top)];
    const edges = Array.from({ length: most + 1 }, (_, index) => Math.exp(low + ((high - low) * index) / most));
    edges[0] = positive;
    edges[most] = top * (1 + 1e-9);
    return { edges: least === 0 ? [0, ...edges] : edges, isLog };
}

/** The bin of a number; -1: none. The last one has its upper edge, too. */
export function binOf(scale: Scale, value: number): number {
    const { edges } = scale;
    const last = edges.length - 2;
    if (!Number.isFinite(value) || value < (edges[0] ?? 0) || value > (edges[last + 1] ?? 0)) return -1;
    let low = 0;
    let high = last;
    while (low < high) {
        const middle = (low + high + 1) >> 1;
        if ((edges[middle] ?? Infinity) <= value) low = middle;
        else high = middle - 1;
    }
    return low;
}

export function histogram(values: readonly number[], scale: Scale): number[] {
    const counts = new Array<number>(scale.edges.length - 1).fill(0);
    for (const value of values) {
        const bin = binOf(scale, value);
        if (bin >= 0) counts[bin] = (counts[bin] ?? 0) + 1;
    }
    return counts;
}

/** [x][y]: how many pairs, or the sum of their weights. */
export function grid(xs: readonly number[], ys: readonly number[], weights: readonly number[] | null, x: Scale, y: Scale): number[][] {
    const cells = Array.from({ length: x.edges.length - 1 }, () => new Array<number>(y.edges.length - 1).fill(0));
    xs.forEach((value, index) => {
        const column = binOf(x, value);
        const row = binOf(y, ys[index] ?? NaN);
        const one = cells[column];
        if (one !== undefined && row >= 0) one[row] = (one[row] ?? 0) + (weights === null ? 1 : Math.max(0, weights[index] ?? 0));
    });
    return cells;
}

/** At most so many, evenly taken. */
export function thinned<T>(items: readonly T[], most: number): T[] {
    if (items.length <= most) return [...items];
    return Array.from({ length: most }, (_, index) => items[Math.floor((index * items.length) / most)] as T);
}
