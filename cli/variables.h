/* SPDX-License-Identifier: MIT */
/*
 * variables.h: the options of `memtrace run` and `memtrace record`: each sets a MEMTRACE_* variable
 * for the runtime in the program.
 *
 * Called by cli/run, cli/record and cli/launch.
 */
#ifndef CLI_VARIABLES_H
#define CLI_VARIABLES_H

#include "analyze/ask/option.h"
#include "cli/child.h"

#include <stdint.h>

enum { VARIABLES_LIMIT = 48, VARIABLES_NUMBER_SIZE = 48 };

struct variables {
    struct child_variable list[VARIABLES_LIMIT];
    char numbers[VARIABLES_LIMIT][VARIABLES_NUMBER_SIZE]; /* texts of values that we spell anew */
    size_t count;
};

enum variables_kind {
    VARIABLES_SET,      /* takes no value: the variable becomes `value` */
    VARIABLES_TEXT,     /* a list */
    VARIABLES_FILE,     /* a file name or a pattern of some, in a folder that can be written */
    VARIABLES_SIZES,    /* MIN-MAX, either of which may be left out */
    VARIABLES_WORD,     /* one of those of the option */
    VARIABLES_COUNT,    /* a number */
    VARIABLES_POSITIVE, /* a number from 1 on */
    VARIABLES_TIME,     /* passed on in milliseconds */
    VARIABLES_SIZE,     /* passed on in bytes */
    VARIABLES_MEMORY,   /* a size or a percentage */
};
/* What an option sets: its data in the table. */
struct variables_target {
    enum variables_kind kind;
    const char *name;
    const char *value; /* of VARIABLES_SET */
};
#define VARIABLES_TARGET(kind_, name_) VARIABLES_SETTING(kind_, name_, NULL)
#define VARIABLES_SETTING(kind_, name_, value_)                                                    \
    (&(const struct variables_target){.kind = (kind_), .name = (name_), .value = (value_)})
enum { VARIABLES_KEY = 1 }; /* of all of them */

extern const struct option variables_options[]; /* those that both commands have */

/* The end of their help. */
void variables_print_more(void);

/* Reads a command line up to the program. 0, or CLI_USAGE with the line printed. *first: the
 * program's index. */
int variables_parse(struct variables *variables, int argc, char **argv,
                    const struct option *options, int *first);

/* Sets a variable; the value must live as long as the variables. */
void variables_set(struct variables *variables, const char *name, const char *value);
/* The same for a value in which "%p" becomes the program's pid (child.h). */
void variables_set_pattern(struct variables *variables, const char *name, const char *value);
/* As the program will find it: set here, or in our own environment; NULL: neither. */
const char *variables_get(const struct variables *variables, const char *name);
void variables_set_number(struct variables *variables, const char *name, uint64_t value,
                          const char *unit);

#endif
