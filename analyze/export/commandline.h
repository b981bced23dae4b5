/* SPDX-License-Identifier: MIT */
/* commandline.h: what ran, as formats of lines say it. Used inside analyze/export. */
#ifndef ANALYZE_EXPORT_COMMANDLINE_H
#define ANALYZE_EXPORT_COMMANDLINE_H

#include "analyze/export/export.h"

/* The arguments, a space before each; where they are not known the program. Nothing in it ends the
 * line. */
void commandline_put(FILE *out, const struct memtrace_header *header);

#endif
