/* SPDX-License-Identifier: MIT */
/* findingsums.c: findings that sums and slices tell. See findings.h. */
#include "analyze/report/calltree.h"
#include "analyze/report/findings.h"
#include "analyze/rows/framekind.h"
#include "analyze/rows/number.h"

#include <stdlib.h>
#include <string.h>

/* Below these, nobody would change a program for it. */
enum {
    TEMPORARY_LEAST = 1000,
    TEMPORARIES = 3,
    WITHIN_TICK_LEAST = 10000, /* what only a clock tells is told where there is more of it */
    RUN_TICKS_LEAST = 10,      /* and where a tick is little beside the run */
    PEAK_LEAST = 64 << 10,
    SMALL_BLOCKS = 10000,
    SMALL_BYTES = 64,
    HEADER_BYTES = 8, /* what the C library's malloc keeps with each block */
    FOREIGN_LEAST = 1000,
    RESIDENT_LEAST = 16 << 20,
};

static double share_of(uint64_t part, uint64_t whole) {
    return whole != 0 ? (double)part / (double)whole : 0;
}

static int out_of_memory(struct error *error) {
    return error_set(error, "out of memory");
}

/* ---- Allocations for a moment ---- */

int brevity_model(struct model *brief, const struct model *model,
                  uint64_t (*count)(const void *counts, const struct model_context *context),
                  const void *counts) {
    struct model_context *contexts = calloc(model->context_count + 1, sizeof *contexts);
    if (contexts == NULL) {
        return -1;
    }
    *brief = *model;
    brief->contexts = contexts;
    for (size_t i = 0; i < model->context_count; i++) {
        uint64_t told = count(counts, &model->contexts[i]);
        contexts[i] = model->contexts[i];
        contexts[i].temporary = told > contexts[i].temporary ? told : contexts[i].temporary;
    }
    return 0;
}

void brevity_free(struct model *brief) {
    free(brief->contexts);
    *brief = (struct model){0};
}

/* "before their thread's next allocation" */
static char *tell_brevity(const struct brevity *brevity, bool is_strict) {
    struct number number;
    return is_strict ? strdup("before their thread's next allocation")
           : brevity->within_ns != 0
               ? findings_text("within %s", number_duration(&number, brevity->within_ns))
               : findings_text("before their thread made %u more", brevity->allocations);
}

static int add_brief(struct findings *findings, const struct report *report,
                     const struct culprit *culprit, const struct brevity *brevity) {
    uint64_t all = report->model->totals.allocations;
    uint64_t strict = culprit_cost(culprit, report->model, METRIC_TEMPORARY);
    bool is_strict = strict >= culprit->cost.main - culprit->cost.main / 10;
    uint64_t count = is_strict ? strict : culprit->cost.main;
    struct finding finding = {
        .kind = FINDING_TEMPORARY, .count = count, .share = share_of(count, all)};
    struct number numbers[3];
    char name[CULPRIT_NAME];
    char place[CULPRIT_NAME];
    char *when = tell_brevity(brevity, is_strict);
    if (when == NULL) {
        return -1;
    }
    finding.weight = 0.2 + 0.5 * finding.share;
    finding.title = findings_text("%s allocates for a moment", culprit_name(report, culprit, name));
    finding.sentence = findings_text(
        "%s made %s that were freed %s: %s of the program's %s allocations. The memory could be "
        "kept and reused, or not allocated at all.",
        culprit_place(report, culprit, place), number_items(&numbers[0], count, "allocation"), when,
        number_percent(&numbers[1], count, all), number_count(&numbers[2], all));
    culprit_show(&finding, report, culprit,
                 is_strict ? "flame?metric=temporary" : "flame?metric=allocations",
                 is_strict ? "--show-temporary" : "--show-allocations");
    free(when);
    return findings_add(findings, finding);
}

