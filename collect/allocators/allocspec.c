/* SPDX-License-Identifier: MIT */
/* allocspec.c: reads specifications of functions that allocate. See allocspec.h. */
#include "collect/allocators/allocspec.h"

#include "analyze/base/array.h"
#include "analyze/base/scope.h"
#include "collect/allocators/allocsets.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char form[] = "SYMBOL(size=N)=alloc, SYMBOL(old=J,size=N)=realloc or "
                           "SYMBOL(ptr=P)=free, each with :POOL or :heap behind it";

const char *const allocspec_kinds[MEMTRACE_ALLOCATOR_KINDS] = {
    [MEMTRACE_ALLOCATOR_ALLOC] = "alloc",     [MEMTRACE_ALLOCATOR_ZALLOC] = "zalloc",
    [MEMTRACE_ALLOCATOR_REALLOC] = "realloc", [MEMTRACE_ALLOCATOR_FREE] = "free",
    [MEMTRACE_ALLOCATOR_RESET] = "reset",
};

/* ---- What is in the brackets ---- */

enum key { KEY_SIZE, KEY_ALIGN, KEY_OLD, KEY_PTR, KEYS };
static const char *const keys[KEYS] = {"size", "align", "old", "ptr"};

/* Which keys a kind may have. */
static const bool fitting[MEMTRACE_ALLOCATOR_KINDS][KEYS] = {
    [MEMTRACE_ALLOCATOR_ALLOC] = {[KEY_SIZE] = true, [KEY_ALIGN] = true, [KEY_PTR] = true},
    [MEMTRACE_ALLOCATOR_ZALLOC] = {[KEY_SIZE] = true, [KEY_ALIGN] = true, [KEY_PTR] = true},
    [MEMTRACE_ALLOCATOR_REALLOC] = {true, true, true, true},
    [MEMTRACE_ALLOCATOR_FREE] = {[KEY_PTR] = true},
    [MEMTRACE_ALLOCATOR_RESET] = {false},
};

static uint8_t *allocspec_place(struct allocspec *spec, enum key key) {
    return key == KEY_SIZE    ? &spec->signature.size
           : key == KEY_ALIGN ? &spec->signature.align
           : key == KEY_OLD   ? &spec->signature.old_block
                              : &spec->signature.pointer;
}

/* Instead of a number: as the function says that this one calls. */
static const char inner[] = "inner";

/* The number of an argument, up to `end`. 0: it is none. */
static uint8_t allocspec_read_number(const char *text, const char *end) {
    return end - text == 1 && *text >= '1' && *text < '1' + MEMTRACE_ALLOCATOR_NUMBERS
               ? (uint8_t)(*text - '0')
               : 0;
}

/* "size=1*2" */
static int read_item(struct allocspec *spec, const char *item, int length, struct error *error) {
    const char *equals = memchr(item, '=', (size_t)length);
    const char *end = item + length;
    const char *star;
    size_t name = equals != NULL ? (size_t)(equals - item) : (size_t)length;
    unsigned key = 0;
    uint8_t *place;
    while (key < KEYS && (strlen(keys[key]) != name || strncmp(item, keys[key], name) != 0)) {
        key++;
    }
    if (equals == NULL || key == KEYS) {
        return error_set(error,
                         "\"%s\": \"%.*s\" is not known in brackets: size=, align=, old= and "
                         "ptr= are",
                         spec->text, length, item);
    }
    if (!fitting[spec->signature.kind][key]) {
        return error_set(error, "\"%s\": \"%.*s\" says nothing of what %s: leave it out",
                         spec->text, length, item,
                         spec->signature.kind == MEMTRACE_ALLOCATOR_RESET ? "resets a pool"
                         : spec->signature.kind == MEMTRACE_ALLOCATOR_FREE
                             ? "frees (ptr= alone does)"
                             : "allocates");
    }
    place = allocspec_place(spec, key);
    if (*place != 0 || (key == KEY_SIZE && spec->is_outer)) {
        return error_set(error, "\"%s\": \"%s=\" is there twice", spec->text, keys[key]);
    }
    if (key == KEY_SIZE && (size_t)(end - equals) == strlen(inner) + 1 &&
        strncmp(equals + 1, inner, strlen(inner)) == 0) {
        spec->is_outer = true;
        return 0;
    }
    star = key == KEY_SIZE ? memchr(item, '*', (size_t)length) : NULL;
    *place = allocspec_read_number(equals + 1, star != NULL ? star : end);
    spec->signature.times =
        star != NULL ? allocspec_read_number(star + 1, end) : spec->signature.times;
    if (*place == 0 || (star != NULL && spec->signature.times == 0)) {
        return error_set(
            error, "\"%s\": \"%.*s\": an argument is named by its number, 1 to %d, as in size=1%s",
            spec->text, length, item, MEMTRACE_ALLOCATOR_NUMBERS,
            key == KEY_SIZE ? " or size=1*2" : "");
    }
    return 0;
}

