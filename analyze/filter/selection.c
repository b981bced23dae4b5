/* SPDX-License-Identifier: MIT */
/* selection.c: a selection as a value, and what its filters let through: contexts, and blocks in
 * one pass over a recording. See selection.h. */
#include "analyze/filter/selection.h"

#include "analyze/base/job.h"
#include "analyze/base/pattern.h"
#include "analyze/replay/lives.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ANY       ((struct selection_range){0, UINT64_MAX})
#define ANY_TIMES ((struct selection_times){0, UINT64_MAX})

struct selection selection_all(void) {
    return (struct selection){
        .view = ANY_TIMES,
        .depth = ANY,
        .group_allocations = ANY,
        .group_bytes = ANY,
        .group_live_blocks = ANY,
        .group_live_bytes = ANY,
        .group_live_most = INFINITY,
        .group_interval = ANY,
        .group_maximum = ANY_TIMES,
        .size = ANY,
        .first_size = ANY,
        .last_size = ANY,
        .chain_length = ANY,
        .chain_position = ANY,
        .chain_lifetime = ANY,
        .lifetime = ANY,
        .address = ANY,
        .mappings = {.peak_resident = ANY},
        .born = ANY_TIMES,
        .died = ANY_TIMES,
    };
}

static void selection_free_regex(void *regex) {
    regfree(regex);
}

int selection_add_pattern(struct selection *selection, enum selection_part part, bool negative,
                          const char *regex, struct error *error) {
    struct selection_pattern pattern = {
        .part = part, .negative = negative, .regex = job_alloc(sizeof *pattern.regex)};
    char why[PATTERN_WHY];
    if (pattern_compile(pattern.regex, regex, why) != 0) {
        return error_set(error, "'%s' is not a regular expression: %s", regex, why);
    }
    job_undo(selection_free_regex, pattern.regex);
    job_grow(&selection->patterns, &selection->pattern_room, selection->pattern_count,
             sizeof pattern);
    selection->patterns[selection->pattern_count++] = pattern;
    return 0;
}

void selection_add_block(struct selection_blocks *blocks, uint64_t birth_order) {
    size_t place = birth_order / CHAR_BIT;
    size_t before = blocks->size;
    job_reserve(&blocks->bits, &blocks->size, place + 1, 1);
    memset(blocks->bits + before, 0, blocks->size - before);
    blocks->bits[place] |= (unsigned char)(1u << birth_order % CHAR_BIT);
}

/* ---- The filters: a line each, with whether the selection `s` asks for it, and when it holds ----
 */

static bool is_asked(struct selection_range range) {
    return !selection_is_any(range);
}

static bool is_timed(struct selection_times times) {
    return times.from_ns != 0 || times.to_ns != UINT64_MAX;
}

static bool is_during(uint64_t time_ns, struct selection_times times) {
    return times.from_ns <= time_ns && time_ns < times.to_ns;
}

/* Of a context of the model, and of the group of its blocks; but for patterns and depths, which are
 * those of paths. A group that allocated nothing has left nothing, whose share nobody knows. */
#define CONTEXT_FILTERS(FILTER)                                                                    \
    FILTER(s->classes != 0, (s->classes >> context->class & 1) != 0)                               \
    FILTER(s->pool != NULL, is_of_pool(model, context, s->pool))                                   \
    FILTER(s->path != 0, model_hash(model, context->id) == s->path)                                \
    FILTER(is_asked(s->group_allocations),                                                         \
           selection_is_within(context->allocations, s->group_allocations))                        \
    FILTER(is_asked(s->group_bytes), selection_is_within(context->total_bytes, s->group_bytes))    \
    FILTER(is_asked(s->group_live_blocks),                                                         \
           selection_is_within(context->live_blocks, s->group_live_blocks))                        \
    FILTER(is_asked(s->group_live_bytes),                                                          \
           selection_is_within(context->live_bytes, s->group_live_bytes))                          \
    FILTER(s->group_live_least > 0 || s->group_live_most < INFINITY, is_live_share(s, context))    \
    FILTER(selection_asks_group_times(s), s->groups != NULL && s->groups[context->id] != 0)

