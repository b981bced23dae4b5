/* SPDX-License-Identifier: MIT */
/*
 * api.c: every function of memtrace.h, compiled as C and as C++ (api.cpp). `api NAME` runs one case
 * and prints what is wrong; without a runtime (case "without") all must be harmless.
 */
#include "memtrace/memtrace.h"
#include "subject.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>

NOINLINE static void *take(size_t size) {
    void *block = malloc(size);
    keep(block);
    return block;
}

static void case_without(void) {
    check(!memtrace_available(), "no runtime");
    int object = 0;
    MEMTRACE_ALLOC("pool", &object, 4);
    MEMTRACE_REALLOC("pool", &object, &object, 8);
    MEMTRACE_FREE("pool", &object);
    MEMTRACE_MARK("mark");
    MEMTRACE_SCOPE("scope");
    MEMTRACE_SCOPE_END(MEMTRACE_SCOPE_BEGIN("another"));
    keep(take(100));
}

static void case_start_stop(void) {
    check(memtrace_available(), "a runtime");
    check(memtrace_is_active() == 1, "active from the start");
    void *before = take(90001);
    memtrace_stop();
    check(memtrace_is_active() == 0, "stopped");
    void *between = take(90003);
    free(before); /* known: counted */
    check(memtrace_start() == 0, "started again");
    check(memtrace_is_active() == 1, "active again");
    free(between); /* unknown: stays out */
    take(90005);
    errno = 33;
    memtrace_stop();
    memtrace_start();
    memtrace_snapshot();
    check(errno == 33, "errno is kept");
}

/* In a recording; without one all of it is harmless. */
static void case_marks(void) {
    static char text[5000];
    memset(text, 'x', sizeof text - 1);
    errno = 33;
    memtrace_mark("a mark");
    {
        MEMTRACE_SCOPE("outer");
        uint64_t inner = memtrace_scope_begin("inner");
        MEMTRACE_SCOPE_END(inner);
        take(90061);
        memtrace_stop();
        memtrace_mark("while off");
        take(90063);
        memtrace_start();
    }
#ifdef __cplusplus
    {
        memtrace::scope object("object");
        check(memtrace_is_active(), "active");
    }
#endif
    memtrace_snapshot();
    memtrace_mark("");
    memtrace_mark(text);
    memtrace_scope_end(0);
    check(errno == 33, "errno is kept");
}

NOINLINE static void take_many(size_t count, size_t size) {
    for (size_t i = 0; i < count; i++) {
        take(size);
    }
}

/* Each allocation, then one in a gigabyte or so, then each again. */
static void case_sample(void) {
    take_many(1000, 3001);
    memtrace_sample((size_t)1 << 30);
    take_many(1000, 3003);
    memtrace_sample(0);
    take_many(1000, 3005);
}

static int only_large(const struct memtrace_context_view *context, void *argument) {
    unsigned *calls = (unsigned *)argument;
    ++*calls;
    check(context->live_bytes <= context->total_bytes, "live is part of total");
    check(context->live_blocks <= context->allocations, "blocks are part of allocations");
    check(context->frame_count > 0 && context->frames[0] != NULL, "frames");
    return context->live_bytes == 3 * 90011;
}

static void case_filter(void) {
    char text[16384];
    for (size_t i = 0, count = opaque(3); i < count; i++) {
        take(90011);
    }
    take(90013);
    int fd = memfd_create("report", 0);
    unsigned calls = 0;
    check(memtrace_report(fd, only_large, &calls) == 1, "one context passes the filter");
    check(calls >= 2, "the filter sees all");
    ssize_t got = pread(fd, text, sizeof text - 1, 0);
    text[got > 0 ? got : 0] = 0;
    check(strstr(text, "+0x") != NULL, "module+offset lines");
    check(strstr(text, "270033") != NULL || strstr(text, "270,033") != NULL ||
              strstr(text, "263.7 KiB") != NULL,
          "the bytes");
    check(memtrace_report(fd, NULL, NULL) >= 2, "all contexts");
    check(memtrace_report(-1, NULL, NULL) == -1, "a bad descriptor");
    int full = open("/dev/full", O_WRONLY);
    check(memtrace_report(full, NULL, NULL) == -1, "a full disk");
}

static void *given[2];
static uint32_t worker_id;

static void *worker(void *argument) {
    memtrace_name_thread("the worker with a name that is far too long");
    free(given[0]);
    free(given[1]);
    take(90021);
    return argument;
}

static unsigned named;

static void see_thread(const struct memtrace_thread_view *thread, void *argument) {
    ++*(unsigned *)argument;
    if (thread->name != NULL && strncmp(thread->name, "the worker with a name", 22) == 0) {
        named++;
        worker_id = thread->id;
        check(strlen(thread->name) <= 31, "31 bytes of the name");
        check(thread->freed_for_others_blocks == 2, "two blocks of another's");
        check(thread->freed_for_others_bytes == 2 * 90023, "their bytes");
        check(thread->frees >= 2 && thread->allocations >= 1, "its own events");
        check(thread->total_bytes >= 90021, "its own bytes");
        check(!thread->alive, "it is gone");
    }
}

