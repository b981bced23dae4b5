/* SPDX-License-Identifier: MIT */
/* findingsums.c: findings that sums and slices tell. See findings.h. */
#include "analyze/report/calltree.h"
#include "analyze/report/findings.h"
#include "analyze/rows/framekind.h"
#include "analyze/rows/number.h"
#include "analyze/window/series.h"

#include <stdlib.h>
#include <string.h>

/* Below these, nobody would change a program for it. */
enum {
    LEAK_LEAST = 64 << 10,
    LEAK_GROWING_LEAST = 4 << 10,
    LEAKS = 5, /* functions that are named */
    TEMPORARY_LEAST = 1000,
    TEMPORARIES = 3,
    WITHIN_TICK_LEAST = 10000, /* what only a clock tells is told where there is more of it */
    RUN_TICKS_LEAST = 10,      /* and where a tick is little beside the run */
    PEAK_LEAST = 64 << 10,
    SMALL_BLOCKS = 10000,
    SMALL_BYTES = 64,
    HEADER_BYTES = 8, /* what the C library's malloc keeps with each block */
    FOREIGN_LEAST = 1000,
    RESIDENT_LEAST = 16 << 20,
};

static double share_of(uint64_t part, uint64_t whole) {
    return whole != 0 ? (double)part / (double)whole : 0;
}

static int out_of_memory(struct error *error) {
    return error_set(error, "out of memory");
}

/* ---- What is held, and whether it grows ---- */

enum { STAGES = 8, MARKS = 33, MOMENTS = STAGES + 1 + MARKS, SERIES_CONTEXTS = 4096 };

