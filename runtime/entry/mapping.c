/* SPDX-License-Identifier: MIT */
/*
 * mapping.c: mmap and friends, System V shared memory, brk and sbrk: counted as a class of their
 * own beside the heap. Only the program's own calls are seen; those the allocator makes inside the
 * C library are not. See mapping.h for who else calls it.
 */
#define _GNU_SOURCE
#include "runtime/entry/mapping.h"

#include "runtime/base/compiler.h"
#include "runtime/base/sys.h"
#include "runtime/entry/child.h"
#include "runtime/entry/event.h"
#include "runtime/entry/real.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4 /* Linux 5.7 */
#endif
#undef mmap64 /* another name for mmap, which programs may have been built with */

static struct intervals mappings;
static struct trylock mappings_lock;

/* Held for a few instructions, with the thread's gate closed; who does not get it counts a loss. */
static int mapping_lock(void) {
    if (!sys_take(&mappings_lock)) {
        space_lost(&runtime.space, MEMTRACE_LOST_EVENTS, 1);
        return 0;
    }
    return 1;
}

static void mapping_count_removed(void *argument, const struct interval *piece, int is_last) {
    struct thread *thread = argument;
    struct ledger_event event = {.context = piece->context, .size = piece->end - piece->start};
    if (piece->is_inherited) {
        child_inherited_unmapped(event.context, event.size, is_last);
    }
    ledger_free_part(&runtime.ledger, thread->column, &event, is_last);
}

static void mapping_note_added(struct thread *thread, const struct recorder_map *map,
                               uint32_t context) {
    struct ledger_event event = {.context = context, .size = map->size};
    if (mapping_lock()) {
        int failed =
            interval_add(&mappings, (struct interval){.start = map->address,
                                                      .end = map->address + map->size,
                                                      .context = context,
                                                      .protection = (uint8_t)map->protection,
                                                      .flags = (uint8_t)map->flags});
        trylock_release(&mappings_lock);
        if (failed == 0) {
            ledger_alloc(&runtime.ledger, thread->column, &event);
        }
    }
}

/* What a call did: [removed, removed_end) is gone, which may be empty, and what is recorded. */
struct change {
    uintptr_t removed, removed_end;
    struct recorder_map map; /* operation 0: another change tells of this one, too */
};

static void mapping_note(struct thread *thread, const struct change *change, int counts,
                         struct frame caller) {
    int records = thread->stream != NULL && counts && change->map.operation != 0;
    int adds = change->map.size != 0 && change->map.operation != MEMTRACE_MAP_UNMAP && counts;
    uint32_t context =
        adds || records ? event_class_context(thread, caller, MEMTRACE_FRAME_MAPPING) : 0;
    if (change->removed_end > change->removed && mappings.count != 0 && mapping_lock()) {
        interval_remove(&mappings, change->removed, change->removed_end, mapping_count_removed,
                        thread);
        trylock_release(&mappings_lock);
    }
    if (adds) {
        mapping_note_added(thread, &change->map, context);
    }
    if (records) {
        struct recorder_map map = change->map;
        map.context = context;
        event_record_map(thread, &map);
    }
}

static void mapping_changed(const struct change *change, struct frame caller) {
    struct thread *thread = thread_get_for_free(event_place(caller));
    int counts = thread != NULL && thread_counts(thread);
    if (event_begin(thread, event_place(caller))) {
        event_tick(thread);
        mapping_note(thread, change, counts, caller);
        event_end(thread);
    }
}

/* While the C library's is being looked for. */
static void *mapping_by_kernel(void *address, size_t size, int protection, int flags, int fd,
                               off_t offset) {
#ifdef SYS_mmap2
    enum { UNIT = 4096 };
    return (void *)syscall(SYS_mmap2, address, size, protection, flags, fd, offset / UNIT);
#else
    return (void *)syscall(SYS_mmap, address, size, protection, flags, fd, offset);
#endif
}

