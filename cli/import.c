/* SPDX-License-Identifier: MIT */
/* import.c: `memtrace import`: files of other tools as recordings. docs/import.md is its page. */
#include "analyze/base/job.h"
#include "analyze/base/pathname.h"
#include "analyze/read/profile.h"
#include "analyze/rows/number.h"
#include "ask/memorylimit.h"
#include "cli/cli.h"
#include "cli/outfile.h"
#include "cli/progress.h"
#include "collect/transform/importer.h"

#include <stdio.h>
#include <string.h>

struct request {
    const char *file;
    const char *output;
};

static const struct option options[] = {
    {"output", 'o', "FILE", "default: the file's name with .mtr in place of its ending",
     OPTION_TEXT, OPTION_IN(struct request, output)},
    {.part = memorylimit_options},
    OPTION_END};

static int import_read_arguments(int argc, char **argv, struct request *request) {
    int status = cli_read(&import_command, &argc, &argv, request);
    if (status == CLI_OK) {
        status = cli_one(&import_command, argc, argv, "a heaptrack data file", &request->file);
    }
    return status == CLI_OK && request->output != NULL && strcmp(request->output, "-") == 0
               ? cli_usage("import", "a recording cannot go to stdout: --output FILE")
               : status;
}

/* heaptrack.ls.123.zst, heaptrack.ls.123.raw.zst: heaptrack.ls.123.mtr, in this folder. */
static char *default_output(const char *path) {
    static const char *const endings[] = {".zst", ".gz", ".raw"};
    const char *name = pathname_base(path);
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        size_t ending = strlen(endings[i]);
        if (length > ending && memcmp(name + length - ending, endings[i], ending) == 0) {
            length -= ending;
        }
    }
    return job_text("%.*s.mtr", (int)length, name);
}

static void import_show_progress(void *context, uint64_t done, uint64_t total) {
    (void)context;
    if (total != 0) { /* of a pipe nobody knows */
        progress_show("imported", done, total);
    }
}

/* What a user should know of what was left out. */
static void import_note_losses(const char *path, const struct importer_result *result) {
    struct number number;
    if (result->file.damage[0] != '\0') {
        cli_error("%s: %s; what comes before that was imported", path, result->file.damage);
    }
    if (result->file.is_incomplete) {
        cli_error("%s: %s", path, PROFILE_INCOMPLETE);
    }
    if (result->file.bad_lines != 0) {
        cli_error("%s: left out, since it makes no sense: %s", path,
                  number_items(&number, result->file.bad_lines, "line"));
    }
    if (result->missing_paths != 0) {
        cli_error("%s: more than a recording holds: %s; their callers bear the cost", path,
                  number_items(&number, result->missing_paths, "call path"));
    }
}

static int import(const struct request *request, const char *output) {
    struct importer_result result;
    struct outfile *file = outfile_open(output);
    struct error error;
    struct number numbers[2];
    job_check(importer_run(request->file, file->path,
                           progress_wanted() ? import_show_progress : NULL, &result, &error),
              &error);
    outfile_keep(file);
    import_note_losses(request->file, &result);
    printf("%s: %s, %s\n", output, number_items(&numbers[0], result.begins, "allocation"),
           number_items(&numbers[1], result.ends, "free"));
    return cli_finish(CLI_OK);
}

static int run_import(int argc, char **argv) {
    struct request request = {0};
    int status = import_read_arguments(argc, argv, &request);
    if (status != CLI_OK) {
        return status;
    }
    return import(&request, request.output != NULL ? request.output : default_output(request.file));
}

const struct command import_command = {
    .name = "import",
    .run = run_import,
    .summary = "make a recording from a heaptrack data file",
    .usage = "[OPTION]... FILE",
    .about = "Makes a recording from a heaptrack data file (heaptrack.PROGRAM.PID.zst or"
             " .gz, raw ones and unpacked ones, too), for memtrace report and all the "
             "others.",
    .options = options,
    .operands = "FILE",
};
