# SPDX-License-Identifier: MIT
"""What the tests of whole programs share: building a subject, running it bare and under MemTrace,
reading its profile, and asking valgrind and gdb what is true.

Every test script under tests/programs, tests/faults and tests/real uses it. The environment says
where MemTrace was built: TEST_BUILD (with bin/memtrace and lib/libmemtrace.so).
"""

import fcntl
import functools
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from leftovers import kill_leftovers

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
SUBJECTS = os.path.join(HERE, "subjects")
BUILD = os.path.abspath(os.environ.get("TEST_BUILD", os.path.join(SOURCE, "build")))
MEMTRACE = os.path.join(BUILD, "bin", "memtrace")
LIBRARY = os.path.join(BUILD, "lib", "libmemtrace.so")
CACHE = os.environ.get("TEST_CACHE", os.path.join(BUILD, "tests", "subjects"))
TIMEOUT = 120
PATIENCE = 60  # seconds that anything may take where the machine has much else to do
SKIP = 77  # ctest's SKIP_RETURN_CODE

COMPILERS = {"gcc": ("gcc", "g++"), "clang": ("clang", "clang++")}
# How a program is built and started for a mode: (compiler flags, linked with the library?)
MODES = {
    "bare": ([], False),
    "preload": ([], False),
    "run": ([], False),
    "hooks": (["-finstrument-functions", "-fno-omit-frame-pointer"], True),
    "frame-pointer": (["-fno-omit-frame-pointer"], True),
}

failures = []


def fail(*words):
    """Notes a failure; finish() turns it into the exit status."""
    failures.append(" ".join(str(word) for word in words))
    print("FAIL:", failures[-1], flush=True)


def equal(got, expected, *what):
    if got != expected:
        fail(*what, ": got", repr(got)[:2000], "expected", repr(expected)[:2000])
    return got == expected


def finish():
    print("%d failures" % len(failures) if failures else "ok")
    sys.exit(1 if failures else 0)


def skip(why):
    print("skipped:", why)
    sys.exit(SKIP)


def is_gone(pid):
    """It has ended, also where nobody takes notice of it: the first process of a container may be no init."""
    try:
        with open("/proc/%d/stat" % pid, encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def wait_until(condition, what, seconds=PATIENCE):
    """Waits for something that takes its time on a slow machine; exits the test if it does not come."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            fail(what, ": did not happen in", seconds, "s")
            finish()
        time.sleep(0.01)


def have(*commands):
    for command in commands:
        if shutil.which(command) is None:
            skip("no " + command)


def scratch(prefix="memtrace-test-", where=None):
    """A folder for one test, removed at its end."""
    import atexit

    folder = tempfile.mkdtemp(prefix=prefix, dir=where)
    owner = os.getpid()

    def remove():
        if owner == os.getpid():
            kill_leftovers()  # they may write to it still
            shutil.rmtree(folder, ignore_errors=True)
    atexit.register(remove)
    return folder


@functools.lru_cache(maxsize=None)
def own_regions():
    """Where this test's programs have their regions: what others leave behind is not told here."""
    return scratch(where="/dev/shm")


@functools.lru_cache(maxsize=None)
def preloadable(library):
    """The library as LD_PRELOAD takes it: by a link where its folder's path has a blank or a colon."""
    if not re.search(r"[\s:$]", library):
        return library
    link = os.path.join(scratch(where="/tmp"), "lib")
    os.symlink(os.path.dirname(library), link)
    return os.path.join(link, os.path.basename(library))


def shared(*files):
    """Copies of programs that any user can reach and run: where the tests lie, others may not enter.
    A library goes to where a command among them looks for it."""
    folder = scratch(where="/tmp")
    copies = []
    for file in files:
        place = os.path.join(folder, "lib" if ".so" in file else "bin")
        os.makedirs(place, exist_ok=True)
        copies.append(shutil.copy(file, place))
    for place, _, _ in os.walk(folder):
        os.chmod(place, 0o755)
    for copy in copies:
        os.chmod(copy, 0o755)
    return copies


def with_included(sources):
    """The sources and those files of ours that they include."""
    found = list(sources)
    for source in found:  # grows
        with open(source, encoding="utf-8") as file:
            for name in re.findall(r'^#include "(.*)"', file.read(), re.MULTILINE):
                for folder in (os.path.dirname(source), os.path.join(SOURCE, "include")):
                    path = os.path.join(folder, name)
                    if os.path.exists(path) and path not in found:
                        found.append(path)
    return found


def build(sources, compiler="gcc", optimize="-O0", mode="bare", flags=(), libraries=(), shared=False):
    """Compiles a subject once for each set of flags; returns the program's path."""
    sources = [os.path.join(SUBJECTS, source) for source in
               ([sources] if isinstance(sources, str) else sources)]
    cplusplus = any(source.endswith(".cpp") for source in sources)
    extra, linked = MODES[mode]
    command = [COMPILERS[compiler][1 if cplusplus else 0], "-g", optimize, "-fno-builtin", "-w",
               "-U_FORTIFY_SOURCE", "-pthread", "-I" + os.path.join(SOURCE, "include")]
    # Clang 14's hooks and libstdc++'s C++20 headers do not link together.
    standard = "-std=c++17" if compiler == "clang" and mode == "hooks" else "-std=c++20"
    command += [standard, "-fsized-deallocation"] if cplusplus else ["-std=gnu17", "-D_GNU_SOURCE"]
    command += extra + list(flags) + (["-shared", "-fPIC"] if shared else []) + sources
    command += ["-L" + os.path.dirname(LIBRARY), "-Wl,--no-as-needed", "-lmemtrace",
                "-Wl,-rpath," + os.path.dirname(LIBRARY)] if linked else []
    command += list(libraries) + ["-ldl", "-lm"]
    key = hashlib.sha256("\0".join(command).encode())
    for source in with_included(sources):
        with open(source, "rb") as file:
            key.update(file.read())
    name = os.path.splitext(os.path.basename(sources[0]))[0]
    folder = os.path.join(CACHE, key.hexdigest()[:16])
    program = os.path.join(folder, name + (".so" if shared else ""))
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(program):
            result = subprocess.run(command + ["-o", program + ".new"], capture_output=True, text=True)
            if result.returncode != 0:
                print(" ".join(command), result.stderr, sep="\n")
                sys.exit(1)
            os.rename(program + ".new", program)
    return program


def leaves_nothing(number, *words):
    """A command that is ended by a signal as soon as it has made a temporary folder (at the latest it
    waits for a reader of its output) removes it."""
    temporary = scratch()
    output = os.path.join(scratch(), "nobody-reads")
    os.mkfifo(output)
    process = subprocess.Popen([MEMTRACE, *words, "--output", output],
                               env=clean_environment(TMPDIR=temporary), stderr=subprocess.DEVNULL,
                               preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))
    while not os.listdir(temporary) and process.poll() is None:
        time.sleep(0.005)
    process.send_signal(number)
    equal(process.wait(), -number, words, "status after signal", number)
    equal(os.listdir(temporary), [], words, "left after signal", number)


