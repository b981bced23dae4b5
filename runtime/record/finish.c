/* SPDX-License-Identifier: MIT */
/*
 * finish.c: writing the profile and the summary at the end, and the collector of a program that
 * runs without `memtrace run`. See finish.h.
 *
 * A run leaves one entry in the user's folder. Where no `memtrace run` sees to it, the first of its
 * processes that ends writes a plain file. The next one finds it there, makes it a folder of the
 * same name, and writes its own profile into that. There is one writer a process; signal-safe.
 */
#define _GNU_SOURCE
#include "runtime/record/finish.h"

#include "runtime/base/handed.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"
#include "runtime/libc/libc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* --- the run's entry -------------------------------------------------------------------------- */

/* Of what is made beside the profile; others of the run may take names and folders at any time. */
enum { PATH_SIZE = sizeof((struct memtrace_header *)NULL)->output + 128, TRIES = 100 };

/* The empty file by which later processes know the folder of their run. */
static void entry_name_mark(char mark[PATH_SIZE], const char *folder, uint64_t run) {
    text_print(mark, PATH_SIZE, "%s/.run-%" PRIu64, folder, run);
}

static int entry_is_folder(const char *path, uint64_t run) {
    char mark[PATH_SIZE];
    entry_name_mark(mark, path, run);
    return sys_access(mark, F_OK) == 0;
}

enum entry_writer { NOBODY_OF_RUN, OTHER_OF_RUN, SELF };

/* Who of the run has written the file; *found: its header. */
static enum entry_writer entry_writer(const char *path, const struct memtrace_header *header,
                                      struct memtrace_header *found) {
    long fd = sys_open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW, 0);
    long size = fd < 0 ? fd : sys_pread((int)fd, found, sizeof *found, 0);
    sys_close(fd);
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

/* FOLDER/PROGRAM.PID.mtp, with .2, .3 and so on before the ending. 0, or -1: that is too long. */
static int entry_name(char path[PATH_SIZE], const char *folder, const struct memtrace_header *whose,
                      unsigned number) {
    enum { PROGRAM_MOST = 200 };
    struct text text;
    text_init(&text, path, PATH_SIZE);
    text_format(&text, "%s/%.*s.%u", folder, PROGRAM_MOST, text_base_name(whose->executable),
                whose->pid);
    text_add_suffix(&text, number);
    text_add(&text, ".mtp");
    return text.cut ? -1 : 0;
}

static int entry_is_taken(char path[PATH_SIZE], const char *folder,
                          const struct memtrace_header *whose, unsigned number) {
    return entry_name(path, folder, whose, number) == 0 && sys_access(path, F_OK) == 0;
}

/* A name that nobody has: a pid is of one process only within a namespace. Names are taken from the
 * first on, so a few looks are enough. 0, or -1: it is too long. */
static int entry_name_free(char path[PATH_SIZE], const char *folder,
                           const struct memtrace_header *whose) {
    unsigned taken = 0;
    unsigned end = 1;
    while (end < 1u << 30 && entry_is_taken(path, folder, whose, end)) {
        taken = end;
        end *= 2;
    }
    while (end - taken > 1) {
        unsigned middle = taken + (end - taken) / 2;
        if (entry_is_taken(path, folder, whose, middle)) {
            taken = middle;
        } else {
            end = middle;
        }
    }
    return entry_name(path, folder, whose, end);
}

/* --- becoming a folder ------------------------------------------------------------------------ */

/* A folder with a mark, beside the file. 0 or a negative errno. */
static long entry_make_folder(char folder[PATH_SIZE], const struct memtrace_header *header) {
    static char mark[PATH_SIZE];
    struct text text;
    long result = -EEXIST;
    /* With a number: of another namespace's process, or left by a killed one. */
    for (unsigned number = 1; result == -EEXIST && number <= TRIES; number++) {
        text_init(&text, folder, PATH_SIZE);
        text_format(&text, "%s.%u", header->output, header->pid);
        text_add_suffix(&text, number);
        text_add(&text, ".folder");
        result = text.cut ? -ENAMETOOLONG : sys_mkdir(folder, 0777);
    }
    if (result == 0) {
        entry_name_mark(mark, folder, header->run.id);
        result = sys_open(mark, O_WRONLY | O_CREAT | O_EXCL, 0644);
        sys_close(result);
    }
    return result < 0 ? result : 0;
}

