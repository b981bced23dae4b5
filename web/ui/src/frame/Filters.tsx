// SPDX-License-Identifier: MIT
// Filters.tsx: the filters as chips, and a field that adds one. Names, values and meaning are those of the commands
// (filters.ts); whether a value holds is asked of the server before a chip is made, and its sentence shown if not.
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { useActions } from "../actions";
import { ask } from "../ask";
import { Problem } from "../api";
import { takeStep, useFound } from "../components/hooks";
import { Icon } from "../components/Icon";
import { FILTERS, filterNamed, splitFilter, type Filter } from "../filters";
import { exactly, functionsNamed } from "../links";
import { runQuery } from "../query";
import { cell, columnIndex, frameOf, numberCell, type Row, rowsOf, textCell } from "../rows";
import { session, source } from "../session";
import { bytesText } from "../components/Cells";
import * as format from "../format";
import { METRICS, metricTitle, useSuppressed } from "../summaries";
import type { Answer, Summary, Table } from "../types";
import { filterQuery, go, metric, place } from "../url";
import type { ViewEntry } from "../views";

const SHOWN: readonly string[] = FILTERS.map((filter) => filter.name);

export function FilterBar({ whole, view }: { whole: Summary | undefined; view: ViewEntry | undefined }) {
    const chips = [...filterQuery.value].filter(([name]) => SHOWN.includes(plainName(name)));
    return (
        <section class="filters" aria-label="Filters">
            <ul class="chips">
                {session.value?.selected !== undefined && <li class="chip" title="What was saved"><span class="chip-text code">{session.value.selected}</span></li>}
                {chips.map(([name, value], index) => <Chip key={`${name} ${value} ${index}`} name={name} value={value} />)}
            </ul>
            <AddFilter whole={whole} />
            {chips.length > 1 && (
                <button type="button" class="plain small" onClick={() => go({ set: Object.fromEntries(chips.map(([name]) => [name, null])) })}>Clear all</button>
            )}
            <span class="space" />
            {view?.metric === true && (metric.value === "leaked" || (metric.value === "shutdown" && whole?.has["events"] === true)) && <Suppressed of={metric.value} />}
            {view?.metric === true && <MetricChooser />}
        </section>
    );
}

/* "base-from" is a filter of the other side of a difference. */
const plainName = (name: string): string => name.replace(/^base-/, "");

const withOther = (name: string, value: string, now: string | null): string[] => {
    const values = place.peek().query.getAll(name);
    const index = values.indexOf(value);
    return now === null ? values.filter((_, place_) => place_ !== index) : values.map((one, place_) => (place_ === index ? now : one));
};

function Chip({ name, value }: { name: string; value: string }) {
    const filter = filterNamed(plainName(name));
    const isBase = name.startsWith("base-");
    const [editing, setEditing] = useState(false);
    if (editing && filter?.value != null) return <li><EditChip name={name} filter={filter} value={value} onEnd={() => setEditing(false)} /></li>;
    const slow = filter?.cost === "blocks";
    return (
        <li class={`chip${slow ? " slow" : ""}${isBase ? " base" : ""}`}>
            <button type="button" class="chip-text" title={`${filter?.about ?? name}${slow ? "; read from all events" : ""}. Click to change.`}
                onClick={() => setEditing(true)} disabled={filter?.value === null}>
                {slow && <Icon name="clock" />}
                <span class="chip-name">{isBase ? `compared: ${plainName(name)}` : name}</span>{value !== "" && <span class="chip-value">{value}</span>}
            </button>
            <button type="button" class="chip-close" aria-label={`Remove the filter ${name} ${value}`} onClick={() => go({ set: { [name]: withOther(name, value, null) } })}>
                <Icon name="close" />
            </button>
        </li>
    );
}

/* undefined: the server takes it. */
async function refusal(name: string, values: readonly string[]): Promise<string | undefined> {
    try {
        await ask("", { [name]: values });
        return undefined;
    } catch (error) {
        if (error instanceof Problem) return error.message;
        return error instanceof DOMException && error.name === "AbortError" ? "Cancelled." : String(error);
    }
}

