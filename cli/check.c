/* SPDX-License-Identifier: MIT */
/* check.c: `memtrace check [BUDGET]... [FILE]`. docs/check.md is its page. */
#include "analyze/report/check.h"
#include "analyze/base/job.h"
#include "analyze/model/uncounted.h"
#include "analyze/rows/number.h"
#include "cli/budget.h"
#include "cli/outfile.h"
#include "cli/reading.h"

#include <string.h>

enum { CHECK_MET = 0, CHECK_BROKEN = 1, CHECK_TROUBLE = 2 };

enum { MOST_GROWTHS = 16 };

struct request {
    struct budgets budgets;
    const char *growths[MOST_GROWTHS]; /* of --max-growth, which wait for --baseline */
    size_t growth_count;
    const char *baseline;
    double tolerance;
    enum check_format format;
    const char *output;
    struct question question;
    const char *source;
    struct filters filters; /* of each budget's own selection */
    int status;
};

/* ---- The command line ---- */

static int add_budget(struct request *request, const char *line, struct error *error) {
    return budget_add(&request->budgets, line, "", NULL, error);
}

/* An option that is a budget: it is written out. data: its metric. */
static int take_budget(void *member, const struct option *option, const char *value,
                       struct error *error) {
    return add_budget(member, job_text("%s <= \"%s\"", (const char *)option->data, value), error);
}

/* NAME=LIMIT, of a scope. */
static int take_scope(void *member, const struct option *option, const char *value,
                      struct error *error) {
    const char *equals = strrchr(value, '=');
    if (equals == NULL || equals == value) {
        return option_refuse(option, value, "NAME=LIMIT", error);
    }
    return add_budget(member,
                      job_text("%s <= \"%s\" per scope \"%.*s\"", (const char *)option->data,
                               equals + 1, (int)(equals - value), value),
                      error);
}

static int take_growth(void *member, const struct option *option, const char *value,
                       struct error *error) {
    struct request *request = member;
    if (request->growth_count == MOST_GROWTHS) {
        return error_set(error, "too many --%s: write a file of budgets", option->name);
    }
    request->growths[request->growth_count++] = value;
    return 0;
}

static int check_take_file(void *member, const struct option *option, const char *value,
                           struct error *error) {
    struct request *request = member;
    (void)option;
    return budget_read(&request->budgets, value, error);
}

/* LIMIT or METRIC=LIMIT. */
static int add_growth(struct request *request, const char *value, struct error *error) {
    const char *equals = strchr(value, '=');
    if (request->baseline == NULL) {
        return error_set(error, "--max-growth needs --baseline FILE");
    }
    return add_budget(request,
                      job_text("growth <= \"%s\" of \"%.*s\" over \"%s\"",
                               equals != NULL ? equals + 1 : value,
                               equals != NULL ? (int)(equals - value) : (int)strlen("peak"),
                               equals != NULL ? value : "peak", request->baseline),
                      error);
}

#define IN(member)     OPTION_IN(struct request, member)
#define BUDGET(metric) OPTION_CALL, .call = take_budget, .data = (metric)

static const struct option options[] = {
    OPTION_HEADING("budgets as options"),
    {"budgets", 'b', "FILE", "budgets, one a line, with # comments", OPTION_CALL,
     .call = check_take_file},
    {"max-leaked", 0, "SIZE", "never freed", BUDGET("leaked")},
    {"max-live", 0, "SIZE", NULL, BUDGET("leaked")},
    {"max-peak", 0, "SIZE", "held when the program held most", BUDGET("peak")},
    {"max-maximum", 0, "SIZE", NULL, BUDGET("peak")},
    {"max-allocated", 0, "SIZE", "ever allocated", BUDGET("allocated")},
    {"max-total", 0, "SIZE", NULL, BUDGET("allocated")},
    {"max-cumulative", 0, "SIZE", NULL, BUDGET("allocated")},
    {"max-allocations", 0, "N", "how many", BUDGET("allocations")},
    {"max-temporary", 0, "N", "freed before their thread's next allocation", BUDGET("temporary")},
    {"max-allocations-per-scope", 0, "NAME=N", "in any one scope", OPTION_CALL, .call = take_scope,
     .data = "allocations"},
    {"max-bytes-per-scope", 0, "NAME=SIZE", "allocated in any one scope", OPTION_CALL,
     .call = take_scope, .data = "allocated"},
    {"max-growth", 0, "LIMIT", "of the peak over --baseline; METRIC=LIMIT: of that", OPTION_CALL,
     .call = take_growth},
    {"baseline", 0, "FILE", "what --max-growth compares with", OPTION_TEXT, IN(baseline)},
    OPTION_HEADING("how"),
    {"tolerance", 0, "P", "limits may be exceeded by P percent", OPTION_PERCENT, IN(tolerance)},
    {"format", 'f', "gcc|github|junit|json",
     "lines as compilers print them (default), GitHub's workflow commands, JUnit XML, JSON",
     OPTION_WORD, IN(format), .is_choice = true},
    {"output", 'o', "FILE", "write to FILE", OPTION_TEXT, IN(output)},
    {.part = question_options, IN(question)},
    {.part = suppressing_options, IN(question.suppressing)},
    {.part = filter_options, IN(filters)},
    OPTION_END};

