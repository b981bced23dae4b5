// SPDX-License-Identifier: MIT
// CommandBar.tsx: the view as a command, as SQL, as a link, as a file, as a budget.
import { useRef, useState } from "preact/hooks";
import { useActions } from "../actions";
import { ask, mainAnswer } from "../ask";
import { transport } from "../api";
import { Dialog } from "../components/Dialog";
import { Exact } from "../components/Exact";
import { useFound } from "../components/hooks";
import { Icon } from "../components/Icon";
import { source, wasLive } from "../session";
import type { Answer } from "../types";
import { changed, dragging, filterQuery, isDifference, isFile, metric, place, sourceId, spellPlace, spellQuery } from "../url";

interface Spelled {
    command: string;
    sql?: string | null;
}

/* What no command shows: a list of what can be opened, of what could be compared, a program that no longer runs. */
const isWithout = (): boolean => place.value.view === "files" || (place.value.view === "compare" && !isDifference.value) ||
    (place.value.view === "live" && source.value !== undefined && !wasLive(source.value));
const NO_COMMAND = "No single command shows this view";

/* What the view's main answer says; a view that asks nothing is asked of the server. */
function useSpelled(): Spelled | undefined {
    const told = mainAnswer.value;
    const address = spellPlace(changed(place.value, { set: { r: sourceId.value, chosen: null } }));
    const isAsked = told === undefined && !isWithout();
    // A view tells of its answer after a moment: it is not asked for what is just to come.
    const spelled = useFound(isAsked && !dragging.value ? address : null, 250, (view) => ask<Spelled>("/command", { view: view.replace(/^\//, "") }));
    return told !== undefined ? { command: told.command, sql: told.sql } : isAsked ? spelled : undefined;
}

/* The file by what is in it (f), not by its number here: so it works for a colleague who has a copy of it open. */
function linkHere(): string {
    const fingerprint = source.peek()?.fingerprint;
    if (isFile || fingerprint === undefined || fingerprint === "") return location.href;
    return location.origin + spellPlace(changed(place.peek(), { set: { r: null, f: fingerprint } }));
}

export function CommandBar() {
    const spelled = useSpelled();
    const [said, setSaid] = useState("");
    const [budget, setBudget] = useState<BudgetLine | undefined>();
    const silence = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
    const say = (text: string) => {
        setSaid(text);
        clearTimeout(silence.current); // it was for what was said before
        silence.current = setTimeout(() => setSaid(""), 2500);
    };
    const copy = (text: string | null | undefined, what: string) => {
        if (text == null || text === "") return;
        navigator.clipboard.writeText(text).then(() => say(`${what} copied`), () => say("The browser does not let the page copy"));
    };
    const sayError = (error: Error) => say(error.message);
    const save = () => {
        say("Saving …");
        const name = `memtrace-${(source.peek()?.name ?? "page").replace(/[^\w.-]+/g, "-")}.html`;
        const query = spellQuery(filterQuery.peek());
        transport().save(`/r/${sourceId.peek()}/export/html${query === "" ? "" : "?" + query}`, name).then(() => say(`Saved as ${name}`), sayError);
    };
    const makeBudget = () => void ask<Answer<BudgetLine>>("budget", { metric: metric.peek() }).then(({ data }) => setBudget(data), sayError);
    const hasNone = spelled?.command === "" || isWithout();
    const group = "This view";
    useActions([
        ...(spelled?.command ? [{ group, title: "Copy its command", keys: ["y"], run: () => copy(spelled.command, "Command") }] : []),
        ...(spelled?.sql ? [{ group, title: "Copy its SQL", keys: ["Shift+Y"], run: () => copy(spelled.sql, "SQL") }] : []),
        { group, title: "Copy a link to it", keys: ["l"], run: () => copy(linkHere(), "Link") },
        ...(isFile ? [] : [
            { group, title: "Save it as one HTML file", run: save },
            { group, title: "Make it a budget for memtrace check", run: makeBudget },
        ]),
    ]);
    return (
        <footer class="command-bar">
            <span class="prompt" aria-hidden="true">$</span>
            <code class="command" title={spelled?.command} tabIndex={0} role="textbox" aria-readonly="true" aria-label="The command that shows this view">{spelled?.command ?? ""}</code>
            {hasNone && <span class="muted no-command">{NO_COMMAND}</span>}
            <span role="status" class="said">{said}</span>
            <button type="button" class="small plain" disabled={!spelled?.command} title="Copy the command (y)" onClick={() => copy(spelled?.command, "Command")}><Icon name="copy" />Command</button>
            {spelled?.sql ? <button type="button" class="small plain" title="Copy the SQL (Shift Y)" onClick={() => copy(spelled.sql, "SQL")}><Icon name="copy" />SQL</button> : null}
            {!isFile && <button type="button" class="small plain" title="Copy a link to this view (l)" onClick={() => copy(linkHere(), "Link")}><Icon name="link" />Link</button>}
            {!isFile && <button type="button" class="small plain" title="Save as one HTML file" onClick={save}><Icon name="save" />HTML</button>}
            {!isFile && <button type="button" class="small plain" title="A line for memtrace check that holds today" onClick={makeBudget}><Icon name="budget" />Budget</button>}
            <Exact of={mainAnswer.value} />
            {budget !== undefined && <BudgetDialog budget={budget} onClose={() => setBudget(undefined)} onCopy={copy} />}
        </footer>
    );
}

interface BudgetLine {
    line: string;
    command: string;
}
function BudgetDialog({ budget, onClose, onCopy }: { budget: BudgetLine; onClose: () => void; onCopy: (text: string, what: string) => void }) {
    return (
        <Dialog title="A budget of this view" onClose={onClose}>
            <div class="dialog-text">
                <p>This line holds today. Put it into a file of budgets, and <code>memtrace check</code> fails the build when more is used.</p>
                <pre class="code-box" tabIndex={0}>{budget.line}</pre>
                <p>As a command:</p>
                <pre class="code-box" tabIndex={0}>{budget.command}</pre>
                <div class="toolbar">
                    <button type="button" class="primary" onClick={() => onCopy(budget.line, "Budget")}>Copy the line</button>
                    <button type="button" onClick={() => onCopy(budget.command, "Command")}>Copy the command</button>
                </div>
            </div>
        </Dialog>
    );
}
