/* SPDX-License-Identifier: MIT */
/* terminal.h: how a report looks where it goes. Called by cli/report and cli/diff. */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

#include "analyze/report/reports.h"

/* Sets colour, lines and width for this output (NULL, "-": stdout). color: as the user said, NULL:
 * nothing, which is "auto" on stdout and "never" in a file. */
void terminal_style(struct report_options *options, const char *output, const char *color);

#endif
