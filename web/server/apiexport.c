/* SPDX-License-Identifier: MIT */
/*
 * apiexport.c: a view in the formats of `memtrace export`, as a download. It is written to a file
 * without a name, which is sent from there: memory does not grow with it.
 */
#include "web/server/api.h"

#include "analyze/base/job.h"
#include "analyze/base/pathname.h"
#include "analyze/export/export.h"
#include "ask/source.h"
#include "web/server/onefile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <stdnoreturn.h>
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
    char *name = NULL;
    if (asprintf(&name, "%s%s", pathname_base(source), ending) < 0) {
        return NULL;
    }
    for (char *at = name; *at != '\0'; at++) {
        *at = strchr(plain, *at) != NULL ? *at : '_';
    }
    return name;
}

/* A trouble of ours: anything else that is wrong is what the source lacks for the format. */
static noreturn void fail(struct api_call *call, const char *path) {
    call->status = 500;
    job_fail("cannot write %s: %s", path, strerror(errno));
}

/* A format that makes its own file, in a folder where nobody else can make one of that name. */
struct named_file {
    struct api_call *call;
    const struct exportformat *format;
    struct export *export;
    char *folder;
    char path[600];
};

static void write_named(void *what) {
    struct named_file *named = what;
    named->export->path = named->path;
    named->format->write(named->export);
    named->call->file = fopen(named->path, "re");
    if (named->call->file == NULL) {
        fail(named->call, named->path);
    }
}

static void remove_named(void *what) {
    const struct named_file *named = what;
    unlink(named->path);
    rmdir(named->folder);
}

/* The page with the view inside. */
static void write_page(struct api_call *call, FILE *file) {
    const struct report_options *options = &call->report.options;
    const struct onefile page = {.view = call->view,
                                 .metric = call->metric,
                                 .full_names = options->full_names,
                                 .by_line = options->by_line,
                                 .all_frames = options->all_frames,
                                 .replay = call->replay};
    struct error error;
    job_check(onefile_write(&page, file, &error), &error);
}

static void write_stream(struct api_call *call, const struct exportformat *format,
                         struct export *export, char *path) {
    int made = mkostemp(path, O_CLOEXEC);
    call->file = made >= 0 ? fdopen(made, "w+e") : NULL;
    if (call->file == NULL) {
        fail(call, path);
    }
    unlink(path);
    export->out = call->file;
    if (format->write != NULL) {
        format->write(export);
    } else {
        write_page(call, call->file);
    }
    if (ferror(call->file) || fflush(call->file) != 0) {
        fail(call, path);
    }
}

/* call->file is to be sent. */
static void write_file(struct api_call *call, const struct exportformat *format,
                       struct export *export) {
    char path[512];
    struct named_file named = {call, format, export, path, ""};
    if (source_temporary(path, sizeof path, "export", "XXXXXX") != 0) {
        errno = ENAMETOOLONG;
        fail(call, "a temporary file");
    }
    if ((format->traits & EXPORTFORMAT_FILE) == 0) {
        write_stream(call, format, export, path);
        return;
    }
    if (mkdtemp(path) == NULL) {
        fail(call, path);
    }
    snprintf(named.path, sizeof named.path, "%s/export%s", path, format->ending);
    job_finally(write_named, remove_named, &named);
}

int api_export(struct api_call *call, struct error *error) {
    const struct answer *view = call->view;
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
    exportformat_choose(format, view->selection, &export);
    call->type = "application/octet-stream";
    call->status = 400;
    call->file_name = name_file(view->source->path, format->ending);
    if (call->file_name == NULL) {
        job_fail_memory();
    }
    export.name = call->file_name;
    write_file(call, format, &export);
    return 0;
}
