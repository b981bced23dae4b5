/* SPDX-License-Identifier: MIT */
/* procstat.c: see procstat.h. */
#include "analyze/read/procstat.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

const char *procstat_read(const char *path, char text[PROCSTAT_BYTES]) {
    const char *end = NULL;
    ssize_t size;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return NULL;
    }
    size = read(fd, text, PROCSTAT_BYTES - 1);
    close(fd);
    if (size > 0) {
        text[size] = '\0';
        end = strrchr(text, ')');
    }
    errno = ESRCH;
    return end != NULL ? end + 1 : NULL;
}
