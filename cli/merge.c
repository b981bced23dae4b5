/* SPDX-License-Identifier: MIT */
/* merge.c: `memtrace merge`: one recording of several. docs/merge.md is its page. */
#include "analyze/base/array.h"
#include "analyze/read/run.h"
#include "analyze/rows/number.h"
#include "analyze/rows/safetext.h"
#include "ask/memorylimit.h"
#include "ask/runsource.h"
#include "cli/cli.h"
#include "cli/outfile.h"
#include "cli/progress.h"
#include "cli/rewriting.h"
#include "collect/mergeprofiles.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct request {
    struct rewriting rewriting;
    char **files; /* of ours: those that were named, and those of runs */
    size_t count;
    size_t room;
};

static int add_file(struct request *request, char *path, struct error *error) {
    if (path == NULL ||
        array_grow(&request->files, &request->room, request->count, sizeof path) != 0) {
        free(path);
        return error_set(error, "out of memory");
    }
    request->files[request->count++] = path;
    return 0;
}

static int add_run(struct request *request, const char *path, struct error *error) {
    struct run *run = run_open(path, error);
    int result = run != NULL ? 0 : -1;
    for (size_t i = 0; result == 0 && i < run->file_count; i++) {
        result = add_file(request, run_file_path(run, run->files[i]), error);
    }
    run_close(run);
    return result;
}

/* CLI_OK, or CLI_FAILURE after a line was printed. */
static int add_operands(struct request *request, char **operands, size_t count) {
    struct error error = {""};
    for (size_t i = 0; i < count; i++) {
        if ((run_is(operands[i]) ? add_run(request, operands[i], &error)
                                 : add_file(request, strdup(operands[i]), &error)) != 0) {
            return cli_error("%s", error.message);
        }
    }
    return CLI_OK;
}

static const struct option options[] = {
    {.part = rewriting_options, OPTION_IN(struct request, rewriting)},
    {.part = memorylimit_options},
    OPTION_END};

static int read_arguments(struct request *request, int argc, char **argv) {
    int status = cli_read(&merge_command, &argc, &argv, request);
    if (status == CLI_OK && argc == 0) {
        return cli_usage("merge", "which recordings?");
    }
    if (status == CLI_OK) {
        status = rewriting_check(&request->rewriting, &merge_command);
    }
    return status == CLI_OK ? add_operands(request, argv, (size_t)argc) : status;
}

static void tell(const char *output, const struct merge_result *result) {
    struct number events;
    struct number processes;
    struct number files;
    struct number bytes;
    print_safe(stderr, "memtrace: %s has %s of %s (%s) in %s\n", output,
               number_items(&events, result->written.kept, "event"),
               number_items(&processes, result->processes, "process"),
               number_items(&files, result->files, "file"),
               number_bytes(&bytes, result->written.bytes_written));
    rewriting_note_incomplete(output, &result->written);
    if (result->written.damaged != 0) {
        fprintf(stderr, "memtrace: damaged blocks are left out: %s\n",
                number_count(&events, result->written.damaged));
    }
}

static int merge_recorded(const struct request *request) {
    struct transform_options shown = request->rewriting.options;
    struct merge_result result;
    struct outfile file;
    struct error error = {""};
    int status;
    if (outfile_open_named(&file, request->rewriting.output, "a recording", &error) != 0) {
        return cli_error("%s", error.message);
    }
    shown.progress = rewriting_progress();
    status = outfile_end(
        &file, runsource_merge(request->files, request->count, file.path, &shown, &result, &error),
        &error);
    if (status == CLI_OK) {
        tell(request->rewriting.output, &result);
    }
    return status;
}

static int merge_sums(const struct request *request) {
    struct number number;
    struct outfile file;
    struct error error = {""};
    int status;
    if (outfile_open_named(&file, request->rewriting.output, "a profile", &error) != 0) {
        return cli_error("%s", error.message);
    }
    status = outfile_end(
        &file, merge_profiles(request->files, request->count, NULL, NULL, file.stream, &error),
        &error);
    if (status == CLI_OK) {
        print_safe(stderr, "memtrace: %s has the sums of %s\n", request->rewriting.output,
                   number_items(&number, request->count, "profile"));
    }
    return status;
}

/* Recordings become a recording, profiles a profile. */
static int merge(const struct request *request) {
    size_t recordings = 0;
    for (size_t i = 0; i < request->count; i++) {
        recordings += recording_is(request->files[i]);
    }
    if (recordings == 0) {
        return merge_sums(request);
    }
    return recordings == request->count
               ? merge_recorded(request)
               : cli_error("some of these files are profiles, some recordings: not both at once");
}

static int run_merge(int argc, char **argv) {
    struct request request = {.rewriting = REWRITING_DEFAULT};
    int status = read_arguments(&request, argc, argv);
    status = status == CLI_OK ? merge(&request) : status;
    for (size_t i = 0; i < request.count; i++) {
        free(request.files[i]);
    }
    free(request.files);
    return status;
}

const struct command merge_command = {
    .name = "merge",
    .run = run_merge,
    .summary = "make one recording or profile of several",
    .usage = "[OPTION]... --output FILE FILE|RUN...",
    .about = "Writes one recording of several: the parts of a rotated one, wherever they"
             " lie, or those of several processes, say a program and its children: paths"
             " that are the same in both become one, their threads stay apart, and times"
             " count from when the first process started. Profiles become one profile in"
             " the same way. A run of several processes (a folder) stands for all files "
             "in it.",
    .options = options,
    .operands = "PROFILE",
};
