/* SPDX-License-Identifier: MIT */
/*
 * allocators.c: which functions of the program lead to us. See allocators.h. Which bytes go where
 * is planned by the command (memtrace/allocators.h), which knows symbols and instructions; here the
 * plan is carried out. Calls are counted in allocator_calls.c and allocators_fast.c.
 *
 * In a program that was started with us, and in libraries that are opened, we replace their first
 * bytes ourselves, while nobody runs them. Where we were attached the command does that, which
 * holds all threads: here all is made ready for it, and told by memtrace_led.
 *
 * Called by process/runtime.c, reach/loader.c and reach/attach.c.
 */
#define _GNU_SOURCE
#include "runtime/follow/allocators.h"

#include "memtrace/allocators.h"
#include "runtime/base/own_maps.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"
#include "runtime/follow/allocator_call.h"
#include "runtime/record/finish.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

union site_place {
    struct allocator_site site;
    char bytes[1 << MEMTRACE_SITE_SHIFT];
};
_Static_assert(sizeof(struct allocator_site) <= sizeof(union site_place), "a site has its place");

static union site_place *sites; /* mapped when functions are named: few programs have any */
static uint32_t site_count;
int sites_times = 1;

static struct trylock sites_lock; /* who holds it changes the sites */
static uint32_t is_asked;

/* Where we are attached. */
static struct memtrace_led_function *led;
PUBLIC struct memtrace_led memtrace_led;

/* 0, or -1: no memory. */
static int sites_make(void) {
    if (sites == NULL) {
        machine_prepare_allocators();
        sites = sys_map(MEMTRACE_SITES * sizeof *sites);
        own_maps_keep(sites);
    }
    return sites != NULL ? 0 : -1;
}

static int site_is_wanted(uint32_t number) {
    return led == NULL || led[number].is_wanted;
}

/* --- what the region is told ------------------------------------------------------------------ */

