/* SPDX-License-Identifier: MIT */
/* slowdisk.c: preloaded, the disk of files below a folder "slow". fdatasync() takes as long as the
 * file SLOWDISK_HOLD is there; that it has begun to wait tells a file beside it, ".begun". Where
 * there is one beside it, ".fail", it fails once, as disks do: what was written since the last time
 * that it went well is zeros from then on, and the kernel tells of it no more. ".good" says what
 * was well, also to the next process. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int open_beside(const char *hold, const char *what, int flags) {
    char path[4096 + 8];
    snprintf(path, sizeof path, "%s.%s", hold, what);
    return open(path, flags | O_CLOEXEC, 0600);
}

static int remove_beside(const char *hold, const char *what) {
    char path[4096 + 8];
    snprintf(path, sizeof path, "%s.%s", hold, what);
    return unlink(path);
}

static void lose(int fd, const char *hold, off_t size) {
    char zeros[4096] = "";
    off_t good = 0;
    int file = open_beside(hold, "good", O_RDONLY);
    if (file < 0 || read(file, &good, sizeof good) != sizeof good) {
        good = 0;
    }
    close(file);
    while (good < size) {
        size_t part = size - good < (off_t)sizeof zeros ? (size_t)(size - good) : sizeof zeros;
        if (pwrite(fd, zeros, part, good) != (ssize_t)part) {
            abort();
        }
        good += (off_t)part;
    }
}

__attribute__((visibility("default"))) int fdatasync(int fd) {
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    const char *hold = getenv("SLOWDISK_HOLD");
    char link[32];
    char path[4096] = "";
    struct stat status;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (hold == NULL || readlink(link, path, sizeof path - 1) <= 0 ||
        strstr(path, "/slow/") == NULL || fstat(fd, &status) != 0) {
        return real(fd);
    }
    close(open_beside(hold, "begun", O_WRONLY | O_CREAT));
    while (access(hold, F_OK) == 0) {
        usleep(10000);
    }
    if (remove_beside(hold, "fail") == 0) {
        lose(fd, hold, status.st_size);
        errno = EIO;
        return -1;
    }
    int result = real(fd);
    int file = open_beside(hold, "good", O_WRONLY | O_CREAT);
    if (write(file, &status.st_size, sizeof status.st_size) != sizeof status.st_size) {
        abort();
    }
    close(file);
    return result;
}