static void mapping_note_mapped(const void *result, size_t size, int protection, int flags,
                                struct frame caller) {
    if (result != MAP_FAILED) {
        uintptr_t start = (uintptr_t)result;
        int over = (flags & MAP_FIXED) != 0;
        struct change change = {.removed = start,
                                .removed_end = over ? start + sys_page_up(size) : start,
                                .map = {.operation = MEMTRACE_MAP_MAP,
                                        .protection = (uint32_t)protection,
                                        .flags = (uint32_t)flags,
                                        .address = start,
                                        .size = sys_page_up(size)}};
        mapping_changed(&change, caller);
    }
}

PUBLIC void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset) {
    void *result;
    if ((flags & MAP_FIXED) != 0) {
        stack_note_unmapping();
    }
    result = LIKELY(real.mmap != NULL)
                 ? real.mmap(address, size, protection, flags, fd, offset)
                 : mapping_by_kernel(address, size, protection, flags, fd, offset);
    mapping_note_mapped(result, size, protection, flags, EVENT_CALLER());
    return result;
}

#if MACHINE_HAS_SHORT_OFFSETS
PUBLIC void *mmap64(void *address, size_t size, int protection, int flags, int fd, int64_t offset) {
    void *result;
    if ((flags & MAP_FIXED) != 0) {
        stack_note_unmapping();
    }
    result = REAL(mmap64)(address, size, protection, flags, fd, offset);
    mapping_note_mapped(result, size, protection, flags, EVENT_CALLER());
    return result;
}
#else
PUBLIC void *mmap64(void *address, size_t size, int protection, int flags, int fd, int64_t offset)
    __attribute__((alias("mmap"), nothrow, leaf));
#endif

/* What is unmapped is taken out before, since another thread may map something there at once; but
 * it is counted when that has succeeded, else put back. Of more pieces than fit the rest is counted
 * before. */
struct unmapping {
    struct thread *thread;
    int counts; /* what is put back is recorded, too */
    uint32_t count;
    struct interval piece[8];
};

static void unmapping_keep(void *argument, const struct interval *piece, int is_last) {
    struct unmapping *unmapping = argument;
    if (unmapping->count < sizeof unmapping->piece / sizeof *piece) {
        unmapping->piece[unmapping->count] = *piece;
        unmapping->piece[unmapping->count++].is_part = (uint16_t)!is_last;
    } else {
        mapping_count_removed(unmapping->thread, piece, is_last);
    }
}

/* Of a size: all of the mapping from here on. */
#define WHOLE_MAPPING UINTPTR_MAX

static void unmapping_begin(struct unmapping *unmapping, uintptr_t start, uintptr_t size,
                            struct frame caller) {
    struct change change = {
        .map = {.operation = MEMTRACE_MAP_UNMAP, .address = start, .size = size}};
    struct thread *thread = thread_get_for_free(event_place(caller));
    unmapping->counts = thread != NULL && thread_counts_all(thread);
    if (!event_begin(thread, event_place(caller))) {
        return;
    }
    event_tick(thread);
    unmapping->thread = thread;
    if (size == WHOLE_MAPPING) {
        change.map.size = 0;
        if (mappings.count != 0 && mapping_lock()) {
            const struct interval *item = interval_find(&mappings, start);
            change.map.size = item != NULL ? item->end - start : 0;
            trylock_release(&mappings_lock);
        }
    }
    mapping_note(thread, &change, unmapping->counts, caller);
    if (mappings.count != 0 && mapping_lock()) {
        interval_remove(&mappings, start, start + change.map.size, unmapping_keep, unmapping);
        trylock_release(&mappings_lock);
    }
    event_end(thread);
}

struct recorder_map mapping_record(const struct interval *item) {
    return (struct recorder_map){.operation = MEMTRACE_MAP_MAP,
                                 .context = item->context,
                                 .protection = item->protection,
                                 .flags = item->flags,
                                 .address = item->start,
                                 .size = item->end - item->start};
}

