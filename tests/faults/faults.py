# SPDX-License-Identifier: MIT
"""faults.py CASE: what is refused, missing, full or damaged. The program under MemTrace goes on with
its own output and exit status, and one clear line says what is missing; the tools end with a
non-zero status and one line, never by a signal, never by hanging."""

import os
import re
import resource
import shutil
import signal
import stat
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "programs"))

from harness import (LIBRARY, MEMTRACE, PRELOAD, SOURCE, bare, build, clean_environment, equal, execute, fail,
                     finish, profiles, report, scratch, shared, skip, traced)

SUBJECT = os.path.join(HERE, "subject.c")
KILLED = "killed.c"
MODES = ("preload", "run", "hooks")


def needs_root():
    if os.geteuid() != 0:
        skip("needs root")


def goes_on(what, mode, settings, lines=1, words=(), wrap=None, length="6"):
    """Runs the subject with something wrong; at least one line of ours must tell, each whole."""
    program, folder = build(SUBJECT, "gcc", "-O1", mode), scratch()
    command = [program, length]
    environment = {"MEMTRACE_SUMMARY": "0", "MEMTRACE_REGION_DIR": scratch(where="/dev/shm"), "TMPDIR": folder,
                   "MEMTRACE_OUTPUT": os.path.join(folder, "%p.mtp"), **settings}
    if mode == "run":
        command = [MEMTRACE, "run", "--"] + command
    if mode == "preload":  # set by env so that what wraps the program is left alone
        command = ["env", "LD_PRELOAD=" + PRELOAD] + command
    under = execute((wrap or []) + command, clean_environment(**environment))
    what = "%s %s:" % (what, mode)
    equal((under.returncode, under.stdout), (3, b"all done\n"), what, "status and output",
          under.stderr.decode(errors="replace"))
    said = under.stderr.decode(errors="replace").splitlines()
    if any(not line.startswith("memtrace: ") for line in said):
        fail(what, "lines that are not ours:", said)
    if lines is not None and not (1 if lines else 0) <= len(said) <= lines:
        fail(what, "expected", lines, "line(s), got", said)
    for word in words:
        if not any(word in line for line in said):
            fail(what, "nothing says", repr(word), ":", said)
    return folder


def as_user(user, *command):
    return ["setpriv", "--reuid", user, "--regid", user, "--clear-groups", *command]


def tool_refuses(what, *arguments, words=(), environment=None, user=None):
    """A tool that cannot: non-zero status, one line, no signal."""
    command = [MEMTRACE, *arguments]
    if user:
        command = as_user(user, shared(MEMTRACE)[0], *arguments)
    result = execute(command, environment, timeout=30)
    error = result.stderr.decode(errors="replace")
    if result.returncode <= 0 or result.returncode >= 126:
        fail(what, "status", result.returncode, error)
    equal(len(error.splitlines()), 1, what, "lines of error", error)
    for word in words:
        equal(word.lower() in error.lower(), True, what, "the line says", word, error)


def small_tmpfs(size):
    needs_root()
    folder = scratch()
    where = os.path.join(folder, "small")
    os.mkdir(where)
    if execute(["mount", "-t", "tmpfs", "-o", "mode=700,size=" + size, "tmpfs", where]).returncode != 0:
        skip("no right to mount")
    import atexit
    atexit.register(lambda: execute(["umount", "-l", where]))
    return where


def sample_profile():
    folder = scratch()
    traced([build(SUBJECT, "gcc", "-O1"), "4"], "preload", folder)
    found = profiles(folder)
    equal(len(found), 1, "a sample profile")
    if not found:
        finish()
    return found[0]


def case_no_folder():
    for mode in MODES:
        goes_on("no such folder", mode, {"MEMTRACE_OUTPUT": scratch() + "/no/such/folder/%p.mtp"}, 2, ["/no/such/folder"])


def case_readonly_folder():
    where = small_tmpfs("1m")
    execute(["mount", "-o", "remount,ro", where])
    for mode in MODES:
        goes_on("read-only folder", mode, {"MEMTRACE_OUTPUT": where + "/%p.mtp"}, 2, [where])
        equal(os.listdir(where), [], "left behind")


