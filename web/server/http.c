/* SPDX-License-Identifier: MIT */
/* http.c: see http.h. */
#include "web/server/http.h"

#include "analyze/base/array.h"
#include "web/server/clients.h"
#include "web/server/dispatch.h"
#include "web/server/stream.h"
#include "web/server/uifiles.h"
#include "web/server/watch.h"
#include "web/server/workers.h"

#include <fcntl.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define API "/api/v1"

enum {
    SPARE = 8, /* connections beyond the most: those that give way are not gone at once */
    /* Request line and headers, and the headers of the http_answer; and what libmicrohttpd keeps of
     * each parameter, of which an address has one in two bytes. (What is not used is not touched.)
     */
    CONNECTION_MEMORY = 40 * 1024 + REQUEST_URI / 2 * 80,
    IDLE_SECONDS = 60,
    DAEMONS = 2,
};

struct http {
    struct access access;
    struct hub *hub;
    struct workers *workers;
    struct watch *watch;
    struct clients clients;
    struct MHD_Daemon *daemons[DAEMONS];
    size_t daemon_count;
    pthread_mutex_t lock; /* of what follows */
    struct exchange *streams;
    size_t stream_count;
    bool stops;
};

/* A request and its answer. */
struct exchange {
    struct task task; /* first */
    struct http *http;
    struct MHD_Connection *connection;
    struct watch_entry entry; /* of the peer, while it is waited for */
    char *uri;                /* as it came */
    struct request request;
    char *body;
    size_t body_size, body_room;
    struct reply reply;
    enum { EXCHANGE_NEW, EXCHANGE_BODY, EXCHANGE_WORKING, EXCHANGE_DONE } state;
    struct stream *stream; /* of events */
    bool sleeps;           /* the stream's connection is suspended; under http->lock */
    bool is_listed;        /* among http->streams */
    struct exchange *next;
};

static struct exchange *exchange_of_task(struct task *task) {
    return (struct exchange *)task;
}

/* ---- Connections ---- */

static int peer_of(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info != NULL ? info->connect_fd : -1;
}

static struct client *client_of(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info != NULL ? info->socket_context : NULL;
}

/* ---- Answers ---- */

static const struct {
    const char *name, *value;
} security_headers[] = {
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
     "worker-src 'self'; font-src 'self'; img-src 'self' data:; base-uri 'none'; "
     "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
     "trusted-types 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"X-Frame-Options", "DENY"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cross-Origin-Embedder-Policy", "require-corp"},
    {"Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()"},
};

static enum MHD_Result send_response(struct MHD_Connection *connection, int status,
                                     struct MHD_Response *response, const char *type,
                                     bool may_be_kept) {
    enum MHD_Result result;
    if (response == NULL) {
        return MHD_NO;
    }
    for (size_t i = 0; i < sizeof security_headers / sizeof security_headers[0]; i++) {
        MHD_add_response_header(response, security_headers[i].name, security_headers[i].value);
    }
    MHD_add_response_header(response, "Content-Type", type);
    MHD_add_response_header(response, "Cache-Control",
                            may_be_kept ? "public, max-age=31536000, immutable" : "no-store");
    if (status == MHD_HTTP_UNAUTHORIZED) {
        MHD_add_response_header(response, "WWW-Authenticate", "Bearer");
    }
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED) {
        MHD_add_response_header(response, "Allow", "GET, HEAD, POST");
    }
    clients_note(client_of(connection), CLIENT_READING);
    result = MHD_queue_response(connection, (unsigned)status, response);
    MHD_destroy_response(response);
    return result;
}

/* It is sent as it is read from the disk. The response has a descriptor of its own. */
static struct MHD_Response *file_response(FILE *file) {
    int own = fcntl(fileno(file), F_DUPFD_CLOEXEC, 0);
    struct stat status;
    struct MHD_Response *response = NULL;
    if (own >= 0 && fstat(own, &status) == 0) {
        response = MHD_create_response_from_fd64((uint64_t)status.st_size, own);
    }
    if (response == NULL && own >= 0) {
        close(own);
    }
    return response;
}

