/* SPDX-License-Identifier: MIT */
/* findingsheld.c: findings of what is held, at the end or when the program begins to end, and
 * whether it grows. See findings.h. */
#include "analyze/report/findings.h"
#include "analyze/rows/number.h"
#include "analyze/window/series.h"

#include <stdlib.h>
#include <string.h>

/* Below these, nobody would change a program for it. */
enum {
    LEAK_LEAST = 64 << 10,
    LEAK_GROWING_LEAST = 4 << 10,
    LEAKS = 5, /* functions that are named */
};

static double share_of(uint64_t part, uint64_t whole) {
    return whole != 0 ? (double)part / (double)whole : 0;
}

static int out_of_memory(struct error *error) {
    return error_set(error, "out of memory");
}

/* ---- When it is judged ---- */

/* When the program began to end: almost all of its allocations had been made, and the rest of its
 * time was short. What is freed from then on is freed because it ends. UINT64_MAX: it did not. */
uint64_t findings_shutdown_ns(const struct model *model) {
    enum { PART = 1000, SHORT_PART = 10 };
    const struct memtrace_point *points = model->timeline;
    size_t first = model->timeline_count;
    uint64_t all = first != 0 ? points[first - 1].alloc_count : 0;
    while (first > 0 && points[first - 1].alloc_count >= all - all / PART) {
        first--;
    }
    return model_has_leaks(model) && first > 0 && first < model->timeline_count &&
                   (model->now_ns - points[first].time_ns) <= model->now_ns / SHORT_PART
               ? points[first].time_ns
               : UINT64_MAX;
}

/* ---- What is held, and whether it grows ---- */

enum { STAGES = 8, MARKS = 33, MOMENTS = STAGES + 2 + MARKS, SERIES_CONTEXTS = 4096 };

/* The moments at which it is looked at. */
struct moments {
    uint64_t times[MOMENTS]; /* grow */
    size_t count;
    uint64_t stages[STAGES + 1]; /* the program's allocations in as many equal parts */
    uint64_t half_ns;            /* of its time */
    uint64_t marks[MARKS];       /* of one name */
    size_t mark_count;
    const char *mark;
};

/* When so many of the run's allocations had been made. */
static uint64_t time_of(const struct model *whole, uint64_t allocations) {
    for (size_t i = 0; i < whole->timeline_count; i++) {
        if (whole->timeline[i].alloc_count >= allocations) {
            return whole->timeline[i].time_ns;
        }
    }
    return whole->now_ns;
}

static uint64_t allocations_at(const struct model *whole, uint64_t time_ns) {
    uint64_t allocations = 0;
    for (size_t i = 0; i < whole->timeline_count && whole->timeline[i].time_ns <= time_ns; i++) {
        allocations = whole->timeline[i].alloc_count;
    }
    return allocations;
}

static void choose_stages(struct moments *moments, const struct model *whole, uint64_t from_ns,
                          uint64_t end_ns) {
    uint64_t first = allocations_at(whole, from_ns);
    uint64_t last = allocations_at(whole, end_ns);
    for (size_t i = 0; i <= STAGES; i++) {
        uint64_t time = time_of(whole, first + (last - first) / STAGES * i) + 1;
        moments->stages[i] = i == 0 ? from_ns : i == STAGES || time > end_ns ? end_ns : time;
    }
}

static bool is_mark(const struct model_mark *mark) {
    return mark->what == MEMTRACE_MARK_POINT && mark->name[0] != '\0';
}

/* The name that is marked most often in the window, at least three times. */
static void choose_marks(struct moments *moments, const struct model *whole, uint64_t from_ns,
                         uint64_t end_ns) {
    enum { LOOKED_AT = 64 };
    const char *names[LOOKED_AT];
    size_t counts[LOOKED_AT];
    size_t known = 0;
    size_t best = 0;
    size_t seen = 0;
    for (size_t i = 0; i < whole->mark_count; i++) {
        const struct model_mark *mark = &whole->marks[i];
        size_t at = 0;
        if (!is_mark(mark) || mark->time_ns < from_ns || mark->time_ns > end_ns) {
            continue;
        }
        while (at < known && strcmp(names[at], mark->name) != 0) {
            at++;
        }
        if (at == known && known < LOOKED_AT) {
            names[known] = mark->name;
            counts[known++] = 0;
        }
        if (at < known) {
            counts[at]++;
            best = counts[at] > counts[best] ? at : best;
        }
    }
    if (known == 0 || counts[best] < 3) {
        return;
    }
    moments->mark = names[best];
    for (size_t i = 0; i < whole->mark_count; i++) {
        const struct model_mark *mark = &whole->marks[i];
        if (is_mark(mark) && mark->time_ns >= from_ns && mark->time_ns <= end_ns &&
            strcmp(mark->name, moments->mark) == 0) {
            size_t place = counts[best] <= MARKS ? seen : seen * (MARKS - 1) / (counts[best] - 1);
            moments->marks[place] = mark->time_ns;
            moments->mark_count = place + 1;
            seen++;
        }
    }
}

