// SPDX-License-Identifier: MIT
// Table.tsx: the table of the page, for ten rows or ten million.
//
//   <DataTable label="Blocks" rows={useRows("blocks")} onOpen={(row) => ...} />
//
// - columns: which, in which order, each {name, heading?, width? (CSS, as a grid track), render?(row, value)}; default: all
//   that the server sent. A column that the server did not send is left out. {name: "*", without: [...]}: all others that
//   it sent, so that one that is new is seen.
// - share: name of a column whose numbers get a bar behind them, and of what they are a part (default: the largest seen).
// - selected: (row) => boolean; onSelect(row): a click, Space or moving by arrows; onOpen(row): Enter or double click.
// - class: sets the height: the table fills the box that it stands in and scrolls in it. `fit` makes it as high as its rows
//   (for few rows; at most `fit` of them).
// - Keyboard: arrows, Home, End, Page Up and Down; Left and Right go through cells; Enter opens; Ctrl-C copies the row.
//
// Rows have one height, so a row's place is arithmetic; browsers draw nothing higher than about 33 million pixels, so
// beyond LIMIT_PX the scroll bar stands for a part of the way, and the wheel is taken here (useScroll, ScrollBox: also of
// the call tree and of source text, which are no rows of an answer).
import { type ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { cellText, CellText } from "./Cells";
import { hasModifier, type KeySteps, takeStep, useSize } from "./hooks";
import { States } from "./States";
import { cell, isNumeric, largestIn, type Row, type Rows } from "../rows";
import type { Cell, Column } from "../types";
import * as format from "../format";

export interface ColumnSpec {
    name: string;
    heading?: string;
    about?: string;
    width?: string;
    render?: (row: Row, value: Cell) => ComponentChildren;
    without?: readonly string[];
}
interface TableProps {
    label: string;
    rows: Rows;
    columns?: readonly (string | ColumnSpec)[];
    share?: { column: string; of?: number };
    selected?: (row: Row) => boolean;
    onSelect?: (row: Row) => void;
    onOpen?: (row: Row) => void;
    class?: string;
    fit?: number;
    empty?: ComponentChildren;
}

const ROW_PX = 26;
const HEAD_PX = 28;
const LIMIT_PX = 8_000_000;
const AHEAD = 12;

interface Shown extends Column {
    width: string;
    render: ColumnSpec["render"];
}

const WIDTHS: Partial<Record<Column["kind"], string>> = {
    bytes: "minmax(5.5rem, max-content)", signed: "minmax(5.5rem, max-content)", count: "minmax(5rem, max-content)",
    real: "5.5rem", percent: "5rem", duration: "6rem", address: "9.5rem", hash: "10rem", word: "6rem",
    frame: "minmax(12rem, 3fr)", path: "minmax(16rem, 5fr)", text: "minmax(8rem, 2fr)", any: "minmax(8rem, 1fr)",
};

function shownColumns(all: readonly Column[], wanted: TableProps["columns"]): Shown[] {
    const specs = wanted?.map((one) => (typeof one === "string" ? { name: one } : one)) ?? all;
    const others = ({ without = [] }: ColumnSpec): readonly ColumnSpec[] =>
        all.filter((one) => !without.includes(one.name) && !specs.some((spec) => spec.name === one.name));
    return specs.flatMap((spec: ColumnSpec) => (spec.name === "*" ? others(spec) : [spec])).flatMap((spec) => {
        const column = all.find((one) => one.name === spec.name);
        if (column === undefined) return [];
        return [{
            ...column,
            heading: spec.heading ?? column.heading,
            about: spec.about ?? column.about,
            width: spec.width ?? roomFor(spec.heading ?? column.heading, fixed(WIDTHS[column.kind] ?? "minmax(8rem, 1fr)")),
            render: spec.render,
        }];
    });
}
/* Each row is a grid of its own, so that a track may not be as wide as its content: rows would differ. */
const LETTER_REM = 0.52;
const roomFor = (heading: string, track: string): string =>
    track.endsWith("rem") ? `${Math.max(parseFloat(track), heading.length * LETTER_REM + 2).toFixed(2)}rem` : track;
const fixed = (track: string): string => /^minmax\(([^,]+), max-content\)$/.exec(track)?.[1] ?? track;

/* ---- What is in sight ---- */

/* Which rows are seen. `top` is where the view begins in pixels of all rows, whatever the scroll bar can show. */
export function useScroll(total: number, rowPx: number) {
    const { ref: box, height } = useSize<HTMLDivElement>();
    const [top, setTop] = useState(0);
    const full = total * rowPx;
    const drawn = Math.min(full, LIMIT_PX);
    const room = Math.max(0, height - HEAD_PX);
    const scale = drawn > room && full > drawn ? (full - room) / (drawn - room) : 1;
    const own = useRef(-1);
    const moveTo = (wanted: number) => {
        const to = Math.max(0, Math.min(wanted, full - room));
        setTop(to);
        const element = box.current;
        if (element === null) return;
        element.scrollTop = to / scale;
        own.current = element.scrollTop;
    };
    useEffect(() => {
        const element = box.current;
        if (element === null) return;
        const scrolled = () => {
            // What was set here comes back as an event: taken again, it would lose what the scale rounds away.
            if (scale !== 1 && element.scrollTop === own.current) return;
            own.current = -1;
            setTop(element.scrollTop * scale);
        };
        const wheel = (event: WheelEvent) => {
            if (scale === 1 || event.ctrlKey || event.deltaY === 0) return;
            event.preventDefault();
            const unit = event.deltaMode === 1 ? rowPx : event.deltaMode === 2 ? room : 1;
            moveTo(topNow.current + event.deltaY * unit);
        };
        element.addEventListener("scroll", scrolled, { passive: true });
        element.addEventListener("wheel", wheel, { passive: false });
        return () => {
            element.removeEventListener("scroll", scrolled);
            element.removeEventListener("wheel", wheel);
        };
    });
    const topNow = useRef(0);
    topNow.current = Math.min(top, Math.max(0, full - room));
    const first = Math.max(0, Math.floor(topNow.current / rowPx) - AHEAD);
    const last = Math.min(total - 1, Math.ceil((topNow.current + room) / rowPx) + AHEAD);
    const shift = topNow.current / scale - topNow.current; // from a row's place in all to its place in what is drawn
    const show = (index: number) => {
        const at = index * rowPx;
        if (at < topNow.current) moveTo(at);
        else if (at + rowPx > topNow.current + room) moveTo(at + rowPx - room);
    };
    const pageRows = Math.max(1, Math.floor(room / rowPx) - 1);
    /* The keys that lead from row to row. */
    const steps = (at: number, move: (row: number) => void): KeySteps => ({
        ArrowDown: () => move(at + 1), ArrowUp: () => move(at - 1), PageDown: () => move(at + pageRows), PageUp: () => move(at - pageRows),
        Home: () => move(0), End: () => move(total - 1),
    });
    /* What is drawn: each row says by `place` where it lies. */
    const rows = <T,>(draw: (index: number, place: { transform: string }) => T): T[] =>
        Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => draw(first + i, { transform: `translateY(${(first + i) * rowPx + shift}px)` }));
    return { box, first, last, drawn, show, pageRows, moveTo, steps, rows };
}

