/* SPDX-License-Identifier: MIT */
/* summary.c: the first lines of a report: totals, what could not be counted, warnings; the titles
 * of its sections, and what to ask next. */
#include "analyze/base/job.h"
#include "analyze/base/pathname.h"
#include "analyze/model/names.h"
#include "analyze/report/reports.h"
#include "analyze/rows/facts.h"
#include "analyze/rows/number.h"
#include "analyze/rows/safetext.h"
#include "analyze/rows/style.h"
#include "analyze/rows/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHART_COLUMNS = 60, LABEL_COLUMNS = 22 };

/* "python3 script.py": the arguments as given, those with blanks quoted. */
static void summary_put_command(const struct report *report) {
    const struct memtrace_header *header = &report->model->header;
    struct arguments left = arguments_of(header);
    const char *at;
    style_label(report, header->merged > 1 ? "first command" : "command");
    if (left.size == 0) {
        put_safe(report->out, header->executable);
    }
    while ((at = arguments_next(&left)) != NULL) {
        const char *quote = at[0] == '\0' || strpbrk(at, " \t\n\"'$&|;<>()*") != NULL ? "'" : "";
        fputs(at != header->command ? " " : "", report->out);
        fputs(quote, report->out);
        put_safe(report->out, at);
        fputs(quote, report->out);
    }
    fputc('\n', report->out);
}

/* Of a merged profile: what its numbers are the sums of. */
static void put_merged(const struct report *report) {
    const struct memtrace_header *header = &report->model->header;
    struct number numbers[2];
    style_label(report, "sums of");
    fprintf(report->out, "%s over %s, the first one of process %" PRIu32 "\n",
            number_items(&numbers[0], header->merged, "profile"),
            number_duration(&numbers[1], report->model->now_ns), header->pid);
}

/* Of a recording that began in the middle of the run. */
static void put_begun(const struct report *report) {
    const struct memtrace_recording *recording = (const void *)report->model->header.recording;
    struct number duration;
    if (report->model->recording.present && (recording->flags & MEMTRACE_RECORDING_MIDWAY) != 0) {
        fprintf(report->out, ", recorded from %s on",
                number_duration(&duration, recording->begun_ns));
    }
}

static void put_state(const struct report *report) {
    const struct model *model = report->model;
    struct number duration;
    const char *state = "killed, or ended abruptly, after";
    if (model->live) {
        state = "running for";
    } else if (model_is_left(model)) {
        state = "detached from after";
    } else if (model->header.state == MEMTRACE_STATE_ENDED) {
        state = "ended after";
    } else if (model->header.state == MEMTRACE_STATE_EXECED) {
        state = "replaced itself (exec) after";
    } else if (model->header.state == MEMTRACE_STATE_COPIED) {
        state = "as it was after";
    }
    style_label(report, fact_label(FACT_PID));
    fprintf(report->out, "%" PRIu32 ", %s %s", model->header.pid, state,
            number_duration(&duration, model->now_ns));
    put_begun(report);
    if (model->header.flags & MEMTRACE_FLAG_FORKED) {
        fprintf(report->out, ", forked from %" PRIu32, model->header.parent_pid);
    }
    fputc('\n', report->out);
}

static const char *plus_minus(const struct report *report) {
    return report->options.unicode ? "±" : "+-";
}

/* Behind an estimate its standard error. */
static void put_error(const struct report *report, const char *error) {
    if (model_is_estimate(report->model)) {
        fprintf(report->out, " %s %s", plus_minus(report), error);
    }
}

static void summary_put_bytes(const struct report *report, const char *label, uint64_t bytes,
                              double error) {
    struct number spelled;
    struct number exact;
    style_label(report, label);
    fprintf(report->out, "%s%s%s (%s", style_on(report, STYLE_NAME), number_bytes(&spelled, bytes),
            style_off(report), number_items(&exact, bytes, "byte"));
    put_error(report, number_bytes(&spelled, (uint64_t)error));
}

void report_leaked(const struct report *report, uint64_t *bytes, uint64_t *blocks) {
    const struct model *model = report->model;
    if (report->suppressions != NULL && model_has_leaks(model)) {
        model = suppressions_leave(report->suppressions, model, report->names);
    }
    *bytes = model->totals.live_bytes;
    *blocks = model->totals.live_blocks;
}

