/* SPDX-License-Identifier: MIT */
/*
 * apiblocks.c: single blocks: a table of all that live (or ever lived) in any order, one of them
 * with its chain and its neighbours, and the one at an address, in a running program, too.
 *
 * The blocks of a view are kept by the pass (apidetail.h); for each order that was asked for the
 * places of all, sorted, are kept besides: a window of ten million rows is then read in its place.
 */
#include "analyze/base/search.h"
#include "web/server/apicache.h"
#include "web/server/apidetail.h"
#include "web/server/apitable.h"

#include "analyze/base/array.h"
#include "analyze/base/sort.h"
#include "analyze/read/liveheap.h"
#include "analyze/replay/scopes.h"
#include "collect/clock.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- The columns ---- */

static const unsigned char shown[] = {
    ALLOCATION_ID,       ALLOCATION_ADDRESS,      ALLOCATION_SIZE,   ALLOCATION_SLACK,
    ALLOCATION_BORN,     ALLOCATION_FREED,        ALLOCATION_AGE,    ALLOCATION_THREAD,
    ALLOCATION_FREED_BY, ALLOCATION_CHAIN_LENGTH, ALLOCATION_CLASS,  ALLOCATION_POOL,
    ALLOCATION_SCOPE,    ALLOCATION_ALIGNMENT,    ALLOCATION_MAPPED, ALLOCATION_ARENA,
    ALLOCATION_HASH,     ALLOCATION_PATH,
};
enum { SHOWN = sizeof shown };

static struct rows_allocation with_scope(const struct apidetail *detail, const struct life *life) {
    return (struct rows_allocation){.life = *life,
                                    .scope = detail->scopes != NULL && life->scope != SCOPES_NONE
                                                 ? scopes_name(detail->scopes, life->scope)
                                                 : NULL};
}

static void fill_cells(struct table_cell *cells, const struct rows_of *of,
                       const struct apidetail *detail, const struct life *life) {
    struct rows_allocation row = with_scope(detail, life);
    for (size_t i = 0; i < SHOWN; i++) {
        cells[i] = rows_cell(&rows_allocations, of, &row, shown[i]);
    }
}

static struct rows_of of_detail(const struct api_call *call, const struct apidetail *detail) {
    const struct report report = apidetail_report(call, detail);
    struct rows_of of = rows_of_report(&report);
    of.whole = call->view->whole;
    return of;
}

/* ---- Orders ---- */

struct order_wish {
    const struct apidetail *detail;
    struct rows_of of;
    size_t column; /* of shown */
    bool descending;
    bool all;
};

struct order {
    uint32_t *places;
    size_t count;
};

/* The text that a block is sorted by; NULL: none. It lasts. */
static const char *text_of(const struct order_wish *wish, const struct life *life) {
    const struct names_frame *frame;
    struct rows_allocation row = with_scope(wish->detail, life);
    struct table_cell cell;
    if (shown[wish->column] == ALLOCATION_SCOPE) {
        return row.scope;
    }
    cell = rows_cell(&rows_allocations, &wish->of, &row, shown[wish->column]);
    if (shown[wish->column] != ALLOCATION_PATH) {
        return cell.text;
    }
    frame = rows_innermost(&wish->of, cell.path);
    return frame == NULL ? NULL : frame->function != NULL ? frame->function : frame->module;
}

/* Texts belong to contexts and scopes, of which there are few: their ranks stand for them. */
struct ranking {
    struct numbermap ranks; /* of a context's, or scope's, number + 1: rank + 1 */
    struct ranked {
        uint64_t key;
        const char *text;
    } * items;
    size_t count, room;
};

static uint64_t rank_key(const struct order_wish *wish, const struct life *life) {
    return shown[wish->column] == ALLOCATION_SCOPE ? life->scope : life->context;
}

static int by_text(const void *left, const void *right) {
    return strcmp(((const struct ranked *)left)->text, ((const struct ranked *)right)->text);
}

