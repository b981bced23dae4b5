/* SPDX-License-Identifier: MIT */
/* wholemodel.c: the model of a whole recording. See wholemodel.h. */
#include "analyze/window/wholemodel.h"

#include "analyze/read/cachefolder.h"
#include "analyze/read/region.h"
#include "analyze/window/recordinggaps.h"
#include "analyze/window/recordingtables.h"
#include "analyze/window/sums.h"
#include "analyze/window/wholereplay.h"

#include <stdlib.h>
#include <string.h>

/* ---- Tables ---- */

/* What the header of the program says of the recording itself. */
static struct memtrace_recording told_by(const struct recording *recording) {
    struct memtrace_recording told;
    memcpy(&told, recording->program.recording, sizeof told);
    return told;
}

/* The last part tells how it ended, the first one when it began. */
static void describe(struct model *model, struct timeorder_parts parts) {
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

struct model *wholemodel_tables(struct timeorder_parts parts, struct error *error) {
    struct model *model = calloc(1, sizeof *model);
    if (model != NULL) {
        describe(model, parts);
    }
    if (model == NULL || recorded_nodes(model, parts) != 0 || recorded_places(model, parts) != 0) {
        error_set(error, "out of memory while reading %s", parts.items[0]->path);
        model_free(model);
        return NULL;
    }
    return model;
}

/* ---- What happened ---- */

/* A thread says what it lost before its next event; what came after its last one only the header
 * knows, which in turn may be older than the last events. */
static void note_losses(struct model *model, const struct memtrace_recording *told) {
    struct model_recording *recording = &model->recording;
    uint64_t *lost = &model->header.lost[MEMTRACE_LOST_RECORDS];
    uint64_t known;
    if (recording->lost_allocs < told->lost_allocs) {
        recording->lost_allocs = told->lost_allocs;
    }
    if (recording->lost_frees < told->lost_frees) {
        recording->lost_frees = told->lost_frees;
    }
    known = model_add(recording->lost_allocs, recording->lost_frees);
    if (*lost < known) {
        *lost = known;
    }
}

static void note_facts(struct model *model, const struct index_facts *facts) {
    struct model_recording *recording = &model->recording;
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
    recording->lost_allocs = facts->lost_allocs;
    recording->lost_frees = facts->lost_frees;
    recording->foreign_frees = facts->waiting;
    recording->sampled = facts->is_sampled;
    if (facts->sample_bytes != 0) {
        recording->sample_bytes = facts->sample_bytes;
    }
}

static uint64_t count_slices(const struct index *index) {
    uint64_t events = 0;
    for (size_t i = 0; i < index->count; i++) {
        events += index->entries[i].slice.events;
    }
    return events;
}

/* All slices, and what the events leave out. */
static int add_slices(struct model *model, struct timeorder_parts parts, struct index *index,
                      struct sums *sums) {
    struct slice culled = {0};
    int result = 0;
    for (size_t i = 0; result == 0 && i < index->count; i++) {
        result = sums_add(sums, &index->entries[i].slice);
    }
    if (result == 0) {
        result = recorded_culled(model, parts, 0, UINT64_MAX, &culled);
    }
    if (result == 0) {
        result = sums_add(sums, &culled);
    }
    slice_free(&culled);
    return result;
}

/* What the events add up to. */
static int add_events(struct model *model, struct timeorder_parts parts, struct index *index,
                      struct sums *sums) {
    int result = index->all.bytes != NULL ? sums_add(sums, &index->all)
                                          : add_slices(model, parts, index, sums);
    if (result == 0 && index->all.bytes == NULL && index->keeps_all) {
        result = sums_pack(sums, &index->all);
    }
    return result;
}

/* Where events are missing, what the program counted stands for them, if the recording has it. */
static int add_totals(struct model *model, struct timeorder_parts parts, struct sums *sums) {
    struct slice totals;
    int found = recordinggaps_totals(parts, &totals);
    model->recording.is_counted = found > 0;
    if (found > 0 && sums_add(sums, &totals) != 0) {
        found = -1;
    }
    slice_free(&totals);
    return found;
}

/* For who asks the index, which knows of events alone. */
static int keep_events(struct model *model, struct timeorder_parts parts, struct index *index) {
    struct sums sums;
    int result = sums_start(&sums, model);
    if (result == 0) {
        result = add_events(model, parts, index, &sums);
    }
    sums_end(&sums);
    return result;
}

static int add_up(struct model *model, struct timeorder_parts parts, struct index *index) {
    struct sums sums;
    int result = sums_start(&sums, model);
    int counted = result == 0 ? add_totals(model, parts, &sums) : -1;
    result = counted < 0 ? -1 : result;
    if (result == 0 && counted == 0) {
        result = add_events(model, parts, index, &sums);
    } else if (result == 0 && index->keeps_all && index->all.bytes == NULL) {
        result = keep_events(model, parts, index);
    }
    if (result == 0) {
        result = sums_finish(&sums);
    }
    if (result == 0) {
        model->totals.maximum_ns = sums.all.maximum_ns;
        result = recorded_threads(model, parts, &sums);
    }
    sums_end(&sums);
    return result;
}

/* What was resident stands in the recording, what was live then in the index. */
static int finish_timeline(struct model *model, struct timeorder_parts parts,
                           const struct index *index) {
    struct memtrace_point *samples = NULL;
    size_t count = 0;
    int result = recorded_samples(parts, &samples, &count);
    for (size_t i = 0; i < count && i < index->sample_count; i++) {
        uint64_t resident_bytes = samples[i].resident_bytes;
        samples[i] = index->samples[i];
        samples[i].resident_bytes = resident_bytes;
    }
    if (result == 0) {
        result = timepoints_finish(&index->points, model, samples, count);
    }
    free(samples);
    return result;
}

int wholemodel_finish(struct model *model, struct timeorder_parts parts, struct index *index) {
    const struct index_facts *facts = &index->facts;
    struct memtrace_recording told = told_by(parts.items[parts.count - 1]);
    struct peakbound bound = {
        .highest = facts->highest, .lowest = facts->lowest, .is_shared = facts->is_shared};
    model->index = index;
    model->free_index = index_free;
    note_facts(model, facts);
    note_losses(model, &told);
    model->recording.events = count_slices(index);
    if (recordinggaps_read(parts, MEMTRACE_BLOCK_GAP, &model->gaps, &model->gap_count) != 0 ||
        recordinggaps_read(parts, MEMTRACE_BLOCK_THINNED, &model->thinned, &model->thinned_count) !=
            0 ||
        marks_finish(&index->marks, model) != 0 || add_up(model, parts, index) != 0 ||
        finish_timeline(model, parts, index) != 0) {
        return -1;
    }
    if (!model->recording.is_counted) {
        model->header.peak_error_bytes =
            peakbound_error(&bound, (uint64_t)model->header.maximum_bytes);
    }
    records_finish(model);
    model_finish(model);
    return timepoints_complete(model, 0, UINT64_MAX, 0);
}

void wholemodel_explain(struct timeorder_parts parts, const struct replay_options *options,
                        struct error *error) {
    if (options != NULL && replay_is_cancelled(options)) {
        error_set(error, "cancelled");
    } else {
        error_set(error, "out of memory while replaying %s", parts.items[0]->path);
    }
}

struct model *model_replay(struct timeorder_parts parts, const struct replay_options *options,
                           struct error *error) {
    struct model *model = wholemodel_tables(parts, error);
    struct wholereplay *replay = model != NULL ? wholereplay_new() : NULL;
    struct index *index = NULL;
    if (model == NULL) {
        return NULL;
    }
    if (replay != NULL &&
        wholereplay_run(replay, model, parts, UINT64_MAX, options) == WHOLEREPLAY_OK) {
        index = replay->index;
        index->keeps_all = cachefolder_is_on();
        replay->index = NULL;
    }
    wholereplay_free(replay);
    if (index == NULL || wholemodel_finish(model, parts, index) != 0) {
        wholemodel_explain(parts, options, error);
        model_free(model);
        return NULL;
    }
    return model;
}
