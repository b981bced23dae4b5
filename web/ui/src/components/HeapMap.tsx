// SPDX-License-Identifier: MIT
// HeapMap.tsx: the map of the heap as a figure that scrolls: canvas, legend, a cell to be chosen.
//
//   <HeapMap model={model} chosen={0x55d0c3n} onChoose={(start) => ...} onOpen={(range) => ...} onZoom={(address, factor) => ...} />
//
// By keyboard: arrows walk through cells, Enter opens a cell's blocks, + and - zoom; what is under the cursor is told.
// The table twin is the view's own table of regions.
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { addressRange, CELL, cellAtPoint, cellCorner, cellRange, type CellPlace, type HeapModel, type HeapRegion, HEAD, hex, layoutHeap, moveCell, paintHeap, placeOf } from "../draw/heapmap";
import { fitCanvas } from "../draw/canvas";
import * as format from "../format";
import { shownTheme } from "../settings";
import { bytesText, shortModule } from "./Cells";
import { colourOf, heatColours } from "./Chart";
import { hasModifier, takeStep, useSize } from "./hooks";

interface HeapMapProps {
    model: HeapModel;
    chosen: bigint | null;
    onChoose: (address: bigint | null) => void;
    onOpen: (range: string) => void;
    onZoom: (address: bigint, factor: 4 | 0.25) => void;
    children?: ComponentChildren; // what can be done, beside the legend
}

const LEVELS = 8;
const PADDING = 12;

function regionTitle(region: HeapRegion): [string, string] {
    const size = Number(region.end - region.start);
    const name = region.name === "" ? "mapping" : region.name.startsWith("[") ? region.name.replace(/[[\]]/g, "") : shortModule(region.name);
    const use = region.live === undefined ? "" : `, ${format.percent(region.live, size)} in use`;
    const blocks = region.blocks === undefined ? "" : `, ${format.items(region.blocks, "block")}`;
    return [name, `${hex(region.start)} to ${hex(region.end)}, ${bytesText(size)}${use}${blocks}`];
}

/* "0x55d0 to 0x55e0: 35% in use" */
function cellText(model: HeapModel, at: CellPlace): string {
    const region = model.regions[at.strip];
    if (region === undefined) return "";
    const range = cellRange(model, region, at.cell);
    const level = region.cells[at.cell] ?? 0;
    return `${hex(range.start)} to ${hex(range.end)}: ${level === 0 ? "nothing in use" : level <= 2 ? "less than 1% in use" : `${Math.round((100 * level) / 255)}% in use`}`;
}

export function HeapMap({ model, chosen, onChoose, onOpen, onZoom, children }: HeapMapProps) {
    const { ref, width, height } = useSize<HTMLDivElement>();
    const canvas = useRef<HTMLCanvasElement>(null);
    const [scroll, setScroll] = useState(0);
    const [hover, setHover] = useState<CellPlace | null>(null);
    const [cursor, setCursor] = useState<CellPlace | null>(null);
    const layout = useMemo(() => layoutHeap(model, Math.max(1, width - 2 * PADDING - 14)), [model, width]);
    const chosenPlace = useMemo(() => (chosen === null ? null : placeOf(model, chosen)), [model, chosen]);

    useLayoutEffect(() => {
        if (canvas.current === null || width === 0 || height === 0) return;
        const ctx = fitCanvas(canvas.current, width, height);
        if (ctx === null) return;
        ctx.translate(PADDING, PADDING / 2);
        paintHeap(ctx, layout, scroll, height, {
            levels: heatColours(LEVELS), text: colourOf("--text"), muted: colourOf("--text-2"), outline: colourOf("--more"), cursor: colourOf("--text"),
            font: `12px ${colourOf("--font")}`,
        }, regionTitle, { chosen: chosenPlace, cursor: cursor ?? hover });
    }, [layout, scroll, width, height, chosenPlace, cursor, hover, shownTheme.value]);
    useEffect(() => {
        setCursor(null);
        setHover(null);
    }, [model]);
    // What is chosen by an address from elsewhere is brought into view.
    useEffect(() => {
        if (chosenPlace !== null && cursor === null) show(chosenPlace);
    }, [chosenPlace, layout]);

    const show = (place: CellPlace) => {
        const element = ref.current;
        if (element === null || height === 0) return;
        const { y } = cellCorner(layout, place);
        if (y - HEAD < element.scrollTop) element.scrollTop = Math.max(0, y - HEAD);
        else if (y + 2 * CELL + PADDING > element.scrollTop + height) element.scrollTop = y + 3 * CELL + PADDING - height;
    };
    const at = (event: MouseEvent): CellPlace | null => {
        const bounds = canvas.current?.getBoundingClientRect();
        return bounds === undefined ? null : cellAtPoint(layout, event.clientX - bounds.left - PADDING, event.clientY - bounds.top - PADDING / 2 + scroll);
    };
    const rangeOf = (place: CellPlace) => {
        const region = model.regions[place.strip];
        return region === undefined ? null : cellRange(model, region, place.cell);
    };
    const choose = (place: CellPlace | null) => onChoose(place === null ? null : (rangeOf(place)?.start ?? null));
    const key = (event: KeyboardEvent) => {
        const now = cursor ?? chosenPlace ?? { strip: 0, cell: 0 };
        const range = rangeOf(now);
        const far = event.shiftKey ? 8 : 1;
        const walk = (columns: number, rows: number) => {
            const to = cursor === null && chosenPlace === null ? now : moveCell(layout, now, columns, rows);
            setCursor(to);
            show(to);
        };
        if (!hasModifier(event)) takeStep(event, {
            ArrowLeft: () => walk(-far, 0), ArrowRight: () => walk(far, 0), ArrowUp: () => walk(0, -far), ArrowDown: () => walk(0, far),
            Enter: range !== null && (() => onOpen(addressRange(range))), " ": () => choose(now),
            "+": range !== null && (() => onZoom(range.start, 4)), "-": range !== null && (() => onZoom(range.start, 0.25)),
            Escape: chosen !== null && (() => choose(null)),
        });
    };
    const told = cursor ?? hover;
    return (
        <figure class="heap-map" aria-label="Map of the heap">
            <figcaption>
                <span class="chart-title">Addresses</span>
                <span class="heat-legend"><span>empty</span><span class="heat-ramp" aria-hidden="true" /><span>full</span></span>
                <span class="muted number">a square is {bytesText(model.step)}</span>
                <span class="chart-at number">{told === null ? "" : cellText(model, told)}</span>
                {children}
            </figcaption>
            <div ref={ref} class="heap-scroller" tabIndex={0} role="application" aria-roledescription="map of addresses"
                aria-label="Map of the heap: arrows walk through it, Enter shows the blocks that lie there, plus and minus zoom"
                onKeyDown={key} onBlur={() => setCursor(null)} onScroll={(event) => setScroll(event.currentTarget.scrollTop)}>
                <div class="heap-room" style={{ height: `${layout.height + PADDING}px` }} />
                <canvas ref={canvas} aria-hidden="true" style={{ transform: `translateY(${scroll}px)` }}
                    onPointerMove={(event) => setHover(at(event))} onPointerLeave={() => setHover(null)}
                    onClick={(event) => choose(at(event))} onDblClick={(event) => {
                        const place = at(event);
                        const range = place === null ? null : rangeOf(place);
                        if (range !== null) onOpen(addressRange(range));
                    }} />
                <span class="hidden" role="status">{cursor === null ? "" : cellText(model, cursor)}</span>
            </div>
        </figure>
    );
}
