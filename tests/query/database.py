# SPDX-License-Identifier: MIT
"""`memtrace export --format sqlite`: the sqlite3 command reads it; each table has the rows that a
query gives, and random questions have the same answers."""

import json
import os
import random

from pushdown_questions import questions
from queried import (MEMTRACE, SETTINGS, ask, busy, clean_environment, column, equal, execute, fail,
                     finish, profiles, scratch)

# Of each table the columns that name a row.
TABLES = {"summary": "pid", "threads": "id", "modules": "id", "contexts": "id",
          "frames": "context, level", "timeline": "time", "samples": "time",
          "markers": "time, thread, kind, name", "scopes": "id", "foreign_frees": "freer, owner",
          "mappings": "id, address", "smaps": "time, address", "allocations": "id"}


def export(source, path):
    return execute([MEMTRACE, "export", "--format", "sqlite", "--output", path, source],
                   clean_environment(**SETTINGS))


def kept(path, sql):
    """What the sqlite3 command says."""
    result = execute(["sqlite3", "-json", path, sql])
    if result.returncode != 0 or result.stderr:
        fail("sqlite3", sql, result.stderr)
    return json.loads(result.stdout or "[]")


def check_tables(source, database, empty):
    for table, order in TABLES.items():
        sql = "SELECT * FROM %s ORDER BY %s" % (table, order)
        rows = kept(database, sql)
        if table != "smaps":  # a run may be too short for the collector to look
            equal(bool(rows), table not in empty, table, "has rows")
        if table not in empty:
            equal(ask(source, sql), rows, table)
    equal(kept(database, "PRAGMA integrity_check"), [{"integrity_check": "ok"}], "integrity")
    names = {row["name"] for row in kept(database, "SELECT name FROM sqlite_schema")}
    equal(set(TABLES) <= names, True, "tables", names)


def check_questions(source, database, rounds):
    """With text where numbers are meant: by the columns' affinity SQL compares them as numbers."""
    dice = random.Random(5)
    sql = "(SELECT count(*) || ' ' || ifnull(sum(id * 7 %% 1009), 0) FROM allocations WHERE %s)"
    asked = [pushed for pushed, _ in questions(lambda text: column(source, text), dice, rounds,
                                               with_text=True)]
    for at in range(0, rounds, 40):
        text = "SELECT " + ", ".join("%s AS q%d" % (sql % condition, i)
                                     for i, condition in enumerate(asked[at:at + 40]))
        ours, theirs = ask(source, text), kept(database, text)
        for i, condition in enumerate(asked[at:at + 40] if ours and theirs else []):
            equal(ours[0]["q%d" % i], theirs[0]["q%d" % i], "WHERE", condition)


def main():
    folder = scratch()
    source = busy(folder, "--precise", steps=500)
    database = os.path.join(folder, "all.sqlite")
    result = export(source, database)
    equal((result.returncode, result.stderr), (0, b""), "export")
    equal(sorted(os.listdir(folder)), sorted({os.path.basename(path) for path in
                                              [source, database, *profiles(folder)]}), "files")
    check_tables(source, database, {"smaps"})
    check_questions(source, database, 80)
    # Over one that is there; of a profile.
    equal(export(profiles(folder)[0], database).returncode, 0, "export of a profile")
    check_tables(profiles(folder)[0], database,
                 {"allocations", "mappings", "samples", "smaps", "markers", "scopes"})
    # No place for it: the old one stays.
    result = export(source, os.path.join(folder, "no", "x.sqlite"))
    equal((result.returncode, result.stderr.count(b"\n")), (1, 1), "no folder", result.stderr)


main()
finish()