static void see_owner(uint32_t owner, uint64_t blocks, uint64_t bytes, void *argument) {
    ++*(unsigned *)argument;
    check(owner != worker_id, "another thread");
    check(blocks == 2 && bytes == 2 * 90023, "what it freed");
}

static void *watcher(void *argument) {
    check(memtrace_watch_begin(0, 0, 1) != 0, "a watch of a thread");
    take(90027);
    return argument;
}

static void make_watchers(int count) {
    for (int i = 0; i < count; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, watcher, NULL);
        pthread_join(thread, NULL);
    }
}

/* Pages of address space. */
static long size_now(void) {
    char text[64] = "";
    int fd = open("/proc/self/statm", O_RDONLY);
    check(read(fd, text, sizeof text - 1) > 0, "statm");
    close(fd);
    return atol(text);
}

/* Threads that end while they watch: each had a page at least. */
static void see_that_nothing_stays(void) {
    long before;
    make_watchers(10);
    before = size_now();
    make_watchers(200);
    check(size_now() - before < 200, "nothing stays of watches");
}

static void case_threads(void) {
    pthread_t thread;
    unsigned threads = 0, owners = 0;
    given[0] = take(90023);
    given[1] = take(90023);
    pthread_create(&thread, NULL, worker, NULL);
    pthread_join(thread, NULL);
    check(memtrace_thread_report(see_thread, &threads) == (long)threads, "a call a thread");
    check(threads >= 2 && named == 1, "both threads are seen");
    check(memtrace_thread_frees(worker_id, see_owner, &owners) == 1 && owners == 1, "one owner");
    check(memtrace_thread_frees(4000000, see_owner, &owners) == -1, "no such thread");
    see_that_nothing_stays();
}

NOINLINE static void use_pool(const char *name, char *memory) {
    for (int i = 0; i < 10; i++) {
        memtrace_alloc(name, memory + i * 8, 8);
    }
    memtrace_free(name, memory);
    memtrace_realloc(name, memory + 8, memory + 4096, 90031);
    memtrace_realloc(name, NULL, memory + 2048, 90033);
    memtrace_free(name, memory + 1000 * 8); /* unknown: ignored */
}

static void case_pools(void) {
    static char memory[2][16384] __attribute__((aligned(64)));
    use_pool("first pool", memory[0]);
    use_pool("second pool", memory[1]);
    for (int i = 0; i < 1200; i++) { /* more names than there is room for */
        char name[100];
        snprintf(name, sizeof name, "pool number %d %080d", i, i);
        memtrace_alloc(name, memory[0] + 8192 + (i % 1000) * 8, 1);
        memtrace_free(name, memory[0] + 8192 + (i % 1000) * 8);
    }
}

/* An allocator that stands in for malloc says so: blocks as near to each other as 8 bytes, a pool's
 * object at the very place of one. */
static void case_heap(void) {
    static char memory[8192] __attribute__((aligned(64)));
    struct memtrace_block block;
    for (int i = 0; i < 500; i++) {
        memtrace_alloc(NULL, memory + 8 * i, 7);
    }
    for (int i = 0; i < 500; i += 5) {
        memtrace_free(NULL, memory + 8 * i);
    }
    memtrace_alloc(NULL, memory + 4096, 2001);
    memtrace_alloc("inside", memory + 4096, 64);
    check(memtrace_lookup(memory + 4100, &block) == 1 && block.size == 64, "the pool's object");
    check(memtrace_lookup(memory + 4200, &block) == 1 && block.size == 2001, "the block around it");
    memtrace_realloc(NULL, memory + 4096, memory + 6144, 2003);
    check(memtrace_lookup(memory + 4200, &block) == 0, "the block that was moved");
    memtrace_free("inside", memory + 4096);
    check(memtrace_lookup(memory + 6200, &block) == 1 && block.size == 2003, "where it is now");
}

static void case_lookup(void) {
    struct memtrace_block block;
    char *small = (char *)take(77), *large = (char *)take(90041);
    size_t huge_size = (size_t)64 << 20;
    char *huge = (char *)take(huge_size);
    int local = 0;
    check(memtrace_lookup(small, &block) == 1, "a small block");
    check(block.start == small && block.size == 77, "its start and size");
    check(block.frame_count >= 2 && block.frames[0] != NULL, "its path");
    check(memtrace_lookup(small + 76, &block) == 1 && block.start == small, "its last byte");
    check(memtrace_lookup(large + 40000, &block) == 1 && block.start == large, "an inner pointer");
    check(block.size == 90041, "the large one's size");
    check(memtrace_lookup(huge + huge_size - 1, &block) == 1 && block.start == huge &&
              block.size == huge_size,
          "the last byte of a huge one");
    check(memtrace_lookup(large - 8, &block) == 0, "before a block");
    check(memtrace_lookup(large + 90041 + 64, &block) == 0 || block.start != large, "behind it");
    check(memtrace_lookup(&local, &block) == 0, "the stack");
    check(memtrace_lookup(NULL, &block) == 0, "nothing");
    check(memtrace_lookup((void *)UINTPTR_MAX, &block) == 0, "the end of the world");
    check(memtrace_lookup((void *)case_without, &block) == 0, "code");
    free(small);
    check(memtrace_lookup(small, &block) == 0, "a freed block");
    usleep(20000);
    check(memtrace_lookup(large, &block) == 1 && block.age_ns < 60000000000u, "an age");
    memtrace_print_trace(large + 5);
    memtrace_print_trace(&local);
}

