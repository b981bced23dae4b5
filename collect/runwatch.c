/* SPDX-License-Identifier: MIT */
/* runwatch.c: the processes of a run, while they run. See runwatch.h. */
#include "collect/runwatch.h"

#include "analyze/base/scope.h"
#include "collect/clock.h"
#include "collect/orphan.h"
#include "collect/recover.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LONGEST_WAIT_MS = 100 };

/* A folder's time is the kernel's, which moves on every few milliseconds. */
#define CLOCK_STEP_NS INT64_C(20000000)

struct runwatch runwatch_begin(struct runwriter *run) {
    return (struct runwatch){.run = run, .looked_ns = -1};
}

/* --- finding ---------------------------------------------------------------------------------- */

static bool runwatch_is_attached(const struct runwatch *watch, const char *path) {
    struct stat status;
    if (lstat(path, &status) != 0) {
        return true; /* gone by now */
    }
    for (size_t i = 0; i < watch->count; i++) {
        const struct claim *claim = &watch->processes[i]->claim;
        if (claim->inode == status.st_ino && claim->device == status.st_dev) {
            return true;
        }
    }
    return false;
}

/* false: try again. */
static bool runwatch_attach(struct runwatch *watch, const char *path) {
    struct collector *collector = malloc(sizeof *collector);
    struct collector **grown =
        reallocarray(watch->processes, watch->count + 1, sizeof *watch->processes);
    enum claim_status status = CLAIM_FAILED;
    watch->processes = grown != NULL ? grown : watch->processes;
    if (collector != NULL && grown != NULL) {
        *collector = COLLECTOR_NONE;
        status = collector_attach(collector, path, watch->run, NULL);
    }
    if (status == CLAIM_OK) {
        watch->processes[watch->count++] = collector;
        watch->found_any = true;
        return true;
    }
    free(collector);
    return status == CLAIM_ABSENT;
}

/* false: something there may be ours in a moment. */
static bool runwatch_look_in(struct runwatch *watch, const char *folder) {
    bool is_done = true;
    const struct dirent *entry;
    SCOPE_FOLDER DIR *directory = opendir(folder);
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        struct memtrace_header header;
        struct region region;
        char path[512];
        if (snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) >= (int)sizeof path ||
            region_parse(path, &region) != 0 || runwatch_is_attached(watch, path)) {
            continue;
        }
        switch (region_read_header(path, &header)) {
        case REGION_HEADER:
            is_done &= watch->run->id == 0 || header.run.id != watch->run->id ||
                       runwatch_attach(watch, path);
            break;
        case REGION_NO_FILE:
            break;
        default:
            is_done = false;
        }
    }
    return is_done;
}

static void runwatch_look(struct runwatch *watch) {
    struct region_folders folders;
    size_t count = region_folders(geteuid(), &folders);
    int64_t changed = 0; /* the latest change in any of the folders */
    for (size_t i = 0; i < count; i++) {
        struct stat status;
        if (stat(folders.path[i], &status) == 0) {
            int64_t ns = (int64_t)status.st_mtim.tv_sec * 1000000000 + status.st_mtim.tv_nsec;
            changed = ns > changed ? ns : changed;
        }
    }
    if ((int64_t)clock_kernel_ns(CLOCK_REALTIME) - changed <= CLOCK_STEP_NS) {
        changed = -1; /* more may come within the same tick */
    }
    if (changed >= 0 && changed == watch->looked_ns) {
        return;
    }
    watch->looked_ns = changed;
    for (size_t i = 0; i < count; i++) {
        if (!runwatch_look_in(watch, folders.path[i])) {
            watch->looked_ns = -1;
        }
    }
}

/* --- collecting ------------------------------------------------------------------------------- */

static void runwatch_finish(struct runwatch *watch, size_t place, bool is_last) {
    struct collector *collector = watch->processes[place];
    char *text = collector_finish(collector, is_last);
    if (text != NULL) {
        collector_write(STDERR_FILENO, text);
    }
    free(text);
    free(collector);
    watch->processes[place] = watch->processes[--watch->count];
}

