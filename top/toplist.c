/* SPDX-License-Identifier: MIT */
/* toplist.c: see toplist.h. */
#include "top/toplist.h"

#include "analyze/base/pathname.h"
#include "analyze/read/arguments.h"
#include "analyze/read/profile.h"
#include "analyze/read/recording.h"
#include "analyze/read/region.h"
#include "collect/clock.h"
#include "collect/recover.h"
#include "collect/timeline.h"
#include "memtrace/events.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_FILES = 2000 };

/* ---- One item ---- */

/* "server --port 80" */
static void list_describe(struct toplist_item *item, const struct memtrace_header *header) {
    struct arguments left = arguments_of(header);
    const char *at = arguments_next(&left);
    bool is_merged = header->merged != 0;
    size_t used =
        (size_t)snprintf(item->name, sizeof item->name, "%s",
                         is_merged || header->executable[0] == '\0' ? pathname_base(item->path)
                                                                    : memtrace_program(header));
    while (!is_merged && used < sizeof item->name && (at = arguments_next(&left)) != NULL) {
        used += (size_t)snprintf(item->name + used, sizeof item->name - used, " %s",
                                 *at != '\0' ? at : "''");
    }
    item->pid = (pid_t)header->pid;
    item->start_ticks = header->process_start_ticks;
}

/* Of a region false: it has ended, or begins only now. */
static bool read_profile(struct toplist_item *item, bool is_region) {
    struct profile *profile = profile_open(item->path, NULL);
    bool is_there =
        profile != NULL &&
        (!is_region || (profile->live && profile_load_u32(&profile_header(profile)->state) ==
                                             MEMTRACE_STATE_RUNNING));
    if (is_there) {
        const struct memtrace_header *header = &profile->header;
        struct memtrace_point sum = {0};
        timeline_sum(profile, &sum);
        item->live_bytes = sum.live_bytes;
        item->allocations = sum.alloc_count;
        item->is_running = is_region;
        item->start_ns = is_region ? header->start_monotonic_ns : 0;
        item->resident_bytes = is_region ? timeline_resident(item->pid) : 0;
        list_describe(item, header);
        item->up_ns = header->end_monotonic_ns > header->start_monotonic_ns
                          ? header->end_monotonic_ns - header->start_monotonic_ns
                          : header->clock_ns;
    }
    profile_close(profile);
    return is_there;
}

/* By the table of threads that was written last. */
static void sum_recording(struct toplist_item *item, const struct recording *recording) {
    struct recording_buffer buffer = {0};
    size_t i = recording->block_count;
    uint64_t taken = 0;
    uint64_t freed = 0;
    while (i > 0 && recording->blocks[i - 1].block.kind != MEMTRACE_BLOCK_THREADS) {
        i--;
    }
    if (i > 0 && recording_payload(recording, i - 1, &buffer, NULL) == 0) {
        const struct memtrace_thread_record *threads = (const void *)buffer.bytes;
        for (size_t j = 0; j < buffer.size / sizeof *threads; j++) {
            item->allocations += threads[j].counts.alloc_count;
            taken += threads[j].counts.alloc_bytes;
            freed += threads[j].counts.free_bytes;
        }
    }
    item->live_bytes = taken > freed ? taken - freed : 0;
    recording_buffer_free(&buffer);
}

/* Later parts of one that is rotated belong to the first. */
static bool read_recording(struct toplist_item *item) {
    struct recording *recording = recording_open(item->path, NULL);
    bool is_there = recording != NULL && recording->header.part == 0;
    if (is_there) {
        sum_recording(item, recording);
        list_describe(item, &recording->program);
        item->up_ns = recording->program.clock_ns;
        item->grows = !recording->closed;
    }
    recording_close(recording);
    return is_there;
}

/* ---- The list that comes to be ---- */

/* A look; what it finds is the memory of its job. */
struct look {
    const struct toplist *before;
    struct toplist now;
    char run[PATH_MAX]; /* ""; of all programs */
};

/* What was there at the look before. NULL: it was not. */
static const struct toplist_item *list_find(const struct toplist *list, const char *path) {
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->items[i].path, path) == 0) {
            return &list->items[i];
        }
    }
    return NULL;
}

static void list_add(struct toplist *to, const struct toplist_item *item) {
    job_grow(&to->items, &to->room, to->count, sizeof *item);
    to->items[to->count++] = *item;
}

static void set_rates(struct toplist_item *item, const struct toplist_item *before) {
    double seconds = before != NULL && item->seen_ns > before->seen_ns
                         ? (double)(item->seen_ns - before->seen_ns) / 1e9
                         : 0;
    item->has_rates = seconds > 0;
    if (item->has_rates) {
        item->live_change = ((double)item->live_bytes - (double)before->live_bytes) / seconds;
        item->rate = ((double)item->allocations - (double)before->allocations) / seconds;
    }
}

/* ---- Programs that run ---- */

/* Whether `path` is the run's, or lies in its folder or in that which it has while it goes on. */
static bool list_is_in(const char *path, const char *run) {
    size_t length = strlen(run);
    if (strncmp(path, run, length) != 0) {
        return false;
    }
    path += length;
    path += strncmp(path, ".part", 5) == 0 ? 5 : 0;
    return *path == '\0' || *path == '/';
}

