/* SPDX-License-Identifier: MIT */
/*
 * allocators.c: calls of functions that allocate are led to us, and counted. See allocators.h. The
 * functions called by machine_allocator_entries are at the end.
 */
#define _GNU_SOURCE
#include "runtime/follow/allocators.h"

#include "runtime/base/sys.h"
#include "runtime/base/text.h"
#include "runtime/follow/allocator_sites.h"
#include "runtime/record/finish.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- what the region is told ------------------------------------------------------------------ */

uint32_t allocators_flags(void) {
    uint32_t flags = 0;
    for (uint32_t i = 0; i < site_count; i++) {
        const struct allocator_site *site = &sites[i].site;
        if (!site_is_wanted(i)) {
            continue;
        }
        flags |= site->original != 0 ? MEMTRACE_FLAG_FOLLOWED : 0;
        if (site->pool.heap == &runtime.foreign &&
            site->signature.kind != MEMTRACE_ALLOCATOR_FREE) {
            flags |= MEMTRACE_FLAG_NAMED;
        }
    }
    return flags;
}

uint32_t allocators_count(void) {
    return LOAD_RELAXED(&site_count);
}

/* Nothing is to be resized, and what would add a block comes to allocator_returned(), since there
 * is no pool for it. */
static void silence(struct allocator_site *site) {
    STORE_RELAXED(&site->is_silent, 1);
    STORE_RELAXED(&site->signature.old_block, 0);
    STORE_RELAXED(&site->pool.number, -1);
}

/* Where instructions are replaced is behind an endbr64 (docs/allocators.md). */
static int is_of(const struct allocator_site *site, uintptr_t function) {
    enum { ENDBR = 4 };
    return function != 0 && (site->address == function || site->address == function + ENDBR);
}

void allocators_leave_out(uintptr_t function) {
    for (uint32_t i = 0; i < LOAD_RELAXED(&site_count); i++) {
        if (is_of(&sites[i].site, function)) {
            silence(&sites[i].site);
        }
    }
}

void allocators_name_pools(void) {
    for (uint32_t i = 0; i < site_count; i++) {
        struct allocator_site *site = &sites[i].site;
        if (site->original != 0 && !site->is_silent && site->name[0] != '\0') {
            site->pool.number = pool_number(site->name);
        }
    }
}

static void tell_region(void) {
    allocators_name_pools();
    __atomic_fetch_or(&runtime.space.header->flags, allocators_flags(), __ATOMIC_RELAXED);
}

static struct trylock lock; /* who holds it changes the sites */
static uint32_t is_asked;

/* --- asking for a plan ------------------------------------------------------------------------ */

/* NULL: it cannot be read. */
static void *read_file(int fd, uint64_t size) {
    char *bytes = sys_map(size);
    uint64_t done = 0;
    while (bytes != NULL && done < size) {
        long count = sys_pread(fd, bytes + done, size - done, done);
        if (count <= 0) {
            sys_unmap(bytes, size);
            return NULL;
        }
        done += (uint64_t)count;
    }
    return bytes;
}

/* Of /proc/PID/task, which has a folder for each thread and its own two links (man proc). */
static int is_alone(void) {
    struct stat status;
    return sys_lstat("/proc/self/task", &status) == 0 && status.st_nlink == 3;
}

static void read_plan(const char *path, int (*may_run)(uintptr_t address)) {
    struct stat status;
    struct plan plan = {.may_run = may_run, .is_alone = is_alone()};
    long fd = sys_open(path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0) {
        return; /* the command has said why */
    }
    if (sys_fstat((int)fd, &status) == 0 && status.st_size > 0) {
        plan.size = (uint64_t)status.st_size;
        plan.head = read_file((int)fd, plan.size);
    }
    sys_close(fd);
    if (plan.head != NULL) {
        if (sites_plan_is_sound(&plan)) {
            sites_carry_out(&plan);
        }
        sys_unmap((void *)plan.head, plan.size);
    }
}

/* Waits for the command. */
static void ask(int (*may_run)(uintptr_t address)) {
    char pid[24], entries[64], at[24], first[24], path[1100];
    char *arguments[] = {(char *)"memtrace",
                         (char *)"allocators",
                         pid,
                         path,
                         entries,
                         at,
                         first,
                         runtime.settings.alloc,
                         NULL};
    const uint64_t *entry = (const uint64_t *)&machine_allocator_entries;
    text_print(pid, sizeof pid, "%u", sys_getpid());
    text_print(path, sizeof path, "%s.plan", runtime.space.path);
    text_print(entries, sizeof entries, "%#" PRIx64 ",%#" PRIx64 ",%#" PRIx64, entry[0], entry[1],
               entry[2]);
    text_print(at, sizeof at, "%#" PRIxPTR, (uintptr_t)sites);
    text_print(first, sizeof first, "%u%s", site_count, is_asked ? "+" : "");
    is_asked = 1;
    if (companion_ask(&runtime.settings, arguments, environ) == 0) {
        read_plan(path, may_run);
        sys_unlink(path);
    }
}

