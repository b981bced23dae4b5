/* SPDX-License-Identifier: MIT */
/*
 * option.h: what may be asked for by name: tables of options, with all that is told of them, and
 * what becomes of their values. Command line, --help, the manual page and what shells complete
 * come from these tables.
 *
 * Called by ask and every subcommand.
 *
 *     struct request { const char *output; bool json; size_t limit; struct question question; };
 *     #define IN(member) OPTION_IN(struct request, member)
 *     static const struct option options[] = {
 *         OPTION_HEADING("how"),
 *         {"output", 'o', "FILE", "write to FILE", OPTION_TEXT, IN(output)},
 *         {"json", 0, NULL, "for programs", OPTION_FLAG, IN(json)},
 *         {"limit", 'n', "N", "at most N rows", OPTION_NUMBER, IN(limit), .least = 1},
 *         {"count", 0, "N", NULL, OPTION_NUMBER, IN(limit), .least = 1},  // another name
 *         {.part = question_options, IN(question)},                       // the rows of that table
 *         // --old-process and so on: each row of that table with this before its name
 *         {.name = "old-", .value = "OPTION", .help = "of the older file", .part =
 * question_options, IN(old_question)}, OPTION_END};
 */
#ifndef ASK_OPTION_H
#define ASK_OPTION_H

#include "analyze/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What an option's member in the request is, and what its value may be. */
enum option_type {
    OPTION_FLAG,     /* bool; it takes no value */
    OPTION_TEXT,     /* const char *; where the value lists words, one of them */
    OPTION_WORD,     /* an enum or bool: the place of the word among those that the value lists */
    OPTION_NUMBER,   /* an unsigned integer */
    OPTION_SIZE,     /* uint64_t, bytes */
    OPTION_DURATION, /* uint64_t, ns */
    OPTION_PERCENT,  /* double */
    OPTION_CALL,     /* call() takes it */
};

struct option {
    const char *name; /* without -- */
    char letter;      /* short form; 0: none */
    /* What help calls its value, NULL: it takes none. Completions go by it: FILE, FOLDER, COMMAND,
     * ..., or the words themselves: "auto|always|never". */
    const char *value;
    const char *help; /* NULL: another name of the option above */
    enum option_type type;
    size_t offset; /* of the member in the request, or in the member that the table is a part of */
    size_t size;
    size_t given; /* 1 + the offset of a bool that becomes true as well; 0: none */
    /* Of an option that is short for another one with a value: the value, and the words that the
     * other takes. */
    const char *implied;
    const char *words;
    bool is_choice; /* of those of one member, two different answers contradict each other */
    uint64_t least; /* of numbers, sizes and durations; most 0: no limit */
    uint64_t most;
    /* value NULL: it takes none. 0, or -1: error is a whole line, with the option's name. */
    int (*call)(void *member, const struct option *option, const char *value, struct error *error);
    const void *data; /* what call() wants to know with it */
    int key;          /* the same as a number */
    const struct option *part;
};

/* The last row of a table. --help stands in none: it is the last row of every walk. */
#define OPTION_END                                                                                 \
    { .name = NULL }
/* The options below stand apart. */
#define OPTION_HEADING(text)                                                                       \
    { .help = (text) }
#define OPTION_IN(request, member)                                                                 \
    .offset = offsetof(request, member), .size = sizeof(((request *)NULL)->member)
#define OPTION_GIVEN(request, member) .given = 1 + offsetof(request, member)

enum { OPTION_HELP = 1 << 20 }; /* the key of --help */

/* Steps over a table (NULL: of no options) and all its parts. What stands for a table with other
 * names (option_is_prefix()) is one row. */
enum { OPTION_NESTING = 5 };
struct option_walk {
    const struct option *next[OPTION_NESTING]; /* of each table that we are in */
    size_t bases[OPTION_NESTING];              /* what their offsets count from */
    int depth;
    const struct option *without; /* the rows of this part are not wanted; NULL: all are */
    size_t base;                  /* what those of the row count from that was returned */
};
struct option_walk option_walk_start(const struct option *options);
/* The next row, headings included; NULL: that was the last. */
const struct option *option_walk_next(struct option_walk *walk);

/* Whether that part is among the rows, directly. */
bool option_has_part(const struct option *options, const struct option *part);
/* Whether a row is a heading, another name of the option before it, the end of a table. */
bool option_is_heading(const struct option *option);
bool option_is_alias(const struct option *option);
bool option_is_end(const struct option *option);
bool option_is_prefix(const struct option *option);

/* Puts a value (NULL: it takes none) where the option's row says, in a request (or part of one)
 * that begins at `base`; text is not copied. 0, or -1: error is a whole line. */
int option_store(const struct option *option, const char *value, void *base, struct error *error);

/* The place of a word in a list such as "auto|always|never"; -1: it is not there. */
int option_word(const char *words, const char *word);
/* Whether a value's name in the help is such a list. */
bool option_has_words(const char *value);
/* "--limit is a number, not 'x'". Returns -1. */
int option_refuse(const struct option *option, const char *value, const char *wanted,
                  struct error *error);
/* An error that begins with the name of an option is of the one called so with the prefix. */
void option_prefix(struct error *error, const char *prefix);

/* Numbers, sizes and times as people write them: wherever a question or an option is read. Each
 * returns 0, or -1 where the text (NULL, too) is not wholly such a number, or too large. Any
 * thread.
 */
int quantity_u64(const char *text, uint64_t *value);     /* decimal */
int quantity_bytes(const char *text, uint64_t *bytes);   /* 64M: suffix K M G T, binary */
int quantity_duration(const char *text, uint64_t *ns);   /* 30s: ns us ms s m h; none: seconds */
int quantity_percent(const char *text, double *percent); /* 0.5 or 0.5%: 0..100 */

#endif
