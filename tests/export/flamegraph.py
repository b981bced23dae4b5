#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The flame graph of an SVG file: widths are the report's shares; in Chromium it zooms, searches,
answers keys, asks for nothing and complains of nothing; names with markup are names."""

import os
import re
import xml.etree.ElementTree as tree

from browser import Page
from exported import (COSTS, EVIL, equal, export, fail, finish, recorded, report, scratch)

SVG = "{http://www.w3.org/2000/svg}"
WHOLE = 1180  # pixels of the root


def frames(root):
    """(name, number, x, y, width), as in the file."""
    found = []
    for group in root.iter(SVG + "g"):
        if group.get("class") == "f":
            rect = group.find(SVG + "rect")
            name, _, numbers = group.find(SVG + "title").text.rpartition(" - ")
            number = int(re.match(r"[\d,]+", numbers).group().replace(",", ""))
            found.append((name, number, *(float(rect.get(key)) for key in ("x", "y", "width"))))
    return found


def check_file(text, data, cost):
    """Every width is the share of its number, callees lie on their caller, the root is the total."""
    root = tree.fromstring(text)
    total = data[COSTS[cost][0]]
    found = frames(root)
    equal((int(root.get("data-total")), found[0][:2], found[0][4]), (total, ("all", total), WHOLE),
          cost, "the root")
    for name, number, x, y, width in found:
        if abs(width - WHOLE * number / total) > 0.006:
            fail(cost, name, "is", width, "wide for", number, "of", total)
    for name, number, x, y, width in found[1:]:
        below = [f for f in found if f[3] == y + 18 and f[2] - 0.02 <= x and x + width <= f[2] + f[4] + 0.02]
        if len(below) != 1:
            fail(cost, name, "lies on", len(below), "frames")
    for one in found:  # nothing is counted twice: callees fit on their caller
        on = sum(f[1] for f in found if f[3] == one[3] - 18 and one[2] - 0.02 <= f[2]
                 and f[2] + f[4] <= one[2] + one[4] + 0.02)
        if on > one[1]:
            fail(cost, one[0], "has callees of", on, "but is", one[1])
    return found


def check_page(path, data):
    page = Page()
    try:
        page.open(path)
        shown = ("Array.from(document.querySelectorAll('.f')).filter(f => !f.classList.contains('hidden'))"
                 ".map(f => [f.querySelector('title').textContent.split(' - ')[0],"
                 " Number(f.querySelector('rect').getAttribute('width'))])")
        before = page.run(shown)
        page.run("Array.from(document.querySelectorAll('.f')).find(f => f.querySelector('title')"
                 ".textContent.startsWith('recurse')).dispatchEvent(new MouseEvent('click'))")
        zoomed = dict(page.run(shown))
        equal((zoomed["recurse (recursive)"], zoomed["main"], zoomed["all"], "ping" in zoomed),
              (WHOLE, WHOLE, WHOLE, False), "zoomed")
        equal(abs(zoomed["leak"] - WHOLE) < 0.01, True, "the callee has the width of the caller", zoomed)
        page.key("Escape")
        equal(page.run(shown), before, "Escape shows all again")
        page.key("/", text="/")
        page.key("l", text="l")
        for letter in "eak":
            page.key(letter, text=letter)
        leak = sum(c["total_bytes"] for c in data["contexts"]
                   if any((f["function"] or "").startswith("leak(") for f in c["frames"]))
        equal((page.run("document.getElementById('search').value"),
               page.run("document.getElementById('result').textContent")),
              ("leak", "%.1f%% found" % (100 * leak / data["total_bytes"])), "search")
        page.key("Escape")
        for key in ("ArrowUp", "Enter"):
            page.key(key)
        first = max((f for f in before if f[0] != "all"), key=lambda f: f[1])[0]
        equal(page.run("document.getElementById('details').textContent").split(" - ")[0], first,
              "keys choose the frame above the root")
        equal(EVIL in dict(before), True, "a name with markup", list(dict(before)))
        equal((page.errors, page.requests[1:]), ([], []), "complaints and requests")
    finally:
        page.close()


def main():
    folder = scratch()
    recording, profile = recorded(folder)
    data = report(recording)
    for cost in COSTS:
        found = check_file(export(recording, "--format", "flamegraph", "--cost", cost), data, cost)
        names = {name for name, *_ in found}
        equal("main" in names, True, cost, "main is in it")
        equal(cost == "temporary" or "inlined [inlined]" in names, True, cost, "the inlined function is marked")
    path = os.path.join(folder, "total.svg")
    export(recording, "--output", path, "--cost", "total")
    check_page(path, data)
    finish()


main()
