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

enum { DEPTH_MOST = 1 << 20, PATH_ROOM = 512 };

/* ---- The file ---- */

/* The source's name with the format's ending; of other characters than these nothing is left that
 * a header or a file system could take for something. malloc'd: the reply takes it along. */
static char *name_file(const char *source, const char *ending) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    char *name = NULL;
    if (asprintf(&name, "%s%s", pathname_base(source), ending) < 0) {
        job_fail_memory();
    }
    for (char *at = name; *at != '\0'; at++) {
        *at = strchr(plain, *at) != NULL ? *at : '_';
    }
    return name;
}

/* A trouble of ours: anything else that is wrong is what the source lacks for the format. */
static noreturn void fail_writing(struct api_call *call, const char *path) {
    api_refuse(call, 500, "cannot write %s: %s", path, strerror(errno));
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
        fail_writing(named->call, named->path);
    }
}

static void remove_named(void *what) {
    const struct named_file *named = what;
    unlink(named->path);
    rmdir(named->folder);
}

/* The page has the view inside. */
static void write_stream(struct api_call *call, const struct exportformat *format,
                         struct export *export, char *path) {
    const struct report_options *options = &call->report.options;
    const struct onefile page = {.view = call->view,
                                 .metric = call->metric,
                                 .full_names = options->full_names,
                                 .by_line = options->by_line,
                                 .all_frames = options->all_frames,
                                 .replay = call->replay};
    int made = mkostemp(path, O_CLOEXEC);
    call->file = made >= 0 ? fdopen(made, "w+e") : NULL;
    if (call->file == NULL) {
        fail_writing(call, path);
    }
    unlink(path);
    export->out = call->file;
    if (format->write != NULL) {
        format->write(export);
    } else {
        onefile_write(&page, call->file);
    }
    if (ferror(call->file) || fflush(call->file) != 0) {
        fail_writing(call, path);
    }
}

void api_export(struct api_call *call) {
    const struct answer *view = call->view;
    const struct exportformat *format = exportformat_named(call->rest);
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
                            .source = view->source->path,
                            .is_depth_given = api_param(call, "depth") != NULL};
    char path[PATH_ROOM];
    struct named_file named = {call, format, &export, path, ""};
    if (format == NULL) {
        api_refuse(call, 404, "there is no format '%s'", call->rest);
    }
    if (api_param(call, "metric") != NULL && (format->traits & EXPORTFORMAT_COST) == 0) {
        api_refuse(call, 400, "%s holds all costs: metric has no effect", format->name);
    }
    if (call->metric >= EXPORT_COSTS) {
        api_refuse(call, 400, "an export has no such metric");
    }
    if (export.is_depth_given && (format->traits & EXPORTFORMAT_DEPTH) == 0) {
        api_refuse(call, 400, "%s does not write each call path whole: depth has no effect",
                   format->name);
    }
    export.depth = (size_t)api_number(call, "depth", 0, 0, DEPTH_MOST);
    exportformat_choose(format, view->selection, &export);
    call->type = "application/octet-stream";
    call->status = 400;
    export.name = call->file_name = name_file(view->source->path, format->ending);
    if (source_temporary(path, PATH_ROOM, "export", "XXXXXX") != 0) {
        errno = ENAMETOOLONG;
        fail_writing(call, "a temporary file");
    }
    if ((format->traits & EXPORTFORMAT_FILE) == 0) {
        write_stream(call, format, &export, path);
        return;
    }
    if (mkdtemp(path) == NULL) {
        fail_writing(call, path);
    }
    snprintf(named.path, sizeof named.path, "%s/export%s", path, format->ending);
    job_finally(write_named, remove_named, &named);
}