int allocators_are_named(void) {
    return runtime_is_ready() && runtime.settings.alloc[0] != '\0';
}

void allocators_lead(int (*may_run)(uintptr_t address)) {
    if (!allocators_are_named() || sites_are_expected() || !sys_take(&lock)) {
        return;
    }
    if (&machine_allocator_entries == NULL) {
        if (!is_asked) {
            log_line("--alloc: functions cannot be led to MemTrace on this machine yet");
        }
        is_asked = 1;
    } else {
        if (sites_make() == 0) {
            ask(may_run);
        }
        tell_region();
    }
    trylock_release(&lock);
}

/* --- where we are attached -------------------------------------------------------------------- */

void allocators_expect(void) {
    if (allocators_are_named() && &machine_allocator_entries != NULL && sys_take(&lock)) {
        is_asked = 1; /* of libraries that come later nothing is said */
        sites_expect();
        trylock_release(&lock);
    }
}

int allocators_follow(void) {
    int result = -1;
    if (runtime_is_ready() && sys_take(&lock)) {
        result = sites_follow();
        tell_region();
        trylock_release(&lock);
    }
    return result;
}

int allocators_may_lead_from(uintptr_t function) {
    for (uint32_t i = 0; i < LOAD_RELAXED(&site_count); i++) {
        if (site_is_wanted(i) && is_of(&sites[i].site, function)) {
            return 1;
        }
    }
    return sites_are_expected();
}

void allocators_forget(void) {
    sites_forget();
}

/* --- calls ------------------------------------------------------------------------------------ */

/* The block that may end is taken out before the function can give its place to another thread. */
HIDDEN void allocator_resizes(struct allocator_call *call) {
    struct pool_taken *taken = (struct pool_taken *)(void *)call->taken;
    const struct allocator_site *site = allocator_call_site(call);
    uintptr_t old = allocator_call_argument(call, site->signature.old_block);
    struct thread *thread =
        old != 0 ? thread_get_for_free(event_place(allocator_call_caller(call))) : NULL;
    taken->is_known = 0;
    if (thread != NULL) {
        pool_take(thread, site->pool.heap, old, taken);
        taken->is_known = taken->is_known ? sites_times : 0;
        thread_done(thread);
    }
}

HIDDEN void allocator_returned(struct allocator_call *call, uint64_t result) {
    const struct allocator_site *site = allocator_call_site(call);
    struct frame caller = allocator_call_caller(call);
    struct pool_object object = {
        .address = allocator_call_block(call, result),
        .size = allocator_call_size(call),
        .how = event_aligned(allocator_call_argument(call, site->signature.align))};
    struct thread *thread;
    if (site->signature.size == 0 && object.address != 0) {
        object.size = pool_size_at(site->pool.heap, object.address);
    }
    if (site->signature.kind == MEMTRACE_ALLOCATOR_REALLOC &&
        ((const struct pool_taken *)(const void *)call->taken)->is_known == sites_times) {
        object.replaces = pool_end_resized(
            site->pool.heap, (const struct pool_taken *)(const void *)call->taken, &object, caller);
    }
    if (site->signature.kind == MEMTRACE_ALLOCATOR_ZALLOC) {
        object.how |= MEMTRACE_ALLOC_ZEROED;
    }
    thread = object.address != 0 && !LOAD_RELAXED(&site->is_silent)
                 ? thread_get(event_place(caller))
                 : NULL;
    if (thread != NULL) {
        pool_add(thread, &site->pool, &object, caller);
        thread_done(thread);
    }
}

HIDDEN void allocator_leaves(struct allocator_call *call) {
    const struct allocator_site *site = allocator_call_site(call);
    struct frame caller = allocator_call_caller(call);
    uintptr_t block = allocator_call_argument(call, site->signature.pointer);
    int is_reset = site->signature.kind == MEMTRACE_ALLOCATOR_RESET;
    struct thread *thread =
        block != 0 || is_reset ? thread_get_for_free(event_place(caller)) : NULL;
    if (thread == NULL) {
        return;
    }
    if (is_reset) {
        pool_reset(thread, &site->pool, caller);
    } else {
        pool_remove(thread, site->pool.heap, block, 0, caller);
    }
    thread_done(thread);
}