static void put_memory(const struct report *report) {
    const struct model_totals *totals = &report->model->totals;
    char note[REPORT_LEFT_OUT_SIZE] = "";
    uint64_t bytes;
    uint64_t blocks;
    struct number number;
    const struct model_errors *errors = &report->model->recording.errors;
    summary_put_bytes(report, fact_label(FACT_PEAK_BYTES), totals->maximum_bytes,
                      errors->maximum_bytes);
    if (totals->maximum_error_bytes != 0) {
        fprintf(report->out, "; the true peak is within %s of it, since threads count apart",
                number_bytes(&number, totals->maximum_error_bytes));
    }
    fputs(")\n", report->out);
    report_leaked(report, &bytes, &blocks);
    if (bytes != totals->live_bytes) {
        report_left_out(report->suppressions, note);
    }
    summary_put_bytes(report, report_held(report->model), bytes, errors->live_bytes);
    fprintf(report->out, " in %s%s)\n", number_items(&number, blocks, "block"), note);
}

static void put_counts(const struct report *report) {
    const struct model_totals *totals = &report->model->totals;
    const struct model_errors *errors = &report->model->recording.errors;
    struct number count;
    struct number bytes;
    struct number share;
    style_label(report, fact_label(FACT_ALLOCATIONS));
    fputs(number_count(&count, totals->allocations), report->out);
    put_error(report, number_count(&share, (uint64_t)errors->allocations));
    fprintf(report->out, " (%s in total", number_bytes(&bytes, totals->total_bytes));
    put_error(report, number_bytes(&bytes, (uint64_t)errors->total_bytes));
    if (totals->allocations != 0) {
        fprintf(report->out, ", %s on average",
                number_bytes(&bytes, totals->total_bytes / totals->allocations));
    }
    fprintf(report->out, "), frees %s\n", number_count(&count, totals->frees));
    style_label(report, fact_label(FACT_TEMPORARY));
    if (model_is_estimate(report->model) && report->model->recording.present) {
        /* what came in between is not in the file */
        fputs("not known\n", report->out);
    } else {
        fprintf(report->out, "%s (%s of allocations)\n", number_count(&count, totals->temporary),
                number_percent(&share, totals->temporary, totals->allocations));
    }
    style_label(report, fact_label(FACT_CONTEXTS));
    fputs(number_count(&count, totals->context_count), report->out);
    if (report->model->thread_count != 0) { /* else not known of a part of a profile */
        fprintf(report->out, ", threads %s", number_count(&count, report->model->thread_count));
    }
    fputc('\n', report->out);
}

/* Part of what is live. */
static void put_before(const struct report *report) {
    const struct model_totals *totals = &report->model->totals;
    struct number numbers[4];
    if (totals->before_bytes == 0 && totals->before_frees == 0) {
        return;
    }
    style_label(report, fact_label(FACT_BEFORE_BYTES));
    fprintf(report->out, "%s of %s left; %s in %s freed since%s\n",
            number_bytes(&numbers[0], totals->before_bytes),
            number_bytes(&numbers[1], totals->before_bytes + totals->before_freed_bytes),
            number_bytes(&numbers[2], totals->before_freed_bytes),
            number_items(&numbers[3], totals->before_frees, "block"),
            (report->model->header.flags & MEMTRACE_FLAG_BEFORE_UNSURE) != 0
                ? ", up to the first change of mode"
                : "");
}

/* Mappings and pools: counted apart from the heap. */
static void put_others(const struct report *report, enum model_class class, const char *label) {
    const struct model *model = report->model;
    struct cost live = {0};
    struct cost maximum = {0};
    struct number bytes;
    struct number count;
    for (size_t i = 0; i < model->context_count; i++) {
        if (model->contexts[i].class == class) {
            metric_add(&live, metric_cost(METRIC_LEAKED, &model->contexts[i]));
            metric_add(&maximum, metric_cost(METRIC_CUMULATIVE, &model->contexts[i]));
        }
    }
    if (maximum.side == 0) {
        return;
    }
    style_label(report, label);
    fprintf(report->out, "%s ", number_bytes(&bytes, live.main));
    fprintf(report->out, "%s in %s, ", model->live ? "live now" : "live at the end",
            number_count(&count, live.side));
    fprintf(report->out, "%s in %s in total\n", number_bytes(&bytes, maximum.main),
            number_count(&count, maximum.side));
}

