// SPDX-License-Identifier: MIT
// blocks.test.ts: a pointer as debuggers, crashes and logs show it; threads by their names.
import assert from "node:assert/strict";
import test from "node:test";
import { namesOf, threadName } from "../src/summaries";
import { parsePointer } from "../src/views/blocks";

test("pointers as they are pasted", () => {
    assert.equal(parsePointer("0x55D0c3"), "0x55d0c3");
    assert.equal(parsePointer("  55d0c3a2f010 "), "0x55d0c3a2f010");
    assert.equal(parsePointer("$1 = (char *) 0x7ffff7a0 \"text\""), "0x7ffff7a0");
    assert.equal(parsePointer("(void *) 0x10"), "0x10");
    for (const text of ["", "0x", "hello", "0x123456789012345678", "-5", "<script>"]) assert.equal(parsePointer(text), null, text);
});

test("threads have their name, equal ones their number, too", () => {
    const columns = [{ name: "id", heading: "", kind: "count" as const }, { name: "name", heading: "", kind: "text" as const }];
    const names = namesOf({ columns, rows: [[1, "main"], [2, "worker"], [3, "worker"], [4, ""], [5, null]], total: 5 });
    assert.deepEqual([...names.values()], ["main", "worker (2)", "worker (3)", "thread 4", "thread 5"]);
    assert.equal(threadName(7, "-"), "thread 7");
    assert.equal(namesOf(undefined).size, 0);
});
