/* SPDX-License-Identifier: MIT */
/* question.c: see question.h. */
#include "ask/question.h"

#include "analyze/symbol/debugfile.h"
#include "analyze/symbol/debuginfod.h"
#include "ask/memorylimit.h"

#include <stdlib.h>

#define IN(member) OPTION_IN(struct question, member)

/* For all that this process reads. */
static int keep_nothing(void *member, const struct option *option, const char *value,
                        struct error *error) {
    (void)member;
    (void)option;
    (void)value;
    return setenv("MEMTRACE_CACHE", "", 1) == 0 ? 0 : error_set(error, "out of memory");
}

static int take_root(void *member, const struct option *option, const char *value,
                     struct error *error) {
    (void)member;
    (void)option;
    (void)error;
    debugfile_set_copies(value);
    return 0;
}

const struct option root_options[] = {
    {"root", 0, "FOLDERS",
     "look for the program's files below these first, by their paths or just their names, "
     "colon-separated: copies of another machine's files, a sysroot",
     OPTION_CALL, .call = take_root},
    OPTION_END};

static int take_no_debuginfod(void *member, const struct option *option, const char *value,
                              struct error *error) {
    (void)member;
    (void)option;
    (void)value;
    (void)error;
    debuginfod_refuse();
    return 0;
}

const struct option debuginfod_options[] = {
    {"no-debuginfod", 0, NULL, "ask no server for debug information, whatever DEBUGINFOD_URLS says",
     OPTION_CALL, .call = take_no_debuginfod},
    OPTION_END};

const struct option question_options[] = {
    {"process", 0, "PID|NAME[:IMAGE]",
     "of a run of several processes (a folder): this one, and of those that replaced "
     "themselves by exec this image; default: the one that held most",
     OPTION_TEXT, IN(choice.process)},
    {"all-processes", 0, NULL, "the sum of all by call path, small forked children included",
     OPTION_FLAG, IN(choice.all)},
    {"debug-folders", 0, "FOLDERS",
     "where separate debug files are, colon-separated (default: /usr/lib/debug)", OPTION_TEXT,
     IN(debug_folders)},
    {.part = debuginfod_options},
    {.part = root_options},
    {.part = memorylimit_options},
    {"no-cache", 0, NULL, "keep nothing on disk for the next command", OPTION_CALL,
     .call = keep_nothing},
    OPTION_END};

static int suppressing_add_file(void *member, const struct option *option, const char *value,
                                struct error *error) {
    struct suppressing *suppressing = member;
    if (suppressing->count == SUPPRESSING_FILES) {
        return error_set(error, "--%s: at most %d files", option->name, SUPPRESSING_FILES);
    }
    suppressing->files[suppressing->count++] = value;
    return 0;
}

const struct option suppressing_options[] = {
    OPTION_HEADING("leaks to leave out"),
    {"suppressions", 0, "FILE",
     "those that LeakSanitizer's suppression file names (leak:PATTERN); may be given again",
     OPTION_CALL, .call = suppressing_add_file},
    {"no-builtin-suppressions", 0, NULL, "report what common libraries keep on purpose, too",
     OPTION_FLAG, OPTION_IN(struct suppressing, no_builtin)},
    {"no-embedded-suppressions", 0, NULL, "ignore __lsan_default_suppressions() of the program",
     OPTION_FLAG, OPTION_IN(struct suppressing, no_embedded)},
    OPTION_END};

bool question_narrows(const struct question *question) {
    return filters_given(&question->filters) || question->choice.process != NULL ||
           question->choice.all;
}

struct suppressions *question_suppressions(const struct question *question,
                                           const struct model *model) {
    const struct suppressing *suppressing = &question->suppressing;
    struct suppressions *list = job_alloc(sizeof *list);
    struct error error;
    for (size_t i = 0; i < suppressing->count; i++) {
        job_check(suppressions_add_file(list, suppressing->files[i], &error), &error);
    }
    if (!suppressing->no_embedded) {
        job_check(suppressions_add_embedded(list, model, question->debug_folders, &error), &error);
    }
    if (!suppressing->no_builtin) {
        suppressions_add_builtin(list);
    }
    return list;
}
