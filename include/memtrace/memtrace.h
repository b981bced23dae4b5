/* SPDX-License-Identifier: MIT */
/*
 * memtrace.h: what a program may ask of the MemTrace runtime inside it.
 *
 * Every function is weak: a program that calls them through the MEMTRACE_* macros or after testing
 * memtrace_available() links and runs without the library. All are thread-safe; those marked
 * "handler-safe" may be called in a signal handler. None changes errno, throws or aborts.
 */
#ifndef MEMTRACE_MEMTRACE_H
#define MEMTRACE_MEMTRACE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#define MEMTRACE_NOEXCEPT noexcept
#else
#define MEMTRACE_NOEXCEPT
#endif

#define MEMTRACE_API __attribute__((weak, visibility("default")))

/* For MODE pass: promises that a function neither allocates nor calls anything that might, so that
 * calls of it cost nothing and it is left out itself. Stands in front of a declaration:
 *     MEMTRACE_NO_ALLOC unsigned checksum(const void *data, size_t size);
 * A wrong promise puts allocations under wrong callers. Without the plugin it is empty. */
#if defined(__clang__) && __clang_major__ < 18
/* These keep annotations of definitions only, assumptions of declarations, too. */
#define MEMTRACE_NO_ALLOC                                                                          \
    _Pragma("clang diagnostic push") _Pragma("clang diagnostic ignored \"-Wunknown-assumption\"")  \
        __attribute__((annotate("memtrace_no_alloc"), assume("memtrace_no_alloc")))                \
        _Pragma("clang diagnostic pop")
#elif defined(__clang__)
#define MEMTRACE_NO_ALLOC __attribute__((annotate("memtrace_no_alloc")))
#elif defined(__has_attribute)
#if __has_attribute(memtrace_no_alloc)
#define MEMTRACE_NO_ALLOC __attribute__((memtrace_no_alloc))
#endif
#endif
#ifndef MEMTRACE_NO_ALLOC
#define MEMTRACE_NO_ALLOC
#endif

/* Starts (or goes on with) counting, and recording where a recording was asked for. 0, or -1 where
 * the runtime is switched off for good (MEMTRACE=off, no room for a profile). Blocks allocated
 * while stopped stay out. */
MEMTRACE_API int memtrace_start(void) MEMTRACE_NOEXCEPT;

/* Stops counting new allocations; frees of blocks counted before are still counted. What another
 * thread allocates at this moment may be counted yet. */
MEMTRACE_API void memtrace_stop(void) MEMTRACE_NOEXCEPT;

/* 1 while allocations are counted, else 0. Handler-safe. */
MEMTRACE_API int memtrace_is_active(void) MEMTRACE_NOEXCEPT;

/* Asks whoever prints the periodic report (the collector, else the runtime itself) for one now, and
 * marks the moment in the recording. */
MEMTRACE_API void memtrace_snapshot(void) MEMTRACE_NOEXCEPT;

/* Marks this moment in the recording; at most 4,096 bytes of the text are kept. Without a recording
 * it does nothing. */
MEMTRACE_API void memtrace_mark(const char *text) MEMTRACE_NOEXCEPT;

/* Marks the beginning and the end of something with a name: a request, a phase. Scopes may overlap,
 * and end in another thread. The result names the scope until it ends; 0: nothing is recorded, and
 * memtrace_scope_end(0) does nothing. */
MEMTRACE_API uint64_t memtrace_scope_begin(const char *name) MEMTRACE_NOEXCEPT;
MEMTRACE_API void memtrace_scope_end(uint64_t scope) MEMTRACE_NOEXCEPT;

/* From now on one allocation in about so many bytes is counted, chosen at random, and stands for
 * the others (as with --sample): what reports show of them are estimates. 0: each one is counted.
 * Where events are recorded it is the recording that is sampled, and the profile counts all. What
 * is stopped stays so. Handler-safe. */
MEMTRACE_API void memtrace_sample(size_t mean_bytes) MEMTRACE_NOEXCEPT;

