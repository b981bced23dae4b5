/* SPDX-License-Identifier: MIT */
/* findings.c: the list of findings, and who is to blame. See findings.h. */
#include "analyze/report/findings.h"

#include "analyze/base/array.h"
#include "analyze/base/numbermap.h"
#include "analyze/base/pathname.h"
#include "analyze/model/names.h"
#include "analyze/report/reports.h"
#include "analyze/rows/framekind.h"
#include "analyze/rows/safetext.h"
#include "analyze/rows/style.h"
#include "analyze/rows/table.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ---- The list ---- */

char *findings_text(const char *format, ...) {
    va_list arguments;
    char *text;
    int length;
    va_start(arguments, format);
    length = vasprintf(&text, format, arguments);
    va_end(arguments);
    return length >= 0 ? text : NULL;
}

static void free_one(struct finding *finding) {
    free(finding->title);
    free(finding->sentence);
    free(finding->view);
    free(finding->options);
}

int findings_add(struct findings *findings, struct finding finding) {
    if (finding.title == NULL || finding.sentence == NULL || finding.view == NULL ||
        finding.options == NULL ||
        array_grow(&findings->items, &findings->room, findings->count, sizeof finding) != 0) {
        free_one(&finding);
        return -1;
    }
    findings->items[findings->count++] = finding;
    return 0;
}

void findings_free(struct findings *findings) {
    for (size_t i = 0; i < findings->count; i++) {
        free_one(&findings->items[i]);
    }
    free(findings->items);
    *findings = (struct findings){0};
}

const char *findings_kind_name(enum finding_kind kind) {
    static const char *const names[FINDING_KINDS] = {
        [FINDING_LEAK] = "leak",
        [FINDING_GROWTH] = "growth",
        [FINDING_TEMPORARY] = "temporary",
        [FINDING_SLACK] = "slack",
        [FINDING_PINNED] = "pinned",
        [FINDING_REALLOC] = "realloc",
        [FINDING_FOREIGN] = "foreign",
        [FINDING_PEAK] = "peak",
        [FINDING_FRAGMENTATION] = "fragmentation",
    };
    return names[kind];
}

static int gravest_first(const void *left, const void *right) {
    const struct finding *a = left;
    const struct finding *b = right;
    if (a->weight != b->weight) {
        return a->weight < b->weight ? 1 : -1;
    }
    return a->kind != b->kind ? (a->kind < b->kind ? -1 : 1) : strcmp(a->title, b->title);
}

int findings_make(struct findings *findings, const struct findings_wish *wish,
                  struct error *error) {
    int result;
    *findings = (struct findings){0};
    result = findings_of_sums(findings, wish, error);
    if (result == 0) {
        result = findings_of_passes(findings, wish, error);
    }
    if (findings->count != 0) {
        qsort(findings->items, findings->count, sizeof *findings->items, gravest_first);
    }
    return result;
}

/* ---- Who is to blame ---- */

struct blaming {
    struct culprit *culprits;
    size_t count, room;
    struct numbermap places; /* by function: number + 1 */
};

static struct culprit *culprit_of(struct blaming *blaming, const struct names_frame *frame) {
    uint64_t key = frame != NULL ? frame->function_key : 0;
    size_t place = (size_t)(uintptr_t)numbermap_get(&blaming->places, key);
    if (place != 0) {
        return &blaming->culprits[place - 1];
    }
    if (array_grow(&blaming->culprits, &blaming->room, blaming->count, sizeof *blaming->culprits) !=
            0 ||
        numbermap_put(&blaming->places, key, (void *)(blaming->count + 1)) != 0) {
        return NULL;
    }
    blaming->culprits[blaming->count] = (struct culprit){.frame = frame, .is_one_line = true};
    return &blaming->culprits[blaming->count++];
}

static int blame(struct blaming *blaming, const struct names_frame *frame,
                 const struct model_context *context, struct cost cost) {
    struct culprit *culprit = culprit_of(blaming, frame);
    if (culprit == NULL || array_grow(&culprit->contexts, &culprit->room, culprit->paths,
                                      sizeof *culprit->contexts) != 0) {
        return -1;
    }
    culprit->contexts[culprit->paths++] = context->id;
    if (cost.main > culprit->dearest) { /* stands first, and its line is the culprit's */
        uint32_t id = culprit->contexts[0];
        culprit->contexts[0] = context->id;
        culprit->contexts[culprit->paths - 1] = id;
        culprit->dearest = cost.main;
    }
    culprit->is_one_line &= frame == NULL || frame->place_key == culprit->frame->place_key;
    metric_add(&culprit->cost, cost);
    return 0;
}