/* Of a block: it is known whether it holds when its life begins, when that is over, or of the last
 * block of a chain when that is over. */
enum filter_stage { AT_BIRTH, AT_DEATH, AT_CHAIN_END };
#define BLOCK_FILTERS(FILTER)                                                                      \
    FILTER(AT_BIRTH, is_asked(s->size), selection_is_within(life->size, s->size))                  \
    FILTER(AT_BIRTH, is_asked(s->first_size),                                                      \
           selection_is_within(life->chain_first_size, s->first_size))                             \
    FILTER(AT_BIRTH, is_timed(s->born), is_during(life->birth_ns, s->born))                        \
    FILTER(AT_BIRTH, is_asked(s->address), is_at(life, s->address))                                \
    FILTER(AT_BIRTH, s->thread_count != 0,                                                         \
           is_one_of(life->block.thread, s->threads, s->thread_count))                             \
    FILTER(AT_BIRTH, is_asked(s->chain_position),                                                  \
           selection_is_within(life->chain_length, s->chain_position))                             \
    FILTER(AT_BIRTH, s->arena != SELECTION_ANY_ARENA, is_of_arena(life, s->arena))                 \
    FILTER(AT_BIRTH, s->where != NULL, is_in_blocks(&s->where_holds, life->birth_order))           \
    FILTER(AT_BIRTH, s->only_mapped, (life->flags & MEMTRACE_ALLOC_MAPPED) != 0)                   \
    FILTER(AT_BIRTH, s->scope != NULL, scopes_has(filtering->scopes, life->scope, s->scope))       \
    FILTER(AT_DEATH, s->live_at_count != 0, lived_at_all(life, s))                                 \
    FILTER(AT_DEATH, is_asked(s->lifetime),                                                        \
           selection_is_within(duration(life->birth_ns, life->death_ns, filtering->run_ns),        \
                               s->lifetime))                                                       \
    FILTER(AT_DEATH, s->only_freed, is_dead(life) && is_during(life->death_ns, s->died))           \
    FILTER(AT_DEATH, selection_asks_mappings(&s->mappings),                                        \
           selection_is_in_mappings(&s->mappings, life))                                           \
    FILTER(AT_DEATH, s->death_thread_count != 0,                                                   \
           is_dead(life) &&                                                                        \
               is_one_of(life->death_thread, s->death_threads, s->death_thread_count))             \
    FILTER(AT_DEATH, s->only_leaked, !is_dead(life))                                               \
    FILTER(AT_DEATH, s->only_temporary, life->is_temporary)                                        \
    FILTER(AT_DEATH, s->only_foreign_freed,                                                        \
           is_dead(life) && life->death_thread != life->block.thread)                              \
    FILTER(AT_DEATH, s->freed_path != 0, is_freed_by_path(filtering, life))                        \
    FILTER(AT_CHAIN_END, is_asked(s->last_size), selection_is_within(life->size, s->last_size))    \
    FILTER(AT_CHAIN_END, is_asked(s->chain_length),                                                \
           selection_is_within(life->chain_length, s->chain_length))                               \
    FILTER(AT_CHAIN_END, is_asked(s->chain_lifetime),                                              \
           selection_is_within(duration(life->chain_birth_ns, life->death_ns, filtering->run_ns),  \
                               s->chain_lifetime))                                                 \
    FILTER(AT_CHAIN_END, s->only_chain_leaked, !is_dead(life))

#define IS_CONTEXT_FILTER_ASKED(asked, holds)     || (asked)
#define IS_BLOCK_FILTER_ASKED(when, asked, holds) || ((when) == stage && (asked))
#define CONTEXT_FILTER_HOLDS(asked, holds)        &&(!(asked) || (holds))
#define BLOCK_FILTER_HOLDS(when, asked, holds)    &&((when) != stage || !(asked) || (holds))

/* ---- What answering takes ---- */

bool selection_asks_group_times(const struct selection *s) {
    return is_asked(s->group_interval) || is_timed(s->group_maximum);
}

bool selection_asks_contexts(const struct selection *s) {
    return s->pattern_count != 0 || is_asked(s->depth) CONTEXT_FILTERS(IS_CONTEXT_FILTER_ASKED);
}

