/* SPDX-License-Identifier: MIT */
/*
 * tabletext.c: tables for people, as aligned text and as Markdown. See table.h. Those of reports
 * have columns of a given width, those of statements of SQL are as wide as their rows (at the end,
 * where the reason stands).
 */
#include "analyze/base/job.h"
#include "analyze/base/pathname.h"
#include "analyze/rows/number.h"
#include "analyze/rows/pathwalk.h"
#include "analyze/rows/safetext.h"
#include "analyze/rows/style.h"
#include "analyze/rows/table.h"

#include <inttypes.h>
#include <string.h>

enum { LABEL_WIDTH = 26, LONG_LEAST = 40, NEXT_LINE = 8 };

/* ---- Cells ---- */

static const unsigned char usual_width[] = {
    [TABLE_TEXT] = 12,    [TABLE_WORD] = 12,         [TABLE_COUNT] = 12,  [TABLE_BYTES] = 11,
    [TABLE_SIGNED] = 12,  [TABLE_REAL] = 9,          [TABLE_PERCENT] = 7, [TABLE_DURATION] = 10,
    [TABLE_ADDRESS] = 14, [TABLE_HASH] = 16,         [TABLE_FRAME] = 0,   [TABLE_PATH] = 0,
    [TABLE_CHANGE] = 12,  [TABLE_BYTES_CHANGE] = 11, [TABLE_ANY] = 12,
};

static int width_of(const struct table_column *column) {
    return column->width != 0 ? column->width : usual_width[column->kind];
}

static bool tabletext_is_long(enum table_kind kind) {
    return kind == TABLE_FRAME || kind == TABLE_PATH;
}

static bool tabletext_is_text(enum table_kind kind) {
    return kind == TABLE_TEXT || kind == TABLE_WORD;
}

static bool tabletext_is_left(const struct table_column *column) {
    return tabletext_is_text(column->kind) || tabletext_is_long(column->kind);
}

/* "<0.1%" is more than nothing. */
static void tabletext_spell_percent(struct number *buffer, double percent) {
    bool is_little = percent > 0 && percent < 0.05;
    snprintf(buffer->text, sizeof buffer->text, is_little ? "<0.1%%" : "%.1f%%", percent);
}

static void spell_signed(struct number *buffer, int64_t number, const char *plus) {
    struct number size;
    snprintf(buffer->text, sizeof buffer->text, "%s%.60s",
             number < 0   ? "-"
             : number > 0 ? plus
                          : "",
             number_count(&size, number < 0 ? 0 - (uint64_t)number : (uint64_t)number));
}

/* Everything but text, frames and paths. */
static const char *spell(struct number *buffer, enum table_kind kind,
                         const struct table_cell *cell) {
    static const char *const notes[] = {"", "<", ">"};
    struct number number;
    const char *text = number.text;
    switch (kind) {
    case TABLE_COUNT:
        number_count(&number, cell->number);
        break;
    case TABLE_BYTES:
        number_bytes(&number, cell->number);
        break;
    case TABLE_BYTES_CHANGE:
        number_change(&number, (int64_t)cell->number);
        break;
    case TABLE_SIGNED:
    case TABLE_CHANGE:
        spell_signed(&number, (int64_t)cell->number, kind == TABLE_CHANGE ? "+" : "");
        break;
    case TABLE_DURATION:
        number_duration(&number, cell->number);
        break;
    case TABLE_PERCENT:
        tabletext_spell_percent(&number, cell->real);
        break;
    case TABLE_REAL:
        snprintf(number.text, sizeof number.text, "%.1f", cell->real);
        break;
    case TABLE_ADDRESS:
        snprintf(number.text, sizeof number.text, "0x%" PRIx64, cell->number);
        break;
    case TABLE_HASH:
        snprintf(number.text, sizeof number.text, "%016" PRIx64, cell->number);
        break;
    default:
        text = "";
        break;
    }
    text = cell->text != NULL ? cell->text : text;
    snprintf(buffer->text, sizeof buffer->text, "%s%.37s", notes[cell->note], text);
    return buffer->text;
}

