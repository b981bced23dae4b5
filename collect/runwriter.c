/* SPDX-License-Identifier: MIT */
/* runwriter.c: the processes of a run, and where the files of each go. See runwriter.h. */
#include "collect/runwriter.h"

#include "analyze/base/array.h"
#include "analyze/base/pathname.h"
#include "analyze/base/scope.h"
#include "analyze/model/uncounted.h"
#include "analyze/rows/number.h"
#include "analyze/rows/safetext.h"
#include "collect/clock.h"
#include "collect/copy.h"
#include "collect/finish.h"
#include "collect/runfolder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    SMALL_ALLOCATIONS = 1000,
    SMALL_BYTES = 1 << 20,
    FIRST_INTERVAL_MS = 100,
};

/* --- beginning and end ------------------------------------------------------------------------ */

int runwriter_begin(struct runwriter *run, uint64_t id, const char *path, bool is_recording,
                    char **arguments) {
    *run = (struct runwriter){.id = id,
                              .arguments = arguments,
                              .is_recording = is_recording,
                              .start_ns = clock_now_ns(),
                              .start_realtime_ns = clock_kernel_ns(CLOCK_REALTIME),
                              .samples = calloc(RUNWRITER_SAMPLES, sizeof *run->samples),
                              .sample_interval_ns = FIRST_INTERVAL_MS * MS};
    snprintf(run->path, sizeof run->path, "%s", path);
    run->discards = copy_discards(path);
    runfolder_name(run);
    return run->samples != NULL ? 0 : -1;
}

static void free_process(struct runwriter_process *process) {
    free(process->program);
    free(process->arguments.bytes);
    free(process->uncounted);
    free(process->file);
}

void runwriter_free(struct runwriter *run) {
    for (size_t i = 0; i < run->process_count; i++) {
        free_process(&run->processes[i]);
    }
    free(run->processes);
    free(run->samples);
    *run = (struct runwriter){0};
}

/* --- processes -------------------------------------------------------------------------------- */

/* A place for one more, zero. NULL: out of memory. */
static struct runwriter_process *new_process(struct runwriter *run) {
    size_t count = run->process_count;
    if (array_grow_by_count(&run->processes, count, sizeof *run->processes) != 0) {
        return NULL;
    }
    run->processes[run->process_count++] = (struct runwriter_process){.image = 1};
    return &run->processes[count];
}

/* What forked children did that never got a region of their own. */
static void add_light_children(struct runwriter *run, const struct profile *region,
                               const char *file) {
    struct profile_items at = {.kind = MEMTRACE_SEGMENT_PROCESSES};
    uint64_t zero = region->header.start_monotonic_ns;
    const struct memtrace_process *light;
    while ((light = profile_next(region, &at)) != NULL) {
        struct memtrace_process_own own = memtrace_process_own(light);
        struct runwriter_process *process = at.number != 0 &&
                                                    light->state != MEMTRACE_PROCESS_FREE &&
                                                    light->state != MEMTRACE_PROCESS_GROWN
                                                ? new_process(run)
                                                : NULL;
        if (process == NULL) {
            continue;
        }
        *process = (struct runwriter_process){
            .pid = (pid_t)light->pid,
            .pid_namespace = region->header.run.pid_namespace,
            .parent_pid = (pid_t)light->parent_pid,
            .image = 1,
            .is_followed = (region->header.flags & MEMTRACE_FLAG_FOLLOWED) != 0,
            .light = true,
            .program = strndup(light->name, sizeof light->name),
            .start_ns = zero + light->start_ns,
            .peak_ns = zero + light->start_ns,
            .end_ns = zero + (light->end_ns != 0 ? light->end_ns : light->start_ns),
            .state = light->state == MEMTRACE_PROCESS_ENDED    ? MEMTRACE_STATE_ENDED
                     : light->state == MEMTRACE_PROCESS_EXECED ? MEMTRACE_STATE_EXECED
                                                               : MEMTRACE_STATE_RUNNING,
            .allocations = own.counts.alloc_count,
            .total_bytes = own.counts.alloc_bytes,
            .frees = own.counts.free_count,
            .leaked_bytes = own.counts.alloc_bytes - own.counts.free_bytes,
            .leaked_blocks = own.counts.alloc_count - own.counts.free_count,
            .peak_bytes = own.maximum_bytes,
            .lost = light->lost,
            .file = file != NULL ? strdup(file) : NULL,
        };
    }
}

