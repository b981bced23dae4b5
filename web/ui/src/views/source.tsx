// SPDX-License-Identifier: MIT
// views/source.tsx: source files, and beside the lines of one what they cost. source=PATH and line=N stand in the address;
// without them the file that costs most is shown, at its dearest line. lines=self: what a line allocates itself, without
// what the functions that it calls do.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useActions } from "../actions";
import { useAnswer } from "../ask";
import { choosePath, hashOf } from "../chosen";
import { Choice } from "../components/Choice";
import { changeText, shortModule, spellKind } from "../components/Cells";
import { hasModifier, takeStep } from "../components/hooks";
import { Split } from "../components/Split";
import { States } from "../components/States";
import { DataTable, ScrollBox, useScroll } from "../components/Table";
import type { Piece } from "../draw/highlight";
import * as format from "../format";
import { cell, columnIndex, numberCell, type Row, rowsOf, textCell, useTableRows } from "../rows";
import { exactly, viewChange } from "../links";
import type { FileText, Line, Metric, Table } from "../types";
import { filterQuery, go, isDifference, metric, param } from "../url";

const COSTS = ["maximum", "leaked", "cumulative", "allocations", "temporary"] as const;
type LineCost = (typeof COSTS)[number];
const GUTTER: readonly { name: LineCost; heading: string; about: string; unit: "bytes" | "count" }[] = [
    { name: "maximum", heading: "Maximum", about: "Bytes held when the program held most", unit: "bytes" },
    { name: "leaked", heading: "Leaked", about: "Bytes never freed", unit: "bytes" },
    { name: "temporary", heading: "Temporary", about: "Allocations freed before their thread's next allocation", unit: "count" },
    { name: "allocations", heading: "Allocations", about: "How often memory was allocated", unit: "count" },
];
const costOf = (of: Metric): LineCost =>
    of === "shutdown" ? "leaked" : of === "short" ? "temporary" : of;

const LINE_PX = 19;
const LETTER_PX = 7.25; // of 12 px monospace
const LONGEST = 1000;
const FILES_MOST = 20_000;
const PATHS_MOST = 5_000;

export default function Source() {
    const files = useAnswer<Table>("files", { metric: metric.value, limit: FILES_MOST }, { main: true });
    const wanted = param("source");
    const table = files.data;
    const row = useMemo(() => (table === undefined ? undefined : rowFor(rowsOf(table), wanted)), [table, wanted]);
    return (
        <div class="source-view">
            <States of={files} empty={table?.rows.length === 0 ? "No source file is known: the programs were built without -g." : undefined}>
                {(data) => (
                    <Split name="source" direction="row" size={280} label="Resize the list of files">
                        <Files table={data} file={row === undefined ? null : textCell(row, "file")} />
                        {row === undefined
                            ? <div class="state empty">{wanted} has no line that costs anything here.</div>
                            : <SourceFile key={textCell(row, "number")} number={numberCell(row, "number")} file={textCell(row, "file")} />}
                    </Split>
                )}
            </States>
        </div>
    );
}

const isOwn = (row: Row): boolean => cell(row, "own") === true || cell(row, "own") === "own";
/* The file of the address: by its whole path, or by the end of it, as the compiler spelled it. Else the first of own code. */
function rowFor(rows: readonly Row[], wanted: string | null): Row | undefined {
    if (wanted === null) return rows.find(isOwn) ?? rows[0];
    return rows.find((row) => textCell(row, "file") === wanted) ?? rows.find((row) => textCell(row, "file").endsWith("/" + wanted));
}

