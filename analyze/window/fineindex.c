/* SPDX-License-Identifier: MIT */
/* fineindex.c: makes and reads fine indices. See fineindex.h. */
#include "analyze/window/fineindex.h"

#include "analyze/base/array.h"
#include "analyze/base/job.h"
#include "analyze/read/cachefolder.h"
#include "analyze/window/wholemodel.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
#include <zstd.h>

enum { LAYOUT = 1, FRAME_MOST = 1 << 28, THREADS = 1 << MEMTRACE_THREAD_BITS };

static const struct cachefolder_kind fineindex_kind = {
    .name = "fine", .version = LAYOUT, .most_bytes = (uint64_t)1 << 30};

struct fineindex_directory {
    struct fineindex_piece *pieces; /* those of a slice together, by time */
    size_t count, room;
    size_t *first; /* by slice of the index, and one more: its first piece */
    bool is_exact; /* blocks begin at ticks, so that their ticks say when */
};

struct fineindex {
    int fd;
    struct fineindex_directory directory;
    size_t slices;
};

/* What is in the frame there; NULL: damaged. */
static unsigned char *fineindex_unpack(int fd, uint64_t offset, struct fineindex_bytes size) {
    unsigned char *packed = job_array((size_t)size.packed + 1, 1);
    unsigned char *bytes = job_array((size_t)size.whole + 1, 1);
    if (pread(fd, packed, size.packed, (off_t)(offset + CACHEFOLDER_HEAD)) !=
            (ssize_t)size.packed ||
        ZSTD_decompress(bytes, size.whole, packed, size.packed) != size.whole) {
        job_release(bytes);
        bytes = NULL;
    }
    job_release(packed);
    return bytes;
}

int fineindex_by_name(const void *left, const void *right) {
    const struct fineindex_block *a = left;
    const struct fineindex_block *b = right;
    return fineindex_compare(a->name, b->name);
}

/* ---- The directory ---- */

static void fineindex_fields_piece(const struct fields *fields, struct fineindex_piece *piece) {
    fields_u64(fields, &piece->start_ns);
    fields_u32(fields, &piece->first_tick);
    fields_u32(fields, &piece->last_tick);
    fields_u64(fields, &piece->events);
    fields_signed(fields, &piece->change);
    fields_u64(fields, &piece->offset);
    fields_u32(fields, &piece->sums.packed);
    fields_u32(fields, &piece->sums.whole);
    fields_u32(fields, &piece->beginning.packed);
    fields_u32(fields, &piece->beginning.whole);
}

static bool is_piece_inside(const struct fineindex_piece *piece, uint64_t size) {
    return piece->offset <= size && piece->sums.whole <= FRAME_MOST &&
           piece->beginning.whole <= FRAME_MOST &&
           (uint64_t)piece->sums.packed + piece->beginning.packed <= size - piece->offset;
}

/* Whether the pieces, in bytes of that size, are the slice: no pieces always are. */
static bool do_pieces_add_up(const struct fineindex_piece *pieces, size_t count,
                             const struct index_entry *entry, uint64_t size) {
    uint64_t events = 0;
    int64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        if (!is_piece_inside(&pieces[i], size) || (pieces[i].sums.whole == 0) != (count == 1) ||
            (i == 0 ? pieces[i].start_ns != entry->start_ns
                    : pieces[i].start_ns <= pieces[i - 1].start_ns)) {
            return false;
        }
        events += pieces[i].events;
        sum = wrap_add(sum, pieces[i].change);
    }
    return count == 0 || (events == entry->slice.events && sum == entry->slice.change);
}