/* A light child that outlives the process in whose profile its record is grows: it has a profile of
 * its own, in which all that it did is counted, and which begins where the record does. That says
 * for good that it runs. (Its namespace of pids may be another than its parent's, and have others
 * of that number.) */
static void forget_light(struct runwriter *run, const struct memtrace_header *grown) {
    uint64_t nearest_ns = 1000000000;
    size_t found = run->process_count;
    for (size_t i = 0; i < run->process_count; i++) {
        const struct runwriter_process *process = &run->processes[i];
        uint64_t apart = process->start_ns > grown->start_monotonic_ns
                             ? process->start_ns - grown->start_monotonic_ns
                             : grown->start_monotonic_ns - process->start_ns;
        if (process->light && process->state == MEMTRACE_STATE_RUNNING &&
            process->pid == (pid_t)grown->pid && apart < nearest_ns) {
            nearest_ns = apart;
            found = i;
        }
    }
    if (found < run->process_count) {
        free_process(&run->processes[found]);
        memmove(&run->processes[found], &run->processes[found + 1],
                (run->process_count - found - 1) * sizeof *run->processes);
        run->process_count--;
    }
}

struct runwriter_process *runwriter_find(const struct runwriter *run,
                                         const struct memtrace_header *header) {
    for (size_t i = 0; i < run->process_count; i++) {
        struct runwriter_process *process = &run->processes[i];
        if (!process->light && process->pid == (pid_t)header->pid &&
            process->pid_namespace == header->run.pid_namespace &&
            process->start_ns == header->start_monotonic_ns) {
            return process;
        }
    }
    return NULL;
}

/* NULL: out of memory, and what it would have held is not told of. */
static struct runwriter_process *runwriter_add_process(struct runwriter *run,
                                                       const struct profile *region,
                                                       const struct model *model,
                                                       const struct leftout *left_out,
                                                       uint32_t state, char *file) {
    const struct memtrace_header *header = &region->header;
    struct runwriter_process *process;
    char uncounted[UNCOUNTED_SIZE];
    if ((header->flags & MEMTRACE_FLAG_FORKED) != 0) {
        forget_light(run, header);
    }
    process = new_process(run);
    if (process == NULL) {
        free(file);
        return NULL;
    }
    *process = (struct runwriter_process){
        .pid = (pid_t)header->pid,
        .pid_namespace = header->run.pid_namespace,
        .parent_pid = (pid_t)header->parent_pid,
        .image = 1,
        .is_followed = (header->flags & MEMTRACE_FLAG_FOLLOWED) != 0,
        .program = strndup(header->executable, sizeof header->executable),
        .arguments = arguments_copy(arguments_of(header)),
        .start_ns = header->start_monotonic_ns,
        .peak_ns = header->start_monotonic_ns,
        .end_ns = header->end_monotonic_ns != 0 ? header->end_monotonic_ns : clock_now_ns(),
        .state = state,
        .file = file,
    };
    if (model != NULL) {
        const struct model_totals *totals = &model->totals;
        process->allocations = totals->allocations;
        process->total_bytes = totals->total_bytes;
        process->frees = totals->frees;
        process->leaked_bytes = totals->live_bytes;
        process->suppressed_bytes = left_out->bytes;
        process->leaked_blocks = totals->live_blocks;
        process->peak_bytes = totals->maximum_bytes;
        process->peak_ns = process->start_ns + totals->maximum_ns;
        process->lost = totals->lost;
        process->uncounted =
            uncounted_explain(model, uncounted)[0] != '\0' ? strdup(uncounted) : NULL;
    }
    return process;
}

void runwriter_add(struct runwriter *run, const struct claim *claim, const struct model *model,
                   const struct leftout *left_out, const struct profile *region,
                   const char *profile, const struct record_result *recording) {
    const char *file = run->is_recording && recording != NULL ? recording->path : profile;
    bool small = file != NULL && runfolder_is_small(run, file);
    char *name = file != NULL ? strdup(small ? RUN_OTHERS : pathname_base(file)) : NULL;
    struct runwriter_process *process = runwriter_add_process(
        run, region, model, left_out, claim_load_u32(&claim->header->state), name);
    run->owner = claim->header->owner;
    if (process != NULL) {
        process->small = small;
        process->has_path = file != NULL && strcmp(file, run->path) == 0;
        add_light_children(run, region, name);
    }
}

