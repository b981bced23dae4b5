/* SPDX-License-Identifier: MIT */
/*
 * flags.c: `memtrace flags`, the compiler and linker flags of memtrace_instrument() for build
 * systems other than CMake (cmake/MemTraceInstrument.cmake is their other home).
 *
 * Paths are found from the place of the command itself, so that a moved installation works.
 */
#include "analyze/base/job.h"
#include "analyze/rows/safetext.h"
#include "analyze/rows/table.h"
#include "analyze/symbol/symbol.h"
#include "cli/cli.h"
#include "cli/target.h"
#include "cli/variables.h"
#include "collect/allocators/allocrecorded.h"

#include <limits.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- The compiler's plugin ---- */

struct plugin {
    bool missing; /* the compiler's command is not there */
    bool gcc;     /* else Clang; GCC has plugins for C, C++, Fortran, Clang for its own languages */
    unsigned major;
    char triplet[64]; /* of another machine that it makes code for, "aarch64-linux-gnu"; else "" */
    char file[PATH_MAX];
    char reason[PATH_MAX + 256]; /* a line for the user: which plugin it is, or why there is none */
};

/* The exit statuses of a shell that cannot start a command: no program, not found. */
enum { NO_PROGRAM = 126, NOT_FOUND = 127 };

/* The first version of Clang that the plugin is written for. */
enum { OLDEST_CLANG = 14 };

/* A version in front of the next colon or line end; 0: a macro that was not replaced. */
static unsigned version_at(const char *text) {
    char *end;
    unsigned long version = strtoul(text, &end, 10);
    return end > text && version < 1000 ? (unsigned)version : 0;
}

/* Asks the compiler who it is, by the macros it predefines: options that print a version differ,
 * and wrappers do not know them. `command` is what $CC may be, words of a shell: "gcc-12", "ccache
 * gcc -m32"; it is run. False: neither GCC nor Clang, or missing. */
static bool plugin_identify(struct plugin *plugin, const char *command) {
    FILE *answer = popen(job_text("printf '%s\\n' | %s -E -P -x c - 2>/dev/null",
                                  "memtrace:__clang_major__:__GNUC__", command),
                         "r");
    char line[256];
    unsigned clang = 0, gnu = 0;
    int status = 0;
    while (answer && fgets(line, sizeof(line), answer)) {
        const char *first = strchr(line, ':');
        const char *second = first ? strchr(first + 1, ':') : NULL;
        if (strncmp(line, "memtrace:", strlen("memtrace:")) != 0 || !second) {
            continue;
        }
        clang = version_at(first + 1);
        gnu = version_at(second + 1);
    }
    if (answer) {
        status = pclose(answer);
    }
    status = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    plugin->missing = status == NO_PROGRAM || status == NOT_FOUND;
    plugin->gcc = clang == 0;
    plugin->major = clang ? clang : gnu;
    snprintf(plugin->reason, sizeof(plugin->reason), "\"%.200s\" is %s", command,
             plugin->missing ? "not a command" : "neither GCC nor Clang");
    return plugin->major != 0;
}

/* The words of the machine that the compiler makes code for, as folders have them:
 * aarch64-unknown-linux-gnu and aarch64-linux-gnu are the same. Empty if it is this machine. */
static void plugin_machine(struct plugin *plugin, const char *command) {
    static const char *const vendors[] = {"-unknown-", "-pc-"};
    struct utsname here;
    FILE *answer = popen(job_text("%s -dumpmachine 2>/dev/null", command), "r");
    if (answer && !fgets(plugin->triplet, sizeof(plugin->triplet), answer)) {
        plugin->triplet[0] = '\0';
    }
    if (answer) {
        pclose(answer);
    }
    plugin->triplet[strcspn(plugin->triplet, "\n")] = '\0';
    for (size_t i = 0; !plugin->gcc && i < sizeof(vendors) / sizeof(vendors[0]); i++) {
        char *vendor = strstr(plugin->triplet, vendors[i]);
        if (vendor) {
            memmove(vendor, vendor + strlen(vendors[i]) - 1,
                    strlen(vendor + strlen(vendors[i]) - 1) + 1);
        }
    }
    size_t machine = strcspn(plugin->triplet, "-");
    if (uname(&here) != 0) {
        return;
    }
    /* What Clang calls the machine with -m32: none to be cross-compiled for. */
    bool narrow = strcmp(here.machine, "x86_64") == 0 && strncmp(plugin->triplet, "i386-", 5) == 0;
    if (narrow ||
        (machine == strlen(here.machine) && strncmp(plugin->triplet, here.machine, machine) == 0)) {
        plugin->triplet[0] = '\0';
    }
}

