#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the rules of the house that a compiler does not: lint.py CHECK [options].

CHECK: includes, circles, conditionals, exports, needed, waits, text, names, links,
documented, format, tidy.
"""
import argparse
import glob
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PARTS = ("runtime", "instrument", "analyze", "collect", "ask", "web", "stream", "top", "cli")
LONGEST_FILE = 800
LLVM = "14"

# The rooms of the analysis, each of which stands on those before it.
ANALYZE = ("base", "read", "symbol", "model", "profile", "replay", "window", "filter", "blocks", "rows", "report",
           "query", "export")

# The floors of the runtime below entry/, and those above it, each of which stands on all before it.
RUNTIME = ["runtime/" + floor for floor in ("machine", "base", "libc", "stack", "heap", "record", "entry", "follow", "reach")]

ABOVE_RECORD = RUNTIME[6:] + ["runtime/process"]

# Which folders a folder may include, itself apart.
MAY_INCLUDE = {
    "runtime/machine": ["runtime/base/compiler.h"],
    "runtime/base": ["runtime/machine"],
    "runtime/libc": ["runtime/machine", "runtime/base"],
    "runtime/stack": ["runtime/machine", "runtime/base", "runtime/libc/libc.h"],
    "runtime/heap": ["runtime/machine", "runtime/base"],
    "runtime/record": ["runtime/machine", "runtime/base", "runtime/libc/libc.h", "runtime/stack", "runtime/heap"],
    "runtime/entry": RUNTIME[:6],
    "runtime/follow": RUNTIME[:7],
    "runtime/reach": RUNTIME[:8],
    "runtime/process": RUNTIME[:9],
    "instrument/hooks": ["runtime/machine", "runtime/base", "runtime/stack", "runtime/heap", "runtime/record",
                         "runtime/entry"],
    "instrument/allocators": ["collect/allocators/allocmatch.h", "collect/allocators/allocrecorded.h",
                              "collect/allocators/allocspec.h"],
    "instrument/gcc": ["instrument/allocators", "instrument/assembly.h", "instrument/no_alloc.h", "instrument/pass_report.h",
                       "runtime/stack/frame_word.h"],
    "instrument/clang": ["instrument/allocators", "instrument/assembly.h", "instrument/no_alloc.h", "instrument/pass_report.h",
                         "runtime/stack/frame_word.h"],
    "instrument": [],
    "analyze/base": [],
    "analyze/read": ["analyze/base"],
    "analyze/symbol": ["analyze/base", "analyze/read/cachefolder.h", "analyze/read/filemap.h", "analyze/read/trust.h",
                       "analyze/read/varint.h"],
    **{"analyze/" + room: ["analyze/" + lower for lower in ANALYZE[:place]]
       for place, room in enumerate(ANALYZE) if place >= 3},
    "analyze/import": ["analyze/base", "analyze/read/packedin.h"],
    "collect/transform": ["collect/cull.h", "collect/mergetables.h", "collect/recordfile.h"] +
                         ["analyze/" + room for room in ANALYZE + ("import",)],
    "collect": ["analyze/" + room for room in ANALYZE + ("import",)],
    "ask": ["analyze", "collect"],
    "web/server": ["analyze", "collect", "ask"],
    "stream": ["analyze/base", "analyze/read", "analyze/rows/number.h", "collect/clock.h", "collect/gatherask.h",
               "collect/programask.h"],
    "top": ["analyze", "collect", "ask"],
    "cli": ["analyze", "collect", "ask", "web/server", "stream", "top"],
}

# The exported functions that every program may count on (those of libc are checked against libc).
INTERPOSED = """malloc calloc realloc free cfree posix_memalign aligned_alloc memalign
    valloc pvalloc malloc_usable_size mallopt mmap mmap64 munmap mremap shmat shmdt mlockall munlockall
    _Znwm _Znam _ZnwmRKSt9nothrow_t _ZnamRKSt9nothrow_t _ZnwmSt11align_val_t _ZnamSt11align_val_t
    _ZnwmSt11align_val_tRKSt9nothrow_t _ZnamSt11align_val_tRKSt9nothrow_t
    _ZdlPv _ZdaPv _ZdlPvm _ZdaPvm _ZdlPvRKSt9nothrow_t _ZdaPvRKSt9nothrow_t
    _ZdlPvSt11align_val_t _ZdaPvSt11align_val_t _ZdlPvmSt11align_val_t _ZdaPvmSt11align_val_t
    _ZdlPvSt11align_val_tRKSt9nothrow_t _ZdaPvSt11align_val_tRKSt9nothrow_t
    __cyg_profile_func_enter __cyg_profile_func_exit""".split()
# In newer C libraries only (C23), and those the hooks of the compiler and debuggers use.
BEYOND_LIBC = {"free_sized", "free_aligned_sized", "cfree", "__cyg_profile_func_enter",
               "__cyg_profile_func_exit", "_Unwind_Backtrace", "__asan_default_options",
               *("__%s_frame%s" % (verb, what) for verb in ("register", "deregister")
                 for what in ("", "_info", "_info_bases", "_table", "_info_table",
                              "_info_table_bases"))}


def run(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def sources(*patterns, parts=PARTS):
    files = []
    for part in parts:
        for pattern in patterns:
            files += glob.glob(os.path.join(ROOT, part, "**", pattern), recursive=True)
    paths = (os.path.relpath(f, ROOT) for f in files)
    return sorted(path for path in paths if "node_modules" not in path.split(os.sep))  # others' code


def lines_of(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read().split("\n")


def check_includes():
    wrong = []
    for path in sources("*.c", "*.cpp", "*.h", "*.S"):
        folder = os.path.dirname(path)
        own = [f for f in MAY_INCLUDE if folder == f or folder.startswith(f + "/")]
        if not own:
            wrong.append("%s: folder without a rule in lint.py" % path)
            continue
        allowed = MAY_INCLUDE[own[0]] + [own[0]]
        for number, line in enumerate(lines_of(path), 1):
            found = re.match(r'\s*#\s*include\s*"([^"]+)"', line)
            if not found:
                continue
            name = found.group(1)
            where = "%s:%d: " % (path, number)
            if name.startswith("memtrace/"):
                continue
            if name.split("/")[0] not in PARTS:
                wrong.append(where + '"%s": write the path from the root' % name)
            elif not any(name == a or name.startswith(a + "/") for a in allowed):
                wrong.append(where + "%s must not include %s" % (own[0], name))
            elif name.endswith("/thread.h") and own[0] not in (*ABOVE_RECORD, "instrument/hooks"):
                wrong.append(where + "only entry, what stands above it, and instrument see thread.h")
            elif own[0] == "collect" and name.startswith("collect/transform/"):
                wrong.append(where + "collect/transform stands on collect")
    return wrong + decoder_includes()


def decoder_includes():
    """A build without Zydis has none of the files that see its headers: memtrace_without_patching() leaves them out."""
    with open(os.path.join(ROOT, "cmake", "MemTraceAgent.cmake"), encoding="utf-8") as file:
        left_out = re.search(r"function\(memtrace_without_patching.*?REGEX \"(.*?)\"", file.read(), re.DOTALL).group(1)
    included = {path: set(re.findall(r'^#include ["<](.+?)[">]', "\n".join(lines_of(path)), re.MULTILINE))
                for path in sources("*.c", "*.h")}

    def sees(path, seen):
        seen.add(path)
        return any(name.startswith("Zydis/") or (name in included and name not in seen and sees(name, seen))
                   for name in included[path])

    return ["%s: includes Zydis, and is not left out by memtrace_without_patching()" % path for path in included
            if path.startswith("collect/") and path.endswith(".c") and sees(path, set())
            and not re.search(left_out.replace("\\\\", "\\"), "/" + path)]


# Modules that include each other, by whom it is right. A module is a .c with its .h.
CIRCLES = {
    # vtable.h is the inside of the session that query.h shows, for the tables alone
    ("analyze/query/query", "analyze/query/vtable"),
    # diffmatch.h is the inside of diff.h: how the two sides' paths find each other
    ("analyze/report/diff", "analyze/report/diffmatch"),
    # runfolder is the half of runwriter that names files; both would be too long for one
    ("collect/runfolder", "collect/runwriter"),
    # system calls, and what makes them allowed (sandbox), quick (clock) and told (text, proc)
    ("runtime/base/clock", "runtime/base/proc", "runtime/base/sandbox", "runtime/base/sys",
     "runtime/base/text"),
    # one event at a time: each of these is a step of it, and a thread's state passes through all
    ("runtime/entry/child", "runtime/entry/event", "runtime/entry/malloc", "runtime/entry/mapping",
     "runtime/entry/preexisting", "runtime/entry/quiescence", "runtime/entry/real",
     "runtime/entry/recording_switch", "runtime/entry/sampled_mode", "runtime/entry/switch",
     "runtime/entry/thread"),
    # machine.h chooses the header of one machine, whose code includes it
    ("runtime/machine/aarch64", "runtime/machine/arm", "runtime/machine/machine", "runtime/machine/mips64",
     "runtime/machine/riscv64", "runtime/machine/x86_64"),
    # the walk: too long for one file
    ("runtime/stack/path", "runtime/stack/recall", "runtime/stack/remembered", "runtime/stack/walk"),
    # hubparts.h is the inside of hub.h, for the parts of the hub alone
    ("web/server/hub", "web/server/hubparts"),
}


def included_modules():
    """Of each module, which others its files include."""
    files = sources("*.c", "*.h", "*.S")
    found = {os.path.splitext(path)[0]: set() for path in files}
    for path in files:
        module = os.path.splitext(path)[0]
        for line in lines_of(path):
            name = re.match(r'\s*#\s*include\s*"([^"]+)\.h"', line)
            if name and name.group(1) in found and name.group(1) != module:
                found[module].add(name.group(1))
    return found


def check_circles():
    """Two modules that need each other are one module in two places, or one of them is two."""
    included = included_modules()

    def reach(start):
        seen, waiting = set(), [start]
        while waiting:
            for name in included[waiting.pop()] - seen:
                seen.add(name)
                waiting.append(name)
        return seen

    reached = {module: reach(module) for module in included}
    circles = {tuple(sorted(other for other in reached[module] if module in reached[other]))
               for module in included if module in reached[module]}
    wrong = ["include each other: " + " ".join(circle) for circle in sorted(circles - set(CIRCLES))]
    return wrong + ["lint.py defends a circle that is none: " + " ".join(circle) for circle in sorted(set(CIRCLES) - circles)]


def check_conditionals():
    """#if on CPU, OS or compiler: only in runtime/machine/*.h. What users include may ask for the compiler."""
    machine = re.compile(r"\s*#\s*(if|ifdef|ifndef|elif)\b.*\b(__x86_64__|__i386__|__aarch64__|"
                         r"__arm__|__riscv|__mips\w*|_MIPS\w*|__MIPS\w*|__powerpc\w*|__s390x?__|__linux__|__APPLE__|__FreeBSD__|"
                         r"__GNUC__|__clang__|__GLIBC__|__GLIBC_PREREQ|__ANDROID__|_MSC_VER)")
    return ["%s:%d: %s" % (path, number, line.strip())
            for path in sources("*.c", "*.h", "*.S")
            if not (path.startswith("runtime/machine/") and path.endswith(".h"))
            for number, line in enumerate(lines_of(path), 1) if machine.match(line)]


