/* SPDX-License-Identifier: MIT */
/*
 * heapcensus.c: `memtrace attach PID --census`: what the heap of a program holds that runs, whether
 * it is profiled or not. A thread that the command starts in it makes a copy of the process, which
 * is read and killed.
 */
#include "cli/heapcensus.h"

#include "analyze/rows/jsonwriter.h"
#include "analyze/rows/number.h"
#include "analyze/rows/safetext.h"
#include "cli/cli.h"
#include "collect/attach/attachthread.h"
#include "collect/attach/census.h"

#include <inttypes.h>
#include <stdio.h>

enum { TRIES = 8, CLASSES_SHOWN = 20 };

/* One look: what is known when the thread in the program is done. */
struct look {
    pid_t pid;
    struct census census;
    int result; /* of census_take() */
    bool was_there;
    struct error error;
};

static bool look_at_copy(void *context, uint64_t settings) {
    struct look *look = context;
    struct memtrace_census told;
    pid_t copy = census_hold_copy(look->pid);
    if (copy == 0) {
        return false;
    }
    look->was_there = true;
    look->result = attachtarget_memory(copy, settings, &told, sizeof told) == (ssize_t)sizeof told
                       ? census_take(copy, &told, &look->census, &look->error)
                       : error_set(&look->error, "its copy cannot be read");
    census_end_copy(copy);
    return true;
}

/* 0; 1: once more; -1: not at all, with error. */
static int try_once(struct attachcall *call, struct look *look, struct error *error) {
    struct attachdone done;
    *look = (struct look){.pid = call->pid};
    call->context = look;
    if (attachthread_call(call, &done, error) != 0) {
        return -1;
    }
    switch (done.result) {
    case MEMTRACE_ATTACH_DONE:
        break;
    case MEMTRACE_ATTACH_OTHER_MALLOC:
        return error_set(error,
                         "process %ld has another allocator than glibc's, whose heap MemTrace "
                         "cannot read",
                         (long)call->pid);
    case MEMTRACE_ATTACH_BUSY:
        return error_set(error,
                         "process %ld is being attached to or detached from by another command; "
                         "try again",
                         (long)call->pid);
    default:
        return error_set(error,
                         "process %ld cannot be copied to be looked at: no memory, or too many "
                         "processes (ulimit -u)",
                         (long)call->pid);
    }
    if (!look->was_there) {
        return error_set(error, "process %ld was copied, but the copy cannot be seen here",
                         (long)call->pid);
    }
    if (look->result != 0) {
        error_set(error, "process %ld: %s", (long)call->pid, look->error.message);
    }
    return look->result;
}

/* ---- What is shown ---- */

/* What the heap consists of, as text (NULL: not so) and in JSON. */
static const struct {
    const char *label;
    const char *name;
    size_t sum;
} parts[] = {{"in use", "used", offsetof(struct census, used)},
             {"  of that, mapped", "mapped", offsetof(struct census, mapped)},
             {"free, in bins", "free", offsetof(struct census, free)},
             {"free, in fast bins", "free_fast", offsetof(struct census, fast)},
             {NULL, "free_cached", offsetof(struct census, cached)}};
enum { PARTS = sizeof parts / sizeof parts[0] };

static const struct census_sum *part_sum(const struct census *census, size_t part) {
    return (const void *)((const char *)census + parts[part].sum);
}

static void census_put_row(const struct census_sum *sum, uint64_t whole, const char *name) {
    struct number numbers[3];
    printf("%6s %11s %12s  ", number_percent(&numbers[0], sum->bytes, whole),
           number_bytes(&numbers[1], sum->bytes), number_count(&numbers[2], sum->blocks));
    print_safe(stdout, "%s\n", name);
}

