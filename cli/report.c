/* SPDX-License-Identifier: MIT */
/* report.c: `memtrace report [FILE|PID]`: what is asked for, by which options, and which reports
 * are written in which form. docs/report.md is its page. */
#include "analyze/base/job.h"
#include "analyze/base/pattern.h"
#include "analyze/blocks/activity.h"
#include "analyze/report/findings.h"
#include "analyze/rows/safetext.h"
#include "analyze/rows/table.h"
#include "ask/answer.h"
#include "cli/outfile.h"
#include "cli/reading.h"

#include <string.h>

enum { REQUEST_PATH_DEPTH = 16, REQUEST_TABLE_DEPTH = 3 };

struct request {
    struct report_wish wish;
    enum { FORM_TREE, FORM_FLAT, FORM_PATHS } form;
    regex_t regex; /* where wish.callers_of is one */
    bool has_regex;
    bool depth_given;
    bool percent_given;
    const char *color;
    const char *output;
    const char *source;
    struct question question;
};

/* The two metrics that only single blocks tell are those of a model of their own; leaks that are
 * suppressed are told apart. */
static void write_metric(const struct report *report, const struct request *request,
                         enum metric metric) {
    const char *text = request->wish.callers_of;
    const struct callers_of of = {
        .text = text, .function = request->has_regex ? NULL : text, .regex = &request->regex};
    bool are_leaks = metric == METRIC_LEAKED || metric == METRIC_SHUTDOWN;
    struct report all = *report;
    struct report shown;
    if (metric >= METRIC_COUNT) {
        all.model = detail_submodel(report->detail,
                                    metric == METRIC_SHUTDOWN ? DETAIL_SHUTDOWN : DETAIL_SHORT,
                                    report->model);
    }
    shown = all;
    are_leaks = are_leaks && report->suppressions != NULL;
    if (are_leaks) {
        shown.model = suppressions_leave(all.suppressions, all.model, all.names);
    }
    if (text != NULL) {
        report_callers(&shown, metric, &of);
    } else {
        (request->form == FORM_FLAT    ? report_flat
         : request->form == FORM_PATHS ? report_paths
                                       : report_tree)(&shown, metric);
    }
    if (are_leaks) {
        report_suppressed(&all);
    }
}

/* ---- What is written where nothing is asked for ---- */

static struct report with_few_rows(const struct report *report, size_t count) {
    struct report brief = *report;
    if (brief.options.limit == 0 || brief.options.limit > count) {
        brief.options.limit = count;
    }
    return brief;
}

/* The largest call paths of a metric, as a list. */
static void write_top(const struct report *report, const struct request *request,
                      enum metric metric, size_t count) {
    struct report top = with_few_rows(report, count);
    top.options.min_percent = 0;
    top.options.depth = request->depth_given ? top.options.depth : REQUEST_PATH_DEPTH;
    report_paths(&top, metric);
}

static void write_default(const struct report *report, const struct request *request) {
    const struct model_totals *totals = &report->model->totals;
    const struct report few = with_few_rows(report, 5);
    const struct report fewer = with_few_rows(report, 3);
    table_drawing_begin(report, NULL);
    if (report->run != NULL) {
        report_run(report);
    }
    report_summary(report);
    report_warnings(report);
    table_drawing_end(report);
    /* What is wrong with the program comes first: the gravest. */
    if (report->findings != NULL && report->findings->count != 0) {
        report_findings(&few);
    }
    if (report_has_much_temporary(report->model)) {
        write_top(report, request, METRIC_TEMPORARY, 3);
    }
    if (report->holes != NULL) {
        report_fragmentation_brief(&fewer);
    }
    if (report_has_pools(report)) {
        report_pools(report);
    }
    if (request->form == FORM_TREE && totals->maximum_bytes != 0) {
        write_top(report, request, METRIC_MAXIMUM, 5);
    }
    if (report_has_many_allocations(report->model)) {
        report_often(&few);
    }
    if (totals->maximum_bytes != 0) {
        write_metric(report, request, METRIC_MAXIMUM);
    }
    if (totals->live_bytes != 0) {
        write_metric(report, request, METRIC_LEAKED);
    }
    if (report->model->thread_count > 1) {
        report_threads(report);
    }
    if (totals->allocations != 0) {
        report_next(report, request->form == FORM_FLAT);
    }
}

/* ---- All of it ---- */

/* Forms for other programs carry no notes in their text: people see them on stderr. */
static void note_warnings(const struct report *report) {
    const char *const *lines;
    size_t count = names_warnings(report->names, &lines);
    if (report->model->damage[0] != '\0') {
        print_safe(stderr, "memtrace: the file is damaged: %s\n", report->model->damage);
    }
    for (size_t i = 0; i < count; i++) {
        print_safe(stderr, "memtrace: %s\n", lines[i]);
    }
}