function Files({ table, file }: { table: Table; file: string | null }) {
    const cost = columnIndex(table, "delta") < 0 ? costOf(metric.value) : "delta";
    const rows = useTableRows(table, { sort: cost, order: "desc" });
    const knowsOwn = useMemo(() => rowsOf(table).some(isOwn), [table]);
    const open = (row: Row) => go({ set: { source: textCell(row, "file"), line: null } });
    return (
        <div class="panel">
            {!knowsOwn && filterQuery.value.size === 0 && <p class="warning" role="note">No line of the program's own code is known: it was built without -g, or its debug package is not installed. These files are of libraries.</p>}
            <div class="grow">
                <DataTable label="Source files" rows={rows} share={{ column: cost }} class="files"
                    columns={[
                        { name: "file", width: "minmax(9rem, 1fr)", render: (row, value) => <FileName path={String(value)} own={cell(row, "own")} /> },
                        { name: cost, width: "7rem" },
                    ]}
                    selected={(row) => cell(row, "file") === file} onSelect={open} onOpen={open} />
            </div>
        </div>
    );
}

function FileName({ path, own }: { path: string; own: unknown }) {
    const name = shortModule(path);
    const kind = own === true ? "own" : own === false ? "library" : String(own ?? "");
    return (
        <span class={`frame ${kind}`} title={path}>
            <span class="function">{name}</span>
            <span class="place">{path.slice(0, path.length - name.length - 1)}</span>
        </span>
    );
}

/* ---- One file ---- */

/* A line that is shown: of the text, or where there is none only those that cost something. */
interface ShownLine {
    number: number;
    cost: Line | undefined;
    text: string;
}

function SourceFile({ number, file }: { number: number; file: string }) {
    const lines = useAnswer<{ file: string; lines: Line[] }>(`files/${number}`, {});
    const text = useAnswer<FileText>(`files/${number}/text`, {}, { plain: true });
    const alone = param("lines") === "self";
    const costs = useMemo(() => {
        const merged = mergeLines(lines.data?.lines ?? []);
        return alone ? merged.map(withoutCalls).filter((line) => line.allocations > 0 || line.maximum > 0 || line.leaked > 0) : merged;
    }, [lines.data, alone]);
    const given = Number(param("line") ?? 0);
    const chosen = given > 0 ? costs.find((line) => line.line === given) : undefined;
    const ready = lines.data !== undefined && (text.data !== undefined || text.state === "failed");
    return (
        <div class="source-file">
            <SourceHead file={file} text={text.data} costs={costs} />
            <States of={lines} ready={ready}>
                {() => ready && (chosen === undefined
                    ? <SourceText file={file} text={text.data} costs={costs} line={given} />
                    : (
                        <Split name="source-paths" direction="column" size={210} end label="Resize the paths of the line">
                            <SourceText file={file} text={text.data} costs={costs} line={given} />
                            <LinePaths file={file} of={chosen} />
                        </Split>
                    ))}
            </States>
        </div>
    );
}

/* Functions that share a line (templates, copies inlined) are one line of text. */
export function mergeLines(lines: readonly Line[]): Line[] {
    const merged = new Map<number, Line>();
    for (const line of lines) {
        const sum = merged.get(line.line);
        if (sum === undefined) {
            merged.set(line.line, { ...line });
            continue;
        }
        for (const [name, value] of Object.entries(line) as [keyof Line, number | string][]) {
            if (name !== "line" && typeof value === "number") (sum as unknown as Record<string, number>)[name] = Number(sum[name] ?? 0) + value;
        }
        if (line.function !== sum.function && !sum.function.endsWith(", …")) sum.function += ", …";
    }
    return [...merged.values()].sort((a, b) => a.line - b.line);
}

/* Its own costs in place of those with calls; a difference knows the other side's only with calls. */
export function withoutCalls(line: Line): Line {
    return {
        line: line.line, function: line.function, paths: line.paths, maximum: line.self_maximum, leaked: line.self_leaked,
        cumulative: line.self_cumulative, allocations: line.self_allocations, temporary: line.self_temporary,
        self_maximum: line.self_maximum, self_leaked: line.self_leaked, self_cumulative: line.self_cumulative,
        self_allocations: line.self_allocations, self_temporary: line.self_temporary,
    };
}

const STATES: Record<FileText["state"], string> = {
    current: "", newer: "The file is newer than the program: lines may have moved.",
    differs: "The file is not the one that was compiled: lines may have moved.",
    missing: "The file is not on this machine: only the lines that cost something are shown. Is it elsewhere? memtrace serve --source-map OLD=NEW",
    forbidden: "The text of this file is not shown.",
};

function SourceHead({ file, text, costs }: { file: string; text: FileText | undefined; costs: readonly Line[] }) {
    const note = text === undefined ? "" : text.state === "missing" ? STATES.missing : (text.note ?? STATES[text.state]);
    const hot = opening(costs);
    return (
        <div class="source-head">
            <span class="source-name" title={file}>{file}</span>
            {!isDifference.value && (
                <Choice label="Costs" value={param("lines") === "self" ? "self" : "all"} onChange={(to) => go({ set: { lines: to === "self" ? to : null } })}
                    options={[["all", "With calls", "Of a line with all that it calls"], ["self", "Itself", "Of what is allocated at the very line"]]} />
            )}
            {hot !== undefined && <button type="button" onClick={() => showLine(hot.line)}>Costliest line: {hot.line}</button>}
            {note !== "" && <span class="warning" role="note">{note}</span>}
        </div>
    );
}

function hottest(costs: readonly Line[], cost: LineCost): Line | undefined {
    const size = (line: Line) => Math.abs(changeIn(line, cost));
    return costs.reduce<Line | undefined>((best, line) => (best === undefined || size(line) > size(best) ? line : best), undefined);
}
/* Where the file opens: the line that allocates most itself. With calls that is only main's call of all else. */
export function opening(costs: readonly Line[], cost = costOf(metric.value)): Line | undefined {
    const own = hottest(costs.map(withoutCalls), cost);
    return own !== undefined && changeIn(own, cost) !== 0 ? own : hottest(costs, cost);
}
const showLine = (line: number | null, how: "push" | "replace" = "replace") => go({ set: { line } }, how);

function SourceText({ file, text, costs, line }: { file: string; text: FileText | undefined; costs: readonly Line[]; line: number }) {
    const shown = useMemo(() => shownLines(text?.text ?? null, costs), [text, costs]);
    const pieces = usePieces(text);
    const scroll = useScroll(shown.length, LINE_PX);
    const most = useMemo(() => mostOf(costs), [costs]);
    const current = shown.findIndex((one) => one.number === (line > 0 ? line : opening(costs)?.line));
    const moved = useRef("");
    useEffect(() => {
        // Once a file: later the reader decides what is in sight.
        if (scroll.pageRows <= 1 || moved.current === `${file} ${line}`) return;
        const first = moved.current === "";
        moved.current = `${file} ${line}`;
        if (first && current >= 0) scroll.moveTo((current - Math.floor(scroll.pageRows / 3)) * LINE_PX);
        else if (current >= 0) scroll.show(current);
    });
    const step = (by: 1 | -1) => {
        const others = by > 0 ? costs.filter((one) => one.line > line) : costs.filter((one) => one.line < line).reverse();
        if (others[0] !== undefined) showLine(others[0].line);
    };
    const move = (to: number) => {
        const next = shown[Math.max(0, Math.min(to, shown.length - 1))];
        if (next !== undefined) showLine(next.number);
    };
    const group = "Source";
    useActions([
        { group, title: "Next line that costs something", keys: ["n"], run: () => step(1) },
        { group, title: "Previous line that costs something", keys: ["Shift+N"], run: () => step(-1) },
        ...(line > 0 ? [{ group, title: "Leave the line", keys: ["Escape"], run: () => showLine(null) }] : []),
    ]);
    // Rows lie free, so that the widest cannot tell how wide the table is.
    const longest = useMemo(() => 24 + LETTER_PX * shown.reduce((most, one) => Math.max(most, widthOf(one.text)), 30), [shown]);
    const cost = costOf(metric.value);
    const gutter = GUTTER.some((column) => column.name === cost) ? GUTTER : [{ name: cost, heading: "Allocated", about: "Bytes ever allocated", unit: "bytes" as const }, ...GUTTER];
    const head = (
        <>
            {gutter.map((column) => (
                <div key={column.name} role="columnheader" class={`heading numeric${column.name === cost ? " main" : ""}`} title={column.about}>{column.heading}</div>
            ))}
            <div role="columnheader" class="heading numeric">Line</div>
            <div role="columnheader" class="heading">{text?.text == null ? "Function" : "Text"}</div>
        </>
    );
    const lineOf = (at: number, place: { transform: string }) => {
        const one = shown[at]!;
        return (
            <div key={one.number} id={`line-${one.number}`} role="row" aria-rowindex={at + 2} aria-selected={one.number === line} style={place}
                class={`source-line${one.cost === undefined ? "" : " costs"}${one.number === line ? " selected" : ""}`}
                onClick={() => showLine(one.number === line ? null : one.number)}>
                {gutter.map((column) => <Cost key={column.name} line={one.cost} column={column} most={most[column.name] ?? 0} main={column.name === cost} />)}
                <div role="rowheader" class="line-number">{one.number}</div>
                <div role="gridcell" class="line-text">
                    {text?.text == null
                        ? <span class="muted">in <span class="function">{one.cost?.function}</span></span>
                        : (pieces?.[one.number - 1] ?? [{ kind: "", text: one.text } as Piece]).map((piece, index) =>
                            piece.kind === "" ? piece.text : <span key={index} class={`code-${piece.kind}`}>{piece.text}</span>)}
                </div>
            </div>
        );
    };
    return (
        <div class="source-text">
            <ScrollBox scroll={scroll} tracks={`${gutter.map(() => "5.6rem").join(" ")} 3.6rem minmax(${longest}px, 1fr)`} class="code-table" role="grid"
                aria-label={`Lines of ${file}`} aria-rowcount={shown.length + 1} aria-activedescendant={current >= 0 ? `line-${shown[current]?.number}` : undefined}
                onKeyDown={(event) => hasModifier(event) || takeStep(event, scroll.steps(current, move))} head={head}>
                {scroll.rows(lineOf)}
            </ScrollBox>
            <HotMap shown={shown} most={most[cost] ?? 0} cost={cost} onPick={(at) => scroll.moveTo((at - scroll.pageRows / 2) * LINE_PX)} />
        </div>
    );
}

/* In letters; a tab is at most four. */
const widthOf = (text: string): number => Math.min(text.length + 3 * (text.split("\t").length - 1), LONGEST);

function shownLines(text: string | null, costs: readonly Line[]): ShownLine[] {
    const byLine = new Map(costs.map((cost) => [cost.line, cost]));
    if (text === null) return costs.map((cost) => ({ number: cost.line, cost, text: "" }));
    const lines = text.split("\n");
    if (lines[lines.length - 1] === "") lines.pop();
    return lines.map((one, index) => ({ number: index + 1, cost: byLine.get(index + 1), text: one }));
}

/* Colours come when they are ready; until then, and of a language that is not known, the text is plain. */
function usePieces(text: FileText | undefined): Piece[][] | null {
    const [pieces, setPieces] = useState<Piece[][] | null>(null);
    useEffect(() => {
        setPieces(null);
        if (text?.text == null) return;
        let wanted = true;
        const lines = text.text.split("\n");
        void import("../draw/highlight").then(({ highlight }) => {
            if (wanted) setPieces(highlight(lines, text.language));
        });
        return () => void (wanted = false);
    }, [text]);
    return pieces;
}

const baseOf = (line: Line, name: LineCost): number | undefined => line[`base_${name}`];
const changeIn = (line: Line, name: LineCost): number => line[name] - (baseOf(line, name) ?? 0);

function mostOf(costs: readonly Line[]): Partial<Record<LineCost, number>> {
    return Object.fromEntries(COSTS.map((name) => [name, costs.reduce((most, line) => Math.max(most, Math.abs(changeIn(line, name))), 0)]));
}
/* From 0 to 1, of the largest of its column. */
const heatOf = (line: Line | undefined, name: LineCost, most: number): number =>
    line === undefined || most === 0 ? 0 : Math.sqrt(Math.abs(changeIn(line, name)) / most);

interface CostProps {
    line: Line | undefined;
    column: (typeof GUTTER)[number];
    most: number;
    main: boolean;
}

/* The darker the more. Of a difference with its sign. */
function Cost({ line, column, most, main }: CostProps) {
    const before = line === undefined ? undefined : baseOf(line, column.name);
    const differs = before !== undefined;
    const value = line === undefined ? 0 : changeIn(line, column.name);
    const text = value === 0 ? "" : differs ? changeText(value, column.unit) : spellKind(column.unit, value);
    const title = line === undefined || value === 0 ? undefined
        : `${format.count(value)}${column.unit === "bytes" ? " bytes" : ""} in ${line.function}${differs ? `, before ${format.count(before)}` : ""}`;
    return (
        <div role="gridcell" class={`cost numeric${main ? " main" : ""}${differs ? (value < 0 ? " less" : " more") : ""}`}
            style={value === 0 ? undefined : { "--heat": heatOf(line, column.name, most).toFixed(3) }} title={title}>{text}</div>
    );
}

/* The file at a glance: where it costs. A pointer's comfort: n and N are the keyboard's. */
const MAP_MARKS = 400;

function HotMap({ shown, most, cost, onPick }: { shown: readonly ShownLine[]; most: number; cost: LineCost; onPick: (at: number) => void }) {
    const marks = useMemo(() => shown
        .map((one, at) => ({ at, heat: heatOf(one.cost, cost, most) }))
        .filter((one) => one.heat > 0)
        .sort((a, b) => b.heat - a.heat)
        .slice(0, MAP_MARKS), [shown, most, cost]);
    return (
        <div class="hot-map" aria-hidden="true" onClick={(event) => {
            const box = event.currentTarget.getBoundingClientRect();
            onPick(((event.clientY - box.top) / box.height) * shown.length);
        }}>
            {marks.map(({ at, heat }) => <span key={at} style={{ top: `${(100 * at) / shown.length}%`, "--heat": heat.toFixed(3) }} />)}
        </div>
    );
}

/* ---- The paths of a line ---- */

/* The server selects by file and function; which of those paths go through the very line, their frames tell. */
function LinePaths({ file, of }: { file: string; of: Line }) {
    const functions = of.function.endsWith(", …") ? [] : [exactly(of.function)];
    const asked = useAnswer<Table>("paths", { metric: metric.value, file: [exactly(file)], function: functions, limit: PATHS_MOST });
    const table = useMemo(() => (asked.data === undefined ? undefined : throughLine(asked.data, file, of.line)), [asked.data, file, of.line]);
    const rows = useTableRows(table, { sort: "peak_bytes" }, asked);
    return (
        <section class="line-paths" aria-label="Call paths of the line">
            <h3>{format.items(of.paths, "call path")} through line {of.line}<span class="muted"> · {of.function}</span></h3>
            <DataTable label="Call paths" rows={rows} columns={["path", "peak_bytes", "live_bytes", { name: "allocations", width: "7rem" }, "hash"]}
                share={{ column: "peak_bytes" }} onSelect={choosePath} onOpen={(row) => go(viewChange("flame", { path: hashOf(row) }))} />
        </section>
    );
}

export function throughLine(table: Table, file: string, line: number): Table {
    const column = columnIndex(table, "path");
    const isThere = (frame: number) => table.frames?.[frame]?.file === file && table.frames[frame]?.line === line;
    const rows = table.rows.filter((row) => table.paths?.[Number(row[column])]?.some(isThere) === true);
    return { ...table, rows, total: rows.length };
}
