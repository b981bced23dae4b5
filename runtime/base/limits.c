/* SPDX-License-Identifier: MIT */
/* limits.c: how much memory the process may have. See limits.h. */
#include "runtime/base/limits.h"

#include "runtime/base/proc.h"
#include "runtime/base/sys.h"

#include <sys/resource.h>

uint64_t limits_address(void) {
    uint64_t limit = sys_limit(RLIMIT_AS);
    return limit < UINTPTR_MAX ? limit : UINTPTR_MAX;
}

uint64_t limits_memory(void) {
    uint64_t address = limits_address();
    uint64_t data = sys_limit(RLIMIT_DATA);
    return data < address ? data : address;
}

static int limits_are_part(uint64_t bytes, uint64_t limit, uint64_t used, uint32_t part) {
    return limit >= UINTPTR_MAX || (used < limit && bytes <= (limit - used) / part);
}

int limits_allow(enum limits_kind kind, uint64_t bytes, uint32_t part) {
    uint64_t address = limits_address();
    uint64_t data = kind == LIMITS_MEMORY ? sys_limit(RLIMIT_DATA) : UINT64_MAX;
    struct proc_memory used;
    if (address >= UINTPTR_MAX && data >= UINTPTR_MAX) {
        return 1;
    }
    if (proc_read_memory(&used) != 0) {
        return bytes <= address / part && bytes <= data / part;
    }
    return limits_are_part(bytes, address, used.address, part) &&
           limits_are_part(bytes, data, used.data, part);
}
