/* SPDX-License-Identifier: MIT */
/* jsontree.c: see jsontree.h. */
#include "analyze/read/jsontree.h"

#include <stdbool.h>
#include <stddef.h>

enum { DEEPEST = 32 };

static bool is_too_deep(const char *json) {
    size_t depth = 0;
    bool in_string = false;
    for (const char *at = json; *at != '\0' && depth <= DEEPEST; at++) {
        if (in_string && at[0] == '\\' && at[1] != '\0') {
            at++;
        } else if (in_string) {
            in_string = *at != '"';
        } else if (*at == '[' || *at == '{') {
            depth++;
        } else if (*at == ']' || *at == '}') {
            depth -= depth != 0;
        } else {
            in_string = *at == '"';
        }
    }
    return depth > DEEPEST;
}

yajl_val jsontree_parse(const char *json) {
    char unheard[200];
    return is_too_deep(json) ? NULL : yajl_tree_parse(json, unheard, sizeof unheard);
}

yajl_val jsontree_member(yajl_val object, const char *name) {
    const char *path[] = {name, NULL};
    return yajl_tree_get(object, path, yajl_t_any);
}
