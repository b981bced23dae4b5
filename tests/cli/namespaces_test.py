# SPDX-License-Identifier: MIT
"""namespaces_test.py CASE: programs and commands in different PID namespaces that share a folder of
regions, daemons that drop their privileges, and whose dead regions a command touches. What needs root
is skipped without it."""

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys

from outside import (MEMTRACE, PRELOAD, SOURCE, build, case, check, equal, execute, folder, no_leftovers,
                     profiles, regions, run, start, wait_line, wait_until)
from harness import scratch

NAMESPACE = ["unshare", "--pid", "--fork", "--mount-proc"]
ROUNDS, BASE = 700, 2  # churn's blocks, and main's block and stdout's buffer beside them


def needs_root(*command):
    """Skips where this is not allowed; both rights are missing in many containers."""
    if os.geteuid() != 0 or subprocess.run([*command, "true"], capture_output=True).returncode != 0:
        print("skipped: needs root, and", " ".join(command))
        sys.exit(77)


def told(path):
    return json.loads(execute(MEMTRACE, "report", "--json", path).out)


def complete(path, rounds=ROUNDS):
    """Nothing that the program did is missing."""
    data = told(path)
    equal((data["allocations"], data["frees"], data["lost"]), (BASE + rounds, rounds, 0),
          "allocations, frees, lost of", path)


def in_the_way(inside, process):
    """What people ask while a program runs; nothing of it may take the program's region."""
    region, = os.listdir(regions)
    while process.poll() is None:
        listed = execute(*inside, MEMTRACE, "list")
        equal((listed.returncode, listed.err), (0, b""), listed.out)
        check(b"left unfinished" not in listed.out, listed.out)
        if process.poll() is None and os.listdir(regions) == [region]:
            check(re.search(rb"^ +\d+  subject ", listed.out, re.M), "not listed:", listed.out)
        execute(*inside, MEMTRACE, "report")
        execute(*inside, MEMTRACE, "report", region.split(".")[0])
        other = execute(*inside, MEMTRACE, "run", "-o", "other.mtp", "--", folder + "/subject")
        equal(other.returncode, 0, other.err)
        check(b"subject" not in other.err.replace(b"other.mtp", b""), other.err)


def other_namespace(program_inside, preloaded):
    """A program and commands, one of them in a namespace of its own."""
    needs_root(*NAMESPACE)
    program = build()
    command = [program, "ready", "churn%d" % ROUNDS]
    command = command if preloaded else [MEMTRACE, "run", "--no-summary", "--", *command]
    extra = {"LD_PRELOAD": PRELOAD} if preloaded else {}
    settings = ["env", "MEMTRACE_OUTPUT=out.mtp", *("%s=%s" % item for item in extra.items())]
    process = start([*(NAMESPACE if program_inside else []), *settings, *command])
    wait_line(process, b"ready\n")
    in_the_way([] if program_inside else NAMESPACE, process)
    err = process.communicate(timeout=60)[1]
    equal(process.returncode, 0, err)
    complete(folder + "/out.mtp")
    equal([name for name in profiles() if name not in ("out.mtp", "other.mtp")], [], "profiles")
    no_leftovers()


def test_namespace_preloaded_inside():
    other_namespace(True, True)


def test_namespace_run_inside():
    other_namespace(True, False)


def test_namespace_preloaded_outside():
    other_namespace(False, True)


def test_namespace_run_outside():
    other_namespace(False, False)


def test_namespace_vanished():
    """What a killed program left there is recovered by `memtrace list`, once nobody has it open."""
    needs_root(*NAMESPACE)
    program = build()
    process = start([*NAMESPACE, "--kill-child", "env", "LD_PRELOAD=" + PRELOAD, "MEMTRACE_OUTPUT=out.mtp",
                     program, "churn100", "ready", "pause"])
    wait_line(process, b"ready\n")
    name, = os.listdir(regions)
    with open(os.path.join(regions, name), "rb"):
        process.kill()
        process.communicate()
        equal(execute(MEMTRACE, "list").err, b"")
        equal(os.listdir(regions), [name], "a region that somebody has open")
    wait_until(lambda: b"left unfinished" in execute(MEMTRACE, "list").out, "memtrace list")
    complete(folder + "/out.mtp", 100)
    no_leftovers()


