/* SPDX-License-Identifier: MIT */
/* progress.c: see progress.h. */
#include "cli/progress.h"

#include "analyze/symbol/debuginfod.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

void progress_show(const char *what, uint64_t done, uint64_t total) {
    fprintf(stderr, "\rmemtrace: %s, %" PRIu64 " of %" PRIu64 " ...", what, done, total);
    if (done >= total) {
        fputs("\r\033[K", stderr);
    }
    fflush(stderr);
}

void progress_symbols(void *context, size_t done, size_t total) {
    (void)context;
    progress_show("reading symbols", done, total);
}

static void show_events(void *context, uint64_t done, uint64_t total) {
    (void)context;
    progress_show("reading events", done, total);
}

bool progress_wanted(void) {
    return isatty(STDERR_FILENO);
}

void progress_allow_fetching(void) {
    debuginfod_allow(progress_wanted() ? progress_show : NULL);
}

struct replay_options progress_replay(void) {
    return (struct replay_options){.progress = progress_wanted() ? show_events : NULL};
}
