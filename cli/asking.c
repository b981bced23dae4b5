/* SPDX-License-Identifier: MIT */
/* asking.c: see asking.h. */
#include "cli/asking.h"

#include "analyze/rows/number.h"
#include "cli/progress.h"

int asking_open(struct answer *answer, const char *name, const struct question *question,
                struct error *error) {
    const struct answer_progress progress = {
        .replay = progress_replay(), .symbols = progress_wanted() ? progress_symbols : NULL};
    progress_allow_fetching();
    int result = answer_open(answer, name, question, &progress, error);
    if (result == 0) {
        asking_note_suppressions(&answer->suppressions);
    }
    return result;
}

void asking_note_suppressions(const struct suppressions *suppressions) {
    struct number number;
    if (suppressions->ignored != 0) {
        cli_error("ignored, since not of leaks: %s",
                  number_items(&number, suppressions->ignored, "suppression"));
    }
}

void asking_note(const struct answer *answer) {
    const char *const *lines;
    size_t count = names_warnings(answer->names, &lines);
    if (answer->source.model->damage[0] != '\0') {
        cli_error("%s: %s", answer->source.path, answer->source.model->damage);
    }
    for (size_t i = 0; i < count; i++) {
        cli_error("%s: %s", answer->source.path, lines[i]);
    }
}