static int by_time(const void *left, const void *right) {
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

static void choose_moments(struct moments *moments, const struct model *whole,
                           const struct model *model, uint64_t end_ns) {
    size_t count = 0;
    *moments = (struct moments){.half_ns = model->from_ns + (end_ns - model->from_ns) / 2};
    choose_stages(moments, whole, model->from_ns, end_ns);
    choose_marks(moments, whole, model->from_ns, end_ns);
    memcpy(moments->times, moments->stages, sizeof moments->stages);
    memcpy(moments->times + STAGES + 1, moments->marks,
           moments->mark_count * sizeof moments->marks[0]);
    moments->count = STAGES + 1 + moments->mark_count;
    moments->times[moments->count++] = moments->half_ns;
    qsort(moments->times, moments->count, sizeof moments->times[0], by_time);
    for (size_t i = 0; i < moments->count; i++) {
        if (i == 0 || moments->times[i] != moments->times[count - 1]) {
            moments->times[count++] = moments->times[i];
        }
    }
    moments->count = count;
}

/* How what one function is to blame for grew. */
struct growth {
    size_t stages;        /* in so many of STAGES */
    size_t marks;         /* between so many neighbours of the marks */
    uint64_t first, last; /* bytes at the first and the last mark */
    uint64_t half, end;   /* bytes after half of the time, and when all of it is over */
};

static uint64_t held_at(const struct series *series, size_t row, size_t rows, uint64_t time_ns) {
    uint64_t bytes = 0;
    size_t place = 0;
    while (place + 1 < series->points && series->times[place] < time_ns) {
        place++;
    }
    for (size_t i = row; i < row + rows; i++) {
        bytes += series->live[i * series->points + place];
    }
    return bytes;
}

/* Of the rows of one culprit. */
static struct growth growth_of(const struct series *series, size_t row, size_t rows,
                               const struct moments *moments) {
    struct growth growth = {.half = held_at(series, row, rows, moments->half_ns),
                            .end = held_at(series, row, rows, moments->stages[STAGES])};
    for (size_t i = 0; i < STAGES; i++) {
        uint64_t before = held_at(series, row, rows, moments->stages[i]);
        uint64_t after = held_at(series, row, rows, moments->stages[i + 1]);
        growth.stages += after > before && after - before >= growth.end / (STAGES * 8);
    }
    for (size_t i = 0; i + 1 < moments->mark_count; i++) {
        uint64_t before = held_at(series, row, rows, moments->marks[i]);
        uint64_t after = held_at(series, row, rows, moments->marks[i + 1]);
        growth.marks += after > before;
        growth.first = i == 0 ? before : growth.first;
        growth.last = after;
    }
    return growth;
}

static bool grows_with_marks(const struct growth *growth, const struct moments *moments) {
    size_t steps = moments->mark_count != 0 ? moments->mark_count - 1 : 0;
    return steps >= 2 && growth->marks + steps / 8 >= steps && growth->last > growth->first;
}

static bool grows(const struct growth *growth, const struct moments *moments) {
    return growth->stages >= STAGES - 2 || grows_with_marks(growth, moments);
}

/* "It grew from each mark 'request' to the next, by 4.0 KiB on average (12 marks)." Where no marks
 * tell, its rate by time, or, of a run too short for that, by allocations. */
static char *tell_growth(const struct growth *growth, const struct moments *moments, uint64_t bytes,
                         const struct model *model) {
    uint64_t duration_ns = moments->stages[STAGES] - moments->stages[0];
    uint64_t allocations = model->totals.allocations;
    struct number numbers[3];
    if (grows_with_marks(growth, moments)) {
        return findings_text(
            " It grew from each mark '%s' to the next, by %s on average (%s).", moments->mark,
            number_bytes(&numbers[0], (growth->last - growth->first) / (moments->mark_count - 1)),
            number_items(&numbers[1], moments->mark_count, "mark"));
    }
    if (grows(growth, moments) && duration_ns >= UINT64_C(1000000000)) {
        return findings_text(
            " It grew throughout the run, by %s a second on average.",
            number_bytes(&numbers[0], (uint64_t)((double)bytes * 1e9 / (double)duration_ns)));
    }
    if (grows(growth, moments) && allocations != 0) {
        return findings_text(
            " It grew throughout the run, by %s for each 1,000 allocations of the program.",
            number_bytes(&numbers[0], (uint64_t)((double)bytes * 1e3 / (double)allocations)));
    }
    return strdup("");
}

struct holding {
    struct findings *findings;
    const struct findings_wish *wish;
    const struct model *model; /* without what is suppressed */
    struct culprit *culprits;
    size_t count;
    uint64_t end_ns; /* when it is judged */
    struct moments moments;
    struct series series;
};

static int add_held(struct holding *holding, const struct culprit *culprit,
                    const struct growth *growth) {
    const struct report *report = holding->wish->report;
    const struct model *model = holding->model;
    bool is_growth = grows(growth, &holding->moments);
    bool is_large = culprit->cost.main >= LEAK_LEAST ||
                    share_of(culprit->cost.main, model->totals.maximum_bytes) >= 0.1;
    struct finding finding = {.kind = is_growth ? FINDING_GROWTH : FINDING_LEAK,
                              .bytes = culprit->cost.main,
                              .count = culprit->cost.side,
                              .share = share_of(culprit->cost.main, model->totals.live_bytes)};
    struct number numbers[4];
    char name[CULPRIT_NAME];
    char place[CULPRIT_NAME];
    char *more;
    if (finding.share < 0.05 || culprit->cost.main < LEAK_GROWING_LEAST ||
        (is_growth ? culprit->cost.side < 8 : !is_large || !model_has_leaks(model))) {
        return 0;
    }
    more = tell_growth(growth, &holding->moments, culprit->cost.main, model);
    if (more == NULL) {
        return -1;
    }
    culprit_name(report, culprit, name);
    culprit_place(report, culprit, place);
    finding.weight = 0.35 + 0.65 * share_of(culprit->cost.main, model->totals.maximum_bytes) +
                     (is_growth ? 0.3 : 0) + 0.1 * finding.share;
    finding.title = model_has_leaks(model)
                        ? findings_text(is_growth ? "%s leaks more and more" : "%s leaks", name)
                        : findings_text("Memory held by %s grows", name);
    finding.sentence =
        findings_text("%s allocated %s in %s that %s: %s of all %s bytes.%s", place,
                      number_bytes(&numbers[0], culprit->cost.main),
                      number_items(&numbers[1], culprit->cost.side, "block"),
                      model_has_leaks(model) ? "were never freed" : "are live",
                      number_percent(&numbers[2], culprit->cost.main, model->totals.live_bytes),
                      model_has_leaks(model) ? "leaked" : "live", more);
    free(more);
    culprit_show(&finding, report, culprit, "flame?metric=leaked", "--show-leaked");
    return findings_add(holding->findings, finding);
}

/* Of all heap memory, when it is judged. */
static uint64_t live_at(const struct model *whole, uint64_t time_ns) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < whole->timeline_count && whole->timeline[i].time_ns <= time_ns; i++) {
        bytes = whole->timeline[i].live_bytes;
    }
    return bytes;
}

