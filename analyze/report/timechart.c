/* SPDX-License-Identifier: MIT */
/*
 * timechart.c: memory, allocations and frees over time, as charts for people and as a table for
 * programs.
 */
#include "analyze/blocks/activity.h"
#include "analyze/report/reports.h"
#include "analyze/rows/number.h"
#include "analyze/rows/style.h"
#include "analyze/rows/table.h"

#include <stdlib.h>
#include <string.h>

enum { CHART_ROWS = 8, CHART_WIDTH = 72, CHART_MOST = 512, LABEL = 13, MARKS_SHOWN = 20 };
/* Two looks at the process are close within this part of the time, as on the page (stripmath.ts).
 */
enum { CLOSE_PART = 60 };

/* What a chart shows. */
static const struct {
    const char *name;
    bool is_count;
} all_series[ACTIVITY_SERIES] = {
    [ACTIVITY_LIVE] = {"live bytes", false},
    [ACTIVITY_RESIDENT] = {"resident bytes; dotted: not sampled, as last seen", false},
    [ACTIVITY_SWAP] = {"swapped out", false},
    [ACTIVITY_VIRTUAL] = {"address space", false},
    [ACTIVITY_RATE] = {"allocations per second", true},
    [ACTIVITY_FREES] = {"frees per second", true},
    [ACTIVITY_LEAKED] = {"allocated by then and never freed", false},
};

/* Samples of one series at equal distances, from the view's begin to its end. */
struct samples {
    double value[2 * CHART_MOST];
    bool is_dotted[2 * CHART_MOST]; /* not known, but for what was seen before */
    size_t count;
    double most;
};

struct span {
    uint64_t from_ns, to_ns;
};

static struct span timechart_span(const struct model *model) {
    struct span span = {model->from_ns,
                        model->to_ns < model->now_ns ? model->to_ns : model->now_ns};
    if (model->timeline_count != 0 &&
        model->timeline[model->timeline_count - 1].time_ns > span.to_ns) {
        span.to_ns = model->timeline[model->timeline_count - 1].time_ns;
    }
    span.to_ns = span.to_ns > span.from_ns ? span.to_ns : span.from_ns + 1;
    return span;
}

static const struct activity nothing = {0};

static const struct activity *timechart_activity(const struct report *report) {
    return report->activity != NULL ? report->activity : &nothing;
}

/* Of an interval. */
static double timechart_value_in(const struct activity *activity, enum activity_series series,
                                 size_t i) {
    return series == ACTIVITY_LEAKED ? (double)activity->leaked[i]
           : series == ACTIVITY_RATE ? activity_rate(activity, activity->allocations, i)
                                     : activity_rate(activity, activity->frees, i);
}

/* At a point. */
static double timechart_value_at(const struct report *report, enum activity_series series,
                                 size_t i) {
    const struct memtrace_point *point = &report->model->timeline[i];
    const struct memtrace_sample *process;
    if (series == ACTIVITY_LIVE || series == ACTIVITY_RESIDENT) {
        return series == ACTIVITY_LIVE ? (double)point->live_bytes : (double)point->resident_bytes;
    }
    process = activity_process(timechart_activity(report), point->time_ns);
    return series == ACTIVITY_SWAP ? (double)process->swap_bytes : (double)process->virtual_bytes;
}

/* The most of what lies in (from, until], and of what was before. */
static double timechart_most_of_points(const struct report *report, enum activity_series series,
                                       size_t *point, double until) {
    const struct model *model = report->model;
    double most = *point != 0 ? timechart_value_at(report, series, *point - 1) : 0;
    for (; *point < model->timeline_count && (double)model->timeline[*point].time_ns <= until;
         ++*point) {
        double value = timechart_value_at(report, series, *point);
        most = value > most ? value : most;
    }
    return most;
}

/* The most of the intervals that have a part in [from, until). */
static double timechart_most_of_intervals(const struct activity *activity,
                                          enum activity_series series, double from, double until) {
    size_t i = activity_place(activity, (uint64_t)from);
    double most = 0;
    for (; i < activity->count && (double)activity->edges[i] < until; i++) {
        double value = timechart_value_in(activity, series, i);
        most = value > most ? value : most;
    }
    return most;
}

/* Each sample is the most of its share of time. */
static void timechart_take_samples(const struct report *report, enum activity_series series,
                                   struct span span, size_t count, struct samples *samples) {
    double width = (double)(span.to_ns - span.from_ns) / (double)count;
    size_t point = 0;
    *samples = (struct samples){.count = count};
    for (size_t i = 0; i < count; i++) {
        double from = (double)span.from_ns + width * (double)i;
        double until = (double)span.from_ns + width * (double)(i + 1);
        samples->value[i] =
            series < ACTIVITY_RATE
                ? timechart_most_of_points(report, series, &point, until)
                : timechart_most_of_intervals(timechart_activity(report), series, from, until);
        samples->most = samples->value[i] > samples->most ? samples->value[i] : samples->most;
    }
}

/* Of resident memory only some moments are known. What was seen again as it was before is no look
 * that can be told from none. */
