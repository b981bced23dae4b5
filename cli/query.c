/* SPDX-License-Identifier: MIT */
/*
 * query.c: `memtrace query [FILE|PID] [SQL]`. docs/query.md is its page.
 *
 * Statements and dot commands come from a text, a file or a person at a terminal, line by line
 * (libedit): Ctrl-C drops the line or ends the query that runs, Ctrl-D ends, and what was asked is
 * kept in $XDG_STATE_HOME/memtrace/query_history.
 */
#include "analyze/query/query.h"

#include "analyze/base/filemode.h"
#include "analyze/base/job.h"
#include "cli/outfile.h"
#include "cli/reading.h"

#include <editline/readline.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

struct request {
    bool has_format;
    const char *header;
    const char *script;
    struct question question;
    const char *output;
    const char *source;
    const char *sql;
    enum report_format result;
    bool schema;
    bool full_names;
};

/* ---- The command line ---- */

#define IN(member) OPTION_IN(struct request, member)

static const struct option options[] = {
    {"schema", 0, NULL, "show the tables and their columns", OPTION_FLAG, IN(schema)},
    {"script", 0, "FILE", "run the statements of a file", OPTION_TEXT, IN(script)},
    {"format", 'f', "table|markdown|csv|tsv|json",
     "default: at a terminal a table, else tsv without a heading", OPTION_WORD, IN(result),
     OPTION_GIVEN(struct request, has_format), .is_choice = true,
     /* in the order of enum report_format */
     .words = "table|markdown|csv|json|tsv"},
    {"header", 0, "on|off", "with or without the names of columns", OPTION_TEXT, IN(header)},
    {"full-names", 0, NULL, "C++ names with parameters, template arguments, return types",
     OPTION_FLAG, IN(full_names)},
    {"output", 'o', "FILE", "write to FILE", OPTION_TEXT, IN(output)},
    {.part = question_options, IN(question)},
    {.part = filter_options, IN(question.filters)},
    OPTION_END};

static void query_take_operands(struct request *request, char **operands, int count) {
    if (count > 2) {
        cli_usage("query", "one file and one statement: '%s' is one too many (quote SQL)",
                  operands[2]);
    }
    /* One alone may be a statement: it has a space in it, and no file has its name. */
    if (count == 1 && strpbrk(operands[0], " \t\n") != NULL && access(operands[0], F_OK) != 0) {
        request->sql = operands[0];
        return;
    }
    request->source = count > 0 ? operands[0] : NULL;
    request->sql = count > 1 ? operands[1] : NULL;
    if (request->sql != NULL && request->script != NULL) {
        cli_usage("query", "give SQL or --script, not both");
    }
}

/* ---- Lines and statements. Errors are printed; what is returned is an exit status ---- */

struct queryshell {
    struct query *query;
    struct statement_writer writer;
    atomic_int is_printing; /* rows come: no progress any more (an int: not every machine exchanges
                               a bool) */
    char *pending; /* lines of a statement that is not complete yet, of that size; 0: none */
    size_t pending_size;
    size_t pending_room;
    bool wants_to_quit;
};

static const char queryshell_help[] =
    ".tables             the tables and what is in them\n"
    ".schema [TABLE]     the columns of one table, or of all\n"
    ".format FORMAT      table, markdown, csv, tsv or json\n"
    ".header on|off      with or without the names of columns\n"
    ".help               show this\n"
    ".quit               end (or Ctrl-D)\n"
    "\n"
    "Anything else is SQL, up to a semicolon. Besides SQLite's own functions:\n"
    "  bytes(n)       1048576 as 1.0 MiB\n"
    "  duration(ns)   1500000000 as 1.5 s\n"
    "  address(n)     as 0x55d0\n"
    "  path(id)       the functions of a call path, outermost first\n"
    "  path_hash(id)  its hash\n"
    "  function(id)   its innermost function\n"
    "  X REGEXP Y     whether the POSIX extended pattern Y is found in X\n";

/* For the session's replay_options, the shell as context. */
static void queryshell_progress(void *context, uint64_t done, uint64_t total) {
    const struct queryshell *shell = context;
    if (!atomic_load(&shell->is_printing)) {
        reading_show("reading events", done, total);
    }
}

/* ---- Statements ---- */

static int queryshell_begin(void *context, sqlite3_stmt *statement) {
    struct statement_writer *writer = context;
    struct queryshell *shell =
        (struct queryshell *)((char *)writer - offsetof(struct queryshell, writer));
    if (!atomic_exchange(&shell->is_printing, true) && reading_is_watched()) {
        fputs("\r\033[K", stderr);
    }
    return statement_sink(writer).begin(writer, statement);
}

