/* SPDX-License-Identifier: MIT */
/* extract.c: `memtrace extract`: the program files that are in a recording. */
#include "analyze/base/job.h"
#include "analyze/read/embedded.h"
#include "analyze/rows/number.h"
#include "analyze/rows/safetext.h"
#include "ask/memorylimit.h"
#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>

struct request {
    const char *file;
    const char *folder;
    bool list;
    uint64_t bytes_most;
};

static const struct option options[] = {
    {"list", 'l', NULL, "only list what there is", OPTION_FLAG, OPTION_IN(struct request, list)},
    {"output", 'o', "FOLDER", "default: FILE.mtr.files", OPTION_TEXT,
     OPTION_IN(struct request, folder)},
    {"max-size", 0, "SIZE",
     "write at most this much (default: what the files of a recording of its size can be)",
     OPTION_SIZE, OPTION_IN(struct request, bytes_most), .least = 1},
    {.part = memorylimit_options},
    OPTION_END};

static void extract_list(const struct recording *recording) {
    struct error error;
    struct embedded *files;
    size_t count;
    job_check(embedded_list(recording, &files, &count, &error), &error);
    for (size_t i = 0; i < count; i++) {
        struct number n;
        printf("%10s  %-7s  ", number_bytes(&n, files[i].size),
               files[i].what == MEMTRACE_EMBEDDED_WHOLE ? "whole" : "symbols");
        for (size_t byte = 0; byte < files[i].build_id_size; byte++) {
            printf("%02x", files[i].build_id[byte]);
        }
        print_safe(stdout, "  %s\n", files[i].path);
    }
    free(files);
}

static void close_recording(void *recording) {
    recording_close(recording);
}

static int run_extract(int argc, char **argv) {
    struct request request = {0};
    struct error error;
    struct recording *recording;
    struct number number;
    size_t count;
    cli_read(&extract_command, &argc, &argv, &request);
    request.file = cli_one(&extract_command, argc, argv, "a recording");
    recording = recording_open(request.file, &error);
    if (recording == NULL) {
        job_fail_as(&error);
    }
    job_undo(close_recording, recording);
    if (request.list) {
        extract_list(recording);
        return cli_finish(CLI_OK);
    }
    if (request.folder == NULL) {
        request.folder = job_text("%s.files", request.file);
    }
    job_check(embedded_extract(recording, request.folder, request.bytes_most, &count, &error),
              &error);
    print_safe(stdout, "%s in %s\n", number_items(&number, count, "file"), request.folder);
    return cli_finish(CLI_OK);
}

const struct command extract_command = {
    .name = "extract",
    .run = run_extract,
    .summary = "get the program files out of a recording",
    .usage = "[OPTION]... FILE.mtr",
    .about = "Writes the program files of a recording, or their symbols, where debuggers"
             " find them by their build-id: FOLDER/.build-id/. Whole files also go to "
             "FOLDER with the path they had.",
    .options = options,
    .operands = "RECORDING",
};
