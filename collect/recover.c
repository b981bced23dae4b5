/* SPDX-License-Identifier: MIT */
/* recover.c: profiles of killed programs. See recover.h. */
#include "collect/recover.h"

#include "analyze/base/pathname.h"
#include "analyze/read/procfile.h"
#include "collect/orphan.h"

#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Whether the process is a `memtrace` that will finish the region itself: it may not have claimed
 * it yet when the program was a short one. */
static bool is_collector(pid_t pid) {
    char name[32];
    return pid > 0 && (pid == getpid() || /* it has just said that it cannot */
                       strcmp(procfile_read(name, sizeof name, "/proc/%ld/comm", (long)pid),
                              "memtrace\n") == 0);
}

static void recover_claimed(const struct claim *claim, recover_note note, void *context) {
    char program[sizeof claim->header->executable];
    struct recovered recovered = {.pid = claim->is_unseen ? (pid_t)claim->header->pid
                                                          : claim->region.pid,
                                  .program = program};
    struct record_result recording;
    struct profile *region;
    if (claim_load_u32(&claim->header->state) ==
        MEMTRACE_STATE_WRITTEN) { /* the profile is at its place: this is only the rest */
        claim_unlink(claim);
        return;
    }
    snprintf(program, sizeof program, "%.*s", (int)sizeof program - 1, claim->header->executable);
    recovered.ended = claim_load_u32(&claim->header->state) == MEMTRACE_STATE_ENDED ||
                      claim_load_u32(&claim->header->state) == MEMTRACE_STATE_EXECED;
    region = claim_profile(claim, NULL);
    finish_note_malloc(claim, region);
    profile_close(region);
    if (finish_recording(claim, NULL, &recording) && !finish_wants_profile(claim)) {
        /* A recording alone: what became of it, in the terms of a profile. */
        recovered.finished = (struct finished){
            .is_recording = true,
            .place = recording.trouble.message[0] != '\0' ? FINISH_ELSEWHERE : FINISH_MOVED,
            .trouble = recording.trouble};
        snprintf(recovered.finished.path, sizeof recovered.finished.path, "%s", recording.path);
        claim_unlink(claim);
    } else {
        finish_region(claim, COPY_KEEP, &recovered.finished);
    }
    claim_tell_children(claim);
    if (note != NULL) {
        note(context, &recovered);
    }
}

static int recover(const char *path, bool is_running, recover_note note, void *context) {
    struct claim claim;
    int recovered = 0;
    bool is_due;
    if (claim_open(path, &claim, NULL) != CLAIM_OK) {
        return 0;
    }
    claim.replaces_nothing = true;
    is_due = is_running ? (claim_load_u32(&claim.header->flags) & MEMTRACE_FLAG_LEFT) != 0 &&
                              claim_load_u32(&claim.header->state) != MEMTRACE_STATE_RUNNING
                        : !claim_in_use(&claim);
    if (is_due && (region_is_foreign(claim.header) ||
                   !is_collector((pid_t)claim_load_u32(&claim.header->collector_pid)))) {
        recover_claimed(&claim, note, context);
        recovered = 1;
    }
    claim_release(&claim);
    return recovered;
}

int recover_region(const char *path, recover_note note, void *context) {
    return recover(path, false, note, context);
}

int recover_left(const char *path, recover_note note, void *context) {
    return recover(path, true, note, context);
}

bool recover_is_meant(const struct region *region) {
    const char *folder = getenv("MEMTRACE_REGION_DIR");
    size_t length = folder != NULL ? strlen(folder) : 0;
    return length == 0 ||
           (strncmp(region->path, folder, length) == 0 && region->path[length] == '/');
}

int recover_killed(recover_note note, void *context, struct error *error) {
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct sigaction old;
    struct region *list;
    size_t count;
    if (region_list(&list, &count, error) != 0) {
        return -1;
    }
    /* A file over RLIMIT_FSIZE is a profile that cannot be moved, not our end. */
    sigaction(SIGXFSZ, &ignore, &old);
    /* The oldest first, so that of several with one output path it keeps the plain name. */
    for (size_t i = count; i-- > 0;) {
        struct memtrace_header header;
        if (!recover_is_meant(&list[i])) {
            continue;
        }
        if (!list[i].alive || (region_read_header(list[i].path, &header) == REGION_HEADER &&
                               header.state == MEMTRACE_STATE_EXECED)) {
            recover_region(list[i].path, note, context);
        } else {
            orphan_help(list[i].path);
        }
    }
    sigaction(SIGXFSZ, &old, NULL);
    free(list);
    return 0;
}

void recover_line(const struct recovered *recovered, char *line, size_t capacity) {
    const char *program =
        recovered->program[0] != '\0' ? pathname_base(recovered->program) : "a program";
    const struct finished *finished = &recovered->finished;
    const char *what = finished->is_recording ? "recording" : "profile";
    if (recovered->ended) {
        bool is_moved = finished->place == FINISH_MOVED;
        snprintf(line, capacity, "%s%sthe %s of %s (pid %ld) is %s %s",
                 is_moved ? "" : finished->trouble.message, is_moved ? "" : "; ", what, program,
                 (long)recovered->pid, is_moved ? "now at" : "at", finished->path);
        return;
    }
    if (finished->place == FINISH_MOVED) {
        snprintf(line, capacity, "the %s that %s (pid %ld) left unfinished is now at %s", what,
                 program, (long)recovered->pid, finished->path);
        return;
    }
    snprintf(line, capacity, "%s; what %s (pid %ld) left unfinished is at %s",
             finished->trouble.message, program, (long)recovered->pid, finished->path);
}
