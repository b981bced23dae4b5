/* SPDX-License-Identifier: MIT */
/*
 * option.h: what may be asked for by name: tables of options, with all that is told of them.
 * Command line, --help, the manual page and the completions of three shells are made from these
 * tables.
 *
 * Called by analyze/ask and every subcommand.
 */
#ifndef ANALYZE_ASK_OPTION_H
#define ANALYZE_ASK_OPTION_H

#include <stdbool.h>
#include <stddef.h>

/*
 * A table of options; its last row is OPTION_END. --help stands in none: it is the last row of
 * every walk.
 *
 *     OPTION("limit", 'n', KEY_LIMIT, "N", "at most N rows")   value NULL: it takes none
 *     OPTION_ALIAS("count", KEY_LIMIT, "N")                    another name of the option above
 *     OPTION_HEADING("what to show")                           the options below stand apart
 *     OPTION_PART(filter_options)                              the rows of that table
 */
#define OPTION_WITH(name_, letter_, key_, value_, help_, data_)                                    \
    {                                                                                              \
        .name = (name_), .letter = (letter_), .key = (key_), .value = (value_), .help = (help_),   \
        .data = (data_)                                                                            \
    }
#define OPTION(name, letter, key, value, help) OPTION_WITH(name, letter, key, value, help, NULL)
#define OPTION_ALIAS(name, key, value)         OPTION_WITH(name, 0, key, value, NULL, NULL)
#define OPTION_HEADING(text)                                                                       \
    { .help = (text) }
#define OPTION_PART(table)                                                                         \
    { .part = (table) }
#define OPTION_END                                                                                 \
    { .name = NULL }

enum { OPTION_HELP = 1 << 20 }; /* the key of --help */

struct option {
    const char *name; /* without -- */
    char letter;      /* short form; 0: none */
    int key;          /* > 0: what a scan returns */
    /* What help calls its value, NULL: it takes none. Completions go by it: FILE, FOLDER, COMMAND,
     * ..., or the words themselves: "auto|always|never". */
    const char *value;
    const char *help;
    const void *data; /* what the command wants to know with it */
    const struct option *part;
};

/* Steps over a table (NULL: of no options) and all its parts. */
enum { OPTION_NESTING = 5 };
struct option_walk {
    const struct option *next[OPTION_NESTING]; /* of each table that we are in */
    int depth;
};
struct option_walk option_walk_start(const struct option *options);
/* The next row, headings included; NULL: that was the last. */
const struct option *option_walk_next(struct option_walk *walk);

/* Whether a row is a heading, another name of the option before it, the end of a table. */
bool option_is_heading(const struct option *option);
bool option_is_alias(const struct option *option);
bool option_is_end(const struct option *option);

#endif
