/* SPDX-License-Identifier: MIT */
/* request.c: see request.h. */
#include "web/server/request.h"

#include "analyze/rows/safetext.h"

#include <stdlib.h>
#include <string.h>

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* In a query '+' is a space, in a path it is not. NULL: malformed, or out of memory. */
static char *request_decode(const char *text, size_t size, bool is_query) {
    char *decoded = malloc(size + 1);
    size_t length = 0;
    for (size_t i = 0; decoded != NULL && i < size; i++) {
        char c = text[i];
        if (c == '%') {
            int high = i + 2 < size ? hex_digit(text[i + 1]) : -1;
            int low = i + 2 < size ? hex_digit(text[i + 2]) : -1;
            c = high < 0 || low < 0 ? '\0' : (char)(high << 4 | low);
            i += 2;
        } else if (c == '+' && is_query) {
            c = ' ';
        }
        if (c == '\0') {
            free(decoded);
            return NULL;
        }
        decoded[length++] = c;
    }
    if (decoded != NULL) {
        decoded[length] = '\0';
        if (!utf8_is_valid(decoded)) {
            free(decoded);
            return NULL;
        }
    }
    return decoded;
}

/* No part of it leads upwards. */
static bool is_plain_path(const char *path) {
    for (const char *part = path; part != NULL; part = strchr(part, '/')) {
        part += *part == '/';
        size_t length = strcspn(part, "/");
        if ((length == 1 && part[0] == '.') || (length == 2 && memcmp(part, "..", 2) == 0)) {
            return false;
        }
    }
    return path[0] == '/' && strchr(path, '\\') == NULL;
}

static int add_parameter(struct request *request, const char *text, size_t size,
                         struct error *error) {
    const char *equals = memchr(text, '=', size);
    size_t name_size = equals != NULL ? (size_t)(equals - text) : size;
    struct request_parameter *added = &request->parameters[request->parameter_count];
    if (size == 0) {
        return 0;
    }
    if (request->parameter_count == REQUEST_PARAMETERS) {
        return error_set(error, "more than %d parameters", REQUEST_PARAMETERS);
    }
    request->parameter_count++;
    added->name = request_decode(text, name_size, true);
    added->value =
        equals != NULL ? request_decode(equals + 1, size - name_size - 1, true) : strdup("");
    return added->name != NULL && added->value != NULL
               ? 0
               : error_set(error, "a parameter is not well-formed text");
}

int request_parse(struct request *request, const char *uri, struct error *error) {
    size_t path_size = strcspn(uri, "?#");
    const char *query = uri[path_size] == '?' ? uri + path_size + 1 : "";
    *request = (struct request){.path = request_decode(uri, path_size, false)};
    if (request->path == NULL || !is_plain_path(request->path)) {
        return error_set(error, "the path is not well-formed");
    }
    request->parameters = calloc(REQUEST_PARAMETERS, sizeof *request->parameters);
    if (request->parameters == NULL) {
        return error_set(error, "out of memory");
    }
    for (;;) {
        size_t size = strcspn(query, "&#");
        if (add_parameter(request, query, size, error) != 0) {
            return -1;
        }
        if (query[size] != '&') {
            return 0;
        }
        query += size + 1;
    }
}

void request_free(struct request *request) {
    for (size_t i = 0; i < request->parameter_count; i++) {
        free(request->parameters[i].name);
        free(request->parameters[i].value);
    }
    free(request->parameters);
    free(request->path);
    *request = (struct request){0};
}

const char *request_parameter(const struct request *request, const char *name) {
    for (size_t i = 0; i < request->parameter_count; i++) {
        if (strcmp(request->parameters[i].name, name) == 0) {
            return request->parameters[i].value;
        }
    }
    return NULL;
}