def exported(library):
    names = set()
    for line in run("nm", "-D", "--defined-only", library).stdout.splitlines():
        names.add(line.split()[-1].split("@")[0])
    return names


def check_exports(library):
    loaded = run("ldd", library).stdout
    libc = re.search(r"(/\S*libc\.so\.6)", loaded)
    if not libc:
        return ["no libc.so.6 in ldd's output: " + loaded]
    known = exported(libc.group(1)) | BEYOND_LIBC
    names = exported(library)
    wrong = ["exported, but neither libc's nor an operator nor memtrace_*: " + name
             for name in sorted(names)
             if name not in known and not re.match(r"memtrace_|_Zn[wa]m|_Zd[la]Pv", name)]
    return wrong + ["not exported: " + name for name in INTERPOSED if name not in names]


def check_needed(library):
    dynamic = run("readelf", "-dW", library).stdout
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)
    wrong = ["needs " + name for name in needed
             if name != "libc.so.6" and not name.startswith("ld-linux")]
    if "[libmemtrace.so.0]" not in dynamic:
        wrong.append("SONAME is not libmemtrace.so.0")
    if "TEXTREL" in dynamic:
        wrong.append("has text relocations")
    if re.search(r"\b(RPATH|RUNPATH)\b", dynamic):
        wrong.append("has a run path")
    return wrong


