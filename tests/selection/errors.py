# SPDX-License-Identifier: MIT
"""errors.py: what is no filter, or none that this file can answer, is said in one line; nothing is
printed on stdout."""

import os

from lives import reader  # noqa: F401  (sets the path of what tests of recordings share)
from recorded import only_recording, record
from harness import (MEMTRACE, build, clean_environment, equal, execute, fail, finish, profiles,
                     scratch)

HERE = os.path.dirname(os.path.abspath(__file__))
USAGE, FAILURE = 2, 1

WRONG = [  # on the command line already
    (["--size", "12X"], "--size: '12X' is not a range of sizes (try 1K..64K, 4K.. or ..100)"),
    (["--size", ".."], "--size: '..' is not a range of sizes"),
    (["--size", "2K..1K"], "--size: the range '2K..1K' is empty"),
    (["--lifetime", "1s..x"], "--lifetime: '1s..x' is not a range of durations"),
    (["--chain-length", "1K"], "--chain-length: '1K' is not a range of numbers"),
    (["--address", "heap"], "--address: 'heap' is not a range of addresses"),
    (["--function", "a("], "--function: 'a(' is not a regular expression: "),
    (["--function", "(((a{1,99}){1,99}){1,99}){1,99}"], "--function: '(((a{1,99}){1,99}){1,99}){1,99}' is not a"
                                                        " regular expression: Too large with its repetitions"),
    (["--file", r"(.)(.)\2\1"], "--file: '(.)(.)\\2\\1' is not a regular expression: Back-references are not"),
    (["--path", "xyz"], "--path: 'xyz' is not the hash of a call path"),
    (["--freed-path", "xyz"], "--freed-path: 'xyz' is not the hash of a call path"),
    (["--arena", "left"], "--arena: 'left' is not an arena: main or other"),
    (["--group-live-blocks", "1%..x"], "--group-live-blocks: '1%..x' is not a range of percentages (try 50%.. or"),
    (["--group-live-blocks", "..%"], "--group-live-blocks: '..%' is not a range of percentages"),
    (["--group-live-blocks", "9%..1%"], "--group-live-blocks: the range '9%..1%' is empty"),
    (["--group-interval", "1s..x"], "--group-interval: '1s..x' is not a range of durations"),
    (["--group-maximum-at", "1s"], "--group-maximum-at: '1s' is not a span of time (try 1s..2.5s"),
    (["--class", "stack"], "--class: 'stack' is not a class: heap, mapping or pool"),
    (["--from", "noon"], "--from: 'noon' is not a time (try 1.5s, 300ms, 50%, mark:NAME, start"),
    (["--from", "120%"], "--from: '120%' is not a time"),
    (["--allocated", "1s"], "--allocated: '1s' is not a span of time (try 1s..2.5s"),
    (["--between", "early"], "--between: 'early' is not two marks with a comma between them"),
    (["--to", "1s", "--at", "2s"], "--to and --at are the same"),
    (["--from", "1s", "--between", "a,b"], "--between already says from when to when"),
    (["--between", "a,b", "--to", "1s"], "--between already says from when to when"),
    (["--size", "1", "--size", "2"], "--size is given twice"),
    (["--mapping", "heap"], "--mapping: 'heap' is not the number of a mapping; --show-mappings has them"),
    (["--mapping-permissions", "rw"], "--mapping-permissions: 'rw' is not a mapping's permissions (try rw-p, r-x, .w."),
    (["--mapping-permissions", "wr-p"], "--mapping-permissions: 'wr-p' is not a mapping's permissions"),
    (["--mapping-permissions", "rw-pp"], "--mapping-permissions: 'rw-pp' is not a mapping's permissions"),
    (["--mapping-permissions", ""], "--mapping-permissions: '' is not a mapping's permissions"),
    (["--mapping-permissions", "...", "--mapping-permissions", "..."], "--mapping-permissions is given twice"),
    (["--mapping-peak-rss", "1X"], "--mapping-peak-rss: '1X' is not a range of sizes (try 1K..64K, 4K.. or ..100)"),
    (["--mapping-peak-rss", "2M..1M"], "--mapping-peak-rss: the range '2M..1M' is empty"),
    (["--where", ""], "--where: there is no expression"),
    (["--leaked=yes"], "option --leaked takes no value"),
]
UNKNOWN = [  # in this file
    (["--from", "mark:lunch"], "--from: there is no mark 'lunch'; marks are: early, late"),
    (["--to", "mark:early#9"], "--to: there is no mark 'early' number 9; marks are: early, late"),
    (["--between", "late,early"], "--between: no mark 'early' comes after 'late'"),
    (["--thread", "nobody"], "--thread: there is no thread 'nobody'; threads are: 2 main"),
    (["--pool", "lake"], "--pool: there is no pool 'lake'"),
    (["--where", "size ="], "--where: near \")\": syntax error"),
    (["--where", "colour = 1"], "--where: no such column: colour, at character 1: colour = 1"),
    (["--where", "1) LIMIT (5"], "--where: near \"LIMIT\": syntax error, at character 4"),
    (["--where", "1)) UNION SELECT ((2"], "--where: near \")\": syntax error, at character 3"),
    (["--where", "size IN (DELETE FROM threads)"], "--where: near \"DELETE\": syntax error"),
    (["--where", "count(*) > 1"], "--where: misuse of aggregate"),
    (["--where", "load_extension('x')"], "--where: not authorized"),
    (["--where", "(WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT sum(x) FROM c)"],
     "--where: the expression takes too many steps"),
    (["--from", "end"], "nothing is selected: --from is not before --to"),
]
PROFILE = [
    (["--lifetime", "1ms.."], "--lifetime needs single blocks, which a profile does not have; make"
                              " a recording with `memtrace record`"),
    (["--group-interval", "1s.."], "--group-interval needs single blocks, which a profile"),
    (["--where", "size > 1"], "--where needs single blocks, which a profile"),
    (["--mapping-permissions", "r--"], "--mapping-permissions needs single blocks, which a profile"),
    (["--mapping-peak-rss", "1M.."], "--mapping-peak-rss needs single blocks, which a profile"),
    (["--temporary"], "--temporary needs single blocks, which a profile"),
    (["--function", "main", "--show-threads"], "--show-threads with filters needs a recording; make"),
    (["--class", "heap", "--show-timeline"], "--show-timeline with filters needs a recording"),
    (["--at", "50%"], "--at needs to know when things happened, which a profile does not record; make"),
    (["--between", "early,late"], "--between needs to know when things happened, which a profile"),
]


def refused(path, options, status, line):
    result = execute([MEMTRACE, "report", *options, path], clean_environment(MEMTRACE_CACHE=""))
    told = result.stderr.decode()
    equal((result.returncode, result.stdout, told.count("\n")), (status, b"", 1), options, told)
    if not told.startswith("memtrace: " + line):
        fail(options, ": said", told, "expected", line)


def main():
    folder = scratch()
    under = record([build(os.path.join(HERE, "busy.c")), "1", "1", "800"], folder)
    equal(under.returncode, 0, "the program", under.stderr)
    recording, profile = only_recording(folder, "busy"), profiles(folder)[0]
    for options, line in WRONG:
        refused(recording, options, USAGE, line)
    for options, line in UNKNOWN:
        refused(recording, options, FAILURE, line)
    for options, line in PROFILE:
        refused(profile, options, FAILURE, line)


main()
finish()
