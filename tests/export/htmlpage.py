#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The offline report in Chromium: its totals, tables, trees and flame graphs say what the report says;
it asks for nothing and complains of nothing; names with markup are text; it stays small."""

import os

from browser import Page
from exported import (COSTS, EVIL, HERE, build, equal, export, fail, finish, record, recordings, report,
                      scratch, subject)

MOST_BYTES = 5000000

# Asked of the page: rows of the table that is shown, as texts; the boxes of the flame graph.
ROWS = """Array.from(document.querySelectorAll('section:not([hidden]) tbody tr'))
    .map(row => Array.from(row.children).map(cell => cell.textContent))"""
BOXES = """Object.fromEntries(Array.from(document.querySelectorAll('.frame:not(.outer)'))
    .map(box => [box.title.split(' (')[0].split(':')[0], parseFloat(box.style.width)]))"""


def show(page, view):
    page.run("document.querySelector('[data-view=%s]').click()" % view)


def choose(page, cost):
    page.run("""(() => { const box = document.getElementById('cost');
        box.value = %d; box.dispatchEvent(new Event('change')); })()""" % list(COSTS).index(cost))


def search(page, text):
    page.run("""(() => { const box = document.getElementById('filter');
        box.value = %r; box.dispatchEvent(new Event('input')); })()""" % text)


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


def check_totals(page, data):
    for cost, (total, _) in COSTS.items():
        text = page.run("document.querySelector('[data-total=%s]').textContent" % cost)
        exact = format(data[total], ",")
        equal(text, "%s (%s bytes)" % (bytes_text(data[total]), exact) if total.endswith("_bytes") else exact,
              "total of", cost)
    equal(page.run("data.costs.map((cost, i) => inclusive[i][0])"), [data[total] for total, _ in COSTS.values()],
          "sums over calls")


def check_views(page, data):
    """Each view, for each cost."""
    for cost, (total, part) in COSTS.items():
        choose(page, cost)
        show(page, "functions")
        rows = {row[4]: row for row in page.run(ROWS)}
        for name in ("leak", "recurse", "ping", "temporaries", "main"):
            own, whole = own_cost(data, name, part), cost_with(data, name, part)
            if whole:
                equal(rows[name][:1] + rows[name][2:3], [cost_text(cost, own), cost_text(cost, whole)],
                      cost, "the table's row of", name)
        equal(any(EVIL in name for name in rows) or data[total] == 0 or cost == "temporary", True,
              cost, "a name with markup is a name")
        show(page, "flame")
        boxes = page.run(BOXES)
        share = 100 * cost_with(data, "main", part) / data[total]
        if share > 1:
            equal(abs(boxes["main"] - share) < 0.01, True, cost, "width of main", boxes.get("main"), share)
        show(page, "paths")
        costs = page.run(ROWS)
        largest = max(c[part] for c in data["contexts"])
        if not COSTS[cost][0].endswith("_bytes"):
            equal(int(costs[0][0].replace(",", "")) >= largest, True, cost, "the dearest path")
        show(page, "tree")
        lines = page.run("Array.from(document.querySelectorAll('.tree .name')).map(e => e.textContent)")
        equal(len(lines) > 0, True, cost, "lines of the tree")
        show(page, "timeline")
        show(page, "threads")
        equal(len(page.run(ROWS)), len(data["threads"]), "threads")


def check_filter(page, data):
    choose(page, "total")
    show(page, "functions")
    search(page, "^leak$")
    found = cost_with(data, "leak", "total_bytes")
    equal(page.run("document.getElementById('found').textContent"),
          "%.1f%% found" % (100 * found / data["total_bytes"]), "what the filter finds")
    equal([row[4] for row in page.run(ROWS)], ["leak"], "rows that the filter leaves")
    show(page, "tree")
    page.run("document.getElementById('bottom-up').click()")
    lines = page.run("Array.from(document.querySelectorAll('.tree .line')).map(e => "
                     "Array.from(e.children).map(c => c.textContent))")
    equal(lines[0][2:], [bytes_text(own_cost(data, "leak", "total_bytes")), "leak"], "bottom-up, filtered")
    show(page, "flame")
    equal(page.run("document.querySelectorAll('.frame.found').length > 0"), True, "found boxes")
    page.key("Escape")
    equal(page.run("[document.getElementById('filter').value, document.getElementById('found').textContent]"),
          ["", ""], "Escape")


def check_zoom(page):
    show(page, "flame")
    page.run("document.querySelector('.frame[title^=recurse]').click()")
    boxes = page.run(BOXES)
    equal((boxes.get("recurse"), "temporaries" in boxes), (100, False), "zoomed")
    page.key("Escape")
    equal("temporaries" in page.run(BOXES), True, "zoomed out")
    page.run("document.querySelector('.frame').focus()")
    page.key("ArrowDown")
    equal(page.run("document.activeElement.title.split(':')[0].split(' (')[0]"), "main", "arrow keys")


def check_timeline(page, data):
    """Two charts, with all points and the mark; the mouse tells what the nearest point says."""
    show(page, "timeline")
    points = data["timeline"]
    equal(len(points) >= 3, True, "points", len(points))
    equal(page.run("document.querySelectorAll('svg.chart').length"), 2, "charts")
    equal(page.run("document.querySelector('.curve').getAttribute('points').split(' ').length"), len(points),
          "points of the line")
    bars = page.run("document.querySelectorAll('.rate').length")
    equal(1 <= bars < len(points), True, "bars of the rate, not of moments too close", bars, len(points))
    equal(page.run("document.querySelector('.mark title').textContent.split(' at ')[0]"), "half </script>", "mark")
    page.run("""(() => { const chart = document.querySelector('svg.chart'), box = chart.getBoundingClientRect();
        chart.dispatchEvent(new MouseEvent('mousemove', {clientX: box.right})); })()""")
    told = page.run("document.querySelector('section:not([hidden]) .details').textContent")
    last = points[-1]  # a tie such as 4.25 MiB is rounded up there, to even here
    equal(any("%s live, %s resident" % (bytes_text(last["live_bytes"] + up), bytes_text(last["resident_bytes"] + too))
              in told for up in (0, 1) for too in (0, 1)), True, "the last point", told, last)


def check_theme(page):
    colors = []
    for _ in range(2):
        page.run("document.getElementById('theme').click()")
        colors.append(page.run("getComputedStyle(document.body).backgroundColor"))
    equal(len(set(colors)), 2, "dark and light", colors)


def open_page(path):
    page = Page()
    # What the page keeps to itself is looked at from outside in a copy.
    with open(path, encoding="utf-8") as file:
        text = file.read()
    text = text.replace("\nsetUp();\n", "\nsetUp();\nwindow.data = data; window.inclusive = inclusive;\n")
    with open(path + ".copy.html", "w", encoding="utf-8") as file:
        file.write(text)
    page.open(path + ".copy.html")
    return page


def check_alone(page):
    equal((page.errors, page.requests[1:]), ([], []), "complaints and requests")
    equal(page.run("[document.scripts.length, document.querySelectorAll('b').length]"), [2, 0], "no markup came in")


def check_small(folder):
    """130,000 call paths: the file is small, says what it left out, and its sums are whole."""
    program = build(os.path.join(HERE, "paths.c"), optimize="-O1")
    result = record([program, "17"], folder)
    equal(result.returncode, 0, result.stderr)
    recording = recordings(folder)[-1]
    path = os.path.join(folder, "paths.html")
    export(recording, "--output", path)
    total = int(result.stdout)
    data = {"maximum_bytes": total, "leaked_bytes": total, "total_bytes": total,
            "total_allocations": 1 << 17, "total_temporary": 0}
    size = os.path.getsize(path)
    equal(100000 < size < MOST_BYTES, True, "size of the file", size)
    svg = export(recording, "--format", "flamegraph")
    equal(len(svg) < MOST_BYTES, True, "size of the flame graph", len(svg))
    page = open_page(path)
    try:
        check_totals(page, data)
        equal(page.run("document.getElementById('left-out') !== null"), True, "it says what was left out")
        for view in ("flame", "tree", "functions", "paths"):
            show(page, view)
        check_alone(page)
    finally:
        page.close()


def main():
    folder = scratch()
    result = record([subject(), "</script><b>\"'&amp;<!--"], folder)
    equal(result.returncode, 0, result.stderr)
    recording = recordings(folder)[0]
    path = os.path.join(folder, "report.html")
    export(recording, "--output", path)
    equal(os.path.getsize(path) < MOST_BYTES, True, "size")
    data = report(recording)
    page = open_page(path)
    try:
        check_totals(page, data)
        check_views(page, data)
        check_filter(page, data)
        check_zoom(page)
        check_timeline(page, data)
        check_theme(page)
        check_alone(page)
    finally:
        page.close()
    check_small(folder)
    finish()


main()
