// SPDX-License-Identifier: MIT
// Dialog.tsx: a dialog of the browser (it keeps the focus in, Escape closes it), and a popover under a button.
//
//   {open && <Dialog title="Keys" onClose={() => setOpen(false)}>...</Dialog>}
//   <Popover label="Settings" button={<Icon name="settings" />}>{() => ...}</Popover>
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";

interface DialogProps {
    title: string;
    class?: string;
    bare?: boolean; // without the line of the title: it is told to screen readers only
    onClose: () => void;
    children: ComponentChildren;
}
export function Dialog({ title, class: more, bare, onClose, children }: DialogProps) {
    const ref = useRef<HTMLDialogElement>(null);
    const id = useId();
    useEffect(() => {
        const element = ref.current;
        const before = document.activeElement;
        element?.showModal();
        return () => {
            element?.close();
            if (before instanceof HTMLElement) before.focus();
        };
    }, []);
    return (
        <dialog ref={ref} class={`dialog ${more ?? ""}`} aria-labelledby={id} onCancel={(event) => {
            event.preventDefault();
            onClose();
        }} onClick={(event) => event.target === ref.current && onClose()}>
            <div class="dialog-box">
                <div class={bare ? "hidden" : "dialog-head"}>
                    <h2 id={id}>{title}</h2>
                    {!bare && <button type="button" class="small" onClick={onClose}>Close</button>}
                </div>
                {children}
            </div>
        </dialog>
    );
}

interface PopoverProps {
    label: string;
    button: ComponentChildren;
    class?: string;
    buttonClass?: string;
    up?: boolean;
    children: () => ComponentChildren;
}
export function Popover({ label, button, class: more, buttonClass = "", up, children }: PopoverProps) {
    const [open, setOpen] = useState(false);
    const box = useRef<HTMLSpanElement>(null);
    const id = useId();
    useEffect(() => {
        if (!open) return;
        const outside = (event: Event) => {
            if (event.target instanceof Node && box.current?.contains(event.target) === false) setOpen(false);
        };
        window.addEventListener("pointerdown", outside);
        window.addEventListener("focusin", outside);
        return () => {
            window.removeEventListener("pointerdown", outside);
            window.removeEventListener("focusin", outside);
        };
    }, [open]);
    const close = () => {
        setOpen(false);
        box.current?.querySelector("button")?.focus();
    };
    return (
        <span ref={box} class="popover-box" onKeyDown={(event) => {
            if (event.key !== "Escape" || !open) return;
            event.stopPropagation();
            close();
        }}>
            <button type="button" class={buttonClass} aria-label={label} title={label} aria-expanded={open} aria-controls={open ? id : undefined}
                onClick={() => setOpen(!open)}>{button}</button>
            {open && <div id={id} class={`popover${up ? " up" : ""} ${more ?? ""}`} role="group" aria-label={label}>{children()}</div>}
        </span>
    );
}
