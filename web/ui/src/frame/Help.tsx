// SPDX-License-Identifier: MIT
// Help.tsx: the keys, and what words and colours mean.
import { signal } from "@preact/signals";
import { allActions } from "../actions";
import { Dialog } from "../components/Dialog";
import { session } from "../session";
import { METRICS } from "../summaries";
import { isFile } from "../url";
import { VIEWS } from "../views";

export const helpOpen = signal(false);
export const keyText = (key: string): string => key.replace(/Arrow(?=[A-Z])/, "").replace(/\+/g, " ");

/** In this order, after what only the open view has. */
const GROUPS = ["Views", "This view", "Timeline", "Everywhere", "Filters", "Tables", "Charts"];

export function Help() {
    if (!helpOpen.value) return null;
    const groups = new Map<string, [string, string][]>();
    const add = (group: string, title: string, keys: readonly string[] | undefined) => {
        if (keys !== undefined) groups.set(group, [...(groups.get(group) ?? []), [title, keys.map(keyText).join(", ")]]);
    };
    for (const view of VIEWS) {
        const keys = [view.key, view.letter].filter((key) => key !== undefined);
        add("Views", view.title, keys.length > 0 ? keys : undefined);
    }
    for (const action of allActions()) if (action.group !== "Views") add(action.group, action.title, action.keys);
    add("Timeline", "Window, from the focused edge", ["Left", "Right", "Home", "End"]);
    add("Timeline", "A second window, to compare with", ["Alt drag"]);
    add("Tables", "Go through rows and cells", ["Arrow keys"]);
    add("Tables", "Open the row", ["Enter"]);
    add("Tables", "Copy the row", ["Ctrl C"]);
    add("Charts", "Go along; show the table", ["Left", "Right", "t"]);
    const sorted = [...groups].sort(([one], [other]) => GROUPS.indexOf(one) - GROUPS.indexOf(other));
    return (
        <Dialog title="Help" class="wide" onClose={() => (helpOpen.value = false)}>
            <div class="dialog-scroll tall help" tabIndex={0} role="region" aria-label="Help">
                <div class="help-keys">
                    {sorted.map(([group, lines]) => (
                        <section key={group}>
                            <h3>{group}</h3>
                            <dl>{lines.map(([title, keys]) => <div key={title}><dt>{title}</dt><dd><kbd>{keys}</kbd></dd></div>)}</dl>
                        </section>
                    ))}
                </div>
                <section>
                    <h3>What is measured</h3>
                    <dl class="help-words">
                        {METRICS.map((one) => <div key={one.id}><dt>{one.title}</dt><dd>{one.about}.</dd></div>)}
                        <div><dt>Exact, estimate, snapped, at most</dt><dd>What figures are worth stands at the bottom right; a click explains it.</dd></div>
                    </dl>
                </section>
                <section>
                    <h3>Colours of names</h3>
                    <p class="legend"><span class="legend-item"><span class="swatch own" />own code</span><span class="legend-item"><span class="swatch library" />libraries</span><span class="legend-item"><span class="swatch system" />the system</span></p>
                </section>
                <p class="muted">MemTrace {session.value?.version}. Everything stays on this machine.{!isFile && <> <a href="/NOTICE.txt" data-plain target="_blank" rel="noreferrer">Libraries and their licences</a></>}</p>
            </div>
        </Dialog>
    );
}
