/* SPDX-License-Identifier: MIT */
/* topscreen.c: see topscreen.h. */
#include "top/topscreen.h"

#include "top/topstate.h"

#include <curses.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <term.h>
#include <unistd.h>

enum { PAIR_HOT = 1, PAIR_WARM, ESCAPE_MS = 25, ESCAPE = 27, CONTROL_H = 8, DELETE = 127 };

static SCREEN *screen;
static bool has_color;

/* What terminals send for these keys whatever TERM says: arrows depend on a mode that some do not
 * follow, and Home and End are spelt in four ways. */
static void know_keys(void) {
    static const struct {
        const char *sent;
        int key;
    } known[] = {{"\033[A", KEY_UP},   {"\033OA", KEY_UP},     {"\033[B", KEY_DOWN},
                 {"\033OB", KEY_DOWN}, {"\033[C", KEY_RIGHT},  {"\033OC", KEY_RIGHT},
                 {"\033[D", KEY_LEFT}, {"\033OD", KEY_LEFT},   {"\033[H", KEY_HOME},
                 {"\033OH", KEY_HOME}, {"\033[1~", KEY_HOME},  {"\033[7~", KEY_HOME},
                 {"\033[F", KEY_END},  {"\033OF", KEY_END},    {"\033[4~", KEY_END},
                 {"\033[8~", KEY_END}, {"\033[5~", KEY_PPAGE}, {"\033[6~", KEY_NPAGE},
                 {"\033OM", KEY_ENTER}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        define_key(known[i].sent, known[i].key);
    }
}

bool topscreen_is_dumb(void) {
    int found;
    return setupterm(NULL, STDOUT_FILENO, &found) == OK && tigetstr("cup") == NULL;
}

int topscreen_open(bool color, struct error *error) {
    const char *terminal = getenv("TERM");
    screen = newterm(NULL, stdout, stdin);
    if (screen == NULL) {
        return error_set(error,
                         "cannot draw on a terminal of the kind \"%.60s\" (TERM); "
                         "--once needs none",
                         terminal != NULL ? terminal : "");
    }
    set_term(screen);
    cbreak();
    noecho();
    nonl(); /* Enter is not what Ctrl-J is */
    keypad(stdscr, TRUE);
    know_keys();
    nodelay(stdscr, TRUE);
    set_escdelay(ESCAPE_MS);
    curs_set(0);
    has_color = color && has_colors();
    if (has_color) {
        start_color();
        use_default_colors();
        init_pair(PAIR_HOT, COLOR_RED, -1);
        init_pair(PAIR_WARM, COLOR_YELLOW, -1);
    }
    return 0;
}

void topscreen_close(void) {
    move(LINES - 1, 0); /* where the next prompt comes, on terminals that keep the screen */
    clrtoeol();
    refresh();
    endwin();
    delscreen(screen);
    screen = NULL;
}

int topscreen_fit(struct topgrid *grid) {
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0 &&
        is_term_resized(size.ws_row, size.ws_col)) {
        resizeterm(size.ws_row, size.ws_col);
    }
    return topgrid_reset(grid, (size_t)getmaxx(stdscr), (size_t)getmaxy(stdscr));
}

static attr_t attributes(enum topgrid_style style) {
    switch (style) {
    case TOPGRID_BOLD:
        return A_BOLD;
    case TOPGRID_DIM:
        return A_DIM;
    case TOPGRID_HOT:
        return has_color ? (attr_t)COLOR_PAIR(PAIR_HOT) : A_BOLD;
    case TOPGRID_WARM:
        return has_color ? (attr_t)COLOR_PAIR(PAIR_WARM) : A_NORMAL;
    case TOPGRID_HEADING:
    case TOPGRID_SELECTED:
        return A_REVERSE;
    case TOPGRID_PLAIN:
        break;
    }
    return A_NORMAL;
}

void topscreen_show(const struct topgrid *grid) {
    erase();
    for (size_t row = 0; row < grid->height; row++) {
        for (size_t column = 0; column < grid->width; column++) {
            const struct topgrid_cell *cell = &grid->cells[row * grid->width + column];
            attrset((int)attributes(cell->style));
            if (cell->text[0] != '\0') {
                mvaddstr((int)row, (int)column, cell->text);
            }
        }
    }
    refresh();
}

void topscreen_redraw(void) {
    clearok(curscr, TRUE);
}

/* "OSC 52 ; c ; BASE64 BEL". Terminals without windows take it for something else, or show it. */
void topscreen_copy(const char *text) {
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *terminal = getenv("TERM");
    if (terminal == NULL || strncmp(terminal, "linux", 5) == 0 || strncmp(terminal, "vt", 2) == 0) {
        return;
    }
    fputs("\033]52;c;", stdout);
    for (size_t left = strlen(text); left > 0;
         left -= left < 3 ? left : 3, text += left != 0 ? 3 : 0) {
        unsigned bytes = 0;
        for (size_t i = 0; i < 3; i++) {
            bytes = bytes << 8 | (i < left ? (unsigned char)text[i] : 0u);
        }
        for (size_t i = 0; i < 4; i++) {
            putchar(i <= left ? letters[bytes >> (18 - 6 * i) & 63] : '=');
        }
    }
    putchar('\a');
    fflush(stdout);
}

/* What topstate_press() calls it; 0: it is none of ours. */
static unsigned special(int key) {
    static const struct {
        int key;
        unsigned is;
    } known[] = {{KEY_UP, TOPSTATE_UP},           {KEY_DOWN, TOPSTATE_DOWN},
                 {KEY_LEFT, TOPSTATE_LEFT},       {KEY_RIGHT, TOPSTATE_RIGHT},
                 {KEY_PPAGE, TOPSTATE_PAGE_UP},   {KEY_NPAGE, TOPSTATE_PAGE_DOWN},
                 {KEY_HOME, TOPSTATE_HOME},       {KEY_END, TOPSTATE_END},
                 {KEY_ENTER, TOPSTATE_ENTER},     {'\r', TOPSTATE_ENTER},
                 {'\n', TOPSTATE_ENTER},          {KEY_BACKSPACE, TOPSTATE_BACKSPACE},
                 {CONTROL_H, TOPSTATE_BACKSPACE}, {DELETE, TOPSTATE_BACKSPACE},
                 {ESCAPE, TOPSTATE_ESCAPE}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (known[i].key == key) {
            return known[i].is;
        }
    }
    return key >= ' ' && key < DELETE ? (unsigned)key : 0;
}

/* Behind Escape: whether the rest of a key that is none of ours ("[1;5A", "OP") was there, and is
 * taken away: neither Escape nor its letters were meant. ncurses has waited for it. */
static bool skip_sequence(void) {
    int next = getch();
    int after = next == '[' || next == 'O' ? getch() : ERR;
    if (after == ERR) {
        if (next != ERR) {
            ungetch(next); /* the next key */
        }
        return false;
    }
    if (next == '[' && after == '[') { /* Linux's function keys: one letter more */
        getch();
        return true;
    }
    while (next == '[' && after != ERR && (after < '@' || after > '~')) {
        after = getch();
    }
    return true;
}

unsigned topscreen_key(bool *is_gone) {
    *is_gone = false;
    for (;;) {
        int key = getch();
        int count = 0;
        if (key == ERR) { /* nothing came, or nothing can come */
            *is_gone = ioctl(STDIN_FILENO, FIONREAD, &count) != 0;
            return 0;
        }
        if (special(key) != 0 && (key != ESCAPE || !skip_sequence())) {
            return special(key);
        }
    }
}
