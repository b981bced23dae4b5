#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""mutants_test.py operators|hunt: which errors scripts/mutations.py makes of a small text, and which of those in a small
project scripts/mutants finds noticed; that it goes on where it ended, and leaves the sources as they were."""

import hashlib
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "scripts"))
import mutations  # noqa: E402

TEXT = r'''// if (a < 1) return 2;
#define LOWER(a) ((a) < 1 ? \
                  (a) + 1 : 0)
static const int table[] = {1 + 2, 3};
struct pair { int first : 3; };
static int words(const char *text, int *count)
{
    int number = -1; /* 5 < 6 */
    for (int i = 0; text[i]; i++)
        *count += 2;
    if (number >= 7 &&
        text) // "x" < 1
        put("a < b", '<');
    switch (number) {
    case 4:
        break;
    }
    return number->one - *count;
}
'''

# (line, old, new): all there are.
WANTED = sorted([
    (8, "1", "(1 + 1)"), (8, "1", "(1 - 1)"),
    (9, "0", "(0 + 1)"), (9, "0", "(0 - 1)"),
    (10, "+=", "-="), (10, "2", "(2 + 1)"), (10, "2", "(2 - 1)"), (10, "*count += 2", "(void)0"),
    (11, ">=", ">"), (11, ">=", "<"), (11, "7", "(7 + 1)"), (11, "7", "(7 - 1)"), (11, "&&", "||"),
    (11, "number >= 7 &&\n        text", "!(number >= 7 &&\n        text)"),
    (11, "number >= 7 &&\n        text", "(number >= 7 &&\n        text) || 1"),
    (11, "number >= 7 &&\n        text", "(number >= 7 &&\n        text) && 0"),
    (13, "put(\"a < b\", '<')", "(void)0"),
    (15, "4", "(4 + 1)"), (15, "4", "(4 - 1)"),
    (16, "break", ""),
    (18, "number->one - *count", "0"), (18, "-", "+")])

PROJECT = {
    "CMakeLists.txt": """cmake_minimum_required(VERSION 3.20)
project(small C)
set(CMAKE_C_FLAGS_RELEASE "-O2 -g")
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
enable_testing()
add_library(memtrace_collect STATIC collect/small.c)
add_executable(small_test small_test.c)
target_link_libraries(small_test memtrace_collect)
add_test(NAME unit.small_test COMMAND small_test)
add_test(NAME unit.broken COMMAND small_test broken)
if(MEMTRACE_SANITIZE)
    target_compile_options(memtrace_collect PRIVATE -fsanitize=address)
    target_link_options(small_test PRIVATE -fsanitize=address)
endif()
""",
    "tests/sanitize/CMakeLists.txt": "",
    "collect/small.c": """#include <stdlib.h>
int small_lower(int value, int limit)
{
    int unused;
    unused = 3;
    if (value > limit)
        return limit;
    return value;
}
int small_hidden(int value)
{
    return value + 1000;
}
int small_room(void)
{
    void *volatile room = malloc(100);
    free(room);
    return room != NULL;
}
int small_apart(int value)
{
    return value + 1;
}
""",
    "small_test.c": """int small_lower(int value, int limit);
