// SPDX-License-Identifier: MIT
// actions.ts: all that can be done, with its keys: one list for the keyboard, the help and the palette.
//
//   useActions([{ group: "Flame graph", title: "Flip: roots at the bottom", keys: ["f"], run: flip }]);
//
// in a view: they hold for as long as it is open. Keys: "f", "Shift+F", "Enter", "Ctrl+K", "[". A key of one letter is
// not taken while something is typed, nor if the settings say so. A view's keys go before the frame's.
import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { isTyping } from "./components/hooks";
import { shortcuts } from "./settings";

export interface Action {
    group: string;
    title: string;
    keys?: readonly string[];
    run: () => void;
    hidden?: boolean; // not in the palette: makes sense by its key only
}

type Actions = readonly Action[];
const sets = signal<readonly { actions: Actions }[]>([]); // one for each who has some, the newest first
export const allActions = (): Actions => sets.value.flatMap((set) => set.actions);

export function useActions(actions: Actions): void {
    // What is run is always the newest of that title, and not what has just come into its place; the list is put anew,
    // where it was, only if what it says changes.
    const now = useRef(actions);
    now.current = actions;
    const set = useRef<{ actions: Actions }>({ actions: [] }).current;
    useEffect(() => {
        sets.value = [set, ...sets.peek()];
        return () => void (sets.value = sets.peek().filter((one) => one !== set));
    }, []);
    const told = JSON.stringify(actions.map(({ group, title, keys, hidden }) => [group, title, keys, hidden]));
    useEffect(() => {
        const newest = ({ title }: Action) => now.current.find((one) => one.title === title);
        set.actions = actions.map((action): Action => ({ ...action, run: () => newest(action)?.run() }));
        sets.value = [...sets.peek()];
    }, [told]);
}

export function spellKey(event: KeyboardEvent): string {
    const named = event.key === " " ? "Space" : event.key.length === 1 ? event.key : event.key;
    const parts = [];
    if (event.ctrlKey || event.metaKey) parts.push("Ctrl");
    if (event.altKey) parts.push("Alt");
    // The letter itself says whether Shift was held; of other keys it does not.
    if (event.shiftKey && (event.key.length > 1 || /[a-zA-Z]/.test(event.key))) parts.push("Shift");
    parts.push(/^[a-z]$/i.test(named) && parts.length > 0 ? named.toUpperCase() : named);
    return parts.join("+");
}

export function takeKey(event: KeyboardEvent): void {
    if (event.defaultPrevented) return;
    const key = spellKey(event);
    const single = !/^(Ctrl|Alt)\+/.test(key) && key !== "Escape";
    if (single && (isTyping(event.target) || shortcuts.value === "off")) return;
    // A dialog has keys of its own, and what lies behind it has none.
    if (document.querySelector("dialog[open]") !== null) return;
    if (isTyping(event.target) && key === "Escape") return;
    // Enter and Space belong to the button or link that has the focus.
    if ((key === "Enter" || key === "Space") && event.target instanceof Element && event.target.closest("button, a, summary, [role=button]")) return;
    const action = allActions().find((one) => one.keys?.includes(key));
    if (action === undefined) return;
    event.preventDefault();
    action.run();
}
