/* SPDX-License-Identifier: MIT */
/* attachfilters.c: see attachfilters.h. */
#define _GNU_SOURCE
#include "collect/attach/attachfilters.h"

#include "analyze/base/thismachine.h"
#include "analyze/read/procfile.h"
#include "collect/attach/attachstop.h"
#include "collect/attach/attachtarget.h"
#include "collect/attach/filtercalls.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>

enum { INSTRUCTIONS_MOST = 16384 }; /* as the runtime has room for */

/* --- reading ---------------------------------------------------------------------------------- */

/* Of a thread that stands; the newest has number 0. Most threads have those of another one. */
static enum attachfilters_answer read_standing(pid_t tid, struct attachfilters *filters,
                                               struct error *error) {
    for (uintptr_t number = 0;; number++) {
        struct sock_filter *fresh = filters->code + filters->used;
        const struct sock_filter *at = filters->code;
        long length = ptrace(PTRACE_SECCOMP_GET_FILTER, tid, number, NULL);
        uint32_t known = 0;
        if (length < 0) {
            return errno == ENOENT   ? ATTACHFILTERS_READ
                   : errno == EINVAL ? ATTACHFILTERS_STRICT
                                     : ATTACHFILTERS_UNKNOWN;
        }
        if ((size_t)length > INSTRUCTIONS_MOST - filters->used ||
            filters->list.count == MEMTRACE_FILTERS_MOST) {
            error_set(error, "has more seccomp filters than MemTrace can keep");
            return ATTACHFILTERS_FAILED;
        }
        if (ptrace(PTRACE_SECCOMP_GET_FILTER, tid, number, fresh) != length) {
            return ATTACHFILTERS_UNKNOWN;
        }
        while (known < filters->list.count &&
               (filters->list.lengths[known] != (size_t)length ||
                memcmp(at, fresh, (size_t)length * sizeof *at) != 0)) {
            at += filters->list.lengths[known++];
        }
        if (known == filters->list.count) {
            filters->list.lengths[filters->list.count++] = (uint32_t)length;
            filters->used += (size_t)length;
        }
    }
}

static enum attachfilters_answer read_thread(pid_t pid, pid_t tid, struct attachfilters *filters,
                                             struct error *error) {
    char mode[32];
    struct attachstop stop;
    enum attachfilters_answer answer;
    if (procfile_status(pid, tid, "Seccomp", mode, sizeof mode) != 0 || mode[0] == '0') {
        return ATTACHFILTERS_NONE;
    }
    if (mode[0] == '1') {
        return ATTACHFILTERS_STRICT;
    }
    if (attachstop_hold(pid, tid, &stop) != 0) {
        return procfile_status(pid, tid, "Seccomp", mode, sizeof mode) != 0 ? ATTACHFILTERS_NONE
                                                                            : ATTACHFILTERS_UNKNOWN;
    }
    answer = read_standing(tid, filters, error);
    attachstop_end(&stop, false);
    return answer;
}

bool attachfilters_are_there(pid_t pid) {
    pid_t tids[ATTACHSTOP_THREADS];
    size_t count = attachstop_threads(pid, tids);
    char mode[32];
    for (size_t i = 0; i < count; i++) {
        if (procfile_status(pid, tids[i], "Seccomp", mode, sizeof mode) == 0 && mode[0] != '0') {
            return true;
        }
    }
    return false;
}

enum attachfilters_answer attachfilters_read(pid_t pid, struct attachfilters *filters,
                                             struct error *error) {
    pid_t tids[ATTACHSTOP_THREADS];
    size_t count = attachstop_threads(pid, tids);
    enum attachfilters_answer answer = ATTACHFILTERS_NONE;
    *filters = (struct attachfilters){.code = calloc(INSTRUCTIONS_MOST, sizeof *filters->code)};
    if (filters->code == NULL) {
        error_set(error, "out of memory");
        return ATTACHFILTERS_FAILED;
    }
    for (size_t i = 0; i < count; i++) {
        enum attachfilters_answer of_thread = read_thread(pid, tids[i], filters, error);
        if (of_thread == ATTACHFILTERS_FAILED || of_thread == ATTACHFILTERS_STRICT) {
            return of_thread;
        }
        answer = of_thread > answer ? of_thread : answer;
    }
    return answer;
}

void attachfilters_free(struct attachfilters *filters) {
    free(filters->code);
    *filters = (struct attachfilters){0};
}

/* --- asking ----------------------------------------------------------------------------------- */

/* The C library makes a thread by clone where the kernel does not know clone3, and no other answer
 * than that will do. */
static bool filtercall_passes(const struct filtercall *call, uint32_t answer) {
    uint32_t action = answer & SECCOMP_RET_ACTION_FULL;
    bool is_refused = action == SECCOMP_RET_ERRNO;
    if (call->number == SYS_clone3 && is_refused) {
        return (answer & SECCOMP_RET_DATA) == ENOSYS;
    }
    return memtrace_filter_ends_well(answer) && (call->need == FILTERCALL_ENDS || !is_refused);
}

static bool is_let_pass(const struct attachfilters *filters, const struct filtercall *call) {
    struct seccomp_data data = {.nr = (int)call->number,
                                .arch = MEMTRACE_FILTER_MACHINE(thismachine())};
    const struct sock_filter *at = filters->code;
    memcpy(data.args, call->arguments, sizeof data.args);
    for (uint32_t i = 0; i < filters->list.count; i++) {
        if (!filtercall_passes(call, memtrace_filter_answer(at, filters->list.lengths[i], &data))) {
            return false;
        }
        at += filters->list.lengths[i];
    }
    return true;
}

const char *attachfilters_obstacle(const struct attachfilters *filters, unsigned uses) {
    for (size_t i = 0; i < FILTERCALLS; i++) {
        if ((filtercalls[i].uses & uses) != 0 && !is_let_pass(filters, &filtercalls[i])) {
            return filtercalls[i].name;
        }
    }
    for (const struct filtercall *call = attachmachine_calls; call->name != NULL; call++) {
        if ((call->uses & uses) != 0 && !is_let_pass(filters, call)) {
            return call->name;
        }
    }
    return NULL;
}