/* What grew until the program began to end, and was freed only then: a cache. What was there after
 * half of the time already was loaded and then used; what was never freed is told as that. */
static int add_grown(struct holding *holding, const struct culprit *culprit,
                     const struct growth *growth) {
    const struct report *report = holding->wish->report;
    uint64_t live = live_at(holding->wish->whole, holding->end_ns);
    struct finding finding = {
        .kind = FINDING_GROWTH, .bytes = growth->end, .share = share_of(growth->end, live)};
    struct number numbers[3];
    char name[CULPRIT_NAME];
    char place[CULPRIT_NAME];
    char at[32];
    char *view;
    char *options;
    char *more;
    if (growth->end < LEAK_LEAST || finding.share < 0.05 || culprit->cost.side < 8 ||
        !grows(growth, &holding->moments) || growth->half > growth->end / 4 * 3 ||
        culprit_cost(culprit, holding->model, METRIC_LEAKED) > growth->end / 2) {
        return 0;
    }
    more = tell_growth(growth, &holding->moments, growth->end, holding->model);
    if (more == NULL) {
        return -1;
    }
    culprit_name(report, culprit, name);
    culprit_place(report, culprit, place);
    finding.weight = 0.25 + 0.4 * share_of(growth->end, holding->model->totals.maximum_bytes);
    snprintf(at, sizeof at, "%.9fs", (double)holding->end_ns / 1e9);
    view = findings_text("flame?metric=leaked&at=%s", at);
    options = findings_text("--show-leaked --at %s", at);
    finding.title = findings_text("Memory held by %s grows", name);
    finding.sentence = findings_text("When the program began to end, %s after its start, it held "
                                     "%s that %s had allocated: %s of "
                                     "all live bytes. That was freed only then.%s",
                                     number_duration(&numbers[0], holding->end_ns),
                                     number_bytes(&numbers[1], growth->end), place,
                                     number_percent(&numbers[2], growth->end, live), more);
    free(more);
    if (view != NULL && options != NULL) {
        culprit_show(&finding, report, culprit, view, options);
    }
    free(view);
    free(options);
    return findings_add(holding->findings, finding);
}

