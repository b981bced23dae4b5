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
#include "collect/transform/transform.h"

struct anonymize;

/* The recording's model and names must outlive it. key: see fakename.h. NULL: out of memory. */
struct anonymize *anonymize_new(const struct model *model, const struct names *names,
                                const void *key, size_t key_size);
void anonymize_free(struct anonymize *anonymize); /* NULL is allowed */

/* For transform_run(). */
struct transform_step anonymize_step(struct anonymize *anonymize);

#endif
