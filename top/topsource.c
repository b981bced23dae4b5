/* SPDX-License-Identifier: MIT */
/* topsource.c: see topsource.h. */
#include "top/topsource.h"

#include "analyze/base/job.h"
#include "analyze/model/uncounted.h"
#include "analyze/read/region.h"
#include "analyze/symbol/debugfile.h"
#include "ask/option.h"
#include "collect/clock.h"
#include "collect/copy.h"
#include "collect/limits.h"
#include "collect/timeline.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- Opening ---- */

static int open_region(struct topsource *source, const struct region *region, struct error *error) {
    source->profile = profile_open(region->path, error);
    if (source->profile == NULL) {
        return -1;
    }
    source->pid = region->pid;
    source->is_live = true;
    return 0;
}

/* A recording of a program that runs. */
static bool file_grows(const struct source *file) {
    return file->parts.count != 0 && recording_grows(file->parts.items[file->parts.count - 1]);
}

/* Files are looked at again when there are more of them. */
static void judge_modules(struct topsource *source) {
    char line[UNCOUNTED_SIZE];
    if (source->judged_modules != source->model->module_count) {
        source->judged_modules = source->model->module_count;
        source->is_uncounted = uncounted_explain(source->model, line)[0] != '\0';
    }
}

/* A file, and names that refer to it where it lies. */
struct reading {
    const char *name;
    const char *debug_folders;
    struct source *file;
    struct names *names;
};

static void close_file(void *file) {
    source_close(file);
}

static void source_close_names(void *names) {
    names_close(names);
}

static void read_in_job(void *what) {
    struct reading *reading = what;
    const struct source_choice choice = {0};
    const struct replay_options replay = {0};
    struct error error;
    reading->file = job_alloc(sizeof *reading->file);
    job_check(
        source_open(reading->file, reading->name, &choice, reading->debug_folders, &replay, &error),
        &error);
    job_undo(close_file, reading->file);
    reading->names = source_names(reading->file, reading->debug_folders, NULL, &error);
    job_check(reading->names != NULL ? 0 : -1, &error);
    job_undo(source_close_names, reading->names);
    if (names_prepare_all(reading->names) != 0) {
        job_fail_memory();
    }
}

static int read_source(struct topsource *source, const char *name, struct error *error) {
    struct reading reading = {.name = name, .debug_folders = source->debug_folders};
    struct job_memory *memory = NULL;
    if (job_run(read_in_job, &reading, &memory, error) != 0) {
        return -1;
    }
    topnames_give(source->names, reading.names);
    job_free(&source->memory);
    source->memory = memory;
    source->file = reading.file;
    source->model = reading.file->model;
    source->judged_modules = 0;
    judge_modules(source);
    source->file_bytes = source_bytes(reading.file);
    source->is_live = file_grows(reading.file);
    return 0;
}

bool topsource_is_number(const char *name, uint64_t *number) {
    return quantity_u64(name, number) == 0 && access(name, F_OK) != 0;
}

static int open_name(struct topsource *source, const char *name, bool is_region,
                     struct error *error) {
    struct region region;
    char root[REGION_ROOT];
    uint64_t pid;
    if (is_region) {
        return region_parse(name, &region) == 0 ? open_region(source, &region, error)
                                                : error_set(error, "%.300s is no region", name);
    }
    if (topsource_is_number(name, &pid) && pid != 0 && pid <= INT32_MAX &&
        region_find((pid_t)pid, &region, NULL) == 0 && region.alive) {
        region_root(&region, root);
        debugfile_set_root(root);
        return open_region(source, &region, error);
    }
    return read_source(source, name, error);
}

int topsource_open(struct topsource *source, const char *name, bool is_region,
                   const char *debug_folders, struct error *error) {
    *source = (struct topsource){.debug_folders = debug_folders};
    source->names = topnames_start(debug_folders, error);
    if (source->names == NULL || open_name(source, name, is_region, error) != 0) {
        topsource_close(source);
        return -1;
    }
    return 0;
}

bool topsource_goes_on(const struct topsource *source) {
    return !source->is_live && source->profile != NULL &&
           region_alive(source->pid, source->profile->header.process_start_ticks);
}

bool topsource_follow(struct topsource *source) {
    struct region region;
    struct topsource next;
    if (!topsource_goes_on(source) || region_find(source->pid, &region, NULL) != 0 ||
        topsource_open(&next, region.path, true, source->debug_folders, NULL) != 0) {
        return false;
    }
    if (next.profile->header.start_monotonic_ns == source->profile->header.start_monotonic_ns) {
        topsource_close(&next);
        return false;
    }
    topsource_close(source);
    *source = next;
    return true;
}

void topsource_close(struct topsource *source) {
    topnames_stop(source->names);
    job_free(&source->memory);
    profile_close(source->profile);
    livecosts_free(&source->costs);
    *source = (struct topsource){0};
}

/* ---- Looking ---- */

struct refresh {
    struct topsource *source;
    struct model *model;
};

static void refresh_in_job(void *what) {
    struct refresh *refresh = what;
    struct profile *profile = refresh->source->profile;
    struct error error;
    job_check(profile_refresh(profile, &error), &error);
    if (livecosts_look(&refresh->source->costs, profile) != 0) {
        job_fail_memory();
    }
    refresh->model = model_load_records(profile, &error);
    job_check(refresh->model != NULL ? 0 : -1, &error);
    model_goes_with_job(refresh->model);
}

