# SPDX-License-Identifier: MIT
"""anonymize.py: an anonymized recording says the same numbers and none of the words: every text of the
original, its program files included, is looked for in all bytes of the new one, unpacked by an
independent reader."""

import os
import re
import shutil

from recorded import HERE, record, recordings
from harness import MEMTRACE, build, equal, execute, fail, finish, report, scratch

import reader

# What every program has, and the kernel's words.
PUBLIC = {"main", "_start", "clone", "__clone", "clone3", "__clone3", "__libc_start_main",
          "__libc_start_main_impl", "__libc_start_call_main", "start_thread"}
WORD = re.compile(rb"[\x20-\x7e]{5,}")
OURS = re.compile(r"(function|file|module|path|argument|thread|pool|mark|mapping)_[0-9a-f]+$")


def content(path):
    """All that is in the file, unpacked."""
    recording = reader.Recording(path)
    parts = [recording.data[:64]]
    for block, payload in recording.blocks:
        parts.append(b"" if block.kind == reader.INDEX else reader.unpacked(block, payload))
    return parts


def words(data):
    """The texts that a report tells."""
    found = {data["program"], *data["process"]["command"]}
    found.update(thread["name"] for thread in data["threads"])
    for module in data["modules"]:
        found.update((module["path"], os.path.basename(module["path"])))
    for context in data["contexts"]:
        for frame in context["frames"]:
            found.update((frame["function"], frame["file"] and os.path.basename(frame["file"])))
    return {word for word in found if word and len(word) > 4 and word not in PUBLIC
            and not word.startswith("[")}


def tells_nothing(original, hidden, data):
    everything = b"\0".join(content(hidden))
    secret = [word for part in content(original) for word in WORD.findall(part) if b"secret" in word]
    if len(secret) < 8:
        fail("the original has few secrets:", secret)
    told = words(data)
    if not any("secret_inner" in word for word in told) or "secret-thread" not in told:
        fail("the report of the original has few secrets:", sorted(told))
    for word in {word.decode() for word in secret} | told | {"secret"}:
        if word.encode() in everything:
            fail("a text of the original is left:", repr(word))
    for module in data["modules"]:
        if module["build_id"] and bytes.fromhex(module["build_id"]) in everything:
            fail("a build-id is left:", module)
    kinds = {block.kind for block, _ in reader.Recording(hidden).blocks}
    if reader.FILE in kinds or reader.NAMES not in kinds:
        fail("blocks of kinds", sorted(kinds))


def shape(data):
    """Numbers, and which things have the same name."""
    seen = {}

    def name(word):
        return word if not word or word in PUBLIC or word[0] == "[" else seen.setdefault(
            word, len(seen))

    contexts = [([(name(frame["function"]), name(frame["file"]), frame["line"], frame["column"],
                   frame["inlined"], name(frame["module"]), frame["offset"])
                  for frame in context["frames"]],
                 {key: value for key, value in context.items() if key not in ("frames", "hash")})
                for context in sorted(data["contexts"], key=lambda context: context["id"])]
    threads = [{key: name(value) if key == "name" else value for key, value in thread.items()}
               for thread in data["threads"]]
    # (Which leaks are left out is told by names.)
    totals = {key: value for key, value in data.items() if isinstance(value, int) and not key.startswith("suppressed")}
    return contexts, threads, totals, data["timeline"], data["warnings"]


def events(path):
    """Each stream's, without the texts of marks."""
    found = {}
    for block, payload in reader.Recording(path).of_kind(reader.EVENTS):
        found.setdefault(block.stream, []).extend(
            event._replace(text=None) if isinstance(event, reader.Mark) else event
            for event in reader.Decoder(block, payload))
    return found


def names_of(data):
    return {frame["function"] for context in data["contexts"] for frame in context["frames"]
            if frame["function"]} - PUBLIC


def run(*arguments):
    done = execute([MEMTRACE, "anonymize", *arguments])
    if done.returncode != 0:
        fail("memtrace anonymize", *arguments, done.stderr)


def one(original, folder):
    hidden = os.path.join(folder, "hidden.mtr")
    run(original, "--output", hidden)
    before, after = report(original), report(hidden)
    tells_nothing(original, hidden, before)
    equal(shape(after), shape(before), "numbers and structure")
    equal(events(hidden), events(original), "events")
    strange = [name for name in names_of(after) if not OURS.match(name)]
    equal(strange, [], "names that are not made up")
    again = os.path.join(folder, "again.mtr")
    run(original, "--output", again)
    with open(hidden, "rb") as first, open(again, "rb") as second:
        equal(first.read() == second.read(), True, "twice the same")
    run(hidden, "--output", again)
    equal(shape(report(again)), shape(before), "anonymized twice")
    return hidden


def keyed(original, other, folder):
    """Names by a key are those of another recording with the same key, and of none with another."""
    names = {}
    for key, path in (("one", original), ("one", other), ("two", original)):
        secret = os.path.join(folder, "key." + key)
        with open(secret, "w", encoding="utf-8") as file:
            file.write(key * 10)
        hidden = os.path.join(folder, "keyed.mtr")
        run(path, "--key", secret, "--output", hidden)
        data = report(hidden)
        tells_nothing(path, hidden, report(path))
        names.setdefault(key, []).append((data["program"], names_of(data)))
    equal(names["one"][0], names["one"][1], "the same key")
    if names["one"][0][1] & names["two"][0][1] or names["one"][0][0] == names["two"][0][0]:
        fail("another key gives the same names")


def refused(original, folder):
    """One line each, and no file."""
    short = os.path.join(folder, "short")
    with open(short, "w", encoding="utf-8") as file:
        file.write("guess me")
    new = os.path.join(folder, "never.mtr")
    for arguments in ((original, "--key", short, "--output", new), (original,),
                      (original, "--key", os.path.join(folder, "none"), "--output", new),
                      ("--output", new), ("/etc/passwd", "--output", new),
                      (original, "--output", os.path.join(folder, "no", "folder.mtr"))):
        done = execute([MEMTRACE, "anonymize", *arguments])
        if done.returncode == 0 or done.stderr.count(b"\n") != 1 or os.path.exists(new):
            fail("memtrace anonymize", *arguments, "status", done.returncode, done.stderr)


def damaged(original, folder):
    """Cut off: what is there is hidden, too."""
    cut = os.path.join(folder, "cut.mtr")
    shutil.copy(original, cut)
    os.truncate(cut, os.path.getsize(cut) * 2 // 3)
    hidden = os.path.join(folder, "hidden.mtr")
    run(cut, "--output", hidden)
    everything = b"\0".join(content(hidden))
    equal(b"secret" in everything, False, "cut off: secrets")
    equal(events(hidden), events(cut), "cut off: events")


def main():
    folder = scratch("secret-folder-")
    program = build(os.path.join(HERE, "secrets.c"), "gcc", "-O1", "preload")
    found = []
    for number in range(2):
        inside = os.path.join(folder, str(number))
        os.mkdir(inside)
        record([program, "secret-argument"], inside)
        found.append(recordings(inside)[0])
    one(found[0], folder)
    keyed(found[0], found[1], folder)
    refused(found[0], folder)
    damaged(found[0], folder)
    finish()


if __name__ == "__main__":
    main()