static void rank_texts(struct ranking *ranking, const struct order_wish *wish) {
    const struct blockstore *blocks = &wish->detail->blocks;
    uintptr_t rank = 0;
    for (size_t i = 0; i < blocks->count; i++) {
        uint64_t key = rank_key(wish, &blocks->lives[i]);
        const char *text;
        if (numbermap_get(&ranking->ranks, key) != NULL) {
            continue;
        }
        text = text_of(wish, &blocks->lives[i]);
        numbermap_set(&ranking->ranks, key, (void *)1);
        if (text != NULL) {
            job_grow(&ranking->items, &ranking->room, ranking->count, sizeof *ranking->items);
            ranking->items[ranking->count++] = (struct ranked){key, text};
        }
    }
    if (ranking->count != 0) {
        qsort(ranking->items, ranking->count, sizeof *ranking->items, by_text);
    }
    for (size_t i = 0; i < ranking->count; i++) {
        rank += i == 0 || by_text(&ranking->items[i - 1], &ranking->items[i]) != 0;
        numbermap_set(&ranking->ranks, ranking->items[i].key, (void *)(rank + 1));
    }
}

/* Grows with the place in the order; what is not known comes last in both directions. */
static uint64_t blocks_key_of(const struct order_wish *wish, const struct ranking *ranking,
                              const struct life *life) {
    const enum table_kind kind = rows_allocations.columns[shown[wish->column]].kind;
    uint64_t number;
    if (apitable_is_text(kind)) {
        number = (uintptr_t)numbermap_get(&ranking->ranks, rank_key(wish, life)) - 1;
        if (number == 0) {
            return UINT64_MAX;
        }
    } else {
        struct rows_allocation row = {.life = *life};
        struct table_cell cell = rows_cell(&rows_allocations, &wish->of, &row, shown[wish->column]);
        if (!cell.is_known) {
            return UINT64_MAX;
        }
        number = cell.number;
    }
    return wish->descending ? UINT64_MAX - 1 - (number < UINT64_MAX ? number : UINT64_MAX - 1)
                            : number;
}

/* By this, equal ones as they are. ranking NULL: by birth. */
static void sort_blocks(struct sort_key *keys, const struct order_wish *wish,
                        const struct ranking *ranking, const struct replay_options *replay) {
    enum { STRETCH = 1 << 16 };
    const struct blockstore *blocks = &wish->detail->blocks;
    uint64_t *values = job_array(blocks->count, sizeof *values); /* in their places */
    enum sort_status status;
    for (size_t i = 0; i < blocks->count; i++) {
        if (i % STRETCH == 0) {
            blockstore_forget(blocks);
            if (replay_is_cancelled(replay)) {
                job_fail("cancelled");
            }
        }
        values[i] = ranking != NULL ? blocks_key_of(wish, ranking, &blocks->lives[i])
                                    : blocks->lives[i].birth_order;
    }
    blockstore_forget(blocks);
    for (size_t i = 0; i < blocks->count; i++) {
        keys[i].key = values[keys[i].place];
    }
    job_release(values);
    status = sort_keys(keys, blocks->count, replay->cancel);
    if (status == SORT_CANCELLED) {
        job_fail("cancelled");
    }
    if (status != SORT_DONE) {
        job_fail_memory();
    }
}

/* Equal ones by birth: living blocks are kept so, of the others the pass knows them by their
 * deaths. */
static void *make_order(const void *asked, const struct replay_options *replay) {
    const struct order_wish *wish = asked;
    size_t count = wish->detail->blocks.count;
    struct ranking ranking = {0};
    struct order *order = job_alloc(sizeof *order);
    struct sort_key *keys = job_array(count, sizeof *keys);
    for (size_t i = 0; i < count; i++) {
        keys[i].place = i;
    }
    if (apitable_is_text(rows_allocations.columns[shown[wish->column]].kind)) {
        rank_texts(&ranking, wish);
    }
    if (wish->all) {
        sort_blocks(keys, wish, NULL, replay);
    }
    sort_blocks(keys, wish, &ranking, replay);
    order->count = count;
    order->places = job_array(count, sizeof *order->places);
    for (size_t i = 0; i < count; i++) {
        order->places[i] = (uint32_t)keys[i].place;
    }
    job_release(keys);
    job_release(ranking.items);
    return order;
}

static size_t order_bytes(const void *value) {
    const struct order *order = value;
    return sizeof *order + order->count * sizeof *order->places;
}

static const struct apicache_kind order_kind = {.make = make_order, .bytes = order_bytes};

/* ---- The table ---- */

