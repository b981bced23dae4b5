/* SPDX-License-Identifier: MIT */
/*
 * massif.c: a massif file: what the heap held at a hundred moments and at its maximum, every tenth
 * of them with the tree of who held it. A profile has the moments of its timeline, and trees of the
 * maximum and the end.
 */
#include "analyze/base/array.h"
#include "analyze/base/job.h"
#include "analyze/base/pathname.h"
#include "analyze/export/shared.h"
#include "analyze/rows/safetext.h"

#include <inttypes.h>

enum { MOMENTS = 100, DETAILED = 10 };
#define NS_PER_US UINT64_C(1000)
#define US_PER_MS UINT64_C(1000)

/* ---- Trees: from the functions that allocated down to who called them, the dearest first, what is
 * below a threshold in one line; contexts are grouped by their next frame, again and again ---- */

/* What a context holds at the moment. */
struct item {
    struct pathwalk walk; /* where in its path the tree has come */
    uint64_t bytes;
};

enum { DEEPEST = 30, PERMILLE = 10 }; /* massif's own: 30 frames, 1 % */

/* Items [first, first + count) that go on with the same place. */
struct group {
    size_t first;
    size_t count;
    uint64_t bytes;
};

struct tree {
    const struct export *export;
    struct item *items;
    uint64_t threshold;
};

/* By place; contexts that end here come last. */
static int massif_by_place(const void *left, const void *right) {
    const struct item *a = left;
    const struct item *b = right;
    if (a->walk.frame == NULL || b->walk.frame == NULL) {
        return (a->walk.frame == NULL) - (b->walk.frame == NULL);
    }
    if (a->walk.frame->place_key != b->walk.frame->place_key) {
        return a->walk.frame->place_key < b->walk.frame->place_key ? -1 : 1;
    }
    return (a->walk.node > b->walk.node) - (a->walk.node < b->walk.node);
}

static int massif_dearest_first(const void *left, const void *right) {
    const struct group *a = left;
    const struct group *b = right;
    if (a->bytes != b->bytes) {
        return a->bytes < b->bytes ? 1 : -1;
    }
    return (a->first > b->first) - (a->first < b->first);
}

/* The groups of sorted items. */
static struct group *massif_make_groups(const struct tree *tree, size_t first, size_t count,
                                        size_t *group_count) {
    struct group *groups = job_array(count, sizeof *groups);
    const struct names_frame *before = NULL;
    *group_count = 0;
    for (size_t i = first; i < first + count; i++) {
        const struct names_frame *frame = tree->items[i].walk.frame;
        if (frame == NULL) {
            break;
        }
        if (before == NULL || frame->place_key != before->place_key) {
            groups[(*group_count)++].first = i;
        }
        groups[*group_count - 1].count++;
        groups[*group_count - 1].bytes += tree->items[i].bytes;
        before = frame;
    }
    return groups;
}

/* ms_print takes '#' for the begin of a comment. */
static void massif_put_text(FILE *out, const char *text) {
    while (*(text = put_safe_until(out, text, "#")) != '\0') {
        putc_unlocked(':', out);
        text++;
    }
}

static void massif_put_place(const struct tree *tree, const struct pathwalk *walk) {
    const struct model *model = tree->export->model;
    struct model_place place = model_place(model, model->nodes[walk->node].frame);
    const struct names_frame *frame = walk->frame;
    FILE *out = tree->export->out;
    char label[EXPORT_LABEL];
    fprintf(out, " 0x%" PRIX64 ": ", place.called);
    massif_put_text(out, export_name(tree->export, frame, label));
    if (frame->file != NULL) {
        fputs(" (", out);
        massif_put_text(out, pathname_base(frame->file));
        fprintf(out, ":%u)\n", frame->line);
    } else {
        fputs(" (in ", out);
        massif_put_text(out, frame->module[0] != '\0' ? frame->module : "???");
        fputs(")\n", out);
    }
}

static void massif_put_node(const struct tree *tree, size_t depth, size_t children,
                            uint64_t bytes) {
    fprintf(tree->export->out, "%*sn%zu: %" PRIu64, (int)depth, "", children, bytes);
}

static void massif_put_children(const struct tree *tree, size_t first, size_t count, size_t depth,
                                uint64_t bytes, const struct pathwalk *walk);

