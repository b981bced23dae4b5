/* SPDX-License-Identifier: MIT */
/*
 * rewriting.h: what the commands share that make a new recording of an old one.
 *
 * Called by cli/repack, cli/strip and others like them.
 */
#ifndef CLI_REWRITING_H
#define CLI_REWRITING_H

#include "collect/rewrite.h"

enum { REWRITING_LEVEL = 9 }; /* of compression: nobody waits */

/* "1" .. "19". 0 or -1. */
int rewriting_parse_level(const char *text, int *level);

/* Writes the output, which is there whole in the end or not at all, and says in one line on stderr
 * what became of it. Shows how far it is. CLI_OK, or CLI_FAILURE after a line was printed. */
int rewriting_write(struct timeorder_parts parts, const char *output,
                    const struct rewrite_hooks *hooks, const struct rewrite_options *options);

#endif
