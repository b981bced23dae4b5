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

void topstate_move(struct topstate *state, long by) {
    size_t count = state->rows.count;
    size_t far = by < 0 ? (size_t)-by : (size_t)by;
    if (count == 0) {
        return;
    }
    if (by < 0) {
        state->selected = state->selected > far ? state->selected - far : 0;
    } else {
        state->selected = count - 1 - state->selected > far ? state->selected + far : count - 1;
    }
    state->selected_id = state->rows.rows[state->selected].id;
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
    drop_filter(state);
    toprows_free(&state->rows);
}
