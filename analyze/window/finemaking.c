/* SPDX-License-Identifier: MIT */
/*
 * finemaking.c: makes a fine index (fineindex.h): goes through all events once, and writes down
 * each piece where it ends. Memory: as the replay of the recording, and one piece.
 *
 * Pieces begin where slices of the index do, and in between once there are enough events. What they
 * take is to be half of the recording, within bounds: where they take more of what was read so far,
 * they become longer. A quarter more than that is the most: slices from there on have no pieces.
 */
#include "analyze/window/fineindex.h"

#include "analyze/base/array.h"
#include "analyze/read/cachefolder.h"

#include <stdlib.h>
#include <zstd.h>

enum { THREADS = 1 << MEMTRACE_THREAD_BITS, MOST_EDGES = 1 << 16, LEVEL = 1 };
#define LEAST_BYTES ((uint64_t)16 << 20)
#define MOST_BYTES  ((uint64_t)256 << 20)

struct making {
    const struct index *index;
    struct pass pass;
    struct timeorder order;
    struct cachefolder_writer file;
    ZSTD_CCtx *compressor;
    struct fineindex_directory directory;
    uint64_t *edges; /* where pieces may begin */
    size_t edge_count, next_edge;
    struct varint_writer *places; /* by edge: filled by the thread that reads ahead */
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
    bool out_of_memory;
};

/* ---- Edges ---- */