function EditChip({ name, filter, value, onEnd }: { name: string; filter: Filter; value: string; onEnd: () => void }) {
    const [text, setText] = useState(value);
    const [wrong, setWrong] = useState<string | undefined>();
    const field = useRef<HTMLInputElement>(null);
    useEffect(() => field.current?.select(), []);
    const put = async () => {
        const values = withOther(name, value, text);
        const why = text === value ? undefined : await refusal(name, values);
        if (why !== undefined) return setWrong(why);
        onEnd();
        go({ set: { [name]: values } });
    };
    return (
        <span class="chip editing">
            <span class="chip-name">{name}</span>
            <input ref={field} aria-label={`Value of ${filter.name}`} aria-invalid={wrong !== undefined} value={text} size={Math.max(6, text.length)}
                onInput={(event) => setText(event.currentTarget.value)} onBlur={() => text === value && onEnd()}
                onKeyDown={(event) => {
                    if (event.key === "Enter") void put();
                    if (event.key === "Escape") onEnd();
                }} />
            {wrong !== undefined && <span class="filter-wrong" role="alert">{wrong}</span>}
        </span>
    );
}

/* ---- Values that the file itself has: functions, files, marks, threads ... ---- */

interface Completion {
    value: string;
    about: string;
}

const EXAMPLES: Record<string, readonly string[]> = {
    TIME: ["start", "peak", "end", "50%"], RANGE: ["1", "2..10", "1000.."], SIZES: ["..99", "1K..64K", "1M.."],
    DURATIONS: ["..1ms", "1s..", "10ms..1s"], TIMES: ["start..10%", "1s..2s", "90%..end"], CLASS: ["heap", "mapping", "pool"], ARENA: ["main", "other"],
    PERMISSIONS: [".w.", "..x"],
    SQL: ["size % 4096 = 0", "usable > 2 * size", "reallocated AND lifetime > 1000000", "freed IS NULL AND thread <> 1"],
};

async function column(endpoint: string, name: string, about: string): Promise<Completion[]> {
    const { data } = await ask<Answer<Table>>(endpoint, { limit: 1000 }, true);
    const seen = new Map<string, Completion>();
    for (const row of rowsOf(data)) {
        const value = frameOf(row, cell(row, name))?.function ?? textCell(row, name);
        if (value !== "" && !seen.has(value)) seen.set(value, { value, about: spell(row, about) });
    }
    return [...seen.values()];
}
function spell(row: Row, name: string): string {
    const kind = row.table.columns[columnIndex(row.table, name)]?.kind;
    return kind === "bytes" ? format.bytes(numberCell(row, name)) : kind === "duration" ? format.duration(numberCell(row, name)) : textCell(row, name);
}

/* Of rows (value, what it is) that SQL finds in what is selected. */
async function fromSql(sql: string): Promise<Completion[]> {
    const { data } = await runQuery({ sql, limit: 30 }, new AbortController().signal);
    return data.rows.map(([value, about]) => ({ value: String(value ?? ""), about: String(about ?? "") }));
}
const HASHES = "SELECT hash, function FROM contexts WHERE class = 'heap' ORDER BY total_bytes DESC";
const FREED = "SELECT path_hash(freed_context), function(freed_context) FROM allocations WHERE freed_context IS NOT NULL GROUP BY freed_context ORDER BY count(*) DESC";
const POOLS = "SELECT DISTINCT pool, '' FROM contexts WHERE pool IS NOT NULL ORDER BY 1";

async function functions(value: string): Promise<Completion[]> {
    const typed = value.replace(/[\\^$]/g, "");
    if (typed === "") return [];
    return (await functionsNamed(typed)).slice(0, 30).map((name) => ({ value: exactly(name), about: name }));
}

async function completions(filter: Filter, value: string): Promise<Completion[]> {
    const examples = (EXAMPLES[filter.value ?? ""] ?? []).map((one) => ({ value: one, about: "" }));
    try {
        return [...(await known(filter, value)), ...examples].filter((one) => matches(one, value, filter)).slice(0, 30);
    } catch {
        return examples;
    }
}
const matches = (one: Completion, value: string, filter: Filter): boolean =>
    filter.complete === "function" || one.value.toLowerCase().includes(value.toLowerCase()) || one.about.toLowerCase().includes(value.toLowerCase());

