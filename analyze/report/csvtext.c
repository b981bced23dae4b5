/* SPDX-License-Identifier: MIT */
/* csvtext.c: see csvtext.h. */
#include "analyze/report/csvtext.h"

static void put_inside(FILE *out, const char *text) {
    for (; *text != '\0'; text++) {
        if (*text == '"') {
            fputc('"', out);
        }
        fputc(*text, out);
    }
}

void csvtext_put(FILE *out, const char *text) {
    fputc('"', out);
    put_inside(out, text);
    fputc('"', out);
}

void csvtext_put_path(FILE *out, struct calltree_walk walk) {
    fputc('"', out);
    for (; walk.frame != NULL; calltree_walk_next(&walk)) {
        char name[4096];
        fputs(walk.steps != 0 ? "; " : "", out);
        put_inside(out, names_spell(walk.frame, name, sizeof name));
        if (walk.frame->file != NULL) {
            fputs(" at ", out);
            put_inside(out, walk.frame->file);
            fprintf(out, ":%u", walk.frame->line);
        }
    }
    fputc('"', out);
}
