/* SPDX-License-Identifier: MIT */
/*
 * memorylimit.h: how much memory this process may take for the files that it reads: three quarters
 * of the machine's or of the control group's, or what --memory-limit says. Beyond it nothing can be
 * allocated, which ends the command by one line, where the kernel would have ended anything.
 *
 * Called by cli, for commands whose tables have memorylimit_options.
 */
#ifndef ASK_MEMORYLIMIT_H
#define ASK_MEMORYLIMIT_H

#include "ask/option.h"

extern const struct option memorylimit_options[];

/* Sets the limit that holds where none is asked for. */
void memorylimit_start(void);
/* Around the start of another program, which shall have the limit that was there before. */
void memorylimit_lift(void);
void memorylimit_again(void);
/* What stands behind a message about memory that could not be had: " (the limit is ...)"; "": there
 * is no limit of ours. */
const char *memorylimit_note(void);

#endif
