/* SPDX-License-Identifier: MIT */
/* reportdetail.c: what reports need of single blocks, and whether there are any. See
 * reportrequest.h. */
#include "cli/reportrequest.h"

enum { BLOCKS_USUAL = 20, BLOCKS_MOST = 10000000 };

/* What needs single blocks, and how it is called. */
struct need {
    bool is_asked;
    unsigned part;
    const char *option;
    bool has_other; /* a profile tells less, but something */
};

enum { NEEDS = 7 };

static void list_needs(const struct request *request, struct need *needs) {
    const struct need all[NEEDS] = {
        {request->metrics[METRIC_SHUTDOWN], DETAIL_SHUTDOWN, "--show-shutdown", false},
        {request->metrics[METRIC_SHORT], DETAIL_SHORT, "--temporary-within", false},
        {request->shows[SHOW_SIZES], DETAIL_SIZES, "--show-sizes", false},
        {request->shows[SHOW_BLOCKS], DETAIL_BLOCKS, "--show-blocks", false},
        {request->shows[SHOW_FRAGMENTATION], DETAIL_HEAP, "--show-fragmentation", false},
        {request->shows[SHOW_LIFETIMES], DETAIL_LIFETIMES, "--show-lifetimes", true},
        {request->shows[SHOW_GROUPS], DETAIL_GROUPS, "--show-groups", true},
    };
    for (size_t i = 0; i < NEEDS; i++) {
        needs[i] = all[i];
    }
}

/* What has to be gathered from single blocks; 0: nothing. */
static unsigned parts_of(const struct request *request) {
    struct need needs[NEEDS];
    unsigned parts = 0;
    list_needs(request, needs);
    for (size_t i = 0; i < NEEDS; i++) {
        parts |= needs[i].is_asked ? needs[i].part : 0;
    }
    return parts;
}

int reportdetail_check(const struct request *request, const struct source *source,
                       struct error *error) {
    struct need needs[NEEDS];
    list_needs(request, needs);
    for (size_t i = 0; source->parts.count == 0 && i < NEEDS; i++) {
        if (needs[i].is_asked && !needs[i].has_other) {
            return error_set(error,
                             "%s needs single blocks, and %s is a profile: make a recording with "
                             "`memtrace record`",
                             needs[i].option, source->path);
        }
    }
    if (source->parts.count == 0 && request->shows[SHOW_MARKS]) {
        return error_set(error,
                         "--show-marks: %s is a profile, which has no marks: make a recording with "
                         "`memtrace record`",
                         source->path);
    }
    if (request->shows[SHOW_BLOCKS] && request->limit_given &&
        (request->options.limit == 0 || request->options.limit > BLOCKS_MOST)) {
        return error_set(error,
                         "--show-blocks takes a --limit of 1 to %d: `memtrace query` lists "
                         "more",
                         BLOCKS_MOST);
    }
    return 0;
}

uint32_t reportdetail_classes(const struct selection *selection) {
    if (selection->classes == 0 && selection->pool != NULL) {
        return 1u << MODEL_POOL;
    }
    return selection->classes;
}

int reportdetail_gather(struct report *report, const struct request *request,
                        const struct source *source, const struct filtered *filtered,
                        const struct replay_options *options, struct detail **detail,
                        struct error *error) {
    struct detail_wish wish = {
        .parts = parts_of(request),
        .classes = reportdetail_classes(&filtered->selection),
        .shutdown_ns = UINT64_MAX,
        .short_ns = request->short_ns,
        .order = request->block_order,
        .limit = request->limit_given ? request->options.limit : BLOCKS_USUAL,
    };
    if (request->shutdown_at != NULL) {
        struct error why;
        if (filtervalue_time(request->shutdown_at, source->model, &wish.shutdown_ns, &why) != 0) {
            return error_set(error, "--shutdown-at: %s", why.message);
        }
    }
    *detail = NULL;
    report->definitions = (struct report_definitions){wish.shutdown_ns, wish.short_ns};
    if (wish.parts == 0 || source->parts.count == 0) {
        return 0;
    }
    *detail = detail_gather(&wish, &filtered->selection, source->model, source->parts,
                            report->names, options, error);
    return *detail != NULL ? 0 : -1;
}