/* Moves another's file into the folder, under a name of its own. */
static long entry_take_in(const char *path, const char *folder,
                          const struct memtrace_header *other) {
    static char name[PATH_SIZE];
    long result = -EEXIST;
    for (int tries = 0; result == -EEXIST && tries < TRIES; tries++) {
        result =
            entry_name_free(name, folder, other) != 0 ? -ENAMETOOLONG : sys_rename_new(path, name);
    }
    return result;
}

/* What was taken into `from` goes to the folder that counts. */
static void entry_move_all(const char *from, const char *to, const struct memtrace_header *header,
                           struct memtrace_header *other) {
    static char buffer[4096] __attribute__((aligned(8)));
    static char path[PATH_SIZE + 256];
    long fd = sys_open(from, O_RDONLY | O_DIRECTORY, 0);
    long size = fd;
    while (fd >= 0 && (size = sys_list((int)fd, buffer, sizeof buffer)) > 0) {
        for (long at = 0; at < size;) {
            const struct sys_entry *entry = (const void *)(buffer + at);
            if (text_print(path, sizeof path, "%s/%s", from, entry->name) == 0 &&
                entry_writer(path, header, other) != NOBODY_OF_RUN) {
                entry_take_in(path, to, other);
            }
            at += entry->size_bytes;
        }
    }
    sys_close(fd);
}

/* The folder takes the file's place. Meanwhile others of the run may end, too: a new file there is
 * taken in as well; a folder there is the one that counts. */
static void entry_become_folder(struct memtrace_header *header, struct memtrace_header *other) {
    static char folder[PATH_SIZE];
    char mark[PATH_SIZE];
    if (entry_make_folder(folder, header) != 0) {
        return;
    }
    for (int tries = 0;
         tries < TRIES && entry_writer(header->output, header, other) == OTHER_OF_RUN; tries++) {
        if (entry_take_in(header->output, folder, other) == 0 &&
            sys_rename(folder, header->output) == 0) {
            return;
        }
    }
    if (entry_is_folder(header->output, header->run.id)) {
        entry_move_all(folder, header->output, header, other);
    }
    entry_name_mark(mark, folder, header->run.id);
    sys_unlink(mark);
    sys_rmdir(folder);
}

/* --- placing ---------------------------------------------------------------------------------- */

/* Before the profile is written to header.output: where another process of the same run has been
 * before, header.output becomes a file in the run's folder. */
static void entry_join(struct memtrace_header *header) {
    static struct memtrace_header other; /* large */
    static char name[PATH_SIZE];
    int is_fit;
    if (entry_writer(header->output, header, &other) == OTHER_OF_RUN) {
        entry_become_folder(header, &other);
    }
    if (entry_is_folder(header->output, header->run.id)) {
        is_fit = entry_name(name, header->output, header, 1) == 0;
        if (entry_writer(name, header, &other) != SELF) { /* before an exec that failed */
            is_fit = entry_name_free(name, header->output, header) == 0;
        }
        if (is_fit && text_length(name) < sizeof header->output) {
            text_copy(header->output, sizeof header->output, name);
        }
    }
}

/* The file says where it is. */
static void entry_tell_output(const char *file, const struct memtrace_header *header) {
    long fd = sys_open(file, O_WRONLY | O_NOFOLLOW, 0);
    if (fd >= 0) {
        sys_pwrite_all((int)fd, header->output, sizeof header->output,
                       offsetof(struct memtrace_header, output));
        sys_close(fd);
    }
}

/* Moves the whole profile from `file` to header.output, which entry_join() has set from the run's
 * path `run`. It takes the place of no other process's profile of the run: where one came there
 * meanwhile, or has that name, header.output becomes another file. 0 or a negative errno. */
