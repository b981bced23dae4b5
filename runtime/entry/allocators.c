/* SPDX-License-Identifier: MIT */
/*
 * allocators.c: calls of functions that allocate are led to us, and counted. See allocators.h. The
 * functions called by machine_allocator_entries are at the end.
 */
#define _GNU_SOURCE
#include "runtime/entry/allocators.h"

#include "runtime/base/ourmaps.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"
#include "runtime/entry/followed.h"
#include "runtime/record/finish.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

union place {
    struct followed_site site;
    char bytes[1 << MEMTRACE_SITE_SHIFT];
};
_Static_assert(sizeof(struct followed_site) <= sizeof(union place), "a site has its place");

static union place *sites; /* mapped when functions are named: few programs have any */
static uint32_t site_count;
static uint32_t is_asked;

/* --- carrying out a plan ---------------------------------------------------------------------- */

struct plan {
    const struct memtrace_plan *head;
    uint64_t size;
    int is_alone;
    int (*may_run)(uintptr_t address); /* asked where we are not alone; NULL: any code may run */
};

static int is_sound(const struct plan *plan) {
    const struct memtrace_plan *head = plan->head;
    if (plan->size < sizeof *head ||
        __builtin_memcmp(head->magic, MEMTRACE_PLAN_MAGIC, sizeof head->magic) != 0 ||
        head->block_count > MEMTRACE_PLAN_BLOCKS || head->site_count > MEMTRACE_SITES ||
        plan->size - sizeof *head < head->site_count * sizeof head->site[0]) {
        return 0;
    }
    for (uint32_t i = 0; i < head->block_count; i++) {
        const struct memtrace_plan_block *block = &head->block[i];
        if (block->at > plan->size || block->size > plan->size - block->at) {
            return 0;
        }
    }
    return 1;
}

/* Code of ours, at an address that was free. 0, or a negative errno: it is taken now. */
static long map_block(const struct plan *plan, const struct memtrace_plan_block *block) {
    void *address = (void *)(uintptr_t)block->address;
    long result = sys_map_free(address, block->size);
    if (result != 0) {
        return result;
    }
    __builtin_memcpy(address, (const char *)plan->head + block->at, block->size);
    return sys_protect_code(address, block->size, 0);
}

static int is_led(uint64_t address) {
    for (uint32_t i = 0; i < site_count; i++) {
        if (sites[i].site.address == address) {
            return 1;
        }
    }
    return 0;
}

static void fill_site(struct followed_site *site, const struct memtrace_plan_site *from) {
    *site = (struct followed_site){
        .original = from->original,
        .address = from->address,
        .signature = from->signature,
        .pool = {.heap = from->signature.is_heap ? &runtime.foreign : &runtime.pools,
                 .is_reused = 1},
    };
    text_copy(site->name, sizeof site->name, from->pool);
}

static int is_number(uint8_t number) {
    return number <= MEMTRACE_ALLOCATOR_NUMBERS;
}

static int is_site_sound(const struct memtrace_plan_site *site) {
    const struct memtrace_allocator_signature *signature = &site->signature;
    return site->length >= 5 && site->length <= MEMTRACE_PATCH_BYTES &&
           signature->kind < MEMTRACE_ALLOCATOR_KINDS && is_number(signature->size) &&
           is_number(signature->times) && is_number(signature->align) &&
           is_number(signature->old_block) && is_number(signature->pointer) &&
           __builtin_memchr(site->pool, '\0', sizeof site->pool) != NULL;
}

/* Its bytes are as the command read them in the file, not changed since by others. */
static int is_as_planned(const struct memtrace_plan_site *site) {
    const char *code = (const char *)(uintptr_t)site->address;
    return sys_readable(code) && sys_readable(code + site->length - 1) &&
           __builtin_memcmp(code, site->old, site->length) == 0;
}

/* 0, or a negative errno. */
static long replace(const struct memtrace_plan_site *site) {
    uintptr_t page = sys_page_bytes();
    uintptr_t start = site->address & ~(page - 1);
    size_t size = sys_page_up(site->address + site->length) - start;
    long result = sys_protect_code((void *)start, size, 1);
    if (result == 0) {
        __builtin_memcpy((void *)(uintptr_t)site->address, site->new, site->length);
        sys_protect_code((void *)start, size, 0);
    }
    return result;
}

/* 1: it leads to us; or 0: it stays as it is. */
static int lead(const struct plan *plan, const struct memtrace_plan_site *planned,
                struct followed_site *site) {
    if (!is_site_sound(planned)) {
        return 0;
    }
    if (!is_as_planned(planned)) {
        return is_led(planned->address);
    }
    if (!plan->is_alone && (plan->may_run == NULL || plan->may_run(planned->address))) {
        return 0;
    }
    fill_site(site, planned);
    SIGNAL_FENCE();
    if (replace(planned) != 0) {
        *site = (struct followed_site){0};
        return 0;
    }
    return 1;
}

