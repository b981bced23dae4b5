/* SPDX-License-Identifier: MIT */
/* entry.c: a run's file that becomes a folder. See entry.h. */
#define _GNU_SOURCE
#include "runtime/record/entry.h"

#include "runtime/base/sys.h"
#include "runtime/base/text.h"

#include <errno.h>
#include <fcntl.h>

enum { PATH_SIZE = sizeof((struct memtrace_header *)NULL)->output, TRIES = 8 };

/* FOLDER/PROGRAM.PID.mtp */
static void name_profile(struct text *path, const char *folder,
                         const struct memtrace_header *header) {
    text_add(path, folder);
    text_add(path, "/");
    text_add(path, text_base_name(header->executable));
    text_add(path, ".");
    text_add_number(path, header->pid);
    text_add(path, ".mtp");
}

/* The empty file by which later processes know the folder of their run. */
static void name_mark(struct text *path, const char *folder, uint64_t run) {
    text_add(path, folder);
    text_add(path, "/.run-");
    text_add_number(path, run);
}

static int is_folder_of_run(const char *path, uint64_t run) {
    char buffer[PATH_SIZE + 64];
    struct text mark;
    text_init(&mark, buffer, sizeof buffer);
    name_mark(&mark, path, run);
    return sys_access(buffer, F_OK) == 0;
}

/* Whether another process of the run has written the file; *other: its header. */
static int is_file_of_run(const char *path, const struct memtrace_header *header,
                          struct memtrace_header *other) {
    long fd = sys_open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW, 0);
    long size = fd < 0 ? fd : sys_pread((int)fd, other, sizeof *other, 0);
    if (fd >= 0) {
        sys_close((int)fd);
    }
    return size == (long)sizeof *other &&
           __builtin_memcmp(other->magic, MEMTRACE_MAGIC, sizeof other->magic) == 0 &&
           other->run.id == header->run.id &&
           (other->pid != header->pid || other->start_monotonic_ns != header->start_monotonic_ns);
}

/* A folder with a mark, beside `path`. 0 or a negative errno. */
static long make_folder(char *folder, size_t capacity, const struct memtrace_header *header) {
    char buffer[PATH_SIZE + 64];
    struct text text;
    long result;
    text_init(&text, folder, capacity);
    text_add(&text, header->output);
    text_add(&text, ".");
    text_add_number(&text, header->pid);
    text_add(&text, ".folder");
    result = text.cut ? -ENAMETOOLONG : sys_mkdir(folder, 0777);
    if (result == 0) {
        text_init(&text, buffer, sizeof buffer);
        name_mark(&text, folder, header->run.id);
        result = sys_open(buffer, O_WRONLY | O_CREAT | O_EXCL, 0644);
        if (result >= 0) {
            sys_close((int)result);
        }
    }
    return result < 0 ? result : 0;
}

static void remove_folder(const char *folder, uint64_t run) {
    char buffer[PATH_SIZE + 64];
    struct text mark;
    text_init(&mark, buffer, sizeof buffer);
    name_mark(&mark, folder, run);
    sys_unlink(buffer);
    sys_rmdir(folder);
}

/* Moves the other's file into the folder, under a name of its own. */
static long take_in(const char *path, const char *folder, const struct memtrace_header *other) {
    char buffer[PATH_SIZE + 64];
    struct text name;
    text_init(&name, buffer, sizeof buffer);
    name_profile(&name, folder, other);
    return name.cut ? -ENAMETOOLONG : sys_rename(path, buffer);
}

/* The folder takes the file's place. Meanwhile others of the run may end, too: a new file there is
 * taken in as well; a folder there is the one that counts. */
static void become_folder(struct memtrace_header *header, struct memtrace_header *other) {
    char folder[PATH_SIZE + 64];
    if (make_folder(folder, sizeof folder, header) != 0) {
        return;
    }
    for (int tries = 0; tries < TRIES && is_file_of_run(header->output, header, other); tries++) {
        if (take_in(header->output, folder, other) == 0 &&
            sys_rename(folder, header->output) == 0) {
            return;
        }
        if (is_folder_of_run(header->output, header->run.id)) {
            char from[PATH_SIZE + 64];
            struct text name;
            text_init(&name, from, sizeof from);
            name_profile(&name, folder, other);
            take_in(from, header->output, other);
        }
    }
    remove_folder(folder, header->run.id);
}

void entry_join(struct memtrace_header *header) {
    static struct memtrace_header other; /* large */
    char buffer[PATH_SIZE];
    struct text name;
    if (is_file_of_run(header->output, header, &other)) {
        become_folder(header, &other);
    }
    if (is_folder_of_run(header->output, header->run.id)) {
        text_init(&name, buffer, sizeof buffer);
        name_profile(&name, header->output, header);
        if (!name.cut) {
            text_copy(header->output, sizeof header->output, buffer);
        }
    }
}