static bool asks_blocks(const struct selection *s, enum filter_stage stage) {
    return false BLOCK_FILTERS(IS_BLOCK_FILTER_ASKED);
}

bool selection_asks_deaths(const struct selection *selection) {
    return asks_blocks(selection, AT_DEATH);
}

bool selection_asks_chains(const struct selection *selection) {
    return asks_blocks(selection, AT_CHAIN_END);
}

bool selection_has_view(const struct selection *selection) {
    return is_timed(selection->view);
}

bool selection_asks_ends(const struct selection *selection) {
    return selection_asks_deaths(selection) || selection_asks_chains(selection) ||
           selection->view.from_ns != 0;
}

bool selection_needs_lives(const struct selection *selection) {
    return asks_blocks(selection, AT_BIRTH) || selection_asks_deaths(selection) ||
           selection_asks_chains(selection);
}

bool selection_is_all(const struct selection *selection) {
    return !selection_has_view(selection) && !selection_asks_contexts(selection) &&
           !selection_needs_lives(selection);
}

/* ---- Which contexts: what holds for a whole call path. Parents stand before their children, so
 * that each node is looked at once ---- */

static bool found_in(const struct selection_pattern *pattern, const char *text) {
    return text != NULL && regexec(pattern->regex, text, 0, NULL, 0) == 0;
}

/* A function without a name goes by what reports show in its place. */
static bool found_in_function(const struct selection_pattern *pattern,
                              const struct names_frame *frame) {
    char buffer[512];
    return found_in(pattern, frame->function != NULL ? frame->function
                                                     : names_spell(frame, buffer, sizeof buffer));
}

static bool found_in_frame(const struct selection_pattern *pattern, const struct model *model,
                           const struct names *names, uint64_t frame) {
    size_t count;
    const struct names_frame *frames;
    bool found = false;
    if (pattern->part == SELECTION_MODULE) {
        return found_in(pattern, model->modules[model_place(model, frame).module].path);
    }
    frames = names_frames(names, frame, &count);
    for (size_t i = 0; !found && i < count; i++) {
        found = pattern->part == SELECTION_FUNCTION ? found_in_function(pattern, &frames[i])
                                                    : found_in(pattern, frames[i].file);
    }
    return found;
}

/* A frame that stands at many nodes is matched once. */
struct match {
    uint64_t frame;
    bool found;
};

static int by_frame(const void *left, const void *right) {
    const struct match *a = left;
    const struct match *b = right;
    return (a->frame > b->frame) - (a->frame < b->frame);
}

/* The different frames of the model, sorted, each with what the pattern says. */
static size_t match_frames(struct match *matches, const struct selection_pattern *pattern,
                           const struct model *model, const struct names *names) {
    size_t count = 0;
    for (size_t id = 1; id < model->node_count; id++) {
        matches[id - 1].frame = model->nodes[id].frame;
    }
    qsort(matches, model->node_count - 1, sizeof *matches, by_frame);
    for (size_t i = 0; i + 1 < model->node_count; i++) {
        uint64_t frame = matches[i].frame;
        if (count != 0 && matches[count - 1].frame == frame) {
            continue;
        }
        matches[count].frame = frame;
        matches[count++].found =
            frame >= MEMTRACE_FRAME_CLASSES && found_in_frame(pattern, model, names, frame);
    }
    return count;
}

/* rejected[id] is set where the pattern does not hold for the path that ends in node `id`. */
static void reject_by_pattern(bool *rejected, const struct selection_pattern *pattern,
                              const struct model *model, const struct names *names) {
    struct match *matches = job_array(model->node_count, sizeof *matches);
    bool *found = job_array(model->node_count, sizeof *found);
    size_t count;
    if (pattern->part != SELECTION_MODULE && names_prepare_all(names) != 0) {
        job_fail_memory();
    }
    count = match_frames(matches, pattern, model, names);
    for (size_t id = 1; id < model->node_count; id++) {
        struct match key = {.frame = model->nodes[id].frame};
        found[id] = found[model->nodes[id].parent];
        if (!found[id]) {
            const struct match *match = bsearch(&key, matches, count, sizeof *matches, by_frame);
            found[id] = match != NULL && match->found;
        }
        rejected[id] |= found[id] == pattern->negative;
    }
    job_release(matches);
    job_release(found);
}

