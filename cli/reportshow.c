/* SPDX-License-Identifier: MIT */
/* reportshow.c: which reports `memtrace report` writes, in which form. See reportshow.h. */
#include "cli/reportshow.h"

#include "analyze/report/findings.h"
#include "analyze/rows/safetext.h"
#include "analyze/rows/table.h"

/* ---- Metrics ---- */

static int write_form(const struct report *report, const struct request *request,
                      enum metric metric) {
    switch (request->form) {
    case FORM_FLAT:
        return report_flat(report, metric);
    case FORM_PATHS:
        return report_paths(report, metric);
    default:
        return report_tree(report, metric);
    }
}

typedef int metric_writer(const struct report *report, const struct request *request,
                          enum metric metric);

/* Leaks that are suppressed are told apart. */
static int write_leaks(const struct report *report, const struct request *request,
                       enum metric metric, metric_writer *write) {
    struct report unsuppressed = *report;
    struct model model;
    int result;
    if (report->suppressions == NULL) {
        return write(report, request, metric);
    }
    if (suppressions_apply(report->suppressions, report->model, report->names, &model, NULL) != 0) {
        return -1;
    }
    unsuppressed.model = &model;
    result = write(&unsuppressed, request, metric);
    report_suppressed(report);
    suppressions_applied_free(&model);
    return result;
}

/* The two metrics that only single blocks tell are those of a model of their own. */
static int write_metric(const struct report *report, const struct request *request,
                        enum metric metric, metric_writer *write) {
    struct report derived = *report;
    struct model model;
    int result;
    if (metric < METRIC_COUNT) {
        return metric == METRIC_LEAKED ? write_leaks(report, request, metric, write)
                                       : write(report, request, metric);
    }
    if (detail_submodel(report->detail, metric == METRIC_SHUTDOWN ? DETAIL_SHUTDOWN : DETAIL_SHORT,
                        report->model, &model) != 0) {
        return -1;
    }
    derived.model = &model;
    result = metric == METRIC_SHUTDOWN ? write_leaks(&derived, request, metric, write)
                                       : write(&derived, request, metric);
    detail_submodel_free(&model);
    return result;
}

static int write_metrics(const struct report *report, const struct request *request,
                         metric_writer *write) {
    int result = 0;
    for (enum metric metric = 0; result == 0 && metric < METRIC_ALL; metric++) {
        if (request->wish.metrics[metric]) {
            result = write_metric(report, request, metric, write);
        }
    }
    return result;
}

/* ---- Callers ---- */

static int write_callers(const struct report *report, const struct request *request,
                         enum metric metric) {
    const struct callers_of of = {.text = request->wish.callers_of,
                                  .function = request->has_regex ? NULL : request->wish.callers_of,
                                  .regex = &request->regex};
    return report_callers(report, metric, &of);
}

/* ---- All that was asked for ---- */

static int write_marks(const struct report *report) {
    report_marks(report);
    return 0;
}

static int write_processes(const struct report *report) {
    report_processes(report);
    return 0;
}

static int write_shows(const struct report *report, const struct request *request) {
    static int (*const writers[SHOW_COUNT])(const struct report *) = {
        [SHOW_FINDINGS] = report_findings,   [SHOW_GROUPS] = report_groups,
        [SHOW_LIFETIMES] = report_lifetimes, [SHOW_SIZES] = report_sizes,
        [SHOW_BLOCKS] = report_blocks,       [SHOW_FRAGMENTATION] = report_fragmentation,
        [SHOW_MAPPINGS] = report_mappings,   [SHOW_TIMELINE] = report_timeline,
        [SHOW_MARKS] = write_marks,          [SHOW_THREADS] = report_threads,
        [SHOW_PROCESSES] = write_processes,  [SHOW_POOLS] = report_pools,
    };
    int result = 0;
    for (size_t i = 0; result == 0 && i < SHOW_COUNT; i++) {
        if (request->wish.shows[i]) {
            result = writers[i](report);
        }
    }
    return result;
}

