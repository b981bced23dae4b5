// SPDX-License-Identifier: MIT
// elide.test.ts: names in little room.
import assert from "node:assert/strict";
import { test } from "node:test";
import { formsOf, lastPart, Ruler, withoutArguments } from "../src/draw/elide";

test("template arguments become one sign", () => {
    for (const [name, short] of [
        ["std::vector<int, std::allocator<int> >::push_back", "std::vector<…>::push_back"],
        ["std::map<K, std::vector<V>>::operator[]<int>", "std::map<…>::operator[]<…>"],
        ["operator<< <char>", "operator<< <char>"],
        ["ns::operator<", "ns::operator<"],
        ["ns::type<int>::operator<(other const&)", "ns::type<…>::operator<(other const&)"],
        ["operator<=>", "operator<=>"],
        ["ns::type<int>::operator->", "ns::type<…>::operator->"],
        ["core::iter::Iter<T>::map<impl Fn() -> u8>", "core::iter::Iter<…>::map<…>"],
        ["broken<name", "broken<name"],
        ["malloc", "malloc"],
    ] as const) assert.equal(withoutArguments(name), short);
});

test("the last part of a qualified name", () => {
    assert.equal(lastPart("std::vector<std::pair<a::b, c>>::push_back"), "push_back");
    assert.equal(lastPart("ns::type::name(a::b, c::d)"), "name(a::b, c::d)");
    assert.equal(lastPart("main"), "main");
    assert.equal(lastPart("a::(anonymous namespace)::run"), "run");
    assert.equal(lastPart("::"), "::");
});

test("forms get shorter", () => {
    assert.deepEqual(formsOf("std::vector<int>::push_back"),
        ["std::vector<int>::push_back", "std::vector<…>::push_back", "push_back"]);
    assert.deepEqual(formsOf("main"), ["main"]);
    assert.deepEqual(formsOf("python3.11+0x53ad86"), ["python3.11+0x53ad86", "+0x53ad86"]);
});

test("the longest form that fits is taken, else the shortest is cut", () => {
    const ruler = new Ruler((text) => text.length * 6);
    const forms = formsOf("std::vector<int>::push_back");
    assert.equal(ruler.fit(forms, 1000), forms[0]);
    assert.equal(ruler.fit(forms, 6 * 26), forms[1]);
    assert.equal(ruler.fit(forms, 6 * 9), "push_back");
    assert.equal(ruler.fit(forms, 6 * 6), "push_…");
    assert.equal(ruler.fit(forms, 6 * 3), "");
    assert.equal(ruler.width("äö…"), 18);
});