/* All statements of a text, which is no shell's: no dot commands. */
static int queryshell_text(struct queryshell *shell, const char *sql) {
    struct query_sink sink = statement_sink(&shell->writer);
    struct error error;
    int result;
    sink.begin = queryshell_begin;
    atomic_store(&shell->is_printing, false);
    result = query_run(shell->query, sql, &sink, &error);
    if (result < 0) {
        fflush(shell->writer.report.out);
        return cli_error("%s", error.message);
    }
    if (result == QUERY_STOPPED && !ferror(shell->writer.report.out)) {
        return cli_error("out of memory while writing rows");
    }
    return CLI_OK; /* what could not be written is said at the end */
}

static int queryshell_obey_command(struct queryshell *shell, const char *line) {
    FILE *out = shell->writer.report.out;
    char name[16] = "";
    char argument[64] = "";
    sscanf(line, "%15s %63s", name, argument);
    if (strcmp(name, ".tables") == 0) {
        query_describe_all(out);
    } else if (strcmp(name, ".schema") == 0 && argument[0] == '\0') {
        query_describe_columns(out);
    } else if (strcmp(name, ".schema") == 0) {
        if (query_describe(out, argument) != 0) {
            return cli_error("there is no table '%s'; .tables lists them", argument);
        }
    } else if (strcmp(name, ".format") == 0) {
        if (!statement_format_named(argument, &shell->writer.report.options.format)) {
            return cli_error(".format is " STATEMENT_FORMATS ", not '%s'", argument);
        }
        shell->writer.options.has_header = true;
    } else if (strcmp(name, ".header") == 0) {
        if (strcmp(argument, "on") != 0 && strcmp(argument, "off") != 0) {
            return cli_error(".header is on or off, not '%s'", argument);
        }
        shell->writer.options.has_header = strcmp(argument, "on") == 0;
    } else if (strcmp(name, ".help") == 0) {
        fputs(queryshell_help, out);
    } else if (strcmp(name, ".quit") == 0 || strcmp(name, ".exit") == 0) {
        shell->wants_to_quit = true;
    } else {
        return cli_error("there is no command '%s'; .help lists them", name);
    }
    return CLI_OK;
}

/* ---- Lines ---- */

/* No more lines: runs what is pending. */
static int queryshell_finish(struct queryshell *shell) {
    bool is_pending = shell->pending_size != 0;
    shell->pending_size = 0;
    return is_pending ? queryshell_text(shell, shell->pending) : CLI_OK;
}

/* The next line: a dot command, or a part of a statement, which is run when it is complete. */
static int queryshell_line(struct queryshell *shell, const char *line) {
    size_t length = strlen(line);
    const char *first = line + strspn(line, " \t\n\v\f\r");
    if (shell->pending_size == 0 && (*first == '\0' || strncmp(first, "--", 2) == 0)) {
        return CLI_OK; /* nothing, or a comment */
    }
    if (shell->pending_size == 0 && *line == '.') {
        return queryshell_obey_command(shell, line);
    }
    job_reserve(&shell->pending, &shell->pending_room, shell->pending_size + length + 2, 1);
    snprintf(shell->pending + shell->pending_size, length + 2, "%s\n", line);
    shell->pending_size += length + 1;
    return sqlite3_complete(shell->pending) ? queryshell_finish(shell) : CLI_OK;
}

/* All lines of a file, up to the first error. */
static int queryshell_lines(struct queryshell *shell, FILE *in) {
    char *line = NULL;
    size_t capacity = 0;
    int status = CLI_OK;
    ssize_t length;
    while (status == CLI_OK && !shell->wants_to_quit &&
           (length = getline(&line, &capacity, in)) >= 0) {
        if (length > 0 && line[length - 1] == '\n') {
            line[length - 1] = '\0';
        }
        status = queryshell_line(shell, line);
    }
    free(line);
    if (status == CLI_OK && ferror(in)) {
        status = cli_error("cannot read the statements: %m");
    }
    return status == CLI_OK ? queryshell_finish(shell) : status;
}

/* ---- A person at a terminal ---- */

enum { HISTORY_MOST = 1000 };

/* For the handler: the query that runs; NULL: none does. */
static struct query *volatile running;
static volatile sig_atomic_t was_interrupted;

static void queryterminal_interrupt(int number) {
    struct query *query = running;
    (void)number;
    was_interrupted = 1;
    if (query != NULL) {
        query_interrupt(query);
    }
}

/* NULL: there is no place for it. */
static char *queryterminal_history_path(void) {
    const char *state = getenv("XDG_STATE_HOME");
    const char *home = getenv("HOME");
    char *path = NULL;
    if (state != NULL && *state == '/') {
        path = job_text("%s/memtrace/query_history", state);
    } else if (home != NULL && *home == '/') {
        path = job_text("%s/.local/state/memtrace/query_history", home);
    }
    if (path != NULL) {
        filemode_folders(path, S_IRWXU);
    }
    return path;
}