static int take_operands(struct request *request, int argc, char **argv, struct error *error) {
    for (int i = 0; i < argc; i++) {
        bool is_budget = strstr(argv[i], "<=") != NULL;
        if (!is_budget && request->source != NULL) {
            return error_set(error, "one file at a time: '%s' is one too many", argv[i]);
        }
        if (is_budget && add_budget(request, argv[i], error) != 0) {
            return -1;
        }
        request->source = is_budget ? request->source : argv[i];
    }
    for (size_t i = 0; i < request->growth_count; i++) {
        if (add_growth(request, request->growths[i], error) != 0) {
            return -1;
        }
    }
    if (request->baseline != NULL && request->growth_count == 0) {
        return error_set(error, "--baseline needs --max-growth");
    }
    return request->budgets.count != 0
               ? 0
               : error_set(error, "a budget is needed, such as --max-leaked 0 or 'leaked <= 0'");
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
    struct job_memory *memory; /* what the results hold */
};

static struct check_subject make_subject(const struct request *request, struct answer *answer,
                                         const struct replay_options *replay) {
    struct check_subject subject = {.whole = answer->whole,
                                    .parts = answer->source->parts,
                                    .names = answer->names,
                                    .selection = job_alloc(sizeof *subject.selection),
                                    .suppressions = answer->suppressions,
                                    .source = answer->source->path,
                                    .options = replay};
    struct error error;
    *subject.selection = selection_all();
    job_check(filters_select(&request->filters, answer->source, answer->names, replay,
                             subject.selection, &error),
              &error);
    return subject;
}

/* The next budget. */
static void check_next(void *what) {
    struct checking *checking = what;
    const struct request *request = checking->request;
    const struct check_budget *budget = &request->budgets.items[checking->count];
    const struct replay_options replay = reading_replay();
    struct check_subject subject = make_subject(request, checking->subject, &replay);
    struct check_subject baseline;
    bool growth = budget->kind == CHECK_GROWTH;
    if (growth) {
        if (checking->baseline_path == NULL ||
            strcmp(checking->baseline_path, budget->baseline) != 0) {
            reading_open(&checking->baseline, budget->baseline, &request->question);
            checking->baseline_path = budget->baseline;
        }
        baseline = make_subject(request, &checking->baseline, &replay);
    }
    check_budget(budget, &subject, growth ? &baseline : NULL, request->tolerance,
                 &checking->results[checking->count]);
    checking->count++;
}

static int write_results(const struct checking *checking) {
    struct check_report report = {.results = checking->results,
                                  .count = checking->count,
                                  .source = checking->subject->source->path,
                                  .executable = checking->subject->whole->header.executable};
    struct outfile *file = outfile_open(checking->request->output);
    bool broken = false;
    report.out = file->stream;
    check_write(&report, checking->request->format);
    outfile_keep(file);
    for (size_t i = 0; i < checking->count; i++) {
        broken |= !checking->results[i].met;
    }
    return broken ? CHECK_BROKEN : CHECK_MET;
}

/* A peak among threads is known within a bound. */
static void tell_unsure(const struct checking *checking) {
    uint64_t bound = checking->subject->whole->totals.maximum_error_bytes;
    struct number number;
    for (size_t i = 0; i < checking->count; i++) {
        const struct check_result *result = &checking->results[i];
        if (result->budget->metric == METRIC_MAXIMUM && result->met &&
            result->value <= result->most && result->most - result->value < bound) {
            cli_error("%s: the true peak may be up to %s larger, since threads count apart",
                      result->budget->text, number_bytes(&number, bound));
        }
    }
}

