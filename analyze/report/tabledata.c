/* SPDX-License-Identifier: MIT */
/* tabledata.c: tables for programs, as CSV and as JSON: whole numbers under stable names. */
#include "analyze/report/csvtext.h"
#include "analyze/report/table.h"
#include "analyze/rows/jsonwriter.h"

#include <inttypes.h>

/* ---- CSV (RFC 4180) ---- */

/* Four fields: which function of which module, and where. */
static void put_frame(FILE *out, const struct names_frame *frame) {
    char name[2048];
    csvtext_put(out, names_spell(frame, name, sizeof name));
    fputc(',', out);
    csvtext_put(out, frame->file != NULL ? frame->file : "");
    fprintf(out, ",%u,", frame->line);
    csvtext_put(out, frame->module);
}

void tabledata_csv_headings(const struct table *table) {
    FILE *out = table->report->out;
    const char *comma = "";
    for (size_t i = 0; i < table->count; i++) {
        if (table->columns[i].name != NULL) {
            bool is_frame = table->columns[i].kind == TABLE_FRAME;
            fprintf(out, "%s%s", comma,
                    is_frame ? "function,file,line,module" : table->columns[i].name);
            comma = ",";
        }
    }
    fputs("\r\n", out);
}

static void put_field(const struct report *report, enum table_kind kind,
                      const struct table_cell *cell) {
    switch (kind) {
    case TABLE_TEXT:
        csvtext_put(report->out, cell->text);
        break;
    case TABLE_FRAME:
        put_frame(report->out, cell->frame);
        break;
    case TABLE_PATH:
        csvtext_put_path(report->out, calltree_walk(report, cell->path), 0);
        break;
    case TABLE_REAL:
    case TABLE_PERCENT:
        fprintf(report->out, "%.6g", cell->real);
        break;
    case TABLE_ADDRESS:
        fprintf(report->out, "0x%" PRIx64, cell->number);
        break;
    case TABLE_HASH:
        fprintf(report->out, "%016" PRIx64, cell->number);
        break;
    default:
        fprintf(report->out, "%" PRIu64, cell->number);
        break;
    }
}

void tabledata_csv_row(const struct table *table, const struct table_cell *cells) {
    const char *comma = "";
    for (size_t i = 0; i < table->count; i++) {
        if (table->columns[i].name == NULL) {
            continue;
        }
        fputs(comma, table->report->out);
        comma = ",";
        if (cells[i].is_known) {
            put_field(table->report, table->columns[i].kind, &cells[i]);
        } else if (table->columns[i].kind == TABLE_FRAME) {
            fputs(",,,", table->report->out);
        }
    }
    fputs("\r\n", table->report->out);
}

/* ---- JSON ---- */

static void put_json_frame(struct jsonwriter *json, const struct names_frame *frame) {
    jsonwriter_string(json, "function", frame->function);
    jsonwriter_string(json, "file", frame->file);
    jsonwriter_number(json, "line", frame->line);
    jsonwriter_string(json, "module", frame->module);
    jsonwriter_number(json, "offset", frame->offset);
}

static void put_json_path(struct jsonwriter *json, const struct report *report, const char *name,
                          uint32_t node) {
    struct calltree_walk walk = calltree_walk(report, node);
    jsonwriter_array(json, name);
    for (; walk.frame != NULL; calltree_walk_next(&walk)) {
        jsonwriter_map(json, NULL);
        put_json_frame(json, walk.frame);
        jsonwriter_bool(json, "inlined", walk.frame->inlined);
        jsonwriter_end_map(json);
    }
    jsonwriter_end_array(json);
}

static void put_hex(struct jsonwriter *json, const char *name, const char *format, uint64_t value) {
    char text[24];
    snprintf(text, sizeof text, format, value);
    jsonwriter_string(json, name, text);
}

static void put_value(struct jsonwriter *json, const struct report *report, const char *name,
                      enum table_kind kind, const struct table_cell *cell) {
    switch (kind) {
    case TABLE_TEXT:
        jsonwriter_string(json, name, cell->text);
        break;
    case TABLE_FRAME:
        put_json_frame(json, cell->frame);
        break;
    case TABLE_PATH:
        put_json_path(json, report, name, cell->path);
        break;
    case TABLE_REAL:
    case TABLE_PERCENT:
        jsonwriter_double(json, name, cell->real);
        break;
    case TABLE_ADDRESS:
        put_hex(json, name, "0x%" PRIx64, cell->number);
        break;
    case TABLE_HASH:
        put_hex(json, name, "%016" PRIx64, cell->number);
        break;
    default:
        jsonwriter_number(json, name, cell->number);
        break;
    }
}

void tabledata_json_row(const struct table *table, const struct table_cell *cells) {
    struct jsonwriter *json = table->report->document->json;
    jsonwriter_map(json, NULL);
    for (size_t i = 0; i < table->count; i++) {
        const struct table_column *column = &table->columns[i];
        if (column->name == NULL) {
            continue;
        }
        if (cells[i].is_known) {
            put_value(json, table->report, column->name, column->kind, &cells[i]);
        } else {
            jsonwriter_string(json, column->kind == TABLE_FRAME ? "function" : column->name, NULL);
        }
    }
    jsonwriter_end_map(json);
}