def check_waits(library):
    """What runs in the program neither ends it nor waits for another thread; the loader's lock is
    taken where libraries are opened, nowhere else. What runs in the command does not wait by the
    clock on the wall, which may be set."""
    forbidden = re.compile(r"abort|_*assert\w*|__stack_chk_fail|_?_?exit|raise|v?syslog|err[x]?|"
                           r"(pthread|mtx|sem|cnd)_\w*(lock|wait|join|timed)\w*|pause|sleep|usleep|"
                           r"nanosleep|poll|select|dl_iterate_phdr|dlopen|dlclose")
    undefined = run("nm", "-D", "--undefined-only", library).stdout.split()
    names = {name.split("@")[0] for name in undefined}
    wrong = ["uses " + name for name in sorted(names)
             if forbidden.fullmatch(name) and name != "dl_iterate_phdr"]
    calls = re.compile(r"\b(abort|assert|dl_iterate_phdr)\s*\(")
    for path in sources("*.c", "*.h", "*.S", parts=("runtime", "instrument/hooks")):
        found = {call for line in lines_of(path) for call in calls.findall(line)}
        found -= {"dl_iterate_phdr"} if path == "runtime/libc/objects.c" else set()
        wrong += ["%s: calls %s" % (path, call) for call in sorted(found)]
    for path in sources("*.c", parts=("analyze", "ask", "collect", "stream", "cli", "top", "web/server")):
        text = "\n".join(lines_of(path))
        wrong += ["%s: pthread_cond_timedwait() without timedwait_until()" % path
                  for _ in range(text.count("pthread_cond_timedwait(") - text.count("timedwait_until("))
                  if path != "analyze/base/timedwait.c"]
    return wrong


