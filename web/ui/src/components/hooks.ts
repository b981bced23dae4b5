// SPDX-License-Identifier: MIT
// hooks.ts: small hooks of the page.
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

/* The size of an element in CSS pixels, as it changes: for what is drawn on a canvas. */
export function useSize<E extends HTMLElement>() {
    const ref = useRef<E>(null);
    const [size, setSize] = useState({ width: 0, height: 0 });
    useLayoutEffect(() => {
        const element = ref.current;
        if (element === null) return;
        const measure = () => setSize({ width: element.clientWidth, height: element.clientHeight });
        const watch = new ResizeObserver(measure);
        watch.observe(element);
        measure();
        return () => watch.disconnect();
    }, []);
    return { ref, ...size };
}

/* A listener of keys for as long as the component lives. Keys typed into fields are theirs. */
export function useKeys(take: (event: KeyboardEvent) => void): void {
    const last = useRef(take);
    last.current = take;
    useEffect(() => {
        const listen = (event: KeyboardEvent) => {
            if (!isTyping(event.target)) last.current(event);
        };
        window.addEventListener("keydown", listen);
        return () => window.removeEventListener("keydown", listen);
    }, []);
}

export function isTyping(target: EventTarget | null): boolean {
    if (!(target instanceof HTMLElement)) return false;
    return target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || target.shadowRoot !== null;
}
