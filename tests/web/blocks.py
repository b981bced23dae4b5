# SPDX-License-Identifier: MIT
"""Single blocks: the table in any order, window by window, holds what SQL finds, each block once; one
block with its chain and its neighbours; and the block at an address, at any time."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "asking"))

from serving import Server, equal, fail, finish, scratch  # noqa: E402
from queried import ask, busy  # noqa: E402

NULLS_LAST = float("inf")
# Of the page, of SQL.
SAME = {"id": "id", "size": "size", "slack": "slack", "birth_ns": "born", "death_ns": "freed",
        "thread": "thread", "freed_by": "freed_by", "chain_length": "chain_length",
        "alignment": "alignment", "class": "class", "pool": "pool", "scope": "scope",
        "mapped": "mapped", "arena": "arena"}


def expected(path, where="1", *options):
    """By id what SQL says; addresses and hashes as the page spells them."""
    rows = ask(path, "SELECT a.*, c.hash FROM allocations a JOIN contexts c ON c.id = a.context"
                     f" WHERE {where}", *options)
    return {row["id"]: {name: row[sql] for name, sql in SAME.items()} | {
        "address": hex(row["address"]) if row["address"] else None, "hash": row["hash"]}
        for row in rows}


def windows(server, limit, **parameters):
    """The whole table, window by window."""
    rows, cursor = [], {}
    while True:
        answer = server.data("/r/1/blocks", limit=limit, **parameters, **cursor)
        from serving import table
        rows += table(answer)
        if len(answer["rows"]) > limit:
            fail("a window of", limit, "has", len(answer["rows"]))
        if "next" not in answer:
            equal(answer["total"], len(rows), parameters, "total")
            return rows
        cursor = {"cursor": answer["next"]}


def same_rows(rows, wanted, *what):
    got = {row["id"]: {name: row[name] for name in [*SAME, "address", "hash"]} for row in rows}
    equal(len(got), len(rows), *what, "each block once")
    equal(sorted(got), sorted(wanted), *what, "ids")
    for name, row in got.items():
        if not equal(row, wanted.get(name), *what, "block", name):
            break


def check_orders(server, path):
    wanted = expected(path, "a.class = 'heap'")
    for column, order in (("size", "desc"), ("size", "asc"), ("birth_ns", "asc"),
                          ("death_ns", "desc"), ("address", "asc"), ("chain_length", "desc"),
                          ("path", "asc"), ("scope", "desc"), ("hash", "asc")):
        rows = windows(server, 777, all="", sort=column, order=order)
        same_rows(rows, wanted, "all by", column, order)
        keys = [row[column] for row in rows]
        keys = [key[0] if isinstance(key, list) and key else key or None for key in keys] \
            if column in ("path", "scope") else keys
        if column == "address":
            keys = [int(key, 16) if key else None for key in keys]
        known = [key for key in keys if key is not None]
        equal(keys[len(known):], [None] * (len(keys) - len(known)), column, "unknown ones last")
        equal(known, sorted(known, reverse=order == "desc"), "order by", column, order)
    # Equal ones by birth, as the report has them.
    rows = windows(server, 5000, all="1", sort="size")
    keys = [(-row["size"], row["id"]) for row in rows]
    equal(keys, sorted(keys), "ties by birth")


def check_live(server, path):
    rows = windows(server, 100)
    same_rows(rows, expected(path, "a.class = 'heap' AND a.freed IS NULL"), "living ones")
    for options, parameters in (((["--size", "24..2000"]), {"size": "24..2000"}),
                                (["--function", "alpha"], {"function": "alpha"}),
                                (["--to", "50%"], {"to": "50%"}),
                                (["--from", "30%", "--to", "60%"], {"from": "30%", "to": "60%"})):
        rows = windows(server, 100, **parameters)
        same_rows(rows, expected(path, "a.class = 'heap' AND a.freed IS NULL", *options),
                  "living ones with", options)


def check_one(server, path):
    wanted = expected(path)
    chained = ask(path, "SELECT id, chain FROM allocations WHERE chain_length = 3 LIMIT 5")
    freed = ask(path, "SELECT id, chain FROM allocations WHERE freed IS NOT NULL AND"
                      " realloc_of IS NULL AND NOT reallocated LIMIT 3")
    live = ask(path, "SELECT id, chain FROM allocations WHERE freed IS NULL AND class = 'heap'"
                     " AND address IS NOT NULL LIMIT 5")
    from serving import table
    for block in chained + freed + live:
        told = server.data("/r/1/blocks/%d" % block["id"])
        row = told["block"]
        equal({name: row[name] for name in [*SAME, "address", "hash"] if name != "scope"},
              {name: value for name, value in wanted[block["id"]].items() if name != "scope"},
              "block", block["id"])
        chain = [other["id"] for other in table(told["chain"])]
        equal(chain, [other["id"] for other in
                      ask(path, "SELECT id FROM allocations WHERE chain = %d ORDER BY id"
                          % block["chain"])], "chain of", block["id"])
        places = [int(other["address"], 16) for other in table(told["neighbours"])]
        equal(places, sorted(places), "neighbours by address")
        if block in live and int(row["address"], 16) not in places:
            fail("block", block["id"], "is not among its neighbours")
        names = [frame["function"] for frame in told["path"]]
        if "main" not in names and "work" not in names and "thread" not in " ".join(names):
            fail("block", block["id"], "has a strange path", names)


def check_addresses(server, path):
    for block in ask(path, "SELECT id, address, size, born, freed FROM allocations"
                           " WHERE address IS NOT NULL AND class = 'heap' AND size > 1"
                           " ORDER BY id % 97 LIMIT 12"):
        inside = hex(block["address"] + block["size"] // 2)
        told = server.data("/r/1/blocks/at", address=inside, time="%dns" % block["born"])
        lived = ask(path, "SELECT id FROM allocations WHERE class = 'heap' AND address <= %d"
                          " AND address + size > %d AND born <= %d AND coalesce(freed, 1e18) > %d"
                    % (block["address"] + block["size"] // 2,
                       block["address"] + block["size"] // 2, block["born"], block["born"]))
        if lived and told["block"]["id"] not in [row["id"] for row in lived]:
            fail("at", inside, "there were", lived, "and the answer is", told["block"]["id"])
    status, problem = server.ask("/r/1/blocks/at", address="0x10")
    equal((status, "0x10" in problem["detail"]), (404, True), "nothing at 0x10", problem)


def check_refused(server):
    for address, parameters, wanted, text in (
            ("/r/1/blocks", {"sort": "nonsense"}, 400, "nonsense"),
            ("/r/1/blocks", {"cursor": "-1"}, 400, "cursor"),
            ("/r/1/blocks", {"limit": "1000000"}, 400, "limit"),
            ("/r/1/blocks", {"all": "2"}, 400, "all"),
            ("/r/1/blocks/x", {}, 400, "'x'"), ("/r/1/blocks/999999999", {}, 404, "999999999"),
            ("/r/1/blocks/at", {"address": "0xzz"}, 400, "0xzz"),
            ("/r/1/blocks/at", {"address": "0x10", "time": "soon"}, 400, "soon"),
            ("/r/2/blocks", {}, 400, "single blocks"), ("/r/2/sizes", {}, 400, "single blocks"),
            ("/r/2/heap", {}, 400, "single blocks")):
        status, problem = server.ask(address, **parameters)
        equal(status, wanted, address, parameters, problem)
        if text not in problem.get("detail", "") or "\n" in problem.get("detail", ""):
            fail(address, parameters, "is refused by", problem)


def main():
    folder = scratch()
    path = busy(folder)
    profile = os.path.join(folder, next(name for name in os.listdir(folder)
                                        if name.endswith(".mtp")))
    server = Server(path, profile)
    check_orders(server, path)
    check_live(server, path)
    check_one(server, path)
    check_addresses(server, path)
    check_refused(server)
    server.close()
    finish()


main()
