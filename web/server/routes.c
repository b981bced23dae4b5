/* SPDX-License-Identifier: MIT */
/* routes.c: see routes.h. */
#include "web/server/routes.h"

#include "analyze/rows/rows.h"
#include "web/server/apilist.h"

#include <stdlib.h>
#include <string.h>

/* Of paths that fit two lines, the first one counts. */
static const struct route routes[] = {
    {"GET", "/session", api_session, QUEUE_INTERACTIVE, NULL, ROUTE_PLAIN, "session", "Session",
     "What this server is and which sources are open."},
    {"GET", "/sources", api_sources, QUEUE_INTERACTIVE, NULL, ROUTE_PLAIN, "sources", NULL,
     "Open sources, and what could be opened: files of the folders named at the start, running and "
     "killed programs."},
    {"POST", "/sources", api_open_source, QUEUE_INTERACTIVE, NULL, ROUTE_PLAIN, "openSource",
     "Source", "Opens one of those that GET /sources lists."},
    {"GET", "/openapi.json", api_openapi, QUEUE_INTERACTIVE, NULL, ROUTE_PLAIN, "openapi", NULL,
     "This document."},

    {"GET", "/command", api_command_of, QUEUE_INTERACTIVE, "view", ROUTE_PLAIN, "command", NULL,
     "The command line, and where there is one the SQL, that shows what a view of the page shows."},

    {"GET", "/r/{r}/events", NULL, QUEUE_INTERACTIVE, "job", ROUTE_PLAIN | ROUTE_STREAM, "events",
     NULL,
     "Server-sent events: progress of opening and of jobs, a running program that moved on, its "
     "end, slices that became finer."},
    {"GET", "/r/{r}", api_summary, QUEUE_INTERACTIVE, NULL, 0, "summary", "Summary",
     "What the source is about: totals, resident memory, what was lost."},
    {"GET", "/r/{r}/timeline", api_timeline, QUEUE_INTERACTIVE, "points series intervals",
     ROUTE_THREADS, "timeline", "Timeline", "Memory over time."},
    {"GET", "/r/{r}/marks", api_marks, QUEUE_INTERACTIVE, NULL, ROUTE_TABLE, "marks", "Table",
     "What the program marked.", &rows_marks},
    {"GET", "/r/{r}/scopes", api_scopes, QUEUE_INTERACTIVE, NULL, ROUTE_TABLE, "scopes", "Table",
     "Scopes that threads went through.", &rows_scopes},
    {"GET", "/r/{r}/threads", api_threads, QUEUE_INTERACTIVE, NULL, ROUTE_TABLE | ROUTE_THREADS,
     "threads", "Table", "Threads and what they did.", &rows_threads},
    {"GET", "/r/{r}/foreign", api_foreign, QUEUE_INTERACTIVE, NULL, ROUTE_TABLE | ROUTE_THREADS,
     "foreign", "Table", "Who freed whose blocks."},
    {"GET", "/r/{r}/modules", api_modules, QUEUE_INTERACTIVE, NULL, ROUTE_TABLE, "modules", "Table",
     "Program file and libraries.", &rows_modules},
    {"GET", "/r/{r}/processes", api_processes, QUEUE_INTERACTIVE, NULL, ROUTE_TABLE, "processes",
     "Table", "Processes of a run, or forked children."},
    {"GET", "/r/{r}/running", api_running, QUEUE_INTERACTIVE, NULL, ROUTE_TABLE, "running", "Table",
     "Of a running program: what each process of its run holds that runs now. Their sum by call "
     "path: all-processes."},
    {"GET", "/r/{r}/suppressed", api_suppressed, QUEUE_INTERACTIVE, NULL,
     ROUTE_METRIC | ROUTE_TABLE, "suppressed", "Table",
     "Leaks that suppressions left out; with metric=shutdown what they leave out of what was freed "
     "at shutdown or never."},
    {"GET", "/r/{r}/budget", api_budget, QUEUE_INTERACTIVE, NULL, ROUTE_METRIC, "budget", NULL,
     "A line of a budget file that holds today."},

    {"GET", "/r/{r}/findings", api_findings, QUEUE_INTERACTIVE, "limit passes", ROUTE_THREADS,
     "findings", NULL, "Suspicions, the gravest first."},
    {"GET", "/r/{r}/tree", api_tree, QUEUE_INTERACTIVE, "direction min-share depth limit within",
     ROUTE_METRIC, "tree", "Tree", "Calls with their costs."},
    {"GET", "/r/{r}/callers", api_callers, QUEUE_INTERACTIVE, "focus min-share depth limit within",
     ROUTE_METRIC, "callers", "Callers", "Who calls a function, and what it calls."},
    {"GET", "/r/{r}/search", api_search, QUEUE_INTERACTIVE, "regex within", ROUTE_METRIC, "search",
     NULL, "Which functions match, and how much of the whole goes through them."},
    {"GET", "/r/{r}/functions", api_functions, QUEUE_INTERACTIVE, "within",
     ROUTE_METRIC | ROUTE_TABLE, "functions", "Table",
     "Functions with what they and what they call hold."},
    {"GET", "/r/{r}/paths", api_paths, QUEUE_INTERACTIVE, "graphs within",
     ROUTE_METRIC | ROUTE_TABLE, "paths", NULL, "Call paths."},
    {"GET", "/r/{r}/paths/{hash}", api_path, QUEUE_INTERACTIVE, "sizes", 0, "path", "Path",
     "One call path."},
    {"GET", "/r/{r}/files", api_files, QUEUE_INTERACTIVE, NULL, ROUTE_METRIC | ROUTE_TABLE, "files",
     "Table", "Source files with their costs."},
    {"GET", "/r/{r}/files/{n}", api_file, QUEUE_INTERACTIVE, NULL, 0, "file", NULL,
     "Lines of one source file with their costs."},
    {"GET", "/r/{r}/files/{n}/text", api_file_text, QUEUE_INTERACTIVE, NULL, 0, "fileText",
     "FileText", "The text of a source file, as it is on this machine."},

    {"GET", "/r/{r}/blocks", api_blocks, QUEUE_PASSES, "all", ROUTE_TABLE | ROUTE_BLOCKS, "blocks",
     "Table", "Single blocks."},
    {"GET", "/r/{r}/blocks/at", api_block_at, QUEUE_PASSES, "address time", ROUTE_BLOCKS, "blockAt",
     "Block", "The block at an address."},
    {"GET", "/r/{r}/blocks/{id}", api_block, QUEUE_PASSES, NULL, ROUTE_BLOCKS, "block", "Block",
     "One block, its chain of reallocations and its neighbours."},
    {"GET", "/r/{r}/lifetimes", api_lifetimes, QUEUE_PASSES, "over per", ROUTE_BLOCKS, "lifetimes",
     "Lifetimes", "How long blocks lived."},
    {"GET", "/r/{r}/sizes", api_sizes, QUEUE_PASSES, "over per", ROUTE_BLOCKS, "sizes", "Sizes",
     "How large blocks are."},
    {"GET", "/r/{r}/heap", api_heap, QUEUE_PASSES, "moment start end cells", ROUTE_BLOCKS, "heap",
     "Heap", "The heap as a map of addresses."},
    {"GET", "/r/{r}/heap/history", api_heap_history, QUEUE_PASSES, NULL, ROUTE_BLOCKS,
     "heapHistory", "HeapHistory", "Holes over time."},
    {"GET", "/r/{r}/heap/pages", api_heap_pages, QUEUE_PASSES, NULL, ROUTE_TABLE | ROUTE_BLOCKS,
     "heapPages", "Table", "Pages by how full they are."},
    {"GET", "/r/{r}/heap/holes", api_heap_holes, QUEUE_PASSES, NULL, ROUTE_TABLE | ROUTE_BLOCKS,
     "heapHoles", "Table", "Free stretches between blocks."},
    {"GET", "/r/{r}/heap/pins", api_heap_pins, QUEUE_PASSES, NULL, ROUTE_TABLE | ROUTE_BLOCKS,
     "heapPins", "Table", "Who keeps nearly empty pages."},
    {"GET", "/r/{r}/heap/slack", api_heap_slack, QUEUE_PASSES, NULL, ROUTE_TABLE | ROUTE_BLOCKS,
     "heapSlack", "Table", "Usable bytes that nobody asked for, by call path."},
    {"GET", "/r/{r}/heap/regions", api_heap_regions, QUEUE_PASSES, NULL, ROUTE_TABLE | ROUTE_BLOCKS,
     "heapRegions", "Table", "Regions of the heap and how full they are."},
    {"GET", "/r/{r}/mappings", api_mappings, QUEUE_PASSES, "all", ROUTE_TABLE, "mappings", "Table",
     "Mappings of the process."},
    {"GET", "/r/{r}/mappings/{id}", api_mapping, QUEUE_PASSES, NULL, 0, "mapping", NULL,
     "One mapping over time."},
    {"GET", "/r/{r}/schema", api_schema, QUEUE_INTERACTIVE, NULL, 0, "schema", NULL,
     "Tables of SQL."},
    {"POST", "/r/{r}/query", api_query, QUEUE_PASSES, NULL, 0, "query", NULL, "Answers SQL."},
    {"GET", "/r/{r}/export/{format}", api_export, QUEUE_PASSES, "depth", ROUTE_METRIC, "export",
     NULL, "What memtrace export writes."},
};

/* Whether a path fits the route's; *source and *rest say where its parts lie. */
static bool route_fits(const char *pattern, const char *path, unsigned *source, const char **rest,
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

const struct route *route_at(size_t place) {
    return place < sizeof routes / sizeof routes[0] ? &routes[place] : NULL;
}

const struct route *route_find(const char *method, const char *path, unsigned *source, char **rest,
                               bool *is_path) {
    *is_path = false;
    *rest = NULL;
    for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++) {
        const char *part;
        size_t size = 0;
        if (!route_fits(routes[i].path, path, source, &part, &size)) {
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