/* Compiles an empty program: another build of the same version may refuse the plugin. */
static bool plugin_is_taken(const struct plugin *plugin, const char *command) {
    char *option = job_text("%s%s", plugin->gcc ? "-fplugin=" : "-fpass-plugin=", plugin->file);
    char *script = job_text("echo 'int main(void) { return 0; }' |"
                            "%s \"$1\" -S -x c - -o /dev/null >/dev/null 2>&1",
                            command);
    char *arguments[] = {"sh", "-c", script, "sh", option, NULL};
    int status;
    pid_t pid;
    return posix_spawn(&pid, "/bin/sh", NULL, NULL, arguments, environ) == 0 &&
           waitpid(pid, &status, 0) == pid && status == 0;
}

/* Finds the plugin for this compiler and its major version below `folder`, gcc-12/memtrace.so or
 * aarch64-linux-gnu-gcc-12/memtrace.so, and tries it. False: there is none. */
static bool plugin_find(struct plugin *plugin, const char *command, const char *folder) {
    char *reason = plugin->reason;
    size_t room = sizeof(plugin->reason);
    const char *name = plugin->gcc ? "GCC" : "Clang";
    /* Clang is the same for all machines. */
    const char *cross = plugin->gcc ? plugin->triplet : "", *dash = *cross ? "-" : "";
    int length = snprintf(plugin->file, sizeof(plugin->file), "%s/%s%s%s-%u/memtrace.so", folder,
                          cross, dash, plugin->gcc ? "gcc" : "clang", plugin->major);
    if (length < 0 || (size_t)length >= sizeof(plugin->file) || access(plugin->file, R_OK) != 0) {
        if (!plugin->gcc && plugin->major < OLDEST_CLANG) {
            snprintf(reason, room, "Clang %u is too old for a plugin, Clang %d and newer have one",
                     plugin->major, OLDEST_CLANG);
        } else {
            snprintf(reason, room,
                     "no plugin for %s%s%s %u in %s: install %s-%u%s%s%s and build MemTrace again",
                     cross, *cross ? " " : "", name, plugin->major, folder,
                     plugin->gcc ? "gcc" : "llvm", plugin->major,
                     plugin->gcc ? "-plugin-dev" : "-dev", dash, cross);
        }
        return false;
    }
    if (!plugin_is_taken(plugin, command)) {
        snprintf(reason, room, "\"%.200s\" does not take %s", command, plugin->file);
        return false;
    }
    snprintf(reason, room, "plugin for %s %u", name, plugin->major);
    return true;
}

/* ---- Modes and places ---- */

struct mode {
    const char *name;
    const char *why;
    const struct flag {
        const char *text;
        const char *purpose;
        bool is_usual; /* not for compilers that is_lean() tells of */
    } flags[3];
};

enum { FRAME_POINTER, HOOKS, PASS, MODES };

#define TABLES "-fasynchronous-unwind-tables"

static const struct mode modes[MODES] = {
    [FRAME_POINTER] =
        {"frame-pointer",
         "nothing is added to calls, the stack is read when memory is allocated",
         {{"-fno-omit-frame-pointer", "functions keep a frame pointer, so stacks are read fast"},
          {"-mno-omit-leaf-frame-pointer", "functions that call nothing keep it, too", true}}},
    [HOOKS] = {"hooks",
               "every function reports its entry and exit, which costs about 70%",
               {{"-finstrument-functions", "functions report their entry and exit"},
                {"-fno-omit-frame-pointer", "functions keep a frame pointer"}}},
    [PASS] = {"pass",
              "functions that may allocate get one store, by a plugin of the compiler",
              {{TABLES, "every function has unwind information"}}},
};

