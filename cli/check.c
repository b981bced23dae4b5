/* SPDX-License-Identifier: MIT */
/* check.c: `memtrace check [BUDGET]... [FILE]`. docs/check.md is its page. */
#include "analyze/report/check.h"
#include "analyze/model/uncounted.h"
#include "analyze/rows/number.h"
#include "cli/asking.h"
#include "cli/budget.h"
#include "cli/cli.h"
#include "cli/outfile.h"
#include "cli/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHECK_MET = 0, CHECK_BROKEN = 1, CHECK_TROUBLE = 2 };

enum {
    KEY_BUDGETS = 1,
    KEY_LEAKED,
    KEY_PEAK,
    KEY_ALLOCATED,
    KEY_ALLOCATIONS,
    KEY_TEMPORARY,
    KEY_SCOPE_ALLOCATIONS,
    KEY_SCOPE_BYTES,
    KEY_GROWTH,
    KEY_BASELINE,
    KEY_TOLERANCE,
    KEY_FORMAT,
    KEY_OUTPUT,
};

static const struct option options[] = {
    OPTION_HEADING("budgets as options"),
    OPTION("budgets", 'b', KEY_BUDGETS, "FILE", "budgets, one a line, with # comments"),
    OPTION("max-leaked", 0, KEY_LEAKED, "SIZE", "never freed"),
    OPTION_ALIAS("max-live", KEY_LEAKED, "SIZE"),
    OPTION("max-peak", 0, KEY_PEAK, "SIZE", "held when the program held most"),
    OPTION_ALIAS("max-maximum", KEY_PEAK, "SIZE"),
    OPTION("max-allocated", 0, KEY_ALLOCATED, "SIZE", "ever allocated"),
    OPTION_ALIAS("max-total", KEY_ALLOCATED, "SIZE"),
    OPTION_ALIAS("max-cumulative", KEY_ALLOCATED, "SIZE"),
    OPTION("max-allocations", 0, KEY_ALLOCATIONS, "N", "how many"),
    OPTION("max-temporary", 0, KEY_TEMPORARY, "N", "freed before their thread's next allocation"),
    OPTION("max-allocations-per-scope", 0, KEY_SCOPE_ALLOCATIONS, "NAME=N", "in any one scope"),
    OPTION("max-bytes-per-scope", 0, KEY_SCOPE_BYTES, "NAME=SIZE", "allocated in any one scope"),
    OPTION("max-growth", 0, KEY_GROWTH, "LIMIT",
           "of the peak over --baseline; METRIC=LIMIT: of that"),
    OPTION("baseline", 0, KEY_BASELINE, "FILE", "what --max-growth compares with"),
    OPTION_HEADING("how"),
    OPTION("tolerance", 0, KEY_TOLERANCE, "P", "limits may be exceeded by so many percent"),
    OPTION("format", 'f', KEY_FORMAT, "gcc|github|junit|json",
           "lines as compilers print them (default), workflow commands of GitHub, JUnit XML, JSON"),
    OPTION("output", 'o', KEY_OUTPUT, "FILE", "write to FILE"),
    OPTION_PART(question_options),
    OPTION_PART(suppressing_options),
    OPTION_PART(filter_options),
    OPTION_END};

enum { MOST_GROWTHS = 16 };

struct request {
    struct budgets budgets;
    const char *growths[MOST_GROWTHS]; /* of --max-growth, which wait for --baseline */
    size_t growth_count;
    const char *baseline;
    double tolerance;
    enum check_format format;
    const char *format_name; /* NULL: none was asked for */
    const char *output;
    struct question question;
    const char *source;
    struct filters *filters; /* of each budget's own selection */
};

/* ---- The command line ---- */

static int add_budget(struct request *request, const char *line) {
    struct error error = {""};
    return budget_add(&request->budgets, line, "", NULL, &error) == 0
               ? CLI_OK
               : cli_usage("check", "%s", error.message);
}

/* An option that is a budget: it is written out. */
static int add_option(struct request *request, const char *before, const char *value,
                      const char *behind) {
    char *line;
    int status;
    if (asprintf(&line, "%s <= \"%s\"%s", before, value, behind) < 0) {
        return cli_error("out of memory");
    }
    status = add_budget(request, line);
    free(line);
    return status;
}

