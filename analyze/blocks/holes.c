/* SPDX-License-Identifier: MIT */
/* holes.c: see holes.h. */
#include "analyze/blocks/holes.h"

#include "analyze/base/job.h"
#include "analyze/profile/load.h"

#include <stdlib.h>

/* ---- What is inside of large blocks ---- */

static struct inside *insides_look(struct insides *insides, size_t place) {
    insides->looks++;
    return &insides->items[place - 1];
}

/* A place + 1. */
static size_t insides_take_place(struct insides *insides) {
    size_t place = insides->free;
    if (place != 0) {
        insides->free = insides_look(insides, place)->below;
        return place;
    }
    job_grow(&insides->items, &insides->room, insides->used, sizeof *insides->items);
    return ++insides->used;
}

static void insides_give_back(struct insides *insides, size_t place) {
    *insides_look(insides, place) = (struct inside){.below = insides->free};
    insides->free = place;
}

void insides_add(struct insides *insides, uint64_t start, uint64_t end) {
    size_t place = insides_take_place(insides);
    *insides_look(insides, place) =
        (struct inside){start, end, (size_t)(uintptr_t)numbermap_get(&insides->by_start, start)};
    numbermap_set(&insides->by_start, start, (void *)(uintptr_t)place);
    insides->pages += end - start;
}

void insides_remove(struct insides *insides, uint64_t start) {
    size_t place = (size_t)(uintptr_t)numbermap_get(&insides->by_start, start);
    struct inside gone;
    if (place == 0) {
        return;
    }
    gone = *insides_look(insides, place);
    insides->pages -= gone.end - gone.start;
    insides_give_back(insides, place);
    if (gone.below != 0) {
        numbermap_set(&insides->by_start, start, (void *)(uintptr_t)gone.below);
    } else {
        numbermap_take(&insides->by_start, start);
    }
}

enum { PAGE = 4096, PAGES = 256, WORDS = PAGES / 64, SMALLEST_TABLE = 256 };

/* One MiB of addresses. Bit i of `touched` is set where used[i] != 0. */
struct chunk {
    uint64_t number; /* address / 1 MiB + 1; 0: the place is free */
    uint64_t touched[WORDS];
    uint32_t used[PAGES]; /* bytes in use; more than a page only in a damaged file */
};

struct holes_state {
    const struct model *whole;
    const struct holes_watch *watch; /* NULL: nobody looks */
    size_t next;                     /* moment of it */
    struct insides large;            /* of blocks of more than 1 MiB, if somebody looks */
    uint64_t touched_pages;          /* as those, of what chunks have */
    struct holes most;               /* when an allocation came next */
    struct holes ever;               /* at any moment */
    struct chunk *chunks;            /* open addressing; count * 2 <= capacity */
    size_t capacity;                 /* a power of two */
    size_t count;
    uint64_t from_ns;
    uint64_t now_ns;
    uint64_t live_bytes;
    uint64_t partly_bytes; /* unused on touched pages */
    uint64_t empty_pages;  /* between touched pages */
};

/* ---- Chunks ---- */

