/* SPDX-License-Identifier: MIT */
/* asking.c: see asking.h. */
#include "cli/asking.h"

#include "analyze/base/job.h"
#include "analyze/rows/number.h"
#include "cli/progress.h"

void asking_open(struct answer *answer, const char *name, const struct question *question) {
    const struct answer_progress progress = {
        .replay = progress_replay(), .symbols = progress_wanted() ? progress_symbols : NULL};
    struct number number;
    progress_allow_fetching();
    answer_open(answer, name, question, &progress);
    if (answer->suppressions != NULL && answer->suppressions->ignored != 0) {
        cli_error("ignored, since not of leaks: %s",
                  number_items(&number, answer->suppressions->ignored, "suppression"));
    }
}

struct asking {
    struct answer *answer;
    const char *name;
    const struct question *question;
};

static void asking_work(void *what) {
    const struct asking *asking = what;
    asking_open(asking->answer, asking->name, asking->question);
}

int asking_try(struct answer *answer, const char *name, const struct question *question,
               struct error *error) {
    struct asking asking = {answer, name, question};
    return job_part(asking_work, &asking, error);
}

void asking_note(const struct answer *answer) {
    const char *const *lines;
    size_t count = names_warnings(answer->names, &lines);
    if (answer->whole->damage[0] != '\0') {
        cli_error("%s: %s", answer->source->path, answer->whole->damage);
    }
    for (size_t i = 0; i < count; i++) {
        cli_error("%s: %s", answer->source->path, lines[i]);
    }
}
