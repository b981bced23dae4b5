/* SPDX-License-Identifier: MIT */
/* index.c: where slices begin and in which state; an index as bytes. See index.h. */
#include "analyze/window/index.h"

#include "analyze/base/array.h"
#include "analyze/window/fineindex.h"

#define XXH_INLINE_ALL
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* ---- Edges ---- */

/* A block of events by its beginning. */
struct run {
    uint64_t first_ns;
    uint64_t items;
};

static int by_beginning(const void *left, const void *right) {
    const struct run *a = left;
    const struct run *b = right;
    if (a->first_ns != b->first_ns) {
        return a->first_ns < b->first_ns ? -1 : 1;
    }
    return (a->items > b->items) - (a->items < b->items);
}

/* A long block's events are spread over its time. */
enum { PIECES = 8 };

static void add_run(struct run *runs, size_t *count, const struct memtrace_block_header *block) {
    uint64_t length = block->last_ns > block->first_ns ? block->last_ns - block->first_ns : 0;
    for (unsigned i = 0; i < PIECES; i++) {
        runs[(*count)++] =
            (struct run){block->first_ns + length / PIECES * i, block->items / PIECES + 1};
    }
}

/* All runs by time. NULL: no memory. */
static struct run *collect_runs(struct timeorder_parts parts, size_t *count) {
    struct run *runs;
    size_t most = 0;
    for (size_t part = 0; part < parts.count; part++) {
        most += parts.items[part]->block_count;
    }
    *count = 0;
    runs = reallocarray(NULL, most * PIECES + 1, sizeof *runs);
    for (size_t part = 0; runs != NULL && part < parts.count; part++) {
        for (size_t i = 0; i < parts.items[part]->block_count; i++) {
            const struct memtrace_block_header *block = &parts.items[part]->blocks[i].block;
            if (block->kind == MEMTRACE_BLOCK_EVENTS) {
                add_run(runs, count, block);
            }
        }
    }
    if (runs != NULL && *count != 0) {
        qsort(runs, *count, sizeof *runs, by_beginning);
    }
    return runs;
}

static uint64_t share_of(const struct run *runs, size_t count, uint64_t least_events, size_t most) {
    uint64_t total = 0;
    for (size_t i = 0; i < count; i++) {
        total += runs[i].items;
    }
    return total / most > least_events ? total / most : least_events;
}

