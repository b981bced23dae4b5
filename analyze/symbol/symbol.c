/* SPDX-License-Identifier: MIT */
/*
 * symbol.c: the symbolizer: its modules, its answers, its warnings. See symbol.h.
 */
#include "analyze/symbol/symbol.h"

#include "analyze/base/array.h"
#include "analyze/read/error.h"
#include "analyze/symbol/modulesymbols.h"

#include <errno.h>
#include <libiberty/demangle.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { DEFAULT_THREADS_LIMIT = 8 };

struct symbolizer {
    char *folders;
    unsigned threads;
    bool cached;
    struct numbermap modules; /* hash of path and build-id -> struct modulesymbols */
    struct modulesymbols **list;
    size_t count;
    size_t room;
    const char **warnings; /* made by symbolizer_warnings */
    size_t warning_room;
};

struct symbolizer *symbolizer_open(const struct symbolizer_options *options, struct error *error) {
    struct symbolizer *symbolizer = calloc(1, sizeof *symbolizer);
    const char *folders = options && options->debug_folders ? options->debug_folders : NULL;
    if (symbolizer)
        symbolizer->folders = strdup(folders ? folders : "/usr/lib/debug");
    if (!symbolizer || !symbolizer->folders) {
        free(symbolizer);
        error_set(error, "no memory for the symbolizer");
        return NULL;
    }
    symbolizer->cached = options && options->cached;
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    symbolizer->threads = options ? options->threads : 0;
    if (symbolizer->threads == 0)
        symbolizer->threads = processors < 1                       ? 1
                              : processors > DEFAULT_THREADS_LIMIT ? DEFAULT_THREADS_LIMIT
                                                                   : (unsigned)processors;
    return symbolizer;
}

