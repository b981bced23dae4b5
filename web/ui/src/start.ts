// SPDX-License-Identifier: MIT
// start.ts: the page begins: the session, the file that a link names, the view that was asked for.
import "uplot/dist/uPlot.min.css";
import "./theme.css";
import "./frame/shell.css";
import "./views/summary.css";
import "./views/graphs.css";
import "./views/tables.css";
import { h, render } from "preact";
import { Shell } from "./frame/Shell";
import { followTheme } from "./settings";
import { followSources, linkedFileMissing, loadSession, session, takeBoot, watchNews } from "./session";
import { changeTo, go, place } from "./url";

/* A link names its file by what is in it (f): which of the open ones is that? */
function findFile(): void {
    const wanted = place.value.query.get("f");
    if (wanted === null) return;
    const found = session.value?.sources.find((one) => one.fingerprint === wanted);
    linkedFileMissing.value = found === undefined;
    go({ set: { f: null, r: found === undefined ? place.value.query.get("r") : String(found.id) } }, "replace");
}

export function start(): void {
    followTheme();
    const root = document.getElementById("page");
    takeBoot()?.end();
    if (root !== null) render(h(Shell, null), root);
    void loadSession().then(() => {
        findFile();
        // --view: only where the address has no wish of its own.
        const view = session.value?.view;
        if (view !== undefined && place.value.view === "summary" && [...place.value.query].length === 0) go({ ...changeTo(view), only: true });
        followSources();
        watchNews();
    });
}
