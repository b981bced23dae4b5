// SPDX-License-Identifier: MIT
// openapi.ts: what the server answers, made by types.mjs from web/openapi.json: change that, and run scripts/web.

export interface Problem {
    type?: string;
    title: string;
    status: number;
    detail: string;
}

export interface Envelope {
    window: {
        from_ns: number;
        to_ns: number | null;
    };
    exact: "exact" | "bound" | "estimate" | "snapped";
    error?: number; // Standard error of an estimate, or the bound, of the main number.
    via: "model" | "slices" | "pass" | "cache";
    ms: number;
    command: string;
    sql?: string;
    notes?: string[];
    data: unknown;
}

export interface Source {
    id: number;
    name: string;
    path: string;
    kind: "profile" | "recording" | "run" | "live";
    live: boolean;
    end?: "running" | "ended" | "detached" | "execed" | "killed" | "copied";
    pid?: number; // 0: of several processes.
    state: "opening" | "open" | "failed";
    done?: number;
    total?: number;
    what?: string;
    error?: string;
    fingerprint: string;
    generation: number;
    refines?: boolean; // Finer slices are being made: rates, heat maps and snapped windows will be finer once.
}

export interface Found {
    name: string;
    path: string;
    kind: "profile" | "recording" | "run" | "live";
    bytes: number;
    modified_ns: number;
    pid?: number;
    parent_pid?: number;
    running?: boolean;
    ended?: boolean; // By itself: its profile could not be written to its place. With neither it was killed.
    source?: number; // The one that is open; not there: it is not.
}

export interface Session {
    version: string;
    capabilities: string[];
    limits: Record<string, number>;
    sources: Source[];
    view?: string;
}

/* By its column's kind: frame and path are indices into frames and paths; addresses 0x..., hashes 16 hexadecimal digits; numbers beyond 2^53 as text. */
export type Cell = number | string | null | boolean;

export interface Column {
    name: string;
    heading: string;
    kind: "text" | "word" | "count" | "bytes" | "signed" | "real" | "percent" | "duration" | "address" | "hash" | "frame" | "path" | "any";
    about?: string;
}

export interface Frame {
    function: string;
    file?: string;
    line?: number;
    module: string;
    kind: "own" | "library" | "system";
    inlined?: boolean;
}

export interface Table {
    columns: Column[];
    rows: Cell[][];
    total: number;
    next?: string;
    frames?: Frame[];
    paths?: number[][];
    without_cost?: number; // Of call paths: how many are left out, since they have nothing of the metric.
}

export interface Summary {
    program: string;
    command_line: string;
    pid: number;
    host?: string;
    kind: "profile" | "recording" | "run" | "live";
    start_realtime_ns: number;
    duration_ns: number;
    end: "running" | "ended" | "detached" | "execed" | "killed" | "copied";
    live: boolean;
    totals: {
        peak_bytes: number;
        peak_ns: number;
        peak_error_bytes: number;
        live_bytes: number;
        live_blocks: number;
        before_bytes: number; // of live_bytes: from before the program was attached to
        before_freed_bytes: number; // freed of that since
        before_frees: number;
        total_bytes: number;
        allocations: number;
        frees: number;
        freed_bytes: number;
        temporary: number;
        contexts: number;
        lost: number;
    };
    resident: {
        peak_bytes: number | null;
        at_peak_bytes: number | null;
        end_bytes: number | null;
        own_bytes: number | null; // MemTrace's own part, when looked at last
    } | null;
    sampling: {
        sample_bytes: number;
        standard_errors: Record<string, number>;
    } | null;
    warnings: string[];
    lost: ({
        what: string;
        count: number;
    })[];
    has: Record<string, boolean>;
    processes?: Table;
    slices: number;
}

export interface Timeline {
    time_ns: number[];
    series: {
        live?: (number | null)[];
        resident?: (number | null)[];
        swap?: (number | null)[];
        virtual?: (number | null)[];
    }; // A value at each point.
    intervals?: {
        time_ns: number[]; // The edges: one more than there are intervals.
        rate?: (number | null)[];
        frees?: (number | null)[];
        leaked?: number[];
    }; // A value in each interval, from one edge to the next: allocations and frees per second, counted from the events in it, and the bytes allocated by its end that were never freed.
    missing: ("live" | "resident" | "swap" | "virtual" | "rate" | "frees" | "leaked")[]; // Those that were asked for and that the file does not have: they were not recorded.
    maximum?: {
        time_ns: number;
        bytes: number;
    };
}

