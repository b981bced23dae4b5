// SPDX-License-Identifier: MIT
// found.ts: what the server has opened and what it could open: files of the folders that were named, running and killed
// programs. Looked at again now and then, for as long as a view shows it.
import { useEffect, useReducer, useState } from "preact/hooks";
import { transport } from "../api";
import { openSource } from "../session";
import type { Found, Source } from "../types";
import { go } from "../url";

export interface Sources {
    opened: Source[];
    found: Found[];
}
const AGAIN_MS = 3000;

export function useSources(): { data: Sources | undefined; error: string | undefined; again: () => void } {
    const [data, setData] = useState<Sources | undefined>();
    const [error, setError] = useState<string | undefined>();
    const [turn, again] = useReducer((n: number) => n + 1, 0);
    useEffect(() => {
        const abort = new AbortController();
        const look = () => transport().get("/sources", abort.signal).then((sources) => {
            setData(sources as Sources);
            setError(undefined);
        }, (problem: Error) => abort.signal.aborted || setError(problem.message));
        void look();
        // A hidden tab asks nothing.
        const timer = setInterval(() => document.hidden || void look(), AGAIN_MS);
        return () => {
            clearInterval(timer);
            abort.abort();
        };
    }, [turn]);
    return { data, error, again: () => again(undefined) };
}

/* A program by its name and number, as the server calls it when it is open. */
export const foundText = (one: Found): string => (one.pid === undefined ? one.name : `${one.name} (${one.pid})`);

/* What a program is that has not left a file in its place. */
export const programText = (one: Found): string => (one.running === true ? "running" : one.ended === true ? "ended, its profile could not be written" : "killed");

/* Opens what was found, and goes there. */
export async function openFound(one: Found): Promise<void> {
    const opened = await openSource(one.running === true && one.pid !== undefined ? { pid: one.pid } : { path: one.path });
    go({ view: "summary", only: true, set: { r: String(opened.id) } });
}
