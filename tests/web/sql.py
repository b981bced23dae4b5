# SPDX-License-Identifier: MIT
"""SQL of the page: what `memtrace query` answers, bounded in rows, time and memory; nothing is written,
no other file is opened; an answer that nobody waits for any more is given up."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "asking"))

from serving import ENDS_WITHIN_S, Server, ends_after, equal, fail, finish, scratch, wait_for_work  # noqa: E402
from queried import ask, busy  # noqa: E402

QUESTIONS = (
    "SELECT * FROM summary", "SELECT * FROM contexts ORDER BY total_bytes DESC, id LIMIT 7",
    "SELECT class, count(*) AS n, sum(size) AS bytes FROM allocations GROUP BY class ORDER BY class",
    "SELECT thread, count(*) FROM allocations WHERE size BETWEEN 100 AND 2000 GROUP BY 1 ORDER BY 1",
    "SELECT path(context) AS p, count(*) AS n FROM allocations GROUP BY context ORDER BY n DESC, p",
    "SELECT 9007199254740993 AS large, -5 AS low, 1.5 AS part, 'it''s' AS text, NULL AS none")
DENIED = ("INSERT INTO contexts VALUES (1)", "DELETE FROM allocations", "UPDATE summary SET pid = 1",
          "ATTACH '/tmp/elsewhere' AS e", "SELECT load_extension('/tmp/x.so')", "CREATE TABLE t(a)",
          "DROP TABLE contexts", "PRAGMA journal_mode = WAL", "VACUUM INTO '/tmp/copy'",
          "SELECT readfile('/etc/passwd')", "SELECT writefile('/tmp/x', 'y')", "SELEC 1",
          "SELECT fts3_tokenizer('simple')", "SELECT fts3_tokenizer('a', x'4141414141414141')", "SELECT fts5(NULL)",
          "CREATE TEMP TABLE t AS SELECT 3 AS a", "CREATE TEMP VIEW v AS SELECT 3 AS a", "BEGIN", "SAVEPOINT s")
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


def check_answers(server, path):
    for sql in QUESTIONS:
        for options, filters in (([], {}), (["--size", "..1000"], {"size": "..1000"})):
            rows = server.rows("/r/1/query", {"sql": sql}, **filters)
            wanted = ask(path, sql, *options)
            spelled = [{name: str(value) if isinstance(value, int) and abs(value) > 2 ** 53 else value
                        for name, value in row.items()} for row in wanted]
            for got, row in zip(rows, spelled):
                equal({name: rounded(got[name]) for name in got},
                      {name: rounded(value) for name, value in row.items()}, sql, filters)
            equal(len(rows), len(wanted), sql, filters, "rows")


def rounded(value):
    return float("%.5g" % value) if isinstance(value, float) else value


def check_bounds(server, path):
    count = ask(path, "SELECT count(*) AS n FROM allocations")[0]["n"]
    data = server.data("/r/1/query", {"sql": "SELECT id FROM allocations", "limit": 10})
    equal((len(data["rows"]), data["truncated"]), (10, True), "a limit")
    data = server.data("/r/1/query", {"sql": "SELECT id FROM allocations", "limit": count})
    equal((len(data["rows"]), data["truncated"]), (count, False), "a limit that is not met")
    wide = server.data("/r/1/query", {"sql": "SELECT " + ", ".join("%d AS c%d" % (i, i) for i in range(300))})
    equal(wide["rows"], [list(range(300))], "more columns than a byte counts")
    series = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 150000)"
    data = server.data("/r/1/query", {"sql": series + " SELECT i FROM n"})
    equal((len(data["rows"]), data["truncated"]), (100000, True), "100,000 rows at most")
    before = server.memory_kb("VmHWM")
    data = server.data("/r/1/query", {"sql": series + " SELECT printf('%.*c', 100000, 'x') FROM n"})
    equal((100 < len(data["rows"]) < 1000, data["truncated"]), (True, True), "bytes are bounded")
    status, problem = server.ask("/r/1/query", {"sql": "SELECT length(zeroblob(900000000))"})
    equal(status, 400, "a value of 900 MB", problem)
    if server.memory_kb("VmHWM") > before + 500 * 1024:
        fail("memory grew from", before, "to", server.memory_kb("VmHWM"), "KiB")


def check_refused(server):
    for sql in DENIED:
        status, problem = server.ask("/r/1/query", {"sql": sql})
        if status != 400 or not problem.get("detail") or "\n" in problem["detail"]:
            fail(sql, ": status", status, problem)
    for body in ({}, {"sql": 5}, {"sql": "SELECT 1", "limit": 0}, {"sql": "SELECT 1", "limit": 100001},
                 {"sql": "SELECT 1", "limit": "5"}, {"sql": "SELECT 1", "more": 1}, [],
                 {"sql": "SELECT 1", "plan": 1}):
        status, problem = server.ask("/r/1/query", body)
        equal(status, 400, body, problem)
    equal(server.data("/r/1/query", {"sql": ""})["rows"], [], "nothing was asked")


def check_plan(server):
    data = server.data("/r/1/query", {"sql": "SELECT * FROM allocations WHERE size = 24", "plan": True})
    if "size=" not in data["plan"] or data["rows"]:
        fail("a plan:", data)
    status, answer = server.ask("/r/1/query", {"sql": "SELECT 1; SELECT 2", "plan": True})
    equal(status, 200, "the plan of two statements", answer)


def check_schema(server, path):
    tables = {table["name"]: table for table in server.data("/r/1/schema")["tables"]}
    for name, told in tables.items():
        columns = [(row["name"], row["type"]) for row in ask(path, "PRAGMA table_info(%s)" % name)]
        equal([(column["name"], column["type"]) for column in told["columns"]], columns, name)
    equal({"allocations", "contexts", "threads", "markers"} <= set(tables), True, sorted(tables))


def check_cancel(server):
    """More endless questions than there are workers, each given up: all workers are free again."""
    for _ in range(6):
        connection = server.connect()
        server.request(connection, "/r/1/query", {"sql": ENDLESS})
        if not wait_for_work(server):
            fail("an endless question does nothing: workers are busy with one that was given up")
        connection.close()
    took = ends_after(server)
    print(f"at rest {took * 1000:.0f} ms after the last endless question was given up")
    if took > ENDS_WITHIN_S:
        fail("a question that nobody waits for went on for", took, "s")
    equal(server.rows("/r/1/query", {"sql": "SELECT 1 AS one"}), [{"one": 1}], "afterwards")


def main():
    path = busy(scratch())
    server = Server(path)
    check_answers(server, path)
    check_bounds(server, path)
    check_refused(server)
    check_plan(server)
    check_schema(server, path)
    check_cancel(server)
    server.close()
    finish()


main()
