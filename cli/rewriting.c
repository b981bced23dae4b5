/* SPDX-License-Identifier: MIT */
/* rewriting.c: see rewriting.h. */
#include "cli/rewriting.h"

#include "analyze/rows/number.h"
#include "analyze/rows/safetext.h"
#include "cli/outfile.h"
#include "cli/progress.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    LEVEL = 9, /* of compression: nobody waits */
    MOST_LEVEL = 19,
};

const struct option rewriting_options[] = {
    OPTION("output", 'o', REWRITING_OUTPUT, "FILE", "what is written; may be the old one"),
    OPTION("level", 'l', REWRITING_KEY_LEVEL, "N", "how hard to compress, 1 to 19 (default: 9)"),
    OPTION_END};

/* An option that all have. CLI_OK, or the status after a line was printed. */
static int take_shared(struct rewriting *rewriting, const struct cli_scan *scan, int key) {
    uint64_t level;
    if (key == REWRITING_OUTPUT) {
        rewriting->output = scan->value;
        return CLI_OK;
    }
    if (quantity_u64(scan->value, &level) != 0 || level < 1 || level > MOST_LEVEL) {
        return cli_usage(scan->command, "%s is 1 to 19, not '%s'", scan->name, scan->value);
    }
    rewriting->options.level = (int)level;
    return CLI_OK;
}

static void show_progress(void *context, uint64_t done, uint64_t total) {
    (void)context;
    progress_show("events", done, total);
}

int rewriting_read(struct rewriting *rewriting, struct cli_scan scan, size_t most,
                   int (*take)(void *request, const struct cli_scan *scan, int key),
                   void *request) {
    int key;
    *rewriting = (struct rewriting){
        .options = {.level = LEVEL, .progress = progress_wanted() ? show_progress : NULL}};
    scan.permute = true;
    while ((key = cli_scan_next(&scan)) > 0) {
        int status =
            key >= REWRITING_KEYS ? take_shared(rewriting, &scan, key) : take(request, &scan, key);
        if (status != CLI_OK) {
            return status;
        }
    }
    if (key < 0) {
        return CLI_USAGE;
    }
    rewriting->files = scan.argv + scan.index;
    rewriting->file_count = (size_t)(scan.argc - scan.index);
    if (rewriting->file_count == 0 || rewriting->file_count > most) {
        return cli_usage(scan.command, most == 1 ? "one recording is needed" : "which recordings?");
    }
    return rewriting->output != NULL ? CLI_OK : cli_usage(scan.command, "--output FILE is needed");
}

static void tell(const char *output, const struct transform_result *result) {
    struct number kept;
    struct number read;
    struct number written;
    struct number bytes;
    print_safe(stderr, "memtrace: %s has %s in %s (before: %s in %s)\n", output,
               number_items(&kept, result->kept, "event"),
               number_bytes(&written, result->bytes_written), number_count(&read, result->events),
               number_bytes(&bytes, result->bytes));
    if (result->damaged != 0) {
        fprintf(stderr, "memtrace: %s damaged %s left out, as far as %s could not be read\n",
                number_count(&kept, result->damaged),
                result->damaged == 1 ? "block is" : "blocks are",
                result->damaged == 1 ? "it" : "they");
    }
}

int rewriting_write(struct timeorder_parts parts, const struct rewriting *rewriting,
                    const struct transform_step *step) {
    const char *output = rewriting->output;
    struct transform_result result;
    struct outfile file;
    struct error error = {""};
    int status;
    if (outfile_open_named(&file, output, "a recording", &error) != 0) {
        return cli_error("%s", error.message);
    }
    status = outfile_end(
        &file, transform_run(&parts, 1, file.path, step, &rewriting->options, &result, &error),
        &error);
    if (status == CLI_OK) {
        tell(output, &result);
    }
    return status;
}
