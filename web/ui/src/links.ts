// SPDX-License-Identifier: MIT
// links.ts: from one view to another: which parameters of the address are whose, in one place.
//
//   focus=FUNCTION                  sandwich: the function in the middle
//   source=FILE, line=N             source: the file as frames name it (not its number: links go to other machines)
//   zoom, direction, search         flame, tree
//   sql                             sql
// A view's own parameters are left out when another view is opened (frame/Shell.tsx); filters, metric, `chosen` stay.
import { ask } from "./ask";
import type { Answer, Frame } from "./types";
import { go, href, params, type Change } from "./url";

const OWN_PARAMS = ["focus", "source", "line", "zoom", "direction", "search", "sql", "block", "moment", "call", "flip",
    "open", "width", "sort", "order", "callers", "callees", "lines",
    "all", "part", "start", "end", "cell", "brush", "measure", "pid", "cells", "side", "mark"];
const without = Object.fromEntries(OWN_PARAMS.map((name) => [name, null]));

/* Another view with the filters as they are. */
export const viewChange = (view: string, set: Change["set"] = {}): Change => ({ view, set: { ...without, ...set } });

const sandwichChange = (name: string): Change => viewChange("sandwich", { focus: name, chosen: `function:${name}` });
export const sourceChange = (frame: Pick<Frame, "file" | "line">): Change =>
    viewChange("source", { source: frame.file, line: frame.line ? frame.line : null });
export const pathChange = (hash: string): Change => viewChange("paths", { chosen: `path:${hash}` });

export const sandwichHref = (name: string): string => href(sandwichChange(name));
export const sourceHref = (frame: Frame): string => href(sourceChange(frame));
export const openSandwich = (name: string): void => go(sandwichChange(name));
export const openSource = (frame: Frame): void => go(sourceChange(frame));

/* A regular expression that finds this name and no other. POSIX extended: these are its special letters. */
const escapeRegex = (name: string): string => name.replace(/[\\^$.[\]|()*+?{}]/g, "\\$&");
export const exactly = (name: string): string => `^${escapeRegex(name)}$`;
/* The filters that leave only paths through a function (or, with "not-function", without it), beside those that there are. */
export const through = (name: string, filter: "function" | "not-function" = "function"): Record<string, string[]> =>
    ({ [filter]: [...params(filter).filter((one) => one !== exactly(name)), exactly(name)] });
/* Functions of the source that have this in their names. */
export async function functionsNamed(part: string): Promise<string[]> {
    return (await ask<Answer<{ functions: string[] }>>("search", { regex: escapeRegex(part) }, true)).data.functions;
}
