# SPDX-License-Identifier: MIT
"""cli_test.py CASE: `memtrace run`, `list` and `companion` from outside: exit statuses, signals,
reports, and what becomes of the profile when something goes wrong. Each case has a folder and a
region folder of its own."""

import json
import os
import pty
import re
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

BUILD = os.environ["TEST_BUILD"]
SOURCE = os.path.dirname(os.path.abspath(__file__))
MEMTRACE = BUILD + "/bin/memtrace"
LIBRARY = BUILD + "/lib/libmemtrace.so"
TOTALS = re.compile(rb"memtrace: allocations        ([0-9,]+) \(")

folder = tempfile.mkdtemp(prefix="memtrace-cli-")
regions = folder + "/regions"
os.mkdir(regions, 0o700)
environment = {name: value for name, value in os.environ.items()
               if not name.startswith("MEMTRACE") and name != "LD_PRELOAD"}
environment["MEMTRACE_REGION_DIR"] = regions
environment["TMPDIR"] = folder + "/tmp"
os.mkdir(folder + "/tmp")


def build(*flags):
    program = folder + "/subject"
    subprocess.run(["cc", "-g", "-O1", *flags, "-I", SOURCE + "/../../include",
                    "-I", BUILD + "/include", SOURCE + "/subject.c", "-o", program, "-pthread"],
                   check=True)
    return program


def start(arguments, **settings):
    extra = settings.pop("env", {})
    settings.setdefault("stdout", subprocess.PIPE)
    settings.setdefault("stderr", subprocess.PIPE)
    settings.setdefault("cwd", folder)
    return subprocess.Popen(arguments, env={**environment, **extra}, **settings)


def execute(*arguments, **settings):
    process = start(list(arguments), **settings)
    process.out, process.err = process.communicate(timeout=60)
    return process


def run(*arguments, **settings):
    return execute(MEMTRACE, "run", *arguments, **settings)


def check(condition, *what):
    if not condition:
        print("FAILED:", *what)
        sys.exit(1)


def equal(found, wanted, *what):
    check(found == wanted, *what, "found", repr(found), "wanted", repr(wanted))


def profiles():
    return sorted(name for name in os.listdir(folder) if ".mtp" in name)


def no_leftovers():
    equal(os.listdir(regions), [], "regions left:")
    equal([name for name in os.listdir(folder) if name.startswith(".memtrace-")], [], "temporary files:")


def wait_line(process, line):
    found = process.stdout.readline()
    equal(found, line)


def wait_until(condition, *what):
    for _ in range(500):
        if condition():
            return
        time.sleep(0.02)
    check(False, "waited in vain for", *what)


def child_of(process):
    path = "/proc/%d/task/%d/children" % (process.pid, process.pid)
    wait_until(lambda: open(path).read().strip(), "a child")
    return int(open(path).read().split()[0])


def allocations(error):
    found = TOTALS.search(error)
    check(found, "no summary in", error)
    return int(found.group(1).replace(b",", b""))


def test_exit_status():
    program = build()
    for status in (0, 1, 2, 7, 126, 127, 255):
        done = run("--", program, "exit%d" % status)
        equal(done.returncode, status, "status")
        check(allocations(done.err) >= 1, done.err)
    no_leftovers()


def test_died_by_signal():
    program = build()
    for number in (signal.SIGKILL, signal.SIGABRT, signal.SIGSEGV, signal.SIGTERM, signal.SIGINT,
                   signal.SIGUSR1, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD + 17):
        done = run("-o", "out.mtp", "--", program, "raise%d" % number, "exit3")
        equal(done.returncode, -number, "status after signal", number)
        check(b"memtrace: profile            " + folder.encode() + b"/out.mtp\n" in done.err, done.err)
    equal([name for name in os.listdir(folder) if name.startswith("core")], [], "core files")
    no_leftovers()


