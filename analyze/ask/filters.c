/* SPDX-License-Identifier: MIT */
/* filters.c: options of filters become a selection. See filters.h. */
#include "analyze/ask/filters.h"

#include "analyze/ask/filteroption.h"
#include "analyze/ask/filtervalue.h"
#include "analyze/rows/safetext.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- What each option is ---- */

enum kind { BYTES, DURATION, COUNT, ADDRESS, SPAN, OTHER };

struct trait {
    enum kind kind;
    size_t offset;    /* in struct selection, but of OTHER */
    bool is_repeated; /* may be given more than once */
    bool is_context;  /* works on profiles, too */
};

#define TRAIT(kind, offset, is_repeated, is_context)                                               \
    (&(const struct trait){kind, offset, is_repeated, is_context})
#define AT(member) offsetof(struct selection, member)
#define OF_BLOCKS  TRAIT(OTHER, 0, false, false)
#define OF_PATHS   TRAIT(OTHER, 0, true, true)

const struct option filter_options[] = {
    OPTION_HEADING("which part of it (ranges are A..B, A.., ..B or A; see docs/filters.md)"),
    OPTION_WITH(
        "from", 0, FILTER_FROM, "T",
        "what happened from T on: 1.5s, 300ms, 40%, start, end, peak, mark:NAME, mark:NAME#2",
        OF_BLOCKS),
    OPTION_WITH("to", 0, FILTER_TO, "T", "what happened before T", OF_BLOCKS),
    OPTION_WITH("at", 0, FILTER_AT, "T", "the same as --to T: what is live at T", OF_BLOCKS),
    OPTION_WITH("between", 0, FILTER_BETWEEN, "M1,M2", "from one mark of the program to another",
                OF_BLOCKS),
    OPTION_WITH("function", 0, FILTER_FUNCTION, "REGEX", "call paths with such a function",
                OF_PATHS),
    OPTION_WITH("not-function", 0, FILTER_NOT_FUNCTION, "REGEX", "call paths without one",
                OF_PATHS),
    OPTION_WITH("file", 0, FILTER_FILE, "REGEX", "call paths with a frame in such a source file",
                OF_PATHS),
    OPTION_WITH("not-file", 0, FILTER_NOT_FILE, "REGEX", "call paths without one", OF_PATHS),
    OPTION_WITH("module", 0, FILTER_MODULE, "REGEX",
                "call paths with a frame in such a program file or library", OF_PATHS),
    OPTION_WITH("not-module", 0, FILTER_NOT_MODULE, "REGEX", "call paths without one", OF_PATHS),
    OPTION_WITH("path", 0, FILTER_PATH, "HASH", "that call path", TRAIT(OTHER, 0, false, true)),
    OPTION_WITH("path-depth", 0, FILTER_PATH_DEPTH, "RANGE", "call paths of so many frames",
                TRAIT(COUNT, AT(depth), false, true)),
    OPTION_WITH("class", 0, FILTER_CLASS, "heap|mapping|pool",
                "memory of that class; several are possible", OF_PATHS),
    OPTION_WITH("pool", 0, FILTER_POOL, "NAME", "that pool", TRAIT(OTHER, 0, false, true)),
    OPTION_WITH("group-allocations", 0, FILTER_GROUP_ALLOCATIONS, "RANGE",
                "call paths that allocated so often in the whole run",
                TRAIT(COUNT, AT(group_allocations), false, true)),
    OPTION_WITH("group-bytes", 0, FILTER_GROUP_BYTES, "RANGE", "... so many bytes",
                TRAIT(BYTES, AT(group_bytes), false, true)),
    OPTION_WITH("group-live-blocks", 0, FILTER_GROUP_LIVE_BLOCKS, "RANGE",
                "... that have so many live blocks in the end",
                TRAIT(COUNT, AT(group_live_blocks), false, true)),
    OPTION_WITH("group-live-bytes", 0, FILTER_GROUP_LIVE_BYTES, "RANGE", "... so many live bytes",
                TRAIT(BYTES, AT(group_live_bytes), false, true)),
    OPTION_HEADING("of recordings, single blocks"),
    OPTION_WITH("size", 0, FILTER_SIZE, "RANGE", "of so many bytes: 1K..64K",
                TRAIT(BYTES, AT(size), false, false)),
    OPTION_WITH("first-size", 0, FILTER_FIRST_SIZE, "RANGE",
                "of a chain of reallocations: its first size",
                TRAIT(BYTES, AT(first_size), false, false)),
    OPTION_WITH("last-size", 0, FILTER_LAST_SIZE, "RANGE", "... its last size",
                TRAIT(BYTES, AT(last_size), false, false)),
    OPTION_WITH("chain-length", 0, FILTER_CHAIN_LENGTH, "RANGE", "... how many blocks it had",
                TRAIT(COUNT, AT(chain_length), false, false)),
    OPTION_WITH("chain-lifetime", 0, FILTER_CHAIN_LIFETIME, "RANGE", "... how long it lived",
                TRAIT(DURATION, AT(chain_lifetime), false, false)),
    OPTION_WITH("lifetime", 0, FILTER_LIFETIME, "RANGE", "that lived so long: 10ms..1s",
                TRAIT(DURATION, AT(lifetime), false, false)),
    OPTION_WITH("allocated", 0, FILTER_ALLOCATED, "T..T", "that began in that time",
                TRAIT(SPAN, AT(born), false, false)),
    OPTION_WITH("freed", 0, FILTER_FREED, "T..T", "that ended in that time",
                TRAIT(SPAN, AT(died), false, false)),
    OPTION_WITH("live-at", 0, FILTER_LIVE_AT, "T[,T]", "that lived at that moment, at both",
                OF_BLOCKS),
    OPTION_WITH("address", 0, FILTER_ADDRESS, "RANGE", "that lay there",
                TRAIT(ADDRESS, AT(address), false, false)),
    OPTION_WITH("thread", 0, FILTER_THREAD, "ID|NAME", "that this thread allocated",
                TRAIT(OTHER, 0, true, false)),
    OPTION_WITH("freed-by", 0, FILTER_FREED_BY, "ID|NAME", "that this thread freed",
                TRAIT(OTHER, 0, true, false)),
    OPTION_WITH("scope", 0, FILTER_SCOPE, "NAME",
                "that were allocated in this scope of the program", OF_BLOCKS),
    OPTION_WITH("leaked", 0, FILTER_LEAKED, NULL, "that were never freed", OF_BLOCKS),
    OPTION_WITH("temporary", 0, FILTER_TEMPORARY, NULL,
                "that were freed before their thread's next allocation", OF_BLOCKS),
    OPTION_WITH("freed-by-others", 0, FILTER_FREED_BY_OTHERS, NULL, "that another thread freed",
                OF_BLOCKS),
    OPTION_END};

