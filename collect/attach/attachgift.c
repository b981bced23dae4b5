/* SPDX-License-Identifier: MIT */
/* attachgift.c: see attachgift.h. */
#define _GNU_SOURCE
#include "collect/attach/attachgift.h"

#include "collect/attach/attachmemory.h"
#include "collect/attach/stub.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096 };

/* --- filters ---------------------------------------------------------------------------------- */

size_t attachgift_filters_size(const struct attachcall *call) {
    const struct attachfilters *filters = call->filters;
    size_t size = 0;
    if (filters != NULL && filters->list.count != 0) {
        size = sizeof filters->list + filters->used * sizeof *filters->code;
    }
    return (size + PAGE - 1) / PAGE * PAGE;
}

static int give_filters(const struct attachcall *call, uint64_t place) {
    const struct attachfilters *filters = call->filters;
    uint64_t at = place + STUB_THREAD_PAGES;
    if (attachgift_filters_size(call) == 0) {
        return 0;
    }
    return attachimage_write(call->image, at, &filters->list, sizeof filters->list) == 0
               ? attachimage_write(call->image, at + sizeof filters->list, filters->code,
                                   filters->used * sizeof *filters->code)
               : -1;
}

/* --- the library ------------------------------------------------------------------------------ */

/* A copy of the program's descriptor; -1: there is none, or it is no empty file of memory, which
 * alone can be sealed. */
static int take_file(pid_t pid, int file) {
    int process = (int)syscall(SYS_pidfd_open, pid, 0);
    int fd = process >= 0 ? (int)syscall(SYS_pidfd_getfd, process, file, 0) : -1;
    struct stat status;
    int reason = errno;
    if (process >= 0) {
        close(process);
    }
    if (fd >= 0 && (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_nlink != 0 ||
                    status.st_size != 0 || fcntl(fd, F_GET_SEALS) != 0)) {
        close(fd);
        fd = -1;
        reason = EBADF;
    }
    errno = reason;
    return fd;
}

static int copy_to(const char *library, int to) {
    int from = open(library, O_RDONLY | O_CLOEXEC);
    struct stat status;
    off_t at = 0;
    int result = from >= 0 && fstat(from, &status) == 0 ? 0 : -1;
    while (result == 0 && at < status.st_size) {
        result = sendfile(to, from, &at, (size_t)(status.st_size - at)) > 0 ? 0 : -1;
    }
    if (from >= 0) {
        close(from);
    }
    return result;
}

static int give_file(const struct attachcall *call, uint64_t place, int file, struct error *error) {
    enum { ALL = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE };
    char path[64];
    int fd = -1;
    int result;
    if (file < 0) {
        return error_set(error, "process %ld cannot make a file of memory for the library: %s",
                         (long)call->pid, strerror(-file));
    }
    fd = take_file(call->pid, file);
    if (fd < 0) {
        return error_set(error, "the library cannot be handed to process %ld: %s", (long)call->pid,
                         strerror(errno));
    }
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    result = copy_to(call->library, fd) == 0 && fcntl(fd, F_ADD_SEALS, ALL) == 0 &&
                     attachimage_write(call->image, place + STUB_PATH, path, sizeof path) == 0
                 ? 0
                 : error_set(error, "the library cannot be handed to process %ld: %s",
                             (long)call->pid, strerror(errno));
    close(fd);
    return result;
}

int attachgift_give(const struct attachcall *call, uint64_t place, int file, struct error *error) {
    bool needs_file = call->library != NULL && call->is_hidden && file != 0;
    uint32_t go = STUB_GO_ON;
    int result = give_filters(call, place);
    if (result != 0) {
        error_set(error, "process %ld cannot be told of its seccomp filters: %s", (long)call->pid,
                  strerror(errno));
    } else if (needs_file) {
        result = give_file(call, place, file, error);
    }
    if (result != 0) {
        go = STUB_GIVE_UP;
    }
    return attachimage_write(call->image, place + STUB_GO, &go, sizeof go) == 0 || result != 0
               ? result
               : error_set(error, "process %ld ended meanwhile", (long)call->pid);
}

/* --- once it is there ------------------------------------------------------------------------- */

/* What the program has mapped is this very file: its headers and names are the same. */
static bool is_same(const struct attachtarget *target, const struct attachmapping *own, int fd) {
    size_t size = own->end - own->start;
    char *here = malloc(size);
    char *there = malloc(size);
    bool same = here != NULL && there != NULL && size < 64 << 20;
    ssize_t length = same ? pread(fd, here, size, 0) : 0;
    same = length > PAGE &&
           attachmemory_read(target->pid, own->start, there, size) == (ssize_t)size &&
           memcmp(here, there, (size_t)length) == 0;
    free(here);
    free(there);
    return same;
}

uint64_t attachgift_function(const struct attachtarget *target, const struct attachmapping *own,
                             const struct attachcall *call) {
    uint64_t address = attachtarget_symbol(target, own, call->entry);
    char path[128];
    int fd;
    if (address != 0) {
        return address;
    }
    snprintf(path, sizeof path, "/proc/%ld/map_files/%lx-%lx", (long)target->pid,
             (unsigned long)own->start, (unsigned long)own->end);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && call->own_library != NULL) {
        fd = open(call->own_library, O_RDONLY | O_CLOEXEC);
    }
    if (fd >= 0 && is_same(target, own, fd)) {
        address = attachtarget_symbol_of(fd, own, call->entry);
    }
    if (fd >= 0) {
        close(fd);
    }
    return address;
}
