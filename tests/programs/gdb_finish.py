# SPDX-License-Identifier: MIT
"""Runs inside gdb: finishes frame after frame from FINISH_FROM until FINISH_AT is the newest, lets
the program end, and writes the names met and the exit status to FINISH_OUT as JSON."""

import json
import os

import gdb

gdb.execute("set pagination off")
gdb.execute("set debuginfod enabled off")
gdb.execute("set breakpoint pending on")
stop = gdb.Breakpoint(os.environ["FINISH_FROM"])
gdb.execute("run")
stop.delete()
names = [gdb.newest_frame().name()]
while names[-1] != os.environ["FINISH_AT"] and len(names) < 1000:
    gdb.execute("finish", to_string=True)
    names.append(gdb.newest_frame().name())
gdb.execute("continue")
with open(os.environ["FINISH_OUT"], "w") as file:
    json.dump({"names": names, "status": int(gdb.parse_and_eval("$_exitcode"))}, file)
gdb.execute("quit")