void api_blocks(struct api_call *call) {
    struct order_wish wish = {.all = api_flag(call, "all")};
    struct table_column columns[SHOWN];
    struct apitable_wish asked;
    struct apitable table;
    const struct order *order;
    char key[64];
    size_t row;
    apitable_columns(&rows_allocations, shown, SHOWN, columns);
    apidetail_check(call, "blocks");
    asked = apitable_wish(call, columns, SHOWN, "size");
    wish.detail = apidetail_get(call, wish.all);
    wish.of = of_detail(call, wish.detail);
    wish.column = asked.sort != SIZE_MAX ? asked.sort : 0;
    wish.descending = asked.sort != SIZE_MAX && asked.descending;
    snprintf(key, sizeof key, "order %zu %d %d", wish.column, wish.descending, wish.all);
    order = apicache_get(call, call->view, key, &order_kind, &wish);
    api_command(call, "report --show-blocks%s", wish.all ? "" : " --leaked");
    api_sql(call, "SELECT * FROM allocations%s ORDER BY %s%s LIMIT %zu",
            wish.all ? "" : " WHERE freed IS NULL",
            columns[wish.column].sql != NULL ? columns[wish.column].sql : "id",
            wish.descending ? " DESC" : "", asked.limit);
    apitable_begin(&table, call, NULL, columns, SHOWN);
    for (row = asked.from; row < order->count && row - asked.from < asked.limit; row++) {
        struct table_cell cells[SHOWN];
        fill_cells(cells, &wish.of, wish.detail, &wish.detail->blocks.lives[order->places[row]]);
        apitable_row(&table, cells);
    }
    table.total = order->count;
    table.next = row < order->count ? row : 0;
    apitable_end(&table);
}

/* ---- One block ---- */

static void blocks_write_block(struct api_call *call, const struct rows_of *of,
                               const struct apidetail *detail, const struct life *life) {
    struct table_column columns[SHOWN];
    struct table_cell cells[SHOWN];
    apitable_columns(&rows_allocations, shown, SHOWN, columns);
    fill_cells(cells, of, detail, life);
    jsonwriter_map(call->json, "block");
    for (size_t i = 0; i < SHOWN; i++) {
        if (columns[i].kind != TABLE_PATH) {
            apitable_cell(call->json, columns[i].name != NULL ? columns[i].name : columns[i].sql,
                          columns[i].kind, &cells[i]);
        }
        if (cells[i].is_owned) {
            free((char *)cells[i].text);
        }
    }
    jsonwriter_end_map(call->json);
}

/* Several blocks that a pass finds. */
struct found {
    enum { FOUND_ID, FOUND_CHAIN, FOUND_ADDRESS } what;
    uint64_t wanted;
    struct life *lives;
    size_t count, room;
    bool out_of_memory; /* visitors do not end the job */
};
enum { FOUND_MOST = 1000 };

static bool blocks_is_wanted(const struct found *found, const struct life *life) {
    switch (found->what) {
    case FOUND_ID:
        return life->birth_order == found->wanted;
    case FOUND_CHAIN:
        return life->chain_order == found->wanted;
    default: /* the last byte that is usable is its own, too */
        return life->address != 0 && life->address <= found->wanted &&
               found->wanted - life->address < life->size + life->slack + (life->size == 0);
    }
}

static int take_found(void *context, const struct life *life) {
    struct found *found = context;
    if (!blocks_is_wanted(found, life)) {
        return 0;
    }
    if (found->count == FOUND_MOST) { /* the last ones are wanted */
        memmove(found->lives, found->lives + 1, (FOUND_MOST - 1) * sizeof *found->lives);
        found->count--;
    }
    if (array_grow(&found->lives, &found->room, found->count, sizeof *found->lives) != 0) {
        found->out_of_memory = true;
        return 1;
    }
    found->lives[found->count++] = *life;
    return found->what == FOUND_ID;
}

static void close_found(void *what) {
    struct found *found = what;
    free(found->lives);
}

/* Over all blocks, whatever is selected; of the job. */
static const struct found *find_lives(struct api_call *call, struct found wanted) {
    struct found *found = job_alloc(sizeof *found);
    const struct lives_visitor visitor = {.end = take_found, .context = found};
    struct error error;
    int result;
    *found = wanted;
    job_undo(close_found, found);
    result =
        lives_visit(call->view->source->parts, call->view->whole, &visitor, &call->replay, &error);
    call->told.via = API_VIA_PASS;
    if (found->out_of_memory) {
        job_fail_memory();
    }
    if (result < 0) {
        job_fail_as(&error);
    }
    return found;
}

