/* SPDX-License-Identifier: MIT */
/*
 * openapi.c: GET /openapi.json: what may be asked and what comes out, for programs. It is made
 * of the routes (routes.c), the options that filter (ask/filters.c) and web/schemas.json, which has
 * what no table of ours has: what answers look like, and the endpoints' own parameters.
 *
 * In web/schemas.json an object with "properties" has no others than these ("additionalProperties"
 * says so where it has), and all of them but those whose names end with "?".
 */
#include "web/server/openapi.h"

#include "analyze/read/jsontree.h"
#include "ask/filters.h"
#include "web/server/apilist.h"
#include "web/server/apitable.h"
#include "web/server/routes.h"
#include "web/server/uifiles.h"

#include <string.h>

static void openapi_pair(struct jsonwriter *json, const char *name, const char *member,
                         const char *value) {
    jsonwriter_map(json, name);
    jsonwriter_string(json, member, value);
    jsonwriter_end_map(json);
}

static void openapi_reference(struct jsonwriter *json, const char *name, const char *kind,
                              const char *to) {
    char text[100];
    snprintf(text, sizeof text, "#/components/%s/%s", kind, to);
    openapi_pair(json, name, "$ref", text);
}

/* ---- Filters, as one parameter ---- */

/* The value is a word, a flag, or any text; some may be given more than once. */
static void openapi_filter(struct jsonwriter *json, const struct option *option,
                           const char *about) {
    bool is_repeated = filters_is_repeated(option);
    const char *words = option->value == NULL             ? "|1"
                        : option_has_words(option->value) ? option->value
                                                          : NULL;
    jsonwriter_map(json, option->name);
    jsonwriter_string(json, "description", about);
    if (is_repeated) {
        jsonwriter_string(json, "type", "array");
        jsonwriter_map(json, "items");
    }
    jsonwriter_string(json, "type", "string");
    if (words != NULL) {
        jsonwriter_array(json, "enum");
        for (const char *at = words - 1; at != NULL; at = strchr(at, '|')) {
            char word[32];
            at++;
            snprintf(word, sizeof word, "%.*s", (int)strcspn(at, "|"), at);
            jsonwriter_string(json, NULL, word);
        }
        jsonwriter_end_array(json);
    }
    if (is_repeated) {
        jsonwriter_end_map(json);
    }
    jsonwriter_end_map(json);
}

/* Help that begins with "... " goes on with what an option before it began. */
static void openapi_filters(struct jsonwriter *json) {
    struct option_walk walk = option_walk_start(filter_options);
    const struct option *option;
    const char *begun = "";
    jsonwriter_string(json, "type", "object");
    jsonwriter_map(json, "properties");
    while ((option = option_walk_next(&walk)) != NULL) {
        char about[300];
        bool goes_on;
        bool has_end;
        if (option_is_heading(option) || option->help == NULL || option->key == OPTION_HELP) {
            continue;
        }
        goes_on = strncmp(option->help, "... ", 4) == 0;
        has_end = option->help[strlen(option->help) - 1] == '.';
        begun = goes_on ? begun : option->help;
        snprintf(about, sizeof about, "Filter: %.*s%s%s%s", goes_on ? (int)strcspn(begun, ":") : 0,
                 begun, goes_on ? ": " : "", option->help + (goes_on ? 4 : 0), has_end ? "" : ".");
        openapi_filter(json, option, about);
    }
    jsonwriter_end_map(json);
}

/* ---- What web/schemas.json says ---- */

static void openapi_value(struct jsonwriter *json, const char *name, yajl_val value);

static void openapi_members(struct jsonwriter *json, yajl_val object) {
    for (size_t i = 0; i < YAJL_GET_OBJECT(object)->len; i++) {
        openapi_value(json, YAJL_GET_OBJECT(object)->keys[i], YAJL_GET_OBJECT(object)->values[i]);
    }
}

