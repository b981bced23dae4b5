/* SPDX-License-Identifier: MIT */
/* chosen.c: see chosen.h. */
#include "cli/chosen.h"

#include "cli/cli.h"
#include "cli/progress.h"

#include <stdlib.h>

const struct option chosen_options[] = {
    OPTION("process", 0, CHOSEN_PROCESS, "PID|NAME[:IMAGE]",
           "of a run of several processes (a folder): this one, and of those that replaced "
           "themselves by "
           "exec this image; default: the one that held most"),
    OPTION("all-processes", 0, CHOSEN_ALL_PROCESSES, NULL,
           "the sum of all by call path, small forked children included"),
    OPTION("debug-folders", 0, CHOSEN_DEBUG_FOLDERS, "FOLDERS",
           "where separate debug files are, colon-separated (default: /usr/lib/debug)"),
    OPTION("no-cache", 0, CHOSEN_NO_CACHE, NULL, "keep nothing on disk for the next command"),
    OPTION_END};

int chosen_take(struct chosen_options *options, const struct cli_scan *scan, int key) {
    if (key >= FILTER_KEYS) {
        return filters_take(options->filters, scan, key);
    }
    if (key >= SUPPRESSING_KEYS) {
        return suppressing_take(&options->suppressing, scan, key);
    }
    if (key == CHOSEN_NO_CACHE) {
        setenv("MEMTRACE_CACHE", "", 1);
    } else if (key == CHOSEN_PROCESS) {
        options->choice.process = scan->value;
    } else if (key == CHOSEN_ALL_PROCESSES) {
        options->choice.all = true;
    } else {
        options->debug_folders = scan->value;
    }
    return CLI_OK;
}

static int open_rest(struct chosen *chosen, const struct chosen_options *options,
                     const struct replay_options *replay, struct error *error) {
    chosen->names = source_names(&chosen->source, options->debug_folders,
                                 progress_wanted() ? progress_symbols : NULL, error);
    if (chosen->names == NULL || filters_apply(options->filters, &chosen->source, chosen->names,
                                               replay, &chosen->filtered, error) != 0) {
        return -1;
    }
    return options->has_leaks
               ? suppressing_load(&options->suppressing, chosen->source.model,
                                  options->debug_folders, &chosen->suppressions, error)
               : 0;
}

int chosen_open(struct chosen *chosen, const char *name, const struct chosen_options *options,
                struct error *error) {
    const struct replay_options replay = progress_replay();
    *chosen = (struct chosen){0};
    if (source_open(&chosen->source, name, &options->choice, options->debug_folders, &replay,
                    error) != 0) {
        return -1;
    }
    if (open_rest(chosen, options, &replay, error) != 0) {
        chosen_close(chosen);
        return -1;
    }
    return 0;
}

void chosen_close(struct chosen *chosen) {
    suppressions_free(&chosen->suppressions);
    filtered_close(&chosen->filtered);
    names_close(chosen->names);
    source_close(&chosen->source);
    *chosen = (struct chosen){0};
}

void chosen_note(const struct chosen *chosen) {
    const char *const *lines;
    size_t count = names_warnings(chosen->names, &lines);
    if (chosen->source.model->damage[0] != '\0') {
        cli_error("%s: %s", chosen->source.path, chosen->source.model->damage);
    }
    for (size_t i = 0; i < count; i++) {
        cli_error("%s: %s", chosen->source.path, lines[i]);
    }
}
