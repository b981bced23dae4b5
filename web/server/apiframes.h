/* SPDX-License-Identifier: MIT */
/*
 * apiframes.h: the frames that an answer names, each once: tables and trees refer to them by
 * number, and they stand at its end as "frames".
 *
 * Called by whoever writes answers, in a job. One thread at a time.
 */
#ifndef WEB_SERVER_APIFRAMES_H
#define WEB_SERVER_APIFRAMES_H

#include "analyze/base/numbermap.h"
#include "analyze/rows/jsonwriter.h"
#include "analyze/rows/report.h"

struct apiframes {
    const struct report *report; /* options.full_names, options.by_line; the model's executable */
    const struct names_frame **items;
    size_t count, room;
    struct numbermap places; /* by place_key or function_key: number + 1 */
};

struct apiframes apiframes_start(const struct report *report);

/* The number of this frame (of its line, too). */
uint32_t apiframes_add(struct apiframes *frames, const struct names_frame *frame);
/* The number of its function, whatever the line: the first that was met stands for it. */
uint32_t apiframes_add_function(struct apiframes *frames, const struct names_frame *frame);

/* "own", "library", "system": whose code the frame is, or the file in which it lies. */
const char *apiframes_kind(const struct report *report, const struct names_frame *frame,
                           bool is_file);

/* The array of all, as a member of that name. */
void apiframes_write(const struct apiframes *frames, struct jsonwriter *json, const char *name);
/* One frame as an object. */
void apiframes_write_one(const struct report *report, struct jsonwriter *json, const char *name,
                         const struct names_frame *frame);
/* A whole call path as an array of such objects, the allocating function first. */
void apiframes_write_path(const struct report *report, struct jsonwriter *json, const char *name,
                          uint32_t node);

#endif