static void write_report(const struct report *report, const struct request *request) {
    static void (*const writers[SHOW_COUNT])(const struct report *) = {
        [SHOW_FINDINGS] = report_findings,   [SHOW_GROUPS] = report_groups,
        [SHOW_LIFETIMES] = report_lifetimes, [SHOW_SIZES] = report_sizes,
        [SHOW_BLOCKS] = report_blocks,       [SHOW_FRAGMENTATION] = report_fragmentation,
        [SHOW_MAPPINGS] = report_mappings,   [SHOW_TIMELINE] = report_timeline,
        [SHOW_MARKS] = report_marks,         [SHOW_THREADS] = report_threads,
        [SHOW_PROCESSES] = report_processes, [SHOW_POOLS] = report_pools,
    };
    const struct report_wish *wish = &request->wish;
    bool is_for_people = report_is_for_people(report);
    bool is_special = reportmaking_is_special(wish);
    struct table_document document;
    struct report in_document = *report;
    if (!is_for_people) {
        note_warnings(report);
    }
    if (!is_for_people && !is_special && report->options.format == REPORT_CSV) {
        report_csv(report);
        return;
    }
    if (!is_for_people && !is_special) {
        report_json(report);
        fputc('\n', report->out);
        return;
    }
    table_document_open(&document, report);
    in_document.document = &document;
    if (!is_special) {
        write_default(&in_document, request);
    } else if (is_for_people) {
        if (report->run != NULL && !wish->shows[SHOW_PROCESSES]) {
            report_run_process(report);
        }
        report_selected(report);
        report_warnings(report);
    }
    if (wish->callers_of != NULL && !reportmaking_has_metric(wish)) {
        write_metric(&in_document, request, METRIC_MAXIMUM);
    }
    for (enum metric metric = 0; metric < METRIC_ALL; metric++) {
        if (wish->metrics[metric]) {
            write_metric(&in_document, request, metric);
        }
    }
    for (size_t i = 0; i < SHOW_COUNT; i++) {
        if (wish->shows[i]) {
            writers[i](&in_document);
        }
    }
    table_document_close(&document, report);
}

/* ---- The command line ---- */

/* "live,rate" */
static int take_series(void *member, const struct option *option, const char *value,
                       struct error *error) {
    struct request *request = member;
    unsigned series;
    request->wish.shows[SHOW_TIMELINE] = true;
    if (activity_parse(value, &series) != 0) {
        return option_refuse(option, value, "some of " ACTIVITY_SERIES_NAMES, error);
    }
    request->wish.timeline_series |= series;
    return 0;
}

#define IN(member)    OPTION_IN(struct request, member)
#define ALSO(member)  OPTION_GIVEN(struct request, member)
#define METRIC(which) .type = OPTION_FLAG, IN(wish.metrics[METRIC_##which])
#define SHOW(which)   .type = OPTION_FLAG, IN(wish.shows[SHOW_##which])
#define FORMAT                                                                                     \
    .type = OPTION_WORD, IN(wish.options.format), .words = REPORT_FORMATS, .is_choice = true
#define FORM .type = OPTION_WORD, IN(form), .words = "tree|flat|paths", .is_choice = true
#define DIRECTION                                                                                  \
    .type = OPTION_WORD, IN(wish.options.bottom_up), .words = "top-down|bottom-up",                \
    .is_choice = true

static void callers_undo(void *what) {
    struct request *request = what;
    if (request->has_regex) {
        regfree(&request->regex);
        request->has_regex = false;
    }
}

/* A name, or a regex between slashes. */
static int take_callers(void *member, const struct option *option, const char *value,
                        struct error *error) {
    struct request *request = member;
    size_t size = strlen(value);
    char why[PATTERN_WHY];
    char *regex;
    callers_undo(request);
    request->wish.callers_of = value;
    if (size < 2 || value[0] != '/' || value[size - 1] != '/') {
        return size != 0 ? 0 : option_refuse(option, value, "a function", error);
    }
    job_undo(callers_undo, request);
    regex = job_text("%.*s", (int)(size - 2), value + 1);
    request->has_regex = pattern_compile(&request->regex, regex, why) == 0;
    return request->has_regex ? 0 : option_refuse(option, value, "a regular expression", error);
}