void symbolizer_close(struct symbolizer *symbolizer) {
    if (!symbolizer)
        return;
    for (size_t i = 0; i < symbolizer->count; i++)
        modulesymbols_free(symbolizer->list[i]);
    numbermap_free(&symbolizer->modules);
    free(symbolizer->warnings);
    free(symbolizer->list);
    free(symbolizer->folders);
    free(symbolizer);
}

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t size) {
    const unsigned char *byte = bytes;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ byte[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static bool is_module(const struct modulesymbols *known, const struct symbol_module *module) {
    return known->build_id_size == module->build_id_size &&
           strcmp(known->path, module->path) == 0 &&
           (module->build_id_size == 0 ||
            memcmp(known->build_id, module->build_id, module->build_id_size) == 0);
}

static int add_module(struct symbolizer *symbolizer, uint64_t hash, struct modulesymbols *module) {
    if (array_grow(&symbolizer->list, &symbolizer->room, symbolizer->count,
                   sizeof(*symbolizer->list)) != 0 ||
        array_reserve(&symbolizer->warnings, &symbolizer->warning_room, symbolizer->room,
                      sizeof(*symbolizer->warnings)) != 0 ||
        numbermap_put(&symbolizer->modules, hash, module) != 0)
        return -1;
    symbolizer->list[symbolizer->count++] = module;
    return 0;
}

/* The symbolizer's own record of the module; NULL: out of memory. */
static struct modulesymbols *find_module(struct symbolizer *symbolizer,
                                         const struct symbol_module *module) {
    uint64_t hash = hash_bytes(UINT64_C(0xcbf29ce484222325), module->path, strlen(module->path));
    hash = hash_bytes(hash, module->build_id, module->build_id_size);
    struct modulesymbols *known;
    /* Two modules with one hash: the later one takes the next number. */
    while ((known = numbermap_get(&symbolizer->modules, hash)) && !is_module(known, module))
        hash++;
    if (known)
        return known;
    known = modulesymbols_new(module, symbolizer->folders, symbolizer->threads, symbolizer->cached);
    if (known && add_module(symbolizer, hash, known) != 0) {
        modulesymbols_free(known);
        return NULL;
    }
    return known;
}

int symbolizer_resolve(struct symbolizer *symbolizer, const struct symbol_module *module,
                       uint64_t offset, struct symbol_frames *out) {
    *out = (struct symbol_frames){0};
    struct modulesymbols *known = find_module(symbolizer, module);
    if (!known)
        return -1;
    const struct symbol_frames *frames = modulesymbols_known(known, offset);
    if (!frames) {
        struct lookup *lookup = modulesymbols_take(known);
        if (!lookup)
            return -1;
        frames = modulesymbols_frames(lookup, offset);
        modulesymbols_give_back(lookup);
        if (!frames || modulesymbols_keep(known, offset, frames) != 0)
            return -1;
    }
    *out = *frames;
    return 0;
}

/* ---- Many addresses of many modules: a few threads that take jobs off a list. A job is a run of
 * addresses of one module. Large runs are cut, so that one large module keeps every thread busy;
 * each then has a handle of its own on the file ---- */

enum {
    SMALLEST_CUT = 512,     /* addresses; below this a second handle costs more than it saves */
    SMALLEST_THREADED = 64, /* addresses; below this threads are not worth starting */
    PROGRESS_EVERY_NS = 100000000,
    THREADS_LIMIT = 64
};

struct batch_item {
    struct modulesymbols *module;
    uint64_t offset;
    const struct symbol_frames *frames; /* the answer */
};

struct job {
    size_t first;
    size_t end;
};

struct batch {
    struct batch_item *items;
    struct job *jobs;
    size_t job_count;
    atomic_size_t next_job;
    atomic_size_t done; /* items */
    atomic_bool failed;
    pthread_mutex_t lock; /* guards running */
    pthread_cond_t ended; /* running became 0 */
    unsigned running;
};

static void do_job(struct batch *batch, const struct job *job) {
    struct lookup *lookup = modulesymbols_take(batch->items[job->first].module);
    for (size_t i = job->first; i < job->end && lookup; i++) {
        batch->items[i].frames = modulesymbols_frames(lookup, batch->items[i].offset);
        if (!batch->items[i].frames)
            atomic_store(&batch->failed, true);
        atomic_fetch_add_explicit(&batch->done, 1, memory_order_relaxed);
    }
    if (lookup)
        modulesymbols_give_back(lookup);
    else
        atomic_store(&batch->failed, true);
}

static void work(struct batch *batch) {
    size_t job;
    while ((job = atomic_fetch_add(&batch->next_job, 1)) < batch->job_count)
        do_job(batch, &batch->jobs[job]);
}

static void *run_worker(void *argument) {
    struct batch *batch = argument;
    work(batch);
    pthread_mutex_lock(&batch->lock);
    if (--batch->running == 0)
        pthread_cond_signal(&batch->ended);
    pthread_mutex_unlock(&batch->lock);
    return NULL;
}

/* Cuts the items into jobs. 0 or -1 (out of memory). */
static int make_jobs(struct batch *batch, size_t count, unsigned threads) {
    size_t largest = count / (threads * 2) + 1;
    if (largest < SMALLEST_CUT)
        largest = SMALLEST_CUT;
    size_t room = 0;
    for (size_t first = 0; first < count;) {
        size_t end = first + 1;
        while (end < count && end - first < largest &&
               batch->items[end].module == batch->items[first].module)
            end++;
        if (array_grow(&batch->jobs, &room, batch->job_count, sizeof *batch->jobs) != 0)
            return -1;
        batch->jobs[batch->job_count++] = (struct job){first, end};
        first = end;
    }
    return 0;
}

/* Until the last worker has ended: tells the caller how far it is. */
static void wait_workers(struct batch *batch, size_t count, symbol_progress progress,
                         void *context) {
    pthread_mutex_lock(&batch->lock);
    while (batch->running > 0) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += PROGRESS_EVERY_NS;
        if (until.tv_nsec >= 1000000000) {
            until.tv_nsec -= 1000000000;
            until.tv_sec++;
        }
        if (pthread_cond_timedwait(&batch->ended, &batch->lock, &until) != ETIMEDOUT || !progress)
            continue;
        pthread_mutex_unlock(&batch->lock);
        progress(context, atomic_load(&batch->done), count);
        pthread_mutex_lock(&batch->lock);
    }
    pthread_mutex_unlock(&batch->lock);
}

static void run_workers(struct batch *batch, unsigned threads, size_t count,
                        symbol_progress progress, void *context) {
    pthread_t workers[THREADS_LIMIT];
    unsigned started = 0;
    pthread_mutex_lock(&batch->lock);
    while (started < threads && pthread_create(&workers[started], NULL, run_worker, batch) == 0)
        started++;
    batch->running = started;
    pthread_mutex_unlock(&batch->lock);
    if (started == 0)
        work(batch);
    wait_workers(batch, count, progress, context);
    for (unsigned i = 0; i < started; i++)
        pthread_join(workers[i], NULL);
}

/* Fills frames of every item; items are sorted by module and offset, without repeats. 0, or -1: out
 * of memory, some items have no frames. */
static int resolve_all(struct batch_item *items, size_t count, unsigned threads,
                       symbol_progress progress, void *context) {
    struct batch batch = {.items = items};
    if (threads > THREADS_LIMIT)
        threads = THREADS_LIMIT;
    if (make_jobs(&batch, count, threads) != 0) {
        free(batch.jobs);
        return -1;
    }
    pthread_mutex_init(&batch.lock, NULL);
    pthread_cond_init(&batch.ended, NULL);
    /* With a progress line the work needs a thread of its own even on one CPU. */
    bool alone = count < SMALLEST_THREADED || (threads < 2 && !progress);
    if (alone)
        work(&batch);
    else
        run_workers(&batch, threads < batch.job_count ? threads : (unsigned)batch.job_count, count,
                    progress, context);
    if (progress)
        progress(context, count, count);
    pthread_cond_destroy(&batch.ended);
    pthread_mutex_destroy(&batch.lock);
    free(batch.jobs);
    return atomic_load(&batch.failed) ? -1 : 0;
}

static int compare_items(const void *left, const void *right) {
    const struct batch_item *a = left, *b = right;
    if (a->module != b->module)
        return (uintptr_t)a->module < (uintptr_t)b->module ? -1 : 1;
    return (a->offset > b->offset) - (a->offset < b->offset);
}

/* Sorts the items and drops repeats. Returns how many are left. */
static size_t sort_items(struct batch_item *items, size_t count) {
    size_t kept = 0;
    qsort(items, count, sizeof *items, compare_items);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || compare_items(&items[kept - 1], &items[i]) != 0)
            items[kept++] = items[i];
    return kept;
}

