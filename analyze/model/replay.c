/* SPDX-License-Identifier: MIT */
/* replay.c: goes through the events of a recording. See replay.h. */
#include "analyze/model/replay.h"

#include "analyze/model/ahead.h"
#include "analyze/model/marks.h"
#include "analyze/model/peakbound.h"
#include "analyze/model/ranges.h"
#include "analyze/model/recorded.h"
#include "analyze/read/region.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, PROGRESS_EVENTS = 1 << 20 };

/* What is known of a stream: its newest heap block, which is temporary if it is freed next. */
struct stream {
    struct event_block newest;
};

struct replay {
    struct model *model;
    struct tally tally;
    struct pairing *pairing;
    struct ranges mappings;
    struct peakbound bound;
    struct marks marks;
    struct stream *streams;
    size_t stream; /* whose events come now, in which window */
    uint64_t window;
    uint32_t missing;              /* the context that stands for those that the file lacks */
    uint64_t inherited;            /* blocks still to come that a forked child was born with */
    struct memtrace_point *points; /* samples, by time */
    size_t point_count;
    size_t next_point;
    bool out_of_memory;
};

static uint32_t context_of(const struct replay *replay, uint32_t context) {
    return context != 0 && context < replay->missing ? context : replay->missing;
}

static uint32_t tick_of(const struct event *event) {
    return (uint32_t)(event->time_ns >> MEMTRACE_TICK_SHIFT);
}

/* ---- Blocks ---- */

static void end_block(struct replay *replay, const struct pairing_block *block,
                      struct event_block name, const struct pairing_end *end, bool temporary) {
    int64_t change = tally_free(&replay->tally, block, name.thread, end, temporary);
    peakbound_change(&replay->bound, change);
}

static void replay_free(struct replay *replay, const struct timeorder_event *entry,
                        struct event_block name) {
    struct pairing_end end = {.thread = entry->thread, .tick = tick_of(&entry->event)};
    const struct event_block *newest = &replay->streams[entry->stream].newest;
    struct pairing_block block;
    if (pairing_take(replay->pairing, name, &block)) {
        bool temporary = block.weight == 0 && name.thread == entry->thread &&
                         name.thread == newest->thread && name.number == newest->number;
        end_block(replay, &block, name, &end, temporary);
    } else if (pairing_wait(replay->pairing, name, end) != 0) {
        replay->out_of_memory = true;
    }
}

static void replay_alloc(struct replay *replay, const struct timeorder_event *entry) {
    const struct event *event = &entry->event;
    struct pairing_block block = {.size = event->size,
                                  .weight = event->weight,
                                  .context = context_of(replay, event->context),
                                  .tick = tick_of(event)};
    struct pairing_end end;
    bool inherited = replay->inherited != 0;
    int waited;
    if (event->old.number != 0) {
        replay_free(replay, entry, event->old);
    }
    replay->inherited -= inherited;
    replay->tally.now_ns = event->time_ns;
    if (tally_class(&replay->tally, block.context) == MODEL_HEAP) {
        replay->streams[entry->stream].newest = event->block;
    }
    peakbound_change(&replay->bound, tally_alloc(&replay->tally, &block, entry->thread, inherited));
    waited = pairing_add(replay->pairing, event->block, &block, &end);
    if (waited == 1) {
        end_block(replay, &block, event->block, &end, false);
    }
    replay->out_of_memory |= waited < 0;
}

/* ---- Mappings ---- */

static uint64_t page_up(uint64_t size) {
    return (size + PAGE - 1) & ~(uint64_t)(PAGE - 1);
}

static void count_removed(void *argument, const struct range *piece, bool is_last) {
    tally_unmap(argument, piece->context, piece->end - piece->start, is_last);
}

static void remove_range(struct replay *replay, uint64_t start, uint64_t size) {
    uint64_t end;
    if (size == 0 || __builtin_add_overflow(start, page_up(size), &end)) {
        return;
    }
    if (ranges_remove(&replay->mappings, start, end, count_removed, &replay->tally) != 0) {
        replay->out_of_memory = true;
    }
}

static void add_range(struct replay *replay, const struct event *event) {
    uint32_t context = context_of(replay, event->context);
    uint64_t size = page_up(event->size);
    struct range range = {.start = event->address, .context = context};
    if (size == 0 || __builtin_add_overflow(range.start, size, &range.end)) {
        return;
    }
    if (tally_class(&replay->tally, context) != MODEL_MAPPING) {
        model_damage(replay->model, "a mapping has the context of a block");
        return;
    }
    tally_map(&replay->tally, context, size);
    if (ranges_add(&replay->mappings, range) != 0) {
        replay->out_of_memory = true;
    }
}

static void replay_map(struct replay *replay, const struct event *event) {
    switch ((enum memtrace_map_operation)event->operation) {
    case MEMTRACE_MAP_UNMAP:
        remove_range(replay, event->address, event->size);
        break;
    case MEMTRACE_MAP_MAP:
        if (event->flags & MAP_FIXED) {
            remove_range(replay, event->address, event->size);
        }
        add_range(replay, event);
        break;
    case MEMTRACE_MAP_REMAP:
    case MEMTRACE_MAP_BREAK:
        remove_range(replay, event->old_address, event->old_size);
        remove_range(replay, event->address, event->size); /* MREMAP_FIXED */
        add_range(replay, event);
        break;
    default:
        break;
    }
}

/* ---- All events ---- */

/* Samples up to the end of the window that is over tell how much had been allocated by then. */
static void pass_samples(struct replay *replay, uint64_t time_ns) {
    while (replay->next_point < replay->point_count &&
           replay->points[replay->next_point].time_ns < time_ns) {
        struct memtrace_point *point = &replay->points[replay->next_point++];
        point->alloc_count = (replay->tally.alloc_units + TALLY_ONE / 2) / TALLY_ONE;
        point->alloc_bytes = replay->tally.alloc_bytes;
        point->live_bytes = replay->tally.live;
    }
}