/* Those that stayed light: what they did is not in the sums above. */
static void summary_put_children(const struct report *report) {
    const struct model *model = report->model;
    struct model_children sum = model_sum_children(model);
    struct number numbers[4];
    if (model->child_count == 0) {
        return;
    }
    style_label(report, "forked children");
    fprintf(report->out, "%s, %s (%s), most held at once by one: %s",
            number_count(&numbers[0], model->child_count),
            number_items(&numbers[1], sum.allocations, "allocation"),
            number_bytes(&numbers[2], sum.total_bytes),
            number_bytes(&numbers[3], sum.maximum_bytes));
    if (sum.lost != 0) {
        fprintf(report->out, ", lost %s", number_count(&numbers[0], sum.lost));
    }
    fputc('\n', report->out);
}

const char *report_loss(unsigned kind) {
    static const char *const kinds[MEMTRACE_LOSS_KINDS] = {
        [MEMTRACE_LOST_EVENTS] = "allocations not counted",
        [MEMTRACE_LOST_CONTEXTS] = "allocations charged to a caller",
        [MEMTRACE_LOST_FRAMES] = "call paths that end early",
        [MEMTRACE_LOST_THREADS] = "threads counted as others",
        [MEMTRACE_LOST_MODULES] = "modules not recorded",
        [MEMTRACE_LOST_BLOCKS] = "blocks whose frees are not seen",
        [MEMTRACE_LOST_GUARDS] = "threads no longer patched",
        [MEMTRACE_LOST_RECORDS] = "events not recorded",
        [MEMTRACE_LOST_FREES] = "frees noticed late",
    };
    return kind < MEMTRACE_LOSS_KINDS ? kinds[kind] : NULL;
}

static void put_losses(const struct report *report) {
    const struct model *model = report->model;
    const char *separator = " (";
    struct number count;
    style_label(report, fact_label(FACT_LOST));
    if (names_uncounted(report->names)[0] != '\0') {
        fprintf(report->out, "not known, see the note (%s seen)",
                number_count(&count, model->totals.lost));
    } else {
        fputs(number_count(&count, model->totals.lost), report->out);
    }
    for (unsigned kind = 0; kind < MEMTRACE_LOSS_KINDS; kind++) {
        uint64_t lost = *memtrace_lost(&model->header, kind);
        bool is_here = kind != MEMTRACE_LOST_RECORDS || model->recording.present;
        if (lost != 0 && is_here && report_loss(kind) != NULL) {
            fprintf(report->out, "%s%s: %s", separator, report_loss(kind),
                    number_count(&count, lost));
            separator = ", ";
        }
    }
    fputs(separator[0] == ',' ? ")\n" : "\n", report->out);
}

static void put_gap(const struct report *report, const struct model_gap *gap) {
    struct number n[2];
    fprintf(report->out, "%.3f s to %.3f s: ", (double)gap->from_ns / 1e9,
            (double)gap->to_ns / 1e9);
    if (gap->distance != 0) {
        fprintf(report->out, "one allocation in up to %s, for the others\n",
                number_bytes(&n[0], gap->distance));
    } else if ((gap->allocs | gap->frees) == 0) {
        fputs("all of them\n", report->out);
    } else {
        fprintf(report->out, "%s, %s\n", number_items(&n[0], gap->allocs, "allocation"),
                number_items(&n[1], gap->frees, "free"));
    }
}

/* The first few. */
static void put_some_gaps(const struct report *report, const char *label,
                          const struct model_gap *gaps, size_t count) {
    enum { SHOWN = 5 };
    struct number more;
    for (size_t i = 0; i < count && i < SHOWN; i++) {
        style_label(report, i == 0 ? label : "");
        put_gap(report, &gaps[i]);
    }
    if (count > SHOWN) {
        style_label(report, "");
        fprintf(report->out, "and %s more times\n", number_count(&more, count - SHOWN));
    }
}

