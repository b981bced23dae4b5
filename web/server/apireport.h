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

/* Columns without a name, which are for people, are left out. A row is an array of its cells, of
 * which each column is one (rows.h). */
struct apireport_table {
    const char *name; /* NULL: of SQL */
    struct table_column *columns;
    size_t *taken; /* their places in the report's columns */
    size_t count;
    struct table_cell *cells; /* rows * count */
    size_t rows, room;
    const char *notes; /* lines; NULL: none */
};

/* Start from {0}. All of it belongs to the job. */
struct apireport {
    struct apireport_table *tables;
    size_t count, room;
    size_t limit; /* rows of a table that are kept; 0: all */
};

struct table_sink apireport_sink(struct apireport *taken);

/* What the report writes, of the view or of what the caller changed in it. */
struct apireport apireport_take(const struct report *report,
                                void (*write)(const struct report *report));
/* The table of that name, which the report has. */
const struct apireport_table *apireport_find(const struct apireport *taken, const char *name);

/* The whole table, as a member of that name (NULL: as the data). Its notes are told. */
void apireport_write(struct api_call *call, const char *name, const struct apireport_table *table);
/* The same, but members may follow, and then apitable_end(). */
void apireport_begin(struct api_call *call, const char *name, const struct apireport_table *table,
                     struct apitable *to);
/* What the parameters sort, order, limit and cursor choose of one table of the report. */
void apireport_one(struct api_call *call, const struct report *report,
                   void (*write)(const struct report *report), const char *name);

#endif