/* NAME=LIMIT, of a scope. */
static int add_scope(struct request *request, const struct cli_scan *scan, const char *metric) {
    const char *equals = strrchr(scan->value, '=');
    char *behind;
    int status;
    if (equals == NULL || equals == scan->value) {
        return cli_usage("check", "%s takes NAME=LIMIT, not '%s'", scan->name, scan->value);
    }
    if (asprintf(&behind, " per scope \"%.*s\"", (int)(equals - scan->value), scan->value) < 0) {
        return cli_error("out of memory");
    }
    status = add_option(request, metric, equals + 1, behind);
    free(behind);
    return status;
}

/* LIMIT or METRIC=LIMIT. */
static int add_growth(struct request *request, const char *value) {
    const char *equals = strchr(value, '=');
    char *line;
    int status;
    if (request->baseline == NULL) {
        return cli_usage("check", "--max-growth needs --baseline FILE");
    }
    if (asprintf(&line, "growth <= \"%s\" of \"%.*s\" over \"%s\"",
                 equals != NULL ? equals + 1 : value,
                 equals != NULL ? (int)(equals - value) : (int)strlen("peak"),
                 equals != NULL ? value : "peak", request->baseline) < 0) {
        return cli_error("out of memory");
    }
    status = add_budget(request, line);
    free(line);
    return status;
}

static int add_file(struct request *request, const char *path) {
    struct error error = {""};
    if (budget_read(&request->budgets, path, &error) != 0) {
        cli_error("%s", error.message);
        return CLI_USAGE;
    }
    return CLI_OK;
}

static int take_format(struct request *request, const struct cli_scan *scan) {
    static const char *const names[] = {"gcc", "github", "junit", "json"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(scan->value, names[i]) == 0) {
            request->format = (enum check_format)i;
            return cli_choose(scan, &request->format_name, names[i]);
        }
    }
    return cli_usage("check", "--format is gcc, github, junit or json, not '%s'", scan->value);
}

static int take_budget(struct request *request, const struct cli_scan *scan, int key) {
    switch (key) {
    case KEY_BUDGETS:
        return add_file(request, scan->value);
    case KEY_LEAKED:
        return add_option(request, "leaked", scan->value, "");
    case KEY_PEAK:
        return add_option(request, "peak", scan->value, "");
    case KEY_ALLOCATED:
        return add_option(request, "allocated", scan->value, "");
    case KEY_ALLOCATIONS:
        return add_option(request, "allocations", scan->value, "");
    case KEY_TEMPORARY:
        return add_option(request, "temporary", scan->value, "");
    case KEY_SCOPE_ALLOCATIONS:
        return add_scope(request, scan, "allocations");
    case KEY_SCOPE_BYTES:
        return add_scope(request, scan, "allocated");
    default:
        if (request->growth_count == MOST_GROWTHS) {
            return cli_usage("check", "too many %s: write a file of budgets", scan->name);
        }
        request->growths[request->growth_count++] = scan->value;
        return CLI_OK;
    }
}

static int take_option(void *context, const struct cli_scan *scan, int key) {
    struct request *request = context;
    if (key >= FILTER_KEYS) {
        struct question of_filters = {.filters = request->filters};
        return asking_take(&of_filters, scan);
    }
    if (key >= QUESTION_KEYS) {
        return asking_take(&request->question, scan);
    }
    switch (key) {
    case KEY_BASELINE:
        request->baseline = scan->value;
        return CLI_OK;
    case KEY_TOLERANCE:
        return quantity_percent(scan->value, &request->tolerance) == 0
                   ? CLI_OK
                   : cli_usage("check", "%s takes a percentage, not '%s'", scan->name, scan->value);
    case KEY_FORMAT:
        return take_format(request, scan);
    case KEY_OUTPUT:
        request->output = scan->value;
        return CLI_OK;
    default:
        return take_budget(request, scan, key);
    }
}

static int take_operands(struct request *request, int argc, char **argv, int index) {
    int status = CLI_OK;
    for (; status == CLI_OK && index < argc; index++) {
        if (strstr(argv[index], "<=") != NULL) {
            status = add_budget(request, argv[index]);
        } else if (request->source == NULL) {
            request->source = argv[index];
        } else {
            status = cli_usage("check", "one file at a time: '%s' is one too many", argv[index]);
        }
    }
    return status;
}

