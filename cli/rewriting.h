/* SPDX-License-Identifier: MIT */
/*
 * rewriting.h: what the commands share that make a new recording of an old one.
 *
 * Called by cli/repack, cli/strip and others like them.
 */
#ifndef CLI_REWRITING_H
#define CLI_REWRITING_H

#include "analyze/replay/timeorder.h"
#include "ask/source.h"
#include "cli/cli.h"
#include "collect/transform/transform.h"

enum { REWRITING_LEVEL = 9 }; /* of compression: nobody waits */

extern const struct option rewriting_options[]; /* of a struct rewriting */

struct rewriting {
    struct transform_options options;
    const char *output;
};
#define REWRITING_DEFAULT                                                                          \
    {                                                                                              \
        .options = {.level = REWRITING_LEVEL }                                                     \
    }

/* Whether the output is named. CLI_OK, or the status after a line was printed. */
int rewriting_check(const struct rewriting *rewriting, const struct command *command);
/* cli_read() for a command that takes one recording, with such a rewriting in its request. */
int rewriting_read(const struct command *command, int argc, char **argv, void *request,
                   const struct rewriting *rewriting, const char **file);

enum rewriting_depth { REWRITING_WHOLE, REWRITING_PARTS };
/* The recording, open until the job ends, with its model or its parts alone. */
const struct source *rewriting_open(const char *file, const char *debug_folders,
                                    enum rewriting_depth depth);

/* For transform_options.progress: a line on stderr, where somebody watches. */
typedef void (*rewriting_progress_function)(void *context, uint64_t done, uint64_t total);
rewriting_progress_function rewriting_progress(void);

/* One line on stderr where not all of an input could be read. */
void rewriting_note_incomplete(const char *output, const struct transform_result *result);

/* Writes the output, which is there whole in the end or not at all, and says in one line on stderr
 * what became of it. Shows how far it is. */
void rewriting_write(struct timeorder_parts parts, const struct rewriting *rewriting,
                     const struct transform_step *step);

#endif
