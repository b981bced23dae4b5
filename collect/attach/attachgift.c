/* SPDX-License-Identifier: MIT */
/* attachgift.c: see attachgift.h. */
#define _GNU_SOURCE
#include "collect/attach/attachgift.h"

#include "analyze/read/procfile.h"
#include "collect/attach/attachmemory.h"
#include "collect/attach/stub.h"

#include <dirent.h>
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

/* Of the process's threads the one that has this number in its own namespace; 0: none. */
static long find_thread(pid_t pid, uint32_t own_tid) {
    char path[64];
    DIR *folder;
    long found = 0;
    snprintf(path, sizeof path, "/proc/%ld/task", (long)pid);
    folder = opendir(path);
    for (struct dirent *entry = folder != NULL ? readdir(folder) : NULL;
         entry != NULL && found == 0; entry = readdir(folder)) {
        long tid = strtol(entry->d_name, NULL, 10);
        uint32_t number = tid > 0 ? procfile_own_number(pid, (pid_t)tid) : 0;
        found = number != 0 && number == own_tid ? tid : 0;
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return found;
}

static bool is_empty_memory(int fd) {
    struct stat status;
    return fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink == 0 &&
           status.st_size == 0;
}

static int copy_descriptor(pid_t pid, int file) {
    int process = (int)syscall(SYS_pidfd_open, pid, 0);
    int fd = process >= 0 ? (int)syscall(SYS_pidfd_getfd, process, file, 0) : -1;
    int reason = errno;
    if (process >= 0) {
        close(process);
    }
    errno = reason;
    return fd;
}

/* Of a thread that has its own. Looked at before it is opened: the program may lie, and what is no
 * such file may do something when it is opened. */
static int open_descriptor(pid_t pid, uint32_t own_tid, int file) {
    char path[96];
    int there;
    int fd = -1;
    snprintf(path, sizeof path, "/proc/%ld/task/%ld/fd/%d", (long)pid, find_thread(pid, own_tid),
             file);
    there = open(path, O_PATH | O_CLOEXEC);
    if (there >= 0 && is_empty_memory(there)) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", there);
        fd = open(path, O_RDWR | O_CLOEXEC);
    } else if (there >= 0) {
        errno = EBADF;
    }
    if (there >= 0) {
        int reason = errno;
        close(there);
        errno = reason;
    }
    return fd;
}

/* The program's file; -1: there is none, or it is no empty file of memory, which alone can be
 * sealed. */
static int take_file(pid_t pid, uint32_t own_tid, int file) {
    int fd = own_tid != 0 ? open_descriptor(pid, own_tid, file) : copy_descriptor(pid, file);
    if (fd >= 0 && (!is_empty_memory(fd) || fcntl(fd, F_GET_SEALS) != 0)) {
        close(fd);
        fd = -1;
        errno = EBADF;
    }
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
    uint32_t own_tid = 0;
    int fd = -1;
    int result;
    if (file < 0) {
        return error_set(error, "process %ld cannot make a file of memory for the library: %s",
                         (long)call->pid, strerror(-file));
    }
    if (attachimage_read(call->image, place + STUB_OWN_TID, &own_tid, sizeof own_tid) != 0) {
        return error_set(error, "process %ld ended meanwhile", (long)call->pid);
    }
    fd = take_file(call->pid, own_tid, file);
    if (fd < 0) {
        return error_set(error, "the library cannot be handed to process %ld: %s", (long)call->pid,
                         strerror(errno));
    }
    snprintf(path, sizeof path, "/proc/%s/fd/%d", own_tid != 0 ? "thread-self" : "self", file);
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
