/* SPDX-License-Identifier: MIT */
/* frames.c: frames as text. See frames.h. */
#include "cli/frames.h"

#include "analyze/rows/safetext.h"
#include "cli/cli.h"

#include <stdio.h>

void frames_write(const struct symbol_frame *frame, const char *place) {
    put_safe(stdout, frame->function ? frame->function : place);
    if (frame->file && frame->line)
        print_safe(stdout, " at %s:%u", frame->file, frame->line);
    if (frame->inlined)
        fputs(" (inlined)", stdout);
}

void frames_warn(const struct symbolizer *symbolizer) {
    const char *const *lines;
    size_t count = symbolizer_warnings(symbolizer, &lines);
    for (size_t i = 0; i < count; i++)
        cli_error("%s", lines[i]);
}
