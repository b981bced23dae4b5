/* SPDX-License-Identifier: MIT */
/* merge.c: one recording of several. See merge.h. */
#include "collect/transform/merge.h"

#include "analyze/window/wholemodel.h"
#include "collect/transform/mergetables.h"
#include "collect/transform/mergewrite.h"

#include <stdlib.h>
#include <string.h>

struct merge {
    struct mergeprocess *processes; /* in the order of their starts, whatever that of the files */
    size_t count;
    const struct recording **parts; /* of all processes */
    struct mergetables map;
    uint64_t start_ns; /* CLOCK_REALTIME: when the first of them started */
};

/* ---- Which files belong together ---- */

static bool is_same_process(const struct recording *a, const struct recording *b) {
    return a->header.pid == b->header.pid &&
           a->header.process_start_ticks == b->header.process_start_ticks &&
           a->program.start_realtime_ns == b->program.start_realtime_ns;
}

static int compare_parts(const void *left, const void *right) {
    const struct recording *a = *(const struct recording *const *)left;
    const struct recording *b = *(const struct recording *const *)right;
    return (a->header.part > b->header.part) - (a->header.part < b->header.part);
}

/* All files of the process of files[first], by their parts; a part that is there twice counts once.
 * Returns how many. */
static size_t take_process(const struct recording *const *files, size_t count, size_t first,
                           bool *taken, const struct recording **parts) {
    size_t found = 0;
    size_t kept = 0;
    for (size_t i = first; i < count; i++) {
        if (!taken[i] && is_same_process(files[i], files[first])) {
            taken[i] = true;
            parts[found++] = files[i];
        }
    }
    qsort(parts, found, sizeof *parts, compare_parts);
    for (size_t i = 0; i < found; i++) {
        if (kept == 0 || parts[kept - 1]->header.part != parts[i]->header.part) {
            parts[kept++] = parts[i];
        }
    }
    return kept;
}

static const struct memtrace_header *program_of(const struct mergeprocess *process) {
    return &process->parts.items[process->parts.count - 1]->program;
}

static int compare_processes(const void *left, const void *right) {
    const struct memtrace_header *a = program_of(left);
    const struct memtrace_header *b = program_of(right);
    if (a->start_realtime_ns != b->start_realtime_ns) {
        return a->start_realtime_ns < b->start_realtime_ns ? -1 : 1;
    }
    return (a->pid > b->pid) - (a->pid < b->pid);
}

static int find_processes(struct merge *merge, const struct recording *const *files, size_t count) {
    bool *taken = calloc(count, sizeof *taken);
    size_t used = 0;
    merge->processes = calloc(count, sizeof *merge->processes);
    merge->parts = calloc(count, sizeof *merge->parts);
    if (taken == NULL || merge->processes == NULL || merge->parts == NULL) {
        free(taken);
        return -1;
    }
    for (size_t i = 0; i < count; i++) {
        if (!taken[i]) {
            struct mergeprocess *process = &merge->processes[merge->count++];
            process->parts.items = merge->parts + used;
            process->parts.count = take_process(files, count, i, taken, merge->parts + used);
            used += process->parts.count;
        }
    }
    free(taken);
    qsort(merge->processes, merge->count, sizeof *merge->processes, compare_processes);
    for (size_t i = 0; i < merge->count; i++) {
        merge->processes[i].number = (uint32_t)i;
    }
    return 0;
}

/* Sums of samples with another distance, or of other sizes, tell nothing. */
static int check_alike(const struct merge *merge, struct error *error) {
    struct memtrace_recording first;
    memcpy(&first, program_of(&merge->processes[0])->recording, sizeof first);
    for (size_t i = 1; i < merge->count; i++) {
        struct memtrace_recording other;
        memcpy(&other, program_of(&merge->processes[i])->recording, sizeof other);
        if (other.sample_bytes != first.sample_bytes || other.size_least != first.size_least ||
            other.size_most != first.size_most) {
            return error_set(error,
                             "%.200s and %.200s cannot be added up: other allocations were "
                             "recorded (--sample, --sizes)",
                             merge->processes[0].parts.items[0]->path,
                             merge->processes[i].parts.items[0]->path);
        }
    }
    return 0;
}

/* ---- One table of all ---- */

static int map_process(struct merge *merge, struct mergeprocess *process, struct error *error) {
    struct model *model = model_replay(process->parts, NULL, error);
    uint64_t shift_ns = program_of(process)->start_realtime_ns - merge->start_ns;
    int result;
    if (model == NULL) {
        return -1;
    }
    result = mergetables_add(&merge->map, model, shift_ns, &process->source, error);
    process->end_ns = shift_ns + model->now_ns;
    model_free(model);
    return result;
}

static int map_all(struct merge *merge, struct error *error) {
    merge->start_ns = UINT64_MAX;
    for (size_t i = 0; i < merge->count; i++) {
        uint64_t start_ns = program_of(&merge->processes[i])->start_realtime_ns;
        merge->start_ns = start_ns < merge->start_ns ? start_ns : merge->start_ns;
    }
    for (size_t i = 0; i < merge->count; i++) {
        if (map_process(merge, &merge->processes[i], error) != 0) {
            return -1;
        }
    }
    return 0;
}

static void merge_free(struct merge *merge) {
    for (size_t i = 0; i < merge->count; i++) {
        mergesource_free(&merge->processes[i].source);
    }
    mergetables_free(&merge->map);
    free(merge->processes);
    free(merge->parts);
}

int merge_recordings(const struct recording *const *recordings, size_t count, const char *path,
                     const struct transform_options *options, struct merge_result *result,
                     struct error *error) {
    struct merge merge = {0};
    int status = -1;
    *result = (struct merge_result){0};
    if (find_processes(&merge, recordings, count) != 0) {
        error_set(error, "out of memory while merging");
    } else if (merge.count == 1) {
        struct transform_hooks none = {0};
        status = transform_recording(merge.processes[0].parts, path, &none, options,
                                     &result->written, error);
    } else if (check_alike(&merge, error) == 0 && map_all(&merge, error) == 0) {
        struct mergewrite all = {merge.processes, merge.count, &merge.map, merge.start_ns};
        status = mergewrite_file(&all, path, options, &result->written, error);
    }
    result->processes = merge.count;
    for (size_t i = 0; i < merge.count; i++) {
        result->files += merge.processes[i].parts.count;
    }
    merge_free(&merge);
    return status;
}
