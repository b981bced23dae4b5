/* SPDX-License-Identifier: MIT */
/* findingsheld.c: findings of what is held, at the end or when the program begins to end, and
 * whether it grows. See findings.h. */
#include "analyze/base/job.h"
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
static uint64_t held_time(const struct model *whole, uint64_t allocations) {
    for (size_t i = 0; i < whole->timeline_count; i++) {
        if (whole->timeline[i].alloc_count >= allocations) {
            return whole->timeline[i].time_ns;
        }
    }
    return whole->now_ns;
}

static uint64_t held_allocations_at(const struct model *whole, uint64_t time_ns) {
    uint64_t allocations = 0;
    for (size_t i = 0; i < whole->timeline_count && whole->timeline[i].time_ns <= time_ns; i++) {
        allocations = whole->timeline[i].alloc_count;
    }
    return allocations;
}

static void held_choose_stages(struct moments *moments, const struct model *whole, uint64_t from_ns,
                               uint64_t end_ns) {
    uint64_t first = held_allocations_at(whole, from_ns);
    uint64_t last = held_allocations_at(whole, end_ns);
    for (size_t i = 0; i <= STAGES; i++) {
        uint64_t time = held_time(whole, first + (last - first) / STAGES * i) + 1;
        moments->stages[i] = i == 0 ? from_ns : i == STAGES || time > end_ns ? end_ns : time;
    }
}

static bool held_is_mark(const struct model_mark *mark) {
    return mark->what == MEMTRACE_MARK_POINT && mark->name[0] != '\0';
}

/* The name that is marked most often in the window, at least three times. */
static void held_choose_marks(struct moments *moments, const struct model *whole, uint64_t from_ns,
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
        if (!held_is_mark(mark) || mark->time_ns < from_ns || mark->time_ns > end_ns) {
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
        if (held_is_mark(mark) && mark->time_ns >= from_ns && mark->time_ns <= end_ns &&
            strcmp(mark->name, moments->mark) == 0) {
            size_t place = counts[best] <= MARKS ? seen : seen * (MARKS - 1) / (counts[best] - 1);
            moments->marks[place] = mark->time_ns;
            moments->mark_count = place + 1;
            seen++;
        }
    }
}

