/* SPDX-License-Identifier: MIT */
/* findingsums.c: findings that sums and slices tell, and those that take passes over all events.
 * See findings.h. */
#include "analyze/base/job.h"
#include "analyze/blocks/detail.h"
#include "analyze/blocks/heapmap.h"
#include "analyze/blocks/holes.h"
#include "analyze/report/calltree.h"
#include "analyze/report/findings.h"
#include "analyze/report/reports.h"
#include "analyze/rows/framekind.h"
#include "analyze/rows/number.h"
#include "analyze/window/series.h"

#include <inttypes.h>
#include <stdio.h>

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
    PINNED_PAGES = 100,
    SLACK_LEAST = 64 << 10,
    REALLOC_LEAST = 1000,
    REALLOC_BYTES = 1 << 20,
    BRIEF_ALLOCATIONS = 16 /* a block that is freed before so many more by its thread was for a
                              moment: so are all the blocks that a vector grows through */
};

/* ---- Allocations for a moment ---- */

/* Who allocates for a moment, by how much of it each call path did. */
struct brevity {
    struct model model;   /* report.model, its contexts' `temporary` being what is meant here */
    uint32_t allocations; /* freed before their thread had made so many more */
    uint64_t within_ns;   /* or, where that is 0, freed within this */
};

/* `temporary` of its heap contexts is what count() says, or what it was if that is more. */
static void brevity_count(struct brevity *brevity, const struct model *model,
                          uint64_t (*count)(const void *counts,
                                            const struct model_context *context),
                          const void *counts) {
    struct model_context *contexts = job_array(model->context_count, sizeof *contexts);
    for (size_t i = 0; i < model->context_count; i++) {
        uint64_t told = count(counts, &model->contexts[i]);
        contexts[i] = model->contexts[i];
        contexts[i].temporary = told > contexts[i].temporary ? told : contexts[i].temporary;
    }
    brevity->model = *model;
    brevity->model.contexts = contexts;
}

/* "before their thread's next allocation" */
static const char *brevity_tell(const struct brevity *brevity, bool is_strict) {
    struct number number;
    return is_strict ? "before their thread's next allocation"
           : brevity->within_ns != 0
               ? job_text("within %s", number_duration(&number, brevity->within_ns))
               : job_text("before their thread made %u more", brevity->allocations);
}

static void brevity_add(struct findings *findings, const struct report *report,
                        const struct culprit *culprit, const struct brevity *brevity) {
    uint64_t all = report->model->totals.allocations;
    uint64_t strict = culprit_cost(culprit, report->model, METRIC_TEMPORARY);
    bool is_strict = strict >= culprit->cost.main - culprit->cost.main / 10;
    uint64_t count = is_strict ? strict : culprit->cost.main;
    struct finding finding = {
        .kind = FINDING_TEMPORARY, .count = count, .share = finding_share(count, all)};
    struct number numbers[3];
    char name[CULPRIT_NAME];
    char place[CULPRIT_NAME];
    finding.weight = 0.2 + 0.5 * finding.share;
    finding.title = job_text("%s allocates for a moment", culprit_name(report, culprit, name));
    finding.sentence = job_text(
        "%s made %s that were freed %s: %s of the program's %s allocations. The memory could be "
        "kept and reused, or not allocated at all.",
        culprit_place(report, culprit, place), number_items(&numbers[0], count, "allocation"),
        brevity_tell(brevity, is_strict), number_percent(&numbers[1], count, all),
        number_count(&numbers[2], all));
    culprit_show(&finding, report, culprit,
                 is_strict ? "flame?metric=temporary" : "flame?metric=allocations",
                 is_strict ? "--show-temporary" : "--show-allocations");
    findings_add(findings, finding);
}

