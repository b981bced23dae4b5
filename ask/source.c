/* SPDX-License-Identifier: MIT */
/* source.c: which profile, recording or run is meant, and what is in it. See source.h. */
#include "ask/source.h"

#include "analyze/base/job.h"
#include "analyze/base/pathname.h"
#include "analyze/model/names.h"
#include "analyze/read/arguments.h"
#include "analyze/read/embedded.h"
#include "analyze/read/region.h"
#include "analyze/read/trust.h"
#include "analyze/rows/number.h"
#include "analyze/rows/safetext.h"
#include "analyze/symbol/debugfile.h"
#include "analyze/window/wholemodel.h"
#include "ask/cleanup.h"
#include "ask/option.h"
#include "ask/runregions.h"
#include "collect/mergeprofiles.h"
#include "collect/recover.h"

#include <errno.h>
#include <glob.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- The file that is meant ---- */

/* Takes the file's place in *newest if it was written later. */
static void newest_offer(char **newest, struct timespec *when, const char *path) {
    struct stat status;
    if (stat(path, &status) != 0 || !(S_ISREG(status.st_mode) || S_ISDIR(status.st_mode))) {
        return;
    }
    if (*newest == NULL || status.st_mtim.tv_sec > when->tv_sec ||
        (status.st_mtim.tv_sec == when->tv_sec && status.st_mtim.tv_nsec > when->tv_nsec)) {
        *newest = job_string(path);
        *when = status.st_mtim;
    }
}

/* Of a recording in parts the first one, which stands for all; the last one was written last. */
static char *newest_first_part(char *path) {
    struct recording *recording = recording_open(path, NULL);
    char suffix[32] = "";
    char *first;
    size_t stem = strlen(path);
    if (recording != NULL && recording->header.part != 0) {
        snprintf(suffix, sizeof suffix, ".%u.mtr", recording->header.part);
    }
    recording_close(recording);
    stem -= stem > strlen(suffix) ? strlen(suffix) : 0;
    if (suffix[0] == '\0' || strcmp(path + stem, suffix) != 0) {
        return path;
    }
    first = job_text("%.*s.mtr", (int)stem, path);
    return recording_is(first) ? first : path;
}

/* Whether the profile of a program that was killed would go to this folder. */
static bool region_belongs_to(const struct region *region, const char *folder) {
    struct profile *profile = profile_open(region->path, NULL);
    const char *slash = profile != NULL ? strrchr(profile->header.output, '/') : NULL;
    bool here = slash != NULL && strlen(folder) == (size_t)(slash - profile->header.output) &&
                strncmp(profile->header.output, folder, strlen(folder)) == 0;
    profile_close(profile);
    return here;
}

/* What programs that were killed have left for this folder. */
static void newest_offer_left(char **newest, struct timespec *when) {
    char *folder = getcwd(NULL, 0);
    struct region *list;
    size_t count;
    if (folder == NULL || region_list(&list, &count, NULL) != 0) {
        free(folder);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (!list[i].alive && recover_is_meant(&list[i]) && region_belongs_to(&list[i], folder)) {
            newest_offer(newest, when, list[i].path);
        }
    }
    free(list);
    free(folder);
}

static void newest_note_place(void *context, const struct recovered *recovered) {
    memcpy(context, recovered->finished.path, sizeof recovered->finished.path);
}

/* The newest *.mtp or *.mtr of this folder, file or run. NULL: none. */
static char *newest_find(void) {
    char *newest = NULL;
    char place[sizeof((struct finished *)NULL)->path] = "";
    struct timespec when = {0};
    glob_t found;
    newest_offer_left(&newest, &when);
    if (glob("*.mt[pr]", 0, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++) {
            newest_offer(&newest, &when, found.gl_pathv[i]);
        }
        globfree(&found);
    }
    /* The region of the program that is asked about goes to its place; those of others stay. */
    if (newest != NULL && newest[0] == '/') {
        recover_region(newest, newest_note_place, place);
        newest = place[0] != '\0' ? job_string(place) : newest;
    }
    return newest != NULL ? newest_first_part(newest) : NULL;
}