static long entry_place(struct memtrace_header *header, const char *run, const char *file) {
    static struct memtrace_header there; /* large */
    long result = -EEXIST;
    for (int tries = 0; result == -EEXIST && tries < TRIES; tries++) {
        enum entry_writer writer;
        result = sys_rename_new(file, header->output);
        if (result != -EEXIST) {
            break;
        }
        writer = entry_writer(header->output, header, &there);
        if (writer == SELF || (writer == NOBODY_OF_RUN && text_equal(header->output, run) &&
                               !entry_is_folder(run, header->run.id))) {
            return sys_rename(file, header->output);
        }
        text_copy(header->output, sizeof header->output, run);
        entry_join(header);
        entry_tell_output(file, header);
    }
    return result;
}

/* --- the profile ------------------------------------------------------------------------------ */

enum { BLOCK = 64 * 1024 };

static char block[BLOCK];

static const char *finish_reason(long error) {
    switch (-error) {
    case ENOSPC:
        return ": no space left";
    case EACCES:
    case EPERM:
        return ": permission denied";
    case EROFS:
        return ": read-only file system";
    case ENOENT:
        return ": no such folder";
    case EISDIR:
        return ": it is a folder, as an earlier run leaves; remove it or set MEMTRACE_OUTPUT";
    case EINVAL:
        return ": it is not a regular file";
    case EFBIG:
        return ": over the limit for file sizes (ulimit -f)";
    case ENAMETOOLONG:
        return ": name too long";
    default:
        return ": it cannot be written";
    }
}

/* Of a file that somebody removed: what is mapped, and what is not as zeros. */
static long finish_copy_mapped(const struct space *space, uint64_t at, size_t size) {
    for (size_t i = 0; i < size; i += MEMTRACE_PAGE_SIZE) {
        size_t part = size - i < MEMTRACE_PAGE_SIZE ? size - i : MEMTRACE_PAGE_SIZE;
        const uint8_t *page = space->base + at + i;
        if (sys_readable(page)) {
            __builtin_memcpy(block + i, page, part);
        } else {
            __builtin_memset(block + i, 0, part);
        }
    }
    return (long)size;
}

static long finish_copy(struct space *space, int to) {
    long from = space_descriptor(space);
    uint64_t end = space->header->end;
    long result = sys_may_have_size(end) ? 0 : -EFBIG;
    for (uint64_t at = 0; at < end && result == 0;) {
        size_t size = end - at < BLOCK ? (size_t)(end - at) : BLOCK;
        long got =
            from >= 0 ? sys_pread((int)from, block, size, at) : finish_copy_mapped(space, at, size);
        if (got == -EINTR) {
            continue;
        }
        if (got <= 0) { /* the file ends before header.end where a segment was refused */
            result = got;
            break;
        }
        result = write_all(to, block, (size_t)got);
        at += (uint64_t)got;
    }
    sys_close(from);
    return result;
}

/* As with `memtrace run`: a device or a folder is not replaced by a file; /dev/null takes anything.
 */
static long finish_check_target(const char *output, bool *discard) {
    struct stat status;
    long fd = sys_open(output, O_PATH, 0); /* opens no device, waits for no reader */
    long result;
    if (fd < 0) {
        return 0;
    }
    result = sys_fstat((int)fd, &status);
    sys_close(fd);
    if (result != 0 || S_ISREG(status.st_mode)) {
        return 0;
    }
    *discard = S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 3);
    return *discard ? 0 : S_ISDIR(status.st_mode) ? -EISDIR : -EINVAL;
}

static long finish_write_file(struct space *space, const char *run, const char *temporary) {
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW;
    bool discard = false;
    long result = finish_check_target(space->header->output, &discard);
    long fd;
    if (result != 0 || discard) {
        return result;
    }
    fd = sys_open(temporary, flags, region_file_mode());
    if (fd == -EEXIST) { /* left by a killed process that had our pid */
        sys_unlink(temporary);
        fd = sys_open(temporary, flags, region_file_mode());
    }
    if (fd < 0) {
        return fd;
    }
    result = finish_copy(space, (int)fd);
    if (space->header->owner.is_set) { /* without the rights it stays ours */
        sys_fchown((int)fd, space->header->owner.uid, space->header->owner.gid);
    }
    sys_close(fd);
    if (result == 0) {
        result = entry_place(space->header, run, temporary);
    }
    if (result != 0) {
        sys_unlink(temporary);
    }
    return result;
}