def test_signals_are_forwarded():
    program = build()
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGINT,
                   signal.SIGQUIT, signal.SIGRTMIN + 3):
        process = start([MEMTRACE, "run", "--no-summary", "--", program, "catch%d" % number, "ready",
                         "pause", "exit5"])
        wait_line(process, b"ready\n")
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
        equal((out, err, process.returncode), (b"signal %02d\n" % number, b"", 5), "signal", number)
    process = start([MEMTRACE, "run", "--no-summary", "--", program, "ready", "pause"])
    wait_line(process, b"ready\n")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    equal(process.returncode, -signal.SIGTERM)
    no_leftovers()


def test_stop_and_continue():
    """A program that is stopped from elsewhere is waited for; SIGCONT to run reaches it."""
    program = build()
    process = start([MEMTRACE, "run", "--no-summary", "--", program, "ready", "sleep300", "exit4"])
    wait_line(process, b"ready\n")
    child = child_of(process)
    os.kill(child, signal.SIGSTOP)
    time.sleep(0.6)
    equal(process.poll(), None)
    equal(open("/proc/%d/stat" % process.pid).read().rsplit(")", 1)[1].split()[0], "S", "state of run")
    process.send_signal(signal.SIGCONT)
    process.communicate(timeout=30)
    equal(process.returncode, 4)


def terminal(arguments):
    """Starts it as the foreground job of a new terminal."""
    pid, master = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.execve(arguments[0], arguments, environment)
    return pid, master


def read_terminal(master, text):
    found = b""
    while text not in found:
        check(select.select([master], [], [], 30)[0], "nothing but", found)
        try:
            found += os.read(master, 4096)
        except OSError:
            check(False, "only", found)
    return found


def test_terminal_interrupt():
    """Ctrl-C reaches the program once, and run waits for what it does about it."""
    program = build()
    pid, master = terminal([MEMTRACE, "run", "--", program, "catch2", "ready", "pause", "sleep300",
                            "exit6"])
    read_terminal(master, b"ready")
    os.write(master, b"\x03")
    text = read_terminal(master, b"read it with")
    equal(text.count(b"signal 02"), 1, text)
    equal(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 6)


def test_terminal_stop():
    """Ctrl-Z stops both, so that a shell gets its terminal back; fg goes on with both."""
    program = build()
    script = "set -m; %s run --no-summary -- %s ready sleep500 exit6; echo stopped $?; fg; echo end $?"
    pid, master = terminal(["/bin/bash", "--norc", "-c", script % (MEMTRACE, program)])
    read_terminal(master, b"ready")
    time.sleep(0.1)
    os.write(master, b"\x1a")
    read_terminal(master, b"stopped %d" % (128 + signal.SIGSTOP))
    read_terminal(master, b"end 6")
    os.waitpid(pid, 0)


def test_missing_command():
    done = run("--", "no-such-command-anywhere")
    equal((done.returncode, done.err), (127, b"memtrace: no-such-command-anywhere: command not found\n"))
    done = run("--", "./absent")
    equal((done.returncode, done.err), (127, b"memtrace: ./absent: command not found\n"))
    open(folder + "/plain", "w").close()
    done = run("--", "./plain")
    equal((done.returncode, done.err), (126, b"memtrace: ./plain: cannot be executed\n"))
    done = run("--", folder)
    equal(done.returncode, 126)
    with open(folder + "/bad", "w") as file:
        file.write("#!/nowhere/at/all\n")
    os.chmod(folder + "/bad", 0o755)
    done = run("--", "./bad")
    equal((done.returncode, done.err.count(b"\n")), (127, 1), done.err)


