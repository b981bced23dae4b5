/* SPDX-License-Identifier: MIT */
/* reportmaking.c: see reportmaking.h. */
#include "ask/reportmaking.h"

#include "analyze/blocks/holes.h"
#include "analyze/filter/selection.h"

#include <string.h>

/* What it is made of. */
struct making {
    struct answer *answer;
    const struct question *question;
    const struct report_wish *wish;
    const struct replay_options *replay;
    struct error *error;
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
static int refuse_profile(const struct making *making) {
    const struct report_wish *wish = making->wish;
    const char *path = making->answer->source.path;
    struct need needs[NEEDS];
    list_needs(wish, needs);
    for (size_t i = 0; i < NEEDS; i++) {
        if (needs[i].is_asked && !needs[i].has_other) {
            return error_set(making->error,
                             "%s needs single blocks, and %s is a profile: make a recording with "
                             "`memtrace record`",
                             needs[i].option, path);
        }
    }
    if (wish->shows[SHOW_MARKS]) {
        return error_set(making->error,
                         "--show-marks: %s is a profile, which has no marks: make a recording with "
                         "`memtrace record`",
                         path);
    }
    if (filters_given(&making->question->filters) &&
        (wish->shows[SHOW_THREADS] || wish->shows[SHOW_TIMELINE])) {
        return error_set(making->error,
                         "%s with filters needs a recording; make one with `memtrace record`",
                         wish->shows[SHOW_THREADS] ? "--show-threads" : "--show-timeline");
    }
    return 0;
}

static int check(const struct making *making) {
    const struct report_wish *wish = making->wish;
    if (making->answer->source.parts.count == 0 && refuse_profile(making) != 0) {
        return -1;
    }
    if (wish->shows[SHOW_BLOCKS] && wish->limit_given &&
        (wish->options.limit == 0 || wish->options.limit > BLOCKS_MOST)) {
        return error_set(making->error,
                         "--show-blocks takes a --limit of 1 to %d: `memtrace query` lists more",
                         BLOCKS_MOST);
    }
    return 0;
}

static int gather_detail(struct reportmaking *made, const struct making *making) {
    const struct report_wish *wish = making->wish;
    const struct source *source = &making->answer->source;
    const struct selection *selection = &making->answer->filtered.selection;
    struct detail_wish detail = {
        .classes = selection_classes(selection),
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
        filtervalue_time(wish->shutdown_at, source->model, &detail.shutdown_ns, &why) != 0) {
        return error_set(making->error, "--shutdown-at: %s", why.message);
    }
    made->report.definitions = (struct report_definitions){detail.shutdown_ns, detail.short_ns};
    if (detail.parts == 0 || source->parts.count == 0) {
        return 0;
    }
    made->detail = detail_gather(&detail, selection, source->model, source->parts,
                                 making->answer->names, making->replay, making->error);
    made->report.detail = made->detail;
    return made->detail != NULL ? 0 : -1;
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

static int gather_holes(struct reportmaking *made, const struct making *making, uint64_t to_ns) {
    struct answer *answer = making->answer;
    const struct source *source = &answer->source;
    const struct detail_wish wish = {.parts = DETAIL_HEAP,
                                     .classes = selection_classes(&answer->filtered.selection)};
    struct selection selection = answer->filtered.selection; /* not to be freed */
    selection.view.to_ns = to_ns;
    made->holes.model = selection_model(&selection, source->model, source->parts, answer->names,
                                        making->replay, making->error);
    if (made->holes.model != NULL) {
        made->holes.detail = detail_gather(&wish, &selection, source->model, source->parts,
                                           answer->names, making->replay, making->error);
    }
    made->report.holes = &made->holes;
    return made->holes.detail != NULL ? 0 : -1;
}

/* The moment with most holes, where fragmentation is asked for without a moment, or is what is
 * wrong with the program. */
static int find_holes(struct reportmaking *made, const struct making *making) {
    struct answer *answer = making->answer;
    const struct source *source = &answer->source;
    bool is_asked = making->wish->shows[SHOW_FRAGMENTATION];
    struct holes holes;
    if (source->parts.count == 0 || filters_have_end(&making->question->filters) ||
        (!is_asked && !may_show_holes(making->wish, source->model))) {
        return 0;
    }
    if (holes_find(source->model, source->parts, answer->filtered.selection.view.from_ns,
                   making->replay, &holes, making->error) != 0) {
        return -1;
    }
    return is_asked || is_trouble(&holes, answer->filtered.model)
               ? gather_holes(made, making, holes.time_ns + 1)
               : 0;
}

/* ---- The report ---- */

/* Where filters ask for pools or mappings, trees and tables are of those. What is written without a
 * --show-... option for programs has all classes, each in its place, and their totals. */
static int choose_classes(struct reportmaking *made, const struct making *making) {
    uint32_t classes = selection_classes(&making->answer->filtered.selection);
    const struct model *heap;
    if (classes == 0 || classes == 1u << MODEL_HEAP) {
        return 0;
    }
    heap = selection_as_heap(made->report.model, classes);
    if (reportmaking_is_everything(making->wish)) {
        made->report.counted = heap;
    } else {
        made->report.model = heap;
    }
    return 0;
}

static struct report begin(struct reportmaking *made, const struct making *making) {
    struct answer *answer = making->answer;
    const struct source *source = &answer->source;
    const struct model *model = answer->filtered.model;
    const struct filters *filters = &making->question->filters;
    bool has_leaks = making->question->has_leaks && model_has_leaks(model);
    made->run = (struct report_run){source->run, source->process, making->wish->processes};
    return (struct report){
        .model = model,
        .names = answer->names,
        .options = making->wish->options,
        .source = source->path,
        .selected = filters_given(filters) ? filters->text : NULL,
        .parts = source->parts,
        .mappings = &answer->filtered.selection.mappings,
        .suppressions = has_leaks ? &answer->suppressions : NULL,
        .run = source->run != NULL ? &made->run : NULL,
    };
}

static int find_suspicions(struct reportmaking *made, const struct making *making) {
    bool are_asked_for = making->wish->shows[SHOW_FINDINGS];
    const struct findings_wish wish = {.report = &made->report,
                                       .whole = making->answer->source.model,
                                       .selection = &making->answer->filtered.selection,
                                       .has_passes = are_asked_for,
                                       .replay = making->replay};
    if (!are_asked_for && (!is_for_people(making->wish) || reportmaking_is_special(making->wish))) {
        return 0;
    }
    made->report.findings = &made->findings;
    findings_make(&made->findings, &wish);
    return 0;
}

static int count_activity(struct reportmaking *made, const struct making *making) {
    enum { INTERVALS = 144 }; /* columns of a chart, each of two dots */
    const struct answer *answer = making->answer;
    unsigned series = making->wish->timeline_series;
    const struct activity_wish wish = {
        .parts = ACTIVITY_COUNTS | ACTIVITY_PROCESS | activity_parts(series),
        .most = INTERVALS,
        .selection = &answer->filtered.selection,
        .whole = answer->source.model,
        .model = answer->filtered.model,
        .recording = answer->source.parts,
        .names = answer->names,
    };
    if (!making->wish->shows[SHOW_TIMELINE]) {
        return 0;
    }
    made->report.timeline_series = series;
    made->report.activity = &made->activity;
    return activity_make(&made->activity, &wish, making->replay, making->error);
}

int reportmaking_open(struct reportmaking *made, struct answer *answer,
                      const struct question *question, const struct report_wish *wish,
                      const struct replay_options *replay, struct error *error) {
    const struct making making = {answer, question, wish, replay, error};
    *made = (struct reportmaking){0};
    if (check(&making) != 0) {
        return -1;
    }
    made->report = begin(made, &making);
    if (find_holes(made, &making) != 0 || gather_detail(made, &making) != 0 ||
        choose_classes(made, &making) != 0 || find_suspicions(made, &making) != 0 ||
        count_activity(made, &making) != 0) {
        reportmaking_close(made);
        return -1;
    }
    return 0;
}

void reportmaking_close(struct reportmaking *made) {
    activity_free(&made->activity);
    detail_free(made->detail);
    model_free(made->holes.model);
    detail_free(made->holes.detail);
    *made = (struct reportmaking){0};
}
