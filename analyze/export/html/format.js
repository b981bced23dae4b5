// SPDX-License-Identifier: MIT
// format.js: numbers for people, as `memtrace report` spells them, and elements.

function formatBytes(bytes) {
    const units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if (Math.abs(bytes) < 1024) {
        return bytes + " B";
    }
    let value = bytes / 1024;
    let unit = 0;
    while (Math.abs(value) >= 1023.95 && unit + 1 < units.length) {
        value /= 1024;
        unit++;
    }
    return value.toFixed(1) + " " + units[unit];
}

function formatCount(count) {
    return String(count).replace(/\B(?=(\d{3})+$)/g, ",");
}

function formatPercent(part, whole) {
    if (whole === 0) {
        return "-";
    }
    const percent = 100 * part / whole;
    return part !== 0 && percent < 0.05 ? "<0.1%" : percent.toFixed(1) + "%";
}

function formatDuration(ns) {
    const seconds = Math.floor(ns / 1e9);
    if (ns < 1e6) {
        return (ns / 1e3).toFixed(1) + " us";
    }
    if (ns < 1e9) {
        return (ns / 1e6).toFixed(1) + " ms";
    }
    if (seconds < 60) {
        return (ns / 1e9).toFixed(1) + " s";
    }
    return seconds < 3600 ? Math.floor(seconds / 60) + " min " + seconds % 60 + " s"
        : Math.floor(seconds / 3600) + " h " + Math.floor(seconds / 60) % 60 + " min";
}

// A number of the cost that is shown, or of another one.
function formatCost(value, cost = state.cost) {
    return data.costs[cost].unit === "bytes" ? formatBytes(value) : formatCount(value);
}

// "100.2 MiB (105,107,306 bytes), 45.0%"
function describeCost(value, cost = state.cost) {
    const {unit, total} = data.costs[cost];
    const whole = formatCount(value) + " " + unit;
    return (unit === "bytes" ? formatBytes(value) + " (" + whole + ")" : whole)
        + ", " + formatPercent(value, total);
}

function baseName(path) {
    return path.slice(path.lastIndexOf("/") + 1);
}

// <name class=...>text</name>; text from outside is text, never markup.
function make(name, parent, text = "", className = "") {
    const element = document.createElement(name);
    element.textContent = text;
    element.className = className;
    parent.append(element);
    return element;
}

// The program itself is warm, each library has a colour of its own; the same in each run.
function colorOf(call) {
    if (call === 0 || isLeftOut(call)) {
        return "#c8c8c8";
    }
    const module = moduleOf(call);
    const name = nameOf(call);
    const hash = (text) => {
        let value = 2166136261;
        for (let i = 0; i < text.length; i++) {
            value = Math.imul(value ^ text.charCodeAt(i), 16777619) >>> 0;
        }
        return value;
    };
    const hue = module === data.executable ? hash(name) % 45 : 70 + hash(module) % 250;
    return "hsl(" + hue + " 75% " + (62 + hash(name) / 64 % 10) + "%)";
}