/* --- in a forked child, before anything else of it is counted ----------------------------------
 */

static char *of_parent;

static void child_looks_up(void) {
    struct memtrace_block block;
    char text[4096];
    check(memtrace_lookup(of_parent + 7, &block) == 1, "the parent's block");
    check(block.start == of_parent && block.size == 90051 && block.frame_count >= 2, "what it is");
    check(memtrace_describe_path(block.context, text, sizeof text) != 0, "its path");
}

static void child_describes(void) {
    struct memtrace_block block;
    char text[4096];
    (void)memtrace_lookup(of_parent, &block);
    check(memtrace_describe_path(block.context, text, sizeof text) != 0 && strstr(text, "+0x"),
          "a path");
}

static void child_prints(void) {
    memtrace_print_trace(of_parent);
}

static int only_parents(const struct memtrace_context_view *context, void *argument) {
    (void)argument;
    return context->live_bytes == 90051 && context->frame_count > 0;
}

static void child_reports(void) {
    int fd = memfd_create("report", 0);
    check(memtrace_report(fd, only_parents, NULL) == 1, "what it was born with");
}

static void count_thread(const struct memtrace_thread_view *thread, void *argument) {
    *(unsigned *)argument += thread->alive != 0;
}

static void child_reports_threads(void) {
    unsigned alive = 0;
    check(memtrace_thread_report(count_thread, &alive) >= 1, "its thread");
    check(alive == 1, "and no other one lives");
}

static void count_owner(uint32_t owner, uint64_t blocks, uint64_t bytes, void *argument) {
    (void)owner;
    (void)blocks;
    (void)bytes;
    ++*(unsigned *)argument;
}

static void child_asks_for_frees(void) {
    unsigned owners = 0;
    check(memtrace_thread_frees(4000000, count_owner, &owners) == -1 && owners == 0, "no thread");
}

static void child_stops(void) {
    check(memtrace_is_active() == 1, "active");
    memtrace_stop();
    check(memtrace_is_active() == 0, "stopped");
    check(memtrace_start() == 0 && memtrace_is_active() == 1, "started");
}

static void child_starts(void) {
    check(memtrace_start() == 0 && memtrace_is_active() == 1, "started");
}

static void child_watches(void) {
    struct memtrace_watched watched;
    uint32_t watch = memtrace_watch_begin(0, 0, 1);
    check(watch != 0, "a watch");
    free(take(31));
    take(33);
    check(memtrace_watch_end(watch, &watched) == 0, "its end");
    check(watched.allocations == 2 && watched.bytes == 64, "what was allocated");
    check(watched.leaked_blocks == 1 && watched.leaked_bytes == 33, "what is left");
}

static void child_uses_a_pool(void) {
    memtrace_alloc("a child's pool", of_parent, 24);
    memtrace_realloc("a child's pool", of_parent, of_parent + 64, 48);
    memtrace_free("a child's pool", of_parent + 64);
    memtrace_free("a child's pool", of_parent + 128);
}

static void child_marks(void) {
    memtrace_mark("a mark");
    memtrace_scope_end(memtrace_scope_begin("a scope"));
    memtrace_snapshot();
    memtrace_name_thread("a child");
}

static void child_samples(void) {
    memtrace_sample(1 << 20);
    free(take(77));
    memtrace_sample(0);
}

static void case_forked(void) {
    static void (*const first[])(void) = {
        child_looks_up,        child_describes,      child_prints, child_reports,
        child_reports_threads, child_asks_for_frees, child_stops,  child_starts,
        child_watches,         child_uses_a_pool,    child_marks,  child_samples};
    of_parent = (char *)take(90051);
    for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
        int status = -1;
        pid_t pid = fork();
        if (pid == 0) {
            struct memtrace_block block;
            char *own;
            errno = 77;
            first[i]();
            own = (char *)take(90053);
            check(memtrace_lookup(own, &block) == 1 && block.size == 90053, "counting goes on");
            free(own);
            check(memtrace_lookup(own, &block) == 0, "and frees are seen");
            exit(5);
        }
        check(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 5,
              "a child ends as it should");
    }
    free(of_parent);
}

int main(int argc, char **argv) {
    static const struct subject_case cases[] = {
        CASE(without), CASE(start_stop), CASE(filter), CASE(threads), CASE(pools),
        CASE(lookup),  CASE(marks),      CASE(sample), CASE(forked),  CASE(heap)};
    const struct subject_case *found = FIND_CASE(cases, argc, argv);
    if (found == NULL) {
        return 98;
    }
    found->run();
    say("done\n");
    return 3;
}