static void massif_put_groups(const struct tree *tree, const struct group *groups, size_t kept,
                              size_t count, size_t depth) {
    uint64_t rest = 0;
    for (size_t i = 0; i < kept; i++) {
        const struct group *group = &groups[i];
        struct pathwalk place = tree->items[group->first].walk;
        for (size_t item = group->first; item < group->first + group->count; item++) {
            pathwalk_next(&tree->items[item].walk);
        }
        massif_put_children(tree, group->first, group->count, depth + 1, group->bytes, &place);
    }
    for (size_t i = kept; i < count; i++) {
        rest += groups[i].bytes;
    }
    if (kept < count) {
        massif_put_node(tree, depth + 1, 0, rest);
        fprintf(tree->export->out, " in %zu %s, below massif's threshold (1.00%%)\n", count - kept,
                count - kept == 1 ? "place" : "places, all");
    }
}

/* A node (walk NULL: the root) and what is below it. */
static void massif_put_children(const struct tree *tree, size_t first, size_t count, size_t depth,
                                uint64_t bytes, const struct pathwalk *walk) {
    size_t group_count = 0;
    size_t kept = 0;
    struct group *groups = NULL;
    if (depth < DEEPEST) {
        array_sort(tree->items + first, count, sizeof *tree->items, massif_by_place);
        groups = massif_make_groups(tree, first, count, &group_count);
        array_sort(groups, group_count, sizeof *groups, massif_dearest_first);
    }
    while (kept < group_count && groups[kept].bytes >= tree->threshold && groups[kept].bytes != 0) {
        kept++;
    }
    massif_put_node(tree, depth, kept + (kept < group_count), bytes);
    if (walk == NULL) {
        fputs(" (heap allocation functions) malloc/new/new[], --alloc-fns, etc.\n",
              tree->export->out);
    } else {
        massif_put_place(tree, walk);
    }
    massif_put_groups(tree, groups, kept, group_count, depth);
    job_release(groups);
}

/* ---- Snapshots ---- */

struct massif {
    const struct export *export;
    struct report report; /* for walks along call paths */
    uint64_t *live;       /* by node, as the pass goes */
    uint64_t total;       /* sum of live */
    size_t snapshot;      /* the next one's number */
    unsigned moment;      /* the next one of MOMENTS */
    bool has_peak;        /* is written */
};

static void massif_put_snapshot(struct massif *massif, uint64_t time_ns, uint64_t bytes,
                                const char *tree) {
    uint64_t time_us = time_ns / NS_PER_US;
    fprintf(massif->export->out,
            "#-----------\nsnapshot=%zu\n#-----------\ntime=%" PRIu64 ".%03" PRIu64
            "\nmem_heap_B=%" PRIu64 "\nmem_heap_extra_B=0\nmem_stacks_B=0\nheap_tree=%s\n",
            massif->snapshot++, time_us / US_PER_MS, time_us % US_PER_MS, bytes, tree);
}

/* bytes_of() tells what a context holds. */
static void
massif_put_detailed(struct massif *massif, uint64_t time_ns, uint64_t total, const char *kind,
                    uint64_t (*bytes_of)(const struct massif *, const struct model_context *)) {
    const struct model *model = massif->export->model;
    struct item *items = job_array(model->context_count + 1, sizeof *items);
    size_t count = 0;
    for (size_t i = 0; i < model->context_count; i++) {
        const struct model_context *context = &model->contexts[i];
        uint64_t bytes = context->class == MODEL_HEAP ? bytes_of(massif, context) : 0;
        if (bytes != 0) {
            items[count++] = (struct item){pathwalk(&massif->report, context->path), bytes};
        }
    }
    massif_put_snapshot(massif, time_ns, total, kind);
    massif_put_children(&(struct tree){massif->export, items, total / 1000 * PERMILLE}, 0, count, 0,
                        total, NULL);
    job_release(items);
}

static uint64_t massif_bytes_now(const struct massif *massif, const struct model_context *context) {
    return massif->live[context->id];
}

static uint64_t massif_bytes_at_peak(const struct massif *massif,
                                     const struct model_context *context) {
    (void)massif;
    return context->peak_bytes;
}

static uint64_t massif_bytes_at_end(const struct massif *massif,
                                    const struct model_context *context) {
    (void)massif;
    return context->live_bytes;
}

static void massif_put_peak(struct massif *massif, uint64_t time_ns) {
    if (!massif->has_peak) {
        massif->has_peak = true;
        massif_put_detailed(massif, time_ns, massif->export->model->totals.maximum_bytes, "peak",
                            massif_bytes_at_peak);
    }
}

/* ---- Of a recording ---- */

static uint64_t massif_moment_ns(const struct massif *massif, unsigned moment) {
    const struct model *model = massif->export->model;
    uint64_t from = model->from_ns;
    uint64_t to = model->to_ns < model->now_ns ? model->to_ns : model->now_ns;
    return from + (to > from ? to - from : 0) / MOMENTS * moment;
}