/* One calling context, as seen by a filter. `frames` are return addresses, innermost first, owned
 * by the caller and gone after the callback. */
struct memtrace_context_view {
    uint64_t live_bytes;
    uint64_t live_blocks;
    uint64_t total_bytes;
    uint64_t allocations;
    const void *const *frames;
    size_t frame_count;
};

/* Returns non-zero for the contexts to report. Must not call memtrace_report() itself. */
typedef int (*memtrace_filter)(const struct memtrace_context_view *context, void *argument);

/* Writes the contexts that hold live memory to the file descriptor, largest last, as
 * module+offset lines (`memtrace symbolize` names them). filter may be NULL: all.
 * Returns the number of contexts written, or -1 if nothing is counted or a write failed. */
MEMTRACE_API long memtrace_report(int fd, memtrace_filter filter, void *argument) MEMTRACE_NOEXCEPT;

/* Totals of one thread over heap blocks. `id` is MemTrace's, `tid` the kernel's. */
struct memtrace_thread_view {
    uint32_t id;
    uint32_t tid;
    int alive;
    const char *name; /* valid during the callback */
    uint64_t allocations;
    uint64_t total_bytes;
    uint64_t frees;
    uint64_t freed_bytes;
    uint64_t freed_for_others_blocks; /* blocks of other threads that this one freed */
    uint64_t freed_for_others_bytes;
};

/* Calls `callback` for every thread seen so far. Returns their number, or -1. */
MEMTRACE_API long memtrace_thread_report(void (*callback)(const struct memtrace_thread_view *thread,
                                                          void *argument),
                                         void *argument) MEMTRACE_NOEXCEPT;

/* Whose memory did thread `id` free? Calls back once for each other thread whose blocks it freed.
 * Returns the number of calls, or -1 if there is no such thread. */
MEMTRACE_API long memtrace_thread_frees(uint32_t id,
                                        void (*callback)(uint32_t owner, uint64_t blocks,
                                                         uint64_t bytes, void *argument),
                                        void *argument) MEMTRACE_NOEXCEPT;

/* Names the calling thread in reports; at most 31 bytes are kept. */
MEMTRACE_API void memtrace_name_thread(const char *name) MEMTRACE_NOEXCEPT;

/* What is known of the live block that contains `address` (interior pointers too). */
struct memtrace_block {
    const void *start;
    size_t size;            /* bytes asked for */
    uint64_t age_ns;        /* to about 8 ms: 5 of the clock, and whole ticks */
    uint32_t thread;        /* MemTrace's id of the thread that allocated it */
    uint32_t context;       /* its context id in the profile */
    uint32_t frame_count;   /* frames of the path, those that did not fit included */
    const void *frames[64]; /* return addresses, innermost first */
};

/* Fills *block and returns 1, or returns 0: not a live block. */
MEMTRACE_API int memtrace_lookup(const void *address,
                                 struct memtrace_block *block) MEMTRACE_NOEXCEPT;

/* For debuggers, `call memtrace_print_trace(p)`: writes the path that allocated the block that
 * contains `address`, its size, age and thread, to stderr; or "not a live block". */
MEMTRACE_API void memtrace_print_trace(const void *address) MEMTRACE_NOEXCEPT;

/* What the calling thread allocates from here to memtrace_watch_end(), exactly: what
 * memtrace/expect.h is made of. Watches may lie in each other, and end in the thread they began in.
 * Returns the watch, or 0: nothing is counted now, or more than 32 lie in each other. leaks: also
 * finds what stays alive. Handler-safe. */
MEMTRACE_API uint32_t memtrace_watch_begin(uint64_t most_allocations, uint64_t most_bytes,
                                           int leaks) MEMTRACE_NOEXCEPT;

struct memtrace_watched {
    uint64_t allocations; /* of the heap; each reallocation is one */
    uint64_t bytes;
    uint64_t leaked_blocks; /* of them: not freed so far, by whatever thread */
    uint64_t leaked_bytes;
    uint32_t over_context;   /* of the first allocation beyond one of the limits; 0: none */
    uint32_t leaked_context; /* of the first that was not freed */
};
/* Ends a watch, and those inside it that were left without an end. 0, or -1: it is not there (it
 * began in another thread, or before a fork), or not all could be followed. Handler-safe. */
