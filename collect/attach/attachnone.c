/* SPDX-License-Identifier: MIT */
/* attachnone.c: attachthread.h, attachalloc.h and attachfilters.h where it is not known how. */
#include "collect/attach/attachalloc.h"
#include "collect/attach/attachthread.h"

bool attachthread_is_possible(void) {
    return false;
}

int attachthread_call(const struct attachcall *call, struct attachdone *done, struct error *error) {
    *done = (struct attachdone){0};
    return error_set(error, "process %ld cannot be attached to on this machine", (long)call->pid);
}

enum attachfilters_answer attachfilters_read(pid_t pid, struct attachfilters *filters,
                                             struct error *error) {
    (void)pid;
    (void)error;
    *filters = (struct attachfilters){0};
    return ATTACHFILTERS_UNKNOWN;
}

void attachfilters_free(struct attachfilters *filters) {
    (void)filters;
}

const char *attachfilters_obstacle(const struct attachfilters *filters, unsigned uses) {
    (void)filters;
    (void)uses;
    return "any system call";
}

int attachalloc_check(const struct attachalloc *request, struct error *error) {
    return error_set(error, "process %ld cannot be attached to on this machine",
                     (long)request->pid);
}

int attachalloc_lead(const struct attachalloc *request, struct attachdone *done,
                     struct error *error) {
    (void)done;
    return attachalloc_check(request, error);
}

int attachalloc_leave(const struct attachimage *image, const char *own_library,
                      struct attachdone *done, struct error *error) {
    (void)image, (void)own_library, (void)done, (void)error;
    return 0;
}
