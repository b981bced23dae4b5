/* SPDX-License-Identifier: MIT */
/* reportmaking.c: see reportmaking.h. */
#include "ask/reportmaking.h"

#include "analyze/base/job.h"
#include "analyze/blocks/holes.h"
#include "analyze/filter/selection.h"

#include <string.h>

/* What it is made of. */
struct making {
    const struct answer *answer;
    const struct report_wish *wish;
    const struct replay_options *replay;
    struct report *report;
};

static bool is_for_people(const struct report_wish *wish) {
    return wish->options.format == REPORT_TEXT || wish->options.format == REPORT_MARKDOWN;
}

bool reportmaking_has_metric(const struct report_wish *wish) {
    bool has_metric = false;
    for (size_t i = 0; i < METRIC_ALL; i++) {
        has_metric |= wish->metrics[i];
    }
    return has_metric;
}

bool reportmaking_is_special(const struct report_wish *wish) {
    bool is_special = wish->callers_of != NULL || reportmaking_has_metric(wish);
    for (size_t i = 0; i < SHOW_COUNT; i++) {
        is_special |= wish->shows[i];
    }
    return is_special;
}

bool reportmaking_is_everything(const struct report_wish *wish) {
    return !is_for_people(wish) && !reportmaking_is_special(wish);
}

/* ---- What is needed of single blocks, and whether there are any ---- */

enum { BLOCKS_USUAL = 20, BLOCKS_MOST = 10000000 };

struct need {
    bool is_asked;
    unsigned part;
    const char *option;
    bool has_other; /* a profile tells less, but something */
};

enum { NEEDS = 7 };

static void list_needs(const struct report_wish *wish, struct need needs[NEEDS]) {
    const struct need all[NEEDS] = {
        {wish->metrics[METRIC_SHUTDOWN], DETAIL_SHUTDOWN, "--show-shutdown", false},
        {wish->metrics[METRIC_SHORT], DETAIL_SHORT, "--temporary-within", false},
        {wish->shows[SHOW_SIZES], DETAIL_SIZES, "--show-sizes", false},
        {wish->shows[SHOW_BLOCKS], DETAIL_BLOCKS, "--show-blocks", false},
        {wish->shows[SHOW_FRAGMENTATION], DETAIL_HEAP, "--show-fragmentation", false},
        {wish->shows[SHOW_LIFETIMES], DETAIL_LIFETIMES, "--show-lifetimes", true},
        {wish->shows[SHOW_GROUPS], DETAIL_GROUPS, "--show-groups", true},
    };
    memcpy(needs, all, sizeof all);
}

/* What a profile does not know: single blocks, marks, and, of a part of it, which thread did it and
 * when. */
static void refuse_profile(const struct making *making) {
    const struct report_wish *wish = making->wish;
    const char *path = making->answer->source->path;
    struct need needs[NEEDS];
    list_needs(wish, needs);
    for (size_t i = 0; i < NEEDS; i++) {
        if (needs[i].is_asked && !needs[i].has_other) {
            job_fail("%s needs single blocks, and %s is a profile: make a recording with "
                     "`memtrace record`",
                     needs[i].option, path);
        }
    }
    if (wish->shows[SHOW_MARKS]) {
        job_fail("--show-marks: %s is a profile, which has no marks: make a recording with "
                 "`memtrace record`",
                 path);
    }
    if (filters_given(&making->answer->question->filters) &&
        (wish->shows[SHOW_THREADS] || wish->shows[SHOW_TIMELINE])) {
        job_fail("%s with filters needs a recording; make one with `memtrace record`",
                 wish->shows[SHOW_THREADS] ? "--show-threads" : "--show-timeline");
    }
}

static void reportmaking_check(const struct making *making) {
    const struct report_wish *wish = making->wish;
    if (making->answer->source->parts.count == 0) {
        refuse_profile(making);
    }
    if (wish->shows[SHOW_BLOCKS] && wish->limit_given &&
        (wish->options.limit == 0 || wish->options.limit > BLOCKS_MOST)) {
        job_fail("--show-blocks takes a --limit of 1 to %d: `memtrace query` lists more",
                 BLOCKS_MOST);
    }
}

/* What single blocks of the selection tell. */
static struct detail *reportmaking_gather(const struct making *making,
                                          const struct detail_wish *wish,
                                          const struct selection *selection) {
    const struct answer *answer = making->answer;
    struct error error;
    struct detail *detail = detail_gather(wish, selection, answer->whole, answer->source->parts,
                                          answer->names, making->replay, &error);
    if (detail == NULL) {
        job_fail_as(&error);
    }
    detail_goes_with_job(detail);
    return detail;
}

static void gather_detail(const struct making *making) {
    const struct report_wish *wish = making->wish;
    const struct answer *answer = making->answer;
    struct report *report = making->report;
    struct detail_wish detail = {
        .classes = selection_classes(answer->selection),
        .shutdown_ns = UINT64_MAX,
        .short_ns = wish->short_ns,
        .order = wish->block_order,
        .limit = wish->limit_given ? wish->options.limit : BLOCKS_USUAL,
    };
    struct need needs[NEEDS];
    struct error why;
    list_needs(wish, needs);
    for (size_t i = 0; i < NEEDS; i++) {
        detail.parts |= needs[i].is_asked ? needs[i].part : 0;
    }
    if (wish->shutdown_at != NULL &&
        filtervalue_time(wish->shutdown_at, answer->whole, &detail.shutdown_ns, &why) != 0) {
        job_fail("--shutdown-at: %s", why.message);
    }
    report->definitions = (struct report_definitions){detail.shutdown_ns, detail.short_ns};
    if (detail.parts != 0 && answer->source->parts.count != 0) {
        report->detail = reportmaking_gather(making, &detail, answer->selection);
    }
}

