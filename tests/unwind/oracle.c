/* SPDX-License-Identifier: MIT */
/*
 * oracle.c: the stack of every Nth allocation as three see it. Preloaded by compare, before
 * MemTrace, whose functions it hides behind its own. A stack is a list of return addresses, from
 * malloc's caller outwards:
 *  - what MemTrace charged the block to: its chain of contexts, read from the profile region;
 *  - "the interpreter": the same rules, but each computed anew from the unwind tables, each frame
 *    stepped anew; nothing kept, nothing remembered, no guard known;
 *  - libunwind, which shares nothing with us.
 * Where all agree a line says so, else all three are written in full; compare judges.
 *
 * ORACLE_OUT names the file, appended to by every process of the program; ORACLE_EVERY is N. Lines:
 *     = FRAMES GUARDS                      all three agree; guards met on the way
 *     ! recorded|interpreted|libunwind FRAME...      a difference: three lines, MODULE+0xOFFSET
 *     ? WHY                                not compared; "MemTrace's own": a request that it made
 */
#include "memtrace/memtrace.h"
#include "runtime/base/space.h"
#include "runtime/stack/context.h"
#include "runtime/stack/libunwind.h"
#include "runtime/stack/step.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MOST_FRAMES = 1 << 16,
    TEXT_BYTES = 1 << 22,
    MOST_STACK = 1 << 30,
    GUARD_CODE = 0x25ff /* jmp *...(%rip) */
};

/* One comparison at a time; who comes meanwhile goes without, so that nobody waits for a thread
 * that waits for the loader. */
static struct trylock busy;
static THREAD_LOCAL int inside;
static const struct libunwind *libunwind; /* NULL: not ready */
static uint64_t every, count;
static int out = -1;

/* --- stacks ----------------------------------------------------------------------------------- */

struct stack {
    uint32_t frames;
    uint32_t guards;
    uint32_t own_calls; /* frames of MemTrace's that are no guards */
    uint64_t frame[MOST_FRAMES];
};

static struct stack recorded, interpreted, unwound;
static struct dl_find_object own, memtrace;

static int lies_in(const struct dl_find_object *object, uint64_t address) {
    return address - (uintptr_t)object->dlfo_map_start <
           (uintptr_t)object->dlfo_map_end - (uintptr_t)object->dlfo_map_start;
}

/* Where a guard leads: it is "jmp *place(%rip)" and keeps the distance of that place (as
 * machine/x86_64_guards.S says). Any other address leads to itself. */
static uintptr_t see_through(uintptr_t pc) {
    uint16_t code = 0;
    uint64_t distance;
    if (lies_in(&memtrace, pc) && pc % 16 == 0) {
        memcpy(&code, (const void *)pc, sizeof code);
    }
    if (code != GUARD_CODE) {
        return pc;
    }
    memcpy(&distance, (const void *)(pc + 8), sizeof distance);
    return *(const uintptr_t *)(pc + distance);
}

/* Frames of the runtime itself, guards among them, are no part of the program's stack. */
static void add_frame(struct stack *stack, uint64_t pc) {
    uint64_t address = pc & ~RULE_EXACT;
    if (lies_in(&memtrace, address)) {
        int is_guard = see_through(address) != address;
        stack->guards += is_guard;
        stack->own_calls += !is_guard;
    } else if (!lies_in(&own, address) && stack->frames < MOST_FRAMES) {
        stack->frame[stack->frames++] = address;
    }
}

static void clear(struct stack *stack) {
    stack->frames = stack->guards = stack->own_calls = 0;
}

static int equal(const struct stack *a, const struct stack *b) {
    return a->frames == b->frames &&
           memcmp(a->frame, b->frame, a->frames * sizeof a->frame[0]) == 0;
}

/* --- what is mapped --------------------------------------------------------------------------- */

static struct space region; /* a view of MemTrace's: header and base alone */
static THREAD_LOCAL struct stack_bounds bounds;

/* The region is a mapping of a profile; a forked child's lies where its parent's lay. */
static void look_for_region(const char *line, uintptr_t start) {
    if (region.header == NULL && strstr(line, " rw-s 00000000 ") != NULL &&
        strstr(line, ".mtp") != NULL &&
        memcmp((const void *)start, MEMTRACE_MAGIC, sizeof region.header->magic) == 0) {
        region.base = (uint8_t *)start;
        region.header = (struct memtrace_header *)start;
    }
}

/* A thread's static storage lies at the end of its stack, the first thread's does not. */
static void look_for_stack(uintptr_t start, uintptr_t end) {
    extern void *__libc_stack_end;
    int is_first = getpid() == gettid();
    uintptr_t place = is_first ? (uintptr_t)__libc_stack_end : (uintptr_t)&bounds;
    if (place >= start && place < end) {
        bounds.low = is_first ? end - MOST_STACK : start;
        bounds.high = end;
        bounds.entry = is_first ? place : 0;
    }
}

