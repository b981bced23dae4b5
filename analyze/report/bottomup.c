/* SPDX-License-Identifier: MIT */
/*
 * bottomup.c: the tree from the allocating functions out to main. See calltree.h.
 *
 * All contexts whose paths begin alike climb together: a group is one call of the tree, and parts
 * into one group for each function that called it. So a call is made when all that it bears is
 * known, its siblings in their order, and no call has to be looked for. What a path goes on with is
 * found out once for each place of it (struct hop), however many paths lead through there.
 */
#include "analyze/base/job.h"
#include "analyze/base/numbermap.h"
#include "analyze/model/names.h"
#include "analyze/report/calltree.h"

#include <stdlib.h>
#include <string.h>

enum { DEPTH_LIMIT = 4096, SHORT_LIST = 16 };

/* One frame of a path, and where the path goes on: hops[0] is its end. */
struct hop {
    uint32_t next;
    uint32_t frame;  /* 0: nobody was here yet */
    uint32_t folded; /* library functions that the frame of `next` stands for */
};

/* A frame, each once. */
struct place {
    const struct names_frame *frame;
    uint32_t key; /* of its function, by line of its place: from 1 on */
    uint32_t line;
};

/* A context on its way out: the frame it comes to now. */
struct climber {
    uint32_t hop;
    uint16_t steps;
    uint16_t folded; /* as in its hop's predecessor */
    struct cost cost;
};

/* Climbers from..to of one of the two rows are at this call. */
struct group {
    uint32_t call;
    uint32_t key;
    uint32_t from, to;
    uint32_t row;
};

/* Where a group parts: one of the calls above it. */
struct branch {
    struct cost cost;
    uint32_t place;
    uint32_t count; /* of climbers; then where the next of them goes */
    uint32_t first_line, last_line;
    uint32_t folded;
};

struct climbing {
    struct calltree *tree;
    const struct report *report;
    enum metric metric;
    uint64_t least; /* what is cheaper is not looked at further */
    uint32_t depth;
    bool folds_libraries;

    uint32_t *first_hops; /* by node: of its frames, innermost first; 0: none yet */
    struct hop *hops;
    size_t hop_count, hop_room;
    struct place *places; /* places[0] is not used */
    size_t place_count, place_room;
    struct numbermap place_of; /* by the frame's address */
    struct numbermap key_of;   /* by function_key or place_key */
    size_t key_count;

    struct climber *rows[2];
    uint32_t *branch_of_climber; /* NONE: it ends here */
    uint32_t *branch_of_key;     /* NONE but while a group is parted */
    struct branch *branches;
    uint32_t *order;
    size_t branch_count, branch_room, order_room;
    struct group *groups; /* to be parted, the last one next */
    size_t group_count, group_room;
};

static const uint32_t NONE = UINT32_MAX;
static const struct names_frame unknown_frame = {.module = ""};

/* ---- Paths: each place once ---- */

/* From 1 on. */
static uint32_t climbing_place(struct climbing *climbing, const struct names_frame *frame) {
    uint64_t address = (uint64_t)(uintptr_t)frame;
    uint64_t key = calltree_key(climbing->report, frame);
    uint32_t place = (uint32_t)(uintptr_t)numbermap_get(&climbing->place_of, address);
    uint32_t number;
    if (place != 0) {
        return place;
    }
    number = (uint32_t)(uintptr_t)numbermap_get(&climbing->key_of, key);
    if (number == 0) {
        number = (uint32_t)++climbing->key_count;
        numbermap_set(&climbing->key_of, key, (void *)(uintptr_t)number);
    }
    place = (uint32_t)climbing->place_count;
    job_grow(&climbing->places, &climbing->place_room, place, sizeof *climbing->places);
    numbermap_set(&climbing->place_of, address, (void *)(uintptr_t)place);
    climbing->places[climbing->place_count++] =
        (struct place){.frame = frame, .key = number, .line = frame->line};
    return place;
}

/* The hop of the frame that the walk stands on. */
static uint32_t climbing_hop(struct climbing *climbing, const struct pathwalk *walk) {
    uint32_t *first = &climbing->first_hops[walk->node];
    if (*first == 0) {
        size_t count = 1;
        if (walk->node != 0) {
            names_frames(climbing->report->names, climbing->report->model->nodes[walk->node].frame,
                         &count);
        }
        job_reserve(&climbing->hops, &climbing->hop_room, climbing->hop_count + count,
                    sizeof *climbing->hops);
        memset(&climbing->hops[climbing->hop_count], 0, count * sizeof *climbing->hops);
        *first = (uint32_t)climbing->hop_count;
        climbing->hop_count += count;
    }
    return *first + (uint32_t)walk->index;
}

