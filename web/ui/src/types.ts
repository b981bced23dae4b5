// SPDX-License-Identifier: MIT
// types.ts: what the server answers (web/openapi.json describes the same).

export type Kind =
    | "text" | "word" | "count" | "bytes" | "signed" | "real" | "percent" | "duration" | "address" | "hash"
    | "frame" | "path" | "any";
export type Exactness = "exact" | "bound" | "estimate" | "snapped";
export type Via = "model" | "slices" | "pass" | "cache";

/* What stands around the data of each answer about a source. */
export interface Answer<T> {
    data: T;
    window: { from_ns: number; to_ns: number | null };
    exact: Exactness;
    error?: number; // standard error, or the bound, of the main number
    via: Via;
    ms: number;
    command: string;
    sql?: string;
    notes?: string[];
}

export interface Frame {
    function: string; // module+0x... where it has no name
    file?: string;
    line?: number;
    module: string;
    kind: "own" | "library" | "system";
    inlined?: boolean;
}

/* frame: an index into frames; path: an index into paths; 64-bit numbers over 2^53 are text. */
export type Cell = number | string | null | boolean;
export interface Column {
    name: string;
    heading: string;
    kind: Kind;
    about?: string;
}
export interface Table {
    columns: Column[];
    rows: Cell[][];
    total: number;
    next?: string;
    frames?: Frame[];
    paths?: number[][]; // frames of each, the allocating function first
}

export interface Source {
    id: number;
    name: string;
    path: string;
    kind: "profile" | "recording" | "run" | "live";
    live: boolean;
    state: "opening" | "open" | "failed";
    done?: number;
    total?: number;
    what?: string;
    error?: string;
    fingerprint: string;
    generation: number;
}
export interface Session {
    version: string;
    capabilities: string[];
    limits: Record<string, number>;
    sources: Source[];
    view?: string;
    selected?: string; // of a saved page: the filters that it was saved with
}
export interface Found {
    name: string;
    path: string;
    kind: string;
    bytes: number;
    modified_ns: number;
    pid?: number;
    running?: boolean;
}

export interface Totals {
    maximum_bytes: number;
    maximum_ns: number;
    maximum_error_bytes: number;
    live_bytes: number;
    live_blocks: number;
    total_bytes: number;
    allocations: number;
    frees: number;
    freed_bytes: number;
    temporary: number;
    context_count: number;
    lost: number;
}
export interface Summary {
    program: string;
    command_line: string;
    pid: number;
    host?: string;
    kind: Source["kind"];
    started_unix_ns: number | string;
    duration_ns: number;
    ended: string;
    live: boolean;
    totals: Totals;
    resident: { peak_bytes: number; at_maximum_bytes: number; end_bytes: number } | null;
    sampled: { sample_bytes?: number; standard_errors?: Record<string, number> } | null;
    warnings: string[];
    lost: { what: string; count: number }[];
    has: Record<string, boolean>;
    processes?: Table;
    slices: number;
}

export type SeriesName = "live" | "resident" | "swap" | "virtual" | "rate" | "frees" | "leaked";
export interface Timeline {
    time_ns: number[];
    series: Partial<Record<SeriesName, (number | null)[]>>;
    maximum: { time_ns: number; bytes: number };
}

export interface Finding {
    kind: string;
    title: string;
    sentence: string;
    bytes?: number;
    count?: number;
    share?: number; // of 1
    view: string; // a relative address of the page
    command: string;
    hash?: string;
}

export type Metric = "maximum" | "leaked" | "cumulative" | "allocations" | "temporary" | "shutdown" | "short";

/* A call tree in columns: node 0 is the root (its frame is -1), parents stand before their children. */
export interface Tree {
    metric: Metric;
    unit: "bytes" | "count";
    total: number;
    side_unit: "bytes" | "count";
    frames: Frame[];
    nodes: TreeNodes;
    cut: number;
}
export interface TreeNodes {
    parent: ArrayLike<number>;
    frame: ArrayLike<number>;
    main: ArrayLike<number>;
    side: ArrayLike<number>;
    self: ArrayLike<number>;
    hash?: (string | null)[];
    base?: ArrayLike<number>;
    folded?: ArrayLike<number>;
}
