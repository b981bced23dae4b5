# SPDX-License-Identifier: MIT
"""Programs that run where our library cannot be opened, and those that the loader only tells about: they print
what they print alone, and the first are told of at the end."""

import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "programs"))
from harness import MEMTRACE, clean_environment, equal, execute, finish, scratch, skip  # noqa: E402

TOLD = b"1 where they cannot open MemTrace's library (another root, another user)"


def both(command, folder):
    alone = execute(command, clean_environment(), cwd=folder)
    under = execute([MEMTRACE, "run", "--no-summary", "-o", "p.mtp", "--", *command], clean_environment(), cwd=folder)
    equal((under.returncode, under.stdout), (alone.returncode, alone.stdout), command)
    return under.stderr


def check_listed():
    """ldd prints addresses, which differ from run to run."""
    folder = scratch()
    for command in ("ldd /bin/true | sed 's/ (0x.*//'", "LD_TRACE_LOADED_OBJECTS=1 /bin/true | sed 's/ (0x.*//'",
                    '"$(ls /lib64/ld-linux-x86-64.so.2 /lib/ld-linux-*.so.* 2>/dev/null | head -n 1)" --list '
                    "/bin/true | sed 's/ (0x.*//'"):
        equal(both(["/bin/sh", "-c", command], folder), b"", command)


def make_root(folder):
    """A root with a shell and what it needs."""
    root = os.path.join(folder, "root")
    listed = subprocess.run(["ldd", "/bin/sh"], stdout=subprocess.PIPE, text=True, check=True).stdout
    for path in ["/bin/sh", *(word for line in listed.splitlines() for word in line.split() if word.startswith("/"))]:
        os.makedirs(root + os.path.dirname(path), exist_ok=True)
        shutil.copy(os.path.realpath(path), root + path)
    return root


def check_root():
    folder = scratch()
    root = make_root(folder)
    enter = ["chroot", root] if os.getuid() == 0 else ["unshare", "-r", "chroot", root]
    command = [*enter, "/bin/sh", "-c", '/bin/sh -c "echo hello"; echo again']
    if execute(command, clean_environment()).returncode != 0:
        return  # neither root nor namespaces of users
    said = both(command, folder)
    equal((said.count(b"\n"), TOLD in said), (1, True), "another root", said)


def check_user():
    """Who may not enter the installation's folder."""
    if os.getuid() != 0:
        return
    folder = scratch()
    os.chmod(folder, 0o777)
    away = os.path.join(folder, "away")
    os.mkdir(away, 0o700)
    build = os.path.dirname(os.path.dirname(MEMTRACE))
    shutil.copytree(os.path.join(build, "bin"), os.path.join(away, "bin"), ignore=lambda *_: ())
    os.makedirs(os.path.join(away, "lib"))
    shutil.copy(os.path.join(build, "lib", "libmemtrace.so"), os.path.join(away, "lib"))
    command = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "/bin/sh", "-c", "echo hello"]
    under = execute([os.path.join(away, "bin", "memtrace"), "run", "--no-summary", "-o", "p.mtp", "--", *command],
                    clean_environment(), cwd=folder)
    equal((under.returncode, under.stdout), (0, b"hello\n"), "another user", under.stderr)
    equal(TOLD in under.stderr and b"ld.so" not in under.stderr, True, "another user", under.stderr)


check_listed()
check_root()
check_user()
finish()
