/* SPDX-License-Identifier: MIT */
/*
 * api.h: what an endpoint is: a function that answers one question about one source, as JSON.
 *
 * Called by dispatch.c, which has parsed the request, found the source, made the model of what the
 * filters select and seen to who may ask. A handler runs in a worker thread; several run at once,
 * also on the same view: all that it reads is immutable. It writes the value of "data" to
 * call->json, and nothing else: the envelope (window, exact, via, command, time) is the
 * dispatcher's, from call->told. On failure what it wrote is thrown away. It runs in a job
 * (analyze/base/job.h), which is the request's, and returns if all went well: what cannot be
 * answered ends the job, by api_refuse() where that is the asker's fault. What is kept with the
 * view is made in a job of its own (apicache.h).
 *
 *     void api_threads(struct api_call *call) {
 *         apitable_rows(call, NULL, &rows);
 *     }
 *
 * A new endpoint is a handler and a row in the table of routes.c, which also says what is told of
 * it (openapi.c); parameters of its own, and answers that are no table, stand in web/schemas.json.
 */
#ifndef WEB_SERVER_API_H
#define WEB_SERVER_API_H

#include "analyze/base/job.h"
#include "analyze/read/jsontree.h"
#include "analyze/report/metric.h"
#include "analyze/rows/jsonwriter.h"
#include "analyze/rows/rows.h"
#include "ask/answer.h"

struct hub;
struct request;

enum api_exact { API_EXACT, API_BOUND, API_ESTIMATE, API_SNAPPED };
enum api_via { API_VIA_MODEL, API_VIA_SLICES, API_VIA_PASS, API_VIA_CACHE };

/* What is told around the data. */
struct api_told {
    enum api_exact exact; /* the dispatcher's guess from the model; handlers may change it */
    double error;         /* standard error or bound of the main number; 0: none */
    enum api_via via;
    /* What comes between "memtrace" and filters and file: "report --show-peak --bottom-up". NULL:
     * no command gives the same. Texts belong to the request's job. */
    const char *command;
    const char *operand; /* of the command, behind the file; NULL: none */
    bool is_whole;       /* the command is all of it: nothing is put before or behind it */
    const char *sql;     /* NULL: none */
    char *notes;         /* lines; NULL: none. api_note() adds one */
};

/* What `memtrace diff` is told of a base that is not narrowed, where what is compared with it is:
 * a filter that lets everything through, since the others would be the base's, too. */
#define API_BASE_WHOLE " --base-path-depth 0.."

struct api_call {
    struct hub *hub;
    const struct request *request;
    unsigned source;              /* number of the source; 0: the route has none */
    const struct answer *view;    /* NULL: the route has none */
    const struct answer *base;    /* of a difference; NULL: none */
    const char *rest;             /* what stands in place of {name} in the route, decoded; NULL */
    const char *body;             /* of POST: NUL-terminated JSON; NULL: none */
    struct replay_options replay; /* cancel and progress: to be handed on */
    struct report report;         /* of the view, as the request's options say; without output */
    enum metric metric;           /* of routes with ROUTE_METRIC */
    struct jsonwriter *json;
    FILE *out; /* what json writes to; a handler that answers in another form writes here instead */
    const char *type; /* the other form's media type, static; NULL: JSON in the envelope */
    char *file_name;  /* it is offered as a download of this name, malloc'd; NULL: no */
    FILE *file;       /* sent in place of what was written to out; NULL: none */
    struct api_columns *columns; /* of api_column(); NULL: the asker wants JSON */
    struct api_told told;
    int status; /* of HTTP, where the handler fails; 0: 500, or 400 after api_refuse() */
};

typedef void (*api_handler)(struct api_call *call);

/* ---- Parameters that are the endpoint's own ---- */

/* NULL: not given. Nothing is given twice. */
const char *api_param(const struct api_call *call, const char *name);
/* The same as a number within bounds; `usual` if it is not given. */
uint64_t api_number(struct api_call *call, const char *name, uint64_t usual, uint64_t least,
                    uint64_t most);
/* The place of the word among "down|up"; `usual` if it is not given. */
int api_word(struct api_call *call, const char *name, const char *words, int usual);
/* What a metric is called in parameters: as in options, and "shutdown" and "short". false: there is
 * none such, *metric is as it was. */
bool api_metric(const char *text, enum metric *metric);
/* A whole number, or 0x and one in hexadecimal. */
bool api_address(const char *text, uint64_t *address);
/* A flag is given as NAME, NAME= or NAME=1. */
bool api_flag(struct api_call *call, const char *name);

/* What is posted, as JSON, of the job; NULL: it is no object. */
yajl_val api_body(struct api_call *call);

/* A number as "0x7f01...": larger ones than JavaScript has. */
void api_put_address(struct jsonwriter *json, const char *name, uint64_t address);

/* Ends the job: the answer is that status of HTTP and that line. */
noreturn void api_refuse(struct api_call *call, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- What is told around the data ---- */

void api_command(struct api_call *call, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void api_sql(struct api_call *call, const char *format, ...) __attribute__((format(printf, 2, 3)));
void api_note(struct api_call *call, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- Long columns ---- */

/* An answer as application/vnd.memtrace.columns: "MTC1", the length of the head as 32 bits, the
 * head (JSON), and from the next multiple of 8 bytes on the columns, each at a multiple of 8,
 * little-endian. Offsets count from there, lengths are numbers of values. */
struct api_columns {
    char *bytes;
    size_t size, room;
    bool is_used;
};

enum api_width { API_U32, API_U64, API_F64 };
/* API_U64 is the widest that a number may be: bytes are of 32 bits where all fit.
 * An array of numbers as a member of the object that is being written. Where the asker takes
 * application/vnd.memtrace.columns it goes behind the JSON as little-endian bytes (docs/serve.md),
 * and {type, offset, length} stands in its place. Null of API_F64: NaN. */
void api_column(struct api_call *call, const char *name, enum api_width width, const void *values,
                size_t count);

#endif