static void timechart_dot_unseen(const struct report *report, struct span span,
                                 struct samples *samples) {
    const struct model *model = report->model;
    double width = (double)(span.to_ns - span.from_ns) / (double)samples->count;
    double close = (double)samples->count / CLOSE_PART;
    uint64_t before = UINT64_MAX;
    double last = -1;
    memset(samples->is_dotted, 1, sizeof samples->is_dotted);
    for (size_t i = 0; i < model->timeline_count; i++) {
        const struct memtrace_point *point = &model->timeline[i];
        double at = ((double)point->time_ns - (double)span.from_ns) / width;
        if (point->resident_bytes == before || at < 0) {
            continue;
        }
        at = at < (double)samples->count ? at : (double)samples->count - 1;
        last = last >= 0 && at - last <= close ? last : at;
        for (size_t k = (size_t)last; k <= (size_t)at; k++) {
            samples->is_dotted[k] = false;
        }
        before = point->resident_bytes;
        last = at;
    }
}

/* ---- Drawing ---- */

/* How many of `steps` a sample fills: what is not nothing fills at least one. */
static size_t timechart_height(const struct samples *samples, size_t i, size_t steps) {
    size_t height = (size_t)(samples->value[i] / samples->most * (double)steps + 0.5);
    return height == 0 && samples->value[i] > 0 ? 1 : height;
}

/* Two samples side by side, four dots high: U+2800 and a bit for each dot. */
static void timechart_put_braille(FILE *out, const struct samples *samples, size_t column,
                                  size_t row) {
    static const unsigned char dots[2][4] = {{0x40, 0x04, 0x02, 0x01}, {0x80, 0x20, 0x10, 0x08}};
    unsigned bits = 0;
    for (size_t side = 0; side < 2; side++) {
        size_t height = timechart_height(samples, 2 * column + side, (size_t)CHART_ROWS * 4);
        bool is_dotted = samples->is_dotted[2 * column + side];
        for (size_t dot = 0; dot < 4; dot++) {
            size_t level = row * 4 + dot + 1;
            bool is_set = is_dotted ? height == level && side == 0 : height >= level;
            bits |= is_set ? dots[side][dot] : 0;
        }
    }
    fprintf(out, "\xe2%c%c", 0xa0 | bits >> 6, 0x80 | (bits & 0x3f));
}

static void timechart_put_typed(FILE *out, const struct samples *samples, size_t column,
                                size_t row) {
    size_t height = timechart_height(samples, column, (size_t)CHART_ROWS * 2);
    if (samples->is_dotted[column]) {
        fputc((height + 1) / 2 == row + 1 ? '.' : ' ', out);
        return;
    }
    fputc(height >= 2 * row + 2 ? '#' : height == 2 * row + 1 ? '.' : ' ', out);
}

static void timechart_draw_series(const struct report *report, enum activity_series series,
                                  struct span span, size_t width) {
    bool is_known = activity_knows(timechart_activity(report), report->model, series);
    bool is_asked = (report->timeline_series & 1u << series) != 0;
    struct samples samples = {0};
    struct number number;
    if (is_known) {
        timechart_take_samples(report, series, span, report->options.unicode ? 2 * width : width,
                               &samples);
        if (series == ACTIVITY_RESIDENT) {
            timechart_dot_unseen(report, span, &samples);
        }
    }
    if (samples.most > 0 || is_asked) {
        fprintf(report->out, "%*s %s%s%s%s\n", LABEL, "", style_on(report, STYLE_NAME),
                all_series[series].name, style_off(report),
                samples.most > 0 ? ""
                : is_known       ? ": nothing"
                                 : ": not recorded");
    }
    if (samples.most <= 0) {
        return;
    }
    for (size_t row = CHART_ROWS; row-- > 0;) {
        bool is_top = row + 1 == CHART_ROWS;
        fprintf(report->out, "%*s %s", LABEL,
                is_top ? all_series[series].is_count ? number_count(&number, (uint64_t)samples.most)
                                                     : number_bytes(&number, (uint64_t)samples.most)
                : row == 0 ? "0"
                           : "",
                report->options.unicode ? "│" : "|");
        for (size_t column = 0; column < width; column++) {
            if (report->options.unicode) {
                timechart_put_braille(report->out, &samples, column, row);
            } else {
                timechart_put_typed(report->out, &samples, column, row);
            }
        }
        fputc('\n', report->out);
    }
}

static void timechart_draw_axis(const struct report *report, struct span span, size_t width) {
    struct number from;
    struct number to;
    size_t left;
    number_duration(&from, span.from_ns);
    number_duration(&to, span.to_ns);
    left = strlen(from.text) + strlen(to.text) < width ? width - strlen(to.text) : 0;
    fprintf(report->out, "%*s %s", LABEL, "", report->options.unicode ? "└" : "+");
    for (size_t i = 0; i < width; i++) {
        fputs(report->options.unicode ? "─" : "-", report->out);
    }
    fprintf(report->out, "\n%*s  %-*s%s\n", LABEL, "", (int)left, from.text, to.text);
}