static int by_birth(const void *left, const void *right) {
    const struct life *a = left;
    const struct life *b = right;
    return (a->birth_order > b->birth_order) - (a->birth_order < b->birth_order);
}

static void write_lives(struct api_call *call, const char *name, const struct rows_of *of,
                        const struct apidetail *detail, const struct life *lives, size_t count) {
    struct table_column columns[SHOWN];
    struct apitable table;
    apitable_columns(&rows_allocations, shown, SHOWN, columns);
    apitable_begin(&table, call, name, columns, SHOWN);
    for (size_t i = 0; i < count; i++) {
        struct table_cell cells[SHOWN];
        fill_cells(cells, of, detail, &lives[i]);
        apitable_row(&table, cells);
    }
    apitable_end(&table);
}

/* All that reallocations made of each other. */
static void write_chain(struct api_call *call, const struct rows_of *of,
                        const struct apidetail *detail, const struct life *life) {
    const struct found *found;
    if (life->chain_length == 1 && !life->is_reallocated) {
        write_lives(call, "chain", of, detail, life, 1);
        return;
    }
    found = find_lives(call, (struct found){.what = FOUND_CHAIN, .wanted = life->chain_order});
    if (found->count != 0) {
        qsort(found->lives, found->count, sizeof *found->lives, by_birth);
    }
    write_lives(call, "chain", of, detail, found->lives, found->count);
}

/* ---- Neighbours ---- */

/* What lies around the address when the view ends. */
static void write_neighbours(struct api_call *call, const struct apidetail *gathered,
                             uint64_t address) {
    enum { AROUND = 8, COLUMNS = 6 };
    static const struct table_column columns[COLUMNS] = {
        {"address", "address", TABLE_ADDRESS, 0}, {"size", "size", TABLE_BYTES, 0},
        {"slack", "slack", TABLE_BYTES, 0},       {"gap_bytes", "then free", TABLE_BYTES, 0},
        {"hash", "hash", TABLE_HASH, 0},          {"path", "call path", TABLE_PATH, 0},
    };
    const struct detail *detail = gathered->detail;
    const struct model *whole = call->view->whole;
    size_t at = search_below(detail->live, detail->live_count, sizeof *detail->live,
                             offsetof(struct detail_live, address), address);
    size_t end = at + AROUND + 1 < detail->live_count ? at + AROUND + 1 : detail->live_count;
    struct apitable table;
    apitable_begin(&table, call, "neighbours", columns, COLUMNS);
    for (size_t i = at > AROUND ? at - AROUND : 0; i < end; i++) {
        const struct detail_live *block = &detail->live[i];
        uint64_t block_end = block->address + block->size + block->slack;
        bool has_next = i + 1 < detail->live_count;
        uint64_t next = has_next ? detail->live[i + 1].address : 0;
        const struct model_context *context = model_find(whole, block->context);
        apitable_row(&table, (struct table_cell[COLUMNS]){
                                 table_number(block->address), table_number(block->size),
                                 table_number(block->slack),
                                 table_number_if(has_next, next > block_end ? next - block_end : 0),
                                 table_number(model_hash(whole, block->context)),
                                 table_path(context != NULL ? context->path : 0)});
    }
    apitable_end(&table);
}

/* ---- By its number ---- */

static void write_one(struct api_call *call, const struct apidetail *detail,
                      const struct life *life) {
    const struct rows_of of = of_detail(call, detail);
    const struct report report = apidetail_report(call, detail);
    const struct model_context *context = model_find(call->view->whole, life->context);
    jsonwriter_map(call->json, NULL);
    blocks_write_block(call, &of, detail, life);
    apiframes_write_path(&report, call->json, "path", context != NULL ? context->path : 0);
    if (life->death_ns != LIFE_ALIVE && life->death_context.node != 0) {
        apiframes_write_path(&report, call->json, "freed_path", life->death_context.node);
    } else {
        jsonwriter_string(call->json, "freed_path", NULL);
    }
    write_chain(call, &of, detail, life);
    write_neighbours(call, detail, life->address);
    jsonwriter_end_map(call->json);
    api_sql(call, "SELECT * FROM allocations WHERE id = %" PRIu64, life->birth_order);
}

