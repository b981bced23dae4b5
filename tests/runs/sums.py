# SPDX-License-Identifier: MIT
"""--all-processes adds up what single files say: of profiles, of recordings, of both; by call path."""

import glob
import json
import os
import signal

from runfolder import command, describe, equal, finish, folder, leaves_nothing, make, process, record, told

SUMS = ("allocations", "total_bytes", "frees", "live_bytes", "live_blocks",
        "peak_bytes", "temporary", "lost")


def added(files):
    parts = [told(file) for file in files]
    return {name: sum(part[name] for part in parts) for name in SUMS}


def by_path(data):
    """Sums by functions: addresses differ from program to program."""
    found = {}
    for context in data["contexts"]:
        path = tuple(frame["function"] for frame in context["frames"])
        sums = found.setdefault(path, [0, 0, 0])
        for i, name in enumerate(("allocations", "total_bytes", "live_bytes")):
            sums[i] += context[name]
    return found


def check(run):
    files = sorted(glob.glob(run + "/*.mt[pr]"))
    data = told(run, "--all-processes")
    equal({name: data[name] for name in SUMS}, added(files), "sums of", run)
    wanted = {}
    for file in files:
        for path, sums in by_path(told(file)).items():
            wanted[path] = [a + b for a, b in zip(wanted.get(path, [0, 0, 0]), sums)]
    equal(by_path(data), wanted, "call paths of", run)
    equal(data["run"]["chosen"], None)
    text = command("report", "--all-processes", run)[0]
    equal("All processes, added up by call path." in text, True, text[:1000])
    sql = "SELECT total_bytes, allocations FROM summary"
    equal(command("query", "--all-processes", run, sql)[0],
          "%d\t%d\n" % (data["total_bytes"], data["allocations"]))
    out = json.loads(command("export", "--format", "json", "--all-processes", run)[0])
    equal(out["total_bytes"], data["total_bytes"], "export")
    command("check", "--all-processes", "cumulative <= %d" % data["total_bytes"], run)
    command("check", "--all-processes", "cumulative <= %d" % (data["total_bytes"] - 1), run, status=1)
    rows = json.loads(command("diff", "--json", "--all-processes", run, run)[0])
    equal(rows["before"], rows["after"], "diff of the same")
    equal([name for name in os.listdir(folder) if name.startswith("memtrace-")], [], "left behind")
    return data


profiles = make("profiles")
for number, sizes in enumerate(((1000, 2000, 3000), (10, 20), (500000,), (77,) * 9)):
    record("%s/p.%d.mtp" % (profiles, number), "p", *sizes)
record(profiles + "/others.mtp", "q", 1, 2, 3, 4)
check(profiles)
describe(profiles, [process(1, 0, "p", 0, 9, 500000, file="p.2.mtp")])
check(profiles)

# A file of several says so: its first process is not the only one in it.
merged = folder + "/merged.mtp"
command("merge", "--output", merged, *glob.glob(profiles + "/p.[01].mtp"))
command("merge", "--output", merged, merged, *glob.glob(profiles + "/[oq]*.mtp"))
text = command("report", merged)[0]
for words in ("MemTrace report of p and 2 others\n", "  first command       ", "  sums of             3 profiles over "):
    equal(words in text, True, words, text[:1000])
equal("  process  " in text, False, "one process", text[:1000])
equal(told(merged)["process"]["merged"], 3)
equal(told(profiles + "/p.1.mtp")["process"]["merged"], 0)
equal("profiles in it 3\n" in command("info", merged)[0], True, command("info", merged)[0])

# It is compressed, as every profile is; uncompressed it says the same.
raw = folder + "/raw.mtp"
command("repack", "--raw", "--output", raw, merged)
sizes = [os.stat(path).st_size for path in (merged, raw)]
equal(sizes[0] * 5 < sizes[1], True, "compressed and not", *sizes)
equal(told(merged), told(raw), "compressed and not")

recordings = make("recordings")
for number, sizes in enumerate(((1000, 2000, 3000), (10, 20), (4096,))):
    record("%s/r.%d.mtr" % (recordings, number), "r", *sizes, how="record")
equal(told(recordings)["total_bytes"], 4096 if told(recordings)["peak_bytes"] == 4096 else 6000)
single = [told(file)["peak_bytes"] for file in glob.glob(recordings + "/*.mtr")]
equal(told(recordings)["peak_bytes"] in single, True, "one of them")
# What was never freed counts until the end, so the maximum of all is known, and events are there.
data = told(recordings, "--all-processes")
wanted = added(sorted(glob.glob(recordings + "/*.mtr")))
equal({name: data[name] for name in SUMS if name != "peak_bytes"},
      {name: wanted[name] for name in SUMS if name != "peak_bytes"}, "recordings")
equal(command("query", "--all-processes", recordings, "SELECT sum(size) FROM allocations")[0],
      "%d\n" % wanted["total_bytes"], "events")
leaves_nothing(signal.SIGTERM, "report", "--all-processes", recordings)
equal(command("query", "--all-processes", "--size", "3000..", recordings,
              "SELECT count(*) FROM allocations")[0], "2\n", "a filter of blocks")

record(recordings + "/others.mtp", "q", 11, 22, 33)
check(recordings)
finish()
