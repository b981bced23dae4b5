// SPDX-License-Identifier: MIT
// flame.ts: a flame graph on a canvas: scrolling, zooming, choosing, by pointer and by keyboard, and for screen
// readers as a tree of which one item is there at a time. Called by the views flame and sandwich.
//
// Zoom and the chosen call belong to the caller: hooks say what a person asked for, set...() says what holds.

import type { CallTree } from "./calltree";
import { fitCanvas } from "./canvas";
import { Boxes, boxAt, type FlameWindow, layBoxes } from "./flamelayout";
import { type FlameMarks, type FlameModel, FlamePainter, ROW } from "./flamepaint";

const LEAST = 0.7; // pixels
const ZOOM_MS = 180;
const MAP_WIDTH = 64;

export interface FlameHooks {
    zoom(node: number): void;
    choose(node: number): void;
    /** -1: the pointer has left. */
    hover(node: number): void;
    menu(node: number, x: number, y: number): void;
    /** For screen readers: all about a call in one line. */
    describe(node: number): string;
}

interface Place {
    left: number;
    width: number;
    /** Pixels out of sight between the root and the edge it lies at: the same for icicles and flames. */
    scroll: number;
}

function make<K extends "div" | "canvas">(kind: K, name: string, attributes: Record<string, string | number>): HTMLElementTagNameMap[K] {
    const element = document.createElement(kind);
    element.className = name;
    for (const [attribute, value] of Object.entries(attributes)) element.setAttribute(attribute, String(value));
    return element;
}

export class FlameGraph {
    private readonly scroller = make("div", "flame-scroller", { role: "tree" });
    private readonly room = make("div", "flame-room", { role: "presentation" });
    private readonly canvas = make("canvas", "flame-canvas", { "aria-hidden": "true" });
    private readonly map = make("canvas", "flame-map", { "aria-hidden": "true" });
    private readonly mapPicture = document.createElement("canvas"); // the map without its window
    private readonly painter: FlamePainter;
    private readonly boxes = new Boxes();
    private readonly mapBoxes = new Boxes();
    private readonly observer: ResizeObserver;
    private readonly still = matchMedia("(prefers-reduced-motion: reduce)");
    private readonly gone = new AbortController();
    private item = document.createElement("div");
    private model: FlameModel | null = null;
    private marks: FlameMarks = { chosen: 0, hover: -1, zoom: 0, hit: null, focused: false };
    private upward = false;
    private laid = false;
    private rows = 1;
    private width = 0;
    private height = 0;
    private place: Place = { left: 0, width: 0, scroll: 0 };
    private animation: { from: Place; to: Place; since: number } | null = null;
    private frame = 0;
    /** What scroller.scrollTop is: reading that while drawing would lay out the whole page each time. */
    private top = 0;

    constructor(host: HTMLElement, private readonly hooks: FlameHooks, label: string) {
        this.scroller.setAttribute("aria-label", label);
        this.room.append(this.canvas);
        this.scroller.append(this.room);
        host.append(this.scroller, this.map);
        this.painter = new FlamePainter(host);
        this.observer = new ResizeObserver(() => this.resize());
        this.observer.observe(this.scroller);
        this.listen();
        this.watchRatio();
        this.replaceItem(false);
    }

    destroy(): void {
        this.gone.abort();
        this.observer.disconnect();
        cancelAnimationFrame(this.frame);
        this.scroller.remove();
        this.map.remove();
    }

    // ---- What holds ----

    setModel(model: FlameModel, zoom: number, chosen: number): void {
        this.model = model;
        this.painter.setModel(model);
        this.marks = { ...this.marks, zoom, chosen, hover: -1 };
        this.animation = null;
        this.settle();
        this.replaceItem(this.hasFocus());
    }

    setHits(hit: Uint8Array | null): void {
        this.marks.hit = hit;
        this.redrawAll();
    }

    /** Up: callers below, as flames; else callers on top, as icicles. */
    setUpward(upward: boolean): void {
        if (this.upward !== upward) {
            this.upward = upward;
            this.settle();
        }
    }

    setZoom(node: number): void {
        if (this.model === null || node === this.marks.zoom) return;
        this.marks.zoom = node;
        const from = this.place;
        this.measure();
        const to = this.target();
        if (this.still.matches) {
            this.arrive(to);
            return;
        }
        this.animation = { from, to, since: performance.now() };
        this.request();
    }

    setChosen(node: number): void {
        if (this.model === null || node === this.marks.chosen) return;
        this.marks.chosen = node;
        this.replaceItem(this.hasFocus());
        this.showRow(node);
        this.request();
    }

