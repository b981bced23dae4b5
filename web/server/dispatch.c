/* SPDX-License-Identifier: MIT */
/* dispatch.c: see dispatch.h. */
#include "web/server/dispatch.h"

#include "analyze/base/job.h"
#include "analyze/rows/safetext.h"
#include "collect/clock.h"
#include "web/server/apilist.h"
#include "web/server/watch.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define API          "/api/v1"
#define COLUMNS_TYPE "application/vnd.memtrace.columns"

enum { TELL_MS = 100 };

/* A request that is being answered. */
struct dispatch {
    struct api_call call;
    struct reply *reply;
    const struct route *route;
    const char *path; /* below API */
    struct api_columns columns;
    char *rest;
    char *data;
    size_t size;
    int64_t told_ms;
    uint64_t start_ns;
    bool is_saved; /* for a file, which is the same each time: how long it took is not told */
};

/* ---- Problems ---- */

static const char *problem_title(int status) {
    switch (status) {
    case 400:
        return "Bad Request";
    case 401:
        return "Unauthorized";
    case 403:
        return "Forbidden";
    case 404:
        return "Not Found";
    case 405:
        return "Method Not Allowed";
    case 410:
        return "Gone";
    case 413:
        return "Content Too Large";
    case 503:
        return "Service Unavailable";
    default:
        return "Internal Server Error";
    }
}

void dispatch_problem(struct reply *reply, int status, const char *detail) {
    FILE *out;
    struct jsonwriter *json;
    free(reply->bytes);
    free(reply->file_name);
    if (reply->file != NULL) {
        fclose(reply->file);
    }
    *reply = (struct reply){.status = status, .type = "application/problem+json"};
    out = open_memstream(&reply->bytes, &reply->size);
    json = out != NULL ? jsonwriter_open(out, JSONWRITER_COMPACT) : NULL;
    if (json != NULL) {
        jsonwriter_map(json, NULL);
        jsonwriter_string(json, "type", "about:blank");
        jsonwriter_string(json, "title", problem_title(status));
        jsonwriter_number(json, "status", (uint64_t)status);
        jsonwriter_string(json, "detail", detail);
        jsonwriter_end_map(json);
        jsonwriter_close(json);
    }
    if (out != NULL) {
        fclose(out);
    }
}

/* ---- What is asked ---- */

static bool is_base_filter(const char *name) {
    return strncmp(name, "base-", 5) == 0 && hub_is_filter(name + 5);
}

/* Refuses a parameter that the route does not take, and one that is given twice. */
static void check_parameters(struct dispatch *self) {
    const struct request *request = self->call.request;
    bool is_plain = (self->route->flags & ROUTE_PLAIN) != 0;
    for (size_t i = 0; i < request->parameter_count; i++) {
        const char *name = request->parameters[i].name;
        bool is_own = route_takes(self->route, name);
        if (!is_own && (is_plain || !(hub_is_filter(name) || is_base_filter(name)))) {
            api_refuse(&self->call, 400, "there is no parameter '%s' here", name);
        }
        for (size_t j = 0; j < i && is_own; j++) {
            if (strcmp(request->parameters[j].name, name) == 0) {
                api_refuse(&self->call, 400, "%s is given twice", name);
            }
        }
        if (is_base_filter(name) && !is_own && api_param(&self->call, "base") == NULL) {
            api_refuse(&self->call, 400, "%s needs base=SOURCE", name);
        }
    }
}

static void dispatch_take_metric(struct api_call *call) {
    const char *text = api_param(call, "metric");
    if (text != NULL && !api_metric(text, &call->metric)) {
        api_refuse(call, 400, "metric is " METRIC_WORDS ", shutdown or short, not '%s'", text);
    }
}

/* How names and paths are shown. */
static void take_options(struct api_call *call, struct report_options *options) {
    options->full_names = api_flag(call, "full-names");
    options->all_frames = api_flag(call, "all-frames");
    options->by_line = api_word(call, "by", "function|line", 0) != 0;
    options->format = REPORT_JSON;
    options->unicode = true;
}