const char *tabletext_spell(struct number *buffer, struct table_cell cell) {
    return spell(buffer, cell.kind, &cell);
}

static enum table_kind tabletext_kind_of(const struct table_column *column,
                                         const struct table_cell *cell) {
    return column->kind == TABLE_ANY ? cell->kind : column->kind;
}

/* ---- Paths: the first frame with its place, then who called it ---- */

static size_t path_frames(const struct report *report) {
    return report->options.table_depth != 0 ? report->options.table_depth : SIZE_MAX;
}

static void tabletext_put_path(const struct report *report, uint32_t node, size_t column) {
    struct pathwalk walk = pathwalk_folded(report, node);
    size_t frames = path_frames(report);
    if (walk.frame == NULL) {
        fputs("(no call path was recorded)", report->out);
    }
    for (; walk.frame != NULL && walk.steps < frames; pathwalk_next(&walk)) {
        if (walk.steps != 0) {
            fprintf(report->out, "\n%*s", (int)column, "");
        }
        style_step(report, &walk, column);
    }
}

/* ---- Aligned text ---- */

static size_t label_width(const char *label) {
    size_t size = strlen(label);
    return size < LABEL_WIDTH ? LABEL_WIDTH : size;
}

/* Numbers stand near each other, text apart. */
static const char *gap_before(const struct table_column *column) {
    return tabletext_is_left(column) ? "  " : " ";
}

/* Begins another line where a cell has no room on this one; the headings break at the same places.
 * Returns the columns used then. */
static size_t tabletext_make_room(const struct table *table, const struct table_column *column,
                                  size_t at) {
    size_t width = table->report->options.width;
    size_t wanted = tabletext_is_long(column->kind) ? LONG_LEAST : (size_t)width_of(column);
    bool is_below = table->is_path_below && column->kind == TABLE_PATH;
    if (at == 0 ||
        (!is_below && (width == 0 || at + strlen(gap_before(column)) + wanted <= width))) {
        return at;
    }
    fprintf(table->report->out, "\n%*s", NEXT_LINE, "");
    return NEXT_LINE;
}

/* Whether no cell stands behind this one on its line. */
static bool ends_line(const struct table *table, size_t i) {
    return i + 1 == table->count ||
           (table->is_path_below && table->columns[i + 1].kind == TABLE_PATH);
}

void tabletext_headings(const struct table *table) {
    FILE *out = table->report->out;
    size_t at = 0;
    if (table->is_record) {
        return;
    }
    fputs(style_on(table->report, STYLE_DIM), out);
    for (size_t i = 0; i < table->count; i++) {
        const struct table_column *column = &table->columns[i];
        int width = ends_line(table, i) ? 0 : width_of(column);
        if (column->heading == NULL || (ends_line(table, i) && column->heading[0] == '\0')) {
            continue;
        }
        at = tabletext_make_room(table, column, at);
        at += (size_t)fprintf(
            out, tabletext_is_left(column) ? "%s%-*s" : "%s%*s", at == 0 ? "" : gap_before(column),
            tabletext_is_left(column) ? width : width_of(column), column->heading);
    }
    fprintf(out, "%s\n", style_off(table->report));
}

/* Characters, not bytes. */
static size_t tabletext_count_characters(const char *text) {
    size_t count = 0;
    for (; *text != '\0'; text++) {
        count += ((unsigned char)*text & 0xc0) != 0x80;
    }
    return count;
}

/* Returns the columns it took. */
static size_t tabletext_put_text(const struct report *report, const char *text, int width) {
    size_t size = tabletext_count_characters(text);
    style_text(report, text);
    if (width > 0 && size < (size_t)width) {
        fprintf(report->out, "%*s", width - (int)size, "");
        size = (size_t)width;
    }
    return size;
}

/* What is dear, and what grew. */
static enum style style_of(enum table_kind kind, const struct table_cell *cell) {
    switch (kind) {
    case TABLE_PERCENT:
        return style_share((uint64_t)(cell->real * 1000), 100000);
    case TABLE_CHANGE:
    case TABLE_BYTES_CHANGE:
        return (int64_t)cell->number > 0 ? STYLE_HOT : STYLE_PLAIN;
    default:
        return STYLE_PLAIN;
    }
}