static int write_asked(const struct report *report, const struct request *request) {
    bool are_callers = request->wish.callers_of != NULL;
    int result = are_callers && !reportmaking_has_metric(&request->wish)
                     ? write_callers(report, request, METRIC_MAXIMUM)
                     : write_metrics(report, request, are_callers ? write_callers : write_form);
    return result == 0 ? write_shows(report, request) : result;
}

/* The largest call paths of a metric, as a list. */
static int write_top(const struct report *report, const struct request *request, enum metric metric,
                     size_t count) {
    struct report top = *report;
    if (top.options.limit == 0 || top.options.limit > count) {
        top.options.limit = count;
    }
    top.options.min_percent = 0;
    top.options.depth = request->depth_given ? top.options.depth : REQUEST_PATH_DEPTH;
    return report_paths(&top, metric);
}

/* What is wrong with the program comes first. */
static int write_wrong(const struct report *report, const struct request *request) {
    struct report brief = *report;
    int result = 0;
    brief.options.limit =
        brief.options.limit != 0 && brief.options.limit < 3 ? brief.options.limit : 3;
    if (report_has_much_temporary(report->model)) {
        result = write_top(report, request, METRIC_TEMPORARY, 3);
    }
    if (result == 0 && report->holes != NULL) {
        result = report_fragmentation_brief(&brief);
    }
    return result;
}

enum { ROWS_SHOWN = 5 };

static struct report with_few_rows(const struct report *report) {
    struct report brief = *report;
    if (brief.options.limit == 0 || brief.options.limit > ROWS_SHOWN) {
        brief.options.limit = ROWS_SHOWN;
    }
    return brief;
}

/* The gravest. */
static int write_findings(const struct report *report) {
    struct report brief = with_few_rows(report);
    return report->findings != NULL && report->findings->count != 0 ? report_findings(&brief) : 0;
}

static int write_often(const struct report *report) {
    struct report brief = with_few_rows(report);
    return report_often(&brief);
}

static int write_default(const struct report *report, const struct request *request) {
    const struct model_totals *totals = &report->model->totals;
    int result = 0;
    table_drawing_begin(report, NULL);
    if (report->run != NULL) {
        result = report_run(report);
    }
    report_summary(report);
    report_warnings(report);
    table_drawing_end(report);
    if (result == 0) {
        result = write_findings(report);
    }
    if (result == 0) {
        result = write_wrong(report, request);
    }
    if (result == 0 && report_has_pools(report)) {
        result = report_pools(report);
    }
    if (result == 0 && request->form == FORM_TREE && totals->maximum_bytes != 0) {
        result = write_top(report, request, METRIC_MAXIMUM, 5);
    }
    if (result == 0 && report_has_many_allocations(report->model)) {
        result = write_often(report);
    }
    if (result == 0 && totals->maximum_bytes != 0) {
        result = write_form(report, request, METRIC_MAXIMUM);
    }
    if (result == 0 && totals->live_bytes != 0) {
        result = write_leaks(report, request, METRIC_LEAKED, write_form);
    }
    if (result == 0 && report->model->thread_count > 1) {
        result = report_threads(report);
    }
    if (result == 0 && totals->allocations != 0) {
        result = report_next(report, request->form == FORM_FLAT);
    }
    return result;
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

static int write_everything(const struct report *report) {
    int result;
    if (report->options.format == REPORT_CSV) {
        return report_csv(report);
    }
    result = report_json(report);
    fputc('\n', report->out);
    return result;
}

int reportshow_write(const struct report *report, const struct request *request) {
    bool is_special = reportmaking_is_special(&request->wish);
    struct table_document document;
    struct report in_document = *report;
    int result;
    if (!report_is_for_people(report)) {
        note_warnings(report);
    }
    if (!report_is_for_people(report) && !is_special) {
        return write_everything(report);
    }
    if (table_document_open(&document, report) != 0) {
        return -1;
    }
    in_document.document = &document;
    if (report_is_for_people(report) && is_special) {
        if (report->run != NULL && !request->wish.shows[SHOW_PROCESSES]) {
            report_run_process(report);
        }
        report_selected(report);
        report_warnings(report);
    }
    result = is_special ? write_asked(&in_document, request) : write_default(&in_document, request);
    table_document_close(&document, report);
    return result;
}
