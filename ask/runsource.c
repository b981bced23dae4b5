/* SPDX-License-Identifier: MIT */
/* runsource.c: see runsource.h. */
#include "ask/runsource.h"

#include "analyze/base/array.h"
#include "analyze/base/pathname.h"
#include "analyze/rows/number.h"
#include "analyze/rows/safetext.h"
#include "ask/cleanup.h"
#include "ask/quantity.h"
#include "ask/runregions.h"
#include "collect/mergeprofiles.h"

#include <ctype.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Several recordings ---- */

int runsource_merge(char *const *paths, size_t count, const char *output,
                    const struct transform_options *options, struct merge_result *result,
                    struct error *error) {
    struct source *sources = calloc(count, sizeof *sources);
    const struct recording **all = NULL;
    size_t opened = 0;
    size_t all_count = 0;
    size_t room = 0;
    int status = sources != NULL ? 0 : error_set(error, "out of memory");
    while (status == 0 && opened < count) {
        const struct timeorder_parts *parts = &sources[opened].parts;
        status = source_open_parts(&sources[opened], paths[opened], error);
        if (status != 0) {
            break;
        }
        opened++;
        if (array_reserve(&all, &room, all_count + parts->count, sizeof *all) != 0) {
            status = error_set(error, "out of memory");
            break;
        }
        memcpy(all + all_count, parts->items, parts->count * sizeof *all);
        all_count += parts->count;
    }
    if (status == 0) {
        status = merge_recordings(all, all_count, output, options, result, error);
    }
    while (opened > 0) {
        source_close(&sources[--opened]);
    }
    free(all);
    free(sources);
    return status;
}

/* ---- One process ---- */

/* PID or NAME, and :IMAGE. */
struct wanted {
    const char *name;
    size_t name_size;
    uint64_t pid;   /* 0: a name is meant */
    uint64_t image; /* 0: any */
};

static struct wanted parse(const char *text) {
    const char *colon = strrchr(text, ':');
    struct wanted wanted = {.name = text, .name_size = strlen(text)};
    char head[32];
    if (colon != NULL && quantity_u64(colon + 1, &wanted.image) == 0 && wanted.image != 0) {
        wanted.name_size = (size_t)(colon - text);
    } else {
        wanted.image = 0;
    }
    snprintf(head, sizeof head, "%.*s", (int)(wanted.name_size < 31 ? wanted.name_size : 31), text);
    if (quantity_u64(head, &wanted.pid) != 0) {
        wanted.pid = 0;
    }
    return wanted;
}

static bool has_name(const struct wanted *wanted, const char *path) {
    const char *base = pathname_base(path);
    return wanted->name_size != 0 && ((strlen(path) == wanted->name_size &&
                                       memcmp(path, wanted->name, wanted->name_size) == 0) ||
                                      (strlen(base) == wanted->name_size &&
                                       memcmp(base, wanted->name, wanted->name_size) == 0));
}

/* By its number, its program's name or path, or what it was called by. */
static bool is_wanted(const struct wanted *wanted, const struct run_process *process) {
    bool is_it = wanted->pid != 0 && process->pid == wanted->pid;
    is_it |=
        has_name(wanted, process->program) || has_name(wanted, arguments_first(process->command));
    return is_it && (wanted->image == 0 || wanted->image == process->image);
}

/* What was found in the run: the image that held most, and of how many processes there are some. */
struct found {
    size_t best;
    size_t best_kept; /* of those with a file */
    size_t processes;
};

static bool is_better(const struct run *run, size_t place, size_t than) {
    return than == RUN_NONE || run->processes[place].peak_bytes > run->processes[than].peak_bytes;
}

static struct found find(const struct run *run, const struct wanted *wanted) {
    struct found found = {RUN_NONE, RUN_NONE, 0};
    size_t last = RUN_NONE; /* the process of the match before */
    for (size_t i = 0; i < run->process_count; i++) {
        const struct run_process *process = &run->processes[i];
        if (!is_wanted(wanted, process)) {
            continue;
        }
        found.processes += process->first_image == i || process->first_image != last;
        last = process->first_image;
        found.best = is_better(run, i, found.best) ? i : found.best;
        if (process->file != NULL && is_better(run, i, found.best_kept)) {
            found.best_kept = i;
        }
    }
    return found;
}

/* For messages: the terminal gets no control characters. */
static void append(char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void append(char *text, size_t size, const char *format, ...) {
    size_t used = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, size - used, format, arguments);
    va_end(arguments);
    make_safe(text + used);
}

static int by_peak(const void *left, const void *right) {
    const struct run_process *a = *(const struct run_process *const *)left;
    const struct run_process *b = *(const struct run_process *const *)right;
    if (a->peak_bytes != b->peak_bytes) {
        return a->peak_bytes > b->peak_bytes ? -1 : 1;
    }
    return (a > b) - (a < b);
}

