// SPDX-License-Identifier: MIT
// boot.ts: what runs before the page is there: it asks what is open, has the page fetched meanwhile, and while a large
// file is being read shows how far that is. Small and without libraries, so that this is on screen at once.
//
// The page (start.ts) takes the answer and the place on screen over: globalThis.memtraceBoot.
import type { Boot, Session, Source } from "./types";
import { authorization, takeToken } from "./token";

const AGAIN_MS = 100;
const PATIENCE_MS = 50; // for the answer, before the page is fetched
const root = document.getElementById("page");
let isOver = false;

/* undefined: whatever is wrong, the page asks again and says it. */
async function ask(): Promise<Session | undefined> {
    try {
        const response = await fetch("/api/v1/session", { headers: { Authorization: authorization() }, cache: "no-store", credentials: "omit" });
        return response.ok ? ((await response.json()) as Session) : undefined;
    } catch {
        return undefined;
    }
}

/* As settings.ts does. */
function showTheme(): void {
    const chosen = localStorage.getItem("memtrace-theme") ?? "auto";
    const dark = chosen === "auto" ? matchMedia("(prefers-color-scheme: dark)").matches : chosen === "dark";
    document.documentElement.dataset["theme"] = dark ? "dark" : "light";
}

const make = (kind: string, name: string, ...children: (Node | string)[]): HTMLElement => {
    const element = document.createElement(kind);
    element.className = name;
    element.append(...children);
    return element;
};

/* What Opening of frame/Shell.tsx shows. */
function show({ name, what, done = 0, total = 0 }: Source): void {
    const bar = document.createElement("progress");
    bar.setAttribute("aria-label", "Progress");
    if (total > 0) {
        bar.max = total;
        bar.value = done;
    }
    const share = make("span", "number", total > 0 ? `${((100 * done) / total).toFixed(1)}%` : "");
    const state = make("div", "state opening", make("h2", "", name), make("p", "", what ?? "Opening"), make("span", "progress", bar, share));
    state.setAttribute("role", "status");
    root?.replaceChildren(make("div", "shell", make("main", "view", state)));
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const painted = (): Promise<void> => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));

/* The source that the address is about, while it is being opened. */
function openingOf(session: Session | undefined): Source | undefined {
    const wanted = new URLSearchParams(location.search).get("r") ?? "1";
    return session?.sources.find(({ id, state }) => String(id) === wanted && state === "opening");
}

async function follow(session: Session | undefined): Promise<void> {
    for (let source = openingOf(session); source !== undefined && !isOver; source = openingOf(await ask())) {
        show(source);
        await pause(AGAIN_MS);
    }
}

/* The page's parts, all at once: each names the next ones only when it is there. */
function fetchPage(): void {
    for (const part of document.querySelectorAll<HTMLLinkElement>("link[rel=part]")) {
        const link = document.createElement("link");
        link.rel = "modulepreload";
        link.href = part.href;
        document.head.append(link);
    }
    const page = document.querySelector<HTMLLinkElement>("link[rel=page]");
    if (page !== null) void import(page.href);
}

takeToken();
showTheme();
const session = ask();
const boot: Boot = {
    session,
    end() {
        isOver = true;
        root?.replaceChildren();
    },
};
Object.assign(globalThis, { memtraceBoot: boot });
void session.then(follow);
// What is shown first is on screen first: reading the file takes the machine as well.
const isShown = session.then((told) => (openingOf(told) === undefined ? undefined : painted()));
void Promise.race([isShown, pause(PATIENCE_MS)]).then(fetchPage);
