/* SPDX-License-Identifier: MIT */
/* reading.c: see reading.h. */
#include "cli/reading.h"

#include "analyze/rows/number.h"
#include "analyze/symbol/debuginfod.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

bool reading_is_watched(void) {
    return isatty(STDERR_FILENO);
}

void reading_show(const char *what, uint64_t done, uint64_t total) {
    fprintf(stderr, "\rmemtrace: %s, %" PRIu64 " of %" PRIu64 " ...", what, done, total);
    if (done >= total) {
        fputs("\r\033[K", stderr);
    }
    fflush(stderr);
}

void reading_symbols(void *context, size_t done, size_t total) {
    (void)context;
    reading_show("reading symbols", done, total);
}

static void reading_show_events(void *context, uint64_t done, uint64_t total) {
    (void)context;
    reading_show("reading events", done, total);
}

struct replay_options reading_replay(void) {
    return (struct replay_options){.progress = reading_is_watched() ? reading_show_events : NULL};
}

void reading_allow_fetching(void) {
    debuginfod_allow(reading_is_watched() ? reading_show : NULL);
}

void reading_open(struct answer *answer, const char *name, const struct question *question) {
    const struct answer_progress progress = {
        .replay = reading_replay(), .symbols = reading_is_watched() ? reading_symbols : NULL};
    struct number number;
    reading_allow_fetching();
    answer_open(answer, name, question, &progress);
    if (answer->suppressions != NULL && answer->suppressions->ignored != 0) {
        cli_error("ignored, since not of leaks: %s",
                  number_items(&number, answer->suppressions->ignored, "suppression"));
    }
}

void reading_note(const struct answer *answer) {
    const char *const *lines;
    size_t count = names_warnings(answer->names, &lines);
    if (answer->whole->damage[0] != '\0') {
        cli_error("%s: %s", answer->source->path, answer->whole->damage);
    }
    for (size_t i = 0; i < count; i++) {
        cli_error("%s: %s", answer->source->path, lines[i]);
    }
}
