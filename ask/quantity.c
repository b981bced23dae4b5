/* SPDX-License-Identifier: MIT */
/* quantity.c: see quantity.h. */
#include "ask/quantity.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

int quantity_u64(const char *text, uint64_t *value) {
    char *end;
    unsigned long long number;
    if (text == NULL || !isdigit((unsigned char)text[0])) {
        return -1;
    }
    errno = 0;
    number = strtoull(text, &end, 10);
    if (errno != 0 || *end != '\0') {
        return -1;
    }
    *value = number;
    return 0;
}

/* A decimal number with perhaps a fraction, at most 1e18; *end is what follows it. */
static int parse_decimal(const char *text, double *number, const char **end) {
    size_t length = text != NULL ? strspn(text, "0123456789.") : 0;
    char digits[32];
    char *stop;
    if (length == 0 || length >= sizeof digits || !isdigit((unsigned char)text[0])) {
        return -1;
    }
    memcpy(digits, text, length);
    digits[length] = '\0';
    *number = strtod(digits, &stop);
    *end = text + length;
    return *stop == '\0' && *number <= 1e18 ? 0 : -1;
}

static int scale(double number, double unit, uint64_t *value) {
    number *= unit;
    if (number > 9e18) {
        return -1;
    }
    *value = (uint64_t)(number + 0.5);
    return 0;
}

int quantity_bytes(const char *text, uint64_t *bytes) {
    static const char suffixes[] = "KMGT";
    const char *suffix;
    const char *which;
    double number;
    double unit = 1;
    if (parse_decimal(text, &number, &suffix) != 0) {
        return -1;
    }
    which = suffix[0] != '\0' ? strchr(suffixes, toupper((unsigned char)suffix[0])) : NULL;
    if (which != NULL) {
        unit = (double)(UINT64_C(1) << (10 * (which - suffixes + 1)));
        suffix += strcasecmp(suffix + 1, "iB") == 0 || strcasecmp(suffix + 1, "B") == 0
                      ? strlen(suffix)
                      : 1;
    } else if (strcasecmp(suffix, "B") == 0) {
        suffix++;
    }
    return *suffix == '\0' ? scale(number, unit, bytes) : -1;
}

int quantity_duration(const char *text, uint64_t *ns) {
    static const struct {
        const char *suffix;
        double ns;
    } units[] = {{"", 1e9}, {"s", 1e9},  {"ms", 1e6},   {"us", 1e3},
                 {"ns", 1}, {"m", 60e9}, {"min", 60e9}, {"h", 3600e9}};
    const char *suffix;
    double number;
    if (parse_decimal(text, &number, &suffix) != 0) {
        return -1;
    }
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(suffix, units[i].suffix) == 0) {
            return scale(number, units[i].ns, ns);
        }
    }
    return -1;
}

int quantity_percent(const char *text, double *percent) {
    const char *suffix;
    if (parse_decimal(text, percent, &suffix) != 0 || *percent > 100) {
        return -1;
    }
    return suffix[0] == '\0' || strcmp(suffix, "%") == 0 ? 0 : -1;
}
