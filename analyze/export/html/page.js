// SPDX-License-Identifier: MIT
// page.js: tabs, the choice of the cost, the filter, keys. Only the open tab is drawn.

const views = {
    summary: showSummary,
    flame: showFlame,
    tree: showTree,
    functions: showFunctions,
    paths: showPaths,
    timeline: showTimeline,
    threads: showThreads,
};
const byId = (id) => document.getElementById(id);
let view = "summary";

function refresh() {
    const section = byId(view);
    section.textContent = "";
    views[view](section);
    byId("found").textContent = found === null ? ""
        : formatPercent(costFound(), data.costs[state.cost].total) + " found";
}

function openView(name) {
    view = name;
    for (const section of document.querySelectorAll("main section")) {
        section.hidden = section.id !== name;
    }
    for (const tab of byId("tabs").children) {
        tab.setAttribute("aria-selected", String(tab.dataset.view === name));
    }
    refresh();
}

function switchTheme() {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark"
        : window.matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
}

function showAll() {
    byId("filter").value = "";
    setFilter("");
    flameZoom = 0;
    refresh();
}

function setUp() {
    byId("title").textContent = baseName(data.executable) + " - MemTrace";
    byId("footer").textContent = data.generator + ". / filters, Escape shows all, arrow keys move in the flame graph.";
    for (const section of document.querySelectorAll("main section")) {
        const tab = make("button", byId("tabs"), section.dataset.name);
        tab.dataset.view = section.id;
        tab.setAttribute("role", "tab");
        section.setAttribute("role", "tabpanel");
        tab.addEventListener("click", () => openView(section.id));
    }
    for (const [i, cost] of data.costs.entries()) {
        make("option", byId("cost"), cost.name).value = i;
    }
    byId("cost").value = state.cost;
    byId("cost").addEventListener("change", () => {
        state.cost = Number(byId("cost").value);
        refresh();
    });
    byId("filter").addEventListener("input", () => {
        setFilter(byId("filter").value);
        refresh();
    });
    byId("theme").addEventListener("click", switchTheme);
    window.addEventListener("resize", () => view === "flame" && refresh());
    window.addEventListener("keydown", (event) => {
        if (event.key === "Escape") {
            showAll();
        } else if (event.key === "/" && event.target !== byId("filter")) {
            byId("filter").focus();
            event.preventDefault();
        }
    });
    openView("summary");
}

setUp();