/* A cell from `column` on; width 0: as wide as it is. Returns the columns it took. */
static size_t tabletext_put_cell(const struct report *report, enum table_kind kind,
                                 const struct table_cell *cell, int width, size_t column) {
    struct number number;
    if (tabletext_is_text(kind)) {
        return tabletext_put_text(report, cell->is_known ? cell->text : "-", width);
    }
    if (!cell->is_known) {
        fprintf(report->out, "%*s", tabletext_is_long(kind) ? 0 : width, "-");
    } else if (kind == TABLE_FRAME) {
        style_frame(report, cell->frame, column);
    } else if (kind == TABLE_PATH) {
        tabletext_put_path(report, cell->path, column);
    } else {
        enum style style = style_of(kind, cell);
        const char *text = spell(&number, kind, cell);
        fprintf(report->out, "%s%*s%s", style != STYLE_PLAIN ? style_on(report, style) : "", width,
                text, style != STYLE_PLAIN ? style_off(report) : "");
        return strlen(text) > (size_t)width ? strlen(text) : (size_t)width;
    }
    return (size_t)width;
}

static void put_record(const struct table *table, const struct table_cell *cells) {
    const struct report *report = table->report;
    for (size_t i = 0; i < table->count; i++) {
        const struct table_column *column = &table->columns[i];
        if (column->heading == NULL) {
            continue;
        }
        fprintf(report->out, "  %s%-*s%s ", style_on(report, STYLE_DIM), LABEL_WIDTH,
                column->heading, style_off(report));
        tabletext_put_cell(report, tabletext_kind_of(column, &cells[i]), &cells[i], 0,
                           label_width(column->heading) + 3);
        fputc('\n', report->out);
    }
}

void tabletext_row(const struct table *table, const struct table_cell *cells) {
    const struct report *report = table->report;
    size_t at = 0;
    if (table->is_record) {
        put_record(table, cells);
        return;
    }
    for (size_t i = 0; i < table->count; i++) {
        const struct table_column *column = &table->columns[i];
        bool is_last = ends_line(table, i);
        bool is_blank =
            tabletext_is_text(column->kind) && cells[i].is_known && cells[i].text[0] == '\0';
        if (column->heading == NULL || (is_last && is_blank)) {
            continue;
        }
        at = tabletext_make_room(table, column, at);
        at += (size_t)fprintf(report->out, "%s", at != 0 ? gap_before(column) : "");
        at += tabletext_put_cell(report, tabletext_kind_of(column, &cells[i]), &cells[i],
                                 is_last && tabletext_is_left(column) ? 0 : width_of(column), at);
    }
    fputc('\n', report->out);
}

/* ---- Markdown ---- */

/* What would be taken for a table's border, code, emphasis, a link or HTML. */
void tabletext_escaped(FILE *out, const char *text) {
    while (*(text = put_safe_until(out, text, "\\`*_[]<>|#~")) != '\0') {
        fprintf(out, "\\%c", *text++);
    }
}

void tabletext_markdown_headings(const struct table *table) {
    FILE *out = table->report->out;
    if (table->is_record) {
        fputs("\n| | |\n|---|---:|\n", out);
        return;
    }
    fputs("\n|", out);
    for (size_t i = 0; i < table->count; i++) {
        if (table->columns[i].heading != NULL) {
            fprintf(out, " %s |", table->columns[i].heading);
        }
    }
    fputs("\n|", out);
    for (size_t i = 0; i < table->count; i++) {
        if (table->columns[i].heading != NULL) {
            fputs(tabletext_is_left(&table->columns[i]) ? "---|" : "---:|", out);
        }
    }
    fputc('\n', out);
}

static void put_markdown_frame(FILE *out, const struct names_frame *frame) {
    char name[4096];
    char place[512];
    tabletext_escaped(out, names_spell(frame, name, sizeof name));
    if (frame->file != NULL) {
        snprintf(place, sizeof place, frame->line != 0 ? " at %s:%u" : " at %s",
                 pathname_base(frame->file), frame->line);
        tabletext_escaped(out, place);
    }
}

