/* SPDX-License-Identifier: MIT */
/* controlled.c: see controlled.h. */
#include "stream/controlled.h"

#include "analyze/read/block.h"

#include <stdio.h>

/* Between two wishes: a receiver that only wants is not to fill the recording with marks. */
#define REST_NS UINT64_C(50000000)

static void controlled_answer(struct controlled *controlled, const char *text) {
    controlled->answer.is_done = false;
    snprintf(controlled->answer.text, sizeof controlled->answer.text, "%.255s", text);
    controlled->is_answered = true;
}

int controlled_take(struct controlled *controlled, const struct wire_frame *frame) {
    if (controlled->is_asked || wire_read_control(frame, &controlled->wish) != 0) {
        return -1;
    }
    controlled->is_asked = true;
    controlled->is_answered = false;
    controlled->number = frame->offset;
    if (!controlled->is_allowed) {
        controlled_answer(controlled, "its sender does not allow it: it was begun without "
                                      "--allow-control");
    }
    return 0;
}

/* Its file says which process it was, and its first block when that began. */
static void controlled_begin(struct controlled *controlled) {
    struct memtrace_recording_header header;
    struct region region;
    struct error error = {"its sender cannot read the recording any more"};
    if (block_read_at(controlled->fd, &header, sizeof header, 0) != (ssize_t)sizeof header ||
        region_find_recorded(header.pid, header.process_start_ticks, controlled->started_ns,
                             &region, &error) != 0 ||
        programask_begin(&controlled->ask, &region, &controlled->wish, &error) != 0) {
        controlled_answer(controlled, error.message);
    }
}

void controlled_look(struct controlled *controlled, uint64_t now_ns) {
    if (!controlled->is_asked || controlled->is_answered || now_ns < controlled->rested_ns) {
        return;
    }
    if (controlled->ask.header == NULL) {
        controlled->rested_ns = 0;
        controlled_begin(controlled);
    }
    if (controlled->ask.header != NULL) {
        controlled->is_answered = programask_look(&controlled->ask, &controlled->answer);
    }
    if (controlled->is_answered) {
        controlled->rested_ns = now_ns + REST_NS;
    }
}

size_t controlled_put(struct controlled *controlled, uint8_t *to) {
    if (!controlled->is_asked || !controlled->is_answered) {
        return 0;
    }
    controlled->is_asked = controlled->is_answered = false;
    return wire_put_answer(to, controlled->number, &controlled->answer);
}

void controlled_forget(struct controlled *controlled) {
    if (controlled->ask.header != NULL) {
        programask_end(&controlled->ask);
    }
    controlled->is_asked = controlled->is_answered = false;
}
