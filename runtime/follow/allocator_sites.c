/* SPDX-License-Identifier: MIT */
/* allocator_sites.c: which functions of the program lead to us. See allocator_sites.h. */
#define _GNU_SOURCE
#include "runtime/follow/allocator_sites.h"

#include "runtime/base/own_maps.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"

union site_place *sites;
uint32_t site_count;
int sites_times = 1;

static struct memtrace_led_function *led;
PUBLIC struct memtrace_led memtrace_led;

int sites_make(void) {
    if (sites == NULL) {
        machine_prepare_allocators();
        sites = sys_map(MEMTRACE_SITES * sizeof *sites);
        own_maps_keep(sites);
    }
    return sites != NULL ? 0 : -1;
}

/* --- carrying out a plan ---------------------------------------------------------------------- */

int sites_plan_is_sound(const struct plan *plan) {
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
    result = sys_protect_code(address, block->size, 0);
    if (result != 0) {
        sys_unmap(address, block->size);
    }
    return result;
}

static int is_led(uint64_t address) {
    for (uint32_t i = 0; i < site_count; i++) {
        if (sites[i].site.address == address) {
            return 1;
        }
    }
    return 0;
}

static void fill_site(struct allocator_site *site, const struct memtrace_plan_site *from) {
    *site = (struct allocator_site){
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

/* --- where we were attached ------------------------------------------------------------------- */

/* Its jump is taken away again by one write, which is whole within a page. */
static int may_be_undone(uint64_t address) {
    uint64_t in_page = address & (sys_page_bytes() - 1);
    return led == NULL || in_page + MEMTRACE_JUMP_BYTES <= sys_page_bytes();
}

static void note(uint32_t number, const struct memtrace_plan_site *from) {
    struct memtrace_led_function *function;
    if (led == NULL) {
        return;
    }
    function = &led[number];
    *function = (struct memtrace_led_function){
        .length = from->length, .is_wanted = 1, .signature = from->signature};
    __builtin_memcpy(function->old, from->old, sizeof function->old);
    __builtin_memcpy(function->jump, from->new, sizeof function->jump);
    STORE_RELEASE(&function->address, from->address);
    STORE_RELEASE(&memtrace_led.count, number + 1);
}

static int is_same(const struct memtrace_led_function *function,
                   const struct memtrace_plan_site *planned) {
    return function->address == planned->address && function->length == planned->length &&
           __builtin_memcmp(function->old, planned->old, planned->length) == 0 &&
           __builtin_memcmp(&function->signature, &planned->signature, sizeof planned->signature) ==
               0;
}

/* -1: it was never led in this way. */
static int find_same(const struct memtrace_plan_site *planned) {
    for (uint32_t i = 0; i < site_count; i++) {
        if (is_same(&led[i], planned)) {
            return (int)i;
        }
    }
    return -1;
}

/* One that was led when we were here before has its site and code yet. */
static int take_again(const struct plan *plan, const struct memtrace_plan_site *planned) {
    int number = plan->is_of_command && is_site_sound(planned) ? find_same(planned) : -1;
    if (number < 0) {
        return 0;
    }
    text_copy(sites[number].site.name, sizeof sites[number].site.name, planned->pool);
    led[number].is_wanted = 1;
    return 1;
}

/* 1: no more is to be done. */
static int take_all_again(const struct plan *plan) {
    for (uint32_t i = 0; i < plan->head->site_count; i++) {
        const struct memtrace_plan_site *planned = &plan->head->site[i];
        if (!plan->is_of_command || !is_site_sound(planned) || find_same(planned) < 0) {
            return 0;
        }
    }
    for (uint32_t i = 0; i < plan->head->site_count; i++) {
        take_again(plan, &plan->head->site[i]);
    }
    return 1;
}

/* --- leading ---------------------------------------------------------------------------------- */

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

/* Nobody runs it meanwhile, or who writes the jump sees to that. */
static int may_lead(const struct plan *plan, uint64_t address) {
    return plan->is_alone || plan->is_of_command ||
           (plan->may_run != NULL && !plan->may_run(address));
}

/* 1: it leads to us, or will; or 0: it stays as it is. */
static int lead(const struct plan *plan, const struct memtrace_plan_site *planned,
                uint32_t number) {
    struct allocator_site *site = &sites[number].site;
    if (!is_site_sound(planned)) {
        return 0;
    }
    if (!is_as_planned(planned)) {
        return is_led(planned->address);
    }
    if (!may_lead(plan, planned->address) || !may_be_undone(planned->address)) {
        return 0;
    }
    fill_site(site, planned);
    note(number, planned);
    SIGNAL_FENCE();
    if (!plan->is_of_command && replace(planned) != 0) {
        *site = (struct allocator_site){0};
        return 0;
    }
    return 1;
}

int sites_carry_out(const struct plan *plan) {
    const struct memtrace_plan *head = plan->head;
    uint32_t failed = 0;
    if (take_all_again(plan)) {
        return 0;
    }
    for (uint32_t i = 0; i < head->block_count; i++) {
        if (map_block(plan, &head->block[i]) != 0) {
            log_line("--alloc: no room near the program's code: its functions are not counted");
            return -1;
        }
    }
    for (uint32_t i = 0; i < head->site_count && site_count < MEMTRACE_SITES; i++) {
        /* A site's number is in its stub, so one that stays as it is keeps its place. */
        failed += !take_again(plan, &head->site[i]) && !lead(plan, &head->site[i], site_count);
        site_count++;
    }
    if (failed != 0) {
        log_error("--alloc: functions whose code may not be changed, has been, or may be running: "
                  "they are not counted");
    }
    return 0;
}

/* --- for who attaches ------------------------------------------------------------------------- */

int sites_expect(void) {
    if (led == NULL) {
        led = sys_map(MEMTRACE_SITES * sizeof *led);
        own_maps_keep(led);
    }
    if (led == NULL || sites_make() != 0) {
        return -1;
    }
    memtrace_led.entries = machine_allocator_entries;
    memtrace_led.sites = (uintptr_t)sites;
    memtrace_led.functions = (uintptr_t)led;
    memtrace_led.count = site_count;
    memtrace_led.plan = (uintptr_t)sys_map(MEMTRACE_PLAN_ROOM);
    return 0;
}

int sites_are_expected(void) {
    return memtrace_led.plan != 0;
}

int sites_follow(void) {
    struct plan plan = {.head = (const void *)(uintptr_t)memtrace_led.plan,
                        .size = MEMTRACE_PLAN_ROOM,
                        .is_of_command = 1};
    int result;
    if (plan.head == NULL) {
        return -1;
    }
    result = sites_plan_is_sound(&plan) ? sites_carry_out(&plan) : -1;
    memtrace_led.plan = 0;
    sys_unmap((void *)plan.head, plan.size);
    return result;
}

void sites_forget(void) {
    for (uint32_t i = 0; led != NULL && i < site_count; i++) {
        led[i].is_wanted = 0;
    }
    memtrace_led.plan = 0; /* which was unmapped */
    sites_times++;
}

int site_is_wanted(uint32_t number) {
    return led == NULL || led[number].is_wanted;
}