static const struct trait *trait_of(const struct option *option) {
    return option->data;
}

/* ---- What was given ---- */

struct given {
    const struct option *option;
    const char *value; /* NULL of flags */
};

struct filters {
    struct given *items;
    size_t count;
    char *text;
    bool wants_threads;
};

struct filters *filters_new(void) {
    return calloc(1, sizeof(struct filters));
}

void filters_free(struct filters *filters) {
    if (filters != NULL) {
        free(filters->items);
        free(filters->text);
        free(filters);
    }
}

void filters_want_threads(struct filters *filters) {
    filters->wants_threads = true;
}

bool filters_given(const struct filters *filters) {
    return filters != NULL && filters->count != 0;
}

const char *filters_text(const struct filters *filters) {
    return filters != NULL && filters->text != NULL ? filters->text : "";
}

static int add_text(struct filters *filters, const struct given *given) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL) {
        return -1;
    }
    fprintf(out, "%s%s--%s", filters_text(filters), filters->text != NULL ? " " : "",
            given->option->name);
    if (given->value != NULL) {
        fputc(' ', out);
        shellword_put(out, given->value);
    }
    if (fclose(out) != 0) {
        free(text);
        return -1;
    }
    free(filters->text);
    filters->text = text;
    return 0;
}

/* ---- One option becomes a part of the selection ---- */

static int apply_range(struct selection *selection, const struct given *given,
                       const struct model *model, struct error *error) {
    void *at = (char *)selection + trait_of(given->option)->offset;
    switch (trait_of(given->option)->kind) {
    case BYTES:
        return filtervalue_sizes(given->value, at, error);
    case DURATION:
        return filtervalue_durations(given->value, at, error);
    case COUNT:
        return filtervalue_counts(given->value, at, error);
    case ADDRESS:
        return filtervalue_addresses(given->value, at, error);
    default:
        return filtervalue_times(given->value, model, at, error);
    }
}

