/* SPDX-License-Identifier: MIT */
/* attachalloc.c: see attachalloc.h. */
#define _GNU_SOURCE
#include "collect/attach/attachalloc.h"

#include "analyze/base/array.h"
#include "analyze/base/scope.h"
#include "analyze/base/search.h"
#include "analyze/read/procfile.h"
#include "collect/allocators/allocators.h"
#include "collect/attach/attachfault.h"
#include "collect/attach/attachstop.h"
#include "collect/clock.h"
#include "memtrace/allocators.h"
#include "memtrace/attach.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    TRY_MS = 5000,
    PAUSE_MS = 2,
    JUMP = MEMTRACE_JUMP_BYTES,
    STACK_LOOK = 1 << 20, /* of a stack, for words that lead into the code */
    CALL_BYTES = 4,       /* of an instruction that makes a system call, which may be made again */
};

/* ---- All threads at once ---- */

/* For a moment in which code is changed. If the command is killed meanwhile, all go on. */
struct held {
    pid_t pid;
    struct attachstop *threads; /* those that stand, or were asked to */
    size_t count;
};

static bool held_has(const struct held *all, pid_t tid) {
    for (size_t i = 0; i < all->count; i++) {
        if (all->threads[i].tid == tid) {
            return true;
        }
    }
    return false;
}

/* As /proc tells it; 0: it has ended. */
static char thread_state(pid_t pid, pid_t tid) {
    char state[32];
    return procfile_status(pid, tid, "State", state, sizeof state) == 0 && state[0] != 'Z' &&
                   state[0] != 'X'
               ? state[0]
               : '\0';
}

/* The number of those that were not held before; or -1: one will not stand, or may not be held. Who
 * sleeps without hearing signals, as in vfork, stops when it wakes up: then nobody is asked. */
static int held_more(struct held *all) {
    pid_t tids[ATTACHSTOP_THREADS];
    size_t listed = attachstop_threads(all->pid, tids);
    size_t first = all->count;
    int result = listed < ATTACHSTOP_THREADS ? 0 : -1;
    for (size_t i = 0; i < listed && result == 0; i++) {
        result = !held_has(all, tids[i]) && thread_state(all->pid, tids[i]) == 'D' ? -1 : 0;
    }
    for (size_t i = 0; i < listed && result == 0; i++) {
        if (held_has(all, tids[i])) {
            continue;
        }
        if (all->count < ATTACHSTOP_THREADS &&
            attachstop_ask(all->pid, tids[i], &all->threads[all->count]) == 0) {
            all->count++;
        } else if (thread_state(all->pid, tids[i]) != '\0') {
            result = -1;
        }
    }
    for (size_t i = all->count; i-- > first;) {
        if (attachstop_await(&all->threads[i]) == 0) {
            continue;
        }
        if (thread_state(all->pid, all->threads[i].tid) == '\0') {
            all->count--;
            memmove(&all->threads[i], &all->threads[i + 1],
                    (all->count - i) * sizeof *all->threads);
        } else {
            result = -1;
        }
    }
    return result == 0 ? (int)(all->count - first) : -1;
}

/* One that was asked, and did not stop: it will, and must not stand then. */
static void let_go_late(struct attachstop *thread) {
    enum { TRIES = 15 };
    for (int i = 0; i < TRIES && thread_state(thread->pid, thread->tid) != '\0'; i++) {
        if (attachstop_await(thread) == 0) {
            attachstop_end(thread, false);
            return;
        }
    }
}

/* They go on. For how long the one that was held longest was. */
static uint64_t held_go(struct held *all) {
    uint64_t longest_ns = 0;
    for (size_t i = 0; i < all->count; i++) {
        if (all->threads[i].stands) {
            uint64_t held_ns = attachstop_end(&all->threads[i], false);
            longest_ns = held_ns > longest_ns ? held_ns : longest_ns;
        }
    }
    for (size_t i = 0; i < all->count; i++) {
        if (!all->threads[i].stands) {
            let_go_late(&all->threads[i]);
        }
    }
    free(all->threads);
    *all = (struct held){0};
    return longest_ns;
}

