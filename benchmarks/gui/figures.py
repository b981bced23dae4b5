# SPDX-License-Identifier: MIT
"""The figures of `benchmarks/run gui`: the page of memtrace serve in real Chromium, beside each goal:
how soon it shows something, how fast it answers, draws and scrolls, and what it and its server hold.
Each function takes a Gui and yields Rows. measure.mjs drives the page."""

import json
import os
import shutil
import subprocess
import time

from analysis.figures import Cost, events_of
from gui.sizes import ALL_LIMIT, FIRST_LIMIT, sizes
from harness import RunFailed
from table import Row, check

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
TITLES = {"median": "median", "p95": "p95", "most": "most", "of": "of"}
LIMIT_S = 3600
FIRST_TREE_MS, SNAPPED_MS, EXACT_MS, FRAME_MS, ZOOM_MS, UPWARD_MS, BLANK_MS = 1000, 100, 300, 16.7, 50, 150, 100
EXACT_LARGE_MS, OPENING_MS, PROGRESS_MS, CANCEL_MS, SECOND_MS = 500, 200, 100, 50, 50
UPWARD_CALLS, TABLE_ROWS, FLAME_CALLS = 150e3, 10e6, 1e6
PAGE_MIB, SERVER_MIB, LIVE_CORE = 150, 30, 0.05
DEPTH = 14  # 16,384 call paths


