/* SPDX-License-Identifier: MIT */
/*
 * census.c: all chunks of a glibc heap, read from outside of a process that stands still, by size
 * and class. See census.h.
 *
 * Nothing is guessed: the layout is that of the versions that are named here, the main arena is
 * found by what its bins must say, and each arena's chunks must lead exactly to its top. What does
 * not fit is an error. Words in capitals and layouts are offsets in glibc's structures
 * (malloc/malloc.c and arena.c) on 64-bit machines.
 */
#define _GNU_SOURCE
#include "collect/attach/census.h"

#include "analyze/base/array.h"
#include "analyze/base/numbermap.h"
#include "analyze/base/scope.h"
#include "analyze/base/search.h"
#include "analyze/read/filemap.h"
#include "analyze/read/procfile.h"
#include "analyze/symbol/symbol.h"
#include "collect/attach/attachfault.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LEAST_MOST = 24, OVERHEAD = 8 };

/* Sizes double with what malloc keeps with a block: 24, 56, 120, ... */
uint64_t census_most(int size) {
    return ((uint64_t)(LEAST_MOST + OVERHEAD) << size) - OVERHEAD;
}

/* --- the copy --------------------------------------------------------------------------------- */

static pid_t find_copy(pid_t pid) {
    SCOPE_FOLDER DIR *folder = procfile_folder("/proc");
    char value[64];
    pid_t other;
    while ((other = procfile_next(folder)) != 0) {
        if (procfile_status(other, other, "PPid", value, sizeof value) == 0 &&
            (pid_t)strtol(value, NULL, 10) == pid &&
            procfile_status(other, other, "Name", value, sizeof value) == 0 &&
            strcmp(value, MEMTRACE_CENSUS_COPY) == 0) {
            return other;
        }
    }
    return 0;
}

pid_t census_hold_copy(pid_t pid) {
    pid_t copy = find_copy(pid);
    if (copy != 0) {
        attachfault_at("copy");
        ptrace(PTRACE_SEIZE, copy, NULL, (void *)PTRACE_O_EXITKILL);
        attachfault_at("copied");
    }
    return copy;
}

/* Its parent hears of its end when we have. */
void census_end_copy(pid_t copy) {
    kill(copy, SIGKILL);
    waitpid(copy, NULL, __WALL);
}

/* A command that is at work holds its copy as soon as it sees it. */
bool census_end_left(pid_t pid) {
    enum { TRIES = 40 };
    const struct timespec pause = {.tv_nsec = 10000000};
    pid_t copy = find_copy(pid);
    char tracer[32];
    for (int i = 0; i < TRIES && copy != 0; i++) {
        if (procfile_status(copy, copy, "TracerPid", tracer, sizeof tracer) == 0 &&
            strcmp(tracer, "0") != 0) {
            return false;
        }
        if (i == TRIES / 2) {
            kill(copy, SIGKILL);
        }
        nanosleep(&pause, NULL);
        if (find_copy(pid) != copy) {
            return true;
        }
    }
    return false;
}

/* --- the heap --------------------------------------------------------------------------------- */

enum {
    WORD = 8,
    HEADER = 16, /* of a chunk: the size of the one before, its own */
    LEAST = 32,  /* bytes of a chunk */
    /* struct malloc_state */
    FAST_BINS = 16,
    BIN_COUNT = 127,
    IN_PIECES = 2, /* of the flags, in the upper half of the first word */
    /* struct _heap_info, of which each lies at a multiple of HEAP_BYTES */
    HEAP_ARENA = 0,
    HEAP_BEFORE = 8,
    HEAP_INFO = 48,
    HEAP_BYTES = 64 << 20,
    /* struct tcache_perthread_struct: its counts, and behind them its lists */
    CACHE_SMALL_BINS = 64,  /* of one size each */
    CACHE_LARGE_SHIFT = 10, /* further ones are of sizes from 2^10, 2^11, ... on */
    CACHE_BINS_MOST = 76,
    CACHE_COUNT = 2, /* bytes */
    CACHE_MOST = 1 << 16,
    /* bits of a size */
    BEFORE_USED = 1,
    MAPPED = 2,
    BITS = 7,
    PAGE = 4096,
    WINDOW = 1 << 20,
    MOST_ARENAS = 1 << 16,
};