static const struct option report_table[] = {
    OPTION_HEADING("what to show (several are possible; [R]: of recordings only)"),
    {"show-peak", 0, NULL, "what was held when the program held most", METRIC(MAXIMUM)},
    {"show-maximum", 0, NULL, NULL, METRIC(MAXIMUM)},
    {"show-leaked", 0, NULL, "what was never freed; of a running program: what is live",
     METRIC(LEAKED)},
    {"show-live", 0, NULL, NULL, METRIC(LEAKED)},
    {"show-shutdown", 0, NULL, "what was never freed, or only after the last allocation [R]",
     METRIC(SHUTDOWN)},
    {"shutdown-at", 0, "T", "the same, but freed only after T [R]", OPTION_TEXT,
     IN(wish.shutdown_at), ALSO(wish.metrics[METRIC_SHUTDOWN])},
    {"show-allocated", 0, NULL, "all that was ever allocated, by bytes", METRIC(CUMULATIVE)},
    {"show-total", 0, NULL, NULL, METRIC(CUMULATIVE)},
    {"show-cumulative", 0, NULL, NULL, METRIC(CUMULATIVE)},
    {"show-allocations", 0, NULL, "the same by number of allocations", METRIC(ALLOCATIONS)},
    {"show-temporary", 0, NULL, "allocations freed before their thread's next allocation",
     METRIC(TEMPORARY)},
    {"temporary-within", 0, "D", "allocations freed within 10ms, 1s, ... [R]", OPTION_DURATION,
     IN(wish.short_ns), ALSO(wish.metrics[METRIC_SHORT])},
    {"show-caller-callee", 0, "FUNCTION|/REGEX/",
     "who calls a function and what it calls, by the metrics above", OPTION_CALL,
     .call = take_callers},
    {"show-findings", 0, NULL, "what looks wrong, the gravest first, and what shows more of it",
     SHOW(FINDINGS)},
    {"show-groups", 0, NULL, "a table of call paths: allocations, live, sizes, times",
     SHOW(GROUPS)},
    {"show-lifetimes", 0, NULL, "how long blocks lived: p50, p90, p99, by call path",
     SHOW(LIFETIMES)},
    {"show-sizes", 0, NULL, "how large blocks are: a histogram, and by call path [R]", SHOW(SIZES)},
    {"show-blocks", 0, NULL, "single blocks: the largest ones [R]", SHOW(BLOCKS)},
    {"blocks-by", 0, "largest|oldest|first", "which of them come first [R]", OPTION_WORD,
     IN(wish.block_order), ALSO(wish.shows[SHOW_BLOCKS])},
    {"show-fragmentation", 0, NULL, "slack, holes, pages and who keeps them, an address map [R]",
     SHOW(FRAGMENTATION)},
    {"show-mappings", 0, NULL, "mappings of the process, and who called mmap", SHOW(MAPPINGS)},
    {"show-pools", 0, NULL, "a table of pools: what they have given out, and hold for that",
     SHOW(POOLS)},
    {"show-timeline", 0, NULL, "memory over time as a chart", SHOW(TIMELINE)},
    {"timeline-series", 0, "SERIES",
     "the same of these, separated by commas: live, resident, swap, virtual, rate, frees, leaked",
     OPTION_CALL, .call = take_series},
    {"show-marks", 0, NULL, "what the program marked [R]", SHOW(MARKS)},
    {"show-threads", 0, NULL, "a table of threads, and who freed whose blocks", SHOW(THREADS)},
    {"show-processes", 0, NULL,
     "a table of the processes of a run, or of a profile's forked children", SHOW(PROCESSES)},
    OPTION_HEADING("how"),
    {"top-down", 0, NULL, "trees from main to the allocating function (default)", DIRECTION,
     .implied = "top-down"},
    {"bottom-up", 0, NULL, "trees from the allocating function to main", DIRECTION,
     .implied = "bottom-up"},
    {"flat", 0, NULL, "a table by function instead of trees", FORM, .implied = "flat"},
    {"paths", 0, NULL, "the whole call paths instead of trees", FORM, .implied = "paths"},
    {"by", 0, "function|line", "what one branch of a tree is (default: function)", OPTION_WORD,
     IN(wish.options.by_line)},
    {"full-names", 0, NULL, "C++ names with parameters, template arguments, return types",
     OPTION_FLAG, IN(wish.options.full_names)},
    {"min-percent", 0, "P", "leave out what is below P percent (default: 1)", OPTION_PERCENT,
     IN(wish.options.min_percent), ALSO(percent_given)},
    {"limit", 'n', "N", "at most N branches of one function, N rows, N paths (default: 20; 0: all)",
     OPTION_NUMBER, IN(wish.options.limit), ALSO(wish.limit_given)},
    {"depth", 'd', "N",
     "at most N frames (0: all; default: 64 of trees, 16 of paths, 3 in tables, all in JSON "
     "and CSV of everything)",
     OPTION_NUMBER, IN(wish.options.depth), ALSO(depth_given)},
    {"nodes", 0, NULL,
     "in JSON of everything: the tree of call paths, each node once, and not all frames of each "
     "path beside it",
     OPTION_FLAG, IN(wish.options.no_frames)},
    {"all-frames", 0, NULL,
     "show what the system runs before main, each level of a recursion, and what library "
     "functions (std::) call of their library",
     OPTION_FLAG, IN(wish.options.all_frames)},
    {"color", 0, "auto|always|never", "colours; auto: at a terminal", OPTION_TEXT, IN(color)},
    {"processes", 0, "N", "of a run: lines of the tree of processes (default: 10; 0: all)",
     OPTION_NUMBER, IN(wish.processes)},
    {.part = question_options, IN(question)},
    OPTION_HEADING("form"),
    {"format", 'f', REPORT_FORMATS,
     "json and csv are for programs: exact numbers, no threshold, no limit, and everything "
     "where "
     "no --show-... is given",
     FORMAT},
    {"json", 0, NULL, "the same as --format json", FORMAT, .implied = "json"},
    {"csv", 0, NULL, "the same as --format csv", FORMAT, .implied = "csv"},
    {"output", 'o', "FILE", "write to FILE", OPTION_TEXT, IN(output)},
    {.part = suppressing_options, IN(question.suppressing)},
    {.part = filter_options, IN(question.filters)},
    OPTION_END};

