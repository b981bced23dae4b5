/* SPDX-License-Identifier: MIT */
/*
 * attachmemory.h: reading another program's memory. Writing: attachimage.h. Called by
 * collect/attach.
 */
#ifndef COLLECT_ATTACH_ATTACHMEMORY_H
#define COLLECT_ATTACH_ATTACHMEMORY_H

#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

/* Bytes that were read, or -1. */
static inline ssize_t attachmemory_read(pid_t pid, uint64_t address, void *bytes, size_t size) {
    struct iovec to = {bytes, size};
    struct iovec from = {(void *)address, size}; // NOLINT(performance-no-int-to-ptr)
    return process_vm_readv(pid, &to, 1, &from, 1, 0);
}

#endif
