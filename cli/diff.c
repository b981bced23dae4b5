/* SPDX-License-Identifier: MIT */
/* diff.c: `memtrace diff BEFORE AFTER`. docs/diff.md is its page. */
#include "analyze/report/diff.h"

#include "cli/chosen.h"
#include "cli/cli.h"
#include "cli/outfile.h"
#include "cli/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char help_text[] =
    "usage: memtrace diff [OPTION]... BEFORE AFTER\n"
    "\n"
    "Shows what grew and what shrank from one profile (*.mtp), recording (*.mtr) or running\n"
    "program to another, also if the program was rebuilt or changed in between.\n"
    "\n"
    "  --process PID|NAME[:IMAGE]\n"
    "                       this process of runs (folders), of both; default: the one that held "
    "most\n"
    "  --all-processes      the sum of all of them by call path\n"
    "  --metric METRIC      what is compared; several are possible (default: peak and\n"
    "                       leaked): peak, leaked, allocated, allocations, temporary\n"
    "  --by WHAT            rows are call paths or what allocates: path (default), function,\n"
    "                       file, module\n"
    "  --line-tolerance N   in another build, lines of one function are the same at most N lines\n"
    "                       apart (default: any number, in their order)\n"
    "  --limit N            at most N rows of what grew, and of what shrank (default: 20; 0: all)\n"
    "  --min SIZE           sum up what changed by less, such as 64K\n"
    "  --depth N            at most N frames of a call path (default: 16; 0: all)\n"
    "  --all-frames         show what libraries of the language call, too\n"
    "  --full-names         C++ names with parameters, template arguments, return types\n"
    "  --color WHEN         auto, always or never\n"
    "  --debug-folders L    where separate debug files are, colon-separated (default:\n"
    "                       /usr/lib/debug)\n"
    "\n"
    "instead of text:\n"
    "  --markdown           tables for a comment on a change\n"
    "  --json               one object with every row and metric\n"
    "  --csv                one line for each row\n"
    "\n"
    "  --output FILE        write to FILE\n"
    "  --no-cache           keep nothing on disk for the next command\n"
    "  --help               show this\n";

enum form { FORM_TEXT, FORM_MARKDOWN, FORM_JSON, FORM_CSV };

enum {
    KEY_HELP = 1,
    KEY_METRIC,
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

static const struct cli_option options[] = {
    {"help", 'h', false, KEY_HELP},
    {"metric", 'm', true, KEY_METRIC},
    {"by", 0, true, KEY_BY},
    {"line-tolerance", 0, true, KEY_TOLERANCE},
    {"limit", 'n', true, KEY_LIMIT},
    {"min", 0, true, KEY_MIN},
    {"depth", 'd', true, KEY_DEPTH},
    {"full-names", 0, false, KEY_FULL_NAMES},
    {"all-frames", 0, false, KEY_ALL_FRAMES},
    {"color", 0, true, KEY_COLOR},
    {"markdown", 0, false, KEY_MARKDOWN},
    {"json", 0, false, KEY_JSON},
    {"csv", 0, false, KEY_CSV},
    {"output", 'o', true, KEY_OUTPUT},
    SUPPRESSING_OPTIONS,
    CHOSEN_OPTIONS,
    {NULL, 0, false, 0},
};

struct request {
    struct diff_options options;
    struct diff_view view;
    enum form form;
    const char *form_option; /* NULL: none was given */
    bool any_metric;
    bool help;
    const char *color;
    const char *output;
    const char *sources[2];
    struct chosen_options chosen; /* of both */
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
    return cli_parse_u64(text, number) == 0 && *number <= most;
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
        return cli_parse_bytes(scan->value, &request->view.least) == 0;
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
    if (key >= CHOSEN_KEYS) {
        return chosen_take(&request->chosen, scan, key);
    }
    switch (key) {
    case KEY_HELP:
        request->help = true;
        return CLI_OK;
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
    if (status != CLI_OK || request->help) {
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

static int compare(struct chosen chosen[2], struct request *request) {
    struct diff_side sides[2];
    struct diff diff;
    int status;
    for (size_t i = 0; i < 2; i++) {
        sides[i] = (struct diff_side){chosen[i].filtered.model, chosen[i].names,
                                      chosen[i].source.path, &chosen[i].suppressions};
    }
    if (diff_make(&diff, sides, &request->options) != 0) {
        return cli_error("out of memory");
    }
    status = write_diff(&diff, request);
    diff_free(&diff);
    chosen_note(&chosen[0]);
    chosen_note(&chosen[1]);
    return status;
}

static int diff_sources(struct request *request) {
    struct chosen chosen[2];
    struct error error = {""};
    int status;
    if (chosen_open(&chosen[0], request->sources[0], &request->chosen, &error) != 0) {
        return cli_error("%s", error.message);
    }
    if (chosen_open(&chosen[1], request->sources[1], &request->chosen, &error) != 0) {
        chosen_close(&chosen[0]);
        return cli_error("%s", error.message);
    }
    status = compare(chosen, request);
    chosen_close(&chosen[1]);
    chosen_close(&chosen[0]);
    return status;
}

static int run(struct request *request, int argc, char **argv) {
    int status = read_arguments(request, argc, argv);
    if (status != CLI_OK) {
        return status;
    }
    if (request->help) {
        fputs(help_text, stdout);
        fputs(suppressing_help, stdout);
        fputs(filters_help, stdout);
        return cli_finish(CLI_OK);
    }
    return diff_sources(request);
}

int cmd_diff(int argc, char **argv) {
    struct request request = {.options = {.line_tolerance = DIFF_ANY_LINE},
                              .view = {.limit = 20, .depth = 16},
                              .chosen = {.filters = filters_new(), .has_leaks = true}};
    int status =
        request.chosen.filters != NULL ? run(&request, argc, argv) : cli_error("out of memory");
    filters_free(request.chosen.filters);
    return status;
}