int small_hidden(int value);
int small_room(void);
int main(int count, char **words)
{
    (void)words;
    return count > 1 || small_lower(3, 5) != 3 || small_lower(7, 5) != 5 || small_hidden(1) == 0 ||
           !small_room() || !small_room();
}
""",
    ".gitignore": "/build*/\n",
}


def expect(right, *told):
    if not right:
        print(*told)
        sys.exit(1)


def operators():
    found = mutations.mutations_of(TEXT)
    made = sorted((one.line, TEXT[one.start:one.end], one.new) for one in found)
    expect(made == WANTED, "not made:", [one for one in WANTED if one not in made],
           "made:", [one for one in made if one not in WANTED])
    for one in found:
        text = mutations.mutated(TEXT, one)
        expect(text != TEXT and text.count("\n") == TEXT.count("\n") and one.function == "words", one)
    every = [("b.c", one) for one in found] + [("a.c", one) for one in found]
    picked = [mutations.chosen(every, 6, random.Random(seed)) for seed in (3, 3, 4)]
    again = mutations.chosen(every[::-1], 6, random.Random(3))
    expect(picked[0] == picked[1] != picked[2] and len(picked[0]) == 6, picked)
    expect([(file, one.line) for file, one in again] == [(file, one.line) for file, one in picked[0]], "order matters", again)
    expect(len({(file, one.line) for file, one in mutations.chosen(every, 99, random.Random(1))}) == 16, "one a line")


def run(folder, *arguments):
    return subprocess.run([sys.executable, os.path.join(folder, "scripts/mutants"), "--count", "99"] + list(arguments),
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)


def make_project(folder):
    os.makedirs(os.path.join(folder, "scripts"))
    for name in ("mutants", "mutations.py", "onetest.py"):
        shutil.copy(os.path.join(ROOT, "scripts", name), os.path.join(folder, "scripts", name))
    for name, text in PROJECT.items():
        os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
    subprocess.run(["git", "init", "-q", folder], check=True)
    subprocess.run(["git", "-C", folder, "add", "-A"], check=True)
    subprocess.run(["git", "-C", folder, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a"], check=True)
    os.makedirs(os.path.join(folder, "build-coverage"))
    database = sqlite3.connect(os.path.join(folder, "build-coverage/map.sqlite"))
    with database:
        database.executescript("""
            CREATE TABLE test (id INTEGER PRIMARY KEY, name TEXT, status TEXT, seconds REAL);
            CREATE TABLE function (id INTEGER PRIMARY KEY, file TEXT, name TEXT);
            CREATE TABLE reach (test INTEGER, function INTEGER);
            CREATE TABLE line (file TEXT, number INTEGER, reached INTEGER);
            CREATE TABLE source (file TEXT, sha1 TEXT);
            INSERT INTO test VALUES (1, 'unit.small_test', 'passed', 0.1), (2, 'unit.broken', 'passed', 0.2);
            INSERT INTO function VALUES (1, 'collect/small.c', 'small_lower'), (2, 'collect/small.c', 'small_hidden'),
                (3, 'collect/small.c', 'small_room');
            INSERT INTO line VALUES ('collect/small.c', 16, 0), ('collect/small.c', 18, 0);
            INSERT INTO reach VALUES (1, 1), (1, 2), (2, 2), (1, 3);""")
        with open(os.path.join(folder, "collect/small.c"), "rb") as file:
            database.execute("INSERT INTO source VALUES ('collect/small.c', ?)", (hashlib.sha1(file.read()).hexdigest(),))
    database.close()


def is_clean(folder):
    with open(os.path.join(folder, "build-mutants/source/collect/small.c"), encoding="utf-8") as file:
        copied = file.read()
    status = subprocess.run(["git", "-C", folder, "status", "--porcelain"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return copied == PROJECT["collect/small.c"] and status == ""


def hunt():
    if not all(map(shutil.which, ("git", "cmake", "ninja"))):
        print("skipped: git, cmake and ninja are needed")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        make_project(folder)
        with subprocess.Popen([sys.executable, os.path.join(folder, "scripts/mutants"), "--count", "99"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as stopped:
            first = stopped.stdout.readline()
            stopped.send_signal(signal.SIGTERM)
            rest = stopped.communicate()[0]
        expect("1 of 6" in first and stopped.returncode == 130 and "6 of 6" not in rest, first, rest, stopped.returncode)
        expect(is_clean(folder), "a stopped run left its error")
        done = run(folder)
        expect(done.returncode == 0, done.stdout)
        ends = {}
        for line in done.stdout.split("\nSurvived:")[0].splitlines():
            if "collect/small.c:" in line:
                ends[int(line.split("small.c:")[1].split(":")[0])] = line.rsplit(": ", 1)[1]
        noticed = "noticed by unit.small_test"
        expect(set(ends) == {5, 6, 7, 8, 12, 17}, done.stdout)
        expect(ends[5] == "same code" and ends[7] == ends[8] == noticed, done.stdout)
        expect(ends[12].startswith("survived, 1 of ") or ends[12] == noticed, done.stdout)
        expect(("unit.broken" in done.stdout) == ends[12].startswith("survived"), done.stdout)
        expect("small.c:17: statement removed: noticed by sanitize: unit.small_test" in done.stdout, done.stdout)
        expect(is_clean(folder), "a run left its error")
        again = run(folder)
        expect(again.stdout.split("\nSurvived:")[1] == done.stdout.split("\nSurvived:")[1] and "left out" not in again.stdout,
               again.stdout, done.stdout)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
