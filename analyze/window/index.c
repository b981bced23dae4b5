/* SPDX-License-Identifier: MIT */
/* index.c: where slices begin and in which state; an index as bytes. See index.h. */
#include "analyze/window/index.h"

#include "analyze/base/job.h"
#include "analyze/window/fineindex.h"

#define XXH_INLINE_ALL
#include <math.h>
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

void index_put_mappings(struct varint_writer *writer, const struct mappinglist *mappings) {
    varint_put(writer, mappings->count);
    for (size_t i = 0; i < mappings->count; i++) {
        const struct mapping *mapping = &mappings->items[i];
        varint_put(writer, mapping->start);
        varint_put(writer, mapping->end - mapping->start);
        varint_put(writer, mapping->born_ns);
        varint_put(writer, mapping->context);
        varint_put(writer, mapping->is_rest);
    }
}

void index_get_mappings(struct varint_reader *reader, struct mappinglist *mappings) {
    uint64_t count = varint_get(reader);
    for (uint64_t i = 0; i < count && !*reader->failed; i++) {
        struct mapping mapping = {.start = varint_get(reader)};
        uint64_t size = varint_get(reader);
        mapping.born_ns = varint_get(reader);
        mapping.context = (uint32_t)varint_get(reader);
        mapping.is_rest = varint_get(reader) != 0;
        *reader->failed |= size == 0 || __builtin_add_overflow(mapping.start, size, &mapping.end);
        if (!*reader->failed) {
            mappinglist_add(mappings, &mapping);
        }
    }
}

struct index_entry *index_begin(struct index *index, uint64_t start_ns, const struct pass *pass) {
    struct index_entry *entry;
    job_grow(&index->entries, &index->room, index->count, sizeof *index->entries);
    entry = &index->entries[index->count++];
    *entry = (struct index_entry){
        .start_ns = start_ns, .place.of_job = true, .state.of_job = true, .waited.of_job = true};
    varint_put(&entry->state, pass->inherited);
    for (size_t i = 0; i < pass->stream_count; i++) {
        varint_put(&entry->state, pass->newest[i]);
    }
    index_put_mappings(&entry->state, &pass->mappings);
    return entry;
}

void index_note_waited(struct index_entry *entry, struct event_block name,
                       const struct pairing_end *end) {
    varint_put(&entry->waited, name.thread);
    varint_put(&entry->waited, name.number);
    varint_put(&entry->waited, end->thread);
    varint_put(&entry->waited, end->tick);
    varint_put(&entry->waited, end->time_ns);
}

