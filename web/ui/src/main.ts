// SPDX-License-Identifier: MIT
// main.tsx: the page of memtrace serve.
import { takeToken } from "./api";
import { start } from "./start";

takeToken();
start();