static enum MHD_Result send_answer(struct exchange *exchange) {
    struct reply *reply = &exchange->reply;
    struct MHD_Response *response =
        reply->file != NULL
            ? file_response(reply->file)
            : MHD_create_response_from_buffer(
                  reply->size, reply->bytes != NULL ? reply->bytes : (void *)"",
                  reply->bytes != NULL ? MHD_RESPMEM_MUST_FREE : MHD_RESPMEM_PERSISTENT);
    if (response == NULL) {
        return MHD_NO;
    }
    if (reply->file == NULL) {
        reply->bytes = NULL;
    }
    if (reply->file_name != NULL) {
        char *disposition;
        if (asprintf(&disposition, "attachment; filename=\"%s\"", reply->file_name) >= 0) {
            MHD_add_response_header(response, "Content-Disposition", disposition);
            free(disposition);
        }
    }
    return send_response(exchange->connection, reply->status, response, reply->type, false);
}

static enum MHD_Result send_problem(struct exchange *exchange, int status, const char *detail) {
    dispatch_problem(&exchange->reply, status, detail);
    return send_answer(exchange);
}

/* ---- The page ---- */

static bool is_api(const char *path) {
    return strncmp(path, API, sizeof API - 1) == 0 &&
           (path[sizeof API - 1] == '/' || path[sizeof API - 1] == '\0');
}

/* Compressed for who takes that: on this machine it makes no difference, through `ssh -L` it does.
 */
static enum MHD_Result http_send_file(struct exchange *exchange, const struct uifile *file) {
    const char *accepted =
        MHD_lookup_connection_value(exchange->connection, MHD_HEADER_KIND, "Accept-Encoding");
    size_t size = file->size;
    const void *packed =
        accepted != NULL && strstr(accepted, "zstd") != NULL ? uifiles_packed(file, &size) : NULL;
    struct MHD_Response *response = MHD_create_response_from_buffer(
        packed != NULL ? size : file->size, (void *)(packed != NULL ? packed : file->bytes),
        MHD_RESPMEM_PERSISTENT);
    if (response != NULL && packed != NULL) {
        MHD_add_response_header(response, "Content-Encoding", "zstd");
    }
    if (response != NULL) {
        MHD_add_response_header(response, "Vary", "Accept-Encoding");
    }
    return send_response(exchange->connection, 200, response, file->type, file->is_hashed);
}

/* Whatever is no file of the page is one of its views. */
static enum MHD_Result send_page(struct exchange *exchange) {
    const char *path = exchange->request.path;
    const struct uifile *file = uifiles_find(path);
    if (file == NULL && strrchr(path, '.') != NULL) {
        return send_problem(exchange, 404, "there is no such file");
    }
    if (file == NULL) {
        file = uifiles_find("/index.html");
    }
    if (file == NULL) {
        return send_problem(exchange, 404, "this memtrace was built without its page");
    }
    return http_send_file(exchange, file);
}

/* ---- Answers of workers ---- */

static void peer_is_gone(struct watch_entry *entry) {
    struct exchange *exchange =
        (struct exchange *)((char *)entry - offsetof(struct exchange, entry));
    workers_cancel(exchange->http->workers, &exchange->task);
}

static void run_exchange(struct task *task) {
    struct exchange *exchange = exchange_of_task(task);
    dispatch(exchange->http->hub, &exchange->request, &task->cancel, &exchange->reply);
}

static void finish_exchange(struct task *task) {
    struct exchange *exchange = exchange_of_task(task);
    struct MHD_Connection *connection = exchange->connection;
    watch_remove(exchange->http->watch, &exchange->entry);
    if (exchange->reply.type == NULL) {
        dispatch_problem(&exchange->reply, 503, "cancelled");
    }
    exchange->state = EXCHANGE_DONE;
    MHD_resume_connection(connection);
}

static enum MHD_Result start_work(struct exchange *exchange) {
    exchange->state = EXCHANGE_WORKING;
    exchange->request.body = exchange->body;
    exchange->task.run = run_exchange;
    exchange->task.done = finish_exchange;
    exchange->task.queue = dispatch_queue(&exchange->request);
    exchange->entry = (struct watch_entry){
        .fd = peer_of(exchange->connection), .gone = peer_is_gone, .minds_peer = true};
    MHD_suspend_connection(exchange->connection);
    watch_add(exchange->http->watch, &exchange->entry);
    workers_put(exchange->http->workers, &exchange->task);
    return MHD_YES;
}

