/* SPDX-License-Identifier: MIT */
/* findingpasses.c: findings that only single blocks tell: holes and who keeps them, slack, chains
 * of reallocations. Each takes a pass over the events. See findings.h. */
#include "analyze/blocks/detail.h"
#include "analyze/blocks/heapmap.h"
#include "analyze/blocks/holes.h"
#include "analyze/replay/smaps.h"
#include "analyze/report/findings.h"
#include "analyze/rows/framekind.h"
#include "analyze/rows/number.h"
#include "analyze/window/series.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
    UNUSED_LEAST = 1 << 20,
    PEAK_SHARE = 4,
    PINNED_PAGES = 100,
    SLACK_LEAST = 64 << 10,
    REALLOC_LEAST = 1000,
    REALLOC_BYTES = 1 << 20,
    BRIEF_ALLOCATIONS = 16 /* a block that is freed before so many more by its thread was for a
                              moment: so are all the blocks that a vector grows through */
};

static double share_of(uint64_t part, uint64_t whole) {
    return whole != 0 ? (double)part / (double)whole : 0;
}

static int out_of_memory(struct error *error) {
    return error_set(error, "out of memory");
}

/* The culprit of one context. */
static struct culprit culprit_of(const struct report *report, uint32_t *id) {
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
    char at[32]; /* as --at takes it */
};

static int add_pinned(struct findings *findings, const struct report *report,
                      const struct moment *moment) {
    const struct heapmap *map = &moment->map;
    const struct heapmap_pin *pin = &map->pins[0];
    uint32_t id = pin->context;
    struct culprit culprit = culprit_of(report, &id);
    struct finding finding = {.kind = FINDING_PINNED,
                              .bytes = pin->pages * HEAPMAP_PAGE,
                              .count = pin->pages,
                              .share = share_of(pin->pages, map->pages),
                              .hash = model_hash(report->model, id)};
    struct number numbers[6];
    char name[CULPRIT_NAME];
    char place[CULPRIT_NAME];
    finding.weight = 0.3 + 0.4 * finding.share;
    finding.title = findings_text("Blocks of %s keep %s", culprit_name(report, &culprit, name),
                                  number_items(&numbers[0], pin->pages, "nearly empty page"));
    finding.sentence = findings_text(
        "%s after the start, %s lay unused between blocks, and %s were in use. %s from %s lie on "
        "%s with almost nothing else (%s), so malloc could not return these to the system.",
        number_duration(&numbers[0], moment->holes.time_ns),
        number_bytes(&numbers[1], moment->holes.unused_bytes),
        number_bytes(&numbers[2], moment->holes.live_bytes), number_bytes(&numbers[3], pin->bytes),
        culprit_place(report, &culprit, place), number_items(&numbers[4], pin->pages, "page"),
        number_bytes(&numbers[5], finding.bytes));
    finding.view = findings_text("heap?at=%s", moment->at);
    finding.options = findings_text("--show-fragmentation --at %s", moment->at);
    return findings_add(findings, finding);
}

static int add_holes(struct findings *findings, const struct report *report,
                     const struct moment *moment) {
    const struct heapmap *map = &moment->map;
    struct finding finding = {.kind = FINDING_FRAGMENTATION,
                              .bytes = moment->holes.unused_bytes,
                              .count = map->all_holes,
                              .share =
                                  share_of(moment->holes.unused_bytes,
                                           moment->holes.unused_bytes + moment->holes.live_bytes)};
    struct number numbers[4];
    (void)report;
    finding.weight = 0.25 + 0.4 * finding.share;
    finding.title =
        findings_text("%s is unused between blocks", number_bytes(&numbers[0], finding.bytes));
    finding.sentence = findings_text(
        "%s after the start, %s in use lay on %s, %s of them nearly empty: the heap was %s larger "
        "than its contents.",
        number_duration(&numbers[0], moment->holes.time_ns),
        number_bytes(&numbers[1], moment->holes.live_bytes),
        number_items(&numbers[2], map->pages, "page"), number_count(&numbers[3], map->nearly_empty),
        number_bytes(&(struct number){{0}}, finding.bytes));
    finding.view = findings_text("heap?at=%s", moment->at);
    finding.options = findings_text("--show-fragmentation --at %s", moment->at);
    return findings_add(findings, finding);
}

static int add_slack(struct findings *findings, const struct report *report,
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
    finding.share = share_of(finding.bytes, bytes + finding.bytes);
    if (most == NULL || finding.bytes < SLACK_LEAST || finding.share < 0.1) {
        return 0;
    }
    id = most->id;
    culprit = culprit_of(report, &id);
    finding.weight = 0.6 * finding.share;
    finding.title = findings_text("Blocks are %s larger than requested",
                                  number_percent(&numbers[0], finding.bytes, bytes));
    finding.sentence = findings_text(
        "%s after the start, blocks with %s in total took %s more, because malloc rounds sizes up. "
        "%s of that is in blocks from %s.",
        number_duration(&numbers[0], moment->holes.time_ns), number_bytes(&numbers[1], bytes),
        number_bytes(&numbers[2], finding.bytes), number_bytes(&numbers[3], most->slack_bytes),
        culprit_place(report, &culprit, place));
    finding.view = findings_text("heap?at=%s", moment->at);
    finding.options = findings_text("--show-fragmentation --at %s", moment->at);
    return findings_add(findings, finding);
}

