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

#include <errno.h>
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

/* Those that only SQL names go by that name here. */
static void name_columns(struct table_column *columns) {
    for (size_t i = 0; i < SHOWN; i++) {
        columns[i] = rows_allocations.columns[shown[i]];
        columns[i].name = columns[i].name != NULL ? columns[i].name : columns[i].sql;
        columns[i].heading = columns[i].heading != NULL ? columns[i].heading : columns[i].name;
    }
}

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

static bool is_text(enum table_kind kind) {
    return kind == TABLE_TEXT || kind == TABLE_WORD || kind == TABLE_PATH;
}

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

static int rank_texts(struct ranking *ranking, const struct order_wish *wish) {
    const struct blockstore *blocks = &wish->detail->blocks;
    uintptr_t rank = 0;
    for (size_t i = 0; i < blocks->count; i++) {
        uint64_t key = rank_key(wish, &blocks->lives[i]);
        const char *text;
        if (numbermap_get(&ranking->ranks, key) != NULL) {
            continue;
        }
        text = text_of(wish, &blocks->lives[i]);
        if (numbermap_put(&ranking->ranks, key, (void *)1) != 0 ||
            array_grow(&ranking->items, &ranking->room, ranking->count, sizeof *ranking->items) !=
                0) {
            return -1;
        }
        if (text != NULL) {
            ranking->items[ranking->count++] = (struct ranked){key, text};
        }
    }
    if (ranking->count != 0) {
        qsort(ranking->items, ranking->count, sizeof *ranking->items, by_text);
    }
    for (size_t i = 0; i < ranking->count; i++) {
        rank += i == 0 || by_text(&ranking->items[i - 1], &ranking->items[i]) != 0;
        if (numbermap_put(&ranking->ranks, ranking->items[i].key, (void *)(rank + 1)) != 0) {
            return -1;
        }
    }
    return 0;
}

