/* SPDX-License-Identifier: MIT */
/* scopes.c: a tree of scope paths and, for each stream, those that are open. See scopes.h. */
#include "analyze/replay/scopes.h"

#include "analyze/base/array.h"

#include <stdlib.h>
#include <string.h>

struct path {
    char *name; /* of its innermost scope */
    uint32_t outer;
    uint32_t first_inner; /* children are a list: programs name few scopes */
    uint32_t next;
};

struct open_scope {
    uint64_t id;
    uint32_t path; /* up to here */
};

struct open_scopes {
    struct open_scope *items; /* outermost first */
    size_t count;
    size_t room;
};

struct scopes {
    struct path *paths; /* [0]: SCOPES_NONE */
    size_t path_count;
    struct open_scopes *streams;
    size_t stream_count;
};

struct scopes *scopes_new(void) {
    struct scopes *scopes = calloc(1, sizeof *scopes);
    if (scopes != NULL) {
        scopes->paths = calloc(1, sizeof *scopes->paths);
        scopes->path_count = 1;
    }
    if (scopes != NULL && scopes->paths == NULL) {
        free(scopes);
        return NULL;
    }
    return scopes;
}

void scopes_free(struct scopes *scopes) {
    if (scopes == NULL) {
        return;
    }
    for (size_t i = 0; i < scopes->path_count; i++) {
        free(scopes->paths[i].name);
    }
    for (size_t i = 0; i < scopes->stream_count; i++) {
        free(scopes->streams[i].items);
    }
    free(scopes->paths);
    free(scopes->streams);
    free(scopes);
}

/* ---- Paths ---- */

static uint32_t find_inner(const struct scopes *scopes, uint32_t outer, const char *name,
                           size_t size) {
    uint32_t path = scopes->paths[outer].first_inner;
    while (path != 0 && (strlen(scopes->paths[path].name) != size ||
                         memcmp(scopes->paths[path].name, name, size) != 0)) {
        path = scopes->paths[path].next;
    }
    return path;
}

/* The path `outer` and then this scope; 0: out of memory. */
static uint32_t inner(struct scopes *scopes, uint32_t outer, const char *name, size_t size) {
    uint32_t path;
    struct path *grown;
    char *copy;
    size = strnlen(name, size);
    path = find_inner(scopes, outer, name, size);
    if (path != 0) {
        return path;
    }
    grown = reallocarray(scopes->paths, scopes->path_count + 1, sizeof *grown);
    if (grown == NULL) {
        return 0;
    }
    scopes->paths = grown;
    copy = strndup(name, size);
    if (copy == NULL) {
        return 0;
    }
    path = (uint32_t)scopes->path_count++;
    grown[path] = (struct path){copy, outer, 0, grown[outer].first_inner};
    grown[outer].first_inner = path;
    return path;
}

/* ---- Streams ---- */

static struct open_scopes *stream_at(struct scopes *scopes, uint32_t stream) {
    struct open_scopes *grown;
    if (stream < scopes->stream_count) {
        return &scopes->streams[stream];
    }
    grown = reallocarray(scopes->streams, (size_t)stream + 1, sizeof *grown);
    if (grown == NULL) {
        return NULL;
    }
    memset(&grown[scopes->stream_count], 0, (stream + 1 - scopes->stream_count) * sizeof *grown);
    scopes->streams = grown;
    scopes->stream_count = (size_t)stream + 1;
    return &grown[stream];
}

int scopes_enter(struct scopes *scopes, uint32_t stream, uint64_t id, const char *name,
                 size_t name_size) {
    struct open_scopes *open = stream_at(scopes, stream);
    uint32_t path = open != NULL ? inner(scopes, scopes_path(scopes, stream), name, name_size) : 0;
    if (path == 0) {
        return -1;
    }
    if (array_grow(&open->items, &open->room, open->count, sizeof *open->items) != 0) {
        return -1;
    }
    open->items[open->count++] = (struct open_scope){id, path};
    return 0;
}

int scopes_leave(struct scopes *scopes, uint32_t stream, uint64_t id) {
    struct open_scopes *open = stream < scopes->stream_count ? &scopes->streams[stream] : NULL;
    size_t at = open != NULL ? open->count : 0;
    uint32_t outer;
    while (at != 0 && open->items[at - 1].id != id) {
        at--;
    }
    if (at == 0) {
        return 0;
    }
    outer = at > 1 ? open->items[at - 2].path : SCOPES_NONE;
    for (size_t i = at; i < open->count; i++) { /* inner ones stay open without it */
        const char *name = scopes->paths[open->items[i].path].name;
        outer = inner(scopes, outer, name, strlen(name));
        if (outer == 0) {
            return -1;
        }
        open->items[i - 1] = (struct open_scope){open->items[i].id, outer};
    }
    open->count--;
    return 0;
}

uint32_t scopes_path(const struct scopes *scopes, uint32_t stream) {
    const struct open_scopes *open =
        stream < scopes->stream_count ? &scopes->streams[stream] : NULL;
    return open != NULL && open->count != 0 ? open->items[open->count - 1].path
                                            : (uint32_t)SCOPES_NONE;
}

const char *scopes_name(const struct scopes *scopes, uint32_t path) {
    return scopes->paths[path].name;
}

bool scopes_has(const struct scopes *scopes, uint32_t path, const char *name) {
    while (path != SCOPES_NONE && strcmp(scopes->paths[path].name, name) != 0) {
        path = scopes->paths[path].outer;
    }
    return path != SCOPES_NONE;
}