/* The first hop of a path; what it leads to is known then. */
static uint32_t climbing_follow(struct climbing *climbing, struct pathwalk walk) {
    uint32_t start = 0;
    uint32_t before = 0;
    while (walk.frame != NULL) {
        uint32_t hop = climbing_hop(climbing, &walk);
        if (before != 0) {
            climbing->hops[before].next = hop;
            climbing->hops[before].folded = (uint32_t)walk.folded;
        } else {
            start = hop;
        }
        if (climbing->hops[hop].frame != 0) {
            break;
        }
        climbing->hops[hop].frame = climbing_place(climbing, walk.frame);
        before = hop;
        pathwalk_next(&walk);
    }
    return start;
}

static uint16_t climbing_clamped(size_t number) {
    return number < UINT16_MAX ? (uint16_t)number : UINT16_MAX;
}

/* How many start to climb. */
static uint32_t climbing_start(struct climbing *climbing) {
    const struct report *report = climbing->report;
    const struct model *model = report->model;
    uint32_t count = 0;
    for (size_t i = 0; i < model->context_count; i++) {
        const struct model_context *context = &model->contexts[i];
        struct cost cost = metric_cost(climbing->metric, context);
        struct pathwalk walk;
        if (context->class != MODEL_HEAP || cost.main == 0) {
            continue;
        }
        walk = (climbing->folds_libraries ? pathwalk_folded : pathwalk)(report, context->path);
        if (walk.frame == NULL) {
            walk.frame = &unknown_frame;
        }
        climbing->rows[0][count++] = (struct climber){.hop = climbing_follow(climbing, walk),
                                                      .folded = climbing_clamped(walk.folded),
                                                      .cost = cost};
        metric_add(&climbing->tree->calls[0].cost, cost);
    }
    return count;
}

/* ---- Groups ---- */

static const struct place *climbing_place_at(const struct climbing *climbing, uint32_t hop) {
    return &climbing->places[climbing->hops[hop].frame];
}

static void climbing_step(const struct climbing *climbing, struct climber *climber) {
    const struct hop *hop = &climbing->hops[climber->hop];
    climber->hop = hop->next;
    climber->folded = climbing_clamped(hop->folded);
    climber->steps++;
}

/* Functions that call themselves are one call: a recursion would draw a line for each level. */
static void climbing_step_over_recursion(const struct climbing *climbing, const struct group *group,
                                         struct climber *climber) {
    struct call *call = &climbing->tree->calls[group->call];
    while (climber->hop != 0 && climber->steps <= climbing->depth &&
           climbing_place_at(climbing, climber->hop)->key == group->key) {
        call->recursive = true;
        calltree_note_line(&call->first_line, &call->last_line,
                           climbing_place_at(climbing, climber->hop)->line);
        if (climber->folded > call->folded) {
            call->folded = climber->folded;
        }
        climbing_step(climbing, climber);
    }
}

/* The branch that the climber takes, made if it is the first one. */
static uint32_t climbing_branch_of(struct climbing *climbing, const struct climber *climber) {
    const struct place *place = climbing_place_at(climbing, climber->hop);
    uint32_t number = climbing->branch_of_key[place->key];
    struct branch *branch;
    if (number == NONE) {
        number = (uint32_t)climbing->branch_count;
        job_grow(&climbing->branches, &climbing->branch_room, number, sizeof *climbing->branches);
        climbing->branches[climbing->branch_count++] =
            (struct branch){.place = climbing->hops[climber->hop].frame};
        climbing->branch_of_key[place->key] = number;
    }
    branch = &climbing->branches[number];
    metric_add(&branch->cost, climber->cost);
    branch->count++;
    calltree_note_line(&branch->first_line, &branch->last_line, place->line);
    if (climber->folded > branch->folded) {
        branch->folded = climber->folded;
    }
    return number;
}

/* Counts who goes where. Those that arrived are what the call itself was called for. */
static void climbing_count_branches(struct climbing *climbing, const struct group *group) {
    struct climber *row = climbing->rows[group->row];
    climbing->branch_count = 0;
    for (uint32_t i = group->from; i < group->to; i++) {
        if (group->key != 0 && !climbing->report->options.all_frames) {
            climbing_step_over_recursion(climbing, group, &row[i]);
        }
        climbing->branch_of_climber[i] = NONE;
        if (row[i].steps > climbing->depth) {
            continue;
        }
        if (row[i].hop == 0) {
            metric_add(&climbing->tree->calls[group->call].self, row[i].cost);
            continue;
        }
        climbing->branch_of_climber[i] = climbing_branch_of(climbing, &row[i]);
    }
}

/* Of those that cost the same the one that was met last is first, as siblings are elsewhere. */
static bool climbing_before(const struct branch *branches, uint32_t left, uint32_t right) {
    const struct cost *a = &branches[left].cost;
    const struct cost *b = &branches[right].cost;
    return a->main != b->main   ? a->main > b->main
           : a->side != b->side ? a->side > b->side
                                : left > right;
}

static int climbing_compare(const void *left, const void *right, void *branches) {
    return climbing_before(branches, *(const uint32_t *)left, *(const uint32_t *)right) ? -1 : 1;
}

