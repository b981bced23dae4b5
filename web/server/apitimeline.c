/* SPDX-License-Identifier: MIT */
/* apitimeline.c: GET /r/{r}/timeline: memory over time, in as many points as are wanted, and what
 * was allocated and freed in equal parts of the time. */
#include "analyze/blocks/activity.h"
#include "web/server/apicache.h"
#include "web/server/apilist.h"

#include <math.h>

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

/* Points [first, end) become one: where most was live. */
static void apitimeline_join(const struct model *model, const struct activity *activity,
                             size_t first, size_t end, struct curves *curves) {
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
            apitimeline_join(model, activity, i, i + 1, curves);
        }
        return;
    }
    apitimeline_join(model, activity, 0, 1, curves);
    for (size_t i = 0; i < most - 2; i++) {
        size_t first = 1 + (count - 2) * i / (most - 2);
        size_t end = 1 + (count - 2) * (i + 1) / (most - 2);
        if (first < end) {
            apitimeline_join(model, activity, first, end, curves);
        }
    }
    apitimeline_join(model, activity, count - 1, count, curves);
}

/* ---- Intervals: kept with the view, since they may take a pass ---- */

struct wish {
    const struct answer *view;
    unsigned parts;
    size_t intervals;
};

static void close_activity(void *value) {
    activity_free(value);
}

static void *make_activity(const void *asked, const struct replay_options *replay) {
    const struct wish *wish = asked;
    const struct answer *view = wish->view;
    const struct activity_wish activity_wish = {.parts = wish->parts,
                                                .most = wish->intervals,
                                                .selection = view->selection,
                                                .whole = view->whole,
                                                .model = view->model,
                                                .recording = view->source->parts,
                                                .names = view->names};
    struct activity *activity = job_alloc(sizeof *activity);
    struct error error;
    job_undo(close_activity, activity);
    job_check(activity_make(activity, &activity_wish, replay, &error), &error);
    return activity;
}

static size_t activity_bytes(const void *value) {
    const struct activity *activity = value;
    return sizeof *activity + activity->count * 4 * sizeof(double) +
           activity->process_count * sizeof *activity->process;
}

static const struct apicache_kind activity_kind = {make_activity, activity_bytes, API_VIA_PASS};

static const struct activity *get_activity(struct api_call *call, unsigned wanted,
                                           size_t intervals) {
    const struct wish wish = {call->view, activity_parts(wanted), intervals};
    const struct activity *activity;
    enum api_via via = call->told.via;
    char key[64];
    snprintf(key, sizeof key, "timeline %u %zu", wish.parts, intervals);
    activity = apicache_get(call, call->view, key, &activity_kind, &wish);
    call->told.via = activity->is_pass ? call->told.via : via;
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

static void put_rates(struct api_call *call, const char *name, const struct activity *activity,
                      const double *counts) {
    double *rates = job_array(activity->count, sizeof *rates);
    for (size_t i = 0; i < activity->count; i++) {
        rates[i] = activity_rate(activity, counts, i);
    }
    api_column(call, name, API_F64, rates, activity->count);
}

/* As many values as intervals, and one edge more. */
static void put_intervals(struct api_call *call, const struct activity *activity, unsigned wanted) {
    if (activity->count == 0) {
        return;
    }
    jsonwriter_map(call->json, "intervals");
    api_column(call, "time_ns", API_U64, activity->edges, activity->count + 1);
    if ((wanted & 1u << ACTIVITY_RATE) != 0) {
        put_rates(call, "rate", activity, activity->allocations);
    }
    if ((wanted & 1u << ACTIVITY_FREES) != 0 && activity->frees != NULL) {
        put_rates(call, "frees", activity, activity->frees);
    }
    if (activity->leaked != NULL) {
        api_column(call, "leaked", API_U64, activity->leaked, activity->count);
    }
    jsonwriter_end_map(call->json);
}

void api_timeline(struct api_call *call) {
    const char *list = api_param(call, "series");
    size_t points = (size_t)api_number(call, "points", USUAL_POINTS, 3, MOST_POINTS);
    size_t intervals = (size_t)api_number(call, "intervals", USUAL_INTERVALS, 1, MOST_INTERVALS);
    const struct model *model = call->view->model;
    const struct model_totals *totals = &model->totals;
    const struct activity *activity;
    struct jsonwriter *json = call->json;
    struct curves curves = {.time_ns = job_array(model->timeline_count, sizeof *curves.time_ns)};
    unsigned wanted;
    if (activity_parse(list != NULL ? list : usual, &wanted) != 0) {
        api_refuse(call, 400, "series is some of " ACTIVITY_SERIES_NAMES ", not '%s'", list);
    }
    api_command(call, "report --show-timeline");
    api_sql(call, "SELECT * FROM timeline");
    activity = get_activity(call, wanted, intervals);
    for (size_t i = 0; i < ACTIVITY_AT_POINTS; i++) {
        curves.values[i] = job_array(model->timeline_count, sizeof *curves.values[i]);
    }
    thin_out(model, activity, points, &curves);
    jsonwriter_map(json, NULL);
    api_column(call, "time_ns", API_U64, curves.time_ns, curves.count);
    jsonwriter_map(json, "series");
    for (size_t i = 0; i < ACTIVITY_AT_POINTS; i++) {
        if ((wanted & 1u << i) != 0 && activity_knows(activity, model, i)) {
            api_column(call, activity_names[i], API_F64, curves.values[i], curves.count);
        }
    }
    jsonwriter_end_map(json);
    put_intervals(call, activity, wanted);
    put_missing(call, activity, wanted);
    if (totals->maximum_bytes != 0 && !call->view->question->choice.all) { /* of a sum: no moment */
        jsonwriter_map(json, "maximum");
        jsonwriter_number(json, "time_ns", totals->maximum_ns);
        jsonwriter_number(json, "bytes", totals->maximum_bytes);
        jsonwriter_end_map(json);
    }
    jsonwriter_end_map(json);
}
