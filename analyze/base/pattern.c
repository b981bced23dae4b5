/* SPDX-License-Identifier: MIT */
/* pattern.c: see pattern.h. */
#include "analyze/base/pattern.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 8192, DEEPEST = 64, LARGEST = 10000, REPEATED = 2048, MOST_REPEATS = 1 << 16 };

/* How large it is with all repetitions written out. */
struct measuring {
    const char *at;
    uint64_t sizes[DEEPEST]; /* of each group that is open; [0]: of all */
    size_t depth;
    uint64_t last; /* of what a repetition would repeat */
};

static void pattern_add(struct measuring *measuring, uint64_t size) {
    measuring->sizes[measuring->depth] += size;
    measuring->last = size;
}

/* At '[': behind the ']' that ends it. */
static const char *skip_set(const char *at) {
    at += at[1] == '^' ? 2 : 1;
    at += *at == ']';
    while (*at != '\0' && *at != ']') {
        bool is_class = at[0] == '[' && at[1] != '\0' && strchr(":.=", at[1]) != NULL;
        const char end[] = {at[1], ']', '\0'};
        const char *behind = is_class ? strstr(at + 2, end) : NULL;
        at = behind != NULL ? behind + 2 : at + 1;
    }
    return *at == ']' ? at + 1 : at;
}

static void pattern_repeat(struct measuring *measuring, uint64_t times) {
    times = times < MOST_REPEATS ? times : MOST_REPEATS;
    if (times > 1 && measuring->last <= LARGEST) {
        measuring->sizes[measuring->depth] += measuring->last * (times - 1);
        measuring->last *= times;
    }
}

/* At '{': "{2}", "{2,}", "{2,5}". */
static void repeat_bounds(struct measuring *measuring) {
    char *end;
    uint64_t times = strtoul(measuring->at + 1, &end, 10);
    if (*end == ',') {
        times = isdigit((unsigned char)end[1]) ? strtoul(end + 1, &end, 10) : times + 1;
    }
    pattern_repeat(measuring, times);
    measuring->at =
        strchr(measuring->at, '}') != NULL ? strchr(measuring->at, '}') + 1 : measuring->at + 1;
}

static void end_group(struct measuring *measuring) {
    uint64_t size = measuring->sizes[measuring->depth];
    if (measuring->depth != 0) {
        measuring->depth--;
        pattern_add(measuring, size + 1);
    }
}

/* One step. NULL, or what is wrong. */
static const char *pattern_step(struct measuring *measuring) {
    char letter = *measuring->at;
    if (letter == '\\' && measuring->at[1] >= '1' && measuring->at[1] <= '9') {
        return "Back-references are not supported";
    }
    if (letter == '{') {
        repeat_bounds(measuring);
        return NULL;
    }
    if (letter == '[') {
        measuring->at = skip_set(measuring->at);
        pattern_add(measuring, 1);
        return NULL;
    }
    if (letter == '(') {
        if (measuring->depth + 1 == DEEPEST) {
            return "Too many groups in each other";
        }
        measuring->sizes[++measuring->depth] = 0;
    } else if (letter == ')') {
        end_group(measuring);
    } else if (letter == '+') {
        pattern_repeat(measuring, 2); /* a+ is written out as aa* */
    } else if (letter != '*' && letter != '?') {
        pattern_add(measuring, 1);
    }
    measuring->at += letter == '\\' && measuring->at[1] != '\0' ? 2 : 1;
    return NULL;
}

/* NULL, or what is wrong with it. */
static const char *pattern_measure(const char *text) {
    struct measuring measuring = {.at = text};
    const char *wrong = strlen(text) > LONGEST ? "Too long" : NULL;
    while (wrong == NULL && *measuring.at != '\0') {
        wrong = pattern_step(&measuring);
        if (measuring.sizes[measuring.depth] > REPEATED + (uint64_t)(measuring.at - text)) {
            wrong = "Too large with its repetitions";
        }
    }
    return wrong;
}

int pattern_compile(regex_t *regex, const char *text, char why[PATTERN_WHY]) {
    const char *wrong = pattern_measure(text);
    int result;
    if (wrong != NULL) {
        snprintf(why, PATTERN_WHY, "%s", wrong);
        return -1;
    }
    result = regcomp(regex, text, REG_EXTENDED | REG_NOSUB);
    if (result != 0) {
        regerror(result, regex, why, PATTERN_WHY);
    }
    return result == 0 ? 0 : -1;
}
