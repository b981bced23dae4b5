// SPDX-License-Identifier: MIT
// Rail.tsx: the views, at the left. A view that this file has nothing for says so instead of being empty.
import { viewChange } from "../links";
import { source, wasLive } from "../session";
import type { Summary } from "../types";
import { href, place } from "../url";
import { VIEWS, type ViewEntry } from "../views";

/* Why a view has nothing to show. */
export function missing(view: ViewEntry, whole: Summary | undefined): string | undefined {
    if (whole === undefined) return undefined;
    if (SAVED && view.unsaved === true) return `A saved page has no single blocks and no other files. With them: memtrace serve ${source.value?.path ?? "FILE"}`;
    if (view.needs === "events" && whole.has["events"] === false) return "Needs a recording: a profile has no single blocks. Record with: memtrace record -- PROGRAM";
    if (view.needs === "live" && source.value !== undefined && !wasLive(source.value)) return "Needs a running program: memtrace serve PID";
    if (view.needs === "processes" && whole.has["processes"] === false) return "Only runs of several processes have this";
    return undefined;
}

export const viewHref = (id: string): string => href(viewChange(id));

export function Rail({ whole }: { whole: Summary | undefined }) {
    const shown = VIEWS.filter((view) => view.needs !== "processes" || whole?.has["processes"] === true);
    return (
        <nav class="rail" aria-label="Views">
            <ul>
                {shown.map((view) => {
                    const why = missing(view, whole);
                    return (
                        <li key={view.id}>
                            <a href={viewHref(view.id)} aria-current={view.id === place.value.view ? "page" : undefined} class={why === undefined ? "" : "dim"} title={why ?? view.about}>
                                <span class="rail-title">{view.title}</span>
                                {view.key !== undefined && <kbd aria-hidden="true">{view.key}</kbd>}
                            </a>
                        </li>
                    );
                })}
            </ul>
        </nav>
    );
}
