/* SPDX-License-Identifier: MIT */
/* routes.c: see routes.h. */
#include "web/server/routes.h"

#include "web/server/apilist.h"

#include <stdlib.h>
#include <string.h>

/* Of paths that fit two lines, the first one counts. */
static const struct route routes[] = {
    {"GET", "/session", api_session, QUEUE_INTERACTIVE, NULL, ROUTE_PLAIN},
    {"GET", "/sources", api_sources, QUEUE_INTERACTIVE, NULL, ROUTE_PLAIN},
    {"POST", "/sources", api_open_source, QUEUE_INTERACTIVE, NULL, ROUTE_PLAIN},
    {"GET", "/openapi.json", api_openapi, QUEUE_INTERACTIVE, NULL, ROUTE_PLAIN},

    {"GET", "/command", api_command_of, QUEUE_INTERACTIVE, "view", ROUTE_PLAIN},

    {"GET", "/r/{r}/events", NULL, QUEUE_INTERACTIVE, "job", ROUTE_PLAIN | ROUTE_STREAM},
    {"GET", "/r/{r}", api_summary, QUEUE_INTERACTIVE, NULL, 0},
    {"GET", "/r/{r}/timeline", api_timeline, QUEUE_INTERACTIVE, "points series intervals",
     ROUTE_THREADS},
    {"GET", "/r/{r}/marks", api_marks, QUEUE_INTERACTIVE, NULL, ROUTE_TABLE},
    {"GET", "/r/{r}/scopes", api_scopes, QUEUE_INTERACTIVE, NULL, ROUTE_TABLE},
    {"GET", "/r/{r}/threads", api_threads, QUEUE_INTERACTIVE, NULL, ROUTE_TABLE | ROUTE_THREADS},
    {"GET", "/r/{r}/foreign", api_foreign, QUEUE_INTERACTIVE, NULL, ROUTE_TABLE | ROUTE_THREADS},
    {"GET", "/r/{r}/modules", api_modules, QUEUE_INTERACTIVE, NULL, ROUTE_TABLE},
    {"GET", "/r/{r}/processes", api_processes, QUEUE_INTERACTIVE, NULL, ROUTE_TABLE},
    {"GET", "/r/{r}/running", api_running, QUEUE_INTERACTIVE, NULL, ROUTE_TABLE},
    {"GET", "/r/{r}/suppressed", api_suppressed, QUEUE_INTERACTIVE, NULL,
     ROUTE_METRIC | ROUTE_TABLE},
    {"GET", "/r/{r}/budget", api_budget, QUEUE_INTERACTIVE, NULL, ROUTE_METRIC},

    {"GET", "/r/{r}/findings", api_findings, QUEUE_INTERACTIVE, "limit passes", ROUTE_THREADS},
    {"GET", "/r/{r}/tree", api_tree, QUEUE_INTERACTIVE, "direction min-share depth limit within",
     ROUTE_METRIC},
    {"GET", "/r/{r}/callers", api_callers, QUEUE_INTERACTIVE, "focus min-share depth limit within",
     ROUTE_METRIC},
    {"GET", "/r/{r}/search", api_search, QUEUE_INTERACTIVE, "regex within", ROUTE_METRIC},
    {"GET", "/r/{r}/functions", api_functions, QUEUE_INTERACTIVE, "within",
     ROUTE_METRIC | ROUTE_TABLE},
    {"GET", "/r/{r}/paths", api_paths, QUEUE_INTERACTIVE, "graphs within",
     ROUTE_METRIC | ROUTE_TABLE},
    {"GET", "/r/{r}/paths/{hash}", api_path, QUEUE_INTERACTIVE, "sizes", 0},
    {"GET", "/r/{r}/files", api_files, QUEUE_INTERACTIVE, NULL, ROUTE_METRIC | ROUTE_TABLE},
    {"GET", "/r/{r}/files/{n}", api_file, QUEUE_INTERACTIVE, NULL, 0},
    {"GET", "/r/{r}/files/{n}/text", api_file_text, QUEUE_INTERACTIVE, NULL, 0},

    {"GET", "/r/{r}/blocks", api_blocks, QUEUE_PASSES, "all", ROUTE_TABLE | ROUTE_BLOCKS},
    {"GET", "/r/{r}/blocks/at", api_block_at, QUEUE_PASSES, "address time", ROUTE_BLOCKS},
    {"GET", "/r/{r}/blocks/{id}", api_block, QUEUE_PASSES, NULL, ROUTE_BLOCKS},
    {"GET", "/r/{r}/lifetimes", api_lifetimes, QUEUE_PASSES, "over per", ROUTE_BLOCKS},
    {"GET", "/r/{r}/sizes", api_sizes, QUEUE_PASSES, "over per", ROUTE_BLOCKS},
    {"GET", "/r/{r}/heap", api_heap, QUEUE_PASSES, "moment start end cells", ROUTE_BLOCKS},
    {"GET", "/r/{r}/heap/history", api_heap_history, QUEUE_PASSES, NULL, ROUTE_BLOCKS},
    {"GET", "/r/{r}/heap/pages", api_heap_pages, QUEUE_PASSES, NULL, ROUTE_TABLE | ROUTE_BLOCKS},
    {"GET", "/r/{r}/heap/holes", api_heap_holes, QUEUE_PASSES, NULL, ROUTE_TABLE | ROUTE_BLOCKS},
    {"GET", "/r/{r}/heap/pins", api_heap_pins, QUEUE_PASSES, NULL, ROUTE_TABLE | ROUTE_BLOCKS},
    {"GET", "/r/{r}/heap/slack", api_heap_slack, QUEUE_PASSES, NULL, ROUTE_TABLE | ROUTE_BLOCKS},
    {"GET", "/r/{r}/heap/regions", api_heap_regions, QUEUE_PASSES, NULL,
     ROUTE_TABLE | ROUTE_BLOCKS},
    {"GET", "/r/{r}/mappings", api_mappings, QUEUE_PASSES, "all", ROUTE_TABLE},
    {"GET", "/r/{r}/mappings/{id}", api_mapping, QUEUE_PASSES, NULL, 0},
    {"GET", "/r/{r}/schema", api_schema, QUEUE_INTERACTIVE, NULL, 0},
    {"POST", "/r/{r}/query", api_query, QUEUE_PASSES, NULL, 0},
    {"GET", "/r/{r}/export/{format}", api_export, QUEUE_PASSES, "depth", ROUTE_METRIC},
};

