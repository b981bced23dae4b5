/* SPDX-License-Identifier: MIT */
/* runwatch.c: the processes of a run, while they run. See runwatch.h. */
#include "collect/runwatch.h"

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

enum membership { MEMBER, NO_MEMBER, NOT_YET };

static enum membership membership(const struct runwatch *watch, const char *path) {
    struct memtrace_header header;
    enum region_header found = region_read_header(path, &header);
    if (found != REGION_HEADER) {
        return found == REGION_NO_FILE ? NO_MEMBER : NOT_YET;
    }
    return watch->run->id != 0 && header.run.id == watch->run->id ? MEMBER : NO_MEMBER;
}

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
    struct dirent *entry;
    DIR *directory = opendir(folder);
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        struct region region;
        char path[512];
        enum membership member;
        if (snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) >= (int)sizeof path ||
            region_parse(path, &region) != 0 || runwatch_is_attached(watch, path)) {
            continue;
        }
        member = membership(watch, path);
        is_done &= member == NO_MEMBER || (member == MEMBER && runwatch_attach(watch, path));
    }
    if (directory != NULL) {
        closedir(directory);
    }
    return is_done;
}

/* The latest change in any of the folders; -1 where more may come within the same tick. */
static int64_t changed_ns(const struct region_folders *folders, size_t count) {
    int64_t latest = 0;
    for (size_t i = 0; i < count; i++) {
        struct stat status;
        if (stat(folders->path[i], &status) == 0) {
            int64_t ns = (int64_t)status.st_mtim.tv_sec * 1000000000 + status.st_mtim.tv_nsec;
            latest = ns > latest ? ns : latest;
        }
    }
    return (int64_t)clock_kernel_ns(CLOCK_REALTIME) - latest > CLOCK_STEP_NS ? latest : -1;
}

static void runwatch_look(struct runwatch *watch) {
    struct region_folders folders;
    size_t count = region_folders(geteuid(), &folders);
    int64_t changed = changed_ns(&folders, count);
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

/* Whether the region is finished now. The last one of the command's process waits for its end, when
 * it is known whether there were others. */
static bool runwatch_is_over(const struct runwatch *watch, size_t place) {
    const struct collector *collector = watch->processes[place];
    return (!is_first_process(watch, place) ||
            claim_load_u32(&collector->claim.header->state) == MEMTRACE_STATE_EXECED) &&
           collector_over(collector);
}

int runwatch_tick(struct runwatch *watch) {
    int wait = LONGEST_WAIT_MS;
    runwatch_look(watch);
    for (size_t i = watch->count; i-- > 0;) {
        if (runwatch_is_over(watch, i)) {
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

static uint64_t start_of(const struct collector *collector) {
    return collector->claim.header->start_monotonic_ns;
}

/* Of the regions of the command's process the one that is due now: the first by its start. Returns
 * the number of them. */
static size_t next_image(const struct runwatch *watch, size_t *place) {
    size_t count = 0;
    for (size_t i = 0; i < watch->count; i++) {
        if (is_first_process(watch, i)) {
            if (count == 0 || start_of(watch->processes[i]) < start_of(watch->processes[*place])) {
                *place = i;
            }
            count++;
        }
    }
    return count;
}

/* It may have ended while it was ours still, and left its profile to us: then that is put in its
 * place as soon as the process is gone. (The runtime says that it has ended, then looks whether it
 * has a collector.) Whether it was. */
static bool take_what_was_left(struct collector *collector, const char *path) {
    enum { STEPS = 1000, STEP_MS = 1 };
    if (claim_load_u32(&collector->claim.header->state) == MEMTRACE_STATE_RUNNING &&
        !collector_over(collector)) {
        return false;
    }
    for (int step = 0; step < STEPS && !collector_over(collector); step++) {
        poll(NULL, 0, STEP_MS);
    }
    collector_detach(collector);
    recover_region(path, NULL, NULL);
    return true;
}

/* It goes on without us. */
static void let_go(struct runwatch *watch, struct collector *collector) {
    char path[sizeof collector->claim.region.path];
    bool is_recorded = collector->record != NULL;
    strcpy(path, collector->claim.region.path);
    snprintf(collector->claim.header->output, sizeof collector->claim.header->output, "%s",
             watch->run->path);
    __atomic_store_n(&collector->claim.header->collector_pid, 0, __ATOMIC_SEQ_CST);
    if (is_recorded || !take_what_was_left(collector, path)) {
        collector_detach(collector);
    }
    free(collector);
    if (is_recorded) {
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
    size_t place = 0;
    size_t images;
    watch->looked_ns = -1;
    runwatch_look(watch);
    finish_ended(watch);
    while ((images = next_image(watch, &place)) != 0) {
        runwatch_finish(watch, place, images == 1);
    }
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
