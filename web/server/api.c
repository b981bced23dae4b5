/* SPDX-License-Identifier: MIT */
/* api.c: what endpoints share: parameters, what is told around the data, columns. See api.h. */
#include "web/server/api.h"

#include "analyze/base/job.h"
#include "ask/option.h"
#include "web/server/request.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ---- Parameters ---- */

const char *api_param(const struct api_call *call, const char *name) {
    return request_parameter(call->request, name);
}

void api_refuse(struct api_call *call, int status, const char *format, ...) {
    struct error error;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error.message, sizeof error.message, format, arguments);
    va_end(arguments);
    call->status = status;
    job_fail_as(&error);
}

uint64_t api_number(struct api_call *call, const char *name, uint64_t usual, uint64_t least,
                    uint64_t most) {
    const char *text = api_param(call, name);
    uint64_t value = usual;
    if (text != NULL && quantity_u64(text, &value) != 0) {
        api_refuse(call, 400, "%s is a number, not '%s'", name, text);
    }
    if (text != NULL && (value < least || value > most)) {
        api_refuse(call, 400, "%s is %" PRIu64 " to %" PRIu64 ", not %s", name, least, most, text);
    }
    return value;
}

int api_word(struct api_call *call, const char *name, const char *words, int usual) {
    const char *text = api_param(call, name);
    int place = text != NULL ? option_word(words, text) : usual;
    if (place < 0) {
        api_refuse(call, 400, "%s is %s, not '%s'", name, words, text);
    }
    return place;
}

bool api_metric(const char *text, enum metric *metric) {
    static const char *const others[] = {[METRIC_SHUTDOWN] = "shutdown", [METRIC_SHORT] = "short"};
    for (enum metric i = METRIC_COUNT; i < METRIC_ALL; i++) {
        if (strcmp(text, others[i]) == 0) {
            *metric = i;
            return true;
        }
    }
    return metric_named(text, metric);
}

bool api_address(const char *text, uint64_t *address) {
    bool is_hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    const char *digits = is_hex ? text + 2 : text;
    size_t length = strspn(digits, is_hex ? "0123456789abcdefABCDEF" : "0123456789");
    errno = 0;
    *address = strtoull(digits, NULL, is_hex ? 16 : 10);
    return length != 0 && digits[length] == '\0' && errno == 0;
}

bool api_flag(struct api_call *call, const char *name) {
    const char *text = api_param(call, name);
    if (text != NULL && text[0] != '\0' && strcmp(text, "1") != 0) {
        api_refuse(call, 400, "%s takes no value but 1", name);
    }
    return text != NULL;
}

static void close_body(void *body) {
    yajl_tree_free(body);
}

yajl_val api_body(struct api_call *call) {
    yajl_val body = call->body != NULL ? jsontree_parse(call->body) : NULL;
    if (body != NULL) {
        job_undo(close_body, body);
    }
    return YAJL_IS_OBJECT(body) ? body : NULL;
}

void api_put_address(struct jsonwriter *json, const char *name, uint64_t address) {
    const struct table_cell cell = table_number(address);
    tabledata_json_value(json, NULL, name, TABLE_ADDRESS, &cell);
}

/* ---- What is told around the data ---- */

static char *told_text(const char *format, va_list arguments) {
    char *text = NULL;
    return job_take(vasprintf(&text, format, arguments) >= 0 ? text : NULL);
}

void api_command(struct api_call *call, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    call->told.command = told_text(format, arguments);
    va_end(arguments);
}

void api_sql(struct api_call *call, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    call->told.sql = told_text(format, arguments);
    va_end(arguments);
}

void api_note(struct api_call *call, const char *format, ...) {
    const char *before = call->told.notes != NULL ? call->told.notes : "";
    va_list arguments;
    va_start(arguments, format);
    call->told.notes = job_text("%s%s\n", before, told_text(format, arguments));
    va_end(arguments);
}

/* ---- Long columns ---- */

static const size_t widths[] = {[API_U32] = 4, [API_U64] = 8, [API_F64] = 8};
static const char *const width_names[] = {[API_U32] = "u32", [API_U64] = "u64", [API_F64] = "f64"};

/* Numbers without fractions are written whole, others with six digits. */
static void put_real(struct jsonwriter *json, double value) {
    if (fabs(value) < 9007199254740992.0 && value == floor(value)) {
        jsonwriter_integer(json, NULL, (int64_t)value);
    } else {
        jsonwriter_double(json, NULL, value);
    }
}

static void column_put_values(struct jsonwriter *json, const char *name, enum api_width width,
                              const void *values, size_t count) {
    jsonwriter_array(json, name);
    for (size_t i = 0; i < count; i++) {
        if (width == API_U32) {
            jsonwriter_number(json, NULL, ((const uint32_t *)values)[i]);
        } else if (width == API_U64) {
            jsonwriter_number(json, NULL, ((const uint64_t *)values)[i]);
        } else {
            put_real(json, ((const double *)values)[i]);
        }
    }
    jsonwriter_end_array(json);
}

/* Most numbers are small: half the bytes have to be sent then, and a page needs not convert them.
 */
static enum api_width narrowest(enum api_width width, const void *values, size_t count) {
    const uint64_t *numbers = values;
    uint64_t all = 0;
    for (size_t i = 0; width == API_U64 && i < count; i++) {
        all |= numbers[i];
    }
    return width == API_U64 && all <= UINT32_MAX ? API_U32 : width;
}

static void copy_column(char *to, enum api_width as, const void *values, enum api_width width,
                        size_t count) {
    const uint64_t *numbers = values;
    uint32_t *narrow = (uint32_t *)(void *)to; /* columns are aligned */
    if (as == width) {
        memcpy(to, values, count * widths[width]);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        narrow[i] = (uint32_t)numbers[i];
    }
}

void api_column(struct api_call *call, const char *name, enum api_width width, const void *values,
                size_t count) {
    struct api_columns *columns = call->columns;
    enum api_width as = narrowest(width, values, columns != NULL ? count : 0);
    size_t size = count * widths[as];
    size_t padded = (size + 7) / 8 * 8;
    if (columns == NULL) {
        column_put_values(call->json, name, width, values, count);
        return;
    }
    job_reserve(&columns->bytes, &columns->room, columns->size + padded + 8, 1);
    jsonwriter_map(call->json, name);
    jsonwriter_string(call->json, "type", width_names[as]);
    jsonwriter_number(call->json, "offset", columns->size);
    jsonwriter_number(call->json, "length", count);
    jsonwriter_end_map(call->json);
    if (size != 0) {
        copy_column(columns->bytes + columns->size, as, values, width, count);
    }
    memset(columns->bytes + columns->size + size, 0, padded - size);
    columns->size += padded;
    columns->is_used = true;
}
