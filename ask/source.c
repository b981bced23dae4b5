/* SPDX-License-Identifier: MIT */
/* source.c: which profile or recording is meant. See source.h. */
#include "ask/source.h"
#include "analyze/symbol/debugfile.h"

#include "analyze/base/pathname.h"
#include "analyze/model/names.h"
#include "analyze/read/embedded.h"
#include "analyze/read/region.h"
#include "analyze/read/trust.h"
#include "analyze/rows/safetext.h"
#include "analyze/window/wholemodel.h"
#include "ask/cleanup.h"
#include "ask/quantity.h"
#include "ask/runsource.h"
#include "collect/recover.h"

#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Takes the file's place in *newest if it was written later. */
static void keep_newer(char **newest, struct timespec *when, const char *path) {
    struct stat status;
    if (stat(path, &status) != 0 || !(S_ISREG(status.st_mode) || S_ISDIR(status.st_mode))) {
        return;
    }
    if (*newest == NULL || status.st_mtim.tv_sec > when->tv_sec ||
        (status.st_mtim.tv_sec == when->tv_sec && status.st_mtim.tv_nsec > when->tv_nsec)) {
        free(*newest);
        *newest = strdup(path);
        *when = status.st_mtim;
    }
}

/* Of a recording in parts the first one, which stands for all; the last one was written last. */
static char *first_part(char *path) {
    struct recording *recording = recording_open(path, NULL);
    char suffix[32] = "";
    char *first = NULL;
    size_t stem = strlen(path);
    if (recording != NULL && recording->header.part != 0) {
        snprintf(suffix, sizeof suffix, ".%u.mtr", recording->header.part);
    }
    recording_close(recording);
    stem -= stem > strlen(suffix) ? strlen(suffix) : 0;
    if (suffix[0] == '\0' || strcmp(path + stem, suffix) != 0 ||
        asprintf(&first, "%.*s.mtr", (int)stem, path) < 0) {
        return path;
    }
    if (!recording_is(first)) {
        free(first);
        return path;
    }
    free(path);
    return first;
}

/* Whether the profile of a program that was killed would go to this folder. */
static bool belongs_here(const struct region *region, const char *folder) {
    struct profile *profile = profile_open(region->path, NULL);
    const char *slash = profile != NULL ? strrchr(profile->header.output, '/') : NULL;
    bool here = slash != NULL && strlen(folder) == (size_t)(slash - profile->header.output) &&
                strncmp(profile->header.output, folder, strlen(folder)) == 0;
    profile_close(profile);
    return here;
}

/* What programs that were killed have left for this folder. */
static void keep_newer_left(char **newest, struct timespec *when) {
    char *folder = getcwd(NULL, 0);
    struct region *list;
    size_t count;
    if (folder == NULL || region_list(&list, &count, NULL) != 0) {
        free(folder);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (!list[i].alive && recover_is_meant(&list[i]) && belongs_here(&list[i], folder)) {
            keep_newer(newest, when, list[i].path);
        }
    }
    free(list);
    free(folder);
}

static void note_place(void *context, const struct recovered *recovered) {
    char **path = context;
    char *place = strdup(recovered->finished.path);
    if (place != NULL) {
        free(*path);
        *path = place;
    }
}

/* The region of the program that is asked about goes to its place; those of others stay. */
static char *move_left(char *region) {
    char *path = strdup(region);
    if (path != NULL) {
        recover_region(region, note_place, &path);
    }
    free(region);
    return path;
}

/* The newest *.mtp or *.mtr of this folder, file or run; the caller frees it. NULL: none. */
static char *find_newest(void) {
    char *newest = NULL;
    struct timespec when = {0};
    glob_t found;
    keep_newer_left(&newest, &when);
    if (glob("*.mt[pr]", 0, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++) {
            keep_newer(&newest, &when, found.gl_pathv[i]);
        }
        globfree(&found);
    }
    if (newest != NULL && newest[0] == '/') {
        newest = move_left(newest);
    }
    return newest != NULL ? first_part(newest) : NULL;
}

/* The process asked for, and where its profile was put now. */
struct recovery {
    pid_t pid;
    char path[sizeof((struct finished *)NULL)->path];
};

static void note_recovered(void *context, const struct recovered *recovered) {
    struct recovery *recovery = context;
    char line[6000];
    memcpy(recovery->path, recovered->finished.path, sizeof recovery->path);
    recover_line(recovered, line, sizeof line);
    print_safe(stderr, "memtrace: %s\n", line);
}

/* The region that a program left when it was killed. Nobody else's is touched. */
static bool find_left(struct recovery *recovery, struct region *region) {
    struct region *list;
    size_t count;
    bool found = false;
    if (region_list(&list, &count, NULL) != 0) {
        return false;
    }
    for (size_t i = 0; i < count && !found; i++) {
        if (list[i].pid == recovery->pid && !list[i].alive && recover_is_meant(&list[i])) {
            recover_region(list[i].path, note_recovered, recovery);
            *region = list[i];
            found = true;
        }
    }
    free(list);
    return found;
}

