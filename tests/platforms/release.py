#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""scripts/test-platforms RELEASE: what it says to wrong words, to who is not root and where a release cannot be had, and
that nothing is left of it when it is ended in the middle. The tool that fetches the release is a stand-in; the releases
themselves take long (docs/platforms.md)."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
SCRIPT = os.path.join(SOURCE, "scripts", "test-platforms")
PATIENCE = 100


def equal(found, expected, what):
    if found != expected:
        sys.exit("%s:\n  found    %s\n  expected %s" % (what, found, expected))


def stand_in(folder, name, body):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write("#!/bin/bash\n%s\n" % body)
    os.chmod(path, 0o755)


def readable_script(folder):
    """Its copy for another user, who may not see this tree."""
    tree = os.path.join(folder, "tree")
    for part in ("scripts", os.path.join("tests", "platforms")):
        shutil.copytree(os.path.join(SOURCE, part), os.path.join(tree, part), dirs_exist_ok=True)
    subprocess.run(["chmod", "-R", "a+rX", tree], check=True)
    return os.path.join(tree, "scripts", "test-platforms")


def started(folder, *words, user=0, **settings):
    environment = dict(os.environ, PATH="%s:%s" % (folder, os.environ["PATH"]), TMPDIR=folder, **settings)
    script = readable_script(folder) if user else SCRIPT
    return subprocess.Popen([script, *words], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            preexec_fn=(lambda: os.setuid(user)) if user else None)


def said(*words, **settings):
    process = started(*words, **settings)
    output, _ = process.communicate(timeout=PATIENCE)
    return process.returncode, output.splitlines()


def check_words(folder):
    usage = "usage: scripts/test-platforms trixie|sid|noble|bookworm "
    for words, line in (([], "test-platforms: usage: scripts/test-platforms aarch64"),
                        (["potato"], "test-platforms: usage: scripts/test-platforms aarch64"),
                        (["sid", "--only"], "test-platforms: --only: what? " + usage),
                        (["sid", "--nothing", "x"], "test-platforms: --nothing: " + usage)):
        status, lines = said(folder, *words)
        equal((status, len(lines), lines[0][:len(line)]), (1, 1, line), words)


def has_namespaces():
    """Neither in a container nor where / is no mount of its own, as in a chroot."""
    return subprocess.run(["unshare", "--mount", "--pid", "--fork", "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0


def check_reasons(folder, keyring):
    """Each in one line, and with nothing left."""
    stand_in(folder, "debootstrap", "echo 'E: Failed getting release file'; exit 1")
    status, lines = said(folder, "trixie", KEYRING=keyring)
    reason = "E: Failed getting release file" if has_namespaces() else "unshare: "
    line = "test-platforms: cannot make trixie: " + reason
    equal((status, lines[-1][:len(line)]), (1, line), lines)
    status, lines = said(folder, "noble", KEYRING=folder + "/nowhere")
    equal((status, lines[-1]), (1, "test-platforms: cannot make noble: no %s/nowhere to check its packages with "
                                   "(KEYRING names another)" % folder), lines)
    other = os.path.join(folder, "other")
    os.makedirs(os.path.join(other, "kept"))
    status, lines = said(folder, "trixie", "--root", other, KEYRING=keyring)
    equal((status, lines[-1], os.listdir(other)), (1, "test-platforms: %s: there is something else in it" % other, ["kept"]),
          lines)
    status, lines = said(folder, "trixie", user=65534)
    equal((status, lines), (1, ["test-platforms: trixie: making a folder with another system in it needs root"]), lines)


def wait_for(what, condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            sys.exit("waited in vain for " + what)
        time.sleep(0.05)


def check_ended(folder, keyring, number):
    """Its folder goes, and so do the processes within."""
    stand_in(folder, "debootstrap", 'mkdir -p "$7/proc" && mount -t proc proc "$7/proc" && echo $PPID >%s/here && '
                                    'touch "$7/file" && sleep 1000' % folder)
    process = started(folder, "trixie", KEYRING=keyring)
    roots = lambda: [name for name in os.listdir(folder) if name.startswith("memtrace-trixie.")]
    wait_for("a file in the release's folder", lambda: any(os.path.exists(os.path.join(folder, root, "file"))
                                                           for root in roots()))
    (root,) = roots()
    process.send_signal(number)
    process.communicate(timeout=PATIENCE)
    equal((process.returncode, roots()), (128 + number, []), "ended by signal %d" % number)
    wait_for("the processes to end", lambda: not named(os.path.join(folder, root)))


def named(word):
    """The processes that have the word on their command line."""
    found = []
    for process in os.listdir("/proc"):
        try:
            with open("/proc/%s/cmdline" % process, "rb") as file:
                if process.isdigit() and os.fsencode(word) in file.read():
                    found.append(process)
        except OSError:
            pass
    return found


def main():
    with tempfile.TemporaryDirectory(prefix="memtrace-release-") as folder:
        os.chmod(folder, 0o777)
        stand_in(folder, "dpkg-query", "echo installed")
        keyring = os.path.join(folder, "keyring")
        open(keyring, "w").close()
        check_words(folder)
        if os.getuid() != 0:
            print("the rest needs root")
            sys.exit(77)
        check_reasons(folder, keyring)
        if not has_namespaces():
            print("the rest needs namespaces")
            sys.exit(77)
        for number in (signal.SIGTERM, signal.SIGINT):
            check_ended(folder, keyring, number)


main()