/* Frames that tell a class are no code and do not count. */
static void reject_by_depth(bool *rejected, struct selection_range range,
                            const struct model *model) {
    uint32_t *depths = job_array(model->node_count, sizeof *depths);
    for (size_t id = 1; id < model->node_count; id++) {
        uint64_t frame = model->nodes[id].frame;
        bool is_frame = frame >= MEMTRACE_FRAME_CLASSES || frame == MEMTRACE_FRAME_UNKNOWN;
        depths[id] = depths[model->nodes[id].parent] + is_frame;
        rejected[id] |= depths[id] < range.least || depths[id] > range.most;
    }
    job_release(depths);
}

static bool is_live_share(const struct selection *selection, const struct model_context *context) {
    double percent = 100.0 * (double)context->live_blocks / (double)context->allocations;
    return context->allocations != 0 && selection->group_live_least <= percent &&
           percent <= selection->group_live_most;
}

static bool is_of_pool(const struct model *model, const struct model_context *context,
                       const char *pool) {
    return context->class == MODEL_POOL && strcmp(model_class_name(model, context), pool) == 0;
}

static bool context_holds(const struct selection *s, const struct model *model,
                          const struct model_context *context) {
    return true CONTEXT_FILTERS(CONTEXT_FILTER_HOLDS);
}

uint32_t *selection_contexts(const struct selection *selection, const struct model *whole,
                             const struct names *names) {
    uint32_t *places = job_array(whole->node_count + 1, sizeof *places);
    bool *rejected = job_array(whole->node_count + 1, sizeof *rejected);
    for (size_t i = 0; whole->node_count > 1 && i < selection->pattern_count; i++) {
        reject_by_pattern(rejected, &selection->patterns[i], whole, names);
    }
    if (is_asked(selection->depth)) {
        reject_by_depth(rejected, selection->depth, whole);
    }
    for (size_t i = 0; i < whole->context_count; i++) {
        const struct model_context *context = &whole->contexts[i];
        if (!rejected[context->id] && context_holds(selection, whole, context)) {
            places[context->id] = (uint32_t)i + 1;
        }
    }
    job_release(rejected);
    return places;
}

/* ---- Which blocks ---- */

struct filtering {
    const struct selection *selection;
    const struct selectionpass_visitor *visitor;
    const uint32_t *places;
    struct chains *chains; /* NULL: no filter asks for them */
    struct scopes *scopes; /* NULL: nor for scopes */
    const struct model *whole;
    unsigned char *freers; /* of the filter of paths that free: by node, enum freer; NULL: none */
    uint64_t run_ns;       /* how long the run was */
};
enum freer { FREER_UNKNOWN, FREER_ASKED_FOR, FREER_OTHER };

/* A life that goes on (LIFE_ALIVE) is one that never ends. */
static bool is_dead(const struct life *life) {
    return life->death_ns != LIFE_ALIVE;
}

static bool is_one_of(uint32_t id, const uint32_t *ids, size_t count) {
    bool found = false;
    for (size_t i = 0; !found && i < count; i++) {
        found = ids[i] == id;
    }
    return found;
}

/* Where the recording has no addresses nobody knows, so it does not hold. */
static bool is_at(const struct life *life, struct selection_range range) {
    uint64_t last = life->address + (life->size != 0 ? life->size - 1 : 0);
    return life->address != 0 && life->address <= range.most && range.least <= last;
}

static uint64_t duration(uint64_t from_ns, uint64_t to_ns, uint64_t run_ns) {
    uint64_t end = to_ns == LIFE_ALIVE ? run_ns : to_ns;
    return end > from_ns ? end - from_ns : 0;
}