static void census_put_text(pid_t pid, const struct census *census) {
    struct number numbers[3];
    printf("Heap of process %ld, glibc 2.%u\n", (long)pid, census->arenas.version);
    for (size_t i = 0; i < PARTS; i++) {
        const struct census_sum *sum = part_sum(census, i);
        if (parts[i].label != NULL && (sum != &census->mapped || sum->blocks != 0)) {
            printf("  %-18s  %s in %s\n", parts[i].label, number_bytes(&numbers[0], sum->bytes),
                   number_items(&numbers[1], sum->blocks, "block"));
        }
    }
    printf("  %-18s  %s in %s, of %s\n", "free, in caches",
           number_bytes(&numbers[0], census->cached.bytes),
           number_items(&numbers[1], census->cached.blocks, "block"),
           number_items(&numbers[2], census->arenas.caches, "thread"));
    printf("  %-18s  %s, in %s\n", "never used yet",
           number_bytes(&numbers[0], census->arenas.top_bytes),
           number_items(&numbers[1], census->arenas.count, "arena"));
    puts("\nBy size\n share       bytes       blocks  of at most");
    for (int i = 0; i < CENSUS_SIZES; i++) {
        if (census->sizes[i].blocks != 0) {
            census_put_row(&census->sizes[i], census->used.bytes,
                           number_bytes(&numbers[0], census_most(i)));
        }
    }
    if (census->class_count != 0) {
        puts("\nBy C++ class, of blocks that begin with a virtual table\n"
             " share       bytes       blocks  class");
    }
    for (size_t i = 0; i < census->class_count && i < CLASSES_SHOWN; i++) {
        census_put_row(&census->classes[i].sum, census->used.bytes, census->classes[i].name);
    }
    if (census->class_count > CLASSES_SHOWN) {
        printf("       and %s more (--json)\n",
               number_count(&numbers[0], census->class_count - CLASSES_SHOWN));
    }
}

static void census_put_sum(struct jsonwriter *json, const struct census_sum *sum) {
    jsonwriter_number(json, "bytes", sum->bytes);
    jsonwriter_number(json, "blocks", sum->blocks);
    jsonwriter_end_map(json);
}

static void census_put_json(pid_t pid, const struct census *census) {
    struct jsonwriter *json = jsonwriter_begin(stdout, JSONWRITER_INDENTED);
    jsonwriter_map(json, NULL);
    jsonwriter_number(json, "pid", (uint64_t)pid);
    jsonwriter_number(json, "glibc_minor", census->arenas.version);
    jsonwriter_number(json, "arenas", census->arenas.count);
    for (size_t i = 0; i < PARTS; i++) {
        jsonwriter_map(json, parts[i].name);
        census_put_sum(json, part_sum(census, i));
    }
    jsonwriter_number(json, "caches", census->arenas.caches);
    jsonwriter_number(json, "top_bytes", census->arenas.top_bytes);
    jsonwriter_number(json, "mallinfo_arena_bytes", census->told.arena_bytes);
    jsonwriter_number(json, "mallinfo_mapped_bytes", census->told.mapped_bytes);
    jsonwriter_number(json, "mallinfo_mapped_blocks", census->told.mapped_count);
    jsonwriter_array(json, "sizes");
    for (int i = 0; i < CENSUS_SIZES; i++) {
        if (census->sizes[i].blocks != 0) {
            jsonwriter_map(json, NULL);
            jsonwriter_number(json, "most_bytes", census_most(i));
            census_put_sum(json, &census->sizes[i]);
        }
    }
    jsonwriter_end_array(json);
    jsonwriter_array(json, "classes");
    for (size_t i = 0; i < census->class_count; i++) {
        jsonwriter_map(json, NULL);
        jsonwriter_string(json, "name", census->classes[i].name);
        census_put_sum(json, &census->classes[i].sum);
    }
    jsonwriter_end_array(json);
    jsonwriter_end_map(json);
}

int heapcensus_run(const struct attachimage *image, const char *library,
                   const struct preflight *found, bool as_json) {
    static const char settings[sizeof(struct memtrace_census)];
    struct attachcall call = {.pid = image->pid,
                              .image = image,
                              .library = library,
                              .own_library = library,
                              .is_hidden = found->is_hidden,
                              .entry = MEMTRACE_CENSUS_ENTRY,
                              .settings = settings,
                              .settings_size = sizeof settings,
                              .meanwhile = look_at_copy};
    struct look look;
    const struct census *census = &look.census;
    struct error error;
    int result = 1;
    for (int i = 0; i < TRIES && result == 1; i++) {
        result = try_once(&call, &look, &error);
        if (result == 1) {
            census_free(&look.census);
        }
    }
    if (result == 0) {
        (as_json ? census_put_json : census_put_text)(image->pid, census);
        fflush(stdout);
    }
    /* The mappings of large blocks are found by what stands at their start: told if these are
     * others than those that the C library has. */
    if (result == 0 && census->arenas.mapped_count != census->told.mapped_count) {
        fprintf(stderr,
                "memtrace: %" PRIu64 " blocks are mappings of their own, of which %" PRIu64
                " were found\n",
                census->told.mapped_count, census->arenas.mapped_count);
    }
    census_free(&look.census);
    return result == 0 ? CLI_OK : cli_error("%s", error.message);
}
