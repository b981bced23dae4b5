/* SPDX-License-Identifier: MIT */
/* smaps.c: see smaps.h. */
#include "analyze/replay/smaps.h"

#include "analyze/base/job.h"
#include "analyze/base/search.h"

#include <stdlib.h>
#include <string.h>

/* A block of smaps, still to be read. */
struct smaps_place {
    const struct recording *recording;
    size_t block;
};

static uint64_t smaps_time(struct smaps_place place) {
    return place.recording->blocks[place.block].block.first_ns;
}

/* Whether a block found is nearer to what is asked for than the best one so far. */
static bool smaps_is_better(struct smaps_place found, struct smaps_place best, uint64_t time_ns) {
    if (best.recording == NULL) {
        return true;
    }
    if (smaps_time(best) > time_ns) {
        return smaps_time(found) < smaps_time(best);
    }
    return smaps_time(found) <= time_ns && smaps_time(found) >= smaps_time(best);
}

static struct smaps_place smaps_look_for(struct timeorder_parts parts, uint64_t time_ns) {
    struct smaps_place best = {0};
    for (size_t part = 0; part < parts.count; part++) {
        const struct recording *recording = parts.items[part];
        for (size_t i = 0; i < recording->block_count; i++) {
            struct smaps_place found = {recording, i};
            if (recording->blocks[i].block.kind == MEMTRACE_BLOCK_SMAPS &&
                recording->blocks[i].block.items != 0 && smaps_is_better(found, best, time_ns)) {
                best = found;
            }
        }
    }
    return best;
}

static int smaps_by_start(const void *left, const void *right) {
    const struct smaps_mapping *a = left;
    const struct smaps_mapping *b = right;
    return (a->start > b->start) - (a->start < b->start);
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
    qsort(smaps->mappings, count, sizeof *smaps->mappings, smaps_by_start);
    job_undo_now(buffer);
}

void smaps_at(struct timeorder_parts parts, uint64_t time_ns, struct smaps *smaps) {
    struct smaps_place place = smaps_look_for(parts, time_ns);
    *smaps = (struct smaps){0};
    if (place.recording != NULL) {
        smaps_load(place.recording, place.block, smaps);
    }
}

/* ---- All of them ---- */

static int smaps_by_time(const void *left, const void *right) {
    uint64_t a = smaps_time(*(const struct smaps_place *)left);
    uint64_t b = smaps_time(*(const struct smaps_place *)right);
    return (a > b) - (a < b);
}

void smaps_visit(struct timeorder_parts parts,
                 bool (*visit)(void *context, const struct smaps *smaps), void *context) {
    struct smaps_place *places = NULL;
    size_t count = 0;
    size_t room = 0;
    bool goes_on = true;
    for (size_t part = 0; part < parts.count; part++) {
        const struct recording *recording = parts.items[part];
        for (size_t i = 0; i < recording->block_count; i++) {
            if (recording->blocks[i].block.kind == MEMTRACE_BLOCK_SMAPS &&
                recording->blocks[i].block.items != 0) {
                job_grow(&places, &room, count, sizeof *places);
                places[count++] = (struct smaps_place){recording, i};
            }
        }
    }
    if (count != 0) {
        qsort(places, count, sizeof *places, smaps_by_time);
    }
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
