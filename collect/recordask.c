/* SPDX-License-Identifier: MIT */
/* recordask.c: see recordask.h. */
#include "collect/recordask.h"

#include "analyze/base/filemode.h"
#include "analyze/base/pathname.h"
#include "analyze/read/profile.h"
#include "collect/modeswitch.h"
#include "collect/orphan.h"
#include "memtrace/recording.h"
#include "memtrace/sampled.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static struct memtrace_recording *recording_of(struct memtrace_header *header) {
    return (void *)header->recording;
}

const struct memtrace_recording *recordask_recording(const struct memtrace_header *header) {
    return (const void *)header->recording;
}

void recordask_path(const struct memtrace_header *header, char path[RECORDASK_PATH]) {
    memcpy(path, recordask_recording(header)->path, RECORDASK_PATH);
    path[RECORDASK_PATH - 1] = '\0';
}

enum recordask_state recordask_look(const struct memtrace_header *header) {
    const struct memtrace_recording *recording = recordask_recording(header);
    uint32_t state = __atomic_load_n(&recording->state, __ATOMIC_ACQUIRE);
    bool has_file = __atomic_load_n(&recording->heartbeat_ns, __ATOMIC_ACQUIRE) != 0;
    if (state == MEMTRACE_RECORD_NONE || (state == MEMTRACE_RECORD_LEFT && !has_file)) {
        return RECORDASK_NONE;
    }
    if ((recording->flags & MEMTRACE_RECORDING_MIDWAY) == 0) {
        return RECORDASK_START;
    }
    switch (state) {
    case MEMTRACE_RECORD_ASKED:
        return RECORDASK_OPENING;
    case MEMTRACE_RECORD_OPENED:
        return RECORDASK_ASKED;
    case MEMTRACE_RECORD_WANTED:
        return RECORDASK_ON;
    case MEMTRACE_RECORD_STOPPED:
        return RECORDASK_STOPPED;
    case MEMTRACE_RECORD_REFUSED:
        return RECORDASK_REFUSED;
    default:
        return has_file ? RECORDASK_ENDING : RECORDASK_CLOSED;
    }
}

/* --- one at a time ---------------------------------------------------------------------------- */

int recordask_lock(const struct region *region, struct error *error) {
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    int fd = open(region->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0 && fcntl(fd, F_OFD_SETLKW, &whole) == 0) {
        return fd;
    }
    error_set(error, "cannot open %s: %s", region->path, strerror(errno));
    if (fd >= 0) {
        close(fd);
    }
    return -1;
}

/* --- the file --------------------------------------------------------------------------------- */

void recordask_expand(const char *pattern, pid_t pid, const char *program, unsigned number,
                      time_t now, char *to, size_t capacity) {
    size_t length = 0;
    to[0] = '\0';
    for (const char *at = pattern; *at != '\0' && length + 1 < capacity; at++) {
        char what = *at == '%' ? at[1] : '\0';
        char value[32];
        at += what != '\0';
        switch (what) {
        case 'p':
            snprintf(value, sizeof value, "%ld", (long)pid);
            break;
        case 'e':
            value[0] = '\0';
            break;
        case 't':
            snprintf(value, sizeof value, "%lld", (long long)now);
            break;
        case 'n':
            snprintf(value, sizeof value, "%u", number);
            break;
        default:
            snprintf(value, sizeof value, "%s%c", what != '\0' && what != '%' ? "%" : "",
                     what != '\0' ? what : *at);
        }
        length +=
            (size_t)snprintf(to + length, capacity - length, "%s", what == 'e' ? program : value);
    }
}

static void recordask_expand_for(const struct memtrace_header *header, const char *pattern,
                                 char *to, size_t capacity) {
    recordask_expand(pattern, (pid_t)header->pid, memtrace_program(header),
                     recordask_recording(header)->begun, time(NULL), to, capacity);
}

/* memtrace.EXE.PID.mtr in this folder, or with -2, -3 and so on. */
static void choose_new(const struct memtrace_header *header, char *path, size_t capacity) {
    char pattern[64] = "memtrace.%e.%p.mtr";
    recordask_expand_for(header, pattern, path, capacity);
    for (unsigned number = 2; access(path, F_OK) == 0; number++) {
        snprintf(pattern, sizeof pattern, "memtrace.%%e.%%p-%u.mtr", number);
        recordask_expand_for(header, pattern, path, capacity);
    }
}

/* A recording that is there gives way, as under `memtrace record`; no other file does. */
static int recordask_make_room(const char *path, struct error *error) {
    char magic[sizeof MEMTRACE_RECORDING_MAGIC] = "";
    struct stat status;
    int fd;
    if (lstat(path, &status) != 0) {
        return 0;
    }
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd >= 0) {
        ssize_t size = read(fd, magic, strlen(MEMTRACE_RECORDING_MAGIC));
        close(fd);
        if (S_ISREG(status.st_mode) &&
            (status.st_size == 0 || (size == (ssize_t)strlen(MEMTRACE_RECORDING_MAGIC) &&
                                     strcmp(magic, MEMTRACE_RECORDING_MAGIC) == 0)) &&
            unlink(path) == 0) {
            return 0;
        }
    }
    return error_set(error, "%s is there already and is not a recording; --output names another",
                     path);
}

