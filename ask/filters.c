/* SPDX-License-Identifier: MIT */
/* filters.c: options of filters become a selection. See filters.h. */
#include "ask/filters.h"

#include "analyze/base/job.h"
#include "analyze/query/query.h"
#include "analyze/rows/safetext.h"
#include "ask/option.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- What each option does ---- */

#define CLASSES "heap|mapping|pool" /* in the order of enum model_class */
#define ARENAS  "main|other"

/* A filter on its way into a selection. */
struct applying {
    struct selection *selection;
    const struct trait *trait;
    const char *value;         /* NULL of flags */
    const struct model *model; /* NULL: only what the value looks like is checked */
    struct error *error;
};

/* What ranges are of. */
struct range_of {
    int (*parse)(const char *text, uint64_t *value);
    const char *what;
};

struct trait {
    int (*apply)(const struct applying *to); /* 0 or -1 */
    size_t offset; /* of the member in the selection; of patterns the enum selection_part */
    const struct range_of *range;
    bool is_negated;  /* of patterns */
    bool is_repeated; /* may be given more than once */
    bool is_context;  /* works on profiles, too */
};

static void *member_of(const struct applying *to) {
    return (char *)to->selection + to->trait->offset;
}

static int filters_address(const char *text, uint64_t *address) {
    char *end;
    if (!isxdigit((unsigned char)text[0])) {
        return -1;
    }
    errno = 0;
    *address = strtoull(text, &end, 16);
    return errno == 0 && *end == '\0' ? 0 : -1;
}

static const struct range_of sizes = {quantity_bytes, "sizes (try 1K..64K, 4K.. or ..100)"};
static const struct range_of durations = {quantity_duration,
                                          "durations (try 10ms..2s, 1s.. or ..50us)"};
static const struct range_of counts = {quantity_u64, "numbers (try 2..10, 100.. or 1)"};
static const struct range_of addresses = {filters_address,
                                          "addresses (try 0x7f00..0x7fff or 0x55d0c0de)"};

static int apply_range(const struct applying *to) {
    return filtervalue_range(to->value, to->trait->range->parse, to->trait->range->what,
                             member_of(to), to->error);
}

/* Of the group's allocations, where it says so: 50%.. */
static int apply_shares(const struct applying *to) {
    return strchr(to->value, '%') == NULL
               ? apply_range(to)
               : filtervalue_percents(to->value, &to->selection->group_live_least,
                                      &to->selection->group_live_most, to->error);
}

static int apply_arena(const struct applying *to) {
    int place = option_word(ARENAS, to->value);
    to->selection->arena = place == 0 ? SELECTION_MAIN_ARENA : SELECTION_OTHER_ARENA;
    return place >= 0 ? 0 : error_set(to->error, "'%s' is not an arena: main or other", to->value);
}

static int apply_span(const struct applying *to) {
    return filtervalue_times(to->value, to->model, member_of(to), to->error);
}

/* Also of all times: what was never freed is not selected. */
static int apply_freed(const struct applying *to) {
    to->selection->only_freed = true;
    return apply_span(to);
}

static int apply_marks(const struct applying *to) {
    return filtervalue_marks(to->value, to->model, member_of(to), to->error);
}

static int apply_time(const struct applying *to) {
    return filtervalue_time(to->value, to->model, member_of(to), to->error);
}

static int apply_flag(const struct applying *to) {
    *(bool *)member_of(to) = true;
    return 0;
}

static int apply_pattern(const struct applying *to) {
    return selection_add_pattern(to->selection, (enum selection_part)to->trait->offset,
                                 to->trait->is_negated, to->value, to->error);
}

static int apply_path(const struct applying *to) {
    uint64_t *path = member_of(to);
    return filters_address(to->value, path) == 0 && *path != 0
               ? 0
               : error_set(to->error, "'%s' is not the hash of a call path; --paths shows them",
                           to->value);
}

static int apply_class(const struct applying *to) {
    int place = option_word(CLASSES, to->value);
    to->selection->classes |= place >= 0 ? 1u << place : 0;
    return place >= 0
               ? 0
               : error_set(to->error, "'%s' is not a class: heap, mapping or pool", to->value);
}

