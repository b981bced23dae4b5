/* SPDX-License-Identifier: MIT */
/* title.c: what a report is about, in words: the metric, and the time that is looked at. */
#include "analyze/report/reports.h"
#include "analyze/rows/number.h"

#include <stdio.h>
#include <string.h>

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
    return model->to_ns != UINT64_MAX ? "live then" : model->live ? "live now" : "leaked";
}
