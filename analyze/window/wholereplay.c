/* SPDX-License-Identifier: MIT */
/* wholereplay.c: see wholereplay.h. */
#include "analyze/window/wholereplay.h"

#include "analyze/window/recordingtables.h"

#include <stdlib.h>
#include <string.h>

enum { THREADS = 1 << MEMTRACE_THREAD_BITS };

/* One run. */
struct wholereplay_run {
    struct wholereplay *replay;
    struct index *index;
    struct pass *pass;
    const struct model *model;
    struct timeorder order;
    const struct replay_options *options;
    uint64_t until_ns;
    enum wholereplay_result result;
    struct memtrace_point *samples;
    size_t sample_count;
    uint64_t *edges; /* between slices */
    size_t edge_count;
    size_t next_edge;
    size_t *edge_of;    /* by slice of this run: where it begins; SIZE_MAX: the first */
    size_t first_slice; /* of this run */
    bool is_late;       /* an earlier run should have had an event of this one */
};

static void wholereplay_begin(void *what) {
    struct wholereplay **replay = what;
    *replay = job_alloc(sizeof **replay);
    (*replay)->index = index_new();
    (*replay)->place.of_job = true;
}

struct wholereplay *wholereplay_new(void) {
    struct wholereplay *replay = NULL;
    struct job_memory *memory = NULL;
    if (job_run(wholereplay_begin, &replay, &memory, NULL) != 0) {
        return NULL;
    }
    replay->memory = memory;
    return replay;
}

void wholereplay_free(void *replay) {
    struct job_memory *memory = replay != NULL ? ((struct wholereplay *)replay)->memory : NULL;
    job_free(&memory);
}

static void wholereplay_free_pass(struct pass *pass) {
    if (pass != NULL) {
        pass_free(pass);
        job_release(pass);
    }
}

/* ---- Points in time ---- */

static struct memtrace_point wholereplay_point_of(const struct wholereplay *replay,
                                                  struct accounts_crest state) {
    return (struct memtrace_point){
        .time_ns = state.time_ns,
        .live_bytes = (uint64_t)wrap_add(replay->live, state.live),
        .alloc_count = slice_whole_count(state.alloc_units),
        .alloc_bytes = state.alloc_bytes,
    };
}

/* The heap as it is after the last event. */
static struct accounts_crest wholereplay_state_now(const struct accounts *accounts) {
    return (struct accounts_crest){accounts->live, accounts->now_ns, accounts->alloc_units,
                                   accounts->alloc_bytes};
}

/* Samples up to the end of the window that is over tell how much had been allocated by then. */
static void wholereplay_pass_samples(struct wholereplay_run *run, uint64_t time_ns) {
    struct wholereplay *replay = run->replay;
    while (replay->next_sample < run->sample_count &&
           run->samples[replay->next_sample].time_ns < time_ns) {
        struct memtrace_point *sample = &run->samples[replay->next_sample++];
        struct memtrace_point now =
            wholereplay_point_of(replay, wholereplay_state_now(&run->pass->accounts));
        now.time_ns = sample->time_ns;
        now.resident_bytes = sample->resident_bytes;
        *sample = now;
    }
}

/* The events since the last point become one. */
static void wholereplay_make_point(struct wholereplay_run *run) {
    struct wholereplay *replay = run->replay;
    struct accounts *accounts = &run->pass->accounts;
    struct accounts_crest crest = accounts_take_crest(accounts);
    struct memtrace_point last = wholereplay_point_of(replay, wholereplay_state_now(accounts));
    struct memtrace_point highest =
        crest.alloc_units != 0 ? wholereplay_point_of(replay, crest) : last;
    if (accounts->alloc_units == 0) {
        return; /* nothing happened yet */
    }
    /* Clocks are coarse, and those of threads differ: what the last event says may be earlier. */
    if (last.time_ns <= highest.time_ns) {
        last.time_ns = highest.time_ns + (last.live_bytes != highest.live_bytes);
    }
    timepoints_add(&run->index->points, replay->point_ns, &highest, &last);
}