/* What differs from one version to another. */
static const struct layout {
    unsigned first, last;    /* versions: 36 for 2.36 */
    unsigned fast_bin_count; /* struct malloc_state has them at FAST_BINS */
    unsigned top, bins, next, system_bytes, state_bytes; /* of struct malloc_state */
    unsigned cache_bins;
    bool counts_room;    /* a cache counts for each bin how much more it takes, not what it holds */
    unsigned mapped_end; /* bytes of a chunk's own mapping that lie behind the chunk */
    unsigned mapped_cost; /* and that are not the program's */
} layouts[] = {
    {35, 41, 10, 96, 112, 2160, 2184, 2200, 64, false, 0, 16},
    {43, 43, 0, 8, 24, 2072, 2096, 2112, 76, true, 16, 24},
};
enum { LAYOUTS = sizeof layouts / sizeof layouts[0] };

struct reader {
    pid_t pid;
    uint64_t start;
    size_t size;
    size_t window;
    char *bytes;
};

enum arenas_state {
    ARENAS_USED,   /* the program has it */
    ARENAS_FREE,   /* in a bin */
    ARENAS_FAST,   /* in a fast bin: free, but not joined with its neighbours */
    ARENAS_CACHED, /* in the cache of a thread: free for that */
};

struct arenas_chunk {
    uint64_t address; /* of the program's part */
    uint64_t bytes;   /* of that */
    uint64_t first;   /* its first word */
    enum arenas_state state;
    bool is_mapped; /* a mapping of its own */
};

/* How many blocks begin with it. */
struct word {
    uint64_t value;
    struct census_sum sum;
};

struct vtable {
    uint64_t start, end;
    char *name;
};

struct counting {
    struct census *census;
    const struct attachtarget *target;
    struct error *error;
    /* Of its heap: */
    const struct layout *layout;
    struct reader in_order, anywhere;
    uint64_t *arenas; /* the main one first */
    size_t arena_count, arena_room;
    uint64_t *maybe_caches; /* chunks of that size */
    size_t maybe_count, maybe_room;
    struct numbermap free; /* chunks that look used and are not: state + 1 */
    /* Of its blocks: */
    const struct attachmapping *last; /* where the word before led to */
    struct numbermap places;          /* of words: index + 1 */
    struct word *words;
    size_t word_count, word_room;
    struct vtable *vtables;
    size_t vtable_count, vtable_room;
    bool is_short; /* of memory */
};

/* --- reading ---------------------------------------------------------------------------------- */

/* NULL: it is not mapped. */
static const void *bytes_at(struct reader *reader, uint64_t address, size_t size) {
    if (address < reader->start || address + size > reader->start + reader->size) {
        uint64_t start = address / PAGE * PAGE;
        ssize_t got = attachtarget_memory(reader->pid, start, reader->bytes, reader->window);
        reader->start = start;
        reader->size = got > 0 ? (size_t)got : 0;
        if (address + size > reader->start + reader->size) {
            return NULL;
        }
    }
    return reader->bytes + (address - reader->start);
}

/* 0 where nothing is mapped, which no check takes for right. */
static uint64_t reader_word(struct reader *reader, uint64_t address) {
    uint64_t word = 0;
    const void *bytes = address % WORD == 0 ? bytes_at(reader, address, sizeof word) : NULL;
    if (bytes != NULL) {
        memcpy(&word, bytes, sizeof word);
    }
    return word;
}

static uint64_t size_at(struct reader *reader, uint64_t chunk) {
    return reader_word(reader, chunk + WORD);
}

