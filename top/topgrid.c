/* SPDX-License-Identifier: MIT */
/* topgrid.c: see topgrid.h. */
#include "top/topgrid.h"

#include "analyze/base/array.h"
#include "analyze/rows/safetext.h"

#include <inttypes.h>
#include <langinfo.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

static struct topgrid_cell *grid_row(const struct topgrid *grid, size_t row) {
    return grid->cells + row * grid->width;
}

int topgrid_reset(struct topgrid *grid, size_t width, size_t height) {
    size_t count = width * height;
    if (array_reserve(&grid->cells, &grid->room, count + 1, sizeof *grid->cells) != 0) {
        return -1;
    }
    grid->width = width;
    grid->height = height;
    for (size_t i = 0; i < count; i++) {
        grid->cells[i] = (struct topgrid_cell){.text = " "};
    }
    return 0;
}

void topgrid_free(struct topgrid *grid) {
    free(grid->cells);
    *grid = (struct topgrid){0};
}

struct topgrid_pen topgrid_pen(struct topgrid *grid, size_t row) {
    return (struct topgrid_pen){
        .grid = grid, .row = row, .end = row < grid->height ? grid->width : 0};
}

/* A character as the terminal is to see it, and the columns it takes. */
struct shown {
    char text[TOPGRID_BYTES];
    int columns;
};

static struct shown show_character(const char *text, size_t length) {
    struct shown shown = {.text = "?", .columns = 1};
    int columns;
    if (length == 1) { /* safe, so it is printable */
        shown.text[0] = text[0];
        return shown;
    }
    columns = strcmp(nl_langinfo(CODESET), "UTF-8") == 0
                  ? wcwidth((wchar_t)safetext_code(text, length))
                  : -1;
    if (columns >= 0) {
        memcpy(shown.text, text, length);
        shown.text[length] = '\0';
        shown.columns = columns;
    }
    return shown;
}

/* What takes no column of its own belongs to the character before it. */
static void combine_character(struct topgrid_pen *pen, const char *text) {
    struct topgrid_cell *cell = grid_row(pen->grid, pen->row) + pen->column;
    if (pen->column == 0) {
        return;
    }
    cell--;
    if (cell->text[0] == '\0' && pen->column > 1) {
        cell--;
    }
    if (strlen(cell->text) + strlen(text) < sizeof cell->text) {
        strcat(cell->text, text);
    }
}

void topgrid_put(struct topgrid_pen *pen, const char *text) {
    while (*text != '\0') {
        bool is_safe;
        size_t length = safetext_step(text, &is_safe);
        struct shown shown = is_safe ? show_character(text, length) : show_character("?", 1);
        text += length;
        if (shown.columns == 0) {
            combine_character(pen, shown.text);
            continue;
        }
        if (pen->column + (size_t)shown.columns > pen->end) {
            pen->end =
                pen->column < pen->end ? pen->column : pen->end; /* nothing narrower either */
            return;
        }
        for (int i = 0; i < shown.columns; i++) {
            struct topgrid_cell *cell = grid_row(pen->grid, pen->row) + pen->column++;
            *cell = (struct topgrid_cell){.style = pen->style};
            if (i == 0) {
                memcpy(cell->text, shown.text, sizeof cell->text);
            }
        }
    }
}

void topgrid_print(struct topgrid_pen *pen, const char *format, ...) {
    char text[4096];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    topgrid_put(pen, text);
}

void topgrid_whole(struct topgrid_pen *pen, const char *format, ...) {
    char text[4096];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (pen->column + topgrid_columns(text) > pen->end) {
        pen->end = pen->column < pen->end ? pen->column : pen->end;
    } else {
        topgrid_put(pen, text);
    }
}

size_t topgrid_columns(const char *text) {
    size_t columns = 0;
    while (*text != '\0') {
        bool is_safe;
        size_t length = safetext_step(text, &is_safe);
        columns += is_safe ? (size_t)show_character(text, length).columns : 1;
        text += length;
    }
    return columns;
}

void topgrid_right(struct topgrid_pen *pen, size_t end, const char *text) {
    size_t columns = topgrid_columns(text);
    size_t start = columns < end ? end - columns : 0;
    if (start > pen->column) {
        pen->column = start;
    }
    topgrid_put(pen, text);
    pen->column = pen->column > end ? pen->column : end;
}

void topgrid_fill(struct topgrid_pen *pen) {
    for (size_t column = 0; column < pen->grid->width && pen->row < pen->grid->height; column++) {
        grid_row(pen->grid, pen->row)[column].style = pen->style;
    }
}

void topgrid_write(const struct topgrid *grid, size_t row, FILE *out) {
    const struct topgrid_cell *cells = grid_row(grid, row);
    size_t end = grid->width;
    while (end > 0 && strcmp(cells[end - 1].text, " ") == 0) {
        end--;
    }
    for (size_t column = 0; column < end; column++) {
        fputs(cells[column].text, out);
    }
    fputc('\n', out);
}

/* ---- Numbers ---- */

/* What would be rounded to a whole unit more is shown in that. */
static const char *number_scaled(struct topnumber *buffer, const char *sign, double value,
                                 double step, const char *units) {
    char unit = '\0';
    while (*units != '\0' && value >= (unit == '\0' ? step : step - 0.05)) {
        value /= step;
        unit = *units++;
    }
    if (unit == '\0') {
        snprintf(buffer->text, sizeof buffer->text, "%s%.0f", sign, value);
    } else {
        snprintf(buffer->text, sizeof buffer->text, "%s%.1f%c", sign, value, unit);
    }
    return buffer->text;
}

const char *topnumber_bytes(struct topnumber *buffer, double bytes) {
    return number_scaled(buffer, "", bytes, 1024, "KMGTPE");
}

const char *topnumber_change(struct topnumber *buffer, double bytes) {
    return number_scaled(buffer,
                         bytes > 0   ? "+"
                         : bytes < 0 ? "-"
                                     : "",
                         fabs(bytes), 1024, "KMGTPE");
}

const char *topnumber_count(struct topnumber *buffer, double count) {
    return number_scaled(buffer, "", count, 1000, "kMGTPE");
}

const char *topnumber_share(struct topnumber *buffer, uint64_t part, uint64_t whole) {
    if (whole == 0) {
        snprintf(buffer->text, sizeof buffer->text, "-");
    } else {
        snprintf(buffer->text, sizeof buffer->text, "%.0f%%", 100.0 * (double)part / (double)whole);
    }
    return buffer->text;
}

const char *topnumber_clock(struct topnumber *buffer, uint64_t ns) {
    uint64_t seconds = ns / 1000000000u;
    snprintf(buffer->text, sizeof buffer->text, "%" PRIu64 ":%02u:%02u", seconds / 3600,
             (unsigned)(seconds / 60 % 60), (unsigned)(seconds % 60));
    return buffer->text;
}