static int read_arguments(struct request *request, int argc, char **argv) {
    struct cli_scan scan = cli_scan_start("check", argc, argv, options);
    int status = cli_scan_all(&scan, take_option, request);
    if (status != CLI_OK) {
        return status;
    }
    status = take_operands(request, argc, argv, scan.index);
    for (size_t i = 0; status == CLI_OK && i < request->growth_count; i++) {
        status = add_growth(request, request->growths[i]);
    }
    if (status == CLI_OK && request->baseline != NULL && request->growth_count == 0) {
        status = cli_usage("check", "--baseline needs --max-growth");
    }
    if (status == CLI_OK && request->budgets.count == 0) {
        status = cli_usage("check", "a budget is needed, such as --max-leaked 0 or 'leaked <= 0'");
    }
    return status;
}

/* ---- The work ---- */

/* One budget after the other; the baseline of the last one stays open for the next. */
struct checking {
    const struct request *request;
    struct answer *subject;
    struct answer baseline;
    const char *baseline_path; /* NULL: none is open */
    struct check_result *results;
    size_t count;
};

static int open_baseline(struct checking *checking, const char *path, struct error *error) {
    if (checking->baseline_path != NULL && strcmp(checking->baseline_path, path) == 0) {
        return 0;
    }
    if (checking->baseline_path != NULL) {
        answer_close(&checking->baseline);
        checking->baseline_path = NULL;
    }
    if (asking_open(&checking->baseline, path, &checking->request->question, error) != 0) {
        return -1;
    }
    checking->baseline_path = path;
    return 0;
}

static int make_subject(const struct request *request, struct answer *answer,
                        const struct replay_options *replay, struct selection *selection,
                        struct check_subject *subject, struct error *error) {
    *selection = selection_all();
    *subject = (struct check_subject){.whole = answer->source.model,
                                      .parts = answer->source.parts,
                                      .names = answer->names,
                                      .selection = selection,
                                      .suppressions = &answer->suppressions,
                                      .source = answer->source.path,
                                      .options = replay};
    return filters_resolve(request->filters, answer->source.model, selection, error);
}

static int check_one(struct checking *checking, const struct check_budget *budget,
                     struct error *error) {
    const struct replay_options replay = progress_replay();
    struct selection selections[2] = {selection_all(), selection_all()};
    struct check_subject subjects[2];
    bool growth = budget->kind == CHECK_GROWTH;
    int status = make_subject(checking->request, checking->subject, &replay, &selections[1],
                              &subjects[1], error);
    if (status == 0 && growth) {
        status = open_baseline(checking, budget->baseline, error);
    }
    if (status == 0 && growth) {
        status = make_subject(checking->request, &checking->baseline, &replay, &selections[0],
                              &subjects[0], error);
    }
    if (status == 0) {
        status =
            check_budget(budget, &subjects[1], growth ? &subjects[0] : NULL,
                         checking->request->tolerance, &checking->results[checking->count], error);
    }
    checking->count += status == 0;
    selection_free(&selections[0]);
    selection_free(&selections[1]);
    return status;
}

static int write_results(const struct checking *checking) {
    struct check_report report = {.results = checking->results,
                                  .count = checking->count,
                                  .source = checking->subject->source.path,
                                  .executable = checking->subject->source.model->header.executable};
    struct error error = {""};
    struct outfile file;
    bool broken = false;
    if (outfile_open(&file, checking->request->output, &error) != 0) {
        cli_error("%s", error.message);
        return CHECK_TROUBLE;
    }
    report.out = file.stream;
    error_set(&error, "out of memory");
    if (outfile_end(&file, check_write(&report, checking->request->format), &error) != CLI_OK) {
        return CHECK_TROUBLE;
    }
    for (size_t i = 0; i < checking->count; i++) {
        broken |= !checking->results[i].met;
    }
    return broken ? CHECK_BROKEN : CHECK_MET;
}

