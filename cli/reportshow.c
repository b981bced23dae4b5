/* SPDX-License-Identifier: MIT */
/* reportshow.c: which reports `memtrace report` writes, in which form. See reportrequest.h. */
#include "cli/reportrequest.h"

static int write_metric(const struct report *report, const struct request *request,
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

static int write_asked(const struct report *report, const struct request *request) {
    int result = 0;
    report_warnings(report);
    for (enum metric metric = 0; result == 0 && metric < METRIC_COUNT; metric++) {
        if (request->show[metric]) {
            result = write_metric(report, request, metric);
        }
    }
    if (result == 0 && request->threads) {
        result = report_threads(report);
    }
    return result;
}

static int write_default(const struct report *report, const struct request *request) {
    const struct model_totals *totals = &report->model->totals;
    struct report top = *report;
    int result = 0;
    report_summary(report);
    report_warnings(report);
    if (request->form == FORM_TREE && totals->maximum_bytes != 0) {
        top.options.limit = top.options.limit != 0 && top.options.limit < 5 ? top.options.limit : 5;
        top.options.min_percent = 0;
        top.options.depth = request->depth_given ? top.options.depth : REQUEST_PATH_DEPTH;
        result = report_paths(&top, METRIC_MAXIMUM);
    }
    if (result == 0 && totals->maximum_bytes != 0) {
        result = write_metric(report, request, METRIC_MAXIMUM);
    }
    if (result == 0 && totals->live_bytes != 0) {
        result = write_metric(report, request, METRIC_LEAKED);
    }
    if (result == 0 && (request->threads || report->model->thread_count > 1)) {
        result = report_threads(report);
    }
    return result;
}

/* Forms for other programs carry no notes in their text: people see them on stderr. */
static void note_warnings(const struct report *report) {
    const char *const *lines;
    size_t count = names_warnings(report->names, &lines);
    for (size_t i = 0; i < count; i++) {
        fprintf(stderr, "memtrace: %s\n", lines[i]);
    }
}

int reportshow_write(const struct report *report, const struct request *request) {
    if (request->form == FORM_JSON) {
        int result = report_json(report);
        fputc('\n', report->out);
        note_warnings(report);
        return result;
    }
    if (request->form == FORM_CSV) {
        int result = report_csv(report);
        note_warnings(report);
        return result;
    }
    return request->any_show || request->threads ? write_asked(report, request)
                                                 : write_default(report, request);
}