static void climbing_sort_branches(struct climbing *climbing) {
    uint32_t *order = climbing->order;
    size_t count = climbing->branch_count;
    for (uint32_t i = 0; i < count; i++) {
        size_t at = i;
        for (;
             count <= SHORT_LIST && at > 0 && climbing_before(climbing->branches, i, order[at - 1]);
             at--) {
            order[at] = order[at - 1];
        }
        order[at] = i;
    }
    if (count > SHORT_LIST) {
        qsort_r(order, count, sizeof *order, climbing_compare, climbing->branches);
    }
}

/* The call of a branch, behind its dearer siblings. */
static void climbing_add_call(struct climbing *climbing, const struct group *group,
                              const struct branch *branch, bool is_first) {
    struct calltree *tree = climbing->tree;
    struct call *parent = &tree->calls[group->call];
    const struct names_frame *frame = climbing->places[branch->place].frame;
    uint32_t index = (uint32_t)tree->count++;
    if (is_first) {
        parent->first_child = index;
    } else {
        tree->calls[index - 1].next = index;
    }
    tree->calls[index] = (struct call){.frame = frame,
                                       .id = calltree_id(climbing->report, parent, frame),
                                       .cost = branch->cost,
                                       .parent = group->call,
                                       .first_line = branch->first_line,
                                       .last_line = branch->last_line,
                                       .folded = branch->folded};
}

/* Makes the calls of the branches, and a group of those that are dear enough. */
static void climbing_open_branches(struct climbing *climbing, const struct group *group) {
    struct calltree *tree = climbing->tree;
    size_t count = climbing->branch_count;
    uint32_t to = group->from;
    calltree_reserve(tree, count);
    job_reserve(&climbing->groups, &climbing->group_room, climbing->group_count + count,
                sizeof *climbing->groups);
    job_reserve(&climbing->order, &climbing->order_room, count, sizeof *climbing->order);
    climbing_sort_branches(climbing);
    for (size_t i = 0; i < count; i++) {
        struct branch *branch = &climbing->branches[climbing->order[i]];
        struct group above = {.call = (uint32_t)tree->count,
                              .key = climbing->places[branch->place].key,
                              .from = to,
                              .to = to + branch->count,
                              .row = 1 - group->row};
        climbing_add_call(climbing, group, branch, i == 0);
        climbing->branch_of_key[above.key] = NONE;
        branch->count = to; /* where its first climber goes */
        to = above.to;
        if (branch->cost.main >= climbing->least) {
            climbing->groups[climbing->group_count++] = above;
        }
    }
}

static void climbing_part(struct climbing *climbing, struct group group) {
    const struct climber *from = climbing->rows[group.row];
    struct climber *to = climbing->rows[1 - group.row];
    climbing_count_branches(climbing, &group);
    if (climbing->branch_count != 0) {
        climbing_open_branches(climbing, &group);
    }
    for (uint32_t i = group.from; i < group.to; i++) {
        uint32_t branch = climbing->branch_of_climber[i];
        if (branch != NONE) {
            struct climber *climber = &to[climbing->branches[branch].count++];
            *climber = from[i];
            climbing_step(climbing, climber);
        }
    }
}

static void climb(void *what) {
    struct climbing *climbing = what;
    const struct model *model = climbing->report->model;
    size_t most = model->context_count + 1;
    uint32_t count;
    climbing->first_hops = job_array(model->node_count + 1, sizeof *climbing->first_hops);
    climbing->rows[0] = job_array(most, sizeof *climbing->rows[0]);
    climbing->rows[1] = job_array(most, sizeof *climbing->rows[1]);
    climbing->branch_of_climber = job_array(most, sizeof *climbing->branch_of_climber);
    climbing->hop_count = 1;
    climbing->place_count = 1;
    count = climbing_start(climbing);
    climbing->branch_of_key = job_array(climbing->key_count + 1, sizeof *climbing->branch_of_key);
    for (size_t i = 0; i <= climbing->key_count; i++) {
        climbing->branch_of_key[i] = NONE;
    }
    climbing->least = (uint64_t)((double)climbing->tree->calls[0].cost.main / 100.0 *
                                 climbing->report->options.min_percent);
    if (count > 0) {
        climbing_part(climbing, (struct group){.to = count});
    }
    while (climbing->group_count > 0) {
        climbing_part(climbing, climbing->groups[--climbing->group_count]);
    }
}

struct calltree calltree_bottom_up(const struct report *report, enum metric metric) {
    const struct report_options *options = &report->options;
    struct calltree tree = calltree_begin();
    struct climbing climbing = {
        .tree = &tree,
        .report = report,
        .metric = metric,
        .depth = (uint32_t)(options->depth != 0 && options->depth < DEPTH_LIMIT ? options->depth
                                                                                : DEPTH_LIMIT),
        .folds_libraries = report_is_for_people(report) && !options->all_frames};
    job_within(climb, &climbing);
    return tree;
}