static void guess_told(struct api_call *call, const struct route *route) {
    const struct model *model = call->view->model;
    struct api_told *told = &call->told;
    /* Sums have the maximum in them; single blocks, threads and marks do not. */
    bool has_maximum = route->queue == QUEUE_INTERACTIVE &&
                       (route->flags & (ROUTE_METRIC | ROUTE_TABLE)) != ROUTE_TABLE;
    if (call->view->is_snapped) {
        told->exact = API_SNAPPED;
    } else if (model_is_estimate(model)) {
        told->exact = API_ESTIMATE;
        told->error = metric_error(call->metric, model);
    } else if (has_maximum && call->metric == METRIC_MAXIMUM &&
               model->totals.maximum_error_bytes != 0) {
        told->exact = API_BOUND;
        told->error = (double)model->totals.maximum_error_bytes;
    }
    told->via = selection_needs_lives(call->view->selection) ? API_VIA_PASS
                : selection_has_view(call->view->selection)  ? API_VIA_SLICES
                                                             : API_VIA_MODEL;
}

/* Of the hub. */
static const struct answer *dispatch_get_view(struct dispatch *self,
                                              const struct hub_question *question) {
    struct api_call *call = &self->call;
    struct error error;
    const struct answer *view = hub_view(call->hub, question, &call->replay, &call->status, &error);
    if (view == NULL) {
        job_fail_as(&error);
    }
    call->status = 0;
    return view;
}

static void get_views(struct dispatch *self) {
    struct api_call *call = &self->call;
    struct hub_question question = {.source = call->source,
                                    .request = call->request,
                                    .prefix = "",
                                    .own = self->route->own,
                                    .wants_threads = (self->route->flags & ROUTE_THREADS) != 0,
                                    .wants_blocks = (self->route->flags & ROUTE_BLOCKS) != 0};
    call->view = dispatch_get_view(self, &question);
    question.source = (unsigned)api_number(call, "base", 0, 1, HUB_SOURCES);
    if (question.source != 0) {
        question.prefix = "base-";
        question.own = NULL;
        call->base = dispatch_get_view(self, &question);
    }
}

/* ---- Around the data ---- */

/* How a command line names it: a running program by its number. */
static void command_put_file(FILE *out, const struct source *file) {
    if (file->model->live && file->parts.count == 0) {
        fprintf(out, " %" PRIu32, file->model->header.pid);
    } else {
        fputc(' ', out);
        shellword_put(out, hub_path(file));
    }
}

/* The selection as options whose names begin so; a window that was moved as it is. */
static void put_selection(FILE *out, const char *prefix, const struct answer *view) {
    const struct question *question = view->question;
    const struct selection_times *window = &view->selection->view;
    if (question->choice.process != NULL) {
        fprintf(out, " --%sprocess ", prefix);
        shellword_put(out, question->choice.process);
    }
    if (question->choice.all) {
        fprintf(out, " --%sall-processes", prefix);
    }
    for (size_t i = 0; i < question->filters.count; i++) {
        const struct filter_given *given = &question->filters.items[i];
        if (view->is_snapped && filters_kind(given->option) == FILTERS_TIME) {
            continue;
        }
        filters_put_option(out, prefix, given);
    }
    if (view->is_snapped && window->from_ns != 0) {
        fprintf(out, " --%sfrom %" PRIu64 "ns", prefix, window->from_ns);
    }
    if (view->is_snapped && window->to_ns != UINT64_MAX) {
        fprintf(out, " --%sto %" PRIu64 "ns", prefix, window->to_ns);
    }
}

static bool are_same(const char *left, const char *right) {
    return left == right || (left != NULL && right != NULL && strcmp(left, right) == 0);
}

static bool command_differs(const struct answer *view, const struct answer *base) {
    return view->is_snapped != base->is_snapped ||
           (view->is_snapped && (view->selection->view.from_ns != base->selection->view.from_ns ||
                                 view->selection->view.to_ns != base->selection->view.to_ns)) ||
           view->question->choice.all != base->question->choice.all ||
           !are_same(view->question->choice.process, base->question->choice.process) ||
           !are_same(view->question->filters.text, base->question->filters.text);
}

