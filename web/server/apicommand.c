/* SPDX-License-Identifier: MIT */
/*
 * apicommand.c: what the page shows as something else: GET /command, a view of the page as a
 * command line, and GET /r/{r}/budget, as a budget of `memtrace check`.
 */
#include "analyze/base/job.h"
#include "analyze/rows/safetext.h"
#include "web/server/apilist.h"
#include "web/server/apimetric.h"
#include "web/server/hub.h"
#include "web/server/request.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- Views of the page ---- */

/* "METRIC" stands for --show-peak and the like, "FOCUS" for the function that the view is about. */
static const struct {
    const char *view;
    const char *command;
    const char *sql; /* NULL: none */
} views[] = {
    {"summary", "report", "SELECT * FROM summary"},
    {"flame", "report METRIC", NULL},
    {"tree", "report METRIC", NULL},
    {"sandwich", "report METRIC --show-caller-callee FOCUS", NULL},
    {"functions", "report METRIC --flat", "SELECT * FROM functions"},
    {"paths", "report --show-groups", "SELECT * FROM contexts"},
    {"source", "report METRIC --flat --by line", NULL},
    {"blocks", "report --show-blocks", "SELECT * FROM allocations"},
    {"lifetimes", "report --show-lifetimes", NULL},
    {"sizes", "report --show-sizes", NULL},
    {"heap", "report --show-fragmentation", NULL},
    {"mappings", "report --show-mappings", "SELECT * FROM mappings"},
    {"threads", "report --show-threads", "SELECT * FROM threads"},
    {"processes", "report --show-processes", "SELECT * FROM processes"},
    {"live", "report METRIC", NULL},
    {"compare", "diff", NULL},
    {"sql", "query SQL", NULL},
    {"files", "list", NULL},
};

static const char *metric_option(struct api_call *call, const struct request *view) {
    const char *text = request_parameter(view, "metric");
    call->metric = METRIC_MAXIMUM;
    if (text != NULL && !metric_named(text, &call->metric)) {
        call->metric = strcmp(text, "shutdown") == 0 ? METRIC_SHUTDOWN
                       : strcmp(text, "short") == 0  ? METRIC_SHORT
                                                     : METRIC_MAXIMUM;
    }
    return apimetric_option(call);
}

static void put_words(FILE *out, struct api_call *call, const char *pattern,
                      const struct request *view) {
    const char *direction = request_parameter(view, "direction");
    while (*pattern != '\0') {
        size_t size = strcspn(pattern, " ");
        const char *focus = request_parameter(view, "focus");
        const char *sql = request_parameter(view, "sql");
        fputc(' ', out);
        if (strncmp(pattern, "METRIC", size) == 0) {
            fputs(metric_option(call, view), out);
            fputs(direction != NULL && strcmp(direction, "up") == 0 ? " --bottom-up" : "", out);
        } else if (strncmp(pattern, "FOCUS", size) == 0) {
            shellword_put(out, focus != NULL ? focus : "main");
        } else if (strncmp(pattern, "SQL", size) == 0) {
            shellword_put(out, sql != NULL ? sql : "SELECT * FROM summary");
        } else {
            fwrite(pattern, 1, size, out);
        }
        pattern += size;
        pattern += *pattern == ' ';
    }
}

static void put_file(FILE *out, struct hub *hub, const char *number) {
    struct hub_status status;
    fputc(' ', out);
    if (number != NULL && hub_status(hub, (unsigned)strtoul(number, NULL, 10), &status)) {
        shellword_put(out, status.live && status.kind == HUB_LIVE ? status.name : status.path);
        hub_status_free(&status);
    } else {
        fputs("FILE", out);
    }
}

static bool has_word(const char *const *words, const char *word) {
    while (*words != NULL && strcmp(*words, word) != 0) {
        words++;
    }
    return *words != NULL;
}

/* Whether the parameter, without what stands before its name, says what a side is of. */
static bool is_of_side(const char *name) {
    return hub_filter(name) != NULL || strcmp(name, "process") == 0 ||
           strcmp(name, "all-processes") == 0;
}

/* What of it is an option of the command as it is. `prefix`: of the other side of a difference. */
static void put_options(FILE *out, const struct request *view, const char *prefix) {
    static const char *const flags[] = {"full-names", "all-frames", "all-processes", NULL};
    static const char *const others[] = {"process", "by", NULL};
    size_t skip = strlen(prefix);
    for (size_t i = 0; i < view->parameter_count; i++) {
        const struct request_parameter *one = &view->parameters[i];
        const char *name = one->name + skip;
        const struct option *filter;
        bool takes_value;
        if (strncmp(one->name, prefix, skip) != 0 || (skip != 0 && !is_of_side(name))) {
            continue;
        }
        filter = hub_filter(name);
        takes_value = filter != NULL ? filter->value != NULL : has_word(others, name);
        if (filter != NULL || takes_value || has_word(flags, name)) {
            fprintf(out, " --%s", one->name);
        }
        if (takes_value) {
            fputc(' ', out);
            shellword_put(out, one->value);
        }
    }
}

/* Whether a parameter of one side says what it is of. */
static bool is_narrowed(const struct request *view, const char *prefix) {
    size_t skip = strlen(prefix);
    for (size_t i = 0; i < view->parameter_count; i++) {
        const char *name = view->parameters[i].name;
        if (strncmp(name, prefix, skip) == 0 && is_of_side(name + skip)) {
            return true;
        }
    }
    return false;
}

/* As the dispatcher puts those of an answer. */
static void put_base_options(FILE *out, const struct request *view) {
    put_options(out, view, "base-");
    if (is_narrowed(view, "") && !is_narrowed(view, "base-")) {
        fputs(API_BASE_WHOLE, out);
    }
}

