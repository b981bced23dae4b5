/* SPDX-License-Identifier: MIT */
/* holes.c: see holes.h. */
#include "analyze/blocks/holes.h"

#include "analyze/blocks/insides.h"
#include "analyze/profile/load.h"

#include <stdlib.h>

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
    bool out_of_memory;
};

/* ---- Chunks ---- */

static struct chunk *place_of(struct chunk *chunks, size_t capacity, uint64_t number) {
    size_t at = (size_t)((number * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (capacity - 1);
    while (chunks[at].number != 0 && chunks[at].number != number) {
        at = (at + 1) & (capacity - 1);
    }
    return &chunks[at];
}

static int grow(struct holes_state *looking) {
    size_t capacity = looking->capacity != 0 ? looking->capacity * 2 : SMALLEST_TABLE;
    struct chunk *chunks = calloc(capacity, sizeof *chunks);
    if (chunks == NULL) {
        return -1;
    }
    for (size_t i = 0; i < looking->capacity; i++) {
        if (looking->chunks[i].number != 0) {
            *place_of(chunks, capacity, looking->chunks[i].number) = looking->chunks[i];
        }
    }
    free(looking->chunks);
    looking->chunks = chunks;
    looking->capacity = capacity;
    return 0;
}

/* The chunk of a page, made if need be. NULL: out of memory. */
static struct chunk *chunk_of(struct holes_state *looking, uint64_t page) {
    struct chunk *chunk;
    if (looking->count * 2 >= looking->capacity && grow(looking) != 0) {
        looking->out_of_memory = true;
        return NULL;
    }
    chunk = place_of(looking->chunks, looking->capacity, page / PAGES + 1);
    if (chunk->number == 0) {
        chunk->number = page / PAGES + 1;
        looking->count++;
    }
    return chunk;
}

/* ---- Empty pages between touched ones ---- */

/* The touched page of a chunk that comes next below `before` (at most PAGES); PAGES: none. */
static unsigned touched_below(const struct chunk *chunk, unsigned before) {
    unsigned word = before / 64;
    uint64_t bits =
        before % 64 != 0 ? chunk->touched[word] & ((UINT64_C(1) << before % 64) - 1) : 0;
    while (bits == 0 && word != 0) {
        bits = chunk->touched[--word];
    }
    return bits != 0 ? word * 64 + 63 - (unsigned)__builtin_clzll(bits) : PAGES;
}

/* The same from `from` on upwards. */
static unsigned touched_from(const struct chunk *chunk, unsigned from) {
    unsigned word = from / 64;
    uint64_t bits = from < PAGES ? chunk->touched[word] & UINT64_MAX << from % 64 : 0;
    while (bits == 0 && ++word < WORDS) {
        bits = chunk->touched[word];
    }
    return bits != 0 ? word * 64 + (unsigned)__builtin_ctzll(bits) : PAGES;
}

static const struct chunk *neighbour(const struct holes_state *looking, uint64_t number) {
    const struct chunk *chunk = place_of(looking->chunks, looking->capacity, number);
    return chunk->number != 0 ? chunk : NULL; /* else: nothing in that whole MiB */
}

static uint64_t at_most(uint64_t away) {
    return away < PAGES ? away : PAGES;
}

/* How far the next touched page is, downwards, then upwards; PAGES: too far to be a hole. */
static uint64_t distance_down(const struct holes_state *looking, const struct chunk *chunk,
                              unsigned page) {
    unsigned found = touched_below(chunk, page);
    if (found != PAGES) {
        return page - found;
    }
    chunk = neighbour(looking, chunk->number - 1);
    found = chunk != NULL ? touched_below(chunk, PAGES) : PAGES;
    return found != PAGES ? at_most(page + PAGES - found) : PAGES;
}

static uint64_t distance_up(const struct holes_state *looking, const struct chunk *chunk,
                            unsigned page) {
    unsigned found = touched_from(chunk, page + 1);
    if (found != PAGES) {
        return found - page;
    }
    chunk = neighbour(looking, chunk->number + 1);
    found = chunk != NULL ? touched_from(chunk, 0) : PAGES;
    return found != PAGES ? at_most(found + PAGES - page) : PAGES;
}

static uint64_t pages_between(uint64_t away) {
    return away < PAGES ? away - 1 : 0;
}

/* A page becomes touched, or is not any more. */
static void turn(struct holes_state *looking, struct chunk *chunk, uint64_t page, bool is_on) {
    uint64_t before = distance_down(looking, chunk, page % PAGES);
    uint64_t after = distance_up(looking, chunk, page % PAGES);
    uint64_t split = pages_between(before) + pages_between(after);
    uint64_t whole = pages_between(before + after);
    chunk->touched[page % PAGES / 64] ^= UINT64_C(1) << (page % 64);
    looking->touched_pages += is_on ? 1 : UINT64_MAX;
    looking->empty_pages += is_on ? split - whole : whole - split;
}

/* ---- Blocks ---- */

static uint64_t unused_on(uint64_t used) {
    return used == 0 || used >= PAGE ? 0 : PAGE - used;
}

static void change_page(struct holes_state *looking, uint64_t page, uint32_t bytes, bool is_birth) {
    struct chunk *chunk = chunk_of(looking, page);
    uint32_t *used;
    if (chunk == NULL) {
        return;
    }
    used = &chunk->used[page % PAGES];
    looking->partly_bytes -= unused_on(*used);
    if (is_birth ? *used == 0 : *used == bytes) {
        turn(looking, chunk, page, is_birth);
    }
    *used = is_birth ? *used + bytes : *used - bytes;
    looking->partly_bytes += unused_on(*used);
}

static void change_inside(struct holes_state *looking, uint64_t start, uint64_t end,
                          bool is_birth) {
    int result = is_birth ? insides_add(&looking->large, start / PAGE, end / PAGE)
                          : insides_remove(&looking->large, start / PAGE);
    looking->out_of_memory |= result != 0;
}

/* Of a block of more than 1 MiB the ends are enough: too far apart for a hole between them. */
static void change_block(struct holes_state *looking, const struct life *life, bool is_birth) {
    uint64_t size = life->size + life->slack;
    uint64_t from = life->address;
    uint64_t end;
    if (size == 0 || from == 0 || __builtin_add_overflow(from, size, &end) ||
        contexts_class(looking->whole->nodes[life->context].frame) != MODEL_HEAP) {
        return;
    }
    looking->live_bytes += is_birth ? size : -size;
    while (from < end && !looking->out_of_memory) {
        uint64_t page_end = (from / PAGE + 1) * PAGE;
        uint64_t until = page_end < end ? page_end : end;
        change_page(looking, from / PAGE, (uint32_t)(until - from), is_birth);
        if (size > (PAGES + 1) * PAGE && until < (end - 1) / PAGE * PAGE) {
            from = (end - 1) / PAGE * PAGE;
            if (looking->watch != NULL) {
                change_inside(looking, until, from, is_birth);
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

static void keep_most(struct holes *most, struct holes now) {
    *most = now.unused_bytes > most->unused_bytes ? now : *most;
}

/* Those up to this time. */
static void show_moments(struct holes_state *looking, uint64_t until_ns) {
    const struct holes_watch *watch = looking->watch;
    while (watch != NULL && looking->next < watch->count &&
           watch->times_ns[looking->next] <= until_ns) {
        looking->out_of_memory |= watch->moment(watch->context, looking->next, looking) != 0;
        looking->next++;
    }
}

/* What was so since now_ns stays so until time_ns. */
static void pass_time(struct holes_state *looking, uint64_t time_ns, bool is_birth) {
    const struct holes now = holes_now(looking);
    if (time_ns > looking->now_ns) {
        show_moments(looking, time_ns);
        if (looking->now_ns >= looking->from_ns) {
            keep_most(&looking->ever, now);
        }
        if (looking->now_ns >= looking->from_ns && is_birth) {
            keep_most(&looking->most, now);
        }
        looking->now_ns = time_ns;
    }
}

static int begin(void *context, const struct life *life) {
    struct holes_state *looking = context;
    pass_time(looking, life->birth_ns, true);
    change_block(looking, life, true);
    return looking->out_of_memory;
}

static int end(void *context, const struct life *life) {
    struct holes_state *looking = context;
    if (life->death_ns != LIFE_ALIVE) {
        pass_time(looking, life->death_ns, false);
        change_block(looking, life, false);
    }
    return looking->out_of_memory;
}

uint64_t holes_pages(const struct holes_state *state) {
    return state->touched_pages + state->large.pages;
}

static void visit_chunk(const struct chunk *chunk,
                        void (*visit)(void *context, uint64_t start, uint64_t end, uint64_t used),
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
            visit_chunk(&state->chunks[i], visit, context);
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

int holes_watch(const struct model *whole, struct timeorder_parts parts, uint64_t from_ns,
                const struct holes_watch *watch, const struct replay_options *options,
                struct holes *holes, struct error *error) {
    struct holes_state looking = {.whole = whole,
                                  .watch = watch,
                                  .most = {.time_ns = from_ns},
                                  .ever = {.time_ns = from_ns},
                                  .from_ns = from_ns};
    const struct lives_visitor visitor = {.begin = begin, .end = end, .context = &looking};
    int result;
    if (grow(&looking) != 0) {
        return error_set(error, "out of memory");
    }
    result = lives_visit(parts, whole, &visitor, options, error);
    pass_time(&looking, looking.now_ns + 1, false);
    if (result == 0) {
        show_moments(&looking, UINT64_MAX);
    }
    *holes = looking.most.unused_bytes != 0 ? looking.most : looking.ever;
    free(looking.chunks);
    insides_free(&looking.large);
    if (looking.out_of_memory) {
        return error_set(error, "out of memory while looking for holes");
    }
    return result == 0 ? 0 : -1;
}

int holes_find(const struct model *whole, struct timeorder_parts parts, uint64_t from_ns,
               const struct replay_options *options, struct holes *holes, struct error *error) {
    return holes_watch(whole, parts, from_ns, NULL, options, holes, error);
}
