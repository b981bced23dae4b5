/* SPDX-License-Identifier: MIT */
/* exec_environment.c: our variables, put in or taken out. See exec_environment.h. */
#define _GNU_SOURCE
#include "runtime/entry/exec_environment.h"

#include "runtime/base/pathsearch.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"
#include "runtime/entry/runtime.h"

#include <errno.h>
#include <limits.h>
#include <unistd.h>

#define PRELOAD "LD_PRELOAD="

enum { KEPT_SIZE = 24576, MOST_KEPT = 48, LENT_PLACES = 4096 };

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

static int is_kept(const char *entry) {
    return entry >= kept && entry < kept + kept_end;
}

/* --- which ------------------------------------------------------------------------------------ */

/* The first of $PATH's programs of this name, as execvp takes it. 0: there is none. */
static int find_program(const char *name, char *path, size_t capacity) {
    const char *folders = NULL;
    for (char **at = environ; at != NULL && *at != NULL; at++) {
        if (text_starts(*at, "PATH=")) {
            folders = *at + sizeof "PATH=" - 1;
        }
    }
    return pathsearch_find(folders, PATHSEARCH_TAKE_EMPTY, name, path, capacity);
}

static int takes_preload(const char *program, int by_name) {
    char path[PATH_MAX];
    for (const char *at = program; *at != '\0'; at++) {
        by_name = by_name && *at != '/';
    }
    if (!by_name) {
        return exec_target_takes_preload(program);
    }
    return !find_program(program, path, sizeof path) || exec_target_takes_preload(path);
}

int exec_follows(const char *program, int by_name, int replaces) {
    const struct settings *settings = &runtime.settings;
    if (LOAD_ACQUIRE(&runtime.state) != RUNTIME_READY || kept_count == 0) {
        return 0;
    }
    if (settings->children == MEMTRACE_CHILDREN_EXEC) {
        const struct memtrace_header *header = runtime.space.header;
        replaces &= header->pid == sys_getpid() && (header->flags & MEMTRACE_FLAG_FORKED) == 0;
    }
    return settings->children != MEMTRACE_CHILDREN_NONE &&
           (replaces || settings->children == MEMTRACE_CHILDREN_ALL) &&
           (program == NULL || takes_preload(program, by_name));
}

/* --- the array -------------------------------------------------------------------------------- */

size_t exec_places(char *const envp[], int follows) {
    size_t count = 1;
    for (; follows && envp != NULL && *envp != NULL; envp++) {
        count++;
    }
    return count + (follows ? kept_count : 0);
}

/* "LD_PRELOAD=ours" before what the program has set itself. */
static char *with_ours(const char *ours, const char *theirs, char *preload) {
    struct text text;
    text_init(&text, preload, EXEC_PRELOAD_SIZE);
    text_add(&text, ours);
    text_add(&text, ":");
    text_add(&text, theirs + sizeof PRELOAD - 1);
    return text.cut ? (char *)ours : preload;
}

char *const *exec_environment(char *const envp[], int follows, char **places,
                              char preload[EXEC_PRELOAD_SIZE]) {
    const char *theirs = NULL;
    const char *at = kept;
    char **to = places;
    if (!follows) {
        return envp;
    }
    for (; envp != NULL && *envp != NULL; envp++) {
        if (text_starts(*envp, PRELOAD)) {
            theirs = *envp;
        } else {
            *to++ = *envp;
        }
    }
    for (unsigned i = 0; i < kept_count; i++, at += text_length(at) + 1) {
        *to++ = theirs != NULL && text_starts(at, PRELOAD) ? with_ours(at, theirs, preload)
                                                           : (char *)at;
    }
    *to = NULL;
    return places;
}

/* --- for system and popen --------------------------------------------------------------------- */

/* The array that `environ` is while it is lent. Not on a stack: other threads may read it later. */
static struct {
    struct trylock lock;
    unsigned users;
    char **own; /* the program's array meanwhile */
    char *preload_own;
    char *places[LENT_PLACES];
    char preload[EXEC_PRELOAD_SIZE];
} lent;

static void lend(void) {
    char **own = environ;
    if (own == NULL || !exec_follows(NULL, 0, 0) || exec_places(own, 1) > LENT_PLACES) {
        return;
    }
    lent.own = own;
    lent.preload_own = NULL;
    for (char **at = own; *at != NULL; at++) {
        lent.preload_own = text_starts(*at, PRELOAD) ? *at : lent.preload_own;
    }
    exec_environment(own, 1, lent.places, lent.preload);
    environ = lent.places;
}

/* What was set or unset in the array meanwhile is carried over. Where the program has got a new
 * array (setenv makes one for a new variable) ours are taken out of that. */
static void take_back(void) {
    char **from = environ;
    char **to = lent.own;
    if (lent.own == NULL) {
        return;
    }
    if (from != lent.places) {
        to = from;
    }
    for (char **at = from; *at != NULL; at++) {
        if (*at == lent.preload || text_starts(*at, PRELOAD)) {
            if (lent.preload_own != NULL) {
                *to++ = lent.preload_own;
            }
        } else if (!is_kept(*at)) {
            *to++ = *at;
        }
    }
    *to = NULL;
    environ = from != lent.places ? from : lent.own;
    lent.own = NULL;
}

void exec_lend_environment(void) {
    if (kept_count != 0 && sys_take(&lent.lock)) {
        if (lent.users++ == 0) {
            lend();
        }
        trylock_release(&lent.lock);
    }
}

void exec_take_environment_back(void) {
    if (kept_count != 0 && sys_take(&lent.lock)) {
        if (lent.users != 0 && --lent.users == 0) {
            take_back();
        }
        trylock_release(&lent.lock);
    }
}
