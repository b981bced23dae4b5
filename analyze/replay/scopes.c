/* SPDX-License-Identifier: MIT */
/* scopes.c: a tree of scope paths and, for each stream, those that are open. See scopes.h. */
#include "analyze/replay/scopes.h"

#include "analyze/base/job.h"

#include <string.h>

struct scope_path {
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
    struct scope_path *paths; /* [0]: SCOPES_NONE */
    size_t path_count, path_room;
    struct open_scopes *streams;
    size_t stream_count, stream_room;
};

struct scopes *scopes_new(void) {
    struct scopes *scopes = job_alloc(sizeof *scopes);
    job_grow(&scopes->paths, &scopes->path_room, 0, sizeof *scopes->paths);
    scopes->paths[scopes->path_count++] = (struct scope_path){0};
    /* Begun here, so that they are of this job wherever they grow. */
    job_grow(&scopes->streams, &scopes->stream_room, 0, sizeof *scopes->streams);
    return scopes;
}

/* The path `outer` and then this scope. */
static uint32_t scopes_inner(struct scopes *scopes, uint32_t outer, const char *name, size_t size) {
    uint32_t path = scopes->paths[outer].first_inner;
    size = strnlen(name, size);
    while (path != 0 && (strlen(scopes->paths[path].name) != size ||
                         memcmp(scopes->paths[path].name, name, size) != 0)) {
        path = scopes->paths[path].next;
    }
    if (path == 0) {
        job_grow(&scopes->paths, &scopes->path_room, scopes->path_count, sizeof *scopes->paths);
        path = (uint32_t)scopes->path_count++;
        scopes->paths[path] = (struct scope_path){.name = job_text("%.*s", (int)size, name),
                                                  .outer = outer,
                                                  .next = scopes->paths[outer].first_inner};
        scopes->paths[outer].first_inner = path;
    }
    return path;
}

void scopes_enter(struct scopes *scopes, uint32_t stream, uint64_t id, const char *name,
                  size_t name_size) {
    struct open_scopes *open;
    uint32_t path = scopes_inner(scopes, scopes_path(scopes, stream), name, name_size);
    job_reserve(&scopes->streams, &scopes->stream_room, (size_t)stream + 1,
                sizeof *scopes->streams);
    while (scopes->stream_count <= stream) {
        scopes->streams[scopes->stream_count++] = (struct open_scopes){0};
    }
    open = &scopes->streams[stream];
    job_grow(&open->items, &open->room, open->count, sizeof *open->items);
    open->items[open->count++] = (struct open_scope){id, path};
}

void scopes_leave(struct scopes *scopes, uint32_t stream, uint64_t id) {
    struct open_scopes *open = stream < scopes->stream_count ? &scopes->streams[stream] : NULL;
    size_t at = open != NULL ? open->count : 0;
    uint32_t outer;
    while (at != 0 && open->items[at - 1].id != id) {
        at--;
    }
    if (at == 0) {
        return;
    }
    outer = at > 1 ? open->items[at - 2].path : SCOPES_NONE;
    for (size_t i = at; i < open->count; i++) { /* inner ones stay open without it */
        const char *name = scopes->paths[open->items[i].path].name;
        outer = scopes_inner(scopes, outer, name, strlen(name));
        open->items[i - 1] = (struct open_scope){open->items[i].id, outer};
    }
    open->count--;
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
