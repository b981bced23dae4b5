/* SPDX-License-Identifier: MIT */
/* exec_environment.c: our variables, put in or taken out. See exec_environment.h. */
#define _GNU_SOURCE
#include "runtime/process/exec_environment.h"

#include "memtrace/emulator.h"
#include "runtime/base/handed.h"
#include "runtime/base/sandbox.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"
#include "runtime/entry/child.h"
#include "runtime/entry/runtime.h"
#include "runtime/machine/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#define PRELOAD  "LD_PRELOAD="
#define EMULATOR "QEMU_SET_ENV="

enum { KEPT_SIZE = 24576, MOST_KEPT = 48, PRELOAD_SIZE = 4096 };

/* "NAME=value" strings one behind the other, as they were at the start. */
static char kept[KEPT_SIZE];
static size_t kept_end;
static unsigned kept_count;

void exec_keep(const char *entry, size_t length) {
    if (kept_count < MOST_KEPT && kept_end + length + 1 <= KEPT_SIZE) {
        __builtin_memcpy(kept + kept_end, entry, length);
        kept_end += length + 1;
        kept_count++;
    }
}

int exec_has_variables(void) {
    return kept_count != 0;
}

int exec_is_preloaded(char *const envp[]) {
    const char *preload = handed_variable(envp, PRELOAD);
    return preload != NULL && text_holds(preload, "libmemtrace.so");
}

/* --- which ------------------------------------------------------------------------------------ */

/* Whether our variables are put back for a program, and what is preloaded there. */
struct plan {
    int follows;
    int is_off;          /* the environment loads us all the same: we are told to do nothing */
    const char *library; /* NULL: none; else so many bytes */
    size_t library_length;
    int by_emulator; /* qemu is told to load it, for the program that it runs */
};

static COLD struct exec_target exec_look_by_name(const char *name, char *const argv[]) {
    char path[PATH_MAX];
    return handed_program(environ, HANDED_TAKE_EMPTY, name, path, sizeof path)
               ? exec_target_look(path, argv)
               : (struct exec_target){.kind = EXEC_UNTOLD};
}

static struct exec_target exec_look_at(const char *program, int by_name, char *const argv[]) {
    if (program == NULL) {
        return (struct exec_target){.kind = EXEC_UNTOLD};
    }
    for (const char *at = program; *at != '\0'; at++) {
        by_name = by_name && *at != '/';
    }
    return by_name ? exec_look_by_name(program, argv) : exec_target_look(program, argv);
}

/* The value of what is kept by this name; NULL: nothing. */
static const char *kept_value(const char *name) {
    const char *at = kept;
    for (unsigned i = 0; i < kept_count; i++, at += text_length(at) + 1) {
        const char *value = memtrace_behind(at, name);
        if (value != NULL && *value == '=') {
            return value + 1;
        }
    }
    return NULL;
}

/* --- which library ----------------------------------------------------------------------------
 *
 * MEMTRACE_LIBRARIES is "x86_64=PATH:x86_64-musl=PATH:aarch64=PATH", what of it there is; first is
 * the machine that needs no emulator, perhaps without a path. */

static const char *libraries(void) {
    const char *text = kept_value("MEMTRACE_LIBRARIES");
    return text != NULL ? text : "";
}

static int is_own_machine(unsigned machine) {
    for (size_t i = 0; i < MEMTRACE_MACHINES; i++) {
        if (memtrace_behind(libraries(), memtrace_machines[i].name) != NULL) {
            return machine == memtrace_machines[i].elf;
        }
    }
    return machine == MACHINE_ELF;
}

static void exec_find_library(struct plan *plan, unsigned machine, int is_musl) {
    for (size_t i = 0; i < MEMTRACE_MACHINES; i++) {
        const char *entry = memtrace_machines[i].elf == machine ? libraries() : "";
        while (*entry != '\0') {
            /* The path behind "NAME=" or "NAME-musl="; NULL: another entry. */
            const char *rest = memtrace_behind(entry, memtrace_machines[i].name);
            const char *path =
                rest != NULL ? memtrace_behind(rest, is_musl ? "-musl=" : "=") : NULL;
            const char *end = path != NULL ? path : entry;
            while (*end != '\0' && *end != ':') {
                end++;
            }
            if (path != NULL && end != path) {
                plan->library = path;
                plan->library_length = (size_t)(end - path);
                return;
            }
            entry = end + (*end == ':');
        }
    }
}

/* The program may have another root than we, other rights or other mounts: its loader would then
 * complain on its stderr, and go on without us. */
static int can_be_opened(const struct plan *plan) {
    char path[1024];
    /* By the real ids, so without rights that end with this program: where the others differ the
     * loader preloads nothing. */
    return text_print(path, sizeof path, "%.*s", (int)plan->library_length, plan->library) != 0 ||
           sys_access(path, R_OK) == 0;
}

