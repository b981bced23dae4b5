/* SPDX-License-Identifier: MIT */
/* queryshell.c: see queryshell.h. */
#include "cli/queryshell.h"

#include "cli/cli.h"
#include "cli/progress.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

const char queryshell_help[] =
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

void queryshell_progress(void *context, uint64_t done, uint64_t total) {
    const struct queryshell *shell = context;
    if (!atomic_load(&shell->is_printing)) {
        progress_show("reading events", done, total);
    }
}

/* ---- Statements ---- */

static int begin(void *context, sqlite3_stmt *statement) {
    struct statement_writer *writer = context;
    struct queryshell *shell =
        (struct queryshell *)((char *)writer - offsetof(struct queryshell, writer));
    if (!atomic_exchange(&shell->is_printing, true) && progress_wanted()) {
        fputs("\r\033[K", stderr);
    }
    return statement_sink(writer).begin(writer, statement);
}

int queryshell_text(struct queryshell *shell, const char *sql) {
    struct query_sink sink = statement_sink(&shell->writer);
    struct error error;
    int result;
    sink.begin = begin;
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

/* ---- Dot commands ---- */

static int show_schema(const struct queryshell *shell, const char *table) {
    if (*table == '\0') {
        query_describe_columns(shell->writer.report.out);
        return CLI_OK;
    }
    return query_describe(shell->writer.report.out, table) == 0
               ? CLI_OK
               : cli_error("there is no table '%s'; .tables lists them", table);
}

static int set_format(struct queryshell *shell, const char *name) {
    if (!statement_format_named(name, &shell->writer.report.options.format)) {
        return cli_error(".format is " STATEMENT_FORMATS ", not '%s'", name);
    }
    shell->writer.options.has_header = true;
    return CLI_OK;
}

static int set_header(struct queryshell *shell, const char *value) {
    bool is_on = strcmp(value, "on") == 0;
    if (!is_on && strcmp(value, "off") != 0) {
        return cli_error(".header is on or off, not '%s'", value);
    }
    shell->writer.options.has_header = is_on;
    return CLI_OK;
}

static int obey_command(struct queryshell *shell, const char *line) {
    char name[16] = "";
    char argument[64] = "";
    sscanf(line, "%15s %63s", name, argument);
    if (strcmp(name, ".tables") == 0) {
        query_describe_all(shell->writer.report.out);
    } else if (strcmp(name, ".schema") == 0) {
        return show_schema(shell, argument);
    } else if (strcmp(name, ".format") == 0) {
        return set_format(shell, argument);
    } else if (strcmp(name, ".header") == 0) {
        return set_header(shell, argument);
    } else if (strcmp(name, ".help") == 0) {
        fputs(queryshell_help, shell->writer.report.out);
    } else if (strcmp(name, ".quit") == 0 || strcmp(name, ".exit") == 0) {
        shell->wants_to_quit = true;
    } else {
        return cli_error("there is no command '%s'; .help lists them", name);
    }
    return CLI_OK;
}

/* ---- Lines ---- */

static int append(struct queryshell *shell, const char *line) {
    size_t length = strlen(line);
    char *grown = realloc(shell->pending, shell->pending_size + length + 2);
    if (grown == NULL) {
        return cli_error("out of memory");
    }
    snprintf(grown + shell->pending_size, length + 2, "%s\n", line);
    shell->pending = grown;
    shell->pending_size += length + 1;
    return CLI_OK;
}

/* No more lines: runs what is pending. */
static int finish(struct queryshell *shell) {
    int status = CLI_OK;
    if (shell->pending != NULL) {
        status = queryshell_text(shell, shell->pending);
    }
    free(shell->pending);
    shell->pending = NULL;
    shell->pending_size = 0;
    return status;
}

/* Nothing, or a comment. */
static bool is_blank(const char *line) {
    while (isspace((unsigned char)*line)) {
        line++;
    }
    return *line == '\0' || strncmp(line, "--", 2) == 0;
}

int queryshell_line(struct queryshell *shell, const char *line) {
    int status;
    if (shell->pending == NULL && is_blank(line)) {
        return CLI_OK;
    }
    if (shell->pending == NULL && *line == '.') {
        return obey_command(shell, line);
    }
    status = append(shell, line);
    if (status == CLI_OK && sqlite3_complete(shell->pending)) {
        status = finish(shell);
    }
    return status;
}

int queryshell_lines(struct queryshell *shell, FILE *in) {
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
    return status == CLI_OK ? finish(shell) : status;
}
