// SPDX-License-Identifier: MIT
// Split.tsx: two boxes beside or above each other, with a handle between them.
//
//   <Split name="flame" direction="row" size={320} end>{left}{right}</Split>
//
// size: of the first box in pixels, or with `end` of the second; kept in the browser under `name`. The handle is moved by
// the pointer or, focused, by arrow keys.
import { toChildArray, type ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import { keep, readKept } from "../settings";
import { takeStep } from "./hooks";

interface SplitProps {
    name: string;
    direction: "row" | "column";
    size: number;
    least?: number;
    end?: boolean;
    label?: string;
    children: ComponentChildren;
}

export function Split({ name, direction, size, least = 120, end = false, label = "Resize", children }: SplitProps) {
    const [first, second] = toChildArray(children);
    const [kept, setKept] = useState(() => Number(readKept(`memtrace-split-${name}`)) || size);
    const box = useRef<HTMLDivElement>(null);
    const from = useRef<{ at: number; size: number } | null>(null);
    const set = (wanted: number) => {
        const room = direction === "row" ? box.current?.clientWidth : box.current?.clientHeight;
        const now = Math.round(Math.max(least, Math.min(wanted, (room ?? 2000) - least)));
        setKept(now);
        keep(`memtrace-split-${name}`, String(now));
    };
    const at = (event: PointerEvent) => (direction === "row" ? event.clientX : event.clientY);
    const key = (event: KeyboardEvent) => {
        const [back, forward] = direction === "row" ? ["ArrowLeft", "ArrowRight"] as const : ["ArrowUp", "ArrowDown"] as const;
        const by = end ? -16 : 16;
        takeStep(event, { [back]: () => set(kept - by), [forward]: () => set(kept + by) });
    };
    const sized = { flex: `0 0 ${kept}px` };
    return (
        <div ref={box} class={`split ${direction}`}>
            <div class={end ? "split-rest" : "split-sized"} style={end ? undefined : sized}>{first}</div>
            <div class="split-handle" role="separator" tabIndex={0} aria-label={label} aria-valuenow={kept} aria-valuemin={least}
                aria-orientation={direction === "row" ? "vertical" : "horizontal"} onKeyDown={key}
                onPointerDown={(event) => {
                    event.currentTarget.setPointerCapture(event.pointerId);
                    from.current = { at: at(event), size: kept };
                }}
                onPointerMove={(event) => {
                    if (from.current !== null) set(from.current.size + (at(event) - from.current.at) * (end ? -1 : 1));
                }}
                onPointerUp={() => (from.current = null)} />
            <div class={end ? "split-sized" : "split-rest"} style={end ? sized : undefined}>{second}</div>
        </div>
    );
}
