/* SPDX-License-Identifier: MIT */
/* question.c: see question.h. */
#include "analyze/ask/question.h"

const struct option question_options[] = {
    OPTION("process", 0, QUESTION_PROCESS, "PID|NAME[:IMAGE]",
           "of a run of several processes (a folder): this one, and of those that replaced "
           "themselves by exec this image; default: the one that held most"),
    OPTION("all-processes", 0, QUESTION_ALL_PROCESSES, NULL,
           "the sum of all by call path, small forked children included"),
    OPTION("debug-folders", 0, QUESTION_DEBUG_FOLDERS, "FOLDERS",
           "where separate debug files are, colon-separated (default: /usr/lib/debug)"),
    OPTION("no-cache", 0, QUESTION_NO_CACHE, NULL, "keep nothing on disk for the next command"),
    OPTION_END};

int question_take(struct question *question, const struct option *option, const char *value,
                  struct error *error) {
    if (option->key >= FILTER_KEYS) {
        return filters_take(question->filters, option, value, error);
    }
    if (option->key >= SUPPRESSING_KEYS) {
        return suppressing_take(&question->suppressing, option, value, error);
    }
    switch (option->key) {
    case QUESTION_NO_CACHE:
        question->no_cache = true;
        break;
    case QUESTION_PROCESS:
        question->choice.process = value;
        break;
    case QUESTION_ALL_PROCESSES:
        question->choice.all = true;
        break;
    default:
        question->debug_folders = value;
        break;
    }
    return 0;
}

static int open_rest(struct answer *answer, const struct question *question,
                     const struct answer_progress *progress, struct error *error) {
    answer->names =
        source_names(&answer->source, question->debug_folders, progress->symbols, error);
    if (answer->names == NULL || filters_apply(question->filters, &answer->source, answer->names,
                                               &progress->replay, &answer->filtered, error) != 0) {
        return -1;
    }
    return question->has_leaks
               ? suppressing_load(&question->suppressing, answer->source.model,
                                  question->debug_folders, &answer->suppressions, error)
               : 0;
}

int answer_open(struct answer *answer, const char *name, const struct question *question,
                const struct answer_progress *progress, struct error *error) {
    *answer = (struct answer){0};
    if (source_open(&answer->source, name, &question->choice, question->debug_folders,
                    &progress->replay, error) != 0) {
        return -1;
    }
    if (open_rest(answer, question, progress, error) != 0) {
        answer_close(answer);
        return -1;
    }
    return 0;
}

void answer_close(struct answer *answer) {
    suppressions_free(&answer->suppressions);
    filtered_close(&answer->filtered);
    names_close(answer->names);
    source_close(&answer->source);
    *answer = (struct answer){0};
}
