/* SPDX-License-Identifier: MIT */
/* repack.c: `memtrace repack`: a recording written anew. docs/repack.md is its page. */
#include "analyze/ask/source.h"
#include "cli/cli.h"
#include "cli/rewriting.h"

#include <stdio.h>
#include <string.h>

struct request {
    struct rewriting rewriting;
    const char *file;
    bool no_addresses;
    bool no_symbols;
};

static const struct option options[] = {
    {.part = rewriting_options, OPTION_IN(struct request, rewriting)},
    {"no-addresses", 0, NULL, "without the blocks' addresses", OPTION_FLAG,
     OPTION_IN(struct request, no_addresses)},
    {"no-symbols", 0, NULL, "without the program files and symbols that it carries", OPTION_FLAG,
     OPTION_IN(struct request, no_symbols)},
    OPTION_END};

static int leave_out_files(void *context, enum memtrace_block_kind kind,
                           struct transform_payload *payload) {
    (void)context;
    (void)payload;
    return kind != MEMTRACE_BLOCK_FILE;
}

static int run_repack(int argc, char **argv) {
    struct request request = {.rewriting = REWRITING_DEFAULT};
    struct transform_step step = {0};
    struct source source;
    struct error error = {""};
    int status =
        rewriting_read(&repack_command, argc, argv, &request, &request.rewriting, &request.file);
    if (status != CLI_OK) {
        return status;
    }
    if (source_open_parts(&source, request.file, &error) != 0) {
        return cli_error("%s", error.message);
    }
    request.rewriting.options.add_flags =
        request.no_addresses ? (uint32_t)MEMTRACE_RECORDING_NO_ADDRESSES : 0;
    step.table = request.no_symbols ? leave_out_files : NULL;
    status = rewriting_write(source.parts, &request.rewriting, &step);
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