/* As in a view that ends then: what happens at that very time is still to come. */
static bool lived_at_all(const struct life *life, const struct selection *selection) {
    bool lived = true;
    for (size_t i = 0; i < selection->live_at_count; i++) {
        uint64_t time_ns = selection->live_at_ns[i];
        lived &= life->birth_ns < time_ns && life->death_ns >= time_ns;
    }
    return lived;
}

static bool is_of_arena(const struct life *life, enum selection_arena arena) {
    enum { ELSEWHERE = MEMTRACE_ALLOC_MAPPED | MEMTRACE_ALLOC_ARENA };
    return arena == SELECTION_MAIN_ARENA ? (life->flags & ELSEWHERE) == 0
                                         : (life->flags & MEMTRACE_ALLOC_ARENA) != 0;
}

static bool is_in_blocks(const struct selection_blocks *blocks, uint64_t birth_order) {
    size_t place = birth_order / CHAR_BIT;
    return place < blocks->size && (blocks->bits[place] >> birth_order % CHAR_BIT & 1) != 0;
}

/* Each path is looked at once. */
static bool is_freed_by_path(const struct filtering *filtering, const struct life *life) {
    uint32_t id = life->death_context.node;
    if (!is_dead(life) || id == 0) {
        return false;
    }
    if (filtering->freers[id] == FREER_UNKNOWN) {
        filtering->freers[id] = model_hash(filtering->whole, id) == filtering->selection->freed_path
                                    ? FREER_ASKED_FOR
                                    : FREER_OTHER;
    }
    return filtering->freers[id] == FREER_ASKED_FOR;
}

static inline bool block_holds(const struct filtering *filtering, const struct life *life,
                               enum filter_stage stage) {
    const struct selection *s = filtering->selection;
    return true BLOCK_FILTERS(BLOCK_FILTER_HOLDS);
}

/* Whether all filters hold but those of chains. */
static bool selection_holds(const struct filtering *filtering, const struct life *life) {
    return filtering->places[life->context] != 0 && block_holds(filtering, life, AT_BIRTH) &&
           block_holds(filtering, life, AT_DEATH);
}

/* ---- One pass ---- */

static int take(const struct filtering *filtering, const struct life *life) {
    return filtering->visitor->take != NULL
               ? filtering->visitor->take(filtering->visitor->context, life)
               : 0;
}

static int take_kept(struct filtering *filtering, const struct life *last, bool is_selected) {
    size_t count = 0;
    struct life *kept =
        last->chain_length > 1 ? chains_take(filtering->chains, last, &count) : NULL;
    int result = 0;
    for (size_t i = 0; result == 0 && is_selected && i < count; i++) {
        result = take(filtering, &kept[i]);
    }
    job_release(kept);
    return result;
}

/* Its last block tells whether a chain is selected. */
static int end_in_chain(struct filtering *filtering, const struct life *life) {
    bool is_selected;
    int result;
    if (life->is_reallocated) {
        if (selection_holds(filtering, life)) {
            chains_keep(filtering->chains, life);
        }
        return 0;
    }
    is_selected = block_holds(filtering, life, AT_CHAIN_END);
    result = take_kept(filtering, life, is_selected);
    return result == 0 && is_selected && selection_holds(filtering, life) ? take(filtering, life)
                                                                          : result;
}

static int on_begin(void *context, const struct life *life) {
    struct filtering *filtering = context;
    const struct selectionpass_visitor *visitor = filtering->visitor;
    int result = visitor->begin != NULL ? visitor->begin(visitor->context, life) : 0;
    if (result == 0 && visitor->take_begin != NULL && !selection_asks_ends(filtering->selection) &&
        selection_holds(filtering, life)) {
        result = visitor->take_begin(visitor->context, life);
    }
    return result;
}

static int on_end(void *context, const struct life *life) {
    struct filtering *filtering = context;
    const struct selectionpass_visitor *visitor = filtering->visitor;
    int result = 0;
    if (visitor->end != NULL && life->death_ns != LIFE_ALIVE) {
        result = visitor->end(visitor->context, life);
    }
    if (result == 0 && filtering->chains != NULL) {
        return end_in_chain(filtering, life);
    }
    return result == 0 && selection_holds(filtering, life) ? take(filtering, life) : result;
}

