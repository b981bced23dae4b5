/* SPDX-License-Identifier: MIT */
/*
 * hubparts.h: what hub.c (sources) and hubviews.c (what is asked of them) share.
 *
 * hub->lock guards everything but what is immutable: a struct loaded and a struct view are, once
 * their state is READY. It is never held while files are read or models made, which is done in jobs
 * (analyze/base/job.h): a failure ends one with the lock free.
 */
#ifndef WEB_SERVER_HUBPARTS_H
#define WEB_SERVER_HUBPARTS_H

#include "analyze/base/job.h"
#include "web/server/hub.h"

#include <pthread.h>
#include <stdatomic.h>

enum hub_made { HUB_MAKING, HUB_READY, HUB_SPOILED /* whoever waits tries anew */ };

/* A file, or one process of a run or the sum of all, open, with names. */
struct loaded {
    struct hub *hub;
    unsigned source;
    uint64_t generation;
    char *key; /* which process */
    enum hub_made made;
    struct source file;
    struct names *names;
    struct job_memory *memory; /* of file and names */
    size_t users;              /* views, and the source for its own */
    size_t bytes;
    uint64_t used; /* hub->clock when it was last asked for */
    struct loaded *next;
};

struct view {
    struct answer api;         /* first */
    struct job_memory *memory; /* of all that it points to */
    struct loaded *loaded;
    char *key;
    struct request asked; /* the texts of the question */
    struct question question;
    bool snaps;
    bool of_blocks; /* its sums need not be made */
    enum hub_made made;
    size_t users;
    size_t bytes;
    uint64_t used;
    struct view *next;
};

struct hub_source {
    struct hub *hub;
    struct hub_status status; /* name and path are its own */
    struct loaded *whole;     /* without a choice of processes; NULL: not open */
    pthread_t opener;
    atomic_bool cancel;
    int64_t told_ms; /* when its progress was told last */
    int64_t sum_ms;  /* the last sum of all that run took of a processor */
};

struct hub {
    struct hub_options options;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct hub_source *sources[HUB_SOURCES];
    unsigned count;
    struct view *views;
    struct loaded *loaded;
    uint64_t clock;            /* grows with each question */
    pthread_mutex_t listening; /* of the listeners; no other lock of the hub is taken under it */
    struct hub_listener *listeners;
    atomic_bool stops;
};

/* Opens what the choice says of the source, names resolved. 0 or -1. */
int loaded_open(struct loaded *loaded, const char *name, const struct source_choice *choice,
                const struct replay_options *replay, struct error *error);
/* New, in the list, being made. NULL: out of memory. Under the lock. */
struct loaded *loaded_new(struct hub *hub, unsigned source, const char *key, uint64_t generation);
/* Closes what is open of it. */
void loaded_close(struct loaded *loaded);
/* For job_undo(), in the job whose memory it keeps. */
void loaded_undo(void *loaded);
/* Takes it out of the list and frees it. Under the lock. */
void loaded_free(struct loaded *loaded);

/* What this thread has taken of a processor. */
int64_t hub_busy_ms(void);

/* What was opened anew takes the place of what was open. Who looks at the one before goes on with
 * it. Under the lock. */
void hub_replace_whole(struct hub_source *source, struct loaded *loaded);

/* Which file it is. Under the lock. */
void hub_note_file(struct hub_status *status, const struct source *file);

/* Sleeps until then, on the clock of watch_now_ms(). false: the hub is to stop. Takes the lock. */
bool hub_sleep(struct hub_source *source, int64_t until_ms);

/* Whether `name` is a process that may yet be profiled: it has only just begun. */
bool hublive_may_come(const char *name);
/* Of a running program that is recorded: its recording, which tells more than its region. The
 * caller frees it. NULL: there is none; *may_come: its collector has only just begun, or the
 * program is about to be another one. */
char *hublive_recording(const struct source *file, bool *may_come);
/* Stays with a running program, or a recording that grows, until it ends: makes a new generation
 * of its numbers whenever somebody looks, and tells those who follow it. In the opener's thread. */
void hublive_follow(struct hub_source *source);

/* Frees views that nobody uses: those of older generations, and the oldest while all take more than
 * the limit (0: all of them). Under the lock. */
void hub_shrink(struct hub *hub, uint64_t limit);

#endif