uint64_t *index_edges(struct timeorder_parts parts, uint64_t from_ns, uint64_t least_events,
                      size_t most, size_t *count) {
    const uint64_t tick = UINT64_C(1) << MEMTRACE_TICK_SHIFT;
    uint64_t *edges = calloc(most, sizeof *edges);
    size_t run_count;
    struct run *runs = collect_runs(parts, &run_count);
    uint64_t share;
    uint64_t sum = 0;
    *count = 0;
    if (edges == NULL || runs == NULL) {
        free(edges);
        free(runs);
        return NULL;
    }
    share = share_of(runs, run_count, least_events, most);
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
    free(runs);
    return edges;
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

int index_get_mappings(struct varint_reader *reader, struct mappinglist *mappings) {
    uint64_t count = varint_get(reader);
    for (uint64_t i = 0; i < count && !*reader->failed; i++) {
        struct mapping mapping = {.start = varint_get(reader)};
        uint64_t size = varint_get(reader);
        mapping.born_ns = varint_get(reader);
        mapping.context = (uint32_t)varint_get(reader);
        mapping.is_rest = varint_get(reader) != 0;
        if (*reader->failed || size == 0 ||
            __builtin_add_overflow(mapping.start, size, &mapping.end) ||
            mappinglist_add(mappings, &mapping) != 0) {
            return -1;
        }
    }
    return *reader->failed ? -1 : 0;
}

struct index_entry *index_begin(struct index *index, uint64_t start_ns, const struct pass *pass) {
    struct index_entry *entry;
    if (array_grow(&index->entries, &index->room, index->count, sizeof *index->entries) != 0) {
        return NULL;
    }
    entry = &index->entries[index->count++];
    *entry = (struct index_entry){.start_ns = start_ns};
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

static int restore_waited(const struct varint_writer *waited, struct pass *pass) {
    bool failed = false;
    struct varint_reader reader = {waited->bytes, waited->bytes + waited->size, &failed};
    int result = 0;
    while (result == 0 && reader.next != reader.end && !failed) {
        struct event_block name = {.thread = (uint32_t)varint_get(&reader)};
        struct pairing_end end;
        name.number = varint_get(&reader);
        end.thread = (uint32_t)varint_get(&reader);
        end.tick = (uint32_t)varint_get(&reader);
        end.time_ns = varint_get(&reader);
        result = pairing_wait(pass->pairing, name, end);
    }
    return result == 0 && !failed ? 0 : -1;
}

int index_restore(const struct index_entry *entry, struct pass *pass) {
    bool failed = false;
    const struct varint_writer *state = &entry->state;
    struct varint_reader reader = {state->bytes, state->bytes + state->size, &failed};
    pass->inherited = varint_get(&reader);
    for (size_t i = 0; i < pass->stream_count; i++) {
        pass->newest[i] = varint_get(&reader);
    }
    if (index_get_mappings(&reader, &pass->mappings) != 0) {
        return -1;
    }
    for (size_t i = 0; i < pass->mappings.count; i++) {
        uint32_t context = pass->mappings.items[i].context;
        if (context > pass->missing || accounts_class(&pass->accounts, context) != MODEL_MAPPING) {
            return -1;
        }
    }
    return restore_waited(&entry->waited, pass);
}

/* ---- Size ---- */

enum { GROUP = 8, GROUP_LEVELS = 3 };

struct index_groups {
    struct index_level {
        struct slice *sums;
        size_t count;
    } levels[GROUP_LEVELS]; /* of GROUP, GROUP^2, ... slices */
};

struct index *index_new(void) {
    struct index *index = calloc(1, sizeof *index);
    if (index != NULL && timepoints_start(&index->points) != 0) {
        index_free(index);
        return NULL;
    }
    return index;
}

void index_free_entry(struct index_entry *entry) {
    free(entry->place.bytes);
    free(entry->state.bytes);
    free(entry->waited.bytes);
    slice_free(&entry->slice);
}

static void free_groups(struct index_groups *groups) {
    for (size_t level = 0; groups != NULL && level < GROUP_LEVELS; level++) {
        for (size_t i = 0; i < groups->levels[level].count; i++) {
            slice_free(&groups->levels[level].sums[i]);
        }
        free(groups->levels[level].sums);
    }
    free(groups);
}

void index_free(struct index *index) {
    if (index == NULL) {
        return;
    }
    for (size_t i = 0; i < index->count; i++) {
        index_free_entry(&index->entries[i]);
    }
    free(index->entries);
    fineindex_free(index->fine);
    free_groups(index->groups);
    slice_free(&index->all);
    timepoints_end(&index->points);
    free(index->samples);
    marks_free(&index->marks);
    texts_free(&index->texts);
    free(index);
}

static size_t size_of(const struct index *index) {
    size_t size = 0;
    for (size_t i = 0; i < index->count; i++) {
        const struct index_entry *entry = &index->entries[i];
        size += entry->place.size + entry->state.size + entry->waited.size + entry->slice.size;
    }
    return size;
}

/* The second one's events are the first one's, too. */
static int join(struct index_entry *left, struct index_entry *right) {
    if (slice_join(&left->slice, &right->slice) != 0) {
        return -1;
    }
    varint_put_bytes(&left->waited, right->waited.bytes, right->waited.size);
    index_free_entry(right);
    return left->waited.failed ? -1 : 0;
}

int index_halve(struct index *index) {
    size_t kept = 0;
    int result = 0;
    for (size_t i = 0; i < index->count; i += 2) {
        struct index_entry *entry = &index->entries[i];
        if (result == 0 && i + 1 < index->count) {
            result = join(entry, &index->entries[i + 1]);
        } else if (i + 1 < index->count) {
            index_free_entry(&index->entries[i + 1]);
        }
        index->entries[kept++] = *entry;
    }
    index->count = kept;
    return result;
}

int index_shrink(struct index *index) {
    int result = 0;
    while (result == 0 && index->count > 1 &&
           (index->count > INDEX_SLICES || size_of(index) > INDEX_BYTES)) {
        result = index_halve(index);
    }
    return result;
}

/* One that was shrunk has about half of its bytes, at least. */
bool index_is_coarse(const struct index *index) {
    uint64_t events = 0;
    uint64_t possible;
    for (size_t i = 0; i < index->count; i++) {
        events += index->entries[i].slice.events;
    }
    possible = events / INDEX_EVENTS < INDEX_SLICES ? events / INDEX_EVENTS : INDEX_SLICES;
    return possible / 4 >= index->count && size_of(index) < INDEX_BYTES / 4;
}

/* ---- Sums of neighbours ---- */

/* Of the first GROUP. 0, or -1: out of memory. */
static int sum_group(const struct slice *slices, struct slice *sum) {
    struct slice copies[GROUP] = {0};
    int result = 0;
    for (size_t i = 0; i < GROUP && result == 0; i++) {
        copies[i] = slices[i];
        copies[i].bytes = malloc(slices[i].size + 1);
        result = copies[i].bytes != NULL ? 0 : -1;
        if (result == 0 && slices[i].size != 0) {
            memcpy(copies[i].bytes, slices[i].bytes, slices[i].size);
        }
    }
    for (size_t step = 1; step < GROUP && result == 0; step *= 2) {
        for (size_t i = 0; i < GROUP && result == 0; i += 2 * step) {
            result = slice_join(&copies[i], &copies[i + step]);
        }
    }
    for (size_t i = result == 0 ? 1 : 0; i < GROUP; i++) {
        slice_free(&copies[i]);
    }
    *sum = copies[0];
    return result;
}

/* 0, or -1: out of memory, or cancelled. */
static int sum_level(const struct slice *slices, size_t count, struct index_level *level,
                     const struct replay_options *options) {
    level->sums = calloc(count / GROUP + 1, sizeof *level->sums);
    if (level->sums == NULL) {
        return -1;
    }
    while ((level->count + 1) * GROUP <= count) {
        if ((options != NULL && replay_is_cancelled(options)) ||
            sum_group(&slices[level->count * GROUP], &level->sums[level->count]) != 0) {
            return -1;
        }
        level->count++;
    }
    return 0;
}

/* As sum_level(). */
static int sum_levels(const struct index *index, struct index_groups *groups,
                      const struct replay_options *options) {
    struct slice *borrowed = calloc(index->count + 1, sizeof *borrowed); /* bytes are the index's */
    const struct slice *slices = borrowed;
    size_t count = index->count;
    int result = borrowed != NULL ? 0 : -1;
    for (size_t i = 0; i < index->count && result == 0; i++) {
        borrowed[i] = index->entries[i].slice;
    }
    for (size_t i = 0; i < GROUP_LEVELS && count >= GROUP && result == 0; i++) {
        result = sum_level(slices, count, &groups->levels[i], options);
        slices = groups->levels[i].sums;
        count = groups->levels[i].count;
    }
    free(borrowed);
    return result;
}

void index_group(struct index *index, const struct replay_options *options) {
    struct index_groups *groups;
    struct index_groups *nobody = NULL;
    /* Of a sample, variances would be added up in another order, and differ in their last digits.
     */
    if (index->facts.is_sampled || (groups = calloc(1, sizeof *groups)) == NULL) {
        return;
    }
    if (sum_levels(index, groups, options) != 0 ||
        !atomic_compare_exchange_strong(&index->groups, &nobody, groups)) {
        free_groups(groups);
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
    XXH3_state_t *state = XXH3_createState();
    struct index_cover cover = {0};
    XXH128_hash_t hash;
    if (state == NULL) {
        return cover;
    }
    XXH3_128bits_reset(state);
    for (size_t part = 0; part < parts.count && cover.blocks < most_blocks; part++) {
        const struct recording *recording = parts.items[part];
        XXH3_128bits_update(state, &recording->header, sizeof recording->header);
        for (size_t i = 0; i < recording->block_count && cover.blocks < most_blocks; i++) {
            const struct recording_entry *entry = &recording->blocks[i];
            if (index_is_covered(&entry->block)) {
                XXH3_128bits_update(state, &entry->offset, sizeof entry->offset);
                XXH3_128bits_update(state, &entry->block, sizeof entry->block);
                cover.blocks++;
            }
        }
    }
    hash = XXH3_128bits_digest(state);
    XXH3_freeState(state);
    cover.hash[0] = hash.low64;
    cover.hash[1] = hash.high64;
    return cover;
}

/* ---- Into bytes ---- */

enum { PACKED_VERSION = 1 };

static void put_double(struct varint_writer *bytes, double value) {
    varint_put_bytes(bytes, &value, sizeof value);
}

void index_put_bytes(struct varint_writer *writer, const struct varint_writer *bytes) {
    varint_put(writer, bytes->size);
    varint_put_bytes(writer, bytes->bytes, bytes->size);
}

static void put_facts(struct varint_writer *bytes, const struct index_facts *facts) {
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

static void put_point(struct varint_writer *bytes, const struct memtrace_point *point) {
    varint_put(bytes, point->time_ns);
    varint_put(bytes, point->live_bytes);
    varint_put(bytes, point->alloc_count);
    varint_put(bytes, point->alloc_bytes);
}

static void put_marks(struct varint_writer *bytes, const struct marks *marks) {
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
    put_double(bytes, slice->variance.total);
    put_double(bytes, slice->variance.allocations);
    put_double(bytes, slice->variance.live);
    put_double(bytes, slice->variance.maximum);
    varint_put(bytes, slice->contexts);
    varint_put(bytes, slice->threads);
    index_put_bytes(bytes, &packed);
}

void index_pack(const struct index *index, struct index_cover cover, struct varint_writer *bytes) {
    varint_put(bytes, PACKED_VERSION);
    varint_put(bytes, cover.blocks);
    varint_put_bytes(bytes, cover.hash, sizeof cover.hash);
    put_facts(bytes, &index->facts);
    varint_put(bytes, index->points.shift);
    varint_put(bytes, index->points.count);
    for (size_t i = 0; i < index->points.count; i++) {
        const struct timepoints_piece *piece = &index->points.pieces[i];
        varint_put(bytes, piece->number);
        put_point(bytes, &piece->highest);
        put_point(bytes, &piece->last);
    }
    varint_put(bytes, index->sample_count);
    for (size_t i = 0; i < index->sample_count; i++) {
        put_point(bytes, &index->samples[i]);
    }
    put_marks(bytes, &index->marks);
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

static double get_double(struct varint_reader *reader) {
    const void *at = varint_get_bytes(reader, sizeof(double));
    double value = 0;
    if (at != NULL) {
        memcpy(&value, at, sizeof value);
    }
    *reader->failed |= !isfinite(value);
    return value;
}

int index_get_bytes(struct varint_reader *reader, struct varint_writer *bytes) {
    uint64_t size = varint_get(reader);
    const void *at = varint_get_bytes(reader, size);
    *bytes = (struct varint_writer){0};
    if (at != NULL) {
        varint_put_bytes(bytes, at, (size_t)size);
    }
    return at != NULL && !bytes->failed ? 0 : -1;
}

static void get_facts(struct varint_reader *reader, struct index_facts *facts) {
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

static struct memtrace_point get_point(struct varint_reader *reader) {
    struct memtrace_point point = {.time_ns = varint_get(reader)};
    point.live_bytes = varint_get(reader);
    point.alloc_count = varint_get(reader);
    point.alloc_bytes = varint_get(reader);
    return point;
}

/* How many items follow, each of at least so many bytes: no more than there is room for. */
static size_t get_count(struct varint_reader *reader, size_t least_bytes, size_t most) {
    uint64_t count = varint_get(reader);
    if (count > most || count > (uint64_t)(reader->end - reader->next) / least_bytes) {
        *reader->failed = true;
        return 0;
    }
    return (size_t)count;
}

static void get_points(struct varint_reader *reader, struct timepoints *points) {
    uint64_t shift = varint_get(reader);
    points->count = get_count(reader, 9, TIMEPOINTS_PIECES);
    points->shift = (unsigned)shift;
    *reader->failed |= shift < MEMTRACE_TICK_SHIFT || shift > 63;
    for (size_t i = 0; i < points->count && !*reader->failed; i++) {
        struct timepoints_piece *piece = &points->pieces[i];
        piece->number = varint_get(reader);
        piece->highest = get_point(reader);
        piece->last = get_point(reader);
    }
}

static int get_samples(struct varint_reader *reader, struct index *index) {
    size_t count = get_count(reader, 4, SIZE_MAX);
    index->samples = calloc(count + 1, sizeof *index->samples);
    if (index->samples == NULL) {
        return -1;
    }
    index->sample_count = count;
    for (size_t i = 0; i < count; i++) {
        index->samples[i] = get_point(reader);
    }
    return 0;
}

static int get_marks(struct varint_reader *reader, struct index *index) {
    uint64_t total = varint_get(reader);
    size_t count = get_count(reader, 5, MODEL_MARKS);
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
        if (marks_add(&index->marks, &mark) != 0) {
            return -1;
        }
    }
    index->marks.total = total;
    return total >= count ? 0 : -1;
}

/* The slice owns its bytes. 0 or -1. */
int index_get_slice(struct varint_reader *reader, struct slice *slice) {
    struct varint_writer bytes;
    slice->first_tick = (uint32_t)varint_get(reader);
    slice->last_tick = (uint32_t)varint_get(reader);
    slice->events = varint_get(reader);
    slice->change = varint_get_signed(reader);
    slice->highest = varint_get_signed(reader);
    slice->maximum_ns = varint_get(reader);
    slice->at_maximum = varint_get_byte(reader) != 0;
    slice->error_bytes = varint_get(reader);
    slice->variance.total = get_double(reader);
    slice->variance.allocations = get_double(reader);
    slice->variance.live = get_double(reader);
    slice->variance.maximum = get_double(reader);
    slice->contexts = varint_get(reader);
    slice->threads = varint_get(reader);
    if (index_get_bytes(reader, &bytes) != 0) {
        free(bytes.bytes);
        return -1;
    }
    slice->bytes = bytes.bytes;
    slice->size = bytes.size;
    return slice->highest >= 0 ? 0 : -1;
}

static int get_entries(struct varint_reader *reader, struct index *index) {
    size_t count = get_count(reader, 50, INDEX_SLICES);
    index->entries = calloc(count + 1, sizeof *index->entries);
    if (index->entries == NULL || count == 0) {
        return -1;
    }
    index->room = count + 1;
    for (size_t i = 0; i < count; i++) {
        struct index_entry *entry = &index->entries[index->count++];
        entry->start_ns = varint_get(reader);
        if (index_get_bytes(reader, &entry->place) != 0 ||
            index_get_bytes(reader, &entry->state) != 0 ||
            index_get_bytes(reader, &entry->waited) != 0 ||
            index_get_slice(reader, &entry->slice) != 0 ||
            (i == 0 ? entry->start_ns != 0 : entry->start_ns <= entry[-1].start_ns) ||
            (i != 0 && entry->place.size == 0)) {
            return -1;
        }
    }
    return 0;
}

struct index *index_unpack(const unsigned char *bytes, size_t size, struct index_cover *cover,
                           struct varint_reader *rest) {
    struct index *index = index_new();
    struct varint_reader *reader = rest;
    const void *hash;
    *reader->failed = false;
    reader->next = bytes;
    reader->end = bytes + size;
    if (index == NULL || varint_get(reader) != PACKED_VERSION) {
        index_free(index);
        return NULL;
    }
    cover->blocks = varint_get(reader);
    hash = varint_get_bytes(reader, sizeof cover->hash);
    if (hash != NULL) {
        memcpy(cover->hash, hash, sizeof cover->hash);
    }
    get_facts(reader, &index->facts);
    get_points(reader, &index->points);
    if (get_samples(reader, index) != 0 || get_marks(reader, index) != 0 ||
        index_get_slice(reader, &index->all) != 0 || get_entries(reader, index) != 0 ||
        *reader->failed) {
        index_free(index);
        return NULL;
    }
    return index;
}
