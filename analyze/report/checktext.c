/* SPDX-License-Identifier: MIT */
/* checktext.c: broken budgets as lines that editors, compilers' users and GitHub understand. */
#include "analyze/report/checktext.h"

#include "analyze/model/shortname.h"
#include "analyze/rows/number.h"
#include "analyze/rows/safetext.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- The message ---- */

static bool is_bytes(enum metric metric) {
    return metric != METRIC_ALLOCATIONS && metric != METRIC_TEMPORARY;
}

static const char *amount(struct number *number, enum metric metric, uint64_t value) {
    return metric_main_text(metric, number, (struct cost){.main = value});
}

/* "8.5 KiB (8,704 bytes)" where the short form is not the whole truth. */
static void put_exact(FILE *out, enum metric metric, uint64_t value) {
    struct number number;
    fputs(amount(&number, metric, value), out);
    if (is_bytes(metric) && value >= 1024) {
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

char *checktext_message(const struct check_result *result) {
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
