/* SPDX-License-Identifier: MIT */
/* number.c: numbers for people. See number.h. */
#include "analyze/rows/number.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The unit in which the number has one to four digits before the point, as it will be rounded. */
static void spell_bytes(struct number *buffer, const char *sign, uint64_t bytes) {
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)bytes / 1024;
    size_t unit = 0;
    if (bytes < 1024) {
        snprintf(buffer->text, sizeof buffer->text, "%s%u B", sign, (unsigned)bytes);
        return;
    }
    while (value >= 1023.95 && unit + 1 < sizeof units / sizeof units[0]) {
        value /= 1024;
        unit++;
    }
    snprintf(buffer->text, sizeof buffer->text, "%s%.1f %s", sign, value, units[unit]);
}

const char *number_bytes(struct number *buffer, uint64_t bytes) {
    spell_bytes(buffer, "", bytes);
    return buffer->text;
}

const char *number_change(struct number *buffer, int64_t bytes) {
    uint64_t size = bytes < 0 ? 0 - (uint64_t)bytes : (uint64_t)bytes;
    const char *sign = bytes < 0 ? "-" : "+";
    spell_bytes(buffer, bytes == 0 ? "" : sign, size);
    return buffer->text;
}

const char *number_count(struct number *buffer, uint64_t count) {
    char digits[24];
    size_t length = (size_t)snprintf(digits, sizeof digits, "%" PRIu64, count);
    char *to = buffer->text;
    for (size_t i = 0; i < length; i++) {
        if (i != 0 && (length - i) % 3 == 0) {
            *to++ = ',';
        }
        *to++ = digits[i];
    }
    *to = '\0';
    return buffer->text;
}

const char *number_items(struct number *buffer, uint64_t count, const char *one) {
    size_t length = strlen(number_count(buffer, count));
    const char *plural = one[strlen(one) - 1] == 's' ? "es" : "s";
    snprintf(buffer->text + length, sizeof buffer->text - length, " %s%s", one,
             count != 1 ? plural : "");
    return buffer->text;
}

const char *number_percent(struct number *buffer, uint64_t part, uint64_t whole) {
    double percent = whole != 0 ? 100.0 * (double)part / (double)whole : 0;
    if (whole == 0) {
        strcpy(buffer->text, "-");
    } else if (part != 0 && percent < 0.05) {
        strcpy(buffer->text, "<0.1%");
    } else {
        snprintf(buffer->text, sizeof buffer->text, "%.1f%%", percent);
    }
    return buffer->text;
}

const char *number_duration(struct number *buffer, uint64_t ns) {
    uint64_t seconds = ns / 1000000000;
    if (ns < 1000) {
        snprintf(buffer->text, sizeof buffer->text, "%" PRIu64 " ns", ns);
    } else if (ns < 1000000) {
        snprintf(buffer->text, sizeof buffer->text, "%.1f us", (double)ns / 1e3);
    } else if (ns < 1000000000) {
        snprintf(buffer->text, sizeof buffer->text, "%.1f ms", (double)ns / 1e6);
    } else if (seconds < 60) {
        snprintf(buffer->text, sizeof buffer->text, "%.1f s", (double)ns / 1e9);
    } else if (seconds < 3600) {
        snprintf(buffer->text, sizeof buffer->text, "%" PRIu64 " min %" PRIu64 " s", seconds / 60,
                 seconds % 60);
    } else {
        snprintf(buffer->text, sizeof buffer->text, "%" PRIu64 " h %" PRIu64 " min", seconds / 3600,
                 seconds / 60 % 60);
    }
    return buffer->text;
}
