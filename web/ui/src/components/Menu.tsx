// SPDX-License-Identifier: MIT
// Menu.tsx: a menu of what can be done with something, at a place on the screen.
//
//   {menu !== null && <Menu label="main" at={menu} items={[{ label: "Zoom", key: "Enter", run: () => ... }]} onClose={...} />}
//
// Arrow keys walk, Enter does, Escape and a click elsewhere close it; the focus goes back to where it was.
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";

export interface MenuItem {
    label: string;
    key?: string; // the key that does the same without the menu
    run: () => void;
}
interface MenuProps {
    label: string;
    at: { x: number; y: number };
    items: readonly MenuItem[];
    onClose: () => void;
}

export function Menu({ label, at, items, onClose }: MenuProps) {
    const box = useRef<HTMLDivElement>(null);
    const close = useRef(onClose);
    close.current = onClose;
    useLayoutEffect(() => {
        const before = document.activeElement;
        const element = box.current;
        if (element === null) return;
        const { width, height } = element.getBoundingClientRect();
        element.style.left = `${Math.max(4, Math.min(at.x, innerWidth - width - 4))}px`;
        element.style.top = `${Math.max(4, Math.min(at.y, innerHeight - height - 4))}px`;
        element.querySelector("button")?.focus();
        return () => {
            if (before instanceof HTMLElement && before.isConnected) before.focus({ preventScroll: true });
        };
    }, [at]);
    useEffect(() => {
        const outside = (event: PointerEvent) => {
            if (!(event.target instanceof Node) || box.current?.contains(event.target) !== true) close.current();
        };
        window.addEventListener("pointerdown", outside, true);
        return () => window.removeEventListener("pointerdown", outside, true);
    }, []);
    const key = (event: KeyboardEvent) => {
        const buttons = [...(box.current?.querySelectorAll("button") ?? [])];
        const now = buttons.indexOf(document.activeElement as HTMLButtonElement);
        const last = buttons.length - 1;
        const to = { ArrowDown: now === last ? 0 : now + 1, ArrowUp: now <= 0 ? last : now - 1, Home: 0, End: last }[event.key];
        if (to !== undefined) buttons[to]?.focus();
        else if (event.key === "Escape" || event.key === "Tab") onClose();
        else if (event.key === "Enter" || event.key === " ") return;
        event.preventDefault();
        event.stopPropagation();
    };
    return (
        <div ref={box} class="menu" role="menu" aria-label={label} onKeyDown={key}>
            {items.map((item) => (
                <button key={item.label} type="button" role="menuitem" tabIndex={-1} onClick={() => {
                    onClose();
                    item.run();
                }}>
                    <span>{item.label}</span>
                    {item.key !== undefined && <kbd>{item.key}</kbd>}
                </button>
            ))}
        </div>
    );
}
