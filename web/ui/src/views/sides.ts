// SPDX-License-Identifier: MIT
// sides.ts: the two sides of a difference in an address: `base` and the filters base-...; one side alone, both exchanged.
import type { Mark } from "../summaries";
import type { Value } from "../url";

type Set = Record<string, Value>;

/* What is not a filter of a side: stays where it is. */
const isOther = (name: string): boolean => name.startsWith("base-");
const SIDE_OPTIONS = ["process", "all-processes"];

/* The filters of one side, by their plain names. */
export function sideOf(query: URLSearchParams, other: boolean, filters: readonly string[]): Record<string, string[]> {
    const found: Record<string, string[]> = {};
    for (const name of [...filters, ...SIDE_OPTIONS]) {
        const values = query.getAll(other ? `base-${name}` : name);
        if (values.length > 0) found[name] = values;
    }
    return found;
}

/* Takes all out that says what is compared. */
function cleared(query: URLSearchParams, filters: readonly string[]): Set {
    const set: Set = { base: null };
    for (const name of query.keys()) if (isOther(name) || filters.includes(name) || SIDE_OPTIONS.includes(name)) set[name] = null;
    return set;
}

export function thisAlone(query: URLSearchParams, filters: readonly string[]): Set {
    return { ...cleared(query, filters), ...sideOf(query, false, filters) };
}
export function otherAlone(query: URLSearchParams, filters: readonly string[]): Set {
    return { ...cleared(query, filters), ...sideOf(query, true, filters), r: query.get("base") ?? query.get("r") };
}
export function exchanged(query: URLSearchParams, filters: readonly string[]): Set {
    const set: Set = { ...cleared(query, filters), ...sideOf(query, true, filters), r: query.get("base") ?? query.get("r"), base: query.get("r") ?? "1" };
    for (const [name, values] of Object.entries(sideOf(query, false, filters))) set[`base-${name}`] = values;
    return set;
}

/* "from 1.5 s to 3 s, function ^parse_": what a side is, in words. "" : all of it. */
export function sideText(side: Record<string, string[]>): string {
    const { from, to, at, between, ...others } = side;
    const when = between !== undefined ? `between ${between[0]?.replace(",", " and ")}` :
        at !== undefined ? `at ${at[0]}` :
        from !== undefined && to !== undefined ? `from ${from[0]} to ${to[0]}` :
        from !== undefined ? `from ${from[0]} on` : to !== undefined ? `until ${to[0]}` : "";
    const rest = Object.entries(others).flatMap(([name, values]) => values.map((value) => (value === "" ? name : `${name} ${value}`)));
    return [when, ...rest].filter((text) => text !== "").join(", ");
}

/* Pairs of windows that one often wants. */
export interface WindowPair {
    title: string;
    about: string;
    set: Record<string, string>;
}
export function windowPairs(marks: readonly Pick<Mark, "name" | "time">[]): WindowPair[] {
    const pairs: WindowPair[] = [
        { title: "What is held at the end, and half-way", about: "what grew in the second half", set: { at: "100%", "base-at": "50%" } },
        { title: "The second half, and the first", about: "what was allocated in each", set: { from: "50%", "base-to": "50%" } },
        { title: "The end, and the maximum", about: "what was given back since, and what stayed", set: { at: "100%", "base-at": "peak" } },
    ];
    const names = [...new Set(marks.map((mark) => mark.name).filter((name) => name !== "" && !name.includes("#")))];
    for (const name of names.slice(0, 4)) {
        const same = marks.filter((mark) => mark.name === name);
        if (same.length < 2) continue;
        const last = same.length;
        pairs.push({ title: `Mark ${name}: the last time, and the ${last > 2 ? "second" : "first"}`, about: `what grew from one ${name} to another`, set: { at: `mark:${name}#${last}`, "base-at": last > 2 ? `mark:${name}#2` : `mark:${name}` } });
    }
    const [first, second] = names;
    if (first !== undefined && second !== undefined) pairs.push({ title: `Mark ${second}, and mark ${first}`, about: "what is held at one more than at the other", set: { at: `mark:${second}`, "base-at": `mark:${first}` } });
    return pairs;
}
