/* SPDX-License-Identifier: MIT */
/* child.c: a forked child starts light, grows, or hands in what it did. See child.h. Called by
 * process/, where it begins and ends, and by events. */
#define _GNU_SOURCE
#include "runtime/entry/child.h"

#include "runtime/base/sys.h"
#include "runtime/entry/event.h"
#include "runtime/entry/mapping.h"
#include "runtime/entry/switch.h"
#include "runtime/heap/estimates.h"
#include "runtime/record/light.h"

static WRITTEN_BY_CHILDREN struct {
    struct light light;
    struct thread *direct;             /* whose counts are those of light.process; NULL: nobody's */
    struct ledger_column *born;        /* of what it was born with; NULL: not needed yet */
    const void *own_start;             /* of its segments */
    uint32_t first_thread;             /* blocks of threads below it are inherited */
    uint64_t freed_count, freed_bytes; /* inherited blocks, while light */
    uint64_t events_most, live_most;
    int is_wanted; /* to grow after the event that is going on */
} child;

/* --- what it was born with -------------------------------------------------------------------- */

static int is_inherited(uint32_t thread) {
    return thread < child.first_thread;
}

static void count_born(uint32_t context, uint64_t size, uint64_t count) {
    if (child.born == NULL) {
        child.born = ledger_add_column(&runtime.ledger);
    }
    if (child.born != NULL) {
        ledger_inherit(&runtime.ledger, child.born, context, size, count);
    } else {
        space_lost(&runtime.space, MEMTRACE_LOST_EVENTS, count);
    }
}

/* All that was live since the start was more by these blocks. */
static void count_born_blocks(uint32_t context, uint64_t size, uint64_t count) {
    struct memtrace_header *header = runtime.space.header;
    count_born(context, size, count);
    header->inherited_blocks += count;
    header->inherited_bytes += size;
    __atomic_fetch_add(&header->maximum_bytes, (int64_t)size, __ATOMIC_RELAXED);
    __atomic_fetch_add(&header->live_bytes, (int64_t)size, __ATOMIC_RELAXED);
}

int child_inherited_freed(uint32_t owner, uint32_t context, uint64_t size, uint64_t count) {
    if (!is_inherited(owner)) {
        return 0;
    }
    if (child_is_light()) {
        struct thread *direct = child.direct;
        if (direct != NULL) {
            peak_before_inherited(&direct->peak, runtime.space.header);
        }
        count_born_blocks(context, size, count);
        child.freed_count += count;
        child.freed_bytes += size;
        if (direct != NULL) {
            child.light.process->inherited_free_count = child.freed_count;
            child.light.process->inherited_free_bytes = child.freed_bytes;
            peak_after_inherited(&direct->peak, runtime.space.header, size);
        }
    }
    return 1;
}

int child_inherited_pool_freed(uint32_t owner, uint32_t context, uint64_t size) {
    if (!is_inherited(owner)) {
        return 0;
    }
    if (child_is_light()) {
        count_born(context, size, 1);
    }
    return 1;
}

void child_inherited_unmapped(uint32_t context, uint64_t size, int is_last) {
    count_born(context, size, is_last != 0);
}

/* Blocks of one context, which mostly lie beside each other: there may be millions of them. */
struct inheritance {
    struct thread *thread; /* NULL: they are not recorded */
    uint32_t context;
    uint64_t bytes, count;
};

static void inherit_so_far(struct inheritance *all) {
    if (all->count != 0) {
        count_born_blocks(all->context, all->bytes, all->count);
    }
    all->bytes = all->count = 0;
}

static void inherit_block(void *argument, const struct heap_block *block) {
    struct inheritance *all = argument;
    if (!is_inherited(block->thread)) {
        return;
    }
    if (block->context != all->context) {
        inherit_so_far(all);
        all->context = block->context;
    }
    all->bytes += block->size;
    all->count++;
    if (all->thread != NULL) { /* in the child's recording it begins anew, as its first thread's */
        struct recorder_alloc alloc = {
            .address = block->start, .size = block->size, .context = block->context};
        struct heap_block own = *block;
        own.thread = all->thread->id;
        own.birth_tick = all->thread->tick;
        heap_replace(&runtime.heap, &own);
        event_record_alloc(all->thread, &runtime.heap, &alloc);
    }
}

static void inherit_sampled(void *argument, uintptr_t start,
                            const struct memtrace_sampled_block *block) {
    struct variance variance = {.bytes = estimates_variance_of(block->size, block->bytes)};
    (void)argument;
    (void)start;
    if (is_inherited(block->thread)) {
        count_born_blocks(block->context, block->bytes, block->count);
        estimates_add(&runtime.space, block->context, variance);
    }
}

