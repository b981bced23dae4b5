/* SPDX-License-Identifier: MIT */
/* toplist.c: see toplist.h. */
#include "top/toplist.h"

#include "analyze/base/array.h"
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

enum { MOST_FILES = 2000, NAME = 256 };

/* ---- One item ---- */

static void free_item(struct toplist_item *item) {
    free(item->path);
    free(item->name);
}

/* "server --port 80" */
static char *name_of(const struct memtrace_header *header, const char *path) {
    struct arguments left = arguments_of(header);
    const char *at = arguments_next(&left);
    size_t used;
    char *name = malloc(NAME);
    if (name == NULL) {
        return NULL;
    }
    used = (size_t)snprintf(name, NAME, "%s",
                            header->merged != 0 || header->executable[0] == '\0'
                                ? pathname_base(path)
                                : memtrace_program(header));
    while (header->merged == 0 && used < NAME && (at = arguments_next(&left)) != NULL) {
        used += (size_t)snprintf(name + used, NAME - used, " %s", *at != '\0' ? at : "''");
    }
    return name;
}

static bool describe(struct toplist_item *item, const struct memtrace_header *header) {
    item->name = name_of(header, item->path);
    item->pid = (pid_t)header->pid;
    item->start_ticks = header->process_start_ticks;
    return item->name != NULL;
}

static void set_sum(struct toplist_item *item, const struct memtrace_point *sum) {
    item->live_bytes = sum->live_bytes;
    item->allocations = sum->alloc_count;
}

/* false: it has ended, or begins only now, or there is no memory. */
static bool read_region(struct toplist_item *item) {
    struct profile *profile = profile_open(item->path, NULL);
    bool is_there = profile != NULL && profile->live &&
                    profile_load_u32(&profile_header(profile)->state) == MEMTRACE_STATE_RUNNING;
    if (is_there) {
        struct memtrace_point sum = {0};
        timeline_sum(profile, &sum);
        set_sum(item, &sum);
        item->is_running = true;
        item->start_ns = profile->header.start_monotonic_ns;
        item->resident_bytes = timeline_resident(item->pid);
        is_there = describe(item, &profile->header);
    }
    profile_close(profile);
    return is_there;
}

static bool read_profile(struct toplist_item *item) {
    struct memtrace_point sum = {0};
    struct profile *profile = profile_open(item->path, NULL);
    bool is_there = profile != NULL && describe(item, &profile->header);
    if (is_there) {
        const struct memtrace_header *header = &profile->header;
        timeline_sum(profile, &sum);
        set_sum(item, &sum);
        item->up_ns = header->end_monotonic_ns > header->start_monotonic_ns
                          ? header->end_monotonic_ns - header->start_monotonic_ns
                          : header->clock_ns;
    }
    profile_close(profile);
    return is_there;
}

/* By the table of threads that was written last. */
static struct memtrace_point sum_recording(const struct recording *recording) {
    struct memtrace_point sum = {0};
    struct recording_buffer buffer = {0};
    size_t i = recording->block_count;
    uint64_t freed = 0;
    while (i > 0 && recording->blocks[i - 1].block.kind != MEMTRACE_BLOCK_THREADS) {
        i--;
    }
    if (i > 0 && recording_payload(recording, i - 1, &buffer, NULL) == 0) {
        const struct memtrace_thread_record *threads = (const void *)buffer.bytes;
        for (size_t j = 0; j < buffer.size / sizeof *threads; j++) {
            sum.alloc_count += threads[j].counts.alloc_count;
            sum.alloc_bytes += threads[j].counts.alloc_bytes;
            freed += threads[j].counts.free_bytes;
        }
    }
    sum.live_bytes = sum.alloc_bytes > freed ? sum.alloc_bytes - freed : 0;
    recording_buffer_free(&buffer);
    return sum;
}

/* Later parts of one that is rotated belong to the first. */
static bool read_recording(struct toplist_item *item) {
    struct recording *recording = recording_open(item->path, NULL);
    bool is_there =
        recording != NULL && recording->header.part == 0 && describe(item, &recording->program);
    if (is_there) {
        struct memtrace_point sum = sum_recording(recording);
        set_sum(item, &sum);
        item->up_ns = recording->program.clock_ns;
        item->grows = !recording->closed;
    }
    recording_close(recording);
    return is_there;
}

/* ---- The list that comes to be ---- */

/* What was there at the look before. NULL: it was not. */
static struct toplist_item *find(const struct toplist *list, const char *path) {
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i].path != NULL && strcmp(list->items[i].path, path) == 0) {
            return &list->items[i];
        }
    }
    return NULL;
}