void api_block(struct api_call *call) {
    struct life wanted = {.birth_order = 0};
    const struct apidetail *detail;
    const struct life *life = NULL;
    apidetail_check(call, "a block");
    if (!api_address(call->rest, &wanted.birth_order)) {
        api_refuse(call, 400, "'%s' is not the number of a block", call->rest);
    }
    detail = apidetail_get(call, false);
    if (detail->blocks.count != 0) { /* living ones lie in the order of their births */
        life =
            bsearch(&wanted, detail->blocks.lives, detail->blocks.count, sizeof wanted, by_birth);
    }
    if (life == NULL) {
        const struct found *found =
            find_lives(call, (struct found){.what = FOUND_ID, .wanted = wanted.birth_order});
        life = found->count != 0 ? found->lives : NULL;
    }
    if (life == NULL) {
        api_refuse(call, 404, "there is no block %" PRIu64, wanted.birth_order);
    }
    write_one(call, detail, life);
}

/* ---- By an address ---- */

/* Of a running program, as it is now. */
static void blocks_find_in_program(struct api_call *call, uint64_t address) {
    const struct model *model = call->view->whole;
    struct liveheap_block block;
    struct error error;
    int found = liveheap_find((pid_t)model->header.pid, &model->header, address, clock_now_ns(),
                              &block, &error);
    if (found < 0) {
        job_fail_as(&error);
    }
    if (found == 0) {
        api_refuse(call, 404, "0x%" PRIx64 " is not a live block of process %ld", address,
                   (long)model->header.pid);
    }
    jsonwriter_map(call->json, NULL);
    jsonwriter_map(call->json, "block");
    api_put_address(call->json, "address", block.start);
    jsonwriter_number(call->json, "size", block.size);
    jsonwriter_number(call->json, "age_ns", block.age_ns);
    jsonwriter_number(call->json, "thread", block.thread);
    jsonwriter_string(call->json, "class", block.pool ? "pool" : "heap");
    jsonwriter_end_map(call->json);
    if (block.context >= model->node_count) {
        api_note(call, "Its call path is newer than the page's last look: ask again.");
    }
    apiframes_write_path(&call->report, call->json, "path",
                         block.context < model->node_count ? block.context : 0);
    jsonwriter_string(call->json, "freed_path", NULL);
    jsonwriter_end_map(call->json);
    call->told.via = API_VIA_MODEL;
}

/* The one that lived then, else the last one that had ended. NULL: none had begun. */
static const struct life *blocks_choose(const struct found *found, uint64_t time_ns) {
    const struct life *best = NULL;
    for (size_t i = 0; i < found->count; i++) {
        const struct life *life = &found->lives[i];
        bool lives = life->birth_ns <= time_ns && life->death_ns > time_ns;
        if (lives || (life->birth_ns <= time_ns &&
                      (best == NULL || life->birth_order > best->birth_order))) {
            best = life;
        }
        if (lives) {
            break;
        }
    }
    return best;
}

void api_block_at(struct api_call *call) {
    const struct answer *view = call->view;
    const char *text = api_param(call, "address");
    const char *time = api_param(call, "time");
    uint64_t time_ns = apidetail_window(view).to_ns;
    const struct life *life;
    uint64_t address;
    struct error why;
    if (text == NULL || !api_address(text, &address)) {
        api_refuse(call, 400, "'%s' is not an address", text != NULL ? text : "");
    }
    if (view->source->parts.count == 0 && view->whole->live) {
        blocks_find_in_program(call, address);
        return;
    }
    apidetail_check(call, "an address");
    if (time != NULL && filtervalue_time(time, view->whole, &time_ns, &why) != 0) {
        api_refuse(call, 400, "time: %s", why.message);
    }
    api_command(call, "report --show-blocks --address %s", text);
    life = blocks_choose(find_lives(call, (struct found){.what = FOUND_ADDRESS, .wanted = address}),
                         time_ns);
    if (life == NULL) {
        api_refuse(call, 404, "no block lay at 0x%" PRIx64 " until %.9g s", address,
                   (double)time_ns / 1e9);
    }
    if (life->death_ns <= time_ns) {
        api_note(call, "It was freed before: at %.9g s. Nothing lives at this address at %.9g s.",
                 (double)life->death_ns / 1e9, (double)time_ns / 1e9);
    }
    write_one(call, apidetail_get(call, false), life);
}
