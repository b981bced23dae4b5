/* SPDX-License-Identifier: MIT */
/* run.c: opens the folder of a run, and brings its processes in order. See run.h. */
#include "analyze/read/run.h"

#include "analyze/base/array.h"
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
    if (array_grow(&run->processes, &run->process_room, run->process_count,
                   sizeof *run->processes) != 0) {
        return NULL;
    }
    run->processes[run->process_count] = (struct run_process){.parent = RUN_NONE};
    return &run->processes[run->process_count++];
}

int run_add_point(struct run *run, struct run_point point) {
    size_t count = run->timeline_count;
    if (count != 0 && point.time_ns <= run->timeline[count - 1].time_ns) {
        return 0;
    }
    if (array_grow(&run->timeline, &run->timeline_room, count, sizeof *run->timeline) != 0) {
        return -1;
    }
    run->timeline[run->timeline_count++] = point;
    return 0;
}

/* ---- What belongs together ---- */

static int by_start(const void *left, const void *right) {
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

static int compare_pids(const void *left, const void *right) {
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
static int relate(struct run *run) {
    struct by_pid *pids = calloc(run->process_count + 1, sizeof *pids);
    if (pids == NULL) {
        return -1;
    }
    for (size_t i = 0; i < run->process_count; i++) {
        run->processes[i].first_image = i;
    }
    if (run->process_count != 0) {
        qsort(run->processes, run->process_count, sizeof *run->processes, by_start);
    }
    for (size_t i = 0; i < run->process_count; i++) {
        pids[i] = (struct by_pid){run->processes[i].pid, i};
    }
    qsort(pids, run->process_count, sizeof *pids, compare_pids);
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
    free(pids);
    return 0;
}

/* ---- The peak of all ---- */

struct change {
    uint64_t time_ns;
    bool begins;
    uint64_t bytes;
};

static int by_time(const void *left, const void *right) {
    const struct change *a = left;
    const struct change *b = right;
    if (a->time_ns != b->time_ns) {
        return a->time_ns < b->time_ns ? -1 : 1;
    }
    return (int)b->begins - (int)a->begins; /* whoever ends in that moment was there in it */
}

static uint64_t add(uint64_t left, uint64_t right) {
    uint64_t sum;
    return __builtin_add_overflow(left, right, &sum) ? UINT64_MAX : sum;
}

/* The most that the peaks of processes alive at one time sum up to: no moment saw more. */
static int bound_peak(struct run *run) {
    struct change *changes = calloc(2 * run->process_count + 1, sizeof *changes);
    uint64_t bound = 0;
    uint64_t sum = 0;
    if (changes == NULL) {
        return -1;
    }
    for (size_t i = 0; i < run->process_count; i++) {
        const struct run_process *process = &run->processes[i];
        uint64_t most = add(process->peak_bytes, process->peak_error_bytes);
        changes[2 * i] = (struct change){process->start_ns, true, most};
        changes[2 * i + 1] = (struct change){process->end_ns, false, most};
    }
    qsort(changes, 2 * run->process_count, sizeof *changes, by_time);
    for (size_t i = 0; i < 2 * run->process_count; i++) {
        sum = changes[i].begins ? add(sum, changes[i].bytes)
                                : sum - (changes[i].bytes < sum ? changes[i].bytes : sum);
        bound = sum > bound ? sum : bound;
    }
    free(changes);
    run->peak.bound_bytes = bound;
    return 0;
}

/* What a summary tells stays, as far as it can be true. */
static int finish_peak(struct run *run) {
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
    if (run->peak.bound_bytes == 0 && bound_peak(run) != 0) {
        return -1;
    }
    if (run->peak.bound_bytes < run->peak.seen_bytes) {
        run->peak.bound_bytes = run->peak.seen_bytes;
    }
    return 0;
}

static int by_name(const void *left, const void *right) {
    return strcmp(*(char *const *)left, *(char *const *)right);
}

/* Whether a name is what a summary tells, where U+FFFD stands for each byte that is no UTF-8. */
static bool is_told(const char *name, const char *told) {
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

static const char *find_told(const struct run *run, const char *told) {
    for (size_t i = 0; i < run->file_count; i++) {
        if (is_told(run->files[i], told)) {
            return run->files[i];
        }
    }
    return NULL;
}

/* Only what was seen in the folder is ever opened, whatever a summary says. */
static void drop_missing(struct run *run, struct run_process *process) {
    const char *found;
    if (process->file == NULL ||
        (run->file_count != 0 && bsearch(&process->file, run->files, run->file_count,
                                         sizeof *run->files, by_name) != NULL)) {
        return;
    }
    found = find_told(run, process->file);
    free(process->file);
    process->file = found != NULL ? strdup(found) : NULL;
    run->missing_files += found == NULL;
}

static int finish(struct run *run) {
    for (size_t i = 0; i < run->process_count; i++) {
        struct run_process *process = &run->processes[i];
        process->first_image = i;
        drop_missing(run, process);
        process->end_ns = process->end_ns > process->start_ns ? process->end_ns : process->start_ns;
        run->duration_ns = process->end_ns > run->duration_ns ? process->end_ns : run->duration_ns;
    }
    return relate(run) == 0 ? finish_peak(run) : -1;
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

/* `below`: the folder within that of the run; "": the run's own. 0, or -1: out of memory. */
static int take_name(struct run *run, const char *below, const char *name) {
    char *file;
    if (name[0] == '.' || !pathname_is_ours(name)) {
        return 0;
    }
    if (array_grow(&run->files, &run->file_room, run->file_count, sizeof *run->files) != 0 ||
        asprintf(&file, "%s%s%s", below, below[0] != '\0' ? "/" : "", name) < 0) {
        return -1;
    }
    run->files[run->file_count++] = file;
    return 0;
}

static int list_folder(struct run *run, DIR *folder, const char *below) {
    const struct dirent *entry;
    int result = 0;
    while (result == 0 && (entry = readdir(folder)) != NULL) {
        result = take_name(run, below, entry->d_name);
    }
    return result;
}

/* What `memtrace gather` receives lies in a folder for each machine. */
static int list_machines(struct run *run, DIR *folder) {
    const struct dirent *entry;
    int result = 0;
    rewinddir(folder);
    while (result == 0 && (entry = readdir(folder)) != NULL) {
        int fd = entry->d_name[0] == '.' ? -1
                                         : openat(dirfd(folder), entry->d_name,
                                                  O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        DIR *machine = fd >= 0 ? fdopendir(fd) : NULL;
        if (machine != NULL) {
            result = list_folder(run, machine, entry->d_name);
            closedir(machine);
        } else if (fd >= 0) {
            close(fd);
        }
    }
    return result;
}

static int list_files(struct run *run, struct error *error) {
    DIR *folder = opendir(run->path);
    int result;
    if (folder == NULL) {
        return error_set(error, "cannot read %s: %s", run->path, strerror(errno));
    }
    result = list_folder(run, folder, "");
    if (result == 0 && run->file_count == 0) {
        result = list_machines(run, folder);
    }
    closedir(folder);
    if (run->file_count != 0) {
        qsort(run->files, run->file_count, sizeof *run->files, by_name);
    }
    return result == 0 ? 0 : error_set(error, "out of memory while reading %s", run->path);
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

/* The strings of an array; bytes NULL: out of memory. */
static struct arguments texts(yajl_val object, const char *name) {
    yajl_val array = member(object, name, yajl_t_array);
    size_t count = array != NULL ? YAJL_GET_ARRAY(array)->len : 0;
    struct arguments all = {0};
    char *at;
    for (size_t i = 0; i < count; i++) {
        const char *item = YAJL_GET_STRING(YAJL_GET_ARRAY(array)->values[i]);
        all.size += item != NULL ? strlen(item) + 1 : 0;
    }
    all.bytes = at = calloc(all.size + 1, 1);
    for (size_t i = 0; all.bytes != NULL && i < count; i++) {
        const char *item = YAJL_GET_STRING(YAJL_GET_ARRAY(array)->values[i]);
        at = item != NULL ? stpcpy(at, item) + 1 : at;
    }
    return all;
}

const char *run_end_word(enum run_end end) {
    static const char *const words[] = {"ended", "execed", "killed", "running", "detached"};
    return words[end];
}

static enum run_end end_of(yajl_val object) {
    enum run_end end = RUN_DETACHED;
    while (end != RUN_ENDED && strcmp(string(object, "end"), run_end_word(end)) != 0) {
        end--;
    }
    return end;
}

static int take_process(struct run *run, yajl_val object) {
    struct run_process *process = run_add_process(run);
    yajl_val light = member(object, "light", yajl_t_true);
    const char *file = string(object, "file");
    if (process == NULL) {
        return -1;
    }
    process->pid = small_number(object, "pid");
    process->parent_pid = small_number(object, "parent_pid");
    process->image = small_number(object, "image");
    process->start_ns = number(object, "start_ns");
    process->end_ns = number(object, "end_ns");
    process->end = end_of(object);
    process->light = light != NULL;
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
    process->program = strdup(string(object, "program"));
    process->command = texts(object, "arguments");
    process->file = file[0] != '\0' ? strdup(file) : NULL;
    return process->program != NULL && process->command.bytes != NULL &&
                   (file[0] == '\0' || process->file != NULL)
               ? 0
               : -1;
}

static int take_processes(struct run *run, yajl_val root) {
    yajl_val array = member(root, "processes", yajl_t_array);
    size_t count = array != NULL ? YAJL_GET_ARRAY(array)->len : 0;
    for (size_t i = 0; i < count; i++) {
        yajl_val item = YAJL_GET_ARRAY(array)->values[i];
        if (YAJL_IS_OBJECT(item) && take_process(run, item) != 0) {
            return -1;
        }
    }
    return 0;
}

static int take_point(struct run *run, yajl_val item) {
    uint64_t values[4];
    if (!YAJL_IS_ARRAY(item) || YAJL_GET_ARRAY(item)->len < 4) {
        return 0;
    }
    for (size_t i = 0; i < 4; i++) {
        values[i] = as_number(YAJL_GET_ARRAY(item)->values[i]);
    }
    return run_add_point(run, (struct run_point){values[0], values[1], values[2], values[3]});
}

static int take_timeline(struct run *run, yajl_val root) {
    yajl_val array = member(root, "timeline", yajl_t_array);
    size_t count = array != NULL ? YAJL_GET_ARRAY(array)->len : 0;
    int result = 0;
    for (size_t i = 0; result == 0 && i < count; i++) {
        result = take_point(run, YAJL_GET_ARRAY(array)->values[i]);
    }
    return result;
}

static int take_run(struct run *run, yajl_val root) {
    yajl_val peak = member(root, "peak", yajl_t_object);
    yajl_val end = member(root, "exit", yajl_t_object);
    run->duration_ns = number(root, "duration_ns");
    run->peak = (struct run_peak){.seen_bytes = number(peak, "seen_bytes"),
                                  .at_ns = number(peak, "at_ns"),
                                  .bound_bytes = number(peak, "bound_bytes")};
    run->was_signalled = member(end, "signal", yajl_t_number) != NULL;
    run->exit_status = (int64_t)number(end, run->was_signalled ? "signal" : "status");
    run->has_exit = run->was_signalled || member(end, "status", yajl_t_number) != NULL;
    run->command = texts(root, "command");
    return run->command.bytes != NULL && take_processes(run, root) == 0 ? take_timeline(run, root)
                                                                        : -1;
}

static int refuse(struct run *run, const char *reason) {
    snprintf(run->trouble, sizeof run->trouble, "%s", reason);
    return -1;
}

static int read_root(struct run *run, yajl_val root) {
    if (strcmp(string(root, "format"), "memtrace run") != 0) {
        return refuse(run, "it does not describe a run");
    }
    if (number(root, "version") != VERSION) {
        return refuse(run, "its version is not 1; use the memtrace it was made with");
    }
    if (take_run(run, root) != 0) {
        return 1;
    }
    return run->process_count != 0 ? 0 : refuse(run, "it tells of no process");
}

/* json[size] is NUL. 0; -1: the summary cannot be used, run->trouble says why; 1: out of memory. */
static int parse_summary(struct run *run, const char *json, size_t size) {
    yajl_val root;
    int result;
    if (memchr(json, '\0', size) != NULL) {
        return refuse(run, "it is damaged");
    }
    root = jsontree_parse(json);
    if (root == NULL) {
        return refuse(run, "it is damaged or not whole");
    }
    result = read_root(run, root);
    yajl_tree_free(root);
    return result;
}

/* As parse_summary(). */
static int read_text(struct run *run, int fd) {
    struct stat status;
    char *text;
    int result = -1;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size > SUMMARY_MOST) {
        snprintf(run->trouble, sizeof run->trouble, "it is too large, or no file");
        return -1;
    }
    text = malloc((size_t)status.st_size + 1);
    if (text == NULL) {
        return 1;
    }
    text[status.st_size] = '\0';
    if (block_read_at(fd, text, (size_t)status.st_size, 0) == status.st_size) {
        result = parse_summary(run, text, (size_t)status.st_size);
    } else {
        snprintf(run->trouble, sizeof run->trouble, "it cannot be read");
    }
    free(text);
    return result;
}

static void drop_processes(struct run *run) {
    for (size_t i = 0; i < run->process_count; i++) {
        free(run->processes[i].program);
        free(run->processes[i].command.bytes);
        free(run->processes[i].file);
    }
    free(run->processes);
    free(run->timeline);
    free(run->command.bytes);
    run->command = (struct arguments){0};
    run->processes = NULL;
    run->timeline = NULL;
    run->process_count = run->process_room = run->timeline_count = run->timeline_room = 0;
    run->peak = (struct run_peak){0};
    run->duration_ns = 0;
    run->has_exit = false;
}

/* As parse_summary(); 0 also if there is no summary. */
static int read_summary(struct run *run) {
    char *path = run_file_path(run, RUN_SUMMARY);
    int result;
    int fd;
    if (path == NULL) {
        return 1;
    }
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    free(path);
    if (fd < 0) {
        if (errno != ENOENT) {
            snprintf(run->trouble, sizeof run->trouble, "%s", strerror(errno));
        }
        return 0;
    }
    result = read_text(run, fd);
    close(fd);
    run->has_summary = result == 0;
    if (result < 0) {
        drop_processes(run);
    }
    return result;
}

static int read_folder(struct run *run, struct error *error) {
    if (list_files(run, error) != 0) {
        return -1;
    }
    if (read_summary(run) > 0 || (!run->has_summary && runfiles_read(run) != 0) ||
        finish(run) != 0) {
        return error_set(error, "out of memory while reading %s", run->path);
    }
    if (run->process_count == 0) {
        return error_set(
            error, "%s is a folder without a profile (*.mtp) or a recording (*.mtr)%s%s", run->path,
            run->trouble[0] != '\0' ? "; its run.json cannot be used: " : "", run->trouble);
    }
    return 0;
}

struct run *run_open(const char *path, struct error *error) {
    struct run *run = calloc(1, sizeof *run);
    if (run == NULL || (run->path = strdup(path)) == NULL) {
        free(run);
        error_set(error, "out of memory while reading %s", path);
        return NULL;
    }
    for (size_t size = strlen(run->path); size > 1 && run->path[size - 1] == '/';) {
        run->path[--size] = '\0';
    }
    if (read_folder(run, error) != 0) {
        run_close(run);
        return NULL;
    }
    return run;
}

void run_close(struct run *run) {
    if (run == NULL) {
        return;
    }
    drop_processes(run);
    for (size_t i = 0; i < run->file_count; i++) {
        free(run->files[i]);
    }
    free(run->files);
    free(run->path);
    free(run);
}
