/* SPDX-License-Identifier: MIT */
/* found.c: see found.h. */
#include "web/server/found.h"

#include "analyze/base/job.h"
#include "analyze/base/pathname.h"
#include "analyze/read/recording.h"
#include "analyze/read/region.h"
#include "collect/recover.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_FILES = 10000 };

/* Called by the last part of `named`. */
static void found_add(struct found_list *list, struct found_item item, const char *path,
                      const char *named) {
    item.path = job_string(path);
    item.name = job_string(pathname_base(named));
    job_grow(&list->items, &list->room, list->count, sizeof item);
    list->items[list->count++] = item;
}

static uint64_t modified_of(const struct stat *status) {
    return (uint64_t)status->st_mtim.tv_sec * 1000000000u + (uint64_t)status->st_mtim.tv_nsec;
}

static void add_file(struct found_list *list, const char *path) {
    struct found_item item = {0};
    struct stat status;
    if (stat(path, &status) != 0) {
        return;
    }
    if (S_ISDIR(status.st_mode)) {
        char summary[4096];
        struct stat ignored;
        snprintf(summary, sizeof summary, "%s/" RUN_SUMMARY, path);
        if (stat(summary, &ignored) != 0 && !pathname_is_ours(path)) {
            return;
        }
        item.kind = HUB_RUN;
    } else if (S_ISREG(status.st_mode) && pathname_is_ours(path)) {
        item.kind = recording_is(path) ? HUB_RECORDING : HUB_PROFILE;
    } else {
        return;
    }
    item.bytes = (uint64_t)status.st_size;
    item.modified_ns = modified_of(&status);
    found_add(list, item, path, path);
}

/* Hands on what stands in a folder. 0 or -1. */
static void close_folder(void *folder) {
    closedir(folder);
}

/* Hands on what stands in a folder. */
static void found_each(const char *folder, void (*take)(struct found_list *list, const char *path),
                       struct found_list *list) {
    DIR *opened = opendir(folder);
    const struct dirent *entry;
    if (opened == NULL) {
        return;
    }
    job_undo(close_folder, opened);
    for (size_t i = 0; i < MOST_FILES && (entry = readdir(opened)) != NULL; i++) {
        char path[4096];
        int size = entry->d_name[0] == '.'
                       ? -1
                       : snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (size > 0 && (size_t)size < sizeof path) {
            take(list, path);
        }
    }
}

static void add_machine(struct found_list *list, const char *path) {
    struct stat status;
    if (lstat(path, &status) == 0 && S_ISDIR(status.st_mode)) {
        found_each(path, add_file, list);
    }
}

static void add_programs(struct found_list *list) {
    struct region *regions;
    size_t count;
    if (region_list(&regions, &count, NULL) != 0) {
        return;
    }
    job_undo(free, regions);
    for (size_t i = 0; i < count; i++) {
        struct found_item item = {.kind = HUB_LIVE,
                                  .pid = (uint32_t)regions[i].pid,
                                  .is_running = regions[i].alive,
                                  .modified_ns = (uint64_t)regions[i].modified_ns};
        struct memtrace_header header;
        struct stat status;
        if (!recover_is_meant(&regions[i]) || stat(regions[i].path, &status) != 0 ||
            region_read_header(regions[i].path, &header) != REGION_HEADER) {
            continue;
        }
        header.executable[sizeof header.executable - 1] = '\0';
        item.bytes = (uint64_t)status.st_size;
        item.parent_pid = header.parent_pid;
        item.has_ended =
            header.state == MEMTRACE_STATE_ENDED || header.state == MEMTRACE_STATE_EXECED;
        found_add(list, item, regions[i].path, header.executable);
    }
}

static int newest_first(const void *left, const void *right) {
    const struct found_item *a = left;
    const struct found_item *b = right;
    if (a->modified_ns != b->modified_ns) {
        return a->modified_ns < b->modified_ns ? 1 : -1;
    }
    return strcmp(a->path, b->path);
}

/* What `memtrace gather` receives lies in a folder for each machine. */
struct found_list found_look(const struct hub_options *options) {
    struct found_list list = {0};
    for (size_t i = 0; i < options->folder_count; i++) {
        size_t before = list.count;
        found_each(options->folders[i], add_file, &list);
        if (list.count == before) {
            found_each(options->folders[i], add_machine, &list);
        }
    }
    add_programs(&list);
    if (list.count != 0) {
        qsort(list.items, list.count, sizeof *list.items, newest_first);
    }
    return list;
}
