/* SPDX-License-Identifier: MIT */
/* filtervalue.c: ranges, times and spans of time. See filters.h; docs/filters.md tells users the
 * same. */
#include "analyze/base/job.h"
#include "ask/filters.h"
#include "ask/option.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- Ranges ---- */

typedef int (*value_parser)(const char *text, uint64_t *value);

/* The two sides of `..`; an empty one leaves its bound as it is. false: there is no `..`. */
static bool range_split(const char *text, char **left, char **right) {
    const char *dots = strstr(text, "..");
    *left = dots != NULL ? job_text("%.*s", (int)(dots - text), text) : job_string(text);
    *right = job_string(dots != NULL ? dots + 2 : "");
    return dots != NULL;
}

int filtervalue_range(const char *text, value_parser parse, const char *what,
                      struct selection_range *range, struct error *error) {
    char *left;
    char *right;
    bool is_one = !range_split(text, &left, &right);
    *range = (struct selection_range){0, UINT64_MAX};
    if ((left[0] == '\0' && right[0] == '\0') ||
        (left[0] != '\0' && parse(left, &range->least) != 0) ||
        (right[0] != '\0' && parse(right, &range->most) != 0)) {
        return error_set(error, "'%s' is not a range of %s", text, what);
    }
    range->most = is_one ? range->least : range->most;
    return range->least <= range->most ? 0 : error_set(error, "the range '%s' is empty", text);
}

/* ---- Marks ---- */

static bool mark_is_named(const struct model_mark *mark, const char *name, size_t size) {
    return mark->what == MEMTRACE_MARK_POINT && strlen(mark->name) == size &&
           memcmp(mark->name, name, size) == 0;
}

static bool was_named_before(const struct model *model, size_t at) {
    const char *name = model->marks[at].name;
    for (size_t i = 0; i < at; i++) {
        if (mark_is_named(&model->marks[i], name, strlen(name))) {
            return true;
        }
    }
    return false;
}

/* "a, b, c" of at most so many bytes and eight names; "" where there are none. */
static void list_marks(const struct model *model, char *buffer, size_t size) {
    enum { MOST_NAMES = 8, MOST_MARKS = 4096 };
    size_t used = 0;
    int names = 0;
    buffer[0] = '\0';
    for (size_t i = 0; i < model->mark_count && i < MOST_MARKS; i++) {
        const struct model_mark *mark = &model->marks[i];
        if (mark->what != MEMTRACE_MARK_POINT || was_named_before(model, i)) {
            continue;
        }
        if (names == MOST_NAMES || used + strlen(mark->name) + 8 > size) {
            snprintf(buffer + used, size - used, ", ...");
            return;
        }
        used += (size_t)snprintf(buffer + used, size - used, "%s%s", names != 0 ? ", " : "",
                                 mark->name);
        names++;
    }
}

static int no_such_mark(const struct model *model, const char *name, size_t size, uint64_t number,
                        struct error *error) {
    char names[256];
    list_marks(model, names, sizeof names);
    if (names[0] == '\0') {
        return error_set(error, "there is no mark '%.*s': the program set none (memtrace_mark)",
                         (int)size, name);
    }
    if (number > 1) {
        return error_set(error, "there is no mark '%.*s' number %llu; marks are: %s", (int)size,
                         name, (unsigned long long)number, names);
    }
    return error_set(error, "there is no mark '%.*s'; marks are: %s", (int)size, name, names);
}

/* NAME or NAME#3, from the model's mark *at on; *at is that mark's place then. */
static int find_mark(const char *text, const struct model *model, size_t *at, struct error *error) {
    const char *hash = strrchr(text, '#');
    uint64_t number = 1;
    size_t size;
    uint64_t left;
    if (hash == NULL || quantity_u64(hash + 1, &number) != 0 || number == 0) {
        hash = NULL;
        number = 1;
    }
    size = hash != NULL ? (size_t)(hash - text) : strlen(text);
    left = number;
    for (size_t i = *at; i < model->mark_count; i++) {
        if (mark_is_named(&model->marks[i], text, size) && --left == 0) {
            *at = i;
            return 0;
        }
    }
    return no_such_mark(model, text, size, number, error);
}

