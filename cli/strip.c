/* SPDX-License-Identifier: MIT */
/* strip.c: `memtrace strip`: a recording without short-lived blocks. docs/strip.md is its page. */
#include "collect/transform/strip.h"
#include "ask/memorylimit.h"

#include "analyze/rows/number.h"
#include "ask/source.h"
#include "cli/cli.h"
#include "cli/progress.h"
#include "cli/rewriting.h"

#include <stdio.h>

struct request {
    struct strip_options strip;
    struct rewriting rewriting;
    const char *file;
};

static const struct option options[] = {
    {.part = rewriting_options, OPTION_IN(struct request, rewriting)},
    {"below", 'b', "DURATION", "leave out blocks that lived shorter instead: 10ms, 1s",
     OPTION_DURATION, OPTION_IN(struct request, strip.below_ns), .least = 1},
    {.part = memorylimit_options},
    OPTION_END};

static void tell(const struct strip *strip) {
    struct number blocks;
    struct number bytes;
    uint64_t size;
    uint64_t count = strip_count(strip, &size);
    fprintf(stderr, "memtrace: %s of %s left out\n",
            number_items(&blocks, count, "short-lived block"), number_bytes(&bytes, size));
}

static int strip_source(const struct source *source, const struct request *request) {
    const struct replay_options progress = progress_replay();
    struct transform_step step;
    struct strip *strip;
    int status;
    if (source->parts.count == 0) {
        return cli_error("%s is a profile: it holds no single blocks", source->path);
    }
    strip = strip_new(source->parts, source->model, &request->strip, &progress);
    step = strip_step(strip);
    status = rewriting_write(source->parts, &request->rewriting, &step);
    if (status == CLI_OK) {
        tell(strip);
    }
    return status;
}

static int run_strip(int argc, char **argv) {
    struct request request = {.rewriting = REWRITING_DEFAULT};
    const struct replay_options progress = progress_replay();
    struct source source;
    struct error error = {""};
    int status =
        rewriting_read(&strip_command, argc, argv, &request, &request.rewriting, &request.file);
    if (status != CLI_OK) {
        return status;
    }
    request.strip.temporary = request.strip.below_ns == 0;
    if (source_open(&source, request.file, NULL, NULL, &progress, &error) != 0) {
        return cli_error("%s", error.message);
    }
    status = strip_source(&source, &request);
    source_close(&source);
    return status;
}

const struct command strip_command = {
    .name = "strip",
    .run = run_strip,
    .summary = "leave short-lived blocks out of a recording",
    .usage = "[OPTION]... --output FILE FILE.mtr",
    .about = "Writes a recording anew without its temporary allocations: blocks that "
             "were freed before their thread's next allocation, both ends. Their sums "
             "stay in the file, so that bytes and counts of each call path are the same "
             "in reports; what is gone are the single blocks.",
    .options = options,
    .operands = "RECORDING",
};
