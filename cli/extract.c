/* SPDX-License-Identifier: MIT */
/* extract.c: `memtrace extract`: the program files that are in a recording. */
#include "analyze/read/embedded.h"
#include "analyze/rows/number.h"
#include "analyze/rows/safetext.h"
#include "ask/memorylimit.h"
#include "cli/cli.h"

#include <limits.h>
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

static int list(const struct recording *recording) {
    struct error error = {""};
    struct embedded *files;
    size_t count;
    if (embedded_list(recording, &files, &count, &error) != 0) {
        return cli_error("%s", error.message);
    }
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
    return cli_finish(CLI_OK);
}

static int extract(const struct recording *recording, const struct request *request) {
    struct error error = {""};
    struct number number;
    char folder[PATH_MAX];
    size_t count;
    if (request->folder != NULL) {
        snprintf(folder, sizeof folder, "%s", request->folder);
    } else {
        snprintf(folder, sizeof folder, "%s.files", request->file);
    }
    if (embedded_extract(recording, folder, request->bytes_most, &count, &error) != 0) {
        return cli_error("%s", error.message);
    }
    print_safe(stdout, "%s in %s\n", number_items(&number, count, "file"), folder);
    return cli_finish(CLI_OK);
}

static int run_extract(int argc, char **argv) {
    struct request request = {0};
    struct error error = {""};
    struct recording *recording;
    int status = cli_read(&extract_command, &argc, &argv, &request);
    if (status == CLI_OK) {
        status = cli_one(&extract_command, argc, argv, "a recording", &request.file);
    }
    if (status != CLI_OK) {
        return status;
    }
    recording = recording_open(request.file, &error);
    if (recording == NULL) {
        return cli_error("%s", error.message);
    }
    status = request.list ? list(recording) : extract(recording, &request);
    recording_close(recording);
    return status;
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