def test_wrong_options():
    for arguments in (["--top", "x", "--", "true"], ["--every", "5 parsecs", "--", "true"],
                      ["--churn", "lots", "--", "true"], ["--stacks", "some", "--", "true"],
                      ["--contexts", "0", "--", "true"], ["--output", "", "--", "true"],
                      ["--nonsense", "--", "true"], ["--top"], []):
        done = run(*arguments)
        equal(done.returncode, 2, arguments)
        equal((done.out, done.err.count(b"\n")), (b"", 1), arguments, done.err)
        check(done.err.startswith(b"memtrace: "), done.err)
    done = run("--help")
    equal((done.returncode, done.err), (0, b""))
    check(b"--every" in done.out and b"--no-summary" in done.out)


def test_script_without_first_line():
    with open(folder + "/script", "w") as file:
        file.write("echo $1; exit 9\n")
    os.chmod(folder + "/script", 0o755)
    done = run("--no-summary", "--", "./script", "word")
    equal((done.returncode, done.out), (9, b"word\n"), done.err)


def test_static_program():
    program = build("-static")
    done = run("--", program, "exit3")
    equal((done.returncode, done.err),
          (3, b"memtrace: %s is statically linked: nothing will be recorded\n" % program.encode()))
    equal(profiles(), [])


def test_set_uid_program():
    if os.geteuid() != 0:
        sys.exit(77)
    program = build()
    os.chmod(program, 0o4755)
    for name in (folder, regions):
        os.chmod(name, 0o755)
    done = run("--", program, "exit3", user=65534)
    equal(done.returncode, 3, done.err)
    equal(done.err.count(b"\n"), 1, done.err)
    check(b"has more rights than you" in done.err and b"nothing will be recorded" in done.err, done.err)


def test_missing_library():
    shutil.copy(MEMTRACE, folder + "/memtrace")
    done = execute(folder + "/memtrace", "run", "--", "true")
    equal((done.returncode, done.err.count(b"\n")), (1, 1), done.err)
    check(b"libmemtrace.so is not at" in done.err, done.err)
    done = execute(folder + "/memtrace", "run", "--", "true", env={"MEMTRACE_LIBRARY": LIBRARY})
    equal(done.returncode, 0, done.err)
    check(allocations(done.err) >= 0)


def test_environment():
    """The program sees the environment as it was; options beat variables."""
    program = build()
    done = run("--no-summary", "--top", "3", "-o", "here.mtp", "--", program, "environment",
               env={"MEMTRACE_OUTPUT": "there.mtp", "MEMTRACE_SUMMARY": "1"})
    check(b"LD_PRELOAD" not in done.out and b"MEMTRACE_COLLECTOR" not in done.out, done.out)
    check(b"MEMTRACE_ADDED" not in done.out and b"MEMTRACE_TOP" not in done.out, done.out)
    equal(profiles(), ["here.mtp"])
    equal(done.err, b"")
    done = run("--", program, env={"MEMTRACE_OUTPUT": "there.mtp", "MEMTRACE_SUMMARY": "0"})
    equal((profiles(), done.err), (["here.mtp", "there.mtp"], b""))


def test_output_is_replaced():
    program = build()
    equal(run("-o", "out.mtp", "--", program).returncode, 0)
    first = os.stat(folder + "/out.mtp")
    equal(run("-o", "out.mtp", "--", program).returncode, 0)
    second = os.stat(folder + "/out.mtp")
    check(first.st_ino != second.st_ino, "written into the old file")
    equal(profiles(), ["out.mtp"])
    equal(run("-o", "/dev/null", "--", program).returncode, 0)
    check(not os.path.isfile("/dev/null"), "/dev/null was replaced")
    no_leftovers()


