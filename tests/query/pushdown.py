# SPDX-License-Identifier: MIT
"""Constraints that go down into the pass over events give what they give without: SQLite's unary plus
keeps a column from being pushed. Also what EXPLAIN QUERY PLAN says, orders and joins."""

import random

from pushdown_questions import questions
from queried import ask, busy, column, equal, finish, scratch

def check_random(path, dice, rounds):
    """Many questions in one statement: each subquery has a pass of its own."""
    sql = "(SELECT count(*) || ' ' || ifnull(sum(id * 7 %% 1009), 0) FROM allocations WHERE %s)"
    found = 0
    all_questions = list(questions(lambda text: column(path, text), dice, rounds))
    for at in range(0, rounds, 20):
        part = all_questions[at:at + 20]
        rows = ask(path, "SELECT %s" % ", ".join(
            "%s AS p%d, %s AS g%d" % (sql % pushed, i, sql % guarded, i)
            for i, (pushed, guarded) in enumerate(part)))
        for i, (pushed, _) in enumerate(part if rows else []):
            equal(rows[0]["p%d" % i], rows[0]["g%d" % i], "WHERE", pushed)
            found += rows[0]["p%d" % i] != "0 0"
    equal(found > rounds // 4, True, "questions with an answer", found)


def plan(path, sql):
    return [row["detail"] for row in ask(path, "EXPLAIN QUERY PLAN " + sql)]


def check_plans(path):
    """What is pushed is told: births where no end is asked for."""
    for sql, wanted in (
            ("SELECT size FROM allocations WHERE born < 5 AND size >= 3", "1:births born< sizeg"),
            ("SELECT lifetime FROM allocations WHERE thread = 2", "0:lives thread="),
            ("SELECT id FROM allocations WHERE thread IN (1, 2)", "1:births threadi"),
            ("SELECT id FROM allocations WHERE +size = 3", "1:births"),
            ("SELECT id FROM allocations WHERE freed IS NULL", "0:lives"),
            ("SELECT size FROM allocations ORDER BY id", "1:births"),
            ("SELECT * FROM contexts WHERE id = 3", "1:id="),
            ("SELECT * FROM frames WHERE context = 3", "1:context=")):
        details = plan(path, sql)
        equal(len(details), 1, "steps of", sql)
        equal(sorted(details[0].split("INDEX ")[1].split()), sorted(wanted.split()), sql)
    for names in ("id", "id, freed"):
        ids = column(path, "SELECT %s FROM allocations ORDER BY id" % names)
        equal(ids, sorted(ids), "ORDER BY id of", names)
    equal(column(path, "SELECT id FROM allocations ORDER BY id DESC LIMIT 3"), ids[:-4:-1], "backwards")
    # In another order than that in which they were born, SQLite itself sorts.
    equal(column(path, "SELECT id FROM allocations ORDER BY id DESC"), ids[::-1], "all of them backwards")
    sizes = column(path, "SELECT size FROM allocations ORDER BY size")
    equal(sizes, sorted(column(path, "SELECT size FROM allocations")), "ORDER BY size")
    equal(sizes != column(path, "SELECT size FROM allocations"), True, "sizes are not in order by themselves")


def check_joins(path):
    """A block with the one it was reallocated from; with places in the code; two passes at once."""
    rows = ask(path, "WITH old AS MATERIALIZED (SELECT id, size, chain_length, freed FROM allocations)"
                     " SELECT old.chain_length + 1 - new.chain_length AS steps,"
                     " new.born - old.freed AS gap FROM allocations new JOIN old"
                     " ON old.id = new.realloc_of")
    equal(len(rows), column(path, "SELECT count(*) FROM allocations WHERE realloc_of IS NOT NULL")[0],
          "reallocations")
    equal({(row["steps"], row["gap"]) for row in rows}, {(0, 0)}, "a step of the chain, at one time")
    equal(column(path, "SELECT count(*) FROM allocations a JOIN frames f ON f.context = a.context"
                       " AND f.level = 0 WHERE f.function REGEXP '^(alpha|beta)$'"),
          column(path, "SELECT sum(allocations) FROM contexts WHERE function IN ('alpha', 'beta')"),
          "allocations by function")
    equal(column(path, "SELECT count(*) FROM threads t JOIN allocations a ON a.thread = t.id"),
          column(path, "SELECT count(*) FROM allocations"), "threads and their blocks")
    equal(column(path, "SELECT count(*) FROM allocations a, allocations b WHERE a.id <= 30 AND"
                       " b.id = a.id"),
          column(path, "SELECT count(*) FROM allocations WHERE id <= 30"), "two passes at once")


def main():
    path = busy(scratch(), "--precise", steps=400)
    check_random(path, random.Random(20), 160)
    check_plans(path)
    check_joins(path)


main()
finish()
