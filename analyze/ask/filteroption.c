/* SPDX-License-Identifier: MIT */
/* filteroption.c: options of filters that are no ranges become parts of a selection. See
 * filteroption.h. */
#include "analyze/ask/filteroption.h"

#include "analyze/ask/filters.h"
#include "analyze/ask/filtervalue.h"
#include "analyze/ask/quantity.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int add_pattern(struct selection *selection, int key, const char *value,
                       struct error *error) {
    int which = key - FILTER_FUNCTION; /* function, not-function, file, ... */
    return selection_add_pattern(selection, (enum selection_part)(which / 2), which % 2 != 0, value,
                                 error);
}

static int take_path(struct selection *selection, const char *value, struct error *error) {
    char *end;
    errno = 0;
    selection->path = strtoull(value, &end, 16);
    return errno == 0 && isxdigit((unsigned char)value[0]) && *end == '\0' && selection->path != 0
               ? 0
               : error_set(error, "'%s' is not the hash of a call path; --paths shows them", value);
}

static int take_class(struct selection *selection, const char *value, struct error *error) {
    static const char *const names[] = {"heap", "mapping", "pool"};
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(value, names[i]) == 0) {
            selection->classes |= 1u << i;
            return 0;
        }
    }
    return error_set(error, "'%s' is not a class: heap, mapping or pool", value);
}

static int take_pool(struct selection *selection, const struct model *model, const char *value,
                     struct error *error) {
    bool found = model == NULL;
    for (size_t i = 0; !found && i < model->context_count; i++) {
        const struct model_context *context = &model->contexts[i];
        found =
            context->class == MODEL_POOL && strcmp(model_class_name(model, context), value) == 0;
    }
    selection->pool = value;
    return found ? 0 : error_set(error, "there is no pool '%s'", value);
}

static int take_moments(struct selection *selection, const struct model *model, const char *value,
                        struct error *error) {
    const char *comma = strchr(value, ',');
    char *first = comma != NULL ? strndup(value, (size_t)(comma - value)) : strdup(value);
    int result = first != NULL ? filtervalue_time(first, model, &selection->live_at_ns[0], error)
                               : error_set(error, "out of memory");
    free(first);
    if (result == 0 && comma != NULL) {
        result = filtervalue_time(comma + 1, model, &selection->live_at_ns[1], error);
    }
    selection->live_at_count = comma != NULL ? 2 : 1;
    return result;
}

/* ---- Threads ---- */

static int add_thread(uint32_t **ids, size_t *count, uint32_t id) {
    uint32_t *grown = reallocarray(*ids, *count + 1, sizeof *grown);
    if (grown == NULL) {
        return -1;
    }
    grown[(*count)++] = id;
    *ids = grown;
    return 0;
}

static int no_such_thread(const struct model *model, const char *value, struct error *error) {
    char names[300] = "";
    size_t used = 0;
    for (size_t i = 0; i < model->thread_count && used + 64 < sizeof names; i++) {
        const struct model_thread *thread = &model->threads[i];
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%u %s", i != 0 ? ", " : "",
                                 thread->id, thread->name);
        if (used + 64 >= sizeof names && i + 1 < model->thread_count) {
            snprintf(names + used, sizeof names - used, ", ...");
        }
    }
    return error_set(error, "there is no thread '%s'; threads are: %s", value, names);
}

/* A number is a thread of the report's table, or else the kernel's number; a name may mean many. */
static int take_thread(uint32_t **ids, size_t *count, const struct model *model, const char *value,
                       struct error *error) {
    size_t before = *count;
    uint64_t number;
    bool is_number = quantity_u64(value, &number) == 0;
    if (model == NULL) {
        return 0;
    }
    for (int pass = 0; pass < (is_number ? 3 : 1) && *count == before; pass++) {
        for (size_t i = 0; i < model->thread_count; i++) {
            const struct model_thread *thread = &model->threads[i];
            bool matches = pass == 0 && is_number ? thread->id == number
                           : pass == 1            ? thread->tid == number
                                                  : strcmp(thread->name, value) == 0;
            if (matches && add_thread(ids, count, thread->id) != 0) {
                return error_set(error, "out of memory");
            }
        }
    }
    return *count != before ? 0 : no_such_thread(model, value, error);
}

/* ---- Any of them ---- */

int filteroption_apply(struct selection *selection, int key, const char *value,
                       const struct model *model, struct error *error) {
    switch (key) {
    case FILTER_FROM:
        return filtervalue_time(value, model, &selection->view.from_ns, error);
    case FILTER_TO:
    case FILTER_AT:
        return filtervalue_time(value, model, &selection->view.to_ns, error);
    case FILTER_BETWEEN:
        return filtervalue_marks(value, model, &selection->view, error);
    case FILTER_PATH:
        return take_path(selection, value, error);
    case FILTER_CLASS:
        return take_class(selection, value, error);
    case FILTER_POOL:
        return take_pool(selection, model, value, error);
    case FILTER_LIVE_AT:
        return take_moments(selection, model, value, error);
    case FILTER_THREAD:
        return take_thread(&selection->threads, &selection->thread_count, model, value, error);
    case FILTER_FREED_BY:
        return take_thread(&selection->death_threads, &selection->death_thread_count, model, value,
                           error);
    case FILTER_SCOPE:
        selection->scope = value;
        return 0;
    case FILTER_LEAKED:
        selection->only_leaked = true;
        return 0;
    case FILTER_TEMPORARY:
        selection->only_temporary = true;
        return 0;
    case FILTER_FREED_BY_OTHERS:
        selection->only_foreign_freed = true;
        return 0;
    default:
        return add_pattern(selection, key, value, error);
    }
}
