# SPDX-License-Identifier: MIT
"""The tables of benchmarks/run: what each is called, what its groups and columns are, and how its
rows are made. Used by benchmarks/run."""

import collections
import os

import figures
import harness
import table
from analysis import figures as analysis_figures
from harness import collect, first_line
from gui import figures as gui_figures
from live import figures as live_figures
from overhead import kinds, scale
from prebuilt import figures as prebuilt_figures
from processes import figures as process_figures
from programs import builds, measure, subjects
from programs import figures as program_figures
from recording import figures as recording_figures
from sampling import figures as sampling_figures
from sampling import samplers
from stream import figures as stream_figures
from symbols import figures as symbol_figures
from symbols import subject as symbol_subject

OVERHEAD_TITLES = {"bare": "bare", "pass": "pass", "hooks": "hooks",
                   "frame-pointer": "frame pointers", "preload": "prebuilt, preload",
                   "heaptrack": "heaptrack"}
OVERHEAD_GROUPS = {"pairs": figures.pairs, "instructions": figures.instructions,
                   "kinds": kinds.kinds, "resting": kinds.resting, "named": kinds.named, "calls": figures.calls,
                   "threads": figures.threads, "company": scale.company, "stacks": scale.stacks,
                   "mappings": scale.mappings, "memory": figures.memory, "tree": figures.tree,
                   "fixed": figures.fixed, "bound": figures.bound}
REDIS = ("redis-server", "redis-benchmark")
END = "<!-- end of table -->"

# what: in a few words, for --help; titles: {column: its title}; groups: {name: function that yields
# rows}; make(options, folder) returns rows, what could not be run, and what else to say of the run.
Table = collections.namedtuple("Table", "what titles groups make")


def marker(name):
    """The line in a page behind which the table stands."""
    return f"<!-- table: made by benchmarks/run{'' if name == 'overhead' else ' ' + name} -->"


def core_speed(bench, folder):
    if not bench.has("bare"):
        raise harness.RunFailed(f"no benchmarks in {folder}: run without --no-build")
    return figures.core_speed(bench)


def speed_remark(ghz):
    return (f"core at {ghz:.2f} GHz (targets for pairs are for {figures.REFERENCE_GHZ} GHz: "
            f"measured x {ghz / figures.REFERENCE_GHZ:.2f})")


def work_folder(folder):
    """Where real programs are built."""
    return os.path.realpath(os.path.join(folder, "programs"))


def real_programs(options, folder, wanted, names=None, targets=()):
    """The variants of the real programs that are there, and why others are not; none unless they
    are wanted."""
    if not wanted:
        return [], []
    try:
        return builds.build(folder, work_folder(folder), options.no_build, names, targets)
    except builds.debian.Unavailable as problem:
        return [], [f"real programs: {problem}"]


def overhead(options, folder):
    bench = harness.Bench(folder, options.quick)
    try:
        ghz = core_speed(bench, folder)
        rows = collect(OVERHEAD_GROUPS, options.only, bench.failures, bench, ghz)
    finally:
        bench.close()
    return rows, bench.failures, [compiler_of(folder), first_line("heaptrack", "--version"),
                                  first_line("valgrind", "--version"), speed_remark(ghz)]


def programs(options, folder):
    variants, missing = real_programs(options, folder, True)
    clock = harness.Bench(folder, options.quick)
    bench = measure.Programs(folder, work_folder(folder), variants, options.quick)
    bench.failures.extend(missing)
    try:
        bench.ghz = core_speed(clock, folder)
        real = subjects.real_programs(builds.sources(bench.work)) if variants else {}
        rows = collect(program_figures.GROUPS if variants else {}, variants and options.only,
                       bench.failures, bench, real)
    finally:
        bench.close()
        clock.close()
    tools = [first_line(name, "--version") for name in ("gcc", "clang", "valgrind")]
    return rows, bench.failures, tools + [speed_remark(bench.ghz), f"{bench.count} rounds"]


