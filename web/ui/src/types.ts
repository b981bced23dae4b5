// SPDX-License-Identifier: MIT
// types.ts: what the server answers: the types that web/openapi.json makes (openapi.ts), by the page's names, and what a
// saved page and answers as bytes add to them.
import type * as api from "./openapi";

export type { Block, Cell, Column, FileText, Finding, Found, Frame, Graphs, Line, Lifetimes, MappingHistory, Path, Sizes, Source, Summary, Table, Timeline } from "./openapi";

export type Kind = api.Column["kind"];
export type Exactness = api.Envelope["exact"];
export type Via = api.Envelope["via"];

/* What stands around the data of each answer about a source. */
export type Answer<T> = Omit<api.Envelope, "data"> & { data: T };

export type Ended = NonNullable<api.Source["end"]>;
export interface Session extends api.Session {
    selected?: string; // of a saved page: the filters that it was saved with
}
/* What boot.ts hands to the page. */
export interface Boot {
    session: Promise<Session | undefined>;
    end(): void; // the place on screen is the page's from now on
}
export type Totals = api.Summary["totals"];

export type IntervalSeries = Exclude<keyof NonNullable<api.Timeline["intervals"]>, "time_ns">;
export type SeriesName = api.Timeline["missing"][number];

export type Metric = "maximum" | "leaked" | "cumulative" | "allocations" | "temporary" | "shutdown" | "short";

/* What each answer of the heap has; the coarse one of a moment has no more. */
export type Heap = api.Heap & Required<Pick<api.Heap, "holes_bytes" | "pages" | "cell_bytes">>;
export type HeapHistory = Required<api.HeapHistory>;

/* A call tree in columns, which are typed arrays where they came as bytes. */
type Columns<T> = { [K in keyof T]: K extends "hash" ? T[K] : Exclude<T[K], undefined> extends number[] ? ArrayLike<number> : T[K] };
export type TreeNodes = Columns<api.Tree["nodes"]>;
export type Callers = Omit<api.Callers, "callers" | "callees"> & Record<"callers" | "callees", Tree>;
export type Tree = Omit<api.Tree, "metric" | "nodes"> & { metric: Metric; nodes: TreeNodes };
