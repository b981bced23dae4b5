# SPDX-License-Identifier: MIT
"""damaged.py CASE: files that are cut off, damaged, of another version or no profiles at all. They are
shown up to the break, or refused with one clear line."""

import json
import os
import random
import shutil
import subprocess
import sys

from faults import sample_profile, tool_refuses
from harness import MEMTRACE, clean_environment, equal, execute, fail, finish, scratch


def tolerant_report(path, what):
    """A damaged profile: shown up to the break, or refused with one line; never a crash."""
    for options in (["--json"], ["--flat"]):
        try:
            result = execute([MEMTRACE, "report", *options, path], timeout=30)
        except subprocess.TimeoutExpired:
            return fail(what, "hangs")
        error = result.stderr.decode(errors="replace")
        if result.returncode < 0 or result.returncode >= 126:
            kept = "/tmp/memtrace-damaged.mtp"
            shutil.copy(path, kept)
            return fail(what, "status", result.returncode, "kept as", kept, error[-300:])
        if result.returncode > 0 and not error:
            fail(what, "refused without a word")
        if result.returncode == 0 and options == ["--json"]:
            try:
                json.loads(result.stdout)
            except ValueError as problem:
                fail(what, "no JSON:", problem)


def compressed(sample):
    """The same profile as the collector writes them."""
    made = execute([MEMTRACE, "repack", "--level", "1", "--output", sample + ".packed", sample])
    equal(made.returncode, 0, "repack", made.stderr)
    return sample + ".packed"


def case_compressed():
    """Reports of both forms are alike; what is cut or hit is shown as far as it goes."""
    sample = sample_profile()
    packed = compressed(sample)
    answers = [execute([MEMTRACE, "report", "--json", "--depth", "0", path]).stdout for path in (sample, packed)]
    equal(answers[1].replace(b".packed", b""), answers[0], "the report of a compressed profile")
    raw = execute([MEMTRACE, "repack", "--raw", "--output", sample + ".raw", packed])
    equal(raw.returncode, 0, "repack --raw", raw.stderr)
    with open(sample, "rb") as one, open(sample + ".raw", "rb") as other:
        before, after = one.read(), other.read()
    equal(after, before[:len(after)], "the bytes of a profile that was compressed")
    if os.path.getsize(packed) * 5 > os.path.getsize(sample):
        fail("compressed:", os.path.getsize(packed), "of", os.path.getsize(sample))
    with open(packed, "rb") as file:
        whole = file.read()
    generator = random.Random(7)
    for index in range(100):
        data = bytearray(whole)
        for _ in range(generator.choice((0, 1, 30))):
            place = generator.choice((generator.randrange(len(data)), generator.randrange(16384, len(data))))
            data[place] = generator.choice((0, 255, generator.randrange(256)))
        with open(sample + ".bad", "wb") as file:
            file.write(data[:generator.randrange(1, len(data) + 1)])
        tolerant_report(sample + ".bad", "compressed, damage %d:" % index)
    tool_refuses("repack of a cut profile", "repack", "--output", sample + ".new", sample + ".bad", words=[".bad"])


def case_cut_off():
    sample = sample_profile()
    with open(sample, "rb") as file:
        whole = file.read()
    generator = random.Random(5)
    lengths = {0, 1, 7, 8, 63, 64, 2047, 2048, 4096, 16383, 16384, 16385, 16448, len(whole) - 1}
    lengths |= {generator.randrange(len(whole)) for _ in range(40)}
    lengths |= {page for page in range(0, len(whole), max(4096, len(whole) // 40 // 4096 * 4096))}
    cut = sample + ".cut"
    for length in sorted(lengths):
        with open(cut, "wb") as file:
            file.write(whole[:length])
        tolerant_report(cut, "cut off at %d of %d:" % (length, len(whole)))
        if length < 16384:
            tool_refuses("cut off at %d:" % length, "report", cut)


def case_damaged():
    """Random bytes changed, in the header and elsewhere."""
    sample = sample_profile()
    with open(sample, "rb") as file:
        whole = file.read()
    seed = random.SystemRandom().randrange(1 << 32)
    print("seed", seed)
    generator = random.Random(seed)
    for index in range(120):
        data = bytearray(whole)
        for _ in range(generator.choice((1, 3, 50, 2000))):
            place = generator.randrange(512) if generator.random() < 0.2 else generator.randrange(len(data))
            data[place] = generator.choice((0, 255, generator.randrange(256)))
        if index % 4 == 0:  # the segment headers, where sizes and counts lie
            for place in range(16384, len(data), 4096):
                if data[place:place + 4] == b"SEMG" and generator.random() < 0.3:
                    data[place + generator.randrange(4, 32)] = generator.choice((0, 1, 127, 255))
        with open(sample + ".bad", "wb") as file:
            file.write(data)
        tolerant_report(sample + ".bad", "seed %d damage %d:" % (seed, index))


def case_other_version():
    sample = sample_profile()
    with open(sample, "rb") as file:
        data = bytearray(file.read())
    data[8:12] = (99).to_bytes(4, "little")
    with open(sample, "wb") as file:
        file.write(data)
    tool_refuses("version 99", "report", sample, words=["format 99"])
    data[8:12], data[16:20] = (1).to_bytes(4, "little"), b"\x01\x02\x03\x04"
    with open(sample, "wb") as file:
        file.write(data)
    # Turned round, its version is another.
    tool_refuses("what says that it has the other byte order", "report", sample, words=["format 16777216"])


def case_no_profile():
    folder = scratch()
    text, empty = os.path.join(folder, "text.mtp"), os.path.join(folder, "empty.mtp")
    open(text, "w").write("This is no profile.\n" * 2000)
    open(empty, "w").close()
    for path in (text, empty, folder, os.path.join(folder, "missing.mtp"), "/dev/null", "/bin/true"):
        tool_refuses("report " + path, "report", path, words=[os.path.basename(path)])
    result = execute([MEMTRACE, "report"], cwd=folder, environment=clean_environment())
    os.unlink(text)
    os.unlink(empty)
    result = execute([MEMTRACE, "report"], cwd=folder)
    equal(result.returncode > 0 and len(result.stderr.splitlines()) == 1, True, "report in an empty folder",
          result.stderr)


if __name__ == "__main__":
    globals()["case_" + sys.argv[1]]()
    finish()