    /** After a change of theme. */
    restyle(): void {
        this.painter.restyle();
        this.redrawAll();
    }

    private hasFocus(): boolean {
        return this.scroller.contains(document.activeElement);
    }

    focus(): void {
        this.item.focus({ preventScroll: true });
    }

    // ---- Where things are ----

    private target(): Place {
        const { tree } = this.model!;
        const zoom = this.marks.zoom;
        const row = Math.max(tree.depth[zoom]! - 3, 0); // some callers stay in sight
        return { left: tree.left[zoom]!, width: tree.weight[zoom]!, scroll: row * ROW };
    }

    private windowAt(place: Place, pixels: number, rows: number): FlameWindow {
        return { left: place.left, width: place.width, pixels, least: LEAST, rows };
    }

    private contentHeight(): number {
        return Math.max(this.rows * ROW, this.height);
    }

    /** How deep what is seen is, once it stands still: as high the room is. */
    private measure(): void {
        const { tree } = this.model!;
        const zoom = this.marks.zoom;
        const place = { left: tree.left[zoom]!, width: tree.weight[zoom]!, scroll: 0 };
        layBoxes(tree, this.windowAt(place, this.width, Infinity), this.mapBoxes);
        this.rows = Math.max(this.mapBoxes.rows, 1);
        this.room.style.height = this.rows * ROW + "px";
    }

    /** After a change of what is drawn or of the room for it: the reader's place stays. */
    private settle(): void {
        if (this.model === null || this.width === 0) return;
        this.measure();
        const to = this.target();
        this.arrive(this.laid ? { ...to, scroll: this.place.scroll } : to);
        this.laid = true;
    }

    private scrollTo(scroll: number): void {
        this.moveTo(this.upward ? this.contentHeight() - this.height - scroll : scroll);
    }

    /** As far as the room goes. Setting scrollTop lays out the page as well: not where it stays. */
    private moveTo(top: number): void {
        const to = Math.min(Math.max(top, 0), this.contentHeight() - this.height);
        if (to !== this.top) {
            this.top = to;
            this.scroller.scrollTop = to;
        }
    }

    private scrolled(): void {
        this.top = this.scroller.scrollTop;
        if (this.animation === null) {
            this.place.scroll = this.upward ? this.contentHeight() - this.height - this.top : this.top;
        }
        this.request();
    }

    private arrive(place: Place): void {
        this.animation = null;
        this.place = place;
        this.scrollTo(place.scroll);
        this.drawMap();
        this.request();
    }

    private resize(): void {
        this.width = this.scroller.clientWidth;
        this.height = this.scroller.clientHeight;
        fitCanvas(this.canvas, this.width, this.height);
        fitCanvas(this.map, MAP_WIDTH, this.height);
        fitCanvas(this.mapPicture, MAP_WIDTH, this.height);
        this.settle();
        this.draw(performance.now()); // now: a canvas that was resized is empty
    }

    /** Another screen may have other pixels. */
    private watchRatio(): void {
        matchMedia(`(resolution: ${devicePixelRatio}dppx)`).addEventListener("change", () => {
            this.resize();
            this.watchRatio();
        }, { once: true, signal: this.gone.signal });
    }

    private yOf(row: number): number {
        const y = this.upward ? this.contentHeight() - (row + 1) * ROW : row * ROW;
        return y - this.top;
    }

    private rowAt(y: number): number {
        const at = y + this.top;
        return Math.floor((this.upward ? this.contentHeight() - at : at) / ROW);
    }

    // ---- Painting ----

    private request(): void {
        this.frame ||= requestAnimationFrame((now) => this.draw(now));
    }

    private redrawAll(): void {
        if (this.model !== null) {
            this.drawMap();
            this.request();
        }
    }

    private step(now: number): void {
        if (this.animation === null) return;
        const { from, to, since } = this.animation;
        const share = Math.min(Math.max(now - since, 0) / ZOOM_MS, 1);
        if (share === 1) {
            this.arrive(to);
            return;
        }
        // By proportion, so that zooming in and out look alike.
        const at = 1 - (1 - share) ** 3;
        const width = from.width * (to.width / from.width) ** at;
        const grown = from.width === to.width ? at : (width - from.width) / (to.width - from.width);
        const scroll = from.scroll + (to.scroll - from.scroll) * at;
        this.place = { left: from.left + (to.left - from.left) * grown, width, scroll };
        this.scrollTo(scroll);
    }