/* false: it is not one of this index. */
static bool fineindex_get_directory(struct fineindex *fine, struct varint_reader *reader,
                                    uint64_t size, const struct index *index,
                                    struct timeorder_parts parts) {
    struct fineindex_directory *directory = &fine->directory;
    struct index_cover cover = {.blocks = varint_get(reader)};
    const void *hash = varint_get_bytes(reader, sizeof cover.hash);
    if (hash == NULL) {
        return false;
    }
    memcpy(cover.hash, hash, sizeof cover.hash);
    directory->is_exact = varint_get_byte(reader) != 0;
    if (!index_covers(cover, index_cover(parts, UINT64_MAX)) ||
        varint_get(reader) != index->count) {
        return false;
    }
    fine->slices = index->count;
    directory->room = (size_t)(reader->end - reader->next) / 10; /* bytes of a piece, at least */
    directory->pieces = job_array(directory->room + 1, sizeof *directory->pieces);
    directory->first = job_array(index->count + 1, sizeof *directory->first);
    for (size_t i = 0; i < index->count; i++) {
        uint64_t count = varint_get(reader);
        struct fineindex_piece *pieces = &directory->pieces[directory->count];
        if (*reader->failed || count > directory->room - directory->count) {
            return false;
        }
        for (uint64_t at = 0; at < count; at++) {
            fineindex_fields_piece(&(struct fields){.in = reader}, &pieces[at]);
        }
        if (!do_pieces_add_up(pieces, count, &index->entries[i], size)) {
            return false;
        }
        directory->count += count;
        directory->first[i + 1] = directory->count;
    }
    return !*reader->failed && reader->next == reader->end;
}

/* ---- Which one ---- */

struct fineindex_loading {
    const struct index *index;
    struct timeorder_parts parts;
    struct fineindex *fine;
};

static void fineindex_close(void *what) {
    const struct fineindex *fine = what;
    if (fine->fd >= 0) {
        close(fine->fd);
    }
}

/* The sizes, the directory before them. */
static void fineindex_open(void *what) {
    struct fineindex_loading *loading = what;
    struct fineindex *fine = job_alloc(sizeof *fine);
    struct fineindex_bytes last;
    bool failed = false;
    struct varint_reader reader = {.failed = &failed};
    unsigned char *bytes = NULL;
    char name[MODELCACHE_NAME];
    uint64_t size = 0;
    modelcache_name(loading->parts, false, name);
    fine->fd = cachefolder_open(&fineindex_kind, name, &size);
    job_undo(fineindex_close, fine);
    if (fine->fd < 0 || size < sizeof last ||
        pread(fine->fd, &last, sizeof last, (off_t)(size - sizeof last + CACHEFOLDER_HEAD)) !=
            (ssize_t)sizeof last) {
        job_fail("there is no fine index");
    }
    size -= sizeof last;
    if (last.packed <= size && last.whole <= FRAME_MOST) {
        bytes = fineindex_unpack(fine->fd, size - last.packed, last);
    }
    reader.next = bytes;
    reader.end = bytes != NULL ? bytes + last.whole : bytes;
    if (bytes == NULL || !fineindex_get_directory(fine, &reader, size - last.packed, loading->index,
                                                  loading->parts)) {
        job_fail("the fine index is damaged");
    }
    job_release(bytes);
    loading->fine = fine;
}

/* Whoever looks first, looks for all. */
static pthread_mutex_t looking = PTHREAD_MUTEX_INITIALIZER;

/* NULL: there is none, or a damaged one. Under the lock. */
static struct fineindex *fineindex_load(struct index *index, struct timeorder_parts parts) {
    struct fineindex_loading loading = {.index = index, .parts = parts};
    return job_run(fineindex_open, &loading, &index->fine_memory, NULL) == 0 ? loading.fine : NULL;
}

