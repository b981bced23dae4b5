/* SPDX-License-Identifier: MIT */
/* hints.c: what is wrong with a program's memory at first sight, and what to ask next. */
#include "analyze/report/reports.h"
#include "analyze/rows/safetext.h"
#include "analyze/rows/table.h"

/* Below these, nobody would change a program for it. */
enum {
    TEMPORARY_LEAST = 1000,
    TEMPORARY_PERCENT = 25,
    LEAKED_LEAST = 64 << 10,
    LEAKED_PERCENT = 10
};

static bool is_share(uint64_t part, uint64_t whole, uint64_t least, unsigned percent) {
    return part >= least && (double)part * 100 >= (double)whole * percent;
}

bool report_has_much_temporary(const struct model *model) {
    bool is_known = !model->recording.sampled || !model->recording.present;
    return is_known && is_share(model->totals.temporary, model->totals.allocations, TEMPORARY_LEAST,
                                TEMPORARY_PERCENT);
}

/* What is suppressed does not count. 0 or -1: out of memory. */
static int find_leaked(const struct report *report, uint64_t *bytes) {
    const struct model *model = report->model;
    struct model unsuppressed;
    *bytes = 0;
    if (model->live || model->to_ns != UINT64_MAX) {
        return 0;
    }
    *bytes = model->totals.live_bytes;
    if (report->suppressions == NULL) {
        return 0;
    }
    if (suppressions_apply(report->suppressions, model, report->names, &unsuppressed, NULL) != 0) {
        return -1;
    }
    *bytes = unsuppressed.totals.live_bytes;
    suppressions_applied_free(&unsuppressed);
    return 0;
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
        fprintf(report->out, " %-28s  # %s\n", options, what);
    }
}

int report_next(const struct report *report) {
    const struct model *model = report->model;
    bool is_quiet = true;
    uint64_t leaked_bytes;
    if (find_leaked(report, &leaked_bytes) != 0) {
        return -1;
    }
    table_drawing_begin(report, "Next");
    if (leaked_bytes >= LEAKED_LEAST) {
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
    if (is_quiet) {
        put_hint(report, "--flat", "the same by function");
    }
    table_drawing_end(report);
    return 0;
}
