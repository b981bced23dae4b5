/* SPDX-License-Identifier: MIT */
/* sandbox.c: keeping and running seccomp filters. See sandbox.h. */
#define _GNU_SOURCE
#include "runtime/base/sandbox.h"

#include "memtrace/seccomp.h"
#include "runtime/base/sys.h"
#include "runtime/machine/machine.h"

#include <sys/syscall.h>

enum { FILTERS_MOST = MEMTRACE_FILTERS_MOST, INSTRUCTIONS_MOST = 16384 };

/* Filters only come. What they have in all is bounded, since memory may no longer be had; one that
 * is not known (no room, or its code cannot be looked at) is taken for the strictest. */
static struct sock_filter instructions[INSTRUCTIONS_MOST];
static struct {
    uint32_t start, end; /* its instructions; none: SECCOMP_MODE_STRICT */
} filters[FILTERS_MOST];

uint32_t sandbox_filters;

static uint32_t used(void) {
    return sandbox_filters != 0 ? filters[sandbox_filters - 1].end : 0;
}

static void sandbox_add_filter(uint32_t length) {
    uint32_t at = sandbox_filters;
    if (at < FILTERS_MOST) { /* as the last one is strict then, more is not needed */
        filters[at].start = used();
        filters[at].end = filters[at].start + (at + 1 < FILTERS_MOST ? length : 0);
        STORE_RELEASE(&sandbox_filters, at + 1);
    }
}

static void sandbox_add_code(const struct sock_filter *code, uint32_t length) {
    if (length <= INSTRUCTIONS_MOST - used()) {
        __builtin_memcpy(instructions + used(), code, length * sizeof *code);
        sandbox_add_filter(length);
    } else {
        sandbox_add_filter(0);
    }
}

void sandbox_add(const struct sock_fprog *program) {
    int is_readable = sys_readable(program) && sys_readable(&program->filter) &&
                      program->len != 0 && sys_readable(program->filter) &&
                      sys_readable(program->filter + program->len - 1);
    if (is_readable) {
        sandbox_add_code(program->filter, program->len);
    } else {
        sandbox_add_filter(0);
    }
}

void sandbox_know(const struct sock_filter *code, uint32_t length) {
    int is_known = length == 0;
    for (uint32_t i = 0; i < sandbox_filters && !is_known; i++) {
        is_known =
            filters[i].end - filters[i].start == length &&
            __builtin_memcmp(instructions + filters[i].start, code, length * sizeof *code) == 0;
    }
    if (!is_known) {
        sandbox_add_code(code, length);
    }
}

void sandbox_be_strict(void) {
    sandbox_add_filter(0);
}

void sandbox_take_back(void) {
    STORE_RELEASE(&sandbox_filters, sandbox_filters - 1);
}

int sandbox_is_strict(void) {
    for (uint32_t i = 0; i < LOAD_ACQUIRE(&sandbox_filters); i++) {
        if (filters[i].start == filters[i].end) {
            return 1;
        }
    }
    return 0;
}

COLD int sandbox_ask(long number, const uint64_t arguments[6]) {
    struct seccomp_data data = {.nr = (int)number,
                                .arch = MEMTRACE_FILTER_MACHINE(MACHINE_ELF),
                                .instruction_pointer = (uintptr_t)sandbox_ask};
    uint32_t count = LOAD_ACQUIRE(&sandbox_filters);
    for (int i = 0; i < 6; i++) {
        data.args[i] = arguments[i];
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t length = filters[i].end - filters[i].start;
        int allowed = length != 0 ? memtrace_filter_ends_well(memtrace_filter_answer(
                                        instructions + filters[i].start, length, &data))
                                  : number == SYS_read || number == SYS_write || number == SYS_exit;
        if (!allowed) {
            return 0;
        }
    }
    return 1;
}
