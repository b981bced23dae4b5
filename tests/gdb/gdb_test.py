# SPDX-License-Identifier: MIT
"""gdb_test.py CASE: `memtrace p` in gdb, on live programs and core files, as somebody types it."""

import glob
import os
import re
import resource
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "programs"))
from harness import (BUILD, LIBRARY, MEMTRACE, PRELOAD, build, clean_environment, equal, execute, fail, finish, have,
                     scratch, skip)

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(HERE, "subject.c")
CORE_LIMIT = 1 << 30  # a core file that takes all address space would fill the disk
# Goes on after a command that fails, and says so on stdout, in its place.
TRY = """python
def attempt(command):
    try:
        gdb.execute(command)
    except gdb.error as error:
        print("error:", error)
end"""


def line_of(comment):
    with open(SOURCE, encoding="utf-8") as file:
        return [number for number, line in enumerate(file, 1) if "/* %s */" % comment in line][0]


def call_path():
    place = "%s:%%d" % SOURCE
    return ["fresh at " + place % line_of("fresh") + " (inlined)", "keep at " + place % line_of("keep"),
            "main at " + place % line_of("main")]


def script():
    found = execute([MEMTRACE, "flags", "--gdb"])
    equal((found.returncode, found.stderr), (0, b""), "memtrace flags --gdb")
    return found.stdout.decode().strip()


def settings(**more):
    return {"MEMTRACE_REGION_DIR": scratch(where="/dev/shm"), "MEMTRACE_SUMMARY": "0",
            "MEMTRACE_OUTPUT": os.path.join(scratch(), "%p.mtp"), **more}


def start_commands(variables):
    return (["set startup-with-shell off"] +
            ["set environment %s %s" % item for item in variables.items()] +
            ["set environment LD_PRELOAD " + PRELOAD, "break stop_here", "run"])


def run_gdb(commands, arguments, environment=None, first=()):
    """What gdb prints. Commands of ours go on after errors."""
    folder = scratch()
    path = os.path.join(folder, "commands")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join([TRY] + ["python attempt(%r)" % command if command.startswith("memtrace")
                                      else command for command in commands]) + "\n")
    told = execute([shutil.which("gdb"), "-nx", "-batch", *first, "-x", path, *arguments], environment,
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (CORE_LIMIT, CORE_LIMIT)))
    text = told.stdout.decode(errors="replace")
    if re.search(r"ptrace: Operation not permitted|not supported in this copy", text + str(told.stderr)):
        skip("gdb cannot trace here, or has no Python")
    return text


def answers(text):
    """One list of lines for each `memtrace p`: a block with its path, or an error."""
    found = []
    for line in text.splitlines():
        if re.match("0x[0-9a-f]+ is |error: ", line):
            found.append([line])
        elif line.startswith("  ") and found:
            found[-1].append(line[2:])
        else:
            found.append([])
    return [answer for answer in found if answer]


def check_blocks(text, when="ago"):
    """Answers to small, inside, large + 4000000, freed, on_stack, in_data, small as a number."""
    told = answers(text)
    if not equal(len(told), 7, "answers in", text):
        return
    for number, expected in ((0, r"a block of 100 bytes"), (1, r"40 bytes into a block of 100 bytes"),
                             (2, r"4000000 bytes into a block of 5000000 bytes"),
                             (6, r"a block of 100 bytes")):
        first = told[number][0]
        if not re.match(r"0x[0-9a-f]+ is %s at 0x[0-9a-f]+, allocated (just now|(just|[\d.]+ \w+) %s) "
                        r"by thread \d+ \(main\)$" % (expected, when), first):
            fail("the block", expected, ":", first)
    for number in (0, 1):
        equal(told[number][1:4], call_path(), "the path of", told[number][0])
    for number in (3, 4, 5):
        if not re.match(r"error: 0x[0-9a-f]+ is not in a live block", told[number][0]):
            fail("not a block:", told[number])


QUESTIONS = ["memtrace p " + what for what in ("small", "inside", "large + 4000000", "freed", "on_stack",
                                               "in_data", "(long)small")]


def subject():
    return build(SOURCE, "gcc", "-O1")


def check_live():
    text = run_gdb(["source " + script()] + start_commands(settings()) + QUESTIONS + ["kill"], [subject()])
    check_blocks(text)


def check_attach():
    """Also says what `memtrace trace` says."""
    environment = clean_environment(**settings(LD_PRELOAD=PRELOAD))
    process = subprocess.Popen([subject(), "wait"], stdout=subprocess.PIPE, env=environment)
    try:
        process.stdout.readline()
        text = run_gdb(["source " + script()] + QUESTIONS, ["-p", str(process.pid)], environment={
            **environment, "LD_PRELOAD": ""})
        check_blocks(text)
        told = answers(text)[0]
        traced = execute([MEMTRACE, "trace", str(process.pid), told[0].split()[0]],
                         {**environment, "LD_PRELOAD": ""}).stdout.decode().splitlines()
    finally:
        process.kill()
        process.communicate()
    equal([line.strip() for line in traced[1:]], told[1:], "as `memtrace trace` says")
    without_age = [re.sub("allocated .* by", "", line) for line in (traced[0], told[0])]
    equal(without_age[1], without_age[0], "as `memtrace trace` says")


def dump(folder, variables, more=()):
    core = os.path.join(folder, "core")
    run_gdb(start_commands(variables) + list(more) + ["generate-core-file " + core, "kill"], [subject()])
    if not os.path.exists(core):
        fail("gdb wrote no core file")
        finish()
    if os.path.getsize(core) > CORE_LIMIT / 2:
        fail("the core file has", os.path.getsize(core), "bytes")
    return core


