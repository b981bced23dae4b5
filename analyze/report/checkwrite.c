/* SPDX-License-Identifier: MIT */
/* checkwrite.c: results of a check as lines that editors, compilers' users and GitHub understand,
 * as JUnit XML and as JSON. See check.h. */
#include "analyze/base/pathname.h"
#include "analyze/model/names.h"
#include "analyze/report/check.h"
#include "analyze/rows/jsonwriter.h"
#include "analyze/rows/number.h"
#include "analyze/rows/safetext.h"
#include "analyze/rows/style.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- The message ---- */

static const char *amount(struct number *number, enum metric metric, uint64_t value) {
    return metric_main_text(metric, number, (struct cost){.main = value});
}

/* "8.5 KiB (8,704 bytes)" where the short form is not the whole truth. */
static void put_exact(FILE *out, enum metric metric, uint64_t value) {
    struct number number;
    fputs(amount(&number, metric, value), out);
    if (metric_main_is_bytes(metric) && value >= 1024) {
        fprintf(out, " (%s)", number_items(&number, value, "byte"));
    }
}

static void put_values(FILE *out, const struct check_result *result) {
    const struct check_budget *budget = result->budget;
    enum metric metric = budget->metric;
    struct number number;
    fputs(metric == METRIC_TEMPORARY ? "temporary allocations" : metric_word(metric), out);
    fputs(metric == METRIC_ALLOCATIONS || metric == METRIC_TEMPORARY ? " are " : " is ", out);
    put_exact(out, metric, result->value);
    if (budget->kind == CHECK_PER_SCOPE) {
        fprintf(out, " in one of %s scopes %s", number_count(&number, result->instances),
                budget->scope);
    }
    if (budget->kind == CHECK_GROWTH) {
        fputs(" and was ", out);
        put_exact(out, metric, result->before);
    }
    if (result->is_estimate) {
        fputs(" (an estimate", out);
        if (result->error > 0) {
            fprintf(out, ", +- %s", amount(&number, metric, (uint64_t)result->error));
        }
        fputc(')', out);
    }
    fputs(", more than ", out);
    put_exact(out, metric, result->most);
}

static void put_blame(FILE *out, const struct check_result *result) {
    struct number number;
    char brief[4096];
    if (result->function != NULL) {
        fprintf(out, ": %s%s in %s", result->budget->kind == CHECK_GROWTH ? "+" : "",
                amount(&number, result->budget->metric, result->share),
                shortname(result->function, brief, sizeof brief));
    }
}

static char *checktext_message(const struct check_result *result) {
    const struct check_budget *budget = result->budget;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL) {
        return NULL;
    }
    put_values(out, result);
    put_blame(out, result);
    fprintf(out, " [%s%s%s]", budget->text, budget->origin[0] != '\0' ? ", " : "", budget->origin);
    return fclose(out) == 0 ? text : NULL;
}

/* ---- JUnit ---- */

/* Text and attributes of XML, which is UTF-8 and knows no control characters. */
static void put_xml(FILE *out, const char *text) {
    while (*text != '\0') {
        unsigned char byte = (unsigned char)*text;
        size_t length = utf8_length(text);
        bool is_safe;
        safetext_step(text, &is_safe);
        if (strchr("<>&\"'\n", byte) != NULL) {
            fprintf(out, "&#%u;", byte);
        } else if (length == 0) {
            fputs(UTF8_BAD, out);
        } else if (is_safe) {
            fwrite(text, 1, length, out);
        } else {
            fputc('?', out);
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
    put_attribute(report->out, "classname", pathname_base(report->executable));
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

static int check_write_junit(const struct check_report *report) {
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

static int check_write_json(const struct check_report *report) {
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

/* ---- One line each ---- */

static void put_gcc(const struct check_report *report, const struct check_result *result,
                    const char *message) {
    if (result->line != 0) {
        put_safe(report->out, result->file);
        fprintf(report->out, ":%u", result->line);
    } else {
        put_safe(report->out, report->source);
    }
    fputs(": error: ", report->out);
    put_safe(report->out, message);
    fputc('\n', report->out);
}

/* A workflow command: % and ends of lines are escaped, in its properties also : and ,. */
static void put_escaped(FILE *out, const char *text, bool property) {
    while (*(text = put_safe_until(out, text, property ? "%\r\n:," : "%\r\n")) != '\0') {
        fprintf(out, "%%%02X", (unsigned char)*text++);
    }
}

static void put_github(const struct check_report *report, const struct check_result *result,
                       const char *message) {
    fputs("::error ", report->out);
    if (result->line != 0) {
        fputs("file=", report->out);
        put_escaped(report->out, result->file, true);
        fprintf(report->out, ",line=%u,", result->line);
    }
    fputs("title=", report->out);
    put_escaped(report->out, result->budget->text, true);
    fputs("::", report->out);
    put_escaped(report->out, message, false);
    fputc('\n', report->out);
}

static int write_lines(const struct check_report *report, enum check_format format) {
    size_t broken = 0;
    for (size_t i = 0; i < report->count; i++) {
        const struct check_result *result = &report->results[i];
        char *message;
        if (result->met) {
            continue;
        }
        broken++;
        message = checktext_message(result);
        if (message == NULL) {
            return -1;
        }
        (format == CHECK_GITHUB ? put_github : put_gcc)(report, result, message);
        free(message);
    }
    if (broken == 0) {
        put_safe(report->out, report->source);
        struct number count;
        fprintf(report->out, ": %s met\n", number_items(&count, report->count, "budget"));
    }
    return 0;
}

int check_write(const struct check_report *report, enum check_format format) {
    switch (format) {
    case CHECK_JUNIT:
        return check_write_junit(report);
    case CHECK_JSON:
        return check_write_json(report);
    default:
        return write_lines(report, format);
    }
}