static int on_other(void *context, const struct timeorder_event *event) {
    const struct filtering *filtering = context;
    return filtering->visitor->other(filtering->visitor->context, event);
}

int selectionpass_run(const struct selection *selection, const struct model *whole,
                      struct timeorder_parts parts, const uint32_t *places,
                      const struct selectionpass_visitor *visitor,
                      const struct replay_options *options, struct error *error) {
    struct filtering filtering = {.selection = selection,
                                  .visitor = visitor,
                                  .places = places,
                                  .whole = whole,
                                  .run_ns = whole->now_ns,
                                  .scopes = visitor->scopes};
    struct lives_visitor lives = {
        .begin = visitor->begin != NULL || visitor->take_begin != NULL ? on_begin : NULL,
        .end = on_end,
        .other = visitor->other != NULL ? on_other : NULL,
        .context = &filtering};
    struct replay_options limits = options != NULL ? *options : (struct replay_options){0};
    int result;
    /* Where nobody asks how lives end nothing behind the view needs to be read. */
    if (selection->view.to_ns != UINT64_MAX && !selection_asks_deaths(selection) &&
        !selection_asks_chains(selection) &&
        (limits.until_ns == 0 || limits.until_ns > selection->view.to_ns)) {
        limits.until_ns = selection->view.to_ns;
    }
    if (selection_asks_chains(selection)) {
        filtering.chains = chains_new();
    }
    if (selection->scope != NULL && filtering.scopes == NULL) {
        filtering.scopes = scopes_new();
    }
    if (selection->freed_path != 0) {
        filtering.freers = job_array(whole->node_count, 1);
    }
    lives.scopes = filtering.scopes;
    result = lives_visit(parts, whole, &lives, &limits, error);
    chains_free(filtering.chains);
    job_release(filtering.freers);
    return result;
}

/* ---- As a view shows them ---- */

struct visit {
    struct selection_times view;
    const struct lives_visitor *visitor;
};

static int show_begin(void *context, const struct life *life) {
    const struct visit *visit = context;
    return life->birth_ns < visit->view.to_ns ? visit->visitor->begin(visit->visitor->context, life)
                                              : 0;
}

/* A life that outlives the view has no end that could be seen from there. */
static int show_end(void *context, const struct life *life) {
    const struct visit *visit = context;
    struct life shown = *life;
    if (life->birth_ns >= visit->view.to_ns || life->death_ns < visit->view.from_ns) {
        return 0;
    }
    if (life->death_ns >= visit->view.to_ns) {
        shown.death_ns = LIFE_ALIVE;
        shown.death_order = LIFE_ALIVE;
        shown.death_thread = 0;
        shown.death_context = (struct context_id){0};
        shown.is_temporary = false;
        shown.is_reallocated = false;
    }
    return visit->visitor->end(visit->visitor->context, &shown);
}

static int show_other(void *context, const struct timeorder_event *event) {
    const struct visit *visit = context;
    return is_during(event->event.time_ns, visit->view)
               ? visit->visitor->other(visit->visitor->context, event)
               : 0;
}

int selection_visit(const struct selection *selection, const struct model *whole,
                    struct timeorder_parts parts, const struct names *names,
                    const struct lives_visitor *visitor, const struct replay_options *options,
                    struct error *error) {
    struct visit visit = {selection->view, visitor};
    struct selectionpass_visitor pass = {.take = visitor->end != NULL ? show_end : NULL,
                                         .take_begin = visitor->begin != NULL ? show_begin : NULL,
                                         .other = visitor->other != NULL ? show_other : NULL,
                                         .scopes = visitor->scopes,
                                         .context = &visit};
    uint32_t *places;
    int result;
    if (parts.count == 0) {
        return error_set(error, "a profile has no single blocks; make a recording with "
                                "`memtrace record`");
    }
    places = selection_contexts(selection, whole, names);
    result = selectionpass_run(selection, whole, parts, places, &pass, options, error);
    job_release(places);
    return result;
}

uint32_t selection_classes(const struct selection *selection) {
    return selection->classes == 0 && selection->pool != NULL ? 1u << MODEL_POOL
                                                              : selection->classes;
}
