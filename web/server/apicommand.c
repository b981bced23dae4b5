/* SPDX-License-Identifier: MIT */
/*
 * apicommand.c: what the page shows as something else: GET /command, a view of the page as a
 * command line, and GET /r/{r}/budget, as a budget of `memtrace check`.
 */
#include "analyze/rows/safetext.h"
#include "web/server/apilist.h"
#include "web/server/apimetric.h"
#include "web/server/hub.h"
#include "web/server/request.h"
#include "web/server/routes.h"

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
enum { VIEWS = sizeof views / sizeof views[0] };

static const char *metric_option(struct api_call *call, const struct request *view) {
    const char *text = request_parameter(view, "metric");
    call->metric = METRIC_MAXIMUM;
    if (text != NULL) {
        api_metric(text, &call->metric); /* what is none shows the usual one */
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

/* Whether the parameter, without what stands before its name, says what a side is of. */
static bool is_of_side(const char *name) {
    return hub_filter(name) != NULL || strcmp(name, "process") == 0 ||
           strcmp(name, "all-processes") == 0;
}

/* What of it is an option of the command as it is. `prefix`: of the other side of a difference. */
static void put_options(FILE *out, const struct request *view, const char *prefix) {
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
        takes_value = filter != NULL ? filter->value != NULL : route_names("process by", name);
        if (filter != NULL || takes_value ||
            route_names("full-names all-frames all-processes", name)) {
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

/* A difference as the dispatcher puts that of an answer. */
static const char *command_spell(struct api_call *call, const char *pattern,
                                 const struct request *view) {
    const char *base = request_parameter(view, "base");
    struct job_printing *text;
    if (strcmp(pattern, "list") == 0) {
        return "memtrace list"; /* of no file: the options are those of other views */
    }
    text = job_print();
    fputs("memtrace", text->out);
    put_words(text->out, call, base != NULL ? "diff" : pattern, view);
    put_options(text->out, view, "");
    if (base != NULL) {
        put_options(text->out, view, "base-");
        fputs(is_narrowed(view, "") && !is_narrowed(view, "base-") ? API_BASE_WHOLE : "",
              text->out);
        put_file(text->out, call->hub, base);
    }
    put_file(text->out, call->hub, request_parameter(view, "r"));
    return job_printed(text);
}

static void close_request(void *request) {
    request_free(request);
}

void api_command_of(struct api_call *call) {
    const char *url = api_param(call, "view");
    struct request *view = job_alloc(sizeof *view);
    struct error error;
    size_t place = 0;
    if (url == NULL) {
        api_refuse(call, 400, "view is the address of a view, as flame?r=1");
    }
    job_undo(close_request, view);
    if (request_parse(view, job_text("/%s", url[0] == '/' ? url + 1 : url), &error) != 0) {
        api_refuse(call, 400, "%s", error.message);
    }
    while (place < VIEWS && strcmp(views[place].view, view->path + 1) != 0) {
        place++;
    }
    if (place == VIEWS) {
        api_refuse(call, 404, "there is no view '%s'", view->path + 1);
    }
    jsonwriter_map(call->json, NULL);
    jsonwriter_string(call->json, "command", command_spell(call, views[place].command, view));
    jsonwriter_string(call->json, "sql",
                      strcmp(view->path, "/sql") == 0 ? request_parameter(view, "sql")
                                                      : views[place].sql);
    jsonwriter_end_map(call->json);
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

static const char *command_words_of(const char *filter) {
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

/* The command is made whole here, since the budget has some of the filters. */
static char *spell_check(const struct api_call *call, const char *budget) {
    const struct filters *filters = &call->view->question->filters;
    struct job_printing *text = job_print();
    fputs("memtrace check ", text->out);
    shellword_put(text->out, budget);
    for (size_t i = 0; i < filters->count; i++) {
        if (command_words_of(filters->items[i].option->name) == NULL) {
            filters_put_option(text->out, "", &filters->items[i]);
        }
    }
    fputc(' ', text->out);
    shellword_put(text->out, hub_path(call->view->source));
    return job_printed(text);
}

void api_budget(struct api_call *call) {
    const struct filters *filters = &call->view->question->filters;
    struct job_printing *text = job_print();
    const char *budget;
    uint64_t value;
    if (call->metric >= METRIC_COUNT) {
        api_refuse(call, 400, "budgets are of " METRIC_WORDS);
    }
    value = metric_total(call->metric, apimetric_model(call, call->view)).main;
    fprintf(text->out, "%s <= ", metric_word(call->metric));
    put_limit(text->out, value, metric_main_is_bytes(call->metric));
    for (size_t i = 0; i < filters->count; i++) {
        const char *words = command_words_of(filters->items[i].option->name);
        if (words != NULL) {
            fprintf(text->out, " %s", words);
            put_word(text->out, filters->items[i].value);
        }
    }
    budget = job_printed(text);
    call->told.command = spell_check(call, budget);
    call->told.is_whole = true;
    jsonwriter_map(call->json, NULL);
    jsonwriter_string(call->json, "line", budget);
    jsonwriter_string(call->json, "command", call->told.command);
    jsonwriter_end_map(call->json);
}
