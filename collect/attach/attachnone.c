/* SPDX-License-Identifier: MIT */
/* attachnone.c: attachthread.h for machines where it is not known how. */
#include "collect/attach/attachthread.h"

bool attachthread_is_possible(void) {
    return false;
}

int attachthread_call(const struct attachcall *call, struct attachdone *done, struct error *error) {
    *done = (struct attachdone){0};
    return error_set(error, "process %ld cannot be attached to on this machine", (long)call->pid);
}