/* "there is no process 'x' in out.mtp; it has cc1 (1300), sh (1299), ... and 5 more" */
static int tell_candidates(const struct run *run, const char *wanted, struct error *error) {
    enum { SHOWN = 8 };
    const struct run_process **ranked = calloc(run->process_count + 1, sizeof(void *));
    size_t shown = run->process_count < SHOWN ? run->process_count : SHOWN;
    char text[400] = "";
    if (ranked == NULL) {
        return error_set(error, "out of memory");
    }
    for (size_t i = 0; i < run->process_count; i++) {
        ranked[i] = &run->processes[i];
    }
    qsort(ranked, run->process_count, sizeof(void *), by_peak);
    append(text, sizeof text, "there is no process '%.80s' in %.100s; it has", wanted, run->path);
    for (size_t i = 0; i < shown; i++) {
        append(text, sizeof text, "%s %.20s (%" PRIu32 ")", i != 0 ? "," : "", run_name(ranked[i]),
               ranked[i]->pid);
    }
    if (run->process_count > shown) {
        append(text, sizeof text, " and %zu more", run->process_count - shown);
    }
    free(ranked);
    return error_set(error, "%s", text);
}

/* Which of several it is, and where the file says more, or less, than was asked for. */
static void note_choice(const struct run *run, const char *wanted, const struct found *found) {
    const struct run_process *process = &run->processes[found->best_kept];
    char text[400] = "";
    struct number peak;
    if (found->processes > 1) {
        append(text, sizeof text,
               "'%.80s' means %zu processes; process %" PRIu32
               " is shown, which has the highest peak (%s) of those that have a file",
               wanted, found->processes, process->pid, number_bytes(&peak, process->peak_bytes));
        print_safe(stderr, "memtrace: %s\n", text);
    }
    text[0] = '\0';
    if (process->light) {
        append(text, sizeof text,
               "process %" PRIu32 " is a small forked child: this is the profile of its parent, "
               "%.100s; --all-processes adds the child's call paths",
               process->pid, process->file);
    } else if (run_is_merged(process->file)) {
        append(text, sizeof text,
               "process %" PRIu32 " is a small one: %s has the sums of all small processes",
               process->pid, process->file);
    }
    if (text[0] != '\0') {
        print_safe(stderr, "memtrace: %s\n", text);
    }
}

static int find_process(struct source *source, const char *text, struct error *error) {
    struct wanted wanted = parse(text);
    struct found found = find(source->run, &wanted);
    if (found.best == RUN_NONE) {
        return tell_candidates(source->run, text, error);
    }
    if (found.best_kept == RUN_NONE) {
        return error_set(error, "process %" PRIu32 " was seen, but nothing of it was kept",
                         source->run->processes[found.best].pid);
    }
    note_choice(source->run, text, &found);
    source->process = found.best_kept;
    return 0;
}

static int choose_process(struct source *source, const char *text, struct error *error) {
    source->process = run_largest(source->run);
    if (text != NULL && find_process(source, text, error) != 0) {
        return -1;
    }
    if (source->process == RUN_NONE) {
        return error_set(error, "%s has no profile of any of its processes", source->run->path);
    }
    free(source->path);
    source->path = run_file_path(source->run, source->run->processes[source->process].file);
    return source->path != NULL ? 0 : error_set(error, "out of memory");
}

/* ---- The sum of all ---- */

/* The files to add up: the first part of a recording stands for all. */
struct inputs {
    char **paths;
    size_t count;
    size_t recordings;
};

static void free_inputs(struct inputs *inputs) {
    for (size_t i = 0; i < inputs->count; i++) {
        free(inputs->paths[i]);
    }
    free(inputs->paths);
}

static int list_inputs(const struct run *run, struct inputs *inputs, struct error *error) {
    inputs->paths = calloc(run->file_count + 1, sizeof *inputs->paths);
    for (size_t i = 0; inputs->paths != NULL && i < run->file_count; i++) {
        char *path = run_file_path(run, run->files[i]);
        struct recording *recording = NULL;
        if (path == NULL) {
            return error_set(error, "out of memory");
        }
        if (recording_is(path)) {
            recording = recording_open(path, error);
            if (recording == NULL) {
                free(path);
                return -1;
            }
        }
        if (recording != NULL && recording->header.part != 0) {
            free(path);
        } else {
            inputs->paths[inputs->count++] = path;
            inputs->recordings += recording != NULL;
        }
        recording_close(recording);
    }
    return inputs->paths != NULL ? 0 : error_set(error, "out of memory");
}

static struct model *load_recording(void *context, const char *path, struct error *error) {
    struct source source;
    struct model *model;
    (void)context;
    if (source_open(&source, path, NULL, NULL, NULL, error) != 0) {
        return NULL;
    }
    model = source.model;
    source.model = NULL;
    source_close(&source);
    return model;
}

/* Recordings alone become one with all their events. */
static int merge_recorded(const struct inputs *inputs, const char *path, struct error *error) {
    const struct transform_options options = {.level = 1};
    struct merge_result merged;
    return runsource_merge(inputs->paths, inputs->count, path, &options, &merged, error);
}

