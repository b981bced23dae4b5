/* SPDX-License-Identifier: MIT */
/* repack.c: `memtrace repack`: a recording written anew. docs/repack.md is its page. */
#include "analyze/ask/source.h"
#include "cli/cli.h"
#include "cli/rewriting.h"

#include <stdio.h>
#include <string.h>

enum { KEY_NO_ADDRESSES = 1, KEY_NO_SYMBOLS };

static const struct option options[] = {
    OPTION_PART(rewriting_options),
    OPTION("no-addresses", 0, KEY_NO_ADDRESSES, NULL, "without the blocks' addresses"),
    OPTION("no-symbols", 0, KEY_NO_SYMBOLS, NULL,
           "without the program files and symbols that it carries"),
    OPTION_END};

struct request {
    uint32_t add_flags;
    bool no_symbols;
};

static int take_option(void *context, const struct cli_scan *scan, int key) {
    struct request *request = context;
    (void)scan;
    request->no_symbols |= key == KEY_NO_SYMBOLS;
    request->add_flags |= key == KEY_NO_ADDRESSES ? MEMTRACE_RECORDING_NO_ADDRESSES : 0;
    return CLI_OK;
}

static int leave_out_files(void *context, enum memtrace_block_kind kind,
                           struct transform_payload *payload) {
    (void)context;
    (void)payload;
    return kind != MEMTRACE_BLOCK_FILE;
}

static int run_repack(int argc, char **argv) {
    struct request request = {0};
    struct rewriting rewriting;
    struct transform_step step = {0};
    struct source source;
    struct error error = {""};
    int status = rewriting_read(&rewriting, cli_scan_start("repack", argc, argv, options), 1,
                                take_option, &request);
    if (status != CLI_OK) {
        return status;
    }
    if (source_open_parts(&source, rewriting.files[0], &error) != 0) {
        return cli_error("%s", error.message);
    }
    rewriting.options.add_flags = request.add_flags;
    step.table = request.no_symbols ? leave_out_files : NULL;
    status = rewriting_write(source.parts, &rewriting, &step);
    source_close(&source);
    return status;
}

const struct command repack_command = {
    .name = "repack",
    .run = run_repack,
    .summary = "write a recording anew: joined, packed, without damage",
    .usage = "[OPTION]... --output FILE FILE.mtr",
    .about = "Writes a recording anew: the parts of a rotated one joined, small blocks "
             "merged, packed harder, damaged blocks left out, an index at the end. What "
             "it says stays the same.",
    .options = options,
    .operands = "RECORDING",
};