/* All stand, 0: held_go(); or -1 with error: one does not (in a call that no signal interrupts, as
 * vfork), or there are too many, and all go on. One that runs yet may start another. */
static int held_stop(pid_t pid, struct held *all, struct error *error) {
    int more = 1;
    *all = (struct held){.pid = pid, .threads = calloc(ATTACHSTOP_THREADS, sizeof *all->threads)};
    if (all->threads == NULL) {
        return error_set(error, "out of memory");
    }
    while (more > 0) {
        more = held_more(all);
    }
    if (more == 0 && all->count != 0) {
        return 0;
    }
    held_go(all);
    return error_set(error, "process %ld: its threads cannot all be held at once", (long)pid);
}

/* ---- Names ---- */

/* Of the functions of a plan, told one by one. */
struct names {
    struct name {
        uint64_t address;
        char *name;
    } * list;
    size_t count, room;
};

static void names_note(void *context, uint64_t address, const char *name) {
    struct names *names = context;
    if (array_grow(&names->list, &names->room, names->count, sizeof *names->list) == 0) {
        names->list[names->count++] = (struct name){address, strdup(name)};
    }
}

static void tell_left_alone(const struct attachalloc *request, const struct names *names,
                            uint64_t address, const char *why) {
    char line[1024];
    char place[64];
    const char *name = NULL;
    for (size_t i = 0; i < names->count; i++) {
        name = names->list[i].address == address ? names->list[i].name : name;
    }
    snprintf(place, sizeof place, "the function at %#" PRIx64, address);
    snprintf(line, sizeof line, "%s cannot be followed: %s", name != NULL ? name : place, why);
    request->tell(line);
}

/* ---- What the runtime says ---- */

struct table {
    struct memtrace_led led;
    struct memtrace_led_function *functions;
    uint32_t count;
};

/* 0, and free its functions; or -1: it cannot be read, or says nothing. */
static int read_table(const struct attachimage *image, const char *own_library,
                      struct table *table) {
    const struct attachcall call = {
        .pid = image->pid, .image = image, .own_library = own_library, .entry = MEMTRACE_LED_NAME};
    SCOPE(attachtarget_close) struct attachtarget target;
    const struct attachmapping *own = attachtarget_open(image->pid, &target, NULL) == 0
                                          ? attachtarget_object(&target, "libmemtrace.so")
                                          : NULL;
    uint64_t address = own != NULL ? attachthread_function(&target, own, &call) : 0;
    size_t size;
    *table = (struct table){.count = 0};
    if (address == 0 || attachimage_read(image, address, &table->led, sizeof table->led) != 0 ||
        table->led.functions == 0) {
        return -1;
    }
    table->count = table->led.count < MEMTRACE_SITES ? table->led.count : MEMTRACE_SITES;
    size = table->count * sizeof *table->functions;
    table->functions = calloc((size_t)table->count + 1, sizeof *table->functions);
    if (table->functions == NULL ||
        attachimage_read(image, table->led.functions, table->functions, size) != 0) {
        free(table->functions);
        return -1;
    }
    return 0;
}

/* ---- Jumps ---- */

struct change {
    uint64_t address; /* what is to be written begins here: JUMP bytes */
    struct memtrace_led_function function;
    const uint8_t *from, *to;
    bool is_done;
    bool is_inside; /* a thread goes on within them, behind the first */
};

struct work {
    const struct attachimage *image;
    struct change *changes; /* by address */
    size_t count, left;
    uint64_t held_ns;
    bool is_leading; /* else what led is what it was */
};

static bool change_is_there(const struct work *work, const struct change *change) {
    uint8_t now[JUMP];
    return attachimage_read(work->image, change->address, now, JUMP) == 0 &&
           memcmp(now, change->from, JUMP) == 0;
}