/* The box that scrolls: its head stays in sight, and rows lie free in a body as high as all of them. */
export function ScrollBox({ scroll, tracks, height, head, below, children, class: name, ...rest }: {
    scroll: ReturnType<typeof useScroll>; tracks: string; height?: string | undefined; head: ComponentChildren; below?: ComponentChildren; children: ComponentChildren;
    class: string; role: "grid" | "treegrid"; onKeyDown: (event: KeyboardEvent) => void; [attribute: `aria-${string}`]: string | number | boolean | undefined;
}) {
    return (
        <div ref={scroll.box} class={`table ${name}`} tabIndex={0} style={{ "--tracks": tracks, height }} {...rest}>
            <div class="table-inner">
                <div class="table-head" role="row" aria-rowindex={1}>{head}</div>
                <div class="table-body" role="rowgroup" style={{ height: `${scroll.drawn}px` }}>{children}</div>
            </div>
            {below}
        </div>
    );
}

/* Ctrl-C takes the row, unless something is marked. */
export function takeCopy(event: KeyboardEvent, text: () => string): boolean {
    if (!(event.ctrlKey || event.metaKey) || event.key !== "c" || String(getSelection()) !== "") return false;
    void navigator.clipboard?.writeText(text());
    return true;
}

/* ---- The table of an answer ---- */

export function DataTable(props: TableProps) {
    const { rows, label } = props;
    return (
        <States of={rows.asked} empty={rows.total === 0 && rows.asked.state === "ready" ? (props.empty ?? `No ${label.toLowerCase()}.`) : undefined}
            ready={rows.columns.length !== 0}>
            {() => <Grid {...props} />}
        </States>
    );
}

