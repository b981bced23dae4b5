/* SPDX-License-Identifier: MIT */
/* strip.c: see strip.h. */
#include "collect/transform/strip.h"

#include "analyze/base/array.h"
#include "analyze/base/job.h"
#include "analyze/base/scope.h"
#include "analyze/replay/lives.h"
#include "collect/cull.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- A set of blocks ---- */

enum {
    THREADS = 1 << MEMTRACE_THREAD_BITS,
    CHUNK_BYTES = 1 << 20, /* what is mapped at once; pages never touched take no room */
    CHUNK_NUMBERS = CHUNK_BYTES * 8,
    NUMBER_BITS = 48,
};

/*
 * Which blocks go: a bit for each block of a recording, by its name. The bits lie in a file without
 * a name ($TMPDIR or /tmp), so that the kernel can put them aside: a recording has more blocks than
 * memory has room for.
 */
struct blockset {
    int fd;
    off_t size;
    struct chunks {
        unsigned char **items; /* by number / CHUNK_NUMBERS; NULL: no bit is set there */
        size_t room;
    } threads[THREADS];
};

/* A descriptor, or -1 with errno. */
static int blockset_open(void) {
    const char *folder = getenv("TMPDIR");
    FILE *file;
    int fd = open(folder != NULL && *folder != '\0' ? folder : "/tmp",
                  O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0) {
        return fd;
    }
    file = tmpfile(); /* a file system that does not know of files without names */
    fd = file != NULL ? fcntl(fileno(file), F_DUPFD_CLOEXEC, 0) : -1;
    if (file != NULL) {
        fclose(file);
    }
    return fd;
}

static void blockset_close(struct blockset *set) {
    for (size_t thread = 0; thread < THREADS; thread++) {
        struct chunks *chunks = &set->threads[thread];
        for (size_t i = 0; i < chunks->room; i++) {
            if (chunks->items[i] != NULL) {
                munmap(chunks->items[i], CHUNK_BYTES);
            }
        }
        free(chunks->items);
    }
    scope_close(&set->fd);
}

/* Adds a block; not names that no block can have. 0, or errno: it ends no job, since events are
 * read meanwhile by another thread. */
static int blockset_add(struct blockset *set, struct event_block block) {
    size_t place = block.number / CHUNK_NUMBERS;
    size_t bit = block.number % CHUNK_NUMBERS;
    struct chunks *chunks;
    size_t before;
    void *mapped = MAP_FAILED;
    if (block.thread >= THREADS || block.number >> NUMBER_BITS != 0) {
        return 0;
    }
    chunks = &set->threads[block.thread];
    before = chunks->room;
    if (array_reserve(&chunks->items, &chunks->room, place + 1, sizeof *chunks->items) != 0) {
        return ENOMEM;
    }
    for (size_t i = before; i < chunks->room; i++) {
        chunks->items[i] = NULL;
    }
    if (chunks->items[place] == NULL) {
        if (ftruncate(set->fd, set->size + CHUNK_BYTES) == 0) {
            mapped =
                mmap(NULL, CHUNK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, set->fd, set->size);
        }
        if (mapped == MAP_FAILED) {
            return errno;
        }
        set->size += CHUNK_BYTES;
        chunks->items[place] = mapped;
    }
    chunks->items[place][bit / 8] |= (unsigned char)(1u << bit % 8);
    return 0;
}

static bool blockset_has(const struct blockset *set, struct event_block block) {
    size_t place = block.number / CHUNK_NUMBERS;
    size_t bit = block.number % CHUNK_NUMBERS;
    const struct chunks *chunks;
    if (block.thread >= THREADS) {
        return false;
    }
    chunks = &set->threads[block.thread];
    return place < chunks->room && chunks->items[place] != NULL &&
           (chunks->items[place][bit / 8] >> bit % 8 & 1) != 0;
}

/* ---- Which blocks go ---- */

/* A thread's newest heap block: temporary if it is freed next. number 0: none. */
struct newest {
    struct event_block block;
    uint32_t context;
};

struct strip {
    struct strip_options options;
    struct blockset dropped;
    struct cull_totals totals;
    uint64_t count;
    uint64_t bytes;
    bool *is_heap; /* by context */
    bool adjacent; /* only what ends in the very next event is temporary (MEMTRACE_FLAG_ADJACENT) */
    size_t context_count;
    struct newest all;  /* of the stream that is rewritten, as it was */
    struct newest kept; /* and as it will be */
    uint32_t stream;
};

static bool strip_drops(const struct strip *strip, const struct life *life) {
    if (life->weight != 0 || life->is_inherited || life->death_ns == LIFE_ALIVE ||
        life->death_thread != life->block.thread) {
        return false;
    }
    return (strip->options.temporary && life->is_temporary) ||
           life->death_ns - life->birth_ns < strip->options.below_ns;
}

