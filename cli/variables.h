/* SPDX-License-Identifier: MIT */
/*
 * variables.h: the options of `memtrace run` and `memtrace record`: each sets a MEMTRACE_* variable
 * for the runtime in the program.
 *
 * Called by cli/run.
 */
#ifndef CLI_VARIABLES_H
#define CLI_VARIABLES_H

#include "ask/option.h"
#include "cli/child.h"

#include <stdbool.h>
#include <stdint.h>

enum { VARIABLES_LIMIT = 48 };

struct variables {
    struct child_variable list[VARIABLES_LIMIT];
    size_t count;
    const char *alloc;               /* MEMTRACE_ALLOC, of all --alloc */
    bool serves;                     /* --serve */
    const char *library;             /* --library; NULL: that of this installation */
    const char *to, *listen, *token; /* --to, --listen, --token */
    uint64_t linger_ns;
    bool discoverable;       /* --discoverable */
    bool allows_control;     /* --allow-control */
    uint16_t discovery_port; /* 0: the usual one */
};

/* The options of `memtrace run` and `memtrace record`: each fills a struct variables. */
extern const struct option variables_of_profiles[];
extern const struct option variables_of_recordings[];

/* The end of their help. */
void variables_print_more(void);

/* Whether the file can be made there: a program would run for hours before it is told. What stands
 * for something in a folder's name ("%p") is known only then. 0, or -1 with error. */
int variables_check_file(const struct option *option, const char *value, struct error *error);

/* What --alloc calls (option.h), which may be said several times: the value is one more, or
 * several.
 */
#define VARIABLES_ALLOC_HELP                                                                       \
    "also follow these functions of the program, which allocate: "                                 \
    "'my_alloc(size=1)=alloc', a set such as jemalloc, auto, @FILE; more than once"
int variables_add_alloc(void *variables, const struct option *option, const char *value,
                        struct error *error);

/* The same into lines of its own: a const char *, NULL at first. */
int variables_join_alloc(void *lines, const struct option *option, const char *value,
                         struct error *error);

/* The same of --mode: of what this process and the program's runtime write. */
#define VARIABLES_MODE_HELP "who may read what is written, as for chmod (default: 0600)"
int variables_add_mode(void *variables, const struct option *option, const char *value,
                       struct error *error);

/* Sets a variable; the value must live as long as the variables. */
void variables_set(struct variables *variables, const char *name, const char *value);
/* The same for a pattern of a file, which is the program's own (child.h). */
void variables_set_pattern(struct variables *variables, const char *name, const char *value,
                           const char *program, time_t now);
/* A pattern below this folder. */
const char *variables_absolute(const char *pattern);
/* One that was set so. */
const struct child_variable *variables_pattern(const struct variables *variables, const char *name);
/* As the program will find it: set here, or in our own environment; NULL: neither. */
const char *variables_get(const struct variables *variables, const char *name);
void variables_set_number(struct variables *variables, const char *name, uint64_t value,
                          const char *unit);

#endif