static void unmapping_end(const struct unmapping *unmapping, int succeeded, struct frame caller) {
    struct thread *thread = unmapping->count != 0 ? thread_get_for_free(event_place(caller)) : NULL;
    if (!event_begin(thread, event_place(caller))) {
        return;
    }
    for (uint32_t i = 0; i < unmapping->count; i++) {
        const struct interval *piece = &unmapping->piece[i];
        struct recorder_map map = mapping_record(piece);
        if (succeeded) {
            mapping_count_removed(thread, piece, !piece->is_part);
            continue;
        }
        if (mapping_lock()) { /* it is there still */
            interval_add(&mappings, *piece);
            trylock_release(&mappings_lock);
        }
        if (unmapping->counts && thread->stream != NULL) {
            event_record_map(thread, &map);
        }
    }
    event_end(thread);
}

PUBLIC int munmap(void *address, size_t size) {
    uintptr_t start = (uintptr_t)address;
    struct frame caller = EVENT_CALLER();
    struct unmapping unmapping = {.count = 0};
    int result;
    stack_note_unmapping();
    if (size != 0 && start % sys_page_bytes() == 0) {
        unmapping_begin(&unmapping, start, sys_page_up(size), caller);
    }
    result =
        real.munmap != NULL ? real.munmap(address, size) : (int)syscall(SYS_munmap, address, size);
    unmapping_end(&unmapping, result == 0, caller);
    return result;
}

/* What mremap may give back to the system, where another thread may get it at once: the end that is
 * too much, or all where it may move. What it moves keeps its protection. */
static void unmapping_begin_remap(struct unmapping *unmapping, struct change *change,
                                  struct frame caller) {
    struct recorder_map *map = &change->map;
    uintptr_t start = map->old_address, old_size = map->old_size;
    int moves = (map->flags & MREMAP_FIXED) != 0 ||
                ((map->flags & MREMAP_MAYMOVE) != 0 && map->size > old_size);
    int keeps = (map->flags & MREMAP_DONTUNMAP) != 0 || old_size == 0;
    if (start % sys_page_bytes() != 0) {
        return; /* it will be refused */
    }
    if (keeps) { /* the old place stays mapped */
        map->old_size = 0;
    } else if (moves) {
        unmapping_begin(unmapping, start, old_size, caller);
        map->old_address = map->old_size = 0;
        map->protection = unmapping->count != 0 ? unmapping->piece[0].protection : 0;
        map->flags = unmapping->count != 0 ? unmapping->piece[0].flags : 0;
    } else if (map->size < old_size) {
        unmapping_begin(unmapping, start + map->size, old_size - map->size, caller);
        map->old_size = map->size;
    }
}

/* mremap with all arguments that it may have: where a function takes any number of them is not
 * where others have their callers. */
PUBLIC void *remap(void *old, size_t old_size, size_t new_size, int flags,
                   void *target) __asm__("mremap");
PUBLIC void *remap(void *old, size_t old_size, size_t new_size, int flags, void *target) {
    struct frame caller = EVENT_CALLER();
    struct unmapping unmapping = {.count = 0};
    struct change change = {.map = {.operation = MEMTRACE_MAP_REMAP,
                                    .flags = (uint32_t)flags,
                                    .size = sys_page_up(new_size),
                                    .old_address = (uintptr_t)old,
                                    .old_size = sys_page_up(old_size)}};
    void *result;
    stack_note_unmapping();
    unmapping_begin_remap(&unmapping, &change, caller);
    result = real.mremap != NULL
                 ? real.mremap(old, old_size, new_size, flags, target)
                 : (void *)syscall(SYS_mremap, old, old_size, new_size, flags, target);
    unmapping_end(&unmapping, result != MAP_FAILED, caller);
    if (result != MAP_FAILED) {
        struct change target_gone = {.removed = (uintptr_t)result,
                                     .removed_end = (uintptr_t)result + change.map.size};
        change.map.address = (uintptr_t)result;
        change.removed = change.map.old_address;
        change.removed_end = change.removed + change.map.old_size;
        if (flags & MREMAP_FIXED) {
            mapping_changed(&target_gone, caller);
        }
        mapping_changed(&change, caller);
    }
    return result;
}

