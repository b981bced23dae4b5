# SPDX-License-Identifier: MIT
"""What a query must not do: write, crash at damaged files, go on after Ctrl-C, collect rows."""

import os
import random
import signal
import subprocess
import time

from queried import (MEMTRACE, SETTINGS, ask, busy, clean_environment, column, equal, execute, fail,
                     finish, run, scratch)


def refused(path, sql, reason):
    result = run(path, sql)
    equal((result.returncode, result.stdout, result.stderr.count(b"\n")), (1, b"", 1), sql)
    if reason not in result.stderr.decode():
        fail(sql, ": got", result.stderr, "expected", reason)


def check_read_only(path, folder):
    other = os.path.join(folder, "other.db")
    execute(["sqlite3", other, "CREATE TABLE t(a); INSERT INTO t VALUES (1)"])
    for sql in ("CREATE TABLE x(a)", "DELETE FROM threads", "UPDATE threads SET name = 'x'",
                "INSERT INTO markers(name) VALUES ('x')", "DROP TABLE threads",
                "ATTACH '%s' AS o" % other, "ATTACH '%s' AS o" % os.path.join(folder, "new.db"),
                "VACUUM INTO '%s'" % os.path.join(folder, "new.db"), "PRAGMA writable_schema = 1",
                "PRAGMA temp_store_directory = '%s'" % folder, "BEGIN",
                "CREATE VIRTUAL TABLE temp.x USING fts5(a)", "SELECT load_extension('%s')" % other,
                "SELECT fts3_tokenizer('simple')", "SELECT fts3_tokenizer('a', x'4141414141414141')", "SELECT fts5(NULL)"):
        refused(path, sql, "")
    equal(sorted(os.listdir(folder)), ["other.db"], "files")
    equal(run(path, "CREATE TEMP TABLE x AS SELECT id FROM threads; CREATE TEMP VIEW y AS SELECT"
                    " count(*) = (SELECT count(*) FROM threads) FROM x; INSERT INTO x SELECT 1 WHERE 0;"
                    " SELECT * FROM y").stdout, b"1\n", "temporary tables")


def check_errors(path):
    refused(path, "SELECT sizee FROM allocations", "no such column: sizee, at character 8: sizee")
    refused(path, "SELECT 1; SELECT * FROM nothing_there"[10:], "no such table: nothing_there")
    refused(path, "SELECT (1", "incomplete input")
    for arguments, status in ((("--format", "xml", "SELECT 1"), 2), (("--header", "maybe", "SELECT 1"), 2),
                              (("--script", path + ".sql", "SELECT 1"), 2)):
        result = run(path, *arguments)
        equal((result.returncode, result.stderr.count(b"\n")), (status, 1), arguments, result.stderr)
    result = run(os.path.join(os.path.dirname(path), "nowhere.mtr"), "SELECT 1")
    equal((result.returncode, result.stderr.count(b"\n")), (1, 1), "no file")


def check_damaged(path, folder, dice):
    """Up to the break all is told, and what is told adds up."""
    with open(path, "rb") as file:
        whole = file.read()
    broken = os.path.join(folder, "broken.mtr")
    for number in range(12):
        data = bytearray(whole)
        if number % 2 == 0:
            data = data[:dice.randrange(64, len(data))]
        else:
            for _ in range(dice.randint(1, 20)):
                data[dice.randrange(64, len(data))] = dice.randrange(256)
        with open(broken, "wb") as file:
            file.write(data)
        result = run(broken, "SELECT (SELECT count(*) || ' ' || ifnull(sum(weight), 0) FROM allocations),"
                             " (SELECT ifnull(sum(allocations), 0) || ' ' || ifnull(sum(total_bytes), 0)"
                             " FROM contexts WHERE class <> 'mapping'),"
                             " (SELECT count(*) FROM frames) + (SELECT count(*) FROM mappings) +"
                             " (SELECT count(*) FROM samples) + (SELECT count(*) FROM scopes)")
        if result.returncode not in (0, 1) or (result.returncode == 1 and not result.stderr):
            fail("damaged file", number, "status", result.returncode, result.stderr)
        if result.returncode == 0:
            blocks, contexts, _ = result.stdout.decode().strip().split("\t")
            equal(blocks, contexts, "damaged file", number)


def check_interrupted(path):
    """Ctrl-C ends a query that would never end, and no file stays."""
    out = os.path.join(scratch(), "out.csv")
    child = subprocess.Popen(
        [MEMTRACE, "query", "--output", out, path, "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n"
         " FROM c) SELECT n FROM c"], env=clean_environment(**SETTINGS), stderr=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))  # a shell's background job ignores it
    end = time.monotonic() + 30
    while not os.listdir(os.path.dirname(out)) and time.monotonic() < end:
        time.sleep(0.02)
    child.send_signal(signal.SIGINT)
    try:
        equal(child.wait(60) != 0, True, "status after Ctrl-C")
    finally:
        child.kill()  # it would go on for ever
    equal(os.listdir(os.path.dirname(out)), [], "files after Ctrl-C")


def asked_with_peak(path, sql):
    """What it answers, and the most memory that it had, in KiB."""
    child = subprocess.Popen([MEMTRACE, "query", path, sql], env=clean_environment(**SETTINGS),
                             stdout=subprocess.PIPE)
    answer = child.stdout.read()
    child.stdout.close()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    equal(child.returncode, 0, sql, "status")
    return answer, usage.ru_maxrss


def check_memory(path):
    """A sort of 60 MB of text goes to the disk. Memory is compared, not limited: what a limit does to
    libraries is their affair."""
    texts = ("(SELECT printf('%400d', a.id * 7919 % 10007) text FROM allocations a,"
             " (SELECT id FROM allocations LIMIT 400) LIMIT 150000)")
    _, without = asked_with_peak(path, "SELECT max(text) FROM " + texts)
    answer, sorting = asked_with_peak(
        path, "SELECT count(*), max(place), max(text) > '' FROM (SELECT text, row_number() OVER"
        " (ORDER BY text) place FROM " + texts + ")")
    equal(answer, b"150000\t150000\t1\n", "many rows")
    equal(sorting < without + (20 << 10), True, "memory of a sort, in KiB:", sorting, "without:", without)


def check_limit(path):
    """What needs more memory than is allowed ends by one line that says so."""
    asked = "SELECT length(hex(zeroblob(200000000)))"
    result = run(path, "--memory-limit", "128M", asked)
    equal((result.returncode, result.stderr.count(b"\n")), (1, 1), "a memory limit", result.stderr)
    for word in (b"out of memory", b"the limit is 128.0 MiB", b"--memory-limit"):
        equal(word in result.stderr, True, word, result.stderr)
    equal(run(path, "--memory-limit", "2G", asked).stdout, b"400000000\n", "a higher limit")


def main():
    folder = scratch()
    path = busy(scratch(), steps=400)
    check_read_only(path, folder)
    check_errors(path)
    check_damaged(path, scratch(), random.Random(3))
    check_interrupted(path)
    check_memory(path)
    check_limit(path)
    equal(column(path, "SELECT count(*) FROM allocations WHERE size < -1"), [0], "nothing")
    equal(ask(path, "SELECT * FROM allocations LIMIT 0"), [], "no rows")


main()
finish()