/* When events were lost or left out, and what that means for the numbers above. */
static void summary_put_gaps(const struct report *report) {
    const struct model *model = report->model;
    put_some_gaps(report, "events missing", model->gaps, model->gap_count);
    put_some_gaps(report, "thinned", model->thinned, model->thinned_count);
    if (model->recording.is_counted) {
        style_label(report, "totals");
        fputs("exact: as the program counted them, with what is missing\n", report->out);
    }
}

/* What the file holds, of a recording. */
static void summary_put_events(const struct report *report) {
    const struct model_recording *recording = &report->model->recording;
    struct number count;
    struct number bytes;
    if (!recording->present) {
        return;
    }
    style_label(report, fact_label(FACT_EVENTS));
    fprintf(report->out, "%s in %s", number_count(&count, recording->events),
            number_bytes(&bytes, recording->bytes));
    if (!recording->closed) {
        fputs(report->model->live ? ", still being written" : ", not finished by its writer",
              report->out);
    }
    if (recording->stopped) {
        fputs(", stopped before the program's end", report->out);
    }
    if (recording->part != 0) {
        fprintf(report->out, ", part %" PRIu32 " alone", recording->part);
    } else if (recording->parts > 1) {
        fprintf(report->out, ", %" PRIu32 " parts", recording->parts);
    }
    fputc('\n', report->out);
    summary_put_gaps(report);
    if (recording->foreign_frees != 0) {
        style_label(report, "frees of others");
        fprintf(report->out, "%s, of blocks that are not in this file\n",
                number_count(&count, recording->foreign_frees));
    }
    if (recording->some_modules) {
        style_label(report, "modules");
        fputs("only what some of them allocate is recorded\n", report->out);
    }
    if (recording->size_most != 0) {
        style_label(report, "sizes");
        fprintf(report->out, "only blocks of %s bytes",
                number_count(&count, recording->size_least));
        if (recording->size_most < INT64_MAX) {
            fprintf(report->out, " to %s", number_count(&count, recording->size_most));
        } else {
            fputs(" and more", report->out);
        }
        fputs(" are recorded\n", report->out);
    }
}

static void summary_put_sampling(const struct report *report) {
    const struct model *model = report->model;
    struct number bytes;
    if (!model_is_estimate(model)) {
        return;
    }
    style_label(report, fact_label(FACT_SAMPLE_BYTES));
    if (model->recording.sample_bytes != 0) {
        fprintf(report->out, "every %s on average",
                number_bytes(&bytes, model->recording.sample_bytes));
    } else {
        fputs("at times", report->out);
    }
    fprintf(report->out, ": estimates, %s one standard error\n", plus_minus(report));
}

/* What was live over time, as one row of bars; each column shows the most of its share of time. */
static void put_chart(const struct report *report) {
    const struct model *model = report->model;
    uint64_t columns[CHART_COLUMNS] = {0};
    size_t width = report->options.width;
    size_t count =
        width != 0 && width < LABEL_COLUMNS + CHART_COLUMNS ? width - LABEL_COLUMNS : CHART_COLUMNS;
    uint64_t end = model->now_ns;
    uint64_t most = 0;
    uint64_t held = 0;
    size_t point = 0;
    if (model->timeline_count < 3 || end == 0) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        uint64_t until = (uint64_t)((double)end * (double)(i + 1) / (double)count);
        columns[i] = held; /* no point in this column: as before */
        for (; point < model->timeline_count && model->timeline[point].time_ns <= until; point++) {
            held = model->timeline[point].live_bytes;
            columns[i] = held > columns[i] ? held : columns[i];
        }
        most = columns[i] > most ? columns[i] : most;
    }
    if (most == 0) {
        return;
    }
    style_label(report, "over time");
    style_bars(report, columns, count);
    fputc('\n', report->out);
}

