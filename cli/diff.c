/* SPDX-License-Identifier: MIT */
/* diff.c: `memtrace diff BEFORE AFTER`. docs/diff.md is its page. */
#include "analyze/report/diff.h"

#include "cli/asking.h"
#include "cli/cli.h"
#include "cli/outfile.h"
#include "cli/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum form { FORM_TEXT, FORM_MARKDOWN, FORM_JSON, FORM_CSV };

enum {
    KEY_METRIC = 1,
    KEY_BY,
    KEY_TOLERANCE,
    KEY_LIMIT,
    KEY_MIN,
    KEY_DEPTH,
    KEY_FULL_NAMES,
    KEY_ALL_FRAMES,
    KEY_COLOR,
    KEY_MARKDOWN,
    KEY_JSON,
    KEY_CSV,
    KEY_OUTPUT,
};

static const struct option options[] = {
    OPTION("metric", 'm', KEY_METRIC, METRIC_CHOICES,
           "what is compared; several are possible (default: peak and leaked)"),
    OPTION("by", 0, KEY_BY, "path|function|file|module",
           "rows are call paths (default), or what allocates"),
    OPTION(
        "line-tolerance", 0, KEY_TOLERANCE, "N",
        "in another build, lines of one function are the same at most N lines apart (default: any "
        "number, in their order)"),
    OPTION("limit", 'n', KEY_LIMIT, "N",
           "at most N rows of what grew, and of what shrank (default: 20; 0: all)"),
    OPTION("min", 0, KEY_MIN, "SIZE", "sum up what changed by less, such as 64K"),
    OPTION("depth", 'd', KEY_DEPTH, "N", "at most N frames of a call path (default: 16; 0: all)"),
    OPTION("all-frames", 0, KEY_ALL_FRAMES, NULL, "show what libraries of the language call, too"),
    OPTION("full-names", 0, KEY_FULL_NAMES, NULL,
           "C++ names with parameters, template arguments, return types"),
    OPTION("color", 0, KEY_COLOR, "auto|always|never", "colours; auto: at a terminal"),
    OPTION("output", 'o', KEY_OUTPUT, "FILE", "write to FILE"),
    OPTION_PART(question_options),
    OPTION_HEADING("instead of text"),
    OPTION("markdown", 0, KEY_MARKDOWN, NULL, "tables for a comment on a change"),
    OPTION("json", 0, KEY_JSON, NULL, "one object with every row and metric"),
    OPTION("csv", 0, KEY_CSV, NULL, "one line for each row"),
    OPTION_PART(suppressing_options),
    OPTION_PART(filter_options),
    OPTION_END};

struct request {
    struct diff_options options;
    struct diff_view view;
    enum form form;
    const char *form_option; /* NULL: none was given */
    bool any_metric;
    const char *color;
    const char *output;
    const char *sources[2];
    struct question question; /* of both */
};

/* ---- The command line ---- */

static bool take_metric(struct request *request, const char *name) {
    enum metric metric;
    if (!metric_named(name, &metric)) {
        return false;
    }
    request->view.metrics[metric] = true;
    request->any_metric = true;
    return true;
}

static bool take_by(struct request *request, const char *name) {
    static const char *const names[] = {"path", "function", "file", "module"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(name, names[i]) == 0) {
            request->options.by = (enum diff_by)i;
            return true;
        }
    }
    return false;
}

static bool take_number(const char *text, uint64_t most, uint64_t *number) {
    return quantity_u64(text, number) == 0 && *number <= most;
}

static bool take_value(struct request *request, const struct cli_scan *scan, int key) {
    uint64_t number = 0;
    bool good;
    switch (key) {
    case KEY_METRIC:
        return take_metric(request, scan->value);
    case KEY_BY:
        return take_by(request, scan->value);
    case KEY_TOLERANCE:
        good = take_number(scan->value, DIFF_ANY_LINE - 1, &number);
        request->options.line_tolerance = (uint32_t)number;
        return good;
    case KEY_LIMIT:
        good = take_number(scan->value, SIZE_MAX, &number);
        request->view.limit = (size_t)number;
        return good;
    case KEY_DEPTH:
        good = take_number(scan->value, SIZE_MAX, &number);
        request->view.depth = (size_t)number;
        return good;
    case KEY_MIN:
        return quantity_bytes(scan->value, &request->view.least) == 0;
    case KEY_COLOR:
        request->color = scan->value;
        return cli_color(scan->value, STDOUT_FILENO) >= 0;
    default:
        request->output = scan->value;
        return true;
    }
}

