// SPDX-License-Identifier: MIT
// url.test.ts: addresses: what is written is read back, names repeat, flags have no value.
import assert from "node:assert/strict";
import test from "node:test";
import { changed, filterQuery, isDifference, parsePlace, place, spellPlace } from "../src/url";

test("the view and its query", () => {
    const at = parsePlace("/flame?r=1&function=%5Ea%24&function=b&leaked&from=mark:loaded%232");
    assert.equal(at.view, "flame");
    assert.deepEqual(at.query.getAll("function"), ["^a$", "b"]);
    assert.equal(at.query.get("leaked"), "");
    assert.equal(at.query.get("from"), "mark:loaded#2");
    assert.equal(spellPlace(at), "/flame?r=1&function=%5Ea$&function=b&leaked&from=mark:loaded%232");
});

test("nothing is the summary; a file has it behind #", () => {
    assert.equal(parsePlace("/").view, "summary");
    assert.equal(parsePlace("#/tree?metric=leaked").view, "tree");
});

test("hostile text comes back as it was", () => {
    for (const text of ["a&b=c", "<script>", "ä + %41", "a#b?c/d", "\u0000\n", "'\"", "100%"]) {
        const spelled = spellPlace(changed(parsePlace("/paths"), { set: { function: [text] } }));
        assert.equal(parsePlace(spelled).query.get("function"), text);
    }
});

test("changes", () => {
    const at = parsePlace("/flame?r=2&metric=leaked&function=a&zoom=1");
    const next = changed(at, { view: "tree", set: { zoom: null, leaked: true, size: "1K.." } });
    assert.equal(spellPlace(next), "/tree?r=2&metric=leaked&function=a&leaked&size=1K..");
    assert.equal(spellPlace(changed(at, { only: true, set: { metric: "maximum" } })), "/flame?r=2&metric=maximum");
    assert.equal(spellPlace(at), "/flame?r=2&metric=leaked&function=a&zoom=1", "the old one stays");
});

test("questions carry the filters and nothing else", () => {
    place.value = parsePlace("/flame?r=1&metric=leaked&function=a&zoom=1&chosen=path:1&from=1s&base=2&base-to=3s&process=7&base-zoom=1");
    assert.equal(filterQuery.value.toString(), "function=a&from=1s&base=2&base-to=3s&process=7");
    assert.equal(isDifference.value, true);
});
