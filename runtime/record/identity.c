/* SPDX-License-Identifier: MIT */
/* identity.c: what /proc says of us. See identity.h. */
#include "runtime/record/identity.h"

#include "runtime/base/sys.h"

#include <fcntl.h>

uint64_t identity_start_ticks(void) {
    char buffer[1024];
    long fd = sys_open("/proc/self/stat", O_RDONLY, 0);
    long size = fd < 0 ? fd : sys_read((int)fd, buffer, sizeof buffer - 1);
    char *at = buffer;
    uint64_t ticks = 0;
    if (fd >= 0) {
        sys_close((int)fd);
    }
    if (size <= 0) {
        return 0;
    }
    buffer[size] = '\0';
    for (char *c = buffer; *c != '\0'; c++) { /* the name may hold blanks and brackets */
        if (*c == ')') {
            at = c;
        }
    }
    for (int field = 2; field < 22 && *at != '\0'; at++) {
        field += *at == ' ';
    }
    for (; *at >= '0' && *at <= '9'; at++) {
        ticks = ticks * 10 + (uint64_t)(*at - '0');
    }
    return ticks;
}

/* "pid:[4026531836]" */
uint64_t identity_pid_namespace(void) {
    char buffer[64];
    long length = sys_readlink("/proc/self/ns/pid", buffer, sizeof buffer);
    uint64_t inode = 0;
    for (long i = 0; i < length; i++) {
        if (buffer[i] >= '0' && buffer[i] <= '9') {
            inode = inode * 10 + (uint64_t)(buffer[i] - '0');
        }
    }
    return inode;
}