# What the runtime calls by name is whoever has that name first: a library that is preloaded (libfaketime has
# clocks), or the program itself (shells have a getenv of their own). So each name has its reason. What matters is
# had from the kernel (base/sys.h, base/clock.h), by runtime/entry/real.h, or out of the C library's own table.
CALLED = {
    "only reads and writes the memory that it is given; compilers call these by themselves":
        "memchr memcmp memcpy memmove memset strchr strcmp strlen strncmp strstr sigaddset sigemptyset "
        "posix_spawn_file_actions_init posix_spawn_file_actions_addclose posix_spawn_file_actions_adddup2 "
        "posix_spawn_file_actions_destroy posix_spawnattr_init posix_spawnattr_setflags "
        "posix_spawnattr_setsigdefault posix_spawnattr_setsigmask posix_spawnattr_destroy",
    "data of the C library's and the loader's":
        "environ __environ _environ ___environ __libc_stack_end _r_debug __errno_location getauxval "
        "gnu_get_libc_version __libc_current_sigrtmin",
    "of the loader, which alone knows: objects, and what is next":
        "_dl_find_object dladdr dladdr1 dlsym dlerror",
    "called once, at the start, before the program's main":
        "__cxa_atexit __cxa_at_quick_exit at_quick_exit pthread_key_create",
    "of a thread of the C library's own":
        "pthread_self pthread_setspecific pthread_attr_init pthread_attr_getstack pthread_attr_getstacksize "
        "pthread_getattr_np", # (musl's allocates nothing)
    "what pthread_cleanup_push() and _pop() are made of: a cancelled thread is the C library's to unwind":
        "__sigsetjmp __pthread_register_cancel __pthread_unregister_cancel __pthread_unwind_next "
        "_pthread_cleanup_push _pthread_cleanup_pop",
    "looked at, never called: whether a sanitizer or another runtime is there; the user's settings":
        "__asan_init __hwasan_init __lsan_init __msan_init __tsan_init caml_frametable memtrace_defaults",
    "of each shared library, from the compiler":
        "_ITM_deregisterTMCloneTable _ITM_registerTMCloneTable __gmon_start__ __cxa_finalize",
}


