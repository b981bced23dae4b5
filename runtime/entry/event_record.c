/* SPDX-License-Identifier: MIT */
/* event_record.c: the end of an event that is recorded. See event.h. Called by events, by pools
 * (follow/pool.c), and by who writes marks. */
#include "runtime/entry/event.h"

#include "runtime/base/text.h"
#include "runtime/entry/child.h"
#include "runtime/entry/real.h"

/* Whom the event is charged to, whose slot the gate holds meanwhile. */
static struct frame event_caller_of(const struct thread *thread) {
    return event_caller_at(thread->gate);
}

/* --- waiting for the collector ---------------------------------------------------------------- */

/* Whether a signal handler runs: the way outwards leads over an instruction that was interrupted.
 */
int event_is_in_handler(struct thread *thread) {
    struct context_id at = context_kept(event_path(thread, event_caller_of(thread)));
    while (at.value != 0) {
        struct memtrace_node node = context_read(&runtime.tree, at);
        if ((node.frame & MEMTRACE_FRAME_EXACT) != 0) {
            return 1;
        }
        at.value = node.parent;
    }
    return 0;
}

/* No chunk was free. 1: now there is one. */
int event_wait_for_room(struct thread *thread) {
    return recorder_may_wait(&runtime.recorder) && !event_is_in_handler(thread) &&
           recorder_wait(thread->stream);
}

static COLD uint64_t event_alloc_late(struct thread *thread, const struct recorder_alloc *alloc) {
    uint64_t number = event_wait_for_room(thread) ? recorder_alloc(thread->stream, alloc) : 0;
    if (number == 0) {
        recorder_lost(thread->stream, 1, alloc->replaces != 0);
    }
    return number;
}

static COLD void event_free_late(struct thread *thread, uint64_t name, uint32_t context) {
    if (!event_wait_for_room(thread) || !recorder_free(thread->stream, name, context)) {
        recorder_lost(thread->stream, 0, 1);
    }
}

/* --- blocks ----------------------------------------------------------------------------------- */

static void record_alloc_settling(struct thread *thread, const struct shadow_heap *heap,
                                  const struct recorder_alloc *alloc);

INLINE_HERE void event_record_alloc(struct thread *thread, const struct shadow_heap *heap,
                                    const struct recorder_alloc *alloc) {
    uint64_t number;
    if (UNLIKELY(LOAD_RELAXED(&runtime.recorder.is_settling) != 0)) {
        struct recorder_alloc copy = *alloc;
        record_alloc_settling(thread, heap, &copy);
        return;
    }
    number = recorder_alloc(thread->stream, alloc);
    if (UNLIKELY(number == 0)) {
        struct recorder_alloc copy = *alloc; /* so that it can be in registers */
        number = event_alloc_late(thread, &copy);
    }
    heap_set_number(heap, alloc->address, (uint32_t)number);
}

INLINE_HERE uint64_t event_take_name(const struct shadow_heap *heap, uintptr_t address,
                                     uint32_t owner, uint32_t birth) {
    uint32_t low = UNLIKELY(LOAD_RELAXED(&runtime.recorder.is_settling) != 0)
                       ? heap_take_number_locked(heap, address)
                       : heap_take_number(heap, address);
    return UNLIKELY(low == 0) ? 0 : recorder_block_name(&runtime.recorder, owner, low, birth);
}

/* Where a free was called from. Apart from those that are recorded without. */
static __attribute__((noinline)) uint32_t context_of_free(struct thread *thread) {
    uint32_t context = context_kept(event_path(thread, event_caller_of(thread))).value;
    return context != 0 ? context : runtime.unknown_context;
}

INLINE_HERE void event_record_free(struct thread *thread, uint64_t name) {
    uint32_t context = 0;
    if (UNLIKELY(runtime.recorder.recording->flags & MEMTRACE_RECORDING_FREE_STACKS)) {
        context = context_of_free(thread);
    }
    if (UNLIKELY(!recorder_free(thread->stream, name, context))) {
        event_free_late(thread, name, context);
    }
}

/* While blocks are named that were there before, this one may have been taken for one of them since
 * its record was written: then that has told of it. */
static COLD void record_alloc_settling(struct thread *thread, const struct shadow_heap *heap,
                                       const struct recorder_alloc *alloc) {
    struct recorder_stream *stream = thread->stream;
    uint32_t low;
    uint64_t number;
    if (stream->number == stream->numbers_end && !recorder_renumber(stream)) {
        recorder_lost(stream, 1, alloc->replaces != 0);
        return;
    }
    low = (uint32_t)stream->number;
    if (!heap_claim_number(heap, alloc->address, low)) {
        if (alloc->replaces != 0) {
            event_record_free(thread, alloc->replaces);
        }
        return;
    }
    number = recorder_alloc(stream, alloc);
    if (number == 0 && event_alloc_late(thread, alloc) == 0) {
        heap_unclaim_number(heap, alloc->address, low);
    }
}