static int add_of_moment(struct findings *findings, const struct report *report,
                         const struct moment *moment) {
    const struct heapmap *map = &moment->map;
    bool is_trouble =
        moment->holes.unused_bytes >= UNUSED_LEAST &&
        moment->holes.unused_bytes >= moment->holes.live_bytes &&
        moment->holes.unused_bytes >= report->model->totals.maximum_bytes / PEAK_SHARE;
    if (add_slack(findings, report, moment) != 0) {
        return -1;
    }
    if (!is_trouble) {
        return 0;
    }
    return map->pin_count != 0 && map->pins[0].pages >= PINNED_PAGES &&
                   map->pins[0].pages * 4 >= map->pages
               ? add_pinned(findings, report, moment)
               : add_holes(findings, report, moment);
}

/* 0 or -1: out of memory or cancelled. */
static int look_at_moment(struct moment *moment, const struct findings_wish *wish,
                          struct error *error) {
    const struct detail_wish parts = {.parts = DETAIL_HEAP, .limit = 1};
    struct selection selection = selection_all();
    struct smaps smaps = {0};
    int result;
    selection.view.from_ns = wish->report->model->from_ns;
    selection.view.to_ns = moment->holes.time_ns + 1;
    snprintf(moment->at, sizeof moment->at, "%.9fs", (double)selection.view.to_ns / 1e9);
    moment->detail = detail_gather(&parts, &selection, wish->whole, wish->report->parts,
                                   wish->report->names, wish->replay, error);
    if (moment->detail == NULL) {
        return -1;
    }
    result = smaps_at(wish->report->parts, selection.view.to_ns, &smaps);
    if (result == 0) {
        result = heapmap_make(&moment->map, moment->detail, &smaps);
    }
    smaps_free(&smaps);
    return result == 0 ? 0 : out_of_memory(error);
}

static int find_holes(struct findings *findings, const struct findings_wish *wish,
                      struct error *error) {
    struct report report = *wish->report;
    struct moment moment = {0};
    int result;
    report.model = wish->whole; /* all blocks of the heap count, whatever is selected */
    if (holes_find(wish->whole, report.parts, wish->report->model->from_ns, wish->replay,
                   &moment.holes, error) != 0) {
        return -1;
    }
    result = look_at_moment(&moment, wish, error);
    if (result == 0 && add_of_moment(findings, &report, &moment) != 0) {
        result = out_of_memory(error);
    }
    heapmap_free(&moment.map);
    detail_free(moment.detail);
    return result;
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

static int count_move(void *context, const struct life *life) {
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

static int add_moves(struct findings *findings, const struct report *report,
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
    finding.share = share_of(moving->contexts[most].count, report->model->totals.allocations);
    if (moving->contexts[most].count < REALLOC_LEAST ||
        moving->contexts[most].bytes < REALLOC_BYTES ||
        (finding.share < 0.05 &&
         moving->contexts[most].bytes < report->model->totals.total_bytes / 10)) {
        return 0;
    }
    culprit = culprit_of(report, &most);
    finding.bytes = moving->contexts[most].bytes;
    finding.count = moving->contexts[most].count;
    finding.weight = 0.1 + 0.3 * share_of(finding.bytes, report->model->totals.total_bytes);
    finding.title =
        findings_text("%s grows blocks step by step", culprit_name(report, &culprit, name));
    finding.sentence = findings_text(
        "Blocks from %s were reallocated %s times, up to %s times in a row, which may have copied "
        "%s. Growing in larger steps, or allocating the final size at once, would avoid this.",
        culprit_place(report, &culprit, place), number_count(&numbers[0], finding.count),
        number_count(&numbers[1], moving->contexts[most].longest - 1),
        number_bytes(&numbers[2], finding.bytes));
    culprit_show(&finding, report, &culprit, "blocks?live=0&chain-length=2..",
                 "--show-blocks --chain-length 2..");
    return findings_add(findings, finding);
}

static uint64_t count_brief(const void *counts, const struct model_context *context) {
    const struct moving *moving = counts;
    uint64_t brief = moving->contexts[context->id].brief;
    return context->class == MODEL_HEAP && brief <= context->allocations ? brief : 0;
}

static int add_brief(struct findings *findings, const struct findings_wish *wish,
                     const struct moving *moving) {
    struct model brief;
    const struct brevity brevity = {.model = &brief, .allocations = BRIEF_ALLOCATIONS};
    int result = brevity_model(&brief, wish->report->model, count_brief, moving);
    if (result == 0) {
        result = findings_of_brevity(findings, wish, &brevity);
        brevity_free(&brief);
    }
    return result;
}

/* Both take the same pass. */
static int find_moves(struct findings *findings, const struct findings_wish *wish,
                      struct error *error) {
    struct moving moving = {.whole = wish->whole, .from_ns = wish->report->model->from_ns};
    const struct lives_visitor visitor = {.end = count_move, .context = &moving};
    int result;
    moving.contexts = calloc(wish->whole->node_count + 1, sizeof *moving.contexts);
    if (moving.contexts == NULL) {
        return out_of_memory(error);
    }
    result = selection_visit(wish->selection, wish->whole, wish->report->parts, wish->report->names,
                             &visitor, wish->replay, error);
    if (result == 0 && (add_moves(findings, wish->report, &moving) != 0 ||
                        add_brief(findings, wish, &moving) != 0)) {
        result = out_of_memory(error);
    }
    free(moving.contexts);
    return result == 0 ? 0 : -1;
}

/* ---- All ---- */

bool findings_have_passes(const struct findings_wish *wish) {
    const struct model_recording *recording = &wish->whole->recording;
    return wish->report->parts.count != 0 && !recording->sampled &&
           (wish->has_passes || recording->events <= SERIES_PASS_EVENTS);
}

int findings_of_passes(struct findings *findings, const struct findings_wish *wish,
                       struct error *error) {
    if (!findings_have_passes(wish)) {
        return 0;
    }
    return find_holes(findings, wish, error) == 0 ? find_moves(findings, wish, error) : -1;
}
