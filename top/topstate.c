/* SPDX-License-Identifier: MIT */
/* topstate.c: see topstate.h. */
#include "top/topstate.h"

#include "analyze/base/pattern.h"
#include "collect/programask.h"
#include "memtrace/sampled.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define SECOND UINT64_C(1000000000)

/* The intervals that + and - step through. */
static const uint64_t intervals[] = {SECOND / 10, SECOND / 5, SECOND / 2,  SECOND,
                                     2 * SECOND,  5 * SECOND, 10 * SECOND, 60 * SECOND};
enum { INTERVALS = sizeof intervals / sizeof intervals[0] };

/* ---- What a program is asked for ---- */

static void ask_end(struct topstate_ask *ask) {
    if (ask->whom == TOPSTATE_ASKS_GATHERER) {
        gatherask_end(&ask->gatherer);
    } else if (ask->whom == TOPSTATE_ASKS_PROGRAM) {
        programask_end(&ask->program);
    }
    ask->whom = TOPSTATE_ASKS_NOBODY;
}

/* The program that is looked at, on whichever machine; what was asked before is not waited for any
 * more. 0, or -1: error says why not. */
static int ask_begin(struct topstate_ask *ask, const struct topsource *source,
                     const struct programask_wish *wish, struct error *error) {
    const char *path = source->file != NULL ? source->file->path : NULL;
    struct region region;
    int asked = 0;
    ask_end(ask);
    if (path != NULL && (asked = gatherask_begin(&ask->gatherer, path, wish, error)) != 0) {
        ask->whom = asked > 0 ? TOPSTATE_ASKS_GATHERER : TOPSTATE_ASKS_NOBODY;
        return asked > 0 ? 0 : -1;
    }
    if ((path != NULL ? programask_find(path, &region, error)
                      : region_find(source->pid, &region, error)) != 0 ||
        programask_begin(&ask->program, &region, wish, error) != 0) {
        return -1;
    }
    ask->whom = TOPSTATE_ASKS_PROGRAM;
    return 0;
}

