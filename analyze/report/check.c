/* SPDX-License-Identifier: MIT */
/* check.c: see check.h. */
#include "analyze/report/check.h"

#include "analyze/base/array.h"
#include "analyze/replay/accounts.h"
#include "analyze/report/diff.h"
#include "analyze/rows/framekind.h"
#include "analyze/rows/pathwalk.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct checkscope {
    const char *name;
    enum metric metric; /* METRIC_ALLOCATIONS or METRIC_CUMULATIVE: bytes */
    /* Filled by checkscope_count(): */
    uint64_t instances;
    uint64_t most;  /* of one instance */
    uint64_t sum;   /* of all */
    uint32_t worst; /* the context with most in all of them; 0: nothing was allocated */
    uint64_t worst_share;
};

/* ---- Scopes ---- */

/* An instance that is open. */
struct instance {
    uint64_t id;
    uint32_t stream; /* of the thread that began it */
    uint64_t cost;   /* bytes, or allocations in units of 1 / ACCOUNTS_ONE */
};

struct counting {
    struct checkscope *scope;
    const struct model *model;
    struct instance *open;
    size_t open_count;
    size_t room;
    uint64_t *by_context;
};

static uint64_t in_whole(const struct counting *counting, uint64_t cost) {
    return counting->scope->metric == METRIC_ALLOCATIONS ? (cost + ACCOUNTS_ONE / 2) / ACCOUNTS_ONE
                                                         : cost;
}

static int open_instance(struct counting *counting, const struct timeorder_event *event) {
    if (array_grow(&counting->open, &counting->room, counting->open_count,
                   sizeof *counting->open) != 0) {
        return -1;
    }
    counting->open[counting->open_count++] =
        (struct instance){.id = event->event.id, .stream = event->stream};
    return 0;
}

static void close_instance(struct counting *counting, size_t index) {
    struct checkscope *scope = counting->scope;
    uint64_t cost = in_whole(counting, counting->open[index].cost);
    scope->instances++;
    scope->sum += cost;
    scope->most = cost > scope->most ? cost : scope->most;
    counting->open[index] = counting->open[--counting->open_count];
}

static int see_mark(void *context, const struct timeorder_event *event) {
    struct counting *counting = context;
    if (event->event.kind != EVENT_MARK) {
        return 0;
    }
    if (event->event.operation == MEMTRACE_MARK_SCOPE_BEGIN) {
        bool is_it =
            event->event.text != NULL && strcmp(event->event.text, counting->scope->name) == 0;
        return is_it ? open_instance(counting, event) : 0;
    }
    if (event->event.operation != MEMTRACE_MARK_SCOPE_END) {
        return 0;
    }
    for (size_t i = counting->open_count; i-- > 0;) {
        if (counting->open[i].id == event->event.id) {
            close_instance(counting, i);
            break;
        }
    }
    return 0;
}

static bool is_heap(const struct counting *counting, const struct life *life) {
    const struct model_context *context = model_find(counting->model, life->context);
    return context == NULL || context->class == MODEL_HEAP;
}

static int see_life(void *context, const struct life *life) {
    struct counting *counting = context;
    bool bytes = counting->scope->metric != METRIC_ALLOCATIONS;
    uint64_t cost;
    bool inside = false;
    if (counting->open_count == 0 || life->is_inherited || !is_heap(counting, life)) {
        return 0;
    }
    cost = bytes ? life_bytes(life) : life_units(life);
    for (size_t i = 0; i < counting->open_count; i++) {
        if (counting->open[i].stream == life->stream) {
            counting->open[i].cost += cost;
            inside = true;
        }
    }
    counting->by_context[life->context] += inside ? cost : 0;
    return 0;
}

static void find_worst(struct counting *counting) {
    uint64_t most = 0;
    for (size_t i = 0; i < counting->model->node_count; i++) {
        if (counting->by_context[i] > most) {
            most = counting->by_context[i];
            counting->scope->worst = (uint32_t)i;
        }
    }
    counting->scope->worst_share = in_whole(counting, most);
}

static int count(struct counting *counting, const struct check_subject *subject,
                 struct error *error) {
    const struct lives_visitor visitor = {
        .begin = see_life, .other = see_mark, .context = counting};
    int status = selection_visit(subject->selection, subject->whole, subject->parts, subject->names,
                                 &visitor, subject->options, error);
    if (status == 0) {
        while (counting->open_count != 0) { /* what the program's end closed */
            close_instance(counting, counting->open_count - 1);
        }
        find_worst(counting);
    }
    return status == 0 ? 0 : -1;
}