/* The mark `text` from *at on, which is behind the one called `before`. */
static int find_behind(const char *before, const char *text, const struct model *model, size_t *at,
                       struct error *error) {
    size_t start = 0;
    if (find_mark(text, model, at, error) == 0) {
        return 0;
    }
    return find_mark(text, model, &start, error) == 0
               ? error_set(error, "no mark '%s' comes after '%s'", text, before)
               : -1;
}

/* ---- Times ---- */

static int parse_time(const char *text, const struct model *model, uint64_t *time_ns,
                      struct error *error) {
    double percent;
    size_t mark = 0;
    if (strcmp(text, "start") == 0) {
        *time_ns = 0;
    } else if (strcmp(text, "end") == 0) {
        *time_ns = UINT64_MAX;
    } else if (strcmp(text, "peak") == 0) {
        /* Everything up to the event that made the maximum. */
        *time_ns = model != NULL ? model->totals.maximum_ns + 1 : 0;
    } else if (strncmp(text, "mark:", 5) == 0 && text[5] != '\0') {
        if (model != NULL && find_mark(text + 5, model, &mark, error) != 0) {
            return -1;
        }
        *time_ns = model != NULL ? model->marks[mark].time_ns : 0;
    } else if (strchr(text, '%') != NULL && quantity_percent(text, &percent) == 0) {
        *time_ns = model != NULL ? (uint64_t)((double)model->now_ns * percent / 100) : 0;
    } else if (quantity_duration(text, time_ns) != 0) {
        return error_set(error,
                         "'%s' is not a time (try 1.5s, 300ms, 50%%, mark:NAME, start, end "
                         "or peak)",
                         text);
    }
    return 0;
}

int filtervalue_time(const char *text, const struct model *model, uint64_t *time_ns,
                     struct error *error) {
    int result = parse_time(text, model, time_ns, error);
    *time_ns = result == 0 && model != NULL ? *time_ns : 0;
    return result;
}

int filtervalue_times(const char *text, const struct model *model, struct selection_times *times,
                      struct error *error) {
    char *left;
    char *right;
    bool is_span = range_split(text, &left, &right);
    *times = (struct selection_times){0, UINT64_MAX};
    if (!is_span || (left[0] == '\0' && right[0] == '\0')) {
        return error_set(
            error, "'%s' is not a span of time (try 1s..2.5s, 50%%.. or ..mark:loaded)", text);
    }
    if (left[0] != '\0' && parse_time(left, model, &times->from_ns, error) != 0) {
        return -1;
    }
    return right[0] != '\0' ? parse_time(right, model, &times->to_ns, error) : 0;
}

int filtervalue_marks(const char *text, const struct model *model, struct selection_times *times,
                      struct error *error) {
    const char *comma = strchr(text, ',');
    size_t at = 0;
    const char *first;
    if (comma == NULL || comma == text || comma[1] == '\0') {
        return error_set(error, "'%s' is not two marks with a comma between them", text);
    }
    if (model == NULL) {
        return 0;
    }
    first = job_text("%.*s", (int)(comma - text), text);
    if (find_mark(first, model, &at, error) != 0) {
        return -1;
    }
    times->from_ns = model->marks[at++].time_ns;
    if (find_behind(first, comma + 1, model, &at, error) != 0) {
        return -1;
    }
    times->to_ns = model->marks[at].time_ns;
    return 0;
}

int filtervalue_percents(const char *text, double *least, double *most, struct error *error) {
    char *left;
    char *right;
    bool is_one = !range_split(text, &left, &right);
    double bounds[2] = {0, INFINITY};
    if ((left[0] == '\0' && right[0] == '\0') ||
        (left[0] != '\0' && quantity_percent(left, &bounds[0]) != 0) ||
        (right[0] != '\0' && quantity_percent(right, &bounds[1]) != 0)) {
        return error_set(error, "'%s' is not a range of percentages (try 50%%.. or 10%%..20%%)",
                         text);
    }
    *least = bounds[0];
    *most = is_one ? bounds[0] : bounds[1];
    return *least <= *most ? 0 : error_set(error, "the range '%s' is empty", text);
}
