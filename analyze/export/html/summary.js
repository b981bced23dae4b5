// SPDX-License-Identifier: MIT
// summary.js: what ran and what it cost; threads.

function showTotals(section) {
    const table = make("tbody", make("table", section));
    const row = (name, text, key) => {
        const line = make("tr", table);
        make("td", line, name);
        const cell = make("td", line, text);
        if (key) {
            cell.dataset.total = key;
        }
    };
    for (const [i, cost] of data.costs.entries()) {
        row(cost.title, cost.unit === "bytes" ? formatBytes(cost.total) + " (" + formatCount(cost.total) + " bytes)"
            : formatCost(cost.total, i), cost.name);
    }
    row("Blocks live at the end", formatCount(data.live_blocks));
    row("Frees", formatCount(data.frees));
    row("Call paths", formatCount(data.contexts));
    row("Threads", formatCount(data.thread_count));
    row("Events lost", formatCount(data.lost));
    if (data.peak_error_bytes > 0) {
        row("Bound of the peak's error", formatBytes(data.peak_error_bytes));
    }
}

function showSummary(section) {
    const list = make("table", section);
    const row = (name, text, kind = "") => {
        const line = make("tr", list);
        make("td", line, name, "dim");
        make("td", line, text, kind);
    };
    row("program", data.executable, "name");
    row("command", data.command.join(" "), "name");
    row("process", data.pid + (data.live ? ", running" : data.ended ? ", ended" : ", killed, or ended abruptly")
        + " after " + formatDuration(data.duration_ns));
    row("file", data.source, "name");
    if (data.selected !== null) {
        row("selected", data.selected, "name");
    }
    for (const warning of data.warnings) {
        make("p", section, warning, "warning");
    }
    if (data.sampled) {
        make("p", section, "Sampled: all numbers are estimates.", "warning");
    }
    make("h2", section, "Totals");
    showTotals(section);
    if (data.other.length > 0) {
        make("h2", section, "Beside the heap");
        showTable(section, [
            textColumn("what", (each) => each[0]),
            numberColumn("live at the end", (each) => each[1], formatBytes),
            numberColumn("blocks", (each) => each[2]),
            numberColumn("total", (each) => each[3], formatBytes),
            numberColumn("allocations", (each) => each[4]),
        ], data.other, 1);
    }
    if (calls.kept < calls.of) {
        make("p", section, "To keep this page small it has " + formatCount(calls.kept - 1) + " of "
            + formatCount(calls.of - 1) + " calls: those left out, summed up as \"smaller\", bear at most "
            + (100 * calls.least_share).toPrecision(2) + "% of every cost each, or are more than 512 deep.", "dim").id = "left-out";
    }
}

function showThreads(section) {
    if (data.threads.length === 0) {
        make("p", section, data.selected === null ? "No thread allocated anything."
            : "Which threads have a part in what is selected is not known.", "dim");
        return;
    }
    const rows = data.threads.filter((thread) => state.pattern === null || state.pattern.test(thread.name));
    showTable(section, [
        numberColumn("id", (thread) => thread.id),
        textColumn("name", (thread) => thread.name, "name"),
        numberColumn("tid", (thread) => thread.tid, String),
        numberColumn("allocations", (thread) => thread.allocations),
        numberColumn("total", (thread) => thread.total_bytes, formatBytes),
        numberColumn("frees", (thread) => thread.frees),
        numberColumn("holds", (thread) => thread.live_bytes, formatBytes),
        numberColumn("freed of others", (thread) => thread.freed_for_others),
        numberColumn("their bytes", (thread) => thread.freed_for_others_bytes, formatBytes),
    ], rows, 4);
    if (data.thread_count > data.threads.length) {
        make("p", section, formatCount(data.thread_count - data.threads.length) + " later threads are left out", "dim");
    }
}