static void runwatch_sample(struct runwatch *watch) {
    uint64_t now = clock_now_ns();
    struct runwriter_sample sum = {.time_ns = now - watch->run->start_ns,
                                   .processes = watch->count};
    for (size_t i = 0; i < watch->count; i++) {
        struct collector *collector = watch->processes[i];
        sum.live_bytes += collector_live_bytes(collector);
        sum.resident_bytes += timeline_resident(collector->claim.region.pid);
    }
    runwriter_sample(watch->run, &sum);
}

static bool is_first_process(const struct runwatch *watch, size_t place) {
    return watch->processes[place]->claim.region.pid == watch->run->pid;
}

/* The last region of the command's process waits for its end, when it is known whether there were
 * others. */
int runwatch_tick(struct runwatch *watch) {
    int wait = LONGEST_WAIT_MS;
    runwatch_look(watch);
    for (size_t i = watch->count; i-- > 0;) {
        const struct collector *collector = watch->processes[i];
        if ((!is_first_process(watch, i) ||
             claim_load_u32(&collector->claim.header->state) == MEMTRACE_STATE_EXECED) &&
            collector_over(collector)) {
            runwatch_finish(watch, i, false);
        }
    }
    for (size_t i = 0; i < watch->count; i++) {
        int due = collector_tick(watch->processes[i]);
        wait = due < wait ? due : wait;
    }
    runwatch_sample(watch);
    return wait;
}

/* --- the end ---------------------------------------------------------------------------------- */

/* It goes on without us. It may have ended while it was ours still, and left its profile to us:
 * then that is put in its place as soon as the process is gone. (The runtime says that it has
 * ended, then looks whether it has a collector.) */
static void let_go(struct runwatch *watch, struct collector *collector) {
    enum { STEPS = 1000, STEP_MS = 1 };
    char path[sizeof collector->claim.region.path];
    bool is_recorded = collector->record != NULL;
    bool is_left;
    strcpy(path, collector->claim.region.path);
    snprintf(collector->claim.header->output, sizeof collector->claim.header->output, "%s",
             watch->run->path);
    __atomic_store_n(&collector->claim.header->collector_pid, 0, __ATOMIC_SEQ_CST);
    is_left = !is_recorded &&
              (claim_load_u32(&collector->claim.header->state) != MEMTRACE_STATE_RUNNING ||
               collector_over(collector));
    for (int step = 0; is_left && step < STEPS && !collector_over(collector); step++) {
        poll(NULL, 0, STEP_MS);
    }
    collector_detach(collector);
    free(collector);
    if (is_left) {
        recover_region(path, NULL, NULL);
    } else if (is_recorded) {
        orphan_start(path);
    }
}

/* Of others than the command's process. */
static void finish_ended(struct runwatch *watch) {
    for (size_t i = watch->count; i-- > 0;) {
        if (!is_first_process(watch, i) && collector_over(watch->processes[i])) {
            runwatch_finish(watch, i, false);
        }
    }
}

size_t runwatch_end(struct runwatch *watch) {
    size_t images; /* regions of the command's process: the first by its start is due */
    watch->looked_ns = -1;
    runwatch_look(watch);
    finish_ended(watch);
    do {
        uint64_t first_ns = UINT64_MAX;
        size_t place = 0;
        images = 0;
        for (size_t i = 0; i < watch->count; i++) {
            uint64_t start_ns = watch->processes[i]->claim.header->start_monotonic_ns;
            if (is_first_process(watch, i)) {
                place = images == 0 || start_ns < first_ns ? i : place;
                first_ns = images == 0 || start_ns < first_ns ? start_ns : first_ns;
                images++;
            }
        }
        if (images != 0) {
            runwatch_finish(watch, place, images == 1);
        }
    } while (images != 0);
    finish_ended(watch); /* that took a while */
    for (size_t i = 0; i < watch->count; i++) {
        runwriter_leave(watch->run, &watch->processes[i]->claim);
    }
    return watch->count;
}

void runwatch_let_go(struct runwatch *watch) {
    for (size_t i = 0; i < watch->count; i++) {
        runwriter_note_place(watch->run, &watch->processes[i]->claim);
        let_go(watch, watch->processes[i]);
    }
    free(watch->processes);
    watch->processes = NULL;
    watch->count = 0;
}
