/* SPDX-License-Identifier: MIT */
/* nodecode.c: nodes of the context tree into columns and back. See nodecode.h. */
#include "analyze/read/nodecode.h"

#include <stdlib.h>

enum column {
    COLUMN_IDS = 0,     /* difference to the node before, signed */
    COLUMN_PARENTS = 1, /* difference to the id of the node before, signed */
    COLUMN_FRAMES = 2,  /* which of the frames of this block, in the order of their first use */
    COLUMN_NEW = 3,     /* those frames: difference to the one before, signed */
    COLUMNS = NODECODE_COLUMNS
};

/* The frames of a block, found by open addressing: indices + 1 into nodes, where each was used
 * first; number[i] is the frame's number. */
struct frames {
    uint32_t *place;
    uint32_t *number;
    size_t capacity; /* of place, a power of two */
    uint32_t count;
};

static uint32_t *find_frame(const struct frames *frames,
                            const struct memtrace_recording_node *nodes, uint64_t frame) {
    for (size_t i = frame * UINT64_C(0x9e3779b97f4a7c15) >> 32;; i++) {
        uint32_t *place = &frames->place[i & (frames->capacity - 1)];
        if (*place == 0 || nodes[*place - 1].frame == frame) {
            return place;
        }
    }
}

int nodecode_pack(const struct memtrace_recording_node *nodes, size_t count,
                  struct varint_writer *payload) {
    struct varint_writer columns[COLUMNS] = {{0}};
    struct frames frames = {.capacity = 16};
    uint64_t frame = 0; /* the last new one */
    uint64_t id = 0;
    uint32_t *place;
    while (frames.capacity < count * 2) {
        frames.capacity *= 2;
    }
    frames.place = calloc(frames.capacity, sizeof *frames.place);
    frames.number = malloc((count + 1) * sizeof *frames.number);
    payload->failed |= frames.place == NULL || frames.number == NULL;
    for (size_t i = 0; i < count && !payload->failed; i++) {
        varint_put(&columns[COLUMN_IDS], varint_zigzag(nodes[i].id - id));
        varint_put(&columns[COLUMN_PARENTS], varint_zigzag(nodes[i].parent - id));
        place = find_frame(&frames, nodes, nodes[i].frame);
        if (*place == 0) {
            *place = (uint32_t)i + 1;
            frames.number[i] = frames.count++;
            varint_put(&columns[COLUMN_NEW], varint_zigzag(nodes[i].frame - frame));
            frame = nodes[i].frame;
        }
        varint_put(&columns[COLUMN_FRAMES], frames.number[*place - 1]);
        id = nodes[i].id;
    }
    varint_join(columns, COLUMNS, payload);
    for (int i = 0; i < COLUMNS; i++) {
        free(columns[i].bytes);
    }
    free(frames.place);
    free(frames.number);
    return payload->failed ? -1 : 0;
}

/* The next node; `frames` are those seen so far. */
static void get_node(struct varint_reader *columns, uint64_t id, uint64_t *frames,
                     size_t *frame_count, struct memtrace_recording_node *node) {
    uint64_t number;
    node->id = (uint32_t)(id + varint_unzigzag(varint_get(&columns[COLUMN_IDS])));
    node->parent = (uint32_t)(id + varint_unzigzag(varint_get(&columns[COLUMN_PARENTS])));
    number = varint_get(&columns[COLUMN_FRAMES]);
    if (number > *frame_count) {
        *columns->failed = true;
        number = 0;
    }
    if (number == *frame_count) {
        uint64_t before = number != 0 ? frames[number - 1] : 0;
        frames[number] = before + varint_unzigzag(varint_get(&columns[COLUMN_NEW]));
        ++*frame_count;
    }
    node->frame = frames[number];
}

int nodecode_unpack(const void *payload, size_t size, size_t count,
                    struct memtrace_recording_node **nodes) {
    struct varint_reader columns[COLUMNS];
    bool failed = false;
    uint64_t *frames;
    size_t frame_count = 0;
    if (varint_split(payload, size, columns, COLUMNS, &failed) != 0 ||
        count > (size_t)(columns[COLUMN_IDS].end - columns[COLUMN_IDS].next)) {
        return -1;
    }
    *nodes = malloc((count + 1) * sizeof **nodes);
    frames = malloc((count + 1) * sizeof *frames);
    failed = *nodes == NULL || frames == NULL;
    for (size_t i = 0; i < count && !failed; i++) {
        get_node(columns, i != 0 ? (*nodes)[i - 1].id : 0, frames, &frame_count, &(*nodes)[i]);
    }
    free(frames);
    if (failed) {
        free(*nodes);
        *nodes = NULL;
    }
    return failed ? -1 : 0;
}
