/* SPDX-License-Identifier: MIT */
/*
 * job.h: a piece of work that is done whole or not at all: a command, a request, a refresh.
 *
 * What is allocated in a job belongs to it and goes with it, so nothing between its border and its
 * leaves frees or closes anything. What cannot be had ends the job: control returns to job_run(),
 * which says why. So an allocation here is never NULL, and nobody hands a failure on.
 *
 * Called by the tools that answer (analyze, ask, web/server, top, cli). Not by `collect` and
 * `stream`, which go on with less: what they call of this runs in a job of its own.
 *
 * A job belongs to its thread; each thread has its own, and jobs nest: the innermost is meant. To
 * be ended it must not be within another library's function (a callback of SQLite, libdwfl or
 * libmicrohttpd), hold a lock, or have changed half of what outlives it: begin a job of its own in
 * such a callback; take what is needed before the lock; keep locks short (or see job_finally()).
 */
#ifndef ANALYZE_BASE_JOB_H
#define ANALYZE_BASE_JOB_H

#include "analyze/base/error.h"

#include <stddef.h>
#include <stdio.h>
#include <stdnoreturn.h>

/* What a job has left behind that is still needed. One thread at a time. */
struct job_memory;

/*
 * Calls work(what) as a job. 0, or -1: it was ended early, error (may be NULL) says why.
 *
 * kept NULL: all that it allocated is freed at its end. Else, if it succeeds, that is added to
 * *kept (at first NULL), for job_free(); if it fails, it is freed and *kept is as it was.
 */
int job_run(void (*work)(void *what), void *what, struct job_memory **kept, struct error *error);
/* The same for what takes much memory only while it works: if it fails, the present job ends. What
 * is to stay is an array that was begun before. */
void job_within(void (*work)(void *what), void *what);
/* Undoes and frees all of it; *kept is NULL then, and may be before. */
void job_free(struct job_memory **kept);

/*
 * Calls work(what), and then finish(what) in any case: also where that work ends the present job,
 * which goes on ending afterwards. Both run as part of the present job. For what has to be undone
 * before the frames below are gone: a thread that reads what lies in one of them, a lock.
 */
void job_finally(void (*work)(void *what), void (*finish)(void *what), void *what);

/* The same of a part of the innermost job, whose failure is not the whole job's: what it allocated
 * is that job's then, if it succeeds. */
int job_part(void (*work)(void *what), void *what, struct error *error);

/* Ends the innermost job. Outside of all jobs: prints the text as the command would, and ends the
 * process with status 1. */
noreturn void job_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same with an error of a function that returns one; and if it returned one (not 0). */
noreturn void job_fail_as(const struct error *error);
void job_check(int result, const struct error *error);
/* "out of memory" */
noreturn void job_fail_memory(void);

/*
 * Memory of the innermost job, cleared, aligned for any object; size may be 0. Never NULL. Outside
 * of all jobs it is never freed.
 */
void *job_alloc(size_t size) __attribute__((malloc, returns_nonnull, alloc_size(1)));
void *job_array(size_t count, size_t item_size)
    __attribute__((malloc, returns_nonnull, alloc_size(1, 2)));
/* A copy of an array. items may be NULL where there are none. */
void *job_copy(const void *items, size_t count, size_t item_size)
    __attribute__((malloc, returns_nonnull));
char *job_string(const char *text) __attribute__((malloc, returns_nonnull));
char *job_text(const char *format, ...)
    __attribute__((malloc, returns_nonnull, format(printf, 1, 2)));

/*
 * Room for one item more than count; or for `wanted` of them. What is new is not cleared. `items`
 * points to the pointer to the first item: NULL, or made by one of these or by job_array(). An
 * array stays with the job that it was begun in, also if it grows in an inner one.
 */
void job_grow(void *items, size_t *room, size_t count, size_t item_size);
void job_reserve(void *items, size_t *room, size_t wanted, size_t item_size);

/* Frees early what would be too much to keep until the end: of job_array(), job_grow() or
 * job_reserve(), of any job of this thread. NULL: nothing happens. */
void job_release(void *items);

/* At the end of the innermost job, whichever it is, undo(what) is called, newest first: to close a
 * file, to free what another library allocated. If there is no memory to note that, it is undone at
 * once and the job ends. */
void job_undo(void (*undo)(void *what), void *what);
/* What was noted last of `what` is undone now, and not at the end. */
void job_undo_now(const void *what);
/* A text that is made by printing: into ->out, until job_printed() closes that and returns what was
 * printed, which is the job's. */
struct job_printing {
    FILE *out;
    char *text;
    size_t size;
};
struct job_printing *job_print(void) __attribute__((returns_nonnull));
char *job_printed(struct job_printing *printing) __attribute__((returns_nonnull));

/* Memory of malloc becomes the job's: free() is called at its end. NULL: out of memory. */
void *job_take(void *memory) __attribute__((returns_nonnull));

#endif
