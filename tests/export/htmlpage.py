#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The saved page in Chromium: its totals, tables, trees and call paths say what the report says; it asks for nothing
and complains of nothing; names with markup are text; it stays small."""

import json
import os
import time
import urllib.parse

from browser import Page
from exported import (COSTS, EVIL, HERE, MEMTRACE, build, clean_environment, equal, execute, export, finish, record,
                      recordings, report, scratch, subject)

MOST_BYTES = 2000000
MOST_BYTES_OF_15000_PATHS = 1000000
METRICS = {"peak": "maximum", "live": "leaked", "total": "cumulative", "allocations": "allocations", "temporary": "temporary"}
TILES = {"peak": "At maximum", "live": "Leaked", "total": "Allocated", "allocations": "Allocations", "temporary": "Temporary"}

# Asked of the page: rows of the table that is shown, as texts; the function of the first cell by itself.
ROWS = """Array.from(document.querySelectorAll('.table-row')).map(row => Array.from(row.children).map(cell =>
    (cell.querySelector('.function') || cell).textContent))"""
TILE = """(title => { const tile = Array.from(document.querySelectorAll('.tile')).find(one =>
    one.querySelector('.tile-title').textContent === title);
    return tile && [tile.querySelector('.tile-value').textContent, tile.title]; })(%r)"""


def wait(page, script, what, wanted=None):
    """The value of the expression as soon as it is true (or what is wanted); the page answers a moment later."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        value = page.run(script)
        if value == wanted if wanted is not None else value:
            return value
        time.sleep(0.02)
    equal(value, wanted or "something", what)
    return value


def show(page, view, **query):
    """Opens a view by its address; the next rows or figures are those of it."""
    address = "#/%s?%s" % (view, urllib.parse.urlencode(query, quote_via=urllib.parse.quote))
    page.run("location.hash = %r" % address)


def bytes_text(number):
    for unit in ("KiB", "MiB", "GiB"):
        if number < 1024:
            return "%d B" % number
        number /= 1024
        if number < 1023.95:
            return "%.1f %s" % (number, unit)
    return None


def cost_text(cost, number):
    return bytes_text(number) if COSTS[cost][0].endswith("_bytes") else format(number, ",")


def brief(frame):
    return (frame["function"] or "").split("(")[0]


def own_cost(data, name, part):
    return sum(c[part] for c in data["contexts"] if brief(c["frames"][0]) == name)


def cost_with(data, name, part):
    return sum(c[part] for c in data["contexts"] if name in [brief(f) for f in c["frames"]])


def leave_out_suppressed(data, recording):
    """Leaks are told without those that suppressions name, as `memtrace report --show-leaked` does."""
    rows = json.loads(execute([MEMTRACE, "report", "--show-leaked", "--paths", "--json", "--limit", "100000", recording],
                              clean_environment()).stdout)["reports"][0]["rows"]
    left = {row["hash"]: row["cost"] for row in rows}
    for context in data["contexts"]:
        context["live_bytes"] = left.get(context["hash"], 0)
    data["unsuppressed_bytes"] = sum(left.values())
    equal(0 < data["unsuppressed_bytes"] < data["live_bytes"], True, "something is suppressed", data["unsuppressed_bytes"])


def costs(data):
    """For each cost the sum of its views, and the part of a call path."""
    return {cost: (data["unsuppressed_bytes"], "live_bytes") if cost == "live" else (data[total], part)
            for cost, (total, part) in COSTS.items()}


def check_totals(page, data):
    show(page, "summary")
    for cost, (total, _) in COSTS.items():
        if cost == "live" and "unsuppressed_bytes" in data:
            total = "unsuppressed_bytes"
        wanted = cost_text(cost, data[total])
        wait(page, (TILE % TILES[cost]) + "?.[0]", "total of " + cost, wanted)
        if total.endswith("_bytes"):
            equal(page.run(TILE % TILES[cost])[1], format(data[total], ",") + " bytes", "exactly:", cost)


def check_functions(page, data):
    """For each cost the row of each function: by itself, and with what it calls."""
    for cost, (_, part) in costs(data).items():
        for name in ("leak", "recurse", "ping", "temporaries", "main"):
            own, whole = own_cost(data, name, part), cost_with(data, name, part)
            if whole:
                show(page, "functions", metric=METRICS[cost])
                wait(page, "(%s).filter(row => row[0] === %r).map(row => row.slice(1, 3))[0]" % (ROWS, name),
                     "%s: the row of %s" % (cost, name), [cost_text(cost, own), cost_text(cost, whole)])
    show(page, "functions", metric="cumulative")
    wait(page, "(%s).some(row => row[0].includes(%r))" % (ROWS, EVIL), "a name with markup is a name")


def check_paths(page, data):
    show(page, "paths", metric="cumulative")
    largest = max(c["total_bytes"] for c in data["contexts"])
    rows = wait(page, "(rows => rows.length > 3 && rows)(%s)" % ROWS, "call paths")
    equal(any(bytes_text(largest) in row for row in rows[:3]), True, "the dearest path", rows[:3])


def check_trees(page, data):
    for cost, (total, _) in costs(data).items():
        for view in ("flame", "tree"):
            show(page, view, metric=METRICS[cost])
            wait(page, "document.querySelector('main').textContent.includes(%r)" % cost_text(cost, total),
                 "%s of %s: the whole" % (view, cost))