static int apply_pool(const struct applying *to) {
    const struct model *model = to->model;
    bool found = model == NULL;
    for (size_t i = 0; !found && i < model->context_count; i++) {
        const struct model_context *context = &model->contexts[i];
        found = context->class == MODEL_POOL &&
                strcmp(model_class_name(model, context), to->value) == 0;
    }
    to->selection->pool = to->value;
    return found ? 0 : error_set(to->error, "there is no pool '%s'", to->value);
}

/* Whatever it is called: there may be none. */
static int apply_scope(const struct applying *to) {
    to->selection->scope = to->value;
    return 0;
}

static int apply_where(const struct applying *to) {
    to->selection->where = to->value;
    return to->value[0] != '\0' ? 0 : error_set(to->error, "there is no expression");
}

static int apply_mapping(const struct applying *to) {
    uint64_t *number = &to->selection->mappings.number;
    return quantity_u64(to->value, number) == 0 && *number != 0
               ? 0
               : error_set(to->error,
                           "'%s' is not the number of a mapping; --show-mappings has them",
                           to->value);
}

/* As /proc/PID/maps has them; '.', or '?' as in patterns of files: either. */
static int apply_permissions(const struct applying *to) {
    static const char *const letters[] = {"r-.?", "w-.?", "x-.?", "ps.?"};
    size_t size = strlen(to->value);
    bool fits = size == 3 || size == 4;
    for (size_t i = 0; fits && i < size; i++) {
        fits = strchr(letters[i], to->value[i]) != NULL;
    }
    to->selection->mappings.permissions = to->value;
    return fits ? 0
                : error_set(to->error,
                            "'%s' is not a mapping's permissions (try rw-p, r-x, .w. or ..xs; "
                            "'.' is either)",
                            to->value);
}

static int apply_moments(const struct applying *to) {
    uint64_t *moments = to->selection->live_at_ns;
    const char *comma = strchr(to->value, ',');
    const char *first =
        comma != NULL ? job_text("%.*s", (int)(comma - to->value), to->value) : to->value;
    int result = filtervalue_time(first, to->model, &moments[0], to->error);
    if (result == 0 && comma != NULL) {
        result = filtervalue_time(comma + 1, to->model, &moments[1], to->error);
    }
    to->selection->live_at_count = comma != NULL ? 2 : 1;
    return result;
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
static int filters_take_thread(uint32_t **ids, size_t *count, size_t *room,
                               const struct model *model, const char *value, struct error *error) {
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
            if (matches) {
                job_grow(ids, room, *count, sizeof **ids);
                (*ids)[(*count)++] = thread->id;
            }
        }
    }
    return *count != before ? 0 : no_such_thread(model, value, error);
}

static int apply_thread(const struct applying *to) {
    struct selection *selection = to->selection;
    return filters_take_thread(&selection->threads, &selection->thread_count,
                               &selection->thread_room, to->model, to->value, to->error);
}

static int apply_freed_by(const struct applying *to) {
    struct selection *selection = to->selection;
    return filters_take_thread(&selection->death_threads, &selection->death_thread_count,
                               &selection->death_thread_room, to->model, to->value, to->error);
}

/* ---- The table ---- */

/* Those that say from when to when: of what they are one answer. */
enum { FILTER_FROM = 1, FILTER_END, FILTER_BETWEEN };

#define FILTER(name_, key_, value_, help_, ...)                                                    \
    {                                                                                              \
        .name = (name_), .value = (value_), .help = (help_), .type = OPTION_CALL,                  \
        .call = filters_take, .key = (key_), .data = &(const struct trait) {                       \
            .apply = __VA_ARGS__                                                                   \
        }                                                                                          \
    }
#define AT(member)  offsetof(struct selection, member)
#define RANGE(what) apply_range, .range = &(what)
#define PATTERN(part, negated)                                                                     \
    apply_pattern, .offset = SELECTION_##part, .is_negated = (negated), .is_repeated = true,       \
                   .is_context = true

