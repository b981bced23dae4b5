# SPDX-License-Identifier: MIT
"""run_test.py CASE: `memtrace run` from outside: exit statuses, signals, the terminal, options, and
what becomes of the profile when its place cannot be written."""

import contextlib
import json
import os
import pty
import resource
import select
import shutil
import signal
import subprocess
import sys
import time

from outside import (LIBRARY, MEMTRACE, PATIENCE, allocations, build, case, check, child_of, ended_after, environment,
                     equal, execute, folder, no_leftovers, profiles, regions, run, shared, start,
                     wait_line, wait_until)


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
        out, err = process.communicate(timeout=PATIENCE)
        equal((out, err, process.returncode), (b"signal %02d\n" % number, b"", 5), "signal", number)
    process = start([MEMTRACE, "run", "--no-summary", "--", program, "ready", "pause"])
    wait_line(process, b"ready\n")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=PATIENCE)
    equal(process.returncode, -signal.SIGTERM)
    no_leftovers()


def test_stop_and_continue():
    """A program that is stopped from elsewhere is waited for; SIGCONT to run reaches it."""
    program = build()
    process = start([MEMTRACE, "run", "--no-summary", "--", program, "catch%d" % signal.SIGUSR1, "ready", "pause",
                     "exit4"])
    wait_line(process, b"ready\n")
    child = child_of(process)
    os.kill(child, signal.SIGSTOP)
    time.sleep(0.6)
    equal(process.poll(), None)
    check(open("/proc/%d/stat" % process.pid).read().rsplit(")", 1)[1].split()[0] != "T", "run stopped")
    process.send_signal(signal.SIGCONT)
    wait_until(lambda: open("/proc/%d/stat" % child).read().rsplit(")", 1)[1].split()[0] != "T", "that it goes on")
    os.kill(child, signal.SIGUSR1)
    process.communicate(timeout=PATIENCE)
    equal(process.returncode, 4)


def terminal(arguments):
    """Starts it as the foreground job of a new terminal."""
    try:
        pid, master = pty.fork()
    except OSError as error:
        print("skipped: no pseudo-terminal:", error)
        sys.exit(77)
    if pid == 0:
        os.chdir(folder)
        os.execve(arguments[0], arguments, environment)
    return pid, master


def read_terminal(master, text):
    found = b""
    while text not in found:
        check(select.select([master], [], [], PATIENCE)[0], "nothing but", found)
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
    script = ('set -m; "$0" run --no-summary -- "$1" catch2 ready pause exit6; echo stopped $?; fg; '
              'echo end $?')
    pid, master = terminal(["/bin/bash", "--norc", "-c", script, MEMTRACE, program])
    read_terminal(master, b"ready")
    os.write(master, b"\x1a")
    read_terminal(master, b"stopped %d" % (128 + signal.SIGSTOP))
    wait_until(lambda: os.tcgetpgrp(master) != pid, "the job in the foreground")
    os.write(master, b"\x03")
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
    done = run("--", "./plain/x")  # as a shell: there is no such file
    equal((done.returncode, done.err), (127, b"memtrace: ./plain/x: command not found\n"))
    done = run("--", folder)
    equal(done.returncode, 126)
    for interpreter in (folder + "/nowhere/at/all", folder + "/plain/x"):
        with open(folder + "/bad", "w") as file:
            file.write("#!%s\n" % interpreter)
        os.chmod(folder + "/bad", 0o755)
        done = run("--", "./bad")
        equal((done.returncode, done.err.count(b"\n")), (127, 1), interpreter, done.err)


def test_wrong_options():
    for arguments in (["--top", "x", "--", "true"], ["--every", "5 parsecs", "--", "true"],
                      ["--churn", "lots", "--", "true"], ["--stacks", "some", "--", "true"],
                      ["--unwind", "some", "--", "true"],
                      ["--contexts", "0", "--", "true"], ["--output", "", "--", "true"],
                      ["--nonsense", "--", "true"], ["--top"], []):
        done = run(*arguments)
        equal(done.returncode, 2, arguments)
        equal((done.out, done.err.count(b"\n")), (b"", 1), arguments, done.err)
        check(done.err.startswith(b"memtrace: "), done.err)
    done = run("--help")
    equal((done.returncode, done.err), (0, b""))
    check(b"--every" in done.out and b"--no-summary" in done.out)