/* ---- Streams of events ---- */

static void wake_stream(void *context) {
    struct exchange *exchange = context;
    pthread_mutex_lock(&exchange->http->lock);
    if (exchange->sleeps) {
        exchange->sleeps = false;
        MHD_resume_connection(exchange->connection);
    }
    pthread_mutex_unlock(&exchange->http->lock);
}

static void stream_peer_is_gone(struct watch_entry *entry) {
    struct exchange *exchange =
        (struct exchange *)((char *)entry - offsetof(struct exchange, entry));
    stream_end(exchange->stream);
}

static ssize_t read_stream(void *context, uint64_t position, char *bytes, size_t size) {
    struct exchange *exchange = context;
    long count;
    (void)position;
    pthread_mutex_lock(&exchange->http->lock);
    count = exchange->http->stops ? -1 : stream_read(exchange->stream, bytes, size);
    if (count == 0) {
        exchange->sleeps = true;
        MHD_suspend_connection(exchange->connection);
    }
    pthread_mutex_unlock(&exchange->http->lock);
    return count < 0 ? MHD_CONTENT_READER_END_OF_STREAM : count;
}

static void list_stream(struct exchange *exchange) {
    struct http *http = exchange->http;
    exchange->entry = (struct watch_entry){
        .fd = peer_of(exchange->connection), .gone = stream_peer_is_gone, .minds_peer = true};
    watch_add(http->watch, &exchange->entry);
    pthread_mutex_lock(&http->lock);
    exchange->is_listed = true;
    exchange->next = http->streams;
    http->streams = exchange;
    http->stream_count++;
    pthread_mutex_unlock(&http->lock);
}

static void unlist_stream(struct exchange *exchange) {
    struct http *http = exchange->http;
    watch_remove(http->watch, &exchange->entry);
    pthread_mutex_lock(&http->lock);
    for (struct exchange **at = &http->streams; *at != NULL; at = &(*at)->next) {
        if (*at == exchange) {
            *at = exchange->next;
            http->stream_count--;
            break;
        }
    }
    pthread_mutex_unlock(&http->lock);
}

static enum MHD_Result start_stream(struct exchange *exchange, unsigned source) {
    struct http *http = exchange->http;
    struct MHD_Response *response;
    enum MHD_Result result;
    size_t count;
    bool stops;
    pthread_mutex_lock(&http->lock);
    count = http->stream_count;
    stops = http->stops;
    pthread_mutex_unlock(&http->lock);
    if (stops || count >= STREAM_MOST) {
        return send_problem(exchange, 503, "too many pages follow this server");
    }
    if (!hub_knows(http->hub, source)) {
        return send_problem(exchange, 404, "there is no such source");
    }
    exchange->stream = stream_open(http->hub, source, request_parameter(&exchange->request, "job"),
                                   wake_stream, exchange);
    if (exchange->stream == NULL) {
        return send_problem(exchange, 503, "out of memory");
    }
    list_stream(exchange);
    exchange->state = EXCHANGE_DONE;
    response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 4096, read_stream, exchange, NULL);
    result = send_response(exchange->connection, 200, response, "text/event-stream", false);
    clients_note(client_of(exchange->connection), CLIENT_WAITING);
    return result;
}

/* ---- Requests ---- */

