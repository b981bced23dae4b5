/* SPDX-License-Identifier: MIT */
/* budget.c: see budget.h. */
#include "analyze/read/budget.h"

#include "analyze/base/job.h"

static uint64_t allowed_bytes; /* 0: what is honest */

uint64_t budget_honest(enum budget_of of, uint64_t file_bytes) {
    enum { RATIO = 256 };
    const uint64_t small_bytes = (uint64_t)of << 20;
    return file_bytes < (UINT64_MAX - small_bytes) / RATIO ? small_bytes + file_bytes * RATIO
                                                           : UINT64_MAX;
}

uint64_t budget_allowed(enum budget_of of, uint64_t file_bytes) {
    return allowed_bytes != 0 ? allowed_bytes : budget_honest(of, file_bytes);
}

void budget_allow(uint64_t bytes) {
    allowed_bytes = bytes;
}

noreturn void budget_refuse(enum budget_of of, const char *path, uint64_t file_bytes) {
    job_fail("%s is compressed so much that its tables would take more than %.1f MiB, which is "
             "more than a file of %.1f KiB can need; --memory-limit SIZE reads it",
             path, (double)budget_allowed(of, file_bytes) / (1 << 20), (double)file_bytes / 1024);
}