/* What the kernel noted; of a window or an older file what the samples tell. */
static void summary_put_resident(const struct report *report) {
    const struct model *model = report->model;
    bool is_whole = model->from_ns == 0 && model->to_ns == UINT64_MAX;
    uint64_t most = is_whole ? model->header.peak_resident_bytes : 0;
    struct number bytes;
    if (most != 0) {
        style_label(report, fact_label(FACT_PEAK_RESIDENT));
        fprintf(report->out, "%s at most", number_bytes(&bytes, most));
        if (model->header.own_resident_bytes >= most) { /* seen at another moment */
            fputs(", nearly all of it MemTrace's own", report->out);
        } else if (model->header.own_resident_bytes != 0) {
            fprintf(report->out, ", %s of it MemTrace's own",
                    number_bytes(&bytes, model->header.own_resident_bytes));
        }
        fputc('\n', report->out);
        return;
    }
    for (size_t i = 0; i < model->timeline_count; i++) {
        most = model->timeline[i].resident_bytes > most ? model->timeline[i].resident_bytes : most;
    }
    if (most != 0) {
        style_label(report, fact_label(FACT_PEAK_RESIDENT));
        fprintf(report->out, "%s at most, as sampled\n", number_bytes(&bytes, most));
    }
}

static void summary_put_all(const struct report *report) {
    const struct model *model = report->model;
    fputs(style_on(report, STYLE_HEADING), report->out);
    print_safe(report->out, "MemTrace report of %s", memtrace_program(&model->header));
    if (model->header.merged > 1) {
        struct number others;
        fprintf(report->out, " and %s", number_items(&others, model->header.merged - 1, "other"));
    }
    fprintf(report->out, "%s\n", style_off(report));
    style_label(report, model->recording.present ? "recording" : "profile");
    print_safe(report->out, "%s\n", report->source);
    summary_put_command(report);
    (model->header.merged > 1 ? put_merged : put_state)(report);
    summary_put_events(report);
    summary_put_sampling(report);
    if (report->selected != NULL) {
        style_label(report, "selected");
        print_safe(report->out, "%s\n", report->selected);
    }
    fputc('\n', report->out);
    put_memory(report);
    put_before(report);
    put_counts(report);
    put_others(report, MODEL_MAPPING, "mappings");
    put_others(report, MODEL_POOL, "pools");
    summary_put_children(report);
    put_losses(report);
    summary_put_resident(report);
    put_chart(report);
}

void report_summary(const struct report *report) {
    struct report lines = *report;
    struct job_printing *printing = job_print();
    lines.out = printing->out;
    summary_put_all(&lines);
    style_lines(report, job_printed(printing), LABEL_COLUMNS);
}

void report_selected(const struct report *report) {
    if (report->selected != NULL) {
        style_note(report, STYLE_DIM, "Selected: %s", report->selected);
    }
}

void report_warnings(const struct report *report) {
    const char *const *lines;
    size_t count = names_warnings(report->names, &lines);
    if (report->model->damage[0] != '\0') {
        style_note(report, STYLE_HOT, "The %s is damaged: %s. What could be read is shown.",
                   report->model->recording.present ? "recording" : "profile",
                   report->model->damage);
    }
    for (size_t i = 0; i < count; i++) {
        style_note(report, STYLE_WARM, "Note: %s", lines[i]);
    }
}

/* ---- Titles ---- */

/* Seconds, as exactly as they were given. */
static double seconds(uint64_t ns) {
    return (double)ns / 1e9;
}

/* ", from 1 s to 2.5 s" */
static void add_window(const struct model *model, struct report_title *buffer) {
    size_t used = strlen(buffer->text);
    char *to = buffer->text + used;
    size_t room = sizeof buffer->text - used;
    if (model->from_ns != 0 && model->to_ns != UINT64_MAX) {
        snprintf(to, room, ", from %.9g s to %.9g s", seconds(model->from_ns),
                 seconds(model->to_ns));
    } else if (model->from_ns != 0) {
        snprintf(to, room, ", from %.9g s on", seconds(model->from_ns));
    } else if (model->to_ns != UINT64_MAX) {
        snprintf(to, room, ", up to %.9g s", seconds(model->to_ns));
    }
}

static void put_shutdown(const struct report *report, struct report_title *buffer) {
    uint64_t from_ns = report->definitions.shutdown_ns;
    if (from_ns != UINT64_MAX) {
        snprintf(buffer->text, sizeof buffer->text, "Shutdown: never freed, or only after %.9g s",
                 seconds(from_ns));
    } else {
        snprintf(buffer->text, sizeof buffer->text,
                 "Shutdown: never freed, or only after the last allocation of any thread");
    }
}

