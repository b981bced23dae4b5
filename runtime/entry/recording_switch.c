/* SPDX-License-Identifier: MIT */
/* recording_switch.c: see recording_switch.h. docs/architecture.md says why so. */
#include "runtime/entry/recording_switch.h"

#include "runtime/base/sys.h"
#include "runtime/base/text.h"
#include "runtime/entry/event.h"
#include "runtime/entry/mapping.h"
#include "runtime/entry/preexisting.h"
#include "runtime/entry/quiescence.h"
#include "runtime/entry/switch.h"

uint32_t recording_switch_waits;

enum phase {
    IDLE = 0,
    GATHERING, /* each thread's gate comes to say that it is to look */
    BEGINNING, /* threads get streams */
    BEGUN,     /* what was there before is named; some may still be in an event of that time */
    RECORDING,
    ENDING, /* threads leave them */
};

static struct {
    struct trylock lock;     /* one thread at a time looks */
    uint32_t phase;          /* enum phase */
    struct quiescence quiet; /* while they do */
    struct recorder_stream base;
} at;

/* Where nobody can tell when threads have been outside, they have after so long. */
#define BLIND_NS UINT64_C(2000000000)

int recording_switch_is_moving(void) {
    uint32_t phase = LOAD_RELAXED(&at.phase);
    return phase == GATHERING || phase == BEGINNING || phase == ENDING;
}

void recording_switch_ask(void) {
    STORE_RELAXED(&recording_switch_waits, 1u);
}

void recording_switch_fork(void) {
    if (at.phase != IDLE || at.lock.held || recording_switch_waits != 0) {
        quiescence_end(&at.quiet);
        at.lock.held = 0;
        at.phase = IDLE;
        recording_switch_waits = 0;
    }
}

static struct memtrace_recording *recording(void) {
    return region_recording(runtime.space.header);
}

static int recording_move_state(uint32_t from, uint32_t to) {
    return __atomic_compare_exchange_n(&recording()->state, &from, to, 0, __ATOMIC_ACQ_REL,
                                       __ATOMIC_ACQUIRE);
}

/* --- what is there ---------------------------------------------------------------------------- */

struct base {
    struct recorder_stream *stream;
    uint64_t blocks, bytes;
};

enum { WORDS_MOST = 8 }; /* of one block or mapping */

static int base_has_room(struct recorder_stream *stream) {
    return recorder_has_room(stream, WORDS_MOST) ||
           (recorder_may_wait(stream->recorder) && recorder_wait(stream));
}

static uint32_t base_next_number(void *argument) {
    struct recorder_stream *stream = ((struct base *)argument)->stream;
    if (stream->number != stream->numbers_end && base_has_room(stream)) {
        return (uint32_t)stream->number;
    }
    recorder_lost(stream, 1, 0);
    return 0;
}

static void base_write_block(void *argument, const struct heap_block *block) {
    struct base *base = argument;
    struct recorder_alloc alloc = {.address = block->start,
                                   .size = block->size,
                                   .context = block->context,
                                   .flags = MEMTRACE_ALLOC_BEFORE};
    recorder_alloc(base->stream, &alloc);
    base->blocks++;
    base->bytes += block->size;
}

static void base_write_mapping(void *argument, struct interval *item) {
    struct base *base = argument;
    struct recorder_map map = mapping_record(item);
    if (!base_has_room(base->stream) || !recorder_map(base->stream, &map)) {
        space_lost(&runtime.space, MEMTRACE_LOST_RECORDS, 1);
    }
}

static void base_mark(struct thread *thread, const char *what, const struct base *base) {
    char buffer[160];
    struct text text;
    text_init(&text, buffer, sizeof buffer);
    text_add(&text, what);
    if (base != NULL) {
        text_format(&text, "%'" PRIu64 " blocks with %'" PRIu64 " bytes were there before",
                    base->blocks, base->bytes);
    }
    if (thread->stream != NULL) {
        recorder_mark(thread->stream, MEMTRACE_MARK_POINT, 0, buffer, text.length);
    }
}

static void base_write(struct thread *thread) {
    struct heap_naming naming = {.next = base_next_number, .named = base_write_block};
    struct base base = {.stream = &at.base};
    naming.argument = &base;
    recorder_join_base(&runtime.recorder, base.stream);
    preexisting_record(base.stream);
    mapping_visit(base_write_mapping, &base);
    heap_name_all(&runtime.heap, &naming);
    heap_name_all(&runtime.foreign, &naming);
    base_mark(thread, "recording: begun; ", &base);
    heap_name_all(&runtime.pools, &naming);
    recorder_leave(base.stream);
}

/* --- steps: 1: there is another one at once --------------------------------------------------- */

static void phase_open_gates(enum phase phase) {
    STORE_RELAXED(&at.phase, (uint32_t)phase);
    switch_renew();
    quiescence_begin(&at.quiet);
}

