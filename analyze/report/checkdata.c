/* SPDX-License-Identifier: MIT */
/* checkdata.c: results of a check as JUnit XML, which CI servers show as tests, and as JSON. */
#include "analyze/report/checktext.h"
#include "analyze/rows/jsonwriter.h"
#include "analyze/rows/safetext.h"
#include "analyze/rows/style.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- JUnit ---- */

/* Text and attributes of XML, which is UTF-8 and knows no control characters. */
static void put_xml(FILE *out, const char *text) {
    while (*text != '\0') {
        unsigned char byte = (unsigned char)*text;
        size_t length = utf8_length(text);
        if (length > 1) {
            fwrite(text, 1, length, out);
        } else if (strchr("<>&\"'\n", byte) != NULL) {
            fprintf(out, "&#%u;", byte);
        } else if (length == 0) {
            fputs(UTF8_BAD, out);
        } else {
            fputc(byte >= 32 && byte != 127 ? byte : '?', out);
        }
        text += length != 0 ? length : 1;
    }
}

static void put_attribute(FILE *out, const char *name, const char *value) {
    fprintf(out, " %s=\"", name);
    put_xml(out, value);
    fputc('"', out);
}

static int put_failure(const struct check_report *report, const struct check_result *result) {
    char *message = checktext_message(result);
    if (message == NULL) {
        return -1;
    }
    fputs("      <failure", report->out);
    put_attribute(report->out, "message", message);
    put_attribute(report->out, "type", metric_name(result->budget->metric));
    fputc('>', report->out);
    put_xml(report->out, result->path != NULL ? result->path : message);
    fputs("</failure>\n", report->out);
    free(message);
    return 0;
}

static int put_case(const struct check_report *report, const struct check_result *result) {
    int status = 0;
    fputs("    <testcase", report->out);
    put_attribute(report->out, "classname", style_base(report->executable));
    put_attribute(report->out, "name", result->budget->text);
    if (result->line != 0 && !result->met) {
        char line[16];
        snprintf(line, sizeof line, "%u", result->line);
        put_attribute(report->out, "file", result->file);
        put_attribute(report->out, "line", line);
    }
    put_attribute(report->out, "time", "0");
    if (result->met) {
        fputs("/>\n", report->out);
        return 0;
    }
    fputs(">\n", report->out);
    status = put_failure(report, result);
    fputs("    </testcase>\n", report->out);
    return status;
}

static size_t count_broken(const struct check_report *report) {
    size_t broken = 0;
    for (size_t i = 0; i < report->count; i++) {
        broken += !report->results[i].met;
    }
    return broken;
}

int check_write_junit(const struct check_report *report) {
    size_t broken = count_broken(report);
    int status = 0;
    fprintf(report->out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<testsuites tests=\"%zu\" failures=\"%zu\" errors=\"0\">\n"
            "  <testsuite name=\"memtrace check\" tests=\"%zu\" failures=\"%zu\" errors=\"0\" "
            "skipped=\"0\" time=\"0\">\n",
            report->count, broken, report->count, broken);
    for (size_t i = 0; status == 0 && i < report->count; i++) {
        status = put_case(report, &report->results[i]);
    }
    fputs("  </testsuite>\n</testsuites>\n", report->out);
    return status;
}

/* ---- JSON ---- */

static void put_numbers(struct jsonwriter *json, const struct check_result *result) {
    const struct check_budget *budget = result->budget;
    jsonwriter_number(json, "value", result->value);
    jsonwriter_number(json, "most", result->most);
    if (result->is_estimate) {
        jsonwriter_double(json, "standard_error", result->error);
    }
    if (budget->kind == CHECK_GROWTH) {
        jsonwriter_string(json, "baseline", budget->baseline);
        jsonwriter_number(json, "before", result->before);
    }
    if (budget->kind == CHECK_PER_SCOPE) {
        jsonwriter_string(json, "scope", budget->scope);
        jsonwriter_number(json, "instances", result->instances);
        jsonwriter_number(json, "sum", result->sum);
    }
}

static void put_worst(struct jsonwriter *json, const struct check_result *result) {
    if (result->function == NULL) {
        return;
    }
    jsonwriter_map(json, "worst");
    jsonwriter_number(json, "share", result->share);
    jsonwriter_string(json, "function", result->function);
    jsonwriter_string(json, "file", result->file);
    jsonwriter_number(json, "line", result->line);
    jsonwriter_string(json, "path", result->path);
    jsonwriter_end_map(json);
}

static int put_result(struct jsonwriter *json, const struct check_result *result) {
    static const char *const kinds[] = {"total", "scope", "growth"};
    const struct check_budget *budget = result->budget;
    char *message = result->met ? NULL : checktext_message(result);
    if (!result->met && message == NULL) {
        return -1;
    }
    jsonwriter_map(json, NULL);
    jsonwriter_string(json, "budget", budget->text);
    jsonwriter_string(json, "origin", budget->origin[0] != '\0' ? budget->origin : NULL);
    jsonwriter_string(json, "kind", kinds[budget->kind]);
    jsonwriter_string(json, "metric", metric_name(budget->metric));
    jsonwriter_bool(json, "met", result->met);
    put_numbers(json, result);
    jsonwriter_string(json, "message", message);
    put_worst(json, result);
    jsonwriter_end_map(json);
    free(message);
    return 0;
}

int check_write_json(const struct check_report *report) {
    struct jsonwriter *json = jsonwriter_open(report->out, JSONWRITER_INDENTED);
    int status = json != NULL ? 0 : -1;
    if (status != 0) {
        return -1;
    }
    jsonwriter_map(json, NULL);
    jsonwriter_number(json, "version", 1);
    jsonwriter_string(json, "source", report->source);
    jsonwriter_string(json, "executable", report->executable);
    jsonwriter_bool(json, "met", count_broken(report) == 0);
    jsonwriter_array(json, "budgets");
    for (size_t i = 0; status == 0 && i < report->count; i++) {
        status = put_result(json, &report->results[i]);
    }
    jsonwriter_end_array(json);
    jsonwriter_end_map(json);
    jsonwriter_close(json);
    fputc('\n', report->out);
    return status;
}
