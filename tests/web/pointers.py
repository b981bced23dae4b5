# SPDX-License-Identifier: MIT
"""A pointer of a program that runs: which block it lies in, and who allocated it, without stopping the
program; and what is said when there is no room for temporary files."""

import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "asking"))

from serving import LIBRARY, Server, clean_environment, equal, fail, finish, scratch  # noqa: E402
from queried import build, busy  # noqa: E402


def check_running():
    regions = scratch(where="/dev/shm")
    program = build(os.path.join(HERE, "held.c"))
    held = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                            env=clean_environment(LD_PRELOAD=LIBRARY, MEMTRACE_REGION_DIR=regions,
                                                  MEMTRACE_SUMMARY="0",
                                                  MEMTRACE_OUTPUT=os.path.join(regions, "%p.mtp")))
    addresses = [int(word, 16) for word in held.stdout.readline().split()]
    server = Server(str(held.pid), settings={"MEMTRACE_REGION_DIR": regions})
    for address, size in zip(addresses, (1000, 3 << 20)):
        for inside in (0, 1, size - 1):
            status, answer = server.ask("/r/1/blocks/at", address=hex(address + inside))
            equal((status, answer.get("notes")), (200, None), "an answer that lacks nothing", answer)
            told = answer["data"]
            equal((told["block"]["address"], told["block"]["size"], told["freed_path"]),
                  (hex(address), size, None), "the block at", hex(address + inside))
            equal([frame["function"] for frame in told["path"][:2]], ["hold", "main"], "its path")
    for address in (addresses[1] + (4 << 20), 16):
        status, problem = server.ask("/r/1/blocks/at", address=hex(address))
        equal((status, "is not a live block of process %d" % held.pid in problem["detail"]), (404, True),
              "no block", problem)
    held.stdin.close()
    equal(held.wait(60), 0, "the program's end")
    held.stdout.close()
    server.close()


def check_no_room():
    path = busy(scratch())
    absent = os.path.join(os.path.dirname(path), "absent")
    server = Server(path, settings={"TMPDIR": absent})
    status, problem = server.ask("/r/1/export/folded")
    equal(status, 500, "an export without a folder for it", problem)
    if absent not in problem["detail"] or "\n" in problem["detail"]:
        fail("an export without a folder for it:", problem)
    equal(server.ask("/r/1/blocks")[0], 200, "blocks that fit into memory")
    server.close()


check_running()
check_no_room()
finish()