static void phase_arrive(enum phase phase) {
    STORE_RELAXED(&at.phase, (uint32_t)phase);
    switch_renew();
    quiescence_end(&at.quiet);
}

static int phase_is_over(void) {
    return quiescence_is(&at.quiet) ||
           (!at.quiet.is_whole && quiescence_passed_ns(&at.quiet) > BLIND_NS);
}

/* A recording begins only where all is counted: what is not is not known by the block. Each
 * thread's gate says that it is to look before any thread has a stream: so a block that is recorded
 * is freed by nobody who does not know. A thread that was just leaving an event when the gates were
 * moved had its own from before; so they are moved until each has been outside since. */
static int phase_look_idle(void) {
    uint32_t state = LOAD_ACQUIRE(&recording()->state);
    STORE_RELAXED(&recording_switch_waits, 0u);
    if (state != MEMTRACE_RECORD_OPENED) {
        return state == MEMTRACE_RECORD_ENDING &&
               recording_move_state(MEMTRACE_RECORD_ENDING, MEMTRACE_RECORD_LEFT);
    }
    if (!runtime.heap.numbered) {
        text_copy(recording()->path, sizeof recording()->path,
                  "its address space is limited (ulimit -v), and it has no room for the numbers of "
                  "blocks: start it by 'memtrace record'");
        recording_move_state(MEMTRACE_RECORD_OPENED, MEMTRACE_RECORD_REFUSED);
        return 0;
    }
    if (LOAD_RELAXED(&runtime.gate) != GATE_OPEN) {
        return 0;
    }
    phase_open_gates(GATHERING);
    return 1;
}

/* Each thread's gate said, while it was outside, that it is to look. */
static int phase_begin(struct thread *thread) {
    thread_join_all();
    recorder_prepare(&runtime.recorder, &runtime.space); /* before the collector looks at buffers */
    if (LOAD_RELAXED(&runtime.gate) != GATE_JOINING ||   /* another mode came in between */
        !recording_move_state(MEMTRACE_RECORD_OPENED, MEMTRACE_RECORD_WANTED)) {
        phase_arrive(IDLE);
        return 0;
    }
    event_forget_modules();
    STORE_RELAXED(&at.phase, (uint32_t)BEGINNING);
    recorder_begin(&runtime.recorder);
    thread_settle(thread);
    quiescence_begin(&at.quiet);
    return 1;
}

static int phase_look_recording(struct thread *thread) {
    STORE_RELAXED(&recording_switch_waits, 0u);
    if (LOAD_ACQUIRE(&recording()->state) != MEMTRACE_RECORD_ENDING) {
        return 0;
    }
    base_mark(thread, "recording: ended", NULL);
    preexisting_forget_recording();
    phase_open_gates(ENDING);
    recorder_end(&runtime.recorder);
    thread_settle(thread);
    STORE_RELAXED(&recording_switch_waits, 1u);
    return 1;
}

/* In the other phases threads are waited for. */
static int phase_step(struct thread *thread) {
    enum phase phase = at.phase;
    if (phase == IDLE) {
        return phase_look_idle();
    }
    if (phase == RECORDING) {
        return phase_look_recording(thread);
    }
    if (phase == GATHERING || phase == BEGINNING) {
        STORE_RELAXED(&recording_switch_waits, 1u);
    }
    if (phase == GATHERING) {
        thread_join_all();
    }
    if (!phase_is_over()) {
        return 0;
    }
    if (phase == GATHERING) {
        return phase_begin(thread);
    }
    if (phase == BEGINNING) {
        base_write(thread);
        __atomic_fetch_add(&recording()->begun, 1, __ATOMIC_RELEASE);
        phase_arrive(BEGUN);
        quiescence_begin(&at.quiet);
    } else if (phase == BEGUN) {
        /* Who had just written a block's record when that got a name has seen that it has one. */
        STORE_RELEASE(&runtime.recorder.is_settling, 0u);
        phase_arrive(RECORDING);
    } else {
        heap_forget_numbers(&runtime.heap);
        heap_forget_numbers(&runtime.pools);
        heap_forget_numbers(&runtime.foreign);
        phase_arrive(IDLE);
        recording_move_state(MEMTRACE_RECORD_ENDING, MEMTRACE_RECORD_LEFT);
    }
    return 1;
}

/* In a handler's event another may be interrupted that had begun before; and nobody may wait. */
COLD void recording_switch_step(struct thread *thread) {
    if (runtime.space.is_private || thread->is_late || event_is_in_handler(thread)) {
        return;
    }
    if (thread->generation != LOAD_ACQUIRE(&runtime.recorder.generation)) {
        thread_settle(thread);
    }
    if (!trylock_take(&at.lock)) {
        return;
    }
    while (phase_step(thread)) {
    }
    trylock_release(&at.lock);
}
