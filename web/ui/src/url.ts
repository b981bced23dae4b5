// SPDX-License-Identifier: MIT
// url.ts: the address is the state. Everything that decides what is on screen stands in it, so that Back undoes and
// a link shows a colleague the same; the names in it are the options of the commands.
//
//   /VIEW?r=1&metric=maximum&from=1.5s&function=%5Eparse_
//
// A page that is a file (export --format html) has the same behind a #, since a file cannot change its path.
//
// Read:   place.value.view, param("metric"), params("function"), useMetric()...    (signals: components follow)
// Write:  go({view: "flame", set: {function: ["^a$"], from: null}})                a new entry in the history
//         go({...}, "replace")                                                     of no interest to Back
//         while dragging is true: the page follows, the address is written when it is over
// Links:  <a href={href({view: "blocks"})}>: plain clicks on them are taken by the page (frame/Shell.tsx).
import { computed, effect, signal } from "@preact/signals";
import { stir } from "./busy";
import { FILTERS } from "./filters";
import type { Metric } from "./types";

export interface Place {
    view: string;
    query: URLSearchParams; // never changed: a new one is made
}
export type Value = string | number | boolean | readonly string[] | null | undefined;
export interface Change {
    view?: string;
    set?: Record<string, Value>; // null, undefined, false, []: taken out; true: a flag
    only?: boolean; // nothing of the old query stays, but the source
}

/* This is a saved page (build.mjs). */
export const isFile = SAVED;
const START = "summary";

export function parsePlace(text: string): Place {
    const [path = "", query = ""] = text.split(/\?(.*)/s);
    const view = decodeURIComponent(path.replace(/^[#/]+/, "").replace(/\/+$/, "")) || START;
    return { view, query: new URLSearchParams(query) };
}

/* Letters that may stand in a query stay readable: times, ranges and hashes are. */
function spell(text: string): string {
    return encodeURIComponent(text).replace(/%(3A|2C|2F|40|24)/g, (_, code) => String.fromCharCode(parseInt(code, 16)));
}

export function spellQuery(query: URLSearchParams): string {
    const parts: string[] = [];
    for (const [name, value] of query) parts.push(value === "" ? spell(name) : `${spell(name)}=${spell(value)}`);
    return parts.join("&");
}

export function spellPlace(where: Place): string {
    const query = spellQuery(where.query);
    return `/${encodeURIComponent(where.view)}${query === "" ? "" : "?" + query}`;
}

function here(): Place {
    if (typeof location === "undefined") return parsePlace("/");
    return parsePlace(isFile ? location.hash : location.pathname + location.search);
}

export const place = signal<Place>(here());
effect(() => {
    void place.value;
    stir();
});

/* Dragging: answers may be snapped to slices until it ends, and the history is left alone: to write there takes
 * longer than all else that a move of the pointer does here, and browsers allow it some times a second only. */
export const dragging = signal(false);

export function putParams(query: URLSearchParams, set: Record<string, Value>, flag: "" | "1"): void {
    for (const [name, value] of Object.entries(set)) {
        query.delete(name);
        if (value === null || value === undefined || value === false) continue;
        if (typeof value === "object") for (const one of value) query.append(name, one);
        else query.append(name, value === true ? flag : String(value));
    }
}

export function changed(from: Place, change: Change): Place {
    const query = new URLSearchParams(change.only ? "" : from.query);
    if (change.only && from.query.has("r")) query.set("r", from.query.get("r") ?? "");
    putParams(query, change.set ?? {}, "");
    return { view: change.view ?? from.view, query };
}

/* An address of the page, as a link, a finding or the server names it: "flame?metric=leaked". */
export function changeTo(address: string): Required<Pick<Change, "view" | "set">> {
    const { view, query } = parsePlace(address);
    return { view, set: Object.fromEntries([...query.keys()].map((name) => [name, query.getAll(name)])) };
}

export function href(change: Change): string {
    const text = spellPlace(changed(place.value, change));
    return isFile ? "#" + text : text;
}

/* What the history's present entry says. */
let written = spellPlace(place.peek());

export function go(change: Change, how: "push" | "replace" = "push"): void {
    const text = spellPlace(changed(place.peek(), change));
    if (text !== written && !dragging.peek()) {
        written = text;
        const address = isFile ? "#" + text : text;
        if (how === "push") history.pushState(null, "", address);
        else history.replaceState(null, "", address);
    }
    place.value = parsePlace(text);
}

if (typeof window !== "undefined") {
    const follow = () => {
        place.value = here();
        written = spellPlace(place.peek());
    };
    window.addEventListener("popstate", follow);
    if (isFile) window.addEventListener("hashchange", follow);
}

export const param = (name: string): string | null => place.value.query.get(name);
export const params = (name: string): string[] => place.value.query.getAll(name);
export const flag = (name: string): boolean => (param(name) ?? "0") !== "0";

/* The source that the page is about. */
export const sourceId = computed(() => place.value.query.get("r") ?? "1");

const METRICS: readonly string[] = ["maximum", "leaked", "cumulative", "allocations", "temporary", "shutdown", "short"];
export const metric = computed<Metric>(() => {
    const given = place.value.query.get("metric") ?? "maximum";
    return (METRICS.includes(given) ? given : "maximum") as Metric;
});

const queryOf = (isWanted: (name: string) => boolean): URLSearchParams =>
    new URLSearchParams([...place.value.query].filter(([name]) => isWanted(name)));
const COMMON = ["process", "all-processes", "full-names", "all-frames", "by", "base"];

/* What each question about the source is asked with: filters, the process, the other side of a difference. */
export const filterQuery = computed(() => queryOf((name) =>
    COMMON.includes(name) || FILTERS.some((filter) => filter.name === name.replace(/^base-/, ""))));

/* The same without any filter: of the whole source. */
export const wholeQuery = computed(() => queryOf((name) => COMMON.includes(name) && name !== "base"));

/* All that says what the other side of a difference is. */
const baseNames = (from: Place): string[] => [...from.query.keys()].filter((name) => name.startsWith("base"));
export const baseGone = (): Record<string, null> => Object.fromEntries(baseNames(place.peek()).map((name) => [name, null]));
/* Is a difference shown? */
export const isDifference = computed(() => baseNames(place.value).length > 0);
