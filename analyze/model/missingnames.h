/* SPDX-License-Identifier: MIT */
/* missingnames.h: what would name the functions of the system's libraries that have no name here.
 */
#ifndef ANALYZE_MODEL_MISSINGNAMES_H
#define ANALYZE_MODEL_MISSINGNAMES_H

#include "analyze/model/names.h"

/* Writes one line for the user of the library that has most places without a name, of those that
 * were asked for so far: which package has them, or which variable. false: there is nothing to say.
 * One thread. */
bool missingnames_explain(const struct names *names, char *line, size_t size);

#endif
