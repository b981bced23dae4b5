/* SPDX-License-Identifier: MIT */
/* mips64.c: reading MIPS64's code (MIPS64 Architecture volume II-A). See machine.h. */
#define _GNU_SOURCE
#include "runtime/machine/machine.h"

#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

/* Those of before release 6, which have a delay slot: what is called comes back behind it. */
int machine_follows_call(uintptr_t pc) {
    uint32_t code;
    memcpy(&code, (const void *)(pc - 2 * sizeof code), sizeof code);
    return code >> 26 == 3 ||                   /* jal */
           (code & 0xfc1f003f) == 0x00000009 || /* jalr */
           (code & 0xfc1e0000) == 0x04100000;   /* bltzal, bgezal, bal */
}

int machine_read_way_back(uintptr_t pc, uintptr_t end, struct machine_way_back *way) {
    (void)pc;
    (void)end;
    (void)way;
    return 0;
}

int machine_read_way_out(uintptr_t pc, uintptr_t end, struct machine_way_out *way) {
    (void)pc;
    (void)end;
    (void)way;
    return 0;
}

uintptr_t machine_go_frame(uintptr_t pc, uintptr_t end) {
    (void)pc;
    (void)end;
    return 0;
}

uint64_t machine_ask_valgrind(const uint64_t request[6]) {
    (void)request;
    return 0;
}

/* By statx: all that the runtime asks for. */
long machine_stat(machine_caller *call, int fd, const char *path, int flags, struct stat *out) {
    struct statx found;
    long result = call(SYS_statx, fd, (long)path, flags, STATX_BASIC_STATS, (long)&found, 0);
    if (result == 0) {
        *out = (struct stat){.st_dev = makedev(found.stx_dev_major, found.stx_dev_minor),
                             .st_ino = found.stx_ino,
                             .st_mode = found.stx_mode,
                             .st_nlink = found.stx_nlink,
                             .st_uid = found.stx_uid,
                             .st_gid = found.stx_gid,
                             .st_size = (off_t)found.stx_size,
                             .st_blocks = (blkcnt_t)found.stx_blocks,
                             .st_mtim = {.tv_sec = (time_t)found.stx_mtime.tv_sec,
                                         .tv_nsec = (long)found.stx_mtime.tv_nsec}};
    }
    return result;
}

/* There is no pass of a compiler that would write any. */
int machine_find_store(uintptr_t start, uintptr_t end, uint32_t constant,
                       struct machine_store *store) {
    (void)start;
    (void)end;
    (void)constant;
    (void)store;
    return 0;
}

int64_t machine_fp_above_sp(uintptr_t start, uintptr_t end) {
    (void)start;
    (void)end;
    return -1;
}