/* NULL: out of memory. */
static char *spell(struct api_call *call, const char *pattern, const struct request *view) {
    const char *base = request_parameter(view, "base");
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL) {
        return NULL;
    }
    if (strcmp(pattern, "list") == 0) {
        // Of no file: the options are those of other views.
        fputs("memtrace list", out);
        return fclose(out) == 0 ? text : NULL;
    }
    fputs("memtrace", out);
    put_words(out, call, base != NULL ? "diff" : pattern, view);
    put_options(out, view, "");
    if (base != NULL) {
        put_base_options(out, view);
        put_file(out, call->hub, base);
    }
    put_file(out, call->hub, request_parameter(view, "r"));
    return fclose(out) == 0 ? text : NULL;
}

int api_command_of(struct api_call *call, struct error *error) {
    const char *url = api_param(call, "view");
    struct request view;
    size_t place = 0;
    size_t size;
    int result = 0;
    char *command;
    char *absolute;
    if (url == NULL) {
        return api_refuse(call, 400, error, "view is the address of a view, as flame?r=1");
    }
    if (asprintf(&absolute, "/%s", url[0] == '/' ? url + 1 : url) < 0) {
        return error_set(error, "out of memory");
    }
    result = request_parse(&view, absolute, error);
    free(absolute);
    if (result != 0) {
        request_free(&view);
        call->status = 400;
        return -1;
    }
    size = sizeof views / sizeof views[0];
    while (place < size && strcmp(views[place].view, view.path + 1) != 0) {
        place++;
    }
    if (place == size) {
        result = api_refuse(call, 404, error, "there is no view '%s'", view.path + 1);
    } else if ((command = spell(call, views[place].command, &view)) == NULL) {
        result = error_set(error, "out of memory");
    } else {
        jsonwriter_map(call->json, NULL);
        jsonwriter_string(call->json, "command", command);
        jsonwriter_string(call->json, "sql",
                          strcmp(view.path, "/sql") == 0 ? request_parameter(&view, "sql")
                                                         : views[place].sql);
        jsonwriter_end_map(call->json);
        free(command);
    }
    request_free(&view);
    return result;
}

/* ---- Budgets ---- */

/* What a budget says itself; all other filters stay options of the command. */
static const struct {
    const char *filter;
    const char *words;
} parts[] = {
    {"function", "in function"}, {"not-function", "not in function"},
    {"file", "in file"},         {"not-file", "not in file"},
    {"module", "in module"},     {"not-module", "not in module"},
    {"scope", "in scope"},
};

static const char *words_of(const char *filter) {
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (strcmp(parts[i].filter, filter) == 0) {
            return parts[i].words;
        }
    }
    return NULL;
}

/* Words with spaces, '#' or "<=" need double quotes; there is no way to write one in them. */
static void put_word(FILE *out, const char *word) {
    bool is_plain = strpbrk(word, " \t#<=") == NULL && word[0] != '\0';
    fprintf(out, is_plain ? " %s" : " \"%s\"", word);
}

/* A tenth above what it is, in the largest unit that says it in at most four digits. */
static void put_limit(FILE *out, uint64_t value, bool is_bytes) {
    static const char units[] = "KMGT";
    uint64_t limit = value + value / 10 + (value % 10 != 0);
    int unit = -1;
    while (is_bytes && limit >= 10000 && unit < 3) {
        limit = limit / 1024 + (limit % 1024 != 0);
        unit++;
    }
    fprintf(out, "%" PRIu64, limit);
    if (unit >= 0) {
        fputc(units[unit], out);
    }
}

static char *spell_budget(const struct api_call *call, uint64_t value) {
    const struct filters *filters = &call->view->question->filters;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL) {
        return NULL;
    }
    fprintf(out, "%s <= ", metric_word(call->metric));
    put_limit(out, value, metric_main_is_bytes(call->metric));
    for (size_t i = 0; i < filters->count; i++) {
        const char *words = words_of(filters->items[i].option->name);
        if (words != NULL) {
            fprintf(out, " %s", words);
            put_word(out, filters->items[i].value);
        }
    }
    return fclose(out) == 0 ? text : NULL;
}

/* The command is made whole here, since the budget has some of the filters. */
static char *spell_check(const struct api_call *call, const char *budget) {
    const struct question *question = call->view->question;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL) {
        return NULL;
    }
    fputs("memtrace check ", out);
    shellword_put(out, budget);
    for (size_t i = 0; i < question->filters.count; i++) {
        const struct filter_given *given = &question->filters.items[i];
        if (words_of(given->option->name) == NULL) {
            fprintf(out, " --%s", given->option->name);
            if (given->value != NULL) {
                fputc(' ', out);
                shellword_put(out, given->value);
            }
        }
    }
    fputc(' ', out);
    shellword_put(out, hub_path(call->view->source));
    return fclose(out) == 0 ? text : NULL;
}

int api_budget(struct api_call *call, struct error *error) {
    const struct model *model;
    char *budget;
    char *command;
    if (call->metric >= METRIC_COUNT) {
        return api_refuse(call, 400, error, "budgets are of " METRIC_WORDS);
    }
    model = apimetric_model(call, call->view, error);
    if (model == NULL) {
        return -1;
    }
    budget = spell_budget(call, metric_total(call->metric, model).main);
    command = budget != NULL ? spell_check(call, budget) : NULL;
    if (command == NULL) {
        free(budget);
        return error_set(error, "out of memory");
    }
    jsonwriter_map(call->json, NULL);
    jsonwriter_string(call->json, "line", budget);
    jsonwriter_string(call->json, "command", command);
    jsonwriter_end_map(call->json);
    call->told.command = job_take(command);
    call->told.is_whole = true;
    free(budget);
    return 0;
}
