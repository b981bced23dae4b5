/* SPDX-License-Identifier: MIT */
/*
 * rewriting.h: what the commands share that make a new recording of an old one.
 *
 * Called by cli/repack, cli/strip and others like them.
 */
#ifndef CLI_REWRITING_H
#define CLI_REWRITING_H

#include "analyze/replay/timeorder.h"
#include "cli/cli.h"
#include "collect/transform/transform.h"

/* The options of all such commands; a command's own have lower keys. */
enum { REWRITING_KEYS = 800, REWRITING_OUTPUT = REWRITING_KEYS, REWRITING_KEY_LEVEL };
extern const struct option rewriting_options[];

struct rewriting {
    struct transform_options options;
    const char *output;
    char **files; /* the operands */
    size_t file_count;
};

/* Reads a command line, which names at least one file and at most `most`, and an output. take(): an
 * option of the command's own, as for cli_scan_all(). CLI_OK, or the status after a line was
 * printed. */
int rewriting_read(struct rewriting *rewriting, struct cli_scan scan, size_t most,
                   int (*take)(void *request, const struct cli_scan *scan, int key), void *request);

/* Writes the output, which is there whole in the end or not at all, and says in one line on stderr
 * what became of it. Shows how far it is. CLI_OK, or CLI_FAILURE after a line was printed. */
int rewriting_write(struct timeorder_parts parts, const struct rewriting *rewriting,
                    const struct transform_step *step);

#endif
