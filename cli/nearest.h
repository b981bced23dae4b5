/* SPDX-License-Identifier: MIT */
/*
 * nearest.h: which known name somebody meant who misspelt it.
 *
 * Called by cli/scan (options), cli/main (commands) and cli/export (formats).
 *
 *     struct nearest nearest = nearest_to("reprot");
 *     nearest_offer(&nearest, "run"); nearest_offer(&nearest, "report");
 *     ... nearest.name is "report"; NULL where none is near
 */
#ifndef CLI_NEAREST_H
#define CLI_NEAREST_H

#include <stddef.h>

struct nearest {
    const char *text;
    size_t length;    /* of text, so that it need not end there */
    const char *name; /* NULL: none is near */
    size_t distance;
};

struct nearest nearest_to(const char *text, size_t length);
void nearest_offer(struct nearest *nearest, const char *name);

#endif
