// SPDX-License-Identifier: MIT
// chosen.ts: what the inspector at the right is about: a function, a path, a block, a file, a mapping.
//
//   choose({ kind: "function", id: frame.function, figures: [{ label: "at the maximum", value: 1234, kind: "bytes" }] })
//
// kind and id stand in the address (`chosen=function:parse_line`), so Back and links show the same; the figures are what
// the view knows at once, shown until the server has told more. Put it by "replace" where moving about chooses.
import { computed, signal } from "@preact/signals";
import { cell, frameOf, pathFrames, type Row, textCell } from "./rows";
import type { Frame, Kind } from "./types";
import { go, param } from "./url";

export type ChosenKind = "function" | "path" | "block" | "file" | "mapping";
export interface Figure {
    label: string;
    value: number | string | null; // null: not known
    kind: Kind;
    of?: number; // a share of this is shown beside it
}
export interface Chosen {
    kind: ChosenKind;
    id: string;
    frame?: Frame;
    figures?: readonly Figure[];
}

const known = signal<Chosen | null>(null);

export const chosen = computed<Chosen | null>(() => {
    const text = param("chosen");
    if (text === null) return null;
    const colon = text.indexOf(":");
    const kind = text.slice(0, colon) as ChosenKind;
    const id = text.slice(colon + 1);
    const more = known.value;
    return more !== null && more.kind === kind && more.id === id ? more : { kind, id };
});

export function choose(what: Chosen | null, how: "push" | "replace" = "replace"): void {
    known.value = what;
    go({ set: { chosen: what === null ? null : `${what.kind}:${what.id}` } }, how);
}
export const isChosen = (kind: ChosenKind, id: string): boolean => chosen.value?.kind === kind && chosen.value.id === id;

/* In tables of call paths and of functions: the row that is chosen, and what chooses one. */
export const hashOf = (row: Row): string => textCell(row, "hash");
export const functionOf = (row: Row): Frame | undefined => frameOf(row, cell(row, "function"));
export const choosePath = (row: Row): void => choose({ kind: "path", id: hashOf(row), frame: pathFrames(row, cell(row, "path"))[0] });
export const ofPaths = { selected: (row: Row) => isChosen("path", hashOf(row)), onSelect: choosePath };
export const ofFunctions = {
    selected: (row: Row) => isChosen("function", functionOf(row)?.function ?? ""),
    onSelect: (row: Row) => {
        const frame = functionOf(row);
        if (frame !== undefined) choose({ kind: "function", id: frame.function, frame });
    },
};
