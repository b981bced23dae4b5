// SPDX-License-Identifier: MIT
// Details.tsx: what the inspector's pages are made of: figures with their names, and the frames of a path.
import { choose, type Figure } from "../chosen";
import * as format from "../format";
import { sourceHref } from "../links";
import type { Frame } from "../types";
import { FrameText, placeText } from "./Cells";
import { spellKind } from "./Chart";

export function Figures({ of }: { of: readonly Figure[] | undefined }) {
    if (of === undefined || of.length === 0) return null;
    return (
        <dl class="inspector-figures">
            {of.map((one) => (
                <div key={one.label}>
                    <dt>{one.label}</dt>
                    <dd class="number" title={one.kind === "bytes" && one.value !== null ? `${format.count(one.value)} bytes` : undefined}>
                        {typeof one.value === "number" ? spellKind(one.kind, one.value) : (one.value ?? "–")}
                        {one.of !== undefined && one.of > 0 && one.value !== null && <span class="muted"> {format.percent(one.value, one.of)}</span>}
                    </dd>
                </div>
            ))}
        </dl>
    );
}

export function PathFrames({ frames }: { frames: readonly Frame[] }) {
    return (
        <ol class="path-frames">
            {frames.map((frame, index) => (
                <li key={index}>
                    <button type="button" class="plain" onClick={() => choose({ kind: "function", id: frame.function, frame })}><FrameText of={frame} place={false} /></button>
                    {frame.file === undefined ? <span class="place">{placeText(frame)}</span> : <a class="place" href={sourceHref(frame)}>{placeText(frame)}</a>}
                </li>
            ))}
        </ol>
    );
}