/* The process asked for, and where its profile was put now. */
struct recovery {
    pid_t pid;
    char path[sizeof((struct finished *)NULL)->path];
};

static void process_note_recovered(void *context, const struct recovered *recovered) {
    struct recovery *recovery = context;
    char line[6000];
    memcpy(recovery->path, recovered->finished.path, sizeof recovery->path);
    recover_line(recovered, line, sizeof line);
    print_safe(stderr, "memtrace: %s\n", line);
}

/* The region that a program left when it was killed. Nobody else's is touched. */
static bool process_find_left(struct recovery *recovery, struct region *region) {
    struct region *list;
    size_t count;
    bool found = false;
    if (region_list(&list, &count, NULL) != 0) {
        return false;
    }
    for (size_t i = 0; i < count && !found; i++) {
        if (list[i].pid == recovery->pid && !list[i].alive && recover_is_meant(&list[i])) {
            recover_region(list[i].path, process_note_recovered, recovery);
            *region = list[i];
            found = true;
        }
    }
    free(list);
    return found;
}

/* The file that stands for a process; *running: its number, if it runs. */
static char *process_find(uint64_t pid, pid_t *running) {
    struct recovery recovery = {.pid = (pid_t)pid};
    struct region region;
    char root[REGION_ROOT];
    struct error error;
    bool found;
    if (pid > INT32_MAX) {
        job_fail("there is no process %llu", (unsigned long long)pid);
    }
    found = region_find((pid_t)pid, &region, &error) == 0;
    if (!found || !region.alive) {
        found |= process_find_left(&recovery, &region);
    }
    if (!found) {
        job_fail_as(&error);
    }
    *running = region.alive ? region.pid : 0;
    region_root(&region, root);
    debugfile_set_root(root);
    return job_string(recovery.path[0] != '\0' ? recovery.path : region.path);
}

static char *source_find(const char *name, pid_t *running) {
    uint64_t pid;
    char *newest;
    if (name != NULL) {
        return quantity_u64(name, &pid) == 0 && access(name, F_OK) != 0 ? process_find(pid, running)
                                                                        : job_string(name);
    }
    newest = newest_find();
    if (newest == NULL) {
        job_fail("there is no profile (*.mtp) and no recording (*.mtr) in this folder; name one or "
                 "a PID, or make one with `memtrace run -- PROGRAM`");
    }
    return newest;
}

/* ---- Temporary files and folders ---- */

enum { MOST_PARTS = 1000, FORGOTTEN_SECONDS = 3600 };

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
static void folder_drop(char *folder) {
    if (folder != NULL) {
        cleanup_remove(folder);
        cleanup_forget(folder);
    }
}

/* A new one of ours. NULL: there is no place for it. */
static char *folder_new(void) {
    char pattern[PATH_MAX];
    char process[32];
    char *folder;
    snprintf(process, sizeof process, "%ld", (long)getpid());
    if (source_temporary(pattern, sizeof pattern, process, "XXXXXX") != 0) {
        return NULL;
    }
    folder = job_string(pattern);
    return cleanup_make_folder(folder);
}

/* The files in the recording, in a new folder. NULL: there are none, or no place for them: the
 * report then shows module+offset. */
static char *extract_symbols(const struct recording *recording) {
    struct error error;
    size_t count = 0;
    char *folder;
    int result;
    remove_forgotten();
    folder = folder_new();
    if (folder == NULL) {
        return NULL;
    }
    result = embedded_extract(recording, folder, 0, &count, &error);
    if (result != 0 || count == 0) {
        folder_drop(folder);
        folder = NULL;
    }
    if (result == RECORDING_NO_MEMORY) {
        job_fail_as(&error);
    }
    return folder;
}

/* What the job of its memory does not free itself. */
static void source_undo(void *what) {
    struct source *source = what;
    framenames_free(&source->names);
    folder_drop(source->symbols);
    model_free(source->model);
    for (size_t i = source->parts.count; i > 0; i--) {
        recording_close((struct recording *)source->parts.items[i - 1]);
    }
    folder_drop(source->merged_folder);
    run_close(source->run);
}

