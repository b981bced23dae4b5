/* SPDX-License-Identifier: MIT */
/* send.c: `memtrace send`: a recording to another machine. docs/stream.md is its page. */
#include "stream/channel.h"
#include "stream/offering.h"
#include "stream/sender.h"

#include "analyze/base/job.h"
#include "analyze/rows/number.h"
#include "analyze/rows/safetext.h"
#include "cli/cli.h"
#include "cli/streaming.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

struct request {
    const char *to;
    const char *listen;
    bool discoverable;
    uint16_t discovery_port;
    const char *token;
    uint64_t give_up_ns;
    bool allows_control;
};

#define IN(member) OPTION_IN(struct request, member)

static const struct option options[] = {
    {"to", 0, "HOST[:PORT]|auto",
     "where `memtrace gather` listens (default port: 6364); auto: find one", OPTION_TEXT, IN(to)},
    {"listen", 0, "ADDRESS[:PORT]",
     "or wait here for `memtrace gather HOST` to fetch it; several FILEs may be named", OPTION_TEXT,
     IN(listen)},
    {"discoverable", 0, NULL, "with --listen: answer `memtrace gather --scan` by UDP", OPTION_FLAG,
     IN(discoverable)},
    {"discovery-port", 0, "PORT", "the UDP port of --discoverable (default: 6364)", OPTION_NUMBER,
     IN(discovery_port), .least = 1, .most = UINT16_MAX},
    {"token", 0, "FILE",
     "a secret that both sides know, in a file that only you can read; needed between machines",
     OPTION_TEXT, IN(token)},
    {"allow-control", 0, NULL,
     "the receiver may switch counting, sample and set marks, while the program runs here "
     "(memtrace control)",
     OPTION_FLAG, IN(allows_control)},
    {"give-up", 0, "TIME", "end when HOST cannot be reached for TIME (default: go on trying)",
     OPTION_DURATION, IN(give_up_ns)},
    OPTION_END};

/* Stopped: 128 + the signal, as shells say. */
static int send_recording(const struct sender_options *asked, const char *to) {
    struct error error = {""};
    struct number n;
    struct sender_progress progress;
    char path[2 * PATH_MAX];
    switch (sender_run(asked, &progress, &error)) {
    case SENDER_DONE:
        print_safe(stderr, "memtrace: %s, %s, is at %s\n", asked->path,
                   number_bytes(&n, progress.sent), to);
        return CLI_OK;
    case SENDER_STOPPED:
        cli_error("stopped, %s have arrived; memtrace send --to %s%s %s continues",
                  number_bytes(&n, progress.sent), to, asked->token != NULL ? " --token FILE" : "",
                  shellword_print(path, sizeof path, asked->path));
        return 128 + cli_stop;
    default:
        job_fail_as(&error);
    }
}

static int offer_recordings(const struct request *request, const struct token *token,
                            char **files) {
    struct offering_options asked = {.token = token,
                                     .paths = (const char *const *)files,
                                     .words = -1,
                                     .stop = &cli_stop,
                                     .tell = cli_tell,
                                     .tells_all = true,
                                     .allows_control = request->allows_control,
                                     .discovery_port =
                                         request->discoverable ? request->discovery_port : 0};
    struct offering_rest rest;
    struct number n;
    struct error error = {""};
    char host[CHANNEL_HOST];
    char shown[CHANNEL_SHOWN];
    char name[CHANNEL_SHOWN];
    uint16_t port = streaming_address("send", "--listen", request->listen, false, host);
    int result;
    asked.listener = listening_open(host, port, token, &error);
    job_check(asked.listener < 0, &error);
    listening_show(asked.listener, shown);
    listening_show_name(asked.listener, name);
    cli_error("listening at %s, %s: memtrace gather %s%s DIR", shown,
              token != NULL ? "TLS with the token" : "this machine only, no token",
              token != NULL ? "--token FILE " : "", name);
    result = offering_run(&asked, &rest, &error);
    close(asked.listener);
    job_check(result < 0, &error);
    if (result > 0) {
        cli_error("stopped: nobody has taken all of %u recording%s, %s are only here", rest.files,
                  rest.files == 1 ? "" : "s", number_bytes(&n, rest.missing));
    }
    return result == 0 ? CLI_OK : 128 + cli_stop;
}

static int run_send(int argc, char **argv) {
    struct request request = {.discovery_port = CHANNEL_PORT};
    struct sender_options asked = {.stop = &cli_stop, .tell = cli_tell};
    char host[CHANNEL_HOST];
    cli_read(&send_command, &argc, &argv, &request);
    if (request.listen == NULL || argc == 0) {
        asked.path = cli_one(&send_command, argc, argv, "a recording");
    }
    if ((request.to == NULL) == (request.listen == NULL)) {
        cli_usage("send", "either --to HOST[:PORT] or --listen ADDRESS[:PORT] is needed");
    }
    if (request.to != NULL) {
        asked.port = streaming_address("send", "--to", request.to, true, host);
    }
    asked.host = host;
    asked.give_up_ns = request.give_up_ns;
    asked.allows_control = request.allows_control;
    asked.token = streaming_token(request.token);
    streaming_mind_stop();
    return request.listen != NULL ? offer_recordings(&request, asked.token, argv)
                                  : send_recording(&asked, request.to);
}

const struct command send_command = {
    .name = "send",
    .run = run_send,
    .summary = "send a recording to another machine, also while it grows",
    .usage = "[OPTION]... --to HOST[:PORT] FILE | --listen ADDRESS[:PORT] FILE...",
    .about = "Sends a recording to a machine where `memtrace gather` runs, while it is written or "
             "later; or waits for `memtrace gather` to connect to this machine and take it. Either "
             "side, or the network between them, may fail at any moment: it goes on "
             "from where it was. Ends when the other side has the same bytes.",
    .options = options,
    .operands = "RECORDING",
};
