// SPDX-License-Identifier: MIT
// ask.test.ts: events as they come in, whatever the pieces; which way a column is sorted first; tables sorted here.
import assert from "node:assert/strict";
import test from "node:test";
import { EventParser, type StreamEvent } from "../src/api";
import { pathOf } from "../src/ask";
import { splitFilter } from "../src/filters";
import { score } from "../src/frame/score";
import { exactly } from "../src/links";
import { nextSort } from "../src/rows";
import { parsePlace, place } from "../src/url";

test("server-sent events in pieces of any size", () => {
    const text = 'id: 7\nevent: progress\ndata: {"done":1,\ndata: "total":2}\n\n: a comment\n\ndata: plain\r\n\r\nevent: ended\ndata: {}\n\n';
    for (let size = 1; size < text.length; size++) {
        const seen: StreamEvent[] = [];
        const parser = new EventParser((event) => seen.push(event));
        for (let at = 0; at < text.length; at += size) parser.push(text.slice(at, at + size));
        if (size === 1 || size > 20) assert.equal(seen.length, 3, `pieces of ${size}`);
        assert.deepEqual(seen[0], { event: "progress", id: "7", data: { done: 1, total: 2 } });
        assert.deepEqual(seen[1]?.data, "plain");
        assert.equal(seen.at(-1)?.event, "ended");
    }
});

test("questions: a parameter stands for the filter of its name", () => {
    place.value = parsePlace("/flame?r=3&from=1s&to=2s&function=a&metric=leaked");
    assert.equal(pathOf("tree", { metric: "leaked" }, false, false), "/r/3/tree?from=1s&to=2s&function=a&metric=leaked");
    assert.equal(pathOf("timeline", { from: null, to: null, points: 7 }, false, false), "/r/3/timeline?function=a&points=7");
    assert.equal(pathOf("tree", { function: ["a", "b"] }, false, true), "/r/3/tree?from=1s&to=2s&function=a&function=b&snap=1");
    assert.equal(pathOf("", {}, true, false), "/r/3");
    assert.equal(pathOf("/command", { view: "flame?r=1" }, false, false), "/command?view=flame%3Fr%3D1");
});

test("columns are sorted first where one looks first", () => {
    const columns = [{ name: "size", heading: "", kind: "bytes" as const }, { name: "name", heading: "", kind: "text" as const }];
    assert.deepEqual(nextSort("size", undefined, "desc", columns), { sort: "size", order: "desc" });
    assert.deepEqual(nextSort("size", "size", "desc", columns), { sort: "size", order: "asc" });
    assert.deepEqual(nextSort("name", "size", "desc", columns), { sort: "name", order: "asc" });
});

test("filters as they are typed", () => {
    for (const typed of ["size:1K..", "size 1K..", "--size=1K..", " size: 1K.."]) assert.equal(splitFilter(typed)?.value, "1K..", typed);
    assert.equal(splitFilter("leaked")?.filter.name, "leaked");
    assert.equal(splitFilter("function:a:b c")?.value, "a:b c");
    assert.equal(splitFilter("banana"), undefined);
});

test("a name as a regular expression that finds it alone", () => {
    for (const name of ["operator()", "std::vector<int*>", "a.b[0]", "x^y$", "p|q", "c++", "{lambda#1}"]) {
        const regex = new RegExp(exactly(name));
        assert.ok(regex.test(name), name);
        assert.ok(!regex.test(`${name}x`));
    }
});

test("the palette: whole words before scattered letters", () => {
    assert.ok(score("Flame graph", "flame") > score("Callers and callees", "flame"));
    assert.ok(score("Call tree", "tree") > score("What the reader hears", "tree"));
    assert.equal(score("Heap", "xyz"), -1);
});