/* What follows from the names of an object's properties; they go without "?". */
static void openapi_properties(struct jsonwriter *json, yajl_val schema, yajl_val properties) {
    jsonwriter_string(json, "type", "object");
    jsonwriter_array(json, "required");
    for (size_t i = 0; i < properties->u.object.len; i++) {
        char *name = (char *)properties->u.object.keys[i];
        size_t length = strlen(name);
        if (name[length - 1] == '?') {
            name[length - 1] = '\0';
        } else {
            jsonwriter_string(json, NULL, name);
        }
    }
    jsonwriter_end_array(json);
    if (jsontree_member(schema, "additionalProperties") == NULL) {
        jsonwriter_bool(json, "additionalProperties", false);
    }
}

/* "properties": "filters" stands for those of the options. */
static void openapi_value(struct jsonwriter *json, const char *name, yajl_val value) {
    if (YAJL_IS_OBJECT(value)) {
        yajl_val properties = jsontree_member(value, "properties");
        jsonwriter_map(json, name);
        if (YAJL_IS_OBJECT(properties)) {
            openapi_properties(json, value, properties);
        }
        openapi_members(json, value);
        jsonwriter_end_map(json);
    } else if (YAJL_IS_ARRAY(value)) {
        jsonwriter_array(json, name);
        for (size_t i = 0; i < YAJL_GET_ARRAY(value)->len; i++) {
            openapi_value(json, NULL, YAJL_GET_ARRAY(value)->values[i]);
        }
        jsonwriter_end_array(json);
    } else if (YAJL_IS_INTEGER(value)) {
        jsonwriter_integer(json, name, YAJL_GET_INTEGER(value));
    } else if (YAJL_IS_STRING(value) && name != NULL && strcmp(name, "properties") == 0) {
        openapi_filters(json);
    } else if (YAJL_IS_STRING(value)) {
        jsonwriter_string(json, name, YAJL_GET_STRING(value));
    } else {
        jsonwriter_bool(json, name, YAJL_IS_TRUE(value));
    }
}

/* ---- Routes ---- */

/* As its endpoint's own, "findings limit", or as all have it, "limit". */
static void openapi_parameter(struct jsonwriter *json, yajl_val parts, const struct route *route,
                              const char *name, bool is_in_path) {
    yajl_val all = jsontree_member(parts, "parameters");
    yajl_val described;
    char own[64];
    snprintf(own, sizeof own, "%s %s", route->id, name);
    described = jsontree_member(all, own);
    jsonwriter_map(json, NULL);
    jsonwriter_string(json, "name", name);
    jsonwriter_string(json, "in", is_in_path ? "path" : "query");
    openapi_members(json, described != NULL ? described : jsontree_member(all, name));
    if (is_in_path) {
        jsonwriter_bool(json, "required", true);
    }
    jsonwriter_end_map(json);
}

static void openapi_parameters(struct jsonwriter *json, yajl_val parts, const struct route *route) {
    const char *rest = route->own != NULL ? route->own : "";
    jsonwriter_array(json, "parameters");
    for (const char *at = strchr(route->path, '{'); at != NULL; at = strchr(at + 1, '{')) {
        char name[32];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(at + 1, "}"), at + 1);
        if (strcmp(name, "r") == 0) {
            openapi_reference(json, NULL, "parameters", name);
        } else {
            openapi_parameter(json, parts, route, name, true);
        }
    }
    while (*rest != '\0') {
        size_t length = strcspn(rest, " ");
        char name[32];
        snprintf(name, sizeof name, "%.*s", (int)length, rest);
        openapi_parameter(json, parts, route, name, false);
        rest += length + (rest[length] == ' ');
    }
    if ((route->flags & ROUTE_METRIC) != 0) {
        openapi_reference(json, NULL, "parameters", "metric");
    }
    if ((route->flags & ROUTE_TABLE) != 0) {
        openapi_reference(json, NULL, "parameters", "rows");
    }
    if ((route->flags & ROUTE_PLAIN) == 0) {
        openapi_reference(json, NULL, "parameters", "filters");
        openapi_reference(json, NULL, "parameters", "shape");
    }
    jsonwriter_end_array(json);
}

/* By name, or if that is NULL as web/schemas.json has it under the endpoint's. */
static void openapi_schema(struct jsonwriter *json, const char *name, const struct route *route,
                           yajl_val described) {
    if (route->answer != NULL) {
        openapi_reference(json, name, "schemas", route->answer);
    } else {
        openapi_value(json, name, described);
    }
}

