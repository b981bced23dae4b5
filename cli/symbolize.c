/* SPDX-License-Identifier: MIT */
/*
 * symbolize.c: `memtrace symbolize`: a filter that turns module+0xOFFSET into function at
 * file:line.
 *
 * Whatever it cannot name it leaves as it is.
 */
#include "analyze/base/job.h"
#include "ask/memorylimit.h"
#include "ask/question.h"
#include "cli/cli.h"
#include "cli/frames.h"
#include "cli/progress.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A place in a line: [start, end) is "module+0xOFFSET". */
struct token {
    size_t start;
    size_t end;
    uint64_t offset;
    char module[PATH_MAX];
};

struct filter {
    struct symbolizer *symbolizer;
    FILE *input;
    const char *name; /* of the input */
    char *line;
    const char *root; /* folder below which modules are looked for first; NULL: none */
};

/* Characters that end a module's name in running text. Paths with blanks are met in find_start. */
static bool ends_name(char c) {
    return isspace((unsigned char)c) || c == '(' || c == '\'' || c == '"' || c == '<' || c == '=' ||
           c == ',' || c == '\0';
}

/* Where the module's name starts that ends before `plus`: after the last blank, or, where the path
 * itself has blanks, at the first '/' from which on the file exists. */
static size_t find_start(const char *line, size_t from, size_t plus) {
    size_t start = plus;
    while (start > from && !ends_name(line[start - 1]))
        start--;
    for (size_t i = from; i < start; i++) {
        char path[PATH_MAX];
        if (line[i] != '/' || (i > from && !ends_name(line[i - 1])) || plus - i >= sizeof path)
            continue;
        memcpy(path, line + i, plus - i);
        path[plus - i] = '\0';
        if (access(path, F_OK) == 0)
            return i;
    }
    return start;
}

/* Fills the token if one ends with the hexadecimal digits after the "+0x" at `plus`. */
static bool symbolize_read_token(const char *line, size_t length, size_t from, size_t plus,
                                 struct token *token) {
    size_t end = plus + 3;
    uint64_t offset = 0;
    while (end < length && isxdigit((unsigned char)line[end]) && end - plus - 3 < 16) {
        int digit = tolower((unsigned char)line[end++]);
        offset = offset << 4 | (uint64_t)(digit <= '9' ? digit - '0' : digit - 'a' + 10);
    }
    /* A kernel's function+0x12/0x40 and a name like x+0x1y are none of ours. */
    bool whole = end > plus + 3 && (end == length || (!isalnum((unsigned char)line[end]) &&
                                                      line[end] != '/' && line[end] != '_'));
    size_t start = find_start(line, from, plus);
    if (!whole || start == plus || plus - start >= sizeof token->module)
        return false;
    token->start = start;
    token->end = end;
    token->offset = offset;
    memcpy(token->module, line + start, plus - start);
    token->module[plus - start] = '\0';
    return true;
}

static bool next_token(const char *line, size_t length, size_t from, struct token *token) {
    for (size_t at = from; at + 3 < length; at++)
        if (memcmp(line + at, "+0x", 3) == 0 && symbolize_read_token(line, length, from, at, token))
            return true;
    return false;
}

/* The module's file: below the root if it is there, else as written. */
static const char *locate(const struct filter *filter, const char *module, char path[PATH_MAX]) {
    if (filter->root && snprintf(path, PATH_MAX, "%s/%s", filter->root, module) < PATH_MAX &&
        access(path, F_OK) == 0)
        return path;
    return module;
}

/* The rest of a frame's text is repeated in front of every further frame: blanks stay blanks (and
 * tabs tabs), all else becomes one blank. */
static void indent(const char *line, size_t start) {
    for (size_t i = 0; i < start; i++)
        if (((unsigned char)line[i] & 0xc0) != 0x80)
            putchar(line[i] == '\t' ? '\t' : ' ');
}

