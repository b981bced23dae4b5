/* SPDX-License-Identifier: MIT */
/* check.c: see check.h. */
#include "analyze/report/check.h"

#include "analyze/base/job.h"
#include "analyze/base/pathname.h"
#include "analyze/replay/accounts.h"
#include "analyze/report/diff.h"
#include "analyze/rows/framekind.h"
#include "analyze/rows/jsonwriter.h"
#include "analyze/rows/number.h"
#include "analyze/rows/pathwalk.h"
#include "analyze/rows/safetext.h"
#include "analyze/rows/style.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Scopes ---- */

/* An instance that is open. */
struct instance {
    uint64_t id;
    uint32_t stream; /* of the thread that began it */
    uint64_t cost;   /* bytes, or allocations in units of 1 / ACCOUNTS_ONE */
};

struct counting {
    const struct check_budget *budget;
    const struct model *model;
    struct instance *open;
    size_t open_count;
    size_t room;
    uint64_t *by_context;
    uint64_t instances;
    uint64_t most; /* of one instance */
    uint64_t sum;  /* of all */
};

static uint64_t scope_whole(const struct counting *counting, uint64_t cost) {
    return counting->budget->metric == METRIC_ALLOCATIONS ? slice_whole_count(cost) : cost;
}

static void scope_close(struct counting *counting, size_t index) {
    uint64_t cost = scope_whole(counting, counting->open[index].cost);
    counting->instances++;
    counting->sum += cost;
    counting->most = cost > counting->most ? cost : counting->most;
    counting->open[index] = counting->open[--counting->open_count];
}

static int scope_see_mark(void *context, const struct timeorder_event *event) {
    struct counting *counting = context;
    const char *name = event->event.text;
    if (event->event.kind != EVENT_MARK) {
        return 0;
    }
    if (event->event.operation == MEMTRACE_MARK_SCOPE_BEGIN && name != NULL &&
        strcmp(name, counting->budget->scope) == 0) {
        job_grow(&counting->open, &counting->room, counting->open_count, sizeof *counting->open);
        counting->open[counting->open_count++] =
            (struct instance){.id = event->event.id, .stream = event->stream};
    }
    for (size_t i = counting->open_count;
         event->event.operation == MEMTRACE_MARK_SCOPE_END && i-- > 0;) {
        if (counting->open[i].id == event->event.id) {
            scope_close(counting, i);
            break;
        }
    }
    return 0;
}

static int scope_see_life(void *context, const struct life *life) {
    struct counting *counting = context;
    const struct model_context *of;
    uint64_t cost;
    bool inside = false;
    if (counting->open_count == 0 || life->is_inherited) {
        return 0;
    }
    of = model_find(counting->model, life->context);
    if (of != NULL && of->class != MODEL_HEAP) {
        return 0;
    }
    cost = counting->budget->metric != METRIC_ALLOCATIONS ? life_bytes(life) : life_units(life);
    for (size_t i = 0; i < counting->open_count; i++) {
        if (counting->open[i].stream == life->stream) {
            counting->open[i].cost += cost;
            inside = true;
        }
    }
    counting->by_context[life->context] += inside ? cost : 0;
    return 0;
}

/* ---- The code to blame ---- */

/* Below the working folder, as compilers and GitHub name files. */
static const char *check_blame_file(const char *file) {
    char folder[4096];
    size_t length = getcwd(folder, sizeof folder) != NULL ? strlen(folder) : 0;
    bool below = length > 1 && strncmp(file, folder, length) == 0 && file[length] == '/';
    return job_string(below ? file + length + 1 : file);
}

/* path: the node where the call path ends. */
static void check_blame(struct check_result *result, const struct check_subject *subject,
                        const struct model *model, uint32_t path, uint64_t share) {
    const struct report report = {.model = model, .names = subject->names};
    struct pathwalk walk = pathwalk(&report, path);
    const struct names_frame *frame = framekind_blame(walk);
    struct job_printing *printing;
    char name[4096];
    result->share = share;
    if (frame == NULL) {
        return;
    }
    result->function = job_string(names_spell(frame, name, sizeof name));
    printing = job_print();
    for (; walk.frame != NULL; pathwalk_next(&walk)) {
        fputs(names_spell(walk.frame, name, sizeof name), printing->out);
        if (walk.frame->file != NULL) {
            fprintf(printing->out, " at %s:%u", walk.frame->file, walk.frame->line);
        }
        fputc('\n', printing->out);
    }
    result->path = job_printed(printing);
    if (frame->file != NULL && frame->line != 0) {
        result->file = check_blame_file(frame->file);
        result->line = frame->line;
    }
}