static void brevity_find(struct findings *findings, const struct findings_wish *wish,
                         const struct brevity *brevity) {
    const struct report *report = wish->report;
    uint64_t all = report->model->totals.allocations;
    bool is_by_clock = brevity->within_ns != 0;
    size_t count;
    struct culprit *culprits = culprits_make(report, &brevity->model, METRIC_TEMPORARY, &count);
    for (size_t i = 0; i < count && i < TEMPORARIES; i++) {
        uint64_t brief = culprits[i].cost.main;
        uint64_t strict = culprit_cost(&culprits[i], report->model, METRIC_TEMPORARY);
        bool is_enough = brief >= (is_by_clock ? WITHIN_TICK_LEAST : TEMPORARY_LEAST) &&
                         finding_share(brief, all) >= (is_by_clock ? 0.25 : 0.1);
        if (!is_enough && strict >= TEMPORARY_LEAST && finding_share(strict, all) >= 0.1) {
            culprits[i].cost.main = strict;
            is_enough = true;
        }
        if (is_enough) {
            brevity_add(findings, report, &culprits[i], brevity);
        }
    }
}

/* Freed within a tick of the clock, which profiles know of every call path. */
static uint64_t brevity_within_tick(const void *counts, const struct model_context *context) {
    const struct model *model = counts;
    return context->lifetimes != MODEL_NO_LIFETIMES ? model->lifetimes[context->lifetimes] : 0;
}

static uint64_t brevity_untold(const void *counts, const struct model_context *context) {
    (void)counts;
    (void)context;
    return 0;
}

/* Where single blocks are not looked at. */
static void finding_find_temporary(struct findings *findings, const struct findings_wish *wish) {
    const uint64_t tick_ns = UINT64_C(1) << MEMTRACE_TICK_SHIFT;
    const struct model *model = wish->report->model;
    uint64_t duration_ns = model->now_ns - (model->from_ns < model->now_ns ? model->from_ns : 0);
    bool is_long = duration_ns >= RUN_TICKS_LEAST * tick_ns;
    struct brevity brevity = {.within_ns = tick_ns};
    if (!model_is_estimate(model) || !model->recording.present) {
        brevity_count(&brevity, model, is_long ? brevity_within_tick : brevity_untold, model);
        brevity_find(findings, wish, &brevity);
    }
}

/* ---- Who holds most of the peak ---- */

/* The innermost function of the program's own below which half of the peak lies; of main, which
 * says little, what it calls that holds most. 0: none. */
