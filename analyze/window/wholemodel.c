/* SPDX-License-Identifier: MIT */
/* wholemodel.c: the model and the index of a whole recording. See replay.h. */
#include "analyze/window/wholemodel.h"

#include "analyze/profile/timepoints.h"
#include "analyze/read/region.h"
#include "analyze/replay/marks.h"
#include "analyze/window/index.h"
#include "analyze/window/recordingtables.h"
#include "analyze/window/sums.h"

#include <stdlib.h>
#include <string.h>

struct replay {
    struct model *model;
    struct pass pass;
    struct marks marks;
    struct timepoints points;
    uint64_t point_ns;              /* where the present piece of time began ... */
    uint64_t next_point_ns;         /* ... and ends */
    struct memtrace_point *samples; /* by time */
    size_t sample_count;
    size_t next_sample;
    uint64_t *edges; /* between slices */
    size_t edge_count;
    size_t next_edge;
    struct varint_writer *places; /* by edge: filled by the thread that reads ahead */
    size_t *edge_of;              /* by slice: where it begins; SIZE_MAX: at the beginning */
    struct index *index;
    int64_t live;    /* where the present slice began */
    uint64_t events; /* before it */
    bool out_of_memory;
};

/* ---- Points in time ---- */

static struct memtrace_point point_of(const struct replay *replay, struct accounts_crest state) {
    return (struct memtrace_point){
        .time_ns = state.time_ns,
        .live_bytes = (uint64_t)wrap_add(replay->live, state.live),
        .alloc_count = (state.alloc_units + TALLY_ONE / 2) / TALLY_ONE,
        .alloc_bytes = state.alloc_bytes,
    };
}

/* The heap as it is after the last event. */
static struct accounts_crest state_now(const struct accounts *accounts) {
    return (struct accounts_crest){accounts->live, accounts->now_ns, accounts->alloc_units,
                                   accounts->alloc_bytes};
}

/* Samples up to the end of the window that is over tell how much had been allocated by then. */
static void pass_samples(struct replay *replay, uint64_t time_ns) {
    while (replay->next_sample < replay->sample_count &&
           replay->samples[replay->next_sample].time_ns < time_ns) {
        struct memtrace_point *sample = &replay->samples[replay->next_sample++];
        struct memtrace_point now = point_of(replay, state_now(&replay->pass.accounts));
        now.time_ns = sample->time_ns;
        now.resident_bytes = sample->resident_bytes;
        *sample = now;
    }
}

/* The events since the last point become one. */
static void make_point(struct replay *replay) {
    struct accounts *accounts = &replay->pass.accounts;
    struct accounts_crest crest = accounts_take_crest(accounts);
    struct memtrace_point last = point_of(replay, state_now(accounts));
    struct memtrace_point highest = crest.alloc_units != 0 ? point_of(replay, crest) : last;
    if (accounts->alloc_units == 0) {
        return; /* nothing happened yet */
    }
    /* Clocks are coarse, and those of threads differ: what the last event says may be earlier. */
    if (last.time_ns <= highest.time_ns) {
        last.time_ns = highest.time_ns + (last.live_bytes != highest.live_bytes);
    }
    timepoints_add(&replay->points, replay->point_ns, &highest, &last);
}

static void pass_points(struct replay *replay, uint64_t time_ns) {
    if (time_ns >= replay->next_point_ns) {
        uint64_t length = UINT64_C(1) << replay->points.shift;
        make_point(replay);
        replay->point_ns = time_ns & ~(length - 1);
        replay->next_point_ns = replay->point_ns + length;
    }
}

/* ---- Slices ---- */

static void begin_slice(struct replay *replay, size_t edge) {
    uint64_t start_ns = edge != SIZE_MAX ? replay->edges[edge] : 0;
    replay->edge_of[replay->index->count] = edge;
    index_begin(replay->index, start_ns, &replay->pass);
}

static void end_slice(struct replay *replay) {
    struct index_entry *entry = &replay->index->entries[replay->index->count - 1];
    replay->live = wrap_add(replay->live, replay->pass.accounts.live);
    replay->events += replay->pass.events;
    replay->out_of_memory |= pass_cut(&replay->pass, &entry->slice) != 0;
}

/* ---- Looking on ---- */

static void begin_window(void *context, uint64_t time_ns) {
    struct replay *replay = context;
    size_t next = replay->next_edge;
    pass_samples(replay, time_ns);
    pass_points(replay, time_ns);
    while (next < replay->edge_count && time_ns >= replay->edges[next]) {
        next++;
    }
    if (next != replay->next_edge) {
        replay->next_edge = next;
        end_slice(replay);
        begin_slice(replay, next - 1);
    }
}

