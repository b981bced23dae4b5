/* SPDX-License-Identifier: MIT */
/* bounds.c: constraints of SQL become ranges. See bounds.h. */
#include "analyze/query/bounds.h"

#include <math.h>

static const struct selection_range nothing = {1, 0};

struct selection_range bounds_both(struct selection_range left, struct selection_range right) {
    return (struct selection_range){left.least > right.least ? left.least : right.least,
                                    left.most < right.most ? left.most : right.most};
}

char bounds_letter(unsigned char operator) {
    switch (operator) {
    case SQLITE_INDEX_CONSTRAINT_EQ:
        return '=';
    case SQLITE_INDEX_CONSTRAINT_LT:
        return '<';
    case SQLITE_INDEX_CONSTRAINT_LE:
        return 'l';
    case SQLITE_INDEX_CONSTRAINT_GT:
        return '>';
    case SQLITE_INDEX_CONSTRAINT_GE:
        return 'g';
    default:
        return '\0';
    }
}

/* Numbers of the tables are integers from 0 to INT64_MAX. */
static struct selection_range range_of_integer(char letter, sqlite3_int64 value) {
    uint64_t number = value > 0 ? (uint64_t)value : 0;
    switch (letter) {
    case '=':
        return value >= 0 ? (struct selection_range){number, number} : nothing;
    case '<':
        return value > 0 ? (struct selection_range){0, number - 1} : nothing;
    case 'l':
        return value >= 0 ? (struct selection_range){0, number} : nothing;
    case '>':
        return (struct selection_range){value >= 0 ? number + 1 : 0, UINT64_MAX};
    default:
        return (struct selection_range){number, UINT64_MAX};
    }
}

/* Between two integers the bound goes to the one farther out: wider than needed by one at most. */
static struct selection_range range_of_real(char letter, double value) {
    const double most = 9.0e18;
    if (!(fabs(value) < most)) {
        return BOUNDS_ANY;
    }
    switch (letter) {
    case '=':
        return bounds_both(range_of_integer('g', (sqlite3_int64)floor(value)),
                           range_of_integer('l', (sqlite3_int64)ceil(value)));
    case '<':
    case 'l':
        return range_of_integer('l', (sqlite3_int64)ceil(value));
    default:
        return range_of_integer('g', (sqlite3_int64)floor(value));
    }
}

/* Text may be a number by SQL's rules, which are SQLite's business. */
static struct selection_range range_of(char letter, sqlite3_value *value) {
    switch (sqlite3_value_type(value)) {
    case SQLITE_INTEGER:
        return range_of_integer(letter, sqlite3_value_int64(value));
    case SQLITE_FLOAT:
        return range_of_real(letter, sqlite3_value_double(value));
    default:
        return BOUNDS_ANY;
    }
}

struct selection_range bounds_narrow(struct selection_range range, char letter,
                                     sqlite3_value *value) {
    return bounds_both(range, range_of(letter, value));
}

struct selection_range bounds_narrow_in(struct selection_range range, sqlite3_value *values) {
    struct selection_range all = {UINT64_MAX, 0};
    sqlite3_value *value;
    int result = sqlite3_vtab_in_first(values, &value);
    for (; result == SQLITE_OK && value != NULL; result = sqlite3_vtab_in_next(values, &value)) {
        struct selection_range one = range_of('=', value);
        if (!bounds_are_empty(one)) {
            all.least = one.least < all.least ? one.least : all.least;
            all.most = one.most > all.most ? one.most : all.most;
        }
    }
    return result == SQLITE_DONE || result == SQLITE_OK ? bounds_both(range, all) : range;
}
