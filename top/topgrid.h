/* SPDX-License-Identifier: MIT */
/*
 * topgrid.h: what stands in each place of a screen, before a terminal sees it; and numbers for
 * narrow columns.
 *
 * Called by topdraw, which fills it, and by topscreen, which shows it. Foreign text comes in by
 * topgrid_put() alone, which lets nothing pass that a terminal obeys (safetext.h). All zero is
 * empty; topgrid_free() at the end.
 */
#ifndef TOP_TOPGRID_H
#define TOP_TOPGRID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum topgrid_style {
    TOPGRID_PLAIN,
    TOPGRID_BOLD,
    TOPGRID_DIM,
    TOPGRID_HOT,
    TOPGRID_WARM,
    TOPGRID_HEADING,  /* light on dark, where colours are the other way round */
    TOPGRID_SELECTED, /* the same of a row */
};

enum { TOPGRID_BYTES = 16 }; /* of a character and what is combined with it */

struct topgrid_cell {
    char text[TOPGRID_BYTES]; /* "": the right half of a wide character */
    enum topgrid_style style;
};

struct topgrid {
    struct topgrid_cell *cells; /* row by row */
    size_t width;
    size_t height;
    size_t room;
};

/* Makes it so large and empty. 0, or -1: out of memory, and it is as it was. */
int topgrid_reset(struct topgrid *grid, size_t width, size_t height);
void topgrid_free(struct topgrid *grid);

/* Where a row is written: from `column` on, up to `end`; what does not fit is left out. */
struct topgrid_pen {
    struct topgrid *grid;
    size_t row;
    size_t column;
    size_t end;
    enum topgrid_style style;
};
struct topgrid_pen topgrid_pen(struct topgrid *grid, size_t row);
void topgrid_put(struct topgrid_pen *pen, const char *text);
void topgrid_print(struct topgrid_pen *pen, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* All of it or nothing, and then nothing behind it either: half a number is another one. */
void topgrid_whole(struct topgrid_pen *pen, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The same so that it ends before a column. */
void topgrid_right(struct topgrid_pen *pen, size_t end, const char *text);
/* The rest of the row becomes of the pen's style. */
void topgrid_fill(struct topgrid_pen *pen);

/* How many columns a text takes. */
size_t topgrid_columns(const char *text);

/* The row without blanks at its end, as text. */
void topgrid_write(const struct topgrid *grid, size_t row, FILE *out);

/* Spelled for columns that have no room for more; else as everywhere (analyze/rows/number.h). Each
 * writes into the caller's buffer and returns it. */
struct topnumber {
    char text[32];
};

const char *topnumber_bytes(struct topnumber *buffer, double bytes);  /* "812.0M": 2^20 */
const char *topnumber_change(struct topnumber *buffer, double bytes); /* "+4.1M", "-27", "0" */
const char *topnumber_count(struct topnumber *buffer, double count);  /* "310.2k": 10^3 */
const char *topnumber_share(struct topnumber *buffer, uint64_t part, uint64_t whole); /* "12%" */
const char *topnumber_clock(struct topnumber *buffer, uint64_t ns); /* "2:13:07" */

#endif