async function known(filter: Filter, value: string): Promise<Completion[]> {
    switch (filter.complete) {
        case "function": return functions(value);
        case "file": return (await column("files", "file", "maximum")).map((one) => ({ ...one, value: exactly(one.value) }));
        case "module": return (await column("modules", "path", "")).map((one) => ({ ...one, value: exactly(one.value) }));
        case "thread": return column("threads", "name", "total_bytes");
        case "scope": return column("scopes", "name", "");
        case "mark": {
            const marks = await column("marks", "name", "time_ns");
            return filter.name === "between" ? marks : marks.map((one) => ({ ...one, value: `mark:${one.value}` }));
        }
        case "mapping": return column("mappings", "id", "path");
        case "permissions": return column("mappings", "permissions", "");
        case "hash": return fromSql(filter.name === "freed-path" ? FREED : HASHES);
        case "pool": return fromSql(POOLS);
        default: return [];
    }
}

/* ---- Adding one ---- */

interface Offer {
    text: string; // what stands in the field after it is taken
    shown: string;
    about: string;
    done: boolean; // a whole filter: taking it puts the chip
    slow?: boolean;
}

function namesFor(text: string, has: Record<string, boolean>): Offer[] {
    const given = text.trim().toLowerCase();
    return FILTERS.filter((filter) => has["events"] !== false || filter.cost === "paths")
        .filter((filter) => filter.name.includes(given) || filter.about.toLowerCase().includes(given))
        .sort((a, b) => Number(b.name.startsWith(given)) - Number(a.name.startsWith(given)))
        .map((filter) => ({
            text: filter.value === null ? filter.name : `${filter.name}:`,
            shown: filter.name,
            about: `${filter.value === null ? "" : filter.value + ": "}${filter.about}`,
            done: filter.value === null,
            slow: filter.cost === "blocks",
        }));
}

async function valuesFor(text: string): Promise<Offer[]> {
    const split = splitFilter(text);
    if (split === undefined || split.filter.value === null) return [];
    const { name, cost } = split.filter;
    return (await completions(split.filter, split.value)).map((one) => ({ text: `${name}:${one.value}`, shown: one.value, about: one.about, done: true, slow: cost === "blocks" }));
}

function useOffers(text: string, has: Record<string, boolean>): Offer[] {
    const isValue = (/[:= ]/.test(text.trim()) || text.endsWith(" ")) && splitFilter(text) !== undefined;
    const values = useFound(isValue ? text : null, 80, valuesFor) ?? [];
    return isValue ? values : namesFor(text, has);
}

