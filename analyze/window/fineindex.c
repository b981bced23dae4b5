/* SPDX-License-Identifier: MIT */
/* fineindex.c: reads fine indices. See fineindex.h. */
#include "analyze/window/fineindex.h"

#include "analyze/read/cachefolder.h"
#include "analyze/window/modelcache.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
#include <zstd.h>

enum { LAYOUT = 1, MOST_BYTES = 1 << 28 };

const struct cachefolder_kind fineindex_kind = {
    .name = "fine", .version = LAYOUT, .most_bytes = (uint64_t)1 << 30};

struct fineindex {
    int fd;
    struct fineindex_directory directory;
    size_t slices;
    struct fineindex *older; /* a damaged one, in whose place this one came: somebody may use it */
};

void fineindex_free(struct fineindex *fine) {
    while (fine != NULL) {
        struct fineindex *older = fine->older;
        if (fine->fd >= 0) {
            close(fine->fd);
        }
        free(fine->directory.pieces);
        free(fine->directory.first);
        free(fine);
        fine = older;
    }
}

/* What is in the frame there; NULL: damaged, or out of memory. The caller frees it. */
static unsigned char *unpack(int fd, uint64_t offset, struct fineindex_bytes size) {
    unsigned char *packed = malloc((size_t)size.packed + 1);
    unsigned char *bytes = malloc((size_t)size.whole + 1);
    if (packed == NULL || bytes == NULL ||
        pread(fd, packed, size.packed, (off_t)(offset + CACHEFOLDER_HEAD)) !=
            (ssize_t)size.packed ||
        ZSTD_decompress(bytes, size.whole, packed, size.packed) != size.whole) {
        free(bytes);
        bytes = NULL;
    }
    free(packed);
    return bytes;
}

int fineindex_by_name(const void *left, const void *right) {
    const struct fineindex_block *a = left;
    const struct fineindex_block *b = right;
    return fineindex_compare(a->name, b->name);
}

/* ---- The directory ---- */

static void put_piece(struct varint_writer *bytes, const struct fineindex_piece *piece) {
    varint_put(bytes, piece->start_ns);
    varint_put(bytes, piece->first_tick);
    varint_put(bytes, piece->last_tick);
    varint_put(bytes, piece->events);
    varint_put_signed(bytes, piece->change);
    varint_put(bytes, piece->offset);
    varint_put(bytes, piece->sums.packed);
    varint_put(bytes, piece->sums.whole);
    varint_put(bytes, piece->beginning.packed);
    varint_put(bytes, piece->beginning.whole);
}

static struct fineindex_piece get_piece(struct varint_reader *reader) {
    struct fineindex_piece piece = {.start_ns = varint_get(reader)};
    piece.first_tick = (uint32_t)varint_get(reader);
    piece.last_tick = (uint32_t)varint_get(reader);
    piece.events = varint_get(reader);
    piece.change = varint_get_signed(reader);
    piece.offset = varint_get(reader);
    piece.sums.packed = (uint32_t)varint_get(reader);
    piece.sums.whole = (uint32_t)varint_get(reader);
    piece.beginning.packed = (uint32_t)varint_get(reader);
    piece.beginning.whole = (uint32_t)varint_get(reader);
    return piece;
}

void fineindex_pack_directory(struct varint_writer *bytes, const struct index *index,
                              struct timeorder_parts parts,
                              const struct fineindex_directory *directory) {
    struct index_cover cover = index_cover(parts, UINT64_MAX);
    varint_put(bytes, cover.blocks);
    varint_put_bytes(bytes, cover.hash, sizeof cover.hash);
    varint_put_byte(bytes, directory->is_exact);
    varint_put(bytes, index->count);
    for (size_t i = 0; i < index->count; i++) {
        varint_put(bytes, directory->first[i + 1] - directory->first[i]);
        for (size_t at = directory->first[i]; at < directory->first[i + 1]; at++) {
            put_piece(bytes, &directory->pieces[at]);
        }
    }
}

