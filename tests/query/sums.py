# SPDX-License-Identifier: MIT
"""What SQL adds up is what `memtrace report --json` says: of a recording, of parts of it that filters
select, and of a profile."""

from queried import ask, busy, column, equal, finish, profiles, run, scratch, told

SUMS = ("live_bytes", "live_blocks", "peak_bytes", "total_bytes", "allocations", "frees", "temporary")


def spelled(frame):
    """As every report spells a frame: module+0xoffset where there is no name."""
    return frame["function"] or "%s+0x%x" % (frame["module"].rsplit("/", 1)[-1], frame["offset"])


def contexts_of(data):
    return [dict(context, kind=kind) for kind, part in
            (("heap", "contexts"), ("mapping", "mappings"), ("pool", "pools"))
            for context in data[part]]


def check_contexts(path, data, *options):
    rows = {row["id"]: row for row in ask(path, "SELECT * FROM contexts", *options)}
    equal(sorted(rows), sorted(context["id"] for context in contexts_of(data)), "contexts", options)
    for context in contexts_of(data):
        row = rows[context["id"]]
        frames = context["frames"]
        wanted = {name: context[name] for name in SUMS} | {
            "hash": context["hash"], "class": context["kind"], "pool": context.get("pool"),
            "function": spelled(frames[0]), "file": frames[0]["file"] or None,
            "line": frames[0]["line"] or None, "module": frames[0]["module"] or None,
            "path": ";".join(spelled(frame) for frame in reversed(frames))}
        if not equal({name: row[name] for name in wanted}, wanted, "context", context["id"], options):
            return
        equal(row["total_bytes"] - row["freed_bytes"], row["live_bytes"], "freed bytes")


def check_frames(path, data):
    rows = ask(path, "SELECT * FROM frames WHERE context IN (SELECT id FROM contexts)")
    equal(len(rows), column(path, "SELECT count(*) FROM frames")[0], "frames of all contexts")
    found = {}
    for row in rows:
        equal(row["level"], len(found.setdefault(row["context"], [])), "level")
        found[row["context"]].append((row["function"], row["file"], row["line"], row["inlined"],
                                      row["offset"]))
    for context in contexts_of(data):
        equal(found[context["id"]],
              [(spelled(frame), frame["file"] or None, frame["line"] or None, int(frame["inlined"]),
                frame["offset"]) for frame in context["frames"]], "frames of", context["id"])


def check_small(path, data):
    row = ask(path, "SELECT * FROM summary")[0]
    equal([row[name] for name in ("peak_bytes", "peak_error_bytes", "live_bytes", "live_blocks",
                                  "total_bytes", "allocations", "frees", "temporary", "lost",
                                  "damage")],
          [data["peak_bytes"], data["peak_error_bytes"], data["live_bytes"],
           data["live_blocks"], data["total_bytes"], data["allocations"],
           data["frees"], data["temporary"], data["lost"], None], "summary")
    equal([(row["id"], row["tid"], row["name"], row["allocations"], row["frees"], row["total_bytes"],
            row["freed_bytes"], row["live_bytes"], row["foreign_frees"], row["foreign_freed_bytes"])
           for row in ask(path, "SELECT * FROM threads")],
          [(thread["id"], thread["tid"], thread["name"], thread["allocations"], thread["frees"],
            thread["total_bytes"], thread["freed_bytes"], thread["live_bytes"],
            thread["freed_for_others"], thread["freed_for_others_bytes"])
           for thread in data["threads"]], "threads")
    equal([(row["time"], row["live_bytes"], row["resident_bytes"], row["allocations"],
            row["total_bytes"]) for row in ask(path, "SELECT * FROM timeline")],
          [(point["time_ns"], point["live_bytes"], point["resident_bytes"], point["allocations"],
            point["total_bytes"]) for point in data["timeline"]], "timeline")
    equal(sorted((row["id"], row["path"] or "", row["build_id"] or "") for row in
                 ask(path, "SELECT * FROM modules")),
          sorted((module["id"], module["path"], module["build_id"]) for module in data["modules"]),
          "modules")


def check_blocks(path, data, *options):
    """Sums over single blocks are those of their call paths."""
    rows = ask(path, "SELECT c.id, count(*) n, sum(a.weight) bytes, sum(a.freed IS NULL) living,"
                     " sum(iif(a.freed IS NULL, a.weight, 0)) live, sum(a.temporary) temporary"
                     " FROM allocations a JOIN contexts c ON c.id = a.context GROUP BY c.id", *options)
    equal({row["id"]: tuple(row.values())[1:] for row in rows},
          {context["id"]: (context["allocations"], context["total_bytes"], context["live_blocks"],
                           context["live_bytes"], context["temporary"])
           for context in data["contexts"] + data["pools"]}, "blocks", options)


def check_mappings(path, data):
    rows = ask(path, "SELECT context, sum(size) bytes, sum(iif(freed IS NULL, size, 0)) live,"
                     " count(DISTINCT id) n FROM mappings GROUP BY context")
    equal({row["context"]: (row["bytes"], row["live"], row["n"]) for row in rows},
          {context["id"]: (context["total_bytes"], context["live_bytes"], context["allocations"])
           for context in data["mappings"]}, "mappings")


def check_sampled(path):
    """Bytes that sampled blocks stand for add up exactly; each call path's count is rounded."""
    row = ask(path, "SELECT sum(weight) bytes, sum(count) n, count(*) samples FROM allocations")[0]
    sums = ask(path, "SELECT sum(total_bytes) bytes, sum(allocations) n, count(*) paths FROM contexts"
                     " WHERE class <> 'mapping'")[0]
    equal(row["bytes"], sums["bytes"], "sampled bytes")
    equal(abs(row["n"] - sums["n"]) <= sums["paths"] / 2 + 1, True, "sampled counts", row, sums)
    equal(row["samples"] < row["n"], True, "fewer samples than allocations", row)


def check_profile(path):
    data = told(path)
    check_contexts(path, data)
    check_frames(path, data)
    check_small(path, data)
    for table in ("allocations", "mappings"):
        result = run(path, "SELECT * FROM %s" % table)
        equal((result.returncode, result.stdout, result.stderr.count(b"\n")), (1, b"", 1), table)
        equal(b"`memtrace record`" in result.stderr, True, table, "says how", result.stderr)
    equal(column(path, "SELECT count(*) FROM samples UNION ALL SELECT count(*) FROM smaps"), [0, 0],
          "samples of a profile")


def main():
    folder = scratch()
    path = busy(folder)
    data = told(path)
    check_contexts(path, data)
    check_frames(path, data)
    check_small(path, data)
    check_blocks(path, data)
    check_mappings(path, data)
    for options in (("--size", "100..1000"), ("--lifetime", "5ms.."), ("--function", "alpha"),
                    ("--leaked",), ("--thread", "3"), ("--to", "40%"),
                    ("--to", "mark:late", "--size", "24")):
        selected = told(path, *options)
        check_contexts(path, selected, *options)
        check_blocks(path, selected, *options)
    check_profile(profiles(folder)[0])
    check_sampled(busy(scratch(), "--sample", "4K"))


main()
finish()