def case_device_output():
    """What is no file is not replaced by one: /dev/null (a twin, so that no test harms the machine's)
    takes the profile, a pipe or a folder is refused."""
    folder = scratch()
    pipe, null = os.path.join(folder, "pipe"), os.path.join(folder, "null")
    os.mkfifo(pipe)
    for mode in MODES:
        goes_on("a pipe", mode, {"MEMTRACE_OUTPUT": pipe}, 1, ["cannot write the profile"])
        goes_on("a folder", mode, {"MEMTRACE_OUTPUT": folder}, 1,
                ["cannot write the profile", "Is a directory" if mode == "run" else "remove it or set MEMTRACE_OUTPUT"])
    equal(stat.S_ISFIFO(os.lstat(pipe).st_mode), True, "the pipe")
    needs_root()
    try:
        os.mknod(null, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except PermissionError:
        skip("no right to make devices")
    for mode in MODES:
        goes_on("/dev/null", mode, {"MEMTRACE_OUTPUT": null}, 0)
        equal(stat.S_ISCHR(os.lstat(null).st_mode), True, mode, "the device")
    # Several processes, small ones and one with a file of its own, forked and started: nothing lies beside it.
    program = build(SUBJECT, "gcc", "-O1")
    settings = {"MEMTRACE_REGION_DIR": scratch(where="/dev/shm"), "MEMTRACE_OUTPUT": null, "MEMTRACE_SUMMARY": "1"}
    several = ["sh", "-c", '"$0" 6; (true; "$0" 6); "$0" 6', program]
    for how in ([], ["--keep-small"]):
        under = execute([MEMTRACE, "run", *how, "--", *several], clean_environment(**settings))
        equal((under.returncode, under.stdout), (3, b"all done\n" * 3), how, under.stderr)
        equal((b"processes          4" in under.stderr, null.encode() in under.stderr), (True, False), how, under.stderr)
        equal(sorted(os.listdir(folder)), ["null", "pipe"], how, "beside the device")
    under = execute(["env", "LD_PRELOAD=" + PRELOAD, *several], clean_environment(**settings))
    equal((under.returncode, sorted(os.listdir(folder))), (3, ["null", "pipe"]), "preloaded", under.stderr)


def case_full_output():
    where = small_tmpfs("12k")
    for mode in MODES:
        goes_on("full disk", mode, {"MEMTRACE_OUTPUT": where + "/%p.mtp"}, 2, [where])
        equal(os.listdir(where), [], "half a profile is left behind")


def case_full_regions():
    """The tmpfs of the region is full at the start, or in the middle."""
    for size in ("4k", "64k", "256k", "1m"):
        where = small_tmpfs(size)
        for mode in MODES:
            folder = goes_on("region folder of " + size, mode, {"MEMTRACE_REGION_DIR": where}, 3, length="12")
            for path in profiles(folder):
                data = report(path)
                if data["allocations"] + data["lost"] < 40000 and not data["lost"]:
                    fail(size, mode, "events are missing and nothing is said to be lost:",
                         data["allocations"], data["lost"])
            equal(os.listdir(where), [], "regions left behind")


def case_file_size_limit():
    for blocks in ("0", "8", "200"):
        for mode in MODES:
            goes_on("ulimit -f " + blocks, mode, {}, 3,
                    wrap=["bash", "-c", "ulimit -f %s; exec \"$@\"" % blocks, "bash"])


def case_stderr_gone():
    """What the library says goes to a closed pipe, or to a file that may not grow."""
    program = build(SUBJECT, "gcc", "-O1", "hooks")
    settings = {"MEMTRACE_SUMMARY": "1", "MEMTRACE_OUTPUT": os.path.join(scratch(), "%p.mtp"),
                "MEMTRACE_CHURN": "1M", "MEMTRACE_COMMAND": scratch() + "/no/such/command"}
    reader, writer = os.pipe()
    os.close(reader)
    for what, limit, error in (("a closed pipe", "unlimited", writer),
                               ("a full file", "0", os.open(scratch() + "/full", os.O_WRONLY | os.O_CREAT))):
        command = ["bash", "-c", "ulimit -f %s; exec \"$@\"" % limit, "bash", program, "6"]
        under = subprocess.run(command, env=clean_environment(**settings), stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=error, timeout=60)
        equal((under.returncode, under.stdout), (3, b"all done\n"), "stderr is", what)
        os.close(error)


def allocations_of(data, size):
    return sum(context["allocations"] for context in data["contexts"]
               if context["allocations"] and context["total_bytes"] == size * context["allocations"])


def can_unshare():
    """Mounts of one's own need a root that is a mount point (no chroot) and the right to."""
    if subprocess.run(["unshare", "-m", "true"], stderr=subprocess.DEVNULL).returncode != 0:
        skip("no mount namespace can be had")


def case_no_shm():
    for mode in MODES:
        folder = goes_on("no region folder", mode, {"MEMTRACE_REGION_DIR": scratch() + "/no/such/folder"}, None)
        equal(len(profiles(folder)) <= 1, True, "profiles")
        open_to_all = scratch()
        os.chmod(open_to_all, 0o755)
        goes_on("a region folder that others read", mode, {"MEMTRACE_REGION_DIR": open_to_all}, 2,
                words=[open_to_all + " (MEMTRACE_REGION_DIR) is not this user's alone"])
    needs_root()
    can_unshare()
    for mode in MODES:
        folder = goes_on("no /dev/shm", mode, {"MEMTRACE_REGION_DIR": None}, None,
                         wrap=["unshare", "-m", "sh", "-c", "umount /dev/shm && exec \"$@\"", "sh"])
        found = profiles(folder)
        equal(len(found), 1, "profiles without /dev/shm")
        if found:
            equal(report(found[0])["allocations"] >= 40000, True, "and it is whole")


def case_address_space():
    """ulimit -v: from plenty to hardly enough for the program, which has one arena there: whether glibc finds 64 MiB in
    a row for a second one, and what it then leaves to others, is luck (docs/architecture.md, "Known limits")."""
    for kibibytes in (4000000, 400000, 200000, 120000):
        settings = {"MALLOC_ARENA_MAX": "1"} if kibibytes < 160 * 1024 else {}
        wrap = ["bash", "-c", "ulimit -v %d; exec \"$@\"" % kibibytes, "bash"]
        program = build(SUBJECT, "gcc", "-O1")
        if execute(wrap + [program]).returncode == 3:
            for mode in MODES:
                folder = goes_on("ulimit -v %d" % kibibytes, mode, settings, None, wrap=wrap)
                for path in profiles(folder):
                    data = report(path)
                    equal(data["allocations"] >= 40000 or data["lost"] > 0, True, kibibytes, mode,
                          "all is counted, or the loss is")


def limited(command, environment, which, mebibytes):
    """What the program said; it is limited from outside when it says that it is ready."""
    process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    line = process.stdout.readline()
    if line.startswith(b"ready "):
        resource.prlimit(int(line.split()[1]), resource.RLIMIT_AS if which == "as" else resource.RLIMIT_DATA,
                         (mebibytes << 20, mebibytes << 20))
        line = b""
    rest, error = process.communicate(b"\n", timeout=60)
    return process.returncode, (line + rest).decode(), error.decode()


def case_own_limits():
    """Limits that a program sets itself, or others for it, while it runs: it has what it would have alone, and what
    is MemTrace's is little, as the kernel counts it."""
    program = build(os.path.join(HERE, "ownlimits.c"), "gcc", "-O1", flags=("-pthread",))
    for who in ("self", "raw", "other", "fork", "grown"):
        for which, mebibytes in (("as", 512), ("data", 256)):
            command = [program, who, which, str(mebibytes)]
            alone = limited(command, clean_environment(), which, mebibytes)
            said, before = alone[1].split("; before: ")
            equal(alone[0], 3, command, "alone", alone)
            for way in ("preload", "run", "record"):
                environment = {"MEMTRACE_SUMMARY": "0", "MEMTRACE_OUTPUT": os.path.join(scratch(), "%p.mtp")}
                if way == "preload":
                    environment["LD_PRELOAD"] = PRELOAD
                wrap = [MEMTRACE, way, "--"] if way != "preload" else []
                under = limited(wrap + command, clean_environment(**environment), which, mebibytes)
                equal((under[0], under[1].split("; before: ")[0]), (3, said), way, *command[1:], under)
                ours = [int(now) - int(then) for now, then in zip(under[1].split()[-2:], before.split())]
                equal(ours[0] < 100 and ours[1] < 60, True, way, *command[1:], "MiB more than alone:", ours)


def case_locked():
    """mlockall: it works under a limit that is enough for the program, what is MemTrace's is neither locked nor
    brought into memory, and what comes later is counted."""
    program, = shared(build(os.path.join(HERE, "locked.c"), "gcc", "-O1"))
    for user in (None, "65534") if os.geteuid() == 0 else (None,):
        for flags in (1, 2, 3, 5, 7):
            command = [program, str(flags)]
            folder, regions = scratch(where="/tmp"), scratch(where="/dev/shm")
            os.chmod(folder, 0o777)
            os.chmod(regions, 0o777)
            settings = {"LD_PRELOAD": shared(LIBRARY)[0], "MEMTRACE_SUMMARY": "0", "MEMTRACE_KEEP_SMALL": "1",
                        "MEMTRACE_OUTPUT": os.path.join(folder, "%p.mtp"),
                        "MEMTRACE_REGION_DIR": os.path.join(regions, "own")}
            preloaded = ["env", *("%s=%s" % pair for pair in settings.items()), *command]
            runs = [execute(as_user(user, *words) if user else words) for words in (command, preloaded)]
            (failed, got, locked, resident, wrong), ours = ([int(word) for word in run.stdout.split()] for run in runs)
            equal((ours[0], ours[1], ours[4], runs[1].returncode), (failed, got, wrong, 3), user, flags, runs)
            equal(ours[2] < locked + 4096 and ours[3] < resident + 8192, True, user, flags, "KiB locked and resident",
                  (locked, resident), ours[2:4])
            data = report(profiles(folder)[0])
            equal((data["allocations"] >= 2000, data["lost"]), (True, 0), user, flags, data["lost_by_kind"])


def case_longest():
    """Where only MemTrace's variables make an environment too long, the program is started without them."""
    program = build(os.path.join(HERE, "longest.c"), "gcc", "-O1")
    alone = bare([program])
    equal((alone.returncode, len(alone.stdout.split())), (3, 2), "alone", alone.stderr)
    for mode in ("preload", "run"):
        under = traced([program], mode, scratch())
        equal((under.returncode, under.stdout), (3, alone.stdout), mode, under.stderr)


def case_small_stack():
    """Another program can be started where it can be alone: by a handler on a small stack, by a small thread."""
    program = build(os.path.join(HERE, "smallstack.c"), "gcc", "-O1", flags=("-pthread",))
    alone = bare([program])
    equal((alone.returncode, alone.stdout), (3, b"1 1\n"), "alone", alone.stderr)
    for mode in ("preload", "run"):
        under = traced([program], mode, scratch())
        equal((under.returncode, under.stdout), (3, alone.stdout), mode, under.stderr)


def case_no_proc():
    needs_root()
    can_unshare()
    wrap = ["unshare", "-m", "sh", "-c", "umount -l /proc && exec \"$@\"", "sh"]
    for mode in ("preload", "hooks"):
        goes_on("no /proc", mode, {}, None, wrap=wrap)
    result = execute(wrap + [MEMTRACE, "run", "--", "true"],
                     clean_environment(MEMTRACE_REGION_DIR=scratch(where="/dev/shm")))  # runs it, or says why not
    equal(result.returncode == 0 or len(result.stderr.splitlines()) == 1, True, "run", result.stderr)


def case_off():
    """Silent, and writes nothing anywhere."""
    for mode in ("preload", "hooks", "frame-pointer"):
        folder, regions = scratch(), scratch(where="/dev/shm")
        under = traced([build(SUBJECT, "gcc", "-O1", mode)], mode, folder,
                       {"MEMTRACE": "off", "MEMTRACE_SUMMARY": "1", "MEMTRACE_OUTPUT": None,
                        "MEMTRACE_REGION_DIR": regions, "MEMTRACE_EVERY": "10ms"}, cwd=folder)
        equal((under.returncode, under.stdout, under.stderr), (3, b"all done\n", b""), "off", mode)
        equal((os.listdir(folder), os.listdir(regions)), ([], []), "off", mode, "files")


def case_environment():
    for mode in MODES:
        goes_on("an unknown variable", mode, {"MEMTRACE_TPO": "5"}, 1, ["MEMTRACE_TPO", "MEMTRACE_TOP"])
        for name, value in (("EVERY", "soon"), ("TOP", "-4"), ("CHURN", "12Q"), ("STACKS", "some"),
                            ("SUMMARY", "perhaps"), ("CONTEXTS", "many"), ("CONTEXTS", "0")):
            if mode != "run":
                goes_on("MEMTRACE_%s=%s" % (name, value), mode, {"MEMTRACE_" + name: value},
                        None if name == "SUMMARY" else 1, ["MEMTRACE_" + name])


def case_context_limit():
    """Past the limit paths are charged to ancestors; totals stay exact."""
    for mode in MODES:
        folder = goes_on("100 contexts", mode, {"MEMTRACE_CONTEXTS": "100"}, None, length="12")
        data = report(profiles(folder)[0])
        if data["allocations"] < 40000 or data["total_bytes"] < 40000000:
            fail("totals past the limit", mode, data["allocations"], data["total_bytes"])
        equal(data["lost"] > 0, True, "the limit is told", mode)
        equal(sum(context["allocations"] for context in data["contexts"]), data["allocations"], mode)


def case_stacks():
    counts = {}
    for stacks in ("none", "short", "full"):
        for mode in MODES:
            folder = goes_on("stacks " + stacks, mode, {"MEMTRACE_STACKS": stacks}, 0)
            data = report(profiles(folder)[0])
            counts.setdefault(mode, []).append(data["allocations"])
            equal(data["lost"], 0, stacks, mode, "lost")
            modules = {os.path.basename(frame["module"]) for context in data["contexts"]
                       for frame in context["frames"]}
            if stacks == "none":
                equal(modules, set(), mode, "frames without stacks")
            if stacks == "short":
                equal([name for name in modules if name.startswith("libc.")], [], mode, "system frames")
    for mode, numbers in counts.items():
        equal(len(set(numbers)), 1, mode, "allocations whatever the stacks", numbers)


def case_gone_pid():
    process = subprocess.Popen(["true"])
    process.wait()
    tool_refuses("report of a gone pid", "report", str(process.pid), words=[str(process.pid)])
    tool_refuses("trace of a gone pid", "trace", str(process.pid), "0x1000", words=[str(process.pid)])
    tool_refuses("report of an untraced process", "report", str(os.getpid()), words=[str(os.getpid())])
    tool_refuses("trace of an untraced process", "trace", str(os.getpid()), "0x1000")
    tool_refuses("trace of no address", "trace", str(os.getpid()), "pear", words=["pear"])


def killed(folder, regions):
    """A program that was killed; its profile waits in the region folder. Returns its pid."""
    process = subprocess.Popen([build(KILLED)], stdout=subprocess.PIPE, env=clean_environment(
        LD_PRELOAD=PRELOAD, MEMTRACE_OUTPUT=os.path.join(folder, "%p.mtp"), MEMTRACE_REGION_DIR=regions))
    process.stdout.readline()
    process.kill()
    process.wait()
    process.stdout.close()
    return process.pid


def case_report_of_killed():
    """`memtrace report` moves the profile of a killed program to its place, as list and run do."""
    for arguments in ([], ["PID"]):
        folder, regions = scratch(), scratch(where="/dev/shm")
        pid = killed(folder, regions)
        result = execute([MEMTRACE, "report", *[word.replace("PID", str(pid)) for word in arguments]],
                         clean_environment(MEMTRACE_REGION_DIR=regions), cwd=folder)
        place = os.path.join(folder, "%d.mtp" % pid)
        equal((result.returncode, profiles(folder), os.listdir(regions)), (0, [place], []), arguments,
              result.stderr)
        equal(result.stderr.decode().count(place), len(arguments), "a line says where it is", result.stderr)


def case_system_calls():
    """A seccomp filter late in life. Refused calls leave the program as it is, and so does a filter
    that kills, whatever it allows. What was prepared before lasts for a while; the profile stays. One that may
    not open files any more loses nothing: its profile was kept open."""
    program = build(os.path.join(HERE, "filtered.c"), "gcc", "-O1")
    if execute([program, "refuse"]).returncode == 77:
        skip("no filter can be had")
    for action, *how in (("refuse",), ("allow",), ("grow",), ("kill",), ("refuse", "call"), ("kill", "call")):
        folder, regions = scratch(), scratch(where="/dev/shm")
        settings = {"MEMTRACE_REGION_DIR": regions}
        equal(bare([program, action, *how]).returncode, 3, action, "alone")
        under = traced([program, action, *how], "preload", folder, settings)
        equal((under.returncode, under.stdout), (3, b"all done\n"), action, *how, "status and output", under.stderr)
        execute([MEMTRACE, "list"], clean_environment(**settings))
        found = profiles(folder)
        equal((len(found), os.listdir(regions)), (1, []), action, "profiles")
        for path in found:
            data = report(path)
            equal(allocations_of(data, 80001), 20, action, *how, "allocations", data["lost_by_kind"])
            equal(allocations_of(data, 80003), 500, action, *how, "a new thread's", data["lost_by_kind"])
            if action == "grow":
                equal(allocations_of(data, 80005), 1 << 16, action, "along new paths", data["lost_by_kind"])
            if action != "refuse":
                equal(data["lost"], 0, action, *how, "lost", data["lost_by_kind"])


def case_child_limits():
    """A forked child that may not have a place of its own goes on as it would; its parent's profile is whole, and
    says that something is missing."""
    program = build(os.path.join(HERE, "childlimits.c"), "gcc", "-O1")
    for limit in ("fsize", "data", "as", "nofile"):
        folder = scratch()
        alone = bare([program, limit])
        under = traced([program, limit], "preload", folder)
        equal((under.returncode, under.stdout), (alone.returncode, alone.stdout), limit, "status and output", under.stderr)
        equal(alone.returncode, 3, limit, "alone")
        for path in profiles(folder):
            told = execute([MEMTRACE, "info", path])
            equal((told.returncode, told.stderr), (0, b""), limit, "the file is whole")
            data = report(path)
            equal(allocations_of(data, 1000), 1, limit, "the parent's")
            equal(data["lost"] >= 1, True, limit, "is told", data["lost_by_kind"])


def calls_of_runtime():
    """The numbers here of all system calls that the runtime makes, by name."""
    names = set()
    for folder, _, files in os.walk(os.path.join(SOURCE, "runtime")):
        for name in files:
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                names.update(re.findall(r"\bSYS_([a-z0-9_]+)", file.read()))
    source = os.path.join(scratch(), "numbers.c")
    with open(source, "w", encoding="utf-8") as file:
        file.write("#include <stdio.h>\n#include <sys/syscall.h>\nint main(void) {\n" + "".join(
            '#ifdef SYS_%s\nprintf("%s %%d\\n", SYS_%s);\n#endif\n' % (name, name, name) for name in sorted(names)) +
                   "return 0; }\n")
    told = execute([build(source, "gcc", "-O0")]).stdout.decode().split()
    return dict(zip(told[::2], told[1::2]))


def case_each_call():
    """A program that may not make one system call does what it does alone, whichever it is."""
    program = build(os.path.join(HERE, "denied.c"), "gcc", "-O1")
    numbers = calls_of_runtime()
    if execute([program, numbers["mincore"], "refuse"]).returncode == 77:
        skip("no filter can be had")
    for name, number in sorted(numbers.items()):
        for how in ("kill", "refuse") if name not in ("exit", "exit_group") else ("kill",):  # else it goes on for ever
            alone = bare([program, number, how])
            regions = scratch(where="/dev/shm")
            settings = {"MEMTRACE_REGION_DIR": regions, **({"MEMTRACE_RECORD": "1"} if how == "refuse" else {})}
            under = traced([program, number, how], "preload", scratch(), settings)
            equal((under.returncode, under.stdout), (alone.returncode, alone.stdout), name, how, under.stderr)
            end = time.monotonic() + 20  # a companion may be at it
            while os.listdir(regions) and time.monotonic() < end:
                execute([MEMTRACE, "list"], clean_environment(MEMTRACE_REGION_DIR=regions))
            equal(os.listdir(regions), [], name, how, "what nobody finishes")


def case_strict():
    """A program that may not even ask for the time does what it does alone."""
    program = build(os.path.join(HERE, "strict.c"), "gcc", "-O1")
    if execute([program]).returncode == 77:
        skip("there is no strict mode")
    for settings in ({}, {"MEMTRACE_RECORD": "1"}):
        under = traced([program], "preload", scratch(), settings)
        equal((under.returncode, under.stdout), (3, b"all done\n"), settings, "status and output", under.stderr)


def case_memory_limit():
    """Killed for its memory: by the kernel where a group can be had, else as it would be."""
    needs_root()
    group = "/sys/fs/cgroup/memory/memtrace-test-%d" % os.getpid()
    limit = os.path.join(group, "memory.limit_in_bytes")
    if not os.path.isdir("/sys/fs/cgroup/memory"):
        group = "/sys/fs/cgroup/memtrace-test-%d" % os.getpid()
        limit = os.path.join(group, "memory.max")
    try:
        os.mkdir(group)
        with open(limit, "w") as file:
            file.write("64M")
    except OSError:
        skip("no memory group can be had")
    folder, regions = scratch(), scratch(where="/dev/shm")
    program = build(os.path.join(HERE, "greedy.c"), "gcc", "-O1")
    under = traced(["sh", "-c", 'echo $$ > "$0"/cgroup.procs; exec "$1"', group, program], "preload", folder,
                   {"MEMTRACE_REGION_DIR": regions})
    os.rmdir(group)
    equal(under.returncode, -signal.SIGKILL, "the kernel kills it", under.stderr)
    execute([MEMTRACE, "list"], clean_environment(MEMTRACE_REGION_DIR=regions))
    data = [report(path) for path in profiles(folder)]
    equal(any(allocations_of(item, 1 << 20) > 20 for item in data), True, "what it held is known")


def case_trace_rights():
    """A process that may not be looked into: one line says so."""
    needs_root()
    folder, regions = scratch(where="/tmp"), scratch(where="/dev/shm")
    os.chown(regions, 65534, 65534)
    os.chmod(folder, 0o777)
    program, library = shared(build(KILLED), LIBRARY)
    process = subprocess.Popen(as_user("65534", "env", "LD_PRELOAD=" + library, program),
                               stdout=subprocess.PIPE,
                               env=clean_environment(MEMTRACE_OUTPUT=os.path.join(folder, "%p.mtp"),
                                                     MEMTRACE_REGION_DIR=regions))
    try:
        equal(process.stdout.readline() != b"", True, "another user runs the program")
        bounded = ["setpriv", "--bounding-set", "-sys_ptrace", "--inh-caps", "-sys_ptrace", MEMTRACE]
        result = execute(bounded + ["trace", str(process.pid), "0x1000"],
                         clean_environment(MEMTRACE_REGION_DIR=regions))
        equal((result.returncode > 0, len(result.stderr.splitlines())), (True, 1), "trace without the right",
              result.stderr)
        equal(b"may not be read" in result.stderr, True, "the line says why", result.stderr)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def case_other_user():
    needs_root()
    folder = scratch()
    process = subprocess.Popen([build(KILLED)], stdout=subprocess.PIPE, env=clean_environment(
        LD_PRELOAD=PRELOAD, MEMTRACE_OUTPUT=os.path.join(folder, "%p.mtp")))
    try:
        process.stdout.readline()
        tool_refuses("report of root's pid as nobody", "report", str(process.pid), user="65534")
        tool_refuses("trace of root's pid as nobody", "trace", str(process.pid), "0x1000", user="65534")
        result = execute([MEMTRACE, "report", "--json", "--nodes", str(process.pid)])
        equal(result.returncode, 0, "report of a running program by its owner", result.stderr)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    execute([MEMTRACE, "list"])
    equal(len(profiles(folder)), 1, "the killed program's profile after memtrace list")


def case_options():
    tool_refuses("no such command", "sing", words=["sing"])
    tool_refuses("no such option", "report", "--loud", words=["--loud"])
    tool_refuses("no such option of run", "run", "--loud", "--", "true", words=["--loud"])
    for arguments in (["run", "--every", "soon", "--", "true"], ["run", "--top", "x", "--", "true"],
                      ["run", "--churn", "12Q", "--", "true"], ["run"]):
        tool_refuses(" ".join(arguments), *arguments)
    result = execute([MEMTRACE, "run", "--", scratch() + "/no/such/program"])
    equal((result.returncode, len(result.stderr.splitlines())), (127, 1), "run of nothing", result.stderr)
    result = execute([MEMTRACE, "run", "--", "/etc/passwd"])
    equal((result.returncode, len(result.stderr.splitlines())), (126, 1), "run of no program", result.stderr)


def case_modes():
    """Command lines are in what is written: only the owner reads it, unless --mode says otherwise."""
    program = build(SUBJECT, "gcc", "-O1", "preload")

    def modes(settings, *options):
        folder = scratch()
        environment = clean_environment(MEMTRACE_SUMMARY="0", TMPDIR=folder, MEMTRACE_REGION_DIR=scratch(where="/dev/shm"),
                                        **settings)
        recorded, packed, log = (os.path.join(folder, name) for name in ("a.mtr", "packed.mtr", "log"))
        for command in ([MEMTRACE, "run", *options, "--every", "10s", "--log", log, "-o", folder + "/a.mtp", "--", program, "6"],
                        [MEMTRACE, "record", *options, "-o", recorded, "--", program, "6"],
                        ["env", "LD_PRELOAD=" + PRELOAD, "MEMTRACE_OUTPUT=" + folder + "/b.mtp", program, "6"]):
            equal(execute(command, environment, cwd=folder).returncode, 3, command)
        for command in (["repack", recorded, "-o", packed], ["report", "--output", folder + "/report", recorded],
                        ["export", "--format", "folded", "-o", folder + "/folded", recorded],
                        ["export", "--format", "sqlite", "-o", folder + "/sqlite", recorded],
                        ["extract", recorded, "-o", folder + "/files"]):
            equal(execute([MEMTRACE, *command], environment).returncode, 0, command)
        found = {}
        for root, _, names in os.walk(folder):
            for name in names:
                found[name] = stat.S_IMODE(os.stat(os.path.join(root, name)).st_mode)
        for name in ("a.mtp", "b.mtp", "a.mtr", "packed.mtr", "report", "folded", "sqlite"):
            equal(name in found, True, name, "is there", found)
        return found

    mask = os.umask(0o002)
    try:
        equal({name: mode for name, mode in modes({}).items() if mode & 0o077}, {}, "files that others can read")
        equal({mode for mode in modes({"MEMTRACE_MODE": "0646"}).values()}, {0o644}, "MEMTRACE_MODE, less the umask")
        asked = modes({}, "--mode", "0640")
        equal([asked[name] for name in ("a.mtp", "a.mtr", "b.mtp")], [0o640, 0o640, 0o600], "--mode")
    finally:
        os.umask(mask)
    for wrong in ("640x", "77", "0077", "01777"):
        tool_refuses("a mode", "run", "--mode", wrong, "--", "true", words=["--mode", wrong])


def case_module_changed():
    """The program was built anew since: told, not guessed."""
    folder = scratch()
    program = os.path.join(folder, "program")
    shutil.copy(build(SUBJECT, "gcc", "-O1"), program)
    traced([program], "preload", folder)
    shutil.copy(build(SUBJECT, "gcc", "-O2"), program)
    found = profiles(folder)
    result = execute([MEMTRACE, "report", "--json", found[0]])
    equal(result.returncode, 0, "report", result.stderr)
    error = result.stderr.decode()
    equal("program" in error and len(error.splitlines()) == 1, True, "one line names the module", error)
    for text in (b'"function": "path"', b'"function": "work"'):
        equal(text in result.stdout, False, "names guessed from another build", text)
    os.unlink(program)
    result = execute([MEMTRACE, "report", "--json", found[0]])
    equal(result.returncode, 0, "report without the module", result.stderr)


CASES = {name[5:]: function for name, function in list(globals().items()) if name.startswith("case_")}
if __name__ == "__main__":
    CASES[sys.argv[1]]()
    finish()
