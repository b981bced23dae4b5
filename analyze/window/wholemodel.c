/* SPDX-License-Identifier: MIT */
/* wholemodel.c: the model of a whole recording, replayed or kept. See wholemodel.h. */
#include "analyze/window/wholemodel.h"

#include "analyze/read/block.h"
#include "analyze/read/cachefolder.h"
#include "analyze/read/region.h"
#include "analyze/window/recordingtables.h"
#include "analyze/window/sums.h"

#define XXH_INLINE_ALL
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

/* ---- Tables ---- */

/* What the header of the program says of the recording itself. */
static struct memtrace_recording told_by(const struct recording *recording) {
    struct memtrace_recording told;
    memcpy(&told, recording->program.recording, sizeof told);
    return told;
}

/* The last part tells how it ended, the first one when it began. */
static void wholemodel_describe(struct model *model, struct timeorder_parts parts) {
    const struct recording *last = parts.items[parts.count - 1];
    struct memtrace_recording told = told_by(last);
    model->header = last->program;
    model_bound_own(model);
    model->live = model->header.state == MEMTRACE_STATE_RUNNING && recording_grows(last);
    model->recording = (struct model_recording){
        .present = true,
        .closed = last->closed,
        .stopped = told.state == MEMTRACE_RECORD_STOPPED,
        .precise = (last->header.flags & MEMTRACE_RECORDING_PRECISE) != 0,
        .part = parts.items[0]->header.part,
        .parts = (uint32_t)parts.count,
        .sample_bytes = told.sample_bytes,
        .size_least = told.size_least,
        .size_most = told.size_most,
        .some_modules = (told.flags & MEMTRACE_RECORDING_MODULES) != 0,
    };
    for (size_t part = 0; part < parts.count; part++) {
        const struct recording *recording = parts.items[part];
        if (recording->is_broken) {
            model_damage(model, "%s", recording->damage);
        }
        model->recording.bytes += recording->size;
        for (size_t i = 0; i < recording->block_count; i++) {
            model->recording.blocks += recording->blocks[i].block.kind == MEMTRACE_BLOCK_EVENTS;
        }
    }
}

static void wholemodel_take_tables(struct model *model, void *what) {
    const struct timeorder_parts *parts = what;
    wholemodel_describe(model, *parts);
    recorded_nodes(model, *parts);
    recorded_places(model, *parts);
}

struct model *wholemodel_tables(struct timeorder_parts parts, struct error *error) {
    return model_make(wholemodel_take_tables, &parts, error);
}

/* ---- What happened ---- */

static uint64_t wholemodel_larger(uint64_t left, uint64_t right) {
    return left > right ? left : right;
}

static void wholemodel_note_facts(struct model *model, const struct index_facts *facts,
                                  const struct memtrace_recording *told) {
    struct model_recording *recording = &model->recording;
    uint64_t *lost = &model->header.lost[MEMTRACE_LOST_RECORDS];
    if (facts->has_wrong_mapping) {
        model_damage(model, "a mapping has the context of a block");
    }
    if (facts->damaged != 0) {
        model_damage(model, "%llu block%s of events cannot be read completely",
                     (unsigned long long)facts->damaged, facts->damaged == 1 ? "" : "s");
    } else if (facts->gaps != 0) {
        model_damage(model, "events are missing in %llu place%s", (unsigned long long)facts->gaps,
                     facts->gaps == 1 ? "" : "s");
    }
    if ((model->header.flags & MEMTRACE_FLAG_INCOMPLETE) != 0) {
        model_damage(model, PROFILE_INCOMPLETE);
    }
    /* A thread says what it lost before its next event; what came after its last one only the
     * header knows, which in turn may be older than the last events. */
    recording->lost_allocs = wholemodel_larger(facts->lost_allocs, told->lost_allocs);
    recording->lost_frees = wholemodel_larger(facts->lost_frees, told->lost_frees);
    *lost = wholemodel_larger(*lost, model_add(recording->lost_allocs, recording->lost_frees));
    recording->foreign_frees = facts->waiting;
    recording->sampled = facts->is_sampled;
    if (facts->sample_bytes != 0) {
        recording->sample_bytes = facts->sample_bytes;
    }
}

