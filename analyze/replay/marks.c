/* SPDX-License-Identifier: MIT */
/* marks.c: marks of a replay, then of a model. See marks.h. */
#include "analyze/replay/marks.h"

#include "analyze/base/sort.h"

#include <stdlib.h>
#include <string.h>

void marks_add(struct marks *marks, const struct timeorder_event *entry) {
    const struct event *event = &entry->event;
    marks->total++;
    if (marks->count == MODEL_MARKS) {
        return;
    }
    job_grow(&marks->items, &marks->room, marks->count, sizeof *marks->items);
    marks->items[marks->count++] = (struct model_mark){.time_ns = event->time_ns,
                                                       .thread = entry->thread,
                                                       .what = event->operation,
                                                       .id = event->id,
                                                       .name = event->text};
}

/* Those of one time stay as they came. */
void marks_finish(const struct marks *marks, struct model *model) {
    struct sort_key *order = job_array(marks->count + 1, sizeof *order);
    struct model_mark *sorted = job_array(marks->count + 1, sizeof *sorted);
    for (size_t i = 0; i < marks->count; i++) {
        order[i] = (struct sort_key){marks->items[i].time_ns, i};
    }
    if (sort_keys(order, marks->count, NULL) != SORT_DONE) {
        job_fail_memory();
    }
    for (size_t i = 0; i < marks->count; i++) {
        sorted[i] = marks->items[order[i].place];
    }
    model->mark_total = marks->total;
    marks_copy(model, sorted, marks->count);
    job_release(order);
    job_release(sorted);
}

void marks_copy(struct model *model, const struct model_mark *marks, size_t count) {
    struct texts texts = {0};
    if (count == 0) {
        return;
    }
    model->marks = job_array(count, sizeof *model->marks);
    for (size_t i = 0; i < count; i++) {
        model->marks[i] = marks[i];
        model->marks[i].name = texts_keep(&texts, marks[i].name, strlen(marks[i].name));
    }
    model->mark_count = count;
    model->mark_names = texts.bytes;
    model->mark_names_size = texts.used;
    texts.bytes = NULL; /* they are the model's from here on */
    texts_free(&texts);
    job_undo(free, model->mark_names);
}