static int strip_look(void *context, const struct life *life) {
    struct strip *strip = context;
    struct memtrace_culled *total;
    int reason;
    if (!strip_drops(strip, life)) {
        return 0;
    }
    total = cull_total(&strip->totals, life->context, life->block.thread);
    reason = total != NULL ? blockset_add(&strip->dropped, life->block) : ENOMEM;
    if (reason == 0) {
        total->count++;
        total->bytes += life->size;
        total->temporary += life->is_temporary;
        strip->count++;
        strip->bytes += life->size;
    }
    return reason;
}

static void strip_undo(void *what) {
    struct strip *strip = what;
    blockset_close(&strip->dropped);
    cull_free_totals(&strip->totals);
}

struct strip *strip_new(struct timeorder_parts parts, const struct model *whole,
                        const struct strip_options *options,
                        const struct replay_options *replay_options) {
    struct strip *strip = job_alloc(sizeof *strip);
    const struct lives_visitor visitor = {.end = strip_look, .context = strip};
    struct error error;
    int result;
    strip->dropped.fd = blockset_open();
    if (strip->dropped.fd < 0) {
        job_fail("cannot make a temporary file: %s", strerror(errno));
    }
    job_undo(strip_undo, strip);
    strip->context_count = whole->node_count;
    strip->is_heap = job_array(whole->node_count, sizeof *strip->is_heap);
    for (size_t i = 0; i < whole->context_count; i++) {
        strip->is_heap[whole->contexts[i].id] = whole->contexts[i].class == MODEL_HEAP;
    }
    strip->options = *options;
    strip->adjacent = (whole->header.flags & MEMTRACE_FLAG_ADJACENT) != 0;
    result = lives_visit(parts, whole, &visitor, replay_options, &error);
    if (result > 0) {
        job_fail("cannot note which blocks go: %s", strerror(result));
    }
    job_check(result, &error);
    return strip;
}

/* ---- The new file ---- */

static bool newest_is(const struct newest *newest, struct event_block block) {
    return newest->block.number == block.number && newest->block.thread == block.thread;
}

/* A block that is kept is freed. If all that was allocated since goes, it would count as temporary
 * from now on: the sums say one less. */
static void strip_note_free(struct strip *strip, struct event_block block) {
    if (newest_is(&strip->kept, block) && !newest_is(&strip->all, block)) {
        struct memtrace_culled *total =
            cull_total(&strip->totals, strip->kept.context, block.thread);
        if (total == NULL) {
            job_fail_memory();
        }
        total->temporary--;
    }
}

static void strip_note_alloc(struct strip *strip, const struct event *event, bool is_kept) {
    const struct newest newest = {event->block, event->context};
    if (event->context >= strip->context_count || !strip->is_heap[event->context]) {
        return;
    }
    strip->all = newest;
    if (is_kept) {
        strip->kept = newest;
    }
}

/* Whether it is kept. */
static bool strip_free(struct strip *strip, struct event_block block) {
    bool is_kept = !blockset_has(&strip->dropped, block);
    if (strip->adjacent) {
        strip->all = (struct newest){0};
    }
    if (is_kept && block.number != 0) {
        strip_note_free(strip, block);
    }
    if (is_kept && strip->adjacent) {
        strip->kept = (struct newest){0};
    }
    return is_kept;
}

static bool strip_event(void *context, const struct memtrace_block_header *stream,
                        struct event *event) {
    struct strip *strip = context;
    bool old_goes;
    bool block_goes;
    if (stream->stream != strip->stream) {
        strip->stream = stream->stream;
        strip->all = strip->kept = (struct newest){0};
    }
    if (event->kind == EVENT_FREE) {
        return strip_free(strip, event->block);
    }
    if (event->kind != EVENT_ALLOC) {
        if (strip->adjacent || (event->kind == EVENT_LOST && event->lost_allocs != 0)) {
            strip->all = strip->kept = (struct newest){0};
        }
        return true;
    }
    old_goes = event->old.number == 0 || blockset_has(&strip->dropped, event->old);
    block_goes = blockset_has(&strip->dropped, event->block);
    if (!old_goes) {
        strip_note_free(strip, event->old);
    }
    strip_note_alloc(strip, event, !block_goes);
    return cull_alloc(event, old_goes, block_goes);
}

static int strip_compare(const void *left, const void *right) {
    const struct memtrace_culled *a = left;
    const struct memtrace_culled *b = right;
    return a->context != b->context ? (a->context > b->context) - (a->context < b->context)
                                    : (a->thread > b->thread) - (a->thread < b->thread);
}

static void strip_finish(void *context, struct recordwriter *writer) {
    const struct cull_totals *totals = &((struct strip *)context)->totals;
    array_sort(totals->items, totals->count, sizeof *totals->items, strip_compare);
    recordwriter_table(writer, MEMTRACE_BLOCK_CULLED, totals->items, totals->count,
                       sizeof *totals->items);
}

struct transform_step strip_step(struct strip *strip) {
    return (struct transform_step){.event = strip_event, .finish = strip_finish, .context = strip};
}

uint64_t strip_count(const struct strip *strip, uint64_t *bytes) {
    *bytes = strip->bytes;
    return strip->count;
}
