# SPDX-License-Identifier: MIT
"""The mappings of a process over time, made of SQL's table smaps alone: what docs/report.md says of them."""

import json

import lives
from lives import reader  # noqa: F401  (sets the path of what tests of recordings share)
from recorded import MEMTRACE, clean_environment, equal, execute


HIGHEST = "[vsyscall]"  # SQL has no address so high


def told(*words):
    """What a command says in JSON."""
    result = execute([MEMTRACE, *words], clean_environment(MEMTRACE_CACHE=""))
    equal(result.returncode, 0, words, result.stderr)
    return json.loads(result.stdout)


def smaps(path, *options):
    return told("query", "--format", "json", *options, path, "SELECT * FROM smaps ORDER BY time, address")


def history(rows):
    """Of the rows of smaps: each mapping ever seen, in the order of their numbers, and those of the last moment. What has
    a name and overlaps with what had it at the moment before goes on."""
    times = sorted({row["time"] for row in rows})
    found, last = [], []
    for place, time in enumerate(times):
        now = []
        for row in [row for row in rows if row["time"] == time]:
            start, end = row["address"], row["address"] + row["size"]
            goes_on = [one for one in last if one["start"] < end and start < one["end"]]
            one = goes_on[0] if goes_on and goes_on[0]["name"] == row["name"] and goes_on[0] not in now else None
            if one is None:
                one = {"number": len(found) + 1, "name": row["name"], "least": start, "most": end, "peak": 0,
                       "from": times[place - 1] if place else 0}
                found.append(one)
            row["mapping"] = one["number"]
            one.update(start=start, end=end, least=min(one["least"], start), most=max(one["most"], end), to=lives.NEVER,
                       may=row["protection"] + "ps"[row["shared"]], peak=max(one["peak"], row["resident_bytes"]))
            now.append(one)
        for one in last:
            if one not in now:
                one["to"] = time
        last = now
    return found, last


def lay_in(life, mappings):
    """Some byte of the block, while one of them was there."""
    return life.address != 0 and any(
        life.address < one["most"] and life.address + max(life.size, 1) > one["least"]
        and life.birth < one["to"] and life.death > one["from"] for one in mappings)


def fits(one, permissions):
    return all(asked in ".?" or asked == there for asked, there in zip(permissions, one["may"]))
