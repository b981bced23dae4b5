/* SPDX-License-Identifier: MIT */
/* runfolder.c: making, filling and placing the folder of a run. See runfolder.h. */
#include "collect/runfolder.h"

#include "analyze/base/array.h"
#include "analyze/base/filemode.h"
#include "analyze/base/pathname.h"
#include "analyze/base/scope.h"
#include "analyze/read/region.h"
#include "analyze/rows/jsonwriter.h"
#include "collect/clock.h"
#include "collect/copy.h"
#include "collect/mergeprofiles.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Profiles that wait for being merged, in the folder. */
#define SMALL "small"

enum { TRIES = 100, JSON_VERSION = 1 };

/* --- making ----------------------------------------------------------------------------------- */

void runfolder_name(struct runwriter *run) {
    snprintf(run->folder, sizeof run->folder, "%s.part", run->path);
}

/* A run that was killed may have left one of this name. */
static int runfolder_make_new(struct runwriter *run) {
    int result = mkdir(run->folder, 0777);
    for (int number = 2; result != 0 && errno == EEXIST && number < TRIES; number++) {
        snprintf(run->folder, sizeof run->folder, "%s.part%d", run->path, number);
        result = mkdir(run->folder, 0777);
    }
    return result;
}

int runfolder_make(struct runwriter *run) {
    char path[sizeof run->folder + 64];
    int mark;
    if (run->has_folder) {
        return 0;
    }
    if (run->discards || runfolder_make_new(run) != 0) {
        if (snprintf(path, sizeof path, "%s/%s", pathname_temporary(), pathname_base(run->path)) >=
            (int)sizeof run->path) {
            return -1;
        }
        memcpy(run->path, path, sizeof run->path);
        runfolder_name(run);
        if (runfolder_make_new(run) != 0) {
            return -1;
        }
    }
    /* By the mark the runtime of a process that goes on knows the folder (runtime/record/finish.c).
     */
    snprintf(path, sizeof path, "%s/.run-%" PRIu64, run->folder, run->id);
    mark = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    snprintf(path, sizeof path, "%s/" SMALL, run->folder);
    run->has_folder = mark >= 0 && close(mark) == 0 && mkdir(path, 0777) == 0;
    return run->has_folder ? 0 : -1;
}

/* --- names ------------------------------------------------------------------------------------ */

void runfolder_path(const struct runwriter *run, const struct memtrace_header *header,
                    const char *ending, char *path, size_t capacity) {
    copy_path_in(run->folder, memtrace_program(header), header->pid, ending, path, capacity);
}

void runfolder_small_path(struct runwriter *run, char *path, size_t capacity) {
    snprintf(path, capacity, "%s/" SMALL "/%zu.mtp", run->folder, run->small_count++);
}

bool runfolder_is_small(const struct runwriter *run, const char *path) {
    char folder[sizeof run->folder + 64];
    snprintf(folder, sizeof folder, "%s/" SMALL "/", run->folder);
    return strncmp(path, folder, strlen(folder)) == 0;
}

/* --- what stands in its place ----------------------------------------------------------------- */

static bool runfolder_is_of_run(const char *name) {
    return pathname_is_ours(name) || strcmp(name, RUN_SUMMARY) == 0 ||
           strncmp(name, ".run-", 5) == 0;
}

static void remove_files(const char *path) {
    struct dirent *entry;
    SCOPE_FOLDER DIR *folder = opendir(path);
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        if (runfolder_is_of_run(entry->d_name)) {
            unlinkat(dirfd(folder), entry->d_name, 0);
        }
    }
}

/* If all in it is an earlier run's. */
int runfolder_clear(const char *path) {
    struct stat status;
    const struct dirent *entry;
    bool is_marked = false;
    bool is_other = false;
    if (lstat(path, &status) != 0 || !S_ISDIR(status.st_mode)) {
        return 0;
    }
    SCOPE_FOLDER DIR *folder = opendir(path);
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            is_marked |= strncmp(entry->d_name, ".run-", 5) == 0;
            is_other |= !runfolder_is_of_run(entry->d_name);
        }
    }
    if (!is_marked || is_other) {
        errno = EISDIR;
        return -1;
    }
    remove_files(path);
    return rmdir(path);
}

/* --- the end ---------------------------------------------------------------------------------- */