static int take_other(void *context, const struct timeorder_event *entry) {
    struct replay *replay = context;
    struct model_recording *recording = &replay->model->recording;
    const struct event *event = &entry->event;
    if (event->kind == EVENT_LOST) {
        recording->lost_allocs += event->lost_allocs;
        recording->lost_frees += event->lost_frees;
    } else if (event->kind == EVENT_MARK) {
        replay->out_of_memory |= marks_add(&replay->marks, entry) != 0;
        if (event->operation == MEMTRACE_MARK_SAMPLE && event->id != 0) {
            recording->sample_bytes = event->id; /* switched on meanwhile */
        }
    }
    return 0;
}

static void take_waited(void *context, struct event_block name, const struct pairing_end *end) {
    struct replay *replay = context;
    index_note_waited(&replay->index->entries[replay->index->count - 1], name, end);
}

static uint64_t count_events(const struct timeorder *order) {
    uint64_t count = 0;
    for (size_t part = 0; part < order->parts.count; part++) {
        const struct recording *recording = order->parts.items[part];
        for (size_t i = 0; i < recording->block_count; i++) {
            const struct memtrace_block_header *block = &recording->blocks[i].block;
            count += block->kind == MEMTRACE_BLOCK_EVENTS ? block->items : 0;
        }
    }
    return count;
}

static int replay_all(struct replay *replay, struct timeorder *order,
                      const struct replay_options *options) {
    const struct pass_visitor visitor = {
        .other = take_other, .window = begin_window, .waited = take_waited, .context = replay};
    order->skips_addresses = true;
    timeorder_note_places(order, replay->edges, replay->edge_count, replay->places);
    begin_slice(replay, SIZE_MAX);
    if (pass_run(&replay->pass, order, &visitor, options, count_events(order)) != 0) {
        return -1;
    }
    pass_samples(replay, UINT64_MAX);
    make_point(replay);
    end_slice(replay);
    replay->model->recording.events = replay->events;
    return replay->out_of_memory ? -1 : 0;
}

/* The places that the slices begin at become theirs. */
static int finish_index(struct replay *replay) {
    struct index *index = replay->index;
    for (size_t i = 0; i < index->count; i++) {
        struct index_entry *entry = &index->entries[i];
        if (replay->edge_of[i] != SIZE_MAX) {
            entry->place = replay->places[replay->edge_of[i]];
            replay->places[replay->edge_of[i]] = (struct varint_writer){0};
        }
        if (entry->place.failed || entry->state.failed || entry->waited.failed) {
            return -1;
        }
    }
    return index_shrink(index);
}

/* ---- The model around them ---- */

/* What the header of the program says of the recording itself. */
static struct memtrace_recording told_by(const struct recording *recording) {
    struct memtrace_recording told;
    memcpy(&told, recording->program.recording, sizeof told);
    return told;
}

static int by_time(const void *left, const void *right) {
    const struct memtrace_point *a = left;
    const struct memtrace_point *b = right;
    return (a->time_ns > b->time_ns) - (a->time_ns < b->time_ns);
}

static int start_index(struct replay *replay, struct timeorder_parts parts,
                       const struct replay_options *options) {
    bool is_told = options != NULL && options->slice_events != 0;
    replay->edges =
        index_edges(parts, is_told ? options->slice_events : INDEX_EVENTS, &replay->edge_count);
    replay->places = calloc(replay->edge_count + 1, sizeof *replay->places);
    replay->edge_of = calloc(replay->edge_count + 1, sizeof *replay->edge_of);
    replay->index = calloc(1, sizeof *replay->index);
    if (replay->index != NULL) {
        replay->index->entries = calloc(replay->edge_count + 1, sizeof *replay->index->entries);
    }
    return replay->edges != NULL && replay->places != NULL && replay->edge_of != NULL &&
                   replay->index != NULL && replay->index->entries != NULL
               ? 0
               : -1;
}

static int start(struct replay *replay, struct timeorder_parts parts, struct timeorder *order,
                 const struct replay_options *options) {
    struct model *model = replay->model;
    if (timeorder_start(order, parts) != 0 || recorded_nodes(model, parts) != 0 ||
        recorded_places(model, parts) != 0 ||
        recorded_samples(parts, &replay->samples, &replay->sample_count) != 0 ||
        timepoints_start(&replay->points) != 0 || start_index(replay, parts, options) != 0 ||
        pass_start(&replay->pass, model, order->stream_count, 0, UINT64_MAX) != 0 ||
        peakbound_start(&replay->pass.bound, order->stream_count) != 0) {
        return -1;
    }
    replay->pass.inherited = model->header.inherited_blocks;
    if (replay->sample_count != 0) {
        qsort(replay->samples, replay->sample_count, sizeof *replay->samples, by_time);
    }
    return 0;
}