static int dearest_first(const void *left, const void *right) {
    const struct culprit *a = left;
    const struct culprit *b = right;
    if (a->cost.main != b->cost.main) {
        return a->cost.main < b->cost.main ? 1 : -1;
    }
    return (a->contexts[0] > b->contexts[0]) - (a->contexts[0] < b->contexts[0]);
}

struct culprit *culprits_make(const struct report *report, const struct model *model,
                              enum metric metric, size_t *count) {
    struct report of = *report;
    struct blaming blaming = {0};
    int result = 0;
    of.model = model;
    for (size_t i = 0; result == 0 && i < model->context_count; i++) {
        const struct model_context *context = &model->contexts[i];
        struct cost cost = metric_cost(metric, context);
        if (context->class == MODEL_HEAP && cost.main != 0) {
            result = blame(&blaming, framekind_blame(pathwalk(&of, context->path)), context, cost);
        }
    }
    numbermap_free(&blaming.places);
    *count = blaming.count;
    if (result != 0) {
        culprits_free(blaming.culprits, blaming.count);
        return NULL;
    }
    if (blaming.count == 0) {
        return calloc(1, sizeof *blaming.culprits);
    }
    qsort(blaming.culprits, blaming.count, sizeof *blaming.culprits, dearest_first);
    return blaming.culprits;
}

void culprits_free(struct culprit *culprits, size_t count) {
    for (size_t i = 0; culprits != NULL && i < count; i++) {
        free(culprits[i].contexts);
    }
    free(culprits);
}

uint64_t culprit_cost(const struct culprit *culprit, const struct model *model,
                      enum metric metric) {
    uint64_t sum = 0;
    for (size_t i = 0; i < culprit->paths; i++) {
        const struct model_context *context = model_find(model, culprit->contexts[i]);
        sum += context != NULL ? metric_cost(metric, context).main : 0;
    }
    return sum;
}

const char *culprit_name(const struct report *report, const struct culprit *culprit, char *buffer) {
    char name[4096];
    if (culprit->frame == NULL) {
        strcpy(buffer, "unknown code");
        return buffer;
    }
    names_spell(culprit->frame, name, sizeof name);
    if (culprit->frame->function == NULL || report->options.full_names) {
        snprintf(buffer, CULPRIT_NAME, "%.300s", name);
    } else {
        shortname(name, buffer, CULPRIT_NAME);
    }
    return buffer;
}

const char *culprit_place(const struct report *report, const struct culprit *culprit,
                          char *buffer) {
    size_t used;
    culprit_name(report, culprit, buffer);
    used = strlen(buffer);
    if (culprit->frame != NULL && culprit->frame->file != NULL && culprit->is_one_line) {
        snprintf(buffer + used, CULPRIT_NAME - used, " at %s:%u",
                 pathname_base(culprit->frame->file), culprit->frame->line);
    }
    return buffer;
}

/* ---- What shows it ---- */

/* "^name$", in which nothing means more than itself. */
static void put_pattern(FILE *out, const char *name) {
    fputc('^', out);
    for (; *name != '\0'; name++) {
        if (strchr("\\^$.[]|()*+?{}", *name) != NULL) {
            fputc('\\', out);
        }
        fputc(*name, out);
    }
    fputc('$', out);
}

static void put_encoded(FILE *out, const char *text) {
    for (; *text != '\0'; text++) {
        if (isalnum((unsigned char)*text) || strchr("-._~", *text) != NULL) {
            fputc(*text, out);
        } else {
            fprintf(out, "%%%02X", (unsigned char)*text);
        }
    }
}

/* The same filter as a part of an address, and as an option. NULL: out of memory. */
static char *join(const char *before, const char *name, const char *value, bool is_option) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL) {
        return NULL;
    }
    fprintf(out, is_option ? "%s --%s " : "%s&%s=", before, name);
    if (is_option) {
        shellword_put(out, value);
    } else {
        put_encoded(out, value);
    }
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

static char *pattern_of(const char *name) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL) {
        return NULL;
    }
    put_pattern(out, name);
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

