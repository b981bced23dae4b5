/* SPDX-License-Identifier: MIT */
/*
 * record.h: writes the recording of one program: rounds that empty its buffers into the file.
 *
 * Called by collect/collector and collect/recover. While the program runs the rounds are a thread's
 * of our own, so that no report that takes long keeps the program waiting.
 */
#ifndef COLLECT_RECORD_H
#define COLLECT_RECORD_H

#include "collect/claim.h"

struct record;

/* What became of it. */
struct record_result {
    uint64_t events;
    uint64_t bytes; /* of all parts */
    uint64_t lost_allocs;
    uint64_t lost_frees;
    uint32_t parts;
    bool is_queue;        /* what was sent of it is not here */
    bool is_thinned;      /* at times one allocation stands for others that are not in it */
    bool stopped;         /* it could not be written to its end: what came later is missing */
    char path[1040];      /* of the first part */
    struct error trouble; /* empty, or one line that record_news() has not told */
};

/* Whether a recording of this region is to be written, or to be gone on with. */
bool record_wanted(const struct claim *claim);

/* Whether it began in the middle of the program's run, and may end there. */
bool record_is_midway(const struct claim *claim);

/* Begins or goes on with the recording of a region; `claim` must outlive it. NULL: the error says
 * why, and the program is told to record no more. */
struct record *record_open(const struct claim *claim, struct error *error);

/* Starts a thread that does the rounds, unless it runs. 0 or -1. */
int record_start(struct record *record, struct error *error);
/* It never began: its file goes again. */
void record_drop(struct record *record);

/* Puts a mark into the recording, as those that the program makes: what happened to it, at this
 * time of its clock. Any thread, before record_finish(). A few at once; the text is copied. */
void record_mark(struct record *record, uint64_t time_ns, const char *text);

/* Where what is sent makes room (--queue): called while there is none for what a program that is
 * gone left in its buffers, since then. Waits a little; false: the rest is lost. NULL: some
 * seconds. To be set before the first recording. */
extern bool (*record_lingers)(uint64_t since_ns);

/* The program is gone: ends the thread, writes all that is left and the index, and closes. */
void record_finish(struct record *record, struct record_result *result);

/* One line that the user is to see now: the recording lies elsewhere or ends early. NULL: nothing
 * that was not told yet. Any thread, before record_finish(). */
const char *record_news(struct record *record);

/* Lets go of everything as it is, so that another can go on. NULL is allowed. */
void record_abandon(struct record *record);

#endif
