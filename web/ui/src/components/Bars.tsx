// SPDX-License-Identifier: MIT
// Bars.tsx: bars with their numbers, as a table: it needs no twin.
//
//   <Bars head={["Size", "Bar", "Blocks"]} rows={[{ key: 16, name: "16 B", share: 0.5, cells: [<td class="number">12</td>] }]} />
import type { ComponentChildren } from "preact";

export interface Bar {
    key: string | number;
    name: ComponentChildren;
    title?: string;
    share: number; // of the longest: NaN and 0 have no bar
    cells: ComponentChildren; // <td>...</td>
}
interface BarsProps {
    head: readonly string[];
    rows: readonly Bar[];
    caption?: string;
    isThin?: boolean;
    isText?: boolean; // names are no numbers
    isEmpty?: boolean; // nothing has no bar, not the least one
}

export function Bars({ head, rows, caption, isThin, isText, isEmpty }: BarsProps) {
    return (
        <table class={isThin ? "bars thin" : "bars"}>
            {caption !== undefined && <caption class="hidden">{caption}</caption>}
            <thead class="hidden"><tr>{head.map((title, index) => <th key={index} scope="col">{title}</th>)}</tr></thead>
            <tbody>
                {rows.map((row) => (
                    <tr key={row.key}>
                        <th scope="row" class={isText ? undefined : "number"} title={row.title}>{row.name}</th>
                        <td class="bars-bar"><span style={{ width: row.share > 0 ? `${100 * row.share}%` : "0", minWidth: isEmpty && row.share === 0 ? "0" : undefined }} /></td>
                        {row.cells}
                    </tr>
                ))}
            </tbody>
        </table>
    );
}