static int look_at_region(struct topsource *source, struct error *error) {
    struct profile *profile = source->profile;
    struct refresh refresh = {.source = source};
    struct job_memory *memory = NULL;
    /* Before its last numbers are read. */
    bool is_live = profile_load_u32(&profile_header(profile)->state) == MEMTRACE_STATE_RUNNING &&
                   region_alive(source->pid, profile->header.process_start_ticks);
    if (job_run(refresh_in_job, &refresh, &memory, error) != 0) {
        return -1;
    }
    profile_let_go(profile);
    job_free(&source->memory);
    source->memory = memory;
    source->model = refresh.model;
    source->model->header.pid = (uint32_t)source->pid; /* as it is called here */
    judge_modules(source);
    source->is_live = is_live;
    source->resident_bytes = is_live ? timeline_resident(source->pid) : 0;
    if (!is_live || !limits_group(source->pid, "", &source->group_bytes, &source->group_limit)) {
        source->group_bytes = source->group_limit = 0;
    }
    return 0;
}

/* It was read when it was opened. */
static int look_at_file(struct topsource *source, struct error *error) {
    if (source->looked_ns != 0) {
        if (source_bytes(source->file) == source->file_bytes && file_grows(source->file)) {
            return 0;
        }
        if (read_source(source, source->file->path, error) != 0) {
            return -1;
        }
    }
    return livecosts_take(&source->costs, source->model) == 0 ? 0
                                                              : error_set(error, "out of memory");
}

static void note_point(struct topsource *source, uint64_t now_ns, uint64_t allocations_before) {
    uint64_t more = source->costs.totals.allocations - allocations_before;
    uint64_t start_ns = source->model->header.start_monotonic_ns;
    if (source->point_count == TOPSOURCE_POINTS) {
        memmove(source->points, source->points + 1,
                --source->point_count * sizeof source->points[0]);
    }
    source->points[source->point_count++] = (struct topsource_point){
        .time_ns = source->is_live && now_ns > start_ns ? now_ns - start_ns : source->model->now_ns,
        .live_bytes = source->costs.totals.live_bytes,
        .allocations = source->seconds > 0 ? (double)more / source->seconds : -1,
    };
}

int topsource_look(struct topsource *source, struct error *error) {
    uint64_t before = source->costs.totals.allocations;
    uint64_t begin_ns = clock_now_ns();
    double begin_seconds = clock_processor_seconds();
    int result;
    if (source->looked_ns != 0 && !source->is_live) {
        return 0;
    }
    result = source->profile != NULL ? look_at_region(source, error) : look_at_file(source, error);
    if (result != 0) {
        return -1;
    }
    source->seconds = source->looked_ns != 0 ? (double)(begin_ns - source->looked_ns) / 1e9 : 0;
    source->looked_ns = begin_ns;
    source->looking_seconds = clock_processor_seconds() - begin_seconds;
    note_point(source, begin_ns, before);
    return 0;
}

/* ---- One thread, lifetimes, hashes ---- */

/* The column of a thread + 1; 0: there is none. */
static uint32_t thread_column(const struct profile *profile, uint32_t thread) {
    struct profile_items at = {.kind = MEMTRACE_SEGMENT_THREADS};
    const struct memtrace_thread_record *record;
    while ((record = profile_next(profile, &at)) != NULL) {
        if (profile_load_u32(&record->id) == thread &&
            profile_load_u32(&record->state) != MEMTRACE_THREAD_FREE) {
            return profile_load_u32(&record->column) + 1;
        }
    }
    return 0;
}

int topsource_choose(struct topsource *source, uint32_t thread, struct error *error) {
    uint32_t only = 0;
    if (source->profile == NULL || !source->is_live) {
        return error_set(error, "the costs of one thread are known only of running programs");
    }
    if (thread != 0 && (only = thread_column(source->profile, thread)) == 0) {
        return error_set(error, "that thread is gone");
    }
    livecosts_only(&source->costs, only);
    source->thread = thread;
    source->point_count = 0;
    source->looked_ns = 0;
    if (topsource_look(source, error) != 0) {
        return -1;
    }
    livecosts_begin(&source->costs);
    return 0;
}

int topsource_lifetimes(const struct topsource *source, livecosts_take_lifetimes *take,
                        void *context) {
    const struct livecosts *costs = &source->costs;
    const struct model *model = source->model;
    if (source->profile != NULL) {
        int result = livecosts_lifetimes(costs, source->profile, take, context);
        profile_let_go(source->profile);
        return result;
    }
    for (size_t i = 0; i < costs->count; i++) {
        const struct model_context *of = model_find(model, costs->contexts[i].id);
        if (of != NULL && of->lifetimes != MODEL_NO_LIFETIMES) {
            take(context, i, model->lifetimes + of->lifetimes);
        }
    }
    return 0;
}

uint64_t topsource_hash(const struct topsource *source, uint32_t path) {
    struct model model = *source->model; /* which has no nodes of a running program */
    model.nodes = source->costs.nodes;
    model.node_count = source->costs.node_count;
    return model_hash(&model, path);
}

/* ---- Saving ---- */

int topsource_save(const struct topsource *source, char *path, size_t capacity,
                   struct error *error) {
    char name[512];
    if (source->profile == NULL) {
        return error_set(error, "only a running program's profile can be saved");
    }
    for (unsigned number = 1;; number++) {
        snprintf(name, sizeof name, "%.200s.%ld.%u.mtp", memtrace_program(&source->profile->header),
                 (long)source->pid, number);
        if (access(name, F_OK) != 0) {
            break;
        }
    }
    return copy_live_to(source->profile->fd,
                        profile_load_u64(&profile_header(source->profile)->end), name, path,
                        capacity, error);
}