/* Whether a path fits the route's; *source and *rest say where its parts lie. */
static bool fits(const char *pattern, const char *path, unsigned *source, const char **rest,
                 size_t *rest_size) {
    *source = 0;
    *rest = NULL;
    while (*pattern != '\0') {
        size_t size;
        if (*pattern != '{') {
            if (*pattern++ != *path++) {
                return false;
            }
            continue;
        }
        size = strcspn(path, "/");
        if (strncmp(pattern, "{r}", 3) == 0) {
            if (size == 0 || size > 6 || strspn(path, "0123456789") != size) {
                return false;
            }
            *source = (unsigned)strtoul(path, NULL, 10);
        } else {
            *rest = path;
            *rest_size = size;
        }
        if (size == 0) {
            return false;
        }
        path += size;
        pattern = strchr(pattern, '}') + 1;
    }
    return *path == '\0';
}

const struct route *route_find(const char *method, const char *path, unsigned *source, char **rest,
                               bool *is_path) {
    *is_path = false;
    *rest = NULL;
    for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++) {
        const char *part;
        size_t size = 0;
        if (!fits(routes[i].path, path, source, &part, &size)) {
            continue;
        }
        *is_path = true;
        if (strcmp(routes[i].method, method) == 0) {
            *rest = part != NULL ? strndup(part, size) : NULL;
            return &routes[i];
        }
    }
    return NULL;
}

bool route_names(const char *words, const char *word) {
    size_t length = strlen(word);
    for (const char *at = words; at != NULL && *at != '\0';) {
        size_t size = strcspn(at, " ");
        if (size == length && memcmp(at, word, size) == 0) {
            return true;
        }
        at += size;
        at += *at == ' ';
    }
    return false;
}

bool route_takes(const struct route *route, const char *parameter) {
    return route_names(route->own, parameter) ||
           ((route->flags & ROUTE_PLAIN) == 0 &&
            route_names("full-names all-frames by base job", parameter)) ||
           ((route->flags & ROUTE_TABLE) != 0 &&
            route_names("sort order limit cursor", parameter)) ||
           ((route->flags & ROUTE_METRIC) != 0 && route_names("metric", parameter));
}
