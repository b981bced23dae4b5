/* SPDX-License-Identifier: MIT */
/* limits.c: how much memory the process may have. See limits.h. */
#include "runtime/base/limits.h"

#include "runtime/base/sys.h"

#include <fcntl.h>
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

/* What is in use, as those limits count it. */
struct used {
    uint64_t address, data;
};

/* Of /proc/self/statm the first number and the sixth, in pages. 0, or -1: it cannot be told. */
static int read_used(struct used *used) {
    enum { ADDRESS = 0, DATA = 5, NUMBERS = 7 };
    uint64_t number[NUMBERS] = {0};
    char text[200];
    size_t at = 0;
    long fd = sys_open("/proc/self/statm", O_RDONLY, 0);
    long size = fd >= 0 ? sys_read((int)fd, text, sizeof text) : -1;
    if (fd >= 0) {
        sys_close((int)fd);
    }
    for (long i = 0; i < size && at < NUMBERS; i++) {
        if (text[i] >= '0' && text[i] <= '9') {
            number[at] = number[at] * 10 + (uint64_t)(text[i] - '0');
        } else {
            at++;
        }
    }
    *used = (struct used){number[ADDRESS] * sys_page_bytes(), number[DATA] * sys_page_bytes()};
    return at > DATA ? 0 : -1;
}

static int is_part(uint64_t bytes, uint64_t limit, uint64_t used, uint32_t part) {
    return limit >= UINTPTR_MAX || (used < limit && bytes <= (limit - used) / part);
}

int limits_allow(enum limits_kind kind, uint64_t bytes, uint32_t part) {
    uint64_t address = limits_address();
    uint64_t data = kind == LIMITS_MEMORY ? sys_limit(RLIMIT_DATA) : UINT64_MAX;
    struct used used;
    if (address >= UINTPTR_MAX && data >= UINTPTR_MAX) {
        return 1;
    }
    if (read_used(&used) != 0) {
        return bytes <= address / part && bytes <= data / part;
    }
    return is_part(bytes, address, used.address, part) && is_part(bytes, data, used.data, part);
}
