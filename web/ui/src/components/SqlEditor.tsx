// SPDX-License-Identifier: MIT
// SqlEditor.tsx: a field for SQL: colours, completion of tables, columns and words.
//
// A textarea over the same text in colours, not CodeMirror: that takes 126 kB of the 300 kB that the page may have, needs a
// shadow root under this page's rules for styles, and hides its text from the browser's own search and from readers.
// What is asked here are some lines: undo, selection, spelling off and touch keyboards are the browser's.
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";

/* ---- Pieces to be coloured, and what can be completed: SQLite's dialect, as far as colours go ---- */

type SqlKind = "" | "keyword" | "string" | "number" | "comment" | "table" | "column";
interface SqlPiece {
    kind: SqlKind;
    text: string;
}
export interface SqlNames {
    tables: ReadonlySet<string>;
    columns: ReadonlySet<string>;
}

const KEYWORDS = new Set(("select from where and or not in is null like glob regexp between exists case when then else end as on using join left right full " +
    "inner outer cross natural group by having order asc desc nulls first last limit offset union all distinct intersect except with recursive " +
    "values over partition rows range preceding following unbounded current row filter window explain query plan cast collate escape materialized").split(" "));
const FUNCTIONS = ["count", "sum", "avg", "min", "max", "total", "round", "abs", "coalesce", "ifnull", "iif", "length", "substr", "instr", "replace", "printf", "hex",
    "lower", "upper", "group_concat", "row_number", "rank", "lag", "lead", "ntile", "percent_rank"];