function AddFilter({ whole }: { whole: Summary | undefined }) {
    const [text, setText] = useState("");
    const [open, setOpen] = useState(false);
    const [at, setAt] = useState(-1);
    const [wrong, setWrong] = useState<string | undefined>();
    const [busy, setBusy] = useState(false);
    const field = useRef<HTMLInputElement>(null);
    const id = useId();
    const offers = useOffers(text, whole?.has ?? {});
    useActions([{ group: "Filters", title: "Add a filter", keys: [":"], run: () => field.current?.focus() }]);
    useEffect(() => document.getElementById(`${id}-${at}`)?.scrollIntoView({ block: "nearest" }), [at]);

    const put = async (given: string) => {
        const split = splitFilter(given);
        if (split === undefined) return setWrong(`There is no filter ${given.trim()}.`);
        const { filter, value } = split;
        if (filter.value !== null && value === "") return setWrong(`${filter.name} needs a value: ${filter.value}.`);
        const before = filter.many === true ? place.peek().query.getAll(filter.name) : [];
        const values = [...before.filter((one) => one !== value), value];
        setBusy(true);
        const why = await refusal(filter.name, values);
        setBusy(false);
        if (why !== undefined) return setWrong(why);
        setText("");
        setAt(-1);
        setOpen(false);
        go({ set: { [filter.name]: values } });
    };
    const take = (offer: Offer) => {
        setWrong(undefined);
        setAt(-1);
        if (offer.done) return void put(offer.text);
        setText(offer.text);
        field.current?.focus();
    };
    const key = (event: KeyboardEvent) => {
        const offer = offers[at];
        const walk = (by: 1 | -1) => {
            setOpen(true);
            setAt(offers.length === 0 ? -1 : (at + by + offers.length + (at < 0 && by < 0 ? 1 : 0)) % offers.length);
        };
        takeStep(event, {
            ArrowDown: () => walk(1), ArrowUp: () => walk(-1),
            Enter: () => (offer !== undefined ? take(offer) : text.trim() !== "" && put(text)),
            Tab: offer !== undefined && !event.shiftKey && (() => take(offer)),
            Escape: () => (open && offers.length > 0 ? setOpen(false) : field.current?.blur()),
            Backspace: text === "" && removeLast,
        });
    };
    const slow = splitFilter(text)?.filter.cost === "blocks";
    return (
        <span class="add-filter">
            <input ref={field} role="combobox" aria-label="Add a filter" aria-expanded={open && offers.length > 0} aria-controls={`${id}-list`}
                aria-activedescendant={at >= 0 ? `${id}-${at}` : undefined} aria-autocomplete="list" aria-invalid={wrong !== undefined} aria-busy={busy}
                placeholder="Add a filter: function, size, leaked …" autocomplete="off" spellcheck={false} value={text}
                onFocus={() => setOpen(true)} onClick={() => setOpen(true)} onBlur={() => {
                    setOpen(false);
                    setWrong(undefined);
                }} onKeyDown={key}
                onInput={(event) => {
                    setText(event.currentTarget.value);
                    setWrong(undefined);
                    setAt(-1);
                    setOpen(true);
                }} />
            {slow && wrong === undefined && <span class="filter-note">Enter reads all events{source.value?.kind === "profile" ? ": a profile has none" : " once"}</span>}
            {wrong !== undefined && <span class="filter-wrong" role="alert">{wrong}</span>}
            {open && offers.length > 0 && (
                <ul id={`${id}-list`} class="offers" role="listbox" tabIndex={-1} aria-label="Filters" onMouseDown={(event) => event.preventDefault()}>
                    {offers.map((offer, index) => (
                        <li key={offer.text} id={`${id}-${index}`} role="option" aria-selected={index === at} class={index === at ? "current" : ""} onClick={() => take(offer)}>
                            <span class="offer-name">{offer.shown}</span>
                            <span class="offer-about">{offer.about}</span>
                            {offer.slow === true && <span class="offer-slow" title="Read from all events"><Icon name="clock" /><span class="hidden">reads all events</span></span>}
                        </li>
                    ))}
                </ul>
            )}
        </span>
    );
}

function removeLast(): void {
    const last = [...filterQuery.peek()].filter(([name]) => SHOWN.includes(plainName(name))).at(-1);
    if (last !== undefined) go({ set: { [last[0]]: withOther(last[0], last[1], null) } });
}

/* What the summary counts among the leaks, and the views of leaks leave out. */
function Suppressed({ of }: { of: "leaked" | "shutdown" }) {
    const suppressed = useSuppressed(of);
    if (suppressed === undefined) return null;
    const why = of === "leaked" ? "of leaks that suppressions name are left out" : "of call paths that suppressions name are left out";
    return (
        <span class="muted suppressed" title={`${format.items(suppressed.blocks, "block")} ${why}`}>
            without {bytesText(suppressed.bytes)} suppressed
        </span>
    );
}

function MetricChooser() {
    const live = source.value?.live === true;
    const choose = (index: number) => go({ set: { metric: METRICS[index]?.id } });
    return (
        <span class="segments metrics" role="radiogroup" aria-label="Metric" onKeyDown={(event) => {
            const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
            if (by === 0) return;
            event.preventDefault();
            const now = METRICS.findIndex((one) => one.id === metric.value);
            const next = (now + by + METRICS.length) % METRICS.length;
            choose(next);
            event.currentTarget.querySelectorAll<HTMLElement>("[role=radio]")[next]?.focus();
        }}>
            {METRICS.map((one, index) => (
                <button key={one.id} type="button" role="radio" aria-checked={metric.value === one.id} tabIndex={metric.value === one.id ? 0 : -1} title={one.about} onClick={() => choose(index)}>
                    {metricTitle(one.id, live)}
                </button>
            ))}
        </span>
    );
}