void index_restore(const struct index_entry *entry, struct pass *pass) {
    bool failed = false;
    const struct varint_writer *state = &entry->state;
    const struct varint_writer *waited = &entry->waited;
    struct varint_reader reader = {state->bytes, state->bytes + state->size, &failed};
    pass->inherited = varint_get(&reader);
    for (size_t i = 0; i < pass->stream_count; i++) {
        pass->newest[i] = varint_get(&reader);
    }
    index_get_mappings(&reader, &pass->mappings);
    for (size_t i = 0; i < pass->mappings.count; i++) {
        uint32_t context = pass->mappings.items[i].context;
        failed |=
            context > pass->missing || accounts_class(&pass->accounts, context) != MODEL_MAPPING;
    }
    reader.next = waited->bytes;
    reader.end = waited->size != 0 ? waited->bytes + waited->size : waited->bytes;
    while (reader.next != reader.end && !failed) {
        struct event_block name = {.thread = (uint32_t)varint_get(&reader)};
        struct pairing_end end;
        name.number = varint_get(&reader);
        end.thread = (uint32_t)varint_get(&reader);
        end.tick = (uint32_t)varint_get(&reader);
        end.time_ns = varint_get(&reader);
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
    struct job_memory *memory;
};

/* What does not go with the job. */
static void index_end(void *what) {
    struct index *index = what;
    fineindex_free(index->fine);
    if (index->groups != NULL) {
        struct job_memory *memory = index->groups->memory;
        job_free(&memory);
    }
    texts_free(&index->texts);
    job_free(&index->halved);
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
    struct job_memory *memory = NULL;
    struct index_groups *nobody = NULL;
    /* Of a sample, variances would be added up in another order, and differ in their last digits.
     */
    if (index->facts.is_sampled || job_run(index_sum_groups, &grouping, &memory, NULL) != 0) {
        return;
    }
    grouping.groups->memory = memory;
    if (!atomic_compare_exchange_strong(&index->groups, &nobody, grouping.groups)) {
        job_free(&memory);
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

/* ---- Into bytes ---- */

enum { PACKED_VERSION = 1 };

static void index_put_double(struct varint_writer *bytes, double value) {
    varint_put_bytes(bytes, &value, sizeof value);
}

void index_put_bytes(struct varint_writer *writer, const struct varint_writer *bytes) {
    varint_put(writer, bytes->size);
    varint_put_bytes(writer, bytes->bytes, bytes->size);
}

static void index_put_facts(struct varint_writer *bytes, const struct index_facts *facts) {
    varint_put(bytes, facts->lost_allocs);
    varint_put(bytes, facts->lost_frees);
    varint_put(bytes, facts->sample_bytes);
    varint_put(bytes, facts->waiting);
    varint_put(bytes, facts->damaged);
    varint_put(bytes, facts->gaps);
    varint_put_signed(bytes, facts->highest);
    varint_put_signed(bytes, facts->lowest);
    varint_put_byte(bytes,
                    (unsigned char)(facts->is_shared | facts->is_sampled << 1 |
                                    facts->has_wrong_mapping << 2 | facts->has_missing << 3));
    varint_put(bytes, facts->missing);
}

static void index_put_point(struct varint_writer *bytes, const struct memtrace_point *point) {
    varint_put(bytes, point->time_ns);
    varint_put(bytes, point->live_bytes);
    varint_put(bytes, point->alloc_count);
    varint_put(bytes, point->alloc_bytes);
}

static void index_put_marks(struct varint_writer *bytes, const struct marks *marks) {
    varint_put(bytes, marks->total);
    varint_put(bytes, marks->count);
    for (size_t i = 0; i < marks->count; i++) {
        const struct model_mark *mark = &marks->items[i];
        size_t length = strlen(mark->name);
        varint_put(bytes, mark->time_ns);
        varint_put(bytes, mark->thread);
        varint_put(bytes, mark->what);
        varint_put(bytes, mark->id);
        varint_put(bytes, length);
        varint_put_bytes(bytes, mark->name, length);
    }
}

void index_put_slice(struct varint_writer *bytes, const struct slice *slice) {
    const struct varint_writer packed = {.bytes = slice->bytes, .size = slice->size};
    varint_put(bytes, slice->first_tick);
    varint_put(bytes, slice->last_tick);
    varint_put(bytes, slice->events);
    varint_put_signed(bytes, slice->change);
    varint_put_signed(bytes, slice->highest);
    varint_put(bytes, slice->maximum_ns);
    varint_put_byte(bytes, slice->at_maximum);
    varint_put(bytes, slice->error_bytes);
    index_put_double(bytes, slice->variance.total);
    index_put_double(bytes, slice->variance.allocations);
    index_put_double(bytes, slice->variance.live);
    index_put_double(bytes, slice->variance.maximum);
    varint_put(bytes, slice->contexts);
    varint_put(bytes, slice->threads);
    index_put_bytes(bytes, &packed);
}

void index_pack(const struct index *index, struct index_cover cover, struct varint_writer *bytes) {
    varint_put(bytes, PACKED_VERSION);
    varint_put(bytes, cover.blocks);
    varint_put_bytes(bytes, cover.hash, sizeof cover.hash);
    index_put_facts(bytes, &index->facts);
    varint_put(bytes, index->points.shift);
    varint_put(bytes, index->points.count);
    for (size_t i = 0; i < index->points.count; i++) {
        const struct timepoints_piece *piece = &index->points.pieces[i];
        varint_put(bytes, piece->number);
        index_put_point(bytes, &piece->highest);
        index_put_point(bytes, &piece->last);
    }
    varint_put(bytes, index->sample_count);
    for (size_t i = 0; i < index->sample_count; i++) {
        index_put_point(bytes, &index->samples[i]);
    }
    index_put_marks(bytes, &index->marks);
    index_put_slice(bytes, &index->all);
    varint_put(bytes, index->count);
    for (size_t i = 0; i < index->count; i++) {
        const struct index_entry *entry = &index->entries[i];
        varint_put(bytes, entry->start_ns);
        index_put_bytes(bytes, &entry->place);
        index_put_bytes(bytes, &entry->state);
        index_put_bytes(bytes, &entry->waited);
        index_put_slice(bytes, &entry->slice);
    }
}

/* ---- From bytes ---- */

static double index_get_double(struct varint_reader *reader) {
    const void *at = varint_get_bytes(reader, sizeof(double));
    double value = 0;
    if (at != NULL) {
        memcpy(&value, at, sizeof value);
    }
    *reader->failed |= !isfinite(value);
    return value;
}

void index_get_bytes(struct varint_reader *reader, struct varint_writer *bytes) {
    uint64_t size = varint_get(reader);
    const void *at = varint_get_bytes(reader, size);
    *bytes = (struct varint_writer){.of_job = true};
    if (at != NULL && size != 0) {
        bytes->bytes = job_array(size, 1);
        bytes->size = bytes->capacity = (size_t)size;
        memcpy(bytes->bytes, at, size);
    }
}

static void index_get_facts(struct varint_reader *reader, struct index_facts *facts) {
    unsigned flags;
    facts->lost_allocs = varint_get(reader);
    facts->lost_frees = varint_get(reader);
    facts->sample_bytes = varint_get(reader);
    facts->waiting = varint_get(reader);
    facts->damaged = varint_get(reader);
    facts->gaps = varint_get(reader);
    facts->highest = varint_get_signed(reader);
    facts->lowest = varint_get_signed(reader);
    flags = varint_get_byte(reader);
    facts->is_shared = (flags & 1) != 0;
    facts->is_sampled = (flags & 2) != 0;
    facts->has_wrong_mapping = (flags & 4) != 0;
    facts->has_missing = (flags & 8) != 0;
    facts->missing = (uint32_t)varint_get(reader);
}

static struct memtrace_point index_get_point(struct varint_reader *reader) {
    struct memtrace_point point = {.time_ns = varint_get(reader)};
    point.live_bytes = varint_get(reader);
    point.alloc_count = varint_get(reader);
    point.alloc_bytes = varint_get(reader);
    return point;
}

/* How many items follow, each of at least so many bytes: no more than there is room for. */
static size_t index_get_count(struct varint_reader *reader, size_t least_bytes, size_t most) {
    uint64_t count = varint_get(reader);
    if (count > most || count > (uint64_t)(reader->end - reader->next) / least_bytes) {
        *reader->failed = true;
        return 0;
    }
    return (size_t)count;
}

static void index_get_points(struct varint_reader *reader, struct timepoints *points) {
    uint64_t shift = varint_get(reader);
    points->count = index_get_count(reader, 9, TIMEPOINTS_PIECES);
    points->shift = (unsigned)shift;
    *reader->failed |= shift < MEMTRACE_TICK_SHIFT || shift > 63;
    for (size_t i = 0; i < points->count && !*reader->failed; i++) {
        struct timepoints_piece *piece = &points->pieces[i];
        piece->number = varint_get(reader);
        piece->highest = index_get_point(reader);
        piece->last = index_get_point(reader);
    }
}

static void index_get_samples(struct varint_reader *reader, struct index *index) {
    index->sample_count = index_get_count(reader, 4, SIZE_MAX);
    index->samples = job_array(index->sample_count + 1, sizeof *index->samples);
    for (size_t i = 0; i < index->sample_count; i++) {
        index->samples[i] = index_get_point(reader);
    }
}

static void index_get_marks(struct varint_reader *reader, struct index *index) {
    uint64_t total = varint_get(reader);
    size_t count = index_get_count(reader, 5, MODEL_MARKS);
    for (size_t i = 0; i < count && !*reader->failed; i++) {
        struct timeorder_event mark = {.event.time_ns = varint_get(reader)};
        uint64_t length;
        const char *name;
        mark.thread = (uint32_t)varint_get(reader);
        mark.event.operation = (uint8_t)varint_get(reader);
        mark.event.id = varint_get(reader);
        length = varint_get(reader);
        name = varint_get_bytes(reader, length);
        mark.event.text = name != NULL ? texts_keep(&index->texts, name, (size_t)length) : "";
        marks_add(&index->marks, &mark);
    }
    index->marks.total = total;
    *reader->failed |= total < count;
}

void index_get_slice(struct varint_reader *reader, struct slice *slice) {
    struct varint_writer bytes;
    slice->first_tick = (uint32_t)varint_get(reader);
    slice->last_tick = (uint32_t)varint_get(reader);
    slice->events = varint_get(reader);
    slice->change = varint_get_signed(reader);
    slice->highest = varint_get_signed(reader);
    slice->maximum_ns = varint_get(reader);
    slice->at_maximum = varint_get_byte(reader) != 0;
    slice->error_bytes = varint_get(reader);
    slice->variance.total = index_get_double(reader);
    slice->variance.allocations = index_get_double(reader);
    slice->variance.live = index_get_double(reader);
    slice->variance.maximum = index_get_double(reader);
    slice->contexts = varint_get(reader);
    slice->threads = varint_get(reader);
    index_get_bytes(reader, &bytes);
    slice->bytes = bytes.bytes;
    slice->size = bytes.size;
    *reader->failed |= slice->highest < 0;
}

static void index_get_entries(struct varint_reader *reader, struct index *index) {
    size_t count = index_get_count(reader, 50, INDEX_SLICES);
    *reader->failed |= count == 0;
    index->entries = job_array(count + 1, sizeof *index->entries);
    index->room = count + 1;
    for (size_t i = 0; i < count && !*reader->failed; i++) {
        struct index_entry *entry = &index->entries[index->count++];
        entry->start_ns = varint_get(reader);
        index_get_bytes(reader, &entry->place);
        index_get_bytes(reader, &entry->state);
        index_get_bytes(reader, &entry->waited);
        index_get_slice(reader, &entry->slice);
        *reader->failed |= i == 0 ? entry->start_ns != 0
                                  : entry->start_ns <= entry[-1].start_ns || entry->place.size == 0;
    }
}

struct index *index_unpack(const unsigned char *bytes, size_t size, struct index_cover *cover,
                           struct varint_reader *reader) {
    struct index *index = index_new();
    const void *hash;
    *reader->failed = false;
    reader->next = bytes;
    reader->end = bytes + size;
    if (varint_get(reader) != PACKED_VERSION) {
        return NULL;
    }
    cover->blocks = varint_get(reader);
    hash = varint_get_bytes(reader, sizeof cover->hash);
    if (hash != NULL) {
        memcpy(cover->hash, hash, sizeof cover->hash);
    }
    index_get_facts(reader, &index->facts);
    index_get_points(reader, &index->points);
    index_get_samples(reader, index);
    index_get_marks(reader, index);
    index_get_slice(reader, &index->all);
    index_get_entries(reader, index);
    return *reader->failed ? NULL : index;
}
