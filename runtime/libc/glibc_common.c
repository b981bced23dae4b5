/* SPDX-License-Identifier: MIT */
/*
 * glibc_common.c: what is glibc's, shared or static. See libc.h.
 *
 * Nearly all of it has unwind tables, which say where paths end and how handlers return; on some
 * machines only what exceptions may pass through has any.
 */
#include "runtime/libc/libc.h"

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
    const char *version = gnu_get_libc_version();
    unsigned minor = 0;
    if (version[0] != '2' || version[1] != '.') {
        return 1;
    }
    for (const char *at = version + 2; *at >= '0' && *at <= '9'; at++) {
        minor = minor * 10 + (unsigned)(*at - '0');
    }
    return minor >= 38;
}

int libc_waits_at_fclose(void) {
    return 1;
}