static size_t list_small(const struct runwriter *run, char ***paths) {
    char folder[sizeof run->folder + 64];
    const struct dirent *entry;
    size_t count = 0;
    snprintf(folder, sizeof folder, "%s/" SMALL, run->folder);
    *paths = NULL;
    SCOPE_FOLDER DIR *small = opendir(folder);
    while (small != NULL && (entry = readdir(small)) != NULL) {
        if (!pathname_ends_in(entry->d_name, ".mtp")) {
            continue;
        }
        if (array_grow_by_count(paths, count, sizeof **paths) != 0 ||
            asprintf(&(*paths)[count], "%s/%s", folder, entry->d_name) < 0) {
            break;
        }
        count++;
    }
    return count;
}

/* Where that fails they stay as they are, in the folder. */
static int merge_small(const struct runwriter *run, struct error *error) {
    char path[sizeof run->folder + 64];
    char **paths;
    size_t count = list_small(run, &paths);
    int result = 0;
    snprintf(path, sizeof path, "%s/" RUN_OTHERS, run->folder);
    if (count != 0) {
        FILE *out = fopen(path, "wxe");
        bool is_open = out != NULL;
        result = is_open ? merge_profiles(paths, count, NULL, NULL, out, error) : 0;
        if (!is_open || (fclose(out) != 0 && result == 0)) {
            result = error_set(error, "cannot write %s: %s", path, strerror(errno));
        }
        if (result != 0 && is_open) {
            unlink(path);
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (result == 0) {
            unlink(paths[i]);
        }
        free(paths[i]);
    }
    free(paths);
    snprintf(path, sizeof path, "%s/" SMALL, run->folder);
    rmdir(path);
    return result;
}

/* NAME.mtr, NAME.1.mtr and so on: the parts of a recording of the first of these names. */
unsigned runfolder_move_recording(const char *from, const char *to) {
    const char *const names[2] = {from, to};
    char paths[2][sizeof((struct runwriter *)NULL)->folder + 320];
    unsigned part = 0;
    do {
        for (int i = 0; i < 2; i++) {
            size_t stem = strlen(names[i]) - (pathname_ends_in(names[i], ".mtr") ? 4 : 0);
            if (part == 0) {
                snprintf(paths[i], sizeof paths[i], "%s", names[i]);
            } else {
                snprintf(paths[i], sizeof paths[i], "%.*s.%u%s", (int)stem, names[i], part,
                         names[i] + stem);
            }
        }
    } while (rename(paths[0], paths[1]) == 0 && ++part != 0);
    return part;
}

/* The file of the process, and of its light children, is called so now. */
static void runfolder_note_name(struct runwriter *run, struct runwriter_process *process,
                                const char *path) {
    char *old = process->file;
    process->file = NULL;
    process->has_path = false;
    for (size_t i = 0; i < run->process_count; i++) {
        struct runwriter_process *other = &run->processes[i];
        if (other == process ||
            (other->light && other->file != NULL && old != NULL && strcmp(other->file, old) == 0)) {
            free(other->file);
            other->file = strdup(pathname_base(path));
        }
    }
    free(old);
}

/* --- run.json (docs/runs.md tells what is in it) ------------------------------------------------
 */

static uint64_t since_start(const struct runwriter *run, uint64_t time_ns) {
    return time_ns > run->start_ns ? time_ns - run->start_ns : 0;
}

/* What is not known is left out. */
static void runfolder_put_text(struct jsonwriter *json, const char *name, const char *value) {
    if (value != NULL) {
        jsonwriter_string(json, name, value);
    }
}

/* Differences of what a damaged program counted may be below 0. */
static void runfolder_put_number(struct jsonwriter *json, const char *name, uint64_t value) {
    jsonwriter_integer(json, name, (int64_t)value);
}

static void runfolder_put_process(struct jsonwriter *json, const struct runwriter *run,
                                  const struct runwriter_process *process) {
    struct arguments left = process->arguments;
    const char *argument;
    const char *end =
        process->state == MEMTRACE_STATE_ENDED || process->state == MEMTRACE_STATE_WRITTEN ? "ended"
        : process->state == MEMTRACE_STATE_EXECED ? "execed"
                                                  : "killed";
    jsonwriter_map(json, NULL);
    runfolder_put_number(json, "pid", (uint64_t)process->pid);
    runfolder_put_number(json, "parent_pid", (uint64_t)process->parent_pid);
    runfolder_put_number(json, "image", process->image);
    runfolder_put_text(json, "program", process->program);
    if (left.bytes != NULL) {
        jsonwriter_array(json, "arguments");
        while ((argument = arguments_next(&left)) != NULL) {
            jsonwriter_string(json, NULL, argument);
        }
        jsonwriter_end_array(json);
    }
    runfolder_put_number(json, "start_ns", since_start(run, process->start_ns));
    runfolder_put_number(json, "end_ns", since_start(run, process->end_ns));
    jsonwriter_string(json, "end", end);
    runfolder_put_number(json, "allocations", process->allocations);
    runfolder_put_number(json, "total_bytes", process->total_bytes);
    runfolder_put_number(json, "frees", process->frees);
    runfolder_put_number(json, "leaked_bytes", process->leaked_bytes);
    runfolder_put_number(json, "suppressed_bytes", process->suppressed_bytes);
    runfolder_put_number(json, "leaked_blocks", process->leaked_blocks);
    runfolder_put_number(json, "peak_bytes", process->peak_bytes);
    runfolder_put_number(json, "lost", process->lost);
    runfolder_put_text(json, "file", process->file);
    if (process->light) {
        jsonwriter_bool(json, "light", true);
    }
    jsonwriter_end_map(json);
}

static void runfolder_put_run(struct jsonwriter *json, const struct runwriter *run,
                              const struct runwriter_exit *how) {
    struct runwriter_peak peak = runwriter_peak(run);
    SCOPE_MEMORY char *folder = getcwd(NULL, 0);
    jsonwriter_map(json, NULL);
    jsonwriter_string(json, "format", "memtrace run");
    runfolder_put_number(json, "version", JSON_VERSION);
    jsonwriter_array(json, "command");
    for (char **at = run->arguments; *at != NULL; at++) {
        jsonwriter_string(json, NULL, *at);
    }
    jsonwriter_end_array(json);
    runfolder_put_text(json, "folder", folder);
    runfolder_put_number(json, "pid", (uint64_t)run->pid);
    runfolder_put_number(json, "start_realtime_ns", run->start_realtime_ns);
    runfolder_put_number(json, "duration_ns", since_start(run, clock_now_ns()));
    jsonwriter_map(json, "exit");
    runfolder_put_number(json, how->signaled ? "signal" : "status", (uint64_t)how->number);
    jsonwriter_end_map(json);
    jsonwriter_array(json, "processes");
    for (size_t i = 0; i < run->process_count; i++) {
        runfolder_put_process(json, run, &run->processes[i]);
    }
    jsonwriter_end_array(json);
    jsonwriter_array(json, "timeline");
    for (size_t i = 0; i < run->sample_count; i++) {
        const struct runwriter_sample *sample = &run->samples[i];
        jsonwriter_array(json, NULL);
        runfolder_put_number(json, NULL, sample->time_ns);
        runfolder_put_number(json, NULL, sample->live_bytes);
        runfolder_put_number(json, NULL, sample->resident_bytes);
        runfolder_put_number(json, NULL, sample->processes);
        jsonwriter_end_array(json);
    }
    jsonwriter_end_array(json);
    jsonwriter_map(json, "peak");
    runfolder_put_number(json, "seen_bytes", peak.seen_bytes);
    runfolder_put_number(json, "at_ns", peak.at_ns);
    runfolder_put_number(json, "bound_bytes", peak.bound_bytes);
    jsonwriter_end_map(json);
    jsonwriter_end_map(json);
}

static int runfolder_write_json(const struct runwriter *run, const struct runwriter_exit *how,
                                const char *path, struct error *error) {
    SCOPE_FD int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, filemode());
    FILE *out = fd >= 0 ? fdopen(fd, "w") : NULL;
    struct jsonwriter *json;
    bool is_bad;
    if (out == NULL) {
        return error_set(error, "cannot write %s: %s", path, strerror(errno));
    }
    owner_give(scope_keep(&fd), &run->owner);
    json = jsonwriter_open(out, JSONWRITER_WIDE);
    if (json == NULL) {
        fclose(out);
        return error_set(error, "out of memory");
    }
    runfolder_put_run(json, run, how);
    jsonwriter_close(json);
    is_bad = ferror(out) != 0;
    return fclose(out) != 0 || is_bad
               ? error_set(error, "cannot write %s: %s", path, strerror(errno))
               : 0;
}

