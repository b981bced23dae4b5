/* SPDX-License-Identifier: MIT */
/*
 * apisession.c: what this server is, what is open, and what may be opened besides: files and runs
 * in the folders that the server was started for, running programs, and those that were killed.
 */
#include "analyze/base/pathname.h"
#include "analyze/read/recording.h"
#include "analyze/read/region.h"
#include "collect/recover.h"
#include "memtrace/version.h"
#include "web/server/apilist.h"
#include "web/server/apitable.h"
#include "web/server/hub.h"
#include "web/server/request.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *const kinds[] = {"profile", "recording", "run", "live"};
static const char *const states[] = {"opening", "open", "failed"};

/* ---- What is open ---- */

void apisession_put_source(struct jsonwriter *json, const struct hub_status *status) {
    char fingerprint[40];
    snprintf(fingerprint, sizeof fingerprint, "%016" PRIx64 "%016" PRIx64, status->fingerprint[0],
             status->fingerprint[1]);
    jsonwriter_map(json, NULL);
    jsonwriter_number(json, "id", status->number);
    jsonwriter_string(json, "name", status->title);
    jsonwriter_string(json, "path", status->path);
    jsonwriter_string(json, "kind", kinds[status->kind]);
    jsonwriter_bool(json, "live", status->live);
    if (status->state == HUB_OPEN) {
        jsonwriter_string(json, "end", status->ended);
        jsonwriter_number(json, "pid", status->pid);
    }
    jsonwriter_string(json, "state", states[status->state]);
    if (status->state == HUB_OPENING) {
        jsonwriter_number(json, "done", status->done);
        jsonwriter_number(json, "total", status->total);
        jsonwriter_string(json, "what", status->what);
    }
    if (status->state == HUB_FAILED) {
        jsonwriter_string(json, "error", status->message);
    }
    jsonwriter_string(json, "fingerprint", status->state == HUB_OPEN ? fingerprint : "");
    jsonwriter_number(json, "generation", status->generation);
    if (status->refines) {
        jsonwriter_bool(json, "refines", true);
    }
    jsonwriter_end_map(json);
}

static void put_sources(struct api_call *call, const char *name) {
    unsigned count = hub_count(call->hub);
    struct hub_status status;
    jsonwriter_array(call->json, name);
    for (unsigned i = 1; i <= count; i++) {
        if (hub_status(call->hub, i, &status)) {
            apisession_put_source(call->json, &status);
            hub_status_free(&status);
        }
    }
    jsonwriter_end_array(call->json);
}

void api_session(struct api_call *call) {
    static const char *const capabilities[] = {"sources", "timeline", "tables", "events"};
    const struct hub_options *options = hub_options(call->hub);
    struct jsonwriter *json = call->json;
    jsonwriter_map(json, NULL);
    jsonwriter_string(json, "version", MEMTRACE_VERSION);
    jsonwriter_array(json, "capabilities");
    for (size_t i = 0; i < sizeof capabilities / sizeof capabilities[0]; i++) {
        jsonwriter_string(json, NULL, capabilities[i]);
    }
    jsonwriter_end_array(json);
    jsonwriter_map(json, "limits");
    jsonwriter_number(json, "sources", HUB_SOURCES);
    jsonwriter_number(json, "rows", APITABLE_MOST_ROWS);
    jsonwriter_number(json, "parameters", REQUEST_PARAMETERS);
    jsonwriter_number(json, "address_bytes", REQUEST_URI);
    jsonwriter_number(json, "body_bytes", REQUEST_BODY);
    jsonwriter_number(json, "cache_bytes", options->cache_bytes);
    jsonwriter_end_map(json);
    put_sources(call, "sources");
    if (options->view != NULL) {
        jsonwriter_string(json, "view", options->view);
    }
    jsonwriter_end_map(json);
}

/* ---- What may be opened: looked for anew each time ---- */

enum { MOST_FILES = 10000 };

