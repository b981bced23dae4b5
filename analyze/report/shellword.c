/* SPDX-License-Identifier: MIT */
/* shellword.c: see shellword.h. */
#include "analyze/report/shellword.h"

#include <string.h>

void shellword_put(FILE *out, const char *word) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-+=./,:@%";
    if (word[0] != '\0' && word[strspn(word, plain)] == '\0') {
        fputs(word, out);
        return;
    }
    fputc('\'', out);
    for (; *word != '\0'; word++) {
        if (*word == '\'') {
            fputs("'\\''", out);
        } else {
            fputc(*word, out);
        }
    }
    fputc('\'', out);
}