/* ---- The moment that fragmentation is shown of ---- */

enum {
    EVENTS_MOST = 4000000, /* another pass over more makes people wait who did not ask for it */
    UNUSED_LEAST = 1 << 20,
    PEAK_SHARE = 4
};

/* Without being asked for: people get it where it is what is wrong. */
static bool may_show_holes(const struct report_wish *wish, const struct model *model) {
    return is_for_people(wish) && !reportmaking_is_special(wish) &&
           model->recording.events <= EVENTS_MOST && !model->recording.sampled;
}

/* As much lay unused as was in use, and that was not little beside what the program ever held. */
static bool is_trouble(const struct holes *holes, const struct model *model) {
    return holes->unused_bytes >= UNUSED_LEAST && holes->unused_bytes >= holes->live_bytes &&
           holes->unused_bytes >= model->totals.maximum_bytes / PEAK_SHARE;
}

static void gather_holes(const struct making *making, uint64_t to_ns) {
    const struct answer *answer = making->answer;
    struct report_holes *holes = job_alloc(sizeof *holes);
    const struct detail_wish wish = {.parts = DETAIL_HEAP,
                                     .classes = selection_classes(answer->selection)};
    struct selection selection = *answer->selection; /* not to be freed */
    struct error error;
    selection.view.to_ns = to_ns;
    holes->model = selection_model(&selection, answer->whole, answer->source->parts, answer->names,
                                   making->replay, &error);
    if (holes->model == NULL) {
        job_fail_as(&error);
    }
    model_goes_with_job(holes->model);
    holes->detail = reportmaking_gather(making, &wish, &selection);
    making->report->holes = holes;
}

/* The moment with most holes, where fragmentation is asked for without a moment, or is what is
 * wrong with the program. */
static void reportmaking_find_holes(const struct making *making) {
    const struct answer *answer = making->answer;
    bool is_asked = making->wish->shows[SHOW_FRAGMENTATION];
    struct holes holes;
    struct error error;
    if (answer->source->parts.count == 0 || filters_have_end(&answer->question->filters) ||
        (!is_asked && !may_show_holes(making->wish, answer->whole))) {
        return;
    }
    job_check(holes_find(answer->whole, answer->source->parts, answer->selection->view.from_ns,
                         making->replay, &holes, &error),
              &error);
    if (is_asked || is_trouble(&holes, answer->model)) {
        gather_holes(making, holes.time_ns + 1);
    }
}

/* ---- The report ---- */

/* What is written without a --show-... option for programs has all classes, each in its place, and
 * the totals of those that filters ask for. */
static void choose_classes(const struct making *making) {
    struct report *report = making->report;
    const struct model *counted = answer_counted(making->answer);
    if (!reportmaking_is_everything(making->wish)) {
        report->model = counted;
    } else if (counted != report->model) {
        report->counted = counted;
    }
}

static void find_suspicions(const struct making *making) {
    bool are_asked_for = making->wish->shows[SHOW_FINDINGS];
    const struct findings_wish wish = {.report = making->report,
                                       .whole = making->answer->whole,
                                       .selection = making->answer->selection,
                                       .has_passes = are_asked_for,
                                       .replay = making->replay};
    struct findings *findings;
    if (!are_asked_for && (!is_for_people(making->wish) || reportmaking_is_special(making->wish))) {
        return;
    }
    findings = job_alloc(sizeof *findings);
    making->report->findings = findings;
    findings_make(findings, &wish);
}

static void activity_undo(void *activity) {
    activity_free(activity);
}

static void count_activity(const struct making *making) {
    enum { INTERVALS = 144 }; /* columns of a chart, each of two dots */
    const struct answer *answer = making->answer;
    unsigned series = making->wish->timeline_series;
    const struct activity_wish wish = {
        .parts = ACTIVITY_COUNTS | ACTIVITY_PROCESS | activity_parts(series),
        .most = INTERVALS,
        .selection = answer->selection,
        .whole = answer->whole,
        .model = answer->model,
        .recording = answer->source->parts,
        .names = answer->names,
    };
    struct activity *activity;
    struct error error;
    if (!making->wish->shows[SHOW_TIMELINE]) {
        return;
    }
    activity = job_alloc(sizeof *activity);
    making->report->timeline_series = series;
    making->report->activity = activity;
    job_undo(activity_undo, activity);
    job_check(activity_make(activity, &wish, making->replay, &error), &error);
}

struct report *reportmaking_open(const struct answer *answer, const struct report_wish *wish,
                                 const struct replay_options *replay) {
    struct report *report = job_alloc(sizeof *report);
    const struct making making = {answer, wish, replay, report};
    reportmaking_check(&making);
    *report = answer_report(answer, wish->processes);
    report->options = wish->options;
    report->mappings = &answer->selection->mappings;
    reportmaking_find_holes(&making);
    gather_detail(&making);
    choose_classes(&making);
    find_suspicions(&making);
    count_activity(&making);
    return report;
}