static int held_by_time(const void *left, const void *right) {
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

static void held_choose_moments(struct moments *moments, const struct model *whole,
                                const struct model *model, uint64_t end_ns) {
    size_t count = 0;
    *moments = (struct moments){.half_ns = model->from_ns + (end_ns - model->from_ns) / 2};
    held_choose_stages(moments, whole, model->from_ns, end_ns);
    held_choose_marks(moments, whole, model->from_ns, end_ns);
    memcpy(moments->times, moments->stages, sizeof moments->stages);
    memcpy(moments->times + STAGES + 1, moments->marks,
           moments->mark_count * sizeof moments->marks[0]);
    moments->count = STAGES + 1 + moments->mark_count;
    moments->times[moments->count++] = moments->half_ns;
    qsort(moments->times, moments->count, sizeof moments->times[0], held_by_time);
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

static uint64_t held_bytes_at(const struct series *series, size_t row, size_t rows,
                              uint64_t time_ns) {
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
static struct growth held_growth(const struct series *series, size_t row, size_t rows,
                                 const struct moments *moments) {
    struct growth growth = {.half = held_bytes_at(series, row, rows, moments->half_ns),
                            .end = held_bytes_at(series, row, rows, moments->stages[STAGES])};
    for (size_t i = 0; i < STAGES; i++) {
        uint64_t before = held_bytes_at(series, row, rows, moments->stages[i]);
        uint64_t after = held_bytes_at(series, row, rows, moments->stages[i + 1]);
        growth.stages += after > before && after - before >= growth.end / (STAGES * 8);
    }
    for (size_t i = 0; i + 1 < moments->mark_count; i++) {
        uint64_t before = held_bytes_at(series, row, rows, moments->marks[i]);
        uint64_t after = held_bytes_at(series, row, rows, moments->marks[i + 1]);
        growth.marks += after > before;
        growth.first = i == 0 ? before : growth.first;
        growth.last = after;
    }
    return growth;
}

static bool growth_is_by_marks(const struct growth *growth, const struct moments *moments) {
    size_t steps = moments->mark_count != 0 ? moments->mark_count - 1 : 0;
    return steps >= 2 && growth->marks + steps / 8 >= steps && growth->last > growth->first;
}

static bool growth_is_steady(const struct growth *growth, const struct moments *moments) {
    return growth->stages >= STAGES - 2 || growth_is_by_marks(growth, moments);
}

/* "It grew from each mark 'request' to the next, by 4.0 KiB on average (12 marks)." Where no marks
 * tell, its rate by time, or, of a run too short for that, by allocations. */
static const char *growth_tell(const struct growth *growth, const struct moments *moments,
                               uint64_t bytes, const struct model *model) {
    uint64_t duration_ns = moments->stages[STAGES] - moments->stages[0];
    uint64_t allocations = model->totals.allocations;
    struct number numbers[3];
    if (growth_is_by_marks(growth, moments)) {
        return job_text(
            " It grew from each mark '%s' to the next, by %s on average (%s).", moments->mark,
            number_bytes(&numbers[0], (growth->last - growth->first) / (moments->mark_count - 1)),
            number_items(&numbers[1], moments->mark_count, "mark"));
    }
    if (growth_is_steady(growth, moments) && duration_ns >= UINT64_C(1000000000)) {
        return job_text(
            " It grew throughout the run, by %s a second on average.",
            number_bytes(&numbers[0], (uint64_t)((double)bytes * 1e9 / (double)duration_ns)));
    }
    if (growth_is_steady(growth, moments) && allocations != 0) {
        return job_text(
            " It grew throughout the run, by %s for each 1,000 allocations of the program.",
            number_bytes(&numbers[0], (uint64_t)((double)bytes * 1e3 / (double)allocations)));
    }
    return "";
}

struct holding {
    struct findings *findings;
    const struct findings_wish *wish;
    const struct model *model; /* without what is suppressed */
    struct culprit *culprits;
    size_t count;
    uint64_t end_ns; /* when it is judged */
    struct moments moments;
    struct series *series;
};

static void held_add_leak(struct holding *holding, const struct culprit *culprit,
                          const struct growth *growth) {
    const struct report *report = holding->wish->report;
    const struct model *model = holding->model;
    bool is_growth = growth_is_steady(growth, &holding->moments);
    bool is_large = culprit->cost.main >= LEAK_LEAST ||
                    finding_share(culprit->cost.main, model->totals.maximum_bytes) >= 0.1;
    struct finding finding = {.kind = is_growth ? FINDING_GROWTH : FINDING_LEAK,
                              .bytes = culprit->cost.main,
                              .count = culprit->cost.side,
                              .share = finding_share(culprit->cost.main, model->totals.live_bytes)};
    struct number numbers[4];
    char name[CULPRIT_NAME];
    char place[CULPRIT_NAME];
    if (finding.share < 0.05 || culprit->cost.main < LEAK_GROWING_LEAST ||
        (is_growth ? culprit->cost.side < 8 : !is_large || !model_has_leaks(model))) {
        return;
    }
    culprit_name(report, culprit, name);
    culprit_place(report, culprit, place);
    finding.weight = 0.35 + 0.65 * finding_share(culprit->cost.main, model->totals.maximum_bytes) +
                     (is_growth ? 0.3 : 0) + 0.1 * finding.share;
    finding.title = model_has_leaks(model)
                        ? job_text(is_growth ? "%s leaks more and more" : "%s leaks", name)
                        : job_text("Memory held by %s grows", name);
    finding.sentence =
        job_text("%s allocated %s in %s that %s: %s of all %s bytes.%s", place,
                 number_bytes(&numbers[0], culprit->cost.main),
                 number_items(&numbers[1], culprit->cost.side, "block"),
                 model_has_leaks(model) ? "were never freed" : "are live",
                 number_percent(&numbers[2], culprit->cost.main, model->totals.live_bytes),
                 model_has_leaks(model) ? "leaked" : "live",
                 growth_tell(growth, &holding->moments, culprit->cost.main, model));
    culprit_show(&finding, report, culprit, "flame?metric=leaked", "--show-leaked");
    findings_add(holding->findings, finding);
}

/* Of all heap memory, when it is judged. */
static uint64_t held_live_at(const struct model *whole, uint64_t time_ns) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < whole->timeline_count && whole->timeline[i].time_ns <= time_ns; i++) {
        bytes = whole->timeline[i].live_bytes;
    }
    return bytes;
}

/* What grew until the program began to end, and was freed only then: a cache. What was there after
 * half of the time already was loaded and then used; what was never freed is told as that. */
static void held_add_grown(struct holding *holding, const struct culprit *culprit,
                           const struct growth *growth) {
    const struct report *report = holding->wish->report;
    uint64_t live = held_live_at(holding->wish->whole, holding->end_ns);
    struct finding finding = {
        .kind = FINDING_GROWTH, .bytes = growth->end, .share = finding_share(growth->end, live)};
    struct number numbers[3];
    char name[CULPRIT_NAME];
    char place[CULPRIT_NAME];
    char at[32];
    if (growth->end < LEAK_LEAST || finding.share < 0.05 || culprit->cost.side < 8 ||
        !growth_is_steady(growth, &holding->moments) || growth->half > growth->end / 4 * 3 ||
        culprit_cost(culprit, holding->model, METRIC_LEAKED) > growth->end / 2) {
        return;
    }
    culprit_name(report, culprit, name);
    culprit_place(report, culprit, place);
    finding.weight = 0.25 + 0.4 * finding_share(growth->end, holding->model->totals.maximum_bytes);
    snprintf(at, sizeof at, "%.9fs", (double)holding->end_ns / 1e9);
    finding.title = job_text("Memory held by %s grows", name);
    finding.sentence = job_text(
        "When the program began to end, %s after its start, it held "
        "%s that %s had allocated: %s of "
        "all live bytes. That was freed only then.%s",
        number_duration(&numbers[0], holding->end_ns), number_bytes(&numbers[1], growth->end),
        place, number_percent(&numbers[2], growth->end, live),
        growth_tell(growth, &holding->moments, growth->end, holding->model));
    culprit_show(&finding, report, culprit, job_text("flame?metric=leaked&at=%s", at),
                 job_text("--show-leaked --at %s", at));
    findings_add(holding->findings, finding);
}

typedef void held_adder(struct holding *holding, const struct culprit *culprit,
                        const struct growth *growth);

/* What the dearest culprits held at the moments. */
static void held_look_at_growth(struct holding *holding) {
    const struct findings_wish *wish = holding->wish;
    struct error error;
    uint32_t *ids;
    size_t count = 0;
    for (size_t i = 0; i < holding->count; i++) {
        if (count + holding->culprits[i].paths > SERIES_CONTEXTS) {
            holding->count = i;
            break;
        }
        count += holding->culprits[i].paths;
    }
    ids = job_array(count, sizeof *ids);
    count = 0;
    for (size_t i = 0; i < holding->count; i++) {
        memcpy(ids + count, holding->culprits[i].contexts,
               holding->culprits[i].paths * sizeof *ids);
        count += holding->culprits[i].paths;
    }
    held_choose_moments(&holding->moments, wish->whole, holding->model, holding->end_ns);
    holding->series = job_alloc(sizeof *holding->series);
    job_check(series_at(holding->series, wish->whole, wish->report->parts, holding->moments.times,
                        count != 0 ? holding->moments.count : 0, ids, count, wish->replay, &error),
              &error);
}

static void held_find(struct holding *holding, enum metric metric, held_adder *add) {
    size_t count;
    size_t row = 0;
    holding->culprits = culprits_make(holding->wish->report, holding->model, metric, &count);
    holding->count = count < LEAKS ? count : LEAKS;
    held_look_at_growth(holding);
    for (size_t i = 0; i < holding->count; i++) {
        struct growth growth = {0};
        if (holding->series->points != 0) {
            growth =
                held_growth(holding->series, row, holding->culprits[i].paths, &holding->moments);
        }
        row += holding->culprits[i].paths;
        add(holding, &holding->culprits[i], &growth);
    }
}

void findings_of_held(struct findings *findings, const struct findings_wish *wish) {
    const struct report *report = wish->report;
    const struct model *whole = wish->whole;
    const struct model *model = report->model;
    uint64_t shutdown_ns = findings_shutdown_ns(whole);
    /* When the view ends. */
    uint64_t end_ns = model->to_ns < whole->now_ns ? model->to_ns : whole->now_ns + 1;
    struct holding leaks = {.findings = findings, .wish = wish, .model = model, .end_ns = end_ns};
    struct holding grown = {
        .findings = findings, .wish = wish, .model = model, .end_ns = shutdown_ns};
    if (report->suppressions != NULL && model_has_leaks(model)) {
        leaks.model = suppressions_leave(report->suppressions, model, report->names);
    }
    held_find(&leaks, METRIC_LEAKED, held_add_leak);
    if (report->parts.count != 0 && shutdown_ns < end_ns && shutdown_ns > model->from_ns) {
        held_find(&grown, METRIC_MAXIMUM, held_add_grown);
    }
}