static struct chunk *holes_place_of(struct chunk *chunks, size_t capacity, uint64_t number) {
    size_t at = (size_t)((number * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (capacity - 1);
    while (chunks[at].number != 0 && chunks[at].number != number) {
        at = (at + 1) & (capacity - 1);
    }
    return &chunks[at];
}

static void holes_grow(struct holes_state *looking) {
    size_t capacity = looking->capacity != 0 ? looking->capacity * 2 : SMALLEST_TABLE;
    struct chunk *chunks = job_array(capacity, sizeof *chunks);
    for (size_t i = 0; i < looking->capacity; i++) {
        if (looking->chunks[i].number != 0) {
            *holes_place_of(chunks, capacity, looking->chunks[i].number) = looking->chunks[i];
        }
    }
    job_release(looking->chunks);
    looking->chunks = chunks;
    looking->capacity = capacity;
}

/* The chunk of a page, made if need be. */
static struct chunk *holes_chunk_of(struct holes_state *looking, uint64_t page) {
    struct chunk *chunk;
    if (looking->count * 2 >= looking->capacity) {
        holes_grow(looking);
    }
    chunk = holes_place_of(looking->chunks, looking->capacity, page / PAGES + 1);
    if (chunk->number == 0) {
        chunk->number = page / PAGES + 1;
        looking->count++;
    }
    return chunk;
}

/* ---- Empty pages between touched ones ---- */

/* The touched page of a chunk that comes next below `before` (at most PAGES); PAGES: none. */
static unsigned holes_touched_below(const struct chunk *chunk, unsigned before) {
    unsigned word = before / 64;
    uint64_t bits =
        before % 64 != 0 ? chunk->touched[word] & ((UINT64_C(1) << before % 64) - 1) : 0;
    while (bits == 0 && word != 0) {
        bits = chunk->touched[--word];
    }
    return bits != 0 ? word * 64 + 63 - (unsigned)__builtin_clzll(bits) : PAGES;
}

/* The same from `from` on upwards. */
static unsigned holes_touched_from(const struct chunk *chunk, unsigned from) {
    unsigned word = from / 64;
    uint64_t bits = from < PAGES ? chunk->touched[word] & UINT64_MAX << from % 64 : 0;
    while (bits == 0 && ++word < WORDS) {
        bits = chunk->touched[word];
    }
    return bits != 0 ? word * 64 + (unsigned)__builtin_ctzll(bits) : PAGES;
}

static const struct chunk *holes_neighbour(const struct holes_state *looking, uint64_t number) {
    const struct chunk *chunk = holes_place_of(looking->chunks, looking->capacity, number);
    return chunk->number != 0 ? chunk : NULL; /* else: nothing in that whole MiB */
}

static uint64_t holes_at_most(uint64_t away) {
    return away < PAGES ? away : PAGES;
}

/* How far the next touched page is, downwards, then upwards; PAGES: too far to be a hole. */
static uint64_t holes_distance_down(const struct holes_state *looking, const struct chunk *chunk,
                                    unsigned page) {
    unsigned found = holes_touched_below(chunk, page);
    if (found != PAGES) {
        return page - found;
    }
    chunk = holes_neighbour(looking, chunk->number - 1);
    found = chunk != NULL ? holes_touched_below(chunk, PAGES) : PAGES;
    return found != PAGES ? holes_at_most(page + PAGES - found) : PAGES;
}

static uint64_t holes_distance_up(const struct holes_state *looking, const struct chunk *chunk,
                                  unsigned page) {
    unsigned found = holes_touched_from(chunk, page + 1);
    if (found != PAGES) {
        return found - page;
    }
    chunk = holes_neighbour(looking, chunk->number + 1);
    found = chunk != NULL ? holes_touched_from(chunk, 0) : PAGES;
    return found != PAGES ? holes_at_most(found + PAGES - page) : PAGES;
}

static uint64_t holes_pages_between(uint64_t away) {
    return away < PAGES ? away - 1 : 0;
}

/* A page becomes touched, or is not any more. */
static void holes_turn(struct holes_state *looking, struct chunk *chunk, uint64_t page,
                       bool is_on) {
    uint64_t before = holes_distance_down(looking, chunk, page % PAGES);
    uint64_t after = holes_distance_up(looking, chunk, page % PAGES);
    uint64_t split = holes_pages_between(before) + holes_pages_between(after);
    uint64_t whole = holes_pages_between(before + after);
    chunk->touched[page % PAGES / 64] ^= UINT64_C(1) << (page % 64);
    looking->touched_pages += is_on ? 1 : UINT64_MAX;
    looking->empty_pages += is_on ? split - whole : whole - split;
}

/* ---- Blocks ---- */

static uint64_t holes_unused_on(uint64_t used) {
    return used == 0 || used >= PAGE ? 0 : PAGE - used;
}

static void holes_change_page(struct holes_state *looking, uint64_t page, uint32_t bytes,
                              bool is_birth) {
    struct chunk *chunk = holes_chunk_of(looking, page);
    uint32_t *used = &chunk->used[page % PAGES];
    looking->partly_bytes -= holes_unused_on(*used);
    if (is_birth ? *used == 0 : *used == bytes) {
        holes_turn(looking, chunk, page, is_birth);
    }
    *used = is_birth ? *used + bytes : *used - bytes;
    looking->partly_bytes += holes_unused_on(*used);
}

/* Of a block of more than 1 MiB the ends are enough: too far apart for a hole between them. */
static void holes_change_block(struct holes_state *looking, const struct life *life,
                               bool is_birth) {
    uint64_t size = life->size + life->slack;
    uint64_t from = life->address;
    uint64_t end;
    if (size == 0 || from == 0 || __builtin_add_overflow(from, size, &end) ||
        contexts_class(looking->whole->nodes[life->context].frame) != MODEL_HEAP) {
        return;
    }
    looking->live_bytes += is_birth ? size : -size;
    while (from < end) {
        uint64_t page_end = (from / PAGE + 1) * PAGE;
        uint64_t until = page_end < end ? page_end : end;
        holes_change_page(looking, from / PAGE, (uint32_t)(until - from), is_birth);
        if (size > (PAGES + 1) * PAGE && until < (end - 1) / PAGE * PAGE) {
            from = (end - 1) / PAGE * PAGE;
            if (looking->watch != NULL && is_birth) {
                insides_add(&looking->large, until / PAGE, from / PAGE);
            } else if (looking->watch != NULL) {
                insides_remove(&looking->large, until / PAGE);
            }
        } else {
            from = until;
        }
    }
}

/* ---- Time ---- */

struct holes holes_now(const struct holes_state *state) {
    return (struct holes){.time_ns = state->now_ns,
                          .unused_bytes = state->partly_bytes + state->empty_pages * PAGE,
                          .live_bytes = state->live_bytes};
}

static void holes_keep_most(struct holes *most, struct holes now) {
    *most = now.unused_bytes > most->unused_bytes ? now : *most;
}

/* Those up to this time. */
static void holes_show_moments(struct holes_state *looking, uint64_t until_ns) {
    const struct holes_watch *watch = looking->watch;
    while (watch != NULL && looking->next < watch->count &&
           watch->times_ns[looking->next] <= until_ns) {
        watch->moment(watch->context, looking->next, looking);
        looking->next++;
    }
}

/* What was so since now_ns stays so until time_ns. */
static void holes_pass_time(struct holes_state *looking, uint64_t time_ns, bool is_birth) {
    const struct holes now = holes_now(looking);
    if (time_ns > looking->now_ns) {
        holes_show_moments(looking, time_ns);
        if (looking->now_ns >= looking->from_ns) {
            holes_keep_most(&looking->ever, now);
        }
        if (looking->now_ns >= looking->from_ns && is_birth) {
            holes_keep_most(&looking->most, now);
        }
        looking->now_ns = time_ns;
    }
}

static int holes_begin(void *context, const struct life *life) {
    struct holes_state *looking = context;
    holes_pass_time(looking, life->birth_ns, true);
    holes_change_block(looking, life, true);
    return 0;
}

static int holes_end(void *context, const struct life *life) {
    struct holes_state *looking = context;
    if (life->death_ns != LIFE_ALIVE) {
        holes_pass_time(looking, life->death_ns, false);
        holes_change_block(looking, life, false);
    }
    return 0;
}

uint64_t holes_pages(const struct holes_state *state) {
    return state->touched_pages + state->large.pages;
}

static void holes_visit_chunk(const struct chunk *chunk,
                              void (*visit)(void *context, uint64_t start, uint64_t end,
                                            uint64_t used),
                              void *context) {
    uint64_t start = (chunk->number - 1) * PAGES * PAGE;
    for (size_t i = 0; i < PAGES; i++) {
        if (chunk->used[i] != 0) {
            visit(context, start + i * PAGE, start + (i + 1) * PAGE, chunk->used[i]);
        }
    }
}

void holes_visit(const struct holes_state *state,
                 void (*visit)(void *context, uint64_t start, uint64_t end, uint64_t used),
                 void *context) {
    for (size_t i = 0; i < state->capacity; i++) {
        if (state->chunks[i].number != 0) {
            holes_visit_chunk(&state->chunks[i], visit, context);
        }
    }
    for (size_t i = 0; i < state->large.used; i++) {
        const struct inside *inside = &state->large.items[i];
        if (inside->end != 0) {
            visit(context, inside->start * PAGE, inside->end * PAGE,
                  (inside->end - inside->start) * PAGE);
        }
    }
}

struct watching {
    struct holes_state state;
    struct timeorder_parts parts;
    const struct replay_options *options;
};

static void holes_look(void *what) {
    struct watching *watching = what;
    struct holes_state *state = &watching->state;
    const struct lives_visitor visitor = {.begin = holes_begin, .end = holes_end, .context = state};
    struct error error = {""};
    holes_grow(state);
    job_check(lives_visit(watching->parts, state->whole, &visitor, watching->options, &error),
              &error);
    holes_pass_time(state, state->now_ns + 1, false);
    holes_show_moments(state, UINT64_MAX);
}

int holes_watch(const struct model *whole, struct timeorder_parts parts, uint64_t from_ns,
                const struct holes_watch *watch, const struct replay_options *options,
                struct holes *holes, struct error *error) {
    struct watching watching = {.state = {.whole = whole,
                                          .watch = watch,
                                          .most = {.time_ns = from_ns},
                                          .ever = {.time_ns = from_ns},
                                          .from_ns = from_ns},
                                .parts = parts,
                                .options = options};
    int result = job_run(holes_look, &watching, NULL, error);
    *holes = watching.state.most.unused_bytes != 0 ? watching.state.most : watching.state.ever;
    return result;
}

int holes_find(const struct model *whole, struct timeorder_parts parts, uint64_t from_ns,
               const struct replay_options *options, struct holes *holes, struct error *error) {
    return holes_watch(whole, parts, from_ns, NULL, options, holes, error);
}

bool holes_are_trouble(const struct holes *holes, const struct model *model) {
    enum { LEAST = 1 << 20, SHARE = 4 };
    return holes->unused_bytes >= LEAST && holes->unused_bytes >= holes->live_bytes &&
           holes->unused_bytes >= model->totals.maximum_bytes / SHARE;
}