/* What auto takes where there is a plugin (docs/performance.md has the figures). */
static const int preferred = PASS;

/* The installation the command belongs to; empty strings where the system finds things itself. */
struct places {
    char library_dir[PATH_MAX];
    char include_dir[PATH_MAX];
    char plugin_dir[PATH_MAX]; /* holds gcc-12/memtrace.so and the like */
    char cmake_file[PATH_MAX]; /* for CMAKE_PROJECT_TOP_LEVEL_INCLUDES */
};

static bool is_system_dir(const char *path) {
    static const char *const known[] = {"/usr/include", "/usr/lib", "/lib",
                                        "/usr/" MEMTRACE_MULTIARCH, "/" MEMTRACE_MULTIARCH};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strcmp(path, known[i]) == 0) {
            return true;
        }
    }
    return false;
}

static void find_places(struct places *places) {
    target_need_folder((const char *[]){MEMTRACE_LIBDIR, "../lib", "../" MEMTRACE_MULTIARCH, NULL},
                       "libmemtrace.so", places->library_dir);
    target_need_folder((const char *[]){MEMTRACE_INCLUDEDIR, "../include", NULL},
                       "memtrace/memtrace.h", places->include_dir);
    snprintf(places->plugin_dir, sizeof(places->plugin_dir), "%.*s/memtrace", PATH_MAX - 16,
             places->library_dir);
    snprintf(places->cmake_file, sizeof(places->cmake_file), "%.*s/cmake/MemTrace/%s",
             PATH_MAX - 64, places->library_dir, "MemTraceProject.cmake");
    if (is_system_dir(places->library_dir)) {
        places->library_dir[0] = '\0';
    }
    if (is_system_dir(places->include_dir)) {
        places->include_dir[0] = '\0';
    }
}

static bool explained; /* what each is for is wanted */
static bool quoted;    /* a word was printed that $(...) alone would break */

/* One flag: a word on the line, or, explained, a line of its own. */
static void print_flag(const char *prefix, const char *path, const char *purpose) {
    static bool first = true;
    if (!explained && !first) {
        putchar(' ');
    }
    first = false;
    fputs(prefix, stdout);
    if (path[0] != '\0') {
        quoted |= shellword_put(stdout, path);
    }
    if (explained) {
        printf("\n    %s\n", purpose);
    }
}

/* What was decided. */
struct plan {
    const struct mode *mode;
    const char *reason; /* NULL: as asked */
    struct plugin plugin;
    const char *allocators; /* specifications, one a line; NULL: none */
};

static const char *plugin_option(const struct plan *plan) {
    return plan->plugin.gcc ? "-fplugin=" : "-fpass-plugin=";
}

/* Whether compilers for that machine leave unwind tables out, unless they are asked for, and have
 * no option by which functions that call nothing keep a frame pointer. */
static bool is_lean(const struct plan *plan) {
    static const char *const lean[] = {"riscv", "mips", "arm"};
    struct utsname here = {0};
    const char *machine = plan->plugin.triplet;
    if (machine[0] == '\0' && uname(&here) == 0) {
        machine = here.machine;
    }
    for (size_t i = 0; i < sizeof(lean) / sizeof(lean[0]); i++) {
        if (strncmp(machine, lean[i], strlen(lean[i])) == 0) {
            return true;
        }
    }
    return false;
}

/* One for each specification. Clang reads -mllvm before it loads a pass plugin, but after any other
 * plugin. */
