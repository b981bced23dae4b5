/* SPDX-License-Identifier: MIT */
/* api.c: the public functions of memtrace.h. */
#define _GNU_SOURCE
#include "memtrace/memtrace.h"

#include "runtime/base/sys.h"
#include "runtime/base/text.h"
#include "runtime/entry/child.h"
#include "runtime/entry/event.h"
#include "runtime/entry/switch.h"
#include "runtime/follow/pool.h"
#include "runtime/record/survey.h"

#include <errno.h>

/* Whether anything is counted here. A forked child may ask before it has had an event: it starts
 * now, then. */
static int is_profiled(void) {
    int saved = errno;
    int is_ready = runtime_is_ready();
    if (!is_ready && LOAD_ACQUIRE(&runtime.state) == RUNTIME_READY) {
        thread_pass_through(1);
        is_ready = runtime_ensure();
        thread_pass_through(0);
    }
    errno = saved;
    return is_ready;
}

PUBLIC int memtrace_start(void) {
    int saved = errno;
    int ready;
    thread_pass_through(1);
    ready = runtime_ensure();
    thread_pass_through(0);
    if (ready) {
        switch_on();
    }
    errno = saved;
    return ready ? 0 : -1;
}

PUBLIC void memtrace_stop(void) {
    if (is_profiled()) {
        switch_off();
    }
}

PUBLIC int memtrace_is_active(void) {
    return is_profiled() && switch_is_on();
}

PUBLIC void memtrace_snapshot(void) {
    if (is_profiled()) {
        switch_snapshot(1);
    }
}

PUBLIC void memtrace_sample(size_t mean_bytes) {
    if (is_profiled()) {
        switch_sample(mean_bytes);
    }
}

/* --- marks ------------------------------------------------------------------------------------ */

PUBLIC void memtrace_mark(const char *text) {
    if (text != NULL) {
        event_mark(MEMTRACE_MARK_POINT, 0, text, text_length(text), EVENT_CALLER());
    }
}

PUBLIC uint64_t memtrace_scope_begin(const char *name) {
    static uint64_t last;
    uint64_t id = 0;
    if (name != NULL && recorder_is_on(&runtime.recorder) && is_profiled()) {
        id = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
        event_mark(MEMTRACE_MARK_SCOPE_BEGIN, id, name, text_length(name), EVENT_CALLER());
    }
    return id;
}

PUBLIC void memtrace_scope_end(uint64_t scope) {
    if (scope != 0) {
        event_mark(MEMTRACE_MARK_SCOPE_END, scope, "", 0, EVENT_CALLER());
    }
}

/* --- reports ---------------------------------------------------------------------------------- */

enum { VIEW_FRAMES = 256 };

struct user_filter {
    memtrace_filter function;
    void *argument;
};

static uint32_t fill_frames(uint32_t context, const void **out, uint32_t capacity) {
    uint64_t frames[VIEW_FRAMES];
    uint32_t count = survey_frames(&runtime.tree, context, frames, VIEW_FRAMES);
    for (uint32_t i = 0; i < count && i < capacity && i < VIEW_FRAMES; i++) {
        out[i] = (const void *)(uintptr_t)(frames[i] & MEMTRACE_FRAME_ADDRESS_MASK);
    }
    return count;
}

static int ask_user(void *argument, uint32_t context, const struct survey_item *item) {
    const struct user_filter *filter = argument;
    const void *frames[VIEW_FRAMES];
    uint32_t count = fill_frames(context, frames, VIEW_FRAMES);
    struct memtrace_context_view view = {
        .live_bytes = item->alloc_bytes - item->free_bytes,
        .live_blocks = item->alloc_count - item->free_count,
        .total_bytes = item->alloc_bytes,
        .allocations = item->alloc_count,
        .frames = frames,
        .frame_count = count < VIEW_FRAMES ? count : VIEW_FRAMES,
    };
    return filter->function(&view, filter->argument);
}

PUBLIC long memtrace_report(int fd, memtrace_filter filter, void *argument) {
    struct user_filter user = {filter, argument};
    struct survey survey;
    long written = -1;
    int saved = errno;
    if (is_profiled() && child_grow() && survey_make(&survey, &runtime.space, &runtime.tree) == 0) {
        written = survey_write_top(fd, &survey, &runtime.tree, &runtime.modules, 0,
                                   filter != NULL ? ask_user : NULL, &user);
        survey_free(&survey);
    }
    errno = saved;
    return written;
}

PUBLIC long memtrace_thread_report(void (*callback)(const struct memtrace_thread_view *thread,
                                                    void *argument),
                                   void *argument) {
    uint32_t place = 0;
    long count = 0;
    if (!is_profiled() || !child_grow()) {
        return -1;
    }
    while ((place = region_next_thread(&runtime.region, place)) != 0) {
        const struct memtrace_thread_record *record = region_thread(&runtime.region, place);
        struct memtrace_thread_view view;
        if (record->state == MEMTRACE_THREAD_FREE && record->counts.alloc_count == 0 &&
            record->counts.free_count == 0) {
            continue;
        }
        view = (struct memtrace_thread_view){
            .id = record->id,
            .tid = record->tid,
            .alive = LOAD_RELAXED(&record->state) == MEMTRACE_THREAD_ALIVE,
            .name = record->name,
            .allocations = LOAD_RELAXED(&record->counts.alloc_count),
            .total_bytes = LOAD_RELAXED(&record->counts.alloc_bytes),
            .frees = LOAD_RELAXED(&record->counts.free_count),
            .freed_bytes = LOAD_RELAXED(&record->counts.free_bytes),
            .freed_for_others_blocks = LOAD_RELAXED(&record->foreign_free_count),
            .freed_for_others_bytes = LOAD_RELAXED(&record->foreign_free_bytes),
        };
        callback(&view, argument);
        count++;
    }
    return count;
}

