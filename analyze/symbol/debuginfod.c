/* SPDX-License-Identifier: MIT */
/* debuginfod.c: see debuginfod.h. */
#include "analyze/symbol/debuginfod.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static atomic_bool is_allowed;
static atomic_bool is_refused;
static void (*show_progress)(const char *what, uint64_t done, uint64_t total);

void debuginfod_allow(void (*progress)(const char *what, uint64_t done, uint64_t total)) {
    show_progress = progress;
    atomic_store(&is_allowed, true);
}

void debuginfod_refuse(void) {
    atomic_store(&is_refused, true);
}

bool debuginfod_is_wanted(void) {
    const char *urls = getenv("DEBUGINFOD_URLS");
    return atomic_load(&is_allowed) && !atomic_load(&is_refused) && urls && urls[0] != '\0';
}

#ifdef MEMTRACE_DEBUGINFOD

#include <dlfcn.h>
#include <elfutils/debuginfod.h>

enum {
    PATIENCE_S = 10, /* until a server sends something, or more; else $DEBUGINFOD_TIMEOUT */
    GIVEN_UP_S = 60, /* servers that do not answer are asked no more for so long */
    SOME_BYTES = 64, /* below these what the library calls bytes may be rounds of waiting */
    QUIET_MS = 300,  /* what is quicker shows no progress */
};

/* The library, its client and the question that is asked. Under the lock. */
static struct {
    pthread_mutex_t lock;
    bool is_loaded;
    debuginfod_client *client;
    int (*find)(debuginfod_client *client, const unsigned char *build_id, int size, char **path);
    uint64_t given_up_ms; /* until then; 0: not */
    const char *name;
    uint64_t started_ms;
    uint64_t grown_ms; /* when it was seen that there was more */
    long done;
    bool is_late;
    bool is_shown;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static unsigned patience_s(void) {
    const char *text = getenv("DEBUGINFOD_TIMEOUT");
    long seconds = text ? strtol(text, NULL, 10) : 0;
    return seconds > 0 && seconds < 86400 ? (unsigned)seconds : PATIENCE_S;
}

/* The library's: not 0 ends the transfer. Before a server has answered `done` counts rounds. */
static int mind_progress(debuginfod_client *client, long done, long total) {
    uint64_t now = now_ms();
    (void)client;
    if ((total > 0 || done > SOME_BYTES * 1024) && done > state.done) {
        state.done = done;
        state.grown_ms = now;
    }
    if (show_progress && total > 0 && done < total && now - state.started_ms > QUIET_MS) {
        char what[160];
        snprintf(what, sizeof what, "fetching debug information of %.100s, bytes", state.name);
        show_progress(what, (uint64_t)done, (uint64_t)total);
        state.is_shown = true;
    }
    state.is_late = now - state.grown_ms > patience_s() * UINT64_C(1000);
    return state.is_late;
}

/* 0 or -1: the library cannot be had. */
static int debuginfod_load(char *problem, size_t size) {
    void *library = state.is_loaded ? NULL : dlopen(DEBUGINFOD_SONAME, RTLD_NOW | RTLD_LOCAL);
    if (library) {
        debuginfod_client *(*begin)(void) =
            (debuginfod_client * (*)(void)) dlsym(library, "debuginfod_begin");
        void (*set_progress)(debuginfod_client *, debuginfod_progressfn_t) =
            (void (*)(debuginfod_client *, debuginfod_progressfn_t))dlsym(
                library, "debuginfod_set_progressfn");
        state.find = (int (*)(debuginfod_client *, const unsigned char *, int, char **))dlsym(
            library, "debuginfod_find_debuginfo");
        state.client = begin && set_progress && state.find ? begin() : NULL;
        if (state.client) {
            set_progress(state.client, mind_progress);
        }
    }
    state.is_loaded = true;
    if (!state.client) {
        snprintf(problem, size,
                 "DEBUGINFOD_URLS is set, but " DEBUGINFOD_SONAME " cannot be used (package "
                 "libdebuginfod1): debug information is only looked for here");
    }
    return state.client ? 0 : -1;
}

static char *fetch(const struct symbol_module *module, char *problem, size_t size) {
    const char *slash = strrchr(module->path, '/');
    char *path = NULL;
    if (now_ms() < state.given_up_ms || debuginfod_load(problem, size) != 0) {
        return NULL;
    }
    state.name = slash ? slash + 1 : module->path;
    state.started_ms = state.grown_ms = now_ms();
    state.done = 0;
    state.is_late = state.is_shown = false;
    int fd = state.find(state.client, module->build_id, (int)module->build_id_size, &path);
    if (state.is_shown) {
        show_progress("fetched", 1, 1);
    }
    if (fd >= 0) {
        close(fd);
        return path;
    }
    free(path);
    if (state.is_late || fd != -ENOENT) { /* one that was ended by us is not found, it says */
        if (state.is_late || fd == -ETIME || fd == -ETIMEDOUT) {
            snprintf(problem, size,
                     "DEBUGINFOD_URLS: nothing came for %u s (DEBUGINFOD_TIMEOUT): no names from "
                     "there",
                     patience_s());
        } else {
            snprintf(problem, size, "DEBUGINFOD_URLS: %s: no names from there", strerror(-fd));
        }
        state.given_up_ms = now_ms() + GIVEN_UP_S * UINT64_C(1000);
    }
    return NULL;
}

char *debuginfod_fetch(const struct symbol_module *module, char *problem, size_t problem_size) {
    char *path = NULL;
    problem[0] = '\0';
    if (debuginfod_is_wanted() && module->build_id_size >= 8) {
        pthread_mutex_lock(&state.lock);
        path = fetch(module, problem, problem_size);
        pthread_mutex_unlock(&state.lock);
    }
    return path;
}

#else

char *debuginfod_fetch(const struct symbol_module *module, char *problem, size_t problem_size) {
    static atomic_bool is_said;
    (void)module;
    problem[0] = '\0';
    if (debuginfod_is_wanted() && !atomic_exchange(&is_said, true))
        snprintf(problem, problem_size,
                 "DEBUGINFOD_URLS is set, but this memtrace was built without libdebuginfod: debug "
                 "information is only looked for here");
    return NULL;
}

#endif
