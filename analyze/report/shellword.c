/* SPDX-License-Identifier: MIT */
/* shellword.c: see shellword.h. */
#include "analyze/report/shellword.h"

#include "analyze/report/safetext.h"

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

static bool is_safe(const char *word) {
    bool safe = true;
    while (safe && *word != '\0') {
        word += safetext_step(word, &safe);
    }
    return safe;
}

/* $'...', which POSIX has since 2024 and bash, zsh, ksh and busybox long before. */
static void put_escaped(FILE *out, const char *word) {
    fputs("$'", out);
    while (*word != '\0') {
        bool safe;
        size_t step = safetext_step(word, &safe);
        for (size_t i = 0; i < step; i++) {
            if (safe) {
                fprintf(out, strchr("'\\", word[i]) != NULL ? "\\%c" : "%c", word[i]);
            } else {
                fprintf(out, "\\%03o", (unsigned char)word[i]); /* a digit may follow */
            }
        }
        word += step;
    }
    fputc('\'', out);
}

bool shellword_put(FILE *out, const char *word) {
    if (is_plain(word) && is_safe(word)) {
        fputs(word, out);
        return false;
    }
    if (!is_safe(word)) {
        put_escaped(out, word);
        return true;
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