static void openapi_answer(struct jsonwriter *json, yajl_val parts, const struct route *route) {
    yajl_val described = jsontree_member(jsontree_member(parts, "answers"), route->id);
    yajl_val others = jsontree_member(jsontree_member(parts, "contents"), route->id);
    jsonwriter_map(json, "content");
    if (route->answer != NULL || described != NULL) {
        jsonwriter_map(json, "application/json");
        if ((route->flags & ROUTE_PLAIN) != 0) {
            openapi_schema(json, "schema", route, described);
        } else {
            jsonwriter_map(json, "schema");
            jsonwriter_array(json, "allOf");
            openapi_reference(json, NULL, "schemas", "Envelope");
            jsonwriter_map(json, NULL);
            jsonwriter_map(json, "properties");
            openapi_schema(json, "data", route, described);
            jsonwriter_end_map(json);
            jsonwriter_end_map(json);
            jsonwriter_end_array(json);
            jsonwriter_end_map(json);
        }
        jsonwriter_end_map(json);
    }
    if (others != NULL) {
        openapi_members(json, others);
    }
    jsonwriter_end_map(json);
}

/* What is in a table, of those whose columns are always the same. */
static void openapi_columns(struct jsonwriter *json, const struct rows *rows) {
    unsigned char shown[UINT8_MAX];
    size_t count = rows_shown(rows, TABLE_PAGE, shown, sizeof shown);
    jsonwriter_array(json, "x-columns");
    for (size_t i = 0; i < count; i++) {
        apitable_column(json, &rows->columns[shown[i]]);
    }
    jsonwriter_end_array(json);
}

static void openapi_operation(struct jsonwriter *json, yajl_val parts, const struct route *route) {
    yajl_val body = jsontree_member(jsontree_member(parts, "bodies"), route->id);
    jsonwriter_map(json, strcmp(route->method, "GET") == 0 ? "get" : "post");
    jsonwriter_string(json, "operationId", route->id);
    jsonwriter_array(json, "tags");
    jsonwriter_string(json, NULL, strncmp(route->path, "/r/", 3) == 0 ? "source" : "server");
    jsonwriter_end_array(json);
    jsonwriter_string(json, "summary", route->about);
    openapi_parameters(json, parts, route);
    if (body != NULL) {
        jsonwriter_map(json, "requestBody");
        jsonwriter_bool(json, "required", true);
        jsonwriter_map(json, "content");
        jsonwriter_map(json, "application/json");
        openapi_value(json, "schema", body);
        jsonwriter_end_map(json);
        jsonwriter_end_map(json);
        jsonwriter_end_map(json);
    }
    jsonwriter_map(json, "responses");
    jsonwriter_map(json, "200");
    jsonwriter_string(json, "description", "The answer.");
    openapi_answer(json, parts, route);
    jsonwriter_end_map(json);
    openapi_reference(json, "default", "responses", "Problem");
    jsonwriter_end_map(json);
    if (route->rows != NULL) {
        openapi_columns(json, route->rows);
    }
    jsonwriter_end_map(json);
}

void openapi_write(struct jsonwriter *json) {
    const struct uifile *file = uifiles_find("schemas.json");
    yajl_val parts = jsontree_parse((const char *)file->bytes);
    const struct route *route;
    const char *path = "";
    jsonwriter_map(json, NULL);
    openapi_members(json, jsontree_member(parts, "head"));
    jsonwriter_map(json, "paths");
    for (size_t i = 0; (route = route_at(i)) != NULL; i++) {
        if (strcmp(route->path, path) != 0) {
            if (i != 0) {
                jsonwriter_end_map(json);
            }
            jsonwriter_map(json, route->path);
        }
        path = route->path;
        openapi_operation(json, parts, route);
    }
    jsonwriter_end_map(json);
    jsonwriter_end_map(json);
    openapi_value(json, "components", jsontree_member(parts, "components"));
    jsonwriter_end_map(json);
    yajl_tree_free(parts);
}

void api_openapi(struct api_call *call) {
    openapi_write(call->json);
}