def test_options_become_variables():
    """The kernel still shows what the program was started with."""
    for mode in (b"auto", b"patch", b"verify", b"fp", b"libunwind"):
        done = run("--unwind", mode.decode(), "--stacks", "short", "--", "cat", "/proc/self/environ")
        variables = done.out.split(b"\0")
        check(b"MEMTRACE_UNWIND=" + mode in variables, mode, done.err)
        check(b"MEMTRACE_STACKS=short" in variables, done.err)
        check(done.err.count(b"call paths  ") == 1, done.err)


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
    memtrace, library, program = shared(MEMTRACE, LIBRARY, build())
    os.chmod(program, 0o4755)
    done = execute(memtrace, "run", "--", program, "exit3", user=65534, cwd="/",
                   env={"MEMTRACE_REGION_DIR": os.path.dirname(library)})
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


def links_to(place):
    """Links through which libraries below this place are preloaded."""
    found = []
    for parent in ("/dev/shm", "/tmp"):
        links = "%s/memtrace-lib-%d" % (parent, os.geteuid())
        for name in os.listdir(links) if os.path.isdir(links) else ():
            # Another test's run may take its link away between the listing and this.
            with contextlib.suppress(FileNotFoundError):
                if os.readlink(links + "/" + name).startswith(place + "/"):
                    found.append(links + "/" + name)
    return found


def install(prefix):
    """The command and the library in another place. Returns the command."""
    for file, place in ((MEMTRACE, prefix + "/bin"), (LIBRARY, prefix + "/lib")):
        os.makedirs(place)
        shutil.copy(file, place)
    return prefix + "/bin/memtrace"


def test_awkward_place():
    """The loader splits LD_PRELOAD at blanks and colons and replaces $ORIGIN: a link has none."""
    program = build()
    for name in ("with a blank", "a:b", "tab\t", "$ORIGIN", "mem tracé: ${LIB}"):
        memtrace = install(folder + "/" + name)
        runs = [start([memtrace, "run", "-o", "out%d.mtp" % number, "--", program, "exit3"])
                for number in range(4)]
        for process in runs:
            error = process.communicate(timeout=60)[1]
            equal(process.returncode, 3, name, error)
            check(allocations(error) >= 1 and b"ld.so" not in error, name, error)
        equal(len(links_to(folder + "/" + name)), 1, "links to", name)
    before = set(links_to(folder))
    equal(execute(memtrace, "run", "--", program, "exit3").returncode, 3)
    equal(set(links_to(folder)), before, "links after another run")
    # A link that leads nowhere goes, if nobody has used it for a day.
    for name, used in (("with a blank", 0), ("a:b", time.time() - 90000), ("tab\t", time.time())):
        shutil.rmtree(folder + "/" + name)
        os.utime(links_to(folder + "/" + name)[0], (used, used), follow_symlinks=False)
    os.remove(links_to(folder + "/$ORIGIN")[0])
    equal(execute(folder + "/$ORIGIN/bin/memtrace", "run", "--", program, "exit3").returncode, 3)
    equal([len(links_to(folder + "/" + name)) for name in ("with a blank", "a:b", "tab\t", "$ORIGIN")],
          [0, 0, 1, 1], "links")
    for link in links_to(folder):
        os.remove(link)


def test_awkward_place_without_rights():
    """A followed program gives up root's rights and starts another one: the loader finds the link."""
    if os.geteuid() != 0:
        sys.exit(77)
    _, _, program = shared(MEMTRACE, LIBRARY, build())
    prefix = os.path.dirname(os.path.dirname(program)) + "/for all"
    memtrace = install(prefix)
    done = execute(memtrace, "run", "--", "setpriv", "--reuid", "65534",
                   "--clear-groups", program, "environment", "exit3",
                   env={"MEMTRACE_OUTPUT": "/tmp/none/%p.mtp"}, cwd="/")
    equal(done.returncode, 3, done.err)
    equal(len(links_to(prefix)), 1)
    check(b"ld.so" not in done.err and b"LD_PRELOAD" not in done.out, done.err, done.out)
    os.remove(links_to(prefix)[0])


