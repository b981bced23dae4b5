/* SPDX-License-Identifier: MIT */
/* repack.c: `memtrace repack`: a recording or a profile written anew. docs/repack.md is its page.
 */
#include "analyze/base/job.h"
#include "analyze/read/profile.h"
#include "analyze/read/region.h"
#include "analyze/rows/number.h"
#include "analyze/rows/safetext.h"
#include "ask/memorylimit.h"
#include "cli/cli.h"
#include "cli/outfile.h"
#include "cli/rewriting.h"
#include "collect/compress.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct request {
    struct rewriting rewriting;
    const char *file;
    bool no_addresses;
    bool no_symbols;
    bool raw;
};

static const struct option options[] = {
    {.part = rewriting_options, OPTION_IN(struct request, rewriting)},
    {"no-addresses", 0, NULL, "without the blocks' addresses", OPTION_FLAG,
     OPTION_IN(struct request, no_addresses)},
    {"no-symbols", 0, NULL, "without the program files and symbols that it carries", OPTION_FLAG,
     OPTION_IN(struct request, no_symbols)},
    {"raw", 0, NULL, "a profile that is not compressed, as other programs read it", OPTION_FLAG,
     OPTION_IN(struct request, raw)},
    {.part = memorylimit_options},
    OPTION_END};

static bool leave_out_files(void *context, enum memtrace_block_kind kind,
                            struct transform_payload *payload) {
    (void)context;
    (void)payload;
    return kind != MEMTRACE_BLOCK_FILE;
}

/* Half a profile would look like a whole one afterwards. */
static void repack_profile(const struct request *request) {
    const char *output = request->rewriting.output;
    struct error error;
    struct profile *profile = profile_open(request->file, &error);
    struct compress_source bytes;
    struct outfile *file;
    struct stat before;
    struct stat after;
    struct number n[2];
    int result;
    if (profile == NULL) {
        job_fail_as(&error);
    }
    profile_goes_with_job(profile);
    if (profile->is_broken || profile->live) {
        job_fail("%s stays as it is: %s", request->file,
                 profile->live ? "its program is running" : profile->damage);
    }
    file = outfile_open_named(output, "a profile");
    bytes = (struct compress_source){profile->bytes, -1, profile->size};
    result = request->raw ? compress_store(&bytes, fileno(file->stream))
                          : compress_or_store(&bytes, request->rewriting.options.level,
                                              fileno(file->stream));
    if (result != 0) {
        job_fail("cannot write %s: %s", output, strerror(errno));
    }
    outfile_keep(file);
    if (stat(request->file, &before) == 0 && stat(output, &after) == 0) {
        print_safe(stderr, "memtrace: %s has the profile in %s (before: %s)\n", output,
                   number_bytes(&n[0], (uint64_t)after.st_size),
                   number_bytes(&n[1], (uint64_t)before.st_size));
    }
}

static int run_repack(int argc, char **argv) {
    struct request request = {.rewriting = REWRITING_DEFAULT};
    struct transform_step step = {0};
    struct memtrace_header header;
    int status =
        rewriting_read(&repack_command, argc, argv, &request, &request.rewriting, &request.file);
    if (status != CLI_OK) {
        return status;
    }
    if (region_read_header(request.file, &header) == REGION_HEADER) {
        repack_profile(&request);
        return CLI_OK;
    }
    if (request.raw) {
        return cli_usage("repack", "--raw is for profiles");
    }
    request.rewriting.options.add_flags =
        request.no_addresses ? (uint32_t)MEMTRACE_RECORDING_NO_ADDRESSES : 0;
    step.table = request.no_symbols ? leave_out_files : NULL;
    rewriting_write(rewriting_open(request.file, NULL, REWRITING_PARTS)->parts, &request.rewriting,
                    &step);
    return CLI_OK;
}

const struct command repack_command = {
    .name = "repack",
    .run = run_repack,
    .summary = "write a recording anew: joined, packed, without damage; or a profile",
    .usage = "[OPTION]... --output FILE FILE",
    .about = "Writes a recording anew: the parts of a rotated one joined, small blocks "
             "merged, packed harder, damaged blocks left out, an index at the end. Or a "
             "profile: packed harder, or not at all (--raw). What it says stays the same.",
    .options = options,
    .operands = "PROFILE",
};
