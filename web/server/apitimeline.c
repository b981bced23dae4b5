/* SPDX-License-Identifier: MIT */
/* apitimeline.c: GET /r/{r}/timeline: memory over time, in as many points as are wanted, and what
 * was allocated and freed in equal parts of the time. */
#include "analyze/blocks/activity.h"
#include "web/server/apicache.h"
#include "web/server/apilist.h"

#include <math.h>
#include <stdlib.h>

enum { USUAL_POINTS = 1000, MOST_POINTS = 100000, USUAL_INTERVALS = 160, MOST_INTERVALS = 10000 };

static const char usual[] = "live,resident,swap,virtual,rate,frees"; /* what takes no long pass */

bool apitimeline_is_pass(const char *series) {
    unsigned wanted;
    return series != NULL && activity_parse(series, &wanted) == 0 &&
           (wanted & 1u << ACTIVITY_LEAKED) != 0;
}

/* ---- Points ---- */

struct curves {
    uint64_t *time_ns;
    double *values[ACTIVITY_AT_POINTS];
    size_t count;
};

static void free_curves(struct curves *curves) {
    free(curves->time_ns);
    for (size_t i = 0; i < ACTIVITY_AT_POINTS; i++) {
        free(curves->values[i]);
    }
}

static int make_room(struct curves *curves, size_t count) {
    curves->time_ns = calloc(count + 1, sizeof *curves->time_ns);
    for (size_t i = 0; i < ACTIVITY_AT_POINTS; i++) {
        curves->values[i] = calloc(count + 1, sizeof *curves->values[i]);
        if (curves->values[i] == NULL) {
            return -1;
        }
    }
    return curves->time_ns != NULL ? 0 : -1;
}

/* Points [first, end) become one: where most was live. */
static void join(const struct model *model, const struct activity *activity, size_t first,
                 size_t end, struct curves *curves) {
    const struct memtrace_point *points = model->timeline;
    const struct memtrace_sample *process;
    size_t most = first;
    uint64_t resident = 0;
    size_t at = curves->count++;
    for (size_t i = first; i < end; i++) {
        most = points[i].live_bytes > points[most].live_bytes ? i : most;
        resident = points[i].resident_bytes > resident ? points[i].resident_bytes : resident;
    }
    process = activity_process(activity, points[most].time_ns);
    curves->time_ns[at] = points[most].time_ns;
    curves->values[ACTIVITY_LIVE][at] = (double)points[most].live_bytes;
    curves->values[ACTIVITY_RESIDENT][at] = resident != 0 ? (double)resident : NAN;
    curves->values[ACTIVITY_SWAP][at] = process != NULL ? (double)process->swap_bytes : NAN;
    curves->values[ACTIVITY_VIRTUAL][at] = process != NULL ? (double)process->virtual_bytes : NAN;
}

/* Each point is the highest of its share of them, but for the first and the last one, which stay.
 */
static void thin_out(const struct model *model, const struct activity *activity, size_t wanted,
                     struct curves *curves) {
    size_t count = model->timeline_count;
    size_t most = wanted > 2 ? wanted : 3;
    if (count <= most) {
        for (size_t i = 0; i < count; i++) {
            join(model, activity, i, i + 1, curves);
        }
        return;
    }
    join(model, activity, 0, 1, curves);
    for (size_t i = 0; i < most - 2; i++) {
        size_t first = 1 + (count - 2) * i / (most - 2);
        size_t end = 1 + (count - 2) * (i + 1) / (most - 2);
        if (first < end) {
            join(model, activity, first, end, curves);
        }
    }
    join(model, activity, count - 1, count, curves);
}

/* ---- Intervals: kept with the view, since they may take a pass ---- */

struct wish {
    const struct answer *view;
    unsigned parts;
    size_t intervals;
};

static void free_activity(void *value) {
    activity_free(value);
    free(value);
}

static void *make_activity(const void *asked, const struct replay_options *replay,
                           struct error *error) {
    const struct wish *wish = asked;
    const struct answer *view = wish->view;
    const struct activity_wish activity_wish = {.parts = wish->parts,
                                                .most = wish->intervals,
                                                .selection = view->selection,
                                                .whole = view->whole,
                                                .model = view->model,
                                                .recording = view->source->parts,
                                                .names = view->names};
    struct activity *activity = calloc(1, sizeof *activity);
    if (activity == NULL) {
        error_set(error, "out of memory");
    } else if (activity_make(activity, &activity_wish, replay, error) != 0) {
        free_activity(activity);
        activity = NULL;
    }
    return activity;
}

static size_t bytes_of(const void *value) {
    const struct activity *activity = value;
    return sizeof *activity + activity->count * 4 * sizeof(double) +
           activity->process_count * sizeof *activity->process;
}

