/* SPDX-License-Identifier: MIT */
/*
 * runtree.c: the head of a run's report: its processes as a tree, what all of them held over time.
 *
 * A process that replaced itself by exec is one line: its images one after the other, its peak that
 * of the image that held most. Those that held most have a line, the others are summed up in one.
 */
#include "analyze/base/job.h"
#include "analyze/base/pathname.h"
#include "analyze/report/reports.h"
#include "analyze/rows/number.h"
#include "analyze/rows/style.h"
#include "analyze/rows/table.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- The tree ---- */

enum { BARS = 60, INDENT = 2, INDENT_MOST = 20, COMMAND_MOST = 4096, COLUMNS = 80 };

/* A process with all its images. */
struct line {
    size_t first; /* of run->processes */
    size_t last;
    uint64_t peak_bytes;
    uint64_t allocations;
    uint64_t lost;
    bool is_counted;
    bool is_shown;
    size_t parent; /* the nearest line above it that is shown; RUN_NONE */
    size_t child;  /* of those that are shown; RUN_NONE */
    size_t next;   /* with the same parent */
    size_t depth;
};

struct tree {
    const struct report *report;
    const struct run *run;
    struct line *lines; /* in the order of their starts */
    size_t count;
    size_t shown;
    size_t top;      /* the first line without a parent */
    size_t *line_of; /* by process */
};

/* ---- Lines ---- */

static void runtree_make_lines(struct tree *tree) {
    const struct run *run = tree->run;
    tree->lines = job_array(run->process_count + 1, sizeof *tree->lines);
    tree->line_of = job_array(run->process_count + 1, sizeof *tree->line_of);
    for (size_t i = 0; i < run->process_count; i++) {
        const struct run_process *process = &run->processes[i];
        struct line *line;
        if (process->first_image == i) {
            tree->lines[tree->count] = (struct line){.first = i, .parent = RUN_NONE};
            tree->line_of[i] = tree->count++;
        } else {
            tree->line_of[i] = tree->line_of[process->first_image];
        }
        line = &tree->lines[tree->line_of[i]];
        line->last = i;
        line->peak_bytes =
            process->peak_bytes > line->peak_bytes ? process->peak_bytes : line->peak_bytes;
        line->allocations += process->allocations;
        line->lost += process->lost;
        line->is_counted |= process->is_counted;
    }
}

static int runtree_by_peak(const void *left, const void *right) {
    const struct line *a = *(const struct line *const *)left;
    const struct line *b = *(const struct line *const *)right;
    if (a->peak_bytes != b->peak_bytes) {
        return a->peak_bytes > b->peak_bytes ? -1 : 1;
    }
    return (a->first > b->first) - (a->first < b->first);
}

/* The first process, the one that is reported, and those that held most. */
static void runtree_choose_lines(struct tree *tree) {
    size_t limit = tree->report->run->limit;
    size_t process = tree->report->run->process;
    struct line **ranked = job_array(tree->count, sizeof(void *));
    for (size_t i = 0; i < tree->count; i++) {
        ranked[i] = &tree->lines[i];
    }
    qsort(ranked, tree->count, sizeof(void *), runtree_by_peak);
    for (size_t i = 0; i < tree->count && (limit == 0 || i < limit); i++) {
        ranked[i]->is_shown = true;
    }
    tree->lines[0].is_shown = true;
    if (process != RUN_NONE) {
        tree->lines[tree->line_of[process]].is_shown = true;
    }
    for (size_t i = 0; i < tree->count; i++) {
        tree->shown += tree->lines[i].is_shown;
    }
}

/* Who is not shown hands its children to whoever started it. Parents come first. */
static void runtree_hang_lines(struct tree *tree) {
    tree->top = RUN_NONE;
    for (size_t i = 0; i < tree->count; i++) {
        struct line *line = &tree->lines[i];
        size_t parent = tree->run->processes[line->first].parent;
        size_t above = parent != RUN_NONE ? tree->line_of[parent] : RUN_NONE;
        if (above != RUN_NONE && !tree->lines[above].is_shown) {
            above = tree->lines[above].parent;
        }
        line->parent = above;
        line->child = RUN_NONE;
        line->depth = above != RUN_NONE ? tree->lines[above].depth + 1 : 0;
    }
    for (size_t i = tree->count; i-- > 0;) {
        struct line *line = &tree->lines[i];
        size_t *list = line->parent != RUN_NONE ? &tree->lines[line->parent].child : &tree->top;
        if (line->is_shown) {
            line->next = *list;
            *list = i;
        }
    }
}