/* --- a part of them --------------------------------------------------------------------------- */

/* Only a part of the allocations is wanted: by chance, by size, by module. */
INLINE int event_is_selective(const struct memtrace_recording *recording) {
    return (LOAD_RELAXED(&recording->sample_bytes) | recording->size_most |
            (LOAD_RELAXED(&recording->flags) &
             (MEMTRACE_RECORDING_MODULES | MEMTRACE_RECORDING_THIN))) != 0;
}

/* Which modules are wanted (MEMTRACE_RECORD_MODULES), by module id. Any thread: what is decided of
 * one never changes. */
enum { MODULE_UNDECIDED = 0, MODULE_WANTED, MODULE_UNWANTED };
static uint8_t module_verdict[MODULE_LIMIT];

void event_forget_modules(void) {
    __builtin_memset(module_verdict, MODULE_UNDECIDED, sizeof module_verdict);
}

/* Whether `list`, "NAME,NAME,...", has this file: a name is a file's, or its beginning up to a dot:
 * "libssl" is libssl.so.3. */
static int module_is_listed(const char *list, const char *file) {
    for (;;) {
        const char *at = file;
        while (*list != '\0' && *list != ',' && *list == *at) {
            list++;
            at++;
        }
        if ((*list == '\0' || *list == ',') && (*at == '\0' || *at == '.')) {
            return 1;
        }
        while (*list != '\0' && *list != ',') {
            list++;
        }
        if (*list++ == '\0') {
            return 0;
        }
    }
}

/* Of the code that called the allocator: the class of what was allocated is no code; the frame
 * below it is. "!NAME,...": all but these are wanted. */
static int module_is_wanted(uint32_t context) {
    const char *list = runtime.settings.modules;
    int all_but = *list == '!';
    struct memtrace_node node = context_read(&runtime.tree, (struct context_id){context});
    uint8_t verdict;
    uint32_t id;
    if (node.frame < MEMTRACE_FRAME_CLASSES && node.parent != 0) {
        node = context_read(&runtime.tree, (struct context_id){node.parent});
    }
    id = (uint32_t)(node.frame >> MEMTRACE_FRAME_MODULE_SHIFT) & MEMTRACE_FRAME_MODULE_MASK;
    if (id >= MODULE_LIMIT) {
        return all_but;
    }
    verdict = LOAD_RELAXED(&module_verdict[id]);
    if (UNLIKELY(verdict == MODULE_UNDECIDED)) {
        const struct memtrace_module *module = id != 0 ? module_get(&runtime.modules, id) : NULL;
        int listed =
            module != NULL && module_is_listed(list + all_but, text_base_name(module->path));
        verdict = listed != all_but ? MODULE_WANTED : MODULE_UNWANTED;
        STORE_RELAXED(&module_verdict[id], verdict);
    }
    return verdict == MODULE_WANTED;
}

/* Whether this one is recorded, where a part is, and what it stands for. One of no bytes stands for
 * itself. */
static int event_is_chosen(struct thread *thread, uint64_t size, uint32_t context,
                           uint64_t *weight) {
    const struct memtrace_recording *recording = runtime.recorder.recording;
    uint64_t mean = memtrace_distance(recording);
    int fits = (recording->size_most == 0 ||
                (size >= recording->size_least && size <= recording->size_most)) &&
               ((recording->flags & MEMTRACE_RECORDING_MODULES) == 0 || module_is_wanted(context));
    *weight = fits && mean != 0 ? sampling_take(&thread->stream->sampling, size, mean) : 0;
    return fits && (mean == 0 || *weight != 0 || size == 0);
}

void event_record_pool(struct thread *thread, const struct shadow_heap *heap,
                       const struct recorder_alloc *alloc) {
    struct recorder_alloc chosen = *alloc;
    if (!event_is_selective(runtime.recorder.recording) ||
        event_is_chosen(thread, alloc->size, alloc->context, &chosen.weight)) {
        event_record_alloc(thread, heap, &chosen);
    } else if (alloc->replaces != 0) {
        event_record_free(thread, alloc->replaces);
    }
}

/* --- the heap's ------------------------------------------------------------------------------- */

/* glibc keeps a block's size and kind in the word before it (malloc/malloc.c: struct malloc_chunk),
 * and gives out all that is behind, its neighbour's first word included unless it is mapped. */
enum { CHUNK_MAPPED = 2, CHUNK_ARENA = 4, CHUNK_FLAGS = 7 };

