// SPDX-License-Identifier: MIT
// Cells.tsx: values as they are shown in tables, lists and the inspector.
//
//   {spellKind("bytes", 1258291)}     1.2 MiB
//   <FrameText of={frame} />          name, place, "inlined"; colour says whose code it is
//   <PathText frames={frames} />      f < g < h
//   <CellText row={row} column={column} value={value} />     any cell, by the kind of its column
import * as format from "../format";
import { units } from "../settings";
import { frameOf, isNumeric, pathFrames, type Row } from "../rows";
import type { Cell, Column, Frame, Kind } from "../types";

/* Bytes as the settings want them. */
export function bytesText(value: format.Quantity | format.Unknown): string {
    return units.value === "bytes" ? format.count(value) : format.bytes(value);
}
export function changeText(value: format.Quantity, kind: Kind = "bytes"): string {
    if (kind === "bytes" && units.value === "short") return format.change(value);
    return Number(value) > 0 ? "+" + format.count(value) : format.count(value);
}
/* A number by its kind. */
export function spellKind(kind: Kind, value: format.Quantity | format.Unknown): string {
    if (value == null) return "–";
    switch (kind) {
        case "bytes": return bytesText(value);
        case "signed": return changeText(value);
        case "duration": return format.duration(value);
        case "percent": return format.percent(value, 100);
        case "real": return format.real(value);
        default: return format.count(value);
    }
}
/* "4 MiB" on an axis, without the ".0" that a figure has. */
export const axisText = (kind: Kind, value: number): string => spellKind(kind, value).replace(/\.0 /, " ");

/* "src/index.c:42" with no more folders than tell it. */
export function placeText(frame: Frame): string {
    if (frame.file === undefined) return shortModule(frame.module);
    const name = shortModule(frame.file);
    return frame.line ? `${name}:${frame.line}` : name;
}
export const shortModule = (path: string): string => path.slice(path.lastIndexOf("/") + 1);

export function frameTitle(frame: Frame): string {
    const place = frame.file === undefined ? "" : `\n${frame.file}${frame.line ? ":" + frame.line : ""}`;
    return `${frame.function}${frame.inlined ? " (inlined)" : ""}${place}\n${frame.module}`;
}

export function FrameText({ of, place = true }: { of: Frame; place?: boolean }) {
    return (
        <span class={`frame ${of.kind}`} title={frameTitle(of)}>
            <span class="function">{shortFunction(of.function)}</span>
            {of.inlined && <span class="tag">inlined</span>}
            {place && <span class="place">{placeText(of)}</span>}
        </span>
    );
}

/* Where room is short: what says nothing is left out. Titles have names as they are. */
export const shortFunction = (name: string): string => name.replaceAll("(anonymous namespace)::", "");

/*
 * The allocating function first, callers after it. Frames of libraries and the system before the first own function
 * are how it allocates, not why: they stand behind it, as "in std::vector<>::push_back".
 */
export function PathText({ frames, most = 4 }: { frames: readonly Frame[]; most?: number }) {
    if (frames.length === 0) return <span class="muted">no path</span>;
    const own = frames.findIndex((frame) => frame.kind === "own");
    const inner = own > 0 ? frames.slice(0, own) : [];
    const shown = frames.slice(Math.max(0, own)).filter((frame, index, all) => frame.kind === "own" || index === 0 || all[index - 1]?.kind !== frame.kind);
    return (
        <span class="path" title={frames.map((frame) => frame.function).join("\n")}>
            {shown.slice(0, most).map((frame, index) => (
                <span key={index} class={`frame ${frame.kind}`}>
                    {index > 0 && <span class="from" aria-label="called by">{" ‹ "}</span>}
                    <span class="function">{shortFunction(frame.function)}</span>
                    {index === 0 && inner.length > 0 && <span class="inner"> in {shortFunction(inner.at(-1)?.function ?? "")}</span>}
                </span>
            ))}
            {shown.length > most && <span class="muted"> ‹ {shown.length - most} more</span>}
        </span>
    );
}

/* What a cell says as text: for copying, titles and screen readers. */
export function cellText(row: Row, column: Column, value: Cell): string {
    if (value === null) return "";
    if (isNumeric(column.kind)) return spellKind(column.kind, value as format.Quantity);
    if (column.kind === "frame") return frameOf(row, value)?.function ?? "";
    if (column.kind === "path") return pathFrames(row, value).map((frame) => frame.function).join(" < ");
    return typeof value === "boolean" ? (value ? "yes" : "no") : String(value);
}

function exactTitle(column: Column, value: Cell): string | undefined {
    if (column.kind === "bytes" || column.kind === "signed") return `${format.count(value as format.Quantity)} bytes`;
    if (column.kind === "duration") return `${format.count(value as format.Quantity)} ns`;
    return undefined;
}

export function CellText({ row, column, value }: { row: Row; column: Column; value: Cell }) {
    if (value === null) return <span class="muted" aria-label="none">–</span>;
    if (column.kind === "frame") {
        const frame = frameOf(row, value);
        return frame === undefined ? <span class="muted">–</span> : <FrameText of={frame} />;
    }
    if (column.kind === "path") return <PathText frames={pathFrames(row, value)} />;
    const text = cellText(row, column, value);
    const code = column.kind === "address" || column.kind === "hash";
    return <span class={code ? "code" : undefined} title={exactTitle(column, value) ?? (text.length > 24 ? text : undefined)}>{text}</span>;
}