static struct model *load_profile(struct profile *profile, struct error *error) {
    struct model *model = profile != NULL ? model_load(profile, error) : NULL;
    profile_close(profile);
    if (model == NULL) {
        job_fail_as(error);
    }
    return model;
}

/* ---- Recordings in parts ---- */

uint64_t source_bytes(const struct source *source) {
    uint64_t bytes = 0;
    struct stat status;
    for (size_t i = 0; i < source->parts.count; i++) {
        bytes += stat(source->parts.items[i]->path, &status) == 0 ? (uint64_t)status.st_size : 0;
    }
    return bytes;
}

static bool part_is_of(const struct recording *first, const struct recording *other, size_t part) {
    return other->header.pid == first->header.pid &&
           other->header.process_start_ticks == first->header.process_start_ticks &&
           other->header.part == part;
}

/* NAME.mtr, NAME.1.mtr, NAME.2.mtr, ...: opens the first part, which stands for all, and those that
 * lie beside it. */
static void open_parts(struct source *source, const char *path) {
    size_t stem = strlen(path) - (pathname_ends_in(path, ".mtr") ? 4 : 0);
    struct timeorder_parts *parts = &source->parts;
    struct recording *recording;
    const struct recording **items = NULL;
    size_t room = 0;
    struct error error;
    recording = recording_open(path, &error);
    if (recording == NULL) {
        job_fail_as(&error);
    }
    do {
        job_grow(&items, &room, parts->count, sizeof *items);
        items[parts->count] = recording;
        *parts = (struct timeorder_parts){items, parts->count + 1};
        if (items[0]->header.part != 0 || parts->count == MOST_PARTS) {
            return;
        }
        recording = recording_open(
            job_text("%.*s.%zu%s", (int)stem, path, parts->count, path + stem), NULL);
    } while (recording != NULL && part_is_of(items[0], recording, parts->count));
    recording_close(recording);
}

/* ---- One process ---- */

/* PID or NAME, and :IMAGE. */
struct wanted {
    const char *name;
    size_t name_size;
    uint64_t pid;   /* 0: a name is meant */
    uint64_t image; /* 0: any */
};