/* A new file in a new folder of ours, open. NULL: error is set. */
static FILE *open_merged(struct source *source, const char *name, struct error *error) {
    char folder[PATH_MAX];
    char process[32];
    FILE *file = NULL;
    snprintf(process, sizeof process, "%ld", (long)getpid());
    if (source_temporary(folder, sizeof folder, process, "XXXXXX") == 0 &&
        (source->merged_folder = strdup(folder)) != NULL &&
        cleanup_make_folder(source->merged_folder) != NULL) {
        if (asprintf(&source->merged, "%s/%s", source->merged_folder, name) < 0) {
            source->merged = NULL;
        } else {
            file = fopen(source->merged, "w+e");
        }
    }
    if (file == NULL) {
        error_set(error, "cannot make a file for the sum of all processes: %m");
    }
    return file;
}

void runsource_drop(struct source *source) {
    if (source->merged_folder != NULL) {
        cleanup_remove(source->merged_folder);
        cleanup_forget(source->merged_folder);
    }
    free(source->merged);
    free(source->merged_folder);
    source->merged = source->merged_folder = NULL;
}

static int merge_inputs(struct source *source, const struct inputs *inputs, struct error *error) {
    bool is_recording = inputs->count != 0 && inputs->recordings == inputs->count;
    FILE *file;
    int result;
    if (inputs->count == 0) {
        return error_set(error, "%s has no profile of any of its processes", source->path);
    }
    file = open_merged(source, is_recording ? "sum.mtr" : "sum.mtp", error);
    if (file == NULL) {
        return -1;
    }
    result = is_recording
                 ? merge_recorded(inputs, source->merged, error)
                 : merge_profiles(inputs->paths, inputs->count, load_recording, NULL, file, error);
    if (fclose(file) != 0 && result == 0) {
        result = error_set(error, "cannot write %s: %m", source->merged);
    }
    return result;
}

static int merge_run(struct source *source, struct error *error) {
    struct inputs inputs = {0};
    int result = list_inputs(source->run, &inputs, error);
    if (result == 0) {
        result = merge_inputs(source, &inputs, error);
    }
    free_inputs(&inputs);
    return result;
}

/* A profile and the children in it. A recording has none. */
static int merge_children(struct source *source, struct error *error) {
    struct inputs inputs = {.paths = &source->path, .count = 1};
    return recording_is(source->path) ? 0 : merge_inputs(source, &inputs, error);
}

/* What all processes hold that run now. */
static int merge_regions(struct source *source, const struct region *regions, size_t count,
                         struct error *error) {
    struct inputs inputs = {.paths = calloc(count, sizeof *inputs.paths)};
    int result = inputs.paths != NULL ? 0 : error_set(error, "out of memory");
    for (size_t i = 0; result == 0 && i < count; i++) {
        inputs.paths[inputs.count++] = strdup(regions[i].path);
        result = inputs.paths[i] != NULL ? 0 : error_set(error, "out of memory");
    }
    result = result == 0 ? merge_inputs(source, &inputs, error) : -1;
    free_inputs(&inputs);
    return result;
}

/* A process may end between being found and being read: then the others are looked for anew. */
static int merge_file(struct source *source, struct error *error) {
    enum { TRIES = 20 };
    int result = -1;
    for (int i = 0; i < TRIES && result != 0; i++) {
        struct region *regions;
        size_t count;
        runsource_drop(source);
        if (runregions_find(source->path, &regions, &count, error) != 0) {
            return -1;
        }
        source->is_running = count != 0;
        result = count != 0 ? merge_regions(source, regions, count, error)
                            : merge_children(source, error);
        free(regions);
        if (!source->is_running) {
            break;
        }
    }
    return result;
}

/* ---- What is meant ---- */

int runsource_choose(struct source *source, const struct source_choice *choice,
                     struct error *error) {
    if (choice != NULL && choice->all && choice->process != NULL) {
        return error_set(error, "--process and --all-processes: only one of them");
    }
    if (!run_is(source->path)) {
        return choice != NULL && choice->all ? merge_file(source, error) : 0;
    }
    if (choice == NULL) {
        return error_set(error, "%s is a folder; name one of the files in it", source->path);
    }
    source->run = run_open(source->path, error);
    if (source->run == NULL) {
        return -1;
    }
    return choice->all ? merge_run(source, error) : choose_process(source, choice->process, error);
}

int runsource_check(const struct source *source, const struct source_choice *choice,
                    struct error *error) {
    const struct memtrace_header *header = &source->model->header;
    struct run_process process = {.pid = header->pid,
                                  .image = 1,
                                  .program = (char *)header->executable,
                                  .command = arguments_of(header)};
    struct wanted wanted;
    if (choice == NULL || choice->process == NULL || source->run != NULL) {
        return 0;
    }
    wanted = parse(choice->process);
    if (is_wanted(&wanted, &process)) {
        return 0;
    }
    return error_set(error, "%s is the file of one process, %s (%" PRIu32 "), not of '%s'",
                     source->path, run_name(&process), header->pid, choice->process);
}
