// SPDX-License-Identifier: MIT
// main.ts: the page of memtrace serve, begun by boot.ts.
import { start } from "./start";

start();
