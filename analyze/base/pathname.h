/* SPDX-License-Identifier: MIT */
/* pathname.h: the parts of a file's path. */
#ifndef ANALYZE_BASE_PATHNAME_H
#define ANALYZE_BASE_PATHNAME_H

#include <string.h>

/* Behind the last slash; all of what ends in one. */
static inline const char *pathname_base(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

#endif
