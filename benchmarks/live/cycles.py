# SPDX-License-Identifier: MIT
"""The groups `cycles` and `stall` of `benchmarks/run live`: programs that are attached to and left
over and over, which tests/attach/cycles.py does; and how long a program stands still where MemTrace
comes into it, and heaptrack. Used by figures.py."""

import os
import shutil
import signal
import subprocess
import sys
import time

from harness import RunFailed, median
from table import Row, check

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "attach"))
import cycles as attached  # noqa: E402  (tests/attach/cycles.py)

CYCLES, QUICK_CYCLES = 2000, 250  # of all programs together
MEDIAN_LIMIT_MS, LATE_LIMIT_MS, CROWD_LIMIT_MS = 1, 5, 20
COUNTING_LIMIT_MS, GAP_LIMIT_MS = 100, 1
INJECT_LIMIT_S, MEASURED_S = 60, 2
MISSING = "not installed (Debian packages heaptrack and gdb)"


def prepare(live):
    """The folder that programs run in, and the programs."""
    folder = os.path.join(live.bench.scratch, "cycles")
    os.makedirs(os.path.join(folder, "regions"), mode=0o700, exist_ok=True)
    attached.MEMTRACE = live.bench.command
    return folder, attached.subjects(folder)


def cycles(live):
    """A row for each program, and one for all, which has the limits."""
    folder, subjects = prepare(live)
    live.bench.failures += [f"cycles: {name} is not installed" for name in subjects if not subjects[name]]
    here = {name: subject for name, subject in subjects.items() if subject}
    number = -(-(QUICK_CYCLES if live.quick else CYCLES) // len(here))
    everything = {}
    for name, subject in here.items():
        live.bench.progress(f"cycles: {name}")
        everything[name] = attached.run(subject, number, 1e9, folder)
        if name not in attached.CALLS:
            yield program_row(name, everything[name])
    yield program_row(f"asleep in one of {len(attached.CALLS)} calls",
                      together(everything[name] for name in attached.CALLS))
    yield total_row(everything)


def together(several):
    found = attached.Cycles()
    for seen in several:
        found.count += seen.count
        found.held += seen.held
        found.refused += seen.refused
        found.verdict = seen.verdict if seen.verdict != "good" else found.verdict
    return found


def ms(values):
    return ", ".join(f"{value:.2f}" for value in values)


def program_row(name, seen):
    cells = {"cycles": str(seen.count), "held": ms(attached.three(seen.held)), "verdict": seen.verdict}
    checks = []
    if seen.beside:
        gaps = median(seen.before), median(seen.beside)
        cells["gap"] = f"{ms(gaps)} (longest {ms((max(seen.before), max(seen.beside)))})"
        if name == "malloc1":  # which has a processor for itself: others wait for one another
            checks.append(check(f"gap {gaps[1] - gaps[0]:+.2f} of {GAP_LIMIT_MS} ms",
                                gaps[1] - gaps[0] <= GAP_LIMIT_MS))  # a shorter one is noise, and no miss
    if seen.counting:
        cells["counting"] = f"{median(seen.counting):.0f}, {max(seen.counting):.0f}"
        checks.append(check(f"counting after {median(seen.counting):.0f} of {COUNTING_LIMIT_MS} ms",
                            median(seen.counting) <= COUNTING_LIMIT_MS))
    if name == "threads1000":
        checks.append(check(f"held at most {max(seen.held):.2f} of {CROWD_LIMIT_MS} ms",
                            max(seen.held) <= CROWD_LIMIT_MS))
    if seen.refused:
        cells["verdict"] += f", refused {len(seen.refused)}"
    return Row(f"cycles: {name}", cells, checks)


def total_row(everything):
    def all_of(what):
        return [value for seen in everything.values() for value in getattr(seen, what)]
    held, counting = attached.three(all_of("held")), all_of("counting")
    verdicts = [seen.verdict for seen in everything.values()]
    count = sum(seen.count for seen in everything.values())
    stuck = sum(verdict.startswith("STUCK") for verdict in verdicts)
    crashed = verdicts.count("CRASHED")
    empty = sum(seen.empty for seen in everything.values())
    return Row("cycles: all", {
        "cycles": str(count), "held": ms(held), "counting": f"{median(counting):.0f}, {max(counting):.0f}",
        "verdict": f"{verdicts.count('good')} of {len(verdicts)} good",
    }, [
        check(f"deadlocks {stuck} of 0", stuck == 0),
        check(f"crashes and other outputs {crashed} of 0", crashed == 0),
        check(f"held {held[0]:.2f} of {MEDIAN_LIMIT_MS} ms (median)", held[0] <= MEDIAN_LIMIT_MS),
        check(f"held {held[1]:.2f} of {LATE_LIMIT_MS} ms (p99)", held[1] <= LATE_LIMIT_MS),
        check(f"profiles with nothing in them {empty} of 0", empty == 0)])


# --- beside heaptrack -----------------------------------------------------------------------------

def loads(pid, library):
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as maps:
        return library in maps.read()


def heaptrack_in(live, subject):
    """heaptrack, which gdb brings into the program, and which stays beside it."""
    command = subprocess.Popen(["heaptrack", "-o", os.path.join(live.bench.scratch, "heaptrack"), "-p",
                                str(subject.pid)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, start_new_session=True)
    end = time.monotonic() + INJECT_LIMIT_S
    while not loads(subject.pid, "libheaptrack_inject") and command.poll() is None:
        if time.monotonic() > end:
            break
        time.sleep(0.05)
    time.sleep(1)  # until gdb has left it
    return command


def ended(commands, subjects):
    for command in commands:
        if command.poll() is None:
            os.killpg(command.pid, signal.SIGKILL)
        command.wait()
        if os.path.exists(f"/tmp/heaptrack_fifo{command.pid}"):
            os.unlink(f"/tmp/heaptrack_fifo{command.pid}")
    for subject in subjects:
        subject.process.kill()
        subject.process.communicate()


def one_stall(live, variant, folder):
    """ms for which the program stood still while that came, and million pairs a second after it."""
    subject = attached.subjects(folder)["malloc1"]
    commands = []
    subject.start(folder)
    try:
        subject.ask()
        if variant == "attached":
            attached.memtrace("attach", subject.pid, folder=folder)
        elif variant == "heaptrack":
            commands.append(heaptrack_in(live, subject))
            if not loads(subject.pid, "libheaptrack_inject"):
                raise RunFailed("heaptrack -p did not come into the program")
        else:
            time.sleep(1)
        stall, works = subject.ask()
        start = time.monotonic()
        time.sleep(MEASURED_S)
        return stall, (subject.ask()[1] - works) / (time.monotonic() - start) / 1e6
    finally:
        ended(commands, [subject])


def stall(live):
    """The longest gap of a thread that allocates and frees, and what it does after that."""
    has_peer = shutil.which("heaptrack") and shutil.which("gdb")
    folder, _ = prepare(live)
    variants = ("bare", "attached", *(("heaptrack",) if has_peer else ()))
    found = {variant: [one_stall(live, variant, folder) for _ in range(1 if live.quick else 5)]
             for variant in variants}
    for what, index, form in (("stands still at most, ms", 0, "{:.1f}"), ("million pairs/s after", 1, "{:.1f}")):
        cells = {variant: form.format(median([one[index] for one in values])) for variant, values in found.items()}
        if not has_peer:
            cells["heaptrack"] = MISSING
        yield Row(f"a thread of malloc and free: {what}", cells, [])
