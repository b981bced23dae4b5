/* SPDX-License-Identifier: MIT */
/* tabledata.c: tables for programs: CSV, TSV and JSON. See table.h. */
#include "analyze/rows/jsonwriter.h"
#include "analyze/rows/pathwalk.h"
#include "analyze/rows/safetext.h"
#include "analyze/rows/table.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- CSV (RFC 4180) and TSV ---- */

/* Inside of the quotes of CSV, where lines and tabs are those of the cell; in TSV, which has none,
 * what would end a field or a line is written as C does. */
static void put_inside(FILE *out, enum report_format format, const char *text) {
    static const char special[] = "\t\n\r\\";
    const char *stops = format == REPORT_TSV ? special : "\"\n\t";
    while (*(text = put_safe_until(out, text, stops)) != '\0') {
        if (format == REPORT_TSV) {
            fprintf(out, "\\%c", "tnr\\"[strchr(special, *text) - special]);
        } else {
            fputs(*text == '"' ? "\"\"" : *text == '\n' ? "\n" : "\t", out);
        }
        text++;
    }
}

/* A spreadsheet would compute a cell that begins so. Threads, pools, marks, files and functions are
 * named by the program, so their names stay text: a single quote before them says so. */
static void put_text_mark(FILE *out, const char *text) {
    if (*text != '\0' && strchr("=+-@\t\r", *text) != NULL) {
        fputc('\'', out);
    }
}

static void tabledata_put_text(FILE *out, enum report_format format, const char *text) {
    bool is_csv = format == REPORT_CSV;
    if (is_csv) {
        fputc('"', out);
        put_text_mark(out, text);
    }
    put_inside(out, format, text);
    fputs(is_csv ? "\"" : "", out);
}

void tabledata_csv_text(FILE *out, const char *text) {
    tabledata_put_text(out, REPORT_CSV, text);
}

/* "function at file:line; ...", innermost first. */
static void tabledata_put_path(const struct report *report, uint32_t node) {
    FILE *out = report->out;
    enum report_format format = report->options.format;
    size_t most = report->options.path_depth != 0 ? report->options.path_depth : SIZE_MAX;
    struct pathwalk walk = pathwalk(report, node);
    fputs(format == REPORT_CSV ? "\"" : "", out);
    for (; walk.frame != NULL && walk.steps < most; pathwalk_next(&walk)) {
        char name[4096];
        names_spell(walk.frame, name, sizeof name);
        if (walk.steps != 0) {
            fputs("; ", out);
        } else if (format == REPORT_CSV) {
            put_text_mark(out, name);
        }
        put_inside(out, format, name);
        if (walk.frame->file != NULL) {
            fputs(" at ", out);
            put_inside(out, format, walk.frame->file);
            fprintf(out, ":%u", walk.frame->line);
        }
    }
    fputs(format == REPORT_CSV ? "\"" : "", out);
}

static char separator(const struct table *table) {
    return table->report->options.format == REPORT_CSV ? ',' : '\t';
}

/* Four fields: which function of which module, and where. */
static void tabledata_put_frame(const struct table *table, const struct table_cell *cell) {
    FILE *out = table->report->out;
    enum report_format format = table->report->options.format;
    char name[2048];
    if (!cell->is_known) {
        fprintf(out, "%c%c%c", separator(table), separator(table), separator(table));
        return;
    }
    tabledata_put_text(out, format, names_spell(cell->frame, name, sizeof name));
    fputc(separator(table), out);
    tabledata_put_text(out, format, cell->frame->file != NULL ? cell->frame->file : "");
    fprintf(out, "%c%u%c", separator(table), cell->frame->line, separator(table));
    tabledata_put_text(out, format, cell->frame->module);
}

static void tabledata_put_field(const struct table *table, enum table_kind kind,
                                const struct table_cell *cell) {
    FILE *out = table->report->out;
    switch (kind == TABLE_ANY ? cell->kind : kind) {
    case TABLE_TEXT:
        tabledata_put_text(out, table->report->options.format, cell->text);
        break;
    case TABLE_WORD:
        fputs(cell->text, out);
        break;
    case TABLE_PATH:
        tabledata_put_path(table->report, cell->path);
        break;
    case TABLE_SIGNED:
    case TABLE_CHANGE:
    case TABLE_BYTES_CHANGE:
        fprintf(out, "%" PRId64, (int64_t)cell->number);
        break;
    case TABLE_REAL:
    case TABLE_PERCENT:
        if (cell->text != NULL) {
            fputs(cell->text, out);
        } else {
            fprintf(out, "%.6g", cell->real);
        }
        break;
    case TABLE_ADDRESS:
        fprintf(out, "0x%" PRIx64, cell->number);
        break;
    case TABLE_HASH:
        fprintf(out, "%016" PRIx64, cell->number);
        break;
    default:
        fprintf(out, "%" PRIu64, cell->number);
        break;
    }
}

static void end_line(const struct table *table) {
    fputs(table->report->options.format == REPORT_CSV ? "\r\n" : "\n", table->report->out);
}

