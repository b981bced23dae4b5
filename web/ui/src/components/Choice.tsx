// SPDX-License-Identifier: MIT
// Choice.tsx: one of a few, as buttons beside each other.
//
//   <Choice label="Direction" value="down" options={[["down", "Top-down"], ["up", "Bottom-up", "b"]]} onChange={(value) => ...} />

interface ChoiceProps<T extends string> {
    label: string;
    value: T;
    options: readonly (readonly [T, string, string?])[]; // value, text, what it does
    onChange: (value: T) => void;
}

export function Choice<T extends string>({ label, value, options, onChange }: ChoiceProps<T>) {
    return (
        <span class="segments" role="group" aria-label={label}>
            {options.map(([one, text, about]) => (
                <button key={one} type="button" aria-pressed={one === value} title={about} onClick={() => onChange(one)}>{text}</button>
            ))}
        </span>
    );
}