static void inherit_pool_block(void *argument, const struct heap_block *block) {
    (void)argument;
    if (is_inherited(block->thread)) {
        count_born(block->context, block->size, 1);
    }
}

static void inherit_mapping(void *argument, struct interval *item) {
    struct thread *thread = argument;
    if (!item->is_inherited) {
        return;
    }
    item->is_inherited = 0;
    count_born(item->context, item->end - item->start, !item->is_part);
    if (thread != NULL && thread->stream != NULL) {
        struct recorder_map map = mapping_record(item);
        event_record_map(thread, &map);
    }
}

/* The numbers of what is not recorded as inherited are the parent's. */
static void inherit_no_number(void *argument, const struct heap_block *block) {
    heap_set_number(argument, block->start, 0);
}

/* What is left of it is counted: the child has a region of its own. */
static void child_inherit(struct thread *thread) {
    int is_recorded = runtime.recorder.recording != NULL;
    struct inheritance all = {.thread = thread != NULL && thread->stream != NULL ? thread : NULL};
    if (is_recorded) {
        heap_visit(&runtime.pools, inherit_no_number, &runtime.pools);
        heap_visit(&runtime.foreign, inherit_no_number, &runtime.foreign);
    }
    if (is_recorded && thread == NULL) {
        heap_visit(&runtime.heap, inherit_no_number, &runtime.heap);
    }
    heap_visit(&runtime.heap, inherit_block, &all);
    all.thread = NULL; /* like a pool's, the others are no records of the child's */
    heap_visit(&runtime.foreign, inherit_block, &all);
    inherit_so_far(&all);
    sampled_heap_visit(inherit_sampled, NULL);
    heap_visit(&runtime.pools, inherit_pool_block, NULL);
    mapping_visit_in_child(inherit_mapping, thread);
}

/* --- where its thread counts ------------------------------------------------------------------ */

/* Whether events of the thread end in child_note(). */
static void child_set_noted(struct thread *thread, uint32_t is_noted) {
    thread->is_noted = is_noted;
    thread_settle_special(thread);
}

static void child_move_counts(struct thread *thread, struct memtrace_counts *to) {
    *to = *thread->counts;
    thread->counts = to;
    peak_move(&thread->peak, to);
}

/* The thread has just joined; signals wait. */
static void child_begin_direct(struct thread *thread) {
    if (child.light.process == NULL || thread->is_late || thread->peak.mode != PEAK_ALONE) {
        return;
    }
    child_move_counts(thread, &child.light.process->counts);
    peak_begin_own(&thread->peak, runtime.space.header, &child.light.process->maximum_bytes);
    child.direct = thread;
    child_set_noted(thread, 0);
}

/* (The fork of a light child, which has not begun, finds its parent's.) */
void child_end_direct(void) {
    struct thread *thread = child.direct;
    if (thread != NULL && child_is_light()) {
        child.direct = NULL;
        peak_end_own();
        child_move_counts(thread, &thread->record->counts);
        child_set_noted(thread, 1);
    }
}

/* --- a region of its own ---------------------------------------------------------------------- */

/* What is the child's own, and of its parent's tree, modules and pools, so that ids stay valid. */
static int child_keeps(void *argument, const struct memtrace_segment *segment) {
    const struct runtime *parent = argument;
    const void *start = segment;
    if (start >= child.own_start) {
        return 1;
    }
    if (segment->kind == MEMTRACE_SEGMENT_MODULES) {
        return segment->index < MODULE_LIMIT / MODULE_LEAF_ITEMS &&
               (const void *)parent->modules.leaf[segment->index] == start;
    }
    return start == (const void *)parent->region.pools || context_is_leaf(&parent->tree, segment);
}

static int child_move_to_own_region(void) {
    struct region_heirs heirs = {.keep = child_keeps, .argument = &runtime};
    uint32_t modules = LOAD_ACQUIRE(&runtime.modules.header->module_count);
    if (region_grow(&runtime.region, &heirs) != 0) {
        return -1;
    }
    context_end_private(&runtime.tree);
    runtime.space.header->malloc_by = runtime.malloc_by;
    runtime.space.header->module_count = modules;
    runtime.modules.header = runtime.space.header;
    region_describe(&runtime.region, 1);
    runtime_find_helpers();
    return 0;
}

/* Signals wait: a handler would count in what is being moved. */
static int child_grow_now(void) {
    struct sys_signals mask = sys_block_signals();
    int is_grown;
    thread_pass_through(1);
    child.is_wanted = 0;
    child_end_direct();
    is_grown = child_move_to_own_region() == 0;
    if (is_grown) {
        child_inherit(NULL);
        light_close(&child.light, 1);
        if (thread_self->record != NULL) {
            child_set_noted(thread_self, 0);
        }
    } else { /* no room: not at each event again */
        child.events_most *= 2;
        child.live_most *= 2;
    }
    thread_pass_through(0);
    sys_restore_signals(mask);
    return is_grown;
}

