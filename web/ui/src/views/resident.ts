// SPDX-License-Identifier: MIT
// resident.ts: what was resident when the program held most, taken apart: what was asked for, MemTrace's own, the rest.
import type { Summary } from "../types";

export interface ResidentParts {
    asked: number;
    resident: number;
    own: number;
    rest: number; // code, stacks, the allocator
    untouched: number; // of what was asked for: at least
    isThen: boolean; // measured while that much was held; else the most at any time
}

type Told = Pick<NonNullable<Summary["resident"]>, "at_peak_bytes" | "peak_bytes" | "own_bytes"> | null;

/* resident = asked - untouched + own + rest. null: nothing is known. */
export function residentParts(asked: number, told: Told): ResidentParts | null {
    const then = told?.at_peak_bytes ?? 0;
    // It was measured now and then: a figure from before the maximum may be below what was held then.
    const isThen = then >= asked && then > 0;
    const resident = isThen ? then : (told?.peak_bytes ?? 0);
    if (resident === 0 || asked === 0) return null;
    const beyond = Math.max(0, resident - asked);
    // MemTrace's own tables grow with the heap: what they have now bounds what they had then.
    const own = Math.min(told?.own_bytes ?? 0, beyond);
    return { asked, resident, own, rest: beyond - own, untouched: Math.max(0, asked - resident), isThen };
}
