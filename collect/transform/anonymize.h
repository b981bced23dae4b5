/* SPDX-License-Identifier: MIT */
/*
 * anonymize.h: hides what a recording that is rewritten says in words: fakenames stand for
 * functions, files, modules, threads, pools, marks, paths and the command line; build-ids, the user
 * and the process are hidden, too. Program files go. Numbers and structure stay.
 *
 * Called by cli/anonymize. One thread.
 */
#ifndef COLLECT_TRANSFORM_ANONYMIZE_H
#define COLLECT_TRANSFORM_ANONYMIZE_H

#include "analyze/model/model.h"
#include "analyze/model/names.h"
#include "collect/transform/fakename.h"
#include "collect/transform/transform.h"

struct anonymize {
    const struct model *model; /* the recording's */
    const struct names *names; /* and its names */
    struct fakenames *fakenames;
};

/* For transform_run(); all must outlive it. */
struct transform_step anonymize_step(struct anonymize *anonymize);

#endif
