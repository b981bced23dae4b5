/* SPDX-License-Identifier: MIT */
/* diffrow.c: see diffrow.h. */
#include "analyze/report/diffrow.h"

#include "analyze/model/shortname.h"
#include "analyze/rows/style.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *diffrow_by(enum diff_by by) {
    static const char *const names[] = {"call path", "function", "file", "module"};
    return names[by];
}

const char *diffrow_state(const struct diff_row *row) {
    if (row->present[0] && row->present[1]) {
        return "";
    }
    return row->present[1] ? "new" : "gone";
}

const char *diffrow_metric(enum metric metric) {
    static const char *const names[METRIC_COUNT] = {
        [METRIC_MAXIMUM] = "maximum_bytes",  [METRIC_LEAKED] = "leaked_bytes",
        [METRIC_CUMULATIVE] = "total_bytes", [METRIC_ALLOCATIONS] = "allocations",
        [METRIC_TEMPORARY] = "temporary",
    };
    return names[metric];
}

static const char *spell(const struct names_frame *frame, bool full_names, char *buffer,
                         size_t size) {
    char name[4096];
    if (full_names || frame->function == NULL) {
        return names_spell(frame, buffer, size);
    }
    return shortname(names_spell(frame, name, sizeof name), buffer, size);
}

const char *diffrow_name(const struct diff *diff, const struct diff_row *row, bool full_names,
                         char *buffer, size_t size) {
    const struct names_frame *frame = diff_frame(diff, row);
    if (frame == NULL) {
        snprintf(buffer, size, "(no call path was recorded)");
    } else if (diff->by == DIFF_BY_PATH || diff->by == DIFF_BY_FUNCTION) {
        spell(frame, full_names, buffer, size);
    } else if (diff->by == DIFF_BY_FILE && frame->file != NULL) {
        snprintf(buffer, size, "%s", style_base(frame->file));
    } else if (frame->module[0] != '\0') {
        snprintf(buffer, size, "%s", style_base(frame->module));
    } else {
        snprintf(buffer, size, "(unknown code)");
    }
    return buffer;
}

static bool is_bytes(enum metric metric) {
    return metric != METRIC_ALLOCATIONS && metric != METRIC_TEMPORARY;
}

const char *diffrow_change(struct number *number, enum metric metric, int64_t change) {
    struct number count;
    uint64_t size = change < 0 ? 0 - (uint64_t)change : (uint64_t)change;
    const char *sign = change < 0 ? "-" : "+";
    if (is_bytes(metric)) {
        return number_change(number, change);
    }
    snprintf(number->text, sizeof number->text, "%s%s", change != 0 ? sign : "",
             number_count(&count, size));
    return number->text;
}

const char *diffrow_percent(struct number *number, uint64_t before, uint64_t after) {
    double percent = before != 0 ? 100.0 * ((double)after - (double)before) / (double)before : 0;
    number->text[0] = '\0';
    if (before != 0) {
        snprintf(number->text, sizeof number->text, after == before ? "0%%" : "%+.1f%%", percent);
    }
    return number->text;
}

const char *diffrow_amount(struct number *number, enum metric metric, uint64_t amount) {
    return metric_main_text(metric, number, (struct cost){.main = amount});
}

struct diffrow_range diffrow_choose(const struct diff *diff, const struct diff_view *view,
                                    enum metric metric) {
    struct diffrow_range range = {.shrunk = diff->row_count};
    size_t limit = view->limit != 0 ? view->limit : SIZE_MAX;
    int64_t least = view->least < INT64_MAX ? (int64_t)view->least : INT64_MAX;
    least = least > 0 ? least : 1;
    while (range.grown < diff->row_count && range.grown < limit &&
           diff_change(diff->rows[range.grown].costs, metric) >= least) {
        range.grown++;
    }
    while (range.shrunk > range.grown && diff->row_count - range.shrunk < limit &&
           diff_change(diff->rows[range.shrunk - 1].costs, metric) <= -least) {
        range.shrunk--;
    }
    for (size_t i = range.grown; i < range.shrunk; i++) {
        int64_t change = diff_change(diff->rows[i].costs, metric);
        range.rest += change != 0;
        range.rest_up += change > 0 ? change : 0;
        range.rest_down += change < 0 ? change : 0;
    }
    return range;
}