    private draw(now: number): void {
        this.frame = 0;
        this.step(now);
        const context = this.canvas.getContext("2d")!;
        context.clearRect(0, 0, this.width, this.height);
        if (this.model === null || this.width === 0) return;
        const [from, to] = this.visibleRows();
        layBoxes(this.model.tree, this.windowAt(this.place, this.width, to), this.boxes);
        const rows = Math.min(to, this.boxes.rows);
        if (from < rows) this.painter.paint(context, this.boxes, from, rows, (row) => this.yOf(row), this.marks);
        this.drawMapWindow();
        if (this.animation !== null) this.request();
    }

    private visibleRows(): [number, number] {
        const a = this.rowAt(0), b = this.rowAt(this.height);
        return [Math.max(Math.min(a, b), 0), Math.max(a, b) + 1];
    }

    private needsMap(): boolean {
        return this.rows * ROW > 1.25 * this.height;
    }

    private drawMap(): void {
        const shown = this.needsMap();
        this.map.hidden = !shown;
        if (!shown || this.model === null) return;
        const context = this.mapPicture.getContext("2d")!;
        const scale = this.height / this.contentHeight();
        layBoxes(this.model.tree, this.windowAt(this.target(), MAP_WIDTH, Infinity), this.mapBoxes);
        context.clearRect(0, 0, MAP_WIDTH, this.height);
        this.painter.paintMap(context, this.mapBoxes,
            (row) => (this.yOf(row) + this.top) * scale, ROW * scale, this.marks);
        this.drawMapWindow();
    }

    private drawMapWindow(): void {
        if (this.map.hidden || this.model === null) return;
        const context = this.map.getContext("2d")!;
        const scale = this.height / this.contentHeight();
        context.clearRect(0, 0, MAP_WIDTH, this.height);
        context.drawImage(this.mapPicture, 0, 0, MAP_WIDTH, this.height);
        context.fillStyle = this.painter.veil;
        const top = this.top * scale, bottom = top + this.height * scale;
        context.fillRect(0, 0, MAP_WIDTH, top);
        context.fillRect(0, bottom, MAP_WIDTH, this.height - bottom);
    }

    // ---- Pointer ----

    /** The call under the pointer; -1: none. A strip of narrow calls stands for their caller. */
    private callAt(event: MouseEvent): number {
        const area = this.canvas.getBoundingClientRect();
        const found = boxAt(this.boxes, this.rowAt(event.clientY - area.top), event.clientX - area.left);
        const node = found < 0 ? -1 : this.boxes.node[found]!;
        return found >= 0 && node < 0 ? -1 - node : node;
    }

    private listen(): void {
        this.scroller.addEventListener("scroll", () => this.scrolled(), { passive: true });
        this.canvas.addEventListener("pointermove", (event) => this.setHover(this.callAt(event)));
        this.canvas.addEventListener("pointerleave", () => this.setHover(-1));
        this.canvas.addEventListener("mousedown", (event) => {
            event.preventDefault(); // else the focus would go to what is around the graph
            this.focus();
        });
        this.canvas.addEventListener("click", (event) => this.click(event));
        this.canvas.addEventListener("dblclick", (event) => {
            const node = this.callAt(event);
            if (node >= 0) this.hooks.zoom(node);
        });
        this.canvas.addEventListener("contextmenu", (event) => {
            const node = this.callAt(event);
            if (node > 0) {
                event.preventDefault();
                this.hooks.choose(node);
                this.hooks.menu(node, event.clientX, event.clientY);
            }
        });
        this.scroller.addEventListener("keydown", (event) => this.keydown(event));
        this.scroller.addEventListener("focusin", () => this.setFocused(true));
        this.scroller.addEventListener("focusout", () => this.setFocused(false));
        const drag = (event: PointerEvent): void => {
            if (event.buttons & 1) {
                const share = (event.clientY - this.map.getBoundingClientRect().top) / this.height;
                this.moveTo(share * this.contentHeight() - this.height / 2);
            }
        };
        this.map.addEventListener("pointerdown", (event) => {
            this.map.setPointerCapture(event.pointerId);
            drag(event);
        });
        this.map.addEventListener("pointermove", drag);
    }

    private setFocused(focused: boolean): void {
        this.marks.focused = focused;
        this.request();
    }

    private setHover(node: number): void {
        if (node !== this.marks.hover) {
            this.marks.hover = node;
            this.canvas.style.cursor = node < 0 ? "default" : "pointer";
            this.hooks.hover(node);
            this.request();
        }
    }

    /** One click chooses; on a caller of what is zoomed it goes back there. */
    private click(event: MouseEvent): void {
        const node = this.callAt(event);
        if (node < 0) return;
        this.hooks.choose(node);
        if (this.model!.tree.depth[node]! < this.model!.tree.depth[this.marks.zoom]!) this.hooks.zoom(node);
    }