/* So that what is wrong with the place is said at once. */
static int try_place(const char *path, struct error *error) {
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, filemode());
    if (fd < 0) {
        return error_set(error, "cannot write %s: %s", path, strerror(errno));
    }
    close(fd);
    return unlink(path);
}

static int choose_path(const struct memtrace_header *header, const char *output, char *path,
                       size_t capacity, struct error *error) {
    char folder[1024] = "";
    char name[1024];
    if (output == NULL) {
        choose_new(header, name, sizeof name);
    } else {
        recordask_expand_for(header, output, name, sizeof name);
    }
    if (name[0] != '/' && getcwd(folder, sizeof folder) == NULL) {
        return error_set(error, "cannot tell which folder this is: %s", strerror(errno));
    }
    if ((size_t)snprintf(path, capacity, "%s%s%s", folder, folder[0] != '\0' ? "/" : "", name) >=
        capacity) {
        return error_set(error, "the name of the recording is too long");
    }
    return recordask_make_room(path, error) != 0 ? -1 : try_place(path, error);
}

/* --- beginning -------------------------------------------------------------------------------- */

static int recordask_check(const struct memtrace_header *header, long pid, struct error *error) {
    const char *path = recordask_recording(header)->path;
    switch (recordask_look(header)) {
    case RECORDASK_NONE:
    case RECORDASK_REFUSED:
        break;
    case RECORDASK_START:
        return error_set(error, "process %ld is recorded since its start: %s", pid, path);
    case RECORDASK_CLOSED:
    case RECORDASK_ENDING:
        return error_set(error,
                         "process %ld has not let go of its last recording; it does when it "
                         "allocates next",
                         pid);
    default:
        return error_set(error, "process %ld is recorded already: %s", pid, path);
    }
    if (header->mode != MEMTRACE_MODE_EXACT) {
        return error_set(
            error,
            "process %ld %s; a recording begins where every allocation is counted: "
            "'memtrace control %ld exact' first",
            pid, header->mode == MEMTRACE_MODE_OFF ? "counts nothing" : "counts a sample", pid);
    }
    return 0;
}

static int recordask_write_wish(struct memtrace_header *header, const struct region *region,
                                const char *output, char path[RECORDASK_PATH],
                                struct error *error) {
    struct memtrace_recording *recording = recording_of(header);
    struct memtrace_header copy = *header; /* of one moment, with strings that end */
    region_end_strings(&copy);
    if (recordask_check(&copy, (long)region->pid, error) != 0 ||
        choose_path(&copy, output, path, RECORDASK_PATH, error) != 0) {
        return -1;
    }
    recording->on_lag = MEMTRACE_LAG_WAIT;
    recording->flags = MEMTRACE_RECORDING_MIDWAY | MEMTRACE_RECORDING_PROFILE;
    recording->heartbeat_ns = recording->begun_ns = 0;
    recording->sample_bytes = recording->rotate_bytes = recording->duration_ns = 0;
    recording->queue_bytes = 0; /* it stays whole on the disk: nobody sends it */
    recording->cull_ns = recording->cull_pending = 0;
    recording->size_least = recording->size_most = 0;
    recording->embed = MEMTRACE_EMBED_SYMBOLS;
    snprintf(recording->path, sizeof recording->path, "%s", path);
    __atomic_store_n(&recording->state, MEMTRACE_RECORD_ASKED, __ATOMIC_RELEASE);
    return 0;
}

int recordask_begin(struct memtrace_header *header, const struct region *region, const char *output,
                    char path[RECORDASK_PATH], struct error *error) {
    int fd = recordask_lock(region, error);
    int result = fd >= 0 ? recordask_write_wish(header, region, output, path, error) : -1;
    if (fd >= 0) {
        close(fd);
    }
    if (result == 0) {
        recordask_help(region);
    }
    return result;
}

void recordask_help(const struct region *region) {
    if (orphan_is(region->path)) {
        orphan_start(region->path);
    }
}

void recordask_give_up(struct memtrace_header *header) {
    uint32_t asked = MEMTRACE_RECORD_ASKED;
    __atomic_compare_exchange_n(&recording_of(header)->state, &asked, MEMTRACE_RECORD_NONE, false,
                                __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/* --- the end ---------------------------------------------------------------------------------- */

int recordask_end(struct memtrace_header *header, const struct region *region,
                  struct error *error) {
    struct memtrace_recording *recording = recording_of(header);
    enum recordask_state now = recordask_look(header);
    uint32_t state = __atomic_load_n(&recording->state, __ATOMIC_ACQUIRE);
    if (now == RECORDASK_START) {
        return error_set(error,
                         "process %ld is recorded since its start, and to its end; 'memtrace "
                         "control %ld off' counts and records nothing new",
                         (long)region->pid, (long)region->pid);
    }
    if ((now != RECORDASK_ON && now != RECORDASK_STOPPED && now != RECORDASK_ASKED) ||
        !__atomic_compare_exchange_n(&recording->state, &state, MEMTRACE_RECORD_ENDING, false,
                                     __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        return error_set(error, "process %ld is not recorded", (long)region->pid);
    }
    recordask_help(region);
    return 0;
}