class Gui:
    """A Bench with the browser's remote control, and recordings that several groups share."""

    def __init__(self, bench):
        self.bench = bench
        self.folder = os.path.join(bench.programs, "gui")
        self.made = {}

    def install(self):
        """playwright-core, as the tests have it."""
        result = subprocess.run([os.path.join(SOURCE, "tests", "web", "install"), self.folder],
                                capture_output=True, text=True, check=False)
        if result.returncode != 0:
            raise RunFailed(f"playwright-core: {(result.stderr.strip().splitlines() or ['no message'])[-1]}")
        shutil.copy(os.path.join(HERE, "measure.mjs"), self.folder)

    def recording(self, events, depth=DEPTH, *options):
        """A recording of so many events on 2^depth call paths, with its index in the cache."""
        key = (events, depth, *options)
        if key not in self.made:
            path = os.path.join(self.bench.scratch, f"gui-{events}-{depth}{''.join(options)}.mtr")
            self.bench.progress(f"recording {events / 1e6:.0f} million events on {1 << depth} call paths")
            self.command("record", *options, "-o", path, "--", self.subject(), "--depth", str(depth),
                         "--events", str(events))
            self.report(path)
            self.made[key] = path
        return self.made[key]

    def subject(self):
        return os.path.join(self.bench.programs, "callpaths.bare")

    def environment(self):
        return dict(os.environ, MEMTRACE=self.bench.command, MEMTRACE_SUMMARY="0",
                    MEMTRACE_CACHE=os.path.join(self.bench.scratch, "cache"))

    def command(self, *arguments):
        result = subprocess.run([self.bench.command, *arguments], env=self.environment(), capture_output=True, text=True,
                                timeout=LIMIT_S, check=False)
        if result.returncode != 0:
            raise RunFailed(f"memtrace {arguments[0]}: {(result.stderr.strip().splitlines() or ['no message'])[-1]}")
        return result.stdout

    def report(self, path):
        return Cost([self.bench.command, "report", path], self.environment())

    def measure(self, what, *arguments):
        """What measure.mjs says."""
        self.bench.progress(f"the page: {what}")
        command = ["node", os.path.join(self.folder, "measure.mjs"), what, *map(str, arguments)]
        try:
            result = subprocess.run(command, env=self.environment(), capture_output=True, text=True, timeout=LIMIT_S,
                                    check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise RunFailed(f"{what}: {error}")
        if result.returncode != 0 or not result.stdout.strip():
            raise RunFailed(f"{what}: {(result.stderr.strip().splitlines() or ['no message'])[0]}")
        return json.loads(result.stdout)

    def events(self, millions):
        """Fewer where it is to be quick."""
        return int(millions * (1e5 if self.bench.quick else 1e6))


def cells(spread):
    return {name: f"{spread[name]:.1f} ms" for name in ("median", "p95", "most")} | {"of": str(spread["count"])}


def load(gui):
    """The first tree of a large recording, of a server and a page that have just begun."""
    path = gui.recording(gui.events(100))
    events = events_of(gui.report(path).text)
    first = gui.measure("load", path)["first"]
    yield Row(f"first tree on screen, {events / 1e6:.0f} million events", cells(first),
              [check(f"{first['median']:.0f} of {FIRST_TREE_MS} ms", first["median"] <= FIRST_TREE_MS)])


def opening(gui):
    """A recording that nothing is known of yet: how soon the page says how far it is read."""
    path = gui.recording(gui.events(30), DEPTH, "--no-slices")
    events = events_of(gui.report(path).text)
    found = gui.measure("opening", path)
    name = f"not indexed, {events / 1e6:.0f} million events"
    yield Row(f"{name}: first progress on the page", cells(found["progress"]),
              [check(f"{found['progress']['median']:.0f} of {OPENING_MS} ms", found["progress"]["median"] <= OPENING_MS)])
    yield Row(f"{name}: first tree on screen", cells(found["all"]), [])


def passes(gui):
    """What goes through all events: asked, given up, asked again."""
    path = gui.recording(gui.events(30))
    events = events_of(gui.report(path).text)
    found = gui.measure("passes", path)
    for key, name, limit in (("progress", "first progress", PROGRESS_MS), ("second", "the second time", SECOND_MS),
                             ("cancel", "processor time after they are given up", CANCEL_MS)):
        yield Row(f"passes over {events / 1e6:.0f} million events: {name}", cells(found[key]),
                  [check(f"{found[key]['p95']:.0f} of {limit} ms p95", found[key]["p95"] <= limit)])


def brush(gui):
    """Windows dragged on the timeline."""
    path = gui.recording(gui.events(30))
    events = events_of(gui.report(path).text)
    found = gui.measure("brush", path, 40 if gui.bench.quick else 200)
    for name, key, limit in (("brush, snapped to slices", "snapped", SNAPPED_MS), ("window, exact", "exact", EXACT_MS)):
        spread = found[key]
        slowest = max(found["views"], key=lambda view: found["views"][view][key]["p95"])
        yield Row(f"{name}, {events / 1e6:.0f} million events (slowest: {slowest})", cells(spread),
                  [check(f"{spread['p95']:.0f} of {limit} ms p95", spread["p95"] <= limit)])


def large(gui):
    """Exact windows of a recording as large as that of the first tree, once the server has made its slices fine."""
    path = gui.recording(gui.events(100))
    events = events_of(gui.report(path).text)
    found = gui.measure("brush", path, 12 if gui.bench.quick else 80, "prepared")
    slowest = max(found["views"], key=lambda view: found["views"][view]["exact"]["p95"])
    yield Row(f"window, exact, {events / 1e6:.0f} million events (slowest: {slowest})", cells(found["exact"]),
              [check(f"{found['exact']['p95']:.0f} of {EXACT_LARGE_MS} ms p95", found["exact"]["p95"] <= EXACT_LARGE_MS)])


def flame(gui):
    """A flame graph of all calls, however narrow."""
    path = gui.recording(gui.events(3), 16 if gui.bench.quick else 19)
    found = gui.measure("flame", path, 240)
    calls = f"flame graph of {found['nodes']:,} calls"
    whole = check(f"{found['nodes'] / 1e6:.2f} of {FLAME_CALLS / 1e6:.0f} million calls", found["nodes"] >= FLAME_CALLS)
    yield Row(f"{calls}: drawing a frame", cells(found["draw"]),
              [whole, check(f"{found['draw']['p95']:.1f} of {FRAME_MS} ms p95", found["draw"]["p95"] <= FRAME_MS)])
    # Frames come at multiples of the screen's: what counts is that hardly any is left out.
    yield Row(f"{calls}: from frame to frame", cells(found["apart"]), [])
    yield Row(f"{calls}: zoom", cells(found["zoom"]),
              [check(f"{found['zoom']['p95']:.0f} of {ZOOM_MS} ms p95", found["zoom"]["p95"] <= ZOOM_MS)])


def upward(gui):
    """The tree turned around: asked, made, sent, drawn. Told for the target's number of calls."""
    path = gui.recording(gui.events(3), 17)
    found = gui.measure("upward", path)
    scaled = found["time"]["median"] * UPWARD_CALLS / max(found["calls"], 1)
    yield Row(f"bottom-up, {found['calls']:,} calls", cells(found["time"]),
              [check(f"{scaled:.0f} of {UPWARD_MS} ms for {UPWARD_CALLS:,.0f} calls",
                     found["calls"] > 0 and scaled <= UPWARD_MS)])


def scroll(gui):
    """A table of all blocks that there ever were."""
    path = gui.recording(gui.events(30))
    found = gui.measure("table", path)
    name = f"table of {found['rows']:,} rows"
    whole = check(f"{found['rows'] / 1e6:.1f} of {TABLE_ROWS / 1e6:.0f} million rows", found["rows"] >= TABLE_ROWS)
    yield Row(f"{name}: blank while the wheel turns", {"most": f"{found['wheel']:.1f} ms"},
              [whole, check(f"{found['wheel']:.0f} of {BLANK_MS} ms", found["wheel"] <= BLANK_MS)])
    yield Row(f"{name}: blank after a jump", cells(found["jump"]),
              [check(f"{found['jump']['p95']:.0f} of {BLANK_MS} ms p95", found["jump"]["p95"] <= BLANK_MS)])


def weight(_gui):
    """What is fetched."""
    first, whole = sizes(os.path.join(SOURCE, "web", "ui", "dist"))
    yield Row("first load, gzipped", {"most": f"{first / 1000:.1f} kB"},
              [check(f"{first / 1000:.0f} of {FIRST_LIMIT / 1000:.0f} kB", first <= FIRST_LIMIT)])
    yield Row("all of the page, gzipped", {"most": f"{whole / 1000:.1f} kB"},
              [check(f"{whole / 1000:.0f} of {ALL_LIMIT / 1000:.0f} kB", whole <= ALL_LIMIT)])


def memory(gui):
    """After many changes of view."""
    path = gui.recording(gui.events(30))
    model = gui.report(path).mib
    found = gui.measure("memory", path, 100)
    yield Row("page after 100 changes of view", {"most": f"{found['page']:.0f} MiB"},
              [check(f"{found['page']:.0f} of {PAGE_MIB} MiB", found["page"] <= PAGE_MIB)])
    more = found["server"] - model
    yield Row("server with a tree, over `memtrace report`", {"most": f"{more:.0f} MiB"},
              [check(f"{more:.0f} of {SERVER_MIB} MiB", more <= SERVER_MIB)])
    yield Row("server after 100 changes of view (with what it keeps)", {"most": f"{found['after']:.0f} MiB"}, [])


def started_by(pid):
    """The program that `memtrace run` waits for."""
    with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as children:
        started = children.read().split()
    return int(started[0]) if started else pid


def live(gui):
    """A running program of many call paths, looked at."""
    seconds = 10 if gui.bench.quick else 30
    command = [gui.bench.command, "run", "-o", os.path.join(gui.bench.scratch, "live.mtp"), "--", gui.subject(),
               "--depth", str(DEPTH), "--seconds", str(LIMIT_S)]
    process = subprocess.Popen(command, env=gui.environment(), cwd=gui.bench.scratch, stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(3)
        found = gui.measure("live", started_by(process.pid), seconds)
    finally:
        process.terminate()  # which it hands on to the program
        process.wait()
    yield Row(f"live, {1 << DEPTH:,} call paths: the server's share of a core", {"most": f"{100 * found['core']:.1f} %"},
              [check(f"{100 * found['core']:.1f} of {100 * LIVE_CORE:.0f} %", found["core"] <= LIVE_CORE)])
    yield Row(f"live, {1 << DEPTH:,} call paths: new states a second", {"median": f"{found['states']:.2f}"},
              [check("some", found["states"] > 0)])


GROUPS = {"weight": weight, "load": load, "opening": opening, "brush": brush, "large": large, "passes": passes, "flame": flame,
          "upward": upward, "scroll": scroll, "memory": memory, "live": live}