def prebuilt(options, folder):
    groups = prebuilt_figures.GROUPS
    wanted = {"programs", "instructions"} & set(options.only or groups)
    variants, missing = real_programs(options, folder, wanted, ("gcc-bare", "gcc-frame-pointer"),
                                      REDIS)
    bench = harness.Bench(folder, options.quick)
    real = measure.Programs(folder, work_folder(folder), variants, options.quick)
    try:
        ghz = core_speed(bench, folder)
        rows = collect(groups, options.only, bench.failures, prebuilt_figures.Prebuilt(bench, real))
    finally:
        bench.close()
        real.close()
    failures = [*missing, *prebuilt_figures.left_out(bench), *bench.failures, *real.failures]
    tools = [first_line(*command) for command in (
        ("heaptrack", "--version"), ("pkg-config", "--modversion", "libunwind"),
        (prebuilt_figures.subjects.PYTHON, "--version"), ("gcc", "--version"))]
    if tools[1]:
        tools[1] = "libunwind " + tools[1]
    return rows, failures, tools + [speed_remark(ghz), f"{real.count} rounds of whole programs"]


def sampling(options, folder):
    groups = sampling_figures.GROUPS
    variants, missing = real_programs(options, folder, "programs" in (options.only or groups),
                                      ("gcc-bare",), REDIS)
    bench = harness.Bench(folder, options.quick)
    real = measure.Programs(folder, work_folder(folder), variants, options.quick)
    try:
        ghz = core_speed(bench, folder)
        rows = collect(groups, options.only, bench.failures, sampling_figures.Sampling(bench, real))
    finally:
        bench.close()
        real.close()
    missing += [f"{sampler}: not installed" for sampler in samplers.SAMPLERS
                if not samplers.is_here(sampler)]
    tools = [compiler_of(folder)] + [
        first_line("dpkg-query", "-W", "-f=${Package} ${Version}\n", package)
        for package in ("libjemalloc2", "libgoogle-perftools4")]
    return rows, [*missing, *bench.failures, *real.failures], tools + [speed_remark(ghz)]


def recording(options, folder):
    bench = harness.Bench(folder, options.quick)
    try:
        ghz = core_speed(bench, folder)
        rows = collect(recording_figures.GROUPS, options.only, bench.failures, bench)
    finally:
        bench.close()
    return rows, bench.failures, [compiler_of(folder), first_line("heaptrack", "--version"),
                                  speed_remark(ghz)]


def symbols(options, folder):
    bench = harness.Bench(folder, options.quick)
    cache = os.environ.get("XDG_CACHE_HOME")
    os.environ["XDG_CACHE_HOME"] = bench.scratch
    try:
        rows = collect(symbol_figures.GROUPS, options.only, bench.failures, bench)
    finally:
        bench.close()
        del os.environ["XDG_CACHE_HOME"]
        if cache is not None:
            os.environ["XDG_CACHE_HOME"] = cache
    return rows, bench.failures, [compiler_of(folder), first_line("eu-readelf", "--version")]


def processes(options, folder):
    bench = harness.Bench(folder, options.quick)
    tree = None
    try:
        ghz = core_speed(bench, folder)
        tree = process_figures.Tree(bench, harness.heaptrack_library())
        rows = collect(process_figures.GROUPS, options.only, bench.failures, tree)
    finally:
        if tree is not None:
            tree.close()
        bench.close()
    tools = [first_line(name, "--version") for name in ("heaptrack", "bash", "make", "pgbench")]
    return rows, bench.failures, tools + [f"core at {ghz:.2f} GHz"]


def analysis(options, folder):
    bench = harness.Bench(folder, options.quick)
    try:
        ghz = core_speed(bench, folder)
        rows = collect(analysis_figures.GROUPS, options.only, bench.failures, bench)
    finally:
        bench.close()
    return rows, bench.failures, [compiler_of(folder), first_line("heaptrack_print", "--version"),
                                  speed_remark(ghz)]