void runwriter_add_file(struct runwriter *run, const struct profile *profile,
                        const struct model *model, const char *file) {
    char *name = strdup(file);
    struct leftout left_out = leftout_find(model);
    if (runwriter_add_process(run, profile, model, &left_out, profile->header.state, name) !=
        NULL) {
        add_light_children(run, profile, name);
    }
}

/* --- where files go --------------------------------------------------------------------------- */

void runwriter_join(struct runwriter *run, const struct claim *claim) {
    struct memtrace_recording *recording = claim_recording(claim);
    if (!run->is_recording || recording->state == MEMTRACE_RECORD_NONE) {
        return;
    }
    if (!run->has_first) {
        run->has_first = true;
        runfolder_clear(run->path);
        snprintf(recording->path, sizeof recording->path, "%.*s", (int)sizeof recording->path - 1,
                 run->path);
    } else if (runfolder_make(run) == 0) {
        runfolder_path(run, claim->header, ".mtr", recording->path, sizeof recording->path);
    }
}

void runwriter_leave(const struct runwriter *run, const struct claim *claim) {
    struct memtrace_recording *recording = claim_recording(claim);
    if (run->is_recording && run->has_folder && strcmp(recording->path, run->path) == 0) {
        char path[sizeof run->folder + 300];
        runfolder_path(run, claim->header, ".mtr", path, sizeof path);
        if (strlen(path) < sizeof recording->path &&
            runfolder_move_recording(run->path, path) != 0) {
            strcpy(recording->path, path);
        }
    }
}

void runwriter_note_place(const struct runwriter *run, const struct claim *claim) {
    struct memtrace_recording *recording = claim_recording(claim);
    char path[sizeof recording->path];
    if (run->is_recording &&
        (size_t)snprintf(path, sizeof path, "%s/%s", run->path, pathname_base(recording->path)) <
            sizeof path &&
        access(path, F_OK) == 0) {
        strcpy(recording->path, path);
    }
}

bool runwriter_is_alone(const struct runwriter *run, bool is_last) {
    return is_last && run->process_count == 0 && !runfolder_is_joined(run);
}

enum runwriter_place runwriter_place(struct runwriter *run, const struct claim *claim,
                                     const struct model *model, const struct profile *region,
                                     bool is_last) {
    char *output = claim->header->output;
    size_t size = sizeof claim->header->output;
    bool is_alone = runwriter_is_alone(run, is_last);
    /* The recording of the command itself is what was asked for, however few events it has. A
     * wrapper that became another program by exec is not. */
    bool is_asked_for = run->is_recording && claim->region.pid == run->pid &&
                        claim_load_u32(&claim->header->state) != MEMTRACE_STATE_EXECED;
    bool is_small = model != NULL && model->totals.allocations < SMALL_ALLOCATIONS &&
                    model->totals.maximum_bytes < SMALL_BYTES;
    /* The call paths of its light children would not survive the merging. */
    for (size_t i = 0; i < region->segment_count && is_small; i++) {
        is_small = region->segments[i].kind != MEMTRACE_SEGMENT_PATHS;
    }
    if (run->discards && !run->is_recording) {
        snprintf(output, size, "%s", run->path);
        return is_alone ? RUNWRITER_ALONE : RUNWRITER_OWN;
    }
    if (is_alone) {
        if (!run->is_recording) {
            /* What an earlier run left; any other folder stays, which the writer tells of. */
            runfolder_clear(run->path);
            snprintf(output, size, "%s", run->path);
        }
        return RUNWRITER_ALONE;
    }
    if (runfolder_make(run) != 0) {
        return RUNWRITER_OWN; /* where it says itself */
    }
    if (!run->keeps_small && !is_asked_for && is_small) {
        runfolder_small_path(run, output, size);
        return RUNWRITER_SMALL;
    }
    runfolder_path(run, claim->header, ".mtp", output, size);
    return RUNWRITER_OWN;
}

/* --- over time -------------------------------------------------------------------------------- */

