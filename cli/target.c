/* SPDX-License-Identifier: MIT */
/* target.c: looks at a program before it is started. See target.h. */
#include "cli/target.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

/* Our own ELF header, put there by the linker: what runs here. */
extern const Elf64_Ehdr __ehdr_start __attribute__((visibility("hidden")));

static bool is_program(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, X_OK) == 0;
}

static int find_as_is(const char *name, char path[PATH_MAX]) {
    struct stat status;
    if (strlen(name) >= PATH_MAX || stat(name, &status) != 0) {
        return errno == EACCES ? 126 : 127;
    }
    strcpy(path, name);
    return is_program(path) ? 0 : 126;
}

int target_find(const char *name, char path[PATH_MAX]) {
    const char *folders = getenv("PATH");
    int status = 127;
    if (name[0] == '\0') {
        return 127;
    }
    if (strchr(name, '/') != NULL) {
        return find_as_is(name, path);
    }
    for (const char *at = folders != NULL ? folders : "/bin:/usr/bin"; at != NULL;) {
        size_t length = strcspn(at, ":");
        int size =
            snprintf(path, PATH_MAX, "%.*s%s%s", (int)length, at, length != 0 ? "/" : "./", name);
        if (size < PATH_MAX && is_program(path)) {
            return 0;
        }
        if (size < PATH_MAX && access(path, F_OK) == 0) {
            status = 126;
        }
        at = at[length] == ':' ? at + length + 1 : NULL;
    }
    return status;
}

/* More rights than ours: the loader ignores LD_PRELOAD there. */
static bool gains_rights(const char *path) {
    struct stat status;
    if (stat(path, &status) != 0 || geteuid() == 0) {
        return false;
    }
    return ((status.st_mode & S_ISUID) != 0 && status.st_uid != geteuid()) ||
           ((status.st_mode & S_ISGID) != 0 && status.st_gid != getegid()) ||
           getxattr(path, "security.capability", NULL, 0) > 0;
}

static bool has_interpreter(int fd, const Elf64_Ehdr *header) {
    for (unsigned i = 0; i < header->e_phnum; i++) {
        Elf64_Phdr segment;
        off_t offset = (off_t)(header->e_phoff + (uint64_t)i * header->e_phentsize);
        if (pread(fd, &segment, sizeof segment, offset) != sizeof segment) {
            return true; /* cannot be told */
        }
        if (segment.p_type == PT_INTERP) {
            return true;
        }
    }
    return false;
}

static const char *elf_obstacle(int fd, const Elf64_Ehdr *header, const char *path) {
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    if (header->e_ident[EI_CLASS] != ELFCLASS64) {
        return "is a 32-bit program";
    }
    if (header->e_machine != __ehdr_start.e_machine) {
        return "is a program for another machine";
    }
    if (strncmp(name, "ld-linux", 8) == 0 || strncmp(name, "ld.so", 5) == 0) {
        return NULL; /* the loader itself, which preloads */
    }
    return has_interpreter(fd, header) ? NULL : "is statically linked";
}

/* The program behind "#!" at the start of a script. */
static bool read_interpreter(const char *text, char path[PATH_MAX]) {
    size_t length;
    text += 2 + strspn(text + 2, " \t");
    length = strcspn(text, " \t\n");
    if (length == 0 || length >= PATH_MAX) {
        return false;
    }
    memcpy(path, text, length);
    path[length] = '\0';
    return true;
}

static const char *file_obstacle(const char *path, bool follow) {
    union {
        Elf64_Ehdr elf;
        char text[256];
    } start = {0};
    char interpreter[PATH_MAX];
    const char *reason = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t size = fd < 0 ? -1 : pread(fd, &start, sizeof start - 1, 0);
    if (size >= (ssize_t)sizeof start.elf && memcmp(start.elf.e_ident, ELFMAG, SELFMAG) == 0) {
        reason = gains_rights(path) ? "has more rights than you (set-uid, set-gid or capabilities)"
                                    : elf_obstacle(fd, &start.elf, path);
    } else if (size > 2 && memcmp(start.text, "#!", 2) == 0 && follow &&
               read_interpreter(start.text, interpreter)) {
        reason = file_obstacle(interpreter, false);
    } else if (size < 0 && gains_rights(path)) {
        reason = "has more rights than you (set-uid, set-gid or capabilities)";
    }
    if (fd >= 0) {
        close(fd);
    }
    return reason;
}

const char *target_obstacle(const char *path) {
    return file_obstacle(path, true);
}