/* ---- The three kinds ---- */

/* How much `limit` is with a tolerance. */
static uint64_t check_with_tolerance(uint64_t limit, double tolerance) {
    double more = (double)limit * tolerance / 100;
    return limit > UINT64_MAX / 2 ? limit : limit + (uint64_t)more;
}

static void check_note_estimate(struct check_result *result, const struct model *part) {
    result->is_estimate = model_is_estimate(part);
    result->error = metric_error(result->budget->metric, part);
}

static void check_total(struct check_result *result, const struct check_subject *subject,
                        const struct model *part) {
    enum metric metric = result->budget->metric;
    const struct model_context *worst = NULL;
    uint64_t most = 0;
    result->value = metric_total(metric, part).main;
    check_note_estimate(result, part);
    for (size_t i = 0; i < part->context_count; i++) {
        uint64_t cost = metric_cost(metric, &part->contexts[i]).main;
        if (part->contexts[i].class == MODEL_HEAP && cost > most) {
            most = cost;
            worst = &part->contexts[i];
        }
    }
    if (worst != NULL) {
        check_blame(result, subject, part, worst->path, most);
    }
}

static void check_scope(struct check_result *result, const struct check_subject *subject) {
    struct counting counting = {.budget = result->budget, .model = subject->whole};
    const struct lives_visitor visitor = {
        .begin = scope_see_life, .other = scope_see_mark, .context = &counting};
    const struct model_context *worst;
    struct error error;
    uint32_t most = 0; /* the context with most in all instances; 0: nothing was allocated */
    if (subject->parts.count == 0) {
        job_fail("%s is a profile, and scopes are in recordings only; make one with "
                 "`memtrace record`",
                 subject->source);
    }
    if (selection_asks_ends(subject->selection)) {
        job_fail("a budget for each scope counts allocations as they are made: "
                 "filters must not ask how their blocks end");
    }
    counting.by_context = job_array(subject->whole->node_count + 1, sizeof *counting.by_context);
    job_check(selection_visit(subject->selection, subject->whole, subject->parts, subject->names,
                              &visitor, subject->options, &error),
              &error);
    while (counting.open_count != 0) { /* what the program's end closed */
        scope_close(&counting, counting.open_count - 1);
    }
    for (size_t i = 0; i < subject->whole->node_count; i++) {
        most = counting.by_context[i] > counting.by_context[most] ? (uint32_t)i : most;
    }
    result->instances = counting.instances;
    result->value = counting.most;
    result->sum = counting.sum;
    worst = model_find(subject->whole, most);
    if (worst != NULL) {
        check_blame(result, subject, subject->whole, worst->path,
                    scope_whole(&counting, counting.by_context[most]));
    }
}

static void check_growth(struct check_result *result, const struct check_subject *subject,
                         const struct model *part, const struct check_subject *baseline,
                         const struct model *base) {
    const struct diff_side sides[2] = {
        {base, baseline->names, baseline->source, NULL, baseline->suppressions},
        {part, subject->names, subject->source, NULL, subject->suppressions}};
    const struct diff_options options = {.line_tolerance = DIFF_ANY_LINE};
    enum metric metric = result->budget->metric;
    struct diff diff = diff_make(sides, &options);
    const struct diff_row *row = diff.rows;
    diff_sort(&diff, metric);
    result->before = diff.totals[0].of[metric];
    result->value = diff.totals[1].of[metric];
    if (diff.row_count != 0 && diff_change(row->costs, metric) > 0 && row->present[1]) {
        struct report report = {0};
        uint32_t path = diff_path(&diff, row, &report);
        check_blame(result, subject, report.model, path, (uint64_t)diff_change(row->costs, metric));
    }
    check_note_estimate(result, part);
    result->is_estimate |= model_is_estimate(base);
}

/* ---- What of a file a budget is about ---- */