def check_calls(library):
    """The runtime's undefined symbols are allowed one by one."""
    allowed = {name for names in CALLED.values() for name in names.split()}
    undefined = {line.split()[-1].split("@")[0]
                 for line in run("nm", "-D", "--undefined-only", library).stdout.splitlines()}
    if not undefined:
        return ["no undefined symbol is seen in " + library]
    return ["%s calls %s, which may be interposed: CALLED in tests/lint/lint.py" %
            (os.path.basename(library), name) for name in sorted(undefined - allowed)]


def check_text():
    """SPDX lines, file lengths, leftovers, syntax of shell scripts."""
    files = sources("*.c", "*.h", "*.S", "*.cpp", "*.py", "*.sh", "*.ts", "CMakeLists.txt",
                    parts=PARTS + ("tests", "benchmarks", "examples", "include"))
    files += ["CMakeLists.txt"] + sources("*", parts=("scripts", ".ci"))
    files += sources("*.cmake", parts=("cmake",))
    leftover = re.compile(r"\b(T[O]DO|F[I]XME|X[X]X|H[A]CK|W[I]P)\b")
    wrong = []
    for path in files:
        if not os.path.isfile(os.path.join(ROOT, path)):
            continue
        lines = lines_of(path)
        if "SPDX-License-Identifier: MIT" not in "\n".join(lines[:3]):
            wrong.append(path + ": no SPDX line")
        if len(lines) - 1 > LONGEST_FILE:
            wrong.append("%s: %d lines, the limit is %d" % (path, len(lines) - 1, LONGEST_FILE))
        wrong += ["%s:%d: leftover: %s" % (path, number, line.strip())
                  for number, line in enumerate(lines, 1) if leftover.search(line)]
        if lines[0].startswith("#!") and re.search(r"\b(ba)?sh$", lines[0]):
            shell = lines[0][2:].split("/")[-1].split()[-1]
            done = run(shell, "-n", os.path.join(ROOT, path))
            if done.returncode != 0:
                wrong.append(done.stdout)
    return wrong


def check_names():
    """File = module = prefix: base names are unique within each of the two programs."""
    wrong = []
    for program in (("runtime", "instrument"), ("analyze", "ask", "collect", "stream", "cli")):
        places = {}
        for path in sources("*.c", "*.S", parts=program):
            places.setdefault(os.path.splitext(os.path.basename(path))[0], []).append(path)
        # A subcommand may be called like the part it shows: cli/symbolize.c.
        wrong += ["%s: %s" % (stem, ", ".join(found)) for stem, found in sorted(places.items())
                  if len([p for p in found if not p.startswith("cli/")]) > 1]
    return wrong


def headings_of(page):
    """The headings as they are named in links: as GitHub does."""
    with open(page, encoding="utf-8") as file:
        text = re.sub(r"^```.*?^```", "", file.read(), flags=re.DOTALL | re.MULTILINE)
    titles = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title) for title in re.findall(r"^#+ +(.*)$", text, re.MULTILINE)]
    return {re.sub(r"[^\w -]", "", title.strip().lower()).replace(" ", "-") for title in titles}


def check_links():
    wrong = []
    pages = glob.glob(os.path.join(ROOT, "*.md")) + glob.glob(os.path.join(ROOT, "docs", "*.md"))
    pages += glob.glob(os.path.join(ROOT, "*", "README.md"))
    for page in sorted(set(pages)):
        with open(page, encoding="utf-8") as file:
            text = re.sub(r"```.*?```", "", file.read(), flags=re.DOTALL)
        for target, place in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]+))?[^)]*\)", text):
            path = os.path.join(os.path.dirname(page), target) if target else page
            if "://" in target:
                continue
            if not os.path.exists(path) or place and path.endswith(".md") and place not in headings_of(path):
                wrong.append("%s: %s#%s is not there" % (os.path.relpath(page, ROOT), target, place))
    return wrong