static int apply(struct selection *selection, const struct given *given, const struct model *model,
                 struct error *error) {
    return trait_of(given->option)->kind == OTHER
               ? filteroption_apply(selection, given->option->key, given->value, model, error)
               : apply_range(selection, given, model, error);
}

/* ---- What is taken ---- */

static bool is_given(const struct filters *filters, int key) {
    for (size_t i = 0; i < filters->count; i++) {
        if (filters->items[i].option->key == key) {
            return true;
        }
    }
    return false;
}

static int keep(struct filters *filters, struct given given, struct error *error) {
    struct given *grown = reallocarray(filters->items, filters->count + 1, sizeof *grown);
    if (grown == NULL) {
        return error_set(error, "out of memory");
    }
    filters->items = grown;
    filters->items[filters->count++] = given;
    return add_text(filters, &given) == 0 ? 0 : error_set(error, "out of memory");
}

static const char *clash_of(const struct filters *filters, int key) {
    bool ends = is_given(filters, FILTER_TO) || is_given(filters, FILTER_AT);
    bool bounds = ends || is_given(filters, FILTER_FROM);
    if ((key == FILTER_TO || key == FILTER_AT) && ends) {
        return "--to and --at are the same";
    }
    if ((key == FILTER_BETWEEN && bounds) ||
        (key >= FILTER_FROM && key <= FILTER_AT && is_given(filters, FILTER_BETWEEN))) {
        return "--between already says from when to when";
    }
    return NULL;
}

bool filters_have_end(const struct filters *filters) {
    return is_given(filters, FILTER_TO) || is_given(filters, FILTER_AT) ||
           is_given(filters, FILTER_BETWEEN);
}

int filters_take(struct filters *filters, const struct option *option, const char *value,
                 struct error *error) {
    struct given given = {option, value};
    struct selection scratch = selection_all();
    const char *clash = clash_of(filters, option->key);
    struct error why;
    int result;
    if (!trait_of(option)->is_repeated && is_given(filters, option->key)) {
        return error_set(error, "--%s is given twice", option->name);
    }
    if (clash != NULL) {
        return error_set(error, "%s", clash);
    }
    result = apply(&scratch, &given, NULL, &why);
    selection_free(&scratch);
    return result == 0 ? keep(filters, given, error)
                       : error_set(error, "--%s: %s", option->name, why.message);
}

/* ---- The file ---- */

static int need_recording(const struct option *option, struct error *error) {
    return error_set(
        error,
        option->key <= FILTER_BETWEEN
            ? "--%s needs to know when things happened, which a profile does not record; make a "
              "recording with `memtrace record`"
            : "--%s needs single blocks, which a profile does not have; make a "
              "recording with `memtrace record`",
        option->name);
}

int filters_resolve(const struct filters *filters, const struct model *model,
                    struct selection *selection, struct error *error) {
    *selection = selection_all();
    selection->wants_threads = filters != NULL && filters->wants_threads;
    for (size_t i = 0; filters != NULL && i < filters->count; i++) {
        const struct given *given = &filters->items[i];
        struct error why;
        int result = 0;
        if (!trait_of(given->option)->is_context && !model->recording.present) {
            result = need_recording(given->option, error);
        } else if (apply(selection, given, model, &why) != 0) {
            result = error_set(error, "--%s: %s", given->option->name, why.message);
        }
        if (result != 0) {
            selection_free(selection);
            return -1;
        }
    }
    if (selection->view.from_ns >= selection->view.to_ns) {
        selection_free(selection);
        return error_set(error, "nothing is selected: --from is not before --to");
    }
    return 0;
}

int filters_apply(const struct filters *filters, const struct source *source,
                  const struct names *names, const struct replay_options *options,
                  struct filtered *filtered, struct error *error) {
    *filtered = (struct filtered){.model = source->model};
    if (filters_resolve(filters, source->model, &filtered->selection, error) != 0) {
        return -1;
    }
    if (!selection_is_all(&filtered->selection)) {
        filtered->own = selection_model(&filtered->selection, source->model, source->parts, names,
                                        options, error);
        filtered->model = filtered->own;
    }
    return filtered->model != NULL ? 0 : -1;
}

void filtered_close(struct filtered *filtered) {
    model_free(filtered->own);
    selection_free(&filtered->selection);
    *filtered = (struct filtered){.selection = selection_all()};
}
