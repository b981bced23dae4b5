// SPDX-License-Identifier: MIT
// hooks.ts: small hooks of the page, and what keys mean to the part that has the focus.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

/* true after so many milliseconds. */
export function useDelayed(ms: number): boolean {
    const [late, setLate] = useState(false);
    useEffect(() => {
        const timer = setTimeout(() => setLate(true), ms);
        return () => clearTimeout(timer);
    }, [ms]);
    return late;
}

/* What is found for `about`, which is looked for when nothing has been typed for so long. undefined: not yet, or nothing is looked for (null). */
export function useFound<T>(about: string | null, ms: number, look: (about: string) => Promise<T>): T | undefined {
    const [found, setFound] = useState<{ about: string; what: T }>();
    useEffect(() => {
        if (about === null) return;
        let wanted = true;
        const timer = setTimeout(() => void look(about).then((what) => wanted && setFound({ about, what }), () => undefined), ms);
        return () => {
            wanted = false;
            clearTimeout(timer);
        };
    }, [about]);
    return found !== undefined && found.about === about ? found.what : undefined;
}

/* The size of an element in CSS pixels, as it changes: for what is drawn on a canvas. */
export function useSize<E extends HTMLElement>() {
    const ref = useRef<E>(null);
    const [size, setSize] = useState({ width: 0, height: 0 });
    useLayoutEffect(() => {
        const element = ref.current;
        if (element === null) return;
        const measure = () => {
            const { clientWidth: width, clientHeight: height } = element;
            setSize((now) => (now.width === width && now.height === height ? now : { width, height }));
        };
        const watch = new ResizeObserver(measure);
        watch.observe(element);
        measure();
        return () => watch.disconnect();
    }, []);
    return { ref, ...size };
}

/* ---- Keys ---- */

/* Keys with these are the browser's, or the whole page's. */
export const hasModifier = (event: KeyboardEvent): boolean => event.ctrlKey || event.metaKey || event.altKey;

/* By key what it does here; what has none goes on to who is around. */
export type KeySteps = Record<string, (() => unknown) | false | null | undefined>;
export function takeStep(event: KeyboardEvent, steps: KeySteps): void {
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    step();
}

export function isTyping(target: EventTarget | null): boolean {
    if (!(target instanceof HTMLElement)) return false;
    return target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || target.shadowRoot !== null;
}
