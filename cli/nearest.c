/* SPDX-License-Identifier: MIT */
/* nearest.c: see nearest.h. */
#include "cli/nearest.h"

#include <stdint.h>
#include <string.h>

enum { LONGEST = 48 };

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Letters to add, drop or change, or neighbours to swap. Rows of the usual table: the last two. */
static size_t distance(const char *a, size_t a_length, const char *b, size_t b_length) {
    size_t rows[3][LONGEST + 1];
    for (size_t j = 0; j <= b_length; j++) {
        rows[0][j] = j;
    }
    for (size_t i = 1; i <= a_length; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i - 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            row[j] = least(least(row[j - 1], above[j]) + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                row[j] = least(row[j], rows[(i - 2) % 3][j - 2] + 1);
            }
        }
    }
    return rows[a_length % 3][b_length];
}

struct nearest nearest_to(const char *text, size_t length) {
    return (struct nearest){.text = text, .length = length, .distance = SIZE_MAX};
}

void nearest_offer(struct nearest *nearest, const char *name) {
    size_t length = strlen(name);
    size_t away;
    if (nearest->length < 2 || nearest->length > LONGEST || length > LONGEST) {
        return;
    }
    away = distance(nearest->text, nearest->length, name, length);
    if (nearest->length >= 3 && strncmp(name, nearest->text, nearest->length) == 0) {
        away = least(away, 1); /* its beginning */
    } else if (nearest->length >= 4 &&
               memmem(name, length, nearest->text, nearest->length) != NULL) {
        away = least(away, 2); /* a word of it */
    }
    if (away <= 1 + nearest->length / 4 && away < nearest->distance) {
        nearest->distance = away;
        nearest->name = name;
    }
}