/* --- which C library -------------------------------------------------------------------------- */

static int check_version(struct counting *counting) {
    static const char says[] = "stable release version 2.";
    const struct attachmapping *libc = attachtarget_object(counting->target, "libc.so.6");
    SCOPE_FD int fd = libc != NULL ? attachtarget_file(counting->target, libc) : -1;
    struct stat status;
    unsigned version = 0;
    char *text = fd >= 0 && fstat(fd, &status) == 0
                     ? filemap_open(fd, 0, (uint64_t)status.st_size, FILEMAP_COPIES)
                     : NULL;
    if (text != NULL) {
        const char *at = memmem(text, (size_t)status.st_size, says, sizeof says - 1);
        version = at != NULL ? (unsigned)strtoul(at + sizeof says - 1, NULL, 10) : 0;
        filemap_close(text, (uint64_t)status.st_size);
    }
    counting->census->arenas.version = version;
    for (size_t i = 0; i < LAYOUTS; i++) {
        if (version >= layouts[i].first && version <= layouts[i].last) {
            counting->layout = &layouts[i];
            return 0;
        }
    }
    return error_set(counting->error,
                     version != 0
                         ? "its C library is glibc 2.%u, whose heap MemTrace does not know "
                           "(2.35 to 2.41, and 2.43)"
                         : "it is not told which glibc its C library is",
                     version);
}

/* --- arenas ----------------------------------------------------------------------------------- */

/* Each bin is a ring of chunks, of which it is one. */
static bool has_bins(struct counting *counting, struct reader *reader, uint64_t arena) {
    for (int i = 0; i < BIN_COUNT; i++) {
        uint64_t bin = arena + counting->layout->bins + (uint64_t)i * HEADER - HEADER;
        uint64_t next = reader_word(reader, bin + HEADER);
        uint64_t last = reader_word(reader, bin + HEADER + WORD);
        if ((next == bin) != (last == bin) || next == 0 ||
            (next != bin &&
             (next % HEADER != 0 || reader_word(&counting->anywhere, next + HEADER + WORD) != bin ||
              reader_word(&counting->anywhere, last + HEADER) != bin))) {
            return false;
        }
    }
    return true;
}

/* Where it is, by its bins; 0: nowhere. */
static uint64_t arenas_find_main(struct counting *counting) {
    const struct attachtarget *target = counting->target;
    for (size_t i = 0; i < target->count; i++) {
        const struct attachmapping *mapping = &target->mappings[i];
        const char *name = strrchr(mapping->path, '/');
        if (!mapping->writable || name == NULL || strcmp(name, "/libc.so.6") != 0) {
            continue;
        }
        for (uint64_t at = mapping->start; at + counting->layout->state_bytes <= mapping->end;
             at += HEADER) {
            if (has_bins(counting, &counting->in_order, at)) {
                return at;
            }
        }
    }
    return 0;
}

static int find_arenas(struct counting *counting) {
    uint64_t first = arenas_find_main(counting);
    uint64_t arena = first;
    if (first == 0) {
        return error_set(counting->error, "its C library's main arena is not found");
    }
    do {
        uint64_t heap = arena / HEAP_BYTES * HEAP_BYTES;
        if (counting->arena_count == MOST_ARENAS ||
            !has_bins(counting, &counting->anywhere, arena) ||
            (arena != first && (arena != heap + HEAP_INFO ||
                                reader_word(&counting->anywhere, heap + HEAP_ARENA) != arena))) {
            return error_set(counting->error, "its arenas do not add up at %#llx",
                             (unsigned long long)arena);
        }
        if (array_grow(&counting->arenas, &counting->arena_room, counting->arena_count,
                       sizeof arena) != 0) {
            return error_set(counting->error, "out of memory");
        }
        counting->arenas[counting->arena_count++] = arena;
        arena = reader_word(&counting->anywhere, arena + counting->layout->next);
    } while (arena != first);
    counting->census->arenas.count = counting->arena_count;
    return 0;
}

