/* SPDX-License-Identifier: MIT */
/* smaps.c: see smaps.h. */
#include "analyze/replay/smaps.h"

#include "analyze/base/array.h"
#include "analyze/base/search.h"

#include <stdlib.h>
#include <string.h>

/* A block of smaps, still to be read. */
struct place {
    const struct recording *recording;
    size_t block;
};

static uint64_t time_of(struct place place) {
    return place.recording->blocks[place.block].block.first_ns;
}

/* Whether a block found is nearer to what is asked for than the best one so far. */
static bool is_better(struct place found, struct place best, uint64_t time_ns) {
    if (best.recording == NULL) {
        return true;
    }
    if (time_of(best) > time_ns) {
        return time_of(found) < time_of(best);
    }
    return time_of(found) <= time_ns && time_of(found) >= time_of(best);
}

static struct place look_for(struct timeorder_parts parts, uint64_t time_ns) {
    struct place best = {0};
    for (size_t part = 0; part < parts.count; part++) {
        const struct recording *recording = parts.items[part];
        for (size_t i = 0; i < recording->block_count; i++) {
            struct place found = {recording, i};
            if (recording->blocks[i].block.kind == MEMTRACE_BLOCK_SMAPS &&
                recording->blocks[i].block.items != 0 && is_better(found, best, time_ns)) {
                best = found;
            }
        }
    }
    return best;
}

static int by_start(const void *left, const void *right) {
    const struct smaps_mapping *a = left;
    const struct smaps_mapping *b = right;
    return (a->start > b->start) - (a->start < b->start);
}

/* The names behind the array end in a NUL of ours, whatever the file says. */
static int unpack(const struct recording_buffer *buffer, size_t items, struct smaps *smaps) {
    const size_t size = sizeof(struct memtrace_mapping);
    size_t count = items < buffer->size / size ? items : buffer->size / size;
    size_t names_size = buffer->size - count * size;
    smaps->mappings = calloc(count + 1, sizeof *smaps->mappings);
    smaps->names = calloc(names_size + 1, 1);
    if (smaps->mappings == NULL || smaps->names == NULL) {
        return -1;
    }
    memcpy(smaps->names, buffer->bytes + count * size, names_size);
    for (size_t i = 0; i < count; i++) {
        struct memtrace_mapping raw;
        memcpy(&raw, buffer->bytes + i * size, size);
        smaps->mappings[i] =
            (struct smaps_mapping){.start = raw.start,
                                   .end = raw.end > raw.start ? raw.end : raw.start,
                                   .resident_bytes = raw.resident_bytes,
                                   .dirty_bytes = raw.dirty_bytes,
                                   .swap_bytes = raw.swap_bytes,
                                   .protection = raw.protection,
                                   .name = raw.name < names_size ? smaps->names + raw.name : ""};
    }
    smaps->count = count;
    qsort(smaps->mappings, count, sizeof *smaps->mappings, by_start);
    return 0;
}

static int load(struct place place, struct smaps *smaps) {
    struct recording_buffer buffer = {0};
    int result = 0;
    *smaps = (struct smaps){0};
    if (recording_payload(place.recording, place.block, &buffer, NULL) == 0) {
        smaps->time_ns = time_of(place);
        result = unpack(&buffer, place.recording->blocks[place.block].block.items, smaps);
    }
    recording_buffer_free(&buffer);
    if (result != 0) {
        smaps_free(smaps);
    }
    return result;
}

int smaps_at(struct timeorder_parts parts, uint64_t time_ns, struct smaps *smaps) {
    struct place place = look_for(parts, time_ns);
    *smaps = (struct smaps){0};
    return place.recording != NULL ? load(place, smaps) : 0;
}

/* ---- All of them ---- */

static int by_time(const void *left, const void *right) {
    uint64_t a = time_of(*(const struct place *)left);
    uint64_t b = time_of(*(const struct place *)right);
    return (a > b) - (a < b);
}

/* The caller frees them. NULL: out of memory. */
static struct place *list_places(struct timeorder_parts parts, size_t *count) {
    struct place *places = NULL;
    size_t room = 0;
    *count = 0;
    for (size_t part = 0; part < parts.count; part++) {
        const struct recording *recording = parts.items[part];
        for (size_t i = 0; i < recording->block_count; i++) {
            if (recording->blocks[i].block.kind != MEMTRACE_BLOCK_SMAPS ||
                recording->blocks[i].block.items == 0) {
                continue;
            }
            if (array_grow(&places, &room, *count, sizeof *places) != 0) {
                free(places);
                return NULL;
            }
            places[(*count)++] = (struct place){recording, i};
        }
    }
    return places != NULL ? places : calloc(1, sizeof *places);
}

int smaps_visit(struct timeorder_parts parts,
                int (*visit)(void *context, const struct smaps *smaps), void *context) {
    size_t count;
    struct place *places = list_places(parts, &count);
    int result = places != NULL ? 0 : -1;
    if (result == 0) {
        qsort(places, count, sizeof *places, by_time);
    }
    for (size_t i = 0; result == 0 && i < count; i++) {
        struct smaps smaps;
        result = load(places[i], &smaps);
        if (result == 0 && smaps.mappings != NULL) {
            result = visit(context, &smaps);
        }
        smaps_free(&smaps);
    }
    free(places);
    return result;
}

void smaps_free(struct smaps *smaps) {
    free(smaps->mappings);
    free(smaps->names);
    *smaps = (struct smaps){0};
}

const struct smaps_mapping *smaps_find(const struct smaps *smaps, uint64_t address) {
    size_t place = search_to(smaps->mappings, smaps->count, sizeof *smaps->mappings,
                             offsetof(struct smaps_mapping, end), address);
    return place < smaps->count && smaps->mappings[place].start <= address ? &smaps->mappings[place]
                                                                           : NULL;
}