def check_filter(page, data):
    """The filter of the commands: its sums are those of the paths through the function."""
    found = sum(c["total_bytes"] for c in data["contexts"] if "leak" in [brief(f) for f in c["frames"]])
    show(page, "summary", function="^leak$")
    wait(page, (TILE % "Allocated") + "?.[0]", "what the filter leaves", bytes_text(found))
    show(page, "summary", function="(")
    wait(page, "document.querySelector('[role=alert]')?.textContent.includes('regular expression')", "a wrong filter")


def check_keys(page):
    show(page, "summary")
    wait(page, "document.querySelectorAll('.tile').length", "the summary", 5)
    page.key("3", text="3")
    wait(page, "location.hash.startsWith('#/tree')", "3 opens the tree")
    page.run("history.back()")
    wait(page, "location.hash.startsWith('#/summary')", "Back undoes")
    page.key("?", text="?")
    wait(page, "document.querySelector('dialog[open] h2')?.textContent", "? helps", "Help")
    page.run("document.querySelector('dialog[open] button').click()")


def check_timeline(page, data):
    """The table beside the chart has the mark, and the last point."""
    page.run("document.querySelector('.strip [aria-label=\"The timeline as a table\"]').click()")
    told = wait(page, "document.querySelector('dialog[open]')?.textContent", "the table of the timeline")
    equal("half </script>" in told, True, "the mark")
    equal(len(data["timeline"]) >= 3, True, "points")
    last = data["timeline"][-1]
    equal(any(bytes_text(last["live_bytes"]) in row for row in wait(page, """Array.from(document.querySelectorAll(
        'dialog[open] tr')).map(row => row.textContent)""", "rows")), True, "the last point", last)
    page.run("document.querySelector('dialog[open] button').click()")


def check_theme(page):
    colors = []
    for theme in ("Light", "Dark"):
        page.run("document.querySelector('button[aria-label=Settings]').click()")
        wait(page, "document.querySelectorAll('.settings [role=radio]').length > 0", "settings")
        page.run("Array.from(document.querySelectorAll('.settings [role=radio]')).find(one => one.textContent === %r).click()" % theme)
        wait(page, "document.documentElement.dataset.theme", theme, theme.lower())
        colors.append(page.run("getComputedStyle(document.body).backgroundColor"))
        page.run("document.querySelector('button[aria-label=Settings]').click()")
    equal(len(set(colors)), 2, "dark and light", colors)


def open_page(path):
    page = Page("--window-size=1280,4000")
    page.open(path)
    wait(page, "document.querySelectorAll('.tile').length", "the page", 5)
    return page


def check_alone(page):
    equal((page.errors, page.requests[1:]), ([], []), "complaints and requests")
    markup = """Array.from(document.querySelectorAll('b')).filter(one => /a;b|&amp;/.test(one.textContent)).length"""
    equal(page.run("[document.scripts.length, %s]" % markup), [1, 0], "no markup came in")


def record_paths(folder, depth):
    """(the recording of 2 to the power of depth call paths, their bytes)"""
    program = build(os.path.join(HERE, "paths.c"), optimize="-O1")
    result = record([program, str(depth)], folder)
    equal(result.returncode, 0, result.stderr)
    return recordings(folder)[-1], int(result.stdout)


def check_small(folder):
    """16,384 call paths fit whole; of 131,072 the file is small, says what it left out, and its sums are whole."""
    recording, _ = record_paths(os.path.join(folder, "some"), 14)
    some = os.path.join(folder, "some.html")
    export(recording, "--output", some)
    equal(os.path.getsize(some) < MOST_BYTES_OF_15000_PATHS, True, "size of 16,384 call paths", os.path.getsize(some))
    recording, total = record_paths(os.path.join(folder, "many"), 17)
    path = os.path.join(folder, "paths.html")
    export(recording, "--output", path)
    data = {"peak_bytes": total, "live_bytes": total, "total_bytes": total,
            "allocations": 1 << 17, "temporary": 0}
    size = os.path.getsize(path)
    equal(100000 < size < MOST_BYTES, True, "size of the file", size)
    svg = export(recording, "--format", "flamegraph")
    equal(len(svg) < 5000000, True, "size of the flame graph", len(svg))
    page = open_page(path)
    try:
        check_totals(page, data)
        wait(page, "document.querySelector('.warnings')?.textContent.includes('left out')", "it says what was left out")
        for view in ("flame", "tree", "functions", "paths"):
            show(page, view)
            wait(page, "location.hash.includes(%r) && document.querySelector('main').textContent.length > 50" % view, view)
        check_alone(page)
    finally:
        page.close()


def main():
    folder = scratch()
    for name in ("some", "many"):
        os.mkdir(os.path.join(folder, name))
    result = record([subject(), "</script><b>\"'&amp;<!--"], folder)
    equal(result.returncode, 0, result.stderr)
    recording = recordings(folder)[0]
    path = os.path.join(folder, "report.html")
    export(recording, "--output", path)
    equal(os.path.getsize(path) < MOST_BYTES, True, "size")
    data = report(recording)
    leave_out_suppressed(data, recording)
    page = open_page(path)
    try:
        check_totals(page, data)
        check_functions(page, data)
        check_paths(page, data)
        check_trees(page, data)
        check_filter(page, data)
        check_keys(page)
        check_timeline(page, data)
        check_theme(page)
        check_alone(page)
    finally:
        page.close()
    check_small(folder)
    finish()


main()