/* What a shell would be told. NULL: there is no such command. */
static const char *command_spell(const struct api_call *call) {
    struct job_printing *text;
    if (call->told.is_whole) {
        return call->told.command;
    }
    if (call->told.command == NULL || !hub_is_there(call->view->source)) {
        return NULL;
    }
    text = job_print();
    fprintf(text->out, "memtrace %s", call->told.command);
    put_selection(text->out, "", call->view);
    /* Only `memtrace diff` knows of two sides, and is told of the other one if it is not the same.
     * What has another command is of one side. */
    if (call->base != NULL && strncmp(call->told.command, "diff ", 5) == 0) {
        if (command_differs(call->view, call->base)) {
            put_selection(text->out, "base-", call->base);
            fputs(question_narrows(call->base->question) ? "" : API_BASE_WHOLE, text->out);
        }
        command_put_file(text->out, call->base->source);
    }
    command_put_file(text->out, call->view->source);
    if (call->told.operand != NULL) {
        fputc(' ', text->out);
        shellword_put(text->out, call->told.operand);
    }
    return job_printed(text);
}

static void put_notes(struct jsonwriter *json, char *notes) {
    char *rest = notes;
    char *line;
    if (notes == NULL) {
        return;
    }
    jsonwriter_array(json, "notes");
    while ((line = strsep(&rest, "\n")) != NULL) {
        if (line[0] != '\0') {
            jsonwriter_string(json, NULL, line);
        }
    }
    jsonwriter_end_array(json);
}

/* All members of the envelope but "data", which is written by now. */
static void envelope_put_told(struct dispatch *self) {
    static const char *const exact[] = {"exact", "bound", "estimate", "snapped"};
    static const char *const via[] = {"model", "slices", "pass", "cache"};
    struct api_call *call = &self->call;
    struct jsonwriter *json = call->json;
    const struct model *model = call->view->model;
    const char *command = command_spell(call);
    jsonwriter_map(json, "window");
    jsonwriter_number(json, "from_ns", model->from_ns);
    if (model->to_ns == UINT64_MAX) {
        jsonwriter_string(json, "to_ns", NULL);
    } else {
        jsonwriter_number(json, "to_ns", model->to_ns);
    }
    jsonwriter_end_map(json);
    jsonwriter_string(json, "exact", exact[call->told.exact]);
    if (call->told.error != 0) {
        jsonwriter_double(json, "error", call->told.error);
    }
    jsonwriter_string(json, "via", via[call->told.via]);
    jsonwriter_double(json, "ms",
                      self->is_saved ? 0 : (double)(clock_now_ns() - self->start_ns) / 1e6);
    jsonwriter_string(json, "command", command != NULL ? command : "");
    if (call->told.sql != NULL) {
        jsonwriter_string(json, "sql", call->told.sql);
    }
    put_notes(json, call->told.notes);
}

/* ---- One request ---- */

static void tell_progress(void *context, uint64_t done, uint64_t total) {
    struct dispatch *self = context;
    int64_t now = watch_now_ms();
    char data[100];
    if (now - self->told_ms < TELL_MS && done != total) {
        return;
    }
    self->told_ms = now;
    snprintf(data, sizeof data, "{\"done\":%" PRIu64 ",\"total\":%" PRIu64 "}", done, total);
    hub_tell(self->call.hub, self->call.source, api_param(&self->call, "job"), "progress", data);
}

static void dispatch_prepare(struct dispatch *self) {
    struct api_call *call = &self->call;
    struct report_options options = {0};
    check_parameters(self);
    dispatch_take_metric(call);
    if (api_param(call, "job") != NULL) {
        call->replay.progress = tell_progress;
        call->replay.context = self;
        self->told_ms = watch_now_ms() - TELL_MS; /* the first word at once */
    }
    if ((self->route->flags & ROUTE_PLAIN) != 0) {
        return;
    }
    take_options(call, &options);
    if (call->view == NULL) {
        get_views(self);
    }
    call->report = answer_report(call->view, 0);
    call->report.options = options;
    guess_told(call, self->route);
}

/* 0 or -1: not all was written. */
static int dispatch_close_writer(struct api_call *call) {
    FILE *out = call->out;
    jsonwriter_close(call->json);
    call->json = NULL;
    call->out = NULL;
    return out == NULL || fclose(out) == 0 ? 0 : -1;
}

