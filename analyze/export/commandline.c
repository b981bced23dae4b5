/* SPDX-License-Identifier: MIT */
/* commandline.c: see commandline.h. */
#include "analyze/export/commandline.h"

#include "analyze/rows/safetext.h"

#include <string.h>

static void put_argument(FILE *out, const char *text, size_t length) {
    putc_unlocked(' ', out);
    put_safe_bytes(out, text, length);
}

void commandline_put(FILE *out, const struct memtrace_header *header) {
    const char *argument = header->command;
    const char *end = header->command + sizeof header->command;
    if (*argument == '\0') {
        put_argument(out, header->executable,
                     strnlen(header->executable, sizeof header->executable));
    }
    while (argument < end && *argument != '\0') {
        size_t length = strnlen(argument, (size_t)(end - argument));
        put_argument(out, argument, length);
        argument += length + 1;
    }
}
