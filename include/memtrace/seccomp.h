/* SPDX-License-Identifier: MIT */
/*
 * seccomp.h: what a seccomp filter says of a system call: the filter is a program that reads the
 * call's number and arguments, and it is run here as the kernel runs it. Both sides ask: the
 * runtime before each call of its own, and `memtrace attach` before it comes.
 */
#ifndef MEMTRACE_SECCOMP_H
#define MEMTRACE_SECCOMP_H

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdint.h>

/* What filters call the machine with this e_machine: of 64 bits but for ARM (40), with the byte
 * order of this one. */
#define MEMTRACE_FILTER_MACHINE(elf_machine)                                                       \
    ((uint32_t)(elf_machine) | ((elf_machine) == 40 ? 0 : __AUDIT_ARCH_64BIT) |                    \
     (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? (uint32_t)__AUDIT_ARCH_LE : 0))

/* How the filters of a program are handed to the runtime: this, and behind it the instructions of
 * each, one filter after the other, the oldest first. */
enum { MEMTRACE_FILTERS_MOST = 64 };
struct memtrace_filters {
    uint32_t count;
    uint32_t lengths[MEMTRACE_FILTERS_MOST]; /* instructions */
    uint32_t unused;
};

/* man seccomp says which instructions there are */
struct memtrace_filter_run {
    const struct seccomp_data *data;
    uint32_t accumulator;
    uint32_t index;
    uint32_t scratch[BPF_MEMWORDS];
};

static inline uint32_t memtrace_filter_load(const struct memtrace_filter_run *run,
                                            const struct sock_filter *at) {
    uint32_t word = 0;
    switch (BPF_MODE(at->code)) {
    case BPF_ABS:
        if (at->k <= sizeof *run->data - sizeof word) {
            __builtin_memcpy(&word, (const uint8_t *)run->data + at->k, sizeof word);
        }
        return word;
    case BPF_MEM:
        return run->scratch[at->k % BPF_MEMWORDS];
    case BPF_LEN:
        return sizeof *run->data;
    default:
        return at->k; /* BPF_IMM */
    }
}

static inline uint32_t memtrace_filter_calculate(uint16_t operation, uint32_t left,
                                                 uint32_t right) {
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
static inline uint32_t memtrace_filter_jump(const struct memtrace_filter_run *run,
                                            const struct sock_filter *at) {
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
static inline void memtrace_filter_step(struct memtrace_filter_run *run,
                                        const struct sock_filter *at) {
    switch (BPF_CLASS(at->code)) {
    case BPF_LD:
        run->accumulator = memtrace_filter_load(run, at);
        break;
    case BPF_LDX:
        run->index = memtrace_filter_load(run, at);
        break;
    case BPF_ST:
        run->scratch[at->k % BPF_MEMWORDS] = run->accumulator;
        break;
    case BPF_STX:
        run->scratch[at->k % BPF_MEMWORDS] = run->index;
        break;
    case BPF_ALU:
        run->accumulator = memtrace_filter_calculate(
            BPF_OP(at->code), run->accumulator, BPF_SRC(at->code) == BPF_X ? run->index : at->k);
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
static inline uint32_t memtrace_filter_answer(const struct sock_filter *code, uint32_t length,
                                              const struct seccomp_data *data) {
    struct memtrace_filter_run run = {.data = data};
    for (uint32_t i = 0; i < length; i++) {
        const struct sock_filter *at = &code[i];
        if (BPF_CLASS(at->code) == BPF_RET) {
            return BPF_RVAL(at->code) == BPF_A ? run.accumulator : at->k;
        }
        if (BPF_CLASS(at->code) == BPF_JMP) {
            i += memtrace_filter_jump(&run, at);
        } else {
            memtrace_filter_step(&run, at);
        }
    }
    return SECCOMP_RET_KILL_PROCESS;
}

/* Done or refused, but neither killed, trapped nor left to another process. */
static inline int memtrace_filter_ends_well(uint32_t answer) {
    uint32_t action = answer & SECCOMP_RET_ACTION_FULL;
    return action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_LOG || action == SECCOMP_RET_ERRNO;
}

#endif
