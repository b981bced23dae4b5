/* SPDX-License-Identifier: MIT */
/* pathsearch.c: see pathsearch.h. */
#include "runtime/base/pathsearch.h"

#include "runtime/base/sys.h"
#include "runtime/base/text.h"

#include <unistd.h>

int pathsearch_find(const char *folders, enum pathsearch_empty empty, const char *name, char *path,
                    size_t capacity) {
    while (folders != NULL) {
        size_t length = 0;
        struct text text;
        while (folders[length] != '\0' && folders[length] != ':') {
            length++;
        }
        text_init(&text, path, capacity);
        text_add_bytes(&text, folders, length);
        text_add(&text, length != 0 ? "/" : "");
        text_add(&text, name);
        if ((length != 0 || empty == PATHSEARCH_TAKE_EMPTY) && !text.cut &&
            sys_access(path, X_OK) == 0) {
            return 1;
        }
        folders = folders[length] == ':' ? folders + length + 1 : NULL;
    }
    return 0;
}
