/* SPDX-License-Identifier: MIT */
/* strip.c: `memtrace strip`: a recording without short-lived blocks. docs/strip.md is its page. */
#include "collect/transform/strip.h"
#include "ask/memorylimit.h"

#include "analyze/base/job.h"
#include "analyze/rows/number.h"
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

static void strip_tell(const struct strip *strip) {
    struct number blocks;
    struct number bytes;
    uint64_t size;
    uint64_t count = strip_count(strip, &size);
    fprintf(stderr, "memtrace: %s of %s left out\n",
            number_items(&blocks, count, "short-lived block"), number_bytes(&bytes, size));
}

static int run_strip(int argc, char **argv) {
    struct request request = {.rewriting = REWRITING_DEFAULT};
    const struct replay_options progress = progress_replay();
    const struct source *source;
    struct transform_step step;
    struct strip *strip;
    int status =
        rewriting_read(&strip_command, argc, argv, &request, &request.rewriting, &request.file);
    if (status != CLI_OK) {
        return status;
    }
    request.strip.temporary = request.strip.below_ns == 0;
    source = rewriting_open(request.file, NULL, REWRITING_WHOLE);
    if (source->parts.count == 0) {
        job_fail("%s is a profile: it holds no single blocks", source->path);
    }
    strip = strip_new(source->parts, source->model, &request.strip, &progress);
    step = strip_step(strip);
    rewriting_write(source->parts, &request.rewriting, &step);
    strip_tell(strip);
    return CLI_OK;
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
