// SPDX-License-Identifier: MIT
// query.ts: SQL asked of the source, by POST: the filters of the address hold for it, aborting ends it in the server, too.
import { useEffect, useRef, useState } from "preact/hooks";
import { Problem, transport } from "./api";
import { pathOf, type Progress } from "./ask";
import { generationOf } from "./session";
import type { Answer, Table } from "./types";
import { sourceId } from "./url";

export interface QueryTable extends Table {
    plan?: string;
    truncated: boolean;
}
export type QueryAnswer = Answer<QueryTable>;

let jobs = 0;

export async function runQuery(
    body: { sql: string; limit?: number; plan?: boolean }, signal: AbortSignal, onProgress?: (progress: Progress) => void,
): Promise<QueryAnswer> {
    const job = `q${Date.now().toString(36)}-${++jobs}`;
    const follow = new AbortController();
    const stop = () => follow.abort();
    signal.addEventListener("abort", stop);
    // What is answered at once needs no stream beside it.
    const slow = onProgress === undefined ? undefined : setTimeout(() => {
        transport().stream(`/r/${sourceId.peek()}/events?job=${job}`, "", (event) => {
            if (event.event === "progress") onProgress(event.data as Progress);
        }, follow.signal).catch(() => undefined);
    }, 150);
    try {
        return (await transport().post(pathOf("query", { job }, false, false), body, signal)) as QueryAnswer;
    } finally {
        clearTimeout(slow);
        stop();
        signal.removeEventListener("abort", stop);
    }
}

/* One question of a view: asked again when it, the filters or the program change. null: none. */
export function useQuery(sql: string | null, limit = 100_000): { data: QueryTable | undefined; error: Problem | undefined } {
    const [state, setState] = useState<{ data: QueryTable | undefined; error: Problem | undefined }>({ data: undefined, error: undefined });
    const key = sql === null ? null : `${generationOf(sourceId.value)} ${pathOf("query", {}, false, false)} ${sql}`;
    const last = useRef<string | null>(null);
    useEffect(() => {
        if (key === null || sql === null || key === last.current) return;
        const abort = new AbortController();
        runQuery({ sql, limit }, abort.signal).then(
            (answer) => {
                last.current = key;
                setState({ data: answer.data, error: undefined });
            },
            (error: unknown) => !abort.signal.aborted && setState({ data: undefined, error: error instanceof Problem ? error : new Problem(0, "Broken", String(error)) }),
        );
        return () => abort.abort();
    }, [key]);
    return state;
}