def test_namespace_of_child_recorded():
    """A program makes a namespace for its child, where the collector's number means nothing: it is not missed, the end of the
    child is seen, and what the summary names is there."""
    needs_root("unshare", "--pid", "--fork")
    source = os.path.join(folder, "parent.c")
    with open(source, "w", encoding="utf-8") as file:
        file.write("""#define _GNU_SOURCE
            #include <sched.h>
            #include <stdlib.h>
            #include <sys/wait.h>
            #include <unistd.h>
            int main(void) {
                if (unshare(CLONE_NEWPID) != 0) return 1;
                if (fork() == 0) {
                    for (int i = 0; i < 200000; i++) free(malloc(i % 100 + 1));
                    _exit(5);
                }
                int status;
                wait(&status);
                return WEXITSTATUS(status) != 5;
            }""")
    program = os.path.join(folder, "parent")
    subprocess.run(["gcc", "-O0", "-w", source, "-o", program], check=True)
    seen = 0
    for number in range(20):  # a companion of the child's own may be the first to collect it, and ends with its namespace
        output = os.path.join(folder, "of_child%d.mtr" % number)
        done = execute(MEMTRACE, "record", "-o", output, "--", program)
        equal(done.returncode, 0, done.err)
        for words in (b"lost its collector", b"goes on"):
            check(words not in done.err, words, done.err)
        if os.path.isdir(output):
            made = [os.path.join(output, name) for name in os.listdir(output) if name.endswith(".mtr")]
            seen += 200000 in [json.loads(execute(MEMTRACE, "info", "--json", path).out)["allocations"] for path in made]
        if seen == 2:
            break
    equal(seen, 2, "recordings with all that the child did")


def killed(program, output):
    process = start([program, "ready", "pause"], env={"LD_PRELOAD": PRELOAD, "MEMTRACE_OUTPUT": output})
    wait_line(process, b"ready\n")
    process.kill()
    process.communicate()
    return process.pid


def test_nobody_elses_files():
    """Only `memtrace list` moves what others left; who is asked about one program, that one's."""
    program = build()
    first, second = killed(program, "first.mtp"), killed(program, "second.mtp")
    left = sorted(os.listdir(regions))
    equal(len(left), 2, left)
    done = run("-o", "mine.mtp", "--", program, "exit0")
    check(b"first" not in done.err and b"second" not in done.err, done.err)
    for command in (["report"], ["report", "mine.mtp"], ["check", "--max-leaked", "1G", "mine.mtp"],
                    ["top", "mine.mtp"], ["export", "--format", "folded", "mine.mtp"],
                    ["diff", "mine.mtp", "mine.mtp"], ["report", "999999999"],
                    ["record", "-o", "mine.mtr", "--", program]):
        done = execute(MEMTRACE, *command)
        check(b"left unfinished" not in done.err + done.out, command, done.err)
        equal(sorted(os.listdir(regions)), left, "regions after", command)
    done = execute(MEMTRACE, "report", str(first))
    equal((done.returncode, done.err.count(b"left unfinished")), (0, 1), done.err)
    equal([name.split(".")[0] for name in os.listdir(regions)], [str(second)])
    listed = execute(MEMTRACE, "list")
    check(b"(pid %d)" % second in listed.out and b"(pid %d)" % first not in listed.out, listed.out)
    equal([name for name in profiles() if name != "mine.mtp"], ["first.mtp", "second.mtp"])
    no_leftovers()


# ---- Privileges ----

OWN_SHM = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /dev/shm && exec "$@"', "sh"]
AND_LEFT = '"$@"; status=$?; find /dev/shm -type f >"$LEFT"; exit $status'


def as_stranger(*command, **settings):
    """The command with a /dev/shm of its own, and the folders of regions that a user has. Returns the
    run, and the regions that were left."""
    named = ["%s=%s" % item for item in settings.items()]
    done = execute(*OWN_SHM, "env", "-u", "MEMTRACE_REGION_DIR", "LEFT=%s/left" % folder, "sh",
                   "-c", AND_LEFT, "sh", "env", *named, *command)
    with open(folder + "/left", encoding="utf-8") as left:
        return done, left.read().split()


def undisturbed(done, left, alone):
    equal((done.returncode, done.out), (0, alone.out), done.err)
    equal(left, [], "regions left behind")
    for word in (b"killed", b"cannot", b"no place", b"unfinished"):
        check(word not in done.err, word, "is in", done.err)


