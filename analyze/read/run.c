/* SPDX-License-Identifier: MIT */
/* run.c: opens the folder of a run, and brings its processes in order. See run.h. */
#include "analyze/read/run.h"

#include "analyze/base/array.h"
#include "analyze/base/job.h"
#include "analyze/base/pathname.h"
#include "analyze/read/block.h"
#include "analyze/read/jsontree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SUMMARY_MOST = 1 << 28 };

bool run_is(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

char *run_file_path(const struct run *run, const char *file) {
    char *path;
    return asprintf(&path, "%s/%s", run->path, file) >= 0 ? path : NULL;
}

const char *run_name(const struct run_process *process) {
    const char *name = pathname_base(process->program);
    return name[0] != '\0' ? name : "?";
}

bool run_is_merged(const char *file) {
    return strcmp(file, RUN_OTHERS) == 0;
}

struct run_process *run_add_process(struct run *run) {
    job_grow(&run->processes, &run->process_room, run->process_count, sizeof *run->processes);
    run->processes[run->process_count] = (struct run_process){.parent = RUN_NONE};
    return &run->processes[run->process_count++];
}

void run_add_point(struct run *run, struct run_point point) {
    size_t count = run->timeline_count;
    if (count == 0 || point.time_ns > run->timeline[count - 1].time_ns) {
        job_grow(&run->timeline, &run->timeline_room, count, sizeof *run->timeline);
        run->timeline[run->timeline_count++] = point;
    }
}

/* ---- What belongs together ---- */

static int run_compare_starts(const void *left, const void *right) {
    const struct run_process *a = left;
    const struct run_process *b = right;
    if (a->start_ns != b->start_ns) {
        return a->start_ns < b->start_ns ? -1 : 1;
    }
    if (a->pid == b->pid && a->image != b->image) {
        return a->image < b->image ? -1 : 1;
    }
    return a->first_image < b->first_image ? -1 : 1; /* as they stood */
}

/* Places by pid, then by their order: whoever has a pid at some time is found by halving. */
struct by_pid {
    uint32_t pid;
    size_t place;
};

static int run_compare_pids(const void *left, const void *right) {
    const struct by_pid *a = left;
    const struct by_pid *b = right;
    if (a->pid != b->pid) {
        return a->pid < b->pid ? -1 : 1;
    }
    return (a->place > b->place) - (a->place < b->place);
}

/* The last one with this pid before `place`; RUN_NONE. */
static size_t latest_with(const struct by_pid *pids, size_t count, uint32_t pid, size_t place) {
    size_t low = 0;
    size_t high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (pids[middle].pid < pid || (pids[middle].pid == pid && pids[middle].place < place)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low != 0 && pids[low - 1].pid == pid ? pids[low - 1].place : RUN_NONE;
}

/* A later image goes on with the process of its pid; else who had the parent's pid then started it.
 * Both lie before it, so there is no cycle, whatever the numbers are. */
static void relate_processes(struct run *run) {
    struct by_pid *pids = job_array(run->process_count, sizeof *pids);
    array_sort(run->processes, run->process_count, sizeof *run->processes, run_compare_starts);
    for (size_t i = 0; i < run->process_count; i++) {
        pids[i] = (struct by_pid){run->processes[i].pid, i};
    }
    qsort(pids, run->process_count, sizeof *pids, run_compare_pids);
    for (size_t i = 0; i < run->process_count; i++) {
        struct run_process *process = &run->processes[i];
        size_t before =
            process->image > 1 ? latest_with(pids, run->process_count, process->pid, i) : RUN_NONE;
        size_t parent = latest_with(pids, run->process_count, process->parent_pid, i);
        bool goes_on = before != RUN_NONE && run->processes[before].image < process->image;
        process->first_image = goes_on ? run->processes[before].first_image : i;
        process->parent = goes_on              ? run->processes[before].parent
                          : parent != RUN_NONE ? run->processes[parent].first_image
                                               : RUN_NONE;
    }
    job_release(pids);
}

/* ---- The peak of all ---- */

struct change {
    uint64_t time_ns;
    bool begins;
    uint64_t bytes;
};

static int compare_changes(const void *left, const void *right) {
    const struct change *a = left;
    const struct change *b = right;
    if (a->time_ns != b->time_ns) {
        return a->time_ns < b->time_ns ? -1 : 1;
    }
    return (int)b->begins - (int)a->begins; /* whoever ends in that moment was there in it */
}

static uint64_t add_at_most(uint64_t left, uint64_t right) {
    uint64_t sum;
    return __builtin_add_overflow(left, right, &sum) ? UINT64_MAX : sum;
}

/* The most that the peaks of processes alive at one time sum up to: no moment saw more. */
static uint64_t bound_peak(const struct run *run) {
    struct change *changes = job_array(2 * run->process_count, sizeof *changes);
    uint64_t bound = 0;
    uint64_t sum = 0;
    for (size_t i = 0; i < run->process_count; i++) {
        const struct run_process *process = &run->processes[i];
        uint64_t most = add_at_most(process->peak_bytes, process->peak_error_bytes);
        changes[2 * i] = (struct change){process->start_ns, true, most};
        changes[2 * i + 1] = (struct change){process->end_ns, false, most};
    }
    qsort(changes, 2 * run->process_count, sizeof *changes, compare_changes);
    for (size_t i = 0; i < 2 * run->process_count; i++) {
        sum = changes[i].begins ? add_at_most(sum, changes[i].bytes)
                                : sum - (changes[i].bytes < sum ? changes[i].bytes : sum);
        bound = sum > bound ? sum : bound;
    }
    job_release(changes);
    return bound;
}

/* What a summary tells stays, as far as it can be true. */
static void finish_peak(struct run *run) {
    for (size_t i = 0; i < run->timeline_count; i++) {
        if (run->timeline[i].live_bytes > run->peak.seen_bytes) {
            run->peak.seen_bytes = run->timeline[i].live_bytes;
            run->peak.at_ns = run->timeline[i].time_ns;
        }
    }
    for (size_t i = 0; i < run->process_count; i++) {
        if (run->processes[i].peak_bytes > run->peak.seen_bytes) {
            run->peak.seen_bytes = run->processes[i].peak_bytes;
            run->peak.at_ns = 0;
        }
    }
    if (run->peak.bound_bytes == 0) {
        run->peak.bound_bytes = bound_peak(run);
    }
    if (run->peak.bound_bytes < run->peak.seen_bytes) {
        run->peak.bound_bytes = run->peak.seen_bytes;
    }
}

static int run_compare_names(const void *left, const void *right) {
    return strcmp(*(char *const *)left, *(char *const *)right);
}

/* Whether a name is what a summary tells, where U+FFFD stands for each byte that is no UTF-8. */
static bool name_is_told(const char *name, const char *told) {
    static const char repaired[] = "\xef\xbf\xbd";
    while (*name != '\0' && *told != '\0') {
        bool is_same = *name == *told;
        if (!is_same && strncmp(told, repaired, strlen(repaired)) != 0) {
            return false;
        }
        told += is_same ? 1 : strlen(repaired);
        name++;
    }
    return *name == *told;
}

/* Only what was seen in the folder is ever opened, whatever a summary says. */
static void drop_missing(struct run *run, struct run_process *process) {
    char *const *files = run->files;
    size_t at = 0;
    if (process->file == NULL ||
        (run->file_count != 0 && bsearch(&process->file, files, run->file_count, sizeof *files,
                                         run_compare_names) != NULL)) {
        return;
    }
    while (at < run->file_count && !name_is_told(files[at], process->file)) {
        at++;
    }
    process->file = at < run->file_count ? files[at] : NULL;
    run->missing_files += at == run->file_count;
}

static void finish_processes(struct run *run) {
    for (size_t i = 0; i < run->process_count; i++) {
        struct run_process *process = &run->processes[i];
        process->first_image = i;
        drop_missing(run, process);
        process->end_ns = process->end_ns > process->start_ns ? process->end_ns : process->start_ns;
        run->duration_ns = process->end_ns > run->duration_ns ? process->end_ns : run->duration_ns;
    }
}

static size_t largest_kept(const struct run *run, bool with_small) {
    size_t largest = RUN_NONE;
    for (size_t i = 0; i < run->process_count; i++) {
        const struct run_process *process = &run->processes[i];
        if (process->file != NULL &&
            (with_small || (!process->light && !run_is_merged(process->file))) &&
            (largest == RUN_NONE || process->peak_bytes > run->processes[largest].peak_bytes)) {
            largest = i;
        }
    }
    return largest;
}

size_t run_largest(const struct run *run) {
    size_t largest = largest_kept(run, false);
    return largest != RUN_NONE ? largest : largest_kept(run, true);
}

/* ---- The folder ---- */

/* What is open, to be closed at the job's border. */
struct opening {
    const char *path;
    struct run *run;
    DIR *folder;
    DIR *machine;
    int summary;
    yajl_val root;
};

/* `below`: the folder within that of the run; "": the run's own. */
static void list_folder(struct run *run, DIR *folder, const char *below) {
    const struct dirent *entry;
    while ((entry = readdir(folder)) != NULL) {
        if (entry->d_name[0] != '.' && pathname_is_ours(entry->d_name)) {
            job_grow(&run->files, &run->file_room, run->file_count, sizeof *run->files);
            run->files[run->file_count++] =
                job_text("%s%s%s", below, below[0] != '\0' ? "/" : "", entry->d_name);
        }
    }
}

static void run_list_files(struct opening *opening) {
    struct run *run = opening->run;
    const struct dirent *entry;
    opening->folder = opendir(run->path);
    if (opening->folder == NULL) {
        job_fail("cannot read %s: %s", run->path, strerror(errno));
    }
    list_folder(run, opening->folder, "");
    rewinddir(opening->folder);
    /* What `memtrace gather` receives lies in a folder for each machine. */
    for (bool is_gathered = run->file_count == 0;
         is_gathered && (entry = readdir(opening->folder)) != NULL;) {
        int fd = entry->d_name[0] == '.' ? -1
                                         : openat(dirfd(opening->folder), entry->d_name,
                                                  O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        opening->machine = fd >= 0 ? fdopendir(fd) : NULL;
        if (opening->machine != NULL) {
            list_folder(run, opening->machine, entry->d_name);
            closedir(opening->machine);
            opening->machine = NULL;
        } else if (fd >= 0) {
            close(fd);
        }
    }
    array_sort(run->files, run->file_count, sizeof *run->files, run_compare_names);
}

/* ---- run.json, as `memtrace run` writes it (docs/runs.md). Whatever is in the file: members that
 * are not known are skipped, those of another type than expected are as if they were not there ----
 */

enum { VERSION = 1 };

static yajl_val member(yajl_val object, const char *name, yajl_type type) {
    const char *path[] = {name, NULL};
    return YAJL_IS_OBJECT(object) ? yajl_tree_get(object, path, type) : NULL;
}

static uint64_t as_number(yajl_val value) {
    return YAJL_IS_INTEGER(value) && value->u.number.i > 0 ? (uint64_t)value->u.number.i : 0;
}

static uint64_t number(yajl_val object, const char *name) {
    return as_number(member(object, name, yajl_t_number));
}

static uint32_t small_number(yajl_val object, const char *name) {
    uint64_t value = number(object, name);
    return value <= UINT32_MAX ? (uint32_t)value : 0;
}

/* "" where there is none. */
static const char *string(yajl_val object, const char *name) {
    const char *found = YAJL_GET_STRING(member(object, name, yajl_t_string));
    return found != NULL ? found : "";
}

/* The strings of an array. */
static struct arguments texts(yajl_val object, const char *name) {
    yajl_val array = member(object, name, yajl_t_array);
    size_t count = array != NULL ? YAJL_GET_ARRAY(array)->len : 0;
    struct arguments all = {0};
    char *at;
    for (size_t i = 0; i < count; i++) {
        const char *item = YAJL_GET_STRING(YAJL_GET_ARRAY(array)->values[i]);
        all.size += item != NULL ? strlen(item) + 1 : 0;
    }
    all.bytes = at = job_alloc(all.size + 1);
    for (size_t i = 0; i < count; i++) {
        const char *item = YAJL_GET_STRING(YAJL_GET_ARRAY(array)->values[i]);
        at = item != NULL ? stpcpy(at, item) + 1 : at;
    }
    return all;
}

const char *run_end_word(enum run_end end) {
    static const char *const words[] = {"ended", "execed", "killed", "running", "detached"};
    return words[end];
}

static void summary_take_process(struct run *run, yajl_val object) {
    struct run_process *process = run_add_process(run);
    const char *file = string(object, "file");
    process->pid = small_number(object, "pid");
    process->parent_pid = small_number(object, "parent_pid");
    process->image = small_number(object, "image");
    process->start_ns = number(object, "start_ns");
    process->end_ns = number(object, "end_ns");
    process->end = RUN_DETACHED;
    while (process->end != RUN_ENDED &&
           strcmp(string(object, "end"), run_end_word(process->end)) != 0) {
        process->end--;
    }
    process->light = member(object, "light", yajl_t_true) != NULL;
    process->is_counted = member(object, "allocations", yajl_t_number) != NULL;
    process->allocations = number(object, "allocations");
    process->total_bytes = number(object, "total_bytes");
    process->frees = number(object, "frees");
    process->leaked_bytes = number(object, "leaked_bytes");
    process->suppressed_bytes = number(object, "suppressed_bytes");
    if (process->suppressed_bytes > process->leaked_bytes) {
        process->suppressed_bytes = process->leaked_bytes;
    }
    process->leaked_blocks = number(object, "leaked_blocks");
    process->peak_bytes = number(object, "peak_bytes");
    process->lost = number(object, "lost");
    process->program = job_string(string(object, "program"));
    process->command = texts(object, "arguments");
    process->file = file[0] != '\0' ? job_string(file) : NULL;
}

static void summary_take_run(struct run *run, yajl_val root) {
    yajl_val peak = member(root, "peak", yajl_t_object);
    yajl_val end = member(root, "exit", yajl_t_object);
    yajl_val processes = member(root, "processes", yajl_t_array);
    yajl_val timeline = member(root, "timeline", yajl_t_array);
    run->duration_ns = number(root, "duration_ns");
    run->peak = (struct run_peak){.seen_bytes = number(peak, "seen_bytes"),
                                  .at_ns = number(peak, "at_ns"),
                                  .bound_bytes = number(peak, "bound_bytes")};
    run->was_signalled = member(end, "signal", yajl_t_number) != NULL;
    run->exit_status = (int64_t)number(end, run->was_signalled ? "signal" : "status");
    run->has_exit = run->was_signalled || member(end, "status", yajl_t_number) != NULL;
    run->command = texts(root, "command");
    for (size_t i = 0; processes != NULL && i < YAJL_GET_ARRAY(processes)->len; i++) {
        yajl_val item = YAJL_GET_ARRAY(processes)->values[i];
        if (YAJL_IS_OBJECT(item)) {
            summary_take_process(run, item);
        }
    }
    for (size_t i = 0; timeline != NULL && i < YAJL_GET_ARRAY(timeline)->len; i++) {
        yajl_val item = YAJL_GET_ARRAY(timeline)->values[i];
        if (YAJL_IS_ARRAY(item) && YAJL_GET_ARRAY(item)->len >= 4) {
            yajl_val *values = YAJL_GET_ARRAY(item)->values;
            run_add_point(run, (struct run_point){as_number(values[0]), as_number(values[1]),
                                                  as_number(values[2]), as_number(values[3])});
        }
    }
}

/* The text of the summary, which is open. NULL: *trouble. */
static char *read_summary(int fd, const char **trouble) {
    struct stat status;
    char *text;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size > SUMMARY_MOST) {
        *trouble = "it is too large, or no file";
        return NULL;
    }
    text = job_array((size_t)status.st_size + 1, 1);
    if (block_read_at(fd, text, (size_t)status.st_size, 0) != status.st_size) {
        *trouble = "it cannot be read";
    } else if (memchr(text, '\0', (size_t)status.st_size) != NULL) {
        *trouble = "it is damaged";
    } else {
        return text;
    }
    job_release(text);
    return NULL;
}

/* NULL, or why the summary cannot be used. */
static const char *take_summary(struct opening *opening) {
    struct run *run = opening->run;
    const char *trouble = NULL;
    char *text = read_summary(opening->summary, &trouble);
    if (text == NULL) {
        return trouble;
    }
    opening->root = jsontree_parse(text);
    job_release(text);
    if (opening->root == NULL) {
        return "it is damaged or not whole";
    }
    if (strcmp(string(opening->root, "format"), "memtrace run") != 0) {
        return "it does not describe a run";
    }
    if (number(opening->root, "version") != VERSION) {
        return "its version is not 1; use the memtrace it was made with";
    }
    summary_take_run(run, opening->root);
    return run->process_count != 0 ? NULL : "it tells of no process";
}

static void read_run(void *what) {
    struct opening *opening = what;
    struct run *run = job_alloc(sizeof *run);
    const char *trouble = NULL;
    opening->run = run;
    run->path = job_string(opening->path);
    for (size_t size = strlen(run->path); size > 1 && run->path[size - 1] == '/';) {
        run->path[--size] = '\0';
    }
    run_list_files(opening);
    opening->summary = open(job_text("%s/%s", run->path, RUN_SUMMARY),
                            O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (opening->summary >= 0) {
        trouble = take_summary(opening);
        run->has_summary = trouble == NULL;
    } else if (errno != ENOENT) {
        trouble = strerror(errno);
    }
    if (!run->has_summary) {
        /* Nothing of it counts. */
        *run = (struct run){.path = run->path,
                            .files = run->files,
                            .file_count = run->file_count,
                            .file_room = run->file_room};
        snprintf(run->trouble, sizeof run->trouble, "%s", trouble != NULL ? trouble : "");
        runfiles_read(run);
    }
    finish_processes(run);
    relate_processes(run);
    finish_peak(run);
    if (run->process_count == 0) {
        job_fail("%s is a folder without a profile (*.mtp) or a recording (*.mtr)%s%s", run->path,
                 run->trouble[0] != '\0' ? "; its run.json cannot be used: " : "", run->trouble);
    }
}

struct run *run_open(const char *path, struct error *error) {
    struct opening opening = {.path = path, .summary = -1};
    struct job_memory *memory = NULL;
    int result = job_run(read_run, &opening, &memory, error);
    yajl_tree_free(opening.root);
    if (opening.summary >= 0) {
        close(opening.summary);
    }
    if (opening.machine != NULL) {
        closedir(opening.machine);
    }
    if (opening.folder != NULL) {
        closedir(opening.folder);
    }
    if (result != 0) {
        return NULL;
    }
    opening.run->memory = memory;
    return opening.run;
}

void run_close(struct run *run) {
    struct job_memory *memory = run != NULL ? run->memory : NULL;
    job_free(&memory);
}
