/* SPDX-License-Identifier: MIT */
/* report.c: `memtrace report [FILE|PID]`: what is asked for, and by which options. docs/report.md
 * is its page. */
#include "analyze/base/job.h"
#include "analyze/base/pattern.h"
#include "analyze/blocks/activity.h"
#include "cli/asking.h"
#include "cli/outfile.h"
#include "cli/progress.h"
#include "cli/reportshow.h"
#include "cli/terminal.h"

#include <stdlib.h>
#include <string.h>

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

static void free_regex(struct request *request) {
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
    free_regex(request);
    request->wish.callers_of = value;
    if (size < 2 || value[0] != '/' || value[size - 1] != '/') {
        return size != 0 ? 0 : option_refuse(option, value, "a function", error);
    }
    regex = strndup(value + 1, size - 2);
    request->has_regex = regex != NULL && pattern_compile(&request->regex, regex, why) == 0;
    free(regex);
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
 * from the bottom take time for each level. */
static void set_depth(struct request *request) {
    struct report_options *options = &request->wish.options;
    options->table_depth = request->depth_given ? options->depth : REQUEST_TABLE_DEPTH;
    if (!request->depth_given && request->form == FORM_PATHS) {
        options->depth = REQUEST_PATH_DEPTH;
    } else if (!request->depth_given && request->form == FORM_TREE) {
        options->depth = REPORT_TREE_DEPTH;
    }
}

/* Programs get everything, but for what a depth costs in trees from the bottom. */
static void set_bounds(struct request *request) {
    struct report_options *options = &request->wish.options;
    bool for_programs = options->format == REPORT_JSON || options->format == REPORT_CSV;
    set_depth(request);
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

static int read_request(struct request *request, int argc, char **argv) {
    int status = cli_read(&report_command, &argc, &argv, request);
    if (status == CLI_OK) {
        status = cli_one(&report_command, argc, argv, NULL, &request->source);
    }
    if (status != CLI_OK) {
        return status;
    }
    if (request->wish.options.no_frames &&
        (request->wish.options.format != REPORT_JSON || reportmaking_is_special(&request->wish))) {
        return cli_usage("report", "--nodes goes with --json of everything, without --show-...");
    }
    request->wish.options.nodes = request->wish.options.no_frames || !request->depth_given;
    if (request->wish.metrics[METRIC_SHORT]) { /* the other definition of temporary */
        request->wish.metrics[METRIC_TEMPORARY] = false;
    }
    request->question.filters.wants_threads = request->wish.shows[SHOW_THREADS] ||
                                              request->wish.shows[SHOW_TIMELINE] ||
                                              request->wish.options.format == REPORT_JSON;
    set_bounds(request);
    return CLI_OK;
}

/* ---- The work ---- */

static int write_to(struct report *report, const struct request *request) {
    struct outfile *file;
    struct error error;
    if (reportmaking_is_everything(&request->wish) && !request->depth_given &&
        report_refuse_bulk(report, &error) != 0) {
        if (report->options.format != REPORT_JSON) {
            return cli_error("%s", error.message);
        }
        report->options.no_frames = true;
        fputs("memtrace: the frames of all call paths would take more than 100 MB: they are in "
              "`nodes` alone "
              "(--depth 0 writes them with each path)\n",
              stderr);
    }
    file = outfile_open(request->output);
    report->out = file->stream;
    reportshow_write(report, request);
    outfile_keep(file);
    return CLI_OK;
}

static int report_answer(struct answer *answer, const struct request *request) {
    struct replay_options replay = progress_replay();
    struct reportmaking made;
    struct error error;
    int status;
    if (reportmaking_open(&made, answer, &request->question, &request->wish, &replay, &error) !=
        0) {
        return cli_error("%s", error.message);
    }
    terminal_style(&made.report.options, request->output, request->color);
    status = write_to(&made.report, request);
    reportmaking_close(&made);
    return status;
}

static int report_source(const char *name, const struct request *request) {
    struct answer answer;
    struct error error;
    int status;
    if (asking_open(&answer, name, &request->question, &error) != 0) {
        return cli_error("%s", error.message);
    }
    status = report_answer(&answer, request);
    answer_close(&answer);
    return status;
}

static int run_report(int argc, char **argv) {
    struct request request = {
        .wish = {.options = {.min_percent = REPORT_TREE_PERCENT, .limit = REPORT_TREE_LIMIT},
                 .processes = 10},
        .question.has_leaks = true};
    int status = read_request(&request, argc, argv);
    if (status == CLI_OK) {
        status = report_source(request.source, &request);
    }
    free_regex(&request);
    question_free(&request.question);
    return status;
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
