/* SPDX-License-Identifier: MIT */
/* apitimeline.c: GET /r/{r}/timeline: memory over time, in as many points as are wanted. */
#include "web/server/apilist.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { USUAL_POINTS = 1000, MOST_POINTS = 100000 };
enum series { SERIES_LIVE, SERIES_RESIDENT, SERIES_RATE, SERIES_COUNT };
static const char *const names[SERIES_COUNT] = {"live", "resident", "rate"};
/* Those that no file of this kind tells: see /mappings. */
static const char *const others[] = {"swap", "virtual", "frees", "leaked"};

struct curves {
    uint64_t *time_ns;
    double *values[SERIES_COUNT];
    size_t count;
};

static void free_curves(struct curves *curves) {
    free(curves->time_ns);
    for (size_t i = 0; i < SERIES_COUNT; i++) {
        free(curves->values[i]);
    }
}

static int make_room(struct curves *curves, size_t count) {
    curves->time_ns = calloc(count + 1, sizeof *curves->time_ns);
    for (size_t i = 0; i < SERIES_COUNT; i++) {
        curves->values[i] = calloc(count + 1, sizeof *curves->values[i]);
        if (curves->values[i] == NULL) {
            return -1;
        }
    }
    return curves->time_ns != NULL ? 0 : -1;
}

/* Allocations per second between two points; NaN: not known. */
static double rate_between(const struct memtrace_point *from, const struct memtrace_point *to) {
    return to->time_ns > from->time_ns && to->alloc_count >= from->alloc_count
               ? (double)(to->alloc_count - from->alloc_count) * 1e9 /
                     (double)(to->time_ns - from->time_ns)
               : NAN;
}

/* Points [first, end) become one: where most was live. */
static void join(const struct model *model, size_t first, size_t end, struct curves *curves) {
    const struct memtrace_point *points = model->timeline;
    size_t most = first;
    uint64_t resident = 0;
    size_t at = curves->count++;
    for (size_t i = first; i < end; i++) {
        most = points[i].live_bytes > points[most].live_bytes ? i : most;
        resident = points[i].resident_bytes > resident ? points[i].resident_bytes : resident;
    }
    curves->time_ns[at] = points[most].time_ns;
    curves->values[SERIES_LIVE][at] = (double)points[most].live_bytes;
    curves->values[SERIES_RESIDENT][at] = resident != 0 ? (double)resident : NAN;
    curves->values[SERIES_RATE][at] =
        first != 0 ? rate_between(&points[first - 1], &points[end - 1]) : NAN;
}

/* Each point is the highest of its share of them, but for the first and the last one, which stay.
 */
static void thin_out(const struct model *model, size_t wanted, struct curves *curves) {
    size_t count = model->timeline_count;
    size_t most = wanted > 2 ? wanted : 3;
    if (count <= most) {
        for (size_t i = 0; i < count; i++) {
            join(model, i, i + 1, curves);
        }
        return;
    }
    join(model, 0, 1, curves);
    for (size_t i = 0; i < most - 2; i++) {
        size_t first = 1 + (count - 2) * i / (most - 2);
        size_t end = 1 + (count - 2) * (i + 1) / (most - 2);
        if (first < end) {
            join(model, first, end, curves);
        }
    }
    join(model, count - 1, count, curves);
}

/* Whether "live,rate" has the word. */
static bool is_wanted(const char *list, const char *word) {
    size_t length = strlen(word);
    while (list != NULL && *list != '\0') {
        size_t size = strcspn(list, ",");
        if (size == length && memcmp(list, word, size) == 0) {
            return true;
        }
        list += size;
        list += *list == ',';
    }
    return list == NULL;
}

static bool is_series(const char *word, size_t size) {
    for (size_t i = 0; i < SERIES_COUNT; i++) {
        if (strlen(names[i]) == size && memcmp(names[i], word, size) == 0) {
            return true;
        }
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (strlen(others[i]) == size && memcmp(others[i], word, size) == 0) {
            return true;
        }
    }
    return false;
}

static int check_series(struct api_call *call, const char *list, struct error *error) {
    while (list != NULL && *list != '\0') {
        size_t size = strcspn(list, ",");
        if (!is_series(list, size)) {
            return api_refuse(call, 400, error,
                              "series is some of live,resident,rate,swap,virtual,frees,leaked, "
                              "not '%s'",
                              list);
        }
        list += size;
        list += *list == ',';
    }
    return 0;
}

static int put(struct api_call *call, const struct curves *curves, const char *list) {
    const struct model_totals *totals = &call->view->model->totals;
    struct jsonwriter *json = call->json;
    int result;
    jsonwriter_map(json, NULL);
    result = api_column(call, "time_ns", API_U64, curves->time_ns, curves->count);
    jsonwriter_map(json, "series");
    for (size_t i = 0; i < SERIES_COUNT && result == 0; i++) {
        if (is_wanted(list, names[i])) {
            result = api_column(call, names[i], API_F64, curves->values[i], curves->count);
        }
    }
    jsonwriter_end_map(json);
    if (totals->maximum_ns != 0) {
        jsonwriter_map(json, "maximum");
        jsonwriter_number(json, "time_ns", totals->maximum_ns);
        jsonwriter_number(json, "bytes", totals->maximum_bytes);
        jsonwriter_end_map(json);
    }
    jsonwriter_end_map(json);
    return result;
}

int api_timeline(struct api_call *call, struct error *error) {
    const char *list = api_param(call, "series");
    struct curves curves = {0};
    uint64_t points;
    int result;
    if (api_number(call, "points", USUAL_POINTS, 3, MOST_POINTS, &points, error) != 0 ||
        check_series(call, list, error) != 0) {
        return -1;
    }
    api_command(call, "report --show-timeline");
    api_sql(call, "SELECT * FROM timeline");
    result = make_room(&curves, call->view->model->timeline_count);
    if (result == 0) {
        thin_out(call->view->model, (size_t)points, &curves);
        result = put(call, &curves, list);
    }
    free_curves(&curves);
    return result == 0 ? 0 : error_set(error, "out of memory");
}
