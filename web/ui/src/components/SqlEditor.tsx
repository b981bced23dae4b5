// SPDX-License-Identifier: MIT
// SqlEditor.tsx: a field for SQL: colours, completion of tables, columns and words.
//
// A textarea over the same text in colours, not CodeMirror: that takes 126 kB of the 300 kB that the page may have, needs a
// shadow root under this page's rules for styles, and hides its text from the browser's own search and from readers.
// What is asked here are some lines: undo, selection, spelling off and touch keyboards are the browser's.
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { complete, type Completion, sqlPieces, type SqlNames } from "../draw/sqltext";

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
                {sqlPieces(value, names).map((piece, index) => <span key={index} class={piece.kind === "" ? undefined : `sql-${piece.kind}`}>{piece.text}</span>)}{"\n"}
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
