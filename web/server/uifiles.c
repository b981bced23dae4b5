/* SPDX-License-Identifier: MIT */
/* uifiles.c: see uifiles.h. */
#include "web/server/uifiles.h"

#include <string.h>

const struct uifile *uifiles_find(const char *path) {
    for (size_t i = 0; i < uifiles_count; i++) {
        if (strcmp(uifiles_table[i].path, path) == 0) {
            return &uifiles_table[i];
        }
    }
    return NULL;
}