/* --- chunks of an arena ----------------------------------------------------------------------- */

typedef int (*chunk_visitor)(struct counting *counting, uint64_t chunk, uint64_t size,
                             bool is_used);

/* From one chunk to the next up to `end`, or to the fence behind which a heap ends (end 0). */
static int walk_chunks(struct counting *counting, uint64_t start, uint64_t end,
                       chunk_visitor visit) {
    uint64_t chunk = start;
    uint64_t limit = end != 0 ? end : start / HEAP_BYTES * HEAP_BYTES + HEAP_BYTES;
    uint64_t size = size_at(&counting->in_order, chunk);
    while (chunk != end) {
        uint64_t next = chunk + (size & ~(uint64_t)BITS);
        uint64_t next_size;
        if (end == 0 && (size & ~(uint64_t)BITS) < LEAST) {
            return 0;
        }
        if (next - chunk < LEAST || next % HEADER != 0 || next > limit || (size & MAPPED) != 0) {
            error_set(counting->error, "its heap does not add up at %#llx",
                      (unsigned long long)chunk);
            return 1;
        }
        next_size = size_at(&counting->in_order, next);
        if (visit(counting, chunk, next - chunk, (next_size & BEFORE_USED) != 0) != 0) {
            return -1;
        }
        chunk = next;
        size = next_size;
    }
    return 0;
}

static int walk_main(struct counting *counting, chunk_visitor visit) {
    uint64_t arena = counting->arenas[0];
    uint64_t top = reader_word(&counting->anywhere, arena + counting->layout->top);
    uint64_t bytes = reader_word(&counting->anywhere, arena + counting->layout->system_bytes);
    uint64_t flags = reader_word(&counting->anywhere, arena) >> 32;
    uint64_t top_bytes = size_at(&counting->anywhere, top) & ~(uint64_t)BITS;
    if (bytes == 0) {
        return 0; /* nothing was ever taken from it */
    }
    if ((flags & IN_PIECES) != 0) {
        return error_set(counting->error, "its main arena is in pieces (sbrk was refused once)");
    }
    counting->census->arenas.top_bytes += top_bytes;
    return walk_chunks(counting, top + top_bytes - bytes, top, visit);
}

/* An arena that is not the main one has heaps, the newest of which has its top. */
static int walk_other(struct counting *counting, uint64_t arena, chunk_visitor visit) {
    uint64_t top = reader_word(&counting->anywhere, arena + counting->layout->top);
    uint64_t heap = top / HEAP_BYTES * HEAP_BYTES;
    uint64_t first = (arena + counting->layout->state_bytes + HEADER - 1) / HEADER * HEADER;
    uint64_t end = top;
    int result = 0;
    counting->census->arenas.top_bytes += size_at(&counting->anywhere, top) & ~(uint64_t)BITS;
    for (int i = 0; heap != 0 && result == 0; i++) {
        uint64_t before = reader_word(&counting->anywhere, heap + HEAP_BEFORE);
        uint64_t start = before == 0 ? first : heap + HEAP_INFO;
        if (i == MOST_ARENAS || reader_word(&counting->anywhere, heap + HEAP_ARENA) != arena) {
            error_set(counting->error, "its heaps do not add up at %#llx",
                      (unsigned long long)heap);
            return 1;
        }
        result = walk_chunks(counting, start, end, visit);
        heap = before;
        end = 0;
    }
    return result;
}

static int arenas_walk_all(struct counting *counting, chunk_visitor visit) {
    int result = walk_main(counting, visit);
    for (size_t i = 1; i < counting->arena_count && result == 0; i++) {
        result = walk_other(counting, counting->arenas[i], visit);
    }
    return result;
}

/* --- what looks used and is free -------------------------------------------------------------- */