static bool is_inside(const struct fineindex_piece *piece, uint64_t size) {
    return piece->offset <= size && piece->sums.whole <= MOST_BYTES &&
           piece->beginning.whole <= MOST_BYTES &&
           (uint64_t)piece->sums.packed + piece->beginning.packed <= size - piece->offset;
}

/* Whether the pieces, in bytes of that size, are the slice: no pieces always are. */
static bool add_up(const struct fineindex_piece *pieces, size_t count,
                   const struct index_entry *entry, uint64_t size) {
    uint64_t events = 0;
    int64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        if (!is_inside(&pieces[i], size) || (pieces[i].sums.whole == 0) != (count == 1) ||
            (i == 0 ? pieces[i].start_ns != entry->start_ns
                    : pieces[i].start_ns <= pieces[i - 1].start_ns)) {
            return false;
        }
        events += pieces[i].events;
        sum = wrap_add(sum, pieces[i].change);
    }
    return count == 0 || (events == entry->slice.events && sum == entry->slice.change);
}

/* 0, or -1: it is not one of this index, or out of memory. */
static int get_directory(struct fineindex *fine, struct varint_reader *reader, uint64_t size,
                         const struct index *index, struct timeorder_parts parts) {
    struct fineindex_directory *directory = &fine->directory;
    struct index_cover cover = {.blocks = varint_get(reader)};
    const void *hash = varint_get_bytes(reader, sizeof cover.hash);
    if (hash == NULL) {
        return -1;
    }
    memcpy(cover.hash, hash, sizeof cover.hash);
    directory->is_exact = varint_get_byte(reader) != 0;
    if (!index_covers(cover, index_cover(parts, UINT64_MAX)) ||
        varint_get(reader) != index->count) {
        return -1;
    }
    fine->slices = index->count;
    directory->room = (size_t)(reader->end - reader->next) / 10; /* bytes of a piece, at least */
    directory->pieces = calloc(directory->room + 1, sizeof *directory->pieces);
    directory->first = calloc(index->count + 1, sizeof *directory->first);
    if (directory->pieces == NULL || directory->first == NULL) {
        return -1;
    }
    for (size_t i = 0; i < index->count; i++) {
        uint64_t count = varint_get(reader);
        struct fineindex_piece *pieces = &directory->pieces[directory->count];
        if (*reader->failed || count > directory->room - directory->count) {
            return -1;
        }
        for (uint64_t at = 0; at < count; at++) {
            pieces[at] = get_piece(reader);
        }
        if (!add_up(pieces, count, &index->entries[i], size)) {
            return -1;
        }
        directory->count += count;
        directory->first[i + 1] = directory->count;
    }
    return *reader->failed || reader->next != reader->end ? -1 : 0;
}

/* ---- Which one ---- */

/* 0 or -1 */
static int read_directory(struct fineindex *fine, uint64_t size, const struct index *index,
                          struct timeorder_parts parts) {
    struct fineindex_bytes last;
    bool failed = false;
    struct varint_reader reader = {.failed = &failed};
    unsigned char *bytes;
    int result;
    if (size < sizeof last ||
        pread(fine->fd, &last, sizeof last, (off_t)(size - sizeof last + CACHEFOLDER_HEAD)) !=
            (ssize_t)sizeof last) {
        return -1;
    }
    size -= sizeof last;
    if (last.packed > size || last.whole > MOST_BYTES ||
        (bytes = unpack(fine->fd, size - last.packed, last)) == NULL) {
        return -1;
    }
    reader.next = bytes;
    reader.end = bytes + last.whole;
    result = get_directory(fine, &reader, size - last.packed, index, parts);
    free(bytes);
    return result;
}

