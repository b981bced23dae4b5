/* SPDX-License-Identifier: MIT */
/* strip.c: `memtrace strip`: a recording without short-lived blocks. docs/strip.md is its page. */
#include "collect/transform/strip.h"

#include "analyze/ask/source.h"
#include "analyze/rows/number.h"
#include "cli/cli.h"
#include "cli/progress.h"
#include "cli/rewriting.h"

#include <stdio.h>

enum { KEY_BELOW = 1 };

static const struct option options[] = {
    OPTION_PART(rewriting_options),
    OPTION("below", 'b', KEY_BELOW, "DURATION",
           "leave out blocks that lived shorter instead: 10ms, 1s"),
    OPTION_END};

static int take_option(void *context, const struct cli_scan *scan, int key) {
    struct strip_options *strip = context;
    (void)key;
    strip->temporary = false;
    return quantity_duration(scan->value, &strip->below_ns) == 0 && strip->below_ns != 0
               ? CLI_OK
               : cli_usage("strip", "--below is a duration such as 10ms or 1s, not '%s'",
                           scan->value);
}

static void tell(const struct strip *strip) {
    struct number blocks;
    struct number bytes;
    fprintf(stderr, "memtrace: %s of %s left out\n",
            number_items(&blocks, strip_count(strip), "short-lived block"),
            number_bytes(&bytes, strip_bytes(strip)));
}

static int strip_source(const struct source *source, const struct strip_options *what,
                        const struct rewriting *rewriting, const struct replay_options *progress) {
    struct error error = {""};
    struct transform_step step;
    struct strip *strip;
    int status;
    if (source->parts.count == 0) {
        return cli_error("%s is a profile: it holds no single blocks", source->path);
    }
    strip = strip_new(source->parts, source->model, what, progress, &error);
    if (strip == NULL) {
        return cli_error("%s", error.message);
    }
    step = strip_step(strip);
    status = rewriting_write(source->parts, rewriting, &step);
    if (status == CLI_OK) {
        tell(strip);
    }
    strip_free(strip);
    return status;
}

static int run_strip(int argc, char **argv) {
    struct strip_options what = {.temporary = true};
    struct rewriting rewriting;
    const struct replay_options progress = progress_replay();
    struct source source;
    struct error error = {""};
    int status = rewriting_read(&rewriting, cli_scan_start("strip", argc, argv, options), 1,
                                take_option, &what);
    if (status != CLI_OK) {
        return status;
    }
    if (source_open(&source, rewriting.files[0], NULL, NULL, &progress, &error) != 0) {
        return cli_error("%s", error.message);
    }
    status = strip_source(&source, &what, &rewriting, &progress);
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
