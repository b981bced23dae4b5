/* SPDX-License-Identifier: MIT */
/* extract.c: `memtrace extract`: the program files that are in a recording. */
#include "analyze/read/embedded.h"
#include "analyze/report/number.h"
#include "cli/cli.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: memtrace extract [OPTION]... FILE.mtr\n"
    "\n"
    "Writes the program files of a recording, or their symbols, where debuggers find them by "
    "their\n"
    "build-id: FOLDER/.build-id/. Whole files also go to FOLDER with the path they had.\n"
    "\n"
    "  -l, --list           only list what there is\n"
    "  -o, --output FOLDER  default: FILE.mtr.files\n"
    "  -h, --help           show this\n";

struct request {
    const char *file;
    const char *folder;
    bool list;
};

/* 0; CLI_USAGE with the line printed; -1: --help was asked for. */
static int parse(int argc, char **argv, struct request *request) {
    static const struct cli_option options[] = {
        {"list", 'l', false, 'l'}, {"output", 'o', true, 'o'}, {"help", 'h', false, 'h'}, {0}};
    struct cli_scan scan = cli_scan_start("extract", argc, argv, options);
    int key;
    scan.permute = true;
    while ((key = cli_scan_next(&scan)) > 0) {
        if (key == 'h') {
            return -1;
        }
        request->list |= key == 'l';
        request->folder = key == 'o' ? scan.value : request->folder;
    }
    if (key < 0) {
        return CLI_USAGE;
    }
    if (argc - scan.index != 1) {
        return cli_usage("extract", "which recording?");
    }
    request->file = argv[scan.index];
    return 0;
}

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
        printf("  %s\n", files[i].path);
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
    if (embedded_extract(recording, folder, &count, &error) != 0) {
        return cli_error("%s", error.message);
    }
    printf("%s in %s\n", number_items(&number, count, "file"), folder);
    return cli_finish(CLI_OK);
}

int cmd_extract(int argc, char **argv) {
    struct request request = {0};
    struct error error = {""};
    struct recording *recording;
    int status = parse(argc, argv, &request);
    if (status > 0) {
        return status;
    }
    if (status < 0) {
        fputs(usage, stdout);
        return cli_finish(CLI_OK);
    }
    recording = recording_open(request.file, &error);
    if (recording == NULL) {
        return cli_error("%s", error.message);
    }
    status = request.list ? list(recording) : extract(recording, &request);
    recording_close(recording);
    return status;
}