WHOLE = ['python open("/proc/%d/coredump_filter" % gdb.selected_inferior().pid, "w").write("0x3b")']


def check_core():
    """The region is in the core; its file is gone since."""
    folder, variables = scratch(), settings()
    core = dump(folder, variables, WHOLE)
    shutil.rmtree(variables["MEMTRACE_REGION_DIR"])
    check_blocks(run_gdb(["source " + script()] + QUESTIONS, [subject(), core]),
                 "before the program last allocated or freed")


def check_core_without_region():
    """Without it one line says what to do; the profile that the program left does as well."""
    folder, variables = scratch(), settings()
    core = dump(folder, variables)
    region, = glob.glob(os.path.join(variables["MEMTRACE_REGION_DIR"], "*.mtp"))
    left = os.path.join(folder, "left.mtp")
    shutil.move(region, left)
    strange = os.path.join(folder, "strange.mtp")
    with open(left, "rb") as one, open(strange, "wb") as other:
        content = bytearray(one.read())
        content[44:48] = b"\1\0\0\0"  # the process id
        other.write(content)
    packed = os.path.join(folder, "packed.mtp")
    execute([MEMTRACE, "repack", "--output", packed, left])
    if os.path.getsize(packed) >= os.path.getsize(left):
        fail("the profile was not compressed")
    commands = ["source " + script(), "memtrace p small"]
    for profile in (strange, SOURCE):
        commands += ["memtrace profile " + profile, "memtrace p small"]
    for profile in (left, packed):
        ask_profile(commands, profile, core)


def ask_profile(commands, profile, core):
    text = run_gdb(commands + ["memtrace profile " + profile] + QUESTIONS, [subject(), core])
    told = answers(text)
    for answer, expected in zip(told, (
            r"error: memtrace: the profile region .*\.mtp is not in this core file: .*"
            r"memtrace profile FILE.*coredump_filter",
            r"error: memtrace: .*strange.mtp is the profile of process 1, ",
            r"error: .*not a MemTrace profile")):
        if len(answer) != 1 or not re.match(expected, answer[0]):
            fail("expected", expected, "got", answer)
    check_blocks("\n".join("\n  ".join(answer) for answer in told[3:]), "before the program last allocated or freed")


def check_found_by_itself():
    """gdb has the commands as soon as the program has the library, where the script lies as an
    installation into /usr puts it: below gdb's folder, by the library's path."""
    data = scratch()
    installed = os.path.join(data, "stage")
    result = execute(["cmake", "--install", BUILD, "--prefix", installed])
    equal(result.returncode, 0, "cmake --install", result.stderr)
    auto_load = os.path.join(installed, "share/gdb/auto-load/usr")
    found = glob.glob(os.path.join(auto_load, "**", "libmemtrace.so*-gdb.py"), recursive=True)
    equal(len(found), 1, "scripts for gdb", found)
    library = os.path.realpath(LIBRARY)
    relative = os.path.relpath(found[0], auto_load)
    if not os.path.exists(os.path.join(installed, relative.replace("-gdb.py", ""))):
        fail("no library is where the script is for:", relative)
    place = os.path.join(data, "auto-load") + os.path.dirname(library)
    os.makedirs(place)
    shutil.copy(found[0], os.path.join(place, os.path.basename(library) + "-gdb.py"))
    folders = os.path.join(data, "auto-load")
    text = run_gdb(start_commands(settings()) + QUESTIONS + ["kill"], [subject()],
                   first=["-iex", "set auto-load scripts-directory " + folders,
                          "-iex", "add-auto-load-safe-path " + folders])
    check_blocks(text)
    told = execute([os.path.join(installed, "bin", "memtrace"), "flags", "--gdb"]).stdout.decode().strip()
    equal(told, os.path.realpath(os.path.join(installed, "share/memtrace/memtrace-gdb.py")), "flags --gdb")


def check_without_command():
    """The library alone, copied elsewhere: gdb's own names."""
    folder = scratch()
    library = shutil.copy(LIBRARY, folder)
    commands = [command.replace(PRELOAD, library) for command in start_commands(settings())]
    text = run_gdb(["source " + script()] + commands + ["memtrace p small", "kill"], [subject()],
                   clean_environment(PATH=folder))
    told = answers(text)[0]
    fresh, _, main = call_path()
    equal(told[1:4], [fresh, "keep", main], "names by gdb")


def check_mistakes():
    """Each is answered by one line, and nothing goes wrong behind it."""
    cases = (("source " + script(), None), ("memtrace p 1", "there is no program"),
             ("memtrace p", "a pointer is needed"),
             ("memtrace profile /no/file", "there is no file /no/file"),
             ("set startup-with-shell off", None), ("break stop_here", None), ("run", None),
             ("memtrace p small", "this program is not profiled"),
             ("memtrace p nosuch", 'No symbol "nosuch"'),
             ("memtrace p *list", r"\*list is neither a pointer nor a number"), ("kill", None))
    told = [" ".join(answer) for answer in answers(run_gdb([case[0] for case in cases], [subject()]))]
    wanted = [expected for _, expected in cases if expected]
    equal(len(told), len(wanted), "answers", told)
    for answer, expected in zip(told, wanted):
        if not re.search("error: .*" + expected, answer):
            fail("expected", expected, "got", answer)
    both = execute([MEMTRACE, "flags", "--gdb", "--cflags"])
    equal((both.returncode, both.stdout), (2, b""), "flags --gdb --cflags")


have("gdb", "gcc")
globals()["check_" + sys.argv[1]]()
finish()