const char *report_title(const struct report *report, enum metric metric,
                         struct report_title *buffer) {
    const struct model *model = report->model;
    struct number duration;
    if (metric == METRIC_LEAKED && model->to_ns != UINT64_MAX) {
        snprintf(buffer->text, sizeof buffer->text, "Live at %.9g s", seconds(model->to_ns));
        return buffer->text;
    }
    if (metric == METRIC_SHUTDOWN) {
        put_shutdown(report, buffer);
    } else if (metric == METRIC_SHORT) {
        snprintf(buffer->text, sizeof buffer->text, "Short-lived: freed within %s",
                 number_duration(&duration, report->definitions.short_ns));
    } else {
        snprintf(buffer->text, sizeof buffer->text, "%s", metric_title(metric, model));
    }
    add_window(model, buffer);
    return buffer->text;
}

const char *report_held(const struct model *model) {
    return model->to_ns != UINT64_MAX || model_is_left(model) ? "live then"
           : model->live                                      ? "live now"
                                                              : "leaked";
}

/* ---- What is wrong with a program's memory at first sight, and what to ask next ---- */

/* Below these, nobody would change a program for it. */
enum {
    TEMPORARY_LEAST = 1000,
    TEMPORARY_PERCENT = 25,
    ALLOCATIONS_LEAST = 1000,
    LEAKED_LEAST = 64 << 10,
    LEAKED_PERCENT = 10
};

static bool is_share(uint64_t part, uint64_t whole, uint64_t least, unsigned percent) {
    return part >= least && (double)part * 100 >= (double)whole * percent;
}

bool report_has_much_temporary(const struct model *model) {
    bool is_known = !model_is_estimate(model) || !model->recording.present;
    return is_known && is_share(model->totals.temporary, model->totals.allocations, TEMPORARY_LEAST,
                                TEMPORARY_PERCENT);
}

bool report_has_many_allocations(const struct model *model) {
    return model->totals.allocations >= ALLOCATIONS_LEAST;
}

static void put_hint(const struct report *report, const char *options, const char *what) {
    if (report->options.width != 0) { /* what is to be pasted has a line of its own */
        fprintf(report->out, "  # %s\n", what);
    }
    fputs("  memtrace report ", report->out);
    shellword_put(report->out, report->source);
    if (report->selected != NULL) {
        fprintf(report->out, " %s", report->selected);
    }
    if (report->options.width != 0) {
        fprintf(report->out, " %s\n", options);
    } else {
        fprintf(report->out, " %-34s  # %s\n", options, what);
    }
}

void report_next(const struct report *report, bool is_flat) {
    const struct model *model = report->model;
    bool is_bottom_up = report->options.bottom_up && !is_flat; /* of what is leaked, that is */
    bool is_quiet = true;
    char missing[512];
    uint64_t leaked_bytes;
    uint64_t leaked_blocks;
    report_leaked(report, &leaked_bytes, &leaked_blocks);
    table_drawing_begin(report, "Next");
    if (model_has_leaks(model) && leaked_bytes >= LEAKED_LEAST && !is_bottom_up) {
        put_hint(report, "--show-leaked --bottom-up", "who allocated what was never freed");
        is_quiet = false;
    }
    if (report_has_much_temporary(model)) {
        put_hint(report, "--show-temporary --bottom-up", "who allocates for a moment");
        is_quiet = false;
    }
    if (report->holes != NULL) {
        put_hint(report, "--show-fragmentation", "where the holes are, and who keeps them");
        is_quiet = false;
    }
    if (report_has_many_allocations(model)) {
        put_hint(report, "--show-allocations --bottom-up", "who allocates most often");
        is_quiet = false;
    }
    if (is_quiet && !is_flat) {
        put_hint(report, "--flat", "the same by function");
    } else if (is_quiet) {
        put_hint(report, "--show-groups", "each call path: sizes, lifetimes, first and last time");
    }
    if (names_explain_missing(report->names, missing, sizeof missing)) {
        char line[sizeof missing + 8];
        snprintf(line, sizeof line, "  # %s", missing);
        style_lines(report, make_safe(line), 4);
        fputc('\n', report->out);
    }
    table_drawing_end(report);
}
