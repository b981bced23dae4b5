// SPDX-License-Identifier: MIT
// views/sql.tsx: a notebook of questions in SQL: cells of text and of SQL with their answers as tables or charts; tables and
// columns at the side.
//
// The cells are kept in this browser, and saved by download. `sql` in the address is the question that was run last, so that
// a link asks the same: where it is in no cell, a cell is made of it. Other views hand their questions over by that, too.
import { useEffect, useMemo, useReducer, useRef, useState } from "preact/hooks";
import { useActions } from "../actions";
import { saveBlob } from "../api";
import { mainAnswer, type Progress, useAnswer } from "../ask";
import { Choice } from "../components/Choice";
import { IconButton } from "../components/Icon";
import { SqlEditor, type SqlNames } from "../components/SqlEditor";
import { ProgressBar } from "../components/States";
import { DataTable } from "../components/Table";
import { useDelayed } from "../components/hooks";
import * as format from "../format";
import { type QueryAnswer, runQuery } from "../query";
import { useTableRows } from "../rows";
import { source } from "../session";
import { useWhole } from "../summaries";
import type { Column, Table } from "../types";
import { go, isFile, param } from "../url";
import { type ChartType, firstCells, fromMarkdown, keepCells, loadCells, type NoteCell, readText, sqlCell, STARTERS, textCell, toCsv, toMarkdown, typed } from "./notebook";
import { CHARTS, ChartColumns, SqlChart } from "./SqlChart";

interface Schema {
    tables: { name: string; about: string | null; columns: { name: string; type: string; about: string | null }[] }[];
}
function namesOf({ tables }: Schema): SqlNames {
    return { tables: new Set(tables.map((one) => one.name)), columns: new Set(tables.flatMap((one) => one.columns.map((column) => column.name))) };
}

/* ---- Answers: they live as long as the page, by cell ---- */

interface Run {
    sql: string;
    state: "running" | "ready" | "failed" | "cancelled";
    answer?: QueryAnswer;
    table?: Table;
    plan?: string;
    error?: string;
    progress?: Progress;
    abort?: AbortController;
}
const runs = new Map<string, Run>();
function abortAll(): void {
    for (const one of runs.values()) one.abort?.abort();
}

export default function Sql() {
    const whole = useWhole();
    if (isFile) return <p class="state empty">This page is a file: it has no database. Open the recording itself: memtrace serve FILE</p>;
    if (whole.data === undefined) return null;
    return <Notebook hasEvents={whole.data.has["events"] !== false} />;
}

