/* SPDX-License-Identifier: MIT */
/* index.c: where slices begin and in which state; an index as bytes. See index.h. */
#include "analyze/window/index.h"

#include "analyze/base/job.h"

#define XXH_INLINE_ALL
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* ---- Edges ---- */

/* A block of events by its beginning. */
struct index_run {
    uint64_t first_ns;
    uint64_t items;
};

static int index_by_beginning(const void *left, const void *right) {
    const struct index_run *a = left;
    const struct index_run *b = right;
    if (a->first_ns != b->first_ns) {
        return a->first_ns < b->first_ns ? -1 : 1;
    }
    return (a->items > b->items) - (a->items < b->items);
}

/* All runs by time. A long block's events are spread over its time. */
static struct index_run *index_runs(struct timeorder_parts parts, size_t *count) {
    enum { PIECES = 8 };
    struct index_run *runs;
    size_t most = 0;
    for (size_t part = 0; part < parts.count; part++) {
        most += parts.items[part]->block_count;
    }
    *count = 0;
    runs = job_array(most * PIECES + 1, sizeof *runs);
    for (size_t part = 0; part < parts.count; part++) {
        for (size_t i = 0; i < parts.items[part]->block_count; i++) {
            const struct memtrace_block_header *block = &parts.items[part]->blocks[i].block;
            uint64_t first = block->first_ns;
            uint64_t length = block->last_ns > first ? block->last_ns - first : 0;
            for (unsigned at = 0; at < PIECES && block->kind == MEMTRACE_BLOCK_EVENTS; at++) {
                runs[(*count)++] =
                    (struct index_run){first + length / PIECES * at, block->items / PIECES + 1};
            }
        }
    }
    qsort(runs, *count, sizeof *runs, index_by_beginning);
    return runs;
}

uint64_t *index_edges(struct timeorder_parts parts, uint64_t from_ns, uint64_t least_events,
                      size_t most, size_t *count) {
    const uint64_t tick = UINT64_C(1) << MEMTRACE_TICK_SHIFT;
    uint64_t *edges = job_array(most, sizeof *edges);
    size_t run_count;
    struct index_run *runs = index_runs(parts, &run_count);
    uint64_t share = 0;
    uint64_t sum = 0;
    *count = 0;
    for (size_t i = 0; i < run_count; i++) {
        share += runs[i].items;
    }
    share = share / most > least_events ? share / most : least_events;
    for (size_t i = 0; i < run_count && *count < most - 1; i++) {
        uint64_t edge = runs[i].first_ns & ~(tick - 1);
        if (runs[i].first_ns < from_ns) {
            continue;
        }
        if (sum >= share && edge > (*count != 0 ? edges[*count - 1] : from_ns)) {
            edges[(*count)++] = edge;
            sum = 0;
        }
        sum += runs[i].items;
    }
    job_release(runs);
    return edges;
}

struct index_edge {
    struct timeorder_parts parts;
    uint64_t from_ns, least_events, edge_ns;
};

static void index_find_edge(void *what) {
    struct index_edge *wanted = what;
    size_t count;
    const uint64_t *edges =
        index_edges(wanted->parts, wanted->from_ns, wanted->least_events, INDEX_SLICES, &count);
    wanted->edge_ns = count != 0 ? edges[0] : 0;
}

uint64_t index_first_edge(struct timeorder_parts parts, uint64_t from_ns, uint64_t least_events) {
    struct index_edge wanted = {parts, from_ns, least_events, 0};
    return job_run(index_find_edge, &wanted, NULL, NULL) == 0 ? wanted.edge_ns : 0;
}

/* ---- The state of a pass ---- */

void index_fields_mappings(const struct fields *fields, struct mappinglist *mappings) {
    size_t count = mappings->count;
    fields_size(fields, &count);
    for (size_t i = 0; i < count && !fields_failed(fields); i++) {
        struct mapping mapping = fields->out != NULL ? mappings->items[i] : (struct mapping){0};
        uint64_t size = mapping.end - mapping.start;
        fields_u64(fields, &mapping.start);
        fields_u64(fields, &size);
        fields_u64(fields, &mapping.born_ns);
        fields_u32(fields, &mapping.context);
        fields_bool(fields, &mapping.is_rest);
        fields_require(fields,
                       size != 0 && !__builtin_add_overflow(mapping.start, size, &mapping.end));
        if (fields->in != NULL && !fields_failed(fields)) {
            mappinglist_add(mappings, &mapping);
        }
    }
}