PRELOAD = preloadable(LIBRARY)


def clean_environment(**settings):
    """Our environment without anything of MemTrace's, plus the settings. Nothing is kept in the
    user's own cache, and no server is asked for debug information."""
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith("MEMTRACE") and name != "LD_PRELOAD"}
    environment.update({"MEMTRACE_CACHE": "", "DEBUGINFOD_URLS": "", **settings})
    return {name: value for name, value in environment.items() if value is not None}


def execute(command, environment=None, cwd=None, timeout=TIMEOUT, **more):
    return subprocess.run(command, env=environment or clean_environment(), cwd=cwd, timeout=timeout,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          **more)


def bare(command, **more):
    """The program by itself; an instrumented one with MEMTRACE=off."""
    return execute(command, clean_environment(MEMTRACE="off"), **more)


def traced(command, mode, folder, settings=None, **more):
    """The program under MemTrace; its profiles lie in `folder` afterwards, named NAME.PID.mtp."""
    settings = {"MEMTRACE_SUMMARY": "0", "MEMTRACE_KEEP_SMALL": "1",
                "MEMTRACE_OUTPUT": os.path.join(folder, "%e.%p.mtp"),
                "MEMTRACE_RECORD_OUTPUT": os.path.join(folder, "%e.%p.mtr"),
                "MEMTRACE_REGION_DIR": own_regions(), **(settings or {})}
    if mode == "preload":
        settings["LD_PRELOAD"] = PRELOAD
    if mode == "run":
        command = [MEMTRACE, "run", "--"] + command
    return execute(command, clean_environment(**settings), **more)


def files(folder, ending):
    """All of this kind, also those in the folder that a run of several processes leaves."""
    found = []
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if os.path.isdir(path):
            found += files(path, ending)
        elif name.endswith(ending):
            found.append(path)
    return sorted(found, key=os.path.getmtime)


def profiles(folder):
    return files(folder, ".mtp")


def raw_profile(path):
    """Its bytes, uncompressed: what docs/format.md tells of segments."""
    with open(path, "rb") as file:
        data = file.read()
    if len(data) < 12 or not data[9] & 1:  # MEMTRACE_FORMAT_COMPRESSED
        return data
    with tempfile.TemporaryDirectory() as folder:
        raw = os.path.join(folder, "raw.mtp")
        subprocess.run([MEMTRACE, "repack", "--raw", "--output", raw, path], check=True,
                       stderr=subprocess.DEVNULL)
        return raw_profile(raw)


def report(profile, settings=None, *options):
    """The profile as `memtrace report --json` tells it, however long that is; exits the test if it cannot."""
    result = execute([MEMTRACE, "report", "--json", "--depth", "0", *options, profile],
                     clean_environment(**(settings or {})))
    if result.returncode != 0:
        fail("memtrace report --json", profile, "status", result.returncode,
             result.stderr.decode(errors="replace"))
        finish()
    try:
        data = json.loads(result.stdout)
        for context in data["contexts"] + data["mappings"] + data["pools"]:
            for frame in context["frames"]:  # what is not known is null
                frame.update({name: frame[name] or "" for name in ("function", "file", "module")})
        return data
    except ValueError as error:
        shutil.copy(profile, "/tmp/memtrace-test-bad.mtp")
        fail("the report is no JSON:", error, "profile kept as /tmp/memtrace-test-bad.mtp")
        finish()