static void queryterminal_ask(struct queryshell *shell) {
    while (!shell->wants_to_quit) {
        char *line;
        was_interrupted = 0;
        query_resume(shell->query);
        line = readline(shell->pending_size == 0 ? "memtrace> " : "     ...> ");
        if (line == NULL && was_interrupted == 0) {
            break;
        }
        running = shell->query; /* Ctrl-C is the query's from now on, also before it begins */
        if (was_interrupted != 0) {
            shell->pending_size = 0;
            fputc('\n', shell->writer.report.out);
        } else {
            if (*line != '\0') {
                add_history(line);
            }
            queryshell_line(shell, line);
            fflush(shell->writer.report.out);
        }
        running = NULL;
        if (was_interrupted != 0) {
            clearerr(shell->writer.report.out); /* a write that Ctrl-C cut off */
        }
        free(line);
    }
}

/* Asks a person until he has enough. */
static int queryterminal_run(struct queryshell *shell, const char *source) {
    struct sigaction action = {
        .sa_handler = queryterminal_interrupt}; /* no SA_RESTART: readline() shall end */
    struct sigaction before;
    char *path = queryterminal_history_path();
    fprintf(shell->writer.report.out,
            "%s\nSQL, then a semicolon. .tables lists what there is, .help more.\n", source);
    using_history();
    stifle_history(HISTORY_MOST);
    if (path != NULL) {
        read_history(path);
    }
    sigaction(SIGINT, &action, &before);
    queryterminal_ask(shell);
    sigaction(SIGINT, &before, NULL);
    if (path != NULL) {
        write_history(path);
    }
    fputc('\n', shell->writer.report.out);
    return CLI_OK;
}

/* ---- The work ---- */

static struct statement_writer choose_writer(const struct request *request, FILE *out) {
    bool at_terminal = request->output == NULL && isatty(STDOUT_FILENO);
    struct winsize size = {0};
    bool is_known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
    enum report_format usual = at_terminal ? REPORT_TEXT : REPORT_TSV;
    struct statement_writer writer = {
        .report = {.out = out, .options.format = request->has_format ? request->result : usual},
        .options = {.has_header = at_terminal || request->has_format,
                    .is_grouped = at_terminal,
                    .cell_most = at_terminal && is_known ? size.ws_col : 0},
    };
    if (request->header != NULL) {
        writer.options.has_header = strcmp(request->header, "on") == 0;
    }
    return writer;
}

static int run_statements(struct queryshell *shell, const struct request *request,
                          const struct source *source) {
    if (request->sql != NULL) {
        return queryshell_text(shell, request->sql);
    }
    if (request->script != NULL) {
        FILE *in = fopen(request->script, "re");
        int status;
        if (in == NULL) {
            return cli_error("cannot read %s: %m", request->script);
        }
        status = queryshell_lines(shell, in);
        fclose(in);
        return status;
    }
    return isatty(STDIN_FILENO) && request->output == NULL ? queryterminal_run(shell, source->path)
                                                           : queryshell_lines(shell, stdin);
}

static int query_answer(const struct answer *answer, const struct request *request) {
    struct queryshell shell = {0};
    struct replay_options replay = {.context = &shell,
                                    .progress = reading_is_watched() ? queryshell_progress : NULL};
    struct query_source asked = {.whole = answer->whole,
                                 .model = answer->model,
                                 .selection = answer->selection,
                                 .names = answer->names,
                                 .parts = answer->source->parts,
                                 .run = answer->source->run,
                                 .replay = &replay,
                                 .has_full_names = request->full_names};
    struct outfile *file;
    int status;
    shell.query = query_open(&asked);
    file = outfile_open(request->output);
    shell.writer = choose_writer(request, file->stream);
    status = run_statements(&shell, request, answer->source);
    if (status == CLI_OK || request->output == NULL) {
        outfile_keep(file);
    }
    query_close(shell.query);
    return status;
}

static void print_shell_help(void) {
    puts("at the terminal and in scripts:");
    fputs(queryshell_help, stdout);
}

static int run_query(int argc, char **argv) {
    struct request request = {0};
    struct answer answer;
    int status;
    cli_read(&query_command, &argc, &argv, &request);
    query_take_operands(&request, argv, argc);
    if (request.schema) {
        query_describe_columns(stdout);
        return cli_finish(CLI_OK);
    }
    reading_open(&answer, request.source, &request.question);
    status = query_answer(&answer, &request);
    reading_note(&answer);
    return status;
}

const struct command query_command = {
    .name = "query",
    .run = run_query,
    .summary = "answer SQL over a profile or a recording",
    .usage = "[OPTION]... [FILE|RUN|PID] [SQL]",
    .about = "Answers SQL over a profile (*.mtp), a recording (*.mtr) or what a running "
             "program holds now; without a file: the newest of this folder. Without SQL "
             "it asks at the terminal, or reads statements from standard input. Nothing "
             "is written but temporary tables and views.\n"
             "\n"
             "    memtrace query app.mtr \"SELECT function, bytes(live_bytes) FROM contexts\n"
             "                            ORDER BY live_bytes DESC LIMIT 10\"",
    .options = options,
    .operands = "PROFILE",
    .more = print_shell_help,
};