static int arenas_note_free(struct counting *counting, uint64_t chunk, enum arenas_state state) {
    void *value = (void *)(uintptr_t)(state + 1); // NOLINT(performance-no-int-to-ptr)
    return numbermap_put(&counting->free, chunk, value) == 0
               ? 0
               : error_set(counting->error, "out of memory");
}

/* The address that stands here, turned over by its own place. */
static uint64_t arenas_link_at(struct counting *counting, uint64_t at) {
    return reader_word(&counting->anywhere, at) ^ at >> 12;
}

static int find_fast(struct counting *counting, uint64_t arena) {
    for (unsigned i = 0; i < counting->layout->fast_bin_count; i++) {
        uint64_t chunk = reader_word(&counting->anywhere, arena + FAST_BINS + (uint64_t)i * WORD);
        while (chunk != 0) {
            if (chunk % HEADER != 0 ||
                (size_at(&counting->anywhere, chunk) & ~(uint64_t)BITS) !=
                    LEAST + (uint64_t)i * HEADER ||
                numbermap_get(&counting->free, chunk) != NULL) {
                error_set(counting->error, "its fast bins do not add up at %#llx",
                          (unsigned long long)chunk);
                return 1;
            }
            if (arenas_note_free(counting, chunk, ARENAS_FAST) != 0) {
                return -1;
            }
            chunk = arenas_link_at(counting, chunk + HEADER);
        }
    }
    return 0;
}

static bool fits_bin(uint64_t size, unsigned bin) {
    const uint64_t largest_small = LEAST + (CACHE_SMALL_BINS - 1) * HEADER;
    return bin < CACHE_SMALL_BINS
               ? size == LEAST + (uint64_t)bin * HEADER
               : size > largest_small && size >> (CACHE_LARGE_SHIFT + bin - CACHE_SMALL_BINS) == 1;
}

/* The blocks of one bin of a cache. Their number; -1: this is no cache. All have one key. */
static int count_cached(struct counting *counting, uint64_t block, unsigned bin, unsigned count,
                        uint64_t *key) {
    unsigned number = 0;
    while (block != 0) {
        uint64_t own = reader_word(&counting->anywhere, block + WORD);
        if (block % HEADER != 0 || number > count || own == 0 || (*key != 0 && own != *key) ||
            !fits_bin(size_at(&counting->anywhere, block - HEADER) & ~(uint64_t)BITS, bin)) {
            return -1;
        }
        *key = own;
        number++;
        block = arenas_link_at(counting, block);
    }
    return number == count || number + 1 == count || number == count + 1 ? (int)number : -1;
}

static uint64_t cache_list(struct counting *counting, uint64_t cache, unsigned bin) {
    return reader_word(&counting->anywhere,
                       cache + (uint64_t)counting->layout->cache_bins * CACHE_COUNT + bin * WORD);
}

/* Whether a chunk is the cache of a thread: counts, and lists as long as these say, of blocks of
 * the right sizes, which all bear the key of this process. Where bins count the room they have
 * left, all may hold as many, so what has the most room is empty. */
static bool arenas_is_cache(struct counting *counting, uint64_t cache, uint64_t *key) {
    unsigned bins = counting->layout->cache_bins;
    const void *bytes = bytes_at(&counting->anywhere, cache, (size_t)bins * CACHE_COUNT);
    uint16_t counts[CACHE_BINS_MOST];
    uint64_t seen = *key;
    uint16_t most = 0;
    int blocks = 0;
    if (bytes == NULL) {
        return false;
    }
    memcpy(counts, bytes, (size_t)bins * CACHE_COUNT);
    for (unsigned i = 0; counting->layout->counts_room && i < bins; i++) {
        most = counts[i] > most ? counts[i] : most;
    }
    for (unsigned i = 0; i < bins; i++) {
        unsigned count = counting->layout->counts_room ? (uint16_t)(most - counts[i]) : counts[i];
        int number = count_cached(counting, cache_list(counting, cache, i), i, count, &seen);
        if (number < 0) {
            return false;
        }
        blocks += number;
    }
    *key = blocks != 0 ? seen : *key;
    return blocks != 0;
}