/* What the events add up to: all slices, and what the events leave out. */
static void wholemodel_add_events(struct model *model, struct timeorder_parts parts,
                                  struct index *index, struct sums *sums) {
    struct slice culled;
    if (index->all.bytes != NULL) {
        sums_add(sums, &index->all);
        return;
    }
    for (size_t i = 0; i < index->count; i++) {
        sums_add(sums, &index->entries[i].slice);
    }
    recorded_culled(model, parts, 0, UINT64_MAX, &culled);
    sums_add(sums, &culled);
    slice_free(&culled);
    if (index->keeps_all) {
        sums_pack(sums, &index->all);
    }
}

static void wholemodel_add_up(struct model *model, struct timeorder_parts parts,
                              struct index *index) {
    struct sums sums;
    struct slice totals;
    /* Where events are missing, what the program counted stands for them, if the recording has it;
     * the index, which knows of events alone, keeps their sum for who asks it. */
    model->recording.is_counted = recorded_totals(parts, &totals);
    if (model->recording.is_counted && index->keeps_all && index->all.bytes == NULL) {
        sums_start(&sums, model);
        wholemodel_add_events(model, parts, index, &sums);
        sums_end(&sums);
        model->lifetime_count = 0;
    }
    sums_start(&sums, model);
    if (model->recording.is_counted) {
        sums_add(&sums, &totals);
        slice_free(&totals);
    } else {
        wholemodel_add_events(model, parts, index, &sums);
    }
    sums_finish(&sums);
    model->totals.maximum_ns = sums.all.maximum_ns;
    recorded_threads(model, parts, &sums);
    sums_end(&sums);
}

/* What was resident stands in the recording, what was live then in the index. */
static void wholemodel_finish_timeline(struct model *model, struct timeorder_parts parts,
                                       const struct index *index) {
    size_t count;
    struct memtrace_point *samples = recorded_samples(parts, &count);
    for (size_t i = 0; i < count && i < index->sample_count; i++) {
        uint64_t resident_bytes = samples[i].resident_bytes;
        samples[i] = index->samples[i];
        samples[i].resident_bytes = resident_bytes;
    }
    timepoints_finish(&index->points, model, samples, count);
    job_release(samples);
}

static void wholemodel_take_index(struct model *model, struct timeorder_parts parts,
                                  struct index *index) {
    const struct index_facts *facts = &index->facts;
    struct memtrace_recording told = told_by(parts.items[parts.count - 1]);
    struct peakbound bound = {
        .highest = facts->highest, .lowest = facts->lowest, .is_shared = facts->is_shared};
    model->index = index;
    wholemodel_note_facts(model, facts, &told);
    for (size_t i = 0; i < index->count; i++) {
        model->recording.events += index->entries[i].slice.events;
    }
    model->gaps = recorded_gaps(parts, MEMTRACE_BLOCK_GAP, &model->gap_count);
    model->thinned = recorded_gaps(parts, MEMTRACE_BLOCK_THINNED, &model->thinned_count);
    marks_finish(&index->marks, model);
    wholemodel_add_up(model, parts, index);
    wholemodel_finish_timeline(model, parts, index);
    if (!model->recording.is_counted) {
        model->header.peak_error_bytes =
            peakbound_error(&bound, (uint64_t)model->header.maximum_bytes);
    }
    records_finish(model);
    model_finish(model);
    timepoints_complete(model, 0, UINT64_MAX, 0);
}

static void wholemodel_take_replay(struct model *model, struct timeorder_parts parts,
                                   struct wholereplay *replay) {
    job_undo(wholereplay_free, replay);
    wholemodel_take_index(model, parts, replay->index);
}

struct finishing {
    struct model *model;
    struct timeorder_parts parts;
    struct wholereplay *replay;
};

static void wholemodel_finish_in_job(void *what) {
    const struct finishing *finishing = what;
    wholemodel_take_replay(finishing->model, finishing->parts, finishing->replay);
}

int wholemodel_finish(struct model *model, struct timeorder_parts parts,
                      struct wholereplay *replay) {
    struct finishing finishing = {model, parts, replay};
    return job_run(wholemodel_finish_in_job, &finishing, &model->memory, NULL);
}

/* ---- Indices in recordings and in the cache ---- */

enum { LAYOUT = 4 };
#define MOST_BYTES ((uint64_t)1 << 30)

static const struct cachefolder_kind modelcache_kind = {
    .name = "index", .version = LAYOUT, .most_bytes = MOST_BYTES};

/* ---- Which recording ---- */