static void print_allocators(const struct plan *plan) {
    const char *name =
        plan->plugin.gcc ? "-fplugin-arg-memtrace-allocators=" : "-mllvm -memtrace-allocators=";
    char *state = NULL;
    if (!plan->plugin.gcc && plan->allocators) {
        print_flag("-fplugin=", plan->plugin.file, "makes the next ones known");
    }
    for (char *line = plan->allocators ? strtok_r(job_string(plan->allocators), "\n", &state)
                                       : NULL;
         line; line = strtok_r(NULL, "\n", &state)) {
        print_flag(name, line, "this function reports what it allocates");
    }
}

static void print_cflags(const struct plan *plan, const struct places *places) {
    if (places->include_dir[0]) {
        print_flag("-I", places->include_dir, "finds memtrace/memtrace.h");
    }
    if (plan->mode == &modes[PASS]) {
        print_flag(plugin_option(plan), plan->plugin.file,
                   "the plugin, for exactly this compiler and version");
    }
    print_allocators(plan);
    bool lean = is_lean(plan);
    for (const struct flag *flag = plan->mode->flags; flag->text; flag++) {
        if (!lean || !flag->is_usual) {
            print_flag(flag->text, "", flag->purpose);
        }
    }
    if (lean && plan->mode != &modes[PASS]) {
        print_flag(TABLES, "", "every function has unwind information");
    }
}

static void print_libs(const struct plan *plan, const struct places *places) {
    if (plan->mode == &modes[PASS] && plan->plugin.gcc) {
        print_flag(plugin_option(plan), plan->plugin.file,
                   "with -flto the code is made when linking");
    }
    if (places->library_dir[0]) {
        print_flag("-L", places->library_dir, "finds libmemtrace.so when linking");
        /* -Wl, would split a path at its commas. */
        print_flag(strchr(places->library_dir, ',') ? "-Xlinker -rpath -Xlinker " : "-Wl,-rpath,",
                   places->library_dir, "finds it when the program starts");
    }
    print_flag("-Wl,--push-state,--no-as-needed", "",
               "keeps the library though nothing refers to it");
    print_flag("-lmemtrace", "", "the runtime; put it before other libraries");
    print_flag("-Wl,--pop-state", "", "ends --no-as-needed");
}

struct request {
    const char *mode;
    const char *compiler;
    bool cflags, libs, explain, cmake, gdb, list;
    const char *allocators; /* specifications, one a line */
};

static void flags_decide(struct plan *plan, const struct request *request, struct places *places) {
    const char *compiler = request->compiler ? request->compiler : getenv("CC");
    const char *triplet = plan->plugin.triplet;
    bool is_auto = strcmp(request->mode, "auto") == 0;
    for (size_t i = 0; i < MODES && !plan->mode; i++) {
        if (strcmp(request->mode, modes[i].name) == 0) {
            plan->mode = &modes[i];
        }
    }
    if (compiler && !*compiler) {
        compiler = NULL;
    }
    if (!compiler && plan->mode == &modes[PASS]) {
        compiler = "cc";
    }
    if (compiler && !plugin_identify(&plan->plugin, compiler) && plan->plugin.missing) {
        cli_usage("flags", "%s", plan->plugin.reason);
    }
    if (plan->plugin.major) {
        plugin_machine(&plan->plugin, compiler);
    }
    if (triplet[0]) { /* the library for another machine, of this installation */
        char system[PATH_MAX];
        if (!target_library_folder(triplet, places->library_dir)) {
            job_fail("libmemtrace.so for %s is not in %s: build MemTrace with this compiler, too, "
                     "and install it there (docs/cmake.md)",
                     triplet, places->library_dir);
        }
        snprintf(system, sizeof(system), "/usr/lib/%s", triplet);
        if (strcmp(places->library_dir, system) == 0) {
            places->library_dir[0] = '\0';
        }
    }

    if (is_auto) {
        /* The flags must suit whatever compiler they are given to, unless one was named. */
        bool has_plugin = compiler && plan->plugin.major &&
                          plugin_find(&plan->plugin, compiler, places->plugin_dir);
        plan->mode = &modes[has_plugin ? preferred : FRAME_POINTER];
        plan->reason = compiler ? plan->plugin.reason : "no compiler was named by --compiler or CC";
    } else if (plan->mode == &modes[PASS]) {
        if (!plan->plugin.major || !plugin_find(&plan->plugin, compiler, places->plugin_dir)) {
            job_fail("mode pass: %s", plan->plugin.reason);
        }
        plan->reason = plan->plugin.reason;
    }
}