/* The line behind this one in the tree; RUN_NONE: it is the last. */
static size_t runtree_line_after(const struct tree *tree, size_t at) {
    if (tree->lines[at].child != RUN_NONE) {
        return tree->lines[at].child;
    }
    while (at != RUN_NONE && tree->lines[at].next == RUN_NONE) {
        at = tree->lines[at].parent;
    }
    return at != RUN_NONE ? tree->lines[at].next : RUN_NONE;
}

/* ---- What a process was ---- */

/* "cc1 -O2 main.c": its arguments, or its name. */
static void runtree_spell_command(const struct run_process *process, char *text, size_t size) {
    struct arguments left = process->command;
    size_t used = 0;
    const char *at;
    snprintf(text, size, "%s", left.size == 0 ? run_name(process) : "");
    while (used + 1 < size && (at = arguments_next(&left)) != NULL) {
        int length = snprintf(text + used, size - used, "%s%s", used != 0 ? " " : "",
                              used != 0 ? at : pathname_base(at));
        used += length > 0 ? (size_t)length : 0;
    }
}

/* "sh -> env -> cc1 -O2 main.c" */
static void runtree_spell_chain(const struct tree *tree, const struct line *line, char *text,
                                size_t size) {
    size_t used = 0;
    for (size_t i = line->first; i < line->last && used < size; i++) {
        const struct run_process *process = &tree->run->processes[i];
        if (process->first_image == line->first) {
            const char *name = process->command.size != 0
                                   ? pathname_base(arguments_first(process->command))
                                   : run_name(process);
            int length = snprintf(text + used, size - used, "%s -> ", name);
            used += length > 0 ? (size_t)length : 0;
        }
    }
    if (used < size) {
        runtree_spell_command(&tree->run->processes[line->last], text + used, size - used);
    }
}

/* ---- Text ---- */

static void runtree_put_processes(const struct tree *tree) {
    const struct run *run = tree->run;
    struct number count;
    struct number duration;
    style_label(tree->report, "processes");
    fprintf(tree->report->out, "%s in %s", number_count(&count, tree->count),
            number_duration(&duration, run->duration_ns));
    if (run->has_exit) {
        fprintf(tree->report->out, ", %s %" PRId64,
                run->was_signalled ? "ended by signal" : "exit status", run->exit_status);
    } else if (!run->has_summary) {
        fputs(" so far as their files tell: there is no usable " RUN_SUMMARY, tree->report->out);
    }
    fputc('\n', tree->report->out);
}

static void runtree_put_peak(const struct tree *tree) {
    const struct run_peak *peak = &tree->run->peak;
    const struct report *report = tree->report;
    struct number number;
    style_label(report, "combined peak");
    fprintf(report->out, "%s%s%s (", style_on(report, STYLE_NAME),
            number_bytes(&number, peak->seen_bytes), style_off(report));
    fprintf(report->out, "%s", number_items(&number, peak->seen_bytes, "byte"));
    if (peak->at_ns != 0) {
        fprintf(report->out, ", seen after %s", number_duration(&number, peak->at_ns));
    }
    fprintf(report->out, "); the true peak is at most %s\n",
            number_bytes(&number, peak->bound_bytes));
}

/* Each bar is the most of its share of the time. */
static void runtree_put_bars(const struct tree *tree) {
    const struct run *run = tree->run;
    uint64_t bars[BARS] = {0};
    uint64_t held = 0;
    uint64_t any = 0;
    size_t point = 0;
    for (size_t i = 0; i < BARS; i++) {
        double until = (double)run->duration_ns * (double)(i + 1) / BARS;
        bars[i] = held;
        for (; point < run->timeline_count && (double)run->timeline[point].time_ns <= until;
             point++) {
            held = run->timeline[point].live_bytes;
            bars[i] = held > bars[i] ? held : bars[i];
        }
        any |= bars[i];
    }
    if (run->timeline_count < 4 || any == 0) {
        return;
    }
    style_label(tree->report, "over time");
    style_bars(tree->report, bars, BARS);
    fputc('\n', tree->report->out);
}

static void runtree_put_head(const struct tree *tree) {
    const struct report *report = tree->report;
    const struct run_process first = {.program = tree->run->processes[0].program,
                                      .command = tree->run->command.size != 0
                                                     ? tree->run->command
                                                     : tree->run->processes[0].command};
    char text[COMMAND_MOST];
    runtree_spell_command(&first, text, sizeof text);
    fprintf(report->out, "%sMemTrace run of ", style_on(report, STYLE_HEADING));
    style_text_cut(report, text, report->options.width > 30 ? report->options.width - 16 : COLUMNS);
    fprintf(report->out, "%s\n", style_off(report));
    style_label(report, "folder");
    style_text(report, tree->run->path);
    fputc('\n', report->out);
    if (tree->run->trouble[0] != '\0') {
        style_note(report, STYLE_WARM, "Note: " RUN_SUMMARY " cannot be used: %s",
                   tree->run->trouble);
    }
    if (tree->run->missing_files != 0) {
        style_note(report, STYLE_WARM, "Note: files that are not in the folder any more: %zu",
                   tree->run->missing_files);
    }
}

