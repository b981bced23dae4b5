/* SPDX-License-Identifier: MIT */
/* launchfiles.c: patterns for files. See launchfiles.h. */
#include "cli/launchfiles.h"

#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const struct {
    const char *variable;
    const char *otherwise; /* NULL: only where it is set */
} known[LAUNCHFILES] = {{"MEMTRACE_OUTPUT", "memtrace.%e.%p.mtp"},
                        {"MEMTRACE_RECORD_OUTPUT", "memtrace.%e.%p.mtr"},
                        {"MEMTRACE_LOG", NULL}};

/* A percent sign has no meaning in the name of a folder or a program. */
static void put_quoted(FILE *out, const char *text) {
    for (; *text != '\0'; text++) {
        fputs(*text == '%' ? "%" : "", out);
        fputc(*text, out);
    }
}

/* "%e" is the program as typed, not what a link leads to. "%p" stays: there is no pid yet. */
static void put_pattern(FILE *out, const char *pattern, const char *typed) {
    const char *slash = strrchr(typed, '/');
    for (; *pattern != '\0'; pattern++) {
        char place = *pattern == '%' ? pattern[1] : '\0';
        if (place == 'e') {
            put_quoted(out, slash != NULL ? slash + 1 : typed);
        } else if (place == 't') {
            fprintf(out, "%lld", (long long)time(NULL));
        } else if (place == 'n') {
            fputc('0', out);
        } else {
            fputc(*pattern, out);
            if (place == '%') { /* two are one */
                fputc(place, out);
            }
        }
        pattern += place == 'e' || place == 't' || place == 'n' || place == '%';
    }
}

/* NULL: out of memory. */
static char *absolute(const char *pattern, const char *typed) {
    char *folder = pattern[0] != '/' ? getcwd(NULL, 0) : NULL;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out != NULL) {
        put_quoted(out, folder != NULL && strcmp(folder, "/") != 0 ? folder : "");
        fputs(folder != NULL ? "/" : "", out);
        put_pattern(out, pattern, typed);
        if (fclose(out) != 0) {
            free(text);
            text = NULL;
        }
    }
    free(folder);
    return text;
}

int launchfiles_name(struct launchfiles *files, struct variables *variables, const char *typed) {
    for (size_t i = 0; i < LAUNCHFILES; i++) {
        const char *pattern = variables_get(variables, known[i].variable);
        pattern = pattern != NULL && pattern[0] != '\0' ? pattern : known[i].otherwise;
        if (pattern == NULL) {
            continue;
        }
        files->patterns[i] = absolute(pattern, typed);
        if (files->patterns[i] == NULL) {
            return cli_error("out of memory");
        }
        variables_set_pattern(variables, known[i].variable, files->patterns[i]);
    }
    return 0;
}

const char *launchfiles_path(struct launchfiles *files, bool is_recording, pid_t pid) {
    const char *pattern = files->patterns[is_recording];
    char *to;
    free(files->path);
    files->path = pattern != NULL ? child_expand(pattern, pid) : NULL;
    if (files->path == NULL) {
        return "";
    }
    to = files->path;
    for (const char *at = files->path; *at != '\0'; at++) {
        at += at[0] == '%' && at[1] == '%';
        *to++ = *at;
    }
    *to = '\0';
    return files->path;
}

void launchfiles_free(struct launchfiles *files) {
    for (size_t i = 0; i < LAUNCHFILES; i++) {
        free(files->patterns[i]);
    }
    free(files->path);
    *files = (struct launchfiles){0};
}