static int take_option(void *context, const struct cli_scan *scan, int key) {
    struct request *request = context;
    if (key >= QUESTION_KEYS) {
        return asking_take(&request->question, scan);
    }
    switch (key) {
    case KEY_ALL_FRAMES:
        request->view.style.all_frames = true;
        return CLI_OK;
    case KEY_FULL_NAMES:
        request->view.style.full_names = true;
        return CLI_OK;
    case KEY_MARKDOWN:
    case KEY_JSON:
    case KEY_CSV:
        request->form = (enum form)(FORM_MARKDOWN + (key - KEY_MARKDOWN));
        return cli_choose(scan, &request->form_option, scan->name);
    default:
        return take_value(request, scan, key)
                   ? CLI_OK
                   : cli_usage("diff", "%s does not take '%s'", scan->name, scan->value);
    }
}

static int read_arguments(struct request *request, int argc, char **argv) {
    struct cli_scan scan = cli_scan_start("diff", argc, argv, options);
    int status = cli_scan_all(&scan, take_option, request);
    if (status != CLI_OK) {
        return status;
    }
    if (argc - scan.index != 2) {
        return cli_usage("diff", argc - scan.index < 2 ? "two files are needed: BEFORE and AFTER"
                                                       : "two files at a time: BEFORE and AFTER");
    }
    request->sources[0] = argv[scan.index];
    request->sources[1] = argv[scan.index + 1];
    if (!request->any_metric) {
        request->view.metrics[METRIC_MAXIMUM] = true;
        request->view.metrics[METRIC_LEAKED] = true;
    }
    return CLI_OK;
}

/* ---- The work ---- */

static int write_form(struct diff *diff, const struct request *request, struct error *error) {
    switch (request->form) {
    case FORM_JSON:
        return diff_json(diff, &request->view) == 0 ? 0 : error_set(error, "out of memory");
    case FORM_CSV:
        diff_csv(diff, &request->view);
        return 0;
    case FORM_MARKDOWN:
        diff_markdown(diff, &request->view);
        return 0;
    default:
        diff_text(diff, &request->view);
        return 0;
    }
}

static int write_diff(struct diff *diff, struct request *request) {
    struct outfile file;
    struct error error = {""};
    terminal_style(&request->view.style, request->output, request->color);
    if (outfile_open(&file, request->output, &error) != 0) {
        return cli_error("%s", error.message);
    }
    request->view.out = file.stream;
    return outfile_end(&file, write_form(diff, request, &error), &error);
}

static int compare(struct answer answers[2], struct request *request) {
    struct diff_side sides[2];
    struct diff diff;
    int status;
    for (size_t i = 0; i < 2; i++) {
        sides[i] = (struct diff_side){answers[i].filtered.model, answers[i].names,
                                      answers[i].source.path, &answers[i].suppressions};
    }
    if (diff_make(&diff, sides, &request->options) != 0) {
        return cli_error("out of memory");
    }
    status = write_diff(&diff, request);
    diff_free(&diff);
    asking_note(&answers[0]);
    asking_note(&answers[1]);
    return status;
}

static int diff_sources(struct request *request) {
    struct answer answers[2];
    struct error error = {""};
    int status;
    if (asking_open(&answers[0], request->sources[0], &request->question, &error) != 0) {
        return cli_error("%s", error.message);
    }
    if (asking_open(&answers[1], request->sources[1], &request->question, &error) != 0) {
        answer_close(&answers[0]);
        return cli_error("%s", error.message);
    }
    status = compare(answers, request);
    answer_close(&answers[1]);
    answer_close(&answers[0]);
    return status;
}

static int run(struct request *request, int argc, char **argv) {
    int status = read_arguments(request, argc, argv);
    if (status != CLI_OK) {
        return status;
    }
    return diff_sources(request);
}

static int run_diff(int argc, char **argv) {
    struct request request = {.options = {.line_tolerance = DIFF_ANY_LINE},
                              .view = {.limit = 20, .depth = 16},
                              .question = {.filters = filters_new(), .has_leaks = true}};
    int status =
        request.question.filters != NULL ? run(&request, argc, argv) : cli_error("out of memory");
    filters_free(request.question.filters);
    return status;
}

const struct command diff_command = {
    .name = "diff",
    .run = run_diff,
    .summary = "show what grew from one profile to another",
    .usage = "[OPTION]... BEFORE AFTER",
    .about = "Shows what grew and what shrank from one profile (*.mtp), recording "
             "(*.mtr) or running program to another, also if the program was rebuilt or "
             "changed in between.",
    .options = options,
    .operands = "PROFILE",
};
