# SPDX-License-Identifier: MIT
"""mapping.py: --mapping NUMBER chooses the blocks that lay in that mapping while it was there, and
--show-mappings tells the numbers, permissions and the most that was resident: as counted of SQL's table smaps."""

import os

import lives
from processmaps import HIGHEST, history, lay_in, smaps, told
from recorded import only_recording, record
from harness import MEMTRACE, build, clean_environment, equal, execute, fail, finish, report, scratch

HERE = os.path.dirname(os.path.abspath(__file__))


def main():
    folder = scratch()
    under = record([build(os.path.join(HERE, "regions.c"), libraries=["-lpthread"])], folder)
    equal(under.returncode, 0, "the program", under.stderr)
    path = only_recording(folder, "regions")
    found, last = history(smaps(path))
    listed = {part["name"]: part["rows"] for part in told("report", "--json", "--show-mappings", "-n", "0", path)["reports"]}
    equal({row["id"]: (int(row["start"], 16) if isinstance(row["start"], str) else row["start"], row["permissions"],
                       row["peak_resident_bytes"]) for row in listed["each-mapping"] if row["name"] != HIGHEST},
          {number: (one["start"], one["may"], one["peak"]) for number, one in enumerate(found, 1)
           if one in last and one["name"] != HIGHEST},
          "each mapping")
    blocks = [life for life in lives.Story(path).lives if life.heap]
    large, places = {4 << 20: 0, 8 << 20: 0}, 0
    for number, one in enumerate(found, 1):
        inside = [life for life in blocks if lay_in(life, [one])]
        data = report(path, {"MEMTRACE_CACHE": ""}, "--mapping", str(number))
        equal((data["allocations"], data["total_bytes"]), (len(inside), sum(life.size for life in inside)),
              "in mapping", number, one)
        places += len(inside) != 0
        for life in inside:
            if life.size in large:
                large[life.size] += 1
    equal(list(large.values()), [1, 1], "the large blocks, each in one mapping")
    if places < 4:
        fail("blocks lie in", places, "mappings only")
    for number, line in (("0", "--mapping: '0' is not the number of a mapping"),
                         ("9999", "--mapping: there is no mapping 9999; their numbers are 1 to %d" % len(found))):
        result = execute([MEMTRACE, "report", "--mapping", number, path], clean_environment())
        if not result.stderr.decode().startswith("memtrace: " + line):
            fail(number, result.stderr)


main()
finish()