/* What comes before and behind the handler's own: {"data":DATA,...}. Where columns are taken, it
 * begins with eight bytes, a mark and the size of the JSON, and they follow it. */
#define COLUMNS_HEAD "MTC1\0\0\0\0"
enum { COLUMNS_HEAD_SIZE = sizeof COLUMNS_HEAD - 1 };

/* Returns how many bytes it is. */
static size_t begin_envelope(struct dispatch *self) {
    struct api_call *call = &self->call;
    if ((self->route->flags & ROUTE_PLAIN) != 0) {
        return 0;
    }
    if (call->columns != NULL) {
        fwrite(COLUMNS_HEAD, 1, COLUMNS_HEAD_SIZE, call->out);
    }
    jsonwriter_map(call->json, NULL);
    jsonwriter_name(call->json, "data");
    return (size_t)ftell(call->out);
}

/* Returns the size of the JSON; 0: there is none, or it has nothing around it. */
static uint32_t end_envelope(struct dispatch *self) {
    static const char padding[8] = "";
    struct api_call *call = &self->call;
    size_t size;
    if (call->type != NULL || (self->route->flags & ROUTE_PLAIN) != 0) {
        return 0;
    }
    envelope_put_told(self);
    jsonwriter_end_map(call->json);
    size = (size_t)ftell(call->out) - (call->columns != NULL ? COLUMNS_HEAD_SIZE : 0);
    if (self->columns.is_used) {
        fwrite(padding, 1, (8 - size % 8) % 8, call->out);
        fwrite(self->columns.bytes, 1, self->columns.size, call->out);
    }
    return (uint32_t)size;
}

/* The answer, as text in self->data. */
static void dispatch_handle(struct dispatch *self) {
    struct api_call *call = &self->call;
    size_t before = 0; /* bytes that are not to be told */
    uint32_t json_size;
    call->out = open_memstream(&self->data, &self->size);
    call->json = call->out != NULL ? jsonwriter_open(call->out, JSONWRITER_COMPACT) : NULL;
    if (call->json == NULL) {
        job_fail_memory();
    }
    before = begin_envelope(self);
    self->route->handler(call);
    json_size = end_envelope(self);
    if (dispatch_close_writer(call) != 0) {
        job_fail_memory();
    }
    if (self->columns.is_used) {
        memcpy(self->data + sizeof json_size, &json_size, sizeof json_size);
        return;
    }
    if (json_size != 0) {
        before = call->columns != NULL ? COLUMNS_HEAD_SIZE : 0;
    }
    self->size -= before;
    memmove(self->data, self->data + before, self->size);
}

static void dispatch_give(struct dispatch *self, struct reply *reply) {
    struct api_call *call = &self->call;
    *reply = (struct reply){.status = 200,
                            .bytes = self->data,
                            .size = self->size,
                            .type = call->type != NULL      ? call->type
                                    : self->columns.is_used ? COLUMNS_TYPE
                                                            : "application/json",
                            .file = call->file,
                            .file_name = call->file_name};
    self->data = NULL;
    call->file = NULL;
    call->file_name = NULL;
}

static void find_route(struct dispatch *self) {
    struct api_call *call = &self->call;
    bool is_path;
    self->path = call->request->path + sizeof API - 1;
    self->route =
        route_find(call->request->method, self->path, &call->source, &self->rest, &is_path);
    call->rest = self->rest;
    if (self->route == NULL && is_path) {
        api_refuse(call, 405, "only %s is answered here",
                   strcmp(call->request->method, "GET") == 0 ? "POST" : "GET");
    }
    if (self->route == NULL) {
        api_refuse(call, 404, "there is nothing at %s", self->path);
    }
}

/* A request is a job (analyze/base/job.h): what is allocated for it goes with it. What the reply
 * and the call take along is malloc'd. */
static void dispatch_work(void *what) {
    struct dispatch *self = what;
    if (self->route == NULL) {
        find_route(self);
    }
    dispatch_prepare(self);
    dispatch_handle(self);
    dispatch_give(self, self->reply);
}

