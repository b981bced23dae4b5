// SPDX-License-Identifier: MIT
// Exact.tsx: what a number is worth: exact, bound, estimate or snapped, and where it came from, explained on demand.
import type { Answer, Exactness, Via } from "../types";
import * as format from "../format";
import { metricUnit } from "../summaries";
import { metric } from "../url";
import { Popover } from "./Dialog";

const WORTH: Record<Exactness, string> = {
    exact: "These figures are exact: each allocation and each free was counted.",
    bound: "Several threads allocated at the same time, and each keeps its own count, so their combined maximum is known only within a bound. The true maximum differs from this figure by no more than is shown here.",
    estimate: "The recording is sampled: these figures are estimates, with the standard error shown.",
    snapped: "While you drag, the edges of the window lie at slices of the recording. Let go, and the figures become exact.",
};
const SOURCE: Record<Via, string> = {
    model: "Read from the model in memory",
    slices: "Summed from slices of time that were counted when the file was indexed",
    pass: "Read from all events of the recording",
    cache: "Kept from an earlier, equal question",
};

/* "the true maximum is within 41.0 KiB of it" */
export function worthText(of: Pick<Answer<unknown>, "exact" | "error">, spell: (value: number) => string): string {
    if (of.exact === "bound") return of.error ? `the true maximum is within ${spell(of.error)} of it` : "the maximum may be higher";
    return `${of.exact}${of.error ? ` ± ${spell(of.error)}` : ""}`;
}

export function Exact({ of }: { of: Answer<unknown> | undefined }) {
    if (of === undefined) return null;
    const spell = metricUnit(metric.value) === "bytes" ? format.bytes : format.count;
    const worth = worthText(of, spell);
    return (
        <Popover label={`Figures: ${worth}: explain`} buttonClass={`exact plain small ${of.exact}`} up class="exact-about"
            button={<><span class="exact-dot" aria-hidden="true" />{worth}</>}>
            {() => (
                <>
                    <p>{WORTH[of.exact]}</p>
                    <p class="muted">{SOURCE[of.via]}, in {of.ms < 1 ? "less than 1 ms" : format.duration(of.ms * 1e6)}.</p>
                    {of.notes?.map((note) => <p key={note}>{note}</p>)}
                </>
            )}
        </Popover>
    );
}