static void check_narrow(const struct check_budget *budget, const struct check_subject *subject) {
    struct error error;
    for (size_t i = 0; i < budget->where_count; i++) {
        const struct check_where *where = &budget->where[i];
        job_check(selection_add_pattern(subject->selection, where->part, where->negative,
                                        where->regex, &error),
                  &error);
    }
    if (budget->kind != CHECK_PER_SCOPE && budget->scope != NULL) {
        subject->selection->scope = budget->scope;
    }
}

/* The selected part. Ended early, since a recording may have many budgets. */
struct part {
    const struct model *model;
    struct model *made; /* NULL: it is the whole */
};

static void part_end(void *what) {
    struct part *part = what;
    model_free(part->made);
    part->made = NULL;
}

static struct part *part_begin(const struct check_subject *subject) {
    struct part *part = job_alloc(sizeof *part);
    struct error error = {"out of memory"};
    if (selection_is_all(subject->selection)) {
        part->model = subject->whole;
        return part;
    }
    part->made = selection_model(subject->selection, subject->whole, subject->parts, subject->names,
                                 subject->options, &error);
    job_check(part->made != NULL ? 0 : -1, &error);
    job_undo(part_end, part);
    selection_turn_to_heap(subject->selection, part->made);
    part->model = part->made;
    return part;
}

static void check_count_total(struct check_result *result, const struct check_subject *subject) {
    struct part *part = part_begin(subject);
    const struct model *model = part->model;
    /* Leaks, without those that are suppressed; what a running program holds is none. */
    if (result->budget->metric == METRIC_LEAKED && subject->suppressions != NULL && !model->live &&
        model->to_ns == UINT64_MAX) {
        model = suppressions_leave(subject->suppressions, model, subject->names);
    }
    check_total(result, subject, model);
    part_end(part);
}

static void check_judge(struct check_result *result, double tolerance) {
    const struct check_budget *budget = result->budget;
    uint64_t limit = budget->limit;
    if (budget->kind == CHECK_GROWTH) {
        uint64_t more =
            budget->is_percent ? (uint64_t)((double)result->before * budget->percent / 100) : limit;
        limit = result->before > UINT64_MAX - more ? UINT64_MAX : result->before + more;
    }
    result->most = check_with_tolerance(limit, tolerance);
    result->met = result->value <= result->most;
}

void check_budget(const struct check_budget *budget, const struct check_subject *subject,
                  const struct check_subject *baseline, double tolerance,
                  struct check_result *result) {
    *result = (struct check_result){.budget = budget};
    check_narrow(budget, subject);
    if (budget->kind == CHECK_TOTAL) {
        check_count_total(result, subject);
    } else if (budget->kind == CHECK_PER_SCOPE) {
        check_scope(result, subject);
    } else {
        struct part *base;
        struct part *part;
        check_narrow(budget, baseline);
        base = part_begin(baseline);
        part = part_begin(subject);
        check_growth(result, subject, part->model, baseline, base->model);
        part_end(base);
        part_end(part);
    }
    check_judge(result, tolerance);
}

/* ---- What is written: lines that editors, compilers' users and GitHub understand, XML, JSON ----
 */

static const char *check_amount(struct number *number, enum metric metric, uint64_t value) {
    return metric_main_text(metric, number, (struct cost){.main = value});
}

/* "8.5 KiB (8,704 bytes)" where the short form is not the whole truth. */
static void check_put_exact(FILE *out, enum metric metric, uint64_t value) {
    struct number number;
    fputs(check_amount(&number, metric, value), out);
    if (metric_main_is_bytes(metric) && value >= 1024) {
        fprintf(out, " (%s)", number_items(&number, value, "byte"));
    }
}

static void check_put_values(FILE *out, const struct check_result *result) {
    const struct check_budget *budget = result->budget;
    enum metric metric = budget->metric;
    struct number number;
    fputs(metric == METRIC_TEMPORARY ? "temporary allocations" : metric_word(metric), out);
    fputs(metric == METRIC_ALLOCATIONS || metric == METRIC_TEMPORARY ? " are " : " is ", out);
    check_put_exact(out, metric, result->value);
    if (budget->kind == CHECK_PER_SCOPE) {
        fprintf(out, " in one of %s scopes %s", number_count(&number, result->instances),
                budget->scope);
    }
    if (budget->kind == CHECK_GROWTH) {
        fputs(" and was ", out);
        check_put_exact(out, metric, result->before);
    }
    if (result->is_estimate) {
        fputs(" (an estimate", out);
        if (result->error > 0) {
            fprintf(out, ", +- %s", check_amount(&number, metric, (uint64_t)result->error));
        }
        fputc(')', out);
    }
    fputs(", more than ", out);
    check_put_exact(out, metric, result->most);
}

