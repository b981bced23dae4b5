/* SPDX-License-Identifier: MIT */
/* repack.c: `memtrace repack`: a recording written anew. docs/repack.md is its page. */
#include "cli/cli.h"
#include "cli/rewriting.h"
#include "cli/source.h"

#include <stdio.h>
#include <string.h>

static const char help_text[] =
    "usage: memtrace repack [OPTION]... --output FILE FILE.mtr\n"
    "\n"
    "Writes a recording anew: the parts of a rotated one joined, small blocks merged, packed "
    "harder,\n"
    "damaged blocks left out, an index at the end. What it says stays the same.\n"
    "\n"
    "  --output FILE        the new recording; may be the old one\n"
    "  --level N            how hard to compress, 1 to 19 (default: 9)\n"
    "  --no-addresses       without the blocks' addresses\n"
    "  --no-symbols         without the program files and symbols that it carries\n"
    "  --help               show this\n";

enum { KEY_HELP = 1, KEY_NO_ADDRESSES, KEY_NO_SYMBOLS };

static const struct cli_option options[] = {
    REWRITING_OPTIONS,
    {"help", 'h', false, KEY_HELP},
    {"no-addresses", 0, false, KEY_NO_ADDRESSES},
    {"no-symbols", 0, false, KEY_NO_SYMBOLS},
    {NULL, 0, false, 0},
};

struct request {
    struct rewriting rewriting;
    const char *file;
    bool no_symbols;
    bool help;
};

static int take_option(void *context, const struct cli_scan *scan, int key) {
    struct request *request = context;
    if (key >= REWRITING_KEYS) {
        return rewriting_take(&request->rewriting, scan, key);
    }
    request->help |= key == KEY_HELP;
    request->no_symbols |= key == KEY_NO_SYMBOLS;
    request->rewriting.options.add_flags |=
        key == KEY_NO_ADDRESSES ? (uint32_t)MEMTRACE_RECORDING_NO_ADDRESSES : 0;
    return CLI_OK;
}

static int read_arguments(struct request *request, int argc, char **argv) {
    struct cli_scan scan = cli_scan_start("repack", argc, argv, options);
    int status = cli_scan_all(&scan, take_option, request);
    if (status != CLI_OK || request->help) {
        return status;
    }
    return rewriting_operand(&request->rewriting, &scan, &request->file);
}

static int leave_out_files(void *context, enum memtrace_block_kind kind,
                           struct rewrite_payload *payload) {
    (void)context;
    (void)payload;
    return kind != MEMTRACE_BLOCK_FILE;
}

int cmd_repack(int argc, char **argv) {
    struct request request = {.rewriting = REWRITING_DEFAULT};
    struct rewrite_hooks hooks = {0};
    struct source source;
    struct error error = {""};
    int status = read_arguments(&request, argc, argv);
    if (status != CLI_OK) {
        return status;
    }
    if (request.help) {
        fputs(help_text, stdout);
        return cli_finish(CLI_OK);
    }
    if (source_open_parts(&source, request.file, &error) != 0) {
        return cli_error("%s", error.message);
    }
    hooks.table = request.no_symbols ? leave_out_files : NULL;
    status = rewriting_write(source.parts, &request.rewriting, &hooks);
    source_close(&source);
    return status;
}