int findings_of_brevity(struct findings *findings, const struct findings_wish *wish,
                        const struct brevity *brevity) {
    const struct report *report = wish->report;
    uint64_t all = report->model->totals.allocations;
    bool is_by_clock = brevity->within_ns != 0;
    size_t count;
    struct culprit *culprits = culprits_make(report, brevity->model, METRIC_TEMPORARY, &count);
    int result = culprits != NULL ? 0 : -1;
    for (size_t i = 0; result == 0 && i < count && i < TEMPORARIES; i++) {
        uint64_t brief = culprits[i].cost.main;
        uint64_t strict = culprit_cost(&culprits[i], report->model, METRIC_TEMPORARY);
        bool is_enough = brief >= (is_by_clock ? WITHIN_TICK_LEAST : TEMPORARY_LEAST) &&
                         share_of(brief, all) >= (is_by_clock ? 0.25 : 0.1);
        if (!is_enough && strict >= TEMPORARY_LEAST && share_of(strict, all) >= 0.1) {
            culprits[i].cost.main = strict;
            is_enough = true;
        }
        if (is_enough) {
            result = add_brief(findings, report, &culprits[i], brevity);
        }
    }
    culprits_free(culprits, count);
    return result;
}

/* Freed within a tick of the clock, which profiles know of every call path. */
static uint64_t freed_within_tick(const void *counts, const struct model_context *context) {
    const struct model *model = counts;
    return context->lifetimes != MODEL_NO_LIFETIMES ? model->lifetimes[context->lifetimes] : 0;
}

static uint64_t nothing_told(const void *counts, const struct model_context *context) {
    (void)counts;
    (void)context;
    return 0;
}

/* Where single blocks are not looked at. */
static int find_temporary(struct findings *findings, const struct findings_wish *wish) {
    const uint64_t tick_ns = UINT64_C(1) << MEMTRACE_TICK_SHIFT;
    const struct model *model = wish->report->model;
    uint64_t duration_ns = model->now_ns - (model->from_ns < model->now_ns ? model->from_ns : 0);
    bool is_long = duration_ns >= RUN_TICKS_LEAST * tick_ns;
    struct model brief;
    const struct brevity brevity = {.model = &brief, .within_ns = tick_ns};
    int result;
    if (findings_have_passes(wish) || (model_is_estimate(model) && model->recording.present)) {
        return 0;
    }
    if (brevity_model(&brief, model, is_long ? freed_within_tick : nothing_told, model) != 0) {
        return -1;
    }
    result = findings_of_brevity(findings, wish, &brevity);
    brevity_free(&brief);
    return result;
}

/* ---- Who holds most of the peak ---- */

/* The innermost function of the program's own below which half of the peak lies; of main, which
 * says little, what it calls that holds most. 0: none. */
static uint32_t find_holder(const struct report *report, const struct calltree *tree) {
    const char *executable = report->model->header.executable;
    uint32_t best = 0;
    uint32_t at = tree->calls[0].first_child;
    while (at != 0 && tree->calls[at].cost.main * 2 >= tree->calls[0].cost.main) {
        bool is_own = framekind_of(tree->calls[at].frame, executable) == FRAMEKIND_OWN;
        best = is_own ? at : best;
        at = tree->calls[at].first_child;
    }
    if (best != 0 && pathwalk_is_main(tree->calls[best].frame)) {
        at = tree->calls[best].first_child;
        best = at != 0 && tree->calls[at].cost.main * 5 >= tree->calls[0].cost.main ? at : 0;
    }
    return best;
}

static int add_holder(struct findings *findings, const struct report *report,
                      const struct calltree *tree, uint32_t at) {
    const struct model_totals *totals = &report->model->totals;
    const struct call *call = &tree->calls[at];
    struct finding finding = {.kind = FINDING_PEAK,
                              .bytes = call->cost.main,
                              .share = share_of(call->cost.main, totals->maximum_bytes)};
    struct culprit culprit = {.frame = call->frame, .paths = 2, .contexts = (uint32_t[]){0}};
    struct number numbers[4];
    char name[CULPRIT_NAME];
    culprit_name(report, &culprit, name);
    finding.weight = 0.1 + 0.4 * finding.share;
    finding.title =
        findings_text("%s holds %s of the peak", name,
                      number_percent(&numbers[0], finding.bytes, totals->maximum_bytes));
    finding.sentence =
        findings_text("At its peak, %s after its start, the program held %s. %s of that was "
                      "allocated in %s and in functions that it calls.",
                      number_duration(&numbers[2], totals->maximum_ns),
                      number_bytes(&numbers[1], totals->maximum_bytes),
                      number_bytes(&numbers[3], finding.bytes), name);
    culprit_show(&finding, report, &culprit, "flame?metric=maximum", "--show-peak");
    return findings_add(findings, finding);
}

