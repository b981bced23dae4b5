/* SPDX-License-Identifier: MIT */
/*
 * onefile.h: the page as one file with its data inside, to mail around and open anywhere.
 *
 * It is the page of the server (web/ui, built into dist/onefile.html), and in it, in one packed
 * block, the answers of the server's endpoints about one view and what its call paths cost. It asks
 * for nothing, and its policy forbids it any request. Called by cli/export and apiexport.c.
 */
#ifndef WEB_SERVER_ONEFILE_H
#define WEB_SERVER_ONEFILE_H

#include "web/server/api.h"

struct onefile {
    const struct answer *view;
    enum metric metric; /* shown first */
    bool full_names, by_line, all_frames;
    struct replay_options replay;
};

/* In a job. Whether writing worked the caller asks ferror(). */
void onefile_write(const struct onefile *page, FILE *out);
/* The same of what a command asked for, in a job of its own. 0 or -1. */
int onefile_write_answer(struct onefile *page, const struct answer *answer, FILE *out,
                         struct error *error);

#endif
