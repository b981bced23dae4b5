# SPDX-License-Identifier: MIT
"""companion.py: a program that nobody started with `memtrace record` and that was told MEMTRACE_RECORD=1,
preloaded and instrumented: a companion writes the recording, which is finished soon after the program's
end and says what the profile says."""

from recorded import both, is_closed, recordings, settings_for, wait_until, whole
from harness import (PRELOAD, bare, build, clean_environment, equal, execute, finish, profiles, scratch)


def is_finished(folder):
    found = recordings(folder)
    return found and profiles(folder) and is_closed(found[0])


def main():
    for mode in ("preload", "hooks"):
        command = [build("allocations.c", "gcc", "-O2", mode), "realloc"]
        alone, folder = bare(command), scratch()
        settings = settings_for(folder, MEMTRACE_RECORD="1", MEMTRACE_PROFILE="1",
                                LD_PRELOAD=PRELOAD if mode == "preload" else None)
        under = execute(command, clean_environment(**settings))
        equal((under.returncode, under.stdout), (alone.returncode, alone.stdout), mode, "behaviour",
              under.stderr)
        wait_until(lambda: is_finished(folder), mode + ": the recording's end")
        whole(both(folder, mode), mode)


main()
finish()
