# SPDX-License-Identifier: MIT
"""The forms that answers have, where statements come from, and a person at a terminal."""

import csv
import io
import json
import os
import pty
import re
import select
import signal
import subprocess
import time

from queried import (MEMTRACE, SETTINGS, ask, busy, clean_environment, equal, execute, fail, finish, run,
                     scratch)

ROW = ("SELECT 1234567 AS n, 'a\"b,c' AS \"q,t\", NULL AS none, 1.5 AS real, 'x' || char(10) || "
       "char(9) || '|\\' AS text, x'00ff' AS blob")


def output(path, *arguments, **more):
    result = run(path, *arguments, **more)
    equal((result.returncode, result.stderr), (0, b""), arguments)
    return result.stdout.decode()


def check_formats(path):
    names = ["n", "q,t", "none", "real", "text", "blob"]
    rows = list(csv.reader(io.StringIO(output(path, "--format", "csv", ROW), newline="")))
    equal(rows[0], names, "csv heading")
    equal(rows[1][:5], ["1234567", 'a"b,c', "", "1.5", "x\n\t|\\"], "csv")
    equal(output(path, "--format", "csv", "SELECT '' AS a, NULL AS b, x'00ff' AS c, 1.0 AS d"),
          'a,b,c,d\r\n"",,"00ff",1.0\r\n', "csv: what is empty, what is not there")
    equal(json.loads(output(path, "--format", "json", ROW)),
          [dict(zip(names, [1234567, 'a"b,c', None, 1.5, "x\n\t|\\", "00ff"]))], "json")
    tsv = output(path, "--format", "tsv", ROW).split("\n")
    equal(tsv[0], "\t".join(names), "tsv heading")
    equal(tsv[1].split("\t")[:5], ["1234567", 'a"b,c', "", "1.5", "x\\n\\t|\\\\"], "tsv")
    equal(output(path, "--format", "tsv", "--header", "off", "SELECT 'a' || char(13) || 'b'"), "a\\rb\n", "tsv")
    equal(output(path, "SELECT 1234567, NULL, 'x'"), "1234567\t\tx\n", "to a pipe")
    equal(output(path, "--header", "on", "SELECT 1 AS a"), "a\n1\n", "--header on")
    equal(output(path, "--format", "csv", "--header", "off", "SELECT 1 AS a"), "1\r\n", "--header off")
    sql = "SELECT 'ä' AS name, 12345 AS n UNION ALL SELECT 'bcd|', NULL"
    equal(output(path, "--format", "table", sql),
          "name      n\n----  -----\nä     12345\nbcd|   NULL\n", "table")
    equal(output(path, "--format", "markdown", sql),
          "| name  |     n |\n| ----- | ----: |\n| ä     | 12345 |\n| bcd\\| |  NULL |\n", "markdown")
    equal(output(path, "--format", "markdown", "SELECT 'a_b<c>*`' AS x_y"),
          "| x\\_y          |\n| ------------- |\n| a\\_b\\<c\\>\\*\\` |\n", "markdown's own signs")
    equal(output(path, "--format", "table", "SELECT 1 AS a WHERE 0"), "a\n-\n", "no rows")
    # More rows than are kept for the widths.
    lines = output(path, "--format", "table", "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1"
                                              " FROM c WHERE n < 2500) SELECT n FROM c").split("\n")
    equal([int(line) for line in lines[2:-1]], list(range(1, 2501)), "many rows")


def check_functions(path):
    row = ask(path, "SELECT bytes(1048576) b, bytes(NULL) n, duration(1500000000) d, duration(-1500000) before, address(255) a,"
                    " 'abc' REGEXP '^a.c$' yes, 'abc' REGEXP 'x' no, NULL REGEXP 'x' none,"
                    " path(0) p, (SELECT count(*) FROM contexts WHERE path(id) <> path OR"
                    " function(id) <> function) differ")[0]
    equal(row, {"b": "1.0 MiB", "n": None, "d": "1.5 s", "before": "-1.5 ms", "a": "0xff", "yes": 1, "no": 0,
                "none": None, "p": None, "differ": 0}, "functions")
    result = run(path, "SELECT 'a' REGEXP '('")
    equal((result.returncode, result.stderr.count(b"\n")), (1, 1), "bad pattern", result.stderr)