static void list_add_region(struct look *look, const struct region *region) {
    struct memtrace_header header;
    const struct memtrace_recording *recording = (const void *)header.recording;
    struct toplist_item item = {.pid = region->pid};
    if (!region->alive || region->is_foreign || !recover_is_meant(region) ||
        region_read_header(region->path, &header) != REGION_HEADER ||
        (look->run[0] != '\0' && !list_is_in(header.output, look->run) &&
         !(memtrace_is_recorded(recording) && list_is_in(recording->path, look->run)))) {
        return;
    }
    item.path = job_string(region->path);
    item.seen_ns = clock_now_ns();
    if (read_profile(&item, true)) {
        item.up_ns = item.seen_ns > item.start_ns ? item.seen_ns - item.start_ns : 0;
        set_rates(&item, list_find(look->before, item.path));
        list_add(&look->now, &item);
    }
}

/* ---- Files ---- */

/* Whether what runs has the same process. */
static bool list_runs(const struct toplist *to, const struct toplist_item *item) {
    for (size_t i = 0; i < to->count; i++) {
        if (to->items[i].is_running && to->items[i].pid == item->pid &&
            to->items[i].start_ticks == item->start_ticks) {
            return true;
        }
    }
    return false;
}

/* As it was, where the file has not changed. */
static void list_add_file(struct look *look, const char *path, uint64_t bytes) {
    const struct toplist_item *before = list_find(look->before, path);
    struct toplist_item item = {0};
    bool is_there = before != NULL && !before->is_running && before->file_bytes == bytes;
    if (is_there) {
        item = *before;
        item.has_rates = false;
    }
    item.path = job_string(path);
    item.file_bytes = bytes;
    item.seen_ns = clock_now_ns();
    if (!is_there) {
        is_there = recording_is(path) ? read_recording(&item) : read_profile(&item, false);
    }
    if (is_there && !list_runs(&look->now, &item)) {
        if (item.grows) {
            set_rates(&item, before);
        }
        list_add(&look->now, &item);
    }
}

static void list_close_folder(void *opened) {
    closedir(opened);
}

/* And of the folders in it: those of machines, as `memtrace gather` makes them, and of runs. */
static void list_add_folder(struct look *look, const char *folder, unsigned deeper) {
    const struct dirent *entry;
    DIR *opened = opendir(folder);
    if (opened == NULL) {
        return;
    }
    job_undo(list_close_folder, opened);
    while (look->now.count < MOST_FILES && (entry = readdir(opened)) != NULL) {
        char path[PATH_MAX];
        struct stat status;
        if (entry->d_name[0] == '.' ||
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) >= (int)sizeof path ||
            stat(path, &status) != 0) {
            continue;
        }
        if (S_ISDIR(status.st_mode) && deeper > 0) {
            list_add_folder(look, path, deeper - 1);
        } else if (S_ISREG(status.st_mode) && pathname_is_ours(entry->d_name)) {
            list_add_file(look, path, (uint64_t)status.st_size);
        }
    }
    job_undo_now(opened);
}

/* ---- All of it ---- */

static double item_worth(const struct toplist *list, const struct toplist_item *item) {
    switch (list->sort) {
    case TOPLIST_LIVE:
        return (double)item->live_bytes;
    case TOPLIST_CHANGE:
        return item->live_change;
    case TOPLIST_RATE:
        return item->rate;
    case TOPLIST_RESIDENT:
        return (double)item->resident_bytes;
    }
    return 0;
}

static int items_by_worth(const void *left, const void *right, void *context) {
    const struct toplist *list = context;
    const struct toplist_item *a = left;
    const struct toplist_item *b = right;
    double difference = item_worth(list, b) - item_worth(list, a);
    if (difference != 0) {
        return (difference > 0) != list->reverse ? 1 : -1;
    }
    return a->pid != b->pid ? (a->pid > b->pid) - (a->pid < b->pid) : strcmp(a->path, b->path);
}

void toplist_sort(struct toplist *list) {
    if (list->count > 1) {
        qsort_r(list->items, list->count, sizeof *list->items, items_by_worth, list);
    }
}

/* As the program itself names it in its region. */
static void make_absolute(const char *name, char path[PATH_MAX]) {
    char folder[PATH_MAX];
    size_t length;
    if (realpath(name, path) != NULL) {
        return;
    }
    if (name[0] == '/' || getcwd(folder, sizeof folder) == NULL ||
        snprintf(path, PATH_MAX, "%s/%s", folder, name) >= PATH_MAX) {
        snprintf(path, PATH_MAX, "%s", name);
    }
    length = strlen(path);
    while (length > 1 && path[length - 1] == '/') {
        path[--length] = '\0';
    }
}

static void list_look(void *what) {
    struct look *look = what;
    struct error error;
    struct region *regions;
    size_t count;
    char growing[PATH_MAX];
    job_check(region_list(&regions, &count, &error), &error);
    job_undo(free, regions);
    for (size_t i = 0; i < count; i++) {
        list_add_region(look, &regions[i]);
    }
    if (look->run[0] != '\0') {
        list_add_folder(look, look->run, 1);
        if (snprintf(growing, sizeof growing, "%s.part", look->run) < (int)sizeof growing) {
            list_add_folder(look, growing, 0);
        }
    }
}

int toplist_look(struct toplist *list, struct error *error) {
    struct look look = {.before = list, .now = *list};
    struct job_memory *memory = NULL;
    double begin = clock_processor_seconds();
    look.now.items = NULL;
    look.now.count = look.now.room = 0;
    if (list->of != NULL) {
        make_absolute(list->of, look.run);
    }
    if (job_run(list_look, &look, &memory, error) != 0) {
        return -1;
    }
    job_free(&list->memory);
    *list = look.now;
    list->memory = memory;
    toplist_sort(list);
    list->looking_seconds = clock_processor_seconds() - begin;
    return 0;
}

void toplist_free(struct toplist *list) {
    job_free(&list->memory);
    *list = (struct toplist){0};
}
