// SPDX-License-Identifier: MIT
// main.tsx: boot: the token, the session, then the page.
import "uplot/dist/uPlot.min.css";
import "./theme.css";
import "./frame/shell.css";
import "./views/summary.css";
import "./views/graphs.css";
import "./views/tables.css";
import { render } from "preact";
import { takeToken } from "./api";
import "./frame/theme";
import { Shell } from "./frame/Shell";
import { followSources, loadSession, session } from "./session";
import { goTo, place } from "./url";

takeToken();
const root = document.getElementById("page");
if (root !== null) render(<Shell />, root);
void loadSession().then(() => {
    // --view: only where the address has no wish of its own.
    const view = session.value?.view;
    if (view !== undefined && place.value.view === "summary" && [...place.value.query].length === 0) goTo(view);
    followSources();
});