/* What is deep enough where nobody said how deep: mutual recursion would fill screens, and trees
 * from the bottom take time for each level. Programs get everything, but for what a depth costs in
 * trees from the bottom. */
static void set_bounds(struct request *request) {
    struct report_options *options = &request->wish.options;
    bool for_programs = options->format == REPORT_JSON || options->format == REPORT_CSV;
    options->table_depth = request->depth_given ? options->depth : REQUEST_TABLE_DEPTH;
    if (!request->depth_given && request->form == FORM_PATHS) {
        options->depth = REQUEST_PATH_DEPTH;
    } else if (!request->depth_given && request->form == FORM_TREE) {
        options->depth = REPORT_TREE_DEPTH;
    }
    if (for_programs && !request->wish.limit_given) {
        options->limit = 0;
    }
    if (for_programs && !request->percent_given) {
        options->min_percent = 0;
    }
    if (for_programs && !request->depth_given && !options->bottom_up) {
        options->depth = 0;
    }
}

static void report_read_request(struct request *request, int argc, char **argv) {
    cli_read(&report_command, &argc, &argv, request);
    request->source = cli_one(&report_command, argc, argv, NULL);
    if (request->wish.options.no_frames &&
        (request->wish.options.format != REPORT_JSON || reportmaking_is_special(&request->wish))) {
        cli_usage("report", "--nodes goes with --json of everything, without --show-...");
    }
    request->wish.options.nodes = request->wish.options.no_frames || !request->depth_given;
    if (request->wish.metrics[METRIC_SHORT]) { /* the other definition of temporary */
        request->wish.metrics[METRIC_TEMPORARY] = false;
    }
    request->question.filters.wants_threads = request->wish.shows[SHOW_THREADS] ||
                                              request->wish.shows[SHOW_TIMELINE] ||
                                              request->wish.options.format == REPORT_JSON;
    set_bounds(request);
}

/* ---- The work ---- */

/* The frames of all call paths may take too much: not all forms can do without. */
static void limit_bulk(struct report *report, const struct request *request) {
    struct error error;
    if (!reportmaking_is_everything(&request->wish) || request->depth_given ||
        report_refuse_bulk(report, &error) == 0) {
        return;
    }
    if (report->options.format != REPORT_JSON) {
        job_fail_as(&error);
    }
    report->options.no_frames = true;
    fputs("memtrace: the frames of all call paths would take more than 100 MB: they are in "
          "`nodes` alone "
          "(--depth 0 writes them with each path)\n",
          stderr);
}

static int run_report(int argc, char **argv) {
    struct request *request = job_alloc(sizeof *request);
    struct replay_options replay = reading_replay();
    struct answer answer;
    struct report *report;
    struct outfile *file;
    *request = (struct request){
        .wish = {.options = {.min_percent = REPORT_TREE_PERCENT, .limit = REPORT_TREE_LIMIT},
                 .processes = 10},
        .question.has_leaks = true};
    report_read_request(request, argc, argv);
    reading_open(&answer, request->source, &request->question);
    report = reportmaking_open(&answer, &request->wish, &replay);
    cli_style(&report->options, request->output, request->color);
    limit_bulk(report, request);
    file = outfile_open(request->output);
    report->out = file->stream;
    write_report(report, request);
    outfile_keep(file);
    return CLI_OK;
}

const struct command report_command = {
    .name = "report",
    .run = run_report,
    .summary = "show a profile, or that of a running program",
    .usage = "[OPTION]... [FILE|RUN|PID]",
    .about = "Shows a profile (*.mtp) or a recording (*.mtr), or what a running program "
             "holds now. Without an argument: the newest such file of this folder. "
             "Without a --show-... option: a summary, the call paths that held most, and"
             " the trees of peak and leaked memory.",
    .options = report_table,
    .operands = "PROFILE",
};
