// SPDX-License-Identifier: MIT
// summary.tsx: the first screen: what the program held, in words and figures, and what looks wrong.
import { useAnswer } from "../ask";
import { Bytes } from "../components/Cells";
import { States } from "../components/States";
import type { Summary } from "../types";
import type { View } from "./index";

function SummaryView() {
    const summary = useAnswer<Summary>("");
    return (
        <States of={summary}>
            {(data) => <p>{data.program} held at most <Bytes of={data.totals.maximum_bytes} />.</p>}
        </States>
    );
}

export const view: View = { Component: SummaryView };
