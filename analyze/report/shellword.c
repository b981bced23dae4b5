/* SPDX-License-Identifier: MIT */
/* shellword.c: see shellword.h. */
#include "analyze/report/shellword.h"

#include <string.h>

/* Letters beyond ASCII mean nothing to a shell. */
static bool is_plain(const char *word) {
    static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                               "_-+=./,:@%";
    if (*word == '\0') {
        return false;
    }
    while (*word != '\0' && ((unsigned char)*word >= 0x80 || strchr(safe, *word) != NULL)) {
        word++;
    }
    return *word == '\0';
}

bool shellword_put(FILE *out, const char *word) {
    if (is_plain(word)) {
        fputs(word, out);
        return false;
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
    return true;
}