static void dispatch_answer(struct dispatch *self, struct reply *reply) {
    struct api_call *call = &self->call;
    struct error error = {""};
    self->reply = reply;
    self->start_ns = clock_now_ns();
    call->columns = call->request->wants_columns ? &self->columns : NULL;
    if (job_run(dispatch_work, self, NULL, &error) != 0) {
        dispatch_close_writer(call);
        dispatch_problem(reply,
                         replay_is_cancelled(&call->replay) ? 503
                         : call->status != 0                ? call->status
                                                            : 500,
                         error.message);
    }
    free(self->rest);
    free(self->data);
    free(call->file_name);
    if (call->file != NULL) {
        fclose(call->file);
    }
}

void dispatch(struct hub *hub, const struct request *request, const atomic_bool *cancel,
              struct reply *reply) {
    struct dispatch self = {
        .call = {
            .hub = hub, .request = request, .body = request->body, .replay = {.cancel = cancel}}};
    dispatch_answer(&self, reply);
    hub_release(hub, self.call.base);
    hub_release(hub, self.call.view);
}

static void look_for_stream(void *what) {
    struct dispatch *self = what;
    find_route(self);
    if ((self->route->flags & ROUTE_STREAM) != 0) {
        check_parameters(self);
    }
}

bool dispatch_is_stream(const struct request *request, unsigned *source, struct reply *reply) {
    struct dispatch self = {.call = {.request = request}};
    struct error error = {""};
    bool is_right = job_run(look_for_stream, &self, NULL, &error) == 0;
    bool is_stream = self.route != NULL && (self.route->flags & ROUTE_STREAM) != 0;
    if (is_stream && !is_right) {
        dispatch_problem(reply, self.call.status, error.message);
    }
    *source = self.call.source;
    free(self.rest);
    return is_stream;
}

void dispatch_of_view(const struct dispatch_question *question, struct reply *reply) {
    const struct route own = {"GET", "", question->handler, QUEUE_INTERACTIVE, "limit", 0};
    struct request request = {.path = NULL};
    struct error error = {""};
    char *uri = NULL;
    if (asprintf(&uri, API "/r/1%s%s%s", question->path,
                 strchr(question->path, '?') != NULL ? "" : "?", question->names) < 0) {
        dispatch_problem(reply, 500, "out of memory");
        return;
    }
    if (request_parse(&request, uri, &error) != 0) {
        dispatch_problem(reply, 400, error.message);
    } else {
        struct dispatch self = {.call = {.request = &request, .view = question->view},
                                .is_saved = true,
                                .route = question->handler != NULL ? &own : NULL};
        request.method = "GET";
        self.call.replay = *question->replay;
        dispatch_answer(&self, reply);
    }
    request_free(&request);
    free(uri);
}

/* Whether the view that is asked for takes a pass over the events. */
static bool route_needs_pass(const struct request *request, const struct route *route) {
    const char *metric = request_parameter(request, "metric");
    enum metric which;
    if (metric != NULL && api_metric(metric, &which) && which >= METRIC_COUNT) {
        return true;
    }
    if (route->handler == api_timeline &&
        apitimeline_is_pass(request_parameter(request, "series"))) {
        return true;
    }
    for (size_t i = 0; i < request->parameter_count; i++) {
        const char *name = request->parameters[i].name;
        const struct option *filter = hub_filter(strncmp(name, "base-", 5) == 0 ? name + 5 : name);
        enum filters_kind kind = filter != NULL ? filters_kind(filter) : FILTERS_TIME;
        if (kind == FILTERS_BLOCKS ||
            (kind == FILTERS_PATHS && (route->flags & ROUTE_THREADS) != 0)) {
            return true;
        }
    }
    return false;
}

enum task_queue dispatch_queue(const struct request *request) {
    unsigned source;
    char *rest;
    bool is_path;
    const struct route *route =
        route_find(request->method, request->path + sizeof API - 1, &source, &rest, &is_path);
    free(rest);
    if (route == NULL || (route->flags & ROUTE_PLAIN) != 0) {
        return QUEUE_INTERACTIVE;
    }
    return route_needs_pass(request, route) ? QUEUE_PASSES : route->queue;
}