def test_unwritable_output():
    program = build()
    done = run("-o", "absent/out.mtp", "--", program, "exit3")
    equal(done.returncode, 3)
    moved = folder + "/tmp/out.mtp"
    check(b"cannot write the profile %s/absent/out.mtp: No such file or directory; it is at %s\n"
          % (folder.encode(), moved.encode()) in done.err, done.err)
    check(b"memtrace: profile            " + moved.encode() in done.err, done.err)
    check(os.path.exists(moved))
    no_leftovers()
    done = run("-o", "absent/out.mtp", "--", program, "exit3", env={"TMPDIR": "/nonexistent"})
    equal(done.returncode, 3)
    left = os.listdir(regions)
    equal(len(left), 1)
    check(b"it is at " + (regions + "/" + left[0]).encode() in done.err, done.err)
    os.mkdir(folder + "/absent")
    done = execute(MEMTRACE, "list")
    check(b"is now at " + folder.encode() + b"/absent/out.mtp" in done.out, done.out)
    no_leftovers()


def test_file_size_limit():
    """run is not killed by the limit that the profile meets, and the program keeps its status."""
    program = build()
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))
    done = run("--", program, "exit3", preexec_fn=limit)
    equal(done.returncode, 3, done.err)
    check(b"memtrace: " in done.err, done.err)
    equal([name for name in os.listdir(folder) if name.startswith(".memtrace-")], [])


def test_full_disk():
    if os.geteuid() != 0:
        sys.exit(77)
    program = build()
    small = folder + "/small"
    os.mkdir(small)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "none", small],
                      stderr=subprocess.DEVNULL).returncode != 0:
        sys.exit(77)
    try:
        done = run("-o", small + "/out.mtp", "--", program, "exit3")
        equal(done.returncode, 3)
        check(b"out.mtp: No space left on device; it is at " in done.err, done.err)
        equal(os.listdir(small), [])
    finally:
        subprocess.run(["umount", small])
    no_leftovers()


def test_periodic_by_time():
    program = build()
    done = run("--every", "200ms", "--top", "2", "--", program, "sleep700")
    snapshots = re.findall(rb"^memtrace: snapshot (\d+), pid \d+, at ([\d.]+) s, churn \S+ \S+, live "
                           rb"\S+ \S+, (?:mapped \S+ \S+, )?RSS \S+ \S+, (\d+) of \d+ live call paths, "
                           rb"largest last$", done.err, re.M)
    equal([number for number, _, _ in snapshots], [b"1", b"2", b"3"], done.err)
    first = done.err.split(b"memtrace: snapshot 2")[0]
    check(re.search(rb"^#1 live 12\.1 KiB in 1 block; interval \+12\.1 KiB \(1\) -0 B \(0\); total "
                    rb"\+12\.1 KiB \(1\) -0 B \(0\); path [0-9a-f]{16}$", first, re.M), first)
    check(re.search(rb"^      keep at \S*subject\.c:\d+", first, re.M), first)
    check(re.search(rb"^      main at \S*subject\.c:\d+", first, re.M), first)
    last = done.err.split(b"memtrace: snapshot 3")[1]
    check(b"interval +0 B (0) -0 B (0); total +12.1 KiB (1)" in last, last)
    paths = set(re.findall(rb"^#1 .*path (\S+)$", done.err, re.M))
    again = run("--every", "200ms", "--top", "2", "--", program, "sleep300")
    equal(paths, set(re.findall(rb"^#1 .*path (\S+)$", again.err, re.M)), "the path's hash")


def test_periodic_by_churn():
    program = build()
    done = run("--churn", "10M", "--top", "0", "--log", "log", "--no-summary", "--", program, "churn400")
    equal(done.err, b"")
    text = open(folder + "/log", "rb").read()
    snapshots = re.findall(rb"churn ([\d.]+) MiB / 10\.0 MiB", text)
    check(3 <= len(snapshots) <= 8, len(snapshots), text)
    check(all(float(churn) >= 10 for churn in snapshots), snapshots)
    check(re.search(rb"^#1 live ", text, re.M), text)


def test_snapshot_on_request():
    program = build()
    done = run("--no-summary", "--", program, "snapshot", "sleep400", "snapshot")
    equal(re.findall(rb"^memtrace: snapshot (\d+)", done.err, re.M), [b"1", b"2"], done.err)