static bool text_begins(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

void topstate_hear(struct topstate *state) {
    struct topstate_ask *ask = &state->ask;
    struct programask_answer answer;
    if (!(ask->whom == TOPSTATE_ASKS_GATHERER && gatherask_look(&ask->gatherer, &answer)) &&
        !(ask->whom == TOPSTATE_ASKS_PROGRAM && programask_look(&ask->program, &answer))) {
        return;
    }
    ask->whom = TOPSTATE_ASKS_NOBODY;
    if (answer.is_done && !text_begins(answer.text, "marked") &&
        !text_begins(answer.text, "asked")) {
        ask->is_off = text_begins(answer.text, "off");
        ask->is_sampled = ask->is_off ? ask->is_sampled : text_begins(answer.text, "sampled");
    }
    snprintf(state->message, sizeof state->message, "%s", answer.text);
}

/* ---- What is shown, and selected ---- */

/* The selection stays on its row wherever that went; where it is gone, in its place. */
static void keep_selected(struct topstate *state) {
    struct toprows *rows = &state->rows;
    for (size_t i = 0; i < rows->count; i++) {
        if (rows->rows[i].id == state->selected_id) {
            state->selected = i;
            return;
        }
    }
    if (state->selected >= rows->count) {
        state->selected = rows->count != 0 ? rows->count - 1 : 0;
    }
    state->selected_id = rows->count != 0 ? rows->rows[state->selected].id : 0;
}

int topstate_refresh(struct topstate *state) {
    if (toprows_make(&state->rows) != 0) {
        return -1;
    }
    if (state->selected == 0) { /* who has not moved sees whatever comes first */
        state->selected_id = state->rows.count != 0 ? state->rows.rows[0].id : 0;
    }
    keep_selected(state);
    return 0;
}

/* `by` further down, as far as there are any. */
static size_t moved_by(size_t selected, long by, size_t count) {
    size_t far = by < 0 ? (size_t)-by : (size_t)by;
    if (by < 0) {
        return selected > far ? selected - far : 0;
    }
    return count - 1 - selected > far ? selected + far : count - 1;
}

void topstate_move(struct topstate *state, long by) {
    if (state->rows.count != 0) {
        state->selected = moved_by(state->selected, by, state->rows.count);
        state->selected_id = state->rows.rows[state->selected].id;
    }
}

const struct toprow *topstate_row(const struct topstate *state) {
    const struct toprows *rows = &state->rows;
    size_t at = state->selected;
    if (at >= rows->count) {
        return NULL;
    }
    while (rows->by == TOPROWS_PATHS && rows->rows[at].depth != 0 && at > 0) {
        at--;
    }
    return &rows->rows[at];
}

/* Who has not moved sees whatever comes first. */
static void keep_list_selected(struct topstate *state) {
    const struct toplist *list = state->list;
    for (size_t i = 0; state->list_selected != 0 && i < list->count; i++) {
        if (strncmp(list->items[i].path, state->list_path, sizeof state->list_path - 1) == 0) {
            state->list_selected = i;
            return;
        }
    }
    if (state->list_selected >= list->count) {
        state->list_selected = list->count != 0 ? list->count - 1 : 0;
    }
}

void topstate_move_list(struct topstate *state, long by) {
    const struct toplist *list = state->list;
    if (by == 0) {
        keep_list_selected(state);
    } else if (list->count != 0) {
        state->list_selected = moved_by(state->list_selected, by, list->count);
    }
    snprintf(state->list_path, sizeof state->list_path, "%s",
             list->count != 0 ? list->items[state->list_selected].path : "");
}

size_t topstate_scroll(size_t top, size_t selected, size_t count, size_t shown) {
    if (selected < top) {
        top = selected;
    }
    if (selected < count && shown != 0 && selected >= top + shown) {
        top = selected - shown + 1;
    }
    if (top + shown > count) {
        top = count > shown ? count - shown : 0;
    }
    return top;
}

void topstate_begin(struct topstate *state) {
    struct toprows rows = state->rows;
    toprows_free(&state->rows);
    state->rows = (struct toprows){.costs = &state->source->costs,
                                   .names = state->source->names,
                                   .by = rows.by,
                                   .sort = rows.sort,
                                   .reverse = rows.reverse,
                                   .filter = rows.filter};
    state->page = TOPSTATE_ROWS;
    state->is_paused = false;
    state->selected = state->top = 0;
    ask_end(&state->ask);
    state->ask.is_off = state->ask.is_sampled = false;
}

static void drop_filter(struct topstate *state) {
    if (state->filter[0] != '\0') {
        regfree(&state->regex);
        state->filter[0] = '\0';
    }
    toprows_refilter(&state->rows, NULL);
}

int topstate_filter(struct topstate *state, const char *text) {
    char why[PATTERN_WHY];
    regex_t regex;
    if (text[0] == '\0') {
        drop_filter(state);
        return 0;
    }
    if (pattern_compile(&regex, text, why) != 0) {
        snprintf(state->message, sizeof state->message, "no such filter: %s", why);
        return -1;
    }
    drop_filter(state);
    snprintf(state->filter, sizeof state->filter, "%s", text);
    state->regex = regex;
    toprows_refilter(&state->rows, &state->regex);
    return 0;
}

void topstate_mark(struct topstate *state) {
    const struct topsource *source = state->source;
    livecosts_mark(&state->source->costs);
    state->marked_ns =
        source->point_count != 0 ? source->points[source->point_count - 1].time_ns : 0;
}

void topstate_free(struct topstate *state) {
    ask_end(&state->ask);
    drop_filter(state);
    toprows_free(&state->rows);
}

/* ---- Keys ---- */

static void keys_say(struct topstate *state, const char *text) {
    snprintf(state->message, sizeof state->message, "%s", text);
}

/* ---- The filter is typed ---- */

static enum topstate_then keys_type_filter(struct topstate *state, unsigned key) {
    size_t length = strlen(state->typed);
    switch (key) {
    case TOPSTATE_ENTER:
        state->is_asking = topstate_filter(state, state->typed) != 0;
        return TOPSTATE_MAKE;
    case TOPSTATE_ESCAPE:
        state->is_asking = false;
        return TOPSTATE_DRAW;
    case TOPSTATE_BACKSPACE:
        if (length == 0) {
            state->is_asking = false;
        } else {
            state->typed[length - 1] = '\0';
        }
        return TOPSTATE_DRAW;
    default:
        if (key >= ' ' && key < 0x7f && length + 1 < sizeof state->typed) {
            state->typed[length] = (char)key;
            state->typed[length + 1] = '\0';
        }
        return TOPSTATE_DRAW;
    }
}

/* ---- What is counted ---- */

static void ask_for(struct topstate *state, struct modeswitch wish, const char *said) {
    struct error error;
    const struct profile *profile = state->source->profile;
    struct memtrace_header *header = modeswitch_map(profile->path, &error);
    if (header == NULL) {
        keys_say(state, error.message);
        return;
    }
    modeswitch_ask(header, wish);
    modeswitch_unmap(header);
    keys_say(state, said);
}

/* Of a recording: its program may be on another machine. */
static void wish_for(struct topstate *state, const struct programask_wish *wish) {
    const struct topsource *source = state->source;
    struct error error;
    if (!source->is_live) {
        keys_say(state, "it does not run");
        return;
    }
    keys_say(state,
             ask_begin(&state->ask, source, wish, &error) == 0 ? "asked ..." : error.message);
}

/* By the clock on the wall, as the user who looks for it later remembers it. */
static enum topstate_then put_mark(struct topstate *state) {
    struct programask_wish wish = {.what = PROGRAMASK_MARK};
    time_t now = time(NULL);
    struct tm clock;
    if (localtime_r(&now, &clock) == NULL ||
        strftime(wish.text, sizeof wish.text, "top %H:%M:%S", &clock) == 0) {
        snprintf(wish.text, sizeof wish.text, "top");
    }
    wish_for(state, &wish);
    return TOPSTATE_DRAW;
}

static enum topstate_then count_otherwise(struct topstate *state, unsigned key) {
    const struct profile *profile = state->source->profile;
    const struct memtrace_header *header = profile != NULL ? profile_header(profile) : NULL;
    if (header == NULL) { /* of a recording */
        struct programask_wish wish = {.what = PROGRAMASK_OFF, .mean = MODESWITCH_MEAN};
        if (key == 'o' && state->ask.is_off) {
            wish.what = PROGRAMASK_ON;
        } else if (key == 'O') {
            wish.what = state->ask.is_sampled ? PROGRAMASK_EXACT : PROGRAMASK_SAMPLE;
        }
        wish_for(state, &wish);
    } else if (!state->source->is_live) {
        keys_say(state, "it does not run");
    } else if (key == 'o' && profile_load_u32(&header->mode) == MEMTRACE_MODE_OFF) {
        ask_for(state, (struct modeswitch){.mode = MEMTRACE_MODE_ON}, "asked to count again");
    } else if (key == 'o') {
        ask_for(state, (struct modeswitch){.mode = MEMTRACE_MODE_OFF},
                "asked to count nothing new");
    } else if (modeswitch_mean(header) != 0) {
        ask_for(state, (struct modeswitch){.mode = MEMTRACE_MODE_EXACT}, "asked to count all");
    } else {
        ask_for(state, (struct modeswitch){.mode = MEMTRACE_MODE_SAMPLED, .mean = MODESWITCH_MEAN},
                "asked to count a sample: one allocation in 512.0 KiB");
    }
    return TOPSTATE_DRAW;
}

/* What comes of it the screen says: top does not wait for it, and the recording not for top. */
static void switch_recording(struct topstate *state, struct memtrace_header *header,
                             const struct region *region) {
    char path[RECORDASK_PATH];
    enum recordask_state now = recordask_look(header);
    struct error error;
    if (now == RECORDASK_ASKED || now == RECORDASK_ON || now == RECORDASK_STOPPED) {
        if (recordask_end(header, region, &error) != 0) {
            keys_say(state, error.message);
        } else {
            recordask_path(header, path);
            snprintf(state->message, sizeof state->message, "recorded to %.490s", path);
        }
    } else if (recordask_begin(header, region, NULL, path, &error) != 0) {
        keys_say(state, error.message);
    } else {
        snprintf(state->message, sizeof state->message, "recording to %.480s; R ends it", path);
    }
}

static enum topstate_then keys_record(struct topstate *state) {
    const struct profile *profile = state->source->profile;
    struct memtrace_header *header;
    struct region region;
    struct error error;
    if (!state->source->is_live) {
        keys_say(state, "it does not run");
    } else if (profile == NULL) {
        keys_say(state, "it is recorded already");
    } else if (region_find(state->source->pid, &region, &error) != 0 ||
               (header = modeswitch_map(region.path, &error)) == NULL) {
        keys_say(state, error.message);
    } else {
        switch_recording(state, header, &region);
        modeswitch_unmap(header);
    }
    return TOPSTATE_DRAW;
}

static enum topstate_then keys_save(struct topstate *state) {
    char path[256];
    struct error error;
    if (topsource_save(state->source, path, sizeof path, &error) != 0) {
        keys_say(state, error.message);
    } else {
        snprintf(state->message, sizeof state->message, "saved as %s", path);
    }
    return TOPSTATE_DRAW;
}

/* ---- Rows ---- */

static const struct toprow *keys_row(const struct topstate *state) {
    return state->selected < state->rows.count ? &state->rows.rows[state->selected] : NULL;
}

/* Opens the row; one that is open gives way to its first row below. */
static enum topstate_then open_row(struct topstate *state, bool toggles) {
    const struct toprow *row = keys_row(state);
    if (row == NULL || !row->can_open) {
        return TOPSTATE_DRAW;
    }
    if (row->is_open && !toggles) {
        topstate_move(state, 1);
        return TOPSTATE_DRAW;
    }
    toprows_open(&state->rows, row, !row->is_open);
    return TOPSTATE_MAKE;
}

/* Closes it; one that is closed gives way to the row that it belongs to, at last to the list. */
static enum topstate_then close_row(struct topstate *state) {
    const struct toprow *row = keys_row(state);
    unsigned depth = row != NULL ? row->depth : 0;
    if (row != NULL && row->is_open) {
        toprows_open(&state->rows, row, false);
        return TOPSTATE_MAKE;
    }
    if (depth == 0 && state->list != NULL) {
        return TOPSTATE_BACK;
    }
    while (depth != 0 && state->selected > 0 && state->rows.rows[state->selected].depth >= depth) {
        topstate_move(state, -1);
    }
    return TOPSTATE_DRAW;
}

static enum topstate_then turn_to_page(struct topstate *state, enum topstate_page page) {
    state->page = state->page == page ? TOPSTATE_ROWS : page;
    state->top = 0;
    return TOPSTATE_DRAW;
}

static enum topstate_then show_by(struct topstate *state, enum toprows_by by) {
    state->page = TOPSTATE_ROWS;
    if (state->rows.by != by) {
        state->rows.by = by;
        state->selected = state->top = 0;
    }
    return TOPSTATE_MAKE;
}

static enum topstate_then keys_move(struct topstate *state, long by) {
    if (state->page == TOPSTATE_LIST) {
        topstate_move_list(state, by);
    } else if (state->page == TOPSTATE_ROWS) {
        topstate_move(state, by);
    } else if (by < 0) {
        state->top -= (size_t)-by < state->top ? (size_t)-by : state->top;
    } else {
        state->top += (size_t)by < state->source->model->thread_count ? (size_t)by : 0;
    }
    return TOPSTATE_DRAW;
}

/* ---- Threads, and what a row is ---- */

/* The next of those that live; behind the last, and before the first, all. */
static uint32_t next_thread(const struct topsource *source, bool forwards) {
    const struct model *model = source->model;
    uint32_t before = 0;
    bool is_behind = source->thread == 0;
    for (size_t i = 0; i < model->thread_count; i++) {
        const struct model_thread *thread = &model->threads[i];
        if (thread->id == source->thread) {
            if (!forwards) {
                return before;
            }
            is_behind = true;
        } else if (thread->alive && forwards && is_behind) {
            return thread->id;
        }
        before = thread->alive ? thread->id : before;
    }
    return forwards ? 0 : before;
}

static enum topstate_then choose_thread(struct topstate *state, bool forwards) {
    struct error error;
    if (topsource_choose(state->source, next_thread(state->source, forwards), &error) != 0) {
        keys_say(state, error.message);
        return TOPSTATE_DRAW;
    }
    topstate_mark(state);
    return TOPSTATE_MAKE;
}

/* Of a row of one path. */
static enum topstate_then copy_hash(struct topstate *state) {
    const struct toprow *row = topstate_row(state);
    const struct livecosts *costs = &state->source->costs;
    if (row == NULL || row->paths != 1) {
        snprintf(state->message, sizeof state->message,
                 "%zu call paths are in this row: g shows each, and y there copies its hash",
                 row != NULL ? row->paths : 0);
        return TOPSTATE_DRAW;
    }
    for (size_t i = 0; i < costs->count; i++) {
        if (toprows_covers(&state->rows, row, i)) {
            snprintf(state->copied, sizeof state->copied, "%016" PRIx64,
                     topsource_hash(state->source, costs->contexts[i].path));
            snprintf(state->message, sizeof state->message,
                     "hash %s is copied, where the terminal allows that", state->copied);
        }
    }
    return TOPSTATE_DRAW;
}

/* ---- How often ---- */

static enum topstate_then look_more(struct topstate *state, bool often) {
    size_t at = 0;
    while (at + 1 < INTERVALS && intervals[at] < state->interval_ns) {
        at++;
    }
    if (often && at > 0) {
        at--;
    } else if (!often && at + 1 < INTERVALS && intervals[at] <= state->interval_ns) {
        at++;
    }
    state->interval_ns = intervals[at];
    return TOPSTATE_DRAW;
}

/* ---- Keys of the list, and of a program ---- */

struct sort_key {
    unsigned key;
    int sort;
};
static const struct sort_key list_sorts[] = {{'l', TOPLIST_LIVE},
                                             {'d', TOPLIST_CHANGE},
                                             {'a', TOPLIST_RATE},
                                             {'m', TOPLIST_RESIDENT},
                                             {0, 0}};
static const struct sort_key row_sorts[] = {
    {'l', TOPROWS_LIVE},      {'d', TOPROWS_DELTA},  {'t', TOPROWS_TOTAL},   {'a', TOPROWS_RATE},
    {'e', TOPROWS_TEMPORARY}, {'c', TOPROWS_BLOCKS}, {'m', TOPROWS_MAXIMUM}, {0, 0}};

/* The sort that the key chooses; -1: none. */
static int sort_of_key(const struct sort_key *sorts, unsigned key) {
    while (sorts->key != 0 && sorts->key != key) {
        sorts++;
    }
    return sorts->key != 0 ? sorts->sort : -1;
}

static enum topstate_then press_on_list(struct topstate *state, unsigned key) {
    struct toplist *list = state->list;
    int sort = sort_of_key(list_sorts, key);
    if (key == TOPSTATE_ENTER || key == TOPSTATE_RIGHT) {
        return list->count != 0 ? TOPSTATE_OPEN : TOPSTATE_DRAW;
    }
    if (key == 'r') {
        list->reverse = !list->reverse;
    } else if (sort < 0 || sort == (int)list->sort) {
        return TOPSTATE_DRAW;
    } else {
        list->sort = (enum toplist_sort)sort;
    }
    return TOPSTATE_MAKE;
}

static enum topstate_then press_on_program(struct topstate *state, unsigned key) {
    int sort = sort_of_key(row_sorts, key);
    bool is_rows = state->page == TOPSTATE_ROWS;
    if (sort >= 0) {
        state->rows.sort = (enum toprows_sort)sort;
        return TOPSTATE_MAKE;
    }
    switch (key) {
    case '?':
        return turn_to_page(state, TOPSTATE_HELP);
    case 'T':
        return turn_to_page(state, TOPSTATE_THREADS);
    case 'x':
        return turn_to_page(state, TOPSTATE_CHART);
    case 'h':
        return turn_to_page(state, TOPSTATE_BLOCKS);
    case TOPSTATE_ESCAPE:
        return is_rows && state->list != NULL ? TOPSTATE_BACK : turn_to_page(state, TOPSTATE_ROWS);
    case TOPSTATE_LEFT:
        return is_rows ? close_row(state) : turn_to_page(state, TOPSTATE_ROWS);
    case TOPSTATE_RIGHT:
        return open_row(state, false);
    case TOPSTATE_ENTER:
        return open_row(state, true);
    case 'f':
        return show_by(state, TOPROWS_FUNCTIONS);
    case 'g':
        return show_by(state, TOPROWS_PATHS);
    case 'r':
        state->rows.reverse = !state->rows.reverse;
        return TOPSTATE_MAKE;
    case 'z':
        topstate_mark(state);
        keys_say(state, "DELTA counts from now on");
        return TOPSTATE_MAKE;
    case '/':
        state->is_asking = true;
        snprintf(state->typed, sizeof state->typed, "%s", state->filter);
        return TOPSTATE_DRAW;
    case '<':
    case '>':
        return choose_thread(state, key == '>');
    case 'y':
        return copy_hash(state);
    case 's':
        return keys_save(state);
    case 'R':
        return keys_record(state);
    case 'M':
        return put_mark(state);
    case 'o':
    case 'O':
        return count_otherwise(state, key);
    default:
        return TOPSTATE_DRAW;
    }
}

/* Those that do the same on each page. */
enum topstate_then topstate_press(struct topstate *state, unsigned key) {
    long page = state->shown > 1 ? (long)state->shown - 1 : 1;
    state->message[0] = '\0';
    if (state->is_asking) {
        return keys_type_filter(state, key);
    }
    switch (key) {
    case TOPSTATE_UP:
        return keys_move(state, -1);
    case TOPSTATE_DOWN:
        return keys_move(state, 1);
    case TOPSTATE_PAGE_UP:
        return keys_move(state, -page);
    case TOPSTATE_PAGE_DOWN:
        return keys_move(state, page);
    case TOPSTATE_HOME:
        return keys_move(state, -INT32_MAX);
    case TOPSTATE_END:
        return keys_move(state, INT32_MAX);
    case ' ':
        state->is_paused = !state->is_paused;
        return TOPSTATE_DRAW;
    case '+':
    case '-':
        return look_more(state, key == '+');
    case 'q':
        return TOPSTATE_QUIT;
    default:
        return state->page == TOPSTATE_LIST ? press_on_list(state, key)
                                            : press_on_program(state, key);
    }
}