def test_awkward_name():
    program = build()
    own = folder + "/my libmemtrace.so"
    shutil.copy(LIBRARY, own)
    done = run("--", program, env={"MEMTRACE_LIBRARY": own})
    equal((done.returncode, done.err.count(b"\n")), (1, 1), done.err)
    check(b"my libmemtrace.so cannot be preloaded" in done.err, done.err)


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


def test_inside_another_run():
    """Each has what was started by it; neither takes the other's file."""
    program = build()
    inner = "%s run -o inner.mtp -- %s exit3" % (MEMTRACE, program)
    done = run("-o", "outer.mtp", "--", "sh", "-c", "%s; test $? = 3 && %s" % (inner, program))
    equal(done.returncode, 0, done.err)
    check(b"nothing was recorded" not in done.err, done.err)
    check(b"memtrace: profile            " + folder.encode() + b"/inner.mtp\n" in done.err, done.err)
    check(b"memtrace: run                " + folder.encode() + b"/outer.mtp\n" in done.err, done.err)
    told = execute(MEMTRACE, "report", "outer.mtp", "--json", "--processes", "0")
    names = [os.path.basename(process["program"]) for process in json.loads(told.out)["run"]["processes"]]
    equal(sorted(set(names)), sorted([os.path.basename(os.path.realpath("/bin/sh")), "memtrace", "subject"]), told.out)
    equal(names.count("subject"), 1, told.out)
    no_leftovers()


def test_start_of_threads():
    """Without the C library's debug file the functions that call main() and a thread's function have no names: they are
    left out as those with a name are."""
    with open(folder + "/thread.c", "w", encoding="utf-8") as file:
        file.write("""#include <pthread.h>
#include <stdlib.h>
static void *work(void *unused) { return malloc(5000); }
int main(void) { pthread_t thread; pthread_create(&thread, NULL, work, NULL); return pthread_join(thread, NULL); }
""")
    subprocess.run(["cc", "-g", folder + "/thread.c", "-o", folder + "/thread", "-pthread"], check=True)
    equal(run("-o", "out.mtp", "--", folder + "/thread").returncode, 0)
    for options, there in ((["--all-frames"], True), ([], False)):
        told = execute(MEMTRACE, "report", "out.mtp", "--show-leaked", "--debug-folders", "/var/empty", *options)
        equal((b"work at thread.c:3" in told.out, b"libc.so.6" in told.out), (True, there), told.out)
    no_leftovers()


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
    """An option that cannot be is refused before the program starts; what a variable names is no
    reason not to run."""
    program = build()
    for option in ("--output", "--log"):
        done = run(option, "absent/out.mtp", "--", program, "exit3")
        equal((done.returncode, done.out, done.err.count(b"\n")), (2, b"", 1), done.err)
        check(b'%s "absent/out.mtp": folder absent/: No such file or directory' % option.encode()
              in done.err, done.err)
    variable = {"MEMTRACE_OUTPUT": "absent/out.mtp"}
    done = run("--", program, "exit3", env=variable)
    equal(done.returncode, 3)
    moved = folder + "/tmp/out.mtp"
    check(b"cannot write the profile %s/absent/out.mtp: No such file or directory; it is at %s\n"
          % (folder.encode(), moved.encode()) in done.err, done.err)
    check(b"memtrace: profile            " + moved.encode() in done.err, done.err)
    check(os.path.exists(moved))
    no_leftovers()
    done = run("--", program, "exit3", env={**variable, "TMPDIR": folder + "/nowhere"})
    equal(done.returncode, 3)
    left = os.listdir(regions)
    equal(len(left), 1)
    check(b"it is at " + (regions + "/" + left[0]).encode() in done.err, done.err)
    equal(done.err.count(b"cannot write the profile"), 1, done.err)
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


def test_log_level():
    """What the collector has to say minds the level; summary and periodic report are no messages."""
    program = build()
    for level, is_told in ((None, True), ("info", True), ("warning", True), ("error", False), ("none", False)):
        settings = {"env": {"MEMTRACE_LOG_LEVEL": level}} if level else {}
        process = start([MEMTRACE, "run", "--limit", "4K", "--", program, "churn10", "ready", "pause"], **settings)
        err = ended_after(process, b"memtrace: snapshot 1,")  # comes with the limit, at any level
        equal(b"memtrace: limit: the process has" in err, is_told, level, err)
        check(allocations(err) >= 1, err)


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


case(globals())