static int read_items(struct allocspec *spec, const char *items, int length, struct error *error) {
    while (length > 0) {
        const char *comma = memchr(items, ',', (size_t)length);
        int item = comma != NULL ? (int)(comma - items) : length;
        if (read_item(spec, items, item, error) != 0) {
            return -1;
        }
        items += item + 1;
        length -= item + 1;
    }
    return 0;
}

/* What must be there, and what stands for what was left out. */
static int allocspec_complete(struct allocspec *spec, struct error *error) {
    if (spec->signature.kind == MEMTRACE_ALLOCATOR_FREE && spec->signature.pointer == 0) {
        spec->signature.pointer = 1;
    }
    if (spec->signature.kind < MEMTRACE_ALLOCATOR_FREE && spec->signature.size == 0 &&
        !spec->is_outer) {
        return error_set(error,
                         "\"%s\": the size is missing: say which argument it is, as in "
                         "%s(size=1)=%s, or size=inner if it calls a function that is named, too",
                         spec->text, spec->symbol, allocspec_kinds[spec->signature.kind]);
    }
    if (spec->signature.kind == MEMTRACE_ALLOCATOR_REALLOC && spec->signature.old_block == 0) {
        return error_set(error,
                         "\"%s\": the old block is missing: say which argument it is, as in "
                         "%s(old=1,size=2)=realloc",
                         spec->text, spec->symbol);
    }
    if (spec->signature.kind == MEMTRACE_ALLOCATOR_RESET && spec->signature.is_heap) {
        return error_set(error, "\"%s\": the heap is not reset: name the pool, as in %s=reset:POOL",
                         spec->text, spec->symbol);
    }
    return 0;
}

/* ---- The whole ---- */

/* "alloc:POOL" */
static int read_kind(struct allocspec *spec, const char *text, struct error *error) {
    size_t length = strcspn(text, ":");
    unsigned kind = 0;
    while (kind < MEMTRACE_ALLOCATOR_KINDS && (strlen(allocspec_kinds[kind]) != length ||
                                               strncmp(text, allocspec_kinds[kind], length) != 0)) {
        kind++;
    }
    if (kind == MEMTRACE_ALLOCATOR_KINDS) {
        return error_set(error,
                         "\"%s\": \"%.*s\" behind the last = is not what a function does: alloc, "
                         "zalloc, realloc, free or reset",
                         spec->text, (int)length, text);
    }
    spec->signature.kind = (uint8_t)kind;
    if (text[length] == '\0') {
        return 0;
    }
    text += length + 1;
    if (*text == '\0' || strlen(text) >= sizeof spec->pool) {
        return error_set(error, "\"%s\": the pool's name, behind the colon, has 1 to %d bytes",
                         spec->text, MEMTRACE_SITE_NAME - 1);
    }
    for (const char *at = text; *at != '\0'; at++) {
        if (iscntrl((unsigned char)*at)) {
            return error_set(error, "\"%s\": a control character in the pool's name", spec->text);
        }
    }
    spec->signature.is_heap = strcmp(text, "heap") == 0;
    if (!spec->signature.is_heap) {
        strcpy(spec->pool, text);
    }
    return 0;
}