void runwriter_sample(struct runwriter *run, const struct runwriter_sample *sample) {
    if (sample->live_bytes > run->seen_bytes) {
        run->seen_bytes = sample->live_bytes;
        run->seen_ns = sample->time_ns;
    }
    if (sample->time_ns < run->next_sample_ns) {
        return;
    }
    if (run->sample_count == RUNWRITER_SAMPLES) { /* every second one stays */
        run->sample_count = 0;
        for (size_t i = 1; i < RUNWRITER_SAMPLES; i += 2) {
            run->samples[run->sample_count++] = run->samples[i];
        }
        run->sample_interval_ns *= 2;
    }
    run->samples[run->sample_count++] = *sample;
    run->next_sample_ns = sample->time_ns + run->sample_interval_ns;
}

struct edge {
    uint64_t time_ns;
    int64_t bytes;
};

/* At the same time an end comes before a beginning: an exec's. */
static int compare_edges(const void *left, const void *right) {
    const struct edge *a = left;
    const struct edge *b = right;
    if (a->time_ns != b->time_ns) {
        return a->time_ns < b->time_ns ? -1 : 1;
    }
    return (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

struct runwriter_peak runwriter_peak(const struct runwriter *run) {
    struct runwriter_peak peak = {.seen_bytes = run->seen_bytes, .at_ns = run->seen_ns};
    size_t count = 2 * run->process_count;
    SCOPE_MEMORY struct edge *edges = calloc(count + 1, sizeof *edges);
    int64_t sum = 0;
    for (size_t i = 0; i < run->process_count; i++) {
        const struct runwriter_process *process = &run->processes[i];
        if (process->peak_bytes > peak.seen_bytes) {
            peak.seen_bytes = process->peak_bytes;
            peak.at_ns = process->peak_ns > run->start_ns ? process->peak_ns - run->start_ns : 0;
        }
        if (edges != NULL) {
            edges[2 * i] = (struct edge){process->start_ns, (int64_t)process->peak_bytes};
            edges[2 * i + 1] = (struct edge){process->end_ns, -(int64_t)process->peak_bytes};
        }
    }
    count = edges != NULL ? count : 0;
    array_sort(edges, count, sizeof *edges, compare_edges);
    for (size_t i = 0; i < count; i++) {
        sum += edges[i].bytes;
        peak.bound_bytes = sum > (int64_t)peak.bound_bytes ? (uint64_t)sum : peak.bound_bytes;
    }
    peak.bound_bytes = peak.bound_bytes > peak.seen_bytes ? peak.bound_bytes : peak.seen_bytes;
    return peak;
}

static int compare_starts(const void *left, const void *right) {
    const struct runwriter_process *a = left;
    const struct runwriter_process *b = right;
    return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

/* Images of one process follow each other; others may stand between. */
static void runwriter_number_images(struct runwriter *run) {
    qsort(run->processes, run->process_count, sizeof *run->processes, compare_starts);
    for (size_t i = 0; i < run->process_count; i++) {
        for (size_t before = i; before-- > 0;) {
            const struct runwriter_process *other = &run->processes[before];
            if (other->pid == run->processes[i].pid &&
                other->pid_namespace == run->processes[i].pid_namespace &&
                other->state == MEMTRACE_STATE_EXECED) {
                run->processes[i].image = other->image + 1;
                break;
            }
        }
    }
}

int runwriter_end(struct runwriter *run, const struct runwriter_exit *how, struct error *error) {
    runwriter_number_images(run);
    return run->has_folder ? runfolder_finish(run, how, error) : 0;
}

/* --- what is said of a run of several processes at its end ---------------------------------------
 */

enum { MOST_LINES = 5, UNCOUNTED_LINES = 3 };

/* Those that held most first; of two alike the one that allocated more. */
static int summary_compare(const void *left, const void *right) {
    const struct runwriter_process *a = *(const struct runwriter_process *const *)left;
    const struct runwriter_process *b = *(const struct runwriter_process *const *)right;
    if (a->peak_bytes != b->peak_bytes) {
        return a->peak_bytes > b->peak_bytes ? -1 : 1;
    }
    return (a->allocations < b->allocations) - (a->allocations > b->allocations);
}

/* The largest ones, and the sums of the others. */
static void summary_processes(FILE *out, const struct runwriter *run) {
    SCOPE_MEMORY const struct runwriter_process **sorted =
        calloc(run->process_count + 1, sizeof *sorted);
    uint64_t allocations = 0;
    uint64_t leaked_bytes = 0;
    uint64_t peak_bytes = 0; /* the highest of them */
    struct number n[4];
    if (sorted == NULL) {
        return;
    }
    for (size_t i = 0; i < run->process_count; i++) {
        sorted[i] = &run->processes[i];
    }
    qsort(sorted, run->process_count, sizeof *sorted, summary_compare);
    for (size_t i = 0; i < run->process_count; i++) {
        const struct runwriter_process *process = sorted[i];
        uint64_t leaked = process->leaked_bytes - process->suppressed_bytes;
        if (i < MOST_LINES) {
            print_safe(out, "memtrace:   peak %10s, leaked %10s, allocations %13s  %s (%ld)\n",
                       number_bytes(&n[0], process->peak_bytes), number_bytes(&n[1], leaked),
                       number_count(&n[2], process->allocations),
                       process->program != NULL ? pathname_base(process->program) : "?",
                       (long)process->pid);
        } else {
            allocations += process->allocations;
            leaked_bytes += leaked;
            peak_bytes = process->peak_bytes > peak_bytes ? process->peak_bytes : peak_bytes;
        }
    }
    if (run->process_count > MOST_LINES) {
        fprintf(
            out,
            "memtrace:   %s smaller: peak at most %s, leaked %s in all, allocations %s in all\n",
            number_count(&n[0], run->process_count - MOST_LINES), number_bytes(&n[1], peak_bytes),
            number_bytes(&n[2], leaked_bytes), number_count(&n[3], allocations));
    }
}

/* Each line once, of the first few programs. */
static void summary_uncounted(FILE *out, const struct runwriter *run) {
    const char *said[UNCOUNTED_LINES];
    size_t count = 0;
    for (size_t i = 0; i < run->process_count && count < UNCOUNTED_LINES; i++) {
        const char *line = run->processes[i].uncounted;
        size_t before = 0;
        while (line != NULL && before < count && strcmp(said[before], line) != 0) {
            before++;
        }
        if (line != NULL && before == count) {
            said[count++] = line;
            print_safe(out, "memtrace: not counted        %s\n", line);
        }
    }
}

static int summary_compare_pids(const void *left, const void *right) {
    pid_t a = *(const pid_t *)left;
    pid_t b = *(const pid_t *)right;
    return (a > b) - (a < b);
}

/* What a process was before and after an exec is one process. Of all, or of those in which
 * functions are followed. */
static size_t summary_count(const struct runwriter *run, bool followed_alone) {
    SCOPE_MEMORY pid_t *pids = calloc(run->process_count + 1, sizeof *pids);
    size_t wanted = 0;
    size_t count = 0;
    for (size_t i = 0; pids != NULL && i < run->process_count; i++) {
        if (!followed_alone || run->processes[i].is_followed) {
            pids[wanted++] = run->processes[i].pid;
        }
    }
    array_sort(pids, wanted, sizeof *pids, summary_compare_pids);
    for (size_t i = 0; i < wanted; i++) {
        count += i == 0 || pids[i] != pids[i - 1];
    }
    return count;
}

static void summary_totals(FILE *out, const struct runwriter *run) {
    struct runwriter_peak peak = runwriter_peak(run);
    uint64_t lost = 0;
    bool exact = true;
    bool is_known;
    struct number n[3];
    for (size_t i = 0; i < run->process_count; i++) {
        lost += run->processes[i].lost;
        exact = exact && run->processes[i].uncounted == NULL;
    }
    number_bytes(&n[1], peak.seen_bytes);
    is_known = strcmp(n[1].text, number_bytes(&n[2], peak.bound_bytes)) == 0;
    fprintf(out, "memtrace: processes          %s, combined peak %s%s",
            number_count(&n[0], summary_count(run, false)), is_known ? "" : "between ", n[1].text);
    if (!is_known) {
        fprintf(out, " and %s", n[2].text);
    }
    fprintf(out, exact ? ", lost %s\n" : ", lost not known (%s seen)\n", number_count(&n[0], lost));
    summary_uncounted(out, run);
    if (run->names_allocators) {
        fprintf(out, "memtrace: --alloc            followed in %s of %s processes\n",
                number_count(&n[0], summary_count(run, true)),
                number_count(&n[1], summary_count(run, false)));
    }
}

char *runwriter_summary(const struct runwriter *run) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out != NULL) {
        summary_totals(out, run);
        summary_processes(out, run);
        if (!run->discards) {
            print_safe(out, "memtrace: run                %s\n", run->path);
            finish_print_hint(out, run->path);
        }
        if (fclose(out) != 0) {
            free(text);
            text = NULL;
        }
    }
    return text;
}