static struct fineindex *load(const struct index *index, struct timeorder_parts parts) {
    struct fineindex *fine = calloc(1, sizeof *fine);
    char name[MODELCACHE_NAME];
    uint64_t size = 0;
    modelcache_name(parts, false, name);
    if (fine == NULL) {
        return NULL;
    }
    fine->fd = name[0] != '\0' ? cachefolder_open(&fineindex_kind, name, &size) : -1;
    if (fine->fd < 0 || read_directory(fine, size, index, parts) != 0) {
        fineindex_free(fine);
        return NULL;
    }
    return fine;
}

/* Whoever looks first, looks for all. */
static pthread_mutex_t looking = PTHREAD_MUTEX_INITIALIZER;

static const struct fineindex *look(struct index *index, struct timeorder_parts parts) {
    struct fineindex *fine;
    pthread_mutex_lock(&looking);
    if (!atomic_load(&index->has_looked)) {
        atomic_store(&index->fine, load(index, parts));
        atomic_store(&index->has_looked, true);
    }
    fine = atomic_load(&index->fine);
    pthread_mutex_unlock(&looking);
    return fine;
}

const struct fineindex *fineindex_of(const struct model *whole, struct timeorder_parts parts) {
    struct index *index = whole->index;
    return index == NULL                     ? NULL
           : atomic_load(&index->has_looked) ? atomic_load(&index->fine)
                                             : look(index, parts);
}

/* Where events are few, or there are none without damage, it is as quick without one. Of a sample,
 * variances would be added up in another order, and differ in their last digits. */
static bool is_worth_it(const struct model *whole, const struct replay_options *options) {
    enum { PIECES = 8 };
    uint64_t least = options != NULL && options->slice_events != 0 ? options->slice_events
                                                                   : (uint64_t)FINEINDEX_EVENTS;
    const struct index_facts *facts = &whole->index->facts;
    return cachefolder_is_on() && !whole->live && !facts->is_sampled && facts->damaged == 0 &&
           facts->gaps == 0 && whole->recording.events >= PIECES * least;
}

/* Looks through all of it. */
static bool is_whole(const struct fineindex *fine, const struct replay_options *options) {
    const struct fineindex_directory *directory = &fine->directory;
    for (size_t i = 0; i < directory->count; i++) {
        const struct fineindex_piece *piece = &directory->pieces[i];
        unsigned char *sums = unpack(fine->fd, piece->offset, piece->sums);
        unsigned char *beginning =
            unpack(fine->fd, piece->offset + piece->sums.packed, piece->beginning);
        bool is_there = (sums != NULL || piece->sums.whole == 0) && beginning != NULL;
        free(sums);
        free(beginning);
        if (!is_there || (options != NULL && replay_is_cancelled(options))) {
            return is_there;
        }
    }
    return true;
}

bool fineindex_prepare(const struct model *whole, struct timeorder_parts parts,
                       const struct replay_options *options) {
    const struct fineindex *there = fineindex_of(whole, parts);
    struct fineindex *made;
    char name[MODELCACHE_NAME];
    if (there != NULL && is_whole(there, options)) {
        return true;
    }
    if (whole->index == NULL || parts.count == 0 || !is_worth_it(whole, options)) {
        return false;
    }
    modelcache_name(parts, false, name);
    if (name[0] == '\0' || finemaking_make(whole, parts, options, name) != 0) {
        return false;
    }
    made = load(whole->index, parts);
    if (made != NULL) {
        pthread_mutex_lock(&looking);
        made->older = atomic_load(&whole->index->fine);
        atomic_store(&whole->index->fine, made);
        pthread_mutex_unlock(&looking);
    }
    return made != NULL;
}

/* ---- Pieces ---- */

size_t fineindex_pieces(const struct fineindex *fine, size_t at,
                        const struct fineindex_piece **pieces) {
    const struct fineindex_directory *directory;
    if (fine == NULL || at >= fine->slices) {
        return 0;
    }
    directory = &fine->directory;
    *pieces = &directory->pieces[directory->first[at]];
    return directory->first[at + 1] - directory->first[at];
}

