// SPDX-License-Identifier: MIT
// highlight.test.ts: pieces of source text.
import assert from "node:assert/strict";
import { test } from "node:test";
import { highlight, knowsLanguage } from "../src/draw/highlight";

const told = (text: string, language: string) =>
    highlight(text.split("\n"), language).map((pieces) => pieces.filter((piece) => piece.kind !== "").map((piece) => `${piece.kind}:${piece.text}`));

test("C: words, strings, numbers, comments over lines, directives", () => {
    assert.deepEqual(told('#include <stdio.h>\nstatic int x = 0x1f; /* a\n "b" */ char *s = "c\\"d"; // e', "c"), [
        ["preprocessor:#include <stdio.h>"],
        ["keyword:static", "type:int", "number:0x1f", "comment:/* a"],
        ['comment: "b" */', "type:char", 'string:"c\\"d"', "comment:// e"],
    ]);
});

test("Rust: lifetimes are no characters, comments nest, strings go over lines", () => {
    assert.deepEqual(told("fn f<'a>(x: &'a str) -> char { 'b' }\n/* /* */ still */ let s = \"one\ntwo\\\" three\";", "rust"), [
        ["keyword:fn", "type:str", "type:char", "string:'b'"],
        ["comment:/* /* */ still */", "keyword:let", 'string:"one'],
        ['string:two\\" three"'],
    ]);
});

test("C++, Go, D and Fortran", () => {
    assert.deepEqual(told('auto s = R"(a\n"b")";', "c++"), [["keyword:auto", 'string:R"(a'], ['string:"b")"']]);
    assert.deepEqual(told("var s = `a\nb` + 1", "go"), [["keyword:var", "string:`a"], ["string:b`", "number:1"]]);
    assert.deepEqual(told("/+ /+ +/ a +/ int b;", "d"), [["comment:/+ /+ +/ a +/", "type:int"]]);
    assert.deepEqual(told("INTEGER :: n ! count", "fortran"), [["type:INTEGER", "comment:! count"]]);
});

test("the pieces of a line are the line, whatever the text is", () => {
    const lines = ["'", '"', "/*", "*/ '\\", "#", "R\"(", "1e+", "é日本 0x", "\\", "", "'a", "\"\\", "`", "/+ */", "\t<script>alert(1)</script>"];
    for (const language of ["c", "cpp", "rust", "go", "d", "fortran", "none"]) {
        const pieces = highlight(lines, language);
        assert.deepEqual(pieces.map((line) => line.map((piece) => piece.text).join("")), lines);
    }
});

test("what it knows", () => {
    assert.ok(knowsLanguage("c") && knowsLanguage("c++") && knowsLanguage("fortran"));
    assert.ok(!knowsLanguage("cobol"));
});
