/* SPDX-License-Identifier: MIT */
/*
 * topkeys.h: what a key does in `memtrace top`.
 *
 * Called by top.
 */
#ifndef TOP_TOPKEYS_H
#define TOP_TOPKEYS_H

#include "top/topstate.h"

/* Keys that are no characters. */
enum topkeys_key {
    TOPKEYS_UP = 0x110000,
    TOPKEYS_DOWN,
    TOPKEYS_LEFT,
    TOPKEYS_RIGHT,
    TOPKEYS_PAGE_UP,
    TOPKEYS_PAGE_DOWN,
    TOPKEYS_HOME,
    TOPKEYS_END,
    TOPKEYS_ENTER,
    TOPKEYS_BACKSPACE,
    TOPKEYS_ESCAPE,
};

/* What is to be done besides. */
enum topkeys_then {
    TOPKEYS_DRAW, /* the screen may be another one */
    TOPKEYS_MAKE, /* so may the rows */
    TOPKEYS_OPEN, /* what is selected of the list */
    TOPKEYS_LIST, /* back to it */
    TOPKEYS_QUIT,
};

/* key: a character (Unicode) or one of the above. */
enum topkeys_then topkeys_press(struct topstate *state, unsigned key);

#endif