const TOKEN = /(--[^\n]*|\/\*[\s\S]*?(?:\*\/|$))|('(?:[^']|'')*(?:'|$))|(\b\d+(?:\.\d+)?(?:e[+-]?\d+)?\b|0x[0-9a-f]+)|([a-z_][a-z0-9_]*)|("(?:[^"]|"")*(?:"|$))/gi;

export function sqlPieces(text: string, names: SqlNames): SqlPiece[] {
    const pieces: SqlPiece[] = [];
    const put = (kind: SqlKind, part: string) => {
        const last = pieces.at(-1);
        if (part === "") return;
        if (last !== undefined && last.kind === kind) last.text += part;
        else pieces.push({ kind, text: part });
    };
    let at = 0;
    for (const found of text.matchAll(TOKEN)) {
        put("", text.slice(at, found.index));
        const [whole, comment, string, number, word] = found;
        const lower = word?.toLowerCase() ?? "";
        put(comment !== undefined ? "comment" : string !== undefined ? "string" : number !== undefined ? "number" :
            KEYWORDS.has(lower) ? "keyword" : names.tables.has(lower) ? "table" : names.columns.has(lower) ? "column" : "", whole);
        at = (found.index ?? 0) + whole.length;
    }
    put("", text.slice(at));
    return pieces;
}

interface Completion {
    from: number; // where the word begins that is replaced
    words: string[];
}
const MOST = 8;

/* What may stand where the cursor is; null: nothing that is not there already. */
export function complete(text: string, cursor: number, names: SqlNames, least = 2): Completion | null {
    const word = /[a-z_][a-z0-9_]*$/i.exec(text.slice(0, cursor))?.[0] ?? "";
    if (word.length < least || /[a-z0-9_]/i.test(text[cursor] ?? "")) return null;
    const pieces = sqlPieces(text.slice(0, cursor), names);
    const last = pieces.at(-1);
    if (last?.kind === "comment" || last?.kind === "string") return null;
    const lower = word.toLowerCase();
    const isUpper = word === word.toUpperCase() && word !== lower;
    const keywords = [...KEYWORDS].map((one) => (isUpper ? one.toUpperCase() : one));
    const all = [...names.tables, ...names.columns, ...FUNCTIONS, ...keywords];
    const words = [...new Set(all.filter((one) => one.toLowerCase().startsWith(lower) && one.toLowerCase() !== lower))].slice(0, MOST);
    return words.length === 0 ? null : { from: cursor - word.length, words };
}

/* ---- The field ---- */

interface SqlEditorProps {
    label: string;
    value: string;
    names: SqlNames;
    onChange: (text: string) => void;
    onRun: () => void;
    onCancel: () => boolean; // true: something was cancelled
    onFocus?: (insert: (text: string) => void) => void; // what the schema's names are put in with
}

export function SqlEditor({ label, value, names, onChange, onRun, onCancel, onFocus }: SqlEditorProps) {
    const area = useRef<HTMLTextAreaElement>(null);
    const [offer, setOffer] = useState<Completion | null>(null);
    const [at, setAt] = useState(0);
    const id = useId();
    const wanted = useRef<number | null>(null);
    useLayoutEffect(() => {
        const element = area.current;
        if (element === null || wanted.current === null) return;
        element.selectionStart = element.selectionEnd = wanted.current;
        wanted.current = null;
    }, [value]);
    useEffect(() => setAt(0), [offer?.words.join(" ")]);

    const put = (text: string, from: number, to: number) => {
        wanted.current = from + text.length;
        onChange(value.slice(0, from) + text + value.slice(to));
        setOffer(null);
    };
    const insert = (text: string) => {
        const element = area.current;
        if (element === null) return;
        put(text, element.selectionStart, element.selectionEnd);
        element.focus();
    };
    const take = (word: string) => {
        const cursor = area.current?.selectionStart ?? 0;
        if (offer !== null) put(word, offer.from, cursor);
        area.current?.focus();
    };
    const key = (event: KeyboardEvent) => {
        const element = area.current;
        if (element === null) return;
        if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
            setOffer(null);
            onRun();
        } else if (offer !== null && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
            setAt((at + (event.key === "ArrowDown" ? 1 : offer.words.length - 1)) % offer.words.length);
        } else if (offer !== null && (event.key === "Tab" || event.key === "Enter")) take(offer.words[at] ?? "");
        else if (event.key === "Escape") {
            if (offer !== null) setOffer(null);
            else if (!onCancel()) element.blur();
        } else if (event.key === " " && event.ctrlKey) setOffer(complete(value, element.selectionStart, names, 0));
        else return;
        event.preventDefault();
        event.stopPropagation();
    };
    // A line more than there is, so that the last one is never hidden.
    const lines = value.split("\n").length;
    return (
        <div class="sql-editor" style={{ height: `${Math.min(24, Math.max(2, lines)) * 19 + 18}px` }}>
            <pre class="sql-colours" aria-hidden="true">
                {sqlPieces(value, names).map((piece, index) => <span key={index} class={piece.kind === "" ? undefined : `code-${piece.kind}`}>{piece.text}</span>)}{"\n"}
            </pre>
            <textarea ref={area} value={value} aria-label={label} spellcheck={false} autocapitalize="off" autocomplete="off" wrap="off" rows={1}
                aria-autocomplete="list" aria-controls={offer === null ? undefined : id} aria-activedescendant={offer === null ? undefined : `${id}-${at}`}
                onInput={(event) => {
                    const element = event.currentTarget;
                    onChange(element.value);
                    setOffer(complete(element.value, element.selectionStart, names));
                }}
                onKeyDown={key} onFocus={() => onFocus?.(insert)} onBlur={() => setOffer(null)} onClick={() => setOffer(null)}
                onScroll={(event) => {
                    const colours = event.currentTarget.previousElementSibling;
                    if (colours !== null) {
                        colours.scrollTop = event.currentTarget.scrollTop;
                        colours.scrollLeft = event.currentTarget.scrollLeft;
                    }
                }} />
            {offer !== null && (
                <ul id={id} class="sql-offers" role="listbox" aria-label="Completions" style={placeOf(value, offer.from)}>
                    {offer.words.map((word, index) => (
                        <li key={word} id={`${id}-${index}`} role="option" aria-selected={index === at} class={index === at ? "current" : ""}
                            onPointerDown={(event) => {
                                event.preventDefault();
                                take(word);
                            }}>{word}<span class="muted">{names.tables.has(word) ? "table" : names.columns.has(word) ? "column" : ""}</span></li>
                    ))}
                </ul>
            )}
        </div>
    );
}

const LETTER_PX = 7.23; // of 12 px monospace
const LINE_PX = 19;
function placeOf(text: string, from: number): { left: string; top: string } {
    const before = text.slice(0, from).split("\n");
    return { left: `${10 + (before.at(-1)?.length ?? 0) * LETTER_PX}px`, top: `${9 + before.length * LINE_PX}px` };
}