static int check_all(struct checking *checking) {
    const struct budgets *budgets = &checking->request->budgets;
    struct error error = {""};
    int status = 0;
    for (size_t i = 0; status == 0 && i < budgets->count; i++) {
        status = check_one(checking, &budgets->items[i], &error);
        if (status != 0) {
            const char *origin = budgets->items[i].origin;
            cli_error("%s%s%s", origin, origin[0] != '\0' ? ": " : "", error.message);
        }
    }
    return status == 0 ? write_results(checking) : CHECK_TROUBLE;
}

/* What of the file makes its numbers less than true. Nobody can tell whether a damaged file keeps a
 * budget, or a program whose malloc is not counted; events that a busy program lost are few. */
static int judge_file(const struct answer *answer, int status) {
    const struct model *model = answer->source.model;
    const char *uncounted = names_uncounted(answer->names);
    uint64_t late_frees = *memtrace_lost(&model->header, MEMTRACE_LOST_FREES);
    uint64_t lost = model->header.lost[MEMTRACE_LOST_EVENTS] +
                    (model->recording.present ? model->header.lost[MEMTRACE_LOST_RECORDS] : 0);
    if (lost != 0) {
        struct number count;
        cli_error("%s lacks %s, so its numbers may be too low", answer->source.path,
                  number_items(&count, lost, "event"));
    }
    if (late_frees != 0) {
        struct number count;
        cli_error("%s: %s blocks were freed without being seen, so its leaks may be too high",
                  answer->source.path, number_count(&count, late_frees));
    }
    if (uncounted[0] != '\0') {
        cli_error("%s: %s", answer->source.path, uncounted);
    }
    if (model->damage[0] != '\0') {
        cli_error("%s is damaged, so its numbers are too low: %s", answer->source.path,
                  model->damage);
    } else if (!uncounted_is_all(model)) {
        return status;
    }
    return status == CHECK_MET ? CHECK_TROUBLE : status;
}

static int check_file(const struct request *request, const char *name) {
    struct checking checking = {.request = request};
    struct answer answer;
    struct error error = {""};
    int status;
    if (asking_open(&answer, name, &request->question, &error) != 0) {
        cli_error("%s", error.message);
        return CHECK_TROUBLE;
    }
    checking.subject = &answer;
    checking.results = calloc(request->budgets.count, sizeof *checking.results);
    status = checking.results != NULL ? check_all(&checking) : CHECK_TROUBLE;
    status = judge_file(&answer, status);
    for (size_t i = 0; i < checking.count; i++) {
        check_free(&checking.results[i]);
    }
    free(checking.results);
    if (checking.baseline_path != NULL) {
        answer_close(&checking.baseline);
    }
    answer_close(&answer);
    return status;
}

static int check(struct request *request, int argc, char **argv) {
    int status = read_arguments(request, argc, argv);
    if (status != CLI_OK) {
        return CLI_USAGE;
    }
    return check_file(request, request->source);
}

static int run_check(int argc, char **argv) {
    struct request request = {.filters = filters_new(), .question.has_leaks = true};
    int status = CHECK_TROUBLE;
    if (request.filters != NULL) {
        status = check(&request, argc, argv);
    } else {
        cli_error("out of memory");
    }
    budget_free(&request.budgets);
    filters_free(request.filters);
    return status;
}

const struct command check_command = {
    .name = "check",
    .run = run_check,
    .summary = "check whether a profile keeps its budgets",
    .usage = "[OPTION]... [BUDGET]... [FILE|RUN|PID]",
    .about =
        "Checks whether a profile (*.mtp), a recording (*.mtr) or a running program"
        " keeps its budgets, and prints a line for each that is broken, with the "
        "code that broke it most. Exit status: 0 all are met, 1 one is broken, 2 "
        "the check was not possible. Without a file: the newest of this folder.\n"
        "\n"
        "a BUDGET, which has '<=' in it:\n"
        "  'leaked <= 0'                                 peak, leaked, allocated (bytes),\n"
        "  'peak <= 64M not in module libfoo'            allocations, temporary (numbers);\n"
        "  'allocations <= 10000 in function ^parse_'    in function, file, module REGEX\n"
        "  'allocations <= 100 per scope request'        in any one scope of that name\n"
        "  'growth <= 5% of peak over base.mtp'          against another file, by size or percent",
    .options = options,
    .operands = "PROFILE",
};