static int filters_take(void *filters, const struct option *option, const char *value,
                        struct error *error);

const struct option filter_options[] = {
    OPTION_HEADING("which part of it (ranges are A..B, A.., ..B or A; see docs/filters.md)"),
    FILTER("from", FILTER_FROM, "T",
           "what happened from T on: 1.5s, 300ms, 40%, start, end, peak, mark:NAME, mark:NAME#2",
           apply_time, .offset = AT(view.from_ns)),
    FILTER("to", FILTER_END, "T", "what happened before T", apply_time, .offset = AT(view.to_ns)),
    FILTER("at", FILTER_END, "T", "the same as --to T: what is live at T", apply_time,
           .offset = AT(view.to_ns)),
    FILTER("between", FILTER_BETWEEN, "M1,M2", "from one mark of the program to another",
           apply_marks, .offset = AT(view)),
    FILTER("function", 0, "REGEX", "call paths with such a function", PATTERN(FUNCTION, false)),
    FILTER("not-function", 0, "REGEX", "call paths without one", PATTERN(FUNCTION, true)),
    FILTER("file", 0, "REGEX", "call paths with a frame in such a source file",
           PATTERN(FILE, false)),
    FILTER("not-file", 0, "REGEX", "call paths without one", PATTERN(FILE, true)),
    FILTER("module", 0, "REGEX", "call paths with a frame in such a program file or library",
           PATTERN(MODULE, false)),
    FILTER("not-module", 0, "REGEX", "call paths without one", PATTERN(MODULE, true)),
    FILTER("path", 0, "HASH", "that call path", apply_path, .offset = AT(path), .is_context = true),
    FILTER("path-depth", 0, "RANGE", "call paths with that many frames", RANGE(counts),
           .offset = AT(depth), .is_context = true),
    FILTER("class", 0, CLASSES, "memory of that class; several are possible", apply_class,
           .is_repeated = true, .is_context = true),
    FILTER("pool", 0, "NAME", "that pool", apply_pool, .is_context = true),
    FILTER("group-allocations", 0, "RANGE", "call paths that allocated that often in the whole run",
           RANGE(counts), .offset = AT(group_allocations), .is_context = true),
    FILTER("group-bytes", 0, "RANGE", "... that many bytes", RANGE(sizes),
           .offset = AT(group_bytes), .is_context = true),
    FILTER("group-live-blocks", 0, "RANGE",
           "... that have that many live blocks at the end, or that share: 50%..", apply_shares,
           .range = &counts, .offset = AT(group_live_blocks), .is_context = true),
    FILTER("group-live-bytes", 0, "RANGE", "... that many live bytes", RANGE(sizes),
           .offset = AT(group_live_bytes), .is_context = true),
    FILTER("group-interval", 0, "RANGE",
           "... that long from their first allocation to the last one: 10ms..1s (recordings)",
           RANGE(durations), .offset = AT(group_interval)),
    FILTER("group-maximum-at", 0, "T..T",
           "... that first held their own maximum in that time (recordings)", apply_span,
           .offset = AT(group_maximum)),
    OPTION_HEADING("of recordings, single blocks"),
    FILTER("size", 0, "RANGE", "with that many bytes: 1K..64K", RANGE(sizes), .offset = AT(size)),
    FILTER("first-size", 0, "RANGE", "of a chain of reallocations: its first size", RANGE(sizes),
           .offset = AT(first_size)),
    FILTER("last-size", 0, "RANGE", "... its last size", RANGE(sizes), .offset = AT(last_size)),
    FILTER("chain-length", 0, "RANGE", "... how many blocks it had", RANGE(counts),
           .offset = AT(chain_length)),
    FILTER("chain-position", 0, "RANGE", "... the block's place in it, from 1 on", RANGE(counts),
           .offset = AT(chain_position)),
    FILTER("chain-leaked", 0, NULL, "... whose last block was never freed", apply_flag,
           .offset = AT(only_chain_leaked)),
    FILTER("chain-lifetime", 0, "RANGE", "... how long it lived", RANGE(durations),
           .offset = AT(chain_lifetime)),
    FILTER("lifetime", 0, "RANGE", "that lived that long: 10ms..1s", RANGE(durations),
           .offset = AT(lifetime)),
    FILTER("allocated", 0, "T..T", "that began in that time", apply_span, .offset = AT(born)),
    FILTER("freed", 0, "T..T", "that ended in that time", apply_freed, .offset = AT(died)),
    FILTER("live-at", 0, "T[,T]", "that lived at that moment, at both", apply_moments),
    FILTER("address", 0, "RANGE", "that lay there", RANGE(addresses), .offset = AT(address)),
    FILTER("mapping", 0, "NUMBER",
           "that lay in this mapping of the process, by its number in the report of mappings",
           apply_mapping),
    FILTER("mapping-permissions", 0, "PATTERN",
           "that lay in mappings with these permissions: rw-p, r-x, .w. ('.' is either)",
           apply_permissions),
    FILTER("mapping-peak-rss", 0, "RANGE",
           "that lay in mappings of which at most that many bytes were resident: 1M..",
           RANGE(sizes), .offset = AT(mappings.peak_resident)),
    FILTER("thread", 0, "ID|NAME", "that this thread allocated", apply_thread, .is_repeated = true),
    FILTER("freed-by", 0, "ID|NAME", "that this thread freed", apply_freed_by, .is_repeated = true),
    FILTER("freed-path", 0, "HASH", "that this call path freed", apply_path,
           .offset = AT(freed_path)),
    FILTER("mapped", 0, NULL, "that have a mapping of their own", apply_flag,
           .offset = AT(only_mapped)),
    FILTER("arena", 0, ARENAS, "of malloc's main arena, or of another one", apply_arena),
    FILTER("scope", 0, "NAME", "that were allocated in this scope of the program", apply_scope),
    FILTER("leaked", 0, NULL, "that were never freed", apply_flag, .offset = AT(only_leaked)),
    FILTER("temporary", 0, NULL, "that were freed before their thread's next allocation",
           apply_flag, .offset = AT(only_temporary)),
    FILTER("freed-by-others", 0, NULL, "that another thread freed", apply_flag,
           .offset = AT(only_foreign_freed)),
    FILTER("where", 0, "SQL",
           "for which this holds, of the columns of the table allocations: 'size % 4096 = 0'",
           apply_where),
    OPTION_END};

