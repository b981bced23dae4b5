/* SPDX-License-Identifier: MIT */
/* finish.c: writing the profile and the summary at the end. See finish.h. */
#define _GNU_SOURCE
#include "runtime/record/finish.h"

#include "runtime/base/sys.h"
#include "runtime/base/text.h"
#include "runtime/record/entry.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

enum { BLOCK = 64 * 1024 };

static char block[BLOCK]; /* at the end there is one writer */

static const char *reason(long error) {
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
static long copy_mapped(const struct space *space, uint64_t at, size_t size) {
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

static long copy(struct space *space, int to) {
    long from = space_descriptor(space);
    uint64_t end = space->header->end;
    long result = sys_may_have_size(end) ? 0 : -EFBIG;
    for (uint64_t at = 0; at < end && result == 0;) {
        size_t size = end - at < BLOCK ? (size_t)(end - at) : BLOCK;
        long got = from >= 0 ? sys_pread((int)from, block, size, at) : copy_mapped(space, at, size);
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
    if (from >= 0) {
        sys_close((int)from);
    }
    return result;
}

/* As with `memtrace run`: a device or a folder is not replaced by a file; /dev/null takes anything.
 */
static long check_target(const char *output, bool *discard) {
    struct stat status;
    long fd = sys_open(output, O_PATH, 0); /* opens no device, waits for no reader */
    long result;
    if (fd < 0) {
        return 0;
    }
    result = sys_fstat((int)fd, &status);
    sys_close((int)fd);
    if (result != 0 || S_ISREG(status.st_mode)) {
        return 0;
    }
    *discard = S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 3);
    return *discard ? 0 : S_ISDIR(status.st_mode) ? -EISDIR : -EINVAL;
}

static long create(const char *path) {
    long fd = sys_open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, region_file_mode());
    if (fd == -EEXIST) { /* left by a killed process that had our pid */
        sys_unlink(path);
        fd = sys_open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, region_file_mode());
    }
    return fd;
}

/* In the folder where the profile goes; other processes make theirs there. */
static void name_temporary(struct text *path, const struct memtrace_header *header) {
    size_t folder = (size_t)(text_base_name(header->output) - header->output);
    text_add_bytes(path, header->output, folder);
    text_add(path, ".memtrace.");
    text_add_number(path, header->pid);
    text_add(path, ".");
    text_add_number(path, header->run.pid_namespace);
    text_add(path, ".tmp");
}

static long write_file(struct space *space, const char *run, const char *temporary) {
    bool discard = false;
    long result = check_target(space->header->output, &discard);
    long fd;
    if (result != 0 || discard) {
        return result;
    }
    fd = create(temporary);
    if (fd < 0) {
        return fd;
    }
    result = copy(space, (int)fd);
    if (space->header->owner.is_set) { /* without the rights it stays ours */
        sys_fchown((int)fd, space->header->owner.uid, space->header->owner.gid);
    }
    sys_close((int)fd);
    if (result == 0) {
        result = entry_place(space->header, run, temporary);
    }
    if (result != 0) {
        sys_unlink(temporary);
    }
    return result;
}

static void report_failure(const struct space *space, const char *why) {
    char buffer[512];
    struct text text;
    text_init(&text, buffer, sizeof buffer);
    text_add(&text, why);
    text_add(&text, "; it stays in ");
    text_add(&text, space->path);
    text_add(&text, " until `memtrace list` moves it");
    log_error("cannot write the profile ", space->header->output, buffer);
}

int finish_write_profile(struct space *space) {
    static char run[sizeof space->header->output];
    static char temporary[sizeof run + 64];
    struct text text;
    long result;
    text_copy(run, sizeof run, space->header->output);
    text_init(&text, temporary, sizeof temporary);
    name_temporary(&text, space->header);
    entry_join(space->header);
    result = write_file(space, run, temporary);
    if (result != 0) {
        report_failure(space, reason(result));
    }
    return result == 0 ? 0 : -1;
}

static long open_log(const char *path) {
    return sys_open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOCTTY, region_file_mode());
}

long finish_open_log(const struct memtrace_header *header) {
    char old[sizeof header->log + 2];
    struct text text;
    struct stat status;
    long fd = open_log(header->log);
    if (fd < 0 || header->log_size_bytes == 0 || sys_fstat((int)fd, &status) != 0 ||
        !S_ISREG(status.st_mode) || (uint64_t)status.st_size < header->log_size_bytes) {
        return fd;
    }
    text_init(&text, old, sizeof old);
    text_add(&text, header->log);
    text_add(&text, ".1");
    sys_rename(header->log, old);
    sys_close((int)fd);
    return open_log(header->log);
}

static void start_line(struct text *text, const char *label) {
    text_add(text, "memtrace: ");
    text_add(text, label);
}

static void add_exact(struct text *text, uint64_t bytes) {
    text_add_size(text, bytes);
    text_add(text, " (");
    text_add_grouped(text, bytes);
    text_add(text, bytes == 1 ? " byte" : " bytes");
}

void finish_print_summary(const struct memtrace_header *header, const struct survey *survey,
                          int written) {
    const struct survey_item *total = &survey->total;
    static char buffer[3 * sizeof header->output];
    struct text text;
    uint64_t lost = memtrace_lost_sum(header);
    bool is_all_counted = header->malloc_by.place == MEMTRACE_MALLOC_COUNTED;
    text_init(&text, buffer, sizeof buffer);
    start_line(&text, "peak               ");
    add_exact(&text, (uint64_t)total->peak_bytes);
    text_add(&text, ")\n");
    start_line(&text, "not freed          ");
    add_exact(&text, total->alloc_bytes - total->free_bytes);
    text_add(&text, " in ");
    text_add_grouped(&text, total->alloc_count - total->free_count);
    text_add(&text, total->alloc_count - total->free_count == 1 ? " block)\n" : " blocks)\n");
    start_line(&text, "allocations        ");
    text_add_grouped(&text, total->alloc_count);
    text_add(&text, " (");
    text_add_size(&text, total->alloc_bytes);
    text_add(&text, " in total), frees ");
    text_add_grouped(&text, total->free_count);
    text_add(&text, "\n");
    if ((header->flags & MEMTRACE_FLAG_SAMPLED) != 0) {
        start_line(&text, "sampled            one allocation in ");
        text_add_size(&text, header->sample_bytes);
        text_add(&text, " on average: these are estimates\n");
    }
    start_line(&text, "call paths         ");
    text_add_grouped(&text, survey->contexts);
    text_add(&text, is_all_counted ? ", lost " : ", lost not known (");
    text_add_grouped(&text, lost);
    text_add(&text, is_all_counted ? "\n" : " seen)\n");
    if (written) {
        start_line(&text, "profile            ");
        text_add_safe(&text, header->output);
        text_add(&text, "\n");
        start_line(&text, "read it with       memtrace report ");
        text_add_shell_word(&text, header->output);
        text_add(&text, "\n");
    }
    log_write(text.start, text.length);
}
