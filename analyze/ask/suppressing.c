/* SPDX-License-Identifier: MIT */
/* suppressing.c: see suppressing.h. */
#include "analyze/ask/suppressing.h"

const struct option suppressing_options[] = {
    OPTION_HEADING("leaks to leave out"),
    OPTION("suppressions", 0, SUPPRESSING_FILE, "FILE",
           "those that LeakSanitizer's suppression file names (leak:PATTERN); may be given again"),
    OPTION("no-builtin-suppressions", 0, SUPPRESSING_NO_BUILTIN, NULL,
           "report what common libraries keep on purpose, too"),
    OPTION("no-embedded-suppressions", 0, SUPPRESSING_NO_EMBEDDED, NULL,
           "ignore __lsan_default_suppressions() of the program"),
    OPTION_END};

int suppressing_take(struct suppressing *suppressing, const struct option *option,
                     const char *value, struct error *error) {
    switch (option->key) {
    case SUPPRESSING_NO_BUILTIN:
        suppressing->no_builtin = true;
        return 0;
    case SUPPRESSING_NO_EMBEDDED:
        suppressing->no_embedded = true;
        return 0;
    default:
        break;
    }
    if (suppressing->count == SUPPRESSING_FILES) {
        return error_set(error, "--%s: at most %d files", option->name, SUPPRESSING_FILES);
    }
    suppressing->files[suppressing->count++] = value;
    return 0;
}

int suppressing_load(const struct suppressing *suppressing, const struct model *model,
                     const char *debug_folders, struct suppressions *list, struct error *error) {
    *list = (struct suppressions){0};
    for (size_t i = 0; i < suppressing->count; i++) {
        if (suppressions_add_file(list, suppressing->files[i], error) != 0) {
            return -1;
        }
    }
    if (!suppressing->no_embedded &&
        suppressions_add_embedded(list, model, debug_folders, error) != 0) {
        return -1;
    }
    return suppressing->no_builtin ? 0 : suppressions_add_builtin(list, error);
}
