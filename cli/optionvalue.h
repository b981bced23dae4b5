/* SPDX-License-Identifier: MIT */
/*
 * optionvalue.h: what kind of thing an option or an operand takes, by the name it has in the help.
 *
 * Called by cli/completion.
 */
#ifndef CLI_OPTIONVALUE_H
#define CLI_OPTIONVALUE_H

#include <stddef.h>

enum { OPTIONVALUE_SIZE = 64 };
enum optionvalue {
    OPTIONVALUE_ANY,   /* nothing that could be listed */
    OPTIONVALUE_WORDS, /* it lists them itself: "auto|always|never" */
    OPTIONVALUE_FILE,
    OPTIONVALUE_FOLDER,
    OPTIONVALUE_COMMAND,
    OPTIONVALUE_FORMAT,    /* of `memtrace export` */
    OPTIONVALUE_TIME,      /* in a recording */
    OPTIONVALUE_PROFILE,   /* a profile, a recording or a run */
    OPTIONVALUE_RECORDING, /* only that */
    OPTIONVALUE_PID,
};
enum optionvalue optionvalue_of(const char *name);

/* The n-th of a command's operands ("PID on|off"), from 0 on; behind the last one: the last. ""
 * where there are none (NULL). */
void optionvalue_operand(const char *operands, size_t n, char text[OPTIONVALUE_SIZE]);

#endif
