# SPDX-License-Identifier: MIT
"""mappingfilters.py: --mapping-permissions and --mapping-peak-rss choose mappings, and the blocks in them: those of a
program that knows how many of its pages are resident and what may be done with them, as arithmetic says; and at random,
alone and together, as counting the rows of SQL's table smaps says."""

import os
import random
import subprocess

import lives
from processmaps import fits, history, lay_in, smaps, told
from recorded import only_recording, start, wait_until
from harness import build, equal, fail, finish, report, scratch

HERE = os.path.dirname(os.path.abspath(__file__))
MIB, PAGE = 1 << 20, 4096
READ, CODE, NONE, GONE = 8 * MIB, 6 * MIB, 9 * MIB, 12 * MIB  # the blocks of permitted.c, by size
KNOWN = [  # filters of mappings, and which of the large blocks lie in one
    (["--mapping-permissions", "r--p"], {READ}),
    (["--mapping-permissions", "rwx"], {CODE}),
    (["--mapping-permissions", "..x."], {CODE, GONE}),
    (["--mapping-permissions", "???s"], set()),
    (["--mapping-permissions", "---p"], {NONE}),
    (["--mapping-permissions", "r-x", "--mapping-peak-rss", "4M"], {GONE}),  # as it was before its pages were given back
    (["--mapping-peak-rss", "2M"], {READ}),
    (["--mapping-peak-rss", "2097153..5M"], {CODE, GONE}),
    (["--mapping-peak-rss", "5M.."], {CODE, NONE}),
    (["--mapping-peak-rss", "7M", "--mapping-permissions", "---"], {NONE}),
    (["--mapping-peak-rss", "7M", "--mapping-permissions", "r.."], set()),
]


def pages_of(address):
    return (address + PAGE - 1) // PAGE * PAGE


def seen(folder, address, resident):
    """Whether the collector has seen the mapping of these pages with so much of it resident."""
    paths = [os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".mtr")]
    rows = smaps(paths[0]) if paths else []
    return any(row["address"] == pages_of(address) and row["resident_bytes"] == resident for row in rows)


def recorded(folder):
    """The recording, and where the large blocks lay, by size."""
    process = start([build(os.path.join(HERE, "permitted.c"))], folder, "--no-summary", stdin=subprocess.PIPE)
    lines = iter(process.stdout.readline, b"ready\n")
    places = {int(size): int(address, 16) for address, size in (line.split() for line in lines)}
    for resident, answer in ((4 * MIB, b"done\n"), (0, b"")):
        wait_until(lambda: seen(folder, places[GONE], resident), "a look at the mappings", seconds=100)
        process.stdin.write(b"\n")
        process.stdin.flush()
        equal(process.stdout.readline(), answer, "the program")
    process.stdin.close()
    equal(process.wait(), 1, "the program", process.stderr.read())
    return only_recording(folder, "permitted"), places


class Asker:
    def __init__(self, path):
        self.path = path
        self.rows = smaps(path)
        self.found, self.last = history(self.rows)
        self.blocks = [life for life in lives.Story(path).lives if life.heap]

    def check(self, options, holds):
        """Blocks, mappings and rows of smaps are those of the mappings for which `holds` is true."""
        chosen = [one for one in self.found if holds(one)]
        inside = [life for life in self.blocks if lay_in(life, chosen)]
        data = report(self.path, {"MEMTRACE_CACHE": ""}, *options)
        equal((data["allocations"], data["total_bytes"]), (len(inside), sum(life.size for life in inside)),
              options, "blocks")
        self.check_listed(options, chosen)
        numbers = {one["number"] for one in chosen}
        equal([(row["time"], row["address"]) for row in smaps(self.path, *options)],
              [(row["time"], row["address"]) for row in self.rows if row["mapping"] in numbers], options, "smaps")
        return chosen, inside

    def check_listed(self, options, chosen):
        parts = told("report", "--json", "--show-mappings", "-n", "0", *options, self.path)["reports"]
        listed = {part["name"]: part["rows"] for part in parts}
        equal(sorted((row["id"], row["permissions"], row["peak_resident_bytes"]) for row in listed["each-mapping"]),
              [(one["number"], one["may"], one["peak"]) for one in chosen if one in self.last], options, "each mapping")
        now = [row for row in self.rows if row["time"] == self.rows[-1]["time"]
               and row["mapping"] in {one["number"] for one in chosen}]
        equal([sum(row[name] for row in listed["mappings"]) for name in ("mappings", "size", "resident_bytes")],
              [len(now), sum(row["size"] for row in now), sum(row["resident_bytes"] for row in now)], options, "by name")


def check_known(asker, places):
    for options, sizes in KNOWN:
        parts = report(asker.path, {"MEMTRACE_CACHE": ""}, *options, "--size", "%d.." % (2 * MIB))
        equal((parts["allocations"], parts["total_bytes"]), (len(sizes), sum(sizes)), options, "large blocks")
        listed = told("report", "--json", "--show-mappings", "-n", "0", *options, asker.path)["reports"]
        starts = {int(row["start"], 16) if isinstance(row["start"], str) else row["start"]
                  for part in listed if part["name"] == "each-mapping" for row in part["rows"]}
        equal({size for size, address in places.items() if pages_of(address) in starts}, sizes, options, "their mappings")


def random_filter(dice, asker):
    """Options, and what holds for a mapping."""
    options, parts = [], []
    if dice.randrange(3):
        may = dice.choice(asker.found)["may"][:dice.randrange(3, 5)]
        may = "".join(dice.choice((letter, letter, ".", "?")) for letter in may)
        options += ["--mapping-permissions", may]
        parts.append(lambda one: fits(one, may))
    if dice.randrange(3) or not parts:
        low, high = sorted(dice.choice(asker.found)["peak"] for _ in range(2))
        text, least, most = dice.choice((("%d..%d" % (low, high), low, high), ("%d.." % low, low, lives.NEVER),
                                         ("..%d" % high, 0, high), ("%dK" % (low // 1024), low, low)))
        options += ["--mapping-peak-rss", text]
        parts.append(lambda one: least <= one["peak"] <= most)
    if dice.randrange(6) == 0:
        number = dice.randrange(1, 1 + len(asker.found))
        options += ["--mapping", str(number)]
        parts.append(lambda one: one["number"] == number)
    return options, lambda one: all(part(one) for part in parts)


def main():
    path, places = recorded(scratch())
    asker = Asker(path)
    check_known(asker, places)
    dice = random.Random(1)
    told_apart = [asker.check(*random_filter(dice, asker)) for _ in range(25)]
    telling = sum(0 < len(inside) < len(asker.blocks) for _, inside in told_apart)
    if telling < 4:
        fail("only", telling, "filters choose a part of the blocks")
    asker.check(["--mapping-permissions", "...."], lambda one: True)


main()
finish()
