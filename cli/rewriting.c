/* SPDX-License-Identifier: MIT */
/* rewriting.c: see rewriting.h. */
#include "cli/rewriting.h"

#include "analyze/rows/number.h"
#include "analyze/rows/safetext.h"
#include "cli/outfile.h"
#include "cli/progress.h"

#include <inttypes.h>
#include <stdio.h>

enum { MOST_LEVEL = 19 };

const struct option rewriting_options[] = {
    OPTION("output", 'o', REWRITING_OUTPUT, "FILE", "what is written; may be the old one"),
    OPTION("level", 'l', REWRITING_KEY_LEVEL, "N", "how hard to compress, 1 to 19 (default: 9)"),
    OPTION_END};

static int parse_level(const char *text, int *level) {
    uint64_t value;
    if (quantity_u64(text, &value) != 0 || value < 1 || value > MOST_LEVEL) {
        return -1;
    }
    *level = (int)value;
    return 0;
}

int rewriting_take(struct rewriting *rewriting, const struct cli_scan *scan, int key) {
    if (key == REWRITING_OUTPUT) {
        rewriting->output = scan->value;
        return CLI_OK;
    }
    return parse_level(scan->value, &rewriting->options.level) == 0
               ? CLI_OK
               : cli_usage(scan->command, "%s is 1 to 19, not '%s'", scan->name, scan->value);
}

static void show_progress(void *context, uint64_t done, uint64_t total) {
    (void)context;
    progress_show("events", done, total);
}

rewriting_progress_function rewriting_progress(void) {
    return progress_wanted() ? show_progress : NULL;
}

int rewriting_check(const struct rewriting *rewriting, const struct cli_scan *scan) {
    return rewriting->output != NULL ? CLI_OK : cli_usage(scan->command, "--output FILE is needed");
}

int rewriting_operand(const struct rewriting *rewriting, const struct cli_scan *scan,
                      const char **file) {
    if (scan->argc - scan->index != 1) {
        return cli_usage(scan->command, "one recording is needed");
    }
    *file = scan->argv[scan->index];
    return rewriting_check(rewriting, scan);
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
    struct transform_options shown = rewriting->options;
    const char *output = rewriting->output;
    struct transform_result result;
    struct outfile file;
    struct error error = {""};
    int status;
    if (outfile_open_named(&file, output, "a recording", &error) != 0) {
        return cli_error("%s", error.message);
    }
    shown.progress = rewriting_progress();
    status = outfile_end(&file, transform_run(&parts, 1, file.path, step, &shown, &result, &error),
                         &error);
    if (status == CLI_OK) {
        tell(output, &result);
    }
    return status;
}
