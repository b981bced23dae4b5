/* SPDX-License-Identifier: MIT */
/* flagsallocators.c: see flagsallocators.h. */
#include "cli/flagsallocators.h"

#include "analyze/rows/table.h"
#include "analyze/symbol/symbol.h"
#include "cli/cli.h"
#include "cli/terminal.h"
#include "collect/allocators/allocrecorded.h"
#include "collect/allocators/allocspec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Naming them ---- */

int flagsallocators_add(void *member, const struct option *option, const char *value,
                        struct error *error) {
    char **lines = member;
    char *text = NULL;
    size_t size;
    struct error why;
    FILE *out = open_memstream(&text, &size);
    int status = out != NULL ? 0 : error_set(error, "out of memory");
    if (out != NULL) {
        fputs(*lines != NULL ? *lines : "", out);
        if (allocspec_expand(value, out, &why) != 0) {
            status = error_set(error, "--%s %s", option->name, why.message);
        }
        if (fclose(out) != 0 && status == 0) {
            status = error_set(error, "out of memory");
        }
    }
    if (status == 0) {
        free(*lines);
        *lines = text;
    } else {
        free(text);
    }
    return status;
}

/* ---- What plugins have written ---- */

/* Of a line, behind what it is. */
enum { SPECIFICATION = 1, SYMBOL, PLACE, SOURCE, CALLEE };

static const struct table_column reporting[] = {
    {"specification", "specification", TABLE_TEXT, 40},
    {"function", "function", TABLE_TEXT, 36},
    {"place", "place", TABLE_TEXT, 0},
};
enum { REPORTING = sizeof reporting / sizeof reporting[0] };

static const struct table_column proposed[] = {
    {"function", "function", TABLE_TEXT, 36}, {"memory", "memory", TABLE_TEXT, 8},
    {"callee", "by", TABLE_TEXT, 24},         {"specification", "specification", TABLE_TEXT, 40},
    {"place", "place", TABLE_TEXT, 0},
};
enum { PROPOSED = sizeof proposed / sizeof proposed[0] };

static bool is_kind(const struct allocrecorded *it, const char *kind) {
    return strcmp(it->field[0], kind) == 0;
}

static struct table_cell text_or_none(const char *text) {
    return table_text(*text != '\0' ? text : NULL);
}

static void put(struct table *table, const struct allocrecorded *it) {
    char *name = symbol_demangle(it->field[SYMBOL]);
    const struct table_cell function = table_text(name != NULL ? name : it->field[SYMBOL]);
    if (is_kind(it, ALLOCRECORDED_FOUND)) {
        table_row(table, (struct table_cell[]){table_text(it->field[SPECIFICATION]), function,
                                               table_text(it->field[PLACE])});
    } else {
        table_row(table, (struct table_cell[]){function, table_text(it->field[SOURCE]),
                                               text_or_none(it->field[CALLEE]),
                                               text_or_none(it->field[SPECIFICATION]),
                                               table_text(it->field[PLACE])});
    }
    free(name);
}

static void put_all(const struct report *report, const struct allocrecords *records,
                    const char *kind) {
    bool is_found = strcmp(kind, ALLOCRECORDED_FOUND) == 0;
    size_t count = 0;
    struct table table;
    for (size_t i = 0; i < records->count; i++) {
        count += is_kind(&records->items[i], kind);
    }
    if (count == 0) {
        return;
    }
    table = is_found ? table_open(report, "reporting", "Functions that report what they allocate",
                                  reporting, REPORTING)
                     : table_open(report, "proposed",
                                  "Functions whose attributes say that they allocate", proposed,
                                  PROPOSED);
    for (size_t i = 0; i < records->count; i++) {
        if (is_kind(&records->items[i], kind)) {
            put(&table, &records->items[i]);
        }
    }
    table_close(&table);
}

static bool is_found(const struct allocrecords *records, const char *specification) {
    for (size_t i = 0; i < records->count; i++) {
        const struct allocrecorded *it = &records->items[i];
        if (is_kind(it, ALLOCRECORDED_FOUND) &&
            strcmp(it->field[SPECIFICATION], specification) == 0) {
            return true;
        }
    }
    return false;
}

/* 0, or CLI_FAILURE with a line for each specification that no function is meant by. */
static int tell_unfound(const struct allocrecords *records, const char *where) {
    int status = 0;
    for (size_t i = 0; i < records->count; i++) {
        const char *specification = records->items[i].field[SPECIFICATION];
        if (is_kind(&records->items[i], ALLOCRECORDED_NAMED) && !is_found(records, specification)) {
            status = cli_error("ALLOCATORS: \"%s\": no function in %s is called so", specification,
                               where);
        }
    }
    return status;
}

int flagsallocators_list(char **files, int count) {
    struct allocrecords records = {0};
    struct report report = {.out = stdout};
    struct error error;
    int status = 0;
    for (int i = 0; status == 0 && i < count; i++) {
        if (allocrecorded_read(&records, files[i], &error) != 0) {
            status = cli_error("%s", error.message);
        }
    }
    if (status == 0 && records.count == 0) {
        status = cli_error(
            records.is_for_linking
                ? "%s has no code yet (link-time optimisation): name the program"
                : "%s: nothing is recorded: it has no functions of ALLOCATORS, and none with the "
                  "attributes malloc and alloc_size, or was not built in mode pass",
            files[0]);
    } else if (status == 0) {
        terminal_style(&report.options, NULL, NULL);
        put_all(&report, &records, ALLOCRECORDED_FOUND);
        put_all(&report, &records, ALLOCRECORDED_PROPOSED);
        status = tell_unfound(&records, count == 1 ? files[0] : "these files");
    }
    allocrecorded_free(&records);
    return status == 0 ? cli_finish(CLI_OK) : status;
}
