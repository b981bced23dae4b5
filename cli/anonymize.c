/* SPDX-License-Identifier: MIT */
/* anonymize.c: `memtrace anonymize`: a recording without names. docs/anonymize.md is its page. */
#include "collect/transform/anonymize.h"
#include "ask/memorylimit.h"

#include "analyze/base/job.h"
#include "ask/question.h"
#include "cli/cli.h"
#include "cli/progress.h"
#include "cli/rewriting.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { KEY_BYTES_LEAST = 16, KEY_BYTES_MOST = 1 << 16 };

struct request {
    struct rewriting rewriting;
    const char *file;
    const char *debug_folders;
    const char *key_file;
    char key[KEY_BYTES_MOST];
    size_t key_size;
};

#define IN(member) OPTION_IN(struct request, member)

static const struct option options[] = {
    {.part = rewriting_options, IN(rewriting)},
    {"key", 'k', "FILE",
     "make the names from what is in this file: they are the same in all recordings made with it, "
     "so that these can be compared (default: names are numbered as they come)",
     OPTION_TEXT, IN(key_file)},
    {"debug-folders", 0, "FOLDERS", "where debug files lie, separated by colons", OPTION_TEXT,
     IN(debug_folders)},
    {.part = root_options},
    {.part = memorylimit_options},
    OPTION_END};

static void read_key(struct request *request) {
    FILE *file = fopen(request->key_file, "re");
    bool failed;
    if (file == NULL) {
        job_fail("cannot open %s: %s", request->key_file, strerror(errno));
    }
    request->key_size = fread(request->key, 1, sizeof request->key, file);
    failed = ferror(file) != 0;
    fclose(file);
    if (failed) {
        job_fail("cannot read %s", request->key_file);
    }
    if (request->key_size < KEY_BYTES_LEAST) {
        job_fail("%s is too short for a key: at least %d bytes are needed, for example from "
                 "/dev/urandom",
                 request->key_file, KEY_BYTES_LEAST);
    }
}

static void end_anonymize(void *names) {
    names_close(names);
}

static int run_anonymize(int argc, char **argv) {
    static struct request request = {.rewriting = REWRITING_DEFAULT};
    struct anonymize anonymize;
    struct names *names;
    const struct source *source;
    struct transform_step step;
    struct error error;
    int status =
        rewriting_read(&anonymize_command, argc, argv, &request, &request.rewriting, &request.file);
    if (status != CLI_OK) {
        return status;
    }
    if (request.key_file != NULL) {
        read_key(&request);
    }
    source = rewriting_open(request.file, request.debug_folders, REWRITING_WHOLE);
    if (source->parts.count == 0) {
        job_fail("%s is a profile, which has no room for other names; make a recording",
                 source->path);
    }
    names = source_names(source, request.debug_folders, progress_wanted() ? progress_symbols : NULL,
                         &error);
    if (names == NULL) {
        job_fail_as(&error);
    }
    job_undo(end_anonymize, names);
    anonymize = (struct anonymize){.model = source->model,
                                   .names = names,
                                   .fakenames = fakenames_new(request.key, request.key_size)};
    step = anonymize_step(&anonymize);
    rewriting_write(source->parts, &request.rewriting, &step);
    return CLI_OK;
}

const struct command anonymize_command = {
    .name = "anonymize",
    .run = run_anonymize,
    .summary = "hide the names in a recording",
    .usage = "[OPTION]... --output FILE FILE.mtr",
    .about = "Writes a recording in which made-up names stand for functions, files, "
             "modules, threads, pools, marks, paths and the command line. Numbers and "
             "structure stay: reports have the same figures. Program files and symbols "
             "that it carries are left out.",
    .options = options,
    .operands = "RECORDING",
};