def check_sources(path, folder):
    script = os.path.join(folder, "x.sql")
    with open(script, "w", encoding="utf-8") as file:
        file.write("-- a script\n.format csv\n.header off\nSELECT 1,\n  2; SELECT 3;\n.tables\nSELECT 4")
    result = execute([MEMTRACE, "query", "--script", script, path], clean_environment(**SETTINGS))
    lines = result.stdout.decode().replace("\r", "").split("\n")
    equal((result.returncode, lines[0], lines[1], lines[-2]), (0, "1,2", "3", "4"), "--script")
    with open(script, "rb") as file:
        piped = subprocess.run([MEMTRACE, "query", path], stdin=file, capture_output=True,
                               env=clean_environment(**SETTINGS), timeout=60)
    equal((piped.returncode, piped.stdout), (0, result.stdout), "statements from a pipe", piped.stderr)
    stops = subprocess.run([MEMTRACE, "query", path], input=b"SELECT 1;\nSELEC 2;\nSELECT 3;\n",
                           capture_output=True, env=clean_environment(**SETTINGS), timeout=60)
    equal((stops.returncode, stops.stdout), (1, b"1\n"), "a wrong statement ends it", stops.stderr)
    newest = execute([MEMTRACE, "query", "SELECT count(*) FROM summary"],
                     clean_environment(**SETTINGS), cwd=os.path.dirname(path))
    equal((newest.returncode, newest.stdout), (0, b"1\n"), "the newest file", newest.stderr)
    kept = os.path.join(folder, "out.csv")
    output(path, "--format", "csv", "--output", kept, "SELECT 7 AS n")
    with open(kept, "rb") as file:
        equal(file.read(), b"n\r\n7\r\n", "--output")
    failed = run(path, "--output", kept + ".2", "SELECT nothing")
    equal((failed.returncode, os.path.exists(kept + ".2")), (1, False), "no file of a failure")


class Terminal:
    """A person's."""

    def __init__(self, path, folder):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update(SETTINGS, TERM="dumb", XDG_STATE_HOME=folder, COLUMNS="200")
            os.execv(MEMTRACE, [MEMTRACE, "query", path])
        self.seen = ""

    def wait(self, pattern, seconds=60):
        """What came up to the pattern."""
        end = time.monotonic() + seconds
        while not re.search(pattern, self.seen):
            if time.monotonic() > end or not select.select([self.fd], [], [], 1)[0]:
                if time.monotonic() > end:
                    fail("no", pattern, "in", self.seen)
                    os.kill(self.pid, signal.SIGKILL)
                    return ""
                continue
            try:
                self.seen += os.read(self.fd, 65536).decode(errors="replace")
            except OSError:
                fail("ended before", pattern, "in", self.seen)
                return ""
        at = re.search(pattern, self.seen).end()
        got, self.seen = self.seen[:at], self.seen[at:]
        return got

    def interrupt(self):
        """Ctrl-C, as a person does: again if nothing happens."""
        for _ in range(30):
            self.type("\x03")
            end = time.monotonic() + 2
            while time.monotonic() < end and "memtrace> " not in self.seen:
                if select.select([self.fd], [], [], 0.1)[0]:
                    self.seen += os.read(self.fd, 65536).decode(errors="replace")
            if "memtrace> " in self.seen:
                break
        self.wait("memtrace> ")

    def type(self, text):
        os.write(self.fd, text.encode())


def check_terminal(path, folder):
    terminal = Terminal(path, folder)
    terminal.wait("memtrace> ")
    terminal.type("SELECT 1234567 AS n,\n")
    terminal.wait(r"\.\.\.> ")
    terminal.type("  'two';\n")
    equal("1,234,567" in terminal.wait("1,234,567.*two[^>]*memtrace> "), True, "numbers for people")
    terminal.type(".schema threads\n")
    terminal.wait("foreign_frees(.|\n)*memtrace> ")
    terminal.type(".schema allocations\n")  # ids are no order by time of several threads
    terminal.wait("by time of one thread; of all, ORDER BY born(.|\n)*memtrace> ")
    terminal.type("WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT sum(n) FROM c;\n")
    terminal.wait("FROM c;")
    terminal.interrupt()
    terminal.type("SELECT 'dropped' ")
    terminal.interrupt()
    terminal.type("SELECT 40 + 2;\n")
    terminal.wait("42\\s(.|\n)*memtrace> ")
    terminal.type("SELEC;\n")
    terminal.wait("syntax error(.|\n)*memtrace> ")
    terminal.type("\x04")
    equal(os.waitstatus_to_exitcode(os.waitpid(terminal.pid, 0)[1]), 0, "status at Ctrl-D")
    with open(os.path.join(folder, "memtrace", "query_history"), encoding="utf-8") as file:
        equal("SELECT 40 + 2;" in file.read().replace("\\040", " "), True, "history")


def main():
    folder = scratch()
    path = busy(scratch(), steps=200)
    check_formats(path)
    check_functions(path)
    check_sources(path, folder)
    check_terminal(path, folder)


main()
finish()