static void runtree_put_line(const struct tree *tree, const struct line *line) {
    enum { LEFT = 8 + 12 + 12 + 12 + 9 + 2 };
    const struct report *report = tree->report;
    const struct run_process *first = &tree->run->processes[line->first];
    const struct run_process *last = &tree->run->processes[line->last];
    size_t indent = line->depth * INDENT < INDENT_MOST ? line->depth * INDENT : INDENT_MOST;
    size_t width = report->options.width > LEFT + indent + 20
                       ? report->options.width - LEFT - indent
                       : COLUMNS; /* where there is no terminal lines end, too */
    bool is_shown = report->run->process != RUN_NONE &&
                    tree->line_of[report->run->process] == tree->line_of[line->first];
    char text[COMMAND_MOST];
    struct number numbers[4];
    runtree_spell_chain(tree, line, text, sizeof text);
    fprintf(report->out, "%8" PRIu32 "%12s%12s%12s%9s  %*s%s", first->pid,
            number_bytes(&numbers[0], line->peak_bytes),
            number_bytes(&numbers[1], last->leaked_bytes - last->suppressed_bytes),
            number_duration(&numbers[2], last->end_ns - first->start_ns),
            number_count(&numbers[3], line->lost), (int)indent, "",
            style_on(report, is_shown ? STYLE_NAME : STYLE_PLAIN));
    style_text_cut(report, text, width);
    fprintf(report->out, "%s%s\n", style_off(report),
            last->end == RUN_KILLED     ? " (killed)"
            : last->end == RUN_RUNNING  ? " (running)"
            : last->end == RUN_DETACHED ? " (detached from)"
                                        : "");
}

static void runtree_put_rest(const struct tree *tree) {
    uint64_t allocations = 0;
    uint64_t peak = 0;
    bool is_counted = false;
    struct number numbers[3];
    for (size_t i = 0; i < tree->count; i++) {
        const struct line *line = &tree->lines[i];
        if (!line->is_shown) {
            allocations += line->allocations;
            peak = line->peak_bytes > peak ? line->peak_bytes : peak;
            is_counted |= line->is_counted;
        }
    }
    if (tree->shown == tree->count) {
        return;
    }
    fprintf(tree->report->out, "%8s  %s: ", "",
            number_items(&numbers[0], tree->count - tree->shown, "smaller process"));
    if (is_counted) {
        fprintf(tree->report->out, "%s, ", number_items(&numbers[1], allocations, "allocation"));
    }
    fprintf(tree->report->out, "peak at most %s each\n", number_bytes(&numbers[2], peak));
}

void report_run_process(const struct report *report) {
    const struct report_run *run = report->run;
    const struct run_process *process;
    if (run->process == RUN_NONE) {
        fputs("All processes, added up by call path. The peak is the sum of theirs.\n",
              report->out);
        return;
    }
    process = &run->run->processes[run->process];
    fprintf(report->out, "Process %" PRIu32 " (", process->pid);
    style_text(report, run_name(process));
    fputs(run->process == run_largest(run->run) ? "), which held the most memory" : ")",
          report->out);
    fputs(process->file != NULL && run_is_merged(process->file)
              ? ". What follows is the sum of all small processes:\n"
              : ":\n",
          report->out);
}

void report_run(const struct report *report) {
    struct tree tree = {.report = report, .run = report->run->run};
    runtree_make_lines(&tree);
    runtree_choose_lines(&tree);
    runtree_hang_lines(&tree);
    runtree_put_head(&tree);
    runtree_put_processes(&tree);
    runtree_put_peak(&tree);
    runtree_put_bars(&tree);
    fprintf(report->out, "\n%s%8s%12s%12s%12s%9s  %s%s\n", style_on(report, STYLE_DIM), "pid",
            "peak", "leaked", "duration", "lost", "process", style_off(report));
    for (size_t i = tree.top; i != RUN_NONE; i = runtree_line_after(&tree, i)) {
        runtree_put_line(&tree, &tree.lines[i]);
    }
    runtree_put_rest(&tree);
    fputc('\n', report->out);
    report_run_process(report);
    fputc('\n', report->out);
}
