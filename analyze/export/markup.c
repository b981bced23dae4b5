/* SPDX-License-Identifier: MIT */
/* markup.c: see markup.h. */
#include "analyze/export/markup.h"

#include "analyze/rows/safetext.h"

#include <string.h>

/* The two characters of three bytes that XML has not: U+FFFE and U+FFFF. */
static int is_no_character(const char *text) {
    return memcmp(text, "\xef\xbf\xbe", 3) == 0 || memcmp(text, "\xef\xbf\xbf", 3) == 0;
}

static const char *entity(unsigned char byte) {
    switch (byte) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return NULL;
    }
}

/* Writes one character and returns what follows it. */
static const char *put_character(FILE *out, const char *text) {
    size_t length = utf8_length(text);
    bool is_safe;
    const char *instead = length == 1 ? entity((unsigned char)*text) : NULL;
    safetext_step(text, &is_safe);
    if (!is_safe && instead == NULL) {
        instead = "?";
    }
    if (length == 0 || (length == 3 && is_no_character(text))) {
        instead = UTF8_BAD;
    }
    if (instead != NULL) {
        fputs_unlocked(instead, out);
    } else {
        fwrite_unlocked(text, 1, length, out);
    }
    return text + (length != 0 ? length : 1);
}

void markup_text(FILE *out, const char *text) {
    while (*text != '\0') {
        text = put_character(out, text);
    }
}

static size_t count_characters(const char *text) {
    size_t count = 0;
    for (; *text != '\0'; count++) {
        size_t length = utf8_length(text);
        text += length != 0 ? length : 1;
    }
    return count;
}

void markup_text_cut(FILE *out, const char *text, size_t most) {
    size_t count = count_characters(text);
    size_t kept = count <= most ? count : most >= 2 ? most - 2 : 0;
    for (size_t i = 0; i < kept; i++) {
        text = put_character(out, text);
    }
    if (kept < count) {
        fputs_unlocked("..", out);
    }
}
