// SPDX-License-Identifier: MIT
// Palette.tsx (Ctrl-K): every view, action, function and file by its name.
import { signal } from "@preact/signals";
import { useEffect, useId, useState } from "preact/hooks";
import { allActions } from "../actions";
import { ask } from "../ask";
import { Dialog } from "../components/Dialog";
import { takeStep, useFound } from "../components/hooks";
import { functionsNamed, openSandwich, sourceChange, viewChange } from "../links";
import { rowsOf, textCell } from "../rows";
import type { Answer, Table } from "../types";
import { go } from "../url";
import { VIEWS } from "../views";
import { keyText } from "./Help";
import { score } from "./score";

export const paletteOpen = signal(false);

interface Entry {
    title: string;
    about: string;
    keys?: string;
    run: () => void;
}

function fixedEntries(): Entry[] {
    const views = VIEWS.map((view): Entry => ({ title: view.title, about: view.about, keys: view.key, run: () => go(viewChange(view.id)) }));
    const actions = allActions().filter((action) => action.hidden !== true && action.group !== "Views")
        .map((action): Entry => ({ title: action.title, about: action.group, keys: action.keys?.map(keyText).join(", "), run: action.run }));
    return [...views, ...actions];
}

async function functionsFor(typed: string): Promise<Entry[]> {
    const names = await functionsNamed(typed);
    return names.slice(0, 40).map((name) => ({ title: name, about: "function: callers and callees", run: () => openSandwich(name) }));
}
async function filesFor(typed: string): Promise<Entry[]> {
    const { data } = await ask<Answer<Table>>("files", { limit: 5000 }, true);
    return rowsOf(data).map((row) => textCell(row, "file")).filter((file) => file.toLowerCase().includes(typed.toLowerCase())).slice(0, 20)
        .map((file) => ({ title: file, about: "source file", run: () => go(sourceChange({ file })) }));
}
async function entriesFor(typed: string): Promise<Entry[]> {
    const lists = await Promise.allSettled([functionsFor(typed), filesFor(typed)]);
    return lists.flatMap((list) => (list.status === "fulfilled" ? list.value : []));
}

const LOOSE = 500; // fewer points: the letters stand apart (score.ts)
const entryOf = ({ entry }: { entry: Entry }): Entry => entry;

export function Palette() {
    return paletteOpen.value ? <PaletteBox /> : null;
}

function PaletteBox() {
    const [typed, setTyped] = useState("");
    const [at, setAt] = useState(0);
    const id = useId();
    const found = useFound(typed.trim().length < 2 ? null : typed.trim(), 120, entriesFor) ?? [];
    const given = typed.trim().toLowerCase();
    const fixed = fixedEntries().map((entry) => ({ entry, points: given === "" ? LOOSE : score(`${entry.title} ${entry.about}`, given) }))
        .filter((one) => one.points >= 0).sort((a, b) => b.points - a.points);
    // What was found has the letters as they were typed: before names that only have them somewhere.
    const exact = fixed.filter((one) => one.points >= LOOSE);
    const loose = fixed.slice(exact.length);
    const entries = [...exact.slice(0, given === "" ? 60 : 12).map(entryOf), ...found, ...loose.slice(0, 12).map(entryOf)];
    const current = Math.min(at, entries.length - 1);
    useEffect(() => document.getElementById(`${id}-${current}`)?.scrollIntoView({ block: "nearest" }), [current]);
    const close = () => (paletteOpen.value = false);
    const run = (entry: Entry | undefined) => {
        if (entry === undefined) return;
        close();
        // The dialog gives the focus back first.
        setTimeout(entry.run, 0);
    };
    const key = (event: KeyboardEvent) => takeStep(event, {
        ArrowDown: () => setAt(Math.min(entries.length - 1, current + 1)), ArrowUp: () => setAt(Math.max(0, current - 1)), Enter: () => run(entries[current]),
    });
    return (
        <Dialog title="Search actions, views, functions and files" bare class="palette" onClose={close}>
            <input class="palette-field" role="combobox" aria-expanded="true" aria-controls={`${id}-list`} aria-activedescendant={current >= 0 ? `${id}-${current}` : undefined}
                aria-label="Search actions, views, functions and files" placeholder="A view, an action, a function, a file …" autocomplete="off" spellcheck={false}
                value={typed} onKeyDown={key} onInput={(event) => {
                    setTyped(event.currentTarget.value);
                    setAt(0);
                }} />
            <ul id={`${id}-list`} class="palette-list" role="listbox" tabIndex={-1} aria-label="Found">
                {entries.map((entry, index) => (
                    <li key={`${index} ${entry.title}`} id={`${id}-${index}`} role="option" aria-selected={index === current} class={index === current ? "current" : ""} onClick={() => run(entry)} onMouseMove={() => index !== current && setAt(index)}>
                        <span class="offer-name">{entry.title}</span>
                        <span class="offer-about">{entry.about}</span>
                        {entry.keys !== undefined && entry.keys !== "" && <kbd>{entry.keys}</kbd>}
                    </li>
                ))}
                {entries.length === 0 && <li class="muted">Nothing of that name.</li>}
            </ul>
        </Dialog>
    );
}