void modelcache_name(struct timeorder_parts parts, bool grows, char name[MODELCACHE_NAME]) {
    XXH3_state_t state;
    struct index_cover cover = index_cover(parts, grows ? 1 : UINT64_MAX);
    XXH128_hash_t hash;
    XXH3_128bits_reset(&state);
    XXH3_128bits_update(&state, &cover, sizeof cover);
    for (size_t i = 0; i < parts.count && !grows; i++) {
        const struct recording *recording = parts.items[i];
        struct stat status;
        if (fstat(recording->fd, &status) == 0) {
            XXH3_128bits_update(&state, &status.st_mtim, sizeof status.st_mtim);
        }
        XXH3_128bits_update(&state, &recording->size, sizeof recording->size);
    }
    hash = XXH3_128bits_digest(&state);
    snprintf(name, MODELCACHE_NAME, "%016llx%016llx", (unsigned long long)hash.high64,
             (unsigned long long)hash.low64);
}

static int modelcache_keep(const char *name, const void *bytes, size_t size) {
    const struct cachefolder_piece piece = {bytes, size};
    return cachefolder_store(&modelcache_kind, name, &piece, 1);
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
static bool modelcache_fits(const struct index *index, struct timeorder_parts parts,
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

struct unpacking {
    struct timeorder_parts parts;
    const unsigned char *bytes;
    size_t size;
};

static void modelcache_unpack(struct model *model, void *what) {
    const struct unpacking *from = what;
    struct timeorder_parts parts = from->parts;
    struct index_cover cover = {0};
    bool failed = false;
    struct varint_reader rest = {.failed = &failed};
    struct index *index = index_unpack(from->bytes, from->size, &cover, &rest);
    if (index == NULL || rest.next != rest.end || index->all.bytes == NULL ||
        !index_covers(cover, index_cover(parts, UINT64_MAX))) {
        job_fail("it is not an index of these events");
    }
    wholemodel_take_tables(model, &parts);
    if (!modelcache_fits(index, parts, model)) {
        job_fail("it is not an index of all of these events");
    }
    wholemodel_take_index(model, parts, index);
}

/* The model of an index in these bytes. NULL: it is not one of all these events. */
static struct model *modelcache_model(struct timeorder_parts parts, const unsigned char *bytes,
                                      size_t size) {
    struct unpacking from = {parts, bytes, size};
    return model_make(modelcache_unpack, &from, NULL);
}

/* Whether all blocks of events are as they were written: what their sums say is not told of others.
 */
static bool are_events_whole(struct timeorder_parts parts) {
    struct recording_buffer buffer = {0};
    bool is_whole = true;
    for (size_t part = 0; part < parts.count; part++) {
        const struct recording *recording = parts.items[part];
        for (size_t i = 0; i < recording->block_count && is_whole; i++) {
            const struct recording_entry *entry = &recording->blocks[i];
            struct memtrace_block_header block;
            is_whole = entry->block.kind != MEMTRACE_BLOCK_EVENTS ||
                       (block_load(recording->fd, recording->size, entry->offset, &block,
                                   &buffer) == BLOCK_WHOLE &&
                        memcmp(&block, &entry->block, sizeof block) == 0);
        }
    }
    recording_buffer_free(&buffer);
    return is_whole;
}

/* Of the last block of slices of the last part; kept under the name. */
static struct model *modelcache_load_own(struct timeorder_parts parts, const char *name) {
    const struct recording *last = parts.items[parts.count - 1];
    struct recording_buffer buffer = {0};
    struct model *model = NULL;
    size_t at = last->block_count;
    while (at != 0 && last->blocks[at - 1].block.kind != MEMTRACE_BLOCK_SLICES) {
        at--;
    }
    if (at != 0 && recording_payload(last, at - 1, &buffer, NULL) == 0) {
        model = modelcache_model(parts, buffer.bytes, buffer.size);
    }
    if (model != NULL && !are_events_whole(parts)) {
        model_free(model);
        model = NULL;
    }
    if (model != NULL && !model->live) {
        modelcache_keep(name, buffer.bytes, buffer.size);
    }
    recording_buffer_free(&buffer);
    return model;
}

struct model *modelcache_load(struct timeorder_parts parts) {
    struct cachefolder_file file = {0};
    struct model *model = NULL;
    char name[MODELCACHE_NAME];
    modelcache_name(parts, false, name);
    if (cachefolder_load(&modelcache_kind, name, &file) == 0) {
        model = modelcache_model(parts, file.bytes, file.size);
    }
    cachefolder_unload(&file);
    return model != NULL ? model : modelcache_load_own(parts, name);
}

struct storing {
    struct timeorder_parts parts;
    const struct index *index;
};

static void modelcache_pack(void *what) {
    const struct storing *storing = what;
    struct varint_writer bytes = {.of_job = true};
    char name[MODELCACHE_NAME];
    modelcache_name(storing->parts, false, name);
    index_pack(storing->index, index_cover(storing->parts, UINT64_MAX), &bytes);
    if (modelcache_keep(name, bytes.bytes, bytes.size) != 0) {
        job_fail("the cache is off, or there is no room");
    }
}

int modelcache_store(struct timeorder_parts parts, struct model *model) {
    struct storing storing = {parts, model->index};
    int result =
        model->index->all.bytes != NULL ? job_run(modelcache_pack, &storing, NULL, NULL) : -1;
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

/* Up to where all is in the file, as far as one can tell; kept for the next look. */
static enum wholereplay_result modelcache_look_on(struct wholereplay *replay,
                                                  const struct model *model,
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
        if (!bytes.failed) {
            modelcache_keep(name, bytes.bytes, bytes.size);
        }
        free(bytes.bytes);
    }
    return result;
}

/* NULL: it failed. */
static struct wholereplay *modelcache_look(struct timeorder_parts parts, const struct model *model,
                                           const struct replay_options *options) {
    struct cachefolder_file file = {0};
    char name[MODELCACHE_NAME];
    struct wholereplay *replay = NULL;
    enum wholereplay_result result = WHOLEREPLAY_ANEW;
    modelcache_name(parts, true, name);
    if (cachefolder_load(&modelcache_kind, name, &file) == 0) {
        replay = wholereplay_unpack(file.bytes, file.size, parts);
    }
    cachefolder_unload(&file);
    /* What came too late comes first the second time. */
    for (int turn = 0; turn < 2 && result == WHOLEREPLAY_ANEW; turn++) {
        replay = replay != NULL ? replay : wholereplay_new();
        if (replay == NULL) {
            return NULL;
        }
        result = modelcache_look_on(replay, model, parts, name, options);
        if (result == WHOLEREPLAY_OK) {
            result = wholereplay_run(replay, model, parts, UINT64_MAX, options);
        }
        if (result != WHOLEREPLAY_OK) {
            wholereplay_free(replay);
            replay = NULL;
        }
    }
    return replay;
}

/* ---- What is asked for ---- */

struct replaying {
    struct timeorder_parts parts;
    const struct replay_options *options;
    bool is_kept; /* what was found out of a recording that grows */
};

static void model_replay_in_job(struct model *model, void *what) {
    const struct replaying *replaying = what;
    struct timeorder_parts parts = replaying->parts;
    const struct replay_options *options = replaying->options;
    struct wholereplay *replay;
    wholemodel_take_tables(model, &parts);
    if (replaying->is_kept && model->live) {
        replay = modelcache_look(parts, model, options);
    } else {
        replay = wholereplay_new();
        if (replay != NULL &&
            wholereplay_run(replay, model, parts, UINT64_MAX, options) != WHOLEREPLAY_OK) {
            wholereplay_free(replay);
            replay = NULL;
        } else if (replay != NULL) {
            replay->index->keeps_all = cachefolder_is_on();
        }
    }
    if (replay == NULL && options != NULL && replay_is_cancelled(options)) {
        job_fail("cancelled");
    }
    if (replay == NULL) {
        job_fail("out of memory while replaying %s", parts.items[0]->path);
    }
    wholemodel_take_replay(model, parts, replay);
}

struct model *model_replay(struct timeorder_parts parts, const struct replay_options *options,
                           struct error *error) {
    struct replaying replaying = {.parts = parts, .options = options};
    return model_make(model_replay_in_job, &replaying, error);
}

struct model *modelcache_replay(struct timeorder_parts parts, const struct replay_options *options,
                                struct error *error) {
    struct replaying replaying = {parts, options, true};
    struct model *model = modelcache_load(parts);
    if (model == NULL) {
        model = model_make(model_replay_in_job, &replaying, error);
        if (model != NULL && !model->live) {
            modelcache_store(parts, model);
        }
    }
    return model;
}