static int note_cached(struct counting *counting, uint64_t cache) {
    for (unsigned i = 0; i < counting->layout->cache_bins; i++) {
        uint64_t block = cache_list(counting, cache, i);
        for (int most = CACHE_MOST; block != 0 && most > 0; most--) {
            if (arenas_note_free(counting, block - HEADER, ARENAS_CACHED) != 0) {
                return -1;
            }
            block = arenas_link_at(counting, block);
        }
    }
    counting->census->arenas.caches++;
    return 0;
}

/* (In an arena that is not the main one, 2.43 asks for a cache by its chunk's size, which is
 * rounded once more.) */
static int note_maybe_cache(struct counting *counting, uint64_t chunk, uint64_t size,
                            bool is_used) {
    uint64_t bytes = (uint64_t)counting->layout->cache_bins * (CACHE_COUNT + WORD);
    if (!is_used || size < bytes + WORD || size > bytes + WORD + 2 * HEADER) {
        return 0;
    }
    if (array_grow(&counting->maybe_caches, &counting->maybe_room, counting->maybe_count,
                   sizeof chunk) != 0) {
        return error_set(counting->error, "out of memory");
    }
    counting->maybe_caches[counting->maybe_count++] = chunk;
    return 0;
}

static int find_free(struct counting *counting) {
    uint64_t key = 0;
    int result = 0;
    for (size_t i = 0; i < counting->arena_count && result == 0; i++) {
        result = find_fast(counting, counting->arenas[i]);
    }
    if (result == 0) {
        result = arenas_walk_all(counting, note_maybe_cache);
    }
    counting->census->arenas.top_bytes = 0; /* it is walked again */
    for (size_t i = 0; i < counting->maybe_count && result == 0; i++) {
        uint64_t cache = counting->maybe_caches[i] + HEADER;
        if (arenas_is_cache(counting, cache, &key)) {
            result = note_cached(counting, cache);
        }
    }
    return result;
}

/* --- counting ----------------------------------------------------------------------------------
 */

/* A table of functions lies in data of some file, or in what the loader has made of that. */
static bool may_be_table(struct counting *counting, uint64_t word) {
    const struct attachmapping *mapping = counting->last;
    if (word % sizeof word != 0) {
        return false;
    }
    if (mapping == NULL || word < mapping->start || word >= mapping->end) {
        mapping = attachtarget_at(counting->target, word);
    }
    if (mapping == NULL || mapping->inode == 0 || mapping->executable || !mapping->readable) {
        return false;
    }
    counting->last = mapping;
    return true;
}

static void count_word(struct counting *counting, uint64_t word, uint64_t bytes) {
    uintptr_t place = (uintptr_t)numbermap_get(&counting->places, word);
    if (place == 0) {
        if (array_grow(&counting->words, &counting->word_room, counting->word_count,
                       sizeof *counting->words) != 0 ||
            numbermap_put(&counting->places, word,
                          (void *)(counting->word_count + 1)) != 0) { // NOLINT
            counting->is_short = true;
            return;
        }
        counting->words[counting->word_count++] = (struct word){.value = word};
        place = counting->word_count;
    }
    counting->words[place - 1].sum.blocks++;
    counting->words[place - 1].sum.bytes += bytes;
}

static void census_add(struct census_sum *sum, const struct arenas_chunk *chunk) {
    sum->blocks++;
    sum->bytes += chunk->bytes;
}

