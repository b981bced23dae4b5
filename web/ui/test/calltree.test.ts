// SPDX-License-Identifier: MIT
// calltree.test.ts: order and layout of a tree, its transforms, what a search finds.
import assert from "node:assert/strict";
import { test } from "node:test";
import { buildTree, findFrames, markOf, marksOf, nodeMarked, pathTo, transformTree, type TreeColumns } from "../src/draw/calltree";

/* "main" calls a (50: own 10, b 40) and b (30), each with half as many blocks; the root has 20 of its own. */
const FRAMES = ["main", "a", "b", "c"].map((name) => ({ function: name, module: name === "c" ? "libc" : "prog" }));
const SMALL: TreeColumns = {
    parent: [0, 0, 1, 1, 2],
    frame: [-1, 0, 2, 1, 3],
    main: [100, 80, 30, 50, 30],
    side: [50, 40, 15, 25, 15],
    self: [20, 0, 0, 50, 30],
};

/* A tree of so many nodes, the same each time: parents at random, costs summed up from random selves. */
function randomTree(size: number, kinds: number, seed: number): TreeColumns {
    let state = seed;
    const random = () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32;
    const parent = [0], frame = [-1], self = [0];
    for (let i = 1; i < size; i++) {
        parent.push(Math.floor(random() * Math.min(i, 40 + i / 4)));
        frame.push(Math.floor(random() * kinds));
        self.push(Math.floor(random() * 100));
    }
    const main = self.slice();
    for (let i = size - 1; i > 0; i--) main[parent[i]!]! += main[i]!;
    return { parent, frame, main, side: main.map((value) => 2 * value), self };
}

/* The oracle of transforms: each path with a self cost, as text, transformed by itself. */
function pathsOf(tree: TreeColumns, nameOf: (frame: number) => string, keep: (names: string[]) => string[] | null) {
    const sums = new Map<string, number>();
    for (let i = 0; i < tree.parent.length; i++) {
        const names: string[] = [];
        for (let at = i; at !== 0; at = tree.parent[at]!) names.unshift(nameOf(tree.frame[at]!));
        const kept = keep(names);
        if (kept !== null && tree.self[i] !== 0) {
            sums.set(kept.join(";"), (sums.get(kept.join(";")) ?? 0) + tree.self[i]!);
        }
    }
    return [...sums].sort();
}

test("the widest call comes first, and lies within its caller", () => {
    const tree = buildTree(SMALL);
    assert.deepEqual([...tree.frame], [-1, 0, 1, 2, 3]);
    assert.deepEqual([...tree.left], [0, 0, 0, 50, 50]);
    assert.deepEqual([...tree.level], [0, 1, 2, 4, 5]);
    assert.deepEqual([...tree.origin], [0, 1, 3, 2, 4]);
    assert.deepEqual(pathTo(tree, 4).map((node) => tree.frame[node]), [0, 2, 3]);
});

test("what buildTree promises holds for a random tree", () => {
    const tree = buildTree(randomTree(5000, 60, 7));
    assert.equal(tree.first[tree.size], tree.size);
    for (let i = 1; i < tree.size; i++) {
        const parent = tree.parent[i]!;
        assert.ok(parent < i && i >= tree.first[parent]! && i < tree.first[parent + 1]!);
        assert.equal(tree.depth[i], tree.depth[parent]! + 1);
        assert.ok(tree.left[i]! >= tree.left[parent]!);
        assert.ok(tree.left[i]! + tree.weight[i]! <= tree.left[parent]! + tree.weight[parent]!);
        assert.ok(i === tree.first[parent] || tree.weight[i]! <= tree.weight[i - 1]!);
    }
    for (let d = 0; d + 1 < tree.level.length; d++) {
        for (let i = tree.level[d]! + 1; i < tree.level[d + 1]!; i++) {
            assert.equal(tree.depth[i], d);
            assert.ok(tree.left[i]! >= tree.left[i - 1]!);
        }
    }
});

test("a tree of nothing but its root", () => {
    const tree = buildTree({ parent: [0], frame: [-1], main: [0], side: [0], self: [0] });
    assert.deepEqual([...tree.level], [0, 1]);
    assert.equal(tree.first[1], 1);
});