static void end(struct replay *replay) {
    pass_free(&replay->pass);
    marks_free(&replay->marks);
    index_free(replay->index);
    for (size_t i = 0; replay->places != NULL && i < replay->edge_count; i++) {
        free(replay->places[i].bytes);
    }
    free(replay->places);
    free(replay->edges);
    free(replay->edge_of);
    free(replay->samples);
    timepoints_end(&replay->points);
    free(replay);
}

/* The last part tells how it ended, the first one when it began. */
static void describe(struct model *model, struct timeorder_parts parts) {
    const struct recording *last = parts.items[parts.count - 1];
    struct memtrace_recording told = told_by(last);
    model->header = last->program;
    model->live = model->header.state == MEMTRACE_STATE_RUNNING && !last->closed &&
                  region_alive((pid_t)last->header.pid, last->header.process_start_ticks);
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
        if (recording->damage[0] != '\0') {
            model_damage(model, "%s", recording->damage);
        }
        model->recording.bytes += recording->size;
        for (size_t i = 0; i < recording->block_count; i++) {
            model->recording.blocks += recording->blocks[i].block.kind == MEMTRACE_BLOCK_EVENTS;
        }
    }
}

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

/* All slices, and what the events leave out. */
static int add_up(struct replay *replay, struct sums *sums, struct timeorder_parts parts) {
    struct model *model = replay->model;
    struct slice culled = {0};
    int result = sums_start(sums, model);
    for (size_t i = 0; result == 0 && i < replay->index->count; i++) {
        result = sums_add(sums, &replay->index->entries[i].slice);
    }
    if (result == 0) {
        result = recorded_culled(model, parts, 0, UINT64_MAX, &culled);
    }
    if (result == 0) {
        result = sums_add(sums, &culled);
    }
    slice_free(&culled);
    if (result == 0 && cachefolder_is_on()) {
        result = sums_pack(sums, &replay->index->all);
    }
    return result == 0 ? sums_finish(sums) : -1;
}

static int finish_sums(struct replay *replay, struct timeorder_parts parts) {
    struct model *model = replay->model;
    struct sums sums;
    int result = add_up(replay, &sums, parts);
    if (result == 0) {
        model->totals.maximum_ns = sums.all.maximum_ns;
        result = recorded_threads(model, parts, &sums);
    }
    sums_end(&sums);
    return result;
}

static void note_damage(struct replay *replay, const struct timeorder *order) {
    if (replay->pass.has_wrong_mapping) {
        model_damage(replay->model, "a mapping has the context of a block");
    }
    if (order->damaged != 0) {
        model_damage(replay->model, "%llu block%s of events cannot be read completely",
                     (unsigned long long)order->damaged, order->damaged == 1 ? "" : "s");
    } else if (order->gaps != 0) {
        model_damage(replay->model, "events are missing in %llu place%s",
                     (unsigned long long)order->gaps, order->gaps == 1 ? "" : "s");
    }
}

static int finish(struct replay *replay, const struct timeorder *order) {
    struct model *model = replay->model;
    struct pass *pass = &replay->pass;
    struct memtrace_recording told = told_by(order->parts.items[order->parts.count - 1]);
    note_damage(replay, order);
    model->recording.sampled = pass->accounts.is_sampled;
    model->recording.foreign_frees = pairing_waiting(pass->pairing);
    note_losses(model, &told);
    if (finish_index(replay) != 0 || marks_finish(&replay->marks, model) != 0) {
        return -1;
    }
    accounts_end(&pass->accounts); /* their memory is needed no more, and much of it */
    pairing_free(pass->pairing);
    pass->pairing = NULL;
    if (finish_sums(replay, order->parts) != 0 ||
        timepoints_finish(&replay->points, model, replay->samples, replay->sample_count) != 0) {
        return -1;
    }
    model->header.peak_error_bytes =
        peakbound_error(&pass->bound, (uint64_t)model->header.maximum_bytes);
    records_finish(model);
    model_finish(model);
    model->index = replay->index;
    model->free_index = index_free;
    replay->index = NULL;
    return timepoints_complete(model, 0, UINT64_MAX, 0);
}

static int run(struct replay *replay, struct timeorder_parts parts,
               const struct replay_options *options) {
    struct timeorder order = {0};
    int result = -1;
    if (start(replay, parts, &order, options) == 0 && replay_all(replay, &order, options) == 0) {
        result = finish(replay, &order);
    }
    timeorder_end(&order);
    return result;
}

struct model *model_replay(struct timeorder_parts parts, const struct replay_options *options,
                           struct error *error) {
    struct replay *replay = calloc(1, sizeof *replay);
    struct model *model = calloc(1, sizeof *model);
    int result = -1;
    if (replay != NULL && model != NULL) {
        replay->model = model;
        describe(model, parts);
        result = run(replay, parts, options);
        end(replay);
    } else {
        free(replay);
    }
    if (result != 0) {
        error_set(error, "out of memory while replaying %s", parts.items[0]->path);
        model_free(model);
        return NULL;
    }
    return model;
}
