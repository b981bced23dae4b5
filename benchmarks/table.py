# SPDX-License-Identifier: MIT
"""What benchmarks/run prints: a Markdown table of rows, the targets met and missed, and how both
get into a page. Used by benchmarks/run and by everything that makes rows."""

import collections
import sys

# cells: {column: text}; checks: [(text, met)]
Row = collections.namedtuple("Row", "name cells checks")


def check(text, met):
    return (text, bool(met))


def verdicts(checks):
    return "; ".join(f"{text}: {'met' if met else '**missed**'}" for text, met in checks)


def markdown(rows, titles):
    """The lines of the table; `titles` names the columns, of which those without a cell go."""
    shown = [column for column in titles if any(column in row.cells for row in rows)]
    head = ["figure"] + [titles[column] for column in shown] + ["target"]
    lines = ["| " + " | ".join(head) + " |", "|---" + "|---:" * len(shown) + "|---|"]
    for row in rows:
        cells = [row.cells.get(column, "–") for column in shown]
        lines.append("| " + " | ".join([row.name] + cells + [verdicts(row.checks)]) + " |")
    return lines


def summary(rows, failures):
    checks = [(row.name, text, met) for row in rows for text, met in row.checks]
    missed = [f"{name}: {text}" for name, text, met in checks if not met]
    lines = [f"Targets: {len(checks) - len(missed)} of {len(checks)} met."]
    lines += [f"- missed: {text}" for text in missed]
    lines += [f"- could not be run: {text}" for text in failures]
    return lines


def update(path, begin, end, lines):
    """Puts the lines between the two markers of a page."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if begin not in text or end not in text.split(begin, 1)[1]:
        sys.exit(f"benchmarks/run: {path} lacks the markers \"{begin}\" and \"{end}\"")
    before, rest = text.split(begin, 1)
    with open(path, "w", encoding="utf-8") as file:
        file.write(before + begin + "\n" + "\n".join(lines) + "\n" + end + rest.split(end, 1)[1])
