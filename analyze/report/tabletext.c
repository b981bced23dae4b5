/* SPDX-License-Identifier: MIT */
/* tabletext.c: tables for people, as aligned text and as Markdown. See table.h. */
#include "analyze/report/calltree.h"
#include "analyze/report/style.h"
#include "analyze/report/table.h"
#include "analyze/rows/number.h"
#include "analyze/rows/safetext.h"

#include <inttypes.h>
#include <string.h>

enum { LABEL_WIDTH = 26, LONG_LEAST = 40, NEXT_LINE = 8 };

/* ---- Cells ---- */

static const unsigned char usual_width[] = {
    [TABLE_TEXT] = 12,   [TABLE_COUNT] = 12,    [TABLE_BYTES] = 11,   [TABLE_REAL] = 9,
    [TABLE_PERCENT] = 7, [TABLE_DURATION] = 10, [TABLE_ADDRESS] = 14, [TABLE_HASH] = 16,
    [TABLE_FRAME] = 0,   [TABLE_PATH] = 0,
};

static int width_of(const struct table_column *column) {
    return column->width != 0 ? column->width : usual_width[column->kind];
}

static bool is_long(enum table_kind kind) {
    return kind == TABLE_FRAME || kind == TABLE_PATH;
}

static bool is_left(const struct table_column *column) {
    return column->kind == TABLE_TEXT || is_long(column->kind);
}

/* "<0.1%" is more than nothing. */
static void spell_percent(struct number *buffer, double percent) {
    bool is_little = percent > 0 && percent < 0.05;
    snprintf(buffer->text, sizeof buffer->text, is_little ? "<0.1%%" : "%.1f%%", percent);
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
    case TABLE_DURATION:
        number_duration(&number, cell->number);
        break;
    case TABLE_PERCENT:
        spell_percent(&number, cell->real);
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
    snprintf(buffer->text, sizeof buffer->text, "%s%.37s", notes[cell->note], text);
    return buffer->text;
}

/* ---- Paths: the first frame with its place, then who called it ---- */

static size_t path_frames(const struct report *report) {
    return report->options.table_depth != 0 ? report->options.table_depth : SIZE_MAX;
}

static void put_path(const struct report *report, uint32_t node, size_t column) {
    struct calltree_walk walk = calltree_walk_folded(report, node);
    size_t frames = path_frames(report);
    if (walk.frame == NULL) {
        fputs("(no call path was recorded)", report->out);
    }
    for (; walk.frame != NULL && walk.steps < frames; calltree_walk_next(&walk)) {
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
    return is_left(column) ? "  " : " ";
}

/* Begins another line where a cell has no room on this one; the headings break at the same places.
 * Returns the columns used then. */
static size_t make_room(const struct table *table, const struct table_column *column, size_t at) {
    size_t width = table->report->options.width;
    size_t wanted = is_long(column->kind) ? LONG_LEAST : (size_t)width_of(column);
    if (width == 0 || at == 0 || at + strlen(gap_before(column)) + wanted <= width) {
        return at;
    }
    fprintf(table->report->out, "\n%*s", NEXT_LINE, "");
    return NEXT_LINE;
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
        int width = i + 1 < table->count ? width_of(column) : 0;
        if (column->heading == NULL) {
            continue;
        }
        at = make_room(table, column, at);
        at += (size_t)fprintf(out, is_left(column) ? "%s%-*s" : "%s%*s",
                              at == 0 ? "" : gap_before(column),
                              is_left(column) ? width : width_of(column), column->heading);
    }
    fprintf(out, "%s\n", style_off(table->report));
}

/* Returns the columns it took. */
static size_t put_text(const struct report *report, const char *text, int width) {
    size_t size = 0;
    for (const char *at = text; *at != '\0'; at++) {
        size += ((unsigned char)*at & 0xc0) != 0x80;
    }
    style_text(report, text);
    if (width > 0 && size < (size_t)width) {
        fprintf(report->out, "%*s", width - (int)size, "");
        size = (size_t)width;
    }
    return size;
}

/* A cell from `column` on; width 0: as wide as it is. Returns the columns it took. */
static size_t put_cell(const struct report *report, enum table_kind kind,
                       const struct table_cell *cell, int width, size_t column) {
    struct number number;
    if (kind == TABLE_TEXT) {
        return put_text(report, cell->is_known ? cell->text : "-", width);
    }
    if (!cell->is_known) {
        fprintf(report->out, "%*s", is_long(kind) ? 0 : width, "-");
    } else if (kind == TABLE_FRAME) {
        style_frame(report, cell->frame, column);
    } else if (kind == TABLE_PATH) {
        put_path(report, cell->path, column);
    } else {
        bool is_share = kind == TABLE_PERCENT;
        enum style style =
            is_share ? style_share((uint64_t)(cell->real * 1000), 100000) : STYLE_PLAIN;
        const char *text = spell(&number, kind, cell);
        fprintf(report->out, "%s%*s%s", is_share ? style_on(report, style) : "", width, text,
                is_share ? style_off(report) : "");
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
        put_cell(report, column->kind, &cells[i], 0, label_width(column->heading) + 3);
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
        bool is_last = i + 1 == table->count;
        bool is_blank = column->kind == TABLE_TEXT && cells[i].is_known && cells[i].text[0] == '\0';
        if (column->heading == NULL || (is_last && is_blank)) {
            continue;
        }
        at = make_room(table, column, at);
        at += (size_t)fprintf(report->out, "%s", at != 0 ? gap_before(column) : "");
        at += put_cell(report, column->kind, &cells[i],
                       is_last && is_left(column) ? 0 : width_of(column), at);
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
            fputs(is_left(&table->columns[i]) ? "---|" : "---:|", out);
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
                 style_base(frame->file), frame->line);
        tabletext_escaped(out, place);
    }
}

static void put_markdown_path(const struct report *report, uint32_t node) {
    struct calltree_walk walk = calltree_walk(report, node);
    size_t frames = path_frames(report);
    if (walk.frame == NULL) {
        fputs("(no call path was recorded)", report->out);
    }
    for (; walk.frame != NULL && walk.steps < frames; calltree_walk_next(&walk)) {
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
                          kind == TABLE_TEXT ? cell->text : spell(&number, kind, cell));
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
        put_markdown_cell(table->report, column->kind, &cells[i]);
        fputs(table->is_record ? " |\n" : " |", out);
    }
    fputs(table->is_record ? "" : "\n", out);
}