static void symbolize_write_token(const struct filter *filter, const char *line,
                                  const struct token *token) {
    char path[PATH_MAX];
    const char *file = locate(filter, token->module, path);
    struct symbol_frames frames = {0};
    /* A word that is no file is no module: nothing to warn of. */
    if (strchr(token->module, '/') || access(file, F_OK) == 0) {
        struct symbol_module module = {.path = file};
        if (symbolizer_resolve(filter->symbolizer, &module, token->offset, &frames) != 0)
            job_fail("no memory for the names");
    }
    char place[PATH_MAX + 32];
    snprintf(place, sizeof place, "%s+0x%llx", token->module, (unsigned long long)token->offset);
    if (frames.count == 0)
        fwrite(line + token->start, 1, token->end - token->start, stdout);
    for (size_t i = 0; i < frames.count; i++) {
        if (i > 0) {
            putchar('\n');
            indent(line, token->start);
        }
        frames_write(&frames.frames[i], place);
    }
}

static void symbolize_write_line(const struct filter *filter, const char *line, size_t length) {
    struct token token;
    size_t written = 0;
    while (next_token(line, length, written, &token)) {
        fwrite(line + written, 1, token.start - written, stdout);
        symbolize_write_token(filter, line, &token);
        written = token.end;
    }
    fwrite(line + written, 1, length - written, stdout);
}

/* Copies the input. */
static void filter_lines(void *what) {
    struct filter *filter = what;
    size_t room = 0;
    ssize_t length;
    /* Someone may be reading along: a pipe from a running program. */
    setvbuf(stdout, NULL, _IOLBF, 0);
    while ((length = getline(&filter->line, &room, filter->input)) >= 0 && !ferror(stdout))
        symbolize_write_line(filter, filter->line, (size_t)length);
    if (ferror(filter->input))
        job_fail("%s: %s", filter->name, strerror(errno));
}

static void end_filter(void *what) {
    struct filter *filter = what;
    frames_warn(filter->symbolizer);
    symbolizer_close(filter->symbolizer);
    free(filter->line);
    if (filter->input != stdin)
        fclose(filter->input);
}

struct request {
    const char *root;
    const char *debug_folders;
    const char *file;
};

static const struct option options[] = {
    {"root", 0, "FOLDER", "look for modules below it first: a copy of another machine", OPTION_TEXT,
     OPTION_IN(struct request, root)},
    {"debug", 0, "FOLDERS", "where debug files lie, separated by colons (default: /usr/lib/debug)",
     OPTION_TEXT, OPTION_IN(struct request, debug_folders)},
    {.part = debuginfod_options},
    {.part = memorylimit_options},
    OPTION_END};

static int run_symbolize(int argc, char **argv) {
    struct request request = {0};
    struct filter filter = {.input = stdin, .name = "standard input"};
    struct symbolizer_options symbols = {.threads = 1};
    struct error error;
    int status = cli_read(&symbolize_command, &argc, &argv, &request);
    if (status == CLI_OK)
        status = cli_one(&symbolize_command, argc, argv, NULL, &request.file);
    if (status != CLI_OK)
        return status;
    if (request.file && strcmp(request.file, "-") != 0) {
        filter.name = request.file;
        filter.input = fopen(request.file, "re");
    }
    if (!filter.input)
        job_fail("%s: %s", filter.name, strerror(errno));
    filter.root = request.root;
    symbols.debug_folders = request.debug_folders;
    progress_allow_fetching();
    filter.symbolizer = symbolizer_open(&symbols, &error);
    if (!filter.symbolizer)
        job_fail_as(&error);
    job_finally(filter_lines, end_filter, &filter);
    return cli_finish(CLI_OK);
}

const struct command symbolize_command = {
    .name = "symbolize",
    .run = run_symbolize,
    .summary = "turn module+offset lines into function and line",
    .usage = "[OPTION]... [FILE]",
    .about = "Copies FILE (or standard input) to standard output and replaces each "
             "module+0xOFFSET by \"function at file:line\". Functions inlined there follow "
             "one per line, innermost first, marked (inlined). What is unknown stays as it is.",
    .options = options,
    .operands = "FILE",
};
