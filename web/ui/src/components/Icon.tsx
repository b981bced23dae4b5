// SPDX-License-Identifier: MIT
// Icon.tsx: drawings of buttons. They say nothing to screen readers: the button has a text (IconButton's label).
//
//   <IconButton icon="copy" label="Copy the command" onClick={...} />
import type { ButtonHTMLAttributes } from "preact";

const PATHS = {
    close: "M4 4l8 8M12 4l-8 8",
    copy: "M5.5 5.5h7v8h-7zM3.5 10.5v-8h7",
    search: "M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9zM10.5 10.5l3.5 3.5",
    settings: "M2 4.5h6M11 4.5h3M2 11.5h3M8 11.5h6M9.5 3v3M6.5 10v3",
    help: "M5.5 6a2.5 2.5 0 1 1 3.6 2.2c-.8.4-1.1.9-1.1 1.8M8 12.8v.2",
    more: "M3.5 8h.01M8 8h.01M12.5 8h.01",
    right: "M6 4l4 4-4 4",
    link: "M6.5 9.5l3-3M7.5 4.5l1-1a2.8 2.8 0 0 1 4 4l-1 1M8.5 11.5l-1 1a2.8 2.8 0 0 1-4-4l1-1",
    save: "M8 2.5v8M5 8l3 3 3-3M3 13.5h10",
    budget: "M2.5 12.5a5.5 5.5 0 1 1 11 0M8 12l2.5-4",
    clock: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 4.5V8l2.2 1.5",
    warning: "M8 2.5l6 11H2zM8 6.5v3.2M8 11.5v.3",
    table: "M2.5 3.5h11v9h-11zM2.5 6.5h11M2.5 9.5h11M6.5 6.5v6",
    pause: "M5.5 3.5v9M10.5 3.5v9",
    play: "M5 3.5l7 4.5-7 4.5z",
} as const;
type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
    return (
        <svg class="icon-image" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
            <path d={PATHS[name]} />
        </svg>
    );
}

interface IconButtonProps extends Omit<ButtonHTMLAttributes<HTMLButtonElement>, "label" | "icon"> {
    icon: IconName;
    label: string;
    small?: boolean;
}
export function IconButton({ icon, label, small, class: more, ...rest }: IconButtonProps) {
    return (
        <button type="button" class={`icon plain${small ? " small" : ""} ${more ?? ""}`} aria-label={label} title={label} {...rest}>
            <Icon name={icon} />
        </button>
    );
}
