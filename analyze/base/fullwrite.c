/* SPDX-License-Identifier: MIT */
/* fullwrite.c: see fullwrite.h. */
#include "analyze/base/fullwrite.h"

#include <errno.h>
#include <sys/types.h>
#include <unistd.h>

/* offset NULL: behind what was written. */
static int write_from(int fd, const char *bytes, size_t size, const uint64_t *offset) {
    size_t done = 0;
    while (done < size) {
        ssize_t count = offset == NULL
                            ? write(fd, bytes + done, size - done)
                            : pwrite(fd, bytes + done, size - done, (off_t)(*offset + done));
        if (count == 0) {
            errno = ENOSPC;
        }
        if (count == 0 || (count < 0 && errno != EINTR)) {
            return -1;
        }
        done += count > 0 ? (size_t)count : 0;
    }
    return 0;
}

int fullwrite(int fd, const void *bytes, size_t size) {
    return write_from(fd, bytes, size, NULL);
}

int fullwrite_at(int fd, const void *bytes, size_t size, uint64_t offset) {
    return write_from(fd, bytes, size, &offset);
}
