/* SPDX-License-Identifier: MIT */
/* selection.c: a selection as a value, and what answering it takes. See selection.h. */
#include "analyze/filter/selection.h"

#include <stdlib.h>
#include <string.h>

#define ANY       ((struct selection_range){0, UINT64_MAX})
#define ANY_TIMES ((struct selection_times){0, UINT64_MAX})

struct selection selection_all(void) {
    return (struct selection){
        .view = ANY_TIMES,
        .depth = ANY,
        .group_allocations = ANY,
        .group_bytes = ANY,
        .group_live_blocks = ANY,
        .group_live_bytes = ANY,
        .size = ANY,
        .first_size = ANY,
        .last_size = ANY,
        .chain_length = ANY,
        .chain_lifetime = ANY,
        .lifetime = ANY,
        .address = ANY,
        .born = ANY_TIMES,
        .died = ANY_TIMES,
    };
}

void selection_free(struct selection *selection) {
    for (size_t i = 0; i < selection->pattern_count; i++) {
        regfree(&selection->patterns[i].regex);
    }
    free(selection->patterns);
    free(selection->threads);
    free(selection->death_threads);
    *selection = selection_all();
}

int selection_add_pattern(struct selection *selection, enum selection_part part, bool negative,
                          const char *regex, struct error *error) {
    struct selection_pattern pattern = {.part = part, .negative = negative};
    struct selection_pattern *grown;
    char why[128];
    int wrong = regcomp(&pattern.regex, regex, REG_EXTENDED | REG_NOSUB);
    if (wrong != 0) {
        regerror(wrong, &pattern.regex, why, sizeof why);
        return error_set(error, "'%s' is not a regular expression: %s", regex, why);
    }
    grown = reallocarray(selection->patterns, selection->pattern_count + 1, sizeof *grown);
    if (grown == NULL) {
        regfree(&pattern.regex);
        return error_set(error, "out of memory");
    }
    selection->patterns = grown;
    selection->patterns[selection->pattern_count++] = pattern;
    return 0;
}

/* ---- What answering takes ---- */

static bool is_any(struct selection_range range) {
    return range.least == 0 && range.most == UINT64_MAX;
}

static bool is_always(struct selection_times times) {
    return times.from_ns == 0 && times.to_ns == UINT64_MAX;
}

bool selection_asks_contexts(const struct selection *selection) {
    return selection->pattern_count != 0 || !is_any(selection->depth) || selection->classes != 0 ||
           selection->pool != NULL || selection->path != 0 ||
           !is_any(selection->group_allocations) || !is_any(selection->group_bytes) ||
           !is_any(selection->group_live_blocks) || !is_any(selection->group_live_bytes);
}

static bool asks_births(const struct selection *selection) {
    return !is_any(selection->size) || !is_any(selection->first_size) ||
           !is_any(selection->address) || !is_always(selection->born) ||
           selection->thread_count != 0 || selection->scope != NULL;
}

bool selection_asks_deaths(const struct selection *selection) {
    return !is_any(selection->lifetime) || !is_always(selection->died) ||
           selection->live_at_count != 0 || selection->death_thread_count != 0 ||
           selection->only_leaked || selection->only_temporary || selection->only_foreign_freed;
}

bool selection_asks_chains(const struct selection *selection) {
    return !is_any(selection->last_size) || !is_any(selection->chain_length) ||
           !is_any(selection->chain_lifetime);
}

bool selection_has_view(const struct selection *selection) {
    return !is_always(selection->view);
}

bool selection_asks_ends(const struct selection *selection) {
    return selection_asks_deaths(selection) || selection_asks_chains(selection) ||
           selection->view.from_ns != 0;
}

bool selection_needs_lives(const struct selection *selection) {
    return asks_births(selection) || selection_asks_deaths(selection) ||
           selection_asks_chains(selection);
}

bool selection_is_all(const struct selection *selection) {
    return !selection_has_view(selection) && !selection_asks_contexts(selection) &&
           !selection_needs_lives(selection);
}
