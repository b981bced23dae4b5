/* SPDX-License-Identifier: MIT */
/*
 * expect.h: what a block of a test may allocate, for C and C++:
 *
 *     MEMTRACE_EXPECT_NO_ALLOC { parse(line); }
 *     MEMTRACE_EXPECT_ALLOCATIONS_AT_MOST(2) { parse(line); }
 *     MEMTRACE_EXPECT_AT_MOST(4096) { load(file); }           bytes, all together
 *     MEMTRACE_EXPECT_NO_LEAK { free(copy(line)); }           nothing stays allocated
 *
 * What this thread allocates from the heap while it is in the block counts, exactly; what other
 * threads do meanwhile does not. Blocks may lie in each other. However the block is left (its end,
 * return, break, goto, an exception), it is judged then; break and continue leave the block itself,
 * not a loop around it. Left by longjmp or the thread's end it is not judged.
 *
 * A broken expectation is a failure: the handler is called, by default one that writes to stderr,
 * and memtrace_expect_failures() counts it. expect_gtest.h and expect_catch2.h hand failures to
 * those frameworks. Without the runtime, or while it counts nothing, blocks run and are not judged:
 * stderr says so once. Compiled with MEMTRACE_EXPECT_REQUIRED=1 that is a failure, too.
 */
#ifndef MEMTRACE_EXPECT_H
#define MEMTRACE_EXPECT_H

#include "memtrace/memtrace.h"

#include <stdio.h>

#ifndef MEMTRACE_EXPECT_REQUIRED
#define MEMTRACE_EXPECT_REQUIRED 0
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* What a handler hears of. */
struct memtrace_expectation {
    const char *file; /* of the block */
    unsigned line;
    const char *macro; /* "MEMTRACE_EXPECT_NO_ALLOC" */
    uint64_t limit;
    int measured; /* 0: MEMTRACE_EXPECT_REQUIRED, and nothing is known */
    struct memtrace_watched found;
    const char *message; /* lines, without file and line; the last ends without '\n' */
};
typedef void (*memtrace_expect_handler)(const struct memtrace_expectation *expectation);

/* One for all of the program. */
struct memtrace_expect_state {
    memtrace_expect_handler handler; /* NULL: memtrace_expect_print() */
    unsigned long failures;
    unsigned long not_measured;
};
MEMTRACE_API struct memtrace_expect_state memtrace_expect_state;

/* Broken expectations so far: for the exit status of a test without a framework. */
static inline unsigned long memtrace_expect_failures(void) {
    return __atomic_load_n(&memtrace_expect_state.failures, __ATOMIC_RELAXED);
}

/* Blocks that could not be judged. */
static inline unsigned long memtrace_expect_not_measured(void) {
    return __atomic_load_n(&memtrace_expect_state.not_measured, __ATOMIC_RELAXED);
}

/* Sets who hears of failures, in any thread; NULL: stderr. Returns who did before. */
static inline memtrace_expect_handler memtrace_expect_handle(memtrace_expect_handler handler) {
    return __atomic_exchange_n(&memtrace_expect_state.handler, handler, __ATOMIC_ACQ_REL);
}

static inline void memtrace_expect_print(const struct memtrace_expectation *expectation) {
    fprintf(stderr, "%s:%u: error: %s\n", expectation->file, expectation->line,
            expectation->message);
}

/* --- what the macros are made of -------------------------------------------------------------- */

enum memtrace_expect_kind {
    MEMTRACE_EXPECT_KIND_ALLOCATIONS,
    MEMTRACE_EXPECT_KIND_BYTES,
    MEMTRACE_EXPECT_KIND_LEAKS
};

struct memtrace_expect {
    struct memtrace_expectation expectation;
    enum memtrace_expect_kind kind;
    int required;
    uint32_t watch; /* 0: none */
    int is_over;
};

static inline struct memtrace_expect memtrace_expect_begin(const char *file, unsigned line,
                                                           const char *macro,
                                                           enum memtrace_expect_kind kind,
                                                           uint64_t limit, int required) {
    struct memtrace_expect expect = {
        {file, line, macro, limit, 0, {0, 0, 0, 0, 0, 0}, ""}, kind, required, 0, 0};
    uint64_t allocations = kind == MEMTRACE_EXPECT_KIND_ALLOCATIONS ? limit : UINT64_MAX;
    uint64_t bytes = kind == MEMTRACE_EXPECT_KIND_BYTES ? limit : UINT64_MAX;
    if (memtrace_watch_begin) {
        expect.watch = memtrace_watch_begin(allocations, bytes, kind == MEMTRACE_EXPECT_KIND_LEAKS);
    }
    return expect;
}

static inline void memtrace_expect_fail(struct memtrace_expectation *expectation,
                                        const char *message) {
    memtrace_expect_handler handler =
        __atomic_load_n(&memtrace_expect_state.handler, __ATOMIC_ACQUIRE);
    expectation->message = message;
    __atomic_fetch_add(&memtrace_expect_state.failures, 1, __ATOMIC_RELAXED);
    (handler ? handler : memtrace_expect_print)(expectation);
}