/* ---- System V shared memory ---- */

PUBLIC void *shmat(int id, const void *address, int flags) {
    void *result = REAL(shmat)(id, address, flags);
    if (result != MAP_FAILED) {
        int protection = PROT_READ | ((flags & SHM_RDONLY) != 0 ? 0 : PROT_WRITE) |
                         ((flags & SHM_EXEC) != 0 ? PROT_EXEC : 0);
        int replaces = (flags & SHM_REMAP) != 0 ? MAP_FIXED : 0;
        mapping_note_mapped(result, sys_shared_bytes(id), protection, MAP_SHARED | replaces,
                            EVENT_CALLER());
    }
    return result;
}

PUBLIC int shmdt(const void *address) {
    struct frame caller = EVENT_CALLER();
    struct unmapping unmapping = {.count = 0};
    int result;
    stack_note_unmapping();
    unmapping_begin(&unmapping, (uintptr_t)address, WHOLE_MAPPING, caller);
    result = REAL(shmdt)(address);
    unmapping_end(&unmapping, result == 0, caller);
    return result;
}

/* The break moved from `before` to `after`. */
static void mapping_move_break(uintptr_t before, uintptr_t after, struct frame caller) {
    struct change change = {.map = {.operation = MEMTRACE_MAP_BREAK}};
    if (after > before) {
        change.map.address = before;
        change.map.size = after - before;
    } else {
        change.removed = change.map.old_address = after;
        change.removed_end = before;
        change.map.old_size = before - after;
    }
    if (after != before) {
        mapping_changed(&change, caller);
    }
}

PUBLIC void *sbrk(intptr_t increment) {
    struct frame caller = EVENT_CALLER();
    void *before;
    real_ensure();
    before = real.sbrk(increment);
    if (before != (void *)-1 && increment != 0) {
        mapping_move_break((uintptr_t)before, (uintptr_t)before + (uintptr_t)increment, caller);
    }
    return before;
}

PUBLIC int brk(void *end) {
    struct frame caller = EVENT_CALLER();
    uintptr_t before;
    int result;
    real_ensure();
    before = (uintptr_t)real.sbrk(0);
    result = real.brk(end);
    if (result == 0) {
        mapping_move_break(before, (uintptr_t)end, caller);
    }
    return result;
}

static void mapping_mark_inherited(void *argument, struct interval *range) {
    (void)argument;
    range->is_inherited = 1;
}

/* A forked child inherits the mappings, unless they were just being changed: half moved as they are
 * nobody can tell them. (Nor unmap them: where they lie may be half changed too.) */
void mapping_init_child(int inside) {
    if (mappings_lock.held && !inside) {
        space_lost(&runtime.space, MEMTRACE_LOST_BLOCKS, mappings.count);
        mappings = (struct intervals){0};
        mappings_lock.held = 0;
    }
    if (!mappings_lock.held) {
        interval_visit(&mappings, mapping_mark_inherited, NULL);
    }
}

size_t mapping_count(void) {
    return mappings.count;
}

void mapping_visit(void (*visit)(void *argument, struct interval *item), void *argument) {
    if (mappings.count != 0 && mapping_lock()) {
        interval_visit(&mappings, visit, argument);
        trylock_release(&mappings_lock);
    }
}

void mapping_forget(void) {
    mappings = (struct intervals){0};
    mappings_lock.held = 0;
}

void mapping_visit_in_child(void (*visit)(void *argument, struct interval *item), void *argument) {
    if (!mappings_lock.held) {
        interval_visit(&mappings, visit, argument);
    }
}