def test_unwritable_log():
    program = build()
    done = run("--no-summary", "--log", "absent/log", "--every", "100ms", "--", program, "sleep900")
    equal(done.returncode, 0)
    equal(done.err.count(b"cannot write the log"), 1, done.err)
    check(b"memtrace: snapshot 2" in done.err, done.err)


def test_timeline():
    program = build()
    run("-o", "out.mtp", "--no-summary", "--", program, "sleep650")
    data = open(folder + "/out.mtp", "rb").read()
    points = 0
    for offset in range(16384, len(data), 4096):
        if data[offset:offset + 4] == b"SEMG" and data[offset + 4] == 7:
            points = int.from_bytes(data[offset + 64:offset + 68], "little")
    check(4 <= points <= 20, points, "points")


def test_exec():
    """What a program was before it replaced itself is kept, and the status is that of the last."""
    program = build()
    done = run("--", program, "sleep200", "exec", "/bin/sh", "-c", "sleep 0.3; exit 8")
    equal(done.returncode, 8, done.err)
    equal(len(profiles()), 1, profiles())
    equal(len(TOTALS.findall(done.err)), 1, done.err)
    done = run("-o", "failed.mtp", "--", program, "exec", "/nowhere", "exit9")
    equal(done.returncode, 9, done.err)
    equal(len(TOTALS.findall(done.err)), 1, done.err)
    check("failed.mtp" in profiles())
    no_leftovers()


def test_killed_child():
    """A forked child that is killed leaves a region; run moves it at its end."""
    program = build()
    done = run("-o", "out.mtp", "--", program, "fork")
    equal(done.returncode, 0)
    found = re.search(rb"the profile of subject \(pid (\d+)\), which was killed, is now at (\S+)\n",
                      done.err)
    check(found, done.err)
    equal(profiles(), ["out.mtp", "out.mtp." + found.group(1).decode()])
    no_leftovers()


def preload(program, *arguments, **settings):
    extra = {"LD_PRELOAD": LIBRARY, **settings.pop("env", {})}
    return start([program, *arguments], env=extra, **settings)


def kill_one(program, output="out.mtp"):
    process = preload(program, "ready", "pause", env={"MEMTRACE_OUTPUT": output})
    wait_line(process, b"ready\n")
    process.kill()
    process.communicate()
    return process.pid


def test_list():
    program = build()
    done = execute(MEMTRACE, "list")
    equal((done.returncode, done.out, done.err), (0, b"No program of yours is profiled now.\n", b""))
    process = preload(program, "ready", "pause")
    wait_line(process, b"ready\n")
    done = execute(MEMTRACE, "list")
    row = re.search(rb"^ +%d  subject +(\S+ KiB) +(\S+ KiB) +([\d,]+)  \d+" % process.pid, done.out, re.M)
    check(row, done.out)
    data = json.loads(execute(MEMTRACE, "list", "--json").out)
    one = [row for row in data["running"] if row["pid"] == process.pid]
    equal(len(one), 1, data)
    check(one[0]["live_bytes"] >= 12345 and one[0]["maximum_bytes"] >= one[0]["live_bytes"], one)
    equal((one[0]["program"], data["killed"]), (program, []))
    process.kill()
    process.communicate()
    data = json.loads(execute(MEMTRACE, "list", "--json").out)
    equal([(row["pid"], row["program"]) for row in data["killed"]], [(process.pid, program)])
    check(os.path.exists(data["killed"][0]["profile"]), data)
    no_leftovers()
    done = execute(MEMTRACE, "list", "surplus")
    equal((done.returncode, done.err.count(b"\n")), (2, 1), done.err)


def test_killed_profiles_do_not_collide():
    program = build()
    pids = [kill_one(program) for _ in range(3)]
    done = execute(MEMTRACE, "list")
    equal(done.out.count(b"is now at"), 3, done.out)
    equal(profiles(), sorted(["out.mtp", "out.mtp.%d" % pids[1], "out.mtp.%d" % pids[2]]))
    kill_one(program, "by-run.mtp")
    done = run("--no-summary", "-o", "own.mtp", "--", "true")
    check(b"is now at " + folder.encode() + b"/by-run.mtp" in done.err, done.err)
    no_leftovers()