/* Where the bracket opens that closes at the end of the text, if what is in it are items and not a
 * function's parameters, which are part of its name. NULL: there is none. */
static const char *find_items(const char *text, const char *end) {
    const char *at = end;
    int depth = 0;
    if (end == text || end[-1] != ')') {
        return NULL;
    }
    do {
        at--;
        depth += *at == ')' ? 1 : *at == '(' ? -1 : 0;
    } while (at > text && depth > 0);
    return depth == 0 && (at + 2 == end || memchr(at, '=', (size_t)(end - at)) != NULL) ? at : NULL;
}

/* The object before a '!', which an operator's name may have, too. */
static const char *find_symbol(const char *text, const char *end) {
    const char *mark = memchr(text, '!', (size_t)(end - text));
    const char *word = strstr(text, "operator");
    return mark != NULL && (word == NULL || word > mark) ? mark + 1 : text;
}

static int allocspec_read_names(struct allocspec *spec, const char *end, struct error *error) {
    const char *symbol = find_symbol(spec->text, end);
    if (symbol == end) {
        return error_set(error, "\"%s\": the function's name is missing: %s", spec->text, form);
    }
    if (symbol == spec->text + 1) {
        return error_set(error, "\"%s\": the object's name is missing before the !", spec->text);
    }
    spec->symbol = strndup(symbol, (size_t)(end - symbol));
    if (symbol != spec->text) {
        spec->object = strndup(spec->text, (size_t)(symbol - spec->text) - 1);
    }
    if (spec->symbol == NULL || (symbol != spec->text && spec->object == NULL)) {
        return error_set(error, "out of memory");
    }
    /* "operator*" is a name, and so are parameters with pointers. */
    spec->is_pattern = strpbrk(spec->symbol, "*?") != NULL &&
                       strstr(spec->symbol, "operator*") == NULL &&
                       strchr(spec->symbol, '(') == NULL;
    return 0;
}

static int read_spec(struct allocspec *spec, struct error *error) {
    const char *equals = strrchr(spec->text, '=');
    const char *items;
    if (equals == NULL) {
        return error_set(error,
                         "\"%s\": there is no ready-made set of this name, and what a function "
                         "does is missing: %s",
                         spec->text, form);
    }
    if (equals[1] >= '1' && equals[1] <= '9' && strchr(equals, ')') != NULL) {
        return error_set(error,
                         "\"%s\": what the function does is missing at the end: =alloc, "
                         "=zalloc, =realloc, =free or =reset",
                         spec->text);
    }
    if (read_kind(spec, equals + 1, error) != 0) {
        return -1;
    }
    items = find_items(spec->text, equals);
    if (allocspec_read_names(spec, items != NULL ? items : equals, error) != 0 ||
        (items != NULL && read_items(spec, items + 1, (int)(equals - items) - 2, error) != 0)) {
        return -1;
    }
    return allocspec_complete(spec, error);
}

static void free_spec(struct allocspec *spec) {
    free(spec->text);
    free(spec->object);
    free(spec->symbol);
}

static int allocspec_add_one(struct allocspecs *specs, const char *text, const char *set,
                             struct error *error) {
    struct allocspec *spec;
    if (array_grow(&specs->items, &specs->room, specs->count, sizeof *specs->items) != 0) {
        return error_set(error, "out of memory");
    }
    spec = &specs->items[specs->count];
    *spec = (struct allocspec){.text = strdup(text), .set = set};
    if (spec->text == NULL) {
        return error_set(error, "out of memory");
    }
    if (read_spec(spec, error) != 0) {
        free_spec(spec);
        return -1;
    }
    specs->count++;
    return 0;
}

