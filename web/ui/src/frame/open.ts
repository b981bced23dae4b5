// SPDX-License-Identifier: MIT
// open.ts: which of the frame's dialogs are open.
import { signal } from "@preact/signals";

export const paletteOpen = signal(false);
export const helpOpen = signal(false);
