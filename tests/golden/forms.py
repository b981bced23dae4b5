# SPDX-License-Identifier: MIT
"""forms.py [SEED]: what every report owes, in every form, of a recording and of a profile: parts add up to the
totals, JSON and CSV tell the same, Markdown's tables are whole, the same input gives the same output.
Then files that are cut off or damaged go through every report: a report, or one line why there is none."""

import itertools
import json
import os
import random
import re
import sys

import reports
from recorded import only_recording, profiles, record
from harness import build, equal, fail, finish, report, scratch

SELECTION = os.path.join(reports.HERE, "..", "selection")
METRICS = {"maximum": "peak_bytes", "leaked": "live_bytes", "cumulative": "total_bytes",
           "allocations": "allocations", "temporary": "temporary"}
FORMS = ([], ["--bottom-up"], ["--flat"], ["--paths"], ["--by", "line"], ["--all-frames"])
# Each report, and which column of which of its tables adds up to what.
SUMS = {
    "--show-groups": [("groups", "allocations", "allocations"), ("groups", "total_bytes", "total_bytes"),
                      ("groups", "live_bytes", "live_bytes"), ("groups", "frees", "frees"),
                      ("groups", "live_blocks", "live_blocks"), ("groups", "temporary", "temporary")],
    "--show-lifetimes": [("lifetimes", "freed", "frees"), ("lifetimes-all", "freed", "frees")],
    "--show-sizes": [("sizes", "allocations", "allocations"), ("sizes", "total_bytes", "total_bytes"),
                     ("sizes", "live_bytes", "live_bytes"), ("sizes", "live_blocks", "live_blocks"),
                     ("sizes-by-path", "allocations", "allocations")],
    "--show-fragmentation": [("regions", "live_bytes", "live_bytes"), ("regions", "blocks", "live_blocks"),
                             ("fragmentation", "live_bytes", "live_bytes"),
                             ("slack", "live_blocks", None)],
    "--show-threads": [("threads", "allocations", "allocations"), ("threads", "frees", "frees"),
                       ("threads", "total_bytes", "total_bytes")],
    "--show-mappings": [("mapping-paths", "live_bytes", "mappings")],
    "--show-blocks": [], "--show-marks": [], "--show-timeline": [],
}
# Of the end, where totals are those of the file.
AT_END = {"--show-fragmentation": ["--at", "end"]}
RECORDING_ONLY = ("--show-sizes", "--show-blocks", "--show-fragmentation", "--show-marks",
                  "--show-shutdown")
ALL = ([["--show-" + name] for name in METRICS] + [[name] for name in SUMS] +
       [["--show-shutdown"], ["--temporary-within", "1ms"], ["--show-caller-callee", "alpha"],
        ["--show-leaked", "--flat"], ["--show-maximum", "--paths"], ["--show-leaked", "--bottom-up"]])
PLAIN = ["--no-builtin-suppressions"]


def own_part(rows):
    """What a row has for itself: paths have all of it."""
    return [row.get("self", row.get("cost", 0)) for row in rows]


def metrics(path, data):
    for name, total in METRICS.items():
        for form in FORMS:
            rows = reports.tables(path, "--show-" + name, *form, *PLAIN)[name]
            equal(sum(own_part(rows)), data[total], path, name, form, "sum")
            # Beside what was held at the peak stands what was ever allocated, under a name that says so.
            if name == "maximum" and (not rows or "allocations" in rows[0] or "blocks" in rows[0]):
                fail(path, form, "what stands beside the peak:", rows[:1])
            if name == "maximum" and not form:
                equal(sum(row["total_allocations"] for row in rows if row["depth"] == 0), data["allocations"] -
                      sum(context["allocations"] for context in data["contexts"] if context["peak_bytes"] == 0), path, "total")
            told = reports.csv_tables(path, "--show-" + name, *form, *PLAIN)[0]
            equal(sum(int(row.get("self") or row.get("cost")) for row in told), data[total], path,
                  name, form, "sum of CSV")
            equal(len(told), len(rows), path, name, form, "rows of CSV")


