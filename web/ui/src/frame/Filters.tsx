// SPDX-License-Identifier: MIT
// Filters.tsx: the filters as chips, and a field that adds one. Names, values and meaning are those of the commands
// (filters.ts); whether a value holds is asked of the server before a chip is made, and its sentence shown if not.
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { useActions } from "../actions";
import { ask } from "../ask";
import { Problem } from "../api";
import { Icon } from "../components/Icon";
import { FILTERS, filterNamed, type Filter } from "../filters";
import { session, source } from "../session";
import { bytesText } from "../components/Cells";
import * as format from "../format";
import { METRICS, metricTitle, useSuppressed } from "../summaries";
import type { Summary } from "../types";
import { filterQuery, go, metric, place } from "../url";
import type { ViewEntry } from "../views";
import { completions } from "./complete";
import { splitFilter } from "./filterText";

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

function useOffers(text: string, open: boolean, has: Record<string, boolean>): Offer[] {
    const [values, setValues] = useState<{ for: string; offers: Offer[] }>({ for: "", offers: [] });
    const split = /[:= ]/.test(text.trim()) || text.endsWith(" ") ? splitFilter(text) : undefined;
    useEffect(() => {
        if (!open || split === undefined || split.filter.value === null) return;
        let wanted = true;
        const timer = setTimeout(() => {
            void completions(split.filter, split.value).then((found) => {
                if (!wanted) return;
                const offers = found.map((one): Offer => ({
                    text: `${split.filter.name}:${one.value}`, shown: one.value, about: one.about, done: true, slow: split.filter.cost === "blocks",
                }));
                setValues({ for: text, offers });
            });
        }, 80);
        return () => {
            wanted = false;
            clearTimeout(timer);
        };
    }, [text, open]);
    if (split === undefined) return namesFor(text, has);
    return values.for === text ? values.offers : [];
}

function AddFilter({ whole }: { whole: Summary | undefined }) {
    const [text, setText] = useState("");
    const [open, setOpen] = useState(false);
    const [at, setAt] = useState(-1);
    const [wrong, setWrong] = useState<string | undefined>();
    const [busy, setBusy] = useState(false);
    const field = useRef<HTMLInputElement>(null);
    const id = useId();
    const offers = useOffers(text, open, whole?.has ?? {});
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
        if (event.key === "ArrowDown" || event.key === "ArrowUp") {
            const by = event.key === "ArrowDown" ? 1 : -1;
            setOpen(true);
            setAt(offers.length === 0 ? -1 : (at + by + offers.length + (at < 0 && by < 0 ? 1 : 0)) % offers.length);
        } else if (event.key === "Enter") {
            if (offer !== undefined) take(offer);
            else if (text.trim() !== "") void put(text);
        } else if (event.key === "Tab" && offer !== undefined && !event.shiftKey) take(offer);
        else if (event.key === "Escape") {
            if (open && offers.length > 0) setOpen(false);
            else field.current?.blur();
        } else if (event.key === "Backspace" && text === "") return removeLast();
        else return;
        event.preventDefault();
        event.stopPropagation();
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