static struct wanted wanted_parse(const char *text) {
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

static bool wanted_has_name(const struct wanted *wanted, const char *path) {
    const char *base = pathname_base(path);
    return wanted->name_size != 0 && ((strlen(path) == wanted->name_size &&
                                       memcmp(path, wanted->name, wanted->name_size) == 0) ||
                                      (strlen(base) == wanted->name_size &&
                                       memcmp(base, wanted->name, wanted->name_size) == 0));
}

/* By its number, its program's name or path, or what it was called by. */
static bool wanted_is(const struct wanted *wanted, const struct run_process *process) {
    bool is_it = wanted->pid != 0 && process->pid == wanted->pid;
    is_it |= wanted_has_name(wanted, process->program) ||
             wanted_has_name(wanted, arguments_first(process->command));
    return is_it && (wanted->image == 0 || wanted->image == process->image);
}

/* What was found in the run: the image that held most, and of how many processes there are some. */
struct found {
    size_t best;
    size_t best_kept; /* of those with a file */
    size_t processes;
};

static bool process_held_more(const struct run *run, size_t place, size_t than) {
    return than == RUN_NONE || run->processes[place].peak_bytes > run->processes[than].peak_bytes;
}

static struct found wanted_find(const struct run *run, const struct wanted *wanted) {
    struct found found = {RUN_NONE, RUN_NONE, 0};
    size_t last = RUN_NONE; /* the process of the match before */
    for (size_t i = 0; i < run->process_count; i++) {
        const struct run_process *process = &run->processes[i];
        if (!wanted_is(wanted, process)) {
            continue;
        }
        found.processes += process->first_image == i || process->first_image != last;
        last = process->first_image;
        found.best = process_held_more(run, i, found.best) ? i : found.best;
        if (process->file != NULL && process_held_more(run, i, found.best_kept)) {
            found.best_kept = i;
        }
    }
    return found;
}

static int compare_peaks(const void *left, const void *right) {
    const struct run_process *a = *(const struct run_process *const *)left;
    const struct run_process *b = *(const struct run_process *const *)right;
    if (a->peak_bytes != b->peak_bytes) {
        return a->peak_bytes > b->peak_bytes ? -1 : 1;
    }
    return (a > b) - (a < b);
}

/* "there is no process 'x' in out.mtp; it has cc1 (1300), sh (1299), ... and 5 more". The terminal
 * gets no control characters. */
static noreturn void fail_with_candidates(const struct run *run, const char *wanted) {
    enum { SHOWN = 8 };
    const struct run_process **ranked = job_array(run->process_count, sizeof(void *));
    size_t shown = run->process_count < SHOWN ? run->process_count : SHOWN;
    struct job_printing *text = job_print();
    for (size_t i = 0; i < run->process_count; i++) {
        ranked[i] = &run->processes[i];
    }
    qsort(ranked, run->process_count, sizeof(void *), compare_peaks);
    print_safe(text->out, "there is no process '%.80s' in %.100s; it has", wanted, run->path);
    for (size_t i = 0; i < shown; i++) {
        print_safe(text->out, "%s %.20s (%" PRIu32 ")", i != 0 ? "," : "", run_name(ranked[i]),
                   ranked[i]->pid);
    }
    if (run->process_count > shown) {
        print_safe(text->out, " and %zu more", run->process_count - shown);
    }
    job_fail("%s", job_printed(text));
}

/* Which of several it is, and where the file says more, or less, than was asked for. */
static void note_choice(const struct run *run, const char *wanted, const struct found *found) {
    const struct run_process *process = &run->processes[found->best_kept];
    struct number peak;
    if (found->processes > 1) {
        print_safe(stderr,
                   "memtrace: '%.80s' means %zu processes; process %" PRIu32
                   " is shown, which has the highest peak (%s) of those that have a file\n",
                   wanted, found->processes, process->pid,
                   number_bytes(&peak, process->peak_bytes));
    }
    if (process->light) {
        print_safe(stderr,
                   "memtrace: process %" PRIu32
                   " is a small forked child: this is the profile of its parent, "
                   "%.100s; --all-processes adds the child's call paths\n",
                   process->pid, process->file);
    } else if (run_is_merged(process->file)) {
        print_safe(stderr,
                   "memtrace: process %" PRIu32
                   " is a small one: %s has the sums of all small processes\n",
                   process->pid, process->file);
    }
}

static void choose_process(struct source *source, const char *text) {
    source->process = run_largest(source->run);
    if (text != NULL) {
        struct wanted wanted = wanted_parse(text);
        struct found found = wanted_find(source->run, &wanted);
        if (found.best == RUN_NONE) {
            fail_with_candidates(source->run, text);
        }
        if (found.best_kept == RUN_NONE) {
            job_fail("process %" PRIu32 " was seen, but nothing of it was kept",
                     source->run->processes[found.best].pid);
        }
        note_choice(source->run, text, &found);
        source->process = found.best_kept;
    }
    if (source->process == RUN_NONE) {
        job_fail("%s has no profile of any of its processes", source->run->path);
    }
    source->path =
        job_take(run_file_path(source->run, source->run->processes[source->process].file));
}

/* A file that was named itself: whether it is that of the process that was asked for. */
static void check_process(const struct source *source, const struct source_choice *choice) {
    const struct memtrace_header *header = &source->model->header;
    struct run_process process = {.pid = header->pid,
                                  .image = 1,
                                  .program = (char *)header->executable,
                                  .command = arguments_of(header)};
    struct wanted wanted;
    if (choice == NULL || choice->process == NULL || source->run != NULL) {
        return;
    }
    wanted = wanted_parse(choice->process);
    if (!wanted_is(&wanted, &process)) {
        job_fail("%s is the file of one process, %s (%" PRIu32 "), not of '%s'", source->path,
                 run_name(&process), header->pid, choice->process);
    }
}

/* ---- The sum of all ---- */

/* The files to add up: the first part of a recording stands for all. */
struct inputs {
    char **paths;
    size_t count;
    size_t recordings;
};

static struct inputs list_inputs(const struct run *run) {
    struct inputs inputs = {.paths = job_array(run->file_count + 1, sizeof *inputs.paths)};
    for (size_t i = 0; i < run->file_count; i++) {
        char *path = job_take(run_file_path(run, run->files[i]));
        struct error error;
        if (recording_is(path)) {
            struct recording *recording = recording_open(path, &error);
            bool is_later_part;
            if (recording == NULL) {
                job_fail_as(&error);
            }
            is_later_part = recording->header.part != 0;
            recording_close(recording);
            if (is_later_part) {
                continue;
            }
            inputs.recordings++;
        }
        inputs.paths[inputs.count++] = path;
    }
    return inputs;
}

static struct model *load_input(void *context, const char *path, struct error *error) {
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

/* Recordings alone become one with all their events: a file, which passes go through. */
static void merge_inputs(struct source *source, const struct inputs *inputs) {
    const struct transform_options options = {.level = 1};
    struct merge_result merged;
    struct error error;
    source->merged_folder = folder_new();
    if (source->merged_folder == NULL) {
        job_fail("cannot make a file for the sum of all processes: %m");
    }
    source->merged = job_text("%s/sum.mtr", source->merged_folder);
    job_check(source_merge(inputs->paths, inputs->count, source->merged, &options, &merged, &error),
              &error);
}

static void close_stream(void *file) {
    fclose(file);
}

/* The sum of profiles is a profile, in memory. */
static void add_inputs(struct source *source, const struct inputs *inputs) {
    int fd = memfd_create("memtrace-sum", MFD_CLOEXEC);
    FILE *file = fd >= 0 ? fdopen(fd, "w+e") : tmpfile();
    struct error error;
    if (file == NULL) {
        job_fail("cannot make a file for the sum of all processes: %m");
    }
    job_undo(close_stream, file);
    job_check(merge_profiles(inputs->paths, inputs->count, load_input, NULL, file, &error), &error);
    if (fflush(file) != 0) {
        job_fail("cannot write the sum of all processes: %m");
    }
    source->model =
        load_profile(profile_open_file(fileno(file), "the sum of all processes", &error), &error);
}

static void sum_inputs(struct source *source, const struct inputs *inputs) {
    if (inputs->count == 0) {
        job_fail("%s has no profile of any of its processes", source->path);
    }
    if (inputs->recordings == inputs->count) {
        merge_inputs(source, inputs);
    } else {
        add_inputs(source, inputs);
    }
}

struct summing {
    struct source *source;
    bool is_running;
};

/* What all processes hold that run now, or what a profile and the children in it held; a recording
 * has no children. */
static void sum_file(void *what) {
    struct summing *summing = what;
    struct source *source = summing->source;
    struct inputs inputs = {.paths = &source->path, .count = 1};
    struct region *regions;
    size_t count;
    struct error error;
    summing->is_running = false;
    job_check(runregions_find(source->path, &regions, &count, &error), &error);
    summing->is_running = count != 0;
    job_undo(free, regions);
    if (count != 0) {
        inputs = (struct inputs){.paths = job_array(count, sizeof *inputs.paths), .count = count};
        for (size_t i = 0; i < count; i++) {
            inputs.paths[i] = regions[i].path;
        }
    }
    if (count != 0 || !recording_is(source->path)) {
        sum_inputs(source, &inputs);
    }
}

/* A process may end between being found and being read: then the others are looked for anew. */
static void sum_what_runs(struct source *source) {
    enum { TRIES = 20 };
    struct summing summing = {.source = source};
    struct error error;
    int result = -1;
    for (int i = 0; i < TRIES && result != 0; i++) {
        result = job_part(sum_file, &summing, &error);
        if (!summing.is_running) {
            break;
        }
    }
    job_check(result, &error);
    source->is_running = summing.is_running;
}

struct merging {
    char *const *paths;
    size_t count;
    const char *output;
    const struct transform_options *options;
    struct merge_result *result;
};

static void merge_files(void *what) {
    const struct merging *merging = what;
    const struct recording **all = NULL;
    size_t all_count = 0;
    size_t room = 0;
    struct error error;
    for (size_t i = 0; i < merging->count; i++) {
        struct source *source = job_alloc(sizeof *source);
        job_undo(source_undo, source);
        open_parts(source, merging->paths[i]);
        job_reserve(&all, &room, all_count + source->parts.count, sizeof *all);
        memcpy(all + all_count, source->parts.items, source->parts.count * sizeof *all);
        all_count += source->parts.count;
    }
    job_check(merge_recordings(all, all_count, merging->output, merging->options, merging->result,
                               &error),
              &error);
}

int source_merge(char *const *paths, size_t count, const char *output,
                 const struct transform_options *options, struct merge_result *result,
                 struct error *error) {
    struct merging merging = {paths, count, output, options, result};
    return job_run(merge_files, &merging, NULL, error);
}

/* ---- What is in it ---- */

static void choose(struct source *source, const struct source_choice *choice) {
    struct error error;
    if (choice != NULL && choice->all && choice->process != NULL) {
        job_fail("--process and --all-processes: only one of them");
    }
    if (!run_is(source->path)) {
        if (choice != NULL && choice->all) {
            sum_what_runs(source);
        }
        return;
    }
    if (choice == NULL) {
        job_fail("%s is a folder; name one of the files in it", source->path);
    }
    source->run = run_open(source->path, &error);
    if (source->run == NULL) {
        job_fail_as(&error);
    }
    if (choice->all) {
        struct inputs inputs = list_inputs(source->run);
        sum_inputs(source, &inputs);
    } else {
        choose_process(source, choice->process);
    }
}

/* The model of the file that was chosen, where it is not the sum in memory. */
static void load(struct source *source, const char *debug_folders,
                 const struct replay_options *options) {
    const char *path = source->merged != NULL ? source->merged : source->path;
    struct error error;
    if (source->model == NULL && !recording_is(path)) {
        source->model = load_profile(profile_open(path, &error), &error);
    } else if (source->model == NULL) {
        open_parts(source, path);
        source->model = source->merged == NULL ? modelcache_replay(source->parts, options, &error)
                                               : model_replay(source->parts, options, &error);
        if (source->model == NULL) {
            job_fail_as(&error);
        }
        if (names_lacks_files(source->model, debug_folders)) {
            source->symbols = extract_symbols(source->parts.items[source->parts.count - 1]);
        }
    }
    if (source->is_running) {
        source->model->live = true;
        source->model->header.state = MEMTRACE_STATE_RUNNING;
    }
}

struct opening {
    struct source *source;
    const char *name;
    const struct source_choice *choice;
    const char *debug_folders;
    const struct replay_options *options;
};

static void open_source(void *what) {
    const struct opening *opening = what;
    struct source *source = opening->source;
    pid_t running = 0;
    struct error error;
    job_undo(source_undo, source);
    trust_folders(opening->debug_folders);
    source->path = source_find(opening->name, &running);
    choose(source, opening->choice);
    load(source, opening->debug_folders, opening->options);
    check_process(source, opening->choice);
    job_check(framenames_read(&source->names, source->parts.items, source->parts.count, &error),
              &error);
    if (running != 0 && source->run == NULL && source->model->live &&
        region_is_foreign(&source->model->header)) {
        source->model->header.pid = (uint32_t)running; /* as it was asked for */
    }
}

int source_open(struct source *source, const char *name, const struct source_choice *choice,
                const char *debug_folders, const struct replay_options *options,
                struct error *error) {
    struct opening opening = {source, name, choice, debug_folders, options};
    *source = (struct source){.process = RUN_NONE};
    return job_run(open_source, &opening, &source->memory, error);
}

static void open_parts_alone(void *what) {
    const struct opening *opening = what;
    job_undo(source_undo, opening->source);
    opening->source->path = job_string(opening->name);
    open_parts(opening->source, opening->name);
}

int source_open_parts(struct source *source, const char *name, struct error *error) {
    struct opening opening = {.source = source, .name = name};
    *source = (struct source){.process = RUN_NONE};
    return job_run(open_parts_alone, &opening, &source->memory, error);
}

void source_close(struct source *source) {
    job_free(&source->memory);
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