def sums(path, data, is_recording):
    totals = dict(data, mappings=sum(context["live_bytes"] for context in data["mappings"]))
    for option, columns in SUMS.items():
        if option in RECORDING_ONLY and not is_recording:
            continue
        told = reports.tables(path, option, *AT_END.get(option, []))
        for table, column, total in columns:
            if total:
                equal(sum(row[column] for row in told[table]), totals[total], path, option, table,
                      column)
        as_csv = reports.csv_tables(path, option, *AT_END.get(option, []))
        equal([len(rows) for rows in as_csv], [len(rows) for rows in told.values()], path, option,
              "rows of CSV")
        for rows, others in zip(told.values(), as_csv):
            for row, other in zip(rows, others):
                for column, value in row.items():
                    if isinstance(value, int) and column in other:
                        equal(int(other[column], 0), value, path, option, column, "in CSV")


def callers(path, data):
    """Callers add up to the function's cost, and so do callees with what it allocated itself."""
    for name, total in METRICS.items():
        for of in ("alpha", "/^(alpha|beta|gamma_deep)$/", "main", "/./", "nobody_at_all"):
            told = reports.tables(path, "--show-caller-callee", of, "--show-" + name, *PLAIN)
            cost = told["function"][0]["cost"]
            equal(sum(row["cost"] for row in told["callers"]), cost, path, of, name, "callers")
            equal(sum(row["cost"] for row in told["callees"]), cost, path, of, name, "callees")
            if of == "/./":
                equal(cost, data[total], path, name, "of all functions")
            if of == "nobody_at_all":
                equal(cost, 0, path, name, "of no function")


def classes(path, data):
    """Trees and tables of pools and of mappings add up to what the whole says of them."""
    of = {"maximum": "peak_bytes", "leaked": "live_bytes", "cumulative": "total_bytes",
          "allocations": "allocations", "temporary": "temporary"}
    for name, part in (("pool", ["pools"]), ("mapping", ["mappings"]), ("heap", ["contexts"])):
        contexts = [context for kind in part for context in data[kind]]
        for metric, field in of.items():
            for form in ([], ["--flat"], ["--paths"]):
                rows = reports.tables(path, "--class", name, "--show-" + metric, *form, *PLAIN)[metric]
                equal(sum(own_part(rows)), sum(context[field] for context in contexts), path, name,
                      metric, form)
    if data["pools"] and "recording" in data:
        rows = reports.tables(path, "--class", "pool", "--show-sizes")["sizes"]
        equal(sum(row["allocations"] for row in rows),
              sum(context["allocations"] for context in data["pools"]), path, "sizes in pools")


