/* SPDX-License-Identifier: MIT */
/* server.c: see server.h. */
#include "web/server/server.h"

#include "analyze/base/anyaddress.h"
#include "ask/cleanup.h"
#include "web/server/http.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LISTENERS = 2, BACKLOG = 64 };

struct server {
    struct hub *hub;
    struct http *http;
    struct access access;
    int listeners[LISTENERS];
    size_t listener_count;
    char *address;
    char *redirect; /* the file that the browser was opened with; NULL: none */
};

/* ---- Sockets ---- */

/* Returns the socket, or -1 with errno. */
static int listen_at(const struct sockaddr *address, socklen_t size) {
    static const int yes = 1;
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int reason;
    if (fd < 0) {
        return -1;
    }
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes); /* of what it accepts, too */
    if (address->sa_family == AF_INET6) {
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes);
    }
    if (bind(fd, address, size) == 0 && listen(fd, BACKLOG) == 0) {
        return fd;
    }
    reason = errno;
    close(fd);
    errno = reason;
    return -1;
}

static void close_listeners(struct server *server) {
    while (server->listener_count != 0) {
        close(server->listeners[--server->listener_count]);
    }
}

/* Both loopback addresses; a machine without IPv6 has one. 0, or -1 with errno. */
static int listen_here(struct server *server, uint16_t port) {
    const struct sockaddr_in four = {.sin_family = AF_INET,
                                     .sin_port = htons(port),
                                     .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    const struct sockaddr_in6 six = {
        .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = listen_at((const struct sockaddr *)&four, sizeof four);
    if (fd < 0) {
        return -1;
    }
    server->listeners[server->listener_count++] = fd;
    fd = listen_at((const struct sockaddr *)&six, sizeof six);
    if (fd >= 0) {
        server->listeners[server->listener_count++] = fd;
    } else if (errno == EADDRINUSE) {
        close_listeners(server);
        errno = EADDRINUSE;
        return -1;
    }
    return 0;
}

/* Another address. 0, or -1: error is set, and errno where it is the kernel's reason. */
static int listen_there(struct server *server, const char *host, uint16_t port,
                        struct error *error) {
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found = NULL;
    char service[8];
    int result;
    int reason;
    int fd;
    snprintf(service, sizeof service, "%u", port);
    result = getaddrinfo(host, service, &hints, &found);
    if (result != 0) {
        errno = 0;
        return error_set(error, "--listen %s: %s", host, gai_strerror(result));
    }
    fd = listen_at(found->ai_addr, found->ai_addrlen);
    reason = errno;
    server->access.is_any = anyaddress_is(found->ai_addr);
    freeaddrinfo(found);
    if (fd < 0) {
        error_set(error, "cannot listen at %s, port %u: %s", host, port, strerror(reason));
        errno = reason;
        return -1;
    }
    server->listeners[server->listener_count++] = fd;
    if (!server->access.is_any ||
        gethostname(server->access.host, sizeof server->access.host - 1) != 0) {
        snprintf(server->access.host, sizeof server->access.host,
                 strchr(host, ':') != NULL ? "[%s]" : "%s", host);
    }
    return 0;
}

static int listen_somewhere(struct server *server, const struct server_options *options,
                            struct error *error) {
    uint16_t first = options->port != 0 ? options->port : SERVER_PORT;
    unsigned tries = options->port != 0 ? 1 : SERVER_PORTS_TRIED;
    for (unsigned i = 0; i < tries; i++) {
        uint16_t port = (uint16_t)(first + i);
        int result = options->listen != NULL ? listen_there(server, options->listen, port, error)
                                             : listen_here(server, port);
        if (result == 0) {
            server->access.port = port;
            return 0;
        }
        if (errno != EADDRINUSE) {
            break;
        }
    }
    if (options->listen != NULL) {
        return -1;
    }
    if (errno == EADDRINUSE && options->port != 0) {
        return error_set(error,
                         "port %u is taken by another program; without --port a free one is "
                         "found",
                         first);
    }
    return error_set(error, "cannot listen at port %u: %s", first, strerror(errno));
}

/* ---- Start and end ---- */

static int make_address(struct server *server, const struct server_options *options) {
    const char *host = server->access.host[0] != '\0' ? server->access.host : "127.0.0.1";
    const char *view = options->hub.view != NULL ? options->hub.view : "";
    view += *view == '/';
    return asprintf(&server->address, "http://%s:%u/%s#token=%s", host, server->access.port, view,
                    server->access.token) >= 0
               ? 0
               : -1;
}

static int server_start_threads(struct server *server, const struct server_options *options,
                                const char *const *names, size_t count, struct error *error) {
    size_t listeners;
    if (access_start(&server->access, error) != 0 ||
        listen_somewhere(server, options, error) != 0 ||
        (server->hub = hub_new(&options->hub, error)) == NULL) {
        return -1;
    }
    if (make_address(server, options) != 0) {
        return error_set(error, "out of memory");
    }
    for (size_t i = 0; i < count; i++) {
        if (hub_add(server->hub, names[i], error) == 0) {
            return -1;
        }
    }
    listeners = server->listener_count;
    server->listener_count = 0; /* they are closed below */
    server->http = http_start(&server->access, server->hub, server->listeners, listeners, error);
    return server->http != NULL ? 0 : -1;
}

struct server *server_start(const struct server_options *options, const char *const *names,
                            size_t count, struct error *error) {
    struct server *server = calloc(1, sizeof *server);
    if (server == NULL) {
        error_set(error, "out of memory");
        return NULL;
    }
    if (server_start_threads(server, options, names, count, error) != 0) {
        server_stop(server);
        return NULL;
    }
    return server;
}

void server_stop(struct server *server) {
    if (server == NULL) {
        return;
    }
    http_stop(server->http);
    close_listeners(server);
    hub_free(server->hub);
    if (server->redirect != NULL) {
        cleanup_remove(server->redirect);
        cleanup_forget(server->redirect);
        free(server->redirect);
    }
    free(server->address);
    free(server);
}

const char *server_address(const struct server *server) {
    return server->address;
}

uint16_t server_port(const struct server *server) {
    return server->access.port;
}

/* ---- The browser ---- */

/* A page for the user's eyes alone that leads to ours: what stands on a command line anyone sees.
 * 0 or -1. */
static int write_redirect(struct server *server) {
    const char *folder = getenv("XDG_RUNTIME_DIR");
    FILE *out;
    int fd;
    folder = folder != NULL && folder[0] == '/' ? folder : getenv("TMPDIR");
    folder = folder != NULL && folder[0] == '/' ? folder : "/tmp";
    if (asprintf(&server->redirect, "%s/memtrace-XXXXXX.html", folder) < 0) {
        server->redirect = NULL;
        return -1;
    }
    fd = mkostemps(server->redirect, 5, O_CLOEXEC); /* mode 0600 */
    out = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (out == NULL) {
        if (fd >= 0) {
            close(fd);
            unlink(server->redirect);
        }
        free(server->redirect);
        server->redirect = NULL;
        return -1;
    }
    cleanup_watch(server->redirect);
    fprintf(out,
            "<!doctype html><meta charset=\"utf-8\"><title>MemTrace</title>"
            "<meta name=\"referrer\" content=\"no-referrer\">"
            "<meta http-equiv=\"refresh\" content=\"0;url=%s\">",
            server->address);
    return fclose(out) == 0 ? 0 : -1;
}

static bool has_display(void) {
    const char *display = getenv("DISPLAY");
    const char *wayland = getenv("WAYLAND_DISPLAY");
    return (display != NULL && display[0] != '\0') || (wayland != NULL && wayland[0] != '\0');
}

int server_open_browser(struct server *server) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    sigset_t ignored; /* by us, and by who started us: run, record */
    pid_t pid;
    int result = -1;
    if (!has_display() || strpbrk(server->address, "\"<>") != NULL || write_redirect(server) != 0) {
        return -1;
    }
    sigemptyset(&none);
    sigemptyset(&ignored);
    sigaddset(&ignored, SIGPIPE);
    sigaddset(&ignored, SIGXFSZ);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &ignored);
    posix_spawnattr_setpgroup(&attributes, 0); /* Ctrl-C is for us */
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                              POSIX_SPAWN_SETPGROUP);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    if (posix_spawnp(&pid, "xdg-open", &actions, &attributes,
                     (char *[]){"xdg-open", server->redirect, NULL}, environ) == 0) {
        result = 0;
    }
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return result;
}
