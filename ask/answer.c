/* SPDX-License-Identifier: MIT */
/* answer.c: see answer.h. */
#include "ask/answer.h"

#include "analyze/base/job.h"
#include "analyze/blocks/holes.h"
#include "analyze/filter/selection.h"
#include "analyze/symbol/debugfile.h"
#include "analyze/symbol/debuginfod.h"
#include "analyze/window/view.h"
#include "ask/memorylimit.h"

#include <stdlib.h>
#include <string.h>

/* ---- Questions ---- */

#define IN(member) OPTION_IN(struct question, member)

/* For all that this process reads. */
static int keep_nothing(void *member, const struct option *option, const char *value,
                        struct error *error) {
    (void)member;
    (void)option;
    (void)value;
    return setenv("MEMTRACE_CACHE", "", 1) == 0 ? 0 : error_set(error, "out of memory");
}

static int take_root(void *member, const struct option *option, const char *value,
                     struct error *error) {
    (void)member;
    (void)option;
    (void)error;
    debugfile_set_copies(value);
    return 0;
}

const struct option root_options[] = {
    {"root", 0, "FOLDERS",
     "look for the program's files below these first, by their paths or just their names, "
     "colon-separated: copies of another machine's files, a sysroot",
     OPTION_CALL, .call = take_root},
    OPTION_END};

static int take_no_debuginfod(void *member, const struct option *option, const char *value,
                              struct error *error) {
    (void)member;
    (void)option;
    (void)value;
    (void)error;
    debuginfod_refuse();
    return 0;
}

const struct option debuginfod_options[] = {
    {"no-debuginfod", 0, NULL, "ask no server for debug information, whatever DEBUGINFOD_URLS says",
     OPTION_CALL, .call = take_no_debuginfod},
    OPTION_END};

const struct option question_options[] = {
    {"process", 0, "PID|NAME[:IMAGE]",
     "of a run of several processes (a folder): this one, and of those that replaced "
     "themselves by exec this image; default: the one that held most",
     OPTION_TEXT, IN(choice.process)},
    {"all-processes", 0, NULL, "the sum of all by call path, small forked children included",
     OPTION_FLAG, IN(choice.all)},
    {"debug-folders", 0, "FOLDERS",
     "where separate debug files are, colon-separated (default: /usr/lib/debug)", OPTION_TEXT,
     IN(debug_folders)},
    {.part = debuginfod_options},
    {.part = root_options},
    {.part = memorylimit_options},
    {"no-cache", 0, NULL, "keep nothing on disk for the next command", OPTION_CALL,
     .call = keep_nothing},
    OPTION_END};

static int suppressing_add_file(void *member, const struct option *option, const char *value,
                                struct error *error) {
    struct suppressing *suppressing = member;
    if (suppressing->count == SUPPRESSING_FILES) {
        return error_set(error, "--%s: at most %d files", option->name, SUPPRESSING_FILES);
    }
    suppressing->files[suppressing->count++] = value;
    return 0;
}

const struct option suppressing_options[] = {
    OPTION_HEADING("leaks to leave out"),
    {"suppressions", 0, "FILE",
     "those that LeakSanitizer's suppression file names (leak:PATTERN); may be given again",
     OPTION_CALL, .call = suppressing_add_file},
    {"no-builtin-suppressions", 0, NULL, "report what common libraries keep on purpose, too",
     OPTION_FLAG, OPTION_IN(struct suppressing, no_builtin)},
    {"no-embedded-suppressions", 0, NULL, "ignore __lsan_default_suppressions() of the program",
     OPTION_FLAG, OPTION_IN(struct suppressing, no_embedded)},
    OPTION_END};

bool question_narrows(const struct question *question) {
    return filters_given(&question->filters) || question->choice.process != NULL ||
           question->choice.all;
}

struct suppressions *question_suppressions(const struct question *question,
                                           const struct model *model) {
    const struct suppressing *suppressing = &question->suppressing;
    struct suppressions *list = job_alloc(sizeof *list);
    struct error error;
    for (size_t i = 0; i < suppressing->count; i++) {
        job_check(suppressions_add_file(list, suppressing->files[i], &error), &error);
    }
    if (!suppressing->no_embedded) {
        job_check(suppressions_add_embedded(list, model, question->debug_folders, &error), &error);
    }
    if (!suppressing->no_builtin) {
        suppressions_add_builtin(list);
    }
    return list;
}

/* ---- Answers ---- */