def privileges(compiling=(), linking=(), under=(), **settings):
    """Each worker is counted once, wherever it allocates; what the daemon does is as bare."""
    needs_root(*OWN_SHM)
    daemon = folder + "/workers"
    subprocess.run(["cc", "-g", "-O1", *compiling, SOURCE + "/workers.c", "-o", daemon, *linking],
                   check=True)
    for early, tables in ((0, 1), (500, 2)):
        arguments = [daemon, "2", "20000", str(early)]
        alone = execute(*arguments, env={"MEMTRACE": "off"})
        if alone.returncode == 77:
            print("skipped: cannot become nobody here")
            sys.exit(77)
        undisturbed(*as_stranger(*under, *arguments, MEMTRACE_OUTPUT=folder + "/out.mtp", **settings),
                    alone)
        equal(profiles(), ["out.mtp"], "profiles")
        workers = told(folder + "/out.mtp")["forked_children"]
        equal((workers["count"], workers["allocations"], workers["live_bytes"], workers["lost"]),
              (2, 2 * (20000 + tables), 0, 0), "workers, allocations, leaked, lost with", early, "early")
        check(workers["peak_bytes"] >= (20000 - early) * 1000, workers)
        os.unlink(folder + "/out.mtp")


def test_privileges_run():
    privileges(under=[MEMTRACE, "run", "--"])


def test_privileges_preloaded():
    privileges(LD_PRELOAD=PRELOAD)


def test_privileges_instrumented():
    privileges(*(shlex.split(execute(MEMTRACE, "flags", kind).out.decode())
                 for kind in ("--cflags", "--libs")))


def nginx():
    """A server as Debian packages it: the master is root, its workers are not. Returns its folder and
    the command."""
    server = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin")
    if server is None:
        print("skipped: no nginx (package nginx-light)")
        sys.exit(77)
    place = scratch(where="/tmp")  # short enough for a socket's address, open to the workers
    os.chmod(place, 0o755)
    with open(place + "/index.html", "w", encoding="ascii") as page:
        page.write("hello\n")
    with open(place + "/nginx.conf", "w", encoding="ascii") as text:
        text.write("""daemon off; user nobody nogroup; worker_processes 2; pid %(place)s/pid;
            error_log %(place)s/errors; events {}
            http { access_log off; client_body_temp_path %(place)s/t1; proxy_temp_path %(place)s/t2;
                   fastcgi_temp_path %(place)s/t3; uwsgi_temp_path %(place)s/t4;
                   scgi_temp_path %(place)s/t5;
                   server { listen unix:%(place)s/socket; root %(place)s; } }""" % {"place": place})
    return place, [server, "-c", place + "/nginx.conf", "-e", place + "/errors"]


def ask(place, path):
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(place + "/socket")
        client.sendall(b"GET %s HTTP/1.0\r\n\r\n" % path)
        return b"".join(iter(lambda: client.recv(65536), b""))


def test_privileges_nginx():
    """Master and workers answer, are told once each, and end; nobody "was killed"."""
    needs_root(*OWN_SHM)
    place, command = nginx()
    for under, settings in (([MEMTRACE, "run", "-o", "out.mtp", "--"], []),
                            ([], ["LD_PRELOAD=" + PRELOAD, "MEMTRACE_OUTPUT=out.mtp"])):
        process = start([*OWN_SHM, "env", "-u", "MEMTRACE_REGION_DIR", "LEFT=%s/left" % folder, "sh", "-c",
                         AND_LEFT, "sh", "env", *settings, *under, *command])
        wait_until(lambda: os.path.exists(place + "/socket") and os.path.exists(place + "/pid") and
                   open(place + "/pid").read().strip(), "nginx")
        for _ in range(30):
            check(ask(place, b"/index.html").endswith(b"hello\n"), "the page")
            check(b" 404 " in ask(place, b"/absent"), "the page that is not there")
        os.kill(int(open(place + "/pid").read()), signal.SIGQUIT)
        out, err = process.communicate(timeout=60)
        equal((process.returncode, out), (0, b""), err)
        equal(open(folder + "/left").read(), "", "regions left behind", err)
        check(b"killed" not in err and b"cannot" not in err and b"no place" not in err, err)
        check(b"[alert]" not in open(place + "/errors", "rb").read(), "nginx's log")
        data = told(folder + "/out.mtp")
        equal((data["forked_children"]["count"], data["lost"], data["forked_children"]["lost"]), (2, 0, 0))
        check(data["forked_children"]["allocations"] > 10, data["forked_children"])
        os.unlink(folder + "/out.mtp")


if __name__ == "__main__":
    case(globals())