static void carry_out(const struct plan *plan) {
    const struct memtrace_plan *head = plan->head;
    uint32_t failed = 0;
    for (uint32_t i = 0; i < head->block_count; i++) {
        if (map_block(plan, &head->block[i]) != 0) {
            log_line("--alloc: no room near the program's code: its functions are not counted",
                     NULL, NULL);
            return;
        }
    }
    for (uint32_t i = 0; i < head->site_count && site_count < MEMTRACE_SITES; i++) {
        /* A site's number is in its stub, so one that stays as it is keeps its place. */
        failed += !lead(plan, &head->site[i], &sites[site_count].site);
        site_count++;
    }
    if (failed != 0) {
        log_error("--alloc: functions whose code may not be changed, has been, or may be running: "
                  "they are not counted",
                  NULL, NULL);
    }
}

/* --- asking for one --------------------------------------------------------------------------- */

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
    sys_close((int)fd);
    if (plan.head != NULL) {
        if (is_sound(&plan)) {
            carry_out(&plan);
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
    struct text text;
    text_init(&text, pid, sizeof pid);
    text_add_number(&text, sys_getpid());
    text_init(&text, path, sizeof path);
    text_add(&text, runtime.space.path);
    text_add(&text, ".plan");
    text_init(&text, entries, sizeof entries);
    for (int i = 0; i < 3; i++) {
        text_add(&text, i != 0 ? "," : "");
        text_add_hex(&text, entry[i]);
    }
    text_init(&text, at, sizeof at);
    text_add_hex(&text, (uintptr_t)sites);
    text_init(&text, first, sizeof first);
    text_add_number(&text, site_count);
    text_add(&text, is_asked ? "+" : "");
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
    static struct trylock lock;
    if (!allocators_are_named() || !sys_take(&lock)) {
        return;
    }
    if (&machine_allocator_entries == NULL) {
        if (!is_asked) {
            log_line("--alloc: functions cannot be led to MemTrace on this machine yet", NULL,
                     NULL);
        }
        is_asked = 1;
    } else {
        if (sites == NULL) {
            machine_prepare_allocators();
            sites = sys_map(MEMTRACE_SITES * sizeof *sites);
        }
        if (sites != NULL) {
            ourmaps_keep(sites);
            ask(may_run);
        }
        allocators_name_pools();
        __atomic_fetch_or(&runtime.space.header->flags, allocators_flags(), __ATOMIC_RELAXED);
    }
    trylock_release(&lock);
}

uint32_t allocators_flags(void) {
    uint32_t flags = 0;
    for (uint32_t i = 0; i < site_count; i++) {
        const struct followed_site *site = &sites[i].site;
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
static void silence(struct followed_site *site) {
    STORE_RELAXED(&site->is_silent, 1);
    STORE_RELAXED(&site->signature.old_block, 0);
    STORE_RELAXED(&site->pool.number, -1);
}

/* Where instructions are replaced is behind an endbr64 (docs/allocators.md). */
void allocators_leave_out(uintptr_t function) {
    enum { ENDBR = 4 };
    for (uint32_t i = 0; i < LOAD_RELAXED(&site_count); i++) {
        uint64_t address = sites[i].site.address;
        if (function != 0 && (address == function || address == function + ENDBR)) {
            silence(&sites[i].site);
        }
    }
}

void allocators_name_pools(void) {
    for (uint32_t i = 0; i < site_count; i++) {
        struct followed_site *site = &sites[i].site;
        if (site->original != 0 && !site->is_silent && site->name[0] != '\0') {
            site->pool.number = pool_number(site->name);
        }
    }
}

/* --- calls ------------------------------------------------------------------------------------ */

/* The block that may end is taken out before the function can give its place to another thread. */
HIDDEN void allocator_resizes(struct allocator_call *call) {
    struct pool_taken *taken = (struct pool_taken *)(void *)call->taken;
    const struct followed_site *site = followed_site(call);
    uintptr_t old = followed_argument(call, site->signature.old_block);
    struct thread *thread =
        old != 0 ? thread_get_for_free(event_place(followed_caller(call))) : NULL;
    taken->is_known = 0;
    if (thread != NULL) {
        pool_take(thread, site->pool.heap, old, taken);
        thread_done(thread);
    }
}

HIDDEN void allocator_returned(struct allocator_call *call, uint64_t result) {
    const struct followed_site *site = followed_site(call);
    struct frame caller = followed_caller(call);
    struct pool_object object = {.address = followed_block(call, result),
                                 .size = followed_size(call),
                                 .how =
                                     event_aligned(followed_argument(call, site->signature.align))};
    struct thread *thread;
    if (site->signature.size == 0 && object.address != 0) {
        object.size = pool_size_at(site->pool.heap, object.address);
    }
    if (site->signature.kind == MEMTRACE_ALLOCATOR_REALLOC) {
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
    const struct followed_site *site = followed_site(call);
    struct frame caller = followed_caller(call);
    uintptr_t block = followed_argument(call, site->signature.pointer);
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