/* Grows with the place in the order; what is not known comes last in both directions. */
static uint64_t key_of(const struct order_wish *wish, const struct ranking *ranking,
                       const struct life *life) {
    const enum table_kind kind = rows_allocations.columns[shown[wish->column]].kind;
    uint64_t number;
    if (is_text(kind)) {
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

/* What all blocks are sorted by, in their places; NULL: by birth. */
static int fill_values(uint64_t *values, const struct order_wish *wish,
                       const struct ranking *ranking, const struct replay_options *replay,
                       struct error *error) {
    enum { STRETCH = 1 << 16 };
    const struct blockstore *blocks = &wish->detail->blocks;
    for (size_t i = 0; i < blocks->count; i++) {
        if (i % STRETCH == 0) {
            blockstore_forget(blocks);
            if (replay_is_cancelled(replay)) {
                return error_set(error, "cancelled");
            }
        }
        values[i] = ranking != NULL ? key_of(wish, ranking, &blocks->lives[i])
                                    : blocks->lives[i].birth_order;
    }
    blockstore_forget(blocks);
    return 0;
}

static int sort_by(struct sort_key *keys, const uint64_t *values, size_t count,
                   const struct replay_options *replay, struct error *error) {
    enum sort_status status;
    for (size_t i = 0; i < count; i++) {
        keys[i].key = values[keys[i].place];
    }
    status = sort_keys(keys, count, replay->cancel);
    return status == SORT_DONE
               ? 0
               : error_set(error, status == SORT_CANCELLED ? "cancelled" : "out of memory");
}

/* Equal ones by birth: living blocks are kept so, of the others the pass knows them by their
 * deaths. */
static int sort_blocks(struct order *order, const struct order_wish *wish,
                       const struct ranking *ranking, const struct replay_options *replay,
                       struct error *error) {
    size_t count = wish->detail->blocks.count;
    struct sort_key *keys = calloc(count + 1, sizeof *keys);
    uint64_t *values = calloc(count + 1, sizeof *values);
    int result = keys != NULL && values != NULL ? 0 : error_set(error, "out of memory");
    for (size_t i = 0; result == 0 && i < count; i++) {
        keys[i].place = i;
    }
    if (result == 0 && wish->all) {
        result = fill_values(values, wish, NULL, replay, error) != 0
                     ? -1
                     : sort_by(keys, values, count, replay, error);
    }
    if (result == 0) {
        result = fill_values(values, wish, ranking, replay, error) != 0
                     ? -1
                     : sort_by(keys, values, count, replay, error);
    }
    for (size_t i = 0; result == 0 && i < count; i++) {
        order->places[i] = (uint32_t)keys[i].place;
    }
    free(keys);
    free(values);
    return result;
}

static void free_order(void *value) {
    struct order *order = value;
    free(order->places);
    free(order);
}

static void *make_order(const void *asked, const struct replay_options *replay,
                        struct error *error) {
    const struct order_wish *wish = asked;
    struct ranking ranking = {0};
    struct order *order = calloc(1, sizeof *order);
    int result = -1;
    if (order != NULL) {
        order->count = wish->detail->blocks.count;
        order->places = calloc(order->count + 1, sizeof *order->places);
    }
    if (order == NULL || order->places == NULL ||
        (is_text(rows_allocations.columns[shown[wish->column]].kind) &&
         rank_texts(&ranking, wish) != 0)) {
        error_set(error, "out of memory");
    } else {
        result = sort_blocks(order, wish, &ranking, replay, error);
    }
    numbermap_free(&ranking.ranks);
    free(ranking.items);
    if (result != 0 && order != NULL) {
        free_order(order);
        order = NULL;
    }
    return order;
}

static size_t order_bytes(const void *value) {
    const struct order *order = value;
    return sizeof *order + order->count * sizeof *order->places;
}

static const struct apicache_kind order_kind = {
    .make = make_order, .free = free_order, .bytes = order_bytes};

static const struct order *find_order(struct api_call *call, const struct order_wish *wish,
                                      struct error *error) {
    char key[64];
    snprintf(key, sizeof key, "order %zu %d %d", wish->column, wish->descending, wish->all);
    return apicache_get(call->view->cache, key, &order_kind, wish, &call->replay, NULL, error);
}

/* ---- The table ---- */

static int write_window(struct api_call *call, const struct order_wish *wish,
                        const struct order *order, const struct apitable_wish *asked,
                        struct error *error) {
    struct table_column columns[SHOWN];
    struct apitable table;
    size_t row = asked->from;
    name_columns(columns);
    apitable_begin(&table, call, NULL, columns, SHOWN);
    for (; row < order->count && row - asked->from < asked->limit; row++) {
        struct table_cell cells[SHOWN];
        fill_cells(cells, &wish->of, wish->detail, &wish->detail->blocks.lives[order->places[row]]);
        apitable_row(&table, cells);
    }
    table.total = order->count;
    table.next = row < order->count ? row : 0;
    return apitable_end(&table, error);
}

int api_blocks(struct api_call *call, struct error *error) {
    struct table_column columns[SHOWN];
    struct apitable_wish asked;
    struct order_wish wish = {0};
    const struct order *order;
    name_columns(columns);
    if (apidetail_check(call, "blocks", error) != 0 ||
        api_flag(call, "all", &wish.all, error) != 0 ||
        apitable_wish(call, columns, SHOWN, "size", &asked, error) != 0) {
        return -1;
    }
    wish.detail = apidetail_get(call, wish.all, error);
    if (wish.detail == NULL) {
        return -1;
    }
    wish.of = of_detail(call, wish.detail);
    wish.column = asked.sort != SIZE_MAX ? asked.sort : 0;
    wish.descending = asked.sort != SIZE_MAX && asked.descending;
    order = find_order(call, &wish, error);
    if (order == NULL) {
        return -1;
    }
    api_command(call, "report --show-blocks%s", wish.all ? "" : " --leaked");
    api_sql(call, "SELECT * FROM allocations%s ORDER BY %s%s LIMIT %zu",
            wish.all ? "" : " WHERE freed IS NULL",
            rows_allocations.columns[shown[wish.column]].sql != NULL
                ? rows_allocations.columns[shown[wish.column]].sql
                : "id",
            wish.descending ? " DESC" : "", asked.limit);
    return write_window(call, &wish, order, &asked, error);
}

/* ---- One block ---- */

/* A number that JavaScript would round is text. */
static void write_number(struct jsonwriter *json, const char *name, uint64_t number) {
    char text[24];
    if (number <= UINT64_C(1) << 53) {
        jsonwriter_number(json, name, number);
    } else {
        snprintf(text, sizeof text, "%" PRIu64, number);
        jsonwriter_string(json, name, text);
    }
}

static void write_cell(struct jsonwriter *json, const struct table_column *column,
                       const struct table_cell *cell) {
    char text[24];
    if (!cell->is_known) {
        jsonwriter_string(json, column->name, NULL);
        return;
    }
    switch (column->kind) {
    case TABLE_TEXT:
    case TABLE_WORD:
        jsonwriter_string(json, column->name, cell->text);
        break;
    case TABLE_REAL:
        jsonwriter_double(json, column->name, cell->real);
        break;
    case TABLE_ADDRESS:
    case TABLE_HASH:
        snprintf(text, sizeof text, column->kind == TABLE_HASH ? "%016" PRIx64 : "0x%" PRIx64,
                 cell->number);
        jsonwriter_string(json, column->name, text);
        break;
    default:
        write_number(json, column->name, cell->number);
        break;
    }
}

static void write_block(struct api_call *call, const struct rows_of *of,
                        const struct apidetail *detail, const struct life *life) {
    struct table_column columns[SHOWN];
    struct table_cell cells[SHOWN];
    name_columns(columns);
    fill_cells(cells, of, detail, life);
    jsonwriter_map(call->json, "block");
    for (size_t i = 0; i < SHOWN; i++) {
        if (columns[i].kind != TABLE_PATH) {
            write_cell(call->json, &columns[i], &cells[i]);
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
    bool out_of_memory;
};
enum { FOUND_MOST = 1000 };

static bool is_wanted(const struct found *found, const struct life *life) {
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
    if (!is_wanted(found, life)) {
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

/* Over all blocks, whatever is selected. The caller frees found->lives. 0 or -1. */
static int find_lives(struct api_call *call, struct found *found, struct error *error) {
    const struct lives_visitor visitor = {.end = take_found, .context = found};
    int result =
        lives_visit(call->view->source->parts, call->view->whole, &visitor, &call->replay, error);
    call->told.via = API_VIA_PASS;
    if (found->out_of_memory) {
        return error_set(error, "out of memory");
    }
    return result < 0 ? -1 : 0;
}

static int by_birth(const void *left, const void *right) {
    const struct life *a = left;
    const struct life *b = right;
    return (a->birth_order > b->birth_order) - (a->birth_order < b->birth_order);
}

static int write_lives(struct api_call *call, const char *name, const struct rows_of *of,
                       const struct apidetail *detail, const struct life *lives, size_t count,
                       struct error *error) {
    struct table_column columns[SHOWN];
    struct apitable table;
    name_columns(columns);
    apitable_begin(&table, call, name, columns, SHOWN);
    for (size_t i = 0; i < count; i++) {
        struct table_cell cells[SHOWN];
        fill_cells(cells, of, detail, &lives[i]);
        apitable_row(&table, cells);
    }
    table.total = count;
    return apitable_end(&table, error);
}

/* All that reallocations made of each other. */
static int write_chain(struct api_call *call, const struct rows_of *of,
                       const struct apidetail *detail, const struct life *life,
                       struct error *error) {
    struct found found = {.what = FOUND_CHAIN, .wanted = life->chain_order};
    int result = 0;
    if (life->chain_length == 1 && !life->is_reallocated) {
        return write_lives(call, "chain", of, detail, life, 1, error);
    }
    result = find_lives(call, &found, error);
    if (result == 0) {
        if (found.count != 0) {
            qsort(found.lives, found.count, sizeof *found.lives, by_birth);
        }
        result = write_lives(call, "chain", of, detail, found.lives, found.count, error);
    }
    free(found.lives);
    return result;
}

/* ---- Neighbours ---- */

static size_t place_at(const struct detail *detail, uint64_t address) {
    return search_below(detail->live, detail->live_count, sizeof *detail->live,
                        offsetof(struct detail_live, address), address);
}

/* What lies around the address when the view ends. */
static int write_neighbours(struct api_call *call, const struct apidetail *gathered,
                            uint64_t address, struct error *error) {
    enum { AROUND = 8, COLUMNS = 6 };
    static const struct table_column columns[COLUMNS] = {
        {"address", "address", TABLE_ADDRESS, 0}, {"size", "size", TABLE_BYTES, 0},
        {"slack", "slack", TABLE_BYTES, 0},       {"gap_bytes", "then free", TABLE_BYTES, 0},
        {"hash", "hash", TABLE_HASH, 0},          {"path", "call path", TABLE_PATH, 0},
    };
    const struct detail *detail = gathered->detail;
    const struct model *whole = call->view->whole;
    size_t at = place_at(detail, address);
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
    return apitable_end(&table, error);
}

/* ---- By its number ---- */

static int write_one(struct api_call *call, const struct apidetail *detail, const struct life *life,
                     struct error *error) {
    const struct rows_of of = of_detail(call, detail);
    const struct report report = apidetail_report(call, detail);
    const struct model_context *context = model_find(call->view->whole, life->context);
    int result;
    jsonwriter_map(call->json, NULL);
    write_block(call, &of, detail, life);
    apiframes_write_path(&report, call->json, "path", context != NULL ? context->path : 0);
    if (life->death_ns != LIFE_ALIVE && life->death_context.node != 0) {
        apiframes_write_path(&report, call->json, "freed_path", life->death_context.node);
    } else {
        jsonwriter_string(call->json, "freed_path", NULL);
    }
    result = write_chain(call, &of, detail, life, error);
    if (result == 0) {
        result = write_neighbours(call, detail, life->address, error);
    }
    jsonwriter_end_map(call->json);
    api_sql(call, "SELECT * FROM allocations WHERE id = %" PRIu64, life->birth_order);
    return result;
}

/* Among the living ones, which lie in the order of their births. */
static const struct life *find_living(const struct apidetail *detail, uint64_t id) {
    const struct life key = {.birth_order = id};
    return detail->blocks.count != 0
               ? bsearch(&key, detail->blocks.lives, detail->blocks.count, sizeof key, by_birth)
               : NULL;
}

static int parse_number(const char *text, uint64_t *number) {
    char *end;
    bool is_hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    const char *digits = is_hex ? text + 2 : text;
    size_t length = strspn(digits, is_hex ? "0123456789abcdefABCDEF" : "0123456789");
    errno = 0;
    *number = strtoull(digits, &end, is_hex ? 16 : 10);
    return length != 0 && digits[length] == '\0' && errno == 0 ? 0 : -1;
}

int api_block(struct api_call *call, struct error *error) {
    struct found found = {.what = FOUND_ID};
    const struct apidetail *detail;
    const struct life *life;
    int result = 0;
    if (apidetail_check(call, "a block", error) != 0) {
        return -1;
    }
    if (parse_number(call->rest, &found.wanted) != 0) {
        return api_refuse(call, 400, error, "'%s' is not the number of a block", call->rest);
    }
    detail = apidetail_get(call, false, error);
    if (detail == NULL) {
        return -1;
    }
    life = find_living(detail, found.wanted);
    if (life == NULL) {
        result = find_lives(call, &found, error);
        life = found.count != 0 ? found.lives : NULL;
    }
    if (result == 0) {
        result = life != NULL
                     ? write_one(call, detail, life, error)
                     : api_refuse(call, 404, error, "there is no block %" PRIu64, found.wanted);
    }
    free(found.lives);
    return result;
}

/* ---- By an address ---- */

/* Of a running program, as it is now. */
static int find_in_program(struct api_call *call, uint64_t address, struct error *error) {
    const struct model *model = call->view->whole;
    struct liveheap_block block;
    int found = liveheap_find((pid_t)model->header.pid, &model->header, address, clock_now_ns(),
                              &block, error);
    char text[24];
    if (found <= 0) {
        return found < 0 ? -1
                         : api_refuse(call, 404, error,
                                      "0x%" PRIx64 " is not a live block of process %ld", address,
                                      (long)model->header.pid);
    }
    snprintf(text, sizeof text, "0x%" PRIx64, block.start);
    jsonwriter_map(call->json, NULL);
    jsonwriter_map(call->json, "block");
    jsonwriter_string(call->json, "address", text);
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
    return 0;
}

/* The one that lived then, else the last one that had ended. NULL: none had begun. */
static const struct life *choose(const struct found *found, uint64_t time_ns) {
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

static int write_at(struct api_call *call, const struct found *found, uint64_t time_ns,
                    struct error *error) {
    const struct apidetail *detail;
    const struct life *life = choose(found, time_ns);
    if (life == NULL) {
        return api_refuse(call, 404, error, "no block lay at 0x%" PRIx64 " until %.9g s",
                          found->wanted, (double)time_ns / 1e9);
    }
    if (life->death_ns <= time_ns) {
        api_note(call, "It was freed before: at %.9g s. Nothing lives at this address at %.9g s.",
                 (double)life->death_ns / 1e9, (double)time_ns / 1e9);
    }
    detail = apidetail_get(call, false, error);
    return detail != NULL ? write_one(call, detail, life, error) : -1;
}

int api_block_at(struct api_call *call, struct error *error) {
    const struct answer *view = call->view;
    const char *text = api_param(call, "address");
    const char *time = api_param(call, "time");
    struct found found = {.what = FOUND_ADDRESS};
    uint64_t time_ns = apidetail_window(view).to_ns;
    struct error why;
    int result;
    if (text == NULL || parse_number(text, &found.wanted) != 0) {
        return api_refuse(call, 400, error, "'%s' is not an address", text != NULL ? text : "");
    }
    if (view->source->parts.count == 0 && view->whole->live) {
        return find_in_program(call, found.wanted, error);
    }
    if (apidetail_check(call, "an address", error) != 0) {
        return -1;
    }
    if (time != NULL && filtervalue_time(time, view->whole, &time_ns, &why) != 0) {
        return api_refuse(call, 400, error, "time: %s", why.message);
    }
    api_command(call, "report --show-blocks --address %s", text);
    result = find_lives(call, &found, error);
    if (result == 0) {
        result = write_at(call, &found, time_ns, error);
    }
    free(found.lives);
    return result;
}