/* The file that stands for a process, and its number, if it runs. 0 or -1. */
static int find_process(uint64_t pid, char **path, pid_t *running, struct error *error) {
    struct recovery recovery = {.pid = (pid_t)pid};
    struct region region;
    char root[REGION_ROOT];
    bool found;
    if (pid > INT32_MAX) {
        return error_set(error, "there is no process %llu", (unsigned long long)pid);
    }
    found = region_find((pid_t)pid, &region, error) == 0;
    if (!found || !region.alive) {
        found |= find_left(&recovery, &region);
    }
    if (!found) {
        return -1;
    }
    *running = region.alive ? region.pid : 0;
    region_root(&region, root);
    debugfile_set_root(root);
    *path = strdup(recovery.path[0] != '\0' ? recovery.path : region.path);
    return *path != NULL ? 0 : error_set(error, "out of memory");
}

/* ---- What is in the file ---- */

enum { MOST_PARTS = 1000, FORGOTTEN_SECONDS = 3600 };

uint64_t source_bytes(const struct source *source) {
    uint64_t bytes = 0;
    struct stat status;
    for (size_t i = 0; i < source->parts.count; i++) {
        bytes += stat(source->parts.items[i]->path, &status) == 0 ? (uint64_t)status.st_size : 0;
    }
    return bytes;
}

int source_temporary(char *pattern, size_t size, const char *process, const char *rest) {
    const char *root = getenv("TMPDIR");
    int length = snprintf(pattern, size, "%s/memtrace-%s-%s",
                          root != NULL && *root != '\0' ? root : "/tmp", process, rest);
    return length > 0 && (size_t)length < size ? 0 : -1;
}

/* A command that was interrupted could not remove its own. An hour is for processes that this one
 * cannot see (containers). */
static void remove_forgotten(void) {
    char pattern[PATH_MAX];
    glob_t found;
    if (source_temporary(pattern, sizeof pattern, "*", "??????") != 0 ||
        glob(pattern, GLOB_ONLYDIR, NULL, &found) != 0) {
        return;
    }
    for (size_t i = 0; i < found.gl_pathc; i++) {
        const char *path = found.gl_pathv[i];
        long pid = strtol(strrchr(path, '/') + sizeof "/memtrace", NULL, 10);
        struct stat status;
        if (pid > 0 && kill((pid_t)pid, 0) != 0 && errno == ESRCH && lstat(path, &status) == 0 &&
            S_ISDIR(status.st_mode) && status.st_uid == geteuid() &&
            status.st_mtime + FORGOTTEN_SECONDS < time(NULL)) {
            cleanup_remove(path);
        }
    }
    globfree(&found);
}

/* NULL is allowed. */
static void drop_folder(char *folder) {
    if (folder != NULL) {
        cleanup_remove(folder);
        cleanup_forget(folder);
        free(folder);
    }
}

/* The files in the recording, in a new folder. NULL: there are none, or no place for them: the
 * report then shows module+offset. */
static char *extract_symbols(const struct recording *recording) {
    char pattern[PATH_MAX];
    char process[32];
    char *folder = NULL;
    size_t count = 0;
    remove_forgotten();
    snprintf(process, sizeof process, "%ld", (long)getpid());
    if (source_temporary(pattern, sizeof pattern, process, "XXXXXX") != 0 ||
        (folder = strdup(pattern)) == NULL) {
        return NULL;
    }
    if (cleanup_make_folder(folder) == NULL) {
        free(folder);
        return NULL;
    }
    if (embedded_extract(recording, folder, 0, &count, NULL) != 0 || count == 0) {
        drop_folder(folder);
        return NULL;
    }
    return folder;
}

/* NAME.mtr, NAME.1.mtr, NAME.2.mtr, ...: the first part stands for all that lie beside it. */
struct parts {
    const struct recording *items[MOST_PARTS];
    size_t count;
};

static bool same_run(const struct recording *first, const struct recording *other, size_t part) {
    return other->header.pid == first->header.pid &&
           other->header.process_start_ticks == first->header.process_start_ticks &&
           other->header.part == part;
}

static void close_parts(const struct recording *const *items, size_t count) {
    while (count > 0) {
        recording_close((struct recording *)items[--count]);
    }
}

/* Adds the part with this number. false: there is none. */
static bool add_part(struct parts *parts, const char *first, size_t part) {
    size_t stem = strlen(first);
    struct recording *recording;
    char *path;
    stem -= pathname_ends_in(first, ".mtr") ? 4 : 0;
    if (asprintf(&path, "%.*s.%zu%s", (int)stem, first, part, first + stem) < 0) {
        return false;
    }
    recording = recording_open(path, NULL);
    free(path);
    if (recording == NULL || !same_run(parts->items[0], recording, part)) {
        recording_close(recording);
        return false;
    }
    parts->items[parts->count++] = recording;
    return true;
}

