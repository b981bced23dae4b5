/* SPDX-License-Identifier: MIT */
/* recordparts.c: the files of a recording. See recordparts.h. */
#include "collect/recordparts.h"

#include "analyze/base/pathname.h"
#include "analyze/base/scope.h"
#include "collect/copy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- blocks ----------------------------------------------------------------------------------- */

static int recordparts_write_names(struct recordparts *parts) {
    uint64_t time_ns = claim_time_ns(parts->claim);
    return recordtables_write_modules(parts->tables, &parts->file, time_ns, parts->error) != 0
               ? -1
               : recordtables_write_pools(parts->tables, &parts->file, time_ns, parts->error);
}

/* Modules and pools first, which the frames of the nodes name. */
int recordparts_write_nodes(struct recordparts *parts) {
    if (parts->tables->node_count == 0) {
        return 0;
    }
    return recordparts_write_names(parts) != 0
               ? -1
               : recordtables_write_nodes(parts->tables, &parts->file, claim_time_ns(parts->claim),
                                          parts->error);
}

static int write_program(struct recordparts *parts) {
    struct memtrace_header program;
    claim_copy_header(parts->claim, &program);
    if (parts->is_left && program.state == MEMTRACE_STATE_RUNNING) {
        program.state = MEMTRACE_STATE_COPIED; /* the program goes on without it */
    }
    if (claim_is_cut(parts->claim, MEMTRACE_HEADER_SIZE)) {
        return 0; /* what was written before stays the last word */
    }
    return recordfile_append_items(&parts->file, MEMTRACE_BLOCK_PROGRAM,
                                   claim_time_ns(parts->claim), &program, 1, sizeof program,
                                   parts->error);
}

int recordparts_write_tables(struct recordparts *parts) {
    return recordparts_write_names(parts) != 0 || write_program(parts) != 0
               ? -1
               : recordtables_write_threads(parts->tables, &parts->file,
                                            claim_time_ns(parts->claim), parts->error);
}

/* --- files ------------------------------------------------------------------------------------ */

/* NAME.mtr, NAME.1.mtr, NAME.2.mtr, ... */
void recordparts_path(const struct recordparts *parts, uint32_t part, char *to, size_t capacity) {
    const char *path = parts->path;
    size_t length = strlen(path);
    size_t tail = pathname_ends_in(path, ".mtr") ? 4 : 0;
    if (part == 0) {
        snprintf(to, capacity, "%s", path);
    } else {
        snprintf(to, capacity, "%.*s.%u%s", (int)(length - tail), path, part, path + length - tail);
    }
}

void (*recordparts_opened)(const char *path);

/* What is written when nothing more can be: a mark, the program, its threads, and of each context
 * what it cost (collect/recordevents). */
enum { RESERVE = 64 << 10, RESERVE_CONTEXT = 20 };

void recordparts_reserve(struct recordparts *parts) {
    recordfile_reserve(&parts->file, RESERVE + parts->tables->noted_count * RESERVE_CONTEXT);
}

/* The file that is written from here on. */
static void recordparts_begin(struct recordparts *parts) {
    recordparts_reserve(parts);
    if (recordparts_opened != NULL) {
        recordparts_opened(parts->file.path);
    }
}

/* What another process of the run has left there. */
static bool is_to_stay(const struct recordparts *parts, const char *path) {
    uint64_t run = parts->claim->header->run.id;
    struct recording *there;
    bool stays;
    if (parts->claim->replaces_nothing || copy_is_folder_of(path, run)) {
        return true;
    }
    there = recording_is(path) ? recording_open_rest(path, NULL) : NULL;
    stays = there != NULL && run != 0 && there->program.run.id == run;
    recording_close(there);
    return stays;
}

/* The first part decides where the others are. Another process of the run may do so, too: who comes
 * first has the name. */
static int create_first(struct recordparts *parts) {
    char path[sizeof parts->file.path];
    enum recordfile_older older = RECORDFILE_KEEP;
    SCOPE_FD int lock = -1;
    recordparts_path(parts, 0, path, sizeof path);
    if (access(path, F_OK) == 0) {
        struct stat ours;
        struct stat there;
        lock = recordfile_lock(path);
        if (is_to_stay(parts, path)) {
            copy_path_beside(path, parts->claim->header, ".mtr", parts->path,
                             sizeof parts->recording->path);
            recordparts_path(parts, 0, path, sizeof path);
        } else if (lock < 0 || (fstat(lock, &ours) == 0 && lstat(path, &there) == 0 &&
                                ours.st_dev == there.st_dev && ours.st_ino == there.st_ino)) {
            older = RECORDFILE_REPLACE; /* nobody else has the name by now */
        }
    }
    return recordfile_create(&parts->file, path, older, &parts->header, parts->error);
}