MEMTRACE_API int memtrace_watch_end(uint32_t watch,
                                    struct memtrace_watched *watched) MEMTRACE_NOEXCEPT;

/* Writes the call path of a context, innermost first, as module+offset lines (`memtrace symbolize`
 * names them), as many as fit. Returns the length of the text. Handler-safe. */
MEMTRACE_API size_t memtrace_describe_path(uint32_t context, char *text,
                                           size_t size) MEMTRACE_NOEXCEPT;

/* Custom allocators. `pool` names the allocator (at most 63 bytes are kept, at most 1,000 names);
 * its objects are counted apart from the heap, by pool. Objects of pools must start at least 8
 * bytes apart. memtrace_realloc with old == NULL is an allocation. pool == NULL: blocks of the
 * heap, for an allocator that stands in for malloc and is not reached by preloading
 * (docs/allocators.md): they are part of the heap's totals, and to be freed with NULL, too. */
MEMTRACE_API void memtrace_alloc(const char *pool, const void *pointer,
                                 size_t size) MEMTRACE_NOEXCEPT;
MEMTRACE_API void memtrace_realloc(const char *pool, const void *old_pointer, const void *pointer,
                                   size_t size) MEMTRACE_NOEXCEPT;
MEMTRACE_API void memtrace_free(const char *pool, const void *pointer) MEMTRACE_NOEXCEPT;

/* Whether a runtime is there to answer. */
static inline int memtrace_available(void) {
    return memtrace_is_active != NULL;
}

/* The same calls for programs that may run without the library. */
#define MEMTRACE_ALLOC(pool, pointer, size)                                                        \
    ((void)(memtrace_alloc ? memtrace_alloc((pool), (pointer), (size)) : (void)0))
#define MEMTRACE_REALLOC(pool, old_pointer, pointer, size)                                         \
    ((void)(memtrace_realloc ? memtrace_realloc((pool), (old_pointer), (pointer), (size))          \
                             : (void)0))
#define MEMTRACE_FREE(pool, pointer)                                                               \
    ((void)(memtrace_free ? memtrace_free((pool), (pointer)) : (void)0))

#define MEMTRACE_MARK(text)        ((void)(memtrace_mark ? memtrace_mark(text) : (void)0))
#define MEMTRACE_SCOPE_BEGIN(name) (memtrace_scope_begin ? memtrace_scope_begin(name) : 0)
#define MEMTRACE_SCOPE_END(scope)  ((void)(memtrace_scope_end ? memtrace_scope_end(scope) : (void)0))

static inline void memtrace_scope_leave(const uint64_t *scope) {
    MEMTRACE_SCOPE_END(*scope);
}

/* A scope from here to the end of the block, however it is left (but by longjmp):
 *     MEMTRACE_SCOPE("request"); */
#define MEMTRACE_SCOPE(name)            MEMTRACE_SCOPE_AT(name, __COUNTER__)
#define MEMTRACE_SCOPE_AT(name, number) MEMTRACE_SCOPE_OF(name, number)
#define MEMTRACE_SCOPE_OF(name, number)                                                            \
    __attribute__((cleanup(memtrace_scope_leave), unused))                                         \
    const uint64_t memtrace_scope_##number = MEMTRACE_SCOPE_BEGIN(name)

#ifdef __cplusplus
}

namespace memtrace {
/* The same as an object. */
class scope {
  public:
    explicit scope(const char *name) noexcept : id_(MEMTRACE_SCOPE_BEGIN(name)) {
    }
    ~scope() {
        MEMTRACE_SCOPE_END(id_);
    }
    scope(const scope &) = delete;
    scope &operator=(const scope &) = delete;

  private:
    const uint64_t id_;
};
} // namespace memtrace
#endif
#endif