/* A test that measures nothing must not pass for one that holds without a word. */
static inline void memtrace_expect_miss(struct memtrace_expect *expect) {
    char message[256];
    snprintf(message, sizeof message, "%s: not measured: MemTrace does not count in this thread",
             expect->expectation.macro);
    if (expect->required) {
        __atomic_fetch_add(&memtrace_expect_state.not_measured, 1, __ATOMIC_RELAXED);
        memtrace_expect_fail(&expect->expectation, message);
    } else if (__atomic_fetch_add(&memtrace_expect_state.not_measured, 1, __ATOMIC_RELAXED) == 0) {
        fprintf(stderr, "%s:%u: note: %s (said once; `memtrace run` counts)\n",
                expect->expectation.file, expect->expectation.line, message);
    }
}

/* What was found, and the call path of the first allocation that should not have been. */
static inline void memtrace_expect_tell(struct memtrace_expect *expect) {
    struct memtrace_expectation *expectation = &expect->expectation;
    const struct memtrace_watched *found = &expectation->found;
    const unsigned long long bytes = found->bytes;
    const unsigned long long allocations = found->allocations;
    const unsigned long long leaked_bytes = found->leaked_bytes;
    const unsigned long long leaked_blocks = found->leaked_blocks;
    const unsigned long long limit = expectation->limit;
    int leaks = expect->kind == MEMTRACE_EXPECT_KIND_LEAKS;
    char message[4096];
    char path[3072];
    size_t length = memtrace_describe_path(leaks ? found->leaked_context : found->over_context,
                                           path, sizeof path);
    const char *then = length != 0 ? "; the first of them at\n" : "";
    if (length != 0 && path[length - 1] == '\n') {
        path[length - 1] = '\0';
    }
    if (leaks) {
        snprintf(message, sizeof message, "%s: %llu byte%s in %llu block%s were not freed%s%s",
                 expectation->macro, leaked_bytes, leaked_bytes == 1 ? "" : "s", leaked_blocks,
                 leaked_blocks == 1 ? "" : "s", then, path);
    } else {
        then = length != 0 ? "; beyond that first at\n" : "";
        snprintf(message, sizeof message,
                 "%s: %llu allocation%s of %llu byte%s, more than %llu%s%s%s", expectation->macro,
                 allocations, allocations == 1 ? "" : "s", bytes, bytes == 1 ? "" : "s", limit,
                 expect->kind == MEMTRACE_EXPECT_KIND_BYTES ? " bytes" : "", then, path);
    }
    memtrace_expect_fail(expectation, message);
}

static inline void memtrace_expect_end(struct memtrace_expect *expect) {
    struct memtrace_watched *found = &expect->expectation.found;
    uint64_t counted = 0;
    if (expect->watch == 0 || memtrace_watch_end(expect->watch, found) != 0) {
        memtrace_expect_miss(expect);
        return;
    }
    expect->expectation.measured = 1;
    switch (expect->kind) {
    case MEMTRACE_EXPECT_KIND_ALLOCATIONS:
        counted = found->allocations;
        break;
    case MEMTRACE_EXPECT_KIND_BYTES:
        counted = found->bytes;
        break;
    case MEMTRACE_EXPECT_KIND_LEAKS:
        counted = found->leaked_blocks;
        break;
    }
    if (counted > expect->expectation.limit) {
        memtrace_expect_tell(expect);
    }
}

/* A loop of one turn, whose variable is judged when it goes. */
#define MEMTRACE_EXPECT_OF(macro, kind, limit, number)                                             \
    for (struct memtrace_expect memtrace_expect_##number                                           \
         __attribute__((cleanup(memtrace_expect_end))) = memtrace_expect_begin(                    \
             __FILE__, __LINE__, macro, kind, limit, MEMTRACE_EXPECT_REQUIRED);                    \
         memtrace_expect_##number.is_over++ == 0;)
#define MEMTRACE_EXPECT_AT(macro, kind, limit, number)                                             \
    MEMTRACE_EXPECT_OF(macro, kind, limit, number)
#define MEMTRACE_EXPECT_BLOCK(macro, kind, limit)                                                  \
    MEMTRACE_EXPECT_AT(macro, kind, limit, __COUNTER__)

#define MEMTRACE_EXPECT_NO_ALLOC                                                                   \
    MEMTRACE_EXPECT_BLOCK("MEMTRACE_EXPECT_NO_ALLOC", MEMTRACE_EXPECT_KIND_ALLOCATIONS, 0)
#define MEMTRACE_EXPECT_ALLOCATIONS_AT_MOST(count)                                                 \
    MEMTRACE_EXPECT_BLOCK("MEMTRACE_EXPECT_ALLOCATIONS_AT_MOST", MEMTRACE_EXPECT_KIND_ALLOCATIONS, \
                          count)
#define MEMTRACE_EXPECT_AT_MOST(bytes)                                                             \
    MEMTRACE_EXPECT_BLOCK("MEMTRACE_EXPECT_AT_MOST", MEMTRACE_EXPECT_KIND_BYTES, bytes)
#define MEMTRACE_EXPECT_NO_LEAK                                                                    \
    MEMTRACE_EXPECT_BLOCK("MEMTRACE_EXPECT_NO_LEAK", MEMTRACE_EXPECT_KIND_LEAKS, 0)

#ifdef __cplusplus
}
#endif
#endif