/* The moments at which it is looked at. */
struct moments {
    uint64_t times[MOMENTS]; /* grow */
    size_t count;
    uint64_t stages[STAGES + 1]; /* the program's allocations in as many equal parts */
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
                           const struct model *model) {
    uint64_t end_ns = model->to_ns < whole->now_ns ? model->to_ns : whole->now_ns + 1;
    size_t count = 0;
    *moments = (struct moments){0};
    choose_stages(moments, whole, model->from_ns, end_ns);
    choose_marks(moments, whole, model->from_ns, end_ns);
    memcpy(moments->times, moments->stages, sizeof moments->stages);
    memcpy(moments->times + STAGES + 1, moments->marks,
           moments->mark_count * sizeof moments->marks[0]);
    moments->count = STAGES + 1 + moments->mark_count;
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
    struct growth growth = {0};
    uint64_t end = held_at(series, row, rows, moments->stages[STAGES]);
    for (size_t i = 0; i < STAGES; i++) {
        uint64_t before = held_at(series, row, rows, moments->stages[i]);
        uint64_t after = held_at(series, row, rows, moments->stages[i + 1]);
        growth.stages += after > before && after - before >= end / (STAGES * 8);
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

/* ": it grew between all 12 marks 'request', by 4.0 KiB each on average" */
static char *tell_growth(const struct growth *growth, const struct moments *moments, uint64_t bytes,
                         uint64_t duration_ns) {
    struct number numbers[3];
    if (grows_with_marks(growth, moments)) {
        return findings_text(
            " It grew from each mark '%s' to the next, by %s on average (%s).", moments->mark,
            number_bytes(&numbers[0], (growth->last - growth->first) / (moments->mark_count - 1)),
            number_items(&numbers[1], moments->mark_count, "mark"));
    }
    if (grows(growth, moments)) {
        if (duration_ns >= UINT64_C(1000000000)) {
            return findings_text(
                " It grew throughout the run, by %s a second on average.",
                number_bytes(&numbers[0], (uint64_t)((double)bytes * 1e9 / (double)duration_ns)));
        }
        return findings_text(" It grew throughout the run.");
    }
    return strdup("");
}

struct holding {
    struct findings *findings;
    const struct findings_wish *wish;
    const struct model *model; /* without what is suppressed */
    struct culprit *culprits;
    size_t count;
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
    more =
        tell_growth(growth, &holding->moments, culprit->cost.main, model->now_ns - model->from_ns);
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

static int add_holders(struct holding *holding) {
    int result = 0;
    for (size_t i = 0, row = 0; result == 0 && i < holding->count; i++) {
        const struct growth none = {0};
        const struct growth growth =
            holding->series.points != 0
                ? growth_of(&holding->series, row, holding->culprits[i].paths, &holding->moments)
                : none;
        row += holding->culprits[i].paths;
        result = add_held(holding, &holding->culprits[i], &growth);
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
    choose_moments(&holding->moments, wish->whole, holding->model);
    result = series_at(&holding->series, wish->whole, wish->report->parts, holding->moments.times,
                       count != 0 ? holding->moments.count : 0, ids, count, wish->replay, error);
    free(ids);
    return result;
}

static int find_held(struct holding *holding, struct error *error) {
    size_t count;
    int result;
    holding->culprits = culprits_make(holding->wish->report, holding->model, METRIC_LEAKED, &count);
    if (holding->culprits == NULL) {
        return out_of_memory(error);
    }
    holding->count = count < LEAKS ? count : LEAKS;
    result = look_at_growth(holding, error);
    if (result == 0 && add_holders(holding) != 0) {
        result = out_of_memory(error);
    }
    series_free(&holding->series);
    culprits_free(holding->culprits, count);
    return result;
}

static int find_leaks(struct findings *findings, const struct findings_wish *wish,
                      struct error *error) {
    const struct report *report = wish->report;
    struct holding holding = {.findings = findings, .wish = wish, .model = report->model};
    struct model unsuppressed;
    int result;
    if (report->suppressions == NULL || !model_has_leaks(report->model)) {
        return find_held(&holding, error);
    }
    if (suppressions_apply(report->suppressions, report->model, report->names, &unsuppressed,
                           error) != 0) {
        return -1;
    }
    holding.model = &unsuppressed;
    result = find_held(&holding, error);
    suppressions_applied_free(&unsuppressed);
    return result;
}

/* ---- Allocations for a moment ---- */

int brevity_model(struct model *brief, const struct model *model,
                  uint64_t (*count)(const void *counts, const struct model_context *context),
                  const void *counts) {
    struct model_context *contexts = calloc(model->context_count + 1, sizeof *contexts);
    if (contexts == NULL) {
        return -1;
    }
    *brief = *model;
    brief->contexts = contexts;
    for (size_t i = 0; i < model->context_count; i++) {
        uint64_t told = count(counts, &model->contexts[i]);
        contexts[i] = model->contexts[i];
        contexts[i].temporary = told > contexts[i].temporary ? told : contexts[i].temporary;
    }
    return 0;
}

void brevity_free(struct model *brief) {
    free(brief->contexts);
    *brief = (struct model){0};
}

/* Of what the culprit did, freed before their thread's next allocation. */
static uint64_t strictly_temporary(const struct model *model, const struct culprit *culprit) {
    uint64_t count = 0;
    for (size_t i = 0; i < culprit->paths; i++) {
        const struct model_context *context = model_find(model, culprit->contexts[i]);
        count += context != NULL ? context->temporary : 0;
    }
    return count;
}

/* "before their thread's next allocation" */
static char *tell_brevity(const struct brevity *brevity, bool is_strict) {
    struct number number;
    return is_strict ? strdup("before their thread's next allocation")
           : brevity->within_ns != 0
               ? findings_text("within %s", number_duration(&number, brevity->within_ns))
               : findings_text("before their thread made %u more", brevity->allocations);
}

static int add_brief(struct findings *findings, const struct report *report,
                     const struct culprit *culprit, const struct brevity *brevity) {
    uint64_t all = report->model->totals.allocations;
    bool is_strict =
        strictly_temporary(report->model, culprit) >= culprit->cost.main - culprit->cost.main / 10;
    struct finding finding = {.kind = FINDING_TEMPORARY,
                              .count = culprit->cost.main,
                              .share = share_of(culprit->cost.main, all)};
    struct number numbers[3];
    char name[CULPRIT_NAME];
    char place[CULPRIT_NAME];
    char *when = tell_brevity(brevity, is_strict);
    if (when == NULL) {
        return -1;
    }
    finding.weight = 0.2 + 0.5 * finding.share;
    finding.title = findings_text("%s allocates for a moment", culprit_name(report, culprit, name));
    finding.sentence = findings_text(
        "%s made %s that were freed %s: %s of the program's %s allocations. The memory could be "
        "kept and reused, or not allocated at all.",
        culprit_place(report, culprit, place),
        number_items(&numbers[0], culprit->cost.main, "allocation"), when,
        number_percent(&numbers[1], culprit->cost.main, all), number_count(&numbers[2], all));
    culprit_show(&finding, report, culprit,
                 is_strict ? "flame?metric=temporary" : "flame?metric=allocations",
                 is_strict ? "--show-temporary" : "--show-allocations");
    free(when);
    return findings_add(findings, finding);
}

int findings_of_brevity(struct findings *findings, const struct findings_wish *wish,
                        const struct brevity *brevity) {
    const struct report *report = wish->report;
    uint64_t all = report->model->totals.allocations;
    bool is_by_clock = brevity->within_ns != 0;
    size_t count;
    struct culprit *culprits = culprits_make(report, brevity->model, METRIC_TEMPORARY, &count);
    int result = culprits != NULL ? 0 : -1;
    for (size_t i = 0; result == 0 && i < count && i < TEMPORARIES; i++) {
        uint64_t brief = culprits[i].cost.main;
        uint64_t strict = strictly_temporary(report->model, &culprits[i]);
        bool is_enough = brief >= (is_by_clock ? WITHIN_TICK_LEAST : TEMPORARY_LEAST) &&
                         share_of(brief, all) >= (is_by_clock ? 0.25 : 0.1);
        if (!is_enough && strict >= TEMPORARY_LEAST && share_of(strict, all) >= 0.1) {
            culprits[i].cost.main = strict;
            is_enough = true;
        }
        if (is_enough) {
            result = add_brief(findings, report, &culprits[i], brevity);
        }
    }
    culprits_free(culprits, count);
    return result;
}

/* Freed within a tick of the clock, which profiles know of every call path. */
static uint64_t freed_within_tick(const void *counts, const struct model_context *context) {
    const struct model *model = counts;
    return context->lifetimes != MODEL_NO_LIFETIMES ? model->lifetimes[context->lifetimes] : 0;
}

static uint64_t nothing_told(const void *counts, const struct model_context *context) {
    (void)counts;
    (void)context;
    return 0;
}

/* Where single blocks are not looked at. */
static int find_temporary(struct findings *findings, const struct findings_wish *wish) {
    const uint64_t tick_ns = UINT64_C(1) << MEMTRACE_TICK_SHIFT;
    const struct model *model = wish->report->model;
    uint64_t duration_ns = model->now_ns - (model->from_ns < model->now_ns ? model->from_ns : 0);
    bool is_long = duration_ns >= RUN_TICKS_LEAST * tick_ns;
    struct model brief;
    const struct brevity brevity = {.model = &brief, .within_ns = tick_ns};
    int result;
    if (findings_have_passes(wish) || (model_is_estimate(model) && model->recording.present)) {
        return 0;
    }
    if (brevity_model(&brief, model, is_long ? freed_within_tick : nothing_told, model) != 0) {
        return -1;
    }
    result = findings_of_brevity(findings, wish, &brevity);
    brevity_free(&brief);
    return result;
}

/* ---- Who holds most of the peak ---- */

/* The innermost function of the program's own below which half of the peak lies; of main, which
 * says little, what it calls that holds most. 0: none. */
static uint32_t find_holder(const struct report *report, const struct calltree *tree) {
    const char *executable = report->model->header.executable;
    uint32_t best = 0;
    uint32_t at = tree->calls[0].first_child;
    while (at != 0 && tree->calls[at].cost.main * 2 >= tree->calls[0].cost.main) {
        bool is_own = framekind_of(tree->calls[at].frame, executable) == FRAMEKIND_OWN;
        best = is_own ? at : best;
        at = tree->calls[at].first_child;
    }
    if (best != 0 && pathwalk_is_main(tree->calls[best].frame)) {
        at = tree->calls[best].first_child;
        best = at != 0 && tree->calls[at].cost.main * 5 >= tree->calls[0].cost.main ? at : 0;
    }
    return best;
}

static int add_holder(struct findings *findings, const struct report *report,
                      const struct calltree *tree, uint32_t at) {
    const struct model_totals *totals = &report->model->totals;
    const struct call *call = &tree->calls[at];
    struct finding finding = {.kind = FINDING_PEAK,
                              .bytes = call->cost.main,
                              .share = share_of(call->cost.main, totals->maximum_bytes)};
    struct culprit culprit = {.frame = call->frame, .paths = 2, .contexts = (uint32_t[]){0}};
    struct number numbers[4];
    char name[CULPRIT_NAME];
    culprit_name(report, &culprit, name);
    finding.weight = 0.1 + 0.4 * finding.share;
    finding.title =
        findings_text("%s holds %s of the peak", name,
                      number_percent(&numbers[0], finding.bytes, totals->maximum_bytes));
    finding.sentence =
        findings_text("At its peak, %s after its start, the program held %s. %s of that was "
                      "allocated in %s and in functions that it calls.",
                      number_duration(&numbers[2], totals->maximum_ns),
                      number_bytes(&numbers[1], totals->maximum_bytes),
                      number_bytes(&numbers[3], finding.bytes), name);
    culprit_show(&finding, report, &culprit, "flame?metric=maximum", "--show-peak");
    return findings_add(findings, finding);
}

static int find_peak(struct findings *findings, const struct findings_wish *wish) {
    struct report report = *wish->report;
    struct calltree tree = {0};
    uint32_t at;
    int result;
    if (report.model->totals.maximum_bytes < PEAK_LEAST) {
        return 0;
    }
    report.options.format = REPORT_JSON; /* no library functions are folded */
    report.options.by_line = false;
    report.options.depth = 0;
    result = calltree_top_down(&tree, &report, METRIC_MAXIMUM);
    if (result == 0) {
        at = find_holder(&report, &tree);
        result = at != 0 ? add_holder(findings, wish->report, &tree, at) : 0;
    }
    calltree_free(&tree);
    return result;
}

/* ---- Many small blocks ---- */

/* Who holds most blocks, however small they are. */
static const struct culprit *most_blocks(const struct culprit *culprits, size_t count) {
    const struct culprit *most = &culprits[0];
    for (size_t i = 1; i < count; i++) {
        most = culprits[i].cost.side > most->cost.side ? &culprits[i] : most;
    }
    return most;
}

static int find_small(struct findings *findings, const struct findings_wish *wish) {
    const struct report *report = wish->report;
    const struct model_totals *totals = &report->model->totals;
    struct culprit *culprits;
    const struct culprit *most;
    struct finding finding = {.kind = FINDING_SLACK};
    struct number numbers[4];
    char place[CULPRIT_NAME];
    size_t count;
    int result;
    if (totals->live_blocks < SMALL_BLOCKS ||
        totals->live_bytes / totals->live_blocks > SMALL_BYTES) {
        return 0;
    }
    culprits = culprits_make(report, report->model, METRIC_LEAKED, &count);
    if (culprits == NULL || count == 0) {
        culprits_free(culprits, count);
        return culprits != NULL ? 0 : -1;
    }
    most = most_blocks(culprits, count);
    finding.count = totals->live_blocks;
    finding.bytes = totals->live_blocks * HEADER_BYTES;
    finding.share = share_of(finding.bytes, totals->live_bytes + finding.bytes);
    finding.weight = 0.5 * finding.share;
    finding.title =
        findings_text("%s are small", number_items(&numbers[0], finding.count, "block"));
    finding.sentence = findings_text(
        "%s have an average size of %s. The C library's malloc adds at least %d bytes to each: "
        "%s in total. %s of the blocks are from %s.",
        number_items(&numbers[0], totals->live_blocks, "live block"),
        number_bytes(&numbers[1], totals->live_bytes / totals->live_blocks), (int)HEADER_BYTES,
        number_bytes(&numbers[2], finding.bytes), number_count(&numbers[3], most->cost.side),
        culprit_place(report, most, place));
    culprit_show(&finding, report, most, "paths?metric=leaked", "--show-leaked --paths");
    finding.hash = 0;
    result = findings_add(findings, finding);
    culprits_free(culprits, count);
    return result;
}

/* ---- Frees of other threads' blocks ---- */

static const char *thread_name(const struct model *model, uint32_t id, char *buffer, size_t size) {
    for (size_t i = 0; i < model->thread_count; i++) {
        if (model->threads[i].id == id && model->threads[i].name[0] != '\0') {
            snprintf(buffer, size, "%u (%s)", id, model->threads[i].name);
            return buffer;
        }
    }
    snprintf(buffer, size, "%u", id);
    return buffer;
}

static int find_foreign(struct findings *findings, const struct findings_wish *wish) {
    const struct model *model = wish->report->model;
    const struct model_foreign *most = NULL;
    struct finding finding = {.kind = FINDING_FOREIGN};
    struct number numbers[4];
    char freer[64];
    char owner[64];
    for (size_t i = 0; i < model->foreign_count; i++) {
        const struct model_foreign *pair = &model->foreign[i];
        finding.count += pair->blocks;
        finding.bytes += pair->bytes;
        most = most == NULL || pair->blocks > most->blocks ? pair : most;
    }
    finding.share = share_of(finding.count, model->totals.frees);
    if (most == NULL || finding.count < FOREIGN_LEAST || finding.share < 0.1) {
        return 0;
    }
    finding.weight = 0.1 + 0.3 * finding.share;
    finding.title = strdup("Threads free each other's blocks");
    finding.sentence = findings_text(
        "%s of all frees (%s, %s) were of blocks that another thread had allocated, most "
        "often freed by thread %s and allocated by thread %s. Such frees can make threads wait for "
        "each other in the allocator.",
        number_percent(&numbers[0], finding.count, model->totals.frees),
        number_count(&numbers[1], finding.count), number_bytes(&numbers[2], finding.bytes),
        thread_name(model, most->freer, freer, sizeof freer),
        thread_name(model, most->owner, owner, sizeof owner));
    finding.view = strdup("threads");
    finding.options = strdup("--show-threads");
    return findings_add(findings, finding);
}

/* ---- Resident, and not in use ---- */

/* When the program began to end: almost all of its allocations had been made, and the rest of its
 * time was short. What is freed from then on is freed because it ends. UINT64_MAX: it did not. */
static uint64_t shutdown_of(const struct model *model) {
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

/* The last sample before the program's shutdown that knows what is resident. NULL: none does. */
static const struct memtrace_point *last_resident(const struct model *model) {
    uint64_t end_ns = shutdown_of(model);
    for (size_t i = model->timeline_count; i-- > 0;) {
        if (model->timeline[i].resident_bytes != 0 && model->timeline[i].time_ns < end_ns) {
            return &model->timeline[i];
        }
    }
    return NULL;
}

/* What was resident before the heap held much is no part of it. */
static uint64_t least_resident(const struct model *model) {
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < model->timeline_count; i++) {
        uint64_t bytes = model->timeline[i].resident_bytes;
        least = bytes != 0 && bytes < least ? bytes : least;
    }
    return least;
}

static int find_resident(struct findings *findings, const struct findings_wish *wish) {
    const struct model *model = wish->report->model;
    const struct memtrace_point *last = last_resident(model);
    struct finding finding = {.kind = FINDING_FRAGMENTATION};
    struct number numbers[4];
    uint64_t used;
    if (last == NULL) {
        return 0;
    }
    used = least_resident(model) + last->live_bytes + model->header.own_resident_bytes;
    finding.bytes = last->resident_bytes > used ? last->resident_bytes - used : 0;
    finding.share = share_of(finding.bytes, last->resident_bytes);
    if (finding.bytes < RESIDENT_LEAST || finding.share < 0.3 ||
        last->live_bytes * 2 > model->totals.maximum_bytes) {
        return 0;
    }
    finding.weight = 0.3 + 0.5 * finding.share;
    finding.title =
        findings_text("%s is resident but not in use", number_bytes(&numbers[0], finding.bytes));
    finding.sentence = findings_text(
        "%s after the start, the heap held %s (its peak: %s), and %s was resident. The allocator "
        "keeps about %s that is not in use%s.",
        number_duration(&numbers[0], last->time_ns), number_bytes(&numbers[1], last->live_bytes),
        number_bytes(&numbers[2], model->totals.maximum_bytes),
        number_bytes(&numbers[3], last->resident_bytes),
        number_bytes(&(struct number){{0}}, finding.bytes),
        model->header.own_resident_bytes != 0 ? " (MemTrace's own memory is left out)" : "");
    finding.view = strdup("mappings");
    finding.options = strdup("--show-timeline");
    return findings_add(findings, finding);
}

/* ---- All ---- */

int findings_of_sums(struct findings *findings, const struct findings_wish *wish,
                     struct error *error) {
    if (find_leaks(findings, wish, error) != 0) {
        return -1;
    }
    return find_temporary(findings, wish) == 0 && find_peak(findings, wish) == 0 &&
                   find_small(findings, wish) == 0 && find_foreign(findings, wish) == 0 &&
                   find_resident(findings, wish) == 0
               ? 0
               : out_of_memory(error);
}
