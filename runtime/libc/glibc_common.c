/* SPDX-License-Identifier: MIT */
/*
 * glibc_common.c: what is glibc's, shared or static. See libc.h.
 *
 * Nearly all of it has unwind tables, which say where paths end and how handlers return; on some
 * machines only what exceptions may pass through has any.
 */
#include "runtime/base/sys.h"
#include "runtime/base/text.h"
#include "runtime/libc/libc.h"

#include <errno.h>
#include <gnu/libc-version.h>

int libc_describes_signals(void) {
    return 1;
}

int libc_may_keep_frame_pointers(uintptr_t pc) {
    (void)pc;
    return 1;
}

/* From 2.38 on. */
int libc_ends_shell_options(void) {
    const char *at = gnu_get_libc_version();
    if (!text_starts(at, "2.")) {
        return 1;
    }
    at += 2;
    return text_read_number(&at) >= 38;
}

int libc_waits_at_fclose(void) {
    return 1;
}

int libc_popen_error(int error) { /* spawn_failure in its libio/iopopen.c */
    (void)error;
    return ENOMEM;
}

/* --- threads' stacks ---------------------------------------------------------------------------
 *
 * pthread_getattr_np() allocates, for the set of processors. The thread's descriptor, which
 * pthread_self() is the address of, lies at the top of a stack of glibc's own; on machines whose
 * threads have their variables above it, below these. */

void libc_plan_stack(const pthread_attr_t *attributes, struct libc_stack *stack) {
    pthread_attr_t plain;
    void *low = NULL;
    size_t size = 0;
    if (attributes == NULL) {
        pthread_attr_init(&plain); /* holds nothing that would have to be given back */
        attributes = &plain;
    }
    pthread_attr_getstack(attributes, &low, &size);
    stack->low = (uintptr_t)low + size != 0 ? (uintptr_t)low : 0; /* else counted down from 0 */
    pthread_attr_getstacksize(attributes, &stack->size);
}

/* What debuggers read of the size of a descriptor; 0: not known. */
static size_t descriptor_size(void) {
    static size_t known;
    size_t size = LOAD_RELAXED(&known);
    if (UNLIKELY(size == 0)) {
        const uint32_t *symbol = libc_function("_thread_db_sizeof_pthread");
        size = symbol != NULL ? *symbol : 1;
        STORE_RELAXED(&known, size);
    }
    return size > 1 ? size : 0;
}

int libc_own_stack(const struct libc_stack *planned, uintptr_t *low, uintptr_t *high) {
    static THREAD_LOCAL char variable;
    uintptr_t descriptor = (uintptr_t)pthread_self();
    size_t page = sys_page_bytes();
    size_t unsure = 0;
    if (planned->low != 0) {
        *low = planned->low;
        *high = planned->low + planned->size;
        return 1;
    }
    *high = descriptor + descriptor_size();
    if (descriptor_size() == 0 || (uintptr_t)&variable > descriptor) {
        unsure = planned->size / 4; /* variables above it, and what is not known */
    }
    *low = (*high - planned->size + unsure + page - 1) & ~(uintptr_t)(page - 1);
    return 0; /* a stack that was kept of an earlier thread may be larger */
}