/* What is to be closed; the rest belongs to the job. */
struct opened {
    struct source source;
    struct names *names;
};

struct selected {
    struct selection selection;
    struct model *own;
    struct model whole; /* in place of sums that need not be made: with its window, the rest is the
                           file's */
};

static void opened_close(void *what) {
    struct opened *opened = what;
    names_close(opened->names);
    source_close(&opened->source);
}

static void selected_close(void *what) {
    struct selected *selected = what;
    model_free(selected->own);
}

/* A window's sums may take longer than a pass takes to its first word, and who asks for single
 * blocks does not see them. Filters of call paths are told by the sums, though. */
static bool may_lack_sums(const struct source *source, const struct selection *selection) {
    return source->parts.count != 0 && !selection_asks_contexts(selection);
}

void answer_select(struct answer *answer, const struct source *source, const struct names *names,
                   const struct question *question, unsigned terms,
                   const struct replay_options *replay) {
    struct selected *selected = job_alloc(sizeof *selected);
    struct selection *selection = &selected->selection;
    struct error error;
    *selection = selection_all();
    *answer = (struct answer){.source = source,
                              .whole = source->model,
                              .model = source->model,
                              .names = names,
                              .selection = selection,
                              .question = question};
    job_undo(selected_close, selected);
    job_check(filters_select(&question->filters, source, names, replay, selection, &error), &error);
    if ((terms & ANSWER_SNAPS) != 0 && selection_has_view(selection)) {
        answer->is_snapped =
            model_view_snap(source->model, &selection->view.from_ns, &selection->view.to_ns);
    }
    if ((terms & ANSWER_OF_BLOCKS) != 0 && may_lack_sums(source, selection)) {
        selected->whole = *source->model;
        selected->whole.from_ns = selection->view.from_ns;
        selected->whole.to_ns = selection->view.to_ns;
        answer->model = &selected->whole;
        answer->lacks_sums = true;
    } else if (!selection_is_all(selection)) {
        selected->own =
            selection_model(selection, source->model, source->parts, names, replay, &error);
        if (selected->own == NULL) {
            job_fail_as(&error);
        }
        answer->model = selected->own;
    }
}

void answer_open(struct answer *answer, const char *name, const struct question *question,
                 const struct answer_progress *progress) {
    struct opened *opened = job_alloc(sizeof *opened);
    struct source *source = &opened->source;
    struct error error;
    job_undo(opened_close, opened);
    job_check(source_open(source, name, &question->choice, question->debug_folders,
                          &progress->replay, &error),
              &error);
    opened->names = source_names(source, question->debug_folders, progress->symbols, &error);
    if (opened->names == NULL) {
        job_fail_as(&error);
    }
    answer_select(answer, source, opened->names, question, 0, &progress->replay);
    if (question->has_leaks) {
        answer->suppressions = question_suppressions(question, source->model);
    }
}

const struct model *answer_counted(const struct answer *answer) {
    uint32_t classes = selection_classes(answer->selection);
    return classes == 0 || classes == 1u << MODEL_HEAP ? answer->model
                                                       : selection_as_heap(answer->model, classes);
}

struct report answer_report(const struct answer *answer, size_t processes) {
    const struct source *source = answer->source;
    struct report report = {
        .model = answer->model,
        .names = answer->names,
        .source = source->path,
        .selected = answer->question->filters.text,
        .definitions.shutdown_ns = UINT64_MAX,
        .parts = source->parts,
        .suppressions = model_has_leaks(answer->model) ? answer->suppressions : NULL,
    };
    if (source->run != NULL) {
        struct report_run *run = job_alloc(sizeof *run);
        *run = (struct report_run){source->run, source->process, processes};
        report.run = run;
    }
    return report;
}

/* What a report is made of. */
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

/* ---- Reports: what is needed of single blocks, and whether there are any ---- */

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

enum { EVENTS_MOST = 4000000 }; /* a pass over more makes people wait who did not ask for it */

/* Without being asked for: people get it where it is what is wrong. */
static bool may_show_holes(const struct report_wish *wish, const struct model *model) {
    return is_for_people(wish) && !reportmaking_is_special(wish) &&
           model->recording.events <= EVENTS_MOST && !model->recording.sampled;
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
    if (is_asked || holes_are_trouble(&holes, answer->model)) {
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
    struct activity_wish wish = {
        .parts = ACTIVITY_COUNTS | ACTIVITY_PROCESS,
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
    wish.parts |= activity_parts(series);
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