static size_t timechart_column(const struct model_mark *mark, struct span span, size_t width) {
    uint64_t length = span.to_ns - span.from_ns;
    uint64_t at = mark->time_ns > span.from_ns ? mark->time_ns - span.from_ns : 0;
    size_t column = (size_t)((double)at / (double)length * (double)width);
    return column < width ? column : width - 1;
}

/* A line of arrows, then what they are. */
static void timechart_draw_marks(const struct report *report, struct span span, size_t width) {
    const struct model *model = report->model;
    char arrows[CHART_MOST + 1];
    size_t shown = 0;
    memset(arrows, ' ', width);
    arrows[width] = '\0';
    for (size_t i = 0; i < model->mark_count; i++) {
        if (model->marks[i].what == MEMTRACE_MARK_POINT) {
            arrows[timechart_column(&model->marks[i], span, width)] = '^';
            shown++;
        }
    }
    if (shown == 0) {
        return;
    }
    while (width != 0 && arrows[width - 1] == ' ') {
        arrows[--width] = '\0';
    }
    fprintf(report->out, "%*s  %s\n", LABEL, "", arrows);
    for (size_t i = 0, put = 0; i < model->mark_count && put < MARKS_SHOWN; i++) {
        struct number time;
        if (model->marks[i].what != MEMTRACE_MARK_POINT) {
            continue;
        }
        fprintf(report->out, "%*s  ^ %s ", LABEL, "",
                number_duration(&time, model->marks[i].time_ns));
        style_text(report, model->marks[i].name);
        fputc('\n', report->out);
        put++;
    }
    if (shown > MARKS_SHOWN) {
        struct number more;
        fprintf(report->out, "%*s  (%s more: --show-marks)\n", LABEL, "",
                number_count(&more, shown - MARKS_SHOWN));
    }
}

static void timechart_draw(const struct report *report) {
    size_t room = report->options.width;
    size_t width = room != 0 ? room - LABEL - 3 : CHART_WIDTH;
    struct span span = timechart_span(report->model);
    unsigned wanted = report->timeline_series != 0
                          ? report->timeline_series
                          : 1u << ACTIVITY_LIVE | 1u << ACTIVITY_RESIDENT | 1u << ACTIVITY_RATE;
    width = width > CHART_MOST ? CHART_MOST : width;
    table_drawing_begin(report, "Timeline");
    if (report->model->timeline_count == 0) {
        fputs("nothing\n", report->out);
    } else {
        for (enum activity_series i = 0; i < ACTIVITY_SERIES; i++) {
            if ((wanted & 1u << i) != 0) {
                timechart_draw_series(report, i, span, width);
            }
        }
        timechart_draw_axis(report, span, width);
        timechart_draw_marks(report, span, width);
    }
    table_drawing_end(report);
}

/* ---- For programs ---- */

/* Of the interval that a point lies in. */
static struct table_cell timechart_interval(const struct report *report,
                                            enum activity_series series, uint64_t time_ns) {
    const struct activity *activity = timechart_activity(report);
    size_t place = activity_place(activity, time_ns);
    if (!activity_knows(activity, report->model, series) || place == activity->count) {
        return table_none();
    }
    return series == ACTIVITY_LEAKED ? table_number(activity->leaked[place])
                                     : table_real(timechart_value_in(activity, series, place));
}

static void timechart_list(const struct report *report) {
    static const struct table_column columns[] = {
        {"time_ns", "time", TABLE_DURATION, 0},
        {"live_bytes", "live", TABLE_BYTES, 0},
        {"resident_bytes", "resident", TABLE_BYTES, 0},
        {"allocations", "allocations", TABLE_COUNT, 0},
        {"total_bytes", "allocated", TABLE_BYTES, 0},
        {"allocations_per_second", "per second", TABLE_REAL, 0},
        {"frees_per_second", "frees", TABLE_REAL, 0},
        {"swap_bytes", "swapped out", TABLE_BYTES, 0},
        {"virtual_bytes", "address space", TABLE_BYTES, 0},
        {"never_freed_bytes", "never freed", TABLE_BYTES, 0},
    };
    const struct model *model = report->model;
    struct table table = table_open(report, "timeline", "Timeline", columns, 10);
    for (size_t i = 0; i < model->timeline_count; i++) {
        const struct memtrace_point *point = &model->timeline[i];
        const struct memtrace_sample *process =
            activity_process(timechart_activity(report), point->time_ns);
        table_row(&table, (struct table_cell[]){
                              table_number(point->time_ns), table_number(point->live_bytes),
                              table_number(point->resident_bytes), table_number(point->alloc_count),
                              table_number(point->alloc_bytes),
                              timechart_interval(report, ACTIVITY_RATE, point->time_ns),
                              timechart_interval(report, ACTIVITY_FREES, point->time_ns),
                              process != NULL ? table_number(process->swap_bytes) : table_none(),
                              process != NULL ? table_number(process->virtual_bytes) : table_none(),
                              timechart_interval(report, ACTIVITY_LEAKED, point->time_ns)});
    }
    table_close(&table);
}

void report_timeline(const struct report *report) {
    (report_is_for_people(report) ? timechart_draw : timechart_list)(report);
}
