/* SPDX-License-Identifier: MIT */
/*
 * timechart.c: live bytes, resident bytes and allocations per second over time, as charts for
 * people and as a table for programs.
 */
#include "analyze/rows/number.h"
#include "analyze/rows/style.h"
#include "analyze/rows/table.h"

#include <stdlib.h>
#include <string.h>

enum { CHART_ROWS = 8, CHART_WIDTH = 72, CHART_MOST = 512, LABEL = 13, MARKS_SHOWN = 20 };
/* Rates are of so much time at least: of 10 ms, or of a share of a short run. */
enum { RATE_LEAST_NS = 10000000, RATE_SHARE = 64 };

/* What a chart shows of a point. */
enum series { SERIES_LIVE, SERIES_RESIDENT, SERIES_RATE };

/* Samples of one series at equal distances, from the view's begin to its end. */
struct samples {
    double value[2 * CHART_MOST];
    size_t count;
    double most;
};

struct span {
    uint64_t from_ns, to_ns;
};

static struct span span_of(const struct model *model) {
    struct span span = {model->from_ns,
                        model->to_ns < model->now_ns ? model->to_ns : model->now_ns};
    if (model->timeline_count != 0 &&
        model->timeline[model->timeline_count - 1].time_ns > span.to_ns) {
        span.to_ns = model->timeline[model->timeline_count - 1].time_ns;
    }
    span.to_ns = span.to_ns > span.from_ns ? span.to_ns : span.from_ns + 1;
    return span;
}

/* Allocations per second since the point before, or one before that: points may follow each other
 * so closely that what happened between them says nothing. */
static double rate_at(const struct model *model, size_t i) {
    const struct memtrace_point *point = &model->timeline[i];
    struct span span = span_of(model);
    uint64_t share_ns = (span.to_ns - span.from_ns) / RATE_SHARE;
    uint64_t least_ns = share_ns < RATE_LEAST_NS ? share_ns : RATE_LEAST_NS;
    size_t from = i;
    while (from != 0 && point->time_ns - model->timeline[from].time_ns < least_ns + (from == i)) {
        from--;
    }
    const struct memtrace_point *before = &model->timeline[from];
    uint64_t time_ns = point->time_ns - before->time_ns;
    if (time_ns == 0 || point->alloc_count < before->alloc_count) {
        return 0;
    }
    return (double)(point->alloc_count - before->alloc_count) * 1e9 /
           (double)(time_ns > least_ns ? time_ns : least_ns);
}

static double value_at(const struct model *model, enum series series, size_t i) {
    switch (series) {
    case SERIES_LIVE:
        return (double)model->timeline[i].live_bytes;
    case SERIES_RESIDENT:
        return (double)model->timeline[i].resident_bytes;
    default:
        return rate_at(model, i);
    }
}

/* What is known between the point before `point` and that one: memory is as it was, a rate is that
 * of the time up to the next point. */
static double value_before(const struct model *model, enum series series, size_t point) {
    if (series == SERIES_RATE) {
        return point < model->timeline_count ? rate_at(model, point) : 0;
    }
    return point != 0 ? value_at(model, series, point - 1) : 0;
}

/* Each sample is the most of its share of time. */
static void take_samples(const struct model *model, enum series series, struct span span,
                         size_t count, struct samples *samples) {
    size_t point = 0;
    *samples = (struct samples){.count = count};
    for (size_t i = 0; i < count; i++) {
        double until = (double)span.from_ns +
                       (double)(span.to_ns - span.from_ns) * (double)(i + 1) / (double)count;
        double most = value_before(model, series, point);
        for (; point < model->timeline_count && (double)model->timeline[point].time_ns <= until;
             point++) {
            double value = value_at(model, series, point);
            most = value > most ? value : most;
        }
        samples->value[i] = most;
        samples->most = most > samples->most ? most : samples->most;
    }
}

/* ---- Drawing ---- */

/* How many of `steps` a sample fills: what is not nothing fills at least one. */
static size_t height_of(const struct samples *samples, size_t i, size_t steps) {
    size_t height = (size_t)(samples->value[i] / samples->most * (double)steps + 0.5);
    return height == 0 && samples->value[i] > 0 ? 1 : height;
}

/* Two samples side by side, four dots high: U+2800 and a bit for each dot. */
static void put_braille(FILE *out, const struct samples *samples, size_t column, size_t row) {
    static const unsigned char dots[2][4] = {{0x40, 0x04, 0x02, 0x01}, {0x80, 0x20, 0x10, 0x08}};
    unsigned bits = 0;
    for (size_t side = 0; side < 2; side++) {
        size_t height = height_of(samples, 2 * column + side, (size_t)CHART_ROWS * 4);
        for (size_t dot = 0; dot < 4; dot++) {
            bits |= height > row * 4 + dot ? dots[side][dot] : 0;
        }
    }
    fprintf(out, "\xe2%c%c", 0xa0 | bits >> 6, 0x80 | (bits & 0x3f));
}