static void put_markdown_path(const struct report *report, uint32_t node) {
    struct pathwalk walk = pathwalk(report, node);
    size_t frames = path_frames(report);
    if (walk.frame == NULL) {
        fputs("(no call path was recorded)", report->out);
    }
    for (; walk.frame != NULL && walk.steps < frames; pathwalk_next(&walk)) {
        fputs(walk.steps != 0 ? "<br>" : "", report->out);
        put_markdown_frame(report->out, walk.frame);
    }
}

static void put_markdown_cell(const struct report *report, enum table_kind kind,
                              const struct table_cell *cell) {
    struct number number;
    if (!cell->is_known) {
        fputc('-', report->out);
    } else if (kind == TABLE_FRAME) {
        put_markdown_frame(report->out, cell->frame);
    } else if (kind == TABLE_PATH) {
        put_markdown_path(report, cell->path);
    } else {
        tabletext_escaped(report->out,
                          tabletext_is_text(kind) ? cell->text : spell(&number, kind, cell));
    }
}

void tabletext_markdown_row(const struct table *table, const struct table_cell *cells) {
    FILE *out = table->report->out;
    for (size_t i = 0; i < table->count; i++) {
        const struct table_column *column = &table->columns[i];
        if (column->heading == NULL) {
            continue;
        }
        if (table->is_record) {
            fprintf(out, "| %s ", column->heading);
        }
        fputs(table->is_record || i == 0 ? "| " : " ", out);
        put_markdown_cell(table->report, tabletext_kind_of(column, &cells[i]), &cells[i]);
        fputs(table->is_record ? " |\n" : " |", out);
    }
    fputs(table->is_record ? "" : "\n", out);
}

/*
 * ---- Statements: columns below each other, as wide as what comes first ----
 *
 * Why reports are not laid out so, too: their columns are known before their rows, which have
 * widths that stay the same from run to run (so that outputs can be compared line by line), cells
 * that are rounded, coloured and several lines high (call paths), and lines that break where the
 * terminal ends. Of a statement only the number of columns is known, and cells are short text as it
 * came. So the two share how a character counts, how a number is spelled and how foreign text is
 * made safe, and differ in who says how wide a column is.
 */

/* Rows that are kept to see how wide columns are; those that follow may be wider. */
enum { KEPT_ROWS = 1000, MARKDOWN_RULE = 3 };

struct table_widths {
    struct table_statement statement;
    char **cells; /* row by row, the heading first */
    size_t cell_count;
    size_t cell_room;
    bool is_settled;
    struct column_width {
        size_t width;
        bool is_number; /* only numbers so far */
    } columns[];
};

/* Where the character begins that has so many before it. */
static size_t tabletext_bytes_of(const char *text, size_t characters) {
    size_t at = 0;
    for (; text[at] != '\0'; at++) {
        if (((unsigned char)text[at] & 0xc0) != 0x80 && characters-- == 0) {
            break;
        }
    }
    return at;
}

static bool is_markdown(const struct table *table) {
    return table->report->options.format == REPORT_MARKDOWN;
}

/* Text on one line, without what a terminal would obey. To be released. */
static char *tabletext_plain(const struct table *table, const char *from) {
    size_t size = 2 * strlen(from) + 1; /* each character may be escaped */
    char *text = job_array(size, 1);
    FILE *out;
    if (!is_markdown(table)) {
        return make_safe(strcpy(text, from));
    }
    out = fmemopen(text, size, "w");
    if (out == NULL) {
        job_fail_memory();
    }
    tabletext_escaped(out, from);
    fclose(out);
    return text;
}