static void check_put_blame(FILE *out, const struct check_result *result) {
    struct number number;
    char brief[4096];
    if (result->function != NULL) {
        fprintf(out, ": %s%s in %s", result->budget->kind == CHECK_GROWTH ? "+" : "",
                check_amount(&number, result->budget->metric, result->share),
                shortname(result->function, brief, sizeof brief));
    }
}

static const char *check_message(const struct check_result *result) {
    const struct check_budget *budget = result->budget;
    struct job_printing *printing = job_print();
    check_put_values(printing->out, result);
    check_put_blame(printing->out, result);
    fprintf(printing->out, " [%s%s%s]", budget->text, budget->origin[0] != '\0' ? ", " : "",
            budget->origin);
    return job_printed(printing);
}

/* ---- JUnit ---- */

/* Text and attributes of XML, which is UTF-8 and knows no control characters. */
static void check_put_xml(FILE *out, const char *text) {
    while (*text != '\0') {
        unsigned char byte = (unsigned char)*text;
        size_t length = utf8_length(text);
        bool is_safe;
        safetext_step(text, &is_safe);
        if (strchr("<>&\"'\n", byte) != NULL) {
            fprintf(out, "&#%u;", byte);
        } else if (length == 0) {
            fputs(UTF8_BAD, out);
        } else if (is_safe) {
            fwrite(text, 1, length, out);
        } else {
            fputc('?', out);
        }
        text += length != 0 ? length : 1;
    }
}

static void check_put_attribute(FILE *out, const char *name, const char *value) {
    fprintf(out, " %s=\"", name);
    check_put_xml(out, value);
    fputc('"', out);
}

static void check_put_case(const struct check_report *report, const struct check_result *result) {
    FILE *out = report->out;
    fputs("    <testcase", out);
    check_put_attribute(out, "classname", pathname_base(report->executable));
    check_put_attribute(out, "name", result->budget->text);
    if (result->line != 0 && !result->met) {
        char line[16];
        snprintf(line, sizeof line, "%u", result->line);
        check_put_attribute(out, "file", result->file);
        check_put_attribute(out, "line", line);
    }
    check_put_attribute(out, "time", "0");
    if (result->met) {
        fputs("/>\n", out);
    } else {
        const char *message = check_message(result);
        fputs(">\n      <failure", out);
        check_put_attribute(out, "message", message);
        check_put_attribute(out, "type", metric_name(result->budget->metric));
        fputc('>', out);
        check_put_xml(out, result->path != NULL ? result->path : message);
        fputs("</failure>\n    </testcase>\n", out);
    }
}

static size_t check_count_broken(const struct check_report *report) {
    size_t broken = 0;
    for (size_t i = 0; i < report->count; i++) {
        broken += !report->results[i].met;
    }
    return broken;
}

static void check_write_junit(const struct check_report *report) {
    size_t broken = check_count_broken(report);
    fprintf(report->out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<testsuites tests=\"%zu\" failures=\"%zu\" errors=\"0\">\n"
            "  <testsuite name=\"memtrace check\" tests=\"%zu\" failures=\"%zu\" errors=\"0\" "
            "skipped=\"0\" time=\"0\">\n",
            report->count, broken, report->count, broken);
    for (size_t i = 0; i < report->count; i++) {
        check_put_case(report, &report->results[i]);
    }
    fputs("  </testsuite>\n</testsuites>\n", report->out);
}

/* ---- JSON ---- */

static void check_put_numbers(struct jsonwriter *json, const struct check_result *result) {
    const struct check_budget *budget = result->budget;
    jsonwriter_number(json, "value", result->value);
    jsonwriter_number(json, "most", result->most);
    if (result->is_estimate) {
        jsonwriter_double(json, "standard_error", result->error);
    }
    if (budget->kind == CHECK_GROWTH) {
        jsonwriter_string(json, "baseline", budget->baseline);
        jsonwriter_number(json, "before", result->before);
    }
    if (budget->kind == CHECK_PER_SCOPE) {
        jsonwriter_string(json, "scope", budget->scope);
        jsonwriter_number(json, "instances", result->instances);
        jsonwriter_number(json, "sum", result->sum);
    }
}

