/* SPDX-License-Identifier: MIT */
/* entry.c: a run's file that becomes a folder. See entry.h. */
#define _GNU_SOURCE
#include "runtime/record/entry.h"

#include "runtime/base/sys.h"
#include "runtime/base/text.h"

#include <errno.h>
#include <fcntl.h>

/* Of what is made beside the profile; others of the run may take names and folders at any time. */
enum { PATH_SIZE = sizeof((struct memtrace_header *)NULL)->output + 64, TRIES = 100 };

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

enum writer { NOBODY_OF_RUN, OTHER_OF_RUN, SELF };

/* Who of the run has written the file; *found: its header. */
static enum writer writer_of(const char *path, const struct memtrace_header *header,
                             struct memtrace_header *found) {
    long fd = sys_open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW, 0);
    long size = fd < 0 ? fd : sys_pread((int)fd, found, sizeof *found, 0);
    if (fd >= 0) {
        sys_close((int)fd);
    }
    if (size != (long)sizeof *found ||
        __builtin_memcmp(found->magic, MEMTRACE_MAGIC, sizeof found->magic) != 0 ||
        found->run.id != header->run.id) {
        return NOBODY_OF_RUN;
    }
    return found->pid == header->pid && found->start_monotonic_ns == header->start_monotonic_ns &&
                   found->run.pid_namespace == header->run.pid_namespace
               ? SELF
               : OTHER_OF_RUN;
}

/* --- names in the folder ---------------------------------------------------------------------- */

/* FOLDER/PROGRAM.PID.mtp, with .2, .3 and so on before the ending. */
static void name_profile(struct text *path, const char *folder, const struct memtrace_header *whose,
                         unsigned number) {
    enum { PROGRAM_MOST = 200 };
    const char *program = text_base_name(whose->executable);
    size_t length = text_length(program);
    text_init(path, path->start, path->capacity);
    text_add(path, folder);
    text_add(path, "/");
    text_add_bytes(path, program, length < PROGRAM_MOST ? length : PROGRAM_MOST);
    text_add(path, ".");
    text_add_number(path, whose->pid);
    if (number > 1) {
        text_add(path, ".");
        text_add_number(path, number);
    }
    text_add(path, ".mtp");
}

static int is_taken(struct text *path, const char *folder, const struct memtrace_header *whose,
                    unsigned number) {
    name_profile(path, folder, whose, number);
    return !path->cut && sys_access(path->start, F_OK) == 0;
}

/* A name that nobody has: a pid is of one process only within a namespace. Names are taken from the
 * first on, so a few looks are enough. */
static void name_free(struct text *path, const char *folder, const struct memtrace_header *whose) {
    unsigned taken = 1;
    unsigned end = 2;
    if (!is_taken(path, folder, whose, 1)) {
        return;
    }
    while (end < 1u << 30 && is_taken(path, folder, whose, end)) {
        taken = end;
        end *= 2;
    }
    while (end - taken > 1) {
        unsigned middle = taken + (end - taken) / 2;
        if (is_taken(path, folder, whose, middle)) {
            taken = middle;
        } else {
            end = middle;
        }
    }
    name_profile(path, folder, whose, end);
}

/* --- becoming a folder ------------------------------------------------------------------------ */