static int recordparts_create(struct recordparts *parts) {
    enum { TRIES = 8 };
    char path[sizeof parts->file.path];
    int result = -1;
    if (parts->header.part != 0) {
        recordparts_path(parts, parts->header.part, path, sizeof path);
        result =
            recordfile_create(&parts->file, path, RECORDFILE_REPLACE, &parts->header, parts->error);
    } else {
        result = create_first(parts);
        for (int tries = 1; tries < TRIES && result != 0 && parts->file.reason == EEXIST; tries++) {
            *parts->error = (struct error){""};
            result = create_first(parts);
        }
    }
    if (result != 0) {
        return -1;
    }
    if (!parts->claim->is_outside) {
        owner_give(parts->file.fd, &parts->claim->header->owner);
    }
    if (write_program(parts) != 0) {
        unlink(parts->file.path);
        recordfile_release(&parts->file);
        return -1;
    }
    parts->start_bytes = parts->file.size;
    recordparts_begin(parts);
    return 0;
}

int recordparts_close(struct recordparts *parts) {
    return recordparts_write_tables(parts) != 0 ? -1 : recordfile_close(&parts->file, parts->error);
}

int recordparts_rotate(struct recordparts *parts) {
    if (parts->recording->rotate_bytes == 0 ||
        parts->file.size - parts->start_bytes < parts->recording->rotate_bytes) {
        return 0;
    }
    if (recordparts_close(parts) != 0) {
        return -1;
    }
    parts->earlier_bytes += parts->file.size;
    parts->header.part++;
    recordtables_forget(parts->tables);
    return recordparts_create(parts);
}

/* --- opening ---------------------------------------------------------------------------------- */

/* 1; 0: there is nothing to go on with; -1: failed. Of parts with the same name some may be left
 * from an older recording that came further. */
static int recordparts_resume(struct recordparts *parts) {
    struct recording *there = NULL;
    char path[sizeof parts->file.path];
    uint32_t part = 0;
    int result = 0;
    do { /* up to the last part there is, whoever wrote it */
        recordparts_path(parts, part + 1, path, sizeof path);
    } while (access(path, F_OK) == 0 && ++part != 0);
    for (part++; part-- > 0 && result == 0;) {
        parts->header.part = part;
        recordparts_path(parts, part, path, sizeof path);
        result = recordfile_resume(&parts->file, path, &parts->header, parts->claim->header, &there,
                                   parts->error);
    }
    if (result > 0 && recordtables_resume(parts->tables, there) != 0) {
        result = error_set(parts->error, "out of memory while recording");
    }
    if (result > 0) {
        recordparts_begin(parts);
    }
    recording_close(there);
    return result;
}

static int create_elsewhere(struct recordparts *parts) {
    char *path = parts->path;
    char wanted[sizeof parts->recording->path];
    struct error why = *parts->error;
    snprintf(wanted, sizeof wanted, "%s", path);
    if ((size_t)snprintf(path, sizeof wanted, "%s/%s", pathname_temporary(),
                         strrchr(wanted, '/') + 1) < sizeof wanted &&
        recordparts_create(parts) == 0) {
        error_set(parts->error, "%.300s; it is at %.190s", why.message, path);
        return 0;
    }
    memcpy(path, wanted, sizeof wanted);
    *parts->error = why;
    return -1;
}

int recordparts_open(struct recordparts *parts, const struct claim *claim,
                     struct recordtables *tables, struct error *error) {
    struct memtrace_recording *recording = claim_recording(claim);
    int result;
    *parts = (struct recordparts){.claim = claim,
                                  .recording = recording,
                                  .path = claim->is_outside ? claim->output : recording->path,
                                  .tables = tables,
                                  .file = RECORDFILE_NONE,
                                  .error = error};
    parts->header = (struct memtrace_recording_header){
        .version = MEMTRACE_RECORDING_VERSION,
        .header_size = sizeof parts->header,
        .byte_order = MEMTRACE_BYTE_ORDER,
        .pid = claim->header->pid,
        .process_start_ticks = claim->header->process_start_ticks,
        .flags = recording->flags & ~(MEMTRACE_RECORDING_THIN | MEMTRACE_RECORDING_THINNED),
    };
    memcpy(parts->header.magic, MEMTRACE_RECORDING_MAGIC, sizeof parts->header.magic);
    recording->path[sizeof recording->path - 1] = '\0';
    result = recordparts_resume(parts);
    if (result == 0) {
        return recordparts_create(parts) == 0 ? 0 : create_elsewhere(parts);
    }
    return result > 0 ? 0 : -1;
}

int recordparts_reopen(const struct recordparts *parts, uint32_t part, struct recordfile *file) {
    struct memtrace_recording_header header = parts->header;
    struct recording *there;
    char path[sizeof file->path];
    int result;
    header.part = part;
    recordparts_path(parts, part, path, sizeof path);
    result = recordfile_resume(file, path, &header, parts->claim->header, &there, parts->error);
    recording_close(there);
    return result;
}