int allocspec_add_set(struct allocspecs *specs, size_t set, struct error *error) {
    const struct allocset *it = &allocsets[set];
    if (it->hint != NULL) {
        return error_set(error, "\"%s\": %s", it->name, it->hint);
    }
    for (const char *const *one = it->functions; *one != NULL; one++) {
        size_t mark = strspn(*one, "^-+");
        if (allocspec_add_one(specs, *one + mark, it->name, error) != 0) {
            return -1;
        }
        specs->items[specs->count - 1].in_program_only = **one == '^';
        specs->items[specs->count - 1].in_library_only = **one == '+';
        specs->items[specs->count - 1].is_exact = it->is_heap;
        specs->items[specs->count - 1].is_inner = **one == '-' || **one == '+';
    }
    return 0;
}

/* Those of @FILE. */
static int allocspec_add_file(struct allocspecs *specs, const char *text, struct error *error) {
    SCOPE_MEMORY char *lines = NULL;
    char *state = NULL;
    size_t size;
    FILE *out = open_memstream(&lines, &size);
    int status =
        out != NULL ? allocspec_expand(text, out, error) : error_set(error, "out of memory");
    if (out != NULL && fclose(out) != 0 && status == 0) {
        status = error_set(error, "out of memory");
    }
    for (char *line = status == 0 ? strtok_r(lines, "\n", &state) : NULL;
         status == 0 && line != NULL; line = strtok_r(NULL, "\n", &state)) {
        status = allocspec_add(specs, line, error);
    }
    return status;
}

int allocspec_add(struct allocspecs *specs, const char *text, struct error *error) {
    if (text[0] == '@') {
        return allocspec_add_file(specs, text, error);
    }
    if (strcmp(text, "auto") == 0) {
        specs->has_auto = true;
        return 0;
    }
    for (size_t i = 0; allocsets[i].name != NULL; i++) {
        if (strcmp(text, allocsets[i].name) == 0) {
            return allocspec_add_set(specs, i, error);
        }
    }
    return allocspec_add_one(specs, text, NULL, error);
}

void allocspec_free(struct allocspecs *specs) {
    for (size_t i = 0; i < specs->count; i++) {
        free_spec(&specs->items[i]);
    }
    free(specs->items);
    *specs = (struct allocspecs){0};
}

/* ---- What goes to the program ---- */

static int expand_one(const char *text, FILE *out, struct error *error) {
    struct allocspecs specs = {0};
    int status = allocspec_add(&specs, text, error);
    if (status == 0) {
        fprintf(out, "%s\n", text);
    }
    allocspec_free(&specs);
    return status;
}

/* Without what stands before and behind it, and comments. */
static char *allocspec_strip_line(char *line) {
    char *end;
    line += strspn(line, " \t\r\n");
    line[line[0] == '#' ? 0 : strlen(line)] = '\0';
    for (char *at = line; (at = strchr(at, '#')) != NULL; at++) {
        if (isspace((unsigned char)at[-1])) {
            *at = '\0';
            break;
        }
    }
    end = line + strlen(line);
    while (end > line && isspace((unsigned char)end[-1])) {
        *--end = '\0';
    }
    return line;
}

static int expand_file(const char *name, FILE *out, struct error *error) {
    SCOPE_FILE FILE *in = fopen(name, "re");
    SCOPE_MEMORY char *line = NULL;
    size_t room = 0;
    int status = 0;
    if (in == NULL) {
        return error_set(error, "\"@%s\": %s", name, strerror(errno));
    }
    for (unsigned number = 1; status == 0 && getline(&line, &room, in) >= 0; number++) {
        char *text = allocspec_strip_line(line);
        struct error why;
        if (*text == '@') {
            status = error_set(error, "%s, line %u: \"%s\": a file names no other file", name,
                               number, text);
        } else if (*text != '\0' && expand_one(text, out, &why) != 0) {
            status = error_set(error, "%s, line %u: %s", name, number, why.message);
        }
    }
    if (status == 0 && ferror(in)) {
        status = error_set(error, "\"@%s\": %s", name, strerror(errno));
    }
    return status;
}

int allocspec_expand(const char *text, FILE *out, struct error *error) {
    if (text[0] == '@') {
        return expand_file(text + 1, out, error);
    }
    if (strchr(text, '\n') != NULL) {
        return error_set(error, "a specification is one line; @FILE has many");
    }
    return expand_one(text, out, error);
}