static int change_compare(const void *left, const void *right) {
    uint64_t a = ((const struct change *)left)->address;
    uint64_t b = ((const struct change *)right)->address;
    return (a > b) - (a < b);
}

static void change_point(struct change *change, bool is_leading) {
    change->from = is_leading ? change->function.old : change->function.jump;
    change->to = is_leading ? change->function.jump : change->function.old;
}

/* Those that are not what they are to be. Where an object has gone, other code stays as it is. */
static void work_find_changes(struct work *work, const struct table *table) {
    for (uint32_t i = 0; i < table->count; i++) {
        struct change *change = &work->changes[work->count];
        *change = (struct change){.address = table->functions[i].address,
                                  .function = table->functions[i]};
        change_point(change, work->is_leading);
        if (change->address != 0 && change->function.length >= JUMP &&
            change->function.length <= MEMTRACE_PATCH_BYTES &&
            change->function.signature.kind < MEMTRACE_ALLOCATOR_KINDS &&
            (change->function.is_wanted || !work->is_leading) && change_is_there(work, change)) {
            work->count++;
        }
    }
    qsort(work->changes, work->count, sizeof *work->changes, change_compare);
    for (size_t i = 0; i < work->count; i++) {
        change_point(&work->changes[i], work->is_leading);
    }
    work->left = work->count;
}

/* The change whose bytes an address lies in, or right behind, so far. */
static void work_note(struct work *work, uint64_t address, uint64_t behind) {
    size_t before = search_below(work->changes, work->count, sizeof *work->changes,
                                 offsetof(struct change, address), address);
    if (before > 0 && address < work->changes[before - 1].address + JUMP + behind) {
        work->changes[before - 1].is_inside = true;
    }
}

/* Whether threads go on within what is to be written, now or where the handler of a signal returns
 * to: what that interrupted is a word on the stack. Whatever looks like it counts, and then another
 * moment will do. 0, or -1: out of memory. */
static int work_find_inside(struct work *work, const struct held *all) {
    SCOPE_MEMORY uint64_t *stack = malloc(STACK_LOOK);
    SCOPE(attachtarget_close) struct attachtarget target = {0};
    if (stack == NULL || attachtarget_open(all->pid, &target, NULL) != 0) {
        return -1;
    }
    for (size_t i = 0; i < work->count; i++) {
        work->changes[i].is_inside = false;
    }
    for (size_t i = 0; i < all->count; i++) {
        struct attachregisters now;
        const struct attachmapping *mapping;
        uint64_t from;
        uint64_t size;
        ssize_t got;
        if (attachmachine_read(all->pid, all->threads[i].tid, NULL, &now) != 0) {
            continue; /* killed */
        }
        work_note(work, now.call.pc, now.call.number >= 0 ? CALL_BYTES : 0);
        mapping = attachtarget_at(&target, now.call.sp);
        from = now.call.sp & ~(uint64_t)(sizeof(uint64_t) - 1);
        size = mapping != NULL ? mapping->end - from : 0;
        size = size < STACK_LOOK ? size : STACK_LOOK;
        got = size != 0 ? attachtarget_memory(all->pid, from, stack, size) : 0;
        for (ssize_t word = 0; word < got / (ssize_t)sizeof(uint64_t); word++) {
            work_note(work, stack[word], 0);
        }
    }
    return 0;
}

/* What lies behind a jump is never run. In libraries that were opened the runtime has filled it: as
 * the jump goes, that goes, too. */
static void change_one(struct work *work, struct change *change) {
    const struct memtrace_led_function *function = &change->function;
    if (change_is_there(work, change)) {
        uint8_t now[MEMTRACE_PATCH_BYTES];
        size_t size = function->length - JUMP;
        uint64_t behind = change->address + JUMP;
        if (!work->is_leading && size != 0 &&
            attachimage_read(work->image, behind, now, size) == 0 &&
            memcmp(now, function->old + JUMP, size) != 0) {
            attachimage_write(work->image, behind, function->old + JUMP, size);
        }
        attachimage_write(work->image, change->address, change->to, JUMP);
        attachfault_at("jump");
    }
    change->is_done = true;
    work->left--;
}