/* Writes the items that have no answer yet. Returns their number, or -1. */
static ptrdiff_t collect_items(struct symbolizer *symbolizer, const struct symbol_module *modules,
                               size_t module_count, const struct symbol_address *addresses,
                               size_t address_count, struct batch_item *items) {
    struct modulesymbols **known = calloc(module_count, sizeof(*known));
    size_t count = 0;
    if (!known)
        return -1;
    for (size_t i = 0; i < address_count; i++) {
        size_t number = addresses[i].module;
        if (number >= module_count)
            continue;
        if (!known[number])
            known[number] = find_module(symbolizer, &modules[number]);
        if (!known[number]) {
            free(known);
            return -1;
        }
        if (!modulesymbols_known(known[number], addresses[i].offset))
            items[count++] = (struct batch_item){known[number], addresses[i].offset, NULL};
    }
    free(known);
    return (ptrdiff_t)count;
}

int symbolizer_prepare(struct symbolizer *symbolizer, const struct symbol_module *modules,
                       size_t module_count, const struct symbol_address *addresses,
                       size_t address_count, symbol_progress progress, void *context) {
    if (module_count == 0 || address_count == 0)
        return 0;
    struct batch_item *items = calloc(address_count, sizeof *items);
    if (!items)
        return -1;
    int status = -1;
    ptrdiff_t collected =
        collect_items(symbolizer, modules, module_count, addresses, address_count, items);
    if (collected >= 0) {
        size_t count = sort_items(items, (size_t)collected);
        status = resolve_all(items, count, symbolizer->threads, progress, context);
        for (size_t i = 0; i < count; i++)
            if (items[i].frames &&
                modulesymbols_keep(items[i].module, items[i].offset, items[i].frames) != 0)
                status = -1;
    }
    free(items);
    return status;
}

size_t symbolizer_warnings(const struct symbolizer *symbolizer, const char *const **lines) {
    size_t count = 0;
    for (size_t i = 0; i < symbolizer->count; i++)
        if (symbolizer->list[i]->paths.problem[0])
            symbolizer->warnings[count++] = symbolizer->list[i]->paths.problem;
    *lines = symbolizer->warnings;
    return count;
}

char *symbol_demangle(const char *name) {
    /* Rust comes first: its legacy names are well-formed C++ names with a hash at the end. */
    if (strncmp(name, "_D", 2) == 0)
        return dlang_demangle(name, 0);
    if (name[0] != '_' || (name[1] != 'Z' && name[1] != 'R' && name[1] != '_'))
        return NULL;
    return cplus_demangle(name, DMGL_PARAMS | DMGL_ANSI | DMGL_AUTO);
}