static int exec_is_there(const char *path) {
    return sys_close(sys_open(path, O_PATH, 0)) == 0;
}

/* What a static program starts finds our variables as that hands them on. Where there is another
 * loader it may be one that our library would end. */
static void plan_through_static(struct plan *plan, unsigned machine) {
    if (is_own_machine(machine) && !exec_is_there("/lib/ld-musl-x86_64.so.1") &&
        !exec_is_there("/lib/ld-musl-aarch64.so.1")) {
        exec_find_library(plan, machine, 0);
        plan->follows = plan->library != NULL;
    }
}

static void count_not_followed(enum memtrace_not_followed why) {
    uint8_t *counter = &child_shared_header()->not_followed[why];
    uint8_t count = LOAD_RELAXED(counter);
    while (count != UINT8_MAX && !machine_replace_byte(counter, &count, (uint8_t)(count + 1))) {
    }
}

static struct plan plan_for_target(const struct exec_target *target) {
    struct plan plan = {0};
    const char *own = kept_value("LD_PRELOAD");
    int is_own = is_own_machine(target->machine);
    switch (target->kind) {
    case EXEC_UNTOLD:
        plan.follows = 1;
        plan.library = own;
        plan.library_length = own != NULL ? text_length(own) : 0;
        plan.by_emulator = !is_own_machine(MACHINE_ELF);
        break;
    case EXEC_STATIC_OURS:
        plan.follows = 1;
        break;
    case EXEC_LOADED:
        exec_find_library(&plan, target->machine, target->is_musl);
        plan.follows = plan.library != NULL;
        plan.by_emulator = plan.follows && !is_own;
        if (!plan.follows) {
            count_not_followed(is_own ? MEMTRACE_NOT_FOLLOWED_LIBC : MEMTRACE_NOT_FOLLOWED_MACHINE);
        }
        break;
    case EXEC_STATIC:
        plan_through_static(&plan, target->machine);
        count_not_followed(MEMTRACE_NOT_FOLLOWED_STATIC);
        break;
    default:
        count_not_followed(target->kind == EXEC_UNFIT_LIBC    ? MEMTRACE_NOT_FOLLOWED_LIBC
                           : target->kind == EXEC_UNFIT_WORDS ? MEMTRACE_NOT_FOLLOWED_MACHINE
                                                              : MEMTRACE_NOT_FOLLOWED_ORDER);
    }
    return plan;
}

/* Whether an array that was copied holds an entry that begins so. */
static int has_entry(char *const envp[], const char *name) {
    while (envp != NULL && *envp != NULL && !text_starts(*envp, name)) {
        envp++;
    }
    return envp != NULL && *envp != NULL;
}

/* Whether nothing will run: the loader tells which libraries a program would get (ldd). */
static int only_tells_libraries(char *const argv[], char *const envp[]) {
    if (has_entry(envp, "LD_TRACE_LOADED_OBJECTS=")) {
        return 1;
    }
    if (argv == NULL || argv[0] == NULL || !text_starts(text_base_name(argv[0]), "ld-linux")) {
        return 0;
    }
    for (argv++; *argv != NULL && text_starts(*argv, "--"); argv++) {
        if (text_equal(*argv, "--list") || text_equal(*argv, "--verify")) {
            return 1;
        }
    }
    return *argv == NULL; /* ldd asks a loader whether it runs here */
}

/* A filter that kills for a call of ours would kill the new program before its main: it starts
 * bare. */
static int is_filtered(void) {
    static uint8_t is_told;
    if (LIKELY(sandbox_filters == 0) || sys_filters_let_start()) {
        return 0;
    }
    if (!is_told) {
        is_told = 1;
        log_line("a program that is started under a seccomp filter, which allows less than is "
                 "needed, is not profiled");
    }
    return 1;
}

/* `envp`: as it was copied. */
static struct plan plan_for(const struct exec_call *call, char *const envp[]) {
    const struct settings *settings = &runtime.settings;
    int replaces = call->replaces;
    struct exec_target target;
    struct plan plan;
    if (is_filtered()) {
        return (struct plan){.is_off = 1};
    }
    if (kept_count == 0 || only_tells_libraries(call->argv, envp)) {
        return (struct plan){0};
    }
    if (settings->children == MEMTRACE_CHILDREN_EXEC) {
        const struct memtrace_header *header = runtime.space.header;
        replaces &= header->pid == sys_getpid() && (header->flags & MEMTRACE_FLAG_FORKED) == 0;
    }
    if (settings->children == MEMTRACE_CHILDREN_NONE ||
        (!replaces && settings->children != MEMTRACE_CHILDREN_ALL)) {
        return (struct plan){0};
    }
    target = exec_look_at(call->program, call->by_name, call->argv);
    if (kept_value("LD_PRELOAD") == NULL && *libraries() == '\0') {
        /* Preloaded by hand: the program loads us by what the user has set, and needs to know only
         * that it is of our run. */
        int is_loaded = target.kind == EXEC_LOADED || target.kind == EXEC_UNTOLD;
        return (struct plan){.follows = is_loaded && exec_is_preloaded(envp)};
    }
    plan = plan_for_target(&target);
    if (plan.library != NULL && !plan.by_emulator && !can_be_opened(&plan)) {
        __atomic_fetch_add(&child_shared_header()->run.not_reached, 1, __ATOMIC_RELAXED);
        return (struct plan){0};
    }
    return plan;
}