/* The moments that are over before something happens at this time. */
static void massif_put_moments(struct massif *massif, uint64_t time_ns) {
    uint64_t peak_ns = massif->export->model->totals.maximum_ns;
    while (massif->moment < MOMENTS && massif_moment_ns(massif, massif->moment) < time_ns) {
        uint64_t now_ns = massif_moment_ns(massif, massif->moment);
        if (peak_ns != 0 && peak_ns < now_ns) {
            massif_put_peak(massif, peak_ns);
        }
        if (massif->moment % DETAILED == DETAILED - 1) {
            massif_put_detailed(massif, now_ns, massif->total, "detailed", massif_bytes_now);
        } else {
            massif_put_snapshot(massif, now_ns, massif->total, "empty");
        }
        massif->moment++;
    }
    if (peak_ns != 0 && peak_ns < time_ns) {
        massif_put_peak(massif, peak_ns);
    }
}

static int massif_begin(void *context, const struct life *life) {
    struct massif *massif = context;
    massif_put_moments(massif, life->birth_ns);
    massif->live[life->context] += life_bytes(life);
    massif->total += life_bytes(life);
    return 0;
}

static int massif_end(void *context, const struct life *life) {
    struct massif *massif = context;
    massif_put_moments(massif, life->death_ns);
    massif->live[life->context] -= life_bytes(life);
    massif->total -= life_bytes(life);
    return 0;
}

/* The heap from before an attach, of which no single blocks are known, is there from the start. */
static void massif_begin_before(struct massif *massif) {
    const struct model_context *before =
        model_find(massif->export->model, massif->export->whole->before_node);
    if (before != NULL) {
        massif->total = before->live_bytes + before->freed_bytes;
        massif->live[before->id] = massif->total;
    }
}

static int massif_take_before_freed(void *context, const struct timeorder_event *entry) {
    struct massif *massif = context;
    const struct event *event = &entry->event;
    uint64_t *live = &massif->live[massif->export->whole->before_node];
    uint64_t bytes = event->id < *live ? event->id : *live;
    if (!event_is_before_freed(event) || event->time_ns < massif->export->model->from_ns) {
        return 0;
    }
    massif_put_moments(massif, event->time_ns);
    *live -= bytes;
    massif->total -= bytes;
    return 0;
}

static void massif_put_recording(struct massif *massif) {
    const struct lives_visitor visitor = {.begin = massif_begin,
                                          .end = massif_end,
                                          .other = massif_take_before_freed,
                                          .context = massif};
    massif->live = job_array(massif->export->model->node_count + 1, sizeof *massif->live);
    massif_begin_before(massif);
    lifepass_visit(massif->export, &visitor);
    massif_put_moments(massif, massif_moment_ns(massif, MOMENTS) + 1);
}

/* ---- Of a profile ---- */

/* The point of the timeline that held most; the maximum came about then. */
static uint64_t massif_highest_point(const struct model *model) {
    const struct memtrace_point *highest = NULL;
    for (size_t i = 0; i < model->timeline_count; i++) {
        if (highest == NULL || model->timeline[i].live_bytes > highest->live_bytes) {
            highest = &model->timeline[i];
        }
    }
    return highest != NULL ? highest->time_ns : model->now_ns;
}

static void massif_put_profile(struct massif *massif) {
    const struct model *model = massif->export->model;
    uint64_t peak_ns =
        model->totals.maximum_ns != 0 ? model->totals.maximum_ns : massif_highest_point(model);
    for (size_t i = 0; i < model->timeline_count && massif->export->selection == NULL; i++) {
        const struct memtrace_point *point = &model->timeline[i];
        if (point->time_ns >= peak_ns) {
            massif_put_peak(massif, peak_ns);
        }
        massif_put_snapshot(massif, point->time_ns,
                            point->live_bytes < model->totals.maximum_bytes
                                ? point->live_bytes
                                : model->totals.maximum_bytes,
                            "empty");
    }
    massif_put_peak(massif, peak_ns);
}

/* ---- The file ---- */

void export_massif(const struct export *export) {
    const struct model *model = export->model;
    struct massif massif = {.export = export,
                            .report = {.model = model,
                                       .names = export->names,
                                       .options = {.all_frames = export->all_frames}}};
    uint64_t end_ns = model->to_ns < model->now_ns ? model->to_ns : model->now_ns;
    export_prepare_names(export);
    fputs("desc: memtrace export\ncmd:", export->out);
    commandline_put(export->out, &model->header);
    fputs("\ntime_unit: ms\n", export->out);
    if (lifepass_possible(export)) {
        massif_put_recording(&massif);
    } else {
        massif_put_profile(&massif);
    }
    massif_put_peak(&massif, end_ns);
    massif_put_detailed(&massif, end_ns, model->totals.live_bytes, "detailed", massif_bytes_at_end);
}
