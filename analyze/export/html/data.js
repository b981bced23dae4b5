// SPDX-License-Identifier: MIT
// data.js: what the page is about: the calls with their costs, and what the filter finds.
// A call is an index; callers come before what they call, 0 is all of it.

const data = JSON.parse(document.getElementById("data").textContent);
const calls = data.calls;
const callCount = calls.parent.length;
const leftOut = data.functions.name.length; // the function number of "left out" and of all of it

const state = {
    cost: data.cost,  // an index into data.costs
    pattern: null,    // of the filter; null: none
};

// By cost: what each call bears with all it calls.
const inclusive = calls.self.map((self) => {
    const sums = Float64Array.from(self);
    for (let call = callCount - 1; call > 0; call--) {
        // rows of what was left out come last, but their callers are rows of the tree
        if (call >= calls.kept) {
            sums[calls.parent[call]] += sums[call];
        }
    }
    for (let call = calls.kept - 1; call > 0; call--) {
        sums[calls.parent[call]] += sums[call];
    }
    return sums;
});

const callees = Array.from({length: callCount}, () => []);
for (let call = 1; call < callCount; call++) {
    callees[calls.parent[call]].push(call);
}

function isLeftOut(call) {
    return call >= calls.kept;
}

function nameOf(call) {
    if (call === 0) {
        return "all";
    }
    if (isLeftOut(call)) {
        return "(" + formatCount(calls.note[call]) + " smaller)";
    }
    return data.functions.name[calls.function[call]];
}

function notesOf(call) {
    if (call === 0 || isLeftOut(call)) {
        return "";
    }
    return (calls.note[call] & 1 ? " [inlined]" : "") + (calls.note[call] & 2 ? " (recursive)" : "");
}

function moduleOf(call) {
    return isLeftOut(call) || call === 0 ? "" : data.strings[data.functions.module[calls.function[call]]];
}

function fileOf(call) {
    return isLeftOut(call) || call === 0 ? "" : data.strings[data.functions.file[calls.function[call]]];
}

// Dearest first; the row of what was left out is last.
function calleesByCost(call) {
    const costs = inclusive[state.cost];
    return callees[call].filter((callee) => costs[callee] > 0)
        .sort((a, b) => isLeftOut(a) - isLeftOut(b) || costs[b] - costs[a] || a - b);
}

function pathOf(call) {
    const path = [];
    for (; call !== 0; call = calls.parent[call]) {
        path.push(call);
    }
    return path.reverse(); // the outermost first
}

// ---- The filter ----

function compilePattern(text) {
    if (text === "") {
        return null;
    }
    try {
        return new RegExp(text, "i");
    } catch (error) {
        return new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "i");
    }
}

function functionMatches(number) {
    return state.pattern.test(data.functions.name[number])
        || state.pattern.test(data.strings[data.functions.file[number]])
        || state.pattern.test(data.strings[data.functions.module[number]]);
}

// What the filter finds: hit: this call; within: it or a caller of it; around: it or what it calls.
let found = null;

function setFilter(text) {
    state.pattern = compilePattern(text);
    found = null;
    if (state.pattern === null) {
        return;
    }
    const matches = data.functions.name.map((name, number) => functionMatches(number));
    matches.push(false);
    found = {hit: [], within: [], around: new Array(callCount).fill(false)};
    for (let call = 0; call < callCount; call++) {
        found.hit[call] = matches[calls.function[call]];
        found.within[call] = found.hit[call] || (call !== 0 && found.within[calls.parent[call]]);
    }
    for (let call = callCount - 1; call > 0; call--) {
        found.around[call] = found.around[call] || found.hit[call];
        if (found.around[call]) {
            found.around[calls.parent[call]] = true;
        }
    }
}

// What everything bears that the filter finds, each byte once.
function costFound() {
    const self = calls.self[state.cost];
    let sum = 0;
    for (let call = 0; call < callCount; call++) {
        sum += found.within[call] ? self[call] : 0;
    }
    return sum;
}
