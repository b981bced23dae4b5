/* SPDX-License-Identifier: MIT */
/*
 * found.h: what may be opened besides what is open: files and runs in the folders that the server
 * was started for, running programs, and those that were killed.
 *
 * Called by apisession.c. Looked for anew each time.
 */
#ifndef WEB_SERVER_FOUND_H
#define WEB_SERVER_FOUND_H

#include "web/server/hub.h"

struct found_item {
    const char *path; /* of a program: its region */
    const char *name; /* of the file, or of the program */
    enum hub_kind kind;
    uint64_t bytes;
    uint64_t modified_ns;
    uint32_t pid;        /* 0: it is a file */
    uint32_t parent_pid; /* of a program */
    bool is_running;
    bool has_ended; /* not killed: its profile could not be put in its place */
};

struct found_list {
    struct found_item *items;
    size_t count, room;
};

/* Newest first; of the job. */
struct found_list found_look(const struct hub_options *options);

#endif