static const char *header(struct MHD_Connection *connection, const char *name) {
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

static bool accepts(struct MHD_Connection *connection, const char *type) {
    const char *accepted = header(connection, "Accept");
    return accepted != NULL && strstr(accepted, type) != NULL;
}

/* 0, or the status of the refusal. */
static int check_method(struct exchange *exchange, const char *method, bool is_page,
                        const char **reason) {
    bool is_get = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
    exchange->request.method = is_get ? "GET" : "POST";
    if (!is_get && (is_page || strcmp(method, "POST") != 0)) {
        *reason = "only GET, HEAD and a few POST requests are answered";
        return MHD_HTTP_METHOD_NOT_ALLOWED;
    }
    return 0;
}

/* Whether the asker is allowed, before anything else is looked at. 0, or the status. */
static int check(struct exchange *exchange, const char *method, const char **reason,
                 struct error *error) {
    struct MHD_Connection *connection = exchange->connection;
    const struct access_headers headers = {.host = header(connection, "Host"),
                                           .origin = header(connection, "Origin"),
                                           .fetch_site = header(connection, "Sec-Fetch-Site"),
                                           .authorization = header(connection, "Authorization")};
    bool is_well_formed = exchange->uri != NULL && strlen(exchange->uri) <= REQUEST_URI &&
                          request_parse(&exchange->request, exchange->uri, error) == 0;
    bool is_page = is_well_formed && !is_api(exchange->request.path);
    int status = access_check(&exchange->http->access, &headers, is_page, reason);
    if (status == 0 && !is_well_formed) {
        *reason = exchange->uri != NULL && strlen(exchange->uri) > REQUEST_URI
                      ? "the address is too long"
                      : error->message;
        status = MHD_HTTP_BAD_REQUEST;
    }
    return status != 0 ? status : check_method(exchange, method, is_page, reason);
}

/* The microhttpd library calls once when the headers are there, and once more when the request is
 * whole. Whatever is answered in the first call ends the connection, since a body might follow: so
 * that is done to requests which are refused, and the others are answered in the second. */
static enum MHD_Result http_begin(struct exchange *exchange, const char *method) {
    const char *length = header(exchange->connection, "Content-Length");
    const char *reason = "";
    struct error error = {""};
    int status = check(exchange, method, &reason, &error);
    if (status != 0) {
        return send_problem(exchange, status, reason);
    }
    if (length != NULL && strtoull(length, NULL, 10) > REQUEST_BODY) {
        return send_problem(exchange, 413, "the body is larger than 1 MiB");
    }
    exchange->request.wants_columns =
        accepts(exchange->connection, "application/vnd.memtrace.columns");
    exchange->request.wants_text = accepts(exchange->connection, "text/plain");
    exchange->state = EXCHANGE_BODY;
    return MHD_YES;
}

/* The request is whole. */
static enum MHD_Result http_answer(struct exchange *exchange) {
    unsigned source;
    clients_note(client_of(exchange->connection), CLIENT_WAITING);
    if (exchange->body != NULL && strlen(exchange->body) != exchange->body_size) {
        return send_problem(exchange, 400, "the body is not text");
    }
    if (!is_api(exchange->request.path)) {
        return send_page(exchange);
    }
    if (strcmp(exchange->request.method, "POST") == 0 ||
        !dispatch_is_stream(&exchange->request, &source, &exchange->reply)) {
        return start_work(exchange);
    }
    return exchange->reply.type != NULL ? send_answer(exchange) : start_stream(exchange, source);
}

static enum MHD_Result take_body(struct exchange *exchange, const char *data, size_t *size) {
    if (exchange->body_size + *size > REQUEST_BODY ||
        array_reserve(&exchange->body, &exchange->body_room, exchange->body_size + *size + 1, 1) !=
            0) {
        return MHD_NO;
    }
    memcpy(exchange->body + exchange->body_size, data, *size);
    exchange->body_size += *size;
    exchange->body[exchange->body_size] = '\0';
    *size = 0;
    return MHD_YES;
}

static enum MHD_Result http_handle(void *context, struct MHD_Connection *connection,
                                   const char *url, const char *method, const char *version,
                                   const char *data, size_t *size, void **request) {
    struct exchange *exchange = *request;
    (void)context;
    (void)url;
    (void)version;
    if (exchange == NULL) {
        return MHD_NO;
    }
    exchange->connection = connection;
    switch (exchange->state) {
    case EXCHANGE_NEW:
        return http_begin(exchange, method);
    case EXCHANGE_BODY:
        return *size != 0 ? take_body(exchange, data, size) : http_answer(exchange);
    case EXCHANGE_DONE:
        return send_answer(exchange);
    default:
        return MHD_YES;
    }
}

/* ---- What the daemons tell ---- */

static void note_connection(void *context, struct MHD_Connection *connection, void **place,
                            enum MHD_ConnectionNotificationCode code) {
    struct http *http = context;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        *place = clients_join(&http->clients, peer_of(connection));
    } else {
        clients_leave(*place);
        *place = NULL;
    }
}

