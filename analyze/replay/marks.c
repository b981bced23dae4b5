/* SPDX-License-Identifier: MIT */
/* marks.c: marks of a replay, then of a model. See marks.h. */
#include "analyze/replay/marks.h"

#include "analyze/base/array.h"

#include <stdlib.h>
#include <string.h>

void marks_free(struct marks *marks) {
    free(marks->items);
    *marks = (struct marks){0};
}

int marks_add(struct marks *marks, const struct timeorder_event *entry) {
    const struct event *event = &entry->event;
    marks->total++;
    if (marks->count == MODEL_MARKS) {
        return 0;
    }
    if (array_grow_by_count(&marks->items, marks->count, sizeof *marks->items) != 0) {
        return -1;
    }
    marks->items[marks->count++] = (struct model_mark){.time_ns = event->time_ns,
                                                       .thread = entry->thread,
                                                       .what = event->operation,
                                                       .id = event->id,
                                                       .name = event->text};
    return 0;
}

/* Those of one time stay as they came. */
static int by_time(const void *left, const void *right) {
    const struct model_mark *a = *(const struct model_mark *const *)left;
    const struct model_mark *b = *(const struct model_mark *const *)right;
    if (a->time_ns != b->time_ns) {
        return a->time_ns < b->time_ns ? -1 : 1;
    }
    return (a > b) - (a < b);
}

static int sort(struct marks *marks) {
    const struct model_mark **order = calloc(marks->count, sizeof *order);
    struct model_mark *sorted = calloc(marks->count, sizeof *sorted);
    if (order == NULL || sorted == NULL) {
        free(order);
        free(sorted);
        return -1;
    }
    for (size_t i = 0; i < marks->count; i++) {
        order[i] = &marks->items[i];
    }
    qsort(order, marks->count, sizeof *order, by_time);
    for (size_t i = 0; i < marks->count; i++) {
        sorted[i] = *order[i];
    }
    free(order);
    free(marks->items);
    marks->items = sorted;
    return 0;
}

int marks_finish(struct marks *marks, struct model *model) {
    model->mark_total = marks->total;
    if (marks->count == 0) {
        return 0;
    }
    return sort(marks) == 0 ? marks_copy(model, marks->items, marks->count) : -1;
}

int marks_copy(struct model *model, const struct model_mark *marks, size_t count) {
    struct texts texts = {0};
    if (count == 0) {
        return 0;
    }
    model->marks = calloc(count, sizeof *model->marks);
    if (model->marks == NULL) {
        return -1;
    }
    for (size_t i = 0; i < count; i++) {
        model->marks[i] = marks[i];
        model->marks[i].name = texts_keep(&texts, marks[i].name, strlen(marks[i].name));
    }
    model->mark_count = count;
    model->mark_names = texts.bytes;
    model->mark_names_size = texts.used;
    texts.bytes = NULL; /* they are the model's from here on */
    texts_free(&texts);
    return 0;
}