/* Of a pass, where a slice begins. */
static void index_fields_state(const struct fields *fields, struct pass *pass) {
    fields_u64(fields, &pass->inherited);
    for (size_t i = 0; i < pass->stream_count; i++) {
        fields_u64(fields, &pass->newest[i]);
    }
    index_fields_mappings(fields, &pass->mappings);
}

/* An end that came before its beginning. */
static void index_fields_waited(const struct fields *fields, struct event_block *name,
                                struct pairing_end *end) {
    fields_u32(fields, &name->thread);
    fields_u64(fields, &name->number);
    fields_u32(fields, &end->thread);
    fields_u32(fields, &end->tick);
    fields_u64(fields, &end->time_ns);
}

struct index_entry *index_begin(struct index *index, uint64_t start_ns, struct pass *pass) {
    struct index_entry *entry;
    job_grow(&index->entries, &index->room, index->count, sizeof *index->entries);
    entry = &index->entries[index->count++];
    *entry = (struct index_entry){
        .start_ns = start_ns, .place.of_job = true, .state.of_job = true, .waited.of_job = true};
    index_fields_state(&(struct fields){.out = &entry->state}, pass);
    return entry;
}

void index_note_waited(struct index_entry *entry, struct event_block name,
                       const struct pairing_end *end) {
    struct pairing_end noted = *end;
    index_fields_waited(&(struct fields){.out = &entry->waited}, &name, &noted);
}

void index_restore(const struct index_entry *entry, struct pass *pass) {
    bool failed = false;
    const struct varint_writer *state = &entry->state;
    const struct varint_writer *waited = &entry->waited;
    struct varint_reader reader = {state->bytes, state->bytes + state->size, &failed};
    const struct fields fields = {.in = &reader};
    index_fields_state(&fields, pass);
    for (size_t i = 0; i < pass->mappings.count; i++) {
        uint32_t context = pass->mappings.items[i].context;
        failed |=
            context > pass->missing || accounts_class(&pass->accounts, context) != MODEL_MAPPING;
    }
    reader.next = waited->bytes;
    reader.end = waited->size != 0 ? waited->bytes + waited->size : waited->bytes;
    while (reader.next != reader.end && !failed) {
        struct event_block name;
        struct pairing_end end;
        index_fields_waited(&fields, &name, &end);
        pairing_wait(pass->pairing, name, end);
    }
    if (failed) {
        job_fail("an index is damaged");
    }
}

/* ---- Size ---- */

enum { GROUP = 8, GROUP_LEVELS = 3 };

struct index_groups {
    struct index_level {
        struct slice *sums;
        size_t count;
    } levels[GROUP_LEVELS]; /* of GROUP, GROUP^2, ... slices */
};

/* What does not go with the job. */
static void index_end(void *what) {
    struct index *index = what;
    job_free(&index->fine_memory);
    job_free(&index->group_memory);
    job_free(&index->halved);
    texts_free(&index->texts);
}

struct index *index_new(void) {
    struct index *index = job_alloc(sizeof *index);
    timepoints_start(&index->points);
    job_undo(index_end, index);
    return index;
}

void index_free_entry(struct index_entry *entry) {
    job_release(entry->place.bytes);
    job_release(entry->state.bytes);
    job_release(entry->waited.bytes);
    slice_free(&entry->slice);
}

static size_t index_size(const struct index *index) {
    size_t size = 0;
    for (size_t i = 0; i < index->count; i++) {
        const struct index_entry *entry = &index->entries[i];
        size += entry->place.size + entry->state.size + entry->waited.size + entry->slice.size;
    }
    return size;
}

