/* SPDX-License-Identifier: MIT */
/*
 * apireport.h: the tables of a report (report/reports.h) and of SQL as answers: they are taken as
 * they would be written for programs, sorted and cut as was asked, and sent.
 *
 * Called by endpoints. One thread at a time.
 */
#ifndef WEB_SERVER_APIREPORT_H
#define WEB_SERVER_APIREPORT_H

#include "web/server/apitable.h"

/* Columns without a name, which are for people, are left out. Texts are copies. */
struct apireport_table {
    char *name; /* NULL: of SQL */
    struct table_column *columns;
    size_t *taken; /* their places in the report's columns */
    size_t count;
    struct table_cell *cells; /* rows * count */
    size_t rows, room;
    char *notes; /* lines; NULL: none */
};

/* Start from {0}. */
struct apireport {
    struct apireport_table *tables;
    size_t count, room;
    size_t limit; /* rows of a table that are kept; 0: all */
    bool out_of_memory;
};

struct table_sink apireport_sink(struct apireport *taken);
void apireport_free(struct apireport *taken);

/* What the report writes, of the view or of what the caller changed in it. 0, or -1: out of
 * memory. */
int apireport_take(struct apireport *taken, const struct report *report,
                   void (*write)(const struct report *report), struct error *error);
/* NULL: the report has no such table. */
const struct apireport_table *apireport_find(const struct apireport *taken, const char *name);

/* The whole table, as a member of that name (NULL: as the data). Its notes are told. 0 or -1. */
int apireport_write(struct api_call *call, const char *name, const struct apireport_table *table,
                    struct error *error);
/* The same as the data, into a table whose rows are ended: members may follow, then
 * apitable_end(). */
void apireport_begin(struct api_call *call, const struct apireport_table *table,
                     struct apitable *to);
/* What the parameters sort, order, limit and cursor choose of it. */
int apireport_answer(struct api_call *call, const struct apireport_table *table,
                     struct error *error);
/* Both steps, of one table of the report. */
int apireport_one(struct api_call *call, const struct report *report,
                  void (*write)(const struct report *report), const char *name,
                  struct error *error);

#endif