/* Opens the file and the parts that lie beside it. 0 or -1. */
static int open_parts(struct source *source, struct error *error) {
    const char *path = source->merged != NULL ? source->merged : source->path;
    struct parts parts = {.items = {recording_open(path, error)}, .count = 1};
    const struct recording **items;
    if (parts.items[0] == NULL) {
        return -1;
    }
    while (parts.items[0]->header.part == 0 && parts.count < MOST_PARTS &&
           add_part(&parts, path, parts.count)) {
    }
    items = malloc(parts.count * sizeof *items);
    if (items == NULL) {
        close_parts(parts.items, parts.count);
        return error_set(error, "out of memory");
    }
    memcpy(items, parts.items, parts.count * sizeof *items);
    source->parts = (struct timeorder_parts){items, parts.count};
    return 0;
}

static struct model *replay_file(struct source *source, const char *debug_folders,
                                 const struct replay_options *options, struct error *error) {
    struct model *model = NULL;
    if (open_parts(source, error) == 0) {
        model = source->merged == NULL ? modelcache_replay(source->parts, options, error)
                                       : model_replay(source->parts, options, error);
    }
    if (model != NULL && names_lacks_files(model, debug_folders)) {
        source->symbols = extract_symbols(source->parts.items[source->parts.count - 1]);
    }
    return model;
}

static struct model *load_file(const char *path, struct error *error) {
    struct profile *profile = profile_open(path, error);
    struct model *model = profile != NULL ? model_load(profile, error) : NULL;
    profile_close(profile);
    return model;
}

/* *running: the process that was asked for, if it runs. */
static int find_file(const char *name, char **path, pid_t *running, struct error *error) {
    uint64_t pid;
    if (name == NULL) {
        *path = find_newest();
        return *path != NULL
                   ? 0
                   : error_set(error,
                               "there is no profile (*.mtp) and no recording (*.mtr) in this "
                               "folder; name one or a PID, or make one with `memtrace run "
                               "-- PROGRAM`");
    }
    if (quantity_u64(name, &pid) == 0 && access(name, F_OK) != 0) {
        return find_process(pid, path, running, error);
    }
    *path = strdup(name);
    return *path != NULL ? 0 : error_set(error, "out of memory");
}

/* Makes the model of the file at source->path, or of the sum in source->merged. */
static int load(struct source *source, const char *debug_folders,
                const struct replay_options *options, struct error *error) {
    const char *path = source->merged != NULL ? source->merged : source->path;
    source->model = recording_is(path) ? replay_file(source, debug_folders, options, error)
                                       : load_file(path, error);
    if (source->model != NULL && source->is_running) {
        source->model->live = true;
        source->model->header.state = MEMTRACE_STATE_RUNNING;
    }
    return source->model != NULL ? 0 : -1;
}

int source_open(struct source *source, const char *name, const struct source_choice *choice,
                const char *debug_folders, const struct replay_options *options,
                struct error *error) {
    pid_t running = 0;
    *source = (struct source){.process = RUN_NONE};
    trust_folders(debug_folders);
    if (find_file(name, &source->path, &running, error) != 0) {
        return -1;
    }
    if (runsource_choose(source, choice, error) != 0 ||
        load(source, debug_folders, options, error) != 0 ||
        runsource_check(source, choice, error) != 0 ||
        framenames_read(&source->names, source->parts.items, source->parts.count, error) != 0) {
        source_close(source);
        return -1;
    }
    if (running != 0 && source->run == NULL && source->model->live &&
        region_is_foreign(&source->model->header)) {
        source->model->header.pid = (uint32_t)running; /* as it was asked for */
    }
    return 0;
}

int source_open_parts(struct source *source, const char *name, struct error *error) {
    *source = (struct source){.path = strdup(name), .process = RUN_NONE};
    if (source->path == NULL) {
        return error_set(error, "out of memory");
    }
    if (open_parts(source, error) != 0) {
        source_close(source);
        return -1;
    }
    return 0;
}

void source_close(struct source *source) {
    framenames_free(&source->names);
    drop_folder(source->symbols);
    model_free(source->model);
    close_parts(source->parts.items, source->parts.count);
    runsource_drop(source);
    run_close(source->run);
    free((void *)source->parts.items);
    free(source->path);
    *source = (struct source){0};
}

struct names *source_names(const struct source *source, const char *debug_folders,
                           void (*progress)(void *context, size_t done, size_t total),
                           struct error *error) {
    const char *first = debug_folders != NULL ? debug_folders : "/usr/lib/debug";
    struct names_options options = {
        .debug_folders = first, .progress = progress, .given = &source->names};
    struct names *names;
    char *folders = NULL;
    if (source->symbols != NULL) {
        if (asprintf(&folders, "%s:%s", first, source->symbols) < 0) {
            error_set(error, "out of memory");
            return NULL;
        }
        options.debug_folders = folders;
    }
    names = names_open(source->model, &options, error);
    free(folders);
    return names;
}
