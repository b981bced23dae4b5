/* SPDX-License-Identifier: MIT */
/* attachall.c: see attachall.h. */
#define _GNU_SOURCE
#include "collect/attach/attachall.h"

#include "analyze/read/procfile.h"
#include "collect/attach/attachmemory.h"
#include "collect/attach/attachtarget.h"

#include <stdlib.h>
#include <string.h>

enum {
    STACK_LOOK = 1 << 20, /* of a stack, for words that lead into the code */
    CALL_BYTES = 4,       /* of an instruction that makes a system call, which may be made again */
};

/* ---- Holding them ---- */

static bool is_held(const struct attachall *all, pid_t tid) {
    for (size_t i = 0; i < all->count; i++) {
        if (all->threads[i].tid == tid) {
            return true;
        }
    }
    return false;
}

/* As /proc tells it; 0: it has ended. */
static char state_of(pid_t pid, pid_t tid) {
    char state[32];
    return procfile_status(pid, tid, "State", state, sizeof state) == 0 && state[0] != 'Z' &&
                   state[0] != 'X'
               ? state[0]
               : '\0';
}

static void forget(struct attachall *all, size_t number) {
    memmove(&all->threads[number], &all->threads[number + 1],
            (all->count - number - 1) * sizeof *all->threads);
    all->count--;
}

/* Whether all that are not held can be: who sleeps without hearing signals, as in vfork, stops when
 * it wakes up. */
static bool can_stop(const struct attachall *all, const pid_t *tids, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (!is_held(all, tids[i]) && state_of(all->pid, tids[i]) == 'D') {
            return false;
        }
    }
    return count < ATTACHSTOP_THREADS;
}

/* 0, or -1: one is there that may not be held. */
static int ask_each(struct attachall *all, const pid_t *tids, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (is_held(all, tids[i])) {
            continue;
        }
        if (all->count < ATTACHSTOP_THREADS &&
            attachstop_ask(all->pid, tids[i], &all->threads[all->count]) == 0) {
            all->count++;
        } else if (state_of(all->pid, tids[i]) != '\0') {
            return -1;
        }
    }
    return 0;
}

/* The number of those that were not held before; or -1: one will not stand. */
static int hold_more(struct attachall *all) {
    pid_t tids[ATTACHSTOP_THREADS];
    size_t listed = attachstop_threads(all->pid, tids);
    size_t first = all->count;
    int result = can_stop(all, tids, listed) ? ask_each(all, tids, listed) : -1;
    for (size_t i = all->count; i-- > first;) {
        if (attachstop_await(&all->threads[i]) == 0) {
            continue;
        }
        if (state_of(all->pid, all->threads[i].tid) == '\0') {
            forget(all, i);
        } else {
            result = -1;
        }
    }
    return result == 0 ? (int)(all->count - first) : -1;
}

/* One that runs yet may start another. */
int attachall_stop(pid_t pid, struct attachall *all, struct error *error) {
    int more = 1;
    *all =
        (struct attachall){.pid = pid, .threads = calloc(ATTACHSTOP_THREADS, sizeof *all->threads)};
    if (all->threads == NULL) {
        return error_set(error, "out of memory");
    }
    while (more > 0) {
        more = hold_more(all);
    }
    if (more == 0 && all->count != 0) {
        return 0;
    }
    attachall_go(all);
    return error_set(error, "process %ld: its threads cannot all be held at once", (long)pid);
}

/* One that was asked, and did not stop: it will, and must not stand then. */
static void let_go_late(struct attachstop *thread) {
    enum { TRIES = 15 };
    for (int i = 0; i < TRIES && state_of(thread->pid, thread->tid) != '\0'; i++) {
        if (attachstop_await(thread) == 0) {
            attachstop_end(thread, false);
            return;
        }
    }
}

uint64_t attachall_go(struct attachall *all) {
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
    *all = (struct attachall){0};
    return longest_ns;
}

/* ---- Where they stand ---- */

struct search {
    const struct attachall *all;
    const struct attachall_code *code;
    size_t count;
    bool *is_inside;
    struct attachtarget target;
    uint64_t *stack;
};

/* Which piece an address lies in, or right behind, so far; `count`: none. */
static size_t piece_at(const struct search *search, uint64_t address, uint64_t behind) {
    size_t low = 0;
    size_t high = search->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (search->code[middle].address < address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low > 0 && address < search->code[low - 1].address + search->code[low - 1].size + behind
               ? low - 1
               : search->count;
}

static void note(const struct search *search, uint64_t address, uint64_t behind) {
    size_t piece = piece_at(search, address, behind);
    if (piece < search->count) {
        search->is_inside[piece] = true;
    }
}

/* What a handler interrupted is a word on the stack. Whatever looks like it counts: then another
 * moment will do. */
static void look_at_stack(const struct search *search, uint64_t sp) {
    const struct attachmapping *mapping = attachtarget_at(&search->target, sp);
    uint64_t from = sp & ~(uint64_t)(sizeof(uint64_t) - 1);
    uint64_t size = mapping != NULL ? mapping->end - from : 0;
    ssize_t got;
    size = size < STACK_LOOK ? size : STACK_LOOK;
    got = size != 0 ? attachmemory_read(search->all->pid, from, search->stack, size) : 0;
    for (ssize_t i = 0; i < got / (ssize_t)sizeof(uint64_t); i++) {
        note(search, search->stack[i], 0);
    }
}

static void look_at(const struct search *search, const struct attachstop *thread) {
    struct attachregisters now;
    if (attachmachine_read(thread->pid, thread->tid, NULL, &now) != 0) {
        return; /* it was killed */
    }
    note(search, now.call.pc, now.call.number >= 0 ? CALL_BYTES : 0);
    look_at_stack(search, now.call.sp);
}

int attachall_find(const struct attachall *all, const struct attachall_code *code, size_t count,
                   bool *is_inside) {
    struct search search = {.all = all,
                            .code = code,
                            .count = count,
                            .is_inside = is_inside,
                            .stack = malloc(STACK_LOOK)};
    int result = search.stack != NULL ? attachtarget_open(all->pid, &search.target, NULL) : -1;
    memset(is_inside, 0, count * sizeof *is_inside);
    for (size_t i = 0; result == 0 && i < all->count; i++) {
        look_at(&search, &all->threads[i]);
    }
    free(search.stack);
    attachtarget_close(&search.target);
    return result;
}