/* All threads stand. */
static void change_all(struct work *work) {
    for (int i = 0; i < MEMTRACE_ALLOCATOR_KINDS; i++) {
        int kind = work->is_leading ? MEMTRACE_ALLOCATOR_KINDS - 1 - i : i;
        for (size_t j = 0; j < work->count; j++) {
            struct change *change = &work->changes[j];
            if (!change->is_done && change->function.signature.kind == kind && !change->is_inside) {
                change_one(work, change);
            }
        }
    }
}

/* Nobody is within a jump, which is one instruction. */
static int try_changes(struct work *work, struct error *error) {
    struct held all;
    int result = held_stop(work->image->pid, &all, error);
    uint64_t held_ns;
    if (result != 0) {
        return -1;
    }
    attachfault_at("held");
    if (!attachimage_is_current(work->image)) {
        result = error_set(error, "process %ld ended meanwhile", (long)work->image->pid);
    } else if (work->is_leading && work_find_inside(work, &all) != 0) {
        result = error_set(error, "out of memory");
    } else {
        change_all(work);
    }
    held_ns = held_go(&all);
    attachfault_at("jumps");
    work->held_ns = held_ns > work->held_ns ? held_ns : work->held_ns;
    return result;
}

/* All that a table has. 0, or -1 with error: threads cannot be held. Otherwise those that are left
 * have a thread in them. work->changes: to be freed in each case. */
static int change_table(const struct table *table, struct work *work, struct attachdone *done,
                        struct error *error) {
    const struct timespec pause = {.tv_nsec = PAUSE_MS * MS};
    uint64_t end = clock_now_ns() + TRY_MS * MS;
    int result = 0;
    work->changes = calloc((size_t)table->count + 1, sizeof *work->changes);
    if (work->changes == NULL) {
        return error_set(error, "out of memory");
    }
    work_find_changes(work, table);
    while (work->left > 0) {
        result = try_changes(work, error);
        if (work->left == 0 || clock_now_ns() > end) {
            break;
        }
        nanosleep(&pause, NULL);
    }
    done->held_ns = work->held_ns > done->held_ns ? work->held_ns : done->held_ns;
    return result;
}

/* ---- Leaving ---- */

int attachalloc_leave(const struct attachimage *image, const char *own_library,
                      struct attachdone *done, struct error *error) {
    struct table table;
    struct work work = {.image = image};
    int result;
    if (read_table(image, own_library, &table) != 0) {
        return 0; /* nothing was ever led */
    }
    result = change_table(&table, &work, done, error);
    free(work.changes);
    free(table.functions);
    return result == 0 ? 0 : attachimage_explain(image, error);
}

/* ---- Leading ---- */

static int plan_to(const struct attachalloc *request, const struct table *table,
                   struct names *names, int fd, struct error *error) {
    struct allocators_request plan = {.pid = request->pid,
                                      .fd = fd,
                                      .is_at_work = true,
                                      .specifications = request->specifications,
                                      .tell = request->tell};
    if (table != NULL) {
        plan.entries = table->led.entries;
        plan.sites = table->led.sites;
        plan.first = table->led.count;
        plan.took = names_note;
        plan.context = names;
    }
    return allocators_plan(&plan, error);
}

int attachalloc_check(const struct attachalloc *request, struct error *error) {
    return plan_to(request, NULL, NULL, -1, error) == 0
               ? 0
               : attachimage_explain(request->image, error);
}

static void attachalloc_say_nothing(const char *line) {
    (void)line;
}

