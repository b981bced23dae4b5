# SPDX-License-Identifier: MIT
"""Each format of `memtrace export` comes from the server as the command writes it, of all and of what
filters select; what a source cannot give is refused by the command's own sentence."""

import gzip
import os
import re
import sqlite3
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "asking"))

from serving import MEMTRACE, Server, clean_environment, equal, execute, fail, finish, scratch  # noqa: E402
from queried import busy  # noqa: E402

FILTERS = {"function": "alpha", "size": "..4000"}


def formats():
    result = execute([MEMTRACE, "export", "--list"], clean_environment())
    return re.findall(r"^  (\S+)", result.stdout.decode(), re.M)


def exported(path, name, folder, filters, *options):
    """What the command writes to a file, or the line with which it refuses."""
    given = [text for pair in filters.items() for text in ("--" + pair[0], pair[1])]
    output = os.path.join(folder, "exported" + {"heaptrack": ".zst", "pprof": ".pb.gz"}.get(name, ""))
    result = execute([MEMTRACE, "export", "--format", name, "--output", output, *given, *options, path],
                     clean_environment(MEMTRACE_CACHE=""))
    if result.returncode != 0:
        return None, result.stderr.decode().strip().removeprefix("memtrace: ")
    with open(output, "rb") as file:
        data = file.read()
    os.unlink(output)
    return data, None


def comparable(name, data, folder):
    if name == "sqlite":
        path = os.path.join(folder, "compared.sqlite")
        with open(path, "wb") as file:
            file.write(data)
        with sqlite3.connect(path) as database:
            dump = list(database.iterdump())
        os.unlink(path)
        return dump
    if name == "pprof":
        return gzip.decompress(data)
    return data


def check(server, path, name, folder, filters, **parameters):
    wanted, refusal = exported(path, name, folder, filters,
                               *[text for pair in parameters.items()
                                 for text in ({"metric": "--cost"}.get(pair[0], "--" + pair[0]), pair[1])])
    status, headers, data = server.raw("/r/1/export/" + name, **filters, **parameters)
    if refusal is not None:
        equal(status, 400, name, filters, data)
        return
    if not equal(status, 200, name, filters, data[:300]):
        return
    if comparable(name, data, folder) != comparable(name, wanted, folder):
        fail(name, filters, parameters, ": the download of", len(data),
             "bytes is not what the command writes,", len(wanted))
    if not headers["Content-Disposition"].startswith('attachment; filename="busy.'):
        fail(name, "is offered as", headers["Content-Disposition"])


def main():
    folder = scratch()
    path = busy(folder)
    names = formats()
    equal({"folded", "html", "heaptrack", "pprof", "sqlite", "json", "csv", "massif"} <= set(names), True,
          names)
    temporary = scratch()
    server = Server(path, settings={"TMPDIR": temporary})
    for name in names:
        check(server, path, name, folder, {})
        check(server, path, name, folder, FILTERS)
    check(server, path, "folded", folder, {}, metric="leaked")
    check(server, path, "csv", folder, {}, depth="2")
    for address, parameters, wanted, text in (
            ("/r/1/export/nothing", {}, 404, "nothing"),
            ("/r/1/export/massif", {"metric": "leaked"}, 400, "holds all costs"),
            ("/r/1/export/massif", {"depth": "3"}, 400, "depth"),
            ("/r/1/export/folded", {"metric": "shutdown"}, 400, "metric")):
        status, problem = server.ask(address, **parameters)
        equal((status, text in problem["detail"]), (wanted, True), address, parameters, problem)
    equal([name for name in os.listdir(temporary) if "export" in name], [], "temporary files")
    server.close()
    finish()


main()
