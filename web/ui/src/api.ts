// SPDX-License-Identifier: MIT
// api.ts: who answers: the server (`memtrace serve`), or the data that a saved page has inside (saved/answers.ts).
//
// Nothing here knows the page. Views use useAnswer() (ask.ts) and useRows() (rows.ts), not this.
import { busyWith } from "./busy";
import { authorization } from "./token";

/* One line, as the command would say it. */
export class Problem extends Error {
    constructor(
        readonly status: number,
        readonly title: string,
        detail: string,
    ) {
        super(detail);
    }
}

/* Of what was thrown. */
export const problemOf = (error: unknown): Problem =>
    error instanceof Problem ? error : new Problem(0, "Broken", error instanceof Error ? error.message : String(error));

export interface StreamEvent {
    event: string;
    id: string;
    data: unknown;
}
export type Wire = (bytes: ArrayBuffer) => unknown; // reads application/vnd.memtrace.columns
export interface Transport {
    /* path: "/r/1/tree?metric=maximum". wire: the answer may come as columns. */
    get(path: string, signal: AbortSignal, wire?: Wire): Promise<unknown>;
    post(path: string, body: unknown, signal: AbortSignal): Promise<unknown>;
    /* Events, until the stream ends or is aborted. */
    stream(path: string, since: string, take: (event: StreamEvent) => void, signal: AbortSignal): Promise<void>;
    /* A file, as the browser's download. */
    save(path: string, name: string): Promise<void>;
}

async function request(path: string, init: RequestInit): Promise<Response> {
    const headers = new Headers(init.headers);
    headers.set("Authorization", authorization());
    let response: Response;
    try {
        response = await fetch("/api/v1" + path, { ...init, headers, cache: "no-store", credentials: "omit" });
    } catch (error) {
        if (init.signal?.aborted) throw error;
        throw new Problem(0, "No answer", "memtrace serve does not answer: it has ended, or the connection is gone");
    }
    if (!response.ok) throw await refusalOf(response);
    return response;
}

async function refusalOf(response: Response): Promise<Problem> {
    let told: { title?: string; detail?: string } = {};
    try {
        told = (await response.json()) as typeof told;
    } catch {
        // No JSON: the status has to do.
    }
    return new Problem(response.status, told.title ?? `Status ${response.status}`, told.detail ?? response.statusText);
}

export const server: Transport = {
    async get(path, signal, wire) {
        if (wire === undefined) return (await request(path, { signal })).json();
        const response = await request(path, { signal, headers: { Accept: "application/vnd.memtrace.columns, application/json" } });
        const isJson = response.headers.get("Content-Type")?.startsWith("application/json") === true;
        return isJson ? response.json() : wire(await response.arrayBuffer());
    },
    async post(path, body, signal) {
        const headers = { "Content-Type": "application/json" };
        return (await request(path, { method: "POST", signal, headers, body: JSON.stringify(body) })).json();
    },
    async stream(path, since, take, signal) {
        const headers: Record<string, string> = { Accept: "text/event-stream" };
        if (since !== "") headers["Last-Event-ID"] = since;
        const response = await request(path, { signal, headers });
        if (response.body === null) return;
        const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
        const parser = new EventParser(take);
        for (;;) {
            const { value, done } = await reader.read();
            if (done) return;
            parser.push(value);
        }
    },
    async save(path, name) {
        saveBlob(await (await request(path, {})).blob(), name);
    },
};

export function saveBlob(blob: Blob, name: string): void {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    // The browser has opened it by then; kept, it would hold the bytes as long as the page lives.
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/* Server-sent events, line by line as they come in. */
export class EventParser {
    private rest = "";
    private event = "";
    private id = "";
    private data: string[] = [];
    constructor(private readonly take: (event: StreamEvent) => void) {}

    push(text: string): void {
        const lines = (this.rest + text).split(/\r?\n/);
        this.rest = lines.pop() ?? "";
        for (const line of lines) this.line(line);
    }

    private line(line: string): void {
        if (line === "") return this.end();
        const [, field = "", value = ""] = /^([^:]*):? ?(.*)$/.exec(line) ?? [];
        if (field === "event") this.event = value;
        else if (field === "id") this.id = value;
        else if (field === "data") this.data.push(value);
    }

    private end(): void {
        if (this.data.length !== 0) {
            let data: unknown = this.data.join("\n");
            try {
                data = JSON.parse(data as string);
            } catch {
                // Text as it is.
            }
            this.take({ event: this.event || "message", id: this.id, data });
        }
        this.event = "";
        this.data = [];
    }
}

/* Streams last as long as the page: they are nothing that it waits for. */
const counted = (of: Transport): Transport => ({
    get: (path, signal, wire) => busyWith(of.get(path, signal, wire)),
    post: (path, body, signal) => busyWith(of.post(path, body, signal)),
    stream: (path, since, take, signal) => of.stream(path, since, take, signal),
    save: (path, name) => busyWith(of.save(path, name)),
});

let current = counted(server);
export const transport = (): Transport => current;
export function useTransport(other: Transport): void {
    current = counted(other);
}
