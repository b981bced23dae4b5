/* SPDX-License-Identifier: MIT */
/* smaps.c: see smaps.h. */
#include "analyze/replay/smaps.h"

#include "analyze/base/array.h"
#include "analyze/base/job.h"
#include "analyze/base/search.h"

#include <string.h>

/* A block of smaps, still to be read. */
struct smaps_place {
    uint64_t time_ns;
    const struct recording *recording;
    size_t block;
};

/* All that have some, by time. */
static struct smaps_place *smaps_places(struct timeorder_parts parts, size_t *count) {
    struct smaps_place *places = NULL;
    size_t room = 0;
    *count = 0;
    for (size_t part = 0; part < parts.count; part++) {
        const struct recording *recording = parts.items[part];
        for (size_t i = 0; i < recording->block_count; i++) {
            const struct memtrace_block_header *block = &recording->blocks[i].block;
            if (block->kind == MEMTRACE_BLOCK_SMAPS && block->items != 0) {
                job_grow(&places, &room, *count, sizeof *places);
                places[(*count)++] = (struct smaps_place){block->first_ns, recording, i};
            }
        }
    }
    array_sort_by(places, *count, sizeof *places, offsetof(struct smaps_place, time_ns));
    return places;
}

/* The names behind the array end in a NUL of ours, whatever the file says. */
void smaps_load(const struct recording *recording, size_t block, struct smaps *smaps) {
    const size_t size = sizeof(struct memtrace_mapping);
    struct recording_buffer *buffer = recording_buffer_new();
    size_t items = recording->blocks[block].block.items;
    size_t count;
    size_t names_size;
    *smaps = (struct smaps){0};
    if (!recording_take(recording, block, buffer)) {
        return;
    }
    count = items < buffer->size / size ? items : buffer->size / size;
    names_size = buffer->size - count * size;
    smaps->time_ns = recording->blocks[block].block.first_ns;
    smaps->mappings = job_array(count + 1, sizeof *smaps->mappings);
    smaps->names = job_array(names_size + 1, 1);
    memcpy(smaps->names, buffer->bytes + count * size, names_size);
    for (size_t i = 0; i < count; i++) {
        struct memtrace_mapping raw;
        memcpy(&raw, buffer->bytes + i * size, size);
        smaps->mappings[i] =
            (struct smaps_mapping){.start = raw.start,
                                   .end = raw.end > raw.start ? raw.end : raw.start,
                                   .offset = raw.offset,
                                   .resident_bytes = raw.resident_bytes,
                                   .dirty_bytes = raw.dirty_bytes,
                                   .swap_bytes = raw.swap_bytes,
                                   .protection = raw.protection,
                                   .name = raw.name < names_size ? smaps->names + raw.name : ""};
    }
    smaps->count = count;
    array_sort_by(smaps->mappings, count, sizeof *smaps->mappings,
                  offsetof(struct smaps_mapping, start));
    job_undo_now(buffer);
}

void smaps_at(struct timeorder_parts parts, uint64_t time_ns, struct smaps *smaps) {
    size_t count;
    struct smaps_place *places = smaps_places(parts, &count);
    size_t before =
        search_to(places, count, sizeof *places, offsetof(struct smaps_place, time_ns), time_ns);
    *smaps = (struct smaps){0};
    if (count != 0) {
        const struct smaps_place *place = &places[before != 0 ? before - 1 : 0];
        smaps_load(place->recording, place->block, smaps);
    }
    job_release(places);
}

void smaps_visit(struct timeorder_parts parts,
                 bool (*visit)(void *context, const struct smaps *smaps), void *context) {
    size_t count;
    struct smaps_place *places = smaps_places(parts, &count);
    bool goes_on = true;
    for (size_t i = 0; goes_on && i < count; i++) {
        struct smaps smaps;
        smaps_load(places[i].recording, places[i].block, &smaps);
        goes_on = smaps.mappings == NULL || visit(context, &smaps);
        job_release(smaps.mappings);
        job_release(smaps.names);
    }
    job_release(places);
}

const struct smaps_mapping *smaps_find(const struct smaps *smaps, uint64_t address) {
    size_t place = search_to(smaps->mappings, smaps->count, sizeof *smaps->mappings,
                             offsetof(struct smaps_mapping, end), address);
    return place < smaps->count && smaps->mappings[place].start <= address ? &smaps->mappings[place]
                                                                           : NULL;
}
