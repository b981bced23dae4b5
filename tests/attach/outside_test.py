# SPDX-License-Identifier: MIT
"""outside_test.py CASE: `memtrace attach` from outside of the program's namespaces, its root, or its
user: what is counted, by arithmetic; where the profile goes, and whose it is."""

import os
import shutil
import signal
import subprocess
import sys

from attach_test import (FOLDER, HERE, SETTINGS, Subject, attach, build, detach, equal, fail, finish, held, memtrace, need_ptrace,
                         refused, report, skip)
from harness import LIBRARY, MEMTRACE, clean_environment, execute, is_gone, scratch, shared, wait_until

sys.path.insert(0, os.path.join(os.path.dirname(HERE), "web", "python"))

NEW_MOUNTS = ("unshare", "-m", "--propagation", "private")
CONTAINER = (*NEW_MOUNTS, "-p", "-f", "--mount-proc")
# A container sees its own /dev/shm, where nothing may be executed, and not our library.
OWN = "mount -t tmpfs -o noexec,mode=1777 tmpfs /dev/shm && mount --bind /dev/null '%s' && exec \"$0\" \"$@\"" % LIBRARY


def allowed(*command):
    if subprocess.run([*command, "true"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode:
        skip(" ".join(command) + " is not permitted here")


def child_of(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as children:
        return int(children.read().split()[0])


class Contained(Subject):
    """known.c or another program in a container. `pid` is its number here, by which it is not known there."""

    def __init__(self, *command, prefix=CONTAINER):
        super().__init__(*prefix, "sh", "-c", OWN, *command)
        self.pid = child_of(self.process.pid) if "-f" in prefix else self.process.pid


def known(*arguments):
    return build(os.path.join(HERE, "known.c")), *arguments


def is_ours(path):
    status = os.stat(path)
    equal((status.st_uid, os.path.dirname(path)), (os.geteuid(), FOLDER), "the file's owner and folder")


def rounds_from_outside(subject):
    """Attached to three times: a profile by detach, a recording for a time, a profile at the end."""
    attach(subject.pid)
    subject.say()
    subject.hear(b"done\n")
    data = report(str(subject.pid))
    equal(held(data, 1001), (1000, 400), "while attached")
    equal(data["process"]["pid"], subject.pid, "its number here")
    equal([context["frames"][0]["function"] for context in data["contexts"] if context["total_bytes"] == 1001000],
          ["take"], "the path")
    top = memtrace("top", "--once", subject.pid)
    equal((top.returncode, b"take" in top.stdout), (0, True), "top", top.stdout, top.stderr)
    profile = detach(subject.pid)
    equal(profile, os.path.join(FOLDER, "memtrace.known.%d.mtp" % subject.pid), "by its number here")
    is_ours(profile)
    equal(held(report(profile), 1001), (1000, 400), "after it")
    attach(subject.pid, "--record", "-o", "r.%e.%p.mtr")
    subject.say()
    subject.hear(b"done\n")
    done = memtrace("detach", subject.pid)
    recording = os.path.join(FOLDER, "r.known.%d.mtr" % subject.pid)
    equal((done.returncode, done.stdout.decode().strip().rpartition("recording ")[2]), (0, recording), "detach")
    is_ours(recording)
    data = report(recording)
    equal(held(data, 1001), (1000, 400), "recorded")
    equal([context["frames"][0]["function"] for context in data["contexts"] if context["total_bytes"] == 1001000],
          ["take"], "the path")
    out = attach(subject.pid, "--for", "200ms", "-o", "for.mtp")
    equal(out.strip().rpartition("profile ")[2], os.path.join(FOLDER, "for.mtp"), "--for")


def to_the_end(subject, status=3):
    attach(subject.pid, "-o", "end.mtp")
    subject.say()
    subject.hear(b"done\n")
    subject.process.stdin.close()
    subject.process.stdin = None
    subject.end(b"end\n", status)
    path = os.path.join(FOLDER, "end.mtp")
    wait_until(lambda: os.path.exists(path), "the profile of a program that ended")
    is_ours(path)
    equal(held(report(path), 1001), (1000, 400), "to the end")


def test_container():
    """Other mounts and other numbers of processes; the library is not to be seen there."""
    allowed(*CONTAINER)
    subject = Contained(*known("rounds"))
    rounds_from_outside(subject)
    to_the_end(subject)


def test_mounts():
    """Other mounts alone."""
    allowed(*NEW_MOUNTS)
    subject = Contained(*known("rounds"), prefix=NEW_MOUNTS)
    rounds_from_outside(subject)
    to_the_end(subject)


def test_then_inside():
    """Attached to from outside, then from where it is: then its profile is its own to write."""
    allowed(*NEW_MOUNTS)
    allowed("nsenter", "-m", "-t", str(os.getpid()))
    subject = Subject(*NEW_MOUNTS, *known("rounds"))

    def inside(*words):
        done = execute(["nsenter", "-m", "-t", str(subject.pid), MEMTRACE, *words, str(subject.pid)],
                       clean_environment(**SETTINGS), FOLDER)
        equal((done.returncode, done.stderr), (0, b""), "from inside", *words)
        return done.stdout.decode().strip().rpartition("profile ")[2]

    attach(subject.pid)
    subject.rounds()
    equal(held(report(detach(subject.pid)), 1001), (1000, 400), "from outside")
    path = os.path.join(FOLDER, "inside.mtp")
    inside("attach", "-o", path)
    subject.rounds()
    equal(inside("detach"), path, "detach")
    equal(held(report(path), 1001), (1000, 400), "from inside")
    path = os.path.join(FOLDER, "left.mtp")
    inside("attach", "-o", path)
    subject.rounds()
    equal(detach(subject.pid), path, "detach from outside")
    equal(held(report(path), 1001), (1000, 400), "left from outside")
    path = os.path.join(FOLDER, "end.mtp")
    inside("attach", "-o", path)
    subject.rounds()
    subject.close(b"end\n", 3)
    equal(os.path.exists(path) and held(report(path), 1001), (1000, 400), "from inside, to the end")


def test_served():
    """The page of it, by its number here: it goes on while the program does, with names, and knows where the profile is
    at the end."""
    from webserver import Server
    allowed(*CONTAINER)
    if memtrace("serve", "--help").returncode != 0:
        skip("built without the page")
    subject = Contained(*known("rounds"))
    attach(subject.pid)
    subject.rounds()
    with Server(str(subject.pid), env={**SETTINGS, "MEMTRACE_CACHE": ""}) as server:
        allocations = lambda: server.get("/r/1")["data"]["totals"]["allocations"]
        state = server.wait_open()
        equal((state["state"], state["live"], state["end"], state["pid"]), ("open", True, "running", subject.pid), state)
        equal(allocations(), 1000, "as it was opened")
        subject.rounds()
        wait_until(lambda: allocations() == 2000, "it is looked at again")
        told = server.get("/r/1/functions")
        equal([frame["function"] for frame in told["data"]["frames"]], ["take", "main", "rounds", "[before attach]"], "names")
        equal(told["command"].split()[-1], str(subject.pid), "the command that says the same")
        running = server.get("/r/1/running")["data"]["rows"]
        equal(len(running) == 1 and subject.pid in running[0] and "known" in running[0], True, "what runs", running)
        profile = detach(subject.pid)
        wait_until(lambda: server.get("/session")["sources"][0]["path"] == profile, "where its profile is")
        equal(server.get("/session")["sources"][0]["live"], False, "it has ended")
        equal(allocations(), 2000, "the last numbers")
    subject.close(b"end\n", 3)


def command_of(pid):
    try:
        with open("/proc/%d/cmdline" % pid, "rb") as file:
            return file.read()
    except OSError:
        return b""  # it has ended


def test_killed():
    """A program that is killed, and one whose watcher is: nothing is lost."""
    allowed(*CONTAINER)
    subject = Contained(*known("rounds"))
    attach(subject.pid, "-o", "killed.mtp")
    subject.say()
    subject.hear(b"done\n")
    os.kill(subject.pid, signal.SIGKILL)
    subject.process.wait()
    path = os.path.join(FOLDER, "killed.mtp")
    wait_until(lambda: os.path.exists(path), "the profile of a program that was killed")
    equal(held(report(path), 1001), (1000, 400), "killed")
    subject = Contained(*known("rounds"))
    attach(subject.pid, "-o", "unwritten.mtp")
    watchers = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc")))
                if b"\0attach\0%d\0" % subject.pid in command_of(pid)]
    equal(len(watchers), 1, "watchers")
    os.kill(watchers[0], signal.SIGKILL)
    wait_until(lambda: is_gone(watchers[0]), "the watcher's end: until then the region is its")
    subject.say()
    subject.hear(b"done\n")
    profile = detach(subject.pid)
    equal(held(report(profile), 1001), (1000, 400), "written by detach")
    equal(os.path.exists(os.path.join(FOLDER, "unwritten.mtp")), False, "the watcher's")
    subject.process.stdin.close()
    subject.process.stdin = None
    subject.end(b"end\n", 3)


def needed_by(program):
    """The program and the files that the loader wants for it."""
    listed = subprocess.run(["ldd", program], stdout=subprocess.PIPE, check=True, text=True).stdout
    return [program] + [word for word in listed.split() if word.startswith("/")]


def new_root(program):
    root = scratch()
    for path in needed_by(program):
        os.makedirs(root + os.path.dirname(path), exist_ok=True)
        shutil.copy(path, root + path)
    for folder in ("proc", "tmp", "dev/shm"):
        os.makedirs(os.path.join(root, folder), exist_ok=True)
        os.chmod(os.path.join(root, folder), 0o1777)
    return root


def test_chroot():
    """Another root, in which there is nothing of ours; without /proc it is refused."""
    allowed(*NEW_MOUNTS)
    program = known("rounds")
    root = new_root(program[0])
    subject = Subject("chroot", root, *program)
    refused(subject.pid, "sees neither MemTrace's library nor /proc", "mount /proc")
    subject.process.kill()
    subject.process.wait()
    subject = Subject(*NEW_MOUNTS, "sh", "-c", "mount -t proc proc '%s/proc' && exec chroot '%s' \"$0\" \"$@\"" %
                      (root, root), *program)
    rounds_from_outside(subject)
    to_the_end(subject)


PYTHON = "import sys\nprint('ready', flush=True)\nkept = []\nfor line in sys.stdin:\n" \
         "    kept += [bytes(100003) for _ in range(50)]\n    print('done', flush=True)\n"


def of_python(subject):
    attach(subject.pid)
    subject.say()
    subject.hear(b"done\n")
    profile = detach(subject.pid)
    is_ours(profile)
    equal(held(report(profile), 100036), (50, 0), "of Python")  # and its header of 33 bytes
    subject.process.stdin.close()
    subject.process.stdin = None
    subject.end(b"", 0)


def test_user():
    """Another user's, which cannot write where we are."""
    user = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--")
    allowed(*user)
    of_python(Subject(*user, "/usr/bin/python3", "-c", PYTHON))


def test_left_by_root():
    """A user attached to a program of their own, and root leaves it: its profile is where the user wanted it, and theirs."""
    user = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--")
    allowed(*user)
    command, _, program = shared(MEMTRACE, LIBRARY, known()[0])
    folder, regions = scratch(where="/tmp"), scratch(where="/dev/shm")
    os.chown(folder, 65534, 65534)
    os.chown(regions, 65534, 65534)
    subject = Subject(*user, program, "rounds")
    done = execute([*user, command, "attach", str(subject.pid)], clean_environment(
        MEMTRACE_REGION_DIR=regions, MEMTRACE_CACHE=""), folder)
    if b"ptrace" in done.stderr:
        skip(done.stderr.decode().strip())
    equal((done.returncode, done.stderr), (0, b""), "attached by its user")
    subject.rounds()
    path = os.path.join(folder, "memtrace.known.%d.mtp" % subject.pid)
    equal(detach(subject.pid), path, "left by root")
    equal((held(report(path), 1001), os.stat(path).st_uid), ((1000, 400), 65534), "its profile")
    subject.close(b"end\n", 3)


def test_user_namespace():
    """Root of a container whose users are others outside."""
    rootless = ("unshare", "-U", "-r", "-m", "-p", "-f", "--mount-proc")
    user = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--")
    allowed(*user, *rootless)
    for parent in ("/dev/shm", "/tmp"):  # root's number is theirs, too: the folders are another's
        if not os.path.exists(parent + "/memtrace-0"):
            os.mkdir(parent + "/memtrace-0", 0o700)
    subject = Subject(*user, *rootless, "/usr/bin/python3", "-c", PYTHON)
    subject.pid = child_of(subject.process.pid)
    of_python(subject)


if __name__ == "__main__":
    need_ptrace()
    if os.geteuid() != 0:
        skip("only root may make containers")
    if not os.path.exists("/usr/bin/python3") or not shutil.which("unshare"):
        fail("no python3 or unshare")
    globals()["test_" + sys.argv[1]]()
    finish()