int child_grow(void) {
    if (!child_is_light()) {
        return 1;
    }
    /* Whether somebody of ours was interrupted who adds to counts that would move. (Where a gate is
     * open, that is in a fast half.) */
    if (thread_is_inside() ||
        (child.direct != NULL && thread_self == child.direct &&
         interrupted_inside(&runtime.rules, thread_self->walker->stack, EVENT_CALLER()))) {
        child.is_wanted = 1;
        thread_self->is_noted = thread_self->is_special = 1;
        return 0;
    }
    return child_grow_now();
}

/* --- the start -------------------------------------------------------------------------------- */

/* Header and tree become private, unless the parent was light: then they are. *threads, *pools: how
 * many the parent had. (Its header is read by its new address: by the old one it would be one more
 * page to be mapped.) */
static int child_leave_parent(uint32_t *threads, uint32_t *pools) {
    const struct memtrace_header *header = runtime.space.header;
    int was_light = runtime.space.is_private;
    light_close(&child.light, 0); /* the record is the parent's */
    if (!was_light) {
        child.light.ancestor = space_begin_private(&runtime.space);
        context_begin_private(&runtime.tree);
        header = child.light.ancestor;
        if (header == NULL) {
            return -1;
        }
    }
    *threads = LOAD_RELAXED(&header->thread_count);
    *pools = LOAD_RELAXED(&header->pool_count);
    return was_light && space_begin_private_again(&runtime.space) != 0 ? -1 : 0;
}

/* Locks that threads may have held which are not here, and what was theirs. */
static int child_begin_anew(void) {
    trylock_fork(&runtime.rules.lock);
    runtime.world.libunwind = NULL; /* its locks may be held, too */
    trylock_fork(&runtime.modules.lock);
    runtime.modules.header = child.light.ancestor;
    recorder_fork(&runtime.recorder);
    runtime.clock_word = clock_check(runtime.clock_word);
    runtime.has_companion = 0;
    runtime.churn_printed = runtime.churn_sampled = runtime.snapshots_answered = 0;
    context_fork(&runtime.tree);
    heap_fork();
    ledger_fork(&runtime.ledger);
    runtime_tell_tables();
    estimates_fork();
    switch_fork();
    return ledger_init(&runtime.ledger, &runtime.space);
}

/* A region of its own gets a copy of the tree: worth it for who does much. In mode sampled a single
 * block may stand for more than 100,000: only what is held counts then. */
static void child_set_limits(void) {
    uint64_t events = CHILD_EVENTS_MOST + runtime.tree.leaves * MEMTRACE_LEAF_ITEMS / 4;
    uint64_t several = CHILD_SAMPLES_MOST * LOAD_RELAXED(&runtime.sample_bytes);
    child.events_most = several != 0 ? INT64_MAX / 4 : events;
    child.live_most = several > CHILD_LIVE_MOST ? several : CHILD_LIVE_MOST;
}

int child_start(void) {
    enum { ROOM_FOR_THREADS = 512 };
    uint32_t threads, pools;
    struct thread *thread;
    int has_numbers;
    int is_light;
    if (child_leave_parent(&threads, &pools) != 0) {
        return -1;
    }
    child.direct = NULL;
    child.own_start = runtime.space.base + runtime.space.header->end;
    child.born = NULL;
    child.freed_count = child.freed_bytes = 0;
    child_set_limits();
    child.is_wanted = 0;
    if (region_begin_light(&runtime.region) != 0 || child_begin_anew() != 0) {
        return -1;
    }
    runtime.space.header->pool_count = pools;
    /* Threads go on where the parent's end, while there are numbers; then they start anew. */
    has_numbers = threads < REGION_THREAD_LIMIT - ROOM_FOR_THREADS;
    child.first_thread = has_numbers ? threads : UINT32_MAX;
    if (has_numbers) {
        runtime.space.header->thread_count = threads;
    }
    /* A handler that interrupted an event goes on in it with what was its parent's. */
    is_light = has_numbers && !thread_forked_inside() &&
               runtime.settings.recording.state == MEMTRACE_RECORD_NONE &&
               light_is_open(&child.light, &runtime.space) &&
               light_open(&child.light, &runtime.space) == 0;
    if (!is_light && child_move_to_own_region() != 0) {
        return -1;
    }
    thread_init_child();
    mapping_init_child(thread_forked_inside());
    *runtime.alive = 1;
    STORE_RELEASE(&runtime.state, (uint32_t)RUNTIME_READY);
    thread = thread_join();
    if (is_light && thread != NULL) {
        child_begin_direct(thread);
    }
    if (!is_light) {
        child_inherit(thread);
        light_close(&child.light, 1);
        child.first_thread = child.first_thread == UINT32_MAX ? 0 : child.first_thread;
    }
    return 0;
}