/* Takes over what the item has, in any case. 0, or -1: out of memory. */
static int add(struct toplist *to, struct toplist_item *item) {
    if (array_grow(&to->items, &to->room, to->count, sizeof *item) != 0) {
        free_item(item);
        return -1;
    }
    to->items[to->count++] = *item;
    return 0;
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
static bool is_in(const char *path, const char *run) {
    size_t length = strlen(run);
    if (strncmp(path, run, length) != 0) {
        return false;
    }
    path += length;
    path += strncmp(path, ".part", 5) == 0 ? 5 : 0;
    return *path == '\0' || *path == '/';
}

static bool is_of(const struct memtrace_header *header, const char *run) {
    const struct memtrace_recording *recording = (const void *)header->recording;
    return run == NULL || is_in(header->output, run) ||
           (memtrace_is_recorded(recording) && is_in(recording->path, run));
}

static int add_region(const struct toplist *list, struct toplist *to, const struct region *region,
                      const char *run) {
    struct memtrace_header header;
    struct toplist_item item = {.pid = region->pid};
    if (!region->alive || region->is_foreign || !recover_is_meant(region) ||
        region_read_header(region->path, &header) != REGION_HEADER || !is_of(&header, run)) {
        return 0;
    }
    item.path = strdup(region->path);
    item.seen_ns = clock_now_ns();
    if (item.path == NULL || !read_region(&item)) {
        free_item(&item);
        return 0;
    }
    item.up_ns = item.seen_ns > item.start_ns ? item.seen_ns - item.start_ns : 0;
    set_rates(&item, find(list, item.path));
    return add(to, &item);
}

static int add_regions(const struct toplist *list, struct toplist *to, const char *run,
                       struct error *error) {
    struct region *regions;
    size_t count;
    int result = region_list(&regions, &count, error);
    if (result != 0) {
        return -1;
    }
    for (size_t i = 0; result == 0 && i < count; i++) {
        result = add_region(list, to, &regions[i], run);
    }
    free(regions);
    return result == 0 ? 0 : error_set(error, "out of memory");
}

/* ---- Files ---- */

/* Whether what runs has the same process. */
static bool runs(const struct toplist *to, const struct toplist_item *item) {
    for (size_t i = 0; i < to->count; i++) {
        if (to->items[i].is_running && to->items[i].pid == item->pid &&
            to->items[i].start_ticks == item->start_ticks) {
            return true;
        }
    }
    return false;
}

/* As it was, where the file has not changed. */
static bool keep_or_read(struct toplist_item *item, struct toplist_item *before) {
    if (before == NULL || before->is_running || before->file_bytes != item->file_bytes) {
        return recording_is(item->path) ? read_recording(item) : read_profile(item);
    }
    item->name = before->name;
    before->name = NULL;
    item->pid = before->pid;
    item->start_ticks = before->start_ticks;
    item->grows = before->grows;
    item->up_ns = before->up_ns;
    item->live_bytes = before->live_bytes;
    item->allocations = before->allocations;
    return item->name != NULL;
}

static int add_file(const struct toplist *list, struct toplist *to, const char *path,
                    uint64_t bytes) {
    struct toplist_item *before = find(list, path);
    struct toplist_item item = {
        .path = strdup(path), .file_bytes = bytes, .seen_ns = clock_now_ns()};
    if (item.path == NULL || !keep_or_read(&item, before) || runs(to, &item)) {
        free_item(&item);
        return 0;
    }
    if (item.grows) {
        set_rates(&item, before);
    }
    return add(to, &item);
}

/* And of the folders in it: those of machines, as `memtrace gather` makes them, and of runs. */
static int add_folder(const struct toplist *list, struct toplist *to, const char *folder,
                      unsigned deeper) {
    const struct dirent *entry;
    int result = 0;
    DIR *opened = opendir(folder);
    while (opened != NULL && result == 0 && to->count < MOST_FILES &&
           (entry = readdir(opened)) != NULL) {
        char path[PATH_MAX];
        struct stat status;
        if (entry->d_name[0] == '.' ||
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) >= (int)sizeof path ||
            stat(path, &status) != 0) {
            continue;
        }
        if (S_ISDIR(status.st_mode) && deeper > 0) {
            result = add_folder(list, to, path, deeper - 1);
        } else if (S_ISREG(status.st_mode) && pathname_is_ours(entry->d_name)) {
            result = add_file(list, to, path, (uint64_t)status.st_size);
        }
    }
    if (opened != NULL) {
        closedir(opened);
    }
    return result;
}

static int add_files(const struct toplist *list, struct toplist *to, const char *run,
                     struct error *error) {
    char growing[PATH_MAX];
    int result = add_folder(list, to, run, 1);
    if (result == 0 && snprintf(growing, sizeof growing, "%s.part", run) < (int)sizeof growing) {
        result = add_folder(list, to, growing, 0);
    }
    return result == 0 ? 0 : error_set(error, "out of memory");
}

/* ---- All of it ---- */

static double worth(const struct toplist *list, const struct toplist_item *item) {
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

static int by_worth(const void *left, const void *right, void *context) {
    const struct toplist *list = context;
    const struct toplist_item *a = left;
    const struct toplist_item *b = right;
    double difference = worth(list, b) - worth(list, a);
    if (difference != 0) {
        return (difference > 0) != list->reverse ? 1 : -1;
    }
    return a->pid != b->pid ? (a->pid > b->pid) - (a->pid < b->pid) : strcmp(a->path, b->path);
}

void toplist_sort(struct toplist *list) {
    if (list->count > 1) {
        qsort_r(list->items, list->count, sizeof *list->items, by_worth, list);
    }
}

static void free_items(struct toplist *list) {
    for (size_t i = 0; i < list->count; i++) {
        free_item(&list->items[i]);
    }
    free(list->items);
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

int toplist_look(struct toplist *list, struct error *error) {
    struct toplist now = *list;
    char run[PATH_MAX];
    double begin = clock_processor_seconds();
    int result;
    now.items = NULL;
    now.count = now.room = 0;
    if (list->of != NULL) {
        make_absolute(list->of, run);
    }
    result = add_regions(list, &now, list->of != NULL ? run : NULL, error);
    if (result == 0 && list->of != NULL) {
        result = add_files(list, &now, run, error);
    }
    if (result != 0) {
        free_items(&now);
        return -1;
    }
    free_items(list);
    *list = now;
    toplist_sort(list);
    list->looking_seconds = clock_processor_seconds() - begin;
    return 0;
}

void toplist_free(struct toplist *list) {
    free_items(list);
    *list = (struct toplist){0};
}