function Notebook({ hasEvents }: { hasEvents: boolean }) {
    const wanted = param("sql");
    const [cells, setCells] = useState<NoteCell[]>(() => withCell(loadCells() ?? firstCells(hasEvents), wanted));
    const [, redraw] = useReducer((n: number) => n + 1, 0);
    const schema = useAnswer<Schema>("schema", {}, { plain: true });
    const names = useMemo(() => namesOf(schema.data ?? { tables: [] }), [schema.data]);
    const insert = useRef<((text: string) => void) | null>(null);
    const [active, setActive] = useState<string | null>(null);
    const [asked, setAsked] = useState<string | null>(null); // the cell that was run last

    const change = (next: NoteCell[]) => {
        setCells(next);
        keepCells(next);
    };
    const edit = (id: string, part: Partial<NoteCell>) => change(cells.map((cell) => (cell.id === id ? { ...cell, ...part } : cell)));
    const run = (cell: NoteCell, plan = false) => {
        setAsked(cell.id);
        void start(cell, plan, () => redraw(undefined));
    };
    const runNow = (cell: NoteCell) => {
        go({ set: { sql: cell.text } }, param("sql") === null ? "replace" : "push");
        run(cell);
    };
    const add = (cell: NoteCell, runs = false) => {
        change([...cells, cell]);
        setActive(cell.id);
        if (runs) runNow(cell);
    };
    const remove = (id: string) => {
        runs.get(id)?.abort?.abort();
        runs.delete(id);
        change(cells.filter((cell) => cell.id !== id));
    };
    const move = (id: string, by: number) => {
        const at = cells.findIndex((cell) => cell.id === id);
        const next = cells.filter((cell) => cell.id !== id);
        if (at + by >= 0 && at + by < cells.length) change([...next.slice(0, at + by), cells[at]!, ...next.slice(at + by)]);
    };
    // The question of the address; in a new notebook the first one, so that there is something to see.
    const isOpening = useRef(true);
    useEffect(() => {
        // What was left while it ran was cancelled: it is asked again.
        const isCancelled = (cell: NoteCell) => isOpening.current && runs.get(cell.id)?.state === "cancelled";
        const isUnanswered = cells.every((one) => runs.get(one.id)?.state === undefined || isCancelled(one));
        const cell = wanted === null ? (isUnanswered ? cells.find((one) => one.kind === "sql") : undefined) : cells.find((one) => one.kind === "sql" && one.text === wanted);
        if (cell === undefined && wanted !== null) return change(withCell(cells, wanted));
        if (cell !== undefined && (runs.get(cell.id)?.sql !== cell.text || isCancelled(cell))) run(cell);
        isOpening.current = false;
    }, [wanted, cells.length]);
    // What was asked is answered anew where the file changes.
    const file = source.value?.id;
    const before = useRef(file);
    useEffect(() => {
        if (before.current === file) return;
        before.current = file;
        abortAll();
        runs.clear();
        redraw(undefined);
    }, [file]);
    useEffect(() => abortAll, []);
    // The frame shows the command of the cell that was answered last.
    const answered = [asked, cells.find((cell) => cell.text === wanted)?.id, ...cells.map((cell) => cell.id)].find((id) => id != null && runs.get(id)?.answer !== undefined);
    useMain(answered == null ? undefined : runs.get(answered)?.answer);

    const save = () => saveBlob(new Blob([toMarkdown(cells)], { type: "text/markdown" }), `memtrace-${(source.peek()?.name ?? "notebook").replace(/[^\w.-]+/g, "-")}.md`);
    const load = async (file: File | undefined) => {
        if (file === undefined || file.size > 1 << 20) return;
        const given = fromMarkdown(await file.text());
        if (given.length > 0) change(given);
    };
    const runAll = () => cells.filter((cell) => cell.kind === "sql").forEach((cell) => run(cell));
    useActions([
        { group: "SQL", title: "Run all cells", keys: ["Shift+Enter"], run: runAll },
        { group: "SQL", title: "New SQL cell", keys: ["n"], run: () => add(sqlCell("SELECT ")) },
        { group: "SQL", title: "New text cell", run: () => add(textCell("")) },
        { group: "SQL", title: "Save the notebook", run: save },
        { group: "SQL", title: "Cancel all questions", keys: ["Escape"], hidden: true, run: abortAll },
    ]);
    return (
        <div class="notebook">
            <div class="cells">
                <div class="toolbar">
                    <button type="button" class="small" onClick={runAll}>Run all</button>
                    <button type="button" class="small" onClick={() => add(sqlCell("SELECT "))}>New SQL<kbd>n</kbd></button>
                    <button type="button" class="small" onClick={() => add(textCell(""))}>New text</button>
                    <Starters hasEvents={hasEvents} onTake={(cell) => add(cell, true)} />
                    <span class="space" />
                    <label class="button small file-input">Open …<input type="file" class="hidden" accept=".md,text/markdown" aria-label="Open a notebook" onChange={(event) => void load(event.currentTarget.files?.[0])} /></label>
                    <button type="button" class="small" onClick={save}>Save</button>
                    <button type="button" class="small plain" title="Begin with the first questions again" onClick={() => change(firstCells(hasEvents))}>Reset</button>
                </div>
                {cells.map((cell, index) => cell.kind === "text" ? (
                    <TextCell key={cell.id} cell={cell} isNew={cell.id === active} onChange={(text) => edit(cell.id, { text })} onRemove={() => remove(cell.id)} onMove={(by) => move(cell.id, by)} />
                ) : (
                    <SqlCellBox key={cell.id} cell={cell} number={index + 1} run={runs.get(cell.id)} names={names} isNew={cell.id === active}
                        onChange={(part) => edit(cell.id, part)} onRun={() => runNow(cell)} onPlan={() => run(cell, true)} onRemove={() => remove(cell.id)} onMove={(by) => move(cell.id, by)}
                        onFocus={(put) => (insert.current = put)} />
                ))}
                {cells.length === 0 && <p class="state empty">The notebook is empty: <button type="button" onClick={() => change(firstCells(hasEvents))}>begin with some questions</button></p>}
            </div>
            <SchemaBox schema={schema.data} onInsert={(text) => insert.current?.(text)} onAsk={(sql) => add(sqlCell(sql), true)} />
        </div>
    );
}