/* The plan's bytes go to where the runtime waits for them. */
static int attachalloc_make_plan(const struct attachalloc *request, const struct table *table,
                                 struct names *names, struct error *error) {
    struct attachalloc silent = *request; /* all was told before */
    SCOPE_FD int fd = memfd_create("plan", MFD_CLOEXEC);
    struct stat status;
    void *bytes = MAP_FAILED;
    int result = -1;
    silent.tell = attachalloc_say_nothing;
    if (fd < 0) {
        return error_set(error, "the plan has no place: %s", strerror(errno));
    }
    if (plan_to(&silent, table, names, fd, error) != 0) {
        return -1;
    }
    if (fstat(fd, &status) == 0 && status.st_size != 0 && status.st_size <= MEMTRACE_PLAN_ROOM) {
        bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    }
    if (bytes != MAP_FAILED) {
        result = attachimage_write(request->image, table->led.plan, bytes, (size_t)status.st_size);
        munmap(bytes, (size_t)status.st_size);
    }
    return result == 0
               ? 0
               : error_set(error, "process %ld cannot be given the plan", (long)request->pid);
}

/* The runtime makes ready what the plan says. */
static int carry_out_plan(const struct attachalloc *request, struct attachdone *done,
                          struct error *error) {
    const struct attachcall call = {.pid = request->pid,
                                    .image = request->image,
                                    .own_library = request->own_library,
                                    .entry = MEMTRACE_FOLLOW_ENTRY,
                                    .settings = ""};
    struct attachdone follow;
    if (attachthread_call(&call, &follow, error) != 0) {
        return -1;
    }
    done->held_ns = follow.held_ns > done->held_ns ? follow.held_ns : done->held_ns;
    return follow.result == MEMTRACE_ATTACH_DONE
               ? 0
               : error_set(error,
                           "process %ld has no room beside its code, or a seccomp filter "
                           "that does not let it be made",
                           (long)request->pid);
}

static void tell_changed(const struct attachalloc *request, const struct table *table,
                         const struct names *names) {
    for (size_t i = 0; i < names->count; i++) {
        bool is_ready = false;
        for (uint32_t j = 0; j < table->count; j++) {
            const struct memtrace_led_function *function = &table->functions[j];
            is_ready |= function->address == names->list[i].address && function->is_wanted;
        }
        if (!is_ready) {
            tell_left_alone(request, names, names->list[i].address,
                            "others have changed its first bytes");
        }
    }
}

static int attachalloc_lead_fresh(const struct attachalloc *request, struct names *names,
                                  struct attachdone *done, struct error *error) {
    struct table table;
    struct work work = {.image = request->image, .is_leading = true};
    int result;
    if (read_table(request->image, request->own_library, &table) != 0) {
        return error_set(error, "functions cannot be led to MemTrace on this machine yet, or there "
                                "is no memory for it");
    }
    result = attachalloc_make_plan(request, &table, names, error);
    free(table.functions);
    attachfault_at("planned");
    /* Where there is none the runtime hears that, too. */
    result = carry_out_plan(request, done, result == 0 ? error : NULL) == 0 ? result : -1;
    attachfault_at("ready");
    if (result != 0) {
        return -1;
    }
    if (read_table(request->image, request->own_library, &table) != 0) {
        return error_set(error, "process %ld ended meanwhile", (long)request->pid);
    }
    tell_changed(request, &table, names);
    result = change_table(&table, &work, done, error);
    for (size_t i = 0; result == 0 && i < work.count; i++) {
        if (!work.changes[i].is_done) {
            tell_left_alone(request, names, work.changes[i].address,
                            "a thread stays in its first bytes");
        }
    }
    free(work.changes);
    free(table.functions);
    return result;
}

/* What a command left that was killed, or a process that forked this one, is put back before. */
int attachalloc_lead(const struct attachalloc *request, struct attachdone *done,
                     struct error *error) {
    struct names names = {.list = NULL};
    int result = attachalloc_leave(request->image, request->own_library, done, error);
    result = result == 0 ? attachalloc_lead_fresh(request, &names, done, error) : -1;
    for (size_t i = 0; i < names.count; i++) {
        free(names.list[i].name);
    }
    free(names.list);
    return result == 0 ? 0 : attachimage_explain(request->image, error);
}
