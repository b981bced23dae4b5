// SPDX-License-Identifier: MIT
// filterText.ts: a filter as it is typed: "size:1K..", "--size=1K..", "size 1K..", "leaked".
import { filterNamed, type Filter } from "../filters";

export function splitFilter(text: string): { filter: Filter; value: string } | undefined {
    const [, name = "", value = ""] = /^-{0,2}([a-z-]+)\s*[:= ]?\s*(.*)$/s.exec(text.trim()) ?? [];
    const filter = filterNamed(name);
    return filter === undefined ? undefined : { filter, value };
}
