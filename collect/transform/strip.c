/* SPDX-License-Identifier: MIT */
/* strip.c: see strip.h. */
#include "collect/transform/strip.h"

#include "analyze/base/array.h"
#include "analyze/base/numbermap.h"
#include "analyze/replay/lives.h"

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
static int open_file(void) {
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
    if (set->fd >= 0) {
        close(set->fd);
    }
}

/* Makes room for this many chunks. 0, or -1: out of memory. */
static int reach(struct chunks *chunks, size_t count) {
    size_t before = chunks->room;
    if (array_reserve(&chunks->items, &chunks->room, count, sizeof *chunks->items) != 0) {
        return -1;
    }
    for (size_t i = before; i < chunks->room; i++) {
        chunks->items[i] = NULL;
    }
    return 0;
}

static unsigned char *map_chunk(struct blockset *set) {
    void *chunk = MAP_FAILED;
    if (ftruncate(set->fd, set->size + CHUNK_BYTES) == 0) {
        chunk = mmap(NULL, CHUNK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, set->fd, set->size);
    }
    if (chunk == MAP_FAILED) {
        return NULL;
    }
    set->size += CHUNK_BYTES;
    return chunk;
}

/* Adds a block. 0, or -1: errno; names that no block can have are no failure. */
static int blockset_add(struct blockset *set, struct event_block block) {
    size_t place = block.number / CHUNK_NUMBERS;
    size_t bit = block.number % CHUNK_NUMBERS;
    struct chunks *chunks;
    if (block.thread >= THREADS || block.number >> NUMBER_BITS != 0) {
        return 0;
    }
    chunks = &set->threads[block.thread];
    if (reach(chunks, place + 1) != 0) {
        return -1;
    }
    if (chunks->items[place] == NULL) {
        chunks->items[place] = map_chunk(set);
        if (chunks->items[place] == NULL) {
            return -1;
        }
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
    struct memtrace_culled *totals;
    size_t total_count;
    size_t total_room;
    struct numbermap places; /* by context and thread: its place in totals, plus one */
    uint64_t count;
    uint64_t bytes;
    bool *is_heap; /* by context */
    bool adjacent; /* only what ends in the very next event is temporary (MEMTRACE_FLAG_ADJACENT) */
    size_t context_count;
    struct newest all;  /* of the stream that is rewritten, as it was */
    struct newest kept; /* and as it will be */
    uint32_t stream;
};

static bool goes(const struct strip *strip, const struct life *life) {
    if (life->weight != 0 || life->is_inherited || life->death_ns == LIFE_ALIVE ||
        life->death_thread != life->block.thread) {
        return false;
    }
    return (strip->options.temporary && life->is_temporary) ||
           life->death_ns - life->birth_ns < strip->options.below_ns;
}

/* The sums of a context's blocks of a thread. NULL: out of memory. */
static struct memtrace_culled *total_of(struct strip *strip, uint32_t context, uint32_t thread) {
    uint64_t key = (uint64_t)context << 32 | thread;
    uintptr_t place = (uintptr_t)numbermap_get(&strip->places, key);
    if (place != 0) {
        return &strip->totals[place - 1];
    }
    if (array_grow(&strip->totals, &strip->total_room, strip->total_count, sizeof *strip->totals) !=
        0) {
        return NULL;
    }
    if (numbermap_put(&strip->places, key, (void *)(strip->total_count + 1)) != 0) {
        return NULL;
    }
    strip->totals[strip->total_count] =
        (struct memtrace_culled){.context = context, .thread = thread};
    return &strip->totals[strip->total_count++];
}

static int note(void *context, const struct life *life) {
    struct strip *strip = context;
    struct memtrace_culled *total;
    if (!goes(strip, life)) {
        return 0;
    }
    total = total_of(strip, life->context, life->block.thread);
    if (total == NULL || blockset_add(&strip->dropped, life->block) != 0) {
        return total == NULL ? ENOMEM : errno;
    }
    total->count++;
    total->bytes += life->size;
    total->temporary += life->is_temporary;
    strip->count++;
    strip->bytes += life->size;
    return 0;
}

static int note_classes(struct strip *strip, const struct model *whole) {
    strip->context_count = whole->node_count;
    strip->is_heap = calloc(whole->node_count, sizeof *strip->is_heap);
    if (strip->is_heap == NULL) {
        return -1;
    }
    for (size_t i = 0; i < whole->context_count; i++) {
        strip->is_heap[whole->contexts[i].id] = whole->contexts[i].class == MODEL_HEAP;
    }
    return 0;
}

struct strip *strip_new(struct timeorder_parts parts, const struct model *whole,
                        const struct strip_options *options,
                        const struct replay_options *replay_options, struct error *error) {
    struct strip *strip = calloc(1, sizeof *strip);
    struct lives_visitor visitor = {.end = note, .context = strip};
    int result;
    if (strip == NULL) {
        error_set(error, "out of memory");
        return NULL;
    }
    strip->dropped.fd = open_file();
    if (strip->dropped.fd < 0) {
        error_set(error, "cannot make a temporary file: %s", strerror(errno));
        strip_free(strip);
        return NULL;
    }
    if (note_classes(strip, whole) != 0) {
        error_set(error, "out of memory");
        strip_free(strip);
        return NULL;
    }
    strip->options = *options;
    strip->adjacent = (whole->header.flags & MEMTRACE_FLAG_ADJACENT) != 0;
    result = lives_visit(parts, whole, &visitor, replay_options, error);
    if (result > 0) {
        error_set(error, "cannot note which blocks go: %s", strerror(result));
    }
    if (result != 0) {
        strip_free(strip);
        return NULL;
    }
    return strip;
}

void strip_free(struct strip *strip) {
    if (strip != NULL) {
        blockset_close(&strip->dropped);
        numbermap_free(&strip->places);
        free(strip->totals);
        free(strip->is_heap);
        free(strip);
    }
}

/* ---- The new file ---- */

static bool is_same(const struct newest *newest, struct event_block block) {
    return newest->block.number == block.number && newest->block.thread == block.thread;
}

/* A block that is kept is freed. If all that was allocated since goes, it would count as temporary
 * from now on: the sums say one less. 0 or -1. */
static int note_free(struct strip *strip, struct event_block block) {
    struct memtrace_culled *total;
    if (block.number == 0 || !is_same(&strip->kept, block) || is_same(&strip->all, block)) {
        return 0;
    }
    total = total_of(strip, strip->kept.context, block.thread);
    if (total == NULL) {
        return -1;
    }
    total->temporary--;
    return 0;
}

static void note_alloc(struct strip *strip, const struct event *event, bool is_kept) {
    const struct newest newest = {event->block, event->context};
    if (event->context >= strip->context_count || !strip->is_heap[event->context]) {
        return;
    }
    strip->all = newest;
    if (is_kept) {
        strip->kept = newest;
    }
}

static void begin_stream(struct strip *strip, uint32_t stream) {
    if (stream != strip->stream) {
        strip->stream = stream;
        strip->all = strip->kept = (struct newest){0};
    }
}

/* Events that neither allocate nor free. */
static int strip_other(struct strip *strip, const struct event *event) {
    if (strip->adjacent || (event->kind == EVENT_LOST && event->lost_allocs != 0)) {
        strip->all = strip->kept = (struct newest){0};
    }
    return 1;
}

/* 1: it is kept; 0: it goes; -1: out of memory. */
static int take_free(struct strip *strip, struct event_block block) {
    bool is_kept = !blockset_has(&strip->dropped, block);
    int result = is_kept;
    if (strip->adjacent) {
        strip->all = (struct newest){0};
    }
    if (is_kept && note_free(strip, block) != 0) {
        result = -1;
    }
    if (is_kept && strip->adjacent) {
        strip->kept = (struct newest){0};
    }
    return result;
}

/* A reallocation of which one block goes is the other one's birth or death. */
static int strip_event(void *context, const struct memtrace_block_header *stream,
                       struct event *event) {
    struct strip *strip = context;
    begin_stream(strip, stream->stream);
    if (event->kind == EVENT_FREE) {
        return take_free(strip, event->block);
    }
    if (event->kind != EVENT_ALLOC) {
        return strip_other(strip, event);
    }
    if (event->old.number != 0 && blockset_has(&strip->dropped, event->old)) {
        event->old = (struct event_block){0};
    }
    if (note_free(strip, event->old) != 0) {
        return -1;
    }
    note_alloc(strip, event, !blockset_has(&strip->dropped, event->block));
    if (!blockset_has(&strip->dropped, event->block)) {
        return 1;
    }
    if (event->old.number == 0) {
        return 0;
    }
    *event = (struct event){.kind = EVENT_FREE, .time_ns = event->time_ns, .block = event->old};
    return 1;
}

static int by_context(const void *left, const void *right) {
    const struct memtrace_culled *a = left;
    const struct memtrace_culled *b = right;
    return a->context != b->context ? (a->context > b->context) - (a->context < b->context)
                                    : (a->thread > b->thread) - (a->thread < b->thread);
}

static int write_totals(void *context, struct recordwriter *writer) {
    struct strip *strip = context;
    if (strip->total_count != 0) {
        qsort(strip->totals, strip->total_count, sizeof *strip->totals, by_context);
    }
    return recordwriter_table(writer, MEMTRACE_BLOCK_CULLED, strip->totals, strip->total_count,
                              sizeof *strip->totals);
}

struct transform_step strip_step(struct strip *strip) {
    return (struct transform_step){.event = strip_event, .finish = write_totals, .context = strip};
}

uint64_t strip_count(const struct strip *strip, uint64_t *bytes) {
    *bytes = strip->bytes;
    return strip->count;
}