static void wholereplay_pass_points(struct wholereplay_run *run, uint64_t time_ns) {
    struct wholereplay *replay = run->replay;
    if (time_ns >= replay->next_point_ns) {
        uint64_t length;
        wholereplay_make_point(run);
        length = UINT64_C(1) << run->index->points.shift;
        replay->point_ns = time_ns & ~(length - 1);
        replay->next_point_ns = replay->point_ns + length;
    }
}

/* ---- Slices ---- */

static void wholereplay_begin_slice(struct wholereplay_run *run, size_t edge) {
    uint64_t start_ns = edge != SIZE_MAX ? run->edges[edge] : run->replay->until_ns;
    run->edge_of[run->index->count - run->first_slice] = edge;
    index_begin(run->index, start_ns, run->pass);
}

static void wholereplay_end_slice(struct wholereplay_run *run) {
    struct index_entry *entry = &run->index->entries[run->index->count - 1];
    run->replay->live = wrap_add(run->replay->live, run->pass->accounts.live);
    run->replay->events += run->pass->events;
    pass_cut(run->pass, &entry->slice);
}

/* ---- Looking on ---- */

static void wholereplay_begin_window(void *context, uint64_t time_ns) {
    struct wholereplay_run *run = context;
    size_t next = run->next_edge;
    wholereplay_pass_samples(run, time_ns);
    wholereplay_pass_points(run, time_ns);
    while (next < run->edge_count && time_ns >= run->edges[next]) {
        next++;
    }
    if (next != run->next_edge) {
        run->next_edge = next;
        wholereplay_end_slice(run);
        wholereplay_begin_slice(run, next - 1);
    }
}

static int wholereplay_take_other(void *context, const struct timeorder_event *entry) {
    struct wholereplay_run *run = context;
    struct index_facts *facts = &run->index->facts;
    const struct event *event = &entry->event;
    if (event->kind == EVENT_LOST) {
        facts->lost_allocs += event->lost_allocs;
        facts->lost_frees += event->lost_frees;
    } else if (event->kind == EVENT_MARK) {
        struct timeorder_event mark = *entry; /* the text is the timeorder's */
        mark.event.text = texts_keep(&run->index->texts, event->text, strlen(event->text));
        marks_add(&run->index->marks, &mark);
        if (event->operation == MEMTRACE_MARK_SAMPLE && event->id != 0) {
            facts->sample_bytes = event->id; /* switched on meanwhile */
        }
    }
    return 0;
}

