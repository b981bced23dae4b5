/* SPDX-License-Identifier: MIT */
/* info.c: `memtrace info`: what is in a file, without reading it whole. docs/info.md is its page.
 */
#include "analyze/read/profile.h"
#include "analyze/report/fileinfo.h"
#include "ask/memorylimit.h"
#include "ask/source.h"
#include "cli/cli.h"

#include <stdio.h>

struct request {
    bool json;
};

static const struct option options[] = {{"json", 'j', NULL, "one JSON object for each file",
                                         OPTION_FLAG, OPTION_IN(struct request, json)},
                                        {.part = memorylimit_options},
                                        OPTION_END};

static int tell_recording(const char *name, bool json) {
    struct source source;
    struct error error = {""};
    int result;
    if (source_open_parts(&source, name, &error) != 0) {
        return cli_error("%s", error.message);
    }
    result = fileinfo_recording(stdout, source.parts.items, source.parts.count, json);
    source_close(&source);
    return result == 0 ? CLI_OK : cli_error("out of memory");
}

static int tell_profile(const char *name, bool json) {
    struct error error = {""};
    struct profile *profile = profile_open(name, &error);
    int result;
    if (profile == NULL) {
        return cli_error("%s", error.message);
    }
    result = fileinfo_profile(stdout, profile, json);
    profile_close(profile);
    return result == 0 ? CLI_OK : cli_error("out of memory");
}

static int tell_run(const char *name, bool json) {
    struct error error = {""};
    struct run *run = run_open(name, &error);
    int result;
    if (run == NULL) {
        return cli_error("%s", error.message);
    }
    result = fileinfo_run(stdout, run, json);
    run_close(run);
    return result == 0 ? CLI_OK : cli_error("out of memory");
}

static int run_info(int argc, char **argv) {
    struct request request = {0};
    int status = cli_read(&info_command, &argc, &argv, &request);
    bool json = request.json;
    if (status == CLI_OK && argc == 0) {
        status = cli_usage("info", "a file is needed");
    }
    if (status != CLI_OK) {
        return status;
    }
    for (int i = 0; i < argc; i++) {
        int result = run_is(argv[i])         ? tell_run(argv[i], json)
                     : recording_is(argv[i]) ? tell_recording(argv[i], json)
                                             : tell_profile(argv[i], json);
        if (i + 1 < argc && !json) {
            putchar('\n');
        }
        status = result != CLI_OK ? result : status;
    }
    return cli_finish(status);
}

const struct command info_command = {
    .name = "info",
    .run = run_info,
    .summary = "show what is in a profile or recording",
    .usage = "[--json] FILE|RUN...",
    .about = "Shows what is in a profile (*.mtp) or a recording (*.mtr): of which "
             "program, from when, how many events, what takes the space, whether it is "
             "complete. Events are not read. Of a run of several processes (a folder): "
             "which files are in it, and whose.",
    .options = options,
    .operands = "PROFILE",
};
