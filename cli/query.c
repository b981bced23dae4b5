/* SPDX-License-Identifier: MIT */
/* query.c: `memtrace query [FILE|PID] [SQL]`. docs/query.md is its page. */
#include "analyze/query/query.h"

#include "cli/asking.h"
#include "cli/cli.h"
#include "cli/outfile.h"
#include "cli/progress.h"
#include "cli/queryshell.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
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

/* One operand alone may be a statement: it has a space in it, and no file has its name. */
static bool is_statement(const char *text) {
    return strpbrk(text, " \t\n") != NULL && access(text, F_OK) != 0;
}

static int take_operands(struct request *request, char **operands, int count) {
    if (count > 2) {
        return cli_usage("query", "one file and one statement: '%s' is one too many (quote SQL)",
                         operands[2]);
    }
    if (count == 1 && is_statement(operands[0])) {
        request->sql = operands[0];
        return CLI_OK;
    }
    request->source = count > 0 ? operands[0] : NULL;
    request->sql = count > 1 ? operands[1] : NULL;
    if (request->sql != NULL && request->script != NULL) {
        return cli_usage("query", "give SQL or --script, not both");
    }
    return CLI_OK;
}

/* ---- The work ---- */

static size_t terminal_width(void) {
    struct winsize size;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

static struct statement_writer choose_writer(const struct request *request, FILE *out) {
    bool at_terminal = request->output == NULL && isatty(STDOUT_FILENO);
    enum report_format usual = at_terminal ? REPORT_TEXT : REPORT_TSV;
    struct statement_writer writer = {
        .report = {.out = out, .options.format = request->has_format ? request->result : usual},
        .options = {.has_header = at_terminal || request->has_format,
                    .is_grouped = at_terminal,
                    .cell_most = at_terminal ? terminal_width() : 0},
    };
    if (request->header != NULL) {
        writer.options.has_header = strcmp(request->header, "on") == 0;
    }
    return writer;
}

static int run_script(struct queryshell *shell, const char *path) {
    FILE *in = fopen(path, "re");
    int status;
    if (in == NULL) {
        return cli_error("cannot read %s: %m", path);
    }
    status = queryshell_lines(shell, in);
    fclose(in);
    return status;
}

static int run_statements(struct queryshell *shell, const struct request *request,
                          const struct source *source) {
    if (request->sql != NULL) {
        return queryshell_text(shell, request->sql);
    }
    if (request->script != NULL) {
        return run_script(shell, request->script);
    }
    return isatty(STDIN_FILENO) && request->output == NULL ? queryterminal_run(shell, source->path)
                                                           : queryshell_lines(shell, stdin);
}

static int run_into(struct queryshell *shell, const struct request *request,
                    const struct source *source) {
    struct outfile *file = outfile_open(request->output);
    int status;
    shell->writer = choose_writer(request, file->stream);
    status = run_statements(shell, request, source);
    if (status == CLI_OK || request->output == NULL) {
        outfile_keep(file);
    }
    return status;
}

static int query_answer(const struct answer *answer, const struct request *request) {
    struct queryshell shell = {0};
    struct replay_options replay = {.context = &shell,
                                    .progress = progress_wanted() ? queryshell_progress : NULL};
    struct query_source asked = {.whole = answer->source.model,
                                 .model = answer->filtered.model,
                                 .selection = &answer->filtered.selection,
                                 .names = answer->names,
                                 .parts = answer->source.parts,
                                 .run = answer->source.run,
                                 .replay = &replay,
                                 .has_full_names = request->full_names};
    int status;
    shell.query = query_open(&asked);
    status = run_into(&shell, request, &answer->source);
    query_close(shell.query);
    return status;
}

static int query_source(const struct request *request) {
    struct answer answer;
    struct error error;
    int status;
    if (asking_open(&answer, request->source, &request->question, &error) != 0) {
        return cli_error("%s", error.message);
    }
    status = query_answer(&answer, request);
    asking_note(&answer);
    answer_close(&answer);
    return status;
}

static void print_shell_help(void) {
    puts("at the terminal and in scripts:");
    fputs(queryshell_help, stdout);
}

static int query_any(const struct request *request) {
    if (request->schema) {
        query_describe_columns(stdout);
        return cli_finish(CLI_OK);
    }
    return query_source(request);
}

static int run_query(int argc, char **argv) {
    struct request request = {0};
    int status = cli_read(&query_command, &argc, &argv, &request);
    if (status == CLI_OK) {
        status = take_operands(&request, argv, argc);
    }
    if (status == CLI_OK) {
        status = query_any(&request);
    }
    question_free(&request.question);
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