def only_profile(folder, what):
    found = profiles(folder)
    if len(found) != 1:
        fail(what, ": expected one profile, found", [os.path.basename(path) for path in found])
        finish()
    return report(found[0])


def heap(data):
    """Contexts of the heap: mappings and custom pools stand apart."""
    return data["contexts"]


def by_size(data):
    """{size: (allocations, frees)} of contexts whose blocks are all of one size."""
    sizes = {}
    for context in heap(data):
        if context["allocations"]:
            size, rest = divmod(context["total_bytes"], context["allocations"])
            if not rest:
                before = sizes.get(size, (0, 0))
                sizes[size] = (before[0] + context["allocations"], before[1] + context["frees"])
    return sizes


def sums_by_path(rows):
    """{path: (allocations, bytes)} of (path, allocations, bytes): all on it, wherever in its functions."""
    sums = {}
    for path, count, size in rows:
        before = sums.get(path, (0, 0))
        sums[path] = (before[0] + count, before[1] + size)
    return sums


def totals(data):
    return {"allocations": data["allocations"], "bytes": data["total_bytes"],
            "frees": data["frees"], "live": data["live_bytes"],
            "blocks": data["live_blocks"]}


@functools.lru_cache(maxsize=None)
def cxx_pool_bytes():
    """libstdc++'s emergency pool for exceptions, allocated before main; its size is the version's."""
    return int(execute([build("pool.cpp")]).stdout)


def wanted(output, cplusplus):
    """The totals that a subject says it should have ("want ..."), by its own arithmetic; None: it says
    nothing."""
    match = re.search(rb"want allocations (\d+) bytes (\d+) frees (\d+) live (-?\d+) blocks (-?\d+)",
                      output)
    if not match:
        return None
    want = dict(zip(("allocations", "bytes", "frees", "live", "blocks"), map(int, match.groups())))
    if cplusplus:
        for name in ("bytes", "live"):
            want[name] += cxx_pool_bytes()
        for name in ("allocations", "blocks"):
            want[name] += 1
    return want


def consistent(data, what, slack=0):
    """The sums that every profile owes us. slack: events that may be half-written (a kill)."""
    contexts = heap(data)
    for context in contexts:
        if context["frees"] > context["allocations"]:
            fail(what, "more frees than allocations:", context)
        if context["live_blocks"] != context["allocations"] - context["frees"]:
            fail(what, "live blocks of a context do not add up:", context)
        if context["live_bytes"] < 0 or context["live_bytes"] > context["total_bytes"]:
            fail(what, "live bytes of a context are impossible:", context)
    for total, part in (("total_bytes", "total_bytes"), ("allocations", "allocations"),
                        ("frees", "frees"), ("live_bytes", "live_bytes"),
                        ("live_blocks", "live_blocks"), ("peak_bytes", "peak_bytes")):
        equal(sum(context[part] for context in contexts), data[total], what, "the sum of", part)
    for field, total in (("allocations", "allocations"), ("frees", "frees")):
        threads = sum(thread[field] for thread in data["threads"])
        if field == "allocations":  # a forked child is born with blocks that no thread asked for
            threads += data["process"]["inherited_blocks"]
        if abs(threads - data[total]) > slack:
            fail(what, "threads count", threads, field, "but contexts", data[total])


def valgrind(command):
    """valgrind's "total heap usage" and what is in use at exit, as totals() gives them."""
    have("valgrind")
    result = execute(["valgrind", "--run-libc-freeres=no", "--run-cxx-freeres=no", "--leak-check=full",
                      "--show-leak-kinds=none", *command])
    text = result.stderr.decode(errors="replace")
    number = lambda pattern: [int(group.replace(",", "")) for group in re.search(pattern, text).groups()]
    live, blocks = number(r"in use at exit: ([\d,]+) bytes in ([\d,]+) blocks")
    allocations, frees, size = number(r"total heap usage: ([\d,]+) allocs, ([\d,]+) frees, ([\d,]+) bytes")
    lost = re.findall(r"(?:definitely lost|indirectly lost|possibly lost|still reachable): ([\d,]+) bytes", text)
    if lost:
        equal(sum(int(item.replace(",", "")) for item in lost), live, "valgrind's own leak kinds")
    return {"allocations": allocations, "bytes": size, "frees": frees, "live": live, "blocks": blocks}


def same_behaviour(alone, under, what):
    """Output and exit status as without us."""
    equal(under.returncode, alone.returncode, what, "exit status")
    equal(under.stdout, alone.stdout, what, "stdout")
    equal(under.stderr, alone.stderr, what, "stderr")
    if b"WRONG" in alone.stdout:
        fail(what, "the subject itself is wrong:", alone.stdout)