static void census_count(struct counting *counting, const struct arenas_chunk *chunk) {
    struct census *census = counting->census;
    int size = 0;
    if (chunk->state != ARENAS_USED) {
        census_add(chunk->state == ARENAS_FREE   ? &census->free
                   : chunk->state == ARENAS_FAST ? &census->fast
                                                 : &census->cached,
                   chunk);
        return;
    }
    census_add(&census->used, chunk);
    if (chunk->is_mapped) {
        census_add(&census->mapped, chunk);
    }
    while (size < CENSUS_SIZES - 1 && chunk->bytes > census_most(size)) {
        size++;
    }
    census_add(&census->sizes[size], chunk);
    if (may_be_table(counting, chunk->first)) {
        count_word(counting, chunk->first, chunk->bytes);
    }
}

static int arenas_tell(struct counting *counting, uint64_t chunk, uint64_t size, bool is_used) {
    void *noted = is_used ? numbermap_get(&counting->free, chunk) : NULL;
    census_count(counting, &(struct arenas_chunk){
                               .address = chunk + HEADER,
                               .bytes = size - WORD,
                               .first = reader_word(&counting->in_order, chunk + HEADER),
                               .state = noted != NULL ? (enum arenas_state)((uintptr_t)noted - 1)
                                        : is_used     ? ARENAS_USED
                                                      : ARENAS_FREE});
    return 0;
}

/* Large blocks are mappings of their own, which may have become one with those beside them. */
static void arenas_tell_mapped(struct counting *counting, const struct attachmapping *mapping) {
    struct arenas *found = &counting->census->arenas;
    uint64_t at = mapping->start;
    while (at < mapping->end) {
        uint64_t size = size_at(&counting->in_order, at);
        uint64_t bytes = (size & ~(uint64_t)BITS) + counting->layout->mapped_end;
        if ((size & BITS) != MAPPED || bytes == counting->layout->mapped_end || bytes % PAGE != 0 ||
            bytes > mapping->end - at || reader_word(&counting->in_order, at) != 0) {
            at += PAGE;
            continue;
        }
        found->mapped_count++;
        found->mapped_bytes += bytes;
        census_count(counting,
                     &(struct arenas_chunk){.address = at + HEADER,
                                            .bytes = bytes - counting->layout->mapped_cost,
                                            .first = reader_word(&counting->in_order, at + HEADER),
                                            .state = ARENAS_USED,
                                            .is_mapped = true});
        at += bytes;
    }
}

/* --- classes ---------------------------------------------------------------------------------- */

static void note_vtable(void *context, const char *name, uint64_t address, uint64_t size) {
    struct counting *counting = context;
    char *copy = strdup(name);
    if (copy == NULL || array_grow(&counting->vtables, &counting->vtable_room,
                                   counting->vtable_count, sizeof *counting->vtables) != 0) {
        free(copy);
        counting->is_short = true;
        return;
    }
    counting->vtables[counting->vtable_count++] =
        (struct vtable){.start = address, .end = address + size, .name = copy};
}

static int census_by_start(const void *left, const void *right) {
    const struct vtable *a = left;
    const struct vtable *b = right;
    return (a->start > b->start) - (a->start < b->start);
}

/* Of the objects that words lead to. */
static void find_vtables(struct counting *counting) {
    const struct attachtarget *target = counting->target;
    for (size_t i = 0; i < target->count; i++) {
        const struct attachmapping *object = &target->mappings[i];
        bool is_wanted = false;
        for (size_t j = 0; object->offset == 0 && !is_wanted && j < counting->word_count; j++) {
            const struct attachmapping *at = attachtarget_at(target, counting->words[j].value);
            is_wanted =
                at != NULL && at->inode == object->inode && strcmp(at->path, object->path) == 0;
        }
        if (is_wanted) {
            attachtarget_vtables(target, object, note_vtable, counting);
        }
    }
    array_sort(counting->vtables, counting->vtable_count, sizeof *counting->vtables,
               census_by_start);
}