const struct fineindex *fineindex_of(const struct model *whole, struct timeorder_parts parts) {
    struct index *index = whole->index;
    if (index == NULL) {
        return NULL;
    }
    if (!atomic_load(&index->has_looked)) {
        pthread_mutex_lock(&looking);
        if (!atomic_load(&index->has_looked)) {
            atomic_store(&index->fine, fineindex_load(index, parts));
            atomic_store(&index->has_looked, true);
        }
        pthread_mutex_unlock(&looking);
    }
    return atomic_load(&index->fine);
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

bool fineindex_slice(const struct fineindex *fine, const struct fineindex_piece *piece,
                     struct slice *slice) {
    bool failed = false;
    unsigned char *bytes = fineindex_unpack(fine->fd, piece->offset, piece->sums);
    struct varint_reader reader = {bytes, bytes, &failed};
    *slice = (struct slice){0};
    if (bytes == NULL) {
        return false;
    }
    reader.end += piece->sums.whole;
    index_fields_slice(&(struct fields){.in = &reader}, slice);
    job_release(bytes);
    return !failed;
}

/* Where a piece begins, and what ends in it, by name: the names as differences, then a column for
 * each other thing. */
static void fineindex_fields_beginning(const struct fields *fields, struct index_entry *entry,
                                       struct fineindex_block **blocks, size_t *count) {
    struct event_block last = {0};
    uint64_t tick = 0;
    fields_bytes(fields, &entry->place);
    fields_bytes(fields, &entry->state);
    fields_bytes(fields, &entry->waited);
    fields_count(fields, count, 1, SIZE_MAX);
    if (fields->in != NULL) {
        *blocks = job_array(*count + 1, sizeof **blocks);
    }
    for (size_t i = 0; i < *count; i++) {
        struct event_block *name = &(*blocks)[i].name;
        uint32_t threads = name->thread - last.thread;
        uint64_t numbers = name->number - (threads == 0 ? last.number : 0);
        fields_u32(fields, &threads);
        fields_u64(fields, &numbers);
        last.number = numbers + (threads == 0 ? last.number : 0);
        last.thread += threads;
        *name = last;
    }
    for (size_t i = 0; i < *count; i++) {
        fields_u64(fields, &(*blocks)[i].block.size);
    }
    for (size_t i = 0; i < *count; i++) {
        fields_u32(fields, &(*blocks)[i].block.context);
    }
    for (size_t i = 0; i < *count; i++) {
        int64_t ticks = (int64_t)((*blocks)[i].block.tick - tick);
        fields_signed(fields, &ticks);
        tick += (uint64_t)ticks;
        (*blocks)[i].block.tick = (uint32_t)tick;
        (*blocks)[i].born_ns = tick << MEMTRACE_TICK_SHIFT;
    }
}

bool fineindex_begin(const struct fineindex *fine, const struct fineindex_piece *piece,
                     struct index_entry *entry, struct fineindex_block **blocks, size_t *count) {
    bool failed = false;
    unsigned char *bytes =
        fineindex_unpack(fine->fd, piece->offset + piece->sums.packed, piece->beginning);
    struct varint_reader reader = {bytes, bytes, &failed};
    *entry = (struct index_entry){.start_ns = piece->start_ns};
    if (bytes == NULL) {
        return false;
    }
    reader.end += piece->beginning.whole;
    fineindex_fields_beginning(&(struct fields){.in = &reader}, entry, blocks, count);
    for (size_t i = 0; i < *count; i++) {
        (*blocks)[i].is_known = fine->directory.is_exact;
    }
    job_release(bytes);
    return !failed;
}

/*
 * ---- Making: all events are gone through once, and each piece is written down where it ends.
 * Memory: as the replay of the recording, and one piece.
 *
 * Pieces begin where slices of the index do, and in between once there are enough events. What they
 * take is to be half of the recording, within bounds: where they take more of what was read so far,
 * they become longer. A quarter more than that is the most: slices from there on have no pieces.
 * ----
 */

enum { MOST_EDGES = 1 << 16, LEVEL = 1 };
#define LEAST_BYTES ((uint64_t)16 << 20)
#define MOST_BYTES  ((uint64_t)256 << 20)

struct finemaking {
    const struct model *whole;
    const struct index *index;
    struct timeorder_parts parts;
    const struct replay_options *options;
    struct pass pass;
    struct timeorder order;
    struct cachefolder_writer file;
    ZSTD_CCtx *compressor;
    struct fineindex_directory directory;
    uint64_t *edges; /* where pieces may begin */
    size_t edge_count, next_edge;
    struct index piece;           /* what is known of the present one: one entry */
    size_t place;                 /* its edge; SIZE_MAX: the first */
    size_t slice;                 /* of the index, that it is in */
    struct fineindex_block *ends; /* of blocks that began before it */
    size_t end_count, end_room;
    uint64_t
        first[THREADS]; /* number of the first block of a thread id that began in it; 0: none */
    uint64_t spacing;   /* events of a piece */
    uint64_t least;
    uint64_t done, total; /* events */
    uint64_t most_bytes;
    bool is_full;
};

/* Those of the index, and others between them. */
static void finemaking_make_edges(struct finemaking *making) {
    const struct index *index = making->index;
    size_t count;
    size_t kept = 0;
    uint64_t *edges = index_edges(making->parts, 0, making->least, MOST_EDGES, &count);
    uint64_t *all = job_array(count + index->count, sizeof *edges);
    memcpy(all, edges, count * sizeof *edges);
    for (size_t i = 1; i < index->count; i++) {
        all[count++] = index->entries[i].start_ns;
    }
    array_sort_by(all, count, sizeof *all, 0);
    for (size_t i = 0; i < count; i++) {
        if (kept == 0 || all[i] != all[kept - 1]) {
            all[kept++] = all[i];
        }
    }
    making->edges = all;
    making->edge_count = kept;
}

/* ---- What ends in a piece ---- */

static void finemaking_note_begin(void *context, const struct timeorder_event *entry) {
    struct finemaking *making = context;
    struct event_block name = entry->event.block;
    const uint64_t tick = UINT64_C(1) << MEMTRACE_TICK_SHIFT;
    if (name.thread < THREADS &&
        (making->first[name.thread] == 0 || name.number < making->first[name.thread])) {
        making->first[name.thread] = name.number;
    }
    making->directory.is_exact &= (entry->event.time_ns & (tick - 1)) == 0;
}

/* Numbers of an id that several streams share say nothing of the order. One too many does no harm:
 * it is met again where it begins. */
static bool finemaking_began_here(const struct finemaking *making, struct event_block name) {
    return making->first[name.thread] != 0 && name.number >= making->first[name.thread] &&
           making->order.stream_of[name.thread] < making->order.stream_count;
}

static void finemaking_note_end(void *context, struct event_block name,
                                const struct pairing_block *block) {
    struct finemaking *making = context;
    if (name.thread >= THREADS || finemaking_began_here(making, name)) {
        return;
    }
    job_grow(&making->ends, &making->end_room, making->end_count, sizeof *making->ends);
    making->ends[making->end_count++] = (struct fineindex_block){.name = name, .block = *block};
}

static void finemaking_note_waited(void *context, struct event_block name,
                                   const struct pairing_end *end) {
    struct finemaking *making = context;
    index_note_waited(&making->piece.entries[0], name, end);
}

/* Compressed, into the file. */
static struct fineindex_bytes finemaking_write_packed(struct finemaking *making,
                                                      const struct varint_writer *bytes) {
    size_t room = ZSTD_compressBound(bytes->size);
    void *packed = job_array(room, 1);
    size_t size = ZSTD_compress2(making->compressor, packed, room, bytes->bytes, bytes->size);
    if (size == 0 || ZSTD_isError(size)) {
        job_fail_memory();
    }
    cachefolder_add(&making->file, packed, size);
    job_release(packed);
    return (struct fineindex_bytes){(uint32_t)size, (uint32_t)bytes->size};
}

static void finemaking_write_piece(struct finemaking *making, struct slice *slice, bool has_sums) {
    struct fineindex_directory *directory = &making->directory;
    struct index_entry *entry = &making->piece.entries[0];
    struct varint_writer bytes = {.of_job = true};
    const struct fields fields = {.out = &bytes};
    struct fineindex_piece piece = {.start_ns = entry->start_ns,
                                    .first_tick = slice->first_tick,
                                    .last_tick = slice->last_tick,
                                    .events = slice->events,
                                    .change = slice->change,
                                    .offset = making->file.size};
    if (has_sums) {
        index_fields_slice(&fields, slice);
        piece.sums = finemaking_write_packed(making, &bytes);
        bytes.size = 0;
    }
    if (making->place != SIZE_MAX) {
        timeorder_take_place(&making->order, making->place, &entry->place);
    }
    if (making->end_count != 0) {
        qsort(making->ends, making->end_count, sizeof *making->ends, fineindex_by_name);
    }
    fineindex_fields_beginning(&fields, entry, &making->ends, &making->end_count);
    piece.beginning = finemaking_write_packed(making, &bytes);
    job_release(bytes.bytes);
    job_grow(&directory->pieces, &directory->room, directory->count, sizeof piece);
    directory->pieces[directory->count++] = piece;
}

/* ends_slice: the slice of the index is over, too. */
static void finemaking_end_piece(struct finemaking *making, bool ends_slice) {
    struct fineindex_directory *directory = &making->directory;
    bool is_first = directory->count == directory->first[making->slice];
    struct slice slice;
    uint64_t share;
    pass_cut(&making->pass, &slice);
    making->done += slice.events;
    if (!making->is_full) {
        finemaking_write_piece(making, &slice, !(is_first && ends_slice));
    }
    slice_free(&slice);
    index_free_entry(&making->piece.entries[0]);
    making->piece.count = 0;
    making->end_count = 0;
    memset(making->first, 0, sizeof making->first);
    making->is_full |= making->file.size > making->most_bytes + making->most_bytes / 4;
    if (making->is_full) {
        directory->count = directory->first[making->slice]; /* all of its pieces, or none */
    }
    /* So that at the end about as much is written as may be. */
    share =
        (uint64_t)((double)making->most_bytes * (double)making->done / (double)(making->total + 1));
    if (making->file.size > share + making->most_bytes / 16) {
        making->spacing *= 2;
    } else if (making->file.size < share / 4 * 3 && making->spacing > making->least) {
        making->spacing /= 2;
    }
}

/* edge: where it begins, SIZE_MAX: at the first event. Of several edges that one window is the
 * first behind, the index may have taken another one for its slice. */
static void finemaking_begin_piece(struct finemaking *making, size_t edge, bool is_slice) {
    uint64_t start_ns =
        is_slice ? making->index->entries[making->slice].start_ns : making->edges[edge];
    making->place = edge;
    index_begin(&making->piece, start_ns, &making->pass);
}

static void finemaking_begin_window(void *context, uint64_t time_ns) {
    struct finemaking *making = context;
    const struct index *index = making->index;
    size_t next = making->next_edge;
    bool is_slice =
        making->slice + 1 < index->count && time_ns >= index->entries[making->slice + 1].start_ns;
    while (next < making->edge_count && time_ns >= making->edges[next]) {
        next++;
    }
    if (next == making->next_edge) {
        return;
    }
    making->next_edge = next;
    if (!is_slice && making->pass.events < making->spacing) {
        return;
    }
    finemaking_end_piece(making, is_slice);
    while (making->slice + 1 < index->count &&
           time_ns >= index->entries[making->slice + 1].start_ns) {
        making->directory.first[++making->slice] = making->directory.count;
    }
    finemaking_begin_piece(making, next - 1, is_slice);
    making->pass.stop = making->is_full || making->file.failed;
}

/* ---- All of it ---- */

static void finemaking_write_directory(struct finemaking *making) {
    const struct fineindex_directory *directory = &making->directory;
    struct index_cover cover = index_cover(making->parts, UINT64_MAX);
    struct varint_writer bytes = {.of_job = true};
    struct fineindex_bytes last;
    varint_put(&bytes, cover.blocks);
    varint_put_bytes(&bytes, cover.hash, sizeof cover.hash);
    varint_put_byte(&bytes, directory->is_exact);
    varint_put(&bytes, making->index->count);
    for (size_t i = 0; i < making->index->count; i++) {
        varint_put(&bytes, directory->first[i + 1] - directory->first[i]);
        for (size_t at = directory->first[i]; at < directory->first[i + 1]; at++) {
            fineindex_fields_piece(&(struct fields){.out = &bytes}, &directory->pieces[at]);
        }
    }
    last = finemaking_write_packed(making, &bytes);
    cachefolder_add(&making->file, &last, sizeof last);
}

static void finemaking_run(void *what) {
    struct finemaking *making = what;
    const struct pass_visitor visitor = {.began = finemaking_note_begin,
                                         .ended = finemaking_note_end,
                                         .window = finemaking_begin_window,
                                         .waited = finemaking_note_waited,
                                         .context = making};
    int result;
    making->directory.first = job_array(making->index->count + 1, sizeof(size_t));
    ZSTD_CCtx_setParameter(making->compressor, ZSTD_c_compressionLevel, LEVEL);
    ZSTD_CCtx_setParameter(making->compressor, ZSTD_c_checksumFlag, 1);
    timeorder_begin(&making->order, making->parts);
    making->order.skips_addresses = true;
    finemaking_make_edges(making);
    timeorder_note_places(&making->order, making->edges, making->edge_count);
    pass_start(&making->pass, making->whole, making->order.stream_count, 0, UINT64_MAX);
    making->pass.inherited = making->whole->header.inherited_blocks;
    finemaking_begin_piece(making, SIZE_MAX, true);
    result = pass_run(&making->pass, &making->order, &visitor, making->options, making->total);
    if (result != 0 && !making->is_full) {
        job_fail("cancelled");
    }
    if (result == 0) {
        finemaking_end_piece(making, true);
    }
    while (making->slice < making->index->count) {
        making->directory.first[++making->slice] = making->directory.count;
    }
    finemaking_write_directory(making);
}

static bool finemaking_make(const struct model *whole, struct timeorder_parts parts,
                            const struct replay_options *options) {
    struct finemaking *making = calloc(1, sizeof *making);
    uint64_t share = whole->recording.bytes / 2;
    char name[MODELCACHE_NAME];
    bool is_made;
    if (making == NULL) {
        return false;
    }
    making->whole = whole;
    making->index = whole->index;
    making->parts = parts;
    making->options = options;
    making->total = whole->recording.events;
    making->least = options != NULL && options->slice_events != 0 ? options->slice_events
                                                                  : (uint64_t)FINEINDEX_EVENTS;
    making->spacing = making->least;
    making->most_bytes = share < LEAST_BYTES  ? LEAST_BYTES
                         : share > MOST_BYTES ? MOST_BYTES
                                              : share;
    making->directory.is_exact = true;
    making->compressor = ZSTD_createCCtx();
    modelcache_name(parts, false, name);
    cachefolder_begin(&making->file, &fineindex_kind, name);
    is_made = making->compressor != NULL && !making->file.failed &&
              job_run(finemaking_run, making, NULL, NULL) == 0;
    is_made = cachefolder_finish(&making->file, is_made) == 0;
    timeorder_end(&making->order);
    ZSTD_freeCCtx(making->compressor);
    free(making);
    return is_made;
}

/* Where events are few, or there are none without damage, it is as quick without one. Of a sample,
 * variances would be added up in another order, and differ in their last digits. */
static bool is_fine_worth_it(const struct model *whole, const struct replay_options *options) {
    enum { PIECES = 8 };
    uint64_t least = options != NULL && options->slice_events != 0 ? options->slice_events
                                                                   : (uint64_t)FINEINDEX_EVENTS;
    const struct index_facts *facts = &whole->index->facts;
    return cachefolder_is_on() && !whole->live && !facts->is_sampled && facts->damaged == 0 &&
           facts->gaps == 0 && whole->recording.events >= PIECES * least;
}

struct fineindex_check {
    const struct fineindex *fine;
    const struct replay_options *options;
};

/* Looks through all of it, unless that is cancelled. */
static void fineindex_check(void *what) {
    const struct fineindex_check *check = what;
    const struct fineindex *fine = check->fine;
    for (size_t i = 0; i < fine->directory.count; i++) {
        const struct fineindex_piece *piece = &fine->directory.pieces[i];
        unsigned char *sums = fineindex_unpack(fine->fd, piece->offset, piece->sums);
        unsigned char *beginning =
            fineindex_unpack(fine->fd, piece->offset + piece->sums.packed, piece->beginning);
        if ((sums == NULL && piece->sums.whole != 0) || beginning == NULL) {
            job_fail("the fine index is damaged");
        }
        job_release(sums);
        job_release(beginning);
        if (check->options != NULL && replay_is_cancelled(check->options)) {
            break;
        }
    }
}

bool fineindex_prepare(const struct model *whole, struct timeorder_parts parts,
                       const struct replay_options *options) {
    struct fineindex_check check = {fineindex_of(whole, parts), options};
    struct fineindex *made;
    if (check.fine != NULL && job_run(fineindex_check, &check, NULL, NULL) == 0) {
        return true;
    }
    if (whole->index == NULL || parts.count == 0 || !is_fine_worth_it(whole, options) ||
        !finemaking_make(whole, parts, options)) {
        return false;
    }
    pthread_mutex_lock(&looking);
    made = fineindex_load(whole->index, parts);
    if (made != NULL) {
        atomic_store(&whole->index->fine, made);
    }
    pthread_mutex_unlock(&looking);
    return made != NULL;
}