/* The second one's events are the first one's, too. */
static void index_join_neighbours(void *what) {
    struct index *index = what;
    size_t kept = 0;
    for (size_t i = 0; i < index->count; i += 2) {
        struct index_entry *entry = &index->entries[i];
        struct index_entry *next = &index->entries[i + 1];
        if (i + 1 < index->count) {
            slice_join(&entry->slice, &next->slice);
            varint_put_bytes(&entry->waited, next->waited.bytes, next->waited.size);
            index_free_entry(next);
        }
        index->entries[kept++] = *entry;
    }
    index->count = kept;
}

int index_halve(struct index *index) {
    return job_run(index_join_neighbours, index, &index->halved, NULL);
}

void index_shrink(struct index *index) {
    while (index->count > 1 && (index->count > INDEX_SLICES || index_size(index) > INDEX_BYTES)) {
        index_join_neighbours(index);
    }
}

/* One that was shrunk has about half of its bytes, at least. */
bool index_is_coarse(const struct index *index) {
    uint64_t events = 0;
    uint64_t possible;
    for (size_t i = 0; i < index->count; i++) {
        events += index->entries[i].slice.events;
    }
    possible = events / INDEX_EVENTS < INDEX_SLICES ? events / INDEX_EVENTS : INDEX_SLICES;
    return possible / 4 >= index->count && index_size(index) < INDEX_BYTES / 4;
}

/* ---- Sums of neighbours ---- */

struct index_grouping {
    const struct index *index;
    const struct replay_options *options;
    struct index_groups *groups;
};

/* Of the first GROUP. */
static struct slice index_sum_group(const struct slice *slices) {
    struct slice copies[GROUP];
    for (size_t i = 0; i < GROUP; i++) {
        copies[i] = slices[i];
        copies[i].bytes = job_array(slices[i].size + 1, 1);
        if (slices[i].size != 0) {
            memcpy(copies[i].bytes, slices[i].bytes, slices[i].size);
        }
    }
    for (size_t step = 1; step < GROUP; step *= 2) {
        for (size_t i = 0; i < GROUP; i += 2 * step) {
            slice_join(&copies[i], &copies[i + step]);
        }
    }
    return copies[0];
}

static void index_sum_groups(void *what) {
    struct index_grouping *grouping = what;
    const struct index *index = grouping->index;
    struct index_groups *groups = grouping->groups = job_alloc(sizeof *groups);
    struct slice *slices = job_array(index->count + 1, sizeof *slices); /* bytes are the index's */
    const struct slice *below = slices;
    size_t count = index->count;
    for (size_t i = 0; i < index->count; i++) {
        slices[i] = index->entries[i].slice;
    }
    for (size_t i = 0; i < GROUP_LEVELS && count >= GROUP; i++) {
        struct index_level *level = &groups->levels[i];
        level->sums = job_array(count / GROUP + 1, sizeof *level->sums);
        while ((level->count + 1) * GROUP <= count) {
            if (grouping->options != NULL && replay_is_cancelled(grouping->options)) {
                job_fail("cancelled");
            }
            level->sums[level->count] = index_sum_group(&below[level->count * GROUP]);
            level->count++;
        }
        below = level->sums;
        count = level->count;
    }
    job_release(slices);
}

void index_group(struct index *index, const struct replay_options *options) {
    struct index_grouping grouping = {.index = index, .options = options};
    /* Of a sample, variances would be added up in another order, and differ in their last digits.
     */
    if (!index->facts.is_sampled &&
        job_run(index_sum_groups, &grouping, &index->group_memory, NULL) == 0) {
        atomic_store(&index->groups, grouping.groups);
    }
}

const struct slice *index_group_at(const struct index *index, size_t at, size_t most,
                                   size_t *width) {
    const struct index_groups *groups = atomic_load(&index->groups);
    const struct slice *found = NULL;
    size_t size = GROUP;
    for (size_t i = 0; groups != NULL && i < GROUP_LEVELS && size <= most; i++, size *= GROUP) {
        if (at % size == 0 && at / size < groups->levels[i].count) {
            found = &groups->levels[i].sums[at / size];
            *width = size;
        }
    }
    return found;
}

/* ---- Of which events ---- */