/* What else the plugin understands. */
static void explain_plugin(const struct plan *plan) {
    static const char *const options[][2] = {
        {"no-alloc=f,g", "these functions never allocate: calling them needs no store"},
        {"exclude-functions=f,g", "these functions are left out"},
        {"exclude-files=a,b", "functions of files with these parts in their paths are left out"},
        {"allocators=SPECIFICATION", "this function allocates, and reports it; once for each"},
    };
    puts("\nNot printed above, for when you need it:");
    if (!plan->plugin.gcc) {
        puts("-fplugin=FILE, the same file\n    makes the next ones known");
    }
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        printf("%s%s\n    %s\n", plan->plugin.gcc ? "-fplugin-arg-memtrace-" : "-mllvm -memtrace-",
               options[i][0], options[i][1]);
    }
    puts("MEMTRACE_PASS_REPORT=FILE, in the environment of the compiler\n"
         "    appends a line a function: instrumented or left out, why, its name, file and line,\n"
         "    the stores and the calls that need one");
}

#define IN(member) OPTION_IN(struct request, member)

static const struct option options[] = {
    {"cflags", 0, NULL, "flags for the compiler", OPTION_FLAG, IN(cflags)},
    {"libs", 0, NULL, "flags for the linker, run path included", OPTION_FLAG, IN(libs)},
    {"explain", 0, NULL, "the same, one a line, with what each is for", OPTION_FLAG, IN(explain)},
    {"cmake", 0, NULL, "the file that makes CMake (3.24 or newer) instrument a whole project",
     OPTION_FLAG, IN(cmake)},
    {"gdb", 0, NULL, "the file of commands for gdb: gdb -x \"$(memtrace flags --gdb)\" app",
     OPTION_FLAG, IN(gdb)},
    {"alloc", 0, "SPECIFICATION",
     "pass: this function of the program allocates, and reports it: 'my_alloc(size=1)=alloc', "
     "auto, "
     "@FILE; more than once",
     OPTION_CALL, IN(allocators), .call = variables_join_alloc},
    {"list-allocators", 0, NULL,
     "which functions of FILEs, programs or objects built in mode pass, report so; and which have "
     "attributes that say they allocate",
     OPTION_FLAG, IN(list)},
    {"mode", 'm', "auto|pass|hooks|frame-pointer",
     "how call paths are found; auto (the default) is pass where a compiler is named and has a "
     "plugin, else frame-pointer",
     OPTION_TEXT, IN(mode)},
    {"compiler", 0, "COMMAND", "the compiler the flags are for; default $CC, for pass else cc",
     OPTION_TEXT, IN(compiler)},
    OPTION_END};

/* ---- What plugins have written ---- */

/* Of a line, behind what it is. */
enum { SPECIFICATION = 1, SYMBOL, PLACE, SOURCE, CALLEE };

static const struct table_column reporting[] = {
    {"specification", "specification", TABLE_TEXT, 40},
    {"function", "function", TABLE_TEXT, 36},
    {"place", "place", TABLE_TEXT, 0},
};
enum { REPORTING = sizeof reporting / sizeof reporting[0] };

static const struct table_column proposed[] = {
    {"function", "function", TABLE_TEXT, 36}, {"memory", "memory", TABLE_TEXT, 8},
    {"callee", "by", TABLE_TEXT, 24},         {"specification", "specification", TABLE_TEXT, 40},
    {"place", "place", TABLE_TEXT, 0},
};
enum { PROPOSED = sizeof proposed / sizeof proposed[0] };

