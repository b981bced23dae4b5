/* SPDX-License-Identifier: MIT */
/*
 * list_events.c FILE: what each stream of a recording holds, as the tests compare it: a line
 * "alloc THREAD NUMBER SIZE ADDRESS CONTEXT [WEIGHT]", "free STREAM-THREAD THREAD NUMBER" (a
 * realloc: both), "map ...", "mark ..." or "lost ..." for each event, streams one after the other,
 * each in its order.
 */
#include "analyze/read/recording.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void print_free(uint32_t freer, struct event_block block) {
    printf("free %" PRIu32 " %" PRIu32 " %" PRIu64 "\n", freer, block.thread, block.number);
}

static void print_event(uint32_t thread, const struct event *event) {
    switch (event->kind) {
    case EVENT_ALLOC:
        if (event->old.number != 0) {
            print_free(thread, event->old);
        }
        printf("alloc %" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIx64 " %" PRIu32, thread,
               event->block.number, event->size, event->address, event->context);
        printf(event->weight != 0 ? " %" PRIu64 "\n" : "\n", event->weight);
        break;
    case EVENT_FREE:
        print_free(thread, event->block);
        break;
    case EVENT_MAP:
        printf("map %" PRIu32 " %u %" PRIx64 " %" PRIu64 " %" PRIu32 "\n", thread, event->operation,
               event->address, event->size, event->context);
        break;
    case EVENT_MARK:
        printf("mark %" PRIu32 " %u %.*s\n", thread, event->operation, (int)event->text_size,
               event->text != NULL ? event->text : "");
        break;
    default:
        printf("lost %" PRIu32 " %" PRIu64 " %" PRIu64 "\n", thread, event->lost_allocs,
               event->lost_frees);
        break;
    }
}

static int print_block(const struct recording *recording, size_t place,
                       struct recording_buffer *buffer) {
    const struct memtrace_block_header *block = &recording->blocks[place].block;
    struct event_decoder decoder = {0};
    struct event event;
    struct error error;
    int result = recording_payload(recording, place, buffer, &error);
    if (result == 0) {
        result = event_decoder_start(&decoder, block, buffer->bytes, buffer->size);
    }
    while (result == 0 && (result = event_decoder_next(&decoder, &event)) == 1) {
        print_event(block->thread, &event);
        result = 0;
    }
    event_decoder_end(&decoder);
    return result;
}

int main(int argc, char **argv) {
    struct recording_buffer buffer = {0};
    struct error error = {""};
    struct recording *recording = argc == 2 ? recording_open(argv[1], &error) : NULL;
    int status = 0;
    if (recording == NULL) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    for (size_t i = 0; i < recording->block_count; i++) {
        if (recording->blocks[i].block.kind == MEMTRACE_BLOCK_EVENTS) {
            printf("block %" PRIu32 " %" PRIu32 "\n", recording->blocks[i].block.stream,
                   recording->blocks[i].block.thread);
            status |= print_block(recording, i, &buffer) != 0;
        }
    }
    recording_buffer_free(&buffer);
    recording_close(recording);
    return status;
}