static void read_maps(void) {
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[512];
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        uintptr_t start;
        uintptr_t end;
        if (sscanf(line, "%lx-%lx ", &start, &end) == 2) {
            look_for_region(line, start);
            look_for_stack(start, end);
        }
    }
    if (maps != NULL) {
        (void)fclose(maps);
    }
}

/* --- as MemTrace recorded it ------------------------------------------------------------------ */

static struct context_tree tree;

static void find_leaves(void) {
    uint64_t end = LOAD_ACQUIRE(&region.header->end);
    uint64_t at = MEMTRACE_HEADER_SIZE;
    for (;;) {
        const struct memtrace_segment *segment = space_next(&region, &at, end);
        if (segment == NULL) {
            return;
        }
        if (segment->kind == MEMTRACE_SEGMENT_NODES) {
            tree.leaf[segment->index] = (uint64_t *)(uintptr_t)segment;
        } else if (segment->kind == MEMTRACE_SEGMENT_AREAS) {
            tree.areas.leaf[segment->index] = (uint64_t *)(uintptr_t)segment;
        }
    }
}

/* What stands at an area, in a leaf that may be new to us; 0: nothing. */
static uint64_t area_at(uint64_t number) {
    uint64_t **leaf = &tree.areas.leaf[number / MEMTRACE_AREA_LEAF_ITEMS % AREA_LEAVES];
    if (*leaf == NULL) {
        find_leaves();
    }
    return *leaf != NULL ? (*leaf)[number % MEMTRACE_AREA_LEAF_ITEMS] : 0;
}

/* The node of a context, in a leaf that may be new to us. 0, or -1: there is none. */
static int find_node(uint32_t context, struct memtrace_node *node) {
    uint64_t packed;
    if (!context_exists(&tree, context)) {
        find_leaves();
    }
    if (!context_exists(&tree, context)) {
        return -1;
    }
    packed = *context_node(&tree, (struct context_id){context});
    *node = memtrace_unpack(packed, area_at(packed >> MEMTRACE_NODE_AREA_SHIFT));
    return 0;
}

/* NULL, or why not. */
static const char *walk_recorded(const void *block) {
    struct memtrace_block found;
    clear(&recorded);
    if (!memtrace_lookup(block, &found)) {
        return "not counted";
    }
    if (region.header == NULL) {
        return "no region";
    }
    for (uint32_t context = found.context; context != 0;) {
        struct memtrace_node node;
        uint64_t address;
        if (find_node(context, &node) != 0 || recorded.frames == MOST_FRAMES) {
            return "no such context";
        }
        address = node.frame & MEMTRACE_FRAME_ADDRESS_MASK;
        if (!lies_in(&own, address)) {
            recorded.frame[recorded.frames++] = address;
        }
        context = node.parent;
    }
    return NULL;
}

/* --- as the interpreter sees it --------------------------------------------------------------- */

static struct memtrace_header no_modules = {.module_count = MODULE_LIMIT}; /* full: none is added */
static struct space no_space = {.header = &no_modules, .is_private = 1};
static struct modules modules = {.space = &no_space, .header = &no_modules};
static uint64_t area_starts[AREA_LIMIT];
static struct areas areas = {.space = &no_space, .start = area_starts};
static struct rules rules = {.modules = &modules, .areas = &areas}; /* no table: none is kept */
static void walk_interpreted(struct frame frame) {
    clear(&interpreted);
    stack_begin(&bounds, frame.slot);
    while (interpreted.frames < MOST_FRAMES) {
        struct frame next;
        frame.pc = see_through(frame.pc & ~RULE_EXACT) | (frame.pc & RULE_EXACT);
        add_frame(&interpreted, frame.pc);
        if (step(&rules, &bounds, rule_compute(&rules, frame.pc), &frame, &next) >= STEP_END ||
            next.pc == 0) {
            break;
        }
        frame = next;
    }
}

/* --- as libunwind sees it --------------------------------------------------------------------- */

static void walk_unwound(uintptr_t sp) {
    struct libunwind_walk walk;
    clear(&unwound);
    if (libunwind_start(libunwind, &walk, sp) != 0) {
        return;
    }
    do {
        add_frame(&unwound, walk.frame.pc);
    } while (unwound.frames < MOST_FRAMES && libunwind_step(libunwind, &walk));
}

/* --- what is written -------------------------------------------------------------------------- */

static char text[TEXT_BYTES];
static size_t length;

static void put(const char *format, ...) {
    va_list arguments;
    int more;
    va_start(arguments, format);
    more = vsnprintf(text + length, sizeof text - length, format, arguments);
    va_end(arguments);
    length += more > 0 && (size_t)more < sizeof text - length ? (size_t)more : 0;
}

static void flush(void) {
    if (write(out, text, length) != (ssize_t)length) {
        _exit(99);
    }
    length = 0;
}