static int checkscope_count(struct checkscope *scope, const struct check_subject *subject,
                            struct error *error) {
    struct counting counting = {.scope = scope, .model = subject->whole};
    int status;
    if (subject->parts.count == 0) {
        return error_set(error,
                         "%s is a profile, and scopes are in recordings only; make one with "
                         "`memtrace record`",
                         subject->source);
    }
    if (selection_asks_ends(subject->selection)) {
        return error_set(error, "a budget for each scope counts allocations as they are made: "
                                "filters must not ask how their blocks end");
    }
    counting.by_context = calloc(subject->whole->node_count + 1, sizeof *counting.by_context);
    if (counting.by_context == NULL) {
        return error_set(error, "out of memory");
    }
    status = count(&counting, subject, error);
    free(counting.by_context);
    free(counting.open);
    return status;
}

/* ---- All budgets ---- */

/* ---- The code to blame ---- */

/* Below the working folder, as compilers and GitHub name files. */
static char *shorten(const char *file) {
    char *folder = getcwd(NULL, 0);
    size_t length = folder != NULL ? strlen(folder) : 0;
    bool below = length > 1 && strncmp(file, folder, length) == 0 && file[length] == '/';
    char *copy = strdup(below ? file + length + 1 : file);
    free(folder);
    return copy;
}

static char *spell_path(struct pathwalk walk) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL) {
        return NULL;
    }
    for (; walk.frame != NULL; pathwalk_next(&walk)) {
        char name[4096];
        fputs(names_spell(walk.frame, name, sizeof name), out);
        if (walk.frame->file != NULL) {
            fprintf(out, " at %s:%u", walk.frame->file, walk.frame->line);
        }
        fputc('\n', out);
    }
    return fclose(out) == 0 ? text : NULL;
}

/* path: the node where the call path ends. */
static int blame(struct check_result *result, const struct check_subject *subject,
                 const struct model *model, uint32_t path, uint64_t share) {
    const struct report report = {.model = model, .names = subject->names};
    struct pathwalk walk = pathwalk(&report, path);
    const struct names_frame *frame = framekind_blame(walk);
    char name[4096];
    result->share = share;
    if (frame == NULL) {
        return 0;
    }
    result->function = strdup(names_spell(frame, name, sizeof name));
    result->path = spell_path(walk);
    if (frame->file != NULL && frame->line != 0) {
        result->file = shorten(frame->file);
        result->line = result->file != NULL ? frame->line : 0;
    }
    return result->function != NULL && result->path != NULL ? 0 : -1;
}

/* ---- The three kinds ---- */

/* How much `limit` is with a tolerance. */
static uint64_t with_tolerance(uint64_t limit, double tolerance) {
    double more = (double)limit * tolerance / 100;
    return limit > UINT64_MAX / 2 ? limit : limit + (uint64_t)more;
}

static void note_estimate(struct check_result *result, const struct model *part) {
    result->is_estimate = model_is_estimate(part);
    result->error = metric_error(result->budget->metric, part);
}

static int check_total(struct check_result *result, const struct check_subject *subject,
                       const struct model *part) {
    enum metric metric = result->budget->metric;
    const struct model_context *worst = NULL;
    uint64_t most = 0;
    result->value = metric_total(metric, part).main;
    note_estimate(result, part);
    for (size_t i = 0; i < part->context_count; i++) {
        uint64_t cost = metric_cost(metric, &part->contexts[i]).main;
        if (part->contexts[i].class == MODEL_HEAP && cost > most) {
            most = cost;
            worst = &part->contexts[i];
        }
    }
    return worst != NULL ? blame(result, subject, part, worst->path, most) : 0;
}

static int check_scope(struct check_result *result, const struct check_subject *subject,
                       struct error *error) {
    struct checkscope scope = {.name = result->budget->scope, .metric = result->budget->metric};
    int status = checkscope_count(&scope, subject, error);
    if (status == 0) {
        const struct model_context *worst = model_find(subject->whole, scope.worst);
        result->instances = scope.instances;
        result->value = scope.most;
        result->sum = scope.sum;
        if (worst != NULL) {
            status = blame(result, subject, subject->whole, worst->path, scope.worst_share);
        }
    }
    return status;
}

static int blame_growth(struct check_result *result, const struct diff *diff,
                        const struct check_subject *subject) {
    const struct diff_row *row = diff->row_count != 0 ? &diff->rows[0] : NULL;
    int64_t change = row != NULL ? diff_change(row->costs, result->budget->metric) : 0;
    struct report report = {0};
    uint32_t path;
    if (change <= 0 || !row->present[1]) {
        return 0;
    }
    path = diff_path(diff, row, &report);
    return blame(result, subject, report.model, path, (uint64_t)change);
}

