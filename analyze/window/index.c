/* SPDX-License-Identifier: MIT */
/* index.c: where slices begin and in which state. See index.h. */
#include "analyze/window/index.h"

#include <stdlib.h>

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

/* All runs by time. NULL: none, or no memory. */
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

static uint64_t share_of(const struct run *runs, size_t count, uint64_t least_events) {
    uint64_t total = 0;
    for (size_t i = 0; i < count; i++) {
        total += runs[i].items;
    }
    return total / INDEX_SLICES > least_events ? total / INDEX_SLICES : least_events;
}

uint64_t *index_edges(struct timeorder_parts parts, uint64_t least_events, size_t *count) {
    const uint64_t tick = UINT64_C(1) << MEMTRACE_TICK_SHIFT;
    uint64_t *edges = calloc(INDEX_SLICES, sizeof *edges);
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
    share = share_of(runs, run_count, least_events);
    for (size_t i = 0; i < run_count && *count < INDEX_SLICES - 1; i++) {
        uint64_t edge = runs[i].first_ns & ~(tick - 1);
        if (sum >= share && edge > (*count != 0 ? edges[*count - 1] : 0)) {
            edges[(*count)++] = edge;
            sum = 0;
        }
        sum += runs[i].items;
    }
    free(runs);
    return edges;
}

/* ---- The state of a pass ---- */

static void put_mapping(struct varint_writer *state, const struct mapping *mapping) {
    varint_put(state, mapping->start);
    varint_put(state, mapping->end - mapping->start);
    varint_put(state, mapping->born_ns);
    varint_put(state, mapping->context);
    varint_put(state, mapping->is_rest);
}

struct index_entry *index_begin(struct index *index, uint64_t start_ns, const struct pass *pass) {
    struct index_entry *entry = &index->entries[index->count++];
    *entry = (struct index_entry){.start_ns = start_ns};
    varint_put(&entry->state, pass->inherited);
    for (size_t i = 0; i < pass->stream_count; i++) {
        varint_put(&entry->state, pass->newest[i]);
    }
    varint_put(&entry->state, pass->mappings.count);
    for (size_t i = 0; i < pass->mappings.count; i++) {
        put_mapping(&entry->state, &pass->mappings.items[i]);
    }
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
    uint64_t count;
    pass->inherited = varint_get(&reader);
    for (size_t i = 0; i < pass->stream_count; i++) {
        pass->newest[i] = varint_get(&reader);
    }
    count = varint_get(&reader);
    for (uint64_t i = 0; i < count && !failed; i++) {
        struct mapping mapping = {.start = varint_get(&reader)};
        mapping.end = mapping.start + varint_get(&reader);
        mapping.born_ns = varint_get(&reader);
        mapping.context = pass_context(pass, (uint32_t)varint_get(&reader));
        mapping.is_rest = varint_get(&reader) != 0;
        if (mappinglist_add(&pass->mappings, &mapping) != 0) {
            return -1;
        }
    }
    return failed ? -1 : restore_waited(&entry->waited, pass);
}

/* ---- Size ---- */

static void free_entry(struct index_entry *entry) {
    free(entry->place.bytes);
    free(entry->state.bytes);
    free(entry->waited.bytes);
    slice_free(&entry->slice);
}

void index_free(struct index *index) {
    if (index == NULL) {
        return;
    }
    for (size_t i = 0; index->file.mapping == NULL && i < index->count; i++) {
        free_entry(&index->entries[i]);
    }
    cachefolder_unload(&index->file);
    slice_free(&index->all);
    free(index->entries);
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
    free_entry(right);
    return left->waited.failed ? -1 : 0;
}

int index_shrink(struct index *index) {
    while (index->count > 1 && size_of(index) > INDEX_BYTES) {
        size_t kept = 0;
        int result = 0;
        for (size_t i = 0; i < index->count; i += 2) {
            struct index_entry *entry = &index->entries[i];
            if (result == 0 && i + 1 < index->count) {
                result = join(entry, &index->entries[i + 1]);
            } else if (i + 1 < index->count) {
                free_entry(&index->entries[i + 1]);
            }
            index->entries[kept++] = *entry;
        }
        index->count = kept;
        if (result != 0) {
            return -1;
        }
    }
    return 0;
}