static void *note_uri(void *context, const char *uri, struct MHD_Connection *connection) {
    struct exchange *exchange = calloc(1, sizeof *exchange);
    clients_note(client_of(connection), CLIENT_SILENT); /* until the rest of it is there */
    if (exchange != NULL) {
        exchange->http = context;
        exchange->uri = strdup(uri);
    }
    return exchange;
}

static void note_completed(void *context, struct MHD_Connection *connection, void **request,
                           enum MHD_RequestTerminationCode code) {
    struct exchange *exchange = *request;
    (void)context;
    (void)code;
    if (exchange == NULL) {
        return;
    }
    if (exchange->stream != NULL) {
        unlist_stream(exchange);
        stream_close(exchange->stream);
    }
    request_free(&exchange->request);
    free(exchange->reply.bytes);
    free(exchange->reply.file_name);
    if (exchange->reply.file != NULL) {
        fclose(exchange->reply.file);
    }
    free(exchange->uri);
    free(exchange->body);
    free(exchange);
    *request = NULL;
    clients_note(client_of(connection), CLIENT_SILENT);
}

/* ---- Start and end ---- */

static void ignore_log(void *context, const char *format, va_list arguments) {
    (void)context;
    (void)format;
    (void)arguments;
}

static struct MHD_Daemon *start_daemon(struct http *http, int listener) {
    return MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL, NULL,
        http_handle, http, MHD_OPTION_EXTERNAL_LOGGER, ignore_log, NULL, MHD_OPTION_LISTEN_SOCKET,
        listener, MHD_OPTION_CONNECTION_LIMIT, (unsigned)(CLIENTS_MOST + SPARE),
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS, MHD_OPTION_URI_LOG_CALLBACK,
        note_uri, http, MHD_OPTION_NOTIFY_COMPLETED, note_completed, http,
        MHD_OPTION_NOTIFY_CONNECTION, note_connection, http, MHD_OPTION_END);
}

struct http *http_start(const struct access *access, struct hub *hub, const int *listeners,
                        size_t count, struct error *error) {
    struct http *http = calloc(1, sizeof *http);
    if (http == NULL) {
        error_set(error, "out of memory");
        return NULL;
    }
    pthread_mutex_init(&http->lock, NULL);
    http->access = *access;
    http->hub = hub;
    http->watch = watch_start(error);
    clients_start(&http->clients, http->watch);
    http->workers = http->watch != NULL ? workers_start(0, error) : NULL;
    for (size_t i = 0; i < count && http->workers != NULL; i++) {
        http->daemons[http->daemon_count] = start_daemon(http, listeners[i]);
        if (http->daemons[http->daemon_count] == NULL) {
            error_set(error, "cannot start the server");
            http_stop(http);
            return NULL;
        }
        http->daemon_count++;
    }
    if (http->workers == NULL) {
        http_stop(http);
        return NULL;
    }
    return http;
}

/* Nobody new from here on. Its descriptor stays open, for the daemon's thread may be in accept. */
static MHD_socket quiesce(struct MHD_Daemon *daemon) {
    MHD_socket listener = MHD_quiesce_daemon(daemon);
    if (listener != MHD_INVALID_SOCKET) {
        shutdown(listener, SHUT_RD); /* whoever comes is refused, not kept waiting */
    }
    return listener;
}

void http_stop(struct http *http) {
    if (http == NULL) {
        return;
    }
    MHD_socket listeners[DAEMONS];
    for (size_t i = 0; i < http->daemon_count; i++) {
        listeners[i] = quiesce(http->daemons[i]);
    }
    pthread_mutex_lock(&http->lock);
    http->stops = true;
    for (struct exchange *at = http->streams; at != NULL; at = at->next) {
        if (at->sleeps) {
            at->sleeps = false;
            MHD_resume_connection(at->connection);
        }
    }
    pthread_mutex_unlock(&http->lock);
    workers_end(http->workers); /* all connections are resumed */
    for (size_t i = 0; i < http->daemon_count; i++) {
        MHD_stop_daemon(http->daemons[i]);
        if (listeners[i] != MHD_INVALID_SOCKET) {
            close(listeners[i]);
        }
    }
    workers_free(http->workers);
    clients_stop(&http->clients);
    watch_stop(http->watch);
    pthread_mutex_destroy(&http->lock);
    free(http);
}