static int check_growth(struct check_result *result, const struct check_subject *subject,
                        const struct model *part, const struct check_subject *baseline,
                        const struct model *base) {
    const struct diff_side sides[2] = {
        {base, baseline->names, baseline->source, NULL, baseline->suppressions},
        {part, subject->names, subject->source, NULL, subject->suppressions}};
    const struct diff_options options = {.line_tolerance = DIFF_ANY_LINE};
    enum metric metric = result->budget->metric;
    struct diff diff;
    int status;
    if (diff_make(&diff, sides, &options) != 0) {
        return -1;
    }
    diff_sort(&diff, metric);
    result->before = diff.totals[0].of[metric];
    result->value = diff.totals[1].of[metric];
    status = blame_growth(result, &diff, subject);
    diff_free(&diff);
    return status;
}

/* ---- */

static int narrow(const struct check_budget *budget, const struct check_subject *subject,
                  struct error *error) {
    for (size_t i = 0; i < budget->where_count; i++) {
        const struct check_where *where = &budget->where[i];
        if (selection_add_pattern(subject->selection, where->part, where->negative, where->regex,
                                  error) != 0) {
            return -1;
        }
    }
    if (budget->kind != CHECK_PER_SCOPE && budget->scope != NULL) {
        subject->selection->scope = budget->scope;
    }
    return 0;
}

/* The selected part; the caller frees *made. */
static const struct model *part_of(const struct check_subject *subject, struct model **made,
                                   struct error *error) {
    *made = NULL;
    if (selection_is_all(subject->selection)) {
        return subject->whole;
    }
    *made = selection_model(subject->selection, subject->whole, subject->parts, subject->names,
                            subject->options, error);
    if (*made != NULL && selection_turn_to_heap(subject->selection, *made) != 0) {
        error_set(error, "out of memory");
        model_free(*made);
        *made = NULL;
    }
    return *made;
}

/* Leaks, without those that are suppressed; what a running program holds is none. */
static int check_leaks(struct check_result *result, const struct check_subject *subject,
                       const struct model *part, struct error *error) {
    struct model applied;
    int status;
    if (subject->suppressions == NULL || part->live || part->to_ns != UINT64_MAX) {
        return check_total(result, subject, part);
    }
    if (suppressions_apply(subject->suppressions, part, subject->names, &applied, error) != 0) {
        return -1;
    }
    status = check_total(result, subject, &applied);
    suppressions_applied_free(&applied);
    return status;
}

static int count_total(struct check_result *result, const struct check_subject *subject,
                       struct error *error) {
    struct model *made;
    const struct model *part = part_of(subject, &made, error);
    int status = -1;
    if (part != NULL) {
        status = result->budget->metric == METRIC_LEAKED ? check_leaks(result, subject, part, error)
                                                         : check_total(result, subject, part);
    }
    model_free(made);
    return status;
}

static int count_growth(struct check_result *result, const struct check_subject *subject,
                        const struct check_subject *baseline, struct error *error) {
    struct model *made[2] = {NULL, NULL};
    const struct model *base = part_of(baseline, &made[0], error);
    const struct model *part = base != NULL ? part_of(subject, &made[1], error) : NULL;
    int status = part != NULL ? check_growth(result, subject, part, baseline, base) : -1;
    if (part != NULL) {
        note_estimate(result, part);
        result->is_estimate |= model_is_estimate(base);
    }
    model_free(made[0]);
    model_free(made[1]);
    return status;
}

static void judge(struct check_result *result, double tolerance) {
    const struct check_budget *budget = result->budget;
    uint64_t limit = budget->limit;
    if (budget->kind == CHECK_GROWTH) {
        uint64_t more =
            budget->is_percent ? (uint64_t)((double)result->before * budget->percent / 100) : limit;
        limit = result->before > UINT64_MAX - more ? UINT64_MAX : result->before + more;
    }
    result->most = with_tolerance(limit, tolerance);
    result->met = result->value <= result->most;
}

int check_budget(const struct check_budget *budget, const struct check_subject *subject,
                 const struct check_subject *baseline, double tolerance,
                 struct check_result *result, struct error *error) {
    int status;
    error_set(error, "out of memory");
    *result = (struct check_result){.budget = budget};
    status = narrow(budget, subject, error);
    if (status == 0 && budget->kind == CHECK_GROWTH) {
        status = narrow(budget, baseline, error);
    }
    if (status == 0) {
        status = budget->kind == CHECK_TOTAL       ? count_total(result, subject, error)
                 : budget->kind == CHECK_PER_SCOPE ? check_scope(result, subject, error)
                                                   : count_growth(result, subject, baseline, error);
    }
    if (status != 0) {
        check_free(result);
        return -1;
    }
    judge(result, tolerance);
    return 0;
}

void check_free(struct check_result *result) {
    free(result->function);
    free(result->file);
    free(result->path);
    result->function = result->file = result->path = NULL;
}

void check_free_budget(struct check_budget *budget) {
    for (size_t i = 0; i < budget->where_count; i++) {
        free(budget->where[i].regex);
    }
    free(budget->where);
    free(budget->scope);
    free(budget->baseline);
    free(budget->text);
    free(budget->origin);
}