function withCell(cells: NoteCell[], sql: string | null): NoteCell[] {
    return sql === null || sql.trim() === "" || cells.some((cell) => cell.text === sql) ? cells : [sqlCell(sql), ...cells];
}

/* What the frame shows of the view's answer: command, SQL, exactness. */
function useMain(answer: QueryAnswer | undefined): void {
    useEffect(() => {
        mainAnswer.value = answer;
        return () => {
            if (mainAnswer.peek() === answer) mainAnswer.value = undefined;
        };
    }, [answer]);
}

/* A run is never changed, but replaced: components see by that that there is something new. */
async function start(cell: NoteCell, plan: boolean, redraw: () => void): Promise<void> {
    runs.get(cell.id)?.abort?.abort();
    const abort = new AbortController();
    const table = plan ? undefined : runs.get(cell.id)?.table;
    const put = (run: Run) => {
        runs.set(cell.id, run);
        redraw();
    };
    const isMine = () => runs.get(cell.id)?.abort === abort;
    put({ sql: cell.text, state: "running", abort, ...(table === undefined ? {} : { table }) });
    try {
        const answer = await runQuery({ sql: cell.text, ...(plan ? { plan: true } : {}) }, abort.signal, (progress) => {
            const now = runs.get(cell.id);
            if (now !== undefined && isMine()) put({ ...now, progress });
        });
        if (isMine()) put({ sql: cell.text, state: "ready", answer, ...(plan ? { plan: answer.data.plan ?? "" } : { table: typed(answer.data) }) });
    } catch (error) {
        if (isMine()) put({ sql: cell.text, state: abort.signal.aborted ? "cancelled" : "failed", error: (error as Error).message });
    }
}

/* ---- Cells ---- */

function SqlCellBox({ cell, number, run, names, isNew, onChange, onRun, onPlan, onRemove, onMove, onFocus }: {
    cell: NoteCell; number: number; run: Run | undefined; names: SqlNames; isNew: boolean; onChange: (part: Partial<NoteCell>) => void; onRun: () => void; onPlan: () => void;
    onRemove: () => void; onMove: (by: number) => void; onFocus: (insert: (text: string) => void) => void;
}) {
    const box = useRef<HTMLElement>(null);
    useEffect(() => {
        if (isNew) {
            box.current?.scrollIntoView({ block: "nearest" });
            box.current?.querySelector("textarea")?.focus();
        }
    }, [isNew]);
    const cancel = () => {
        if (run?.abort === undefined) return false;
        run.abort.abort();
        return true;
    };
    const isOld = run?.state === "ready" && run.sql !== cell.text;
    return (
        <section ref={box} class="note-cell card" aria-label={`Cell ${number}`}>
            <SqlEditor label={`SQL of cell ${number}; Ctrl-Enter runs it, Escape cancels`} value={cell.text} names={names} onChange={(text) => onChange({ text })} onRun={onRun} onCancel={cancel} onFocus={onFocus} />
            <div class="note-bar toolbar">
                {run?.state === "running" ? <button type="button" class="small" onClick={cancel}>Cancel<kbd>Esc</kbd></button> :
                    <button type="button" class={`small${run === undefined || isOld ? " primary" : ""}`} onClick={onRun} title="Ctrl-Enter">Run</button>}
                <button type="button" class="small plain" onClick={onPlan} title="How SQLite goes about it">Plan</button>
                <RunLine run={run} isOld={isOld} />
                <span class="space" />
                {run?.table !== undefined && <button type="button" class="small plain" onClick={() => saveBlob(new Blob([toCsv(run.answer?.data ?? (run.table as Table))], { type: "text/csv" }), "memtrace-query.csv")}>CSV</button>}
                <CellTools onRemove={onRemove} onMove={onMove} />
            </div>
            {run?.state === "failed" && <p class="note-error" role="alert">{run.error}</p>}
            {run?.plan !== undefined && <pre class="note-plan" tabIndex={0} aria-label="Query plan">{run.plan.trimEnd() || "SQLite has nothing to say about it."}</pre>}
            {run?.table !== undefined && <Answered table={run.table} chart={cell.chart ?? { type: "table" }} isStale={run.state === "running"} onChart={(chart) => onChange({ chart })} />}
        </section>
    );
}