static const struct trait *trait_of(const struct option *option) {
    return option->data;
}

/* ---- What was given ---- */

enum filters_kind filters_kind(const struct option *filter) {
    return filter->key != 0               ? FILTERS_TIME
           : trait_of(filter)->is_context ? FILTERS_PATHS
                                          : FILTERS_BLOCKS;
}

bool filters_is_repeated(const struct option *filter) {
    return trait_of(filter)->is_repeated;
}

bool filters_given(const struct filters *filters) {
    return filters->count != 0;
}

static int filters_apply_one(struct selection *selection, const struct filter_given *given,
                             const struct model *model, struct error *error) {
    const struct applying to = {selection, trait_of(given->option), given->value, model, error};
    return to.trait->apply(&to);
}

static bool is_given(const struct filters *filters, int key) {
    for (size_t i = 0; i < filters->count; i++) {
        if (filters->items[i].option->key == key) {
            return true;
        }
    }
    return false;
}

static bool is_repetition(const struct filters *filters, const struct option *option) {
    for (size_t i = 0; i < filters->count && !trait_of(option)->is_repeated; i++) {
        if (filters->items[i].option == option) {
            return true;
        }
    }
    return false;
}

void filters_put_option(FILE *out, const char *prefix, const struct filter_given *given) {
    fprintf(out, " --%s%s", prefix, given->option->name);
    if (given->value != NULL) {
        fputc(' ', out);
        shellword_put(out, given->value);
    }
}

static void filters_keep(struct filters *filters, const struct filter_given *given) {
    struct job_printing *text = job_print();
    job_grow(&filters->items, &filters->room, filters->count, sizeof *filters->items);
    filters->items[filters->count++] = *given;
    fputs(filters->text != NULL ? filters->text : "", text->out);
    filters_put_option(text->out, "", given);
    filters->text = job_printed(text) + (filters->text == NULL); /* a space is between two */
}

