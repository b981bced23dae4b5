/* SPDX-License-Identifier: MIT */
/* companion.c: starts the collector of a program that runs without `memtrace run`. See finish.h. */
#define _GNU_SOURCE
#include "runtime/base/handed.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"
#include "runtime/libc/libc.h"
#include "runtime/record/finish.h"

#include <stdlib.h>
#include <unistd.h>

/* The command lies where the library was installed from: ../bin or, below a multiarch folder,
 * ../../bin. */
static int find_command(char *path, size_t capacity) {
    static const char *const places[] = {"/../bin/memtrace", "/../../bin/memtrace"};
    const char *library = libc_own_path();
    const char *base;
    if (library == NULL) { /* the runtime is a part of the program */
        return handed_program(environ, HANDED_SKIP_EMPTY, "memtrace", path, capacity) ? 0 : -1;
    }
    base = text_base_name(library);
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        /* ".": found by a bare name. */
        if (text_print(path, capacity, "%.*s%s%s", (int)(base - library), library,
                       base == library ? "." : "", places[i] + (base != library)) == 0 &&
            sys_access(path, X_OK) == 0) {
            return 0;
        }
    }
    return -1;
}

/* The environment without what would profile the companion itself. */
static void copy_environment(const struct settings *settings, char *const environment[], char **to,
                             size_t capacity) {
    static char mode[sizeof "MEMTRACE_MODE=0000"];
    struct handed handed = handed_of(environment);
    uint32_t bits = settings->file_mode;
    size_t count = 0;
    char *entry;
    while (count + 3 < capacity && (entry = handed_next(&handed)) != NULL) {
        /* The level of what the program says holds for the companion's own lines, too. */
        if (text_starts(entry, "MEMTRACE_LOG_LEVEL=") ||
            (!text_starts(entry, "LD_PRELOAD=") && !text_starts(entry, "MEMTRACE"))) {
            to[count++] = entry;
        }
    }
    /* Who may read what the companion writes: as the settings say, which need not come from the
     * environment (memtrace attach). */
    if (bits != 0) {
        text_print(mode, sizeof mode, "MEMTRACE_MODE=0%u%u%u", bits >> 6 & 7, bits >> 3 & 7,
                   bits & 7);
        to[count++] = mode;
    }
    to[count++] = (char *)"MEMTRACE=off";
    to[count] = NULL;
}

/* The command that the settings name, or the one beside the library. 0, or -1: it is not there. */
static int choose_command(const struct settings *settings, char *path, size_t capacity) {
    if (settings->command[0] == '\0') {
        return find_command(path, capacity);
    }
    text_copy(path, capacity, settings->command);
    return sys_access(path, X_OK) == 0 ? 0 : -1;
}

static char command_path[1024];
static char *clean[512];

int companion_start(struct region *region, char *const environment[]) {
    char *late = region->settings->collector_pid != 0 ? (char *)"late" : NULL;
    char *argv[] = {(char *)"memtrace", (char *)"companion", region->space->path, late, NULL};
    if (choose_command(region->settings, command_path, sizeof command_path) != 0) {
        log_line(region_recording(region->space->header)->state != MEMTRACE_RECORD_NONE
                     ? "no memtrace command beside the library: nothing is recorded"
                     : "no memtrace command beside the library: the program itself prints the "
                       "top-N, when enough memory was churned and at the end, as module+offset "
                       "lines for `memtrace symbolize`");
        return -1;
    }
    copy_environment(region->settings, environment, clean, sizeof clean / sizeof clean[0]);
    if (sys_spawn_detached(command_path, argv, clean) != 0) {
        log_line("the memtrace command cannot be started: nothing is recorded or reported "
                 "meanwhile");
        return -1;
    }
    return 0;
}

int companion_ask(const struct settings *settings, char *const argv[], char *const environment[]) {
    enum { CANNOT_RUN = 127 };
    int status;
    if (choose_command(settings, command_path, sizeof command_path) != 0) {
        log_error("no memtrace command beside the library: %s cannot be asked", argv[1]);
        return -1;
    }
    copy_environment(settings, environment, clean, sizeof clean / sizeof clean[0]);
    status = sys_run(command_path, argv, clean);
    if (status < 0 || status == CANNOT_RUN) {
        log_error("the memtrace command cannot be started: %s cannot be asked", argv[1]);
    }
    return status;
}
