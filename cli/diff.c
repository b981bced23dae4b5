/* SPDX-License-Identifier: MIT */
/* diff.c: `memtrace diff BEFORE AFTER`. docs/diff.md is its page. */
#include "analyze/report/diff.h"

#include "analyze/base/job.h"
#include "cli/outfile.h"
#include "cli/reading.h"

struct request {
    struct diff_options options;
    struct diff_view view;
    bool any_metric;
    const char *color;
    const char *output;
    const char *sources[2];
    struct question question; /* of both, or of AFTER where BEFORE has one of its own */
    struct question base;     /* the parts of BEFORE's own */
};

/* ---- The command line ---- */

static int take_metric(void *member, const struct option *option, const char *value,
                       struct error *error) {
    struct request *request = member;
    enum metric metric;
    if (!metric_named(value, &metric)) {
        return option_refuse(option, value, METRIC_WORDS, error);
    }
    request->view.metrics[metric] = true;
    request->any_metric = true;
    return 0;
}

#define IN(member) OPTION_IN(struct request, member)
#define FORM       .type = OPTION_WORD, IN(view.style.format), .words = REPORT_FORMATS, .is_choice = true

static const struct option options[] = {
    {"metric", 'm', METRIC_CHOICES,
     "what is compared; several are possible (default: peak and leaked)", OPTION_CALL,
     .call = take_metric},
    {"by", 0, "path|function|file|module", "rows are call paths (default), or what allocates",
     OPTION_WORD, IN(options.by)},
    {"line-tolerance", 0, "N",
     "in another build, lines of one function are the same at most N lines apart (default: any "
     "number, in their order)",
     OPTION_NUMBER, IN(options.line_tolerance), .most = DIFF_ANY_LINE - 1},
    {"limit", 'n', "N", "at most N rows of what grew, and of what shrank (default: 20; 0: all)",
     OPTION_NUMBER, IN(view.limit)},
    {"min", 0, "SIZE", "sum up what changed by less, such as 64K", OPTION_SIZE, IN(view.least)},
    {"depth", 'd', "N", "at most N frames of a call path (default: 16; 0: all)", OPTION_NUMBER,
     IN(view.depth)},
    {"all-frames", 0, NULL, "show what libraries of the language call, too", OPTION_FLAG,
     IN(view.style.all_frames)},
    {"full-names", 0, NULL, "C++ names with parameters, template arguments, return types",
     OPTION_FLAG, IN(view.style.full_names)},
    {"color", 0, "auto|always|never", "colours; auto: at a terminal", OPTION_TEXT, IN(color)},
    {"output", 'o', "FILE", "write to FILE", OPTION_TEXT, IN(output)},
    {.part = question_options, IN(question)},
    OPTION_HEADING("instead of text"),
    {"markdown", 0, NULL, "tables for a comment on a change", FORM, .implied = "markdown"},
    {"json", 0, NULL, "one object with every row and metric", FORM, .implied = "json"},
    {"csv", 0, NULL, "one line for each row", FORM, .implied = "csv"},
    {.part = suppressing_options, IN(question.suppressing)},
    {.part = filter_options, IN(question.filters)},
    OPTION_HEADING("of BEFORE alone; what is given without base- is of AFTER alone then"),
    {"base-process", 0, "PID|NAME[:IMAGE]", "this process of its run", OPTION_TEXT,
     IN(base.choice.process)},
    {"base-all-processes", 0, NULL, "the sum of all processes of its run", OPTION_FLAG,
     IN(base.choice.all)},
    {.name = "base-",
     .value = "FILTER",
     .help = "any of the options that say which part of it: --base-from, --base-function, ...",
     .part = filter_options,
     IN(base.filters)},
    OPTION_END};

static void diff_read_arguments(struct request *request, int argc, char **argv) {
    cli_read(&diff_command, &argc, &argv, request);
    if (argc > 2 || argc < (question_narrows(&request->base) ? 1 : 2)) {
        cli_usage("diff", argc < 2 ? "two files are needed: BEFORE and AFTER"
                                   : "two files at a time: BEFORE and AFTER");
    }
    request->sources[0] = argv[0];
    request->sources[1] = argv[argc - 1];
    if (!request->any_metric) {
        request->view.metrics[METRIC_MAXIMUM] = true;
        request->view.metrics[METRIC_LEAKED] = true;
    }
}

/* ---- The work ---- */

/* What a side is of, where they differ in it. */
static const char *selected_of(const struct request *request, size_t side) {
    const char *text = side == 0 ? request->base.filters.text : request->question.filters.text;
    return question_narrows(&request->base) ? text : NULL;
}

struct before {
    struct answer *answer;
    const char *name;
    struct question question;
};

static void open_before(void *what) {
    struct before *before = what;
    reading_open(before->answer, before->name, &before->question);
}

static void open_sources(struct answer answers[2], const struct request *request) {
    struct before *before = job_alloc(sizeof *before);
    struct error error = {""};
    *before = (struct before){&answers[0], request->sources[0], request->question};
    if (question_narrows(&request->base)) {
        before->question.filters = request->base.filters;
        before->question.choice = request->base.choice;
    }
    if (job_part(open_before, before, &error) != 0) {
        if (question_narrows(&request->base)) { /* whose options have that before their names */
            option_prefix(&error, "base-");
        }
        job_fail_as(&error);
    }
    reading_open(&answers[1], request->sources[1], &request->question);
}

static int run_diff(int argc, char **argv) {
    struct request request = {.options = {.line_tolerance = DIFF_ANY_LINE},
                              .view = {.limit = 20, .depth = 16},
                              .question.has_leaks = true};
    struct answer answers[2];
    struct diff_side sides[2];
    struct outfile *file;
    struct diff diff;
    diff_read_arguments(&request, argc, argv);
    open_sources(answers, &request);
    for (size_t i = 0; i < 2; i++) {
        sides[i] = (struct diff_side){answer_counted(&answers[i]), answers[i].names,
                                      answers[i].source->path, selected_of(&request, i),
                                      answers[i].suppressions};
    }
    diff = diff_make(sides, &request.options);
    cli_style(&request.view.style, request.output, request.color);
    file = outfile_open(request.output);
    request.view.out = file->stream;
    diff_write(&diff, &request.view);
    outfile_keep(file);
    reading_note(&answers[0]);
    reading_note(&answers[1]);
    return CLI_OK;
}

const struct command diff_command = {
    .name = "diff",
    .run = run_diff,
    .summary = "show what grew from one profile to another",
    .usage = "[OPTION]... BEFORE AFTER\n[OPTION]... --base-FILTER VALUE... FILE",
    .about = "Shows what grew and what shrank from one profile (*.mtp), recording "
             "(*.mtr) or running program to another, also if the program was rebuilt or "
             "changed in between.",
    .options = options,
    .operands = "PROFILE",
};