export interface Finding {
    kind: "leak" | "growth" | "temporary" | "slack" | "pinned" | "realloc" | "foreign" | "peak" | "fragmentation";
    title: string;
    sentence: string;
    bytes?: number;
    count?: number;
    share?: number;
    view: string;
    command: string;
    hash?: string;
}

export interface Tree {
    metric: string;
    unit: "bytes" | "count";
    total: number;
    side_unit: "bytes" | "count";
    base_total?: number;
    frames: Frame[];
    nodes: {
        parent: number[];
        frame: number[];
        main: number[];
        side: number[];
        self: number[];
        hash?: (string | null)[];
        base?: number[];
        base_self?: number[];
        folded?: number[];
    }; // Columns; node 0 is the root, whose frame is -1; callers come before what they call.
    cut: number;
}

export interface Graphs {
    points: number[];
    series: number[][];
}

export interface Path {
    hash: string;
    frames: Frame[];
    timeline?: {
        time_ns: number[];
        live: number[];
    } | null;
    sizes?: ({
        from: number;
        to: number;
        count: number;
    })[] | null;
    lifetimes?: ({
        from_ns: number;
        to_ns: number | null;
        count: number;
    })[] | null;
}

export interface Callers {
    focus: Frame;
    main: number;
    side: number;
    self: number;
    base_main?: number; // In a difference: of the other side.
    base_self?: number;
    callers: Tree;
    callees: Tree;
}

export interface Line {
    line: number;
    function: string;
    maximum: number;
    leaked: number;
    cumulative: number;
    allocations: number;
    temporary: number;
    self_maximum: number; // Allocated by the line itself, as the next four.
    self_leaked: number;
    self_cumulative: number;
    self_allocations: number;
    self_temporary: number;
    base_maximum?: number; // In a difference: of the same line on the other side, as the next four.
    base_leaked?: number;
    base_cumulative?: number;
    base_allocations?: number;
    base_temporary?: number;
    paths: number;
}

export interface FileText {
    file: string;
    state: "current" | "newer" | "differs" | "missing" | "forbidden";
    text: string | null;
    language: string;
    note?: string;
}

export interface Block {
    block: Record<string, unknown>;
    path: Frame[];
    freed_path?: Frame[] | null;
    chain?: Table;
    neighbours?: Table;
}

export interface Lifetimes {
    buckets: ({
        from_ns: number;
        to_ns: number | null;
    })[];
    time?: ({
        from_ns: number;
        to_ns: number;
    })[];
    counts?: number[][];
    finest_ns?: number; // Of recordings: percentiles below are only known to be below. In a profile each percentile is the upper end of a step.
    all?: Table; // One row: percentiles of all blocks.
    percentiles?: Table;
}

export interface Sizes {
    classes: Record<string, unknown>[];
    time?: ({
        from_ns: number;
        to_ns: number;
    })[];
    counts?: number[][];
    paths?: Table;
}

export interface Heap {
    at_ns: number;
    live_bytes: number;
    slack_bytes?: number;
    live_blocks?: number;
    holes?: number;
    holes_bytes?: number;
    pages?: number; // That some block touches.
    nearly_empty_pages?: number;
    cell_bytes?: number;
    regions: ({
        start: string;
        end: string;
        name?: string;
        live_bytes?: number;
        blocks?: number;
        cells: number[];
    })[];
}

export interface HeapHistory {
    time_ns: number[];
    live: number[];
    resident?: (number | null)[];
    spread?: number[];
    holes?: number[];
    most?: {
        time_ns: number;
        unused_bytes: number;
        live_bytes: number;
    }; // The moment with most unused bytes, when an allocation came next.
}

export interface MappingHistory {
    time_ns: number[];
    rss?: (number | null)[];
    dirty?: (number | null)[];
    swap?: (number | null)[];
}

export type FilterName =
    | "from"
    | "to"
    | "at"
    | "between"
    | "function"
    | "not-function"
    | "file"
    | "not-file"
    | "module"
    | "not-module"
    | "path"
    | "path-depth"
    | "class"
    | "pool"
    | "group-allocations"
    | "group-bytes"
    | "group-live-blocks"
    | "group-live-bytes"
    | "group-interval"
    | "group-maximum-at"
    | "size"
    | "first-size"
    | "last-size"
    | "chain-length"
    | "chain-position"
    | "chain-leaked"
    | "chain-lifetime"
    | "lifetime"
    | "allocated"
    | "freed"
    | "live-at"
    | "address"
    | "mapping"
    | "mapping-permissions"
    | "mapping-peak-rss"
    | "thread"
    | "freed-by"
    | "freed-path"
    | "mapped"
    | "arena"
    | "scope"
    | "leaked"
    | "temporary"
    | "freed-by-others"
    | "where";
