// SPDX-License-Identifier: MIT
// Placeholder.tsx: stands where a view is still being written; gone when the last one is there.
import { Empty } from "./States";

export function Placeholder() {
    return <Empty>This view is being written.</Empty>;
}
