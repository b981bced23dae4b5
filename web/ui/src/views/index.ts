// SPDX-License-Identifier: MIT
// views/index.ts: the views, in the order of the tabs. A view is a module of this folder whose default is its component; it
// is fetched when it is first opened.
//
// - key: the digit that opens it, and a letter where it has one.
// - needs: what the file must have (Summary.has): without it the tab says why it is empty.
// Styles of views stand in views/graphs.css and views/tables.css (one style sheet for the page: chunks have none).
import type { ComponentType } from "preact";

export interface ViewEntry {
    id: string;
    title: string;
    key?: string;
    letter?: string;
    about: string;
    needs: "model" | "events" | "live" | "processes";
    metric?: boolean; // the metric chooser means something in it
    unsaved?: boolean; // needs single blocks or other files, which a saved page does not have
    load: () => Promise<{ default: ComponentType }>;
}

/* What a saved page has no data for is not in it, either: frame/Shell.tsx says which command shows it. */
const nowhere = (): Promise<never> => Promise.reject(new Error("a saved page does not have this"));

export const VIEWS: readonly ViewEntry[] = [
    { id: "summary", title: "Summary", key: "1", about: "What the program held, and what looks wrong", needs: "model", load: () => import("./summary") },
    { id: "flame", title: "Flame graph", key: "2", about: "Call paths as wide as what they hold", needs: "model", metric: true, load: () => import("./flame") },
    { id: "tree", title: "Call tree", key: "3", about: "Call paths, level by level", needs: "model", metric: true, load: () => import("./tree") },
    { id: "sandwich", title: "Callers, callees", key: "4", letter: "s", about: "Who calls a function, and what it calls", needs: "model", metric: true, load: () => import("./sandwich") },
    { id: "functions", title: "Functions", key: "5", about: "Each function: itself and with all it called", needs: "model", metric: true, load: () => import("./functions") },
    { id: "paths", title: "Call paths", key: "6", about: "Each call path with all its figures", needs: "model", metric: true, load: () => import("./paths") },
    { id: "source", title: "Source", key: "7", letter: "o", about: "Bytes beside the lines", needs: "model", metric: true, load: () => import("./source") },
    { id: "blocks", title: "Blocks", key: "8", about: "Single blocks: address, size, age, path", needs: "model", unsaved: true, load: SAVED ? nowhere : () => import("./blocks") },
    { id: "lifetimes", title: "Lifetimes", key: "9", about: "How long blocks live", needs: "model", unsaved: true, load: SAVED ? nowhere : () => import("./lifetimes") },
    { id: "sizes", title: "Sizes", about: "How large blocks are", needs: "events", unsaved: true, load: SAVED ? nowhere : () => import("./sizes") },
    { id: "heap", title: "Heap", about: "Where blocks lie: pages, holes, and who pins them", needs: "events", unsaved: true, load: SAVED ? nowhere : () => import("./heap") },
    { id: "mappings", title: "Mappings", about: "What the process has mapped", needs: "model", load: () => import("./mappings") },
    { id: "threads", title: "Threads", about: "What each thread allocated, and who freed it", needs: "model", load: () => import("./threads") },
    { id: "compare", title: "Compare", about: "What changed from one file or window to another", needs: "model", metric: true, unsaved: true, load: SAVED ? nowhere : () => import("./compare") },
    { id: "sql", title: "SQL", about: "Questions of your own, with charts", needs: "model", unsaved: true, load: SAVED ? nowhere : () => import("./sql") },
    { id: "processes", title: "Processes", about: "The processes of a run", needs: "processes", unsaved: true, load: SAVED ? nowhere : () => import("./processes") },
    { id: "files", title: "Files", about: "What else can be opened", needs: "model", unsaved: true, load: SAVED ? nowhere : () => import("./files") },
    { id: "live", title: "Live", about: "What grows in a running program", needs: "live", unsaved: true, load: SAVED ? nowhere : () => import("./live") },
];

export const viewNamed = (id: string): ViewEntry | undefined => VIEWS.find((view) => view.id === id);
