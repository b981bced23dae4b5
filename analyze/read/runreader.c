/* SPDX-License-Identifier: MIT */
/*
 * runreader.c: run.json, as `memtrace run` writes it (docs/runs.md). Whatever is in the file:
 * members that are not known are skipped, those of another type than expected are as if they were
 * not there.
 */
#include "analyze/read/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_tree.h>

enum { DEEPEST = 32, VERSION = 1 };

/* ---- Values ---- */

static yajl_val member(yajl_val object, const char *name, yajl_type type) {
    const char *path[] = {name, NULL};
    return YAJL_IS_OBJECT(object) ? yajl_tree_get(object, path, type) : NULL;
}

static uint64_t as_number(yajl_val value) {
    return YAJL_IS_INTEGER(value) && value->u.number.i > 0 ? (uint64_t)value->u.number.i : 0;
}

static uint64_t number(yajl_val object, const char *name) {
    return as_number(member(object, name, yajl_t_number));
}

static uint32_t small_number(yajl_val object, const char *name) {
    uint64_t value = number(object, name);
    return value <= UINT32_MAX ? (uint32_t)value : 0;
}

/* "" where there is none. */
static const char *string(yajl_val object, const char *name) {
    const char *found = YAJL_GET_STRING(member(object, name, yajl_t_string));
    return found != NULL ? found : "";
}

/* The strings of an array, each ended by NUL, and one more at the end. NULL: out of memory. */
static char *texts(yajl_val object, const char *name) {
    yajl_val array = member(object, name, yajl_t_array);
    size_t count = array != NULL ? YAJL_GET_ARRAY(array)->len : 0;
    size_t size = 2;
    char *all;
    char *at;
    for (size_t i = 0; i < count; i++) {
        const char *item = YAJL_GET_STRING(YAJL_GET_ARRAY(array)->values[i]);
        size += item != NULL ? strlen(item) + 1 : 0;
    }
    all = at = calloc(size, 1);
    for (size_t i = 0; all != NULL && i < count; i++) {
        const char *item = YAJL_GET_STRING(YAJL_GET_ARRAY(array)->values[i]);
        if (item != NULL && item[0] != '\0') {
            at = stpcpy(at, item) + 1;
        }
    }
    return all;
}

/* ---- Processes ---- */

static enum run_end end_of(yajl_val object) {
    static const char *const names[] = {"ended", "execed", "killed", "running"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(string(object, "end"), names[i]) == 0) {
            return (enum run_end)i;
        }
    }
    return RUN_ENDED;
}

static int take_process(struct run *run, yajl_val object) {
    struct run_process *process = run_add_process(run);
    yajl_val light = member(object, "light", yajl_t_true);
    const char *file = string(object, "file");
    if (process == NULL) {
        return -1;
    }
    process->pid = small_number(object, "pid");
    process->parent_pid = small_number(object, "parent_pid");
    process->image = small_number(object, "image");
    process->start_ns = number(object, "start_ns");
    process->end_ns = number(object, "end_ns");
    process->end = end_of(object);
    process->light = light != NULL;
    process->is_counted = member(object, "allocations", yajl_t_number) != NULL;
    process->allocations = number(object, "allocations");
    process->total_bytes = number(object, "total_bytes");
    process->frees = number(object, "frees");
    process->leaked_bytes = number(object, "leaked_bytes");
    process->leaked_blocks = number(object, "leaked_blocks");
    process->peak_bytes = number(object, "peak_bytes");
    process->lost = number(object, "lost");
    process->program = strdup(string(object, "program"));
    process->command = texts(object, "arguments");
    process->file = file[0] != '\0' ? strdup(file) : NULL;
    return process->program != NULL && process->command != NULL &&
                   (file[0] == '\0' || process->file != NULL)
               ? 0
               : -1;
}

static int take_processes(struct run *run, yajl_val root) {
    yajl_val array = member(root, "processes", yajl_t_array);
    size_t count = array != NULL ? YAJL_GET_ARRAY(array)->len : 0;
    for (size_t i = 0; i < count; i++) {
        yajl_val item = YAJL_GET_ARRAY(array)->values[i];
        if (YAJL_IS_OBJECT(item) && take_process(run, item) != 0) {
            return -1;
        }
    }
    return 0;
}

/* ---- The rest ---- */

static int take_point(struct run *run, yajl_val item) {
    uint64_t values[4];
    if (!YAJL_IS_ARRAY(item) || YAJL_GET_ARRAY(item)->len < 4) {
        return 0;
    }
    for (size_t i = 0; i < 4; i++) {
        values[i] = as_number(YAJL_GET_ARRAY(item)->values[i]);
    }
    return run_add_point(run, (struct run_point){values[0], values[1], values[2], values[3]});
}

static int take_timeline(struct run *run, yajl_val root) {
    yajl_val array = member(root, "timeline", yajl_t_array);
    size_t count = array != NULL ? YAJL_GET_ARRAY(array)->len : 0;
    int result = 0;
    for (size_t i = 0; result == 0 && i < count; i++) {
        result = take_point(run, YAJL_GET_ARRAY(array)->values[i]);
    }
    return result;
}

static int take_run(struct run *run, yajl_val root) {
    yajl_val peak = member(root, "peak", yajl_t_object);
    yajl_val end = member(root, "exit", yajl_t_object);
    run->duration_ns = number(root, "duration_ns");
    run->peak = (struct run_peak){.seen_bytes = number(peak, "seen_bytes"),
                                  .at_ns = number(peak, "at_ns"),
                                  .bound_bytes = number(peak, "bound_bytes")};
    run->was_signalled = member(end, "signal", yajl_t_number) != NULL;
    run->exit_status = (int64_t)number(end, run->was_signalled ? "signal" : "status");
    run->has_exit = run->was_signalled || member(end, "status", yajl_t_number) != NULL;
    run->command = texts(root, "command");
    return run->command != NULL && take_processes(run, root) == 0 ? take_timeline(run, root) : -1;
}

/* The parser's own tree is freed by recursion: what lies deeper in itself than any run does is not
 * given to it. */
static bool is_too_deep(const char *json, size_t size) {
    size_t depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < size && depth <= DEEPEST; i++) {
        if (in_string && json[i] == '\\') {
            i++;
        } else if (in_string) {
            in_string = json[i] != '"';
        } else if (json[i] == '[' || json[i] == '{') {
            depth++;
        } else if (json[i] == ']' || json[i] == '}') {
            depth -= depth != 0;
        } else {
            in_string = json[i] == '"';
        }
    }
    return depth > DEEPEST;
}

static int refuse(struct run *run, const char *reason) {
    snprintf(run->trouble, sizeof run->trouble, "%s", reason);
    return -1;
}

static int read_root(struct run *run, yajl_val root) {
    if (strcmp(string(root, "format"), "memtrace run") != 0) {
        return refuse(run, "it does not describe a run");
    }
    if (number(root, "version") != VERSION) {
        return refuse(run, "its version is not 1; use the memtrace it was made with");
    }
    if (take_run(run, root) != 0) {
        return 1;
    }
    return run->process_count != 0 ? 0 : refuse(run, "it tells of no process");
}

int runreader_read(struct run *run, const char *json, size_t size) {
    char trouble[200] = "";
    yajl_val root;
    int result;
    if (memchr(json, '\0', size) != NULL || is_too_deep(json, size)) {
        return refuse(run, "it is damaged");
    }
    root = yajl_tree_parse(json, trouble, sizeof trouble);
    if (root == NULL) {
        return refuse(run, "it is damaged or not whole");
    }
    result = read_root(run, root);
    yajl_tree_free(root);
    return result;
}
