/* SPDX-License-Identifier: MIT */
/*
 * apiexport.c: a view in the formats of `memtrace export`, as a download. It is written to a file
 * without a name, which is sent from there: memory does not grow with it.
 */
#include "web/server/api.h"

#include "analyze/ask/source.h"
#include "analyze/export/formats.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEPTH_MOST = 1 << 20 };

/* ---- What is asked ---- */

static int check_cost(struct api_call *call, const struct exportformat *format,
                      struct error *error) {
    bool is_given = api_param(call, "metric") != NULL;
    if (is_given && (format->traits & EXPORTFORMAT_COST) == 0) {
        return api_refuse(call, 400, error, "%s holds all costs: metric has no effect",
                          format->name);
    }
    return call->metric < EXPORT_COSTS
               ? 0
               : api_refuse(call, 400, error, "an export has no such metric");
}

static int read_depth(struct api_call *call, const struct exportformat *format,
                      struct export *export, struct error *error) {
    uint64_t depth;
    export->is_depth_given = api_param(call, "depth") != NULL;
    if (export->is_depth_given && (format->traits & EXPORTFORMAT_DEPTH) == 0) {
        return api_refuse(call, 400, error,
                          "%s does not write each call path whole: depth has no effect",
                          format->name);
    }
    if (api_number(call, "depth", 0, 0, DEPTH_MOST, &depth, error) != 0) {
        return -1;
    }
    export->depth = (size_t)depth;
    return 0;
}

static const struct exportformat *find_format(struct api_call *call, struct error *error) {
    const struct exportformat *format = exportformat_named(call->rest);
    if (format == NULL) {
        api_refuse(call, 404, error, "there is no format '%s'", call->rest);
    }
    return format;
}

/* ---- The file ---- */

/* The source's name with the format's ending; of other characters than these nothing is left that
 * a header or a file system could take for something. NULL: out of memory. */
static char *name_file(const char *source, const char *ending) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    const char *slash = strrchr(source, '/');
    char *name = NULL;
    if (asprintf(&name, "%s%s", slash != NULL ? slash + 1 : source, ending) < 0) {
        return NULL;
    }
    for (char *at = name; *at != '\0'; at++) {
        *at = strchr(plain, *at) != NULL ? *at : '_';
    }
    return name;
}

static int fail(const char *path, struct error *error) {
    return error_set(error, "cannot write %s: %s", path, strerror(errno));
}

/* A format that makes its own file, under a name that goes then. */
static int write_named(const struct exportformat *format, struct export *export, FILE **file,
                       const char *path, struct error *error) {
    int result;
    unlink(path);
    export->path = path;
    result = format->write(export, error);
    fclose(*file);
    *file = result == 0 ? fopen(path, "re") : NULL;
    if (result == 0 && *file == NULL) {
        result = fail(path, error);
    }
    unlink(path);
    return result;
}

static int write_stream(const struct exportformat *format, struct export *export, FILE *file,
                        struct error *error) {
    int result;
    export->out = file;
    result = format->write(export, error);
    if (result == 0 && (ferror(file) || fflush(file) != 0)) {
        result = fail("the temporary file of an export", error);
    }
    return result;
}

/* *file: is to be sent; the caller closes it, NULL: there is none. 0 or -1. */
static int write_file(const struct exportformat *format, struct export *export, FILE **file,
                      struct error *error) {
    char path[512];
    int made;
    *file = NULL;
    if (source_temporary(path, sizeof path, "export", "XXXXXX") != 0) {
        errno = ENAMETOOLONG;
        return fail("a temporary file", error);
    }
    made = mkostemp(path, O_CLOEXEC);
    *file = made >= 0 ? fdopen(made, "w+e") : NULL;
    if (*file == NULL) {
        return fail(path, error);
    }
    if ((format->traits & EXPORTFORMAT_FILE) != 0) {
        return write_named(format, export, file, path, error);
    }
    unlink(path);
    return write_stream(format, export, *file, error);
}

int api_export(struct api_call *call, struct error *error) {
    const struct api_view *view = call->view;
    const struct exportformat *format = find_format(call, error);
    bool is_given = filters_given(&view->question->filters);
    struct export export = {.model = view->model,
                            .names = view->names,
                            .parts = view->source->parts,
                            .cost = call->metric,
                            .full_names = call->report.options.full_names,
                            .by_line = call->report.options.by_line,
                            .all_frames = call->report.options.all_frames,
                            .whole = view->whole,
                            .selection = is_given ? view->selection : NULL,
                            .selected = is_given ? view->question->filters.text : NULL,
                            .progress = &call->replay,
                            .source = view->source->path};
    if (format == NULL || check_cost(call, format, error) != 0 ||
        read_depth(call, format, &export, error) != 0) {
        return -1;
    }
    call->type = "application/octet-stream";
    call->file_name = name_file(view->source->path, format->ending);
    export.name = call->file_name;
    if (call->file_name == NULL) {
        return error_set(error, "out of memory");
    }
    if (write_file(format, &export, &call->file, error) != 0) {
        call->status = 400; /* what the format needs, and this source lacks */
        return -1;
    }
    return 0;
}