/* --- the array -------------------------------------------------------------------------------- */

/* What loads the library: "LD_PRELOAD=ours", before what the program has set itself, or of an
 * emulator "QEMU_SET_ENV=LD_PRELOAD=ours", behind that. */
static char *with_library(const struct plan *plan, const char *theirs, char preload[PRELOAD_SIZE]) {
    int length = (int)plan->library_length;
    int is_cut;
    if (plan->by_emulator) {
        is_cut = text_print(preload, PRELOAD_SIZE, "%s%s" PRELOAD "%.*s",
                            theirs != NULL ? theirs : EMULATOR, theirs != NULL ? "," : "", length,
                            plan->library);
    } else {
        is_cut = text_print(preload, PRELOAD_SIZE, PRELOAD "%.*s%s%s", length, plan->library,
                            theirs != NULL ? ":" : "",
                            theirs != NULL ? theirs + sizeof PRELOAD - 1 : "");
    }
    return is_cut && theirs != NULL ? with_library(plan, NULL, preload) : preload;
}

int exec_is_vfork_child(void) {
    return LOAD_ACQUIRE(&runtime.state) == RUNTIME_READY && *runtime.alive != 0 &&
           runtime.space.header->pid != sys_getpid();
}

/* What is copied, our variables, LD_PRELOAD and NULL. */
size_t exec_room(const struct exec_call *call) {
    size_t count =
        LOAD_ACQUIRE(&runtime.state) == RUNTIME_READY && (kept_count != 0 || sandbox_filters != 0)
            ? handed_count(call->envp)
            : SIZE_MAX;
    return count == SIZE_MAX ? 0 : (count + kept_count + 2) * sizeof(char *) + PRELOAD_SIZE;
}

/* Each of these changes the array in place, and says whether it did.
 *
 * Where the user has preloaded us by hand the variable stays; but nothing is done. */
static int tell_off(char **places) {
    char **to = places;
    if (!exec_is_preloaded(places)) {
        return 0;
    }
    for (char **from = places; *from != NULL; from++) {
        if (!text_starts(*from, "MEMTRACE=")) {
            *to++ = *from;
        }
    }
    *to++ = (char *)"MEMTRACE=off";
    *to = NULL;
    return 1;
}

static int exec_put_back(char **places, const struct plan *plan, char preload[PRELOAD_SIZE]) {
    const char *name = plan->by_emulator ? EMULATOR : PRELOAD;
    const char *theirs = NULL;
    const char *at = kept;
    char **to = places;
    /* Whether the program, which is `memtrace run` then, starts a run of its own: what it starts is
     * of that one, as it has asked for it with its own settings. */
    if (has_entry(places, "MEMTRACE_RUN=")) {
        return 0;
    }
    for (char **from = places; *from != NULL; from++) {
        if (plan->library != NULL && text_starts(*from, name)) {
            theirs = *from;
        } else {
            *to++ = *from;
        }
    }
    for (unsigned i = 0; i < kept_count; i++, at += text_length(at) + 1) {
        if (!text_starts(at, PRELOAD)) {
            *to++ = (char *)at;
        }
    }
    if (plan->library != NULL) {
        *to++ = with_library(plan, theirs, preload);
    }
    *to = NULL;
    return 1;
}

char *const *exec_environment(const struct exec_call *call, char *room, size_t size) {
    char **places = (char **)(void *)room;
    size_t most = (size - PRELOAD_SIZE) / sizeof(char *) - kept_count - 2;
    struct plan plan;
    int is_changed;
    if (room == NULL || (call->program != NULL && !handed_is_readable(call->program)) ||
        handed_count(call->argv) == SIZE_MAX || handed_copy(call->envp, places, most) != 0) {
        return call->envp;
    }
    plan = plan_for(call, places);
    is_changed = plan.is_off
                     ? tell_off(places)
                     : plan.follows && exec_put_back(places, &plan, room + size - PRELOAD_SIZE);
    return is_changed ? places : call->envp;
}