function Grid({ label, rows, columns: wanted, share, selected, onSelect, onOpen, class: name, fit }: TableProps) {
    const columns = shownColumns(rows.columns, wanted);
    const scroll = useScroll(rows.total, ROW_PX);
    const id = useId();
    const [at, setAt] = useState({ row: 0, column: 0 });
    const cursor = { row: Math.min(at.row, Math.max(0, rows.total - 1)), column: Math.min(at.column, columns.length - 1) };
    useEffect(() => rows.want(scroll.first, scroll.last));
    // Sorting shows the first rows, not others that lie where one was.
    useEffect(() => {
        setAt((now) => ({ ...now, row: 0 }));
        scroll.moveTo(0);
    }, [rows.sort, rows.order]);

    const move = (row: number, column = cursor.column) => {
        const to = Math.max(0, Math.min(row, rows.total - 1));
        setAt({ row: to, column: Math.max(0, Math.min(column, columns.length - 1)) });
        scroll.show(to);
        const now = rows.row(to);
        if (to !== cursor.row && now !== null) onSelect?.(now);
    };
    const key = (event: KeyboardEvent) => {
        const current = rows.row(cursor.row);
        if (current !== null && takeCopy(event, () => columns.map((column) => cellText(current, column, cell(current, column.name))).join("\t"))) return;
        if (!hasModifier(event)) takeStep(event, {
            ...scroll.steps(cursor.row, move),
            ArrowRight: () => move(cursor.row, cursor.column + 1), ArrowLeft: () => move(cursor.row, cursor.column - 1),
            Enter: () => current !== null && (onOpen ?? onSelect)?.(current),
            " ": () => current !== null && onSelect?.(current),
        });
    };

    const first = rows.row(0);
    const whole = share === undefined ? 0 : share.of ?? (first === null ? 0 : largestIn(first.table, share.column));
    const height = fit === undefined ? undefined : `${HEAD_PX + Math.max(1, Math.min(fit, rows.total)) * ROW_PX + 1}px`;
    return (
        <ScrollBox scroll={scroll} tracks={columns.map((column) => column.width).join(" ")} height={height} class={`${name ?? ""}${rows.asked.stale ? " stale" : ""}`}
            role="grid" aria-label={label} aria-rowcount={rows.total + 1} aria-colcount={columns.length} aria-busy={rows.asked.stale}
            aria-activedescendant={rows.total === 0 ? undefined : `${id}-${cursor.row}-${cursor.column}`} onKeyDown={key}
            head={columns.map((column, index) => <Heading key={column.name} column={column} index={index} rows={rows} />)}>
            {scroll.rows((index, place) => (
                <GridRow key={index} id={id} index={index} row={rows.row(index)} columns={columns} place={place} cursor={index === cursor.row ? cursor.column : -1}
                    share={share?.column} whole={whole} selected={selected} onMove={(column) => move(index, column)} onSelect={onSelect} onOpen={onOpen} />
            ))}
        </ScrollBox>
    );
}

function Heading({ column, index, rows }: { column: Shown; index: number; rows: Rows }) {
    const sorted = rows.sort === column.name;
    const direction = sorted ? (rows.order === "asc" ? "ascending" : "descending") : undefined;
    const content = (
        <>
            <span class="heading-text">{column.heading}</span>
            {sorted && <span class="sorted" aria-hidden="true">{rows.order === "asc" ? "▲" : "▼"}</span>}
        </>
    );
    return (
        <div role="columnheader" aria-colindex={index + 1} aria-sort={direction} title={column.about}
            class={isNumeric(column.kind) ? "heading numeric" : "heading"}>
            {column.heading === "" ? <span class="hidden">{column.about ?? column.name}</span> : rows.setSort === undefined ? content : (
                <button type="button" class="plain" onClick={() => rows.setSort?.(column.name)}>{content}</button>
            )}
        </div>
    );
}

interface RowProps {
    id: string;
    index: number;
    row: Row | null;
    columns: readonly Shown[];
    place: { transform: string };
    cursor: number; // the column of the cursor; -1: in another row
    share: string | undefined;
    whole: number;
    selected: TableProps["selected"];
    onMove: (column: number) => void;
    onSelect: TableProps["onSelect"];
    onOpen: TableProps["onOpen"];
}

function GridRow({ id, index, row, columns, place: style, cursor, share, whole, selected, onMove, onSelect, onOpen }: RowProps) {
    const isSelected = row !== null && selected?.(row) === true;
    return (
        <div role="row" aria-rowindex={index + 2} aria-selected={selected === undefined ? undefined : isSelected}
            class={`table-row${index % 2 ? " odd" : ""}${isSelected ? " selected" : ""}${cursor >= 0 ? " current" : ""}`}
            style={style}
            onClick={() => row !== null && onSelect?.(row)} onDblClick={() => row !== null && onOpen?.(row)}>
            {columns.map((column, place) => {
                const value = row === null ? null : cell(row, column.name);
                const bar = share === column.name && whole > 0 ? Math.min(1, Math.abs(Number(value ?? 0)) / whole) : 0;
                return (
                    <div key={column.name} id={`${id}-${index}-${place}`} role="gridcell" aria-colindex={place + 1}
                        class={`cell${isNumeric(column.kind) ? " numeric" : ""}${cursor === place ? " cursor" : ""}${share === column.name ? " bar" : ""}`}
                        style={share === column.name ? { "--bar": `${format.percent(bar, 1).replace("<", "").replace("-", "0%")}` } : undefined}
                        onMouseDown={() => onMove(place)}>
                        {row === null ? <span class="awaited" aria-label="loading" /> :
                            column.render !== undefined ? column.render(row, value) :
                            <CellText row={row} column={column} value={value} />}
                    </div>
                );
            })}
        </div>
    );
}
