/* SPDX-License-Identifier: MIT */
/* pathname.h: the parts of a file's path, and where temporary files go. */
#ifndef ANALYZE_BASE_PATHNAME_H
#define ANALYZE_BASE_PATHNAME_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Behind the last slash; all of what ends in one. */
static inline const char *pathname_base(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

/* Whether it has more than that ending. */
static inline bool pathname_ends_in(const char *path, const char *ending) {
    size_t size = strlen(path);
    size_t tail = strlen(ending);
    return size > tail && strcmp(path + size - tail, ending) == 0;
}

/* Whether it is called as profiles (.mtp) and recordings (.mtr) are, and runs of them. */
static inline bool pathname_is_ours(const char *path) {
    return pathname_ends_in(path, ".mtp") || pathname_ends_in(path, ".mtr");
}

/* The folder for what its own place does not take: $TMPDIR, or /tmp. */
static inline const char *pathname_temporary(void) {
    const char *folder = getenv("TMPDIR");
    return folder != NULL && folder[0] == '/' ? folder : "/tmp";
}

#endif