typedef int held_adder(struct holding *holding, const struct culprit *culprit,
                       const struct growth *growth);

static int add_holders(struct holding *holding, held_adder *add) {
    int result = 0;
    for (size_t i = 0, row = 0; result == 0 && i < holding->count; i++) {
        const struct growth none = {0};
        const struct growth growth =
            holding->series.points != 0
                ? growth_of(&holding->series, row, holding->culprits[i].paths, &holding->moments)
                : none;
        row += holding->culprits[i].paths;
        result = add(holding, &holding->culprits[i], &growth);
    }
    return result;
}

/* What the dearest culprits held at the moments. */
static int look_at_growth(struct holding *holding, struct error *error) {
    const struct findings_wish *wish = holding->wish;
    uint32_t *ids;
    size_t count = 0;
    int result;
    for (size_t i = 0; i < holding->count; i++) {
        if (count + holding->culprits[i].paths > SERIES_CONTEXTS) {
            holding->count = i;
            break;
        }
        count += holding->culprits[i].paths;
    }
    ids = calloc(count + 1, sizeof *ids);
    if (ids == NULL) {
        return out_of_memory(error);
    }
    count = 0;
    for (size_t i = 0; i < holding->count; i++) {
        memcpy(ids + count, holding->culprits[i].contexts,
               holding->culprits[i].paths * sizeof *ids);
        count += holding->culprits[i].paths;
    }
    choose_moments(&holding->moments, wish->whole, holding->model, holding->end_ns);
    result = series_at(&holding->series, wish->whole, wish->report->parts, holding->moments.times,
                       count != 0 ? holding->moments.count : 0, ids, count, wish->replay, error);
    free(ids);
    return result;
}

static int find_held(struct holding *holding, enum metric metric, held_adder *add,
                     struct error *error) {
    size_t count;
    int result;
    holding->culprits = culprits_make(holding->wish->report, holding->model, metric, &count);
    if (holding->culprits == NULL) {
        return out_of_memory(error);
    }
    holding->count = count < LEAKS ? count : LEAKS;
    result = look_at_growth(holding, error);
    if (result == 0 && add_holders(holding, add) != 0) {
        result = out_of_memory(error);
    }
    series_free(&holding->series);
    culprits_free(holding->culprits, count);
    return result;
}

/* When the view ends. */
static uint64_t end_of(const struct model *whole, const struct model *model) {
    return model->to_ns < whole->now_ns ? model->to_ns : whole->now_ns + 1;
}

static int find_leaks(struct findings *findings, const struct findings_wish *wish,
                      struct error *error) {
    const struct report *report = wish->report;
    struct holding holding = {.findings = findings,
                              .wish = wish,
                              .model = report->model,
                              .end_ns = end_of(wish->whole, report->model)};
    struct model unsuppressed;
    int result;
    if (report->suppressions == NULL || !model_has_leaks(report->model)) {
        return find_held(&holding, METRIC_LEAKED, add_held, error);
    }
    if (suppressions_apply(report->suppressions, report->model, report->names, &unsuppressed,
                           error) != 0) {
        return -1;
    }
    holding.model = &unsuppressed;
    result = find_held(&holding, METRIC_LEAKED, add_held, error);
    suppressions_applied_free(&unsuppressed);
    return result;
}

static int find_grown(struct findings *findings, const struct findings_wish *wish,
                      struct error *error) {
    const struct model *model = wish->report->model;
    struct holding holding = {.findings = findings,
                              .wish = wish,
                              .model = model,
                              .end_ns = findings_shutdown_ns(wish->whole)};
    return wish->report->parts.count != 0 && holding.end_ns < end_of(wish->whole, model) &&
                   holding.end_ns > model->from_ns
               ? find_held(&holding, METRIC_MAXIMUM, add_grown, error)
               : 0;
}

int findings_of_held(struct findings *findings, const struct findings_wish *wish,
                     struct error *error) {
    int result = find_leaks(findings, wish, error);
    return result == 0 ? find_grown(findings, wish, error) : result;
}