static void replay_event(struct replay *replay, const struct timeorder_event *entry) {
    const struct event *event = &entry->event;
    switch (event->kind) {
    case EVENT_ALLOC:
        replay_alloc(replay, entry);
        break;
    case EVENT_FREE:
        replay_free(replay, entry, event->block);
        break;
    case EVENT_MAP:
        replay_map(replay, event);
        break;
    case EVENT_LOST:
        replay->model->recording.lost_allocs += event->lost_allocs;
        replay->model->recording.lost_frees += event->lost_frees;
        if (event->lost_allocs != 0) {
            replay->streams[entry->stream].newest.number = 0;
        }
        break;
    case EVENT_MARK:
        replay->out_of_memory |= marks_add(&replay->marks, entry) != 0;
        if (event->operation == MEMTRACE_MARK_SAMPLE && event->id != 0) {
            replay->model->recording.sample_bytes = event->id; /* switched on meanwhile */
        }
        break;
    default:
        break;
    }
}

static void replay_batch(struct replay *replay, const struct ahead_batch *batch,
                         unsigned window_shift) {
    for (size_t i = 0; i < batch->count; i++) {
        const struct timeorder_event *entry = &batch->events[i];
        if (entry->stream != replay->stream || entry->window != replay->window) {
            if (entry->window != replay->window) {
                pass_samples(replay, entry->window << window_shift);
            }
            replay->stream = entry->stream;
            replay->window = entry->window;
            peakbound_run(&replay->bound, entry->stream, entry->window);
        }
        replay_event(replay, entry);
    }
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
    struct model_recording *told = &replay->model->recording;
    uint64_t total = count_events(order);
    uint64_t next_progress = PROGRESS_EVENTS;
    const struct ahead_batch *batch;
    struct ahead *ahead = ahead_start(order);
    if (ahead == NULL) {
        return -1;
    }
    while (!replay->out_of_memory && (batch = ahead_next(ahead)) != NULL) {
        replay_batch(replay, batch, order->window_shift);
        told->events += batch->count;
        if (options != NULL && options->progress != NULL && told->events >= next_progress) {
            options->progress(options->context, told->events, total);
            next_progress = told->events + PROGRESS_EVENTS;
        }
    }
    ahead_stop(ahead);
    pass_samples(replay, UINT64_MAX);
    if (options != NULL && options->progress != NULL && total >= PROGRESS_EVENTS) {
        options->progress(options->context, total, total);
    }
    return replay->out_of_memory ? -1 : 0;
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

static int start(struct replay *replay, struct timeorder_parts parts, struct timeorder *order) {
    struct model *model = replay->model;
    replay->inherited = model->header.inherited_blocks;
    replay->stream = SIZE_MAX;
    replay->window = UINT64_MAX;
    replay->pairing = pairing_new();
    if (replay->pairing == NULL || timeorder_start(order, parts) != 0 ||
        recorded_nodes(model, parts, &replay->missing) != 0 || recorded_places(model, parts) != 0 ||
        recorded_samples(parts, &replay->points, &replay->point_count) != 0 ||
        tally_start(&replay->tally, model) != 0 ||
        peakbound_start(&replay->bound, order->stream_count) != 0) {
        return -1;
    }
    if (replay->point_count != 0) {
        qsort(replay->points, replay->point_count, sizeof *replay->points, by_time);
    }
    replay->streams = calloc(order->stream_count + 1, sizeof *replay->streams);
    return replay->streams != NULL ? 0 : -1;
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

static int finish(struct replay *replay, const struct timeorder *order) {
    struct model *model = replay->model;
    struct timeorder_parts parts = order->parts;
    struct memtrace_recording told = told_by(parts.items[parts.count - 1]);
    if (order->damaged != 0) {
        model_damage(model, "%llu blocks of events cannot be read whole",
                     (unsigned long long)order->damaged);
    } else if (order->gaps != 0) {
        model_damage(model, "events are missing in %llu places", (unsigned long long)order->gaps);
    }
    model->recording.foreign_frees = pairing_waiting(replay->pairing);
    note_losses(model, &told);
    model->header.live_bytes = (int64_t)replay->tally.live; /* of what is in the file */
    model->header.maximum_bytes = (int64_t)replay->tally.maximum;
    model->totals.maximum_ns = replay->tally.maximum_ns;
    model->header.peak_error_bytes = peakbound_error(&replay->bound, replay->tally.maximum);
    if (marks_finish(&replay->marks, model) != 0 ||
        recorded_culled(&replay->tally, parts, replay->missing) != 0 ||
        tally_finish(&replay->tally) != 0 || recorded_threads(model, parts, &replay->tally) != 0 ||
        census_take_points(model, replay->points, replay->point_count) != 0) {
        return -1;
    }
    census_finish(model);
    model_finish(model);
    return 0;
}

static int run(struct replay *replay, struct timeorder_parts parts,
               const struct replay_options *options) {
    struct timeorder order = {0};
    int result = -1;
    if (start(replay, parts, &order) == 0 && replay_all(replay, &order, options) == 0) {
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
        pairing_free(replay->pairing);
        ranges_free(&replay->mappings);
        peakbound_free(&replay->bound);
        tally_end(&replay->tally);
        marks_free(&replay->marks);
        free(replay->points);
        free(replay->streams);
    }
    free(replay);
    if (result != 0) {
        error_set(error, "out of memory while replaying %s", parts.items[0]->path);
        model_free(model);
        return NULL;
    }
    return model;
}
