#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The clock on the wall is set by days, over and over, at the program, its recorder, the sender, the receiver, or all
of them, and connections are cut meanwhile: nobody waits for it, the file arrives, and its times are as ever."""

import json
import os
import sys
import time

from streamed import (MEMTRACE, Gather, Proxy, clean_environment, equal, execute, fail, finish, make_token, recordings,
                      same, scratch, settings_for)

JUMPS = {"LD_PRELOAD": os.path.join(os.environ["TEST_BUILD"], "tests", "stream", "jumpingclock.so")}
PROGRAM = "import json, time\nfor i in range(100):\n  json.loads(json.dumps(list(range(500 + i))))\n  time.sleep(0.002)"
CUTS = (1000, 5000, 20000)


def whole(here, there):
    """`here`: settings of the recorder and what it starts; `there`: the receiver's."""
    folder, receiving = scratch(), scratch()
    token = make_token(receiving)
    gather = Gather(receiving + "/got", "--token", token, settings=there)
    proxy = Proxy(gather.port, cut=CUTS)
    start = time.monotonic()
    done = execute([MEMTRACE, "record", "--to", "127.0.0.1:%d" % proxy.port, "--token", token, "--", sys.executable,
                    "-c", PROGRAM], clean_environment(**settings_for(folder), **here), timeout=240)
    took = time.monotonic() - start
    equal(done.returncode, 0, "record", here, there, done.stderr)
    gather.end()
    same(receiving + "/got", *recordings(folder))
    equal(proxy.connections, len(CUTS) + 1, "connections")
    told = execute([MEMTRACE, "report", "--json", *recordings(folder)], clean_environment(**here), timeout=120)
    data = json.loads(told.stdout)
    if not 0.2 < data["process"]["duration_ns"] / 1e9 < took:
        fail("the program ran for", data["process"]["duration_ns"], "ns of", took, "s")
    equal(data["lost"], 0, "lost")


def main():
    for here, there in (({}, JUMPS), (JUMPS, {}), (JUMPS, JUMPS)):
        whole(here, there)
    finish()


if __name__ == "__main__":
    sys.exit(main())