static void wholereplay_take_waited(void *context, struct event_block name,
                                    const struct pairing_end *end) {
    struct wholereplay_run *run = context;
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
static bool wholereplay_is_in_time(const struct wholereplay *replay, struct timeorder_parts parts) {
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
static bool wholereplay_are_streams_alike(const struct wholereplay *replay,
                                          const struct timeorder *order) {
    for (size_t i = 0; i < order->stream_count; i++) {
        const struct timeorder_stream *stream = &order->streams[i];
        uint32_t number = timeorder_header(order, order->blocks[stream->first_block])->stream;
        bool is_only = stream->thread >= THREADS || stream->thread == MEMTRACE_THREAD_OTHERS ||
                       order->stream_of[stream->thread] == i;
        if (i < replay->stream_count ? replay->streams[i] != number
                                     : replay->stream_count != 0 && !is_only) {
            return false;
        }
    }
    return order->stream_count >= replay->stream_count;
}

/* ---- Beginning ---- */

/* Those that are over are as they were told. false: they are not. */
static bool wholereplay_load_samples(struct wholereplay_run *run) {
    const struct index *index = run->index;
    run->samples = recorded_samples(run->order.parts, &run->sample_count);
    for (size_t i = 0; i < run->replay->next_sample; i++) {
        if (i >= run->sample_count || i >= index->sample_count ||
            run->samples[i].time_ns != index->samples[i].time_ns) {
            return false;
        }
        uint64_t resident_bytes = run->samples[i].resident_bytes;
        run->samples[i] = index->samples[i];
        run->samples[i].resident_bytes = resident_bytes;
    }
    return true;
}

/* What lasts goes from one pass to the next. */
static void wholereplay_hand_over(struct wholereplay *replay, struct pass *pass,
                                  size_t from_count) {
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
    peakbound_grow(&pass->bound, from_count, pass->stream_count);
    wholereplay_free_pass(before);
}

static void wholereplay_start_pass(struct wholereplay_run *run) {
    const struct timeorder *order = &run->order;
    struct wholereplay *replay = run->replay;
    struct pass *pass = run->pass = job_array(1, sizeof *pass);
    pass_start(pass, run->model, order->stream_count, 0, UINT64_MAX);
    if (replay->pass == NULL) {
        pass->inherited = run->model->header.inherited_blocks;
        peakbound_start(&pass->bound, pass->stream_count);
    } else {
        wholereplay_hand_over(replay, pass, replay->stream_count);
    }
    replay->pass = pass;
    job_release(replay->streams);
    replay->streams = job_array(order->stream_count + 1, sizeof *replay->streams);
    replay->stream_count = order->stream_count;
    for (size_t i = 0; i < order->stream_count; i++) {
        replay->streams[i] =
            timeorder_header(order, order->blocks[order->streams[i].first_block])->stream;
    }
}

/* ---- The run ---- */

/* Keeps what the next run needs, unless this was the last. */
static void wholereplay_finish(struct wholereplay_run *run, uint64_t repeated) {
    const struct timeorder *order = &run->order;
    struct wholereplay *replay = run->replay;
    struct index_facts *facts = &run->index->facts;
    struct pass *pass = run->pass;
    struct accounts *accounts = &pass->accounts;
    struct peakbound *bound = &pass->bound;
    replay->unreadable += order->damaged - repeated;
    facts->damaged = repeated + replay->unreadable;
    facts->gaps = order->gaps;
    facts->waiting = pairing_waiting(pass->pairing);
    facts->is_sampled |= accounts->is_sampled;
    facts->has_wrong_mapping = pass->has_wrong_mapping;
    facts->missing = pass->missing;
    facts->has_missing |= accounts->cells[pass->missing].class != 0;
    replay->now = wholereplay_state_now(accounts);
    replay->crest = accounts->crest;
    replay->until_ns = run->until_ns;
    replay->blocks = index_cover(order->parts, UINT64_MAX).blocks;
    accounts_end(accounts); /* their memory is needed no more, and much of it */
    if (run->until_ns == UINT64_MAX) {
        peakbound_error(bound, 0); /* ends the last window */
        facts->highest = bound->highest;
        facts->lowest = bound->lowest;
        facts->is_shared = bound->is_shared;
        wholereplay_free_pass(pass);
        replay->pass = NULL;
    }
}

static void wholereplay_run_in_job(void *what) {
    struct wholereplay_run *run = what;
    struct wholereplay *replay = run->replay;
    struct timeorder *order = &run->order;
    const struct replay_options *options = run->options;
    const struct pass_visitor visitor = {.other = wholereplay_take_other,
                                         .window = wholereplay_begin_window,
                                         .waited = wholereplay_take_waited,
                                         .context = run};
    uint64_t least_events =
        options != NULL && options->slice_events != 0 ? options->slice_events : INDEX_EVENTS;
    uint64_t repeated;
    if (!wholereplay_are_streams_alike(replay, order) ||
        !wholereplay_is_in_time(replay, order->parts) ||
        (run->index->facts.has_missing &&
         run->index->facts.missing != run->model->node_count - 1) ||
        !wholereplay_load_samples(run)) {
        run->result = WHOLEREPLAY_ANEW;
        return;
    }
    run->edges =
        index_edges(order->parts, replay->until_ns, least_events, INDEX_SLICES, &run->edge_count);
    run->edge_of = job_array(run->edge_count + 1, sizeof *run->edge_of);
    wholereplay_start_pass(run);
    repeated = order->damaged;
    order->skips_addresses = true;
    timeorder_note_places(order, run->edges, run->edge_count);
    wholereplay_begin_slice(run, SIZE_MAX);
    if (timeorder_seek(order, replay->place.bytes, replay->place.size, run->until_ns) != 0 ||
        pass_run(run->pass, order, &visitor, options, index_count_events(order->parts)) != 0) {
        job_fail("cancelled");
    }
    if (run->until_ns == UINT64_MAX) {
        wholereplay_pass_samples(run, UINT64_MAX);
        wholereplay_make_point(run);
    }
    wholereplay_end_slice(run);
    if (run->is_late) {
        run->result = WHOLEREPLAY_ANEW;
        return;
    }
    /* The places that the slices begin at become theirs. */
    for (size_t i = run->first_slice; i < run->index->count; i++) {
        struct varint_writer *place = &run->index->entries[i].place;
        size_t edge = run->edge_of[i - run->first_slice];
        if (edge == SIZE_MAX) {
            varint_put_bytes(place, replay->place.bytes, replay->place.size);
        } else {
            timeorder_take_place(order, edge, place);
        }
    }
    index_shrink(run->index);
    replay->place.size = 0;
    timeorder_put_place(order, &replay->place);
    wholereplay_finish(run, repeated);
    job_release(run->index->samples);
    run->index->samples = run->samples;
    run->index->sample_count = replay->next_sample;
    job_release(run->edges);
    job_release(run->edge_of);
    run->result = WHOLEREPLAY_OK;
}

enum wholereplay_result wholereplay_run(struct wholereplay *replay, const struct model *model,
                                        struct timeorder_parts parts, uint64_t until_ns,
                                        const struct replay_options *options) {
    struct wholereplay_run run = {.replay = replay,
                                  .index = replay->index,
                                  .model = model,
                                  .options = options,
                                  .until_ns = until_ns,
                                  .first_slice = replay->index->count};
    replay->events = 0;
    if (timeorder_start(&run.order, parts) != 0) {
        return WHOLEREPLAY_FAILED;
    }
    if (job_run(wholereplay_run_in_job, &run, &replay->memory, NULL) != 0) {
        run.result = WHOLEREPLAY_FAILED;
    }
    timeorder_end(&run.order);
    return run.result;
}

/* ---- As bytes ---- */

static void wholereplay_fields_crest(const struct fields *fields, struct accounts_crest *crest) {
    fields_u64(fields, (uint64_t *)&crest->live);
    fields_u64(fields, &crest->time_ns);
    fields_u64(fields, &crest->alloc_units);
    fields_u64(fields, &crest->alloc_bytes);
}

static void wholereplay_fields_living(const struct fields *fields, struct event_block *name,
                                      struct pairing_block *block) {
    fields_u64(fields, &name->number);
    fields_u32(fields, &name->thread);
    fields_u64(fields, &block->size);
    fields_u64(fields, &block->weight);
    fields_u32(fields, &block->context);
    fields_u32(fields, &block->tick);
}

static void wholereplay_fields_waiting(const struct fields *fields, struct event_block *name,
                                       struct pairing_end *end) {
    fields_u64(fields, &name->number);
    fields_u32(fields, &name->thread);
    fields_u32(fields, &end->thread);
    fields_u32(fields, &end->tick);
    fields_u64(fields, &end->time_ns);
}

static int wholereplay_put_living(void *fields, struct event_block name,
                                  const struct pairing_block *block) {
    struct pairing_block put = *block;
    wholereplay_fields_living(fields, &name, &put);
    return 0;
}

static int wholereplay_put_waiting(void *fields, struct event_block name,
                                   const struct pairing_end *end) {
    struct pairing_end put = *end;
    wholereplay_fields_waiting(fields, &name, &put);
    return 0;
}

static void wholereplay_fields_pairing(const struct fields *fields, struct pairing *pairing) {
    const struct pairing_visitor visitor = {.lives = wholereplay_put_living,
                                            .waits = wholereplay_put_waiting,
                                            .context = (void *)(uintptr_t)fields};
    uint64_t living = pairing_living(pairing);
    uint64_t waiting = pairing_waiting(pairing);
    struct event_block name;
    struct pairing_block block;
    struct pairing_end end;
    fields_u64(fields, &living);
    fields_u64(fields, &waiting);
    if (fields->out != NULL) {
        pairing_each(pairing, &visitor);
        return;
    }
    for (; living != 0 && !fields_failed(fields); living--) {
        wholereplay_fields_living(fields, &name, &block);
        fields_require(fields, pairing_add(pairing, name, &block, &end) == 0); /* none waits yet */
    }
    for (; waiting != 0 && !fields_failed(fields); waiting--) {
        wholereplay_fields_waiting(fields, &name, &end);
        pairing_wait(pairing, name, end);
    }
}

/* As they lie in memory: the machine that goes on is this one. */
static void wholereplay_fields_bound(const struct fields *fields, struct peakbound *bound,
                                     size_t streams) {
    const struct peakbound room = *bound;
    size_t current = bound->current != NULL ? (size_t)(bound->current - bound->streams) + 1 : 0;
    struct peakbound told = *bound;
    fields_raw(fields, bound->streams, streams * sizeof *bound->streams);
    fields_count(fields, &bound->active_count, 1, streams);
    fields_raw(fields, bound->active, bound->active_count * sizeof *bound->active);
    fields_size(fields, &current);
    fields_raw(fields, &told, sizeof told);
    fields_require(fields, current <= streams);
    if (fields->in == NULL || fields_failed(fields)) {
        return;
    }
    told.streams = room.streams;
    told.active = room.active;
    told.active_count = bound->active_count;
    told.current = current != 0 ? &told.streams[current - 1] : NULL;
    *bound = told;
    for (size_t i = 0; i < bound->active_count; i++) {
        fields_require(fields, bound->active[i] < streams);
    }
}

/* What stands behind the index. */
static void wholereplay_fields(const struct fields *fields, struct wholereplay *replay) {
    struct pass *pass = replay->pass;
    fields_u64(fields, &replay->until_ns);
    fields_u64(fields, &replay->unreadable);
    fields_u64(fields, (uint64_t *)&replay->live);
    wholereplay_fields_crest(fields, &replay->now);
    wholereplay_fields_crest(fields, &replay->crest);
    fields_u64(fields, &replay->point_ns);
    fields_u64(fields, &replay->next_point_ns);
    fields_size(fields, &replay->next_sample);
    fields_count(fields, &replay->stream_count, 1, SIZE_MAX);
    if (fields->in != NULL) {
        replay->streams = job_array(replay->stream_count + 1, sizeof *replay->streams);
        pass->newest = job_array(replay->stream_count + 1, sizeof *pass->newest);
        pass->pairing = pairing_new();
        peakbound_start(&pass->bound, replay->stream_count);
    }
    for (size_t i = 0; i < replay->stream_count; i++) {
        fields_u32(fields, &replay->streams[i]);
        fields_u64(fields, &pass->newest[i]);
    }
    fields_bytes(fields, &replay->place);
    wholereplay_fields_bound(fields, &pass->bound, replay->stream_count);
    index_fields_mappings(fields, &pass->mappings);
    fields_u64(fields, &pass->inherited);
    fields_bool(fields, &pass->has_wrong_mapping);
    wholereplay_fields_pairing(fields, pass->pairing);
}

void wholereplay_pack(const struct wholereplay *replay, struct timeorder_parts parts,
                      struct varint_writer *bytes) {
    const struct fields fields = {.out = bytes};
    index_pack(replay->index, index_cover(parts, replay->blocks), bytes);
    wholereplay_fields(&fields, (struct wholereplay *)(uintptr_t)replay);
}

struct wholereplay_bytes {
    const unsigned char *bytes;
    size_t size;
    struct timeorder_parts parts;
    struct wholereplay *replay;
};

static void wholereplay_unpack_in_job(void *what) {
    struct wholereplay_bytes *from = what;
    struct wholereplay *replay = from->replay = job_alloc(sizeof *replay);
    struct index_cover cover = {0};
    bool failed = false;
    struct varint_reader rest = {.failed = &failed};
    replay->index = index_unpack(from->bytes, from->size, &cover, &rest);
    replay->blocks = cover.blocks;
    if (replay->index != NULL && index_covers(cover, index_cover(from->parts, cover.blocks))) {
        replay->pass = job_array(1, sizeof *replay->pass);
        wholereplay_fields(&(struct fields){.in = &rest}, replay);
    } else {
        failed = true;
    }
    if (failed) {
        job_fail("what was kept of a recording is damaged, or of another one");
    }
}

struct wholereplay *wholereplay_unpack(const unsigned char *bytes, size_t size,
                                       struct timeorder_parts parts) {
    struct wholereplay_bytes from = {.bytes = bytes, .size = size, .parts = parts};
    struct job_memory *memory = NULL;
    if (job_run(wholereplay_unpack_in_job, &from, &memory, NULL) != 0) {
        return NULL;
    }
    from.replay->memory = memory;
    return from.replay;
}
