/* SPDX-License-Identifier: MIT */
/*
 * sourcefolders.h: which files may be shown as source text. Debug information is foreign text: it
 * may name any file of this machine.
 *
 * Called by sourcetext.c. Any thread.
 *
 * Shown is what lies below a folder that the user named (--sources, --source-map). Where only this
 * machine can ask, also what looks like source code by its name, may be read by everybody or is the
 * user's own, and lies below /usr, below a folder where the module was compiled, or in the same
 * project as that, the module or the file that is served.
 */
#ifndef WEB_SERVER_SOURCEFOLDERS_H
#define WEB_SERVER_SOURCEFOLDERS_H

#include "web/server/sourcetext.h"

#include <stdbool.h>
#include <sys/stat.h>

/* path: where the file is, without links. is_mapped: --source-map led there. */
bool sourcefolders_allow(const struct sourcetext_wish *wish, const char *path,
                         const struct stat *status, bool is_mapped);

#endif
