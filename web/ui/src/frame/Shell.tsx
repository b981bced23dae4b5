// SPDX-License-Identifier: MIT
// Shell.tsx: what stands around each view: header, timeline, filters, views, details, command; and who takes keys and
// clicks on links.
import { Component, type ComponentChildren, type ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { takeKey, useActions } from "../actions";
import { ask } from "../ask";
import { busyWith } from "../busy";
import { choose, chosen } from "../chosen";
import { Empty, ProgressBar } from "../components/States";
import { openSandwich, openSource, viewChange } from "../links";
import { linkedFileMissing, session, sessionProblem, source, wasLive } from "../session";
import { useMarks, useWhole } from "../summaries";
import type { Answer, Frame as FrameInfo, Source, Summary } from "../types";
import { changeTo, go, href, isFile, metric, param, place } from "../url";
import { VIEWS, viewNamed, type ViewEntry } from "../views";
import { CommandBar } from "./CommandBar";
import { FilterBar } from "./Filters";
import { Header } from "./Header";
import { Help, helpOpen } from "./Help";
import { Inspector } from "./Inspector";
import { Palette, paletteOpen } from "./Palette";
import { Strip } from "./Strip";

export function Shell() {
    useEffect(() => {
        const click = (event: MouseEvent) => takeClick(event);
        window.addEventListener("keydown", takeKey);
        document.addEventListener("click", click);
        return () => {
            window.removeEventListener("keydown", takeKey);
            document.removeEventListener("click", click);
        };
    }, []);
    const problem = sessionProblem.value;
    if (problem !== null) return <NoSession text={problem.message} status={problem.status} />;
    if (session.value === null) return null;
    const now = source.value;
    if (now === undefined) return <Frame whole={undefined}><ViewOf id="files" whole={undefined} /></Frame>;
    if (now.state !== "open") return <Frame whole={undefined}>{place.value.view === "files" ? <ViewOf id="files" whole={undefined} /> : <Opening source={now} />}</Frame>;
    return <Opened key={now.id} />;
}

function Opened() {
    const whole = useWhole();
    const marks = useMarks(whole.data?.has["marks"]);
    useFrameActions(whole.data);
    return (
        <Frame whole={whole.data} strip={<Strip whole={whole.data} marks={marks} />} filters={<FilterBar whole={whole.data} view={viewNamed(place.value.view)} />}>
            {whole.state === "failed" ? <Empty>{whole.error?.message}</Empty> : <ViewOf id={place.value.view} whole={whole.data} />}
        </Frame>
    );
}

interface FrameProps {
    whole: Summary | undefined;
    strip?: ComponentChildren;
    filters?: ComponentChildren;
    children: ComponentChildren;
}
function Frame({ whole, strip, filters, children }: FrameProps) {
    const entry = viewNamed(place.value.view);
    useEffect(() => {
        document.title = `${entry?.title ?? "MemTrace"} – ${whole?.program.replace(/.*\//, "") ?? source.value?.name ?? "MemTrace"}`;
    }, [entry, whole]);
    const hasDetails = filters !== undefined && chosen.value !== null;
    return (
        <div class={`shell${hasDetails ? " with-inspector" : ""}`}>
            <a class="skip" href="#view" data-plain onClick={(event) => {
                event.preventDefault();
                document.getElementById("view")?.focus();
            }}>Skip to the view</a>
            <Header whole={whole} />
            {strip}
            {filters}
            <Rail whole={whole} />
            <main id="view" class="view" tabIndex={-1} aria-label={entry?.title}>
                {linkedFileMissing.value && (
                    <p class="notice" role="alert">
                        The link is about a file that is not open here. This is another one.
                        <button type="button" class="small" onClick={() => (linkedFileMissing.value = false)}>Close</button>
                    </p>
                )}
                {/* The summary says what it is about by itself. */}
                {entry !== undefined && (entry.id !== "summary" || filters === undefined) && <h1 class="hidden">{entry.title}</h1>}
                {children}
            </main>
            {hasDetails && <Inspector />}
            {filters !== undefined && <CommandBar />}
            <Palette />
            <Help />
        </div>
    );
}

/* ---- The views, at the left ---- */

/* Why a view has nothing to show. */
function missing(view: ViewEntry, whole: Summary | undefined): string | undefined {
    if (whole === undefined) return undefined;
    if (SAVED && view.unsaved === true) return `A saved page has no single blocks and no other files. With them: memtrace serve ${source.value?.path ?? "FILE"}`;
    if (view.needs === "events" && whole.has["events"] === false) return "Needs a recording: a profile has no single blocks. Record with: memtrace record -- PROGRAM";
    if (view.needs === "live" && source.value !== undefined && !wasLive(source.value)) return "Needs a running program: memtrace serve PID";
    if (view.needs === "processes" && whole.has["processes"] === false) return "Only runs of several processes have this";
    return undefined;
}

function Rail({ whole }: { whole: Summary | undefined }) {
    const shown = VIEWS.filter((view) => view.needs !== "processes" || whole?.has["processes"] === true);
    return (
        <nav class="rail" aria-label="Views">
            <ul>
                {shown.map((view) => {
                    const why = missing(view, whole);
                    return (
                        <li key={view.id}>
                            <a href={href(viewChange(view.id))} aria-current={view.id === place.value.view ? "page" : undefined} class={why === undefined ? "" : "dim"} title={why ?? view.about}>
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

/* ---- A view ---- */

function ViewOf({ id, whole }: { id: string; whole: Summary | undefined }) {
    const entry = viewNamed(id);
    if (entry === undefined) return <Empty>There is no view of this name.</Empty>;
    const why = missing(entry, whole);
    if (why !== undefined) return <Empty><h2>{entry.title}</h2><p>{why}</p></Empty>;
    return <Guard key={id}><ViewBox entry={entry} /></Guard>;
}

const loaded = new Map<string, ComponentType>();

function ViewBox({ entry }: { entry: ViewEntry }) {
    const [View, setView] = useState(() => loaded.get(entry.id));
    const [problem, setProblem] = useState<string>();
    useEffect(() => {
        if (View !== undefined) return;
        let wanted = true;
        busyWith(entry.load()).then((module) => {
            loaded.set(entry.id, module.default);
            if (wanted) setView(() => module.default);
        }, () => wanted && setProblem("memtrace serve does not answer: it has ended, or the connection is gone. Start it again, and open the address that it says."));
        return () => void (wanted = false);
    }, [entry]);
    if (problem !== undefined) return <Empty>{problem}</Empty>;
    return View === undefined ? null : <View />;
}

/* A fault in a view leaves the frame standing, and is told. */
class Guard extends Component<{ children: ComponentChildren }, { fault: string | undefined }> {
    override state = { fault: undefined as string | undefined };
    static override getDerivedStateFromError = (error: unknown) => ({ fault: error instanceof Error ? error.message : String(error) });
    override componentDidCatch(error: unknown) {
        console.error(error);
    }
    render() {
        if (this.state.fault === undefined) return this.props.children;
        return (
            <div class="state failed" role="alert">
                <p>This view has a fault: {this.state.fault}</p>
                <button type="button" onClick={() => this.setState({ fault: undefined })}>Try again</button>
            </div>
        );
    }
}

/* ---- Before there is anything to see ---- */

function Opening({ source: now }: { source: Source }) {
    if (now.state === "failed") return <div class="state failed" role="alert"><h2>{now.name}</h2><p>{now.error ?? "It cannot be opened."}</p></div>;
    return (
        <div class="state opening" role="status">
            <h2>{now.name}</h2>
            <p>{now.what ?? "Opening"}</p>
            <ProgressBar of={{ done: now.done ?? 0, total: now.total ?? 0 }} />
        </div>
    );
}

function NoSession({ text, status }: { text: string; status: number }) {
    return (
        <div class="state failed no-session" role="alert">
            <h1>MemTrace</h1>
            <p>{text}</p>
            {status === 401 && <p class="muted">Each start of memtrace serve has an address of its own: open the one that it printed last.</p>}
            <button type="button" onClick={() => window.location.reload()}>Try again</button>
        </div>
    );
}

/* ---- Keys and links ---- */

function useFrameActions(whole: Summary | undefined): void {
    const views = VIEWS.filter((view) => whole === undefined || missing(view, whole) === undefined);
    const chosenFunction = () => (chosen.peek()?.kind === "function" ? chosen.peek()?.id : undefined) ?? place.peek().query.get("focus") ?? undefined;
    useActions([
        ...views.map((view) => ({ group: "Views", title: view.title, keys: view.key === undefined ? [] : [view.key], run: () => go(viewChange(view.id)) })),
        { group: "Views", title: "Callers and callees of the chosen function", keys: ["s"], run: () => {
            const name = chosenFunction();
            if (name === undefined) go(viewChange("sandwich"));
            else openSandwich(name);
        } },
        { group: "Views", title: "Source of the chosen function", keys: ["o"], run: () => {
            void sourceOf(chosen.peek()?.frame, chosenFunction()).then((frame) => (frame === undefined ? go(viewChange("source")) : openSource(frame)));
        } },
        { group: "Everywhere", title: "Search actions, views, functions and files", keys: ["Ctrl+K"], hidden: true, run: () => (paletteOpen.value = true) },
        { group: "Everywhere", title: "Help", keys: ["?"], run: () => (helpOpen.value = true) },
        { group: "Everywhere", title: "Back", keys: ["Backspace"], run: () => history.back() },
        { group: "Everywhere", title: "Close the details", keys: ["Escape"], hidden: true, run: () => param("chosen") !== null && choose(null) },
    ]);
}

/* Where the chosen function stands: the view may have said it with the choice; from a link it has to be asked. */
async function sourceOf(frame: FrameInfo | undefined, name: string | undefined): Promise<FrameInfo | undefined> {
    if (frame?.file !== undefined || name === undefined) return frame;
    try {
        const { data } = await ask<Answer<{ focus: FrameInfo }>>("callers", { focus: name, metric: metric.peek(), depth: 1 });
        return data.focus.file === undefined ? undefined : data.focus;
    } catch {
        return undefined;
    }
}

/* Plain clicks on the page's own links change the address without loading the page anew. */
function takeClick(event: MouseEvent): void {
    if (event.defaultPrevented || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    const link = event.target instanceof Element ? event.target.closest("a[href]") : null;
    if (!(link instanceof HTMLAnchorElement) || link.target !== "" || link.download !== "" || link.dataset["plain"] !== undefined) return;
    const address = link.getAttribute("href") ?? "";
    if (!address.startsWith(isFile ? "#/" : "/")) return;
    event.preventDefault();
    go({ ...changeTo(address), only: true });
}