/* --- what others put there -------------------------------------------------------------------- */

static bool is_file_of_run(const struct runwriter *run, const char *path) {
    struct memtrace_header header;
    return region_read_header(path, &header) == REGION_HEADER && header.run.id == run->id;
}

bool runfolder_is_joined(const struct runwriter *run) {
    return is_file_of_run(run, run->path) || copy_is_folder_of(run->path, run->id);
}

/* A process in another namespace of pids sees no collector and writes its profile itself. (We may
 * have written it, too, by its region.) One that seemed to be the only one may have its profile at
 * the run's path by us. */
static void runfolder_take_in(struct runwriter *run, const char *path) {
    struct profile *profile = profile_open(path, NULL);
    struct runwriter_process *known =
        profile != NULL ? runwriter_find(run, &profile->header) : NULL;
    struct model *model = profile != NULL && known == NULL ? model_load(profile, NULL) : NULL;
    char to[sizeof run->folder + 300];
    if (known != NULL && !known->has_path) {
        unlink(path);
    } else if (known != NULL || model != NULL) {
        bool is_moved;
        runfolder_path(run, &profile->header, ".mtp", to, sizeof to);
        is_moved = rename(path, to) == 0;
        if (is_moved && known != NULL) {
            runfolder_note_name(run, known, to);
        } else if (is_moved) {
            runwriter_add_file(run, profile, model, pathname_base(to));
        }
    }
    model_free(model);
    profile_close(profile);
}

