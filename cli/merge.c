/* SPDX-License-Identifier: MIT */
/* merge.c: `memtrace merge`: one recording of several. docs/merge.md is its page. */
#include "analyze/base/job.h"
#include "analyze/read/run.h"
#include "analyze/rows/number.h"
#include "analyze/rows/safetext.h"
#include "ask/memorylimit.h"
#include "ask/source.h"
#include "cli/cli.h"
#include "cli/outfile.h"
#include "cli/progress.h"
#include "cli/rewriting.h"
#include "collect/mergeprofiles.h"

#include <stdio.h>

struct request {
    struct rewriting rewriting;
    char **files; /* those that were named, and those of runs */
    size_t count;
    size_t room;
};

static void merge_add_file(struct request *request, char *path) {
    job_grow(&request->files, &request->room, request->count, sizeof path);
    request->files[request->count++] = path;
}

static void merge_add_run(struct request *request, const char *path) {
    struct error error;
    struct run *run = run_open(path, &error);
    if (run == NULL) {
        job_fail_as(&error);
    }
    for (size_t i = 0; i < run->file_count; i++) {
        merge_add_file(request, job_take(run_file_path(run, run->files[i])));
    }
    run_close(run);
}

static const struct option options[] = {
    {.part = rewriting_options, OPTION_IN(struct request, rewriting)},
    {.part = memorylimit_options},
    OPTION_END};

static int merge_read_arguments(struct request *request, int argc, char **argv) {
    int status = cli_read(&merge_command, &argc, &argv, request);
    if (status == CLI_OK && argc == 0) {
        return cli_usage("merge", "which recordings?");
    }
    if (status == CLI_OK) {
        status = rewriting_check(&request->rewriting, &merge_command);
    }
    for (int i = 0; status == CLI_OK && i < argc; i++) {
        if (run_is(argv[i])) {
            merge_add_run(request, argv[i]);
        } else {
            merge_add_file(request, argv[i]);
        }
    }
    return status;
}

static void merge_tell(const char *output, const struct merge_result *result) {
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

static void merge_recorded(const struct request *request) {
    struct transform_options shown = request->rewriting.options;
    struct merge_result result;
    struct outfile *file = outfile_open_named(request->rewriting.output, "a recording");
    struct error error;
    shown.progress = rewriting_progress();
    job_check(source_merge(request->files, request->count, file->path, &shown, &result, &error),
              &error);
    outfile_keep(file);
    merge_tell(request->rewriting.output, &result);
}

static void merge_sums(const struct request *request) {
    struct number number;
    struct outfile *file = outfile_open_named(request->rewriting.output, "a profile");
    struct error error;
    job_check(merge_profiles(request->files, request->count, NULL, NULL, file->stream, &error),
              &error);
    outfile_keep(file);
    print_safe(stderr, "memtrace: %s has the sums of %s\n", request->rewriting.output,
               number_items(&number, request->count, "profile"));
}

/* Recordings become a recording, profiles a profile. */
static int run_merge(int argc, char **argv) {
    struct request request = {.rewriting = REWRITING_DEFAULT};
    int status = merge_read_arguments(&request, argc, argv);
    size_t recordings = 0;
    if (status != CLI_OK) {
        return status;
    }
    for (size_t i = 0; i < request.count; i++) {
        recordings += recording_is(request.files[i]);
    }
    if (recordings != 0 && recordings != request.count) {
        job_fail("some of these files are profiles, some recordings: not both at once");
    }
    if (recordings == 0) {
        merge_sums(&request);
    } else {
        merge_recorded(&request);
    }
    return CLI_OK;
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
