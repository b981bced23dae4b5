/* SPDX-License-Identifier: MIT */
/* wholereplay.c: see wholereplay.h. */
#include "analyze/window/wholereplay.h"

#include "analyze/replay/timestream.h"
#include "analyze/window/recordingtables.h"

#include <stdlib.h>
#include <string.h>

enum { THREADS = 1 << MEMTRACE_THREAD_BITS };

/* One run. */
struct run {
    struct wholereplay *replay;
    struct index *index;
    struct pass *pass;
    struct memtrace_point *samples;
    size_t sample_count;
    uint64_t *edges; /* between slices */
    size_t edge_count;
    size_t next_edge;
    struct varint_writer *places; /* by edge: filled by the thread that reads ahead */
    size_t *edge_of;              /* by slice of this run: where it begins; SIZE_MAX: the first */
    size_t first_slice;           /* of this run */
    bool out_of_memory;
    bool is_late; /* an earlier run should have had an event of this one */
};

struct wholereplay *wholereplay_new(void) {
    struct wholereplay *replay = calloc(1, sizeof *replay);
    if (replay != NULL && (replay->index = index_new()) == NULL) {
        free(replay);
        return NULL;
    }
    return replay;
}

static void free_pass(struct pass *pass) {
    if (pass != NULL) {
        pass_free(pass);
        free(pass);
    }
}

void wholereplay_free(struct wholereplay *replay) {
    if (replay != NULL) {
        index_free(replay->index);
        free_pass(replay->pass);
        free(replay->place.bytes);
        free(replay->streams);
        free(replay);
    }
}

/* ---- Points in time ---- */

static struct memtrace_point point_of(const struct wholereplay *replay,
                                      struct accounts_crest state) {
    return (struct memtrace_point){
        .time_ns = state.time_ns,
        .live_bytes = (uint64_t)wrap_add(replay->live, state.live),
        .alloc_count = (state.alloc_units + ACCOUNTS_ONE / 2) / ACCOUNTS_ONE,
        .alloc_bytes = state.alloc_bytes,
    };
}

/* The heap as it is after the last event. */
static struct accounts_crest state_now(const struct accounts *accounts) {
    return (struct accounts_crest){accounts->live, accounts->now_ns, accounts->alloc_units,
                                   accounts->alloc_bytes};
}

/* Samples up to the end of the window that is over tell how much had been allocated by then. */
static void pass_samples(struct run *run, uint64_t time_ns) {
    struct wholereplay *replay = run->replay;
    while (replay->next_sample < run->sample_count &&
           run->samples[replay->next_sample].time_ns < time_ns) {
        struct memtrace_point *sample = &run->samples[replay->next_sample++];
        struct memtrace_point now = point_of(replay, state_now(&run->pass->accounts));
        now.time_ns = sample->time_ns;
        now.resident_bytes = sample->resident_bytes;
        *sample = now;
    }
}

/* The events since the last point become one. */
static void make_point(struct run *run) {
    struct wholereplay *replay = run->replay;
    struct accounts *accounts = &run->pass->accounts;
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
    timepoints_add(&run->index->points, replay->point_ns, &highest, &last);
}

static void pass_points(struct run *run, uint64_t time_ns) {
    struct wholereplay *replay = run->replay;
    if (time_ns >= replay->next_point_ns) {
        uint64_t length;
        make_point(run);
        length = UINT64_C(1) << run->index->points.shift;
        replay->point_ns = time_ns & ~(length - 1);
        replay->next_point_ns = replay->point_ns + length;
    }
}

/* ---- Slices ---- */

static void begin_slice(struct run *run, size_t edge) {
    uint64_t start_ns = edge != SIZE_MAX ? run->edges[edge] : run->replay->until_ns;
    run->edge_of[run->index->count - run->first_slice] = edge;
    run->out_of_memory |= index_begin(run->index, start_ns, run->pass) == NULL;
}

static void end_slice(struct run *run) {
    struct index_entry *entry = &run->index->entries[run->index->count - 1];
    run->replay->live = wrap_add(run->replay->live, run->pass->accounts.live);
    run->replay->events += run->pass->events;
    run->out_of_memory |= pass_cut(run->pass, &entry->slice) != 0;
}

