/* SPDX-License-Identifier: MIT */
/* serve.c: `memtrace serve`: the page in the browser. docs/serve.md is its page. */
#include "analyze/base/job.h"
#include "analyze/base/pathname.h"
#include "analyze/read/run.h"
#include "analyze/rows/safetext.h"
#include "analyze/symbol/debuginfod.h"
#include "ask/answer.h"
#include "ask/memorylimit.h"
#include "cli/cli.h"
#include "web/server/openapi.h"
#include "web/server/server.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OPERANDS = HUB_SOURCES, SOURCE_MAPS = 64 };
#define CACHE_BYTES (UINT64_C(256) << 20)

struct serving {
    struct server_options asked;
    bool no_open;
    const char *source_maps[SOURCE_MAPS];
    const char *source_folders[SOURCE_MAPS];
    const char *names[OPERANDS]; /* files, runs, PIDs */
    size_t name_count;
    const char *folders[OPERANDS];
};

#define IN(member) OPTION_IN(struct serving, member)

/* One more of those that may be given again. */
static int add_source(const char **list, size_t *count, const struct option *option,
                      const char *value, struct error *error) {
    if (*count == SOURCE_MAPS) {
        return error_set(error, "--%s: at most %d", option->name, SOURCE_MAPS);
    }
    list[(*count)++] = value;
    return 0;
}

static int take_source_map(void *member, const struct option *option, const char *value,
                           struct error *error) {
    struct serving *request = member;
    const char *equals = strchr(value, '=');
    return equals == NULL || equals == value || equals[1] == '\0'
               ? option_refuse(option, value, "OLD=NEW", error)
               : add_source(request->source_maps, &request->asked.hub.source_map_count, option,
                            value, error);
}

static int take_source_folder(void *member, const struct option *option, const char *value,
                              struct error *error) {
    struct serving *request = member;
    return access(value, X_OK) != 0
               ? error_set(error, "--%s: %s: %s", option->name, value, strerror(errno))
               : add_source(request->source_folders, &request->asked.hub.source_folder_count,
                            option, value, error);
}

static const struct option options[] = {
    {"port", 'p', "PORT", "listen there (default: 6363, or the next one that is free)",
     OPTION_NUMBER, IN(asked.port), .least = 1, .most = 65535},
    {"no-open", 0, NULL, "do not open the browser", OPTION_FLAG, IN(no_open)},
    {"view", 0, "QUERY", "open this view: what follows the address of the page, such as flame?r=1",
     OPTION_TEXT, IN(asked.hub.view)},
    {"source-map", 0, "OLD=NEW",
     "source files below OLD, as the program's debug information names them, are below NEW here; "
     "may be given again",
     OPTION_CALL, .call = take_source_map},
    {"sources", 0, "FOLDER",
     "show source files below this folder, beside those that belong to the program; may be given "
     "again",
     OPTION_CALL, .call = take_source_folder},
    {"cache-memory", 0, "SIZE",
     "how much memory the answers that are kept may take (default: 256M)", OPTION_SIZE,
     IN(asked.hub.cache_bytes)},
    {"debug-folders", 0, "FOLDERS",
     "where separate debug files are, colon-separated (default: /usr/lib/debug)", OPTION_TEXT,
     IN(asked.hub.debug_folders)},
    {.part = debuginfod_options},
    {.part = root_options},
    {.part = memorylimit_options},
    {"listen", 0, "ADDRESS",
     "listen at this address instead of this machine's own; needs --allow-remote", OPTION_TEXT,
     IN(asked.listen)},
    {"allow-remote", 0, NULL,
     "let others on the network ask, unencrypted; whoever sees the token reads everything",
     OPTION_FLAG, IN(asked.hub.only_named_sources)},
    OPTION_END};

/* ---- What is named ---- */

/* A folder is a run, or holds what may be opened. */
static bool is_run(const char *path) {
    struct run *run = run_is(path) ? run_open(path, NULL) : NULL;
    bool has_summary = run != NULL && run->has_summary;
    run_close(run);
    return has_summary || (run != NULL && pathname_is_ours(path));
}

