#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Random sets of filters: the page's totals are those of the command that it shows, and of SQL over all
allocations, which knows nothing of filters. TEST_FILTER_SETS: how many (500), TEST_SEED: which."""
import json
import os
import random
import re
import shlex
import subprocess
import sys
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
for folder in ("web/python", "programs", "selection"):
    sys.path.insert(0, os.path.join(os.path.dirname(HERE), folder))
from processmaps import fits, history, smaps  # noqa: E402
from webserver import MEMTRACE, Server, check

RECORDING = os.path.join(HERE, "data", "shop.mtr")
SETS = int(os.environ.get("TEST_FILTER_SETS", "500"))
SEED = os.environ.get("TEST_SEED", "1")


def query(server, sql):
    status, _, body = server.ask("/api/v1/r/1/query", method="POST", headers={"Content-Type": "application/json"},
                                 body=json.dumps({"sql": sql}))
    check(sql, status == 200, body)
    data = json.loads(body)["data"]
    return [list(row) for row in data["rows"]]


class Population:
    """What there is to choose from, asked for in SQL."""

    def __init__(self, server):
        first = "SELECT DISTINCT %s FROM allocations WHERE %s IS NOT NULL ORDER BY 1"
        self.of = {name: [row[0] for row in query(server, first % (name, name))]
                   for name in ("size", "lifetime", "thread", "freed_by", "born", "freed", "first_size",
                                "chain_length", "slack")}
        self.mappings, _ = history(smaps(RECORDING))
        self.functions = [row[0] for row in query(
            server, "SELECT DISTINCT function FROM frames WHERE function GLOB '[a-z_]*' ORDER BY 1")]

    def in_mappings(self, holds):
        """SQL: the block lay in one of those, while it was there."""
        lay = ("(address < %(most)d AND address + max(size, 1) > %(least)d AND born < %(end)d"
               " AND coalesce(freed, 1 << 62) > %(from)d)")
        chosen = [lay % {**one, "end": min(one["to"], 1 << 62)} for one in self.mappings
                  if holds(one) and one["most"] < 1 << 62]
        return "(%s)" % " OR ".join(chosen or ["0"])

    def range(self, rng, name, unit=""):
        """A range with two ends, with one, or of one value; and the same in SQL."""
        low, high = sorted(rng.choices(self.of[name], k=2))
        return rng.choice([
            ("%d%s..%d%s" % (low, unit, high, unit), "%s BETWEEN %d AND %d" % (name, low, high)),
            ("%d%s.." % (low, unit), "%s >= %d" % (name, low)),
            ("..%d%s" % (high, unit), "%s <= %d" % (name, high)),
            ("%d%s" % (low, unit), "%s = %d" % (name, low))])


def one_filter(rng, there):
    """(option, its value or None, SQL)"""
    kind = rng.choice(("size", "lifetime", "thread", "freed-by", "leaked", "temporary", "freed-by-others", "arena",
                       "first-size", "chain-position", "where", "function", "not-function", "allocated",
                       "mapping-permissions", "mapping-peak-rss"))
    if kind in ("size", "first-size"):
        return kind, *there.range(rng, kind.replace("-", "_"))
    if kind == "mapping-permissions":
        may = "".join(rng.choice((letter, ".")) for letter in rng.choice(there.mappings)["may"])
        return kind, may, there.in_mappings(lambda one: fits(one, may))
    if kind == "mapping-peak-rss":
        low, high = sorted(rng.choices([one["peak"] for one in there.mappings], k=2))
        return kind, "%d..%d" % (low, high), there.in_mappings(lambda one: low <= one["peak"] <= high)
    if kind == "chain-position":
        return kind, *there.range(rng, "chain_length")
    if kind == "lifetime":
        text, sql = there.range(rng, "lifetime", "ns")
        # What was never freed lived to the end.
        return kind, text, sql.replace("lifetime", "coalesce(lifetime, (SELECT duration FROM summary) - born)")
    if kind in ("thread", "freed-by"):
        name = kind.replace("-", "_")
        chosen = rng.choice(there.of[name])
        return kind, str(chosen), "%s = %d" % (name, chosen)
    if kind == "where":
        modulo = rng.randrange(2, 9)
        sql = rng.choice(["size %% %d = 0" % modulo, "usable > size + %d" % rng.choice(there.of["slack"]),
                          "realloc_of IS NULL", "address / 16 %% %d < 2" % modulo])
        return kind, sql, "(%s)" % sql
    if kind in ("function", "not-function"):
        name = rng.choice(there.functions)
        found = "context %s (SELECT context FROM frames WHERE function = '%s')"
        return kind, "^%s$" % re.escape(name), found % ("IN" if kind == "function" else "NOT IN", name)
    if kind == "allocated":
        low, high = sorted(rng.choices(there.of["born"], k=2))
        return kind, "%dns..%dns" % (low, high), "born >= %d AND born < %d" % (low, high)
    if kind == "arena":
        chosen = rng.choice(("main", "other"))
        return kind, chosen, "arena = %d" % (chosen == "other")
    return kind, None, {"leaked": "freed IS NULL", "temporary": "temporary = 1",
                        "freed-by-others": "freed_by <> thread"}[kind]


def totals(data):
    return data["allocations"], data["total_bytes"], data["live_blocks"], data["live_bytes"]


def by_command(line):
    words = shlex.split(line)
    done = subprocess.run([MEMTRACE, *words[1:], "--json", "--nodes"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)
    check(line, done.returncode == 0, done.stderr)
    told = json.loads(done.stdout)
    return tuple(told[name] for name in ("allocations", "total_bytes", "live_blocks", "live_bytes"))


def one_set(server, rng, there):
    """Returns how many allocations it has."""
    chosen = {}
    for _ in range(rng.randrange(1, 5)):
        kind, value, sql = one_filter(rng, there)
        chosen[kind] = value, sql
    address = urllib.parse.urlencode({kind: value if value is not None else "1"
                                      for kind, (value, _) in chosen.items()})
    answer = server.get("/r/1?" + address)
    page = totals(answer["data"]["totals"])
    counted = query(server, "SELECT count(*), coalesce(sum(size), 0), count(*) - count(freed), "
                    "coalesce(sum(size) FILTER (WHERE freed IS NULL), 0) FROM allocations WHERE class = 'heap' AND " +
                    " AND ".join(sql for _, sql in chosen.values()))[0]
    told = by_command(answer["command"])
    check("seed %s, %s: page, SQL, command" % (SEED, answer["command"]), page == tuple(counted) == told,
          page, counted, told)
    return page[0]


def main():
    rng = random.Random(SEED)
    with Server(RECORDING) as server:
        server.wait_open(1)
        there = Population(server)
        counts = [one_set(server, rng, there) for _ in range(SETS)]
    # Sets that select nothing, or all, tell nothing.
    telling = sum(0 < count < max(counts) for count in counts)
    check("sets that select a part", telling > SETS // 3, telling, SETS)


main()