static void take_in_joined(struct runwriter *run) {
    const struct dirent *entry;
    if (is_file_of_run(run, run->path)) {
        runfolder_take_in(run, run->path);
    } else if (copy_is_folder_of(run->path, run->id)) {
        SCOPE_FOLDER DIR *folder = opendir(run->path);
        while (folder != NULL && (entry = readdir(folder)) != NULL) {
            char path[sizeof run->path + 300];
            snprintf(path, sizeof path, "%s/%s", run->path, entry->d_name);
            if (pathname_ends_in(entry->d_name, ".mtp") && is_file_of_run(run, path)) {
                runfolder_take_in(run, path);
            }
        }
    }
}

/* A file that is in the way is replaced, as a profile replaces one. */
static int runfolder_take_place(struct runwriter *run, struct error *error) {
    struct stat status;
    bool is_file = lstat(run->path, &status) == 0 && S_ISREG(status.st_mode);
    if (runfolder_clear(run->path) != 0 || (is_file && unlink(run->path) != 0) ||
        rename(run->folder, run->path) != 0) {
        error_set(error, "cannot write the run to %s: %s; it is at %s", run->path, strerror(errno),
                  run->folder);
        memcpy(run->path, run->folder, sizeof run->path - 1);
        return -1;
    }
    return 0;
}

/* There was one process after all, as when what it became by exec is not followed: a plain file. */
static bool unfold(struct runwriter *run) {
    char path[sizeof run->folder + 300];
    const struct runwriter_process *process = &run->processes[0];
    char **small = NULL;
    bool done;
    if (run->process_count != 1 || process->file == NULL || run->has_first ||
        runfolder_is_joined(run)) {
        return false;
    }
    snprintf(path, sizeof path, "%s/%s", run->folder, process->file);
    if (process->small && list_small(run, &small) == 1) {
        snprintf(path, sizeof path, "%s", small[0]);
        free(small[0]);
    }
    free(small);
    done = runfolder_clear(run->path) == 0 && rename(path, run->path) == 0;
    if (done) {
        snprintf(path, sizeof path, "%s/" SMALL, run->folder);
        rmdir(path);
        remove_files(run->folder);
        rmdir(run->folder);
    }
    return done;
}

/* The recording that had the run's path for itself comes to the others, with all its parts. */
static void move_first(struct runwriter *run) {
    struct runwriter_process *process = NULL;
    char first[sizeof run->folder + 300];
    for (size_t i = 0; i < run->process_count && process == NULL; i++) {
        process = run->processes[i].has_path ? &run->processes[i] : NULL;
    }
    if (process == NULL || process->program == NULL) {
        return;
    }
    copy_path_in(run->folder, pathname_base(process->program), (uint32_t)process->pid, ".mtr",
                 first, sizeof first);
    if (runfolder_move_recording(run->path, first) != 0) {
        runfolder_note_name(run, process, first);
    }
}

int runfolder_finish(struct runwriter *run, const struct runwriter_exit *how, struct error *error) {
    char path[sizeof run->folder + 64];
    int result;
    if (unfold(run)) {
        return 0;
    }
    result = merge_small(run, error);
    take_in_joined(run);
    if (run->has_first) {
        move_first(run);
    }
    snprintf(path, sizeof path, "%s/" RUN_SUMMARY, run->folder);
    if (runfolder_write_json(run, how, path, error) != 0) {
        result = -1;
    }
    SCOPE_FD int fd = open(run->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        owner_give(fd, &run->owner);
    }
    return runfolder_take_place(run, error) != 0 ? -1 : result;
}