def compiler_of(folder):
    """The compiler that the subjects were built with, in its own words."""
    try:
        with open(os.path.join(folder, "CMakeCache.txt"), encoding="utf-8") as cache:
            for line in cache:
                if line.startswith("CMAKE_C_COMPILER:"):
                    return first_line(line.split("=", 1)[1].strip(), "--version")
    except OSError:
        pass
    return "an unknown compiler"


def gui(options, folder):
    bench = harness.Bench(folder, options.quick)
    try:
        page = gui_figures.Gui(bench)
        page.install()
        rows = collect(gui_figures.GROUPS, options.only, bench.failures, page)
    finally:
        bench.close()
    return rows, bench.failures, [first_line("chromium", "--version"), first_line("node", "--version")]


def stream(options, folder):
    bench = harness.Bench(folder, options.quick)
    try:
        rows = collect(stream_figures.GROUPS, options.only, bench.failures, bench)
    finally:
        bench.close()
    return rows, bench.failures, [compiler_of(folder), first_line("openssl", "version")]


def live(options, folder):
    bench = harness.Bench(folder, options.quick)
    running = live_figures.Live(bench)
    try:
        ghz = core_speed(bench, folder)
        rows = collect(live_figures.GROUPS, options.only, bench.failures, running)
    finally:
        running.close()
        bench.close()
    return rows, bench.failures, [compiler_of(folder), first_line("heaptrack", "--version"),
                                  f"core at {ghz:.2f} GHz"]


# In the order in which `all` makes them: what changes most often first.
TABLES = {
    "overhead": Table("small subjects (the default)", OVERHEAD_TITLES, OVERHEAD_GROUPS, overhead),
    "sampling": Table("profiles by sampling, beside other allocators' samplers", samplers.TITLES,
                      sampling_figures.GROUPS, sampling),
    "prebuilt": Table("programs as they are", prebuilt_figures.TITLES, prebuilt_figures.GROUPS,
                      prebuilt),
    "programs": Table("real programs that are built for it", program_figures.TITLES,
                      program_figures.GROUPS, programs),
    "processes": Table("programs of many processes", process_figures.TITLES,
                       process_figures.GROUPS, processes),
    "recording": Table("recordings", recording_figures.TITLES, recording_figures.GROUPS, recording),
    "symbols": Table("the names of addresses", symbol_figures.TITLES, symbol_figures.GROUPS,
                     symbols),
    "analysis": Table("reports of recordings", analysis_figures.TITLES, analysis_figures.GROUPS,
                      analysis),
    "live": Table("programs that are attached to while they run", live_figures.TITLES,
                  live_figures.GROUPS, live),
    "gui": Table("the page of memtrace serve in Chromium", gui_figures.TITLES, gui_figures.GROUPS, gui),
    "stream": Table("recordings over the network", stream_figures.TITLES, stream_figures.GROUPS, stream),
}


def build_subjects(names, folder):
    """What these tables need besides the project itself, and what could not be had."""
    missing = []
    if {"programs", "prebuilt", "sampling"} & set(names):
        work = work_folder(folder)
        try:
            missing += builds.build(folder, work, False)[1]
            for name in ("btree", "pager"):
                prebuilt_figures.subjects.preprocessed(work, name)
        except builds.debian.Unavailable as problem:
            missing.append(f"real programs: {problem}")
    if "symbols" in names:
        harness.say("build: a program with 500 MB of debug information")
        symbol_subject.compressed(symbol_subject.make(
            os.path.join(folder, "benchmarks", "symbols")))
    return missing


def lines_of(name, rows, failures, facts):
    """What is printed of a table, and put into a page."""
    return ["; ".join(fact for fact in facts if fact) + ".", "",
            *table.markdown(rows, TABLES[name].titles), "", *table.summary(rows, failures)]