PUBLIC long memtrace_thread_frees(uint32_t id,
                                  void (*callback)(uint32_t owner, uint64_t blocks, uint64_t bytes,
                                                   void *argument),
                                  void *argument) {
    if (!is_profiled() || !child_grow() || region_thread(&runtime.region, id) == NULL) {
        return -1;
    }
    return region_visit_foreign_frees(&runtime.region, id, callback, argument);
}

PUBLIC void memtrace_name_thread(const char *name) {
    struct thread *thread = thread_get((uintptr_t)__builtin_frame_address(0));
    if (thread == NULL) {
        return;
    }
    if (!thread->is_late && thread->id != MEMTRACE_THREAD_OTHERS) {
        text_copy(thread->record->name, sizeof thread->record->name, name);
    }
    thread_done(thread);
}

/* --- one block -------------------------------------------------------------------------------- */

static uint64_t age_of(const struct heap_block *block) {
    return (uint64_t)heap_age(block->birth_tick, tick_now()) << MEMTRACE_TICK_SHIFT;
}

/* The innermost block that contains `address`: a pool's lies in one of the heap. 1, or 0. */
static int find_block(uintptr_t address, struct heap_block *block) {
    struct memtrace_sampled_block picked;
    uint32_t tick = tick_now();
    if (heap_find(&runtime.pools, address, tick, block) ||
        heap_find(&runtime.foreign, address, tick, block) ||
        heap_find(&runtime.heap, address, tick, block)) {
        return 1;
    }
    if (!sampled_heap_find(address, &block->start, &picked)) {
        return 0;
    }
    block->size = picked.size;
    block->context = picked.context;
    block->thread = picked.thread;
    block->birth_tick = picked.birth_tick;
    return 1;
}

PUBLIC int memtrace_lookup(const void *address, struct memtrace_block *out) {
    struct heap_block block;
    if (!is_profiled() || !find_block(machine_untagged(address), &block)) {
        return 0;
    }
    *out = (struct memtrace_block){.start = (const void *)block.start,
                                   .size = block.size,
                                   .age_ns = age_of(&block),
                                   .thread = block.thread,
                                   .context = block.context};
    out->frame_count =
        fill_frames(block.context, out->frames, sizeof out->frames / sizeof out->frames[0]);
    return 1;
}

PUBLIC void memtrace_print_trace(const void *address) {
    struct heap_block block;
    char buffer[256];
    struct text text;
    text_init(&text, buffer, sizeof buffer);
    text_format(&text, "memtrace: %#" PRIxPTR, (uintptr_t)address);
    if (!is_profiled() || !find_block(machine_untagged(address), &block)) {
        text_add(&text, is_profiled() ? " is not a live block\n" : ": nothing is profiled here\n");
        write_all(2, text.start, text.length);
        return;
    }
    text_format(&text,
                " lies in a block of %'" PRIu64 " bytes at %#" PRIxPTR ", allocated %" PRIu64
                " ms ago by thread %u, at\n",
                block.size, block.start, age_of(&block) / 1000000, block.thread);
    write_all(2, text.start, text.length);
    survey_write_frames(2, &runtime.tree, &runtime.modules, block.context);
}

/* --- custom pools ----------------------------------------------------------------------------- */

static struct shadow_heap *heap_of(const char *name) {
    return name != NULL ? &runtime.pools : &runtime.foreign;
}

static struct pool api_pool(const char *name) {
    return (struct pool){.heap = heap_of(name), .number = name != NULL ? pool_number(name) : 0};
}

PUBLIC void memtrace_alloc(const char *pool, const void *pointer, size_t size) {
    struct frame caller = EVENT_CALLER();
    struct thread *thread = pointer != NULL ? thread_get(event_place(caller)) : NULL;
    if (thread != NULL) {
        const struct pool to = api_pool(pool);
        const struct pool_object object = {.address = machine_untagged(pointer), .size = size};
        pool_add(thread, &to, &object, caller);
        thread_done(thread);
    }
}

PUBLIC void memtrace_realloc(const char *pool, const void *old_pointer, const void *pointer,
                             size_t size) {
    struct frame caller = EVENT_CALLER();
    struct thread *thread = thread_get(event_place(caller));
    struct pool_object object = {.address = machine_untagged(pointer), .size = size};
    if (thread == NULL) {
        return;
    }
    if (old_pointer != NULL) {
        object.replaces = pool_remove(thread, heap_of(pool), machine_untagged(old_pointer),
                                      pointer != NULL, caller);
    }
    if (pointer != NULL) {
        const struct pool to = api_pool(pool);
        pool_add(thread, &to, &object, caller);
    }
    thread_done(thread);
}

PUBLIC void memtrace_free(const char *pool, const void *pointer) {
    struct frame caller = EVENT_CALLER();
    struct thread *thread = thread_get_for_free(event_place(caller));
    if (thread != NULL) {
        if (pointer != NULL) {
            pool_remove(thread, heap_of(pool), machine_untagged(pointer), 0, caller);
        }
        thread_done(thread);
    }
}