/* A folder with a mark, beside `path`. 0 or a negative errno. */
static long make_folder(char *folder, size_t capacity, const struct memtrace_header *header) {
    static char buffer[PATH_SIZE + 64];
    struct text text;
    long result = -EEXIST;
    for (unsigned number = 1; result == -EEXIST && number <= TRIES; number++) {
        text_init(&text, folder, capacity);
        text_add(&text, header->output);
        text_add(&text, ".");
        text_add_number(&text, header->pid);
        if (number > 1) { /* of another namespace's process, or left by a killed one */
            text_add(&text, ".");
            text_add_number(&text, number);
        }
        text_add(&text, ".folder");
        result = text.cut ? -ENAMETOOLONG : sys_mkdir(folder, 0777);
    }
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

/* Moves another's file into the folder, under a name of its own. */
static long take_in(const char *path, const char *folder, const struct memtrace_header *other) {
    static char buffer[PATH_SIZE + 64];
    struct text name;
    long result = -EEXIST;
    text_init(&name, buffer, sizeof buffer);
    for (int tries = 0; result == -EEXIST && tries < TRIES; tries++) {
        name_free(&name, folder, other);
        result = name.cut ? -ENAMETOOLONG : sys_rename_new(path, buffer);
    }
    return result;
}

/* What was taken into `from` goes to the folder that counts. */
static void move_all(const char *from, const char *to, const struct memtrace_header *header,
                     struct memtrace_header *other) {
    static char buffer[4096] __attribute__((aligned(8)));
    static char path[PATH_SIZE + 64 + 256];
    struct text text;
    long fd = sys_open(from, O_RDONLY | O_DIRECTORY, 0);
    long size = fd;
    while (fd >= 0 && (size = sys_list((int)fd, buffer, sizeof buffer)) > 0) {
        for (long at = 0; at < size;) {
            const struct sys_entry *entry = (const void *)(buffer + at);
            text_init(&text, path, sizeof path);
            text_add(&text, from);
            text_add(&text, "/");
            text_add(&text, entry->name);
            if (!text.cut && writer_of(path, header, other) != NOBODY_OF_RUN) {
                take_in(path, to, other);
            }
            at += entry->size_bytes;
        }
    }
    if (fd >= 0) {
        sys_close((int)fd);
    }
}

/* The folder takes the file's place. Meanwhile others of the run may end, too: a new file there is
 * taken in as well; a folder there is the one that counts. */
static void become_folder(struct memtrace_header *header, struct memtrace_header *other) {
    static char folder[PATH_SIZE + 64];
    if (make_folder(folder, sizeof folder, header) != 0) {
        return;
    }
    for (int tries = 0; tries < TRIES && writer_of(header->output, header, other) == OTHER_OF_RUN;
         tries++) {
        if (take_in(header->output, folder, other) == 0 &&
            sys_rename(folder, header->output) == 0) {
            return;
        }
    }
    if (is_folder_of_run(header->output, header->run.id)) {
        move_all(folder, header->output, header, other);
    }
    remove_folder(folder, header->run.id);
}

/* --- placing ---------------------------------------------------------------------------------- */

void entry_join(struct memtrace_header *header) {
    static struct memtrace_header other; /* large */
    static char buffer[PATH_SIZE + 64];
    struct text name;
    if (writer_of(header->output, header, &other) == OTHER_OF_RUN) {
        become_folder(header, &other);
    }
    if (is_folder_of_run(header->output, header->run.id)) {
        text_init(&name, buffer, sizeof buffer);
        name_profile(&name, header->output, header, 1);
        if (writer_of(buffer, header, &other) != SELF) { /* before an exec that failed */
            name_free(&name, header->output, header);
        }
        if (name.length < sizeof header->output && !name.cut) {
            text_copy(header->output, sizeof header->output, buffer);
        }
    }
}

/* The file says where it is. */
static void tell_output(const char *file, const struct memtrace_header *header) {
    long fd = sys_open(file, O_WRONLY | O_NOFOLLOW, 0);
    if (fd >= 0) {
        sys_pwrite_all((int)fd, header->output, sizeof header->output,
                       offsetof(struct memtrace_header, output));
        sys_close((int)fd);
    }
}

long entry_place(struct memtrace_header *header, const char *run, const char *file) {
    static struct memtrace_header there; /* large */
    long result = -EEXIST;
    for (int tries = 0; result == -EEXIST && tries < TRIES; tries++) {
        enum writer writer;
        result = sys_rename_new(file, header->output);
        if (result != -EEXIST) {
            break;
        }
        writer = writer_of(header->output, header, &there);
        if (writer == SELF || (writer == NOBODY_OF_RUN && text_equal(header->output, run) &&
                               !is_folder_of_run(run, header->run.id))) {
            return sys_rename(file, header->output);
        }
        text_copy(header->output, sizeof header->output, run);
        entry_join(header);
        tell_output(file, header);
    }
    return result;
}