static void check_put_worst(struct jsonwriter *json, const struct check_result *result) {
    if (result->function == NULL) {
        return;
    }
    jsonwriter_map(json, "worst");
    jsonwriter_number(json, "share", result->share);
    jsonwriter_string(json, "function", result->function);
    jsonwriter_string(json, "file", result->file);
    jsonwriter_number(json, "line", result->line);
    jsonwriter_string(json, "path", result->path);
    jsonwriter_end_map(json);
}

static void check_put_result(struct jsonwriter *json, const struct check_result *result) {
    static const char *const kinds[] = {"total", "scope", "growth"};
    const struct check_budget *budget = result->budget;
    jsonwriter_map(json, NULL);
    jsonwriter_string(json, "budget", budget->text);
    jsonwriter_string(json, "origin", budget->origin[0] != '\0' ? budget->origin : NULL);
    jsonwriter_string(json, "kind", kinds[budget->kind]);
    jsonwriter_string(json, "metric", metric_name(budget->metric));
    jsonwriter_bool(json, "met", result->met);
    check_put_numbers(json, result);
    jsonwriter_string(json, "message", result->met ? NULL : check_message(result));
    check_put_worst(json, result);
    jsonwriter_end_map(json);
}

static void check_write_json(const struct check_report *report) {
    struct jsonwriter *json = jsonwriter_begin(report->out, JSONWRITER_INDENTED);
    jsonwriter_map(json, NULL);
    jsonwriter_number(json, "version", 1);
    jsonwriter_string(json, "source", report->source);
    jsonwriter_string(json, "program", report->executable);
    jsonwriter_bool(json, "met", check_count_broken(report) == 0);
    jsonwriter_array(json, "budgets");
    for (size_t i = 0; i < report->count; i++) {
        check_put_result(json, &report->results[i]);
    }
    jsonwriter_end_array(json);
    jsonwriter_end_map(json);
    fputc('\n', report->out);
}

/* ---- One line each ---- */

static void check_put_gcc(const struct check_report *report, const struct check_result *result,
                          const char *message) {
    if (result->line != 0) {
        put_safe(report->out, result->file);
        fprintf(report->out, ":%u", result->line);
    } else {
        put_safe(report->out, report->source);
    }
    fputs(": error: ", report->out);
    put_safe(report->out, message);
    fputc('\n', report->out);
}

/* A workflow command: % and ends of lines are escaped, in its properties also : and ,. */
static void check_put_escaped(FILE *out, const char *text, bool property) {
    while (*(text = put_safe_until(out, text, property ? "%\r\n:," : "%\r\n")) != '\0') {
        fprintf(out, "%%%02X", (unsigned char)*text++);
    }
}

static void check_put_github(const struct check_report *report, const struct check_result *result,
                             const char *message) {
    fputs("::error ", report->out);
    if (result->line != 0) {
        fputs("file=", report->out);
        check_put_escaped(report->out, result->file, true);
        fprintf(report->out, ",line=%u,", result->line);
    }
    fputs("title=", report->out);
    check_put_escaped(report->out, result->budget->text, true);
    fputs("::", report->out);
    check_put_escaped(report->out, message, false);
    fputc('\n', report->out);
}

static void check_write_lines(const struct check_report *report, enum check_format format) {
    for (size_t i = 0; i < report->count; i++) {
        const struct check_result *result = &report->results[i];
        if (!result->met) {
            (format == CHECK_GITHUB ? check_put_github : check_put_gcc)(report, result,
                                                                        check_message(result));
        }
    }
    if (check_count_broken(report) == 0) {
        struct number count;
        put_safe(report->out, report->source);
        fprintf(report->out, ": %s met\n", number_items(&count, report->count, "budget"));
    }
}

void check_write(const struct check_report *report, enum check_format format) {
    if (format == CHECK_JUNIT) {
        check_write_junit(report);
    } else if (format == CHECK_JSON) {
        check_write_json(report);
    } else {
        check_write_lines(report, format);
    }
}