/* The places that the slices begin at become theirs. */
static int give_places(struct run *run) {
    const struct varint_writer *first = &run->replay->place;
    for (size_t i = run->first_slice; i < run->index->count; i++) {
        struct index_entry *entry = &run->index->entries[i];
        size_t edge = run->edge_of[i - run->first_slice];
        if (edge == SIZE_MAX) {
            varint_put_bytes(&entry->place, first->bytes, first->size);
        } else {
            entry->place = run->places[edge];
            run->places[edge] = (struct varint_writer){0};
        }
        if (entry->place.failed || entry->state.failed || entry->waited.failed) {
            return -1;
        }
    }
    return 0;
}

/* ---- Looking on ---- */

static void begin_window(void *context, uint64_t time_ns) {
    struct run *run = context;
    size_t next = run->next_edge;
    pass_samples(run, time_ns);
    pass_points(run, time_ns);
    while (next < run->edge_count && time_ns >= run->edges[next]) {
        next++;
    }
    if (next != run->next_edge && !run->out_of_memory) {
        run->next_edge = next;
        end_slice(run);
        begin_slice(run, next - 1);
    }
}

static int take_other(void *context, const struct timeorder_event *entry) {
    struct run *run = context;
    struct index_facts *facts = &run->index->facts;
    const struct event *event = &entry->event;
    if (event->kind == EVENT_LOST) {
        facts->lost_allocs += event->lost_allocs;
        facts->lost_frees += event->lost_frees;
    } else if (event->kind == EVENT_MARK) {
        struct timeorder_event mark = *entry; /* the text is the timeorder's */
        mark.event.text = texts_keep(&run->index->texts, event->text, strlen(event->text));
        run->out_of_memory |= marks_add(&run->index->marks, &mark) != 0;
        if (event->operation == MEMTRACE_MARK_SAMPLE && event->id != 0) {
            facts->sample_bytes = event->id; /* switched on meanwhile */
        }
    }
    return 0;
}

static void take_waited(void *context, struct event_block name, const struct pairing_end *end) {
    struct run *run = context;
    run->is_late |= end->time_ns < run->replay->until_ns; /* its block's allocation was not there */
    index_note_waited(&run->index->entries[run->index->count - 1], name, end);
}

/* ---- Whether it can be gone on with ---- */

uint64_t wholereplay_settled(struct timeorder_parts parts) {
    const uint64_t tick = UINT64_C(1) << MEMTRACE_TICK_SHIFT;
    uint64_t newest_ns = 0;
    uint64_t lag_ns = 0;     /* how far a block reached back behind those written before it */
    uint64_t sampled_ns = 0; /* samples of a process come into the file together, later */
    for (size_t part = 0; part < parts.count; part++) {
        for (size_t i = 0; i < parts.items[part]->block_count; i++) {
            const struct memtrace_block_header *block = &parts.items[part]->blocks[i].block;
            if (block->kind == MEMTRACE_BLOCK_SAMPLES && block->last_ns > sampled_ns) {
                sampled_ns = block->last_ns;
            }
            if (block->kind != MEMTRACE_BLOCK_EVENTS || block->items == 0) {
                continue;
            }
            if (block->first_ns < newest_ns && newest_ns - block->first_ns > lag_ns) {
                lag_ns = newest_ns - block->first_ns;
            }
            newest_ns = block->last_ns > newest_ns ? block->last_ns : newest_ns;
        }
    }
    newest_ns = newest_ns > lag_ns ? newest_ns - lag_ns : 0;
    return (newest_ns < sampled_ns ? newest_ns : sampled_ns) & ~(tick - 1);
}

/* No block that came since the last run has events or samples of before its end. */
static bool is_in_time(const struct wholereplay *replay, struct timeorder_parts parts) {
    uint64_t at = 0;
    for (size_t part = 0; part < parts.count; part++) {
        for (size_t i = 0; i < parts.items[part]->block_count; i++) {
            const struct memtrace_block_header *block = &parts.items[part]->blocks[i].block;
            if (!index_is_covered(block)) {
                continue;
            }
            if (at++ >= replay->blocks && block->first_ns < replay->until_ns &&
                (block->kind == MEMTRACE_BLOCK_EVENTS || block->kind == MEMTRACE_BLOCK_SAMPLES)) {
                return false;
            }
        }
    }
    return true;
}