function RunLine({ run, isOld }: { run: Run | undefined; isOld: boolean }) {
    const late = useDelayed(150);
    if (run === undefined) return <span class="muted">not run yet</span>;
    if (run.state === "running") return late ? <span class="muted" role="status"><ProgressBar of={run.progress} label="Query" /></span> : null;
    if (run.state === "cancelled") return <span class="muted" role="status">cancelled</span>;
    if (run.answer === undefined || run.plan !== undefined) return null;
    const { data, ms, via, notes } = run.answer;
    return (
        <span class="muted number" role="status">
            {format.items(data.rows.length, "row")}{data.truncated ? " (there are more: add LIMIT or WHERE)" : ""} in {ms < 1 ? "less than 1 ms" : format.duration(ms * 1e6)}{via === "pass" ? ", by reading all events" : ""}{isOld ? "; changed since" : ""}
            {notes?.map((note) => <span key={note}>; {note}</span>)}
        </span>
    );
}

function CellTools({ onRemove, onMove }: { onRemove: () => void; onMove: (by: number) => void }) {
    return (
        <span class="cell-tools">
            <button type="button" class="small plain" aria-label="Move the cell up" title="Up" onClick={() => onMove(-1)}>↑</button>
            <button type="button" class="small plain" aria-label="Move the cell down" title="Down" onClick={() => onMove(1)}>↓</button>
            <IconButton small icon="close" label="Delete the cell" onClick={onRemove} />
        </span>
    );
}

const ROWS = 12;

function Answered({ table, chart, isStale, onChart }: { table: Table; chart: NonNullable<NoteCell["chart"]>; isStale: boolean; onChart: (chart: NonNullable<NoteCell["chart"]>) => void }) {
    const rows = useTableRows(table);
    if (table.columns.length === 0) return null;
    return (
        <div class={`note-answer${isStale ? " stale" : ""}`}>
            <div class="toolbar">
                <Choice<ChartType> label="Shown as" value={chart.type} options={CHARTS} onChange={(type) => onChart({ ...chart, type })} />
                <ChartColumns wish={chart} columns={table.columns} onChange={onChart} />
            </div>
            {chart.type === "table" ? <DataTable label="Rows" class="as-named" rows={rows} fit={ROWS} empty="No row." columns={table.columns.map((column) => ({ name: column.name, width: widthOf(column) }))} /> : <SqlChart table={table} wish={chart} />}
        </div>
    );
}

/* Names of columns are what was written: they are shown in full. */
function widthOf(column: Column): string {
    const least = Math.min(16, Math.max(5.5, column.name.length * 0.5 + 2));
    return column.kind === "text" ? `minmax(${Math.max(9, least)}rem, 1fr)` : column.kind === "address" || column.kind === "hash" ? "10rem" : `${least}rem`;
}

