/* SPDX-License-Identifier: MIT */
/* utf8.c: see utf8.h. */
#include "analyze/report/utf8.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

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