/* Streams that are new stand behind the others, and none of them has the thread of another one,
 * which would have made a difference to the order from the beginning. */
static bool are_streams_alike(const struct wholereplay *replay, const struct timeorder *order) {
    for (size_t i = 0; i < order->stream_count; i++) {
        const struct timeorder_stream *stream = &order->streams[i];
        uint32_t number = timestream_block(order, order->blocks[stream->first_block])->stream;
        bool is_only = stream->thread >= THREADS || stream->thread == MEMTRACE_THREAD_OTHERS ||
                       order->stream_of[stream->thread] == i;
        if (i < replay->stream_count ? replay->streams[i] != number
                                     : replay->stream_count != 0 && !is_only) {
            return false;
        }
    }
    return order->stream_count >= replay->stream_count;
}

static int note_streams(struct wholereplay *replay, const struct timeorder *order) {
    uint32_t *streams = reallocarray(replay->streams, order->stream_count + 1, sizeof *streams);
    if (streams == NULL) {
        return -1;
    }
    for (size_t i = 0; i < order->stream_count; i++) {
        streams[i] = timestream_block(order, order->blocks[order->streams[i].first_block])->stream;
    }
    replay->streams = streams;
    replay->stream_count = order->stream_count;
    return 0;
}

/* ---- Beginning ---- */

/* Those that are over are as they were told. */
static enum wholereplay_result load_samples(struct run *run, struct timeorder_parts parts) {
    const struct index *index = run->index;
    if (recorded_samples(parts, &run->samples, &run->sample_count) != 0) {
        return WHOLEREPLAY_FAILED;
    }
    for (size_t i = 0; i < run->replay->next_sample; i++) {
        if (i >= run->sample_count || i >= index->sample_count ||
            run->samples[i].time_ns != index->samples[i].time_ns) {
            return WHOLEREPLAY_ANEW;
        }
        uint64_t resident_bytes = run->samples[i].resident_bytes;
        run->samples[i] = index->samples[i];
        run->samples[i].resident_bytes = resident_bytes;
    }
    return WHOLEREPLAY_OK;
}

static int make_edges(struct run *run, struct timeorder_parts parts,
                      const struct replay_options *options) {
    uint64_t least_events =
        options != NULL && options->slice_events != 0 ? options->slice_events : INDEX_EVENTS;
    run->edges =
        index_edges(parts, run->replay->until_ns, least_events, INDEX_SLICES, &run->edge_count);
    run->places = calloc(run->edge_count + 1, sizeof *run->places);
    run->edge_of = calloc(run->edge_count + 1, sizeof *run->edge_of);
    return run->edges != NULL && run->places != NULL && run->edge_of != NULL ? 0 : -1;
}

/* What lasts goes from one pass to the next. */
static int hand_over(struct wholereplay *replay, struct pass *pass, size_t from_count) {
    struct pass *before = replay->pass;
    struct accounts *accounts = &pass->accounts;
    pairing_free(pass->pairing);
    pass->pairing = before->pairing;
    pass->mappings = before->mappings;
    pass->bound = before->bound;
    pass->inherited = before->inherited;
    pass->has_wrong_mapping = before->has_wrong_mapping;
    memcpy(pass->newest, before->newest, from_count * sizeof *pass->newest);
    accounts->crest = replay->crest;
    accounts->now_ns = replay->now.time_ns;
    accounts->alloc_units = replay->now.alloc_units;
    accounts->alloc_bytes = replay->now.alloc_bytes;
    before->pairing = NULL;
    before->mappings = (struct mappinglist){0};
    before->bound = (struct peakbound){0};
    return peakbound_grow(&pass->bound, from_count, pass->stream_count);
}

static int start_pass(struct run *run, const struct model *model, size_t stream_count) {
    struct wholereplay *replay = run->replay;
    struct pass *pass = calloc(1, sizeof *pass);
    int result = -1;
    run->pass = pass;
    if (pass == NULL || pass_start(pass, model, stream_count, 0, UINT64_MAX) != 0) {
        return -1;
    }
    if (replay->pass == NULL) {
        pass->inherited = model->header.inherited_blocks;
        result = peakbound_start(&pass->bound, stream_count);
    } else {
        result = hand_over(replay, pass, replay->stream_count);
        free_pass(replay->pass);
    }
    replay->pass = pass;
    return result;
}