static char *plain_cell(const struct table *table, const struct table_cell *cell) {
    static const char dots[] = "...";
    const struct table_statement *statement = &table->widths->statement;
    struct number number;
    char *text;
    if (!cell->is_known) {
        return tabletext_plain(table, "NULL");
    }
    if (cell->kind == TABLE_SIGNED && statement->is_grouped) {
        return tabletext_plain(
            table, spell(&number, cell->kind, &(struct table_cell){.number = cell->number}));
    }
    text = tabletext_plain(table, cell->text);
    if (cell->kind == TABLE_TEXT && statement->cell_most >= sizeof dots &&
        tabletext_count_characters(text) > statement->cell_most) {
        memcpy(text + tabletext_bytes_of(text, statement->cell_most - strlen(dots)), dots,
               sizeof dots);
    }
    return text;
}

static void put_line_cell(const struct table *table, size_t column, const char *cell) {
    FILE *out = table->report->out;
    const struct column_width *wanted = &table->widths->columns[column];
    size_t width = tabletext_count_characters(cell);
    int padding = width < wanted->width ? (int)(wanted->width - width) : 0;
    bool is_last = column + 1 == table->count;
    fputs(is_markdown(table) ? "| " : column != 0 ? "  " : "", out);
    if (wanted->is_number) {
        fprintf(out, "%*s%s", padding, "", cell);
    } else {
        fprintf(out, "%s%*s", cell, is_last && !is_markdown(table) ? 0 : padding, "");
    }
    fputs(is_last ? is_markdown(table) ? " |\n" : "\n" : is_markdown(table) ? " " : "", out);
}

/* Below the heading. */
static void put_rule(const struct table *table) {
    FILE *out = table->report->out;
    for (size_t column = 0; column < table->count; column++) {
        const struct column_width *wanted = &table->widths->columns[column];
        fputs(is_markdown(table) ? "| " : column != 0 ? "  " : "", out);
        for (size_t i = 0; i < wanted->width; i++) {
            bool is_right = is_markdown(table) && wanted->is_number && i + 1 == wanted->width;
            fputc(is_right ? ':' : '-', out);
        }
        fputs(is_markdown(table) ? " " : "", out);
    }
    fputs(is_markdown(table) ? "|\n" : "\n", out);
}

static void tabletext_note(struct table_widths *widths, size_t column, char *cell, bool is_shown) {
    size_t width = tabletext_count_characters(cell);
    job_grow(&widths->cells, &widths->cell_room, widths->cell_count, sizeof *widths->cells);
    widths->cells[widths->cell_count++] = cell;
    if (is_shown && width > widths->columns[column].width) {
        widths->columns[column].width = width;
    }
}

void tabletext_begin(struct table *table, const struct table_statement *statement) {
    struct table_widths *widths =
        job_array(1, sizeof *widths + table->count * sizeof *widths->columns);
    table->widths = widths;
    widths->statement = *statement;
    for (size_t i = 0; i < table->count; i++) {
        widths->columns[i] = (struct column_width){is_markdown(table) ? MARKDOWN_RULE : 1, true};
        tabletext_note(widths, i, tabletext_plain(table, table->columns[i].name),
                       statement->has_header);
    }
}

/* Writes what is kept. */
static void tabletext_settle(struct table *table) {
    struct table_widths *widths = table->widths;
    for (size_t i = widths->statement.has_header ? 0 : table->count;
         !widths->is_settled && i < widths->cell_count; i++) {
        put_line_cell(table, i % table->count, widths->cells[i]);
        if (i + 1 == table->count) {
            put_rule(table);
        }
    }
    widths->is_settled = true;
}

void tabletext_keep(struct table *table, const struct table_cell *cells) {
    struct table_widths *widths = table->widths;
    for (size_t i = 0; i < table->count; i++) {
        char *cell = plain_cell(table, &cells[i]);
        if (widths->is_settled) {
            put_line_cell(table, i, cell);
            job_release(cell);
        } else {
            widths->columns[i].is_number &= cells[i].kind != TABLE_TEXT || !cells[i].is_known;
            tabletext_note(widths, i, cell, true);
        }
    }
    if (table->rows + 1 == KEPT_ROWS) {
        tabletext_settle(table);
    }
}

void tabletext_end(struct table *table) {
    tabletext_settle(table);
    for (size_t i = 0; i < table->widths->cell_count; i++) {
        job_release(table->widths->cells[i]);
    }
    job_release(table->widths->cells);
    job_release(table->widths);
}
