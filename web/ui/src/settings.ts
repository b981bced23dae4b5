// SPDX-License-Identifier: MIT
// settings.ts: what a person prefers, kept in the browser: it is no part of an address.
import { computed, effect, signal } from "@preact/signals";
import { stir } from "./busy";

export type Theme = "auto" | "light" | "dark";
export type Units = "short" | "bytes"; // "1.2 MiB" or "1,258,291"

/* A browser may forbid it, or be full: then things are kept as long as the page lives. */
export function readKept(name: string): string | null {
    try {
        return localStorage.getItem(name);
    } catch {
        return null;
    }
}
export function keep(name: string, text: string): void {
    try {
        localStorage.setItem(name, text);
    } catch {
        // As above.
    }
}

function kept<T extends string>(name: string, usual: T) {
    const value = signal<T>((readKept(name) ?? usual) as T);
    effect(() => keep(name, value.value));
    return value;
}

export const theme = kept<Theme>("memtrace-theme", "auto");
export const units = kept<Units>("memtrace-units", "short");
export const fullNames = kept<"yes" | "no">("memtrace-full-names", "no");
export const shortcuts = kept<"on" | "off">("memtrace-shortcuts", "on"); // keys of a single letter
export const stripSeries = kept<string>("memtrace-series", "live,resident,rate"); // what the timeline shows, separated by commas

/* Light or dark, as the settings or the system say. What is drawn on a canvas is drawn anew when this changes. */
const systemDark = signal(false);
export const shownTheme = computed<"light" | "dark">(() => (theme.value === "auto" ? (systemDark.value ? "dark" : "light") : theme.value));
export function followTheme(): void {
    const dark = matchMedia("(prefers-color-scheme: dark)");
    systemDark.value = dark.matches;
    dark.addEventListener("change", () => (systemDark.value = dark.matches));
    effect(() => {
        document.documentElement.dataset["theme"] = shownTheme.value;
        stir();
    });
}
