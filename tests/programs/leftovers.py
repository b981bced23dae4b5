# SPDX-License-Identifier: MIT
"""leftovers.py: a test that fails, or breaks off by an exception, leaves no process behind: what it started, and what
those started, is killed when it exits. Imported by the modules that tests share."""

import atexit
import os
import signal

OWNER = os.getpid()


def children_of(pid):
    found = []
    try:
        for task in os.listdir("/proc/%d/task" % pid):
            with open("/proc/%d/task/%s/children" % (pid, task), encoding="ascii") as file:
                found += map(int, file.read().split())
    except OSError:  # it has ended, or the kernel does not tell
        pass
    return found


def descendants(pid):
    found = children_of(pid)
    for child in found:  # grows
        found += children_of(child)
    return found


def kill_leftovers():
    """Those that go on as orphans by intent (a companion that writes a profile) are not ours any more."""
    if os.getpid() != OWNER:  # a forked child of the test
        return
    for pid in descendants(OWNER):
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass


atexit.register(kill_leftovers)