struct found_item {
    const char *path; /* of a program: its region */
    const char *name; /* of the file, or of the program */
    enum hub_kind kind;
    uint64_t bytes;
    uint64_t modified_ns;
    uint32_t pid;        /* 0: it is a file */
    uint32_t parent_pid; /* of a program */
    bool is_running;
    bool has_ended; /* not killed: its profile could not be put in its place */
};

struct found_list {
    struct found_item *items;
    size_t count, room;
};

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

static void apisession_add_file(struct found_list *list, const char *path) {
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

static void apisession_close_folder(void *folder) {
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
    job_undo(apisession_close_folder, opened);
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
        found_each(path, apisession_add_file, list);
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

/* Newest first; of the job. What `memtrace gather` receives lies in a folder for each machine. */
static struct found_list found_look(const struct hub_options *options) {
    struct found_list list = {0};
    for (size_t i = 0; i < options->folder_count; i++) {
        size_t before = list.count;
        found_each(options->folders[i], apisession_add_file, &list);
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

void api_sources(struct api_call *call) {
    struct jsonwriter *json = call->json;
    const struct found_list list = found_look(hub_options(call->hub));
    jsonwriter_map(json, NULL);
    put_sources(call, "opened");
    jsonwriter_array(json, "found");
    for (size_t i = 0; i < list.count; i++) {
        const struct found_item *item = &list.items[i];
        unsigned source = hub_find(call->hub, item->path, item->pid);
        jsonwriter_map(json, NULL);
        jsonwriter_string(json, "name", item->name);
        jsonwriter_string(json, "path", item->path);
        jsonwriter_string(json, "kind", kinds[item->kind]);
        if (source != 0) {
            jsonwriter_number(json, "source", source);
        }
        jsonwriter_number(json, "bytes", item->bytes);
        jsonwriter_number(json, "modified_ns", item->modified_ns);
        if (item->pid != 0) {
            jsonwriter_number(json, "pid", item->pid);
            jsonwriter_number(json, "parent_pid", item->parent_pid);
            jsonwriter_bool(json, "running", item->is_running);
            jsonwriter_bool(json, "ended", item->has_ended);
        }
        jsonwriter_end_map(json);
    }
    jsonwriter_end_array(json);
    jsonwriter_end_map(json);
}

/* ---- Opening one of them ---- */

/* The one that the body names, if it is in the list. NULL: it is not. */
static const struct found_item *find_wanted(const struct found_list *list, yajl_val body) {
    const char *path = YAJL_GET_STRING(jsontree_member(body, "path"));
    yajl_val pid = jsontree_member(body, "pid");
    for (size_t i = 0; i < list->count; i++) {
        const struct found_item *item = &list->items[i];
        if ((path != NULL && strcmp(item->path, path) == 0) ||
            (path == NULL && YAJL_IS_INTEGER(pid) && item->pid != 0 &&
             (long long)item->pid == YAJL_GET_INTEGER(pid))) {
            return item;
        }
    }
    return NULL;
}

static void close_status(void *status) {
    hub_status_free(status);
}

void api_open_source(struct api_call *call) {
    yajl_val body = api_body(call);
    struct hub_status *status = job_alloc(sizeof *status);
    const struct found_item *wanted;
    struct found_list list;
    struct error error = {""};
    unsigned number;
    if (body == NULL) {
        api_refuse(call, 400, "the body is {\"path\": TEXT} or {\"pid\": NUMBER}");
    }
    list = found_look(hub_options(call->hub));
    wanted = find_wanted(&list, body);
    if (wanted == NULL) {
        api_refuse(call, 403, "only what GET /sources lists can be opened");
    }
    number = hub_find(call->hub, wanted->path, wanted->pid);
    if (number == 0) {
        number = hub_add(
            call->hub, wanted->pid != 0 ? job_text("%" PRIu32, wanted->pid) : wanted->path, &error);
    }
    if (number == 0 || !hub_status(call->hub, number, status)) {
        api_refuse(call, 503, "%s", error.message);
    }
    job_undo(close_status, status);
    apisession_put_source(call->json, status);
}
