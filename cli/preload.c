/* SPDX-License-Identifier: MIT */
/*
 * preload.c: finds the library, and links to its folder where LD_PRELOAD cannot hold its path. See
 * preload.h.
 *
 * The link leads to the folder, not to the file: the runtime looks for the memtrace command beside
 * the library (../bin), and the kernel takes that from where the link leads.
 *
 * Links lie in <parent>/memtrace-lib-<uid>, named by a hash of what they lead to: every run of the
 * same installation uses the same link, and it stays, because programs that are followed may start
 * others at any time. Others may read the folder: a program that gives up root's rights and then
 * starts another one still has LD_PRELOAD. Only the owner can write there.
 */
#include "cli/preload.h"

#include "cli/cli.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* The loader splits LD_PRELOAD at blanks and colons, and replaces $ORIGIN and the like. */
static const char unfit[] = ": \t\n$";

enum { UNUSED_SECONDS = 24 * 60 * 60 }; /* then a link that leads nowhere is removed */

/* The library beside this command. 0, or CLI_FAILURE with the line printed. */
static int find_library(char path[PATH_MAX]) {
    static const char *const folders[] = {MEMTRACE_LIBDIR, "../lib", ("../" MEMTRACE_MULTIARCH)};
    const char *own = getenv("MEMTRACE_LIBRARY");
    char base[PATH_MAX];
    char candidate[PATH_MAX + 64];
    ssize_t length = readlink("/proc/self/exe", base, sizeof base - 1);
    if (own != NULL && own[0] != '\0') {
        return realpath(own, path) != NULL && access(path, R_OK) == 0
                   ? 0
                   : cli_error("MEMTRACE_LIBRARY %s: %s", own, strerror(errno));
    }
    if (length <= 0) {
        return cli_error("cannot tell where this command lies (is /proc mounted?)");
    }
    base[length] = '\0';
    *strrchr(base, '/') = '\0';
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        snprintf(candidate, sizeof candidate, "%s/%s/libmemtrace.so", base, folders[i]);
        if (realpath(candidate, path) != NULL && access(path, R_OK) == 0) {
            return 0;
        }
    }
    return cli_error("libmemtrace.so is not at %s/%s; MEMTRACE_LIBRARY can say where it is", base,
                     MEMTRACE_LIBDIR);
}

/* A folder that is ours and that nobody else can write to: `parent` may be anybody's. Its
 * descriptor, or -1 with errno set. */
static int open_folder(const char *parent, char *folder, size_t capacity) {
    struct stat status;
    bool made;
    int fd;
    snprintf(folder, capacity, "%s/memtrace-lib-%lu", parent, (unsigned long)geteuid());
    made = mkdir(folder, 0755) == 0;
    fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        return -1;
    }
    if (made) {
        fchmod(fd, 0755); /* whatever the umask is */
    }
    if (fstat(fd, &status) == 0 && status.st_uid == geteuid() && (status.st_mode & 022) == 0) {
        return fd;
    }
    close(fd);
    errno = EPERM;
    return -1;
}

static bool leads_to(int folder, const char *name, const char *target) {
    char found[PATH_MAX];
    ssize_t length = readlinkat(folder, name, found, sizeof found - 1);
    if (length < 0) {
        return false;
    }
    found[length] = '\0';
    return strcmp(found, target) == 0;
}

/* Links of installations that are gone. One that was used lately may lead to a folder that only
 * another container sees. */
static void remove_stale(int folder) {
    time_t now = time(NULL);
    DIR *list = fdopendir(openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    struct dirent *entry;
    while (list != NULL && (entry = readdir(list)) != NULL) {
        struct stat link;
        struct stat target;
        if (fstatat(folder, entry->d_name, &link, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISLNK(link.st_mode) && now - link.st_mtime > UNUSED_SECONDS &&
            fstatat(folder, entry->d_name, &target, 0) != 0 && errno == ENOENT) {
            unlinkat(folder, entry->d_name, 0);
        }
    }
    if (list != NULL) {
        closedir(list);
    }
}

/* Two runs may do this at once: both make the same link. 0, or -1 with errno set. */
static int make_link(int folder, const char *name, const char *target) {
    char fresh[64];
    if (leads_to(folder, name, target)) {
        utimensat(folder, name, NULL, AT_SYMLINK_NOFOLLOW); /* it is in use */
        return 0;
    }
    remove_stale(folder);
    snprintf(fresh, sizeof fresh, ".%s.%ld", name, (long)getpid());
    unlinkat(folder, fresh, 0);
    if (symlinkat(target, folder, fresh) != 0) {
        return -1;
    }
    if (renameat(folder, fresh, folder, name) == 0) {
        return 0;
    }
    unlinkat(folder, fresh, 0);
    return -1;
}

/* 0, or -1 with errno set. */
static int link_in(const char *parent, const char *target, const char *base, char path[PATH_MAX]) {
    char folder[64];
    char name[32];
    int fd = open_folder(parent, folder, sizeof folder);
    int result;
    int reason;
    if (fd < 0) {
        return -1;
    }
    snprintf(name, sizeof name, "%016" PRIx64, (uint64_t)XXH3_64bits(target, strlen(target)));
    result = make_link(fd, name, target);
    reason = errno;
    close(fd);
    snprintf(path, PATH_MAX, "%s/%s/%s", folder, name, base);
    errno = reason;
    return result;
}

int preload_path(char path[PATH_MAX]) {
    char library[PATH_MAX];
    char *base;
    if (find_library(library) != 0) {
        return CLI_FAILURE;
    }
    if (strpbrk(library, unfit) == NULL) {
        strcpy(path, library);
        return 0;
    }
    base = strrchr(library, '/');
    *base++ = '\0';
    if (strpbrk(base, unfit) != NULL) {
        return cli_error("%s/%s cannot be preloaded: the loader takes no blank, colon or dollar in "
                         "the name of a library",
                         library, base);
    }
    if (link_in("/dev/shm", library, base, path) == 0 ||
        link_in("/tmp", library, base, path) == 0) {
        return 0;
    }
    return cli_error("%s/%s cannot be preloaded: the loader takes no blank, colon or dollar in a "
                     "path, and a link to it cannot be made in /dev/shm or /tmp: %s",
                     library, base, strerror(errno));
}
