/* SPDX-License-Identifier: MIT */
/* reportshow.c: which reports `memtrace report` writes, in which form. See reportshow.h. */
#include "cli/reportshow.h"

#include "analyze/report/findings.h"
#include "analyze/rows/safetext.h"
#include "analyze/rows/table.h"

/* ---- Metrics ---- */

static void write_form(const struct report *report, const struct request *request,
                       enum metric metric) {
    (request->form == FORM_FLAT    ? report_flat
     : request->form == FORM_PATHS ? report_paths
                                   : report_tree)(report, metric);
}

typedef void metric_writer(const struct report *report, const struct request *request,
                           enum metric metric);

/* Leaks that are suppressed are told apart. */
static void write_leaks(const struct report *report, const struct request *request,
                        enum metric metric, metric_writer *write) {
    struct report unsuppressed = *report;
    if (report->suppressions == NULL) {
        write(report, request, metric);
        return;
    }
    unsuppressed.model = suppressions_leave(report->suppressions, report->model, report->names);
    write(&unsuppressed, request, metric);
    report_suppressed(report);
}

/* The two metrics that only single blocks tell are those of a model of their own. */
static void write_metric(const struct report *report, const struct request *request,
                         enum metric metric, metric_writer *write) {
    struct report derived = *report;
    if (metric >= METRIC_COUNT) {
        derived.model = detail_submodel(report->detail,
                                        metric == METRIC_SHUTDOWN ? DETAIL_SHUTDOWN : DETAIL_SHORT,
                                        report->model);
    }
    if (metric == METRIC_LEAKED || metric == METRIC_SHUTDOWN) {
        write_leaks(&derived, request, metric, write);
    } else {
        write(&derived, request, metric);
    }
}

/* ---- Callers ---- */

static void write_callers(const struct report *report, const struct request *request,
                          enum metric metric) {
    const struct callers_of of = {.text = request->wish.callers_of,
                                  .function = request->has_regex ? NULL : request->wish.callers_of,
                                  .regex = &request->regex};
    report_callers(report, metric, &of);
}

/* ---- All that was asked for ---- */

static void write_asked(const struct report *report, const struct request *request) {
    static void (*const writers[SHOW_COUNT])(const struct report *) = {
        [SHOW_FINDINGS] = report_findings,   [SHOW_GROUPS] = report_groups,
        [SHOW_LIFETIMES] = report_lifetimes, [SHOW_SIZES] = report_sizes,
        [SHOW_BLOCKS] = report_blocks,       [SHOW_FRAGMENTATION] = report_fragmentation,
        [SHOW_MAPPINGS] = report_mappings,   [SHOW_TIMELINE] = report_timeline,
        [SHOW_MARKS] = report_marks,         [SHOW_THREADS] = report_threads,
        [SHOW_PROCESSES] = report_processes, [SHOW_POOLS] = report_pools,
    };
    bool are_callers = request->wish.callers_of != NULL;
    if (are_callers && !reportmaking_has_metric(&request->wish)) {
        write_callers(report, request, METRIC_MAXIMUM);
    }
    for (enum metric metric = 0; metric < METRIC_ALL; metric++) {
        if (request->wish.metrics[metric]) {
            write_metric(report, request, metric, are_callers ? write_callers : write_form);
        }
    }
    for (size_t i = 0; i < SHOW_COUNT; i++) {
        if (request->wish.shows[i]) {
            writers[i](report);
        }
    }
}

static struct report with_few_rows(const struct report *report, size_t count) {
    struct report brief = *report;
    if (brief.options.limit == 0 || brief.options.limit > count) {
        brief.options.limit = count;
    }
    return brief;
}

/* The largest call paths of a metric, as a list. */
static void write_top(const struct report *report, const struct request *request,
                      enum metric metric, size_t count) {
    struct report top = with_few_rows(report, count);
    top.options.min_percent = 0;
    top.options.depth = request->depth_given ? top.options.depth : REQUEST_PATH_DEPTH;
    report_paths(&top, metric);
}

static void write_default(const struct report *report, const struct request *request) {
    const struct model_totals *totals = &report->model->totals;
    const struct report few = with_few_rows(report, 5);
    const struct report fewer = with_few_rows(report, 3);
    table_drawing_begin(report, NULL);
    if (report->run != NULL) {
        report_run(report);
    }
    report_summary(report);
    report_warnings(report);
    table_drawing_end(report);
    /* What is wrong with the program comes first: the gravest. */
    if (report->findings != NULL && report->findings->count != 0) {
        report_findings(&few);
    }
    if (report_has_much_temporary(report->model)) {
        write_top(report, request, METRIC_TEMPORARY, 3);
    }
    if (report->holes != NULL) {
        report_fragmentation_brief(&fewer);
    }
    if (report_has_pools(report)) {
        report_pools(report);
    }
    if (request->form == FORM_TREE && totals->maximum_bytes != 0) {
        write_top(report, request, METRIC_MAXIMUM, 5);
    }
    if (report_has_many_allocations(report->model)) {
        report_often(&few);
    }
    if (totals->maximum_bytes != 0) {
        write_form(report, request, METRIC_MAXIMUM);
    }
    if (totals->live_bytes != 0) {
        write_leaks(report, request, METRIC_LEAKED, write_form);
    }
    if (report->model->thread_count > 1) {
        report_threads(report);
    }
    if (totals->allocations != 0) {
        report_next(report, request->form == FORM_FLAT);
    }
}

/* ---- Forms ---- */

/* Forms for other programs carry no notes in their text: people see them on stderr. */
static void note_warnings(const struct report *report) {
    const char *const *lines;
    size_t count = names_warnings(report->names, &lines);
    if (report->model->damage[0] != '\0') {
        print_safe(stderr, "memtrace: the file is damaged: %s\n", report->model->damage);
    }
    for (size_t i = 0; i < count; i++) {
        print_safe(stderr, "memtrace: %s\n", lines[i]);
    }
}

void reportshow_write(const struct report *report, const struct request *request) {
    bool is_for_people = report_is_for_people(report);
    bool is_special = reportmaking_is_special(&request->wish);
    struct table_document document;
    struct report in_document = *report;
    if (!is_for_people) {
        note_warnings(report);
    }
    if (!is_for_people && !is_special && report->options.format == REPORT_CSV) {
        report_csv(report);
        return;
    }
    if (!is_for_people && !is_special) {
        report_json(report);
        fputc('\n', report->out);
        return;
    }
    table_document_open(&document, report);
    in_document.document = &document;
    if (is_for_people && is_special) {
        if (report->run != NULL && !request->wish.shows[SHOW_PROCESSES]) {
            report_run_process(report);
        }
        report_selected(report);
        report_warnings(report);
    }
    (is_special ? write_asked : write_default)(&in_document, request);
    table_document_close(&document, report);
}
