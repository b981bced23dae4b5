# SPDX-License-Identifier: MIT
"""many.py: tens of thousands of call paths, thirty frames deep: a GROUP BY over their path needs no
sorting, not in a join over the frames either, gives what sorting gives, and costs little more
processor time than the join by itself."""

import os
import resource

from queried import HERE, ask, build, equal, fail, finish, run, scratch
from harness import MEMTRACE, clean_environment, execute

PATHS = "30000"
DEPTH = "28"
JOIN = "FROM contexts c JOIN frames f ON f.context = c.id"
MOST = 8  # times; 1.6 as measured, 29 where each row of the join makes its path anew


def profile(folder):
    path = os.path.join(folder, "many.mtp")
    program = build(os.path.join(HERE, "recursion.c"), "gcc", "-O1",
                    flags=["-fno-optimize-sibling-calls"])
    result = execute([MEMTRACE, "run", "--output", path, "--", program, PATHS, DEPTH],
                     clean_environment(MEMTRACE_REGION_DIR=scratch()))
    equal(result.returncode, 0, "run", result.stderr)
    return path


def processor_time(path, sql):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = run(path, sql)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    equal(result.returncode, 0, sql, result.stderr)
    return after.ru_utime - before.ru_utime


def check_plans(path):
    for sql in ("SELECT path, sum(live_bytes) FROM contexts GROUP BY path",
                "SELECT c.path, count(*) %s GROUP BY c.path" % JOIN):
        plan = [row["detail"] for row in ask(path, "EXPLAIN QUERY PLAN " + sql)]
        equal("INDEX 2:path grouped" in plan[0], True, "the order of", sql, plan)
        equal([step for step in plan if "TEMP B-TREE" in step], [], "sorting for", sql)


def check_answers(path):
    """A unary plus keeps SQLite from asking for groups."""
    for what, source in (("path, count(*) AS n, sum(live_bytes)", "FROM contexts"),
                         ("path, count(*) AS n, max(level)", JOIN)):
        groups, sorted_groups = (ask(path, "SELECT %s %s GROUP BY %s ORDER BY path, n"
                                     % (what, source, by)) for by in ("path", "+path"))
        equal(len(groups) > 20000, True, "groups", len(groups))
        equal(groups == sorted_groups, True, "groups of", source)
    paths = ask(path, "SELECT count(DISTINCT path) AS some, (SELECT count(*) FROM"
                      " (SELECT path FROM contexts GROUP BY path)) AS same FROM contexts")[0]
    equal(paths["same"], paths["some"], "paths")


def check_time(path):
    run(path, "SELECT max(path) FROM contexts")  # symbols are read once
    alone = processor_time(path, "SELECT count(*), max(f.function), max(f.level) " + JOIN)
    grouped = processor_time(path, "SELECT c.path, count(*), sum(c.live_bytes) %s GROUP BY c.path"
                             " ORDER BY 3 DESC LIMIT 5" % JOIN)
    print("processor time: %.2f s, grouped %.2f s" % (alone, grouped))
    if grouped > MOST * alone:
        fail("grouping by path takes", "%.2f s," % grouped, "the join alone", "%.2f s" % alone)


def main():
    path = profile(scratch())
    check_plans(path)
    check_answers(path)
    check_time(path)


main()
finish()