function TextCell({ cell, isNew, onChange, onRemove, onMove }: { cell: NoteCell; isNew: boolean; onChange: (text: string) => void; onRemove: () => void; onMove: (by: number) => void }) {
    const [open, setOpen] = useState(isNew || cell.text === "");
    const area = useRef<HTMLTextAreaElement>(null);
    useEffect(() => {
        if (open) area.current?.focus();
    }, [open]);
    const blocks = useMemo(() => readText(cell.text), [cell.text]);
    return (
        <section class="note-text" aria-label="Text">
            {open ? (
                <textarea ref={area} class="note-area" value={cell.text} aria-label="Text: # heading, - list, **bold**, `code`" placeholder="Text. # heading, - list, **bold**, `code`" rows={Math.max(2, cell.text.split("\n").length + 1)}
                    onInput={(event) => onChange(event.currentTarget.value)} onBlur={() => setOpen(false)}
                    onKeyDown={(event) => {
                        if (event.key !== "Escape" && !(event.key === "Enter" && event.ctrlKey)) return;
                        event.preventDefault();
                        event.stopPropagation();
                        setOpen(false);
                    }} />
            ) : (
                <div class="note-words" onDblClick={() => setOpen(true)}>
                    {blocks.length === 0 && <p class="muted">Empty text.</p>}
                    {blocks.map((block, index) => {
                        const inside = block.inline.map((one, i) => one.kind === "bold" ? <b key={i}>{one.text}</b> : one.kind === "code" ? <code key={i}>{one.text}</code> : <span key={i}>{one.text}</span>);
                        return block.kind === "heading" ? <h2 key={index} class={`level-${block.level}`}>{inside}</h2> : block.kind === "item" ? <p key={index} class="item">{inside}</p> : <p key={index}>{inside}</p>;
                    })}
                </div>
            )}
            <span class="cell-tools"><button type="button" class="small plain" onClick={() => setOpen(!open)}>{open ? "Done" : "Edit"}</button><CellTools onRemove={onRemove} onMove={onMove} /></span>
        </section>
    );
}

/* ---- What can be asked ---- */

function Starters({ hasEvents, onTake }: { hasEvents: boolean; onTake: (cell: NoteCell) => void }) {
    const shown = STARTERS.filter((one) => hasEvents || one.needs !== "events");
    return (
        <select class="starters" aria-label="Add a question" value="" onChange={(event) => {
            const one = shown[Number(event.currentTarget.value)];
            event.currentTarget.value = "";
            if (one !== undefined) onTake(sqlCell(one.sql, one.chart));
        }}>
            <option value="">Add a question …</option>
            {shown.map((one, index) => <option key={one.title} value={index}>{one.title}</option>)}
        </select>
    );
}

function SchemaBox({ schema, onInsert, onAsk }: { schema: Schema | undefined; onInsert: (text: string) => void; onAsk: (sql: string) => void }) {
    return (
        <aside class="schema card" aria-label="Tables">
            <div class="card-head"><h2>Tables</h2></div>
            <div class="schema-list">
                {schema?.tables.map((table) => (
                    <details key={table.name}>
                        <summary title={table.about ?? ""}><code>{table.name}</code><span class="muted">{table.about}</span></summary>
                        <button type="button" class="small plain" onClick={() => onAsk(`SELECT *\nFROM ${table.name}\nLIMIT 100`)}>First 100 rows</button>
                        <ul>
                            {table.columns.map((column) => (
                                <li key={column.name}>
                                    <button type="button" class="plain small" title={column.about ?? ""} onPointerDown={(event) => event.preventDefault()} onClick={() => onInsert(column.name)}><code>{column.name}</code></button>
                                    <span class="muted" title={column.about ?? ""}>{column.about ?? column.type.toLowerCase()}</span>
                                </li>
                            ))}
                        </ul>
                    </details>
                ))}
            </div>
        </aside>
    );
}
