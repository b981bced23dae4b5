/* SPDX-License-Identifier: MIT */
/* reportholes.c: the moment of a recording that fragmentation is shown of. See reportrequest.h. */
#include "analyze/blocks/holes.h"
#include "cli/reportrequest.h"

#include <stdlib.h>

enum {
    EVENTS_MOST = 4000000, /* another pass over more makes people wait who did not ask for it */
    UNUSED_LEAST = 1 << 20,
    PEAK_SHARE = 4
};

/* Without being asked for: people get it where it is what is wrong. */
static bool may_show(const struct request *request, const struct source *source) {
    bool is_for_people =
        request->options.format == REPORT_TEXT || request->options.format == REPORT_MARKDOWN;
    return is_for_people && !reportrequest_is_special(request) &&
           source->model->recording.events <= EVENTS_MOST && !source->model->recording.sampled;
}

/* As much lay unused as was in use, and that was not little beside what the program ever held. */
static bool is_trouble(const struct holes *holes, const struct model *model) {
    return holes->unused_bytes >= UNUSED_LEAST && holes->unused_bytes >= holes->live_bytes &&
           holes->unused_bytes >= model->totals.maximum_bytes / PEAK_SHARE;
}

static int gather(struct report_holes *held, const struct source *source,
                  const struct filtered *filtered, const struct names *names, uint64_t to_ns,
                  const struct replay_options *options, struct error *error) {
    const struct detail_wish wish = {.parts = DETAIL_HEAP,
                                     .classes = reportdetail_classes(&filtered->selection)};
    struct selection selection = filtered->selection; /* not to be freed */
    selection.view.to_ns = to_ns;
    held->model = selection_model(&selection, source->model, source->parts, names, options, error);
    if (held->model != NULL) {
        held->detail =
            detail_gather(&wish, &selection, source->model, source->parts, names, options, error);
    }
    return held->detail != NULL ? 0 : -1;
}

int reportholes_find(struct report_holes *held, const struct request *request,
                     const struct source *source, const struct filtered *filtered,
                     const struct names *names, const struct replay_options *options,
                     struct error *error) {
    const struct selection_times *view = &filtered->selection.view;
    bool is_asked = request->shows[SHOW_FRAGMENTATION];
    struct holes holes;
    *held = (struct report_holes){0};
    if (source->parts.count == 0 || filters_have_end(&request->question.filters) ||
        (!is_asked && !may_show(request, source))) {
        return 0;
    }
    if (holes_find(source->model, source->parts, view->from_ns, options, &holes, error) != 0) {
        return -1;
    }
    if (!is_asked && !is_trouble(&holes, filtered->model)) {
        return 0;
    }
    return gather(held, source, filtered, names, holes.time_ns + 1, options, error);
}

void reportholes_free(struct report_holes *held) {
    model_free(held->model);
    detail_free(held->detail);
    *held = (struct report_holes){0};
}
