// SPDX-License-Identifier: MIT
// format.ts: numbers for people, letter by letter as the commands spell them (analyze/rows/number.c).
//
// 64-bit numbers over 2^53 arrive as text: all of these take numbers and digits.

export type Quantity = number | string | bigint;
/* What is not known is no zero. */
export type Unknown = null | undefined;
const NONE = "–";

const UNITS = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
const number = (value: Quantity): number => (typeof value === "number" ? value : Number(value));

/* "12.3 MiB", "1.0 KiB", "27 B": the unit in which the rounded number has one to four digits before the point. */
export function bytes(value: Quantity | Unknown): string {
    if (value == null) return NONE;
    const size = number(value);
    if (size < 0) return "-" + bytes(-size);
    if (size < 1024) return `${Math.round(size)} B`;
    let scaled = size / 1024;
    let unit = 0;
    while (scaled >= 1023.95 && unit + 1 < UNITS.length) {
        scaled /= 1024;
        unit++;
    }
    return `${oneDigit(scaled)} ${UNITS[unit]}`;
}

/* "+1.0 KiB", "-27 B", "0 B" */
export function change(value: Quantity): string {
    const size = number(value);
    return size > 0 ? "+" + bytes(size) : bytes(size);
}

/* "12,903,424" */
export function count(value: Quantity | Unknown): string {
    if (value == null) return NONE;
    if (typeof value === "number" && !Number.isInteger(value)) value = Math.round(value);
    return String(value).replace(/\B(?=(\d{3})+$)/g, ",");
}

/* "1 block", "2,000 blocks", "3 processes" */
export function items(value: Quantity, one: string): string {
    const plural = one.endsWith("s") ? "es" : "s";
    return `${count(value)} ${one}${number(value) === 1 ? "" : plural}`;
}

/* "12.3%", "<0.1%"; "-" where whole is 0 */
export function percent(part: Quantity, whole: Quantity): string {
    const all = number(whole);
    if (all === 0) return "-";
    const share = (100 * number(part)) / all;
    if (share !== 0 && Math.abs(share) < 0.05) return share < 0 ? ">-0.1%" : "<0.1%";
    return `${oneDigit(share)}%`;
}

/* "0 ns", "1.5 s", "250.0 ms", "2 min 5 s", "3 h 10 min" */
export function duration(value: Quantity | Unknown): string {
    if (value == null) return NONE;
    const ns = number(value);
    if (ns < 0) return "-" + duration(-ns);
    const seconds = Math.floor(ns / 1e9);
    if (ns < 1e3) return `${Math.round(ns)} ns`;
    if (ns < 1e6) return `${oneDigit(ns / 1e3)} us`;
    if (ns < 1e9) return `${oneDigit(ns / 1e6)} ms`;
    if (seconds < 60) return `${oneDigit(ns / 1e9)} s`;
    if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
    return `${Math.floor(seconds / 3600)} h ${Math.floor(seconds / 60) % 60} min`;
}

/*
 * As the commands spell it: what is shorter than the recording's clock can tell is below that, and a profile knows only the
 * steps of a factor of 4 in which lifetimes lie, of which this is the upper end (the last one has none).
 */
const LAST_STEP_NS = 2 ** 50;
export function lifetime(ns: number, finest_ns: number | undefined): string {
    if (finest_ns === undefined) return `${ns >= LAST_STEP_NS ? ">" : "<"}${duration(ns)}`;
    return ns < finest_ns ? `<${duration(finest_ns)}` : duration(ns);
}

/* A value of a filter of times: "1.5s", "250ms": short, and read back by the server to the nanosecond. */
export function time(ns: number): string {
    const whole = Math.max(0, Math.round(ns));
    for (const [unit, size] of [["s", 1e9], ["ms", 1e6], ["us", 1e3]] as const) {
        if (whole >= size) return `${trimmed(whole, size)}${unit}`;
    }
    return whole === 0 ? "0s" : `${whole}ns`;
}

/* whole / size in full, without ending zeros: exact as text, where a double would round. */
function trimmed(whole: number, size: number): string {
    const digits = String(size).length - 1;
    const part = String(whole % size).padStart(digits, "0").replace(/0+$/, "");
    return String(Math.floor(whole / size)) + (part === "" ? "" : "." + part);
}

/*
 * One digit after the point, as C's "%.1f" rounds: the exact binary value, ties to even. toFixed() takes the exact
 * value, too, but ties upwards: 0.25 is a tie, and the only ones there are end in 25 or 75 hundredths.
 */
function oneDigit(value: number): string {
    const twentieths = value * 20;
    if (Number.isInteger(twentieths) && Math.abs(twentieths) % 2 === 1 && Number.isInteger(value * 4)) {
        const tenths = Math.floor(value * 10);
        return ((tenths % 2 === 0 ? tenths : tenths + 1) / 10).toFixed(1);
    }
    return value.toFixed(1);
}

/* "1.2 M", "340 k": a rate, of which only its size matters. */
export function roughly(value: number): string {
    const units = ["", " k", " M", " G"];
    let scaled = value;
    let unit = 0;
    while (Math.abs(scaled) >= 999.5 && unit + 1 < units.length) {
        scaled /= 1000;
        unit++;
    }
    return `${scaled >= 99.5 || unit === 0 ? Math.round(scaled) : scaled.toFixed(1)}${units[unit]}`;
}

/* 123456 -> "123,456"; real numbers with as many digits as tell something. */
export function real(value: Quantity): string {
    const given = number(value);
    if (Number.isInteger(given)) return count(value);
    const digits = Math.abs(given) >= 100 ? 0 : Math.abs(given) >= 1 ? 2 : 4;
    const [whole = "", part] = given.toFixed(digits).split(".");
    return count(whole) + (part === undefined ? "" : "." + part);
}