static void put_stack(const char *name, const struct stack *stack) {
    put("! %s", name);
    for (uint32_t i = 0; i < stack->frames; i++) {
        struct dl_find_object found;
        const char *path = "?";
        uint64_t bias = 0;
        if (_dl_find_object((void *)stack->frame[i], &found) == 0) {
            path = found.dlfo_link_map->l_name;
            bias = found.dlfo_link_map->l_addr;
        }
        put(" %s+0x%lx", path, stack->frame[i] - bias);
    }
    put("\n");
}

static void write_result(const char *why) {
    if (why != NULL) {
        put("? %s\n", why);
    } else if (equal(&recorded, &interpreted) && equal(&recorded, &unwound)) {
        put("= %u %u\n", recorded.frames, unwound.guards);
    } else {
        put_stack("recorded", &recorded);
        put_stack("interpreted", &interpreted);
        put_stack("libunwind", &unwound);
    }
    flush();
}

/* Whether all three stacks are there now, or why not. */
static const char *walk_all(const void *block, const uintptr_t *frame) {
    const char *why = NULL;
    if (bounds.high == 0 || region.header == NULL) {
        read_maps();
    }
    walk_interpreted((struct frame){frame[1], (uintptr_t)&frame[1], frame[0]});
    if (block == NULL) {
        why = "nothing was allocated";
    } else {
        why = walk_recorded(block);
    }
    if (why != NULL) {
        return interpreted.own_calls != 0 ? "MemTrace's own" : why;
    }
    walk_unwound((uintptr_t)&frame[2]);
    return NULL;
}

/* `block` was just allocated by a function of ours, whose frame this is. */
static COLD void compare(const void *block, const uintptr_t *frame) {
    int error = errno;
    inside = 1;
    if (trylock_take(&busy)) {
        write_result(walk_all(block, frame));
        trylock_release(&busy);
    } else {
        static const char other[] = "? another thread compares\n";
        (void)!write(out, other, sizeof other - 1);
    }
    inside = 0;
    errno = error;
}

/* --- what allocates --------------------------------------------------------------------------- */

/* Each leaves by a jump, so that no frame of ours is there, but for those that are compared. */
#define SAMPLED(type, name, parameters, arguments, block)                                          \
    type name parameters;                                                                          \
    static type(*next_##name) parameters;                                                          \
    static __attribute__((noinline)) type compare_##name parameters {                              \
        type result = next_##name arguments;                                                       \
        compare(block, __builtin_frame_address(0));                                                \
        return result;                                                                             \
    }                                                                                              \
    PUBLIC type name parameters {                                                                  \
        if (UNLIKELY(next_##name == NULL)) {                                                       \
            *(void **)&next_##name = dlsym(RTLD_NEXT, #name);                                      \
        }                                                                                          \
        return LIKELY(!is_due()) ? next_##name arguments : compare_##name arguments;               \
    }

INLINE int is_due(void) {
    return libunwind != NULL && !inside &&
           __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED) % every == 0;
}

SAMPLED(void *, malloc, (size_t size), (size), result)
SAMPLED(void *, calloc, (size_t number, size_t size), (number, size), result)
SAMPLED(void *, realloc, (void *block, size_t size), (block, size), result)
SAMPLED(void *, memalign, (size_t alignment, size_t size), (alignment, size), result)
SAMPLED(void *, aligned_alloc, (size_t alignment, size_t size), (alignment, size), result)
SAMPLED(int, posix_memalign, (void **block, size_t alignment, size_t size),
        (block, alignment, size), result == 0 ? *block : NULL)

/* operator new and new[] by their mangled names; `more` is an alignment or std::nothrow. */
SAMPLED(void *, _Znwm, (size_t size), (size), result)
SAMPLED(void *, _Znam, (size_t size), (size), result)
SAMPLED(void *, _ZnwmRKSt9nothrow_t, (size_t size, const void *more), (size, more), result)
SAMPLED(void *, _ZnamRKSt9nothrow_t, (size_t size, const void *more), (size, more), result)
SAMPLED(void *, _ZnwmSt11align_val_t, (size_t size, size_t more), (size, more), result)
SAMPLED(void *, _ZnamSt11align_val_t, (size_t size, size_t more), (size, more), result)

/* --- start ------------------------------------------------------------------------------------ */

static void in_forked_child(void) {
    count = 0;
    busy.held = 0;
}

__attribute__((constructor)) static void start(void) {
    const char *path = getenv("ORACLE_OUT");
    const char *number = getenv("ORACLE_EVERY");
    int low;
    if (memtrace_lookup == NULL || path == NULL || number == NULL ||
        _dl_find_object((void *)(uintptr_t)memtrace_lookup, &memtrace) != 0 ||
        _dl_find_object((void *)(uintptr_t)start, &own) != 0) {
        return;
    }
    every = strtoull(number, NULL, 10);
    low = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    out = fcntl(low, F_DUPFD_CLOEXEC, 500); /* away from the numbers the program sees */
    close(low);
    pthread_atfork(NULL, NULL, in_forked_child);
    libunwind = libunwind_load(); /* last: its presence says that all is ready */
}
