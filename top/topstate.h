/* SPDX-License-Identifier: MIT */
/*
 * topstate.h: what `memtrace top` shows, what its user has chosen, and what a key does to that: all
 * but the terminal.
 *
 * Called by topdraw (what the screen is) and toploop.
 */
#ifndef TOP_TOPSTATE_H
#define TOP_TOPSTATE_H

#include "collect/gatherask.h"
#include "top/toplist.h"
#include "top/toprows.h"
#include "top/topsource.h"

enum topstate_page {
    TOPSTATE_ROWS,
    TOPSTATE_THREADS,
    TOPSTATE_CHART,
    TOPSTATE_BLOCKS, /* sizes and lifetimes */
    TOPSTATE_HELP,
    TOPSTATE_LIST, /* of what can be opened; nothing is */
};

/*
 * What the user wants of the program whose recording is on the screen: on this machine, or on
 * another one, from which `memtrace gather` receives it. Nobody waits: the answer comes while the
 * screen goes on.
 */
enum { TOPSTATE_ASK_MS = 20 }; /* between two looks for an answer */
struct topstate_ask {
    enum { TOPSTATE_ASKS_NOBODY, TOPSTATE_ASKS_PROGRAM, TOPSTATE_ASKS_GATHERER } whom;
    struct programask program;
    struct gatherask gatherer;
    /* What the last answer said of what is recorded. */
    bool is_off;
    bool is_sampled;
};

enum { TOPSTATE_FILTER = 128, TOPSTATE_PATH = 512 };

struct topstate {
    struct topsource *source; /* NULL on the page of the list: nothing is open */
    struct toplist *list;     /* that one can go back to; NULL: there is none */
    struct toprows rows;
    enum topstate_page page;
    uint64_t interval_ns;
    uint64_t marked_ns; /* since the program's start: DELTA counts from then on */
    bool is_paused;
    bool unicode;

    size_t selected; /* of the rows */
    uint64_t selected_id;
    size_t top;   /* the first row, or line of a page, on the screen */
    size_t shown; /* rows that the screen has room for, when it was drawn last */

    size_t list_selected;
    char list_path[TOPSTATE_PATH]; /* of that item */
    size_t list_top;

    bool is_asking;               /* the filter is being typed */
    char typed[TOPSTATE_FILTER];  /* what of it is there */
    char filter[TOPSTATE_FILTER]; /* in use; "": none */
    regex_t regex;
    struct topstate_ask ask;
    char message[512]; /* of the last key; "": none */
    char copied[32];   /* what the terminal is to keep, for its user to paste; "": nothing */
};

/* Makes rows anew, and keeps the row that is selected. 0, or -1: out of memory. */
int topstate_refresh(struct topstate *state);
/* Selects another row: `by` further down, as far as there are any. */
void topstate_move(struct topstate *state, long by);
/* The same of the list. by 0: after a look, keeps the item that is selected. */
void topstate_move_list(struct topstate *state, long by);
/* The first row on the screen, which has room for `shown` of them: as before, where what is
 * selected is on it then. */
size_t topstate_scroll(size_t top, size_t selected, size_t count, size_t shown);
/* The row that is selected; of a path's frame, that of the path. NULL: none. */
const struct toprow *topstate_row(const struct topstate *state);
/* Another source was opened: its rows are shown, as its user wanted those before. */
void topstate_begin(struct topstate *state);
/* 0, or -1: it is no regular expression; state.message says so, and the one before holds. */
int topstate_filter(struct topstate *state, const char *text);
/* DELTA counts from now on. */
void topstate_mark(struct topstate *state);
/* If an answer has come, message says it. */
void topstate_hear(struct topstate *state);
void topstate_free(struct topstate *state);

/* Keys that are no characters. */
enum topstate_key {
    TOPSTATE_UP = 0x110000,
    TOPSTATE_DOWN,
    TOPSTATE_LEFT,
    TOPSTATE_RIGHT,
    TOPSTATE_PAGE_UP,
    TOPSTATE_PAGE_DOWN,
    TOPSTATE_HOME,
    TOPSTATE_END,
    TOPSTATE_ENTER,
    TOPSTATE_BACKSPACE,
    TOPSTATE_ESCAPE,
};

/* What is to be done besides. */
enum topstate_then {
    TOPSTATE_DRAW, /* the screen may be another one */
    TOPSTATE_MAKE, /* so may the rows */
    TOPSTATE_OPEN, /* what is selected of the list */
    TOPSTATE_BACK, /* back to it */
    TOPSTATE_QUIT,
};

/* key: a character (Unicode) or one of the above. */
enum topstate_then topstate_press(struct topstate *state, unsigned key);

#endif
