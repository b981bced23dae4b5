// SPDX-License-Identifier: MIT
// theme.ts: light or dark, as the settings or the system say.
import { computed, effect, signal } from "@preact/signals";
import { stir } from "../busy";
import { theme } from "../settings";

const dark = matchMedia("(prefers-color-scheme: dark)");
const systemDark = signal(dark.matches);
dark.addEventListener("change", () => (systemDark.value = dark.matches));

/* What is drawn on a canvas is drawn anew when this changes. */
export const shownTheme = computed<"light" | "dark">(() =>
    theme.value === "auto" ? (systemDark.value ? "dark" : "light") : theme.value,
);
effect(() => {
    document.documentElement.dataset["theme"] = shownTheme.value;
    stir(); // canvases are drawn anew
});
