// SPDX-License-Identifier: MIT
// elide.ts: names of functions in little room. Called by the flame graph and by tables.

/** Whether the "<" at this place opens template arguments, not a part of operator<, <<, <= or <=>. */
function opensArguments(name: string, at: number): boolean {
    const before = name.slice(Math.max(at - 9, 0), at);
    return at > 0 && !/(^|[^\w$])operator(<|-)?$/.test(before) && name[at - 1] !== " ";
}

/** "std::vector<int, std::allocator<int>>::push_back" -> "std::vector<…>::push_back" */
export function withoutArguments(name: string): string {
    if (!name.includes("<")) return name;
    let out = "", depth = 0;
    for (let i = 0; i < name.length; i++) {
        const letter = name[i]!;
        if (letter === "<" && (depth > 0 || opensArguments(name, i))) out += depth++ === 0 ? "<…>" : "";
        else if (letter === ">" && depth > 0 && name[i - 1] !== "-") depth--;
        else if (depth === 0) out += letter;
    }
    return depth === 0 ? out : name; // not what it seemed to be
}

/** "ns::type<…>::name(int)" -> "name(int)"; what stands in parentheses or angles is not looked at. */
export function lastPart(name: string): string {
    let depth = 0;
    for (let i = name.length - 1; i > 1; i--) {
        const letter = name[i]!;
        if (letter === ")" || letter === ">") depth++;
        else if ((letter === "(" || letter === "<") && depth > 0) depth--;
        else if (depth === 0 && letter === ":" && name[i - 1] === ":") return name.slice(i + 1);
    }
    return name;
}

/** "python3.11+0x53ad86", a place without a name -> "+0x53ad86" */
function withoutModule(name: string): string {
    return /^[^+\s]+(\+0x[0-9a-f]+)$/.exec(name)?.[1] ?? name;
}

/** Forms of a name, the longest first, each shorter than the one before. */
export function formsOf(name: string): string[] {
    const forms = [name];
    for (const form of [withoutArguments(name), lastPart(withoutArguments(name)), withoutModule(name)]) {
        if (form.length < forms[forms.length - 1]!.length) forms.push(form);
    }
    return forms;
}

/** Measures text by its letters: one measurement a letter, not one a text. */
export class Ruler {
    private readonly ascii = new Float32Array(128);
    private readonly other = new Map<string, number>();

    constructor(private readonly measure: (text: string) => number) {
        for (let i = 32; i < 127; i++) this.ascii[i] = measure(String.fromCharCode(i));
    }

    width(text: string): number {
        let sum = 0;
        for (let i = 0; i < text.length; i++) sum += this.letter(text, i);
        return sum;
    }

    private letter(text: string, at: number): number {
        const code = text.charCodeAt(at);
        if (code < 128) return this.ascii[code]!;
        const letter = text[at]!;
        let width = this.other.get(letter);
        if (width === undefined) {
            width = this.measure(letter);
            this.other.set(letter, width);
        }
        return width;
    }

    /** The longest form that fits, else the shortest one cut off with "…"; "" where not even three letters fit. */
    fit(forms: readonly string[], room: number): string {
        for (const form of forms) {
            if (this.width(form) <= room) return form;
        }
        const shortest = forms[forms.length - 1]!;
        let left = room - this.letter("…", 0);
        let end = 0;
        while (end < shortest.length && left >= this.letter(shortest, end)) {
            left -= this.letter(shortest, end);
            end++;
        }
        return end < 3 ? "" : shortest.slice(0, end) + "…";
    }
}