    // ---- Keyboard ----

    private keydown(event: KeyboardEvent): void {
        if (this.model === null || event.ctrlKey || event.metaKey || event.altKey) return;
        const node = this.marks.chosen;
        const next = this.neighbour(event.key, node);
        if (next >= 0) {
            this.walk(next);
        } else if (event.key === "Enter" && !event.shiftKey) {
            this.hooks.zoom(node === this.marks.zoom ? Math.max(this.model.tree.parent[node]!, 0) : node);
        } else if (node > 0 && (event.key === "ContextMenu" || (event.key === "F10" && event.shiftKey))) {
            this.openMenu(node);
        } else {
            return;
        }
        event.preventDefault();
        event.stopPropagation();
    }

    /** Below the call, where it is on the screen. */
    private openMenu(node: number): void {
        const area = this.canvas.getBoundingClientRect();
        const row = this.model!.tree.depth[node]!;
        const from = this.boxes.row[row] ?? 0, to = this.boxes.row[row + 1] ?? 0;
        const box = this.boxes.node.subarray(from, to).indexOf(node);
        const x = box < 0 ? 0 : this.boxes.x[from + box]!;
        this.hooks.menu(node, area.left + x + 8, area.top + this.yOf(row) + ROW);
    }

    /** -1: the key leads nowhere from here. */
    private neighbour(key: string, node: number): number {
        const { tree } = this.model!;
        const into = this.upward ? "ArrowUp" : "ArrowDown", out = this.upward ? "ArrowDown" : "ArrowUp";
        const parent = tree.parent[node]!;
        switch (key) {
            case into: return tree.first[node]! < tree.first[node + 1]! ? tree.first[node]! : node;
            case out: return Math.max(parent, 0);
            case "ArrowRight": return this.isOnRow(node + 1, tree.depth[node]!) ? node + 1 : node;
            case "ArrowLeft": return this.isOnRow(node - 1, tree.depth[node]!) ? node - 1 : node;
            case "Home": return parent < 0 ? node : tree.first[parent]!;
            case "End": return parent < 0 ? node : tree.first[parent + 1]! - 1;
            default: return -1;
        }
    }

    /** Whether the node is of this depth, and within what is zoomed. */
    private isOnRow(node: number, depth: number): boolean {
        const { tree } = this.model!;
        const zoom = this.marks.zoom;
        return node > 0 && node < tree.size && tree.depth[node] === depth && tree.weight[node]! > 0
            && tree.left[node]! >= tree.left[zoom]! && tree.left[node]! < tree.left[zoom]! + tree.weight[zoom]!;
    }

    /** Chooses a call; one that is too narrow to be seen is zoomed to by its caller. */
    walk(node: number): void {
        if (this.model === null) return;
        const { tree } = this.model;
        this.hooks.choose(node);
        const zoom = this.marks.zoom;
        if (tree.weight[node]! / tree.weight[zoom]! * this.width < 3 && tree.parent[node]! > 0) {
            this.hooks.zoom(tree.parent[node]!);
        } else if (tree.depth[node]! < tree.depth[zoom]!) {
            this.hooks.zoom(node);
        }
    }

    private showRow(node: number): void {
        const row = this.model!.tree.depth[node]!;
        const y = this.yOf(row);
        if (y < 0) this.moveTo(this.top + y);
        else if (y + ROW > this.height) this.moveTo(this.top + y + ROW - this.height);
    }

    // ---- Screen readers ----

    /** A new element each time: readers announce an element that gets the focus, not one that changes under it. */
    private replaceItem(focused: boolean): void {
        const item = this.itemFor(this.model?.tree, this.marks.chosen);
        if (this.item.isConnected) this.item.replaceWith(item);
        else this.scroller.append(item);
        this.item = item;
        if (focused) this.focus();
    }

    private itemFor(tree: CallTree | undefined, node: number): HTMLDivElement {
        if (tree === undefined) return make("div", "flame-item", { role: "treeitem", tabindex: 0 });
        const parent = tree.parent[node]!;
        const from = parent < 0 ? 0 : tree.first[parent]!;
        const item = make("div", "flame-item", {
            role: "treeitem", tabindex: 0, "aria-selected": "true", "aria-level": tree.depth[node]! + 1,
            "aria-setsize": parent < 0 ? 1 : tree.first[parent + 1]! - from, "aria-posinset": node - from + 1,
            ...(tree.first[node]! < tree.first[node + 1]! ? { "aria-expanded": "true" } : {}),
        });
        item.textContent = this.hooks.describe(node);
        return item;
    }
}
