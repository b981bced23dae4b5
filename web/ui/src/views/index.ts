// SPDX-License-Identifier: MIT
// views/index.ts: the views, in the order of the tabs. A view is a module of this folder that exports
// `view: View = { Component }`; it is fetched when it is first opened.
//
// - key: the digit that opens it, and a letter where it has one.
// - needs: what the file must have (Summary.has): without it the tab says why it is empty.
// - primary: stands in the row of tabs; the others under "More".
// Styles of views stand in views/graphs.css and views/tables.css (one style sheet for the page: chunks have none).
import type { ComponentType } from "preact";

export interface View {
    Component: ComponentType;
}
export interface ViewEntry {
    id: string;
    title: string;
    key?: string;
    letter?: string;
    about: string;
    needs: "model" | "events" | "live" | "processes";
    metric?: boolean; // the metric chooser means something in it
    load: () => Promise<{ view: View }>;
}

/* What a saved page has, too: it knows sums by call path. */
const OF_SUMS: readonly ViewEntry[] = [
    { id: "summary", title: "Summary", key: "1", about: "What the program held, and what looks wrong", needs: "model", load: () => import("./summary") },
    { id: "flame", title: "Flame graph", key: "2", about: "Call paths as wide as what they hold", needs: "model", metric: true, load: () => import("./flame") },
    { id: "tree", title: "Call tree", key: "3", about: "Call paths, level by level", needs: "model", metric: true, load: () => import("./tree") },
    { id: "sandwich", title: "Callers, callees", key: "4", letter: "s", about: "Who calls a function, and what it calls", needs: "model", metric: true, load: () => import("./sandwich") },
    { id: "functions", title: "Functions", key: "5", about: "Each function: itself and with all it called", needs: "model", metric: true, load: () => import("./functions") },
    { id: "paths", title: "Call paths", key: "6", about: "Each call path with all its figures", needs: "model", metric: true, load: () => import("./paths") },
    { id: "threads", title: "Threads", about: "What each thread allocated, and who freed it", needs: "model", load: () => import("./threads") },
];
const OF_SERVER: readonly ViewEntry[] = SAVED ? [] : [
    { id: "source", title: "Source", key: "7", letter: "o", about: "Bytes beside the lines", needs: "model", metric: true, load: () => import("./source") },
    { id: "blocks", title: "Blocks", key: "8", about: "Single blocks: address, size, age, path", needs: "model", load: () => import("./blocks") },
    { id: "lifetimes", title: "Lifetimes", key: "9", about: "How long blocks live", needs: "model", load: () => import("./lifetimes") },
    { id: "sizes", title: "Sizes", about: "How large blocks are", needs: "events", load: () => import("./sizes") },
    { id: "heap", title: "Heap", about: "Where blocks lie: pages, holes, and who pins them", needs: "events", load: () => import("./heap") },
    { id: "mappings", title: "Mappings", about: "What the process has mapped", needs: "model", load: () => import("./mappings") },
    { id: "compare", title: "Compare", about: "What changed from one file or window to another", needs: "model", metric: true, load: () => import("./compare") },
    { id: "sql", title: "SQL", about: "Questions of your own, with charts", needs: "model", load: () => import("./sql") },
    { id: "processes", title: "Processes", about: "The processes of a run", needs: "processes", load: () => import("./processes") },
    { id: "files", title: "Files", about: "What else can be opened", needs: "model", load: () => import("./files") },
    { id: "live", title: "Live", about: "What grows in a running program", needs: "live", load: () => import("./live") },
];
const ORDER = ["summary", "flame", "tree", "sandwich", "functions", "paths", "source", "blocks", "lifetimes", "sizes", "heap", "mappings", "threads"];
const place = (view: ViewEntry): number => (ORDER.includes(view.id) ? ORDER.indexOf(view.id) : ORDER.length);
export const VIEWS: readonly ViewEntry[] = [...OF_SUMS, ...OF_SERVER].sort((a, b) => place(a) - place(b));

export const viewNamed = (id: string): ViewEntry | undefined => VIEWS.find((view) => view.id === id);