def test_concurrent_lists():
    program = build()
    for number in range(12):
        kill_one(program, "%d.mtp" % number)
    lists = [start([MEMTRACE, "list", "--json"]) for _ in range(4)]
    moved = []
    for process in lists:
        out, err = process.communicate(timeout=60)
        equal((process.returncode, err), (0, b""))
        moved += [row["profile"] for row in json.loads(out)["killed"]]
    equal(sorted(moved), sorted("%s/%d.mtp" % (folder, number) for number in range(12)))
    equal(len(profiles()), 12)
    no_leftovers()


def test_first_thread_ended():
    """A process whose first thread has ended looks like a zombie but is none."""
    program = build()
    process = preload(program, "leave")
    wait_line(process, b"left\n")
    time.sleep(0.3)
    done = execute(MEMTRACE, "list")
    check(b"killed" not in done.out, done.out)
    equal(len(os.listdir(regions)), 1)
    _, err = process.communicate(timeout=30)
    check(allocations(err) >= 3, err)
    no_leftovers()


def companions():
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                command = open("/proc/%s/cmdline" % name, "rb").read().split(b"\0")
            except OSError:
                continue
            if b"companion" in command and any(regions.encode() in part for part in command):
                found.append(int(name))
    return found


def test_companion():
    """Periodic reports without `memtrace run`: nobody notices, and nothing stays."""
    program = build()
    process = preload(program, "sleep700", "exit3",
                      env={"MEMTRACE_EVERY": "200ms", "MEMTRACE_COMMAND": MEMTRACE,
                           "MEMTRACE_OUTPUT": "out.mtp"})
    wait_until(companions, "the companion")
    other = companions()[0]
    links = {name: os.readlink("/proc/%d/fd/%s" % (other, name)) for name in "01"}
    equal(links, {"0": "/dev/null", "1": "/dev/null"})
    check(os.getsid(other) != os.getsid(process.pid), "in the program's session")
    out, err = process.communicate(timeout=30)
    equal((process.returncode, out), (3, b""))
    equal(re.findall(rb"^memtrace: snapshot (\d+)", err, re.M), [b"1", b"2", b"3"], err)
    equal(len(TOTALS.findall(err)), 1, err)
    wait_until(lambda: not companions(), "the companion's end")
    equal(profiles(), ["out.mtp"])
    no_leftovers()


def test_companion_finishes_killed():
    program = build()
    process = preload(program, "ready", "pause",
                      env={"MEMTRACE_EVERY": "1h", "MEMTRACE_COMMAND": MEMTRACE,
                           "MEMTRACE_OUTPUT": "out.mtp"})
    wait_line(process, b"ready\n")
    wait_until(companions, "the companion")
    time.sleep(0.3)
    process.kill()
    _, err = process.communicate(timeout=30)
    check(allocations(err) >= 1, err)
    wait_until(lambda: not companions(), "the companion's end")
    equal(profiles(), ["out.mtp"])
    no_leftovers()


def test_sleeping_collector_costs_nothing():
    program = build()
    process = start([MEMTRACE, "run", "--no-summary", "--", program, "ready", "sleep2000"])
    wait_line(process, b"ready\n")
    time.sleep(1.8)
    fields = open("/proc/%d/stat" % process.pid).read().rsplit(")", 1)[1].split()
    process.communicate(timeout=30)
    ticks = int(fields[11]) + int(fields[12])
    check(ticks <= 3, ticks, "ticks of CPU time in two seconds")


try:
    globals()["test_" + sys.argv[1]]()
finally:
    shutil.rmtree(folder, ignore_errors=True)