static enum wholereplay_result start(struct run *run, const struct model *model,
                                     struct timeorder *order,
                                     const struct replay_options *options) {
    struct wholereplay *replay = run->replay;
    const struct index_facts *facts = &run->index->facts;
    enum wholereplay_result result;
    if (!are_streams_alike(replay, order) || !is_in_time(replay, order->parts) ||
        (facts->has_missing && facts->missing != model->node_count - 1)) {
        return WHOLEREPLAY_ANEW;
    }
    result = load_samples(run, order->parts);
    if (result != WHOLEREPLAY_OK) {
        return result;
    }
    return make_edges(run, order->parts, options) == 0 &&
                   start_pass(run, model, order->stream_count) == 0 &&
                   note_streams(replay, order) == 0
               ? WHOLEREPLAY_OK
               : WHOLEREPLAY_FAILED;
}

/* ---- The run ---- */

/* Keeps what the next run needs. */
static void finish(struct run *run, const struct timeorder *order, uint64_t repeated,
                   uint64_t until_ns) {
    struct wholereplay *replay = run->replay;
    struct index_facts *facts = &run->index->facts;
    struct pass *pass = run->pass;
    struct accounts *accounts = &pass->accounts;
    replay->unreadable += order->damaged - repeated;
    facts->damaged = repeated + replay->unreadable;
    facts->gaps = order->gaps;
    facts->waiting = pairing_waiting(pass->pairing);
    facts->is_sampled |= accounts->is_sampled;
    facts->has_wrong_mapping = pass->has_wrong_mapping;
    facts->missing = pass->missing;
    facts->has_missing |= accounts->cells[pass->missing].class != 0;
    replay->now = state_now(accounts);
    replay->crest = accounts->crest;
    replay->until_ns = until_ns;
    replay->blocks = index_cover(order->parts, UINT64_MAX).blocks;
    accounts_end(accounts); /* their memory is needed no more, and much of it */
}

static void finish_all(struct run *run) {
    struct index_facts *facts = &run->index->facts;
    struct peakbound *bound = &run->pass->bound;
    peakbound_error(bound, 0); /* ends the last window */
    facts->highest = bound->highest;
    facts->lowest = bound->lowest;
    facts->is_shared = bound->is_shared;
    free_pass(run->pass);
    run->replay->pass = NULL;
}

static enum wholereplay_result replay_run(struct run *run, struct timeorder *order,
                                          uint64_t until_ns, const struct replay_options *options) {
    const struct pass_visitor visitor = {
        .other = take_other, .window = begin_window, .waited = take_waited, .context = run};
    struct wholereplay *replay = run->replay;
    uint64_t repeated = order->damaged;
    order->skips_addresses = true;
    timeorder_note_places(order, run->edges, run->edge_count, run->places);
    begin_slice(run, SIZE_MAX);
    if (run->out_of_memory ||
        timeorder_seek(order, replay->place.bytes, replay->place.size, until_ns) != 0 ||
        pass_run(run->pass, order, &visitor, options, index_count_events(order->parts)) != 0) {
        return WHOLEREPLAY_FAILED;
    }
    if (until_ns == UINT64_MAX) {
        pass_samples(run, UINT64_MAX);
        make_point(run);
    }
    end_slice(run);
    if (run->is_late) {
        return WHOLEREPLAY_ANEW;
    }
    if (run->out_of_memory || give_places(run) != 0 || index_shrink(run->index) != 0) {
        return WHOLEREPLAY_FAILED;
    }
    replay->place.size = 0;
    timeorder_put_place(order, &replay->place);
    finish(run, order, repeated, until_ns);
    if (until_ns == UINT64_MAX) {
        finish_all(run);
    }
    free(run->index->samples);
    run->index->samples = run->samples;
    run->index->sample_count = replay->next_sample;
    run->samples = NULL;
    return replay->place.failed ? WHOLEREPLAY_FAILED : WHOLEREPLAY_OK;
}