def markdown(path, options):
    """Each table's rows have as many cells as its heading."""
    text = reports.written(path, "--format", "markdown", *options).decode()
    fenced = re.sub(r"^```text$.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    if "```" in fenced:
        fail(options, "an open fence")
    for block in fenced.split("\n\n"):
        lines = [line for line in block.split("\n") if line.startswith("|")]
        cells = {len(re.findall(r"(?<!\\)\|", line)) for line in lines}
        if len(cells) > 1:
            fail(options, "rows of different lengths:", block[:400])


def same_again(path, options):
    for form in ("text", "json"):
        equal(reports.written(path, "--format", form, *options),
              reports.written(path, "--format", form, *options), options, form, "twice")


def damaged(path, folder, dice):
    """Cut off, and with some bytes changed: no crash, and valid JSON."""
    with open(path, "rb") as file:
        raw = file.read()
    for number, options in enumerate(ALL):
        bad = bytearray(raw)
        if number % 2:
            bad = bad[:dice.randrange(len(bad))]
        for _ in range(dice.randrange(1, 20)):
            bad[dice.randrange(len(bad))] = dice.randrange(256)
        name = os.path.join(folder, "bad" + path[-4:])
        with open(name, "wb") as file:
            file.write(bad)
        for form in ("text", "json"):
            result = reports.ask(name, "--format", form, *options)
            if result.returncode not in (0, 1) or (result.returncode == 1 and
                                                   result.stderr.count(b"\n") != 1):
                fail("damaged", options, form, result.returncode, result.stderr[-1000:])
            if result.returncode == 0 and form == "json":
                json.loads(result.stdout)


def sampled(path):
    """Estimates are rounded row by row: sums are those of the whole to within a half for each row."""
    data = report(path, reports.SETTINGS)
    equal(data["recording"]["sampled"], True, "sampled")
    for options in ALL:
        reports.tables(path, *options)
    for option, columns in SUMS.items():
        told = reports.tables(path, option, *AT_END.get(option, []))
        for table, column, total in columns:
            if total in ("allocations", "total_bytes", "live_bytes", "live_blocks") and \
                    table not in ("regions", "fragmentation"):
                got = sum(row[column] for row in told[table])
                if abs(got - data[total]) > len(told[table]) + len(data["contexts"]):
                    fail("sampled", option, table, column, ": got", got, "expected", data[total])


def documented(path):
    """docs/report.md names every table and column."""
    with open(os.path.join(reports.HERE, "..", "..", "docs", "report.md"), encoding="utf-8") as file:
        known = set(re.findall(r"`([\w-]+)(?:\[\])?`", file.read()))
    for options in ALL:
        for table, rows in reports.tables(path, *options).items():
            for name in [table] + [column for row in rows[:1] for column in row]:
                if name not in known:
                    fail("docs/report.md does not know", name, "of", options)


def refused(profile):
    for option in RECORDING_ONLY:
        result = reports.ask(profile, option)
        if result.returncode != 1 or b"is a profile" not in result.stderr or \
                result.stderr.count(b"\n") != 1 or result.stdout:
            fail(option, "of a profile:", result.returncode, result.stderr, result.stdout[:200])
    for wrong in (["--format", "xml"], ["--blocks-by", "colour"], ["--temporary-within", "soon"],
                  ["--show-caller-callee", "/(/"], ["--limit", "many"]):
        result = reports.ask(profile, *wrong)
        if result.returncode != 2 or result.stderr.count(b"\n") != 1:
            fail(wrong, ":", result.returncode, result.stderr)


def bound(path, data):
    """What the peak of several threads is worth is a sentence, where it stands."""
    text = reports.written(path).decode()
    told = re.search(r"; the true peak is within ([0-9.]+) ([KM]?i?B) of it, since threads count apart", text)
    if data["peak_error_bytes"] == 0 or told is None or \
            abs(float(told.group(1)) * {"B": 1, "KiB": 1024, "MiB": 1 << 20}[told.group(2)] - data["peak_error_bytes"]) > \
            data["peak_error_bytes"] / 10:
        fail(path, "the peak's bound is", data["peak_error_bytes"], "and the report says", told and told.group())


def main():
    folder = scratch()
    program = build(os.path.join(SELECTION, "busy.c"))
    under = record([program, "5", "3", "700"], folder)
    equal(under.returncode, 0, "the program", under.stderr)
    recording, (profile,) = only_recording(folder, "busy"), profiles(folder)
    dice = random.Random(int(sys.argv[1]) if len(sys.argv) > 1 else 6)
    for path, is_recording in ((recording, True), (profile, False)):
        data = report(path, reports.SETTINGS)
        bound(path, data)
        metrics(path, data)
        sums(path, data, is_recording)
        callers(path, data)
        classes(path, data)
        for options in ALL if is_recording else ():
            markdown(path, options)
        damaged(path, folder, dice)
    same_again(recording, list(itertools.chain(*ALL[:-3])))
    documented(recording)
    refused(profile)
    folder = scratch()
    under = record([program, "7", "2", "1500"], folder, "--sample", "2K")
    equal(under.returncode, 0, "the sampled program", under.stderr)
    sampled(only_recording(folder, "sampled"))


main()
finish()