int finish_write_profile(struct space *space) {
    static char run[sizeof space->header->output];
    static char temporary[sizeof run + 64];
    const struct memtrace_header *header = space->header;
    long result;
    text_copy(run, sizeof run, header->output);
    /* In the folder where the profile goes; other processes make theirs there. */
    text_print(temporary, sizeof temporary, "%.*s.memtrace.%u.%" PRIu64 ".tmp",
               (int)(text_base_name(run) - run), run, header->pid, header->run.pid_namespace);
    entry_join(space->header);
    result = finish_write_file(space, run, temporary);
    if (result != 0) {
        log_error("cannot write the profile %s%s; it stays in %s until `memtrace list` moves it",
                  header->output, finish_reason(result), space->path);
    }
    return result == 0 ? 0 : -1;
}

static long finish_open(const char *path) {
    return sys_open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOCTTY, region_file_mode());
}

long finish_open_log(const struct memtrace_header *header) {
    char old[sizeof header->log + 2];
    struct stat status;
    long fd = finish_open(header->log);
    if (fd < 0 || header->log_size_bytes == 0 || sys_fstat((int)fd, &status) != 0 ||
        !S_ISREG(status.st_mode) || (uint64_t)status.st_size < header->log_size_bytes) {
        return fd;
    }
    text_print(old, sizeof old, "%s.1", header->log);
    sys_rename(header->log, old);
    sys_close(fd);
    return finish_open(header->log);
}

void finish_print_summary(const struct memtrace_header *header, const struct survey *survey,
                          int written) {
    const struct survey_item *total = &survey->total;
    static char buffer[3 * sizeof header->output];
    struct text text;
    uint64_t peak = (uint64_t)total->peak_bytes;
    uint64_t left = total->alloc_bytes - total->free_bytes;
    uint64_t blocks = total->alloc_count - total->free_count;
    uint64_t lost = memtrace_lost_sum(header);
    bool is_all_counted = header->malloc_by.place == MEMTRACE_MALLOC_COUNTED;
    text_init(&text, buffer, sizeof buffer);
    text_format(&text, "memtrace: peak               %s (%'" PRIu64 " byte%s)\n",
                text_size(peak).text, peak, peak == 1 ? "" : "s");
    text_format(&text,
                "memtrace: not freed          %s (%'" PRIu64 " byte%s in %'" PRIu64 " block%s)\n",
                text_size(left).text, left, left == 1 ? "" : "s", blocks, blocks == 1 ? "" : "s");
    text_format(&text,
                "memtrace: allocations        %'" PRIu64 " (%s in total), frees %'" PRIu64 "\n",
                total->alloc_count, text_size(total->alloc_bytes).text, total->free_count);
    if ((header->flags & MEMTRACE_FLAG_SAMPLED) != 0) {
        text_format(&text,
                    "memtrace: sampled            one allocation in %s on average: these are "
                    "estimates\n",
                    text_size(header->sample_bytes).text);
    }
    text_format(&text,
                is_all_counted ? "memtrace: call paths         %'u, lost %'" PRIu64 "\n"
                               : "memtrace: call paths         %'u, lost not known (%'" PRIu64
                                 " seen)\n",
                survey->contexts, lost);
    if (written) {
        text_add(&text, "memtrace: profile            ");
        text_add_safe(&text, header->output);
        text_add(&text, "\nmemtrace: read it with       memtrace report ");
        text_add_shell_word(&text, header->output);
        text_add(&text, "\n");
    }
    log_write(text.start, text.length);
}

/* --- the companion ---------------------------------------------------------------------------- */