uint64_t index_count_events(struct timeorder_parts parts) {
    uint64_t count = 0;
    for (size_t part = 0; part < parts.count; part++) {
        for (size_t i = 0; i < parts.items[part]->block_count; i++) {
            const struct memtrace_block_header *block = &parts.items[part]->blocks[i].block;
            count += block->kind == MEMTRACE_BLOCK_EVENTS ? block->items : 0;
        }
    }
    return count;
}

struct index_cover index_cover(struct timeorder_parts parts, uint64_t most_blocks) {
    XXH3_state_t state;
    struct index_cover cover = {0};
    XXH128_hash_t hash;
    XXH3_128bits_reset(&state);
    for (size_t part = 0; part < parts.count && cover.blocks < most_blocks; part++) {
        const struct recording *recording = parts.items[part];
        XXH3_128bits_update(&state, &recording->header, sizeof recording->header);
        for (size_t i = 0; i < recording->block_count && cover.blocks < most_blocks; i++) {
            const struct recording_entry *entry = &recording->blocks[i];
            if (index_is_covered(&entry->block)) {
                XXH3_128bits_update(&state, &entry->offset, sizeof entry->offset);
                XXH3_128bits_update(&state, &entry->block, sizeof entry->block);
                cover.blocks++;
            }
        }
    }
    hash = XXH3_128bits_digest(&state);
    cover.hash[0] = hash.low64;
    cover.hash[1] = hash.high64;
    return cover;
}

/* ---- As bytes ---- */

enum { PACKED_VERSION = 1 };

static void index_fields_facts(const struct fields *fields, struct index_facts *facts) {
    unsigned char flags = (unsigned char)(facts->is_shared | facts->is_sampled << 1 |
                                          facts->has_wrong_mapping << 2 | facts->has_missing << 3);
    fields_u64(fields, &facts->lost_allocs);
    fields_u64(fields, &facts->lost_frees);
    fields_u64(fields, &facts->sample_bytes);
    fields_u64(fields, &facts->waiting);
    fields_u64(fields, &facts->damaged);
    fields_u64(fields, &facts->gaps);
    fields_signed(fields, &facts->highest);
    fields_signed(fields, &facts->lowest);
    fields_raw(fields, &flags, 1);
    fields_u32(fields, &facts->missing);
    if (fields->in != NULL) {
        facts->is_shared = (flags & 1) != 0;
        facts->is_sampled = (flags & 2) != 0;
        facts->has_wrong_mapping = (flags & 4) != 0;
        facts->has_missing = (flags & 8) != 0;
    }
}

static void index_fields_point(const struct fields *fields, struct memtrace_point *point) {
    fields_u64(fields, &point->time_ns);
    fields_u64(fields, &point->live_bytes);
    fields_u64(fields, &point->alloc_count);
    fields_u64(fields, &point->alloc_bytes);
}

static void index_fields_points(const struct fields *fields, struct timepoints *points) {
    fields_u32(fields, &points->shift);
    fields_count(fields, &points->count, 9, TIMEPOINTS_PIECES);
    fields_require(fields, points->shift >= MEMTRACE_TICK_SHIFT && points->shift <= 63);
    for (size_t i = 0; i < points->count && !fields_failed(fields); i++) {
        struct timepoints_piece *piece = &points->pieces[i];
        fields_u64(fields, &piece->number);
        index_fields_point(fields, &piece->highest);
        index_fields_point(fields, &piece->last);
    }
}

static void index_fields_samples(const struct fields *fields, struct index *index) {
    fields_count(fields, &index->sample_count, 4, SIZE_MAX);
    if (fields->in != NULL) {
        index->samples = job_array(index->sample_count + 1, sizeof *index->samples);
    }
    for (size_t i = 0; i < index->sample_count; i++) {
        index_fields_point(fields, &index->samples[i]);
    }
}