static int check_all(struct checking *checking) {
    const struct budgets *budgets = &checking->request->budgets;
    int status;
    while (checking->count < budgets->count) {
        struct error error;
        if (job_run(check_next, checking, &checking->memory, &error) != 0) {
            const char *origin = budgets->items[checking->count].origin;
            cli_error("%s%s%s", origin, origin[0] != '\0' ? ": " : "", error.message);
            return CHECK_TROUBLE;
        }
    }
    status = write_results(checking);
    tell_unsure(checking);
    return status;
}

/* What of the file makes its numbers less than true. Nobody can tell whether a damaged file keeps a
 * budget, or a program whose malloc is not counted; events that a busy program lost are few. */
static int judge_file(const struct answer *answer, int status) {
    const struct model *model = answer->whole;
    const char *uncounted = names_uncounted(answer->names);
    uint64_t late_frees = *memtrace_lost(&model->header, MEMTRACE_LOST_FREES);
    uint64_t lost = model->header.lost[MEMTRACE_LOST_EVENTS] +
                    (model->recording.present ? model->header.lost[MEMTRACE_LOST_RECORDS] : 0);
    if (lost != 0) {
        struct number count;
        cli_error("%s lacks %s, so its numbers may be too low", answer->source->path,
                  number_items(&count, lost, "event"));
    }
    if (late_frees != 0) {
        struct number count;
        cli_error("%s: %s blocks were freed without being seen, so its leaks may be too high",
                  answer->source->path, number_count(&count, late_frees));
    }
    if (uncounted[0] != '\0') {
        cli_error("%s: %s", answer->source->path, uncounted);
    }
    if (model->damage[0] != '\0') {
        cli_error("%s is damaged, so its numbers are too low: %s", answer->source->path,
                  model->damage);
    } else if (model_is_unfinished(model)) {
        cli_error("%s was not finished by its writer, so its numbers may be too low",
                  answer->source->path);
    } else if (!uncounted_is_all(model)) {
        return status;
    }
    return status == CHECK_MET ? CHECK_TROUBLE : status;
}

static void end_checking(void *what) {
    struct checking *checking = what;
    job_free(&checking->memory);
}

static void check_file(struct request *request) {
    struct checking *checking = job_alloc(sizeof *checking);
    struct answer *answer = job_alloc(sizeof *answer);
    reading_open(answer, request->source, &request->question);
    checking->request = request;
    checking->subject = answer;
    checking->results = job_array(request->budgets.count, sizeof *checking->results);
    job_undo(end_checking, checking);
    request->status = judge_file(answer, check_all(checking));
}

static int run_check(int argc, char **argv) {
    struct request request = {.question.has_leaks = true};
    struct error error;
    cli_read(&check_command, &argc, &argv, &request);
    if (take_operands(&request, argc, argv, &error) != 0) {
        cli_usage("check", "%s", error.message);
    }
    check_file(&request);
    return request.status;
}

const struct command check_command = {
    .name = "check",
    .run = run_check,
    .failure = CHECK_TROUBLE,
    .summary = "check whether a profile keeps its budgets",
    .usage = "[OPTION]... [BUDGET]... [FILE|RUN|PID]",
    .about = "Checks whether a profile (*.mtp), a recording (*.mtr) or a running program"
             " keeps its budgets, and prints a line for each that is broken, with the "
             "code that broke it most. Exit status: 0 all are met, 1 one is broken, 2 "
             "the check was not possible. Without a file: the newest of this folder.\n"
             "\n"
             "a BUDGET has '<=' in it:\n"
             "  'leaked <= 0'                               peak, leaked, allocated: bytes;\n"
             "  'peak <= 64M not in module libfoo'          allocations, temporary: numbers;\n"
             "  'allocations <= 10000 in function ^parse_'  in function, file, module REGEX\n"
             "  'allocations <= 100 per scope request'      in any one scope of that name\n"
             "  'growth <= 5% of peak over base.mtp'        over another file: SIZE, percent",
    .options = options,
    .operands = "PROFILE",
};
