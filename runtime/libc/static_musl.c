/* SPDX-License-Identifier: MIT */
/* static_musl.c: a program that holds musl. See libc.h. */
#include "runtime/libc/libc.h"
#include "runtime/libc/musl_common.h"
#include "runtime/libc/static.h"

/* musl's functions do not, and lie among the program's. */
int libc_may_keep_frame_pointers(uintptr_t pc) {
    (void)pc;
    return 0;
}

void *libc_next(const char *name) {
    void *function = musl_replaced(name, static_find);
    return function != NULL ? function : static_find(name);
}

int libc_is_glibc_malloc(const void *function) {
    (void)function;
    return 0;
}
