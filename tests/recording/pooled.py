# SPDX-License-Identifier: MIT
"""pooled.py: a recording of a part holds the same part of a pool's objects: by chance, size, module."""

import os

from recorded import HERE, only_recording, record
from harness import build, equal, fail, finish, report, scratch

COUNT = 400000


def pools(*options):
    folder = scratch()
    under = record([build(os.path.join(HERE, "pooled.c")), str(COUNT)], folder, *options)
    equal(under.returncode, 0, options, "exit status", under.stderr)
    data = report(only_recording(folder, options))
    equal((data["recording"]["foreign_frees"], data["lost"]), (0, 0), options, "foreign frees, lost")
    return (data["recording"]["events"],
            *(sum(context[name] for context in data["pools"])
              for name in ("allocations", "frees", "total_bytes")))


LARGE = COUNT // 100
equal(pools("--sizes", "1000-5000")[1:], (LARGE, LARGE, LARGE * 4096), "only the large ones")
equal(pools("--modules", "libnone")[1:], (0, 0, 0), "of no module")
events, _, _, size = pools("--sample", "16K")
true_size = LARGE * 4096 + (COUNT - LARGE) * 64
if abs(size - true_size) > true_size / 5 or events > COUNT / 10:
    fail("sampled:", events, "events, estimated", size, "bytes instead of", true_size)
finish()