uint32_t allocators_flags(void) {
    uint32_t flags = allocator_calls_flags();
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

/* Where instructions are replaced is behind an endbr64 (docs/allocators.md). */
static int site_is_of(const struct allocator_site *site, uintptr_t function) {
    enum { ENDBR = 4 };
    return function != 0 && (site->address == function || site->address == function + ENDBR);
}

/* Nothing is to be resized, and what would add a block comes to allocator_returned(), since there
 * is no pool for it. */
void allocators_leave_out(uintptr_t function) {
    for (uint32_t i = 0; i < LOAD_RELAXED(&site_count); i++) {
        struct allocator_site *site = &sites[i].site;
        if (site_is_of(site, function)) {
            STORE_RELAXED(&site->is_silent, 1);
            STORE_RELAXED(&site->signature.old_block, 0);
            STORE_RELAXED(&site->pool.number, -1);
        }
    }
}

static void sites_name_pools(void) {
    for (uint32_t i = 0; i < site_count; i++) {
        struct allocator_site *site = &sites[i].site;
        if (site->original != 0 && !site->is_silent && site->name[0] != '\0') {
            site->pool.number = pool_number(site->name);
        }
    }
}

void allocators_name_pools(void) {
    sites_name_pools();
    allocator_calls_forget_pools();
}

static void sites_tell_region(void) {
    sites_name_pools();
    __atomic_fetch_or(&runtime.space.header->flags, allocators_flags(), __ATOMIC_RELAXED);
}

/* --- plans ------------------------------------------------------------------------------------ */

struct plan {
    const struct memtrace_plan *head;
    uint64_t size;
    int is_alone;
    int is_of_command;                 /* which writes the jumps, while nobody runs */
    int (*may_run)(uintptr_t address); /* asked where we are not alone; NULL: any code may run */
};

static int plan_is_sound(const struct plan *plan) {
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

static int plan_is_number(uint8_t number) {
    return number <= MEMTRACE_ALLOCATOR_NUMBERS;
}

static int plan_is_site_sound(const struct memtrace_plan_site *site) {
    const struct memtrace_allocator_signature *signature = &site->signature;
    return site->length >= 5 && site->length <= MEMTRACE_PATCH_BYTES &&
           signature->kind < MEMTRACE_ALLOCATOR_KINDS && plan_is_number(signature->size) &&
           plan_is_number(signature->times) && plan_is_number(signature->align) &&
           plan_is_number(signature->old_block) && plan_is_number(signature->pointer) &&
           __builtin_memchr(site->pool, '\0', sizeof site->pool) != NULL;
}

/* Code of ours, at an address that was free. 0, or a negative errno: it is taken now. */
static long plan_map_block(const struct plan *plan, const struct memtrace_plan_block *block) {
    void *address = (void *)(uintptr_t)block->address;
    long result = sys_map_free(address, block->size);
    if (result != 0) {
        return result;
    }
    __builtin_memcpy(address, (const char *)plan->head + block->at, block->size);
    result = sys_protect_code(address, block->size, 0);
    if (result != 0) {
        sys_unmap(address, block->size);
    }
    return result;
}

/* The site of a function that the command led in this way when we were here before: it has its code
 * yet. -1: there is none. */
static int site_of_before(const struct plan *plan, const struct memtrace_plan_site *planned) {
    if (!plan->is_of_command || !plan_is_site_sound(planned)) {
        return -1;
    }
    for (uint32_t i = 0; i < site_count; i++) {
        if (led[i].address == planned->address && led[i].length == planned->length &&
            __builtin_memcmp(led[i].old, planned->old, planned->length) == 0 &&
            __builtin_memcmp(&led[i].signature, &planned->signature, sizeof planned->signature) ==
                0) {
            return (int)i;
        }
    }
    return -1;
}

static int site_take_again(const struct plan *plan, const struct memtrace_plan_site *planned) {
    int number = site_of_before(plan, planned);
    if (number < 0) {
        return 0;
    }
    text_copy(sites[number].site.name, sizeof sites[number].site.name, planned->pool);
    led[number].is_wanted = 1;
    return 1;
}

/* 1: no more is to be done. */
static int sites_take_all_again(const struct plan *plan) {
    for (uint32_t i = 0; i < plan->head->site_count; i++) {
        if (site_of_before(plan, &plan->head->site[i]) < 0) {
            return 0;
        }
    }
    for (uint32_t i = 0; i < plan->head->site_count; i++) {
        site_take_again(plan, &plan->head->site[i]);
    }
    return 1;
}

/* --- leading ---------------------------------------------------------------------------------- */

/* For the command. */
static void site_note(uint32_t number, const struct memtrace_plan_site *from) {
    struct memtrace_led_function *function = &led[number];
    *function = (struct memtrace_led_function){
        .length = from->length, .is_wanted = 1, .signature = from->signature};
    __builtin_memcpy(function->old, from->old, sizeof function->old);
    __builtin_memcpy(function->jump, from->new, sizeof function->jump);
    STORE_RELEASE(&function->address, from->address);
    STORE_RELEASE(&memtrace_led.count, number + 1);
}

/* 0, or a negative errno. */
static long site_replace(const struct memtrace_plan_site *site) {
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

/* Its bytes are as the command read them in the file, not changed since by others. */
static int site_is_as_planned(const struct memtrace_plan_site *site) {
    const char *code = (const char *)(uintptr_t)site->address;
    return sys_readable(code) && sys_readable(code + site->length - 1) &&
           __builtin_memcmp(code, site->old, site->length) == 0;
}

/* Nobody runs it meanwhile, or who writes the jump sees to that. And the command takes the jump
 * away again by one write, which is whole within a page. */
static int site_may_lead(const struct plan *plan, uint64_t address) {
    uint64_t in_page = address & (sys_page_bytes() - 1);
    return (plan->is_alone || plan->is_of_command ||
            (plan->may_run != NULL && !plan->may_run(address))) &&
           (led == NULL || in_page + MEMTRACE_JUMP_BYTES <= sys_page_bytes());
}

/* 1: it leads to us, or will; or 0: it stays as it is. */
static int site_lead(const struct plan *plan, const struct memtrace_plan_site *planned,
                     uint32_t number) {
    struct allocator_site *site = &sites[number].site;
    if (!plan_is_site_sound(planned)) {
        return 0;
    }
    if (!site_is_as_planned(planned)) { /* it may lead to us already */
        uint32_t same = 0;
        while (same < site_count && sites[same].site.address != planned->address) {
            same++;
        }
        return same < site_count;
    }
    if (!site_may_lead(plan, planned->address)) {
        return 0;
    }
    *site = (struct allocator_site){
        .original = planned->original,
        .address = planned->address,
        .signature = planned->signature,
        .pool = {.heap = planned->signature.is_heap ? &runtime.foreign : &runtime.pools,
                 .is_reused = 1},
    };
    text_copy(site->name, sizeof site->name, planned->pool);
    if (led != NULL) {
        site_note(number, planned);
    }
    SIGNAL_FENCE();
    if (!plan->is_of_command && site_replace(planned) != 0) {
        *site = (struct allocator_site){0};
        return 0;
    }
    return 1;
}

/* 0, or -1: there is no room for its code. */
static int plan_carry_out(const struct plan *plan) {
    const struct memtrace_plan *head = plan->head;
    uint32_t failed = 0;
    if (sites_take_all_again(plan)) {
        return 0;
    }
    for (uint32_t i = 0; i < head->block_count; i++) {
        if (plan_map_block(plan, &head->block[i]) != 0) {
            log_line("--alloc: no room near the program's code: its functions are not counted");
            return -1;
        }
    }
    for (uint32_t i = 0; i < head->site_count && site_count < MEMTRACE_SITES; i++) {
        /* A site's number is in its stub, so one that stays as it is keeps its place. */
        failed +=
            !site_take_again(plan, &head->site[i]) && !site_lead(plan, &head->site[i], site_count);
        site_count++;
    }
    if (failed != 0) {
        log_error("--alloc: functions whose code may not be changed, has been, or may be running: "
                  "they are not counted");
    }
    return 0;
}

/* --- asking for a plan ------------------------------------------------------------------------ */

/* NULL: it cannot be read. */
static void *plan_read_all(int fd, uint64_t size) {
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

static void plan_read(const char *path, int (*may_run)(uintptr_t address)) {
    struct stat status;
    struct plan plan = {.may_run = may_run};
    long fd = sys_open(path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0) {
        return; /* the command has said why */
    }
    if (sys_fstat((int)fd, &status) == 0 && status.st_size > 0) {
        plan.size = (uint64_t)status.st_size;
        plan.head = plan_read_all((int)fd, plan.size);
    }
    sys_close(fd);
    if (plan.head != NULL) {
        /* It has a folder for each thread and its own two links (man proc). */
        plan.is_alone = sys_lstat("/proc/self/task", &status) == 0 && status.st_nlink == 3;
        if (plan_is_sound(&plan)) {
            plan_carry_out(&plan);
        }
        sys_unmap((void *)plan.head, plan.size);
    }
}

/* Waits for the command. */
static void plan_ask(int (*may_run)(uintptr_t address)) {
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
        plan_read(path, may_run);
        sys_unlink(path);
    }
}

int allocators_are_named(void) {
    return runtime_is_ready() && runtime.settings.alloc[0] != '\0';
}

void allocators_lead(int (*may_run)(uintptr_t address)) {
    if (!allocators_are_named() || memtrace_led.plan != 0 || !sys_take(&sites_lock)) {
        return;
    }
    if (&machine_allocator_entries == NULL) {
        if (!is_asked) {
            log_line("--alloc: functions cannot be led to MemTrace on this machine yet");
        }
        is_asked = 1;
    } else {
        if (sites_make() == 0) {
            plan_ask(may_run);
        }
        sites_tell_region();
    }
    trylock_release(&sites_lock);
}

/* --- where we are attached -------------------------------------------------------------------- */

void allocators_expect(void) {
    if (!allocators_are_named() || &machine_allocator_entries == NULL || !sys_take(&sites_lock)) {
        return;
    }
    is_asked = 1; /* of libraries that come later nothing is said */
    if (led == NULL) {
        led = sys_map(MEMTRACE_SITES * sizeof *led);
        own_maps_keep(led);
    }
    if (led != NULL && sites_make() == 0) {
        memtrace_led.entries = machine_allocator_entries;
        memtrace_led.sites = (uintptr_t)sites;
        memtrace_led.functions = (uintptr_t)led;
        memtrace_led.count = site_count;
        memtrace_led.plan = (uintptr_t)sys_map(MEMTRACE_PLAN_ROOM);
    }
    trylock_release(&sites_lock);
}

int allocators_follow(void) {
    struct plan plan = {.size = MEMTRACE_PLAN_ROOM, .is_of_command = 1};
    int result = -1;
    if (!runtime_is_ready() || !sys_take(&sites_lock)) {
        return -1;
    }
    plan.head = (const void *)(uintptr_t)memtrace_led.plan;
    if (plan.head != NULL) {
        result = plan_is_sound(&plan) ? plan_carry_out(&plan) : -1;
        memtrace_led.plan = 0;
        sys_unmap((void *)plan.head, plan.size);
    }
    sites_tell_region();
    trylock_release(&sites_lock);
    return result;
}

int allocators_may_lead_from(uintptr_t function) {
    for (uint32_t i = 0; i < LOAD_RELAXED(&site_count); i++) {
        if (site_is_wanted(i) && site_is_of(&sites[i].site, function)) {
            return 1;
        }
    }
    return memtrace_led.plan != 0;
}

void allocators_forget(void) {
    for (uint32_t i = 0; led != NULL && i < site_count; i++) {
        led[i].is_wanted = 0;
    }
    memtrace_led.plan = 0; /* which was unmapped */
    sites_times++;
}
