/* SPDX-License-Identifier: MIT */
/* topstate.c: see topstate.h. */
#include "top/topstate.h"

#include "analyze/base/pattern.h"

#include <stdio.h>
#include <string.h>

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
static size_t moved(size_t selected, long by, size_t count) {
    size_t far = by < 0 ? (size_t)-by : (size_t)by;
    if (by < 0) {
        return selected > far ? selected - far : 0;
    }
    return count - 1 - selected > far ? selected + far : count - 1;
}

void topstate_move(struct topstate *state, long by) {
    if (state->rows.count != 0) {
        state->selected = moved(state->selected, by, state->rows.count);
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
        state->list_selected = moved(state->list_selected, by, list->count);
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
    topask_end(&state->ask);
    state->ask.is_off = state->ask.is_sampled = false;
}

void topstate_hear(struct topstate *state) {
    struct programask_answer answer;
    if (topask_look(&state->ask, &answer)) {
        snprintf(state->message, sizeof state->message, "%s", answer.text);
    }
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
    topask_end(&state->ask);
    drop_filter(state);
    toprows_free(&state->rows);
}
