/* SPDX-License-Identifier: MIT */
/* slowdisk.c: preloaded, fdatasync() of files below a folder "slow" takes as long as the file
 * SLOWDISK_HOLD is there. That it has begun to wait tells a file beside it, ".begun". */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((visibility("default"))) int fdatasync(int fd) {
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    const char *hold = getenv("SLOWDISK_HOLD");
    char link[32];
    char path[4096] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (hold != NULL && readlink(link, path, sizeof path - 1) > 0 && strstr(path, "/slow/")) {
        char begun[4096 + 8];
        snprintf(begun, sizeof begun, "%s.begun", hold);
        close(open(begun, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
        while (access(hold, F_OK) == 0) {
            usleep(10000);
        }
    }
    return real(fd);
}
