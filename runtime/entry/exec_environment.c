/* SPDX-License-Identifier: MIT */
/* exec_environment.c: our variables, put in or taken out. See exec_environment.h. */
#define _GNU_SOURCE
#include "runtime/entry/exec_environment.h"

#include "runtime/base/sys.h"
#include "runtime/base/text.h"
#include "runtime/entry/exec_target.h"
#include "runtime/entry/runtime.h"

#include <errno.h>
#include <limits.h>
#include <unistd.h>

#define PRELOAD "LD_PRELOAD="

enum { KEPT_SIZE = 8192, MOST_KEPT = 48 };

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

/* --- which ------------------------------------------------------------------------------------ */

/* The first of $PATH's programs of this name, as execvp takes it. 0: there is none. */
static int find_program(const char *name, char *path, size_t capacity) {
    const char *folders = NULL;
    for (char **at = environ; at != NULL && *at != NULL; at++) {
        if (text_starts(*at, "PATH=")) {
            folders = *at + sizeof "PATH=" - 1;
        }
    }
    while (folders != NULL) {
        size_t length = 0;
        struct text text;
        while (folders[length] != '\0' && folders[length] != ':') {
            length++;
        }
        text_init(&text, path, capacity);
        text_add_bytes(&text, folders, length);
        text_add(&text, length != 0 ? "/" : "");
        text_add(&text, name);
        if (!text.cut && sys_access(path, X_OK) == 0) {
            return 1;
        }
        folders = folders[length] == ':' ? folders + length + 1 : NULL;
    }
    return 0;
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

enum exec_change exec_change(const char *program, int by_name, int replaces) {
    const struct settings *settings = &runtime.settings;
    if (LOAD_ACQUIRE(&runtime.state) != RUNTIME_READY) {
        return EXEC_AS_IS;
    }
    if (settings->children == MEMTRACE_CHILDREN_EXEC) {
        int is_first = runtime.space.header->pid == sys_getpid() &&
                       (runtime.space.header->flags & MEMTRACE_FLAG_FORKED) == 0;
        return replaces && is_first && kept_count != 0 ? EXEC_ADD : EXEC_AS_IS;
    }
    return settings->children == MEMTRACE_CHILDREN_ALL && settings->run_namespace != 0 &&
                   program != NULL && !takes_preload(program, by_name)
               ? EXEC_DROP
               : EXEC_AS_IS;
}

/* --- the array -------------------------------------------------------------------------------- */

size_t exec_places(char *const envp[], enum exec_change change) {
    size_t count = 1;
    for (; change != EXEC_AS_IS && envp != NULL && *envp != NULL; envp++) {
        count++;
    }
    return count + (change == EXEC_ADD ? kept_count : 0);
}

/* "LD_PRELOAD=ours:theirs" without the first; NULL: nothing is left, or it is not ours. */
static char *without_ours(const char *entry, char *preload) {
    const char *first = entry + sizeof PRELOAD - 1;
    const char *rest = first;
    const char *name = first;
    struct text text;
    while (*rest != '\0' && *rest != ':' && *rest != ' ') {
        name = *rest == '/' ? rest + 1 : name;
        rest++;
    }
    if (!text_starts(name, "libmemtrace")) {
        return (char *)entry;
    }
    text_init(&text, preload, EXEC_PRELOAD_SIZE);
    text_add(&text, PRELOAD);
    text_add(&text, *rest != '\0' ? rest + 1 : "");
    return *rest != '\0' && !text.cut ? preload : NULL;
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

static char **add_kept(char **to, const char *theirs, char *preload) {
    const char *at = kept;
    for (unsigned i = 0; i < kept_count; i++, at += text_length(at) + 1) {
        *to++ = theirs != NULL && text_starts(at, PRELOAD) ? with_ours(at, theirs, preload)
                                                           : (char *)at;
    }
    return to;
}

char *const *exec_environment(char *const envp[], enum exec_change change, char **places,
                              char preload[EXEC_PRELOAD_SIZE]) {
    const char *theirs = NULL;
    char **to = places;
    if (change == EXEC_AS_IS) {
        return envp;
    }
    for (; envp != NULL && *envp != NULL; envp++) {
        if (!text_starts(*envp, PRELOAD)) {
            *to++ = *envp;
        } else if (change == EXEC_ADD) {
            theirs = *envp;
        } else if ((*to = without_ours(*envp, preload)) != NULL) {
            to++;
        }
    }
    to = change == EXEC_ADD ? add_kept(to, theirs, preload) : to;
    *to = NULL;
    return places;
}