static uint32_t finding_find_holder(const struct report *report, const struct calltree *tree) {
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

static void finding_add_holder(struct findings *findings, const struct report *report,
                               const struct calltree *tree, uint32_t at) {
    const struct model_totals *totals = &report->model->totals;
    const struct call *call = &tree->calls[at];
    struct finding finding = {.kind = FINDING_PEAK,
                              .bytes = call->cost.main,
                              .share = finding_share(call->cost.main, totals->maximum_bytes)};
    struct culprit culprit = {.frame = call->frame, .paths = 2, .contexts = (uint32_t[]){0}};
    struct number numbers[4];
    char name[CULPRIT_NAME];
    culprit_name(report, &culprit, name);
    finding.weight = 0.1 + 0.4 * finding.share;
    finding.title = job_text("%s holds %s of the peak", name,
                             number_percent(&numbers[0], finding.bytes, totals->maximum_bytes));
    finding.sentence =
        job_text("At its peak, %s after its start, the program held %s. %s of that was "
                 "allocated in %s and in functions that it calls.",
                 number_duration(&numbers[2], totals->maximum_ns),
                 number_bytes(&numbers[1], totals->maximum_bytes),
                 number_bytes(&numbers[3], finding.bytes), name);
    culprit_show(&finding, report, &culprit, "flame?metric=maximum", "--show-peak");
    findings_add(findings, finding);
}

static void finding_find_peak(struct findings *findings, const struct findings_wish *wish) {
    struct report report = *wish->report;
    struct calltree tree;
    uint32_t at;
    if (report.model->totals.maximum_bytes < PEAK_LEAST) {
        return;
    }
    report.options.format = REPORT_JSON; /* no library functions are folded */
    report.options.by_line = false;
    report.options.depth = 0;
    tree = calltree_top_down(&report, METRIC_MAXIMUM);
    at = finding_find_holder(&report, &tree);
    if (at != 0) {
        finding_add_holder(findings, wish->report, &tree, at);
    }
    job_release(tree.calls);
}

/* ---- Many small blocks ---- */

static void finding_find_small(struct findings *findings, const struct findings_wish *wish) {
    const struct report *report = wish->report;
    const struct model_totals *totals = &report->model->totals;
    struct culprit *culprits;
    const struct culprit *most;
    struct finding finding = {.kind = FINDING_SLACK};
    struct number numbers[4];
    char place[CULPRIT_NAME];
    size_t count;
    if (totals->live_blocks < SMALL_BLOCKS ||
        totals->live_bytes / totals->live_blocks > SMALL_BYTES) {
        return;
    }
    culprits = culprits_make(report, report->model, METRIC_LEAKED, &count);
    if (count == 0) {
        return;
    }
    most = &culprits[0]; /* who holds most blocks, however small they are */
    for (size_t i = 1; i < count; i++) {
        most = culprits[i].cost.side > most->cost.side ? &culprits[i] : most;
    }
    finding.count = totals->live_blocks;
    finding.bytes = totals->live_blocks * HEADER_BYTES;
    finding.share = finding_share(finding.bytes, totals->live_bytes + finding.bytes);
    finding.weight = 0.5 * finding.share;
    finding.title = job_text("%s are small", number_items(&numbers[0], finding.count, "block"));
    finding.sentence = job_text(
        "%s have an average size of %s. The C library's malloc adds at least %d bytes to each: "
        "%s in total. %s of the blocks are from %s.",
        number_items(&numbers[0], totals->live_blocks, "live block"),
        number_bytes(&numbers[1], totals->live_bytes / totals->live_blocks), (int)HEADER_BYTES,
        number_bytes(&numbers[2], finding.bytes), number_count(&numbers[3], most->cost.side),
        culprit_place(report, most, place));
    culprit_show(&finding, report, most, "paths?metric=leaked", "--show-leaked --paths");
    finding.hash = 0;
    findings_add(findings, finding);
}

/* ---- Frees of other threads' blocks ---- */

static const char *finding_thread(const struct model *model, uint32_t id, char *buffer,
                                  size_t size) {
    for (size_t i = 0; i < model->thread_count; i++) {
        if (model->threads[i].id == id && model->threads[i].name[0] != '\0') {
            snprintf(buffer, size, "%u (%s)", id, model->threads[i].name);
            return buffer;
        }
    }
    snprintf(buffer, size, "%u", id);
    return buffer;
}

static void finding_find_foreign(struct findings *findings, const struct findings_wish *wish) {
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
    finding.share = finding_share(finding.count, model->totals.frees);
    if (most == NULL || finding.count < FOREIGN_LEAST || finding.share < 0.1) {
        return;
    }
    finding.weight = 0.1 + 0.3 * finding.share;
    finding.title = "Threads free each other's blocks";
    finding.sentence = job_text(
        "%s of all frees (%s, %s) were of blocks that another thread had allocated, most "
        "often freed by thread %s and allocated by thread %s. Such frees can make threads wait for "
        "each other in the allocator.",
        number_percent(&numbers[0], finding.count, model->totals.frees),
        number_count(&numbers[1], finding.count), number_bytes(&numbers[2], finding.bytes),
        finding_thread(model, most->freer, freer, sizeof freer),
        finding_thread(model, most->owner, owner, sizeof owner));
    finding.view = "threads";
    finding.options = "--show-threads";
    findings_add(findings, finding);
}

/* ---- Resident, and not in use ---- */

static void finding_find_resident(struct findings *findings, const struct findings_wish *wish) {
    const struct model *model = wish->report->model;
    const struct memtrace_point *last = NULL; /* before its shutdown */
    uint64_t end_ns = findings_shutdown_ns(model);
    uint64_t least = UINT64_MAX; /* what was resident before the heap held much is no part of it */
    struct finding finding = {.kind = FINDING_FRAGMENTATION};
    struct number numbers[4];
    uint64_t used;
    for (size_t i = 0; i < model->timeline_count; i++) {
        const struct memtrace_point *point = &model->timeline[i];
        if (point->resident_bytes != 0) {
            least = point->resident_bytes < least ? point->resident_bytes : least;
            last = point->time_ns < end_ns ? point : last;
        }
    }
    if (last == NULL) {
        return;
    }
    used = least + last->live_bytes + model->header.own_resident_bytes;
    finding.bytes = last->resident_bytes > used ? last->resident_bytes - used : 0;
    finding.share = finding_share(finding.bytes, last->resident_bytes);
    if (finding.bytes < RESIDENT_LEAST || finding.share < 0.3 ||
        last->live_bytes * 2 > model->totals.maximum_bytes) {
        return;
    }
    finding.weight = 0.3 + 0.5 * finding.share;
    finding.title =
        job_text("%s is resident but not in use", number_bytes(&numbers[0], finding.bytes));
    finding.sentence = job_text(
        "%s after the start, the heap held %s (its peak: %s), and %s was resident. The allocator "
        "keeps about %s that is not in use%s.",
        number_duration(&numbers[0], last->time_ns), number_bytes(&numbers[1], last->live_bytes),
        number_bytes(&numbers[2], model->totals.maximum_bytes),
        number_bytes(&numbers[3], last->resident_bytes),
        number_bytes(&(struct number){{0}}, finding.bytes),
        model->header.own_resident_bytes != 0 ? " (MemTrace's own memory is left out)" : "");
    finding.view = "mappings";
    finding.options = "--show-timeline";
    findings_add(findings, finding);
}

/*
 * ---- What only single blocks tell: holes and who keeps them, slack, chains of reallocations ----
 *
 * Each takes a pass over the events.
 */

/* The culprit of one context. */
static struct culprit finding_culprit(const struct report *report, uint32_t *id) {
    const struct model_context *context = model_find(report->model, *id);
    return (struct culprit){
        .frame = context != NULL ? framekind_blame(pathwalk(report, context->path)) : NULL,
        .paths = 1,
        .is_one_line = true,
        .contexts = id};
}

/* ---- Holes ---- */

/* The heap at the moment when it had most of them. */
struct moment {
    struct holes holes;
    struct detail *detail;
    struct heapmap map;
};

/* One that the heap shows at that moment. */
static void finding_add_at(struct findings *findings, struct finding finding,
                           const struct moment *moment) {
    double seconds = (double)(moment->holes.time_ns + 1) / 1e9;
    finding.view = job_text("heap?at=%.9fs", seconds);
    finding.options = job_text("--show-fragmentation --at %.9fs", seconds);
    findings_add(findings, finding);
}

static void finding_add_pinned(struct findings *findings, const struct report *report,
                               const struct moment *moment) {
    const struct heapmap *map = &moment->map;
    const struct heapmap_pin *pin = &map->pins[0];
    uint32_t id = pin->context;
    struct culprit culprit = finding_culprit(report, &id);
    struct finding finding = {.kind = FINDING_PINNED,
                              .bytes = pin->pages * HEAPMAP_PAGE,
                              .count = pin->pages,
                              .share = finding_share(pin->pages, map->pages),
                              .hash = model_hash(report->model, id)};
    struct number numbers[6];
    char name[CULPRIT_NAME];
    char place[CULPRIT_NAME];
    finding.weight = 0.3 + 0.4 * finding.share;
    finding.title = job_text("Blocks of %s keep %s", culprit_name(report, &culprit, name),
                             number_items(&numbers[0], pin->pages, "nearly empty page"));
    finding.sentence = job_text(
        "%s after the start, %s lay unused between blocks, and %s were in use. %s from %s lie on "
        "%s with almost nothing else (%s), so malloc could not return these to the system.",
        number_duration(&numbers[0], moment->holes.time_ns),
        number_bytes(&numbers[1], moment->holes.unused_bytes),
        number_bytes(&numbers[2], moment->holes.live_bytes), number_bytes(&numbers[3], pin->bytes),
        culprit_place(report, &culprit, place), number_items(&numbers[4], pin->pages, "page"),
        number_bytes(&numbers[5], finding.bytes));
    finding_add_at(findings, finding, moment);
}

static void finding_add_holes(struct findings *findings, const struct moment *moment) {
    const struct heapmap *map = &moment->map;
    struct finding finding = {
        .kind = FINDING_FRAGMENTATION,
        .bytes = moment->holes.unused_bytes,
        .count = map->all_holes,
        .share = finding_share(moment->holes.unused_bytes,
                               moment->holes.unused_bytes + moment->holes.live_bytes)};
    struct number numbers[4];
    finding.weight = 0.25 + 0.4 * finding.share;
    finding.title =
        job_text("%s is unused between blocks", number_bytes(&numbers[0], finding.bytes));
    finding.sentence = job_text(
        "%s after the start, %s in use lay on %s, %s of them nearly empty: the heap was %s larger "
        "than its contents.",
        number_duration(&numbers[0], moment->holes.time_ns),
        number_bytes(&numbers[1], moment->holes.live_bytes),
        number_items(&numbers[2], map->pages, "page"), number_count(&numbers[3], map->nearly_empty),
        number_bytes(&(struct number){{0}}, finding.bytes));
    finding_add_at(findings, finding, moment);
}

static void finding_add_slack(struct findings *findings, const struct report *report,
                              const struct moment *moment) {
    const struct detail *detail = moment->detail;
    const struct detail_context *most = NULL;
    struct finding finding = {.kind = FINDING_SLACK};
    uint64_t bytes = 0;
    uint32_t id;
    struct culprit culprit;
    struct number numbers[4];
    char place[CULPRIT_NAME];
    for (size_t i = 0; i < detail->live_count; i++) {
        bytes += detail->live[i].size;
        finding.bytes += detail->live[i].slack;
    }
    for (size_t i = 0; i < detail->context_count; i++) {
        const struct detail_context *context = &detail->contexts[i];
        most = most == NULL || context->slack_bytes > most->slack_bytes ? context : most;
    }
    finding.share = finding_share(finding.bytes, bytes + finding.bytes);
    if (most == NULL || finding.bytes < SLACK_LEAST || finding.share < 0.1) {
        return;
    }
    id = most->id;
    culprit = finding_culprit(report, &id);
    finding.weight = 0.6 * finding.share;
    finding.title = job_text("Blocks are %s larger than requested",
                             number_percent(&numbers[0], finding.bytes, bytes));
    finding.sentence = job_text(
        "%s after the start, blocks with %s in total took %s more, because malloc rounds sizes up. "
        "%s of that is in blocks from %s.",
        number_duration(&numbers[0], moment->holes.time_ns), number_bytes(&numbers[1], bytes),
        number_bytes(&numbers[2], finding.bytes), number_bytes(&numbers[3], most->slack_bytes),
        culprit_place(report, &culprit, place));
    finding_add_at(findings, finding, moment);
}

static void finding_find_holes(struct findings *findings, const struct findings_wish *wish) {
    const struct detail_wish parts = {.parts = DETAIL_HEAP, .limit = 1};
    struct selection selection = selection_all();
    struct report report = *wish->report;
    const struct heapmap_pin *pins;
    struct moment moment;
    struct error error;
    report.model = wish->whole; /* all blocks of the heap count, whatever is selected */
    selection.view.from_ns = wish->report->model->from_ns;
    job_check(holes_find(wish->whole, report.parts, selection.view.from_ns, wish->replay,
                         &moment.holes, &error),
              &error);
    selection.view.to_ns = moment.holes.time_ns + 1;
    moment.detail = detail_gather(&parts, &selection, wish->whole, report.parts, report.names,
                                  wish->replay, &error);
    job_check(moment.detail != NULL ? 0 : -1, &error);
    detail_goes_with_job(moment.detail);
    moment.map = heapmap_make(moment.detail, report_smaps(&report, selection.view.to_ns));
    finding_add_slack(findings, &report, &moment);
    pins = moment.map.pins;
    if (!holes_are_trouble(&moment.holes, report.model)) {
        return;
    }
    if (moment.map.pin_count != 0 && pins[0].pages >= PINNED_PAGES &&
        pins[0].pages * 4 >= moment.map.pages) {
        finding_add_pinned(findings, &report, &moment);
    } else {
        finding_add_holes(findings, &moment);
    }
}

/* ---- Reallocations ---- */

struct moves {
    uint64_t count; /* blocks that a reallocation ended */
    uint64_t bytes; /* of them, which may have been copied */
    uint32_t longest;
    uint64_t brief; /* freed before BRIEF_ALLOCATIONS more */
};

struct moving {
    struct moves *contexts; /* by id */
    struct moves all;
    const struct model *whole;
    uint64_t from_ns; /* where the view begins */
};

static int finding_count_move(void *context, const struct life *life) {
    struct moving *moving = context;
    struct moves *moves = &moving->contexts[life->context];
    moves->brief +=
        life->allocations_between < BRIEF_ALLOCATIONS && life->birth_ns >= moving->from_ns;
    if (life->is_reallocated) {
        moves->count++;
        moves->bytes += life->size;
        moves->longest =
            life->chain_length + 1 > moves->longest ? life->chain_length + 1 : moves->longest;
        moving->all.count++;
        moving->all.bytes += life->size;
    }
    return 0;
}

static void finding_add_moves(struct findings *findings, const struct report *report,
                              const struct moving *moving) {
    struct finding finding = {.kind = FINDING_REALLOC};
    struct culprit culprit;
    struct number numbers[5];
    uint32_t most = 0;
    char name[CULPRIT_NAME];
    char place[CULPRIT_NAME];
    for (uint32_t id = 1; id < moving->whole->node_count; id++) {
        most = moving->contexts[id].bytes > moving->contexts[most].bytes ? id : most;
    }
    finding.share = finding_share(moving->contexts[most].count, report->model->totals.allocations);
    if (moving->contexts[most].count < REALLOC_LEAST ||
        moving->contexts[most].bytes < REALLOC_BYTES ||
        (finding.share < 0.05 &&
         moving->contexts[most].bytes < report->model->totals.total_bytes / 10)) {
        return;
    }
    culprit = finding_culprit(report, &most);
    finding.bytes = moving->contexts[most].bytes;
    finding.count = moving->contexts[most].count;
    finding.weight = 0.1 + 0.3 * finding_share(finding.bytes, report->model->totals.total_bytes);
    finding.title = job_text("%s grows blocks step by step", culprit_name(report, &culprit, name));
    finding.sentence = job_text(
        "Blocks from %s were reallocated %s times, up to %s times in a row, which may have copied "
        "%s. Growing in larger steps, or allocating the final size at once, would avoid this.",
        culprit_place(report, &culprit, place), number_count(&numbers[0], finding.count),
        number_count(&numbers[1], moving->contexts[most].longest - 1),
        number_bytes(&numbers[2], finding.bytes));
    culprit_show(&finding, report, &culprit, "blocks?live=0&chain-length=2..",
                 "--show-blocks --chain-length 2..");
    findings_add(findings, finding);
}

static uint64_t brevity_of_moves(const void *counts, const struct model_context *context) {
    const struct moving *moving = counts;
    uint64_t brief = moving->contexts[context->id].brief;
    return context->class == MODEL_HEAP && brief <= context->allocations ? brief : 0;
}

/* Both take the same pass. */
static void finding_find_moves(struct findings *findings, const struct findings_wish *wish) {
    struct moving moving = {.whole = wish->whole, .from_ns = wish->report->model->from_ns};
    const struct lives_visitor visitor = {.end = finding_count_move, .context = &moving};
    struct brevity brevity = {.allocations = BRIEF_ALLOCATIONS};
    struct error error;
    moving.contexts = job_array(wish->whole->node_count, sizeof *moving.contexts);
    job_check(selection_visit(wish->selection, wish->whole, wish->report->parts,
                              wish->report->names, &visitor, wish->replay, &error),
              &error);
    finding_add_moves(findings, wish->report, &moving);
    brevity_count(&brevity, wish->report->model, brevity_of_moves, &moving);
    brevity_find(findings, wish, &brevity);
}

/* ---- All ---- */

void findings_of_sums(struct findings *findings, const struct findings_wish *wish) {
    const struct model_recording *recording = &wish->whole->recording;
    bool has_passes = wish->report->parts.count != 0 && !recording->sampled &&
                      (wish->has_passes || recording->events <= SERIES_PASS_EVENTS);
    if (!has_passes) {
        finding_find_temporary(findings, wish);
    }
    finding_find_peak(findings, wish);
    finding_find_small(findings, wish);
    finding_find_foreign(findings, wish);
    finding_find_resident(findings, wish);
    if (has_passes) {
        finding_find_holes(findings, wish);
        finding_find_moves(findings, wish);
    }
}
