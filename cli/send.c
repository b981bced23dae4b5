/* SPDX-License-Identifier: MIT */
/* send.c: `memtrace send`: a recording to another machine. docs/stream.md is its page. */
#include "stream/sender.h"

#include "analyze/rows/number.h"
#include "analyze/rows/safetext.h"
#include "cli/cli.h"
#include "cli/stopping.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>

struct request {
    const char *to;
    const char *token;
    uint64_t give_up_ns;
};

#define IN(member) OPTION_IN(struct request, member)

static const struct option options[] = {
    {"to", 0, "HOST[:PORT]", "where `memtrace gather` listens (port: 6364 where none is named)",
     OPTION_TEXT, IN(to)},
    {"token", 0, "FILE",
     "what proves who both sides are, a file that only you can read: for all but this machine",
     OPTION_TEXT, IN(token)},
    {"give-up", 0, "TIME",
     "end when HOST cannot be reached for so long (default: go on trying until it can)",
     OPTION_DURATION, IN(give_up_ns)},
    OPTION_END};

static void print(const char *line) {
    print_safe(stderr, "memtrace: %s\n", line);
}

/* 128 + the signal, as shells say. */
static int stopped_status(const char *file, uint64_t sent) {
    struct number n;
    cli_error("stopped, %s are there; memtrace send %s goes on", number_bytes(&n, sent), file);
    return 128 + stopping_signal;
}

static int send_file(const struct sender_options *asked, const char *to) {
    struct error error = {""};
    struct number n;
    struct sender_progress progress;
    switch (sender_run(asked, &progress, &error)) {
    case SENDER_DONE:
        print_safe(stderr, "memtrace: %s, %s, is at %s\n", asked->path,
                   number_bytes(&n, progress.sent), to);
        return CLI_OK;
    case SENDER_STOPPED:
        return stopped_status(asked->path, progress.sent);
    default:
        return cli_error("%s", error.message);
    }
}

static int run_send(int argc, char **argv) {
    struct request request = {0};
    struct sender_options asked = {.stop = &stopping_signal, .tell = print};
    struct error error = {""};
    struct token *token = NULL;
    char host[CHANNEL_HOST];
    int status = cli_read(&send_command, &argc, &argv, &request);
    if (status == CLI_OK) {
        status = cli_one(&send_command, argc, argv, "a recording", &asked.path);
    }
    if (status != CLI_OK) {
        return status;
    }
    if (request.to == NULL) {
        return cli_usage("send", "--to HOST[:PORT] is needed");
    }
    if (channel_peer(request.to, host, &asked.port, &error) != 0) {
        return cli_usage("send", "--to: %s", error.message);
    }
    if (request.token != NULL && (token = token_read(request.token, &error)) == NULL) {
        return cli_error("%s", error.message);
    }
    stopping_catch();
    signal(SIGPIPE, SIG_IGN);
    asked.host = host;
    asked.token = token;
    asked.give_up_ns = request.give_up_ns;
    status = send_file(&asked, request.to);
    token_free(token);
    return status;
}

const struct command send_command = {
    .name = "send",
    .run = run_send,
    .summary = "send a recording to another machine, also while it grows",
    .usage = "[OPTION]... --to HOST[:PORT] FILE",
    .about = "Sends a recording to a machine where `memtrace gather` runs, while it is written or "
             "later. Either side, or the network between them, may fail at any moment: it goes on "
             "from where it was. Ends when the other side has the same bytes.",
    .options = options,
    .operands = "RECORDING",
};