/* Returns how many bytes can be used; notes which kind of block it is. */
INLINE uint64_t event_look_at_block(uintptr_t address, uint32_t *flags) {
    uint64_t word;
    if (UNLIKELY(!real.is_glibc)) {
        return real.malloc_usable_size != NULL ? real.malloc_usable_size((void *)address) : 0;
    }
    word = ((const uint64_t *)address)[-1];
    if (UNLIKELY((word & CHUNK_MAPPED) != 0)) {
        *flags |= MEMTRACE_ALLOC_MAPPED;
        return (word & ~(uint64_t)CHUNK_FLAGS) - 2 * sizeof word;
    }
    *flags |= (word & CHUNK_ARENA) != 0 ? MEMTRACE_ALLOC_ARENA : 0;
    return (word & ~(uint64_t)CHUNK_FLAGS) - sizeof word;
}

INLINE void record_heap_alloc(struct thread *thread, uintptr_t address, uint64_t size,
                              uint32_t context, uint32_t how, uint64_t replaces, uint64_t weight) {
    struct shadow_heap heap = event_heap();
    struct recorder_alloc alloc = {.address = address,
                                   .size = size,
                                   .replaces = replaces,
                                   .weight = weight,
                                   .context = context,
                                   .alignment = (how >> EVENT_ALIGNMENT_SHIFT) & 63};
    uint32_t flags = how & MEMTRACE_ALLOC_ZEROED;
    uint64_t usable = LIKELY((how & EVENT_FOREIGN) == 0) ? event_look_at_block(address, &flags) : 0;
    alloc.flags = flags;
    if (LIKELY(usable >= size)) {
        uint64_t slack = usable - size;
        alloc.slack = slack < MEMTRACE_SLACK_MOST ? (uint32_t)slack : MEMTRACE_SLACK_MOST;
    }
    event_record_alloc(thread, &heap, &alloc);
}

/* Where a part of the allocations is to be recorded. */
static __attribute__((noinline)) void event_select_alloc(struct thread *thread, uintptr_t address,
                                                         uint64_t size, uint32_t context,
                                                         uint32_t how, uint64_t replaces) {
    uint64_t weight;
    if (!event_is_chosen(thread, size, context, &weight)) {
        if (replaces != 0) {
            event_record_free(thread, replaces);
        }
    } else {
        record_heap_alloc(thread, address, size, context, how, replaces, weight);
    }
}

void event_end_alloc(struct thread *thread, const void *address, uint64_t size, uint32_t context,
                     uint32_t how, uint64_t replaces) {
    if (LIKELY(thread->stream != NULL)) {
        uintptr_t at = machine_untagged(address);
        if (UNLIKELY(heap_has_number(&runtime.heap, at))) {
            event_end_numbered(thread, at, size);
        }
        if (UNLIKELY(event_is_selective(runtime.recorder.recording))) {
            event_select_alloc(thread, at, size, context, how, replaces);
        } else {
            record_heap_alloc(thread, at, size, context, how, replaces, 0);
        }
    }
    if (UNLIKELY(thread->is_watched)) {
        thread_watch_alloc(thread, address, size, context);
    }
    event_leave(thread);
    child_note();
    thread_done(thread);
}

void event_end_free(struct thread *thread, const void *address, uint32_t owner, uint32_t birth) {
    if (LIKELY(thread->stream != NULL && owner != 0)) {
        struct shadow_heap heap = event_heap();
        uint64_t name = event_take_name(&heap, machine_untagged(address), owner, birth);
        if (LIKELY(name != 0)) {
            event_record_free(thread, name);
        }
    }
    event_leave(thread);
    child_note();
    thread_done(thread);
}

/* --- what is no block ------------------------------------------------------------------------- */

/* Threads get each other's addresses at once: in which order, only exact times tell. */
void event_record_map(struct thread *thread, const struct recorder_map *map) {
    recorder_set_exact_time(thread->stream);
    if (!recorder_map(thread->stream, map) &&
        !(event_wait_for_room(thread) && recorder_map(thread->stream, map))) {
        space_lost(&runtime.space, MEMTRACE_LOST_RECORDS, 1);
    }
}

void event_mark(enum memtrace_mark what, uint64_t id, const char *text, size_t size,
                struct frame caller) {
    struct thread *thread = thread_get_for_free(event_place(caller));
    if (thread != NULL && thread->stream == NULL) {
        thread_done(thread);
        return;
    }
    if (event_begin(thread, event_place(caller))) {
        /* A mark is there for its time: it divides what came before from what comes after, however
         * seldom the clock is looked at. */
        uint64_t time_ns = tick_slow(thread);
        if (thread->stream != NULL) { /* else the recording has just ended */
            recorder_set_time(thread->stream, time_ns, thread->tick);
            if (!recorder_mark(thread->stream, what, id, text, size) &&
                !(event_wait_for_room(thread) &&
                  recorder_mark(thread->stream, what, id, text, size))) {
                space_lost(&runtime.space, MEMTRACE_LOST_RECORDS, 1);
            }
        }
        event_end(thread);
    }
}
