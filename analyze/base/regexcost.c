/* SPDX-License-Identifier: MIT */
/* regexcost.c: see regexcost.h. */
#include "analyze/base/regexcost.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { REPEATED_MOST = 2048, LARGEST = 1 << 20, DEEPEST = 256 };

/* Characters, repetitions written out. Never more than LARGEST of each. */
struct costs {
    uint64_t written;        /* as they stand there */
    uint64_t outer[DEEPEST]; /* of the groups around, before this one */
    size_t depth;
    uint64_t group; /* of the present group so far */
    uint64_t last;  /* of what a repetition that follows would repeat */
};

static uint64_t bounded(uint64_t cost) {
    return cost < LARGEST ? cost : LARGEST;
}

static void add(struct costs *costs, uint64_t cost) {
    costs->last = cost;
    costs->group = bounded(costs->group + cost);
}

/* Behind "[^]a-z[:alpha:]]". */
static const char *skip_bracket(const char *at) {
    at += at[1] == '^' ? 2 : 1;
    at += *at == ']';
    while (*at != '\0' && *at != ']') {
        const char *end = NULL;
        if (at[0] == '[' && at[1] != '\0' && strchr(":.=", at[1]) != NULL) {
            const char closing[] = {at[1], ']', '\0'};
            end = strstr(at + 2, closing);
        }
        at = end != NULL ? end + 2 : at + 1;
    }
    return *at == ']' ? at + 1 : at;
}

/* Behind "{2,5}"; what is repeated was counted once. */
static const char *take_repetition(struct costs *costs, const char *at) {
    char *end;
    uint64_t most = strtoul(at + 1, &end, 10);
    if (*end == ',' && isdigit((unsigned char)end[1])) {
        most = strtoul(end + 1, &end, 10);
    }
    most = most > 1 ? bounded(most) : 1;
    costs->group = bounded(costs->group + costs->last * (most - 1));
    costs->last = bounded(costs->last * most);
    end += strcspn(end, "}");
    return *end == '}' ? end + 1 : end;
}

static void close_group(struct costs *costs) {
    uint64_t inner = costs->group;
    if (costs->depth != 0) {
        costs->group = costs->outer[--costs->depth];
        add(costs, inner);
    }
}

/* One part of it; what follows. */
static const char *take(struct costs *costs, const char *at) {
    switch (*at) {
    case '[':
        costs->written++;
        add(costs, 1);
        return skip_bracket(at);
    case '(':
        costs->outer[costs->depth++] = costs->group;
        costs->group = 0;
        return at + 1;
    case ')':
        close_group(costs);
        return at + 1;
    case '{':
        if (isdigit((unsigned char)at[1])) {
            return take_repetition(costs, at);
        }
        break;
    case '*':
    case '+':
    case '?': /* repeats without being written out; another repetition may follow */
        return at + 1;
    default:
        break;
    }
    costs->written++;
    add(costs, 1);
    return at[0] == '\\' && at[1] != '\0' ? at + 2 : at + 1;
}

bool regexcost_is_high(const char *regex) {
    struct costs costs = {.last = 1};
    for (const char *at = regex; *at != '\0' && costs.depth < DEEPEST;) {
        at = take(&costs, at);
    }
    while (costs.depth != 0 && costs.depth < DEEPEST) {
        close_group(&costs);
    }
    return costs.depth == DEEPEST || costs.group > costs.written + REPEATED_MOST;
}
