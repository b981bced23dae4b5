/* SPDX-License-Identifier: MIT */
/*
 * hub.h: what is open: files, runs, running programs, each with the views that were asked of it.
 *
 * A source is opened in the background; all names are resolved then, so that nobody writes to what
 * several threads read. A view (api.h) is a source, or a process of it, and what filters select of
 * it; it is made once, equal questions in flight wait for the one who makes it, and it is kept
 * until views take more than their limit. Called by dispatch, stream and server; any thread.
 */
#ifndef WEB_SERVER_HUB_H
#define WEB_SERVER_HUB_H

#include "web/server/api.h"
#include "web/server/request.h"

#include <sys/types.h>

struct hub;

enum { HUB_SOURCES = 64 };
enum hub_kind { HUB_PROFILE, HUB_RECORDING, HUB_RUN, HUB_LIVE };
enum hub_state { HUB_OPENING, HUB_OPEN, HUB_FAILED };

struct hub_options {
    uint64_t cache_bytes;       /* of all views together, but for those in use */
    const char *debug_folders;  /* as for the symbolizer; NULL: the usual one */
    const char *view;           /* the page is to begin with; NULL: its own choice */
    const char *const *folders; /* what lies in them may be opened */
    size_t folder_count;
    const char *const *source_maps; /* OLD=NEW: where source files are on this machine */
    size_t source_map_count;
    const char *const *source_folders; /* what lies below them may be shown as source text */
    size_t source_folder_count;
    bool only_named_sources; /* nothing else may be: others than this machine may ask */
};

/* The options' texts must live as long. NULL: error is set. */
struct hub *hub_new(const struct hub_options *options, struct error *error);
/* Nobody asks any more; what is being opened is given up. */
void hub_free(struct hub *hub);
const struct hub_options *hub_options(const struct hub *hub);

/* Begins to open a file, folder of a run or PID; "" is the newest file of this folder. The number,
 * or 0: error is set. */
unsigned hub_add(struct hub *hub, const char *name, struct error *error);
bool hub_knows(struct hub *hub, unsigned source);
/* The source that is this file, by whatever name, or the running program of this number (0: none).
 * 0: it is not open. */
unsigned hub_find(struct hub *hub, const char *path, uint32_t pid);

/* What is known of a source. Texts are copies. */
struct hub_status {
    unsigned number;
    char *name;  /* as it was asked for */
    char *title; /* for people */
    char *path;
    enum hub_kind kind;
    enum hub_state state;
    bool live;
    const char *ended; /* model_end_word() */
    uint32_t pid;      /* 0: of several processes */
    dev_t device;      /* of the file when it was opened: another one may take its name */
    ino_t inode;
    uint64_t done, total; /* events, or symbols: as `what` says */
    const char *what;
    char message[512]; /* why it failed */
    uint64_t fingerprint[2];
    uint64_t generation; /* of a running program's numbers: grows */
    bool refines;        /* finer slices are being made: what hangs on them will change once */
};
/* false: there is no such source. */
bool hub_status(struct hub *hub, unsigned source, struct hub_status *status);
void hub_status_free(struct hub_status *status);
/* Numbers are 1 to this. */
unsigned hub_count(struct hub *hub);

/* Which view is asked for. */
struct hub_question {
    unsigned source;
    const struct request *request;
    const char *prefix; /* parameters whose names begin with it are minded: "" or "base-" */
    const char *own; /* parameters that are no filters here, though named so; a space between two;
                        NULL: none */
    bool wants_threads; /* its threads and timeline are needed, though that may take a pass */
    bool wants_blocks;  /* single blocks alone: its sums need not be made */
};
/* The view that the request's filters select. Waits for whoever makes it. The caller gives it back
 * by hub_release(). NULL: error is set, and *status is HTTP's. */
const struct answer *hub_view(struct hub *hub, const struct hub_question *question,
                              const struct replay_options *replay, int *status,
                              struct error *error);
void hub_release(struct hub *hub, const struct answer *view);
/* Whether a parameter, without its prefix, says what a view is of. */
bool hub_is_filter(const char *name);
/* What an open file is. */
enum hub_kind hub_kind_of(const struct source *file);
/* Of what is in it, whatever it is called and where it lies. */
void hub_fingerprint(const struct source *file, uint64_t fingerprint[2]);
/* What a command line names: the folder of a run, else the file. */
const char *hub_path(const struct source *file);
/* Whether it is there still, for a command line to name. */
bool hub_is_there(const struct source *file);
/* The filter of that name; NULL: it is none. */
const struct option *hub_filter(const char *name);

/* ---- Who follows a source: stream.c ---- */

struct hub_listener {
    unsigned source;
    const char *job; /* progress of requests with job=..., NULL: none */
    /* `data` is JSON; called in any thread, not from several at once. */
    void (*tell)(struct hub_listener *listener, const char *event, const char *data);
    struct hub_listener *next;
};
void hub_listen(struct hub *hub, struct hub_listener *listener);
void hub_unlisten(struct hub *hub, struct hub_listener *listener);
/* job NULL: to all who follow the source. */
void hub_tell(struct hub *hub, unsigned source, const char *job, const char *event,
              const char *data);

#endif
