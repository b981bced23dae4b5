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

enum { REWRITING_LEVEL = 9 }; /* of compression: nobody waits */

/* The options of all such commands; keys from REWRITING_KEYS on go to rewriting_take(). */
enum { REWRITING_KEYS = 800, REWRITING_OUTPUT = REWRITING_KEYS, REWRITING_KEY_LEVEL };
extern const struct option rewriting_options[];

struct rewriting {
    struct transform_options options;
    const char *output;
};
#define REWRITING_DEFAULT                                                                          \
    {                                                                                              \
        .options = {.level = REWRITING_LEVEL }                                                     \
    }

/* The option that cli_scan_next() just returned. CLI_OK, or the status after a line was printed. */
int rewriting_take(struct rewriting *rewriting, const struct cli_scan *scan, int key);

/* What stands behind the options: the output must have been named, and, of those that take one, one
 * recording. CLI_OK, or the status after a line was printed. */
int rewriting_check(const struct rewriting *rewriting, const struct cli_scan *scan);
int rewriting_operand(const struct rewriting *rewriting, const struct cli_scan *scan,
                      const char **file);

/* For transform_options.progress: a line on stderr, where somebody watches. */
typedef void (*rewriting_progress_function)(void *context, uint64_t done, uint64_t total);
rewriting_progress_function rewriting_progress(void);

/* Writes the output, which is there whole in the end or not at all, and says in one line on stderr
 * what became of it. Shows how far it is. CLI_OK, or CLI_FAILURE after a line was printed. */
int rewriting_write(struct timeorder_parts parts, const struct rewriting *rewriting,
                    const struct transform_step *step);

#endif
