/* SPDX-License-Identifier: MIT */
/*
 * trust.h: which files root opens because a profile or a recording names them.
 *
 * A profile says where the program's files lie. One of another user is foreign data: whoever wrote
 * it chose the names, and what root does with the files (ELF, DWARF, decompression) is a lot of
 * code. So as soon as root has opened a profile or recording of another user, files that belong
 * neither to root nor to who asks (SUDO_UID) are opened only in the debug folders. Who is not root
 * opens what he may.
 *
 * trust_note_data() is called by analyze/read where such files are opened, trust_allows() by
 * analyze/symbol. Any thread.
 */
#ifndef ANALYZE_READ_TRUST_H
#define ANALYZE_READ_TRUST_H

#include <stdbool.h>

/* This open file is a profile or recording that names others. */
void trust_note_data(int fd);

/* The user chose these folders (colon-separated): what is in them is opened whoever owns it. NULL
 * is allowed. Kept as long as the process, or until others are named. */
void trust_folders(const char *folders);

/* Whether the open file, found under this path, may be read. */
bool trust_allows(int fd, const char *path);

#endif
