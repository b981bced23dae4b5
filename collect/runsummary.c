/* SPDX-License-Identifier: MIT */
/* runsummary.c: what is said of a run of several processes at its end. See runwriter.h. */
#include "analyze/base/pathname.h"
#include "analyze/rows/number.h"
#include "analyze/rows/safetext.h"
#include "collect/finish.h"
#include "collect/runwriter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LINES = 5, UNCOUNTED_LINES = 3 };

/* Those that held most first; of two alike the one that allocated more. */
static int compare(const void *left, const void *right) {
    const struct runwriter_process *a = *(const struct runwriter_process *const *)left;
    const struct runwriter_process *b = *(const struct runwriter_process *const *)right;
    if (a->peak_bytes != b->peak_bytes) {
        return a->peak_bytes > b->peak_bytes ? -1 : 1;
    }
    return (a->allocations < b->allocations) - (a->allocations > b->allocations);
}

static void print_process(FILE *out, const struct runwriter_process *process) {
    struct number n[3];
    print_safe(out, "memtrace:   peak %10s, leaked %10s, allocations %13s  %s (%ld)\n",
               number_bytes(&n[0], process->peak_bytes),
               number_bytes(&n[1], process->leaked_bytes - process->suppressed_bytes),
               number_count(&n[2], process->allocations),
               process->program != NULL ? pathname_base(process->program) : "?",
               (long)process->pid);
}

struct rest {
    size_t count;
    uint64_t allocations;
    uint64_t leaked_bytes;
    uint64_t peak_bytes; /* the highest of them */
};

static struct rest sum(const struct runwriter_process *const *processes, size_t count) {
    struct rest rest = {.count = count};
    for (size_t i = 0; i < count; i++) {
        rest.allocations += processes[i]->allocations;
        rest.leaked_bytes += processes[i]->leaked_bytes - processes[i]->suppressed_bytes;
        if (processes[i]->peak_bytes > rest.peak_bytes) {
            rest.peak_bytes = processes[i]->peak_bytes;
        }
    }
    return rest;
}

static void print_rest(FILE *out, const struct rest *rest) {
    struct number n[4];
    if (rest->count != 0) {
        fprintf(
            out,
            "memtrace:   %s smaller: peak at most %s, leaked %s in all, allocations %s in all\n",
            number_count(&n[0], rest->count), number_bytes(&n[1], rest->peak_bytes),
            number_bytes(&n[2], rest->leaked_bytes), number_count(&n[3], rest->allocations));
    }
}

static void print_processes(FILE *out, const struct runwriter *run) {
    const struct runwriter_process **sorted = calloc(run->process_count + 1, sizeof *sorted);
    size_t shown = run->process_count < MOST_LINES ? run->process_count : MOST_LINES;
    struct rest rest;
    for (size_t i = 0; sorted != NULL && i < run->process_count; i++) {
        sorted[i] = &run->processes[i];
    }
    if (sorted == NULL) {
        return;
    }
    qsort(sorted, run->process_count, sizeof *sorted, compare);
    for (size_t i = 0; i < shown; i++) {
        print_process(out, sorted[i]);
    }
    rest = sum(sorted + shown, run->process_count - shown);
    print_rest(out, &rest);
    free(sorted);
}

/* Each line once, of the first few programs. */
static void print_uncounted(FILE *out, const struct runwriter *run) {
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

static int compare_pids(const void *left, const void *right) {
    pid_t a = *(const pid_t *)left;
    pid_t b = *(const pid_t *)right;
    return (a > b) - (a < b);
}

/* What a process was before and after an exec is one process. Of all, or of those in which
 * functions are followed. */
static size_t count_processes(const struct runwriter *run, bool followed_alone) {
    pid_t *pids = calloc(run->process_count + 1, sizeof *pids);
    size_t wanted = 0;
    size_t count = 0;
    for (size_t i = 0; pids != NULL && i < run->process_count; i++) {
        if (!followed_alone || run->processes[i].is_followed) {
            pids[wanted++] = run->processes[i].pid;
        }
    }
    if (pids != NULL) {
        qsort(pids, wanted, sizeof *pids, compare_pids);
    }
    for (size_t i = 0; i < wanted; i++) {
        count += i == 0 || pids[i] != pids[i - 1];
    }
    free(pids);
    return count;
}

static void print_followed(FILE *out, const struct runwriter *run) {
    struct number n[2];
    if (run->names_allocators) {
        fprintf(out, "memtrace: --alloc            followed in %s of %s processes\n",
                number_count(&n[0], count_processes(run, true)),
                number_count(&n[1], count_processes(run, false)));
    }
}

static void print_totals(FILE *out, const struct runwriter *run) {
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
            number_count(&n[0], count_processes(run, false)), is_known ? "" : "between ",
            n[1].text);
    if (!is_known) {
        fprintf(out, " and %s", n[2].text);
    }
    fprintf(out, exact ? ", lost %s\n" : ", lost not known (%s seen)\n", number_count(&n[0], lost));
    print_uncounted(out, run);
    print_followed(out, run);
}

char *runwriter_summary(const struct runwriter *run) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out != NULL) {
        print_totals(out, run);
        print_processes(out, run);
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