static void put_typed(FILE *out, const struct samples *samples, size_t column, size_t row) {
    size_t height = height_of(samples, column, (size_t)CHART_ROWS * 2);
    fputc(height >= 2 * row + 2 ? '#' : height == 2 * row + 1 ? '.' : ' ', out);
}

static const char *label_of(enum series series, double value, struct number *number) {
    return series == SERIES_RATE ? number_count(number, (uint64_t)value)
                                 : number_bytes(number, (uint64_t)value);
}

static void draw_series(const struct report *report, enum series series, struct span span,
                        size_t width) {
    static const char *const names[] = {"live bytes", "resident bytes", "allocations per second"};
    struct samples samples;
    struct number number;
    take_samples(report->model, series, span, report->options.unicode ? 2 * width : width,
                 &samples);
    if (samples.most <= 0) {
        return;
    }
    fprintf(report->out, "%*s %s%s%s\n", LABEL, "", style_on(report, STYLE_NAME), names[series],
            style_off(report));
    for (size_t row = CHART_ROWS; row-- > 0;) {
        bool is_top = row + 1 == CHART_ROWS;
        fprintf(report->out, "%*s %s", LABEL,
                is_top     ? label_of(series, samples.most, &number)
                : row == 0 ? "0"
                           : "",
                report->options.unicode ? "│" : "|");
        for (size_t column = 0; column < width; column++) {
            if (report->options.unicode) {
                put_braille(report->out, &samples, column, row);
            } else {
                put_typed(report->out, &samples, column, row);
            }
        }
        fputc('\n', report->out);
    }
}

static void draw_axis(const struct report *report, struct span span, size_t width) {
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

static size_t column_of(const struct model_mark *mark, struct span span, size_t width) {
    uint64_t length = span.to_ns - span.from_ns;
    uint64_t at = mark->time_ns > span.from_ns ? mark->time_ns - span.from_ns : 0;
    size_t column = (size_t)((double)at / (double)length * (double)width);
    return column < width ? column : width - 1;
}

/* A line of arrows, then what they are. */
static void draw_marks(const struct report *report, struct span span, size_t width) {
    const struct model *model = report->model;
    char arrows[CHART_MOST + 1];
    size_t shown = 0;
    memset(arrows, ' ', width);
    arrows[width] = '\0';
    for (size_t i = 0; i < model->mark_count; i++) {
        if (model->marks[i].what == MEMTRACE_MARK_POINT) {
            arrows[column_of(&model->marks[i], span, width)] = '^';
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

static void draw(const struct report *report) {
    size_t room = report->options.width;
    size_t width = room != 0 ? room - LABEL - 3 : CHART_WIDTH;
    struct span span = span_of(report->model);
    width = width > CHART_MOST ? CHART_MOST : width;
    table_drawing_begin(report, "Timeline");
    if (report->model->timeline_count == 0) {
        fputs("nothing\n", report->out);
    } else {
        for (enum series series = SERIES_LIVE; series <= SERIES_RATE; series++) {
            draw_series(report, series, span, width);
        }
        draw_axis(report, span, width);
        draw_marks(report, span, width);
    }
    table_drawing_end(report);
}

/* ---- For programs ---- */

static void list(const struct report *report) {
    static const struct table_column columns[] = {
        {"time_ns", "time", TABLE_DURATION, 0},
        {"live_bytes", "live", TABLE_BYTES, 0},
        {"resident_bytes", "resident", TABLE_BYTES, 0},
        {"allocations", "allocations", TABLE_COUNT, 0},
        {"total_bytes", "allocated", TABLE_BYTES, 0},
        {"allocations_per_second", "per second", TABLE_REAL, 0},
    };
    const struct model *model = report->model;
    struct table table = table_open(report, "timeline", "Timeline", columns, 6);
    for (size_t i = 0; i < model->timeline_count; i++) {
        const struct memtrace_point *point = &model->timeline[i];
        table_row(&table, (struct table_cell[]){
                              table_number(point->time_ns), table_number(point->live_bytes),
                              table_number(point->resident_bytes), table_number(point->alloc_count),
                              table_number(point->alloc_bytes), table_real(rate_at(model, i))});
    }
    table_close(&table);
}

int report_timeline(const struct report *report) {
    if (report_is_for_people(report)) {
        draw(report);
    } else {
        list(report);
    }
    return 0;
}
