/* SPDX-License-Identifier: MIT */
/* filters.c: options of filters become a selection. See filters.h. */
#include "cli/filters.h"

#include "analyze/report/shellword.h"
#include "cli/filteroption.h"
#include "cli/filtervalue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char filters_help[] =
    "which part of it (ranges are A..B, A.., ..B or A; see docs/filters.md):\n"
    "  --from T, --to T     what happened from T on, before T: 1.5s, 300ms, 40%, start, end,\n"
    "                       peak, mark:NAME, mark:NAME#2\n"
    "  --at T               the same as --to T: what is live at T\n"
    "  --between M1,M2      from one mark of the program to another\n"
    "  --function REGEX, --file REGEX, --module REGEX\n"
    "                       call paths with such a frame\n"
    "  --not-function REGEX, --not-file REGEX, --not-module REGEX\n"
    "                       call paths without one\n"
    "  --path HASH          that call path\n"
    "  --path-depth RANGE   call paths of so many frames\n"
    "  --class CLASS        heap, mapping or pool\n"
    "  --pool NAME          that pool\n"
    "  --group-allocations RANGE, --group-bytes RANGE, --group-live-blocks RANGE,\n"
    "  --group-live-bytes RANGE\n"
    "                       call paths that have so much of it in the whole run\n"
    "of recordings, single blocks:\n"
    "  --size RANGE         of so many bytes: 1K..64K\n"
    "  --first-size RANGE, --last-size RANGE, --chain-length RANGE, --chain-lifetime RANGE\n"
    "                       of the chain that reallocations make: its first and last size,\n"
    "                       how many blocks it had and how long it lived\n"
    "  --lifetime RANGE     that lived so long: 10ms..1s\n"
    "  --allocated T..T, --freed T..T\n"
    "                       that began, ended in that time\n"
    "  --live-at T[,T]      that lived at that moment, at both\n"
    "  --address RANGE      that lay there\n"
    "  --thread ID|NAME, --freed-by ID|NAME\n"
    "                       that this thread allocated, freed\n"
    "  --scope NAME         that were allocated in this scope of the program\n"
    "  --leaked, --temporary, --freed-by-others\n"
    "                       that were never freed; freed at once; freed by another thread\n";

/* ---- What each option is ---- */

enum kind { BYTES, DURATION, COUNT, ADDRESS, SPAN, OTHER };

struct option {
    const char *name;
    int key;
    enum kind kind;
    size_t offset;    /* in struct selection, but of OTHER */
    bool is_repeated; /* may be given more than once */
    bool is_context;  /* works on profiles, too */
};

#define AT(member) offsetof(struct selection, member)
static const struct option table[] = {
    {"from", FILTER_FROM, OTHER, 0, false, false},
    {"to", FILTER_TO, OTHER, 0, false, false},
    {"at", FILTER_AT, OTHER, 0, false, false},
    {"between", FILTER_BETWEEN, OTHER, 0, false, false},
    {"function", FILTER_FUNCTION, OTHER, 0, true, true},
    {"not-function", FILTER_NOT_FUNCTION, OTHER, 0, true, true},
    {"file", FILTER_FILE, OTHER, 0, true, true},
    {"not-file", FILTER_NOT_FILE, OTHER, 0, true, true},
    {"module", FILTER_MODULE, OTHER, 0, true, true},
    {"not-module", FILTER_NOT_MODULE, OTHER, 0, true, true},
    {"path", FILTER_PATH, OTHER, 0, false, true},
    {"path-depth", FILTER_PATH_DEPTH, COUNT, AT(depth), false, true},
    {"class", FILTER_CLASS, OTHER, 0, true, true},
    {"pool", FILTER_POOL, OTHER, 0, false, true},
    {"group-allocations", FILTER_GROUP_ALLOCATIONS, COUNT, AT(group_allocations), false, true},
    {"group-bytes", FILTER_GROUP_BYTES, BYTES, AT(group_bytes), false, true},
    {"group-live-blocks", FILTER_GROUP_LIVE_BLOCKS, COUNT, AT(group_live_blocks), false, true},
    {"group-live-bytes", FILTER_GROUP_LIVE_BYTES, BYTES, AT(group_live_bytes), false, true},
    {"size", FILTER_SIZE, BYTES, AT(size), false, false},
    {"first-size", FILTER_FIRST_SIZE, BYTES, AT(first_size), false, false},
    {"last-size", FILTER_LAST_SIZE, BYTES, AT(last_size), false, false},
    {"chain-length", FILTER_CHAIN_LENGTH, COUNT, AT(chain_length), false, false},
    {"chain-lifetime", FILTER_CHAIN_LIFETIME, DURATION, AT(chain_lifetime), false, false},
    {"lifetime", FILTER_LIFETIME, DURATION, AT(lifetime), false, false},
    {"address", FILTER_ADDRESS, ADDRESS, AT(address), false, false},
    {"allocated", FILTER_ALLOCATED, SPAN, AT(born), false, false},
    {"freed", FILTER_FREED, SPAN, AT(died), false, false},
    {"live-at", FILTER_LIVE_AT, OTHER, 0, false, false},
    {"thread", FILTER_THREAD, OTHER, 0, true, false},
    {"freed-by", FILTER_FREED_BY, OTHER, 0, true, false},
    {"scope", FILTER_SCOPE, OTHER, 0, false, false},
    {"leaked", FILTER_LEAKED, OTHER, 0, false, false},
    {"temporary", FILTER_TEMPORARY, OTHER, 0, false, false},
    {"freed-by-others", FILTER_FREED_BY_OTHERS, OTHER, 0, false, false},
};
enum { OPTIONS = sizeof table / sizeof table[0] };

static const struct option *option_of(int key) {
    for (size_t i = 0; i < OPTIONS; i++) {
        if (table[i].key == key) {
            return &table[i];
        }
    }
    return NULL;
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
    void *at = (char *)selection + given->option->offset;
    switch (given->option->kind) {
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
    return given->option->kind == OTHER
               ? filteroption_apply(selection, given->option->key, given->value, model, error)
               : apply_range(selection, given, model, error);
}

/* ---- The command line ---- */

static bool is_given(const struct filters *filters, int key) {
    for (size_t i = 0; i < filters->count; i++) {
        if (filters->items[i].option->key == key) {
            return true;
        }
    }
    return false;
}

static int keep(struct filters *filters, struct given given) {
    struct given *grown = reallocarray(filters->items, filters->count + 1, sizeof *grown);
    if (grown == NULL) {
        return cli_error("out of memory");
    }
    filters->items = grown;
    filters->items[filters->count++] = given;
    return add_text(filters, &given) == 0 ? CLI_OK : cli_error("out of memory");
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

int filters_take(struct filters *filters, const struct cli_scan *scan, int key) {
    struct given given = {option_of(key), scan->value};
    struct selection scratch = selection_all();
    const char *clash;
    struct error error;
    int result;
    if (!given.option->is_repeated && is_given(filters, key)) {
        return cli_usage(scan->command, "--%s is given twice", given.option->name);
    }
    clash = clash_of(filters, key);
    if (clash != NULL) {
        return cli_usage(scan->command, "%s", clash);
    }
    result = apply(&scratch, &given, NULL, &error);
    selection_free(&scratch);
    if (result != 0) {
        return cli_usage(scan->command, "--%s: %s", given.option->name, error.message);
    }
    return keep(filters, given);
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
        if (!given->option->is_context && !model->recording.present) {
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