test("a difference is as wide as both of its sides, or as one", () => {
    const columns = { ...SMALL, base: [10, 10, 10, 0, 10] };
    assert.deepEqual([...buildTree(columns, "both").weight], [110, 90, 50, 40, 40]);
    assert.deepEqual([...buildTree(columns, "base").weight], [10, 10, 10, 0, 10]);
    assert.deepEqual([...buildTree(columns, "main").weight], [100, 80, 50, 30, 30]);
});

for (const [kind, keep] of [
    ["merge", (names: string[]) => names.filter((name) => name !== "f3")],
    ["hide", (names: string[]) => (names.includes("f3") ? null : names)],
    ["collapse", (names: string[]) =>
        names.map((name) => (Number(name.slice(1)) % 3 === 0 ? "lib0" : name))
            .filter((name, i, all) => name !== "lib0" || all[i - 1] !== "lib0")],
] as const) {
    test(`${kind} does to the tree what it does to each of its paths`, () => {
        const frames = Array.from({ length: 12 }, (_, i) => ({ function: `f${i}`, module: i % 3 === 0 ? "lib0" : "prog" }));
        const before = randomTree(800, 12, 3);
        const { columns, extra } = transformTree(before, frames, [{ kind, name: kind === "collapse" ? "lib0" : "f3" }]);
        const nameOf = (frame: number) => frames[frame]?.function ?? extra[frame - frames.length] ?? "?";
        const wanted = pathsOf(before, nameOf, keep);
        assert.deepEqual(pathsOf(columns, nameOf, (names) => names), wanted);
        const total = wanted.reduce((sum, [, self]) => sum + self, 0);
        assert.equal(columns.main[0], total);
        assert.equal(columns.side[0], 2 * total);
        const sums = Array.from(columns.self);
        for (let i = sums.length - 1; i > 0; i--) sums[columns.parent[i]!]! += sums[i]!;
        assert.deepEqual(sums, Array.from(columns.main));
        const calls = new Set<string>();
        for (let i = 1; i < columns.parent.length; i++) calls.add(`${columns.parent[i]} ${columns.frame[i]}`);
        assert.equal(calls.size, columns.parent.length - 1, "no two calls of a caller are alike");
    });
}

test("no transforms give the tree back", () => {
    assert.equal(transformTree(SMALL, FRAMES, []).columns, SMALL);
});

test("hiding takes the cost of the other side of a difference, too", () => {
    const { columns } = transformTree({ ...SMALL, base: [10, 10, 10, 0, 10] }, FRAMES, [{ kind: "hide", name: "b" }]);
    assert.deepEqual(Array.from(columns.main), [70, 50, 50]);
    assert.deepEqual(Array.from(columns.base!), [0, 0, 0]);
});

test("a search counts each byte once, also in recursion", () => {
    const recursion: TreeColumns = {
        parent: [0, 0, 1, 2, 0], frame: [-1, 1, 0, 1, 1],
        main: [100, 70, 60, 50, 10], side: [0, 0, 0, 0, 0], self: [20, 10, 10, 50, 10],
    };
    const tree = buildTree(recursion);
    const found = findFrames(tree, Uint8Array.from([0, 1]));
    assert.equal(found.main, 80);
    assert.equal(found.count, 3);
    const below = tree.origin.indexOf(2);
    assert.equal(findFrames(tree, Uint8Array.from([0, 1]), below).main, 50);
});

test("a call is found again by its mark, also in a tree with other calls", () => {
    const names = Array.from({ length: 400 }, (_, i) => `f${i}`);
    const columns = randomTree(3000, 400, 9);
    const tree = buildTree(columns);
    const marks = marksOf(tree, names);
    const nameOf = (of: number) => pathTo(tree, of).map((at) => tree.frame[at]).join();
    for (const node of [1, 17, 999, 2999]) {
        const mark = markOf(marks, node);
        assert.match(mark, /^[0-9a-f]{16}$/);
        assert.equal(nameOf(nodeMarked(marks, mark)), nameOf(node));
    }
    const frames = names.map((name) => ({ function: name, module: "" }));
    const other = buildTree(transformTree(columns, frames, [{ kind: "merge", name: "f1" }]).columns);
    const node = tree.parent.findIndex((parent, i) => parent === 0 && i > 0 && tree.frame[i] !== 1);
    const again = nodeMarked(marksOf(other, names), markOf(marks, node));
    assert.equal(other.frame[again], tree.frame[node]);
    for (const wrong of ["0123456789abcdef", "", "0", "xyz"]) assert.equal(nodeMarked(marks, wrong), 0);
});