void culprit_show(struct finding *finding, const struct report *report,
                  const struct culprit *culprit, const char *view, const char *options) {
    bool is_path =
        culprit->paths == 1 || culprit->frame == NULL || culprit->frame->function == NULL;
    uint64_t hash = model_hash(report->model, culprit->contexts[0]);
    char *value =
        is_path ? findings_text("%016" PRIx64, hash) : pattern_of(culprit->frame->function);
    const char *name = is_path ? "path" : "function";
    finding->hash = culprit->paths == 1 ? hash : 0;
    if (value != NULL) {
        finding->view = join(view, name, value, false);
        finding->options = join(options, name, value, true);
    }
    free(value);
}

/* ---- As a report ---- */

static void put_command(FILE *out, const struct report *report, const struct finding *finding) {
    fputs("memtrace report ", out);
    shellword_put(out, report->source);
    fprintf(out, "%s%s %s", report->selected != NULL ? " " : "",
            report->selected != NULL ? report->selected : "", finding->options);
}

char *findings_command(const struct report *report, const struct finding *finding) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL) {
        return NULL;
    }
    put_command(out, report, finding);
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

enum { RANK_INDENT = 5 };

static int draw_one(const struct report *report, const struct finding *finding, size_t rank) {
    char *command = findings_command(report, finding);
    char *text;
    if (command == NULL) {
        return -1;
    }
    fprintf(report->out, "%3zu. %s", rank, style_on(report, STYLE_NAME));
    print_safe(report->out, "%s", finding->title);
    fprintf(report->out, "%s\n", style_off(report));
    text = findings_text("%*s%s", RANK_INDENT, "", finding->sentence);
    if (text != NULL) {
        style_lines(report, make_safe(text), RANK_INDENT);
        fputc('\n', report->out);
    }
    fprintf(report->out, "%*s%s", RANK_INDENT, "", style_on(report, STYLE_DIM));
    print_safe(report->out, "%s", command); /* what is to be pasted stays in one piece */
    fprintf(report->out, "%s\n", style_off(report));
    free(command);
    free(text);
    return text != NULL ? 0 : -1;
}

static size_t count_shown(const struct report *report, const struct findings *findings) {
    size_t limit = report->options.limit;
    return limit != 0 && limit < findings->count ? limit : findings->count;
}

static int draw(const struct report *report, const struct findings *findings) {
    int result = 0;
    table_drawing_begin(report, "Findings");
    if (findings->count == 0) {
        fputs("Nothing looks wrong.\n", report->out);
    }
    for (size_t i = 0; result == 0 && i < count_shown(report, findings); i++) {
        result = draw_one(report, &findings->items[i], i + 1);
    }
    table_drawing_end(report);
    return result;
}

static int list(const struct report *report, const struct findings *findings) {
    static const struct table_column columns[] = {
        {"kind", "kind", TABLE_WORD},           {"title", "finding", TABLE_TEXT},
        {"sentence", "what it is", TABLE_TEXT}, {"bytes", "bytes", TABLE_BYTES},
        {"count", "count", TABLE_COUNT},        {"percent", "share", TABLE_PERCENT},
        {"hash", "hash", TABLE_HASH},           {"view", NULL, TABLE_TEXT},
        {"command", "command", TABLE_TEXT},
    };
    struct table table =
        table_open(report, "findings", "Findings", columns, sizeof columns / sizeof columns[0]);
    int result = 0;
    for (size_t i = 0; result == 0 && i < count_shown(report, findings); i++) {
        const struct finding *finding = &findings->items[i];
        char *command = findings_command(report, finding);
        table_row(&table, (struct table_cell[]){
                              table_text(findings_kind_name(finding->kind)),
                              table_text(finding->title), table_text(finding->sentence),
                              table_number_if(finding->bytes != 0, finding->bytes),
                              table_number_if(finding->count != 0, finding->count),
                              finding->share >= 0 ? table_real(100 * finding->share) : table_none(),
                              table_number_if(finding->hash != 0, finding->hash),
                              table_text(finding->view), table_text(command)});
        result = command != NULL ? 0 : -1;
        free(command);
    }
    table.hidden = findings->count - table.rows;
    table_close(&table);
    return result;
}

int report_findings(const struct report *report) {
    return report->options.format == REPORT_TEXT ? draw(report, report->findings)
                                                 : list(report, report->findings);
}
