/* SPDX-License-Identifier: MIT */
/*
 * uifiles.h: the page: the files of web/ui/dist, which are built into the command.
 *
 * The table is made by CMake (uifiles.cmake), sorted by path. Any thread.
 */
#ifndef WEB_SERVER_UIFILES_H
#define WEB_SERVER_UIFILES_H

#include <stdbool.h>
#include <stddef.h>

struct uifile {
    const char *path; /* "/index.html"; without a slash it is not served: "onefile.html"
                         (onefile.h), "schemas.json" (openapi.h) */
    const unsigned char *bytes;
    size_t size;
    const char *type;
    bool is_hashed; /* its name says what is in it: "app-3f9a2c1b.js" */
};

const struct uifile *uifiles_find(const char *path); /* NULL: there is none */
/* The same bytes compressed by zstd, made when they are first asked for. NULL: out of memory, or
 * that is not smaller. They stay until the process ends. */
const void *uifiles_packed(const struct uifile *file, size_t *size);

extern const struct uifile uifiles_table[];
extern const size_t uifiles_count;

#endif
