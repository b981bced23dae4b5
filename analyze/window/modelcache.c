/* SPDX-License-Identifier: MIT */
/* modelcache.c: indices in recordings and in the cache. See modelcache.h. */
#include "analyze/window/modelcache.h"

#include "analyze/read/block.h"
#include "analyze/read/cachefolder.h"
#include "analyze/window/wholereplay.h"

#define XXH_INLINE_ALL
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

enum { LAYOUT = 4 };
#define MOST_BYTES ((uint64_t)1 << 30)

static const struct cachefolder_kind kind = {
    .name = "index", .version = LAYOUT, .most_bytes = MOST_BYTES};

/* ---- Which recording ---- */

void modelcache_name(struct timeorder_parts parts, bool grows, char name[MODELCACHE_NAME]) {
    XXH3_state_t *state = XXH3_createState();
    struct index_cover cover = index_cover(parts, grows ? 1 : UINT64_MAX);
    XXH128_hash_t hash;
    name[0] = '\0';
    if (state == NULL) {
        return;
    }
    XXH3_128bits_reset(state);
    XXH3_128bits_update(state, &cover, sizeof cover);
    for (size_t i = 0; i < parts.count && !grows; i++) {
        const struct recording *recording = parts.items[i];
        struct stat status;
        if (fstat(recording->fd, &status) == 0) {
            XXH3_128bits_update(state, &status.st_mtim, sizeof status.st_mtim);
        }
        XXH3_128bits_update(state, &recording->size, sizeof recording->size);
    }
    hash = XXH3_128bits_digest(state);
    XXH3_freeState(state);
    snprintf(name, MODELCACHE_NAME, "%016llx%016llx", (unsigned long long)hash.high64,
             (unsigned long long)hash.low64);
}

static int store(const char *name, const struct varint_writer *bytes) {
    const struct cachefolder_piece piece = {bytes->bytes, bytes->size};
    return name[0] != '\0' && !bytes->failed ? cachefolder_store(&kind, name, &piece, 1) : -1;
}

/* ---- Indices ---- */

static bool is_readable(const struct slice *slice, const struct model *model) {
    struct slice_reader reader;
    struct slice_context context;
    struct slice_thread thread;
    struct slice_foreign foreign;
    slice_read(&reader, slice);
    while (slice_next_context(&reader, &context)) {
        if (context.id == 0 || context.id >= model->node_count) {
            return false;
        }
    }
    while (slice_next_thread(&reader, &thread)) {
        for (uint64_t i = 0; i < thread.foreign; i++) {
            slice_next_foreign(&reader, &foreign);
        }
    }
    return !reader.failed && reader.bytes.next == reader.bytes.end;
}

/* Whether the slices have the recording's events, all of them where none is damaged, and only its
 * contexts, and add up to what they say is their sum. */
static bool fits(const struct index *index, struct timeorder_parts parts,
                 const struct model *model) {
    uint64_t events = 0;
    uint64_t there = index_count_events(parts);
    int64_t change = 0;
    for (size_t i = 0; i < index->count; i++) {
        const struct slice *slice = &index->entries[i].slice;
        if (!is_readable(slice, model) || __builtin_add_overflow(events, slice->events, &events)) {
            return false;
        }
        change = wrap_add(change, slice->change);
    }
    return (events == there || (index->facts.damaged != 0 && events < there)) &&
           change == index->all.change && index->facts.missing == model->node_count - 1 &&
           is_readable(&index->all, model);
}

/* The model of an index in these bytes. NULL: it is not one of all these events. */
static struct model *model_of(struct timeorder_parts parts, const unsigned char *bytes,
                              size_t size) {
    struct index_cover cover = {0};
    bool failed = false;
    struct varint_reader rest = {.failed = &failed};
    struct index *index = index_unpack(bytes, size, &cover, &rest);
    struct model *model = NULL;
    if (index != NULL && rest.next == rest.end && index->all.bytes != NULL &&
        index_covers(cover, index_cover(parts, UINT64_MAX))) {
        model = wholemodel_tables(parts, NULL);
    }
    if (model == NULL || !fits(index, parts, model)) {
        index_free(index);
        model_free(model);
        return NULL;
    }
    if (wholemodel_finish(model, parts, index) != 0) {
        model_free(model);
        return NULL;
    }
    return model;
}

/* Whether all blocks of events are as they were written: what their sums say is not told of others.
 */
static bool are_events_whole(const struct recording *recording) {
    struct recording_buffer buffer = {0};
    bool is_whole = true;
    for (size_t i = 0; i < recording->block_count && is_whole; i++) {
        const struct recording_entry *entry = &recording->blocks[i];
        struct memtrace_block_header block;
        is_whole = entry->block.kind != MEMTRACE_BLOCK_EVENTS ||
                   (block_load(recording->fd, recording->size, entry->offset, &block, &buffer) ==
                        BLOCK_WHOLE &&
                    memcmp(&block, &entry->block, sizeof block) == 0);
    }
    recording_buffer_free(&buffer);
    return is_whole;
}