static int by_time(const void *left, const void *right) {
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

/* Those of the index, and others between them. 0, or -1: out of memory. */
static int make_edges(struct making *making, struct timeorder_parts parts) {
    const struct index *index = making->index;
    size_t count;
    size_t kept = 0;
    uint64_t *edges = index_edges(parts, 0, making->least, MOST_EDGES, &count);
    uint64_t *all = edges != NULL ? reallocarray(edges, count + index->count, sizeof *edges) : NULL;
    if (all == NULL) {
        free(edges);
        return -1;
    }
    making->edges = all;
    for (size_t i = 1; i < index->count; i++) {
        all[count++] = index->entries[i].start_ns;
    }
    qsort(all, count, sizeof *all, by_time);
    for (size_t i = 0; i < count; i++) {
        if (kept == 0 || all[i] != all[kept - 1]) {
            all[kept++] = all[i];
        }
    }
    making->edge_count = kept;
    making->places = calloc(kept + 1, sizeof *making->places);
    return making->places != NULL ? 0 : -1;
}

/* ---- What ends in a piece ---- */

static void note_begin(void *context, const struct timeorder_event *entry) {
    struct making *making = context;
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
static bool began_here(const struct making *making, struct event_block name) {
    return making->first[name.thread] != 0 && name.number >= making->first[name.thread] &&
           making->order.stream_of[name.thread] < making->order.stream_count;
}

static void note_end(void *context, struct event_block name, const struct pairing_block *block) {
    struct making *making = context;
    if (name.thread >= THREADS || began_here(making, name)) {
        return;
    }
    if (array_grow(&making->ends, &making->end_room, making->end_count, sizeof *making->ends) !=
        0) {
        making->out_of_memory = true;
        return;
    }
    making->ends[making->end_count++] = (struct fineindex_block){.name = name, .block = *block};
}

static void note_waited(void *context, struct event_block name, const struct pairing_end *end) {
    struct making *making = context;
    index_note_waited(&making->piece.entries[0], name, end);
}

/* ---- Pieces ---- */

/* Compressed, into the file. */
static struct fineindex_bytes write_packed(struct making *making,
                                           const struct varint_writer *bytes) {
    size_t room = ZSTD_compressBound(bytes->size);
    void *packed = malloc(room);
    size_t size = packed != NULL && !bytes->failed
                      ? ZSTD_compress2(making->compressor, packed, room, bytes->bytes, bytes->size)
                      : 0;
    struct fineindex_bytes written = {0};
    making->out_of_memory |= size == 0 || ZSTD_isError(size);
    if (!making->out_of_memory) {
        cachefolder_add(&making->file, packed, size);
        written = (struct fineindex_bytes){(uint32_t)size, (uint32_t)bytes->size};
    }
    free(packed);
    return written;
}

static void add_piece(struct making *making, const struct fineindex_piece *piece) {
    struct fineindex_directory *directory = &making->directory;
    if (array_grow(&directory->pieces, &directory->room, directory->count,
                   sizeof *directory->pieces) != 0) {
        making->out_of_memory = true;
        return;
    }
    directory->pieces[directory->count++] = *piece;
}

static void write_piece(struct making *making, const struct slice *slice, bool has_sums) {
    struct index_entry *entry = &making->piece.entries[0];
    struct varint_writer bytes = {0};
    struct fineindex_piece piece = {.start_ns = entry->start_ns,
                                    .first_tick = slice->first_tick,
                                    .last_tick = slice->last_tick,
                                    .events = slice->events,
                                    .change = slice->change,
                                    .offset = making->file.size};
    if (has_sums) {
        index_put_slice(&bytes, slice);
        piece.sums = write_packed(making, &bytes);
        bytes.size = 0;
    }
    if (making->place != SIZE_MAX) {
        entry->place = making->places[making->place];
        making->places[making->place] = (struct varint_writer){0};
    }
    if (making->end_count != 0) {
        qsort(making->ends, making->end_count, sizeof *making->ends, fineindex_by_name);
    }
    making->out_of_memory |= entry->state.failed || entry->waited.failed || entry->place.failed;
    fineindex_pack_beginning(&bytes, entry, making->ends, making->end_count);
    piece.beginning = write_packed(making, &bytes);
    free(bytes.bytes);
    add_piece(making, &piece);
}

/* So that at the end about as much is written as may be. */
static void adapt(struct making *making) {
    uint64_t share =
        (uint64_t)((double)making->most_bytes * (double)making->done / (double)(making->total + 1));
    if (making->file.size > share + making->most_bytes / 16) {
        making->spacing *= 2;
    } else if (making->file.size < share / 4 * 3 && making->spacing > making->least) {
        making->spacing /= 2;
    }
}

/* ends_slice: the slice of the index is over, too. */
static void end_piece(struct making *making, bool ends_slice) {
    struct fineindex_directory *directory = &making->directory;
    bool is_first = directory->count == directory->first[making->slice];
    struct slice slice;
    if (pass_cut(&making->pass, &slice) != 0) {
        making->out_of_memory = true;
        return;
    }
    making->done += slice.events;
    if (!making->is_full) {
        write_piece(making, &slice, !(is_first && ends_slice));
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
    adapt(making);
}

/* edge: where it begins, SIZE_MAX: at the first event. Of several edges that one window is the
 * first behind, the index may have taken another one for its slice. */
static void begin_piece(struct making *making, size_t edge, bool is_slice) {
    uint64_t start_ns =
        is_slice ? making->index->entries[making->slice].start_ns : making->edges[edge];
    making->place = edge;
    making->out_of_memory |= index_begin(&making->piece, start_ns, &making->pass) == NULL;
}

static void end_slice(struct making *making) {
    making->directory.first[++making->slice] = making->directory.count;
}

static void begin_window(void *context, uint64_t time_ns) {
    struct making *making = context;
    const struct index *index = making->index;
    size_t next = making->next_edge;
    bool is_slice =
        making->slice + 1 < index->count && time_ns >= index->entries[making->slice + 1].start_ns;
    while (next < making->edge_count && time_ns >= making->edges[next]) {
        next++;
    }
    if (next == making->next_edge || making->out_of_memory) {
        return;
    }
    making->next_edge = next;
    if (!is_slice && making->pass.events < making->spacing) {
        return;
    }
    end_piece(making, is_slice);
    while (making->slice + 1 < index->count &&
           time_ns >= index->entries[making->slice + 1].start_ns) {
        end_slice(making);
    }
    begin_piece(making, next - 1, is_slice);
    making->pass.stop = making->out_of_memory || making->is_full || making->file.failed;
}

/* ---- All of it ---- */

static int run(struct making *making, const struct model *whole, struct timeorder_parts parts,
               const struct replay_options *options) {
    const struct pass_visitor visitor = {.began = note_begin,
                                         .ended = note_end,
                                         .window = begin_window,
                                         .waited = note_waited,
                                         .context = making};
    int result;
    if (timeorder_start(&making->order, parts) != 0 || make_edges(making, parts) != 0 ||
        pass_start(&making->pass, whole, making->order.stream_count, 0, UINT64_MAX) != 0) {
        return -1;
    }
    making->pass.inherited = whole->header.inherited_blocks;
    making->order.skips_addresses = true;
    timeorder_note_places(&making->order, making->edges, making->edge_count, making->places);
    begin_piece(making, SIZE_MAX, true);
    if (making->out_of_memory) {
        return -1;
    }
    result = pass_run(&making->pass, &making->order, &visitor, options, making->total);
    if (result != 0 && !making->is_full) {
        return -1;
    }
    if (result == 0) {
        end_piece(making, true);
    }
    while (making->slice < making->index->count) {
        end_slice(making);
    }
    return making->out_of_memory ? -1 : 0;
}

static void write_directory(struct making *making, struct timeorder_parts parts) {
    struct varint_writer bytes = {0};
    struct fineindex_bytes last;
    fineindex_pack_directory(&bytes, making->index, parts, &making->directory);
    last = write_packed(making, &bytes);
    cachefolder_add(&making->file, &last, sizeof last);
    free(bytes.bytes);
}

static void end(struct making *making) {
    pass_free(&making->pass);
    timeorder_end(&making->order);
    for (size_t i = 0; making->places != NULL && i < making->edge_count; i++) {
        free(making->places[i].bytes);
    }
    for (size_t i = 0; i < making->piece.count; i++) {
        index_free_entry(&making->piece.entries[i]);
    }
    free(making->piece.entries);
    free(making->places);
    free(making->edges);
    free(making->ends);
    free(making->directory.pieces);
    free(making->directory.first);
    ZSTD_freeCCtx(making->compressor);
    free(making);
}

int finemaking_make(const struct model *whole, struct timeorder_parts parts,
                    const struct replay_options *options, const char *name) {
    struct making *making = calloc(1, sizeof *making);
    uint64_t share = whole->recording.bytes / 2;
    int result = -1;
    if (making == NULL) {
        return -1;
    }
    making->index = whole->index;
    making->total = whole->recording.events;
    making->least = options != NULL && options->slice_events != 0 ? options->slice_events
                                                                  : (uint64_t)FINEINDEX_EVENTS;
    making->spacing = making->least;
    making->most_bytes = share < LEAST_BYTES  ? LEAST_BYTES
                         : share > MOST_BYTES ? MOST_BYTES
                                              : share;
    making->directory.is_exact = true;
    making->directory.first = calloc(whole->index->count + 1, sizeof *making->directory.first);
    making->compressor = ZSTD_createCCtx();
    cachefolder_begin(&making->file, &fineindex_kind, name);
    if (making->directory.first != NULL && making->compressor != NULL && !making->file.failed) {
        ZSTD_CCtx_setParameter(making->compressor, ZSTD_c_compressionLevel, LEVEL);
        ZSTD_CCtx_setParameter(making->compressor, ZSTD_c_checksumFlag, 1);
        result = run(making, whole, parts, options);
    }
    if (result == 0) {
        write_directory(making, parts);
    }
    result = cachefolder_finish(&making->file, result == 0 && !making->out_of_memory);
    end(making);
    return result;
}
