/* SPDX-License-Identifier: MIT */
/* rewriting.c: see rewriting.h. */
#include "cli/rewriting.h"

#include "analyze/base/job.h"
#include "analyze/rows/number.h"
#include "analyze/rows/safetext.h"
#include "cli/outfile.h"
#include "cli/progress.h"

#include <inttypes.h>
#include <stdio.h>

const struct option rewriting_options[] = {
    {"output", 'o', "FILE", "what is written; may be the old one", OPTION_TEXT,
     OPTION_IN(struct rewriting, output)},
    {"level", 'l', "N", "how hard to compress, 1 to 19 (default: 9)", OPTION_NUMBER,
     OPTION_IN(struct rewriting, options.level), .least = 1, .most = 19},
    OPTION_END};

static void rewriting_show_progress(void *context, uint64_t done, uint64_t total) {
    (void)context;
    progress_show("events", done, total);
}

rewriting_progress_function rewriting_progress(void) {
    return progress_wanted() ? rewriting_show_progress : NULL;
}

int rewriting_check(const struct rewriting *rewriting, const struct command *command) {
    return rewriting->output != NULL ? CLI_OK : cli_usage(command->name, "--output FILE is needed");
}

int rewriting_read(const struct command *command, int argc, char **argv, void *request,
                   const struct rewriting *rewriting, const char **file) {
    int status = cli_read(command, &argc, &argv, request);
    if (status == CLI_OK) {
        status = cli_one(command, argc, argv, "a recording", file);
    }
    return status == CLI_OK ? rewriting_check(rewriting, command) : status;
}

static void rewriting_close(void *source) {
    source_close(source);
}

const struct source *rewriting_open(const char *file, const char *debug_folders,
                                    enum rewriting_depth depth) {
    const struct replay_options progress = progress_replay();
    struct source *source = job_alloc(sizeof *source);
    struct error error;
    job_check(depth == REWRITING_PARTS
                  ? source_open_parts(source, file, &error)
                  : source_open(source, file, NULL, debug_folders, &progress, &error),
              &error);
    job_undo(rewriting_close, source);
    return source;
}

void rewriting_note_incomplete(const char *output, const struct transform_result *result) {
    if (result->incomplete.message[0] != '\0') {
        print_safe(stderr, "memtrace: %s; %s says that something is missing\n",
                   result->incomplete.message, output);
    }
}

static void rewriting_tell(const char *output, const struct transform_result *result) {
    struct number kept;
    struct number read;
    struct number written;
    struct number bytes;
    print_safe(stderr, "memtrace: %s has %s in %s (before: %s in %s)\n", output,
               number_items(&kept, result->kept, "event"),
               number_bytes(&written, result->bytes_written), number_count(&read, result->events),
               number_bytes(&bytes, result->bytes));
    rewriting_note_incomplete(output, result);
    if (result->damaged != 0) {
        fprintf(stderr, "memtrace: %s damaged %s left out, as far as %s could not be read\n",
                number_count(&kept, result->damaged),
                result->damaged == 1 ? "block is" : "blocks are",
                result->damaged == 1 ? "it" : "they");
    }
}

void rewriting_write(struct timeorder_parts parts, const struct rewriting *rewriting,
                     const struct transform_step *step) {
    struct transform_options shown = rewriting->options;
    const char *output = rewriting->output;
    struct transform_result result;
    struct outfile *file = outfile_open_named(output, "a recording");
    struct error error;
    shown.progress = rewriting_progress();
    job_check(transform_run(&parts, 1, file->path, step, &shown, &result, &error), &error);
    outfile_keep(file);
    rewriting_tell(output, &result);
}