void child_tell_unprofiled(void) {
    struct memtrace_header *header = child_shared_header();
    if (header != NULL) {
        __atomic_fetch_add(&header->lost[MEMTRACE_LOST_EVENTS], 1, __ATOMIC_RELAXED);
    }
}

/* (A handler of a child that was wiped may have started it already.) */
void child_wipe(void) {
    if (LOAD_ACQUIRE(&runtime.state) == RUNTIME_READY && *runtime.alive != 0 &&
        runtime.space.header->pid != sys_getpid()) {
        *runtime.alive = 0;
        thread_wipe_all();
    }
}

struct memtrace_header *child_shared_header(void) {
    return runtime.space.is_private ? child.light.ancestor : runtime.space.header;
}

/* --- while it is light ------------------------------------------------------------------------ */

static void add_thread(struct memtrace_counts *sum, uint32_t id) {
    const struct memtrace_thread_record *record = region_thread(&runtime.region, id);
    if (record != NULL) {
        sum->alloc_count += record->counts.alloc_count;
        sum->alloc_bytes += record->counts.alloc_bytes;
        sum->free_count += record->counts.free_count;
        sum->free_bytes += record->counts.free_bytes;
    }
}

/* What it did, frees of inherited blocks, too. (Returned by value it would be copied by wide loads
 * of what was stored in parts just before: the processor would wait for that.) */
static void sum_counts(struct memtrace_counts *sum) {
    *sum = (struct memtrace_counts){0};
    if (child.direct != NULL) {
        *sum = *child.direct->counts;
        return;
    }
    add_thread(sum, MEMTRACE_THREAD_OTHERS);
    for (uint32_t id = child.first_thread; id < runtime.space.header->thread_count; id++) {
        add_thread(sum, id); /* it has few, so all have ids of their own */
    }
    light_count(&child.light, sum, child.freed_count, child.freed_bytes);
}

/* Whether it has done what is worth a region of its own. A process that dropped its privileges
 * stays light: a region of another user is none that the run's command looks at, and the profile
 * could not be written beside the others. */
static int child_is_large(const struct memtrace_counts *counts) {
    uint64_t freed_bytes = counts->free_bytes - child.freed_bytes;
    if (counts->alloc_count + counts->free_count - child.freed_count < child.events_most &&
        counts->alloc_bytes - freed_bytes < child.live_most) {
        return 0;
    }
    if (child.light.ancestor->uid != sys_getuid() && light_is_open(&child.light, &runtime.space)) {
        child.events_most *= 2; /* not to be asked at each event again */
        child.live_most *= 2;
        return 0;
    }
    return 1;
}

void child_note(void) {
    struct memtrace_counts counts;
    if (!child_is_light() || (child.direct != NULL && !thread_self->is_noted)) {
        return;
    }
    sum_counts(&counts);
    if (child.is_wanted || child_is_large(&counts) ||
        runtime.space.header->lost[MEMTRACE_LOST_MODULES] != 0 || /* another leaf is needed */
        LOAD_RELAXED(&child.light.ancestor->state) != MEMTRACE_STATE_RUNNING) {
        child_grow();
    }
    if (child.direct != NULL && !child.is_wanted && thread_self == child.direct) {
        child_set_noted(thread_self, 0);
        thread_set_clock(thread_self, thread_self->clock_seen);
    }
}

int child_hand_in(enum memtrace_state state) {
    struct memtrace_counts counts;
    struct light_work work = {.space = &runtime.space,
                              .tree = &runtime.tree,
                              .ledger = &runtime.ledger,
                              .born = child.born};
    sum_counts(&counts);
    work.alloc_count = counts.alloc_count;
    if (light_is_open(&child.light, &runtime.space)) {
        light_hand_in(&child.light, &work,
                      state == MEMTRACE_STATE_EXECED ? MEMTRACE_PROCESS_EXECED
                                                     : MEMTRACE_PROCESS_ENDED);
        return 1;
    }
    /* Nobody would read it there. What did nothing is not worth a file. */
    return (counts.alloc_count == 0 && counts.free_count == child.freed_count) || !child_grow_now();
}

void child_after_failed_exec(void) {
    light_take_back(&child.light, &runtime.space);
}