static void sort_operands(int argc, char **argv, struct serving *request) {
    size_t *folder_count = &request->asked.hub.folder_count;
    if (argc > OPERANDS) {
        job_fail("at most %d files can be open", OPERANDS);
    }
    for (int i = 0; i < argc; i++) {
        uint64_t pid;
        if (access(argv[i], F_OK) != 0 && quantity_u64(argv[i], &pid) != 0) {
            job_fail("%s: %s", argv[i], strerror(errno));
        }
        if (run_is(argv[i]) && !is_run(argv[i])) {
            request->folders[(*folder_count)++] = argv[i];
        } else {
            request->names[request->name_count++] = argv[i];
        }
    }
    if (argc == 0) {
        request->names[request->name_count++] = ""; /* the newest */
        request->folders[(*folder_count)++] = ".";
    }
}

/* ---- Until Ctrl-C ---- */

/* One line: where the page is, and how to come to it. */
static void serve_tell(struct server *server, const struct serving *request) {
    bool is_remote = getenv("SSH_CONNECTION") != NULL && request->asked.listen == NULL;
    printf("%s\n", server_address(server));
    if (is_remote) {
        char host[256] = "HOST";
        gethostname(host, sizeof host - 1);
        print_safe(stdout,
                   "(from your machine: ssh -L %u:127.0.0.1:%u %s, then open the address)\n",
                   server_port(server), server_port(server), host);
    }
    fflush(stdout);
    if (!request->no_open && !is_remote) {
        memorylimit_lift();
        server_open_browser(server);
        memorylimit_again();
    }
}

static int run_serve(int argc, char **argv) {
    struct serving *request = job_alloc(sizeof *request);
    struct server_options *asked = &request->asked;
    sigset_t endings = cli_endings();
    struct error error = {""};
    struct server *server;
    int number;
    asked->hub = (struct hub_options){.cache_bytes = CACHE_BYTES,
                                      .folders = request->folders,
                                      .source_maps = request->source_maps,
                                      .source_folders = request->source_folders};
    cli_read(&serve_command, &argc, &argv, request);
    if (asked->listen != NULL && !asked->hub.only_named_sources) {
        cli_usage("serve", "--listen lets others read everything: it needs --allow-remote");
    }
    if (asked->listen != NULL) {
        cli_error("what goes to and from %s is not encrypted; `ssh -L` is safer", asked->listen);
    }
    sort_operands(argc, argv, request);
    debuginfod_allow(NULL);
    pthread_sigmask(SIG_BLOCK, &endings, NULL); /* also in the threads to come */
    signal(SIGPIPE, SIG_IGN);
    server = server_start(asked, request->names, request->name_count, &error);
    job_check(server != NULL ? 0 : -1, &error);
    serve_tell(server, request);
    sigwait(&endings, &number);
    pthread_sigmask(SIG_UNBLOCK, &endings, NULL); /* a second one does not wait for anything */
    server_stop(server);
    return CLI_OK;
}

const struct command serve_command = {
    .name = "serve",
    .run = run_serve,
    .summary = "show profiles, recordings and running programs in the browser",
    .usage = "[OPTION]... [FILE|RUN|PID|FOLDER]...",
    .about = "Shows profiles (*.mtp), recordings (*.mtr), runs of several processes and running "
             "programs as a page in the browser, which this machine alone can see. Without a name: "
             "the newest file of this folder. Prints the address of the page; Ctrl-C ends it.",
    .options = options,
    .operands = "PROFILE",
};

/* What web/openapi.json is made of (scripts/generate). */
static int run_openapi(int argc, char **argv) {
    struct jsonwriter *json = jsonwriter_open(stdout, JSONWRITER_INDENTED);
    (void)argc;
    (void)argv;
    openapi_write(json);
    jsonwriter_close(json);
    return cli_finish(CLI_OK);
}

const struct command openapi_command = {.name = "openapi", .run = run_openapi};
