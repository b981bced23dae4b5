# SPDX-License-Identifier: MIT
"""The tests of a build folder, and running one of them: for scripts/coverage and scripts/mutants."""

import collections
import json
import os
import resource
import shutil
import signal
import subprocess
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# What is wrong with other programs or with texts, not with what was built here: these build anew what they test, or look
# at sources, or count instructions, which other flags change.
APART = {"lint", "docs", "sanitize", "agent", "platforms", "consumer", "fuzz", "pass"}

# target: what is built for the test alone, or None: the test's programs are among all.
Test = collections.namedtuple("Test", "name command environment folder seconds skipped target")


def targets_of(source):
    """What is built for the tests that are not APART: folders' targets, as Ninja has them."""
    folders = [folder + "/all" for folder in ("runtime", "instrument", "cli") if os.path.isdir(os.path.join(source, folder))]
    tests = os.path.join(source, "tests")
    for folder in sorted(os.listdir(tests)) if os.path.isdir(tests) else ():
        if folder not in APART and os.path.exists(os.path.join(tests, folder, "CMakeLists.txt")):
            folders.append("tests/%s/all" % folder)
    return folders or ["all"]


def tests_of(build, pattern=""):
    """(tests, names of those that are not among them since they are APART)."""
    told = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"] + (["-R", pattern] if pattern else []),
                          stdout=subprocess.PIPE, check=True).stdout
    tests, apart = [], []
    for one in json.loads(told)["tests"]:
        has = {found["name"]: found["value"] for found in one["properties"]}
        command = one.get("command")
        if not command or APART & set(has.get("LABELS", [])) or "FIXTURES_REQUIRED" in has or "FIXTURES_SETUP" in has:
            apart.append(one["name"])
            continue
        built = os.path.realpath(command[0]).startswith(os.path.realpath(build) + os.sep)
        tests.append(Test(one["name"], command, dict(each.split("=", 1) for each in has.get("ENVIRONMENT", [])),
                          has.get("WORKING_DIRECTORY", build), float(has.get("TIMEOUT", 300)),
                          has.get("SKIP_RETURN_CODE"), os.path.basename(command[0]) if built else None))
    return tests, apart


def walls():
    """How a command is called so that nothing of it outlives it and its signals reach nothing else, if that is allowed."""
    if not hasattr(walls, "found"):
        wanted = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
        if os.geteuid() != 0:
            wanted += ["--user", "--map-current-user"]
        allowed = shutil.which("unshare") and subprocess.run(
            wanted + ["true"], stderr=subprocess.DEVNULL, check=False).returncode == 0
        walls.found = wanted + ["sh", "-c", '"$@"; exit $?', "sh"] if allowed else []
    return walls.found


def run(test, seconds):
    """Returns (how it ended, its seconds, the end of its output): passed, failed, skipped or too long."""
    environment = {**os.environ, **test.environment}
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="onetest.", ignore_cleanup_errors=True) as folder, \
            open(os.path.join(folder, "output"), "w+b") as output:
        with subprocess.Popen(walls() + test.command, cwd=test.folder, env=environment, stdin=subprocess.DEVNULL,
                              stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0))) as process:
            try:
                status = process.wait(timeout=seconds)
            except subprocess.TimeoutExpired:
                status = None
            finally:
                try:
                    os.killpg(process.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        taken = time.monotonic() - begun
        output.seek(max(0, output.seek(0, os.SEEK_END) - 2000))
        told = output.read().decode(errors="replace")
    if status is None:
        return "too long", taken, told
    if test.skipped is not None and status == test.skipped:
        return "skipped", taken, told
    return "passed" if status == 0 else "failed", taken, told
