/* SPDX-License-Identifier: MIT */
/* topnumber.c: see topnumber.h. */
#include "top/topnumber.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* What would be rounded to a whole unit more is shown in that. */
static const char *scaled(struct topnumber *buffer, const char *sign, double value, double step,
                          const char *units) {
    char unit = '\0';
    while (*units != '\0' && value >= (unit == '\0' ? step : step - 0.05)) {
        value /= step;
        unit = *units++;
    }
    if (unit == '\0') {
        snprintf(buffer->text, sizeof buffer->text, "%s%.0f", sign, value);
    } else {
        snprintf(buffer->text, sizeof buffer->text, "%s%.1f%c", sign, value, unit);
    }
    return buffer->text;
}

const char *topnumber_bytes(struct topnumber *buffer, double bytes) {
    return scaled(buffer, "", bytes, 1024, "KMGTPE");
}

const char *topnumber_change(struct topnumber *buffer, double bytes) {
    return scaled(buffer, bytes > 0 ? "+" : bytes < 0 ? "-" : "", fabs(bytes), 1024, "KMGTPE");
}

const char *topnumber_count(struct topnumber *buffer, double count) {
    return scaled(buffer, "", count, 1000, "kMGTPE");
}

const char *topnumber_share(struct topnumber *buffer, uint64_t part, uint64_t whole) {
    if (whole == 0) {
        snprintf(buffer->text, sizeof buffer->text, "-");
    } else {
        snprintf(buffer->text, sizeof buffer->text, "%.0f%%", 100.0 * (double)part / (double)whole);
    }
    return buffer->text;
}

const char *topnumber_clock(struct topnumber *buffer, uint64_t ns) {
    uint64_t seconds = ns / 1000000000u;
    snprintf(buffer->text, sizeof buffer->text, "%" PRIu64 ":%02u:%02u", seconds / 3600,
             (unsigned)(seconds / 60 % 60), (unsigned)(seconds % 60));
    return buffer->text;
}