static int find_peak(struct findings *findings, const struct findings_wish *wish) {
    struct report report = *wish->report;
    struct calltree tree = {0};
    uint32_t at;
    int result;
    if (report.model->totals.maximum_bytes < PEAK_LEAST) {
        return 0;
    }
    report.options.format = REPORT_JSON; /* no library functions are folded */
    report.options.by_line = false;
    report.options.depth = 0;
    result = calltree_top_down(&tree, &report, METRIC_MAXIMUM);
    if (result == 0) {
        at = find_holder(&report, &tree);
        result = at != 0 ? add_holder(findings, wish->report, &tree, at) : 0;
    }
    calltree_free(&tree);
    return result;
}

/* ---- Many small blocks ---- */

/* Who holds most blocks, however small they are. */
static const struct culprit *most_blocks(const struct culprit *culprits, size_t count) {
    const struct culprit *most = &culprits[0];
    for (size_t i = 1; i < count; i++) {
        most = culprits[i].cost.side > most->cost.side ? &culprits[i] : most;
    }
    return most;
}

static int find_small(struct findings *findings, const struct findings_wish *wish) {
    const struct report *report = wish->report;
    const struct model_totals *totals = &report->model->totals;
    struct culprit *culprits;
    const struct culprit *most;
    struct finding finding = {.kind = FINDING_SLACK};
    struct number numbers[4];
    char place[CULPRIT_NAME];
    size_t count;
    int result;
    if (totals->live_blocks < SMALL_BLOCKS ||
        totals->live_bytes / totals->live_blocks > SMALL_BYTES) {
        return 0;
    }
    culprits = culprits_make(report, report->model, METRIC_LEAKED, &count);
    if (culprits == NULL || count == 0) {
        culprits_free(culprits, count);
        return culprits != NULL ? 0 : -1;
    }
    most = most_blocks(culprits, count);
    finding.count = totals->live_blocks;
    finding.bytes = totals->live_blocks * HEADER_BYTES;
    finding.share = share_of(finding.bytes, totals->live_bytes + finding.bytes);
    finding.weight = 0.5 * finding.share;
    finding.title =
        findings_text("%s are small", number_items(&numbers[0], finding.count, "block"));
    finding.sentence = findings_text(
        "%s have an average size of %s. The C library's malloc adds at least %d bytes to each: "
        "%s in total. %s of the blocks are from %s.",
        number_items(&numbers[0], totals->live_blocks, "live block"),
        number_bytes(&numbers[1], totals->live_bytes / totals->live_blocks), (int)HEADER_BYTES,
        number_bytes(&numbers[2], finding.bytes), number_count(&numbers[3], most->cost.side),
        culprit_place(report, most, place));
    culprit_show(&finding, report, most, "paths?metric=leaked", "--show-leaked --paths");
    finding.hash = 0;
    result = findings_add(findings, finding);
    culprits_free(culprits, count);
    return result;
}

/* ---- Frees of other threads' blocks ---- */

static const char *thread_name(const struct model *model, uint32_t id, char *buffer, size_t size) {
    for (size_t i = 0; i < model->thread_count; i++) {
        if (model->threads[i].id == id && model->threads[i].name[0] != '\0') {
            snprintf(buffer, size, "%u (%s)", id, model->threads[i].name);
            return buffer;
        }
    }
    snprintf(buffer, size, "%u", id);
    return buffer;
}

