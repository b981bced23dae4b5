// SPDX-License-Identifier: MIT
// query.ts: SQL asked of the source, by POST: the filters of the address hold for it, aborting ends it in the server, too.
import { useEffect, useRef, useState } from "preact/hooks";
import { type Problem, problemOf, transport } from "./api";
import { followJob, newJob, pathOf, type Progress, PROGRESS_AFTER_MS } from "./ask";
import { generationOf } from "./session";
import type { Answer, Table } from "./types";
import { sourceId } from "./url";

export interface QueryTable extends Table {
    plan?: string;
    truncated: boolean;
}
export type QueryAnswer = Answer<QueryTable>;

export async function runQuery(
    body: { sql: string; limit?: number; plan?: boolean }, signal: AbortSignal, onProgress?: (progress: Progress) => void,
): Promise<QueryAnswer> {
    const job = newJob();
    const follow = new AbortController();
    const stop = () => follow.abort();
    signal.addEventListener("abort", stop);
    const slow = onProgress === undefined ? undefined : setTimeout(() => followJob(sourceId.peek(), job, onProgress, follow.signal), PROGRESS_AFTER_MS);
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
            (error: unknown) => !abort.signal.aborted && setState({ data: undefined, error: problemOf(error) }),
        );
        return () => abort.abort();
    }, [key]);
    return state;
}
