/* SPDX-License-Identifier: MIT */
/* latethread.c: see latethread.h. */
#include "runtime/entry/latethread.h"

#include "runtime/base/sys.h"
#include "runtime/entry/runtime.h"
#include "runtime/entry/threadpool.h"

static struct {
    struct thread *thread;
    struct trylock lock;
    struct walker walker;
    struct recorder_stream stream;
} late;

void latethread_init(void) {
    if (late.thread == NULL) {
        late.thread = threadpool_take();
    }
    if (late.thread != NULL && walk_init(&late.walker, 0, 0) == 0) {
        late.thread->walker = &late.walker;
        late.thread->column = runtime.ledger.proxy;
        late.thread->record = region_thread(&runtime.region, MEMTRACE_THREAD_OTHERS);
        late.thread->counts = &late.thread->record->counts;
        late.thread->id = MEMTRACE_THREAD_OTHERS;
        late.thread->peak =
            (struct peak_share){.low = INT64_MAX, .high = INT64_MIN, .counts = late.thread->counts};
        late.thread->is_late = 1;
        late.thread->is_special = 1;
        thread_begin(late.thread, &late.stream);
        late.thread->gate = GATE_OPEN;
    }
}

void latethread_forget(void) {
    late.walker = (struct walker){0};
}

void latethread_fork(void) {
    trylock_fork(&late.lock);
}

static struct thread *refuse(void) {
    space_lost(&runtime.space, MEMTRACE_LOST_EVENTS, 1);
    return NULL;
}

struct thread *latethread_join(void) {
    if (late.thread == NULL || !sys_take(&late.lock)) {
        return refuse();
    }
    if (UNLIKELY(late.thread->column == NULL)) { /* wiped: this is a forked child */
        walk_forget(&late.walker);
        walk_free(&late.walker);
        latethread_init();
    }
    if (late.thread->column == NULL) { /* no memory */
        trylock_release(&late.lock);
        return refuse();
    }
    peak_end_alone(runtime.space.header);
    if (UNLIKELY(late.thread->generation != LOAD_ACQUIRE(&runtime.recorder.generation))) {
        thread_settle(late.thread);
    }
    late.thread->gate = LOAD_RELAXED(&runtime.gate);
    return late.thread;
}

struct recorder_stream *latethread_stream(void) {
    return &late.stream;
}

COLD void thread_done_late(void) {
    trylock_release(&late.lock);
}