static int find_foreign(struct findings *findings, const struct findings_wish *wish) {
    const struct model *model = wish->report->model;
    const struct model_foreign *most = NULL;
    struct finding finding = {.kind = FINDING_FOREIGN};
    struct number numbers[4];
    char freer[64];
    char owner[64];
    for (size_t i = 0; i < model->foreign_count; i++) {
        const struct model_foreign *pair = &model->foreign[i];
        finding.count += pair->blocks;
        finding.bytes += pair->bytes;
        most = most == NULL || pair->blocks > most->blocks ? pair : most;
    }
    finding.share = share_of(finding.count, model->totals.frees);
    if (most == NULL || finding.count < FOREIGN_LEAST || finding.share < 0.1) {
        return 0;
    }
    finding.weight = 0.1 + 0.3 * finding.share;
    finding.title = strdup("Threads free each other's blocks");
    finding.sentence = findings_text(
        "%s of all frees (%s, %s) were of blocks that another thread had allocated, most "
        "often freed by thread %s and allocated by thread %s. Such frees can make threads wait for "
        "each other in the allocator.",
        number_percent(&numbers[0], finding.count, model->totals.frees),
        number_count(&numbers[1], finding.count), number_bytes(&numbers[2], finding.bytes),
        thread_name(model, most->freer, freer, sizeof freer),
        thread_name(model, most->owner, owner, sizeof owner));
    finding.view = strdup("threads");
    finding.options = strdup("--show-threads");
    return findings_add(findings, finding);
}

/* ---- Resident, and not in use ---- */

/* The last sample before the program's shutdown that knows what is resident. NULL: none does. */
static const struct memtrace_point *last_resident(const struct model *model) {
    uint64_t end_ns = findings_shutdown_ns(model);
    for (size_t i = model->timeline_count; i-- > 0;) {
        if (model->timeline[i].resident_bytes != 0 && model->timeline[i].time_ns < end_ns) {
            return &model->timeline[i];
        }
    }
    return NULL;
}

/* What was resident before the heap held much is no part of it. */
static uint64_t least_resident(const struct model *model) {
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < model->timeline_count; i++) {
        uint64_t bytes = model->timeline[i].resident_bytes;
        least = bytes != 0 && bytes < least ? bytes : least;
    }
    return least;
}

static int find_resident(struct findings *findings, const struct findings_wish *wish) {
    const struct model *model = wish->report->model;
    const struct memtrace_point *last = last_resident(model);
    struct finding finding = {.kind = FINDING_FRAGMENTATION};
    struct number numbers[4];
    uint64_t used;
    if (last == NULL) {
        return 0;
    }
    used = least_resident(model) + last->live_bytes + model->header.own_resident_bytes;
    finding.bytes = last->resident_bytes > used ? last->resident_bytes - used : 0;
    finding.share = share_of(finding.bytes, last->resident_bytes);
    if (finding.bytes < RESIDENT_LEAST || finding.share < 0.3 ||
        last->live_bytes * 2 > model->totals.maximum_bytes) {
        return 0;
    }
    finding.weight = 0.3 + 0.5 * finding.share;
    finding.title =
        findings_text("%s is resident but not in use", number_bytes(&numbers[0], finding.bytes));
    finding.sentence = findings_text(
        "%s after the start, the heap held %s (its peak: %s), and %s was resident. The allocator "
        "keeps about %s that is not in use%s.",
        number_duration(&numbers[0], last->time_ns), number_bytes(&numbers[1], last->live_bytes),
        number_bytes(&numbers[2], model->totals.maximum_bytes),
        number_bytes(&numbers[3], last->resident_bytes),
        number_bytes(&(struct number){{0}}, finding.bytes),
        model->header.own_resident_bytes != 0 ? " (MemTrace's own memory is left out)" : "");
    finding.view = strdup("mappings");
    finding.options = strdup("--show-timeline");
    return findings_add(findings, finding);
}

/* ---- All ---- */

int findings_of_sums(struct findings *findings, const struct findings_wish *wish,
                     struct error *error) {
    if (findings_of_held(findings, wish, error) != 0) {
        return -1;
    }
    return find_temporary(findings, wish) == 0 && find_peak(findings, wish) == 0 &&
                   find_small(findings, wish) == 0 && find_foreign(findings, wish) == 0 &&
                   find_resident(findings, wish) == 0
               ? 0
               : out_of_memory(error);
}
