/* SPDX-License-Identifier: MIT */
/*
 * thread_watch.c: watches of the calling thread (heap/watch.h), and what memtrace.h says of them. A
 * watched thread is special: its allocations come by here, all others pay nothing.
 */
#define _GNU_SOURCE
#include "runtime/entry/event.h"

#include "memtrace/memtrace.h"
#include "runtime/base/own_maps.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"
#include "runtime/heap/watch.h"
#include "runtime/record/survey.h"

/* Made at the first watch. A forked child finds it, but its thread is not watched there. */
static THREAD_LOCAL struct watches *own_watches;

void thread_watch_alloc(struct thread *thread, const void *address, uint64_t size,
                        uint32_t context) {
    struct shadow_heap heap = event_heap();
    const struct heap_block block = {.size = size,
                                     .context = context,
                                     .thread = thread->id,
                                     .birth_tick = thread->tick,
                                     .start = machine_untagged(address)};
    watch_alloc(own_watches, &heap, &block);
}

void thread_watch_end_thread(void) {
    if (own_watches != NULL) {
        watch_reset(own_watches);
        sys_unmap(own_watches, sizeof *own_watches);
        own_watches = NULL;
    }
}

static uint32_t thread_watch_begin(struct thread *thread, const struct watch_limits *limits) {
    uint32_t number;
    if (own_watches == NULL) {
        own_watches = sys_map(sizeof *own_watches);
        own_maps_keep(own_watches);
    }
    if (own_watches == NULL) {
        return 0;
    }
    if (!thread->is_watched) {
        watch_reset(own_watches);
        own_watches->thread = thread->id;
    }
    number = watch_begin(own_watches, limits);
    thread->is_watched = own_watches->depth != 0;
    thread_settle_special(thread);
    return number;
}

PUBLIC uint32_t memtrace_watch_begin(uint64_t most_allocations, uint64_t most_bytes, int leaks) {
    const struct watch_limits limits = {most_allocations, most_bytes, leaks != 0};
    struct frame caller = EVENT_CALLER();
    struct thread *thread = thread_get(event_place(caller));
    uint32_t number = 0;
    if (thread != NULL && (thread->is_late || !thread_counts_all(thread))) {
        thread_done(thread);
    } else if (event_begin(thread, event_place(caller))) {
        number = thread_watch_begin(thread, &limits);
        event_end(thread);
    }
    return number;
}

PUBLIC int memtrace_watch_end(uint32_t watch, struct memtrace_watched *watched) {
    struct frame caller = EVENT_CALLER();
    struct thread *thread = thread_get_for_free(event_place(caller));
    struct watch_result result = {0};
    int status = -1;
    if (thread == NULL) {
        return -1;
    }
    if (thread->is_late || !thread->is_watched) {
        thread_done(thread);
    } else if (event_begin(thread, event_place(caller))) {
        struct shadow_heap heap = event_heap();
        status = watch_end(own_watches, &heap, watch, &result);
        thread->is_watched = own_watches->depth != 0;
        thread_settle_special(thread);
        status = LOAD_RELAXED(&runtime.sample_bytes) == 0 ? status : -1; /* a sample says little */
        event_end(thread);
    }
    *watched = (struct memtrace_watched){.allocations = result.allocations,
                                         .bytes = result.bytes,
                                         .leaked_blocks = result.leaked_blocks,
                                         .leaked_bytes = result.leaked_bytes,
                                         .over_context = result.over_context,
                                         .leaked_context = result.leaked_context};
    return status;
}

PUBLIC size_t memtrace_describe_path(uint32_t context, char *buffer, size_t size) {
    enum { MOST_FRAMES = 64 };
    uint64_t frames[MOST_FRAMES];
    struct text text;
    uint32_t count;
    if (size == 0) {
        return 0;
    }
    text_init(&text, buffer, size);
    if (context == 0 || LOAD_ACQUIRE(&runtime.state) != RUNTIME_READY) {
        return 0;
    }
    count = survey_frames(&runtime.tree, context, frames, MOST_FRAMES);
    for (uint32_t i = 0; i < count && i < MOST_FRAMES; i++) {
        size_t before = text.length;
        survey_add_frame(&text, &runtime.modules, frames[i]);
        if (text.cut) { /* whole lines only */
            text.length = before;
            text.start[before] = '\0';
            break;
        }
    }
    return text.length;
}
