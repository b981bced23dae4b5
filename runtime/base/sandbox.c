/* SPDX-License-Identifier: MIT */
/* sandbox.c: keeping and running seccomp filters. See sandbox.h. */
#define _GNU_SOURCE
#include "runtime/base/sandbox.h"

#include "runtime/base/sys.h"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/syscall.h>

enum { FILTERS_MOST = 64, INSTRUCTIONS_MOST = 16384, SCRATCH_WORDS = BPF_MEMWORDS };

#if defined(__x86_64__)
static const uint32_t architecture = AUDIT_ARCH_X86_64;
#else
static const uint32_t architecture = AUDIT_ARCH_AARCH64;
#endif

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

static void add(uint32_t length) {
    uint32_t at = sandbox_filters;
    if (at < FILTERS_MOST) { /* as the last one is strict then, more is not needed */
        filters[at].start = used();
        filters[at].end = filters[at].start + (at + 1 < FILTERS_MOST ? length : 0);
        STORE_RELEASE(&sandbox_filters, at + 1);
    }
}

static int is_readable(const struct sock_fprog *program) {
    return sys_readable(program) && sys_readable(&program->filter) && program->len != 0 &&
           sys_readable(program->filter) && sys_readable(program->filter + program->len - 1);
}

void sandbox_add(const struct sock_fprog *program) {
    uint32_t start = used();
    if (!is_readable(program) || program->len > INSTRUCTIONS_MOST - start) {
        add(0);
        return;
    }
    __builtin_memcpy(instructions + start, program->filter, program->len * sizeof *instructions);
    add(program->len);
}

void sandbox_be_strict(void) {
    add(0);
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

/* --- running one (linux/filter.h; man seccomp says which instructions there are) -------------- */

struct run {
    const struct seccomp_data *data;
    uint32_t accumulator;
    uint32_t index;
    uint32_t scratch[SCRATCH_WORDS];
};

static uint32_t load(const struct run *run, const struct sock_filter *at) {
    uint32_t word = 0;
    switch (BPF_MODE(at->code)) {
    case BPF_ABS:
        if (at->k <= sizeof *run->data - sizeof word) {
            __builtin_memcpy(&word, (const uint8_t *)run->data + at->k, sizeof word);
        }
        return word;
    case BPF_MEM:
        return run->scratch[at->k % SCRATCH_WORDS];
    case BPF_LEN:
        return sizeof *run->data;
    default:
        return at->k; /* BPF_IMM */
    }
}

static uint32_t calculate(uint16_t operation, uint32_t left, uint32_t right) {
    switch (operation) {
    case BPF_ADD:
        return left + right;
    case BPF_SUB:
        return left - right;
    case BPF_MUL:
        return left * right;
    case BPF_DIV:
        return right != 0 ? left / right : 0;
    case BPF_AND:
        return left & right;
    case BPF_OR:
        return left | right;
    case BPF_XOR:
        return left ^ right;
    case BPF_LSH:
        return right < 32 ? left << right : 0;
    case BPF_RSH:
        return right < 32 ? left >> right : 0;
    default:
        return -left; /* BPF_NEG */
    }
}

/* How many instructions are left out. */
static uint32_t jump(const struct run *run, const struct sock_filter *at) {
    uint32_t right = BPF_SRC(at->code) == BPF_X ? run->index : at->k;
    int holds = 0;
    switch (BPF_OP(at->code)) {
    case BPF_JA:
        return at->k;
    case BPF_JEQ:
        holds = run->accumulator == right;
        break;
    case BPF_JGT:
        holds = run->accumulator > right;
        break;
    case BPF_JGE:
        holds = run->accumulator >= right;
        break;
    default:
        holds = (run->accumulator & right) != 0; /* BPF_JSET */
    }
    return holds ? at->jt : at->jf;
}

/* One that is no return. */
static void step(struct run *run, const struct sock_filter *at) {
    switch (BPF_CLASS(at->code)) {
    case BPF_LD:
        run->accumulator = load(run, at);
        break;
    case BPF_LDX:
        run->index = load(run, at);
        break;
    case BPF_ST:
        run->scratch[at->k % SCRATCH_WORDS] = run->accumulator;
        break;
    case BPF_STX:
        run->scratch[at->k % SCRATCH_WORDS] = run->index;
        break;
    case BPF_ALU:
        run->accumulator = calculate(BPF_OP(at->code), run->accumulator,
                                     BPF_SRC(at->code) == BPF_X ? run->index : at->k);
        break;
    case BPF_MISC:
        if (BPF_MISCOP(at->code) == BPF_TXA) {
            run->accumulator = run->index;
        } else {
            run->index = run->accumulator;
        }
        break;
    default:
        break;
    }
}

/* The kernel has looked at it: jumps lead forwards, and it ends. */
static uint32_t answer(const struct sock_filter *code, uint32_t length,
                       const struct seccomp_data *data) {
    struct run run = {.data = data};
    for (uint32_t i = 0; i < length; i++) {
        const struct sock_filter *at = &code[i];
        if (BPF_CLASS(at->code) == BPF_RET) {
            return BPF_RVAL(at->code) == BPF_A ? run.accumulator : at->k;
        }
        if (BPF_CLASS(at->code) == BPF_JMP) {
            i += jump(&run, at);
        } else {
            step(&run, at);
        }
    }
    return SECCOMP_RET_KILL_PROCESS;
}

static int ends_well(uint32_t answer) {
    uint32_t action = answer & SECCOMP_RET_ACTION_FULL;
    return action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_LOG || action == SECCOMP_RET_ERRNO;
}

COLD int sandbox_ask(long number, const uint64_t arguments[6]) {
    struct seccomp_data data = {
        .nr = (int)number, .arch = architecture, .instruction_pointer = (uintptr_t)sandbox_ask};
    uint32_t count = LOAD_ACQUIRE(&sandbox_filters);
    for (int i = 0; i < 6; i++) {
        data.args[i] = arguments[i];
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t length = filters[i].end - filters[i].start;
        int allowed = length != 0
                          ? ends_well(answer(instructions + filters[i].start, length, &data))
                          : number == SYS_read || number == SYS_write || number == SYS_exit;
        if (!allowed) {
            return 0;
        }
    }
    return 1;
}