enum wholereplay_result wholereplay_run(struct wholereplay *replay, const struct model *model,
                                        struct timeorder_parts parts, uint64_t until_ns,
                                        const struct replay_options *options) {
    struct run run = {
        .replay = replay, .index = replay->index, .first_slice = replay->index->count};
    struct timeorder order;
    enum wholereplay_result result;
    replay->events = 0;
    if (timeorder_start(&order, parts) != 0) {
        return WHOLEREPLAY_FAILED;
    }
    result = start(&run, model, &order, options);
    if (result == WHOLEREPLAY_OK) {
        result = replay_run(&run, &order, until_ns, options);
    }
    for (size_t i = 0; run.places != NULL && i < run.edge_count; i++) {
        free(run.places[i].bytes);
    }
    free(run.places);
    free(run.edges);
    free(run.edge_of);
    free(run.samples);
    timeorder_end(&order);
    return result;
}

/* ---- As bytes ---- */

static void put_crest(struct varint_writer *bytes, const struct accounts_crest *crest) {
    varint_put(bytes, (uint64_t)crest->live);
    varint_put(bytes, crest->time_ns);
    varint_put(bytes, crest->alloc_units);
    varint_put(bytes, crest->alloc_bytes);
}

static struct accounts_crest get_crest(struct varint_reader *reader) {
    struct accounts_crest crest = {.live = (int64_t)varint_get(reader)};
    crest.time_ns = varint_get(reader);
    crest.alloc_units = varint_get(reader);
    crest.alloc_bytes = varint_get(reader);
    return crest;
}

static int put_living(void *context, struct event_block name, const struct pairing_block *block) {
    struct varint_writer *bytes = context;
    varint_put(bytes, name.number);
    varint_put(bytes, name.thread);
    varint_put(bytes, block->size);
    varint_put(bytes, block->weight);
    varint_put(bytes, block->context);
    varint_put(bytes, block->tick);
    return 0;
}

static int put_waiting(void *context, struct event_block name, const struct pairing_end *end) {
    struct varint_writer *bytes = context;
    varint_put(bytes, name.number);
    varint_put(bytes, name.thread);
    varint_put(bytes, end->thread);
    varint_put(bytes, end->tick);
    varint_put(bytes, end->time_ns);
    return 0;
}

static int get_pairing(struct varint_reader *reader, struct pairing *pairing) {
    uint64_t living = varint_get(reader);
    uint64_t waiting = varint_get(reader);
    struct pairing_end end;
    int result = 0;
    for (; living != 0 && result == 0 && !*reader->failed; living--) {
        struct event_block name = {.number = varint_get(reader)};
        struct pairing_block block = {0};
        name.thread = (uint32_t)varint_get(reader);
        block.size = varint_get(reader);
        block.weight = varint_get(reader);
        block.context = (uint32_t)varint_get(reader);
        block.tick = (uint32_t)varint_get(reader);
        result = pairing_add(pairing, name, &block, &end);
    }
    for (; waiting != 0 && result == 0 && !*reader->failed; waiting--) {
        struct event_block name = {.number = varint_get(reader)};
        name.thread = (uint32_t)varint_get(reader);
        end.thread = (uint32_t)varint_get(reader);
        end.tick = (uint32_t)varint_get(reader);
        end.time_ns = varint_get(reader);
        result = pairing_wait(pairing, name, end);
    }
    return result;
}

static void put_bound(struct varint_writer *bytes, const struct peakbound *bound, size_t streams) {
    size_t current = bound->current != NULL ? (size_t)(bound->current - bound->streams) + 1 : 0;
    varint_put_bytes(bytes, bound->streams, streams * sizeof *bound->streams);
    varint_put(bytes, bound->active_count);
    varint_put_bytes(bytes, bound->active, bound->active_count * sizeof *bound->active);
    varint_put(bytes, current);
    varint_put_bytes(bytes, bound, sizeof *bound);
}

/* 0 or -1 */
static int get_bound(struct varint_reader *reader, struct peakbound *bound, size_t streams) {
    const void *runs = varint_get_bytes(reader, streams * sizeof *bound->streams);
    size_t active_count = (size_t)varint_get(reader);
    const void *active = active_count <= streams
                             ? varint_get_bytes(reader, active_count * sizeof *bound->active)
                             : NULL;
    size_t current = (size_t)varint_get(reader);
    const void *told = varint_get_bytes(reader, sizeof *bound);
    struct peakbound room = *bound;
    if (runs == NULL || active == NULL || told == NULL || current > streams) {
        return -1;
    }
    memcpy(bound, told, sizeof *bound);
    bound->streams = room.streams;
    bound->active = room.active;
    bound->active_count = active_count;
    bound->current = current != 0 ? &bound->streams[current - 1] : NULL;
    memcpy(bound->streams, runs, streams * sizeof *bound->streams);
    memcpy(bound->active, active, active_count * sizeof *bound->active);
    for (size_t i = 0; i < active_count; i++) {
        if (bound->active[i] >= streams) {
            return -1;
        }
    }
    return 0;
}

