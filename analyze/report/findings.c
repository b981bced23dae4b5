/* SPDX-License-Identifier: MIT */
/* findings.c: the list of findings, and who is to blame. See findings.h. */
#include "analyze/report/findings.h"

#include "analyze/base/job.h"
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
#include <stdlib.h>
#include <string.h>

/* ---- The list ---- */

void findings_add(struct findings *findings, struct finding finding) {
    job_grow(&findings->items, &findings->room, findings->count, sizeof finding);
    findings->items[findings->count++] = finding;
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

static int findings_gravest_first(const void *left, const void *right) {
    const struct finding *a = left;
    const struct finding *b = right;
    if (a->weight != b->weight) {
        return a->weight < b->weight ? 1 : -1;
    }
    return a->kind != b->kind ? (a->kind < b->kind ? -1 : 1) : strcmp(a->title, b->title);
}

/* Looking takes much more memory than what comes of it. */
struct looking {
    const struct findings_wish *wish;
    struct findings *findings;
    char *texts;
    size_t text_room;
};

static const char *looking_keep(char **to, const char *text) {
    char *kept = *to;
    *to = stpcpy(*to, text) + 1;
    return kept;
}

static void looking_look(void *what) {
    struct looking *looking = what;
    struct findings *findings = looking->findings;
    struct findings found = {0};
    size_t size = 0;
    char *text;
    findings_of_held(&found, looking->wish);
    findings_of_sums(&found, looking->wish);
    if (found.count == 0) {
        return;
    }
    qsort(found.items, found.count, sizeof *found.items, findings_gravest_first);
    for (size_t i = 0; i < found.count; i++) {
        const struct finding *finding = &found.items[i];
        size += strlen(finding->title) + strlen(finding->sentence) + strlen(finding->view) +
                strlen(finding->options) + 4;
    }
    job_reserve(&findings->items, &findings->room, found.count, sizeof *findings->items);
    job_reserve(&looking->texts, &looking->text_room, size, 1);
    text = looking->texts;
    for (size_t i = 0; i < found.count; i++) {
        struct finding *finding = &findings->items[findings->count++];
        *finding = found.items[i];
        finding->title = looking_keep(&text, finding->title);
        finding->sentence = looking_keep(&text, finding->sentence);
        finding->view = looking_keep(&text, finding->view);
        finding->options = looking_keep(&text, finding->options);
    }
}

void findings_make(struct findings *findings, const struct findings_wish *wish) {
    struct looking looking = {.wish = wish, .findings = findings};
    *findings = (struct findings){0};
    job_reserve(&findings->items, &findings->room, 1, sizeof *findings->items);
    job_reserve(&looking.texts, &looking.text_room, 1, 1);
    job_within(looking_look, &looking);
}

/* ---- Who is to blame ---- */

struct blaming {
    struct culprit *culprits;
    size_t count, room;
    struct numbermap places; /* by function: number + 1 */
};

static void blaming_add(struct blaming *blaming, const struct names_frame *frame,
                        const struct model_context *context, struct cost cost) {
    uint64_t key = frame != NULL ? frame->function_key : 0;
    size_t place = (size_t)(uintptr_t)numbermap_get(&blaming->places, key);
    struct culprit *culprit;
    if (place == 0) {
        job_grow(&blaming->culprits, &blaming->room, blaming->count, sizeof *blaming->culprits);
        blaming->culprits[blaming->count] = (struct culprit){.frame = frame, .is_one_line = true};
        place = ++blaming->count;
        numbermap_set(&blaming->places, key, (void *)place);
    }
    culprit = &blaming->culprits[place - 1];
    job_grow(&culprit->contexts, &culprit->room, culprit->paths, sizeof *culprit->contexts);
    culprit->contexts[culprit->paths++] = context->id;
    if (cost.main > culprit->dearest) { /* stands first, and its line is the culprit's */
        uint32_t id = culprit->contexts[0];
        culprit->contexts[0] = context->id;
        culprit->contexts[culprit->paths - 1] = id;
        culprit->dearest = cost.main;
    }
    culprit->is_one_line &= frame == NULL || frame->place_key == culprit->frame->place_key;
    metric_add(&culprit->cost, cost);
}

static int culprits_dearest_first(const void *left, const void *right) {
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
    of.model = model;
    for (size_t i = 0; i < model->context_count; i++) {
        const struct model_context *context = &model->contexts[i];
        struct cost cost = metric_cost(metric, context);
        if (context->class == MODEL_HEAP && cost.main != 0) {
            blaming_add(&blaming, framekind_blame(pathwalk(&of, context->path)), context, cost);
        }
    }
    *count = blaming.count;
    if (blaming.count != 0) {
        qsort(blaming.culprits, blaming.count, sizeof *blaming.culprits, culprits_dearest_first);
    }
    return blaming.culprits;
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
    enum { WHOLE_NAME = 301 }; /* leaves room for a place */
    bool is_whole;
    if (culprit->frame == NULL) {
        return strcpy(buffer, "unknown code");
    }
    is_whole = report->options.full_names;
    return shortname_of(culprit->frame, is_whole, buffer, is_whole ? WHOLE_NAME : CULPRIT_NAME);
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
static char *spell_pattern(const char *name) {
    struct job_printing *printing = job_print();
    fputc('^', printing->out);
    for (; *name != '\0'; name++) {
        if (strchr("\\^$.[]|()*+?{}", *name) != NULL) {
            fputc('\\', printing->out);
        }
        fputc(*name, printing->out);
    }
    fputc('$', printing->out);
    return job_printed(printing);
}

/* An address with a filter behind it. */
static char *spell_view(const char *before, const char *name, const char *value) {
    struct job_printing *printing = job_print();
    fprintf(printing->out, "%s&%s=", before, name);
    for (; *value != '\0'; value++) {
        if (isalnum((unsigned char)*value) || strchr("-._~", *value) != NULL) {
            fputc(*value, printing->out);
        } else {
            fprintf(printing->out, "%%%02X", (unsigned char)*value);
        }
    }
    return job_printed(printing);
}

/* The same filter as an option. */
static char *spell_options(const char *before, const char *name, const char *value) {
    struct job_printing *printing = job_print();
    fprintf(printing->out, "%s --%s ", before, name);
    shellword_put(printing->out, value);
    return job_printed(printing);
}

void culprit_show(struct finding *finding, const struct report *report,
                  const struct culprit *culprit, const char *view, const char *options) {
    bool is_path =
        culprit->paths == 1 || culprit->frame == NULL || culprit->frame->function == NULL;
    uint64_t hash = model_hash(report->model, culprit->contexts[0]);
    const char *value =
        is_path ? job_text("%016" PRIx64, hash) : spell_pattern(culprit->frame->function);
    const char *name = is_path ? "path" : "function";
    finding->hash = culprit->paths == 1 ? hash : 0;
    finding->view = spell_view(view, name, value);
    finding->options = spell_options(options, name, value);
}

/* ---- As a report ---- */

const char *findings_command(const struct report *report, const struct finding *finding) {
    struct job_printing *printing = job_print();
    fputs("memtrace report ", printing->out);
    shellword_put(printing->out, report->source);
    fprintf(printing->out, "%s%s %s", report->selected != NULL ? " " : "",
            report->selected != NULL ? report->selected : "", finding->options);
    return job_printed(printing);
}

enum { RANK_INDENT = 5 };

static void findings_draw_one(const struct report *report, const struct finding *finding,
                              size_t rank) {
    fprintf(report->out, "%3zu. %s", rank, style_on(report, STYLE_NAME));
    print_safe(report->out, "%s", finding->title);
    fprintf(report->out, "%s\n", style_off(report));
    style_lines(report, make_safe(job_text("%*s%s", RANK_INDENT, "", finding->sentence)),
                RANK_INDENT);
    fprintf(report->out, "\n%*s%s", RANK_INDENT, "", style_on(report, STYLE_DIM));
    /* what is to be pasted stays in one piece */
    print_safe(report->out, "%s", findings_command(report, finding));
    fprintf(report->out, "%s\n", style_off(report));
}

static void findings_draw(const struct report *report, const struct findings *findings,
                          size_t shown) {
    table_drawing_begin(report, "Findings");
    if (findings->count == 0) {
        fputs("Nothing looks wrong.\n", report->out);
    }
    for (size_t i = 0; i < shown; i++) {
        findings_draw_one(report, &findings->items[i], i + 1);
    }
    table_drawing_end(report);
}

static void findings_list(const struct report *report, const struct findings *findings,
                          size_t shown) {
    static const struct table_column columns[] = {
        {"kind", "kind", TABLE_WORD},           {"title", "finding", TABLE_TEXT},
        {"sentence", "what it is", TABLE_TEXT}, {"bytes", "bytes", TABLE_BYTES},
        {"count", "count", TABLE_COUNT},        {"percent", "share", TABLE_PERCENT},
        {"hash", "hash", TABLE_HASH},           {"view", NULL, TABLE_TEXT},
        {"command", "command", TABLE_TEXT},
    };
    struct table table =
        table_open(report, "findings", "Findings", columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < shown; i++) {
        const struct finding *finding = &findings->items[i];
        table_row(&table,
                  (struct table_cell[]){
                      table_text(findings_kind_name(finding->kind)), table_text(finding->title),
                      table_text(finding->sentence),
                      table_number_if(finding->bytes != 0, finding->bytes),
                      table_number_if(finding->count != 0, finding->count),
                      finding->share >= 0 ? table_real(100 * finding->share) : table_none(),
                      table_number_if(finding->hash != 0, finding->hash), table_text(finding->view),
                      table_text(findings_command(report, finding))});
    }
    table.hidden = findings->count - table.rows;
    table_close(&table);
}

void report_findings(const struct report *report) {
    const struct findings *findings = report->findings;
    size_t limit = report->options.limit;
    size_t shown = limit != 0 && limit < findings->count ? limit : findings->count;
    (report->options.format == REPORT_TEXT ? findings_draw : findings_list)(report, findings,
                                                                            shown);
}
