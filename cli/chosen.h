/* SPDX-License-Identifier: MIT */
/*
 * chosen.h: a profile or recording with its names, and the part of it that filters choose.
 *
 * Called by commands that take filters.
 */
#ifndef CLI_CHOSEN_H
#define CLI_CHOSEN_H

#include "cli/filters.h"
#include "cli/source.h"
#include "cli/suppressing.h"

struct chosen {
    struct source source;
    struct names *names;
    struct filtered filtered; /* what the filters chose of it */
    struct suppressions suppressions;
};

/* The options of all such commands; keys from CHOSEN_KEYS on go to chosen_take(). A command that
 * takes them has filter_options as well, and one that knows leaks suppressing_options. */
enum {
    CHOSEN_KEYS = 880,
    CHOSEN_DEBUG_FOLDERS = CHOSEN_KEYS,
    CHOSEN_NO_CACHE,
    CHOSEN_PROCESS,
    CHOSEN_ALL_PROCESSES
};
extern const struct option chosen_options[]; /* which process, names, cache */

struct chosen_options {
    struct source_choice choice; /* of the processes of a run */
    const char *debug_folders;
    struct filters *filters; /* NULL: none */
    bool has_leaks;          /* the suppressions are wanted */
    struct suppressing suppressing;
};

/* The option that cli_scan_next() just returned. CLI_OK, or the status after a line was printed. */
int chosen_take(struct chosen_options *options, const struct cli_scan *scan, int key);

/* name as for source_open(). 0, or -1: error is set, and nothing is open. */
int chosen_open(struct chosen *chosen, const char *name, const struct chosen_options *options,
                struct error *error);
void chosen_close(struct chosen *chosen);

/* Says on stderr what is wrong with the file and what its names lack. */
void chosen_note(const struct chosen *chosen);

#endif