/* The command lies where the library was installed from: ../bin or, below a multiarch folder,
 * ../../bin. */
static int companion_find_command(char *path, size_t capacity) {
    static const char *const places[] = {"/../bin/memtrace", "/../../bin/memtrace"};
    const char *library = libc_own_path();
    const char *base;
    if (library == NULL) { /* the runtime is a part of the program */
        return handed_program(environ, HANDED_SKIP_EMPTY, "memtrace", path, capacity) ? 0 : -1;
    }
    base = text_base_name(library);
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        /* ".": found by a bare name. */
        if (text_print(path, capacity, "%.*s%s%s", (int)(base - library), library,
                       base == library ? "." : "", places[i] + (base != library)) == 0 &&
            sys_access(path, X_OK) == 0) {
            return 0;
        }
    }
    return -1;
}

/* The environment without what would profile the companion itself. */
static void companion_copy_environment(const struct settings *settings, char *const environment[],
                                       char **to, size_t capacity) {
    static char mode[sizeof "MEMTRACE_MODE=0000"];
    struct handed handed = handed_of(environment);
    uint32_t bits = settings->file_mode;
    size_t count = 0;
    char *entry;
    while (count + 3 < capacity && (entry = handed_next(&handed)) != NULL) {
        /* The level of what the program says holds for the companion's own lines, too. */
        if (text_starts(entry, "MEMTRACE_LOG_LEVEL=") ||
            (!text_starts(entry, "LD_PRELOAD=") && !text_starts(entry, "MEMTRACE"))) {
            to[count++] = entry;
        }
    }
    /* Who may read what the companion writes: as the settings say, which need not come from the
     * environment (memtrace attach). */
    if (bits != 0) {
        text_print(mode, sizeof mode, "MEMTRACE_MODE=0%u%u%u", bits >> 6 & 7, bits >> 3 & 7,
                   bits & 7);
        to[count++] = mode;
    }
    to[count++] = (char *)"MEMTRACE=off";
    to[count] = NULL;
}

/* The command that the settings name, or the one beside the library. 0, or -1: it is not there. */
static int companion_choose_command(const struct settings *settings, char *path, size_t capacity) {
    if (settings->command[0] == '\0') {
        return companion_find_command(path, capacity);
    }
    text_copy(path, capacity, settings->command);
    return sys_access(path, X_OK) == 0 ? 0 : -1;
}

static char command_path[1024];
static char *clean[512];

int companion_start(struct region *region, char *const environment[]) {
    char *late = region->settings->collector_pid != 0 ? (char *)"late" : NULL;
    char *argv[] = {(char *)"memtrace", (char *)"companion", region->space->path, late, NULL};
    if (companion_choose_command(region->settings, command_path, sizeof command_path) != 0) {
        log_line(region_recording(region->space->header)->state != MEMTRACE_RECORD_NONE
                     ? "no memtrace command beside the library: nothing is recorded"
                     : "no memtrace command beside the library: the program itself prints the "
                       "top-N, when enough memory was churned and at the end, as module+offset "
                       "lines for `memtrace symbolize`");
        return -1;
    }
    companion_copy_environment(region->settings, environment, clean,
                               sizeof clean / sizeof clean[0]);
    if (sys_spawn_detached(command_path, argv, clean) != 0) {
        log_line("the memtrace command cannot be started: nothing is recorded or reported "
                 "meanwhile");
        return -1;
    }
    return 0;
}

int companion_ask(const struct settings *settings, char *const argv[], char *const environment[]) {
    enum { CANNOT_RUN = 127 };
    int status;
    if (companion_choose_command(settings, command_path, sizeof command_path) != 0) {
        log_error("no memtrace command beside the library: %s cannot be asked", argv[1]);
        return -1;
    }
    companion_copy_environment(settings, environment, clean, sizeof clean / sizeof clean[0]);
    status = sys_run(command_path, argv, clean);
    if (status < 0 || status == CANNOT_RUN) {
        log_error("the memtrace command cannot be started: %s cannot be asked", argv[1]);
    }
    return status;
}