static const char *clash_of(const struct filters *filters, int key) {
    if (key == FILTER_END && is_given(filters, FILTER_END)) {
        return "--to and --at are the same";
    }
    if ((key == FILTER_BETWEEN &&
         (is_given(filters, FILTER_FROM) || is_given(filters, FILTER_END))) ||
        ((key == FILTER_FROM || key == FILTER_END) && is_given(filters, FILTER_BETWEEN))) {
        return "--between already says from when to when";
    }
    return NULL;
}

bool filters_have_end(const struct filters *filters) {
    return is_given(filters, FILTER_END) || is_given(filters, FILTER_BETWEEN);
}

static int filters_take(void *member, const struct option *option, const char *value,
                        struct error *error) {
    struct filters *filters = member;
    struct filter_given given = {option, value};
    struct selection scratch = selection_all();
    const char *clash = clash_of(filters, option->key);
    struct error why;
    if (is_repetition(filters, option)) {
        return error_set(error, "--%s is given twice", option->name);
    }
    if (clash != NULL) {
        return error_set(error, "%s", clash);
    }
    if (filters_apply_one(&scratch, &given, NULL, &why) != 0) {
        return error_set(error, "--%s: %s", option->name, why.message);
    }
    filters_keep(filters, &given);
    return 0;
}

/* ---- The file ---- */

/* Times such as "mark:loaded" and names of threads need the file. 0 or -1. */
static int filters_resolve(const struct filters *filters, const struct model *model,
                           struct selection *selection, struct error *error) {
    *selection = selection_all();
    selection->wants_threads = filters->wants_threads;
    for (size_t i = 0; i < filters->count; i++) {
        const struct filter_given *given = &filters->items[i];
        struct error why;
        int result = 0;
        if (!trait_of(given->option)->is_context && !model->recording.present) {
            result = error_set(
                error,
                given->option->key != 0
                    ? "--%s needs to know when things happened, which a profile does not record; "
                      "make a recording with `memtrace record`"
                    : "--%s needs single blocks, which a profile does not have; make a "
                      "recording with `memtrace record`",
                given->option->name);
        } else if (filters_apply_one(selection, given, model, &why) != 0) {
            result = error_set(error, "--%s: %s", given->option->name, why.message);
        }
        if (result != 0) {
            return -1;
        }
    }
    if (selection->view.from_ns >= selection->view.to_ns) {
        return error_set(error, "nothing is selected: --from is not before --to");
    }
    return 0;
}

/* What passes of their own tell before blocks can be chosen. */
static int filters_find(struct selection *selection, const struct source *source,
                        const struct names *names, const struct replay_options *options,
                        struct error *error) {
    const struct query_source asked = {.whole = source->model,
                                       .names = names,
                                       .parts = source->parts,
                                       .run = source->run,
                                       .replay = options};
    const struct selection_mappings *mappings = &selection->mappings;
    const char *refused = NULL; /* the option whose value was */
    struct error why;
    if (selection_asks_mappings(mappings) &&
        selection_find_mappings(&selection->mappings, source->parts, &why) != 0) {
        refused = mappings->number != 0           ? "mapping"
                  : mappings->permissions != NULL ? "mapping-permissions"
                                                  : "mapping-peak-rss";
    } else if (selection->where != NULL &&
               query_where(&asked, selection->where, &selection->where_holds, &why) != 0) {
        refused = "where";
    }
    if (refused != NULL) {
        return error_set(error, "--%s: %s", refused, why.message);
    }
    return selection_asks_group_times(selection)
               ? selection_find_groups(selection, source->model, source->parts, options, error)
               : 0;
}

int filters_select(const struct filters *filters, const struct source *source,
                   const struct names *names, const struct replay_options *options,
                   struct selection *selection, struct error *error) {
    return filters_resolve(filters, source->model, selection, error) == 0
               ? filters_find(selection, source, names, options, error)
               : -1;
}