int fineindex_slice(const struct fineindex *fine, const struct fineindex_piece *piece,
                    struct slice *slice) {
    bool failed = false;
    unsigned char *bytes = unpack(fine->fd, piece->offset, piece->sums);
    struct varint_reader reader = {bytes, bytes, &failed};
    int result = -1;
    *slice = (struct slice){0};
    if (bytes != NULL) {
        reader.end += piece->sums.whole;
        result = index_get_slice(&reader, slice);
    }
    free(bytes);
    return failed ? -1 : result;
}

void fineindex_pack_beginning(struct varint_writer *bytes, const struct index_entry *entry,
                              const struct fineindex_block *blocks, size_t count) {
    const struct fineindex_block none = {0};
    index_put_bytes(bytes, &entry->place);
    index_put_bytes(bytes, &entry->state);
    index_put_bytes(bytes, &entry->waited);
    varint_put(bytes, count);
    for (size_t i = 0; i < count; i++) {
        const struct fineindex_block *before = i != 0 ? &blocks[i - 1] : &none;
        bool is_same = before->name.thread == blocks[i].name.thread;
        varint_put(bytes, blocks[i].name.thread - before->name.thread);
        varint_put(bytes, blocks[i].name.number - (is_same ? before->name.number : 0));
    }
    for (size_t i = 0; i < count; i++) {
        varint_put(bytes, blocks[i].block.size);
    }
    for (size_t i = 0; i < count; i++) {
        varint_put(bytes, blocks[i].block.context);
    }
    for (size_t i = 0; i < count; i++) {
        uint32_t before = i != 0 ? blocks[i - 1].block.tick : 0;
        varint_put_signed(bytes, (int64_t)blocks[i].block.tick - before);
    }
}

static void get_blocks(struct varint_reader *reader, struct fineindex_block *blocks, size_t count) {
    struct event_block name = {0};
    uint64_t tick = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t threads = (uint32_t)varint_get(reader);
        name.thread += threads;
        name.number = (threads == 0 ? name.number : 0) + varint_get(reader);
        blocks[i].name = name;
    }
    for (size_t i = 0; i < count; i++) {
        blocks[i].block.size = varint_get(reader);
    }
    for (size_t i = 0; i < count; i++) {
        blocks[i].block.context = (uint32_t)varint_get(reader);
    }
    for (size_t i = 0; i < count; i++) {
        tick += varint_unzigzag(varint_get(reader));
        blocks[i].block.tick = (uint32_t)tick;
        blocks[i].born_ns = tick << MEMTRACE_TICK_SHIFT;
    }
}

int fineindex_begin(const struct fineindex *fine, const struct fineindex_piece *piece,
                    struct index_entry *entry, struct fineindex_block **blocks, size_t *count) {
    bool failed = false;
    unsigned char *bytes = unpack(fine->fd, piece->offset + piece->sums.packed, piece->beginning);
    struct varint_reader reader = {bytes, bytes, &failed};
    uint64_t there;
    int result = -1;
    *entry = (struct index_entry){.start_ns = piece->start_ns};
    *blocks = NULL;
    *count = 0;
    if (bytes == NULL) {
        return -1;
    }
    reader.end += piece->beginning.whole;
    if (index_get_bytes(&reader, &entry->place) == 0 &&
        index_get_bytes(&reader, &entry->state) == 0 &&
        index_get_bytes(&reader, &entry->waited) == 0 &&
        (there = varint_get(&reader)) <= (uint64_t)(reader.end - reader.next) &&
        (*blocks = calloc(there + 1, sizeof **blocks)) != NULL) {
        get_blocks(&reader, *blocks, there);
        for (size_t i = 0; i < there; i++) {
            (*blocks)[i].is_known = fine->directory.is_exact;
        }
        *count = there;
        result = failed ? -1 : 0;
    }
    free(bytes);
    return result;
}