static bool is_kind(const struct allocrecorded *it, const char *kind) {
    return strcmp(it->field[0], kind) == 0;
}

static struct table_cell text_or_none(const char *text) {
    return table_text(*text != '\0' ? text : NULL);
}

static void put_recorded(struct table *table, const struct allocrecorded *it) {
    char *name = symbol_demangle(it->field[SYMBOL]);
    const struct table_cell function = table_text(name != NULL ? name : it->field[SYMBOL]);
    if (is_kind(it, ALLOCRECORDED_FOUND)) {
        table_row(table, (struct table_cell[]){table_text(it->field[SPECIFICATION]), function,
                                               table_text(it->field[PLACE])});
    } else {
        table_row(table, (struct table_cell[]){function, table_text(it->field[SOURCE]),
                                               text_or_none(it->field[CALLEE]),
                                               text_or_none(it->field[SPECIFICATION]),
                                               table_text(it->field[PLACE])});
    }
    free(name);
}

static void put_recorded_table(const struct report *report, const struct allocrecords *records,
                               const char *kind) {
    bool is_found = strcmp(kind, ALLOCRECORDED_FOUND) == 0;
    size_t count = 0;
    struct table table;
    for (size_t i = 0; i < records->count; i++) {
        count += is_kind(&records->items[i], kind);
    }
    if (count == 0) {
        return;
    }
    table = is_found ? table_open(report, "reporting", "Functions that report what they allocate",
                                  reporting, REPORTING)
                     : table_open(report, "proposed",
                                  "Functions whose attributes say that they allocate", proposed,
                                  PROPOSED);
    for (size_t i = 0; i < records->count; i++) {
        if (is_kind(&records->items[i], kind)) {
            put_recorded(&table, &records->items[i]);
        }
    }
    table_close(&table);
}

static bool is_reporting(const struct allocrecords *records, const char *specification) {
    for (size_t i = 0; i < records->count; i++) {
        const struct allocrecorded *it = &records->items[i];
        if (is_kind(it, ALLOCRECORDED_FOUND) &&
            strcmp(it->field[SPECIFICATION], specification) == 0) {
            return true;
        }
    }
    return false;
}

/* 0, or CLI_FAILURE with a line for each specification that no function is meant by. */
static int tell_unfound(const struct allocrecords *records, const char *where) {
    int status = 0;
    for (size_t i = 0; i < records->count; i++) {
        const char *specification = records->items[i].field[SPECIFICATION];
        if (is_kind(&records->items[i], ALLOCRECORDED_NAMED) &&
            !is_reporting(records, specification)) {
            status = cli_error("ALLOCATORS: \"%s\": no function in %s is called so", specification,
                               where);
        }
    }
    return status;
}

/* --list-allocators: prints what is recorded in these files. The exit status, with lines printed.
 */
static int list_allocators(char **files, int count) {
    struct allocrecords *records = job_alloc(sizeof *records);
    struct report report = {.out = stdout};
    for (int i = 0; i < count; i++) {
        allocrecorded_read(records, files[i]);
    }
    if (records->count == 0) {
        job_fail(records->is_for_linking
                     ? "%s has no code yet (link-time optimisation): name the program"
                     : "%s: nothing is recorded: it has no functions of ALLOCATORS, and none with "
                       "the attributes malloc and alloc_size, or was not built in mode pass",
                 files[0]);
    }
    cli_style(&report.options, NULL, NULL);
    put_recorded_table(&report, records, ALLOCRECORDED_FOUND);
    put_recorded_table(&report, records, ALLOCRECORDED_PROPOSED);
    return tell_unfound(records, count == 1 ? files[0] : "these files");
}

/* ---- The command ---- */

