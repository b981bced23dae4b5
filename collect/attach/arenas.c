/* SPDX-License-Identifier: MIT */
/*
 * arenas.c: see arenas.h. Words in capitals and layouts are offsets in glibc's structures
 * (malloc/malloc.c and arena.c) on 64-bit machines.
 */
#define _GNU_SOURCE
#include "collect/attach/arenas.h"

#include "analyze/base/array.h"
#include "analyze/base/numbermap.h"
#include "analyze/read/filemap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

struct walking {
    const struct attachtarget *target;
    const struct layout *layout;
    struct reader in_order, anywhere;
    uint64_t *arenas; /* the main one first */
    size_t count, room;
    uint64_t *maybe_caches; /* chunks of that size */
    size_t maybe_count, maybe_room;
    struct numbermap free; /* chunks that look used and are not: state + 1 */
    struct arenas *found;
    arenas_visitor visit;
    void *context;
    struct error *error;
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

static int check_version(struct walking *walking) {
    static const char says[] = "stable release version 2.";
    const struct attachmapping *libc = attachtarget_object(walking->target, "libc.so.6");
    struct stat status;
    unsigned version = 0;
    int fd = libc != NULL ? attachtarget_file(walking->target, libc) : -1;
    if (fd >= 0 && fstat(fd, &status) == 0) {
        char *text = filemap_open(fd, 0, (uint64_t)status.st_size, FILEMAP_COPIES);
        const char *at =
            text != NULL ? memmem(text, (size_t)status.st_size, says, sizeof says - 1) : NULL;
        version = at != NULL ? (unsigned)strtoul(at + sizeof says - 1, NULL, 10) : 0;
        if (text != NULL) {
            filemap_close(text, (uint64_t)status.st_size);
        }
    }
    if (fd >= 0) {
        close(fd);
    }
    walking->found->version = version;
    for (size_t i = 0; i < LAYOUTS; i++) {
        if (version >= layouts[i].first && version <= layouts[i].last) {
            walking->layout = &layouts[i];
            return 0;
        }
    }
    return error_set(walking->error,
                     version != 0
                         ? "its C library is glibc 2.%u, whose heap MemTrace does not know "
                           "(2.35 to 2.41, and 2.43)"
                         : "it is not told which glibc its C library is",
                     version);
}

/* --- arenas ----------------------------------------------------------------------------------- */

/* Each bin is a ring of chunks, of which it is one. */
static bool has_bins(struct walking *walking, struct reader *reader, uint64_t arena) {
    for (int i = 0; i < BIN_COUNT; i++) {
        uint64_t bin = arena + walking->layout->bins + (uint64_t)i * HEADER - HEADER;
        uint64_t next = reader_word(reader, bin + HEADER);
        uint64_t last = reader_word(reader, bin + HEADER + WORD);
        if ((next == bin) != (last == bin) || next == 0 ||
            (next != bin &&
             (next % HEADER != 0 || reader_word(&walking->anywhere, next + HEADER + WORD) != bin ||
              reader_word(&walking->anywhere, last + HEADER) != bin))) {
            return false;
        }
    }
    return true;
}

/* Where it is, by its bins; 0: nowhere. */
static uint64_t arenas_find_main(struct walking *walking) {
    const struct attachtarget *target = walking->target;
    for (size_t i = 0; i < target->count; i++) {
        const struct attachmapping *mapping = &target->mappings[i];
        const char *name = strrchr(mapping->path, '/');
        if (!mapping->writable || name == NULL || strcmp(name, "/libc.so.6") != 0) {
            continue;
        }
        for (uint64_t at = mapping->start; at + walking->layout->state_bytes <= mapping->end;
             at += HEADER) {
            if (has_bins(walking, &walking->in_order, at)) {
                return at;
            }
        }
    }
    return 0;
}

static int find_arenas(struct walking *walking) {
    uint64_t first = arenas_find_main(walking);
    uint64_t arena = first;
    if (first == 0) {
        return error_set(walking->error, "its C library's main arena is not found");
    }
    do {
        uint64_t heap = arena / HEAP_BYTES * HEAP_BYTES;
        if (walking->count == MOST_ARENAS || !has_bins(walking, &walking->anywhere, arena) ||
            (arena != first && (arena != heap + HEAP_INFO ||
                                reader_word(&walking->anywhere, heap + HEAP_ARENA) != arena))) {
            return error_set(walking->error, "its arenas do not add up at %#llx",
                             (unsigned long long)arena);
        }
        if (array_grow(&walking->arenas, &walking->room, walking->count, sizeof arena) != 0) {
            return error_set(walking->error, "out of memory");
        }
        walking->arenas[walking->count++] = arena;
        arena = reader_word(&walking->anywhere, arena + walking->layout->next);
    } while (arena != first);
    walking->found->count = walking->count;
    return 0;
}

/* --- chunks of an arena ----------------------------------------------------------------------- */

typedef int (*chunk_visitor)(struct walking *walking, uint64_t chunk, uint64_t size, bool is_used);

/* From one chunk to the next up to `end`, or to the fence behind which a heap ends (end 0). */
static int walk_chunks(struct walking *walking, uint64_t start, uint64_t end, chunk_visitor visit) {
    uint64_t chunk = start;
    uint64_t limit = end != 0 ? end : start / HEAP_BYTES * HEAP_BYTES + HEAP_BYTES;
    uint64_t size = size_at(&walking->in_order, chunk);
    while (chunk != end) {
        uint64_t next = chunk + (size & ~(uint64_t)BITS);
        uint64_t next_size;
        if (end == 0 && (size & ~(uint64_t)BITS) < LEAST) {
            return 0;
        }
        if (next - chunk < LEAST || next % HEADER != 0 || next > limit || (size & MAPPED) != 0) {
            error_set(walking->error, "its heap does not add up at %#llx",
                      (unsigned long long)chunk);
            return 1;
        }
        next_size = size_at(&walking->in_order, next);
        if (visit(walking, chunk, next - chunk, (next_size & BEFORE_USED) != 0) != 0) {
            return -1;
        }
        chunk = next;
        size = next_size;
    }
    return 0;
}

static int walk_main(struct walking *walking, chunk_visitor visit) {
    uint64_t arena = walking->arenas[0];
    uint64_t top = reader_word(&walking->anywhere, arena + walking->layout->top);
    uint64_t bytes = reader_word(&walking->anywhere, arena + walking->layout->system_bytes);
    uint64_t flags = reader_word(&walking->anywhere, arena) >> 32;
    uint64_t top_bytes = size_at(&walking->anywhere, top) & ~(uint64_t)BITS;
    if (bytes == 0) {
        return 0; /* nothing was ever taken from it */
    }
    if ((flags & IN_PIECES) != 0) {
        return error_set(walking->error, "its main arena is in pieces (sbrk was refused once)");
    }
    walking->found->top_bytes += top_bytes;
    return walk_chunks(walking, top + top_bytes - bytes, top, visit);
}

/* An arena that is not the main one has heaps, the newest of which has its top. */
static int walk_other(struct walking *walking, uint64_t arena, chunk_visitor visit) {
    uint64_t top = reader_word(&walking->anywhere, arena + walking->layout->top);
    uint64_t heap = top / HEAP_BYTES * HEAP_BYTES;
    uint64_t first = (arena + walking->layout->state_bytes + HEADER - 1) / HEADER * HEADER;
    uint64_t end = top;
    int result = 0;
    walking->found->top_bytes += size_at(&walking->anywhere, top) & ~(uint64_t)BITS;
    for (int i = 0; heap != 0 && result == 0; i++) {
        uint64_t before = reader_word(&walking->anywhere, heap + HEAP_BEFORE);
        uint64_t start = before == 0 ? first : heap + HEAP_INFO;
        if (i == MOST_ARENAS || reader_word(&walking->anywhere, heap + HEAP_ARENA) != arena) {
            error_set(walking->error, "its heaps do not add up at %#llx", (unsigned long long)heap);
            return 1;
        }
        result = walk_chunks(walking, start, end, visit);
        heap = before;
        end = 0;
    }
    return result;
}

static int arenas_walk_all(struct walking *walking, chunk_visitor visit) {
    int result = walk_main(walking, visit);
    for (size_t i = 1; i < walking->count && result == 0; i++) {
        result = walk_other(walking, walking->arenas[i], visit);
    }
    return result;
}

/* --- what looks used and is free -------------------------------------------------------------- */

static int arenas_note_free(struct walking *walking, uint64_t chunk, enum arenas_state state) {
    void *value = (void *)(uintptr_t)(state + 1); // NOLINT(performance-no-int-to-ptr)
    return numbermap_put(&walking->free, chunk, value) == 0
               ? 0
               : error_set(walking->error, "out of memory");
}

/* The address that stands here, turned over by its own place. */
static uint64_t arenas_link_at(struct walking *walking, uint64_t at) {
    return reader_word(&walking->anywhere, at) ^ at >> 12;
}

static int find_fast(struct walking *walking, uint64_t arena) {
    for (unsigned i = 0; i < walking->layout->fast_bin_count; i++) {
        uint64_t chunk = reader_word(&walking->anywhere, arena + FAST_BINS + (uint64_t)i * WORD);
        while (chunk != 0) {
            if (chunk % HEADER != 0 ||
                (size_at(&walking->anywhere, chunk) & ~(uint64_t)BITS) !=
                    LEAST + (uint64_t)i * HEADER ||
                numbermap_get(&walking->free, chunk) != NULL) {
                error_set(walking->error, "its fast bins do not add up at %#llx",
                          (unsigned long long)chunk);
                return 1;
            }
            if (arenas_note_free(walking, chunk, ARENAS_FAST) != 0) {
                return -1;
            }
            chunk = arenas_link_at(walking, chunk + HEADER);
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
static int count_cached(struct walking *walking, uint64_t block, unsigned bin, unsigned count,
                        uint64_t *key) {
    unsigned number = 0;
    while (block != 0) {
        uint64_t own = reader_word(&walking->anywhere, block + WORD);
        if (block % HEADER != 0 || number > count || own == 0 || (*key != 0 && own != *key) ||
            !fits_bin(size_at(&walking->anywhere, block - HEADER) & ~(uint64_t)BITS, bin)) {
            return -1;
        }
        *key = own;
        number++;
        block = arenas_link_at(walking, block);
    }
    return number == count || number + 1 == count || number == count + 1 ? (int)number : -1;
}

static uint64_t cache_list(struct walking *walking, uint64_t cache, unsigned bin) {
    return reader_word(&walking->anywhere,
                       cache + (uint64_t)walking->layout->cache_bins * CACHE_COUNT + bin * WORD);
}

/* How many blocks each bin of a cache says that it holds; all bins may hold as many, so what has
 * the most room is empty. */
static bool read_counts(struct walking *walking, uint64_t cache, uint16_t *counts) {
    unsigned bins = walking->layout->cache_bins;
    const void *bytes = bytes_at(&walking->anywhere, cache, (size_t)bins * CACHE_COUNT);
    uint16_t most = 0;
    if (bytes == NULL) {
        return false;
    }
    memcpy(counts, bytes, (size_t)bins * CACHE_COUNT);
    if (!walking->layout->counts_room) {
        return true;
    }
    for (unsigned i = 0; i < bins; i++) {
        most = counts[i] > most ? counts[i] : most;
    }
    for (unsigned i = 0; i < bins; i++) {
        counts[i] = (uint16_t)(most - counts[i]);
    }
    return true;
}

/* Whether a chunk is the cache of a thread: counts, and lists as long as these say, of blocks of
 * the right sizes, which all bear the key of this process. */
static bool arenas_is_cache(struct walking *walking, uint64_t cache, uint64_t *key) {
    uint16_t counts[CACHE_BINS_MOST];
    uint64_t seen = *key;
    int blocks = 0;
    if (!read_counts(walking, cache, counts)) {
        return false;
    }
    for (unsigned i = 0; i < walking->layout->cache_bins; i++) {
        int number = count_cached(walking, cache_list(walking, cache, i), i, counts[i], &seen);
        if (number < 0) {
            return false;
        }
        blocks += number;
    }
    *key = blocks != 0 ? seen : *key;
    return blocks != 0;
}

static int note_cached(struct walking *walking, uint64_t cache) {
    for (unsigned i = 0; i < walking->layout->cache_bins; i++) {
        uint64_t block = cache_list(walking, cache, i);
        for (int most = CACHE_MOST; block != 0 && most > 0; most--) {
            if (arenas_note_free(walking, block - HEADER, ARENAS_CACHED) != 0) {
                return -1;
            }
            block = arenas_link_at(walking, block);
        }
    }
    walking->found->caches++;
    return 0;
}

/* (In an arena that is not the main one, 2.43 asks for a cache by its chunk's size, which is
 * rounded once more.) */
static int note_maybe_cache(struct walking *walking, uint64_t chunk, uint64_t size, bool is_used) {
    uint64_t bytes = (uint64_t)walking->layout->cache_bins * (CACHE_COUNT + WORD);
    if (!is_used || size < bytes + WORD || size > bytes + WORD + 2 * HEADER) {
        return 0;
    }
    if (array_grow(&walking->maybe_caches, &walking->maybe_room, walking->maybe_count,
                   sizeof chunk) != 0) {
        return error_set(walking->error, "out of memory");
    }
    walking->maybe_caches[walking->maybe_count++] = chunk;
    return 0;
}

static int find_free(struct walking *walking) {
    uint64_t key = 0;
    int result = 0;
    for (size_t i = 0; i < walking->count && result == 0; i++) {
        result = find_fast(walking, walking->arenas[i]);
    }
    if (result == 0) {
        result = arenas_walk_all(walking, note_maybe_cache);
    }
    walking->found->top_bytes = 0; /* it is walked again */
    for (size_t i = 0; i < walking->maybe_count && result == 0; i++) {
        uint64_t cache = walking->maybe_caches[i] + HEADER;
        if (arenas_is_cache(walking, cache, &key)) {
            result = note_cached(walking, cache);
        }
    }
    return result;
}

/* --- telling ---------------------------------------------------------------------------------- */

static int arenas_tell(struct walking *walking, uint64_t chunk, uint64_t size, bool is_used) {
    void *noted = is_used ? numbermap_get(&walking->free, chunk) : NULL;
    struct arenas_chunk told = {
        .address = chunk + HEADER,
        .bytes = size - WORD,
        .first = reader_word(&walking->in_order, chunk + HEADER),
        .state = noted != NULL ? (enum arenas_state)((uintptr_t)noted - 1)
                 : is_used     ? ARENAS_USED
                               : ARENAS_FREE,
    };
    walking->visit(walking->context, &told);
    return 0;
}

/* A large block is a mapping of its own, which may have become one with those beside it. */
static void arenas_tell_mapped(struct walking *walking, const struct attachmapping *mapping) {
    uint64_t at = mapping->start;
    while (at < mapping->end) {
        uint64_t size = size_at(&walking->in_order, at);
        uint64_t bytes = (size & ~(uint64_t)BITS) + walking->layout->mapped_end;
        if ((size & BITS) != MAPPED || bytes == walking->layout->mapped_end || bytes % PAGE != 0 ||
            bytes > mapping->end - at || reader_word(&walking->in_order, at) != 0) {
            at += PAGE;
            continue;
        }
        walking->found->mapped_count++;
        walking->found->mapped_bytes += bytes;
        walking->visit(walking->context,
                       &(struct arenas_chunk){.address = at + HEADER,
                                              .bytes = bytes - walking->layout->mapped_cost,
                                              .first = reader_word(&walking->in_order, at + HEADER),
                                              .state = ARENAS_USED,
                                              .is_mapped = true});
        at += bytes;
    }
}

static void tell_all_mapped(struct walking *walking) {
    const struct attachtarget *target = walking->target;
    for (size_t i = 0; i < target->count; i++) {
        const struct attachmapping *mapping = &target->mappings[i];
        if (mapping->path[0] == '\0' && mapping->readable && mapping->writable) {
            arenas_tell_mapped(walking, mapping);
        }
    }
}

int arenas_walk(const struct attachtarget *target, const struct memtrace_census *told,
                arenas_visitor visit, void *context, struct arenas *found, struct error *error) {
    struct walking walking = {
        .target = target,
        .in_order = {.pid = target->pid, .window = WINDOW, .bytes = malloc(WINDOW)},
        .anywhere = {.pid = target->pid, .window = PAGE, .bytes = malloc(PAGE)},
        .found = found,
        .visit = visit,
        .context = context,
        .error = error,
    };
    int result = -1;
    *found = (struct arenas){0};
    if (walking.in_order.bytes == NULL || walking.anywhere.bytes == NULL) {
        error_set(error, "out of memory");
    } else if (check_version(&walking) == 0 && find_arenas(&walking) == 0) {
        result = find_free(&walking);
        result = result == 0 ? arenas_walk_all(&walking, arenas_tell) : result;
    }
    if (result == 0 && told->mapped_count != 0) {
        tell_all_mapped(&walking);
    }
    free(walking.in_order.bytes);
    free(walking.anywhere.bytes);
    free(walking.arenas);
    free(walking.maybe_caches);
    numbermap_free(&walking.free);
    return result;
}