void tabledata_fields_headings(const struct table *table) {
    FILE *out = table->report->out;
    bool is_first = true;
    for (size_t i = 0; i < table->count; i++) {
        const struct table_column *column = &table->columns[i];
        if (column->name == NULL) {
            continue;
        }
        if (!is_first) {
            fputc(separator(table), out);
        }
        is_first = false;
        if (column->kind == TABLE_FRAME) {
            fprintf(out, "function%cfile%cline%cmodule", separator(table), separator(table),
                    separator(table));
        } else if (separator(table) == ',' && strpbrk(column->name, ",\"\r\n=+-@\t") != NULL) {
            tabledata_csv_text(out, column->name); /* a statement may name it in any way */
        } else {
            put_inside(out, REPORT_TSV, column->name);
        }
    }
    end_line(table);
}

void tabledata_fields_row(const struct table *table, const struct table_cell *cells) {
    bool is_first = true;
    for (size_t i = 0; i < table->count; i++) {
        const struct table_column *column = &table->columns[i];
        if (column->name == NULL) {
            continue;
        }
        if (!is_first) {
            fputc(separator(table), table->report->out);
        }
        is_first = false;
        if (column->kind == TABLE_FRAME) {
            tabledata_put_frame(table, &cells[i]);
        } else if (cells[i].is_known) {
            tabledata_put_field(table, column->kind, &cells[i]);
        }
    }
    end_line(table);
}

/* ---- JSON ---- */

void tabledata_json_frame(struct jsonwriter *json, const struct names_frame *frame) {
    jsonwriter_string(json, "function", frame->function);
    jsonwriter_string(json, "file", frame->file);
    jsonwriter_number(json, "line", frame->line);
    jsonwriter_string(json, "module", frame->module);
    jsonwriter_number(json, "offset", frame->offset);
}

void tabledata_json_path(const struct report *report, struct jsonwriter *json, const char *name,
                         uint32_t node) {
    struct pathwalk walk = pathwalk(report, node);
    jsonwriter_array(json, name);
    for (; walk.frame != NULL; pathwalk_next(&walk)) {
        jsonwriter_map(json, NULL);
        tabledata_json_frame(json, walk.frame);
        jsonwriter_bool(json, "inlined", walk.frame->inlined);
        jsonwriter_end_map(json);
    }
    jsonwriter_end_array(json);
}

void tabledata_json_warnings(struct jsonwriter *json, const struct report *report) {
    const struct model *model = report->model;
    const char *const *lines;
    size_t count = names_warnings(report->names, &lines);
    jsonwriter_array(json, "warnings");
    if (model->damage[0] != '\0') {
        jsonwriter_string(json, NULL, model->damage);
    }
    for (size_t i = 0; i < count; i++) {
        jsonwriter_string(json, NULL, lines[i]);
    }
    jsonwriter_end_array(json);
}

/* Each call path has a hash: without printf. */
static void tabledata_json_hash(struct jsonwriter *json, const char *name, uint64_t value) {
    char text[17];
    for (size_t i = 16; i-- > 0; value >>= 4) {
        text[i] = "0123456789abcdef"[value & 15];
    }
    text[16] = '\0';
    jsonwriter_string(json, name, text);
}

void tabledata_json_value(struct jsonwriter *json, const struct report *report, const char *name,
                          enum table_kind kind, const struct table_cell *cell) {
    char address[24];
    switch (kind == TABLE_ANY ? cell->kind : kind) {
    case TABLE_TEXT:
    case TABLE_WORD:
        jsonwriter_string(json, name, cell->text);
        break;
    case TABLE_FRAME:
        tabledata_json_frame(json, cell->frame);
        break;
    case TABLE_PATH:
        tabledata_json_path(report, json, name, cell->path);
        break;
    case TABLE_REAL:
    case TABLE_PERCENT:
        jsonwriter_double(json, name, cell->real);
        break;
    case TABLE_SIGNED:
    case TABLE_CHANGE:
    case TABLE_BYTES_CHANGE:
        jsonwriter_integer(json, name, (int64_t)cell->number);
        break;
    case TABLE_ADDRESS:
        snprintf(address, sizeof address, "0x%" PRIx64, cell->number);
        jsonwriter_string(json, name, address);
        break;
    case TABLE_HASH:
        tabledata_json_hash(json, name, cell->number);
        break;
    default:
        jsonwriter_number(json, name, cell->number);
        break;
    }
}

void tabledata_json_cell(struct jsonwriter *json, const struct report *report,
                         const struct table_column *column, const struct table_cell *cell) {
    if (cell->is_known) {
        tabledata_json_value(json, report, column->name, column->kind, cell);
    } else {
        jsonwriter_string(json, column->kind == TABLE_FRAME ? "function" : column->name, NULL);
    }
}

void tabledata_json_row(const struct table *table, const struct table_cell *cells) {
    struct jsonwriter *json = table->json;
    jsonwriter_map(json, NULL);
    for (size_t i = 0; i < table->count; i++) {
        if (table->columns[i].name != NULL) {
            tabledata_json_cell(json, table->report, &table->columns[i], &cells[i]);
        }
    }
    jsonwriter_end_map(json);
}
