# SPDX-License-Identifier: MIT
"""elsewhere.py: a recording is read where its program is not: the program file is gone, or another one
has its place. The names and lines in the report are those from before, out of the file itself."""

import os
import shutil
import signal

from recorded import HERE, only_recording, record
from harness import build, equal, fail, finish, leaves_nothing, report, scratch


def named_frames(path, program):
    """By call path: functions, files and lines of the program's own frames."""
    data = report(path)
    own = {context["hash"]: [(frame["function"], os.path.basename(frame["file"]), frame["line"])
                             for frame in context["frames"] if frame["module"] == program]
           for context in data["contexts"]}
    return {name: frames for name, frames in own.items() if frames}


def main():
    folder, temporary = scratch(), scratch()
    program = os.path.join(folder, "children")
    shutil.copy(build(os.path.join(HERE, "children.c"), "gcc", "-O0"), program)
    under = record([program, "exec"], folder, settings={"MEMTRACE_CHILDREN": "none"})
    equal(under.returncode, 0, "exit status", under.stderr)
    path = only_recording(folder, "elsewhere")
    before = named_frames(path, program)
    if not any(frame[0] == "allocate" and frame[2] > 0 for frames in before.values() for frame in frames):
        fail("the program's functions are not in the report:", before)
    os.environ["TMPDIR"] = temporary
    forgotten = os.path.join(temporary, "memtrace-99999999-abcdef")  # of a command that was interrupted
    os.makedirs(os.path.join(forgotten, ".build-id"))
    os.utime(forgotten, (0, 0))
    os.unlink(program)
    equal(named_frames(path, program), before, "the program is gone: names")
    shutil.copy("/bin/true", program)
    equal(named_frames(path, program), before, "another program has its place: names")
    equal(os.listdir(temporary), [], "what was unpacked and is left")
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        leaves_nothing(number, "report", path)


main()
finish()
