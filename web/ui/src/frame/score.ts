// SPDX-License-Identifier: MIT
// score.ts: how well a name fits what was typed into the palette.

/* Letters in their order, the closer together the better; words' beginnings count more. -1: not found. */
export function score(text: string, typed: string): number {
    const all = text.toLowerCase();
    const whole = all.indexOf(typed);
    if (whole >= 0) return 1000 - whole - all.length / 100 + (whole === 0 || /\W/.test(all[whole - 1] ?? "") ? 200 : 0);
    let at = -1;
    let gaps = 0;
    for (const letter of typed) {
        const next = all.indexOf(letter, at + 1);
        if (next < 0) return -1;
        if (at >= 0) gaps += next - at - 1;
        at = next;
    }
    return 400 - gaps * 4 - all.length / 100;
}
