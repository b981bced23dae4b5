/* SPDX-License-Identifier: MIT */
/* safetext.c: see safetext.h. */
#include "analyze/rows/safetext.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- UTF-8 ---- */

size_t utf8_length(const char *text) {
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *bytes = (const unsigned char *)text;
    uint32_t code = bytes[0];
    size_t length = code < 0x80 ? 1 : code >= 0xf0 ? 4 : code >= 0xe0 ? 3 : 2;
    if (code >= 0xf8 || (code & 0xc0) == 0x80) {
        return 0;
    }
    code &= length == 1 ? 0x7fu : 0xffu >> (length + 1);
    for (size_t i = 1; i < length; i++) {
        if ((bytes[i] & 0xc0) != 0x80) {
            return 0;
        }
        code = code << 6 | (bytes[i] & 0x3f);
    }
    return code >= least[length] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff) ? length
                                                                                         : 0;
}

bool utf8_is_valid(const char *text) {
    size_t step = 1;
    for (; *text != '\0' && step != 0; text += step) {
        step = utf8_length(text);
    }
    return step != 0;
}

char *utf8_repair(const char *from) {
    char *copy = malloc(strlen(from) * strlen(UTF8_BAD) + 1);
    char *to = copy;
    while (copy != NULL && *from != '\0') {
        size_t step = utf8_length(from);
        to = mempcpy(to, step != 0 ? from : UTF8_BAD, step != 0 ? step : strlen(UTF8_BAD));
        from += step != 0 ? step : 1;
    }
    if (copy != NULL) {
        *to = '\0';
    }
    return copy;
}

/* ---- What may pass ---- */

static const struct {
    uint32_t first;
    uint32_t last;
} unsafe[] = {
    {0x0000, 0x001f}, {0x007f, 0x009f}, {0x061c, 0x061c},
    {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069},
};

uint32_t safetext_code(const char *text, size_t length) {
    uint32_t code = (unsigned char)text[0];
    code &= length == 1 ? 0x7fu : 0xffu >> (length + 1);
    for (size_t i = 1; i < length; i++) {
        code = code << 6 | ((unsigned char)text[i] & 0x3f);
    }
    return code;
}

size_t safetext_step(const char *text, bool *is_safe) {
    size_t length = utf8_length(text);
    uint32_t code = safetext_code(text, length != 0 ? length : 1);
    *is_safe = length != 0;
    for (size_t i = 0; i < sizeof unsafe / sizeof unsafe[0]; i++) {
        *is_safe &= code < unsafe[i].first || code > unsafe[i].last || length == 0;
    }
    return length != 0 ? length : 1;
}

/* How many bytes from text on are plain: no character of several bytes, no control. */
static size_t safetext_plain_length(const char *text, size_t size) {
    size_t length = 0;
    while (length < size && (unsigned char)text[length] >= ' ' &&
           (unsigned char)text[length] < 0x7f) {
        length++;
    }
    return length;
}

void put_safe_bytes(FILE *out, const char *text, size_t size) {
    size = strnlen(text, size);
    while (size != 0) {
        size_t step = safetext_plain_length(text, size);
        bool is_safe = true;
        if (step == 0) {
            char character[5] = "";
            memcpy(character, text, size < 4 ? size : 4);
            step = safetext_step(character, &is_safe);
        }
        fwrite_unlocked(is_safe ? text : "?", 1, is_safe ? step : 1, out);
        text += step;
        size -= step;
    }
}

void put_safe(FILE *out, const char *text) {
    put_safe_bytes(out, text, strlen(text));
}

const char *put_safe_until(FILE *out, const char *text, const char *stops) {
    size_t length = strcspn(text, stops);
    put_safe_bytes(out, text, length);
    return text + length;
}

char *make_safe(char *text) {
    char *to = text;
    for (const char *from = text; *from != '\0';) {
        bool is_safe;
        size_t step = safetext_step(from, &is_safe);
        if (is_safe) {
            memmove(to, from, step);
            to += step;
        } else {
            *to++ = '?';
        }
        from += step;
    }
    *to = '\0';
    return text;
}

void vprint_safe(FILE *out, const char *format, va_list arguments) {
    size_t length = strlen(format);
    bool ends_line = length != 0 && format[length - 1] == '\n';
    char *text = NULL;
    if (vasprintf(&text, format, arguments) >= 0) {
        put_safe_bytes(out, text, strlen(text) - ends_line);
        fputs(ends_line ? "\n" : "", out);
        free(text);
    }
}

void print_safe(FILE *out, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vprint_safe(out, format, arguments);
    va_end(arguments);
}

/* ---- Words of a command line ---- */

/* Letters beyond ASCII mean nothing to a shell. */
static bool is_plain_word(const char *word) {
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

static bool is_safe_word(const char *word) {
    bool safe = true;
    while (safe && *word != '\0') {
        word += safetext_step(word, &safe);
    }
    return safe;
}

static void put_escaped_byte(FILE *out, char byte) {
    if (byte == '\n') {
        fputs("\\n", out);
    } else if (byte == '\t') {
        fputs("\\t", out);
    } else {
        fprintf(out, "\\%03o", (unsigned char)byte); /* a digit may follow */
    }
}

/* $'...', which POSIX has since 2024 and bash, zsh, ksh and busybox long before. */
static void put_shell_escaped(FILE *out, const char *word) {
    fputs("$'", out);
    while (*word != '\0') {
        bool safe;
        size_t step = safetext_step(word, &safe);
        for (size_t i = 0; i < step; i++) {
            if (safe) {
                fprintf(out, strchr("'\\", word[i]) != NULL ? "\\%c" : "%c", word[i]);
            } else {
                put_escaped_byte(out, word[i]);
            }
        }
        word += step;
    }
    fputc('\'', out);
}

bool shellword_put(FILE *out, const char *word) {
    if (is_plain_word(word) && is_safe_word(word)) {
        fputs(word, out);
        return false;
    }
    if (!is_safe_word(word)) {
        put_shell_escaped(out, word);
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

const char *shellword_print(char *text, size_t size, const char *word) {
    FILE *out = fmemopen(text, size, "w");
    text[0] = '\0';
    if (out != NULL) {
        shellword_put(out, word);
        fclose(out);
        text[size - 1] = '\0';
    }
    return text;
}