def options_in(text):
    """The long options a text names, but for those of linkers."""
    return set(re.findall(r"(?<![\w,-])--[a-z][a-z-]*[a-z](?![\w-])", text)) - {"--help", "--no-as-needed"}


def parts_of_manual(text):
    parts = re.split(r"^\.SH (?:OPTIONS OF )?(.*)$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


def stale_options(pages, known, filters):
    """Options that a page names and no command has, and a part of the man page that names not just
    those of its command. known: {command: options of its own}"""
    every = set().union(*known.values()) | filters | {"--version"} | {"--base-" + name[2:] for name in filters}
    wrong = ["%s knows %s, which no command does" % (page, option) for page, text in pages.items()
             if page.startswith("docs/") for option in options_in(text) - every]
    for title, part in parts_of_manual(pages["docs/memtrace.1"]).items():
        for option in options_in(part) ^ known.get(title.lower(), options_in(part)):
            wrong.append("docs/memtrace.1 and --help of %s do not agree on %s" % (title.lower(), option))
    return wrong


def check_documented(command, library):
    """What --help and the library know must be in docs/, the man page and the completion, and what those name must be
    there."""
    def text(name):
        if not os.path.exists(os.path.join(ROOT, name)):
            return ""
        with open(os.path.join(ROOT, name), encoding="utf-8") as file:
            return plain(file.read())

    def plain(roff):
        return re.sub(r"\\f[BIRP]", "", roff.replace("\\-", "-"))

    wrong = []
    known = {}
    pages = {name: text(name) for name in ("docs/memtrace.1", "docs/environment.md")}
    completed = run(command, "complete", "--", "").stdout
    # Many commands take them; one page and one part of the manual explain them.
    filters = options_in(parts_of_manual(pages["docs/memtrace.1"]).get("FILTERS", ""))
    pages["docs/filters.md"] = text("docs/filters.md")
    wrong += ["docs/filters.md does not know " + option for option in filters
              if option not in pages["docs/filters.md"]]
    commands = run(command, "--help").stdout.split("commands:")[1].split("examples:")[0]
    for name in re.findall(r"^  (\w+) ", commands, re.MULTILINE):
        page = "docs/%s.md" % name
        pages[page] = text(page)
        if not pages[page]:
            wrong.append(page + " is missing")
            continue
        wrong += ["%s does not know the command %s" % (where, name)
                  for where, known_there in (("docs/memtrace.1", pages["docs/memtrace.1"]), ("its completion", completed))
                  if name not in known_there]
        told = options_in(run(command, name, "--help").stdout)
        offered = set(re.findall(r"^(--[a-z-]+)\t.+$", run(command, "complete", "--", name, "-").stdout, re.MULTILINE))
        rows = set(re.findall(r"^ {2,8}(?:-\w, )?(--[a-z-]+)", run(command, name, "--help").stdout, re.MULTILINE))
        # Of a table that stands there with a prefix, help tells the prefix.
        wrong += ["the completion of %s and its --help do not agree on %s" % (name, option)
                  for option in sorted((rows - offered) | (offered - told) - {"--help"}) if not option.startswith("--base-")]
        takes_filters = filters <= told and "filters.md" in pages[page]
        known[name] = told - filters if takes_filters else told
        wrong += ["%s does not know %s of %s" % (page, option, name)
                  for option in known[name] if option not in pages[page]]
    made = pages["docs/memtrace.1"].split("made by scripts/generate from here\n")[-1].split('.\\" to here')[0]
    if plain(run(command, "manual").stdout) != made:
        wrong.append("docs/memtrace.1 is not what the command says: run scripts/generate")
    with open(os.path.join(ROOT, "web", "openapi.json"), encoding="utf-8") as file:
        if run(command, "openapi").stdout != file.read():
            wrong.append("web/openapi.json is not what the command says: run scripts/generate")
    variables = set(re.findall(r"\bMEMTRACE_[A-Z_]+\b", run("strings", "-d", library).stdout))
    told = set(re.findall(r"\bMEMTRACE_[A-Z_]+\b", pages["docs/environment.md"]))
    wrong += ["docs/environment.md does not know " + name for name in variables - told]
    wrong += ["docs/environment.md knows %s, which the library does not" % name
              for name in told - variables]
    return sorted(wrong + stale_options(pages, known, filters))


def check_benchmarks():
    """What docs/performance.md says of benchmarks/run is what it takes, and has each table."""
    told = run("env", "COLUMNS=9999", sys.executable, os.path.join(ROOT, "benchmarks/run"),
               "--help").stdout
    page = "\n".join(lines_of("docs/performance.md"))
    tables = re.search(r"\{([a-z,]+)\}", told).group(1).split(",")
    groups = dict(re.findall(r"(\w+): ([\w, ]+)(?:;|$)",
                             re.search(r"may be repeated: (.*)", told).group(1)))
    known = {group for names in groups.values() for group in names.split(", ")}
    # The one without a word is overhead's.
    wanted = {name for name in groups if name != "overhead"} | {""}
    markers = set(re.findall(r"<!-- table: made by benchmarks/run ?(\w*) -->", page))
    wrong = ["no table " + (name or "overhead") for name in wanted - markers]
    wrong += ["the table %s is none" % name for name in markers - wanted]
    wrong += ["nothing of benchmarks/run " + name for name in tables
              if name != "overhead" and not re.search(r"^benchmarks/run %s\b" % name, page, re.M)]
    wrong += ["nothing of " + option for option in options_in(told) if option not in page]
    wrong += ["benchmarks/run has no " + word
              for word in re.findall(r"benchmarks/run ([a-z]\w*)", page) if word not in tables]
    wrong += ["benchmarks/run has no %s" % word for word in re.findall(
        r"^benchmarks/run .*?(--[a-z-]+)", page, re.M) if word not in options_in(told)]
    wrong += ["benchmarks/run has no group " + group
              for group in re.findall(r"--only (\w+)", page) if group not in known]
    return sorted("docs/performance.md: " + one for one in set(wrong))


def need_version(tool):
    """The rules are those of one version: newer ones know others, and set some lines otherwise."""
    version = subprocess.run([tool, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout
    if re.search(r"version (\d+)", version).group(1) != LLVM:
        print("skipped: %s is not of LLVM %s, whose rules these are" % (tool, LLVM))
        sys.exit(77)


def check_format():
    need_version("clang-format")
    files = sources("*.c", "*.h", "*.cpp", parts=PARTS + ("tests", "benchmarks", "examples",
                                                          "include"))
    done = subprocess.run(["clang-format", "--dry-run", "-Werror"] + files, cwd=ROOT,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return [line for line in done.stdout.splitlines() if "error:" in line or "warning:" in line]


def check_tidy(build):
    """Of what is one machine's, with headers of its C library, this machine's alone."""
    need_version("clang-tidy")
    others = re.compile(r"/attachmachine_(?!%s\.c$)" % re.escape(os.uname().machine))
    files = [path for path in sources("*.c") if not others.search(path)]
    jobs = subprocess.run(
        ["xargs", "-P", str(os.cpu_count() or 1), "-n", "8", "clang-tidy", "--quiet", "-p", build],
        input="\n".join(files), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True)
    found = [line for line in jobs.stdout.splitlines() if re.search(r"(warning|error):", line)]
    if jobs.returncode != 0 and not found:
        found = [jobs.stdout[-2000:]]
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("check")
    parser.add_argument("--library")
    parser.add_argument("--build")
    parser.add_argument("--command")
    options = parser.parse_args()
    check = globals()["check_" + options.check]
    if options.check in ("calls", "exports", "needed", "waits"):
        wrong = check(options.library)
    elif options.check == "documented":
        wrong = check(options.command, options.library)
    elif options.check == "tidy":
        wrong = check(options.build)
    else:
        wrong = check()
    for line in wrong:
        print(line)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