static void index_fields_marks(const struct fields *fields, struct index *index) {
    struct marks *marks = &index->marks;
    fields_u64(fields, &marks->total);
    fields_count(fields, &marks->count, 5, MODEL_MARKS);
    fields_require(fields, marks->total >= marks->count);
    if (fields->in != NULL) {
        marks->room = marks->count + 1;
        marks->items = job_array(marks->room, sizeof *marks->items);
    }
    for (size_t i = 0; i < marks->count && !fields_failed(fields); i++) {
        struct model_mark *mark = &marks->items[i];
        uint64_t length = fields->out != NULL ? strlen(mark->name) : 0;
        fields_u64(fields, &mark->time_ns);
        fields_u32(fields, &mark->thread);
        fields_u32(fields, &mark->what);
        fields_u64(fields, &mark->id);
        fields_u64(fields, &length);
        if (fields->out != NULL) {
            varint_put_bytes(fields->out, mark->name, length);
        } else {
            const char *name = varint_get_bytes(fields->in, length);
            mark->what &= UINT8_MAX;
            mark->name = name != NULL ? texts_keep(&index->texts, name, (size_t)length) : "";
        }
    }
}

void index_fields_slice(const struct fields *fields, struct slice *slice) {
    struct varint_writer bytes = {.bytes = slice->bytes, .size = slice->size};
    unsigned char at_maximum = slice->at_maximum;
    fields_u32(fields, &slice->first_tick);
    fields_u32(fields, &slice->last_tick);
    fields_u64(fields, &slice->events);
    fields_signed(fields, &slice->change);
    fields_signed(fields, &slice->highest);
    fields_u64(fields, &slice->maximum_ns);
    fields_raw(fields, &at_maximum, 1);
    fields_u64(fields, &slice->error_bytes);
    fields_double(fields, &slice->variance.total);
    fields_double(fields, &slice->variance.allocations);
    fields_double(fields, &slice->variance.live);
    fields_double(fields, &slice->variance.maximum);
    fields_u64(fields, &slice->contexts);
    fields_u64(fields, &slice->threads);
    fields_bytes(fields, &bytes);
    if (fields->in != NULL) {
        slice->at_maximum = at_maximum != 0;
        slice->bytes = bytes.bytes;
        slice->size = bytes.size;
        fields_require(fields, slice->highest >= 0);
    }
}

static void index_fields_entries(const struct fields *fields, struct index *index) {
    size_t count = index->count;
    fields_count(fields, &count, 50, INDEX_SLICES);
    fields_require(fields, count != 0);
    if (fields->in != NULL) {
        index->entries = job_array(count + 1, sizeof *index->entries);
        index->room = count + 1;
    }
    for (size_t i = 0; i < count && !fields_failed(fields); i++) {
        struct index_entry *entry = &index->entries[i];
        fields_u64(fields, &entry->start_ns);
        fields_bytes(fields, &entry->place);
        fields_bytes(fields, &entry->state);
        fields_bytes(fields, &entry->waited);
        index_fields_slice(fields, &entry->slice);
        fields_require(fields,
                       i == 0 ? entry->start_ns == 0
                              : entry->start_ns > entry[-1].start_ns && entry->place.size != 0);
        if (fields->in != NULL) {
            index->count++;
        }
    }
}

static void index_fields(const struct fields *fields, struct index *index) {
    index_fields_facts(fields, &index->facts);
    index_fields_points(fields, &index->points);
    index_fields_samples(fields, index);
    index_fields_marks(fields, index);
    index_fields_slice(fields, &index->all);
    index_fields_entries(fields, index);
}

void index_pack(const struct index *index, struct index_cover cover, struct varint_writer *bytes) {
    const struct fields fields = {.out = bytes};
    varint_put(bytes, PACKED_VERSION);
    varint_put(bytes, cover.blocks);
    varint_put_bytes(bytes, cover.hash, sizeof cover.hash);
    index_fields(&fields, (struct index *)(uintptr_t)index);
}

struct index *index_unpack(const unsigned char *bytes, size_t size, struct index_cover *cover,
                           struct varint_reader *reader) {
    const struct fields fields = {.in = reader};
    struct index *index = index_new();
    *reader->failed = false;
    reader->next = bytes;
    reader->end = bytes + size;
    if (varint_get(reader) != PACKED_VERSION) {
        return NULL;
    }
    fields_u64(&fields, &cover->blocks);
    fields_raw(&fields, cover->hash, sizeof cover->hash);
    index_fields(&fields, index);
    return *reader->failed ? NULL : index;
}
