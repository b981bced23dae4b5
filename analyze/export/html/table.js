// SPDX-License-Identifier: MIT
// table.js: tables that sort by a click on a heading, and say what is cut off.

// columns: [{name, number (is it one?), value (of a row, to sort by), show (fills the cell)}]
// Sorted by the column `by` at first; numbers from the largest, text from A.
function showTable(parent, columns, rows, by = 0, most = 200) {
    const table = make("table", parent);
    const head = make("tr", make("thead", table));
    const body = make("tbody", table);
    const rest = make("p", parent, "", "dim");
    let shown = most;
    let order = {column: columns[by], falls: columns[by].number === true};

    function compare(a, b) {
        const [left, right] = [order.column.value(a), order.column.value(b)];
        const result = left < right ? -1 : left > right ? 1 : 0;
        return order.falls ? -result : result;
    }

    function fill() {
        body.textContent = "";
        const sorted = rows.slice().sort(compare);
        for (const row of sorted.slice(0, shown)) {
            const line = make("tr", body);
            for (const column of columns) {
                column.show(make("td", line, "", column.number ? "number" : column.kind || ""), row);
            }
        }
        rest.textContent = "";
        if (rows.length > shown) {
            make("span", rest, formatCount(rows.length - shown) + " more rows ");
            make("button", rest, "show").addEventListener("click", () => {
                shown *= 5;
                fill();
            });
        }
        columns.forEach((column, i) => {
            head.children[i].toggleAttribute("aria-sort", column === order.column);
            if (column === order.column) {
                head.children[i].setAttribute("aria-sort", order.falls ? "descending" : "ascending");
            }
        });
    }

    for (const column of columns) {
        const cell = make("th", head, "", column.number ? "number" : "");
        make("button", cell, column.name).addEventListener("click", () => {
            order = {column, falls: column === order.column ? !order.falls : column.number === true};
            fill();
        });
    }
    fill();
    return table;
}

// Columns of plain numbers and texts.
function numberColumn(name, value, format = formatCount) {
    return {name, number: true, value, show: (cell, row) => {
        cell.textContent = format(value(row));
    }};
}

function textColumn(name, value, kind = "") {
    return {name, kind, value, show: (cell, row) => {
        cell.textContent = value(row);
    }};
}

// ---- The tables of functions and of call paths ----

// Whether the same function stands further out on the path: its cost is in there.
const nested = (() => {
    const result = new Array(callCount).fill(false);
    for (let call = 1; call < calls.kept; call++) {
        for (let at = calls.parent[call]; at !== 0 && !result[call]; at = calls.parent[at]) {
            result[call] = calls.function[at] === calls.function[call];
        }
    }
    return result;
})();

function functionRows() {
    const rows = data.functions.name.map((name, number) => ({
        number, name, own: 0, all: 0,
        file: data.strings[data.functions.file[number]],
        module: data.strings[data.functions.module[number]],
    }));
    const self = calls.self[state.cost];
    const sums = inclusive[state.cost];
    for (let call = 1; call < calls.kept; call++) {
        const row = rows[calls.function[call]];
        row.own += self[call];
        row.all += nested[call] ? 0 : sums[call];
    }
    return rows.filter((row) => row.all > 0 && (state.pattern === null || functionMatches(row.number)));
}

function showFunctions(section) {
    const {total, title} = data.costs[state.cost];
    make("h2", section, title);
    showTable(section, [
        numberColumn("own", (row) => row.own, formatCost),
        numberColumn("own %", (row) => row.own, (value) => formatPercent(value, total)),
        numberColumn("with callees", (row) => row.all, formatCost),
        numberColumn("%", (row) => row.all, (value) => formatPercent(value, total)),
        textColumn("function", (row) => row.name, "name"),
        textColumn("file", (row) => baseName(row.file), "name"),
        textColumn("module", (row) => baseName(row.module), "name"),
    ], functionRows());
}

// The innermost functions, and the whole path where one asks for it.
function showPath(cell, call) {
    const path = pathOf(call);
    const details = make("details", cell);
    const near = path.slice(-4).reverse().map(nameOf).join(" < ");
    make("summary", details, near + (path.length > 4 ? " < ..." : ""));
    details.addEventListener("toggle", () => {
        if (details.children.length === 1) {
            const list = make("ol", details);
            for (const at of path) {
                const file = fileOf(at);
                make("li", list, nameOf(at) + notesOf(at)
                    + (file ? " at " + baseName(file) : " in " + baseName(moduleOf(at))));
            }
        }
    });
}

function showPaths(section) {
    const {total, title} = data.costs[state.cost];
    const self = calls.self[state.cost];
    const rows = [];
    for (let call = 1; call < calls.kept; call++) {
        if (self[call] > 0 && (found === null || found.within[call])) {
            rows.push(call);
        }
    }
    make("h2", section, title);
    showTable(section, [
        numberColumn("cost", (call) => self[call], formatCost),
        numberColumn("%", (call) => self[call], (value) => formatPercent(value, total)),
        {name: "path, the allocating function first", kind: "path", value: nameOf, show: showPath},
    ], rows, 0, 100);
}
