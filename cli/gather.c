/* SPDX-License-Identifier: MIT */
/* gather.c: `memtrace gather`: recordings that other machines send. docs/stream.md is its page. */
#include "stream/discovery.h"
#include "stream/gatherer.h"

#include "analyze/base/job.h"
#include "analyze/rows/safetext.h"
#include "cli/cli.h"
#include "cli/streaming.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct request {
    struct gatherer_options asked;
    const char *listen;
    const char *token;
    bool discoverable;
    bool scan;
};

#define IN(member) OPTION_IN(struct request, member)

static const struct option options[] = {
    {"listen", 0, "ADDRESS[:PORT]",
     "where to listen (default, if no HOST is named: 127.0.0.1:6364, this machine only; port 0: a "
     "free one)",
     OPTION_TEXT, IN(listen)},
    {"token", 0, "FILE",
     "a secret that both sides know, in a file that only you can read; needed between machines",
     OPTION_TEXT, IN(token)},
    {"quota", 0, "SIZE", "the most bytes of one recording (default: no limit)", OPTION_SIZE,
     IN(asked.quota_bytes), .least = 1},
    {"total-quota", 0, "SIZE", "the most bytes of all files below DIR (default: no limit)",
     OPTION_SIZE, IN(asked.total_bytes), .least = 1},
    {"discoverable", 0, NULL,
     "answer by UDP those that look for a gatherer (--to auto); with --token FILE also other "
     "machines",
     OPTION_FLAG, IN(discoverable)},
    {"scan", 0, NULL,
     "ask by UDP, list what answers (gatherers, and what can be received), and end", OPTION_FLAG,
     IN(scan)},
    {"discovery-port", 0, "PORT", "the UDP port of --discoverable and --scan (default: 6364)",
     OPTION_NUMBER, IN(asked.discovery_port), .least = 1, .most = UINT16_MAX},
    {"give-up", 0, "TIME", "give up a HOST that cannot be reached for TIME (default: go on trying)",
     OPTION_DURATION, IN(asked.give_up_ns)},
    OPTION_END};

static bool print_found(void *context, const struct discovery_found *one) {
    const struct discover_answer *answer = &one->answer;
    size_t *count = context;
    ++*count;
    if (answer->kind == DISCOVER_GATHERER) {
        print_safe(stdout, "gathers  %-22s %-16s into %s\n", one->shown, answer->host,
                   answer->what);
    } else {
        print_safe(stdout, "offers   %-22s %-16s %s, %u recording%s\n", one->shown, answer->host,
                   answer->what, answer->count, answer->count == 1 ? "" : "s");
    }
    return true;
}

/* Who answers within a second. */
static void scan_network(uint16_t port, const struct token *token) {
    struct error error = {""};
    size_t count = 0;
    job_check(discovery_ask(port, token, DISCOVER_GATHERER | DISCOVER_OFFER, 1000000000, &cli_stop,
                            print_found, &count, &error),
              &error);
    if (count == 0) {
        job_fail("nobody answers%s",
                 token != NULL ? "" : " on this machine; others are asked with --token FILE");
    }
}

/* The folder was forgotten: 192.168.7.9, [::1]:6364, device-9:6364. */
static bool is_machine(const char *name) {
    char host[CHANNEL_HOST];
    struct in6_addr address;
    struct error error;
    uint16_t port;
    return access(name, F_OK) != 0 && strchr(name, '/') == NULL &&
           channel_peer(name, host, &port, &error) == 0 &&
           (inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1 ||
            strchr(name, ':') != NULL);
}

static int run_gather(int argc, char **argv) {
    struct request request = {.asked = {.stop = &cli_stop,
                                        .tell = cli_tell,
                                        .port = CHANNEL_PORT,
                                        .discovery_port = CHANNEL_PORT}};
    struct gatherer_options *asked = &request.asked;
    struct error error = {""};
    char host[CHANNEL_HOST] = "";
    cli_read(&gather_command, &argc, &argv, &request);
    if (request.scan) {
        if (argc != 0) {
            cli_usage("gather", "--scan takes no folder");
        }
        scan_network(asked->discovery_port, streaming_token(request.token));
        return cli_finish(CLI_OK);
    }
    if (argc == 0) {
        cli_usage("gather", "a folder is needed");
    }
    if (is_machine(argv[argc - 1])) {
        cli_usage("gather", "a folder is needed behind %s", argv[argc - 1]);
    }
    asked->folder = argv[argc - 1];
    argv[argc - 1] = NULL;
    asked->hosts = (const char *const *)argv;
    for (size_t i = 0; argv[i] != NULL; i++) {
        streaming_address("gather", argv[i], argv[i], true, host);
    }
    host[0] = '\0';
    if (request.listen != NULL) {
        asked->port = streaming_address("gather", "--listen", request.listen, false, host);
    }
    asked->host = argv[0] == NULL || request.listen != NULL ? host : NULL;
    asked->discovery_port = request.discoverable ? asked->discovery_port : 0;
    asked->token = streaming_token(request.token);
    streaming_mind_stop();
    job_check(gatherer_run(asked, &error), &error);
    return CLI_OK;
}

const struct command gather_command = {
    .name = "gather",
    .run = run_gather,
    .summary = "receive recordings of other machines",
    .usage = "[OPTION]... [HOST[:PORT]]... DIR | --scan",
    .about =
        "Receives recordings into DIR/HOST/PROGRAM.PID.TIME.mtr: those that others send here, "
        "until "
        "Ctrl-C; or, where machines are named that offer some, all that they have. Each file can "
        "be read while it grows. What it has told a sender to have is on the disk.",
    .options = options,
    .operands = "FOLDER",
};
