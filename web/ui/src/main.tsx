// SPDX-License-Identifier: MIT
// main.tsx: boot: the token, the session, then the page.
import "uplot/dist/uPlot.min.css";
import "./theme.css";
import "./views/graphs.css";
import "./views/tables.css";
import { render } from "preact";
import { takeToken } from "./api";
import { Shell } from "./frame/Shell";

takeToken();
const root = document.getElementById("page");
if (root !== null) render(<Shell />, root);