/* Of the last block of slices of the last part; kept under the name, unless that is "". */
static struct model *load_own(struct timeorder_parts parts, const char *name) {
    const struct recording *last = parts.items[parts.count - 1];
    struct recording_buffer buffer = {0};
    struct model *model = NULL;
    size_t at = last->block_count;
    bool is_whole = true;
    while (at != 0 && last->blocks[at - 1].block.kind != MEMTRACE_BLOCK_SLICES) {
        at--;
    }
    if (at != 0 && recording_payload(last, at - 1, &buffer, NULL) == 0) {
        model = model_of(parts, buffer.bytes, buffer.size);
    }
    for (size_t part = 0; model != NULL && is_whole && part < parts.count; part++) {
        is_whole = are_events_whole(parts.items[part]);
    }
    if (!is_whole) {
        model_free(model);
        model = NULL;
    }
    if (model != NULL && !model->live) {
        const struct varint_writer bytes = {.bytes = buffer.bytes, .size = buffer.size};
        store(name, &bytes);
    }
    recording_buffer_free(&buffer);
    return model;
}

struct model *modelcache_load(struct timeorder_parts parts) {
    struct cachefolder_file file = {0};
    struct model *model = NULL;
    char name[MODELCACHE_NAME];
    modelcache_name(parts, false, name);
    if (name[0] != '\0' && cachefolder_load(&kind, name, &file) == 0) {
        model = model_of(parts, file.bytes, file.size);
    }
    cachefolder_unload(&file);
    return model != NULL ? model : load_own(parts, name);
}

int modelcache_store(struct timeorder_parts parts, struct model *model) {
    struct varint_writer bytes = {0};
    char name[MODELCACHE_NAME];
    int result = -1;
    modelcache_name(parts, false, name);
    if (model->index->all.bytes != NULL) {
        index_pack(model->index, index_cover(parts, UINT64_MAX), &bytes);
        result = store(name, &bytes);
    }
    free(bytes.bytes);
    slice_free(&model->index->all);
    return result;
}

bool modelcache_is_coarse(const struct model *model) {
    return cachefolder_is_on() && !model->live && model->index != NULL &&
           index_is_coarse(model->index);
}

bool modelcache_refine(const struct model *model, struct timeorder_parts parts,
                       const struct replay_options *options) {
    struct model *finer = NULL;
    struct error error;
    bool is_kept = false;
    if (modelcache_is_coarse(model)) {
        finer = model_replay(parts, options, &error);
    }
    if (finer != NULL) {
        is_kept = modelcache_store(parts, finer) == 0;
    }
    model_free(finer);
    return is_kept;
}

/* ---- A recording that grows ---- */

static struct wholereplay *load_replay(struct timeorder_parts parts, const char *name) {
    struct cachefolder_file file = {0};
    struct wholereplay *replay = NULL;
    if (name[0] != '\0' && cachefolder_load(&kind, name, &file) == 0) {
        replay = wholereplay_unpack(file.bytes, file.size, parts);
    }
    cachefolder_unload(&file);
    return replay;
}

/* Up to where all is in the file, as far as one can tell; kept for the next look. */
static enum wholereplay_result look_on(struct wholereplay *replay, const struct model *model,
                                       struct timeorder_parts parts, const char *name,
                                       const struct replay_options *options) {
    uint64_t until_ns = wholereplay_settled(parts);
    struct varint_writer bytes = {0};
    enum wholereplay_result result;
    if (until_ns <= replay->until_ns) {
        return WHOLEREPLAY_OK;
    }
    result = wholereplay_run(replay, model, parts, until_ns, options);
    if (result == WHOLEREPLAY_OK && cachefolder_is_on()) {
        wholereplay_pack(replay, parts, &bytes);
        store(name, &bytes);
    }
    free(bytes.bytes);
    return result;
}

/* NULL: out of memory. */
static struct index *look(struct timeorder_parts parts, const struct model *model,
                          const struct replay_options *options) {
    char name[MODELCACHE_NAME];
    struct wholereplay *replay;
    struct index *index = NULL;
    enum wholereplay_result result = WHOLEREPLAY_FAILED;
    modelcache_name(parts, true, name);
    replay = load_replay(parts, name);
    for (int turn = 0; turn < 2; turn++) { /* what came too late comes first the second time */
        replay = replay != NULL ? replay : wholereplay_new();
        if (replay == NULL) {
            return NULL;
        }
        result = look_on(replay, model, parts, name, options);
        if (result == WHOLEREPLAY_OK) {
            result = wholereplay_run(replay, model, parts, UINT64_MAX, options);
        }
        if (result != WHOLEREPLAY_ANEW) {
            break;
        }
        wholereplay_free(replay);
        replay = NULL;
    }
    if (result == WHOLEREPLAY_OK) {
        index = replay->index;
        replay->index = NULL;
    }
    wholereplay_free(replay);
    return index;
}

static struct model *replay_growing(struct timeorder_parts parts, struct model *model,
                                    const struct replay_options *options, struct error *error) {
    struct index *index = look(parts, model, options);
    if (index == NULL || wholemodel_finish(model, parts, index) != 0) {
        wholemodel_explain(parts, options, error);
        model_free(model);
        return NULL;
    }
    return model;
}

struct model *modelcache_replay(struct timeorder_parts parts, const struct replay_options *options,
                                struct error *error) {
    struct model *model = modelcache_load(parts);
    if (model != NULL) {
        return model;
    }
    model = wholemodel_tables(parts, error);
    if (model != NULL && model->live) {
        return replay_growing(parts, model, options, error);
    }
    model_free(model);
    model = model_replay(parts, options, error);
    if (model != NULL) {
        modelcache_store(parts, model);
    }
    return model;
}