/* Of the class whose table has this symbol: "vtable for Shape". */
static void count_class(struct counting *counting, const char *symbol,
                        const struct census_sum *sum) {
    static const char of[] = "vtable for ";
    struct census *census = counting->census;
    SCOPE_MEMORY char *full = symbol_demangle(symbol);
    const char *name =
        full != NULL && strncmp(full, of, sizeof of - 1) == 0 ? full + sizeof of - 1 : symbol;
    size_t i = 0;
    while (i < census->class_count && strcmp(census->classes[i].name, name) != 0) {
        i++;
    }
    if (i == census->class_count) {
        char *copy = strdup(name);
        if (copy == NULL ||
            array_grow_by_count(&census->classes, i, sizeof *census->classes) != 0) {
            free(copy);
            counting->is_short = true;
            return;
        }
        census->classes[census->class_count++] = (struct census_class){.name = copy};
    }
    census->classes[i].sum.blocks += sum->blocks;
    census->classes[i].sum.bytes += sum->bytes;
}

static int census_by_bytes(const void *left, const void *right) {
    const struct census_class *a = left;
    const struct census_class *b = right;
    return a->sum.bytes != b->sum.bytes
               ? (a->sum.bytes < b->sum.bytes) - (a->sum.bytes > b->sum.bytes)
               : strcmp(a->name, b->name);
}

static void find_classes(struct counting *counting) {
    struct census *census = counting->census;
    find_vtables(counting);
    for (size_t i = 0; i < counting->word_count; i++) {
        uint64_t word = counting->words[i].value;
        size_t count = search_to(counting->vtables, counting->vtable_count,
                                 sizeof *counting->vtables, offsetof(struct vtable, start), word);
        if (count != 0 && word < counting->vtables[count - 1].end) {
            count_class(counting, counting->vtables[count - 1].name, &counting->words[i].sum);
        }
    }
    array_sort(census->classes, census->class_count, sizeof *census->classes, census_by_bytes);
}

/* --- all of it -------------------------------------------------------------------------------- */

static int census_count_heap(struct counting *counting) {
    const struct attachtarget *target = counting->target;
    int result;
    if (counting->in_order.bytes == NULL || counting->anywhere.bytes == NULL) {
        return error_set(counting->error, "out of memory");
    }
    if (check_version(counting) != 0 || find_arenas(counting) != 0) {
        return -1;
    }
    result = find_free(counting);
    result = result == 0 ? arenas_walk_all(counting, arenas_tell) : result;
    for (size_t i = 0; result == 0 && counting->census->told.mapped_count != 0 && i < target->count;
         i++) {
        const struct attachmapping *mapping = &target->mappings[i];
        if (mapping->path[0] == '\0' && mapping->readable && mapping->writable) {
            arenas_tell_mapped(counting, mapping);
        }
    }
    return result;
}

int census_take(pid_t copy, const struct memtrace_census *told, struct census *census,
                struct error *error) {
    SCOPE(attachtarget_close) struct attachtarget target;
    struct counting counting = {.census = census, .target = &target, .error = error};
    int result;
    *census = (struct census){.told = *told};
    if (attachtarget_open(copy, &target, error) != 0) {
        return -1;
    }
    counting.in_order = (struct reader){.pid = copy, .window = WINDOW, .bytes = malloc(WINDOW)};
    counting.anywhere = (struct reader){.pid = copy, .window = PAGE, .bytes = malloc(PAGE)};
    result = census_count_heap(&counting);
    if (result == 0) {
        find_classes(&counting);
        result = counting.is_short ? error_set(error, "out of memory") : 0;
    }
    for (size_t i = 0; i < counting.vtable_count; i++) {
        free(counting.vtables[i].name);
    }
    free(counting.vtables);
    free(counting.words);
    free(counting.in_order.bytes);
    free(counting.anywhere.bytes);
    free(counting.arenas);
    free(counting.maybe_caches);
    numbermap_free(&counting.free);
    numbermap_free(&counting.places);
    return result;
}

void census_free(struct census *census) {
    for (size_t i = 0; i < census->class_count; i++) {
        free(census->classes[i].name);
    }
    free(census->classes);
    *census = (struct census){0};
}