static void flags_read(struct request *request, int *argc, char ***argv) {
    bool has_others;
    cli_read(&flags_command, argc, argv, request);
    has_others = request->cflags || request->libs || request->explain;
    if (request->list) {
        if (has_others || request->cmake || request->gdb || request->allocators) {
            cli_usage("flags", "--list-allocators goes alone");
        }
        if (*argc == 0) {
            cli_usage("flags", "--list-allocators needs a program, a library or objects");
        }
        return;
    }
    if (*argc > 0) {
        cli_usage("flags", "\"%s\" is one argument too many", (*argv)[0]);
    }
    if ((request->cmake || request->gdb) &&
        (has_others || (request->cmake && request->gdb) || request->compiler ||
         request->allocators || strcmp(request->mode, "auto") != 0)) {
        cli_usage("flags", "%s goes alone", request->cmake ? "--cmake" : "--gdb");
    }
    if (!has_others && !request->cmake && !request->gdb) {
        cli_usage("flags", "which flags? --cflags, --libs, --explain, --cmake or --gdb");
    }
}

static void print_flags(const struct plan *plan, struct request *request,
                        const struct places *places) {
    explained = request->explain;
    if (explained) {
        bool both = !request->cflags && !request->libs;
        printf("mode %s%s%s%s: %s\n", plan->mode->name, plan->reason ? " (" : "",
               plan->reason ? plan->reason : "", plan->reason ? ")" : "", plan->mode->why);
        request->cflags |= both;
        request->libs |= both;
    }
    if (request->cflags) {
        print_cflags(plan, places);
    }
    if (request->cflags && request->libs && plan->plugin.major && !plan->plugin.gcc) {
        print_flag("-Wno-unused-command-line-argument", "",
                   "no word about the linker's flags where Clang only compiles");
    }
    if (request->libs) {
        print_libs(plan, places);
    }
    if (explained && plan->mode == &modes[PASS]) {
        explain_plugin(plan);
    }
    if (!explained) {
        putchar('\n');
    }
    if (quoted && !explained) {
        cli_error("the flags hold quoted words: a shell needs eval \"cc $(memtrace flags ...)\" "
                  "(make and configure need nothing)");
    }
}

static int run_flags(int argc, char **argv) {
    struct request request = {.mode = "auto"};
    struct places places;
    struct plan plan = {0};
    flags_read(&request, &argc, &argv);
    if (request.list) {
        return cli_finish(list_allocators(argv, argc));
    }
    if (request.gdb) { /* the path of its commands */
        static const char file[] = "memtrace/memtrace-gdb.py";
        char folder[PATH_MAX];
        target_need_folder((const char *[]){MEMTRACE_DATADIR, "../share", NULL}, file, folder);
        printf("%s/%s\n", folder, file);
        return cli_finish(CLI_OK);
    }
    find_places(&places);
    if (request.cmake) { /* the path as it is, for a shell's "$(...)" */
        if (access(places.cmake_file, R_OK) != 0) {
            job_fail("%s is not there: is MemTrace installed?", places.cmake_file);
        }
        puts(places.cmake_file);
        return cli_finish(CLI_OK);
    }
    flags_decide(&plan, &request, &places);
    plan.allocators = request.allocators;
    if (plan.allocators && plan.mode != &modes[PASS]) {
        job_fail("--alloc needs mode pass: %s",
                 plan.reason ? plan.reason : "another was asked for");
    }
    print_flags(&plan, &request, &places);
    return cli_finish(CLI_OK);
}

const struct command flags_command = {
    .name = "flags",
    .run = run_flags,
    .summary = "print compiler and linker flags for other build systems",
    .usage = "[--mode MODE] [--compiler COMMAND] --cflags|--libs|--explain\n"
             "--cmake|--gdb\n"
             "--list-allocators FILE...",
    .about = "Prints the flags that build a program with MemTrace:\n"
             "  cc $(memtrace flags --cflags) -O2 -g -c app.c\n"
             "  cc app.o $(memtrace flags --libs) -o app\n"
             "\n"
             "For all programs and libraries of a project that is built with CMake, unchanged:\n"
             "  cmake -S . -B build \\\n"
             "    -DCMAKE_PROJECT_TOP_LEVEL_INCLUDES=\"$(memtrace flags --cmake)\"",
    .options = options,
};
