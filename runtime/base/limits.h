/* SPDX-License-Identifier: MIT */
/*
 * limits.h: how much memory the process may have, as far as it is limited. Limits are the
 * program's: its user set them for what it needs, so what the runtime takes of them is little, and
 * it rather loses events. A program may set them at any time, and others may do it from outside: so
 * they are looked at each time. Any thread, handlers and forked children too.
 */
#ifndef RUNTIME_BASE_LIMITS_H
#define RUNTIME_BASE_LIMITS_H

#include <stdint.h>

/* Address space the process may use (RLIMIT_AS); UINTPTR_MAX: no limit. */
uint64_t limits_address(void);
/* The same of private memory that can be written: the lower of RLIMIT_AS and RLIMIT_DATA. */
uint64_t limits_memory(void);
/* Whether that many bytes are at most one in `part` of what is left: of address space alone, or of
 * memory as well. */
enum limits_kind { LIMITS_ADDRESS, LIMITS_MEMORY };
int limits_allow(enum limits_kind kind, uint64_t bytes, uint32_t part);

#endif
