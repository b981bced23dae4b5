/* SPDX-License-Identifier: MIT */
/* csvtext.c: see csvtext.h. */
#include "analyze/report/csvtext.h"

#include "analyze/rows/safetext.h"

#include <string.h>

/* A spreadsheet would compute a cell that begins so. Threads, pools, marks, files and functions are
 * named by the program, so their names stay text: a single quote before them says so. */
static void put_text_mark(FILE *out, const char *text) {
    if (*text != '\0' && strchr("=+-@\t\r", *text) != NULL) {
        fputc('\'', out);
    }
}

/* Lines and tabs are those of the cell. */
static void put_inside(FILE *out, const char *text) {
    while (*(text = put_safe_until(out, text, "\"\n\t")) != '\0') {
        fputs(*text == '"' ? "\"\"" : *text == '\n' ? "\n" : "\t", out);
        text++;
    }
}

void csvtext_put(FILE *out, const char *text) {
    fputc('"', out);
    put_text_mark(out, text);
    put_inside(out, text);
    fputc('"', out);
}

void csvtext_put_short(FILE *out, const char *text) {
    if (strpbrk(text, ",\"\r\n") != NULL) {
        csvtext_put(out, text);
        return;
    }
    put_text_mark(out, text);
    put_inside(out, text);
}

void csvtext_put_path(FILE *out, struct calltree_walk walk, size_t most) {
    fputc('"', out);
    for (size_t i = 0; walk.frame != NULL && (most == 0 || i < most);
         calltree_walk_next(&walk), i++) {
        char name[4096];
        const char *spelt = names_spell(walk.frame, name, sizeof name);
        if (walk.steps != 0) {
            fputs("; ", out);
        } else {
            put_text_mark(out, spelt);
        }
        put_inside(out, spelt);
        if (walk.frame->file != NULL) {
            fputs(" at ", out);
            put_inside(out, walk.frame->file);
            fprintf(out, ":%u", walk.frame->line);
        }
    }
    fputc('"', out);
}
