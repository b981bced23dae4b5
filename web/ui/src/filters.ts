// SPDX-License-Identifier: MIT
// filters.ts: the filters, as docs/filters.md has them: only what the page needs to offer them. What a value may be
// is the server's to say: it has the commands' own parser.

import type { FilterName } from "./openapi";

export type FilterCost = "view" | "paths" | "blocks"; // blocks: answered by a pass over all events
export interface Filter {
    name: FilterName;
    value: string | null; // null: a flag
    cost: FilterCost;
    about: string;
    many?: boolean;
    complete?: "function" | "file" | "module" | "thread" | "mark" | "scope" | "pool" | "hash" | "mapping" | "permissions";
}

/* Those that need no more than sums by call path: all that a saved page has. */
export const BY_PATH: ReadonlySet<string> = new Set(["function", "file", "module", "not-function", "not-file", "not-module", "path"]);

const ALL = [
    { name: "from", value: "TIME", cost: "view", about: "what happened at this time and later", complete: "mark" },
    { name: "to", value: "TIME", cost: "view", about: "what happened before this time", complete: "mark" },
    { name: "at", value: "TIME", cost: "view", about: "what was held at this moment", complete: "mark" },
    { name: "between", value: "MARK,MARK", cost: "view", about: "from a mark to the next one of another name", complete: "mark" },
    { name: "function", value: "REGEX", cost: "paths", about: "paths through such a function", many: true, complete: "function" },
    { name: "file", value: "REGEX", cost: "paths", about: "paths through such a source file", many: true, complete: "file" },
    { name: "module", value: "REGEX", cost: "paths", about: "paths through such a program file or library", many: true, complete: "module" },
    { name: "not-function", value: "REGEX", cost: "paths", about: "no paths through such a function", many: true, complete: "function" },
    { name: "not-file", value: "REGEX", cost: "paths", about: "no paths through such a source file", many: true, complete: "file" },
    { name: "not-module", value: "REGEX", cost: "paths", about: "no paths through such a library", many: true, complete: "module" },
    { name: "path", value: "HASH", cost: "paths", about: "one call path", complete: "hash" },
    { name: "path-depth", value: "RANGE", cost: "paths", about: "paths with that many frames" },
    { name: "class", value: "CLASS", cost: "paths", about: "heap, mapping or pool", many: true },
    { name: "pool", value: "NAME", cost: "paths", about: "a custom pool", complete: "pool" },
    { name: "group-allocations", value: "RANGE", cost: "paths", about: "paths that allocated that often" },
    { name: "group-bytes", value: "SIZES", cost: "paths", about: "paths that allocated that many bytes" },
    { name: "group-live-blocks", value: "RANGE", cost: "paths", about: "paths that left that many blocks, or that share: 50%.." },
    { name: "group-live-bytes", value: "SIZES", cost: "paths", about: "paths that left that many bytes" },
    { name: "group-interval", value: "DURATIONS", cost: "blocks", about: "paths that allocated for that long, from first to last" },
    { name: "group-maximum-at", value: "TIMES", cost: "blocks", about: "paths that first held their maximum in this time", complete: "mark" },
    { name: "size", value: "SIZES", cost: "blocks", about: "blocks with that many bytes" },
    { name: "lifetime", value: "DURATIONS", cost: "blocks", about: "blocks that lived that long" },
    { name: "allocated", value: "TIMES", cost: "blocks", about: "blocks allocated in this time", complete: "mark" },
    { name: "freed", value: "TIMES", cost: "blocks", about: "blocks freed in this time", complete: "mark" },
    { name: "live-at", value: "TIME", cost: "blocks", about: "blocks that lived at this moment", complete: "mark" },
    { name: "thread", value: "THREAD", cost: "blocks", about: "blocks that this thread allocated", many: true, complete: "thread" },
    { name: "freed-by", value: "THREAD", cost: "blocks", about: "blocks that this thread freed", many: true, complete: "thread" },
    { name: "freed-path", value: "HASH", cost: "blocks", about: "blocks that this call path freed", complete: "hash" },
    { name: "mapped", value: null, cost: "blocks", about: "blocks with a mapping of their own" },
    { name: "arena", value: "ARENA", cost: "blocks", about: "blocks of malloc's main arena, or of another one" },
    { name: "scope", value: "NAME", cost: "blocks", about: "blocks allocated in this scope", complete: "scope" },
    { name: "address", value: "ADDRESSES", cost: "blocks", about: "blocks that lay there" },
    { name: "mapping", value: "NUMBER", cost: "blocks", about: "blocks that lay in this mapping of the process", complete: "mapping" },
    { name: "mapping-permissions", value: "PERMISSIONS", cost: "blocks", about: "mappings that may be read, written or executed, and blocks in them", complete: "permissions" },
    { name: "mapping-peak-rss", value: "SIZES", cost: "blocks", about: "mappings of which so much was resident at most, and blocks in them" },
    { name: "leaked", value: null, cost: "blocks", about: "blocks that were never freed" },
    { name: "temporary", value: null, cost: "blocks", about: "blocks freed before their thread's next allocation" },
    { name: "freed-by-others", value: null, cost: "blocks", about: "blocks freed by another thread" },
    { name: "first-size", value: "SIZES", cost: "blocks", about: "chains that began with this size" },
    { name: "last-size", value: "SIZES", cost: "blocks", about: "chains that ended with this size" },
    { name: "chain-length", value: "RANGE", cost: "blocks", about: "chains with that many blocks" },
    { name: "chain-position", value: "RANGE", cost: "blocks", about: "the blocks in this place of their chains" },
    { name: "chain-leaked", value: null, cost: "blocks", about: "chains whose last block was never freed" },
    { name: "chain-lifetime", value: "DURATIONS", cost: "blocks", about: "chains that lived that long" },
    { name: "where", value: "SQL", cost: "blocks", about: "blocks for which this holds, of the columns of the table allocations" },
] as const satisfies readonly Filter[];
/* None that the server knows is left out. */
const every: readonly Filter[] = ALL satisfies Exclude<FilterName, (typeof ALL)[number]["name"]> extends never ? readonly Filter[] : never;

export const FILTERS: readonly Filter[] = SAVED ? every.filter((filter) => BY_PATH.has(filter.name)) : every;
export const filterNamed = (name: string): Filter | undefined => FILTERS.find((filter) => filter.name === name);

/* As it is typed: "size:1K..", "--size=1K..", "size 1K..", "leaked". */
export function splitFilter(text: string): { filter: Filter; value: string } | undefined {
    const [, name = "", value = ""] = /^-{0,2}([a-z-]+)\s*[:= ]?\s*(.*)$/s.exec(text.trim()) ?? [];
    const filter = filterNamed(name);
    return filter === undefined ? undefined : { filter, value };
}