static const struct apicache_kind kind = {
    .make = make_activity, .free = free_activity, .bytes = bytes_of};

static const struct activity *get_activity(struct api_call *call, unsigned wanted, size_t intervals,
                                           struct error *error) {
    const struct wish wish = {call->view, activity_parts(wanted), intervals};
    const struct activity *activity;
    bool was_there = false;
    char key[64];
    snprintf(key, sizeof key, "timeline %u %zu", wish.parts, intervals);
    activity = apicache_get(call->view->cache, key, &kind, &wish, &call->replay, &was_there, error);
    if (activity != NULL && activity->is_pass) {
        call->told.via = was_there ? API_VIA_CACHE : API_VIA_PASS;
    }
    return activity;
}

/* ---- The answer ---- */

/* Those that were asked for and that this kind of file does not have. */
static void put_missing(struct api_call *call, const struct activity *activity, unsigned wanted) {
    jsonwriter_array(call->json, "missing");
    for (size_t i = 0; i < ACTIVITY_SERIES; i++) {
        if ((wanted & 1u << i) != 0 && !activity_knows(activity, call->view->model, i)) {
            jsonwriter_string(call->json, NULL, activity_names[i]);
        }
    }
    jsonwriter_end_array(call->json);
}

static int put_rates(struct api_call *call, const char *name, const struct activity *activity,
                     const double *counts) {
    double *rates = calloc(activity->count + 1, sizeof *rates);
    int result = -1;
    for (size_t i = 0; rates != NULL && i < activity->count; i++) {
        rates[i] = activity_rate(activity, counts, i);
    }
    if (rates != NULL) {
        result = api_column(call, name, API_F64, rates, activity->count);
    }
    free(rates);
    return result;
}

/* As many values as intervals, and one edge more. */
static int put_intervals(struct api_call *call, const struct activity *activity, unsigned wanted) {
    int result = 0;
    if (activity->count == 0) {
        return 0;
    }
    jsonwriter_map(call->json, "intervals");
    result = api_column(call, "time_ns", API_U64, activity->edges, activity->count + 1);
    if (result == 0 && (wanted & 1u << ACTIVITY_RATE) != 0) {
        result = put_rates(call, "rate", activity, activity->allocations);
    }
    if (result == 0 && (wanted & 1u << ACTIVITY_FREES) != 0 && activity->frees != NULL) {
        result = put_rates(call, "frees", activity, activity->frees);
    }
    if (result == 0 && activity->leaked != NULL) {
        result = api_column(call, "leaked", API_U64, activity->leaked, activity->count);
    }
    jsonwriter_end_map(call->json);
    return result;
}

static int put(struct api_call *call, const struct curves *curves, const struct activity *activity,
               unsigned wanted) {
    const struct model *model = call->view->model;
    const struct model_totals *totals = &model->totals;
    struct jsonwriter *json = call->json;
    int result;
    jsonwriter_map(json, NULL);
    result = api_column(call, "time_ns", API_U64, curves->time_ns, curves->count);
    jsonwriter_map(json, "series");
    for (size_t i = 0; i < ACTIVITY_AT_POINTS && result == 0; i++) {
        if ((wanted & 1u << i) != 0 && activity_knows(activity, model, i)) {
            result = api_column(call, activity_names[i], API_F64, curves->values[i], curves->count);
        }
    }
    jsonwriter_end_map(json);
    result = result == 0 ? put_intervals(call, activity, wanted) : result;
    put_missing(call, activity, wanted);
    if (totals->maximum_bytes != 0 && !call->view->question->choice.all) { /* of a sum: no moment */
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
    const struct activity *activity;
    struct curves curves = {0};
    uint64_t points;
    uint64_t intervals;
    unsigned wanted;
    int result;
    if (api_number(call, "points", USUAL_POINTS, 3, MOST_POINTS, &points, error) != 0 ||
        api_number(call, "intervals", USUAL_INTERVALS, 1, MOST_INTERVALS, &intervals, error) != 0) {
        return -1;
    }
    if (activity_parse(list != NULL ? list : usual, &wanted) != 0) {
        return api_refuse(call, 400, error, "series is some of " ACTIVITY_SERIES_NAMES ", not '%s'",
                          list);
    }
    api_command(call, "report --show-timeline");
    api_sql(call, "SELECT * FROM timeline");
    activity = get_activity(call, wanted, (size_t)intervals, error);
    if (activity == NULL) {
        return -1;
    }
    result = make_room(&curves, call->view->model->timeline_count);
    if (result == 0) {
        thin_out(call->view->model, activity, (size_t)points, &curves);
        result = put(call, &curves, activity, wanted);
    }
    free_curves(&curves);
    return result == 0 ? 0 : error_set(error, "out of memory");
}