void wholereplay_pack(const struct wholereplay *replay, struct timeorder_parts parts,
                      struct varint_writer *bytes) {
    const struct pairing_visitor visitor = {
        .lives = put_living, .waits = put_waiting, .context = bytes};
    const struct pass *pass = replay->pass;
    index_pack(replay->index, index_cover(parts, replay->blocks), bytes);
    varint_put(bytes, replay->until_ns);
    varint_put(bytes, replay->unreadable);
    varint_put(bytes, (uint64_t)replay->live);
    put_crest(bytes, &replay->now);
    put_crest(bytes, &replay->crest);
    varint_put(bytes, replay->point_ns);
    varint_put(bytes, replay->next_point_ns);
    varint_put(bytes, replay->next_sample);
    varint_put(bytes, replay->stream_count);
    for (size_t i = 0; i < replay->stream_count; i++) {
        varint_put(bytes, replay->streams[i]);
        varint_put(bytes, pass->newest[i]);
    }
    index_put_bytes(bytes, &replay->place);
    put_bound(bytes, &pass->bound, replay->stream_count);
    index_put_mappings(bytes, &pass->mappings);
    varint_put(bytes, pass->inherited);
    varint_put(bytes, pass->has_wrong_mapping);
    varint_put(bytes, pairing_living(pass->pairing));
    varint_put(bytes, pairing_waiting(pass->pairing));
    pairing_each(pass->pairing, &visitor);
}

/* What stands behind the index. 0 or -1. */
static int get_state(struct wholereplay *replay, struct varint_reader *reader) {
    struct pass *pass = replay->pass = calloc(1, sizeof *pass);
    replay->until_ns = varint_get(reader);
    replay->unreadable = varint_get(reader);
    replay->live = (int64_t)varint_get(reader);
    replay->now = get_crest(reader);
    replay->crest = get_crest(reader);
    replay->point_ns = varint_get(reader);
    replay->next_point_ns = varint_get(reader);
    replay->next_sample = (size_t)varint_get(reader);
    replay->stream_count = (size_t)varint_get(reader);
    if (pass == NULL || *reader->failed ||
        replay->stream_count > (size_t)(reader->end - reader->next)) {
        return -1;
    }
    replay->streams = calloc(replay->stream_count + 1, sizeof *replay->streams);
    pass->newest = calloc(replay->stream_count + 1, sizeof *pass->newest);
    pass->pairing = pairing_new();
    if (replay->streams == NULL || pass->newest == NULL || pass->pairing == NULL ||
        peakbound_start(&pass->bound, replay->stream_count) != 0) {
        return -1;
    }
    for (size_t i = 0; i < replay->stream_count; i++) {
        replay->streams[i] = (uint32_t)varint_get(reader);
        pass->newest[i] = varint_get(reader);
    }
    if (index_get_bytes(reader, &replay->place) != 0 ||
        get_bound(reader, &pass->bound, replay->stream_count) != 0 ||
        index_get_mappings(reader, &pass->mappings) != 0) {
        return -1;
    }
    pass->inherited = varint_get(reader);
    pass->has_wrong_mapping = varint_get(reader) != 0;
    return get_pairing(reader, pass->pairing) == 0 && !*reader->failed ? 0 : -1;
}

struct wholereplay *wholereplay_unpack(const unsigned char *bytes, size_t size,
                                       struct timeorder_parts parts) {
    struct wholereplay *replay = calloc(1, sizeof *replay);
    struct index_cover cover = {0};
    bool failed = false;
    struct varint_reader rest = {.failed = &failed};
    if (replay == NULL) {
        return NULL;
    }
    replay->index = index_unpack(bytes, size, &cover, &rest);
    replay->blocks = cover.blocks;
    if (replay->index == NULL || !index_covers(cover, index_cover(parts, cover.blocks)) ||
        get_state(replay, &rest) != 0) {
        wholereplay_free(replay);
        return NULL;
    }
    return replay;
}
