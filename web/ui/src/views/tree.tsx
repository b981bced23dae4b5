// SPDX-License-Identifier: MIT
import { Placeholder } from "../components/Placeholder";
import type { View } from "./index";

export const view: View = { Component: Placeholder };
