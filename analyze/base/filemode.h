/* SPDX-License-Identifier: MIT */
/*
 * filemode.h: who may read what is written. Profiles and recordings have command lines and names in
 * them, and reports what they have: so only their owner, unless the user says otherwise by --mode
 * or MEMTRACE_MODE.
 *
 * Called by whoever makes files. Any thread.
 */
#ifndef ANALYZE_BASE_FILEMODE_H
#define ANALYZE_BASE_FILEMODE_H

#include <stdbool.h>
#include <sys/types.h>

/* For open(), which takes the bits of the umask away. */
mode_t filemode(void);
/* Makes the folders above the path, for whom `mode` says; it is as it was then. 0, or -1 with
 * errno.
 */
int filemode_folders(char *path, mode_t mode);
/* An octal number up to 0777 with which the owner can read and write. */
bool filemode_read(const char *text, mode_t *mode);

#endif
