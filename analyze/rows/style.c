/* SPDX-License-Identifier: MIT */
/* style.c: see style.h. */
#include "analyze/rows/style.h"

#include "analyze/base/pathname.h"
#include "analyze/model/names.h"
#include "analyze/rows/number.h"
#include "analyze/rows/safetext.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *style_on(const struct report *report, enum style style) {
    static const char *const codes[] = {
        [STYLE_PLAIN] = "",         [STYLE_HEADING] = "\033[1m", [STYLE_NAME] = "\033[1m",
        [STYLE_PLACE] = "\033[36m", [STYLE_DIM] = "\033[2m",     [STYLE_HOT] = "\033[1;31m",
        [STYLE_WARM] = "\033[33m",
    };
    return report->options.color ? codes[style] : "";
}

const char *style_off(const struct report *report) {
    return report->options.color ? "\033[0m" : "";
}

enum style style_share(uint64_t part, uint64_t whole) {
    double share = whole != 0 ? (double)part / (double)whole : 0;
    if (share >= 0.25) {
        return STYLE_HOT;
    }
    return share >= 0.05 ? STYLE_WARM : STYLE_PLAIN;
}

void style_heading(const struct report *report, const char *text) {
    fputc('\n', report->out);
    style_note(report, STYLE_HEADING, "%s", text);
}

void style_note(const struct report *report, enum style style, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs(style_on(report, style), report->out);
    vprint_safe(report->out, format, arguments);
    fprintf(report->out, "%s\n", style_off(report));
    va_end(arguments);
}

void style_label(const struct report *report, const char *label) {
    fprintf(report->out, "  %s%-19s%s ", style_on(report, STYLE_DIM), label, style_off(report));
}

/* " at parser.c:120", " in libc.so.6" or nothing. */
static void spell_place(const struct names_frame *frame, unsigned first, unsigned last, char *text,
                        size_t size) {
    text[0] = '\0';
    if (frame->file != NULL && first != 0 && last > first) {
        snprintf(text, size, " at %s:%u-%u", pathname_base(frame->file), first, last);
    } else if (frame->file != NULL && first != 0) {
        snprintf(text, size, " at %s:%u", pathname_base(frame->file), first);
    } else if (frame->file != NULL) {
        snprintf(text, size, " at %s", pathname_base(frame->file));
    } else if (frame->function != NULL && frame->module[0] != '\0') {
        snprintf(text, size, " in %s", pathname_base(frame->module));
    }
}

static bool starts_character(char byte) {
    return ((unsigned char)byte & 0xc0) != 0x80;
}

static size_t style_columns_of(const char *text) {
    size_t columns = 0;
    for (bool is_safe; *text != '\0'; columns++) {
        text += safetext_step(text, &is_safe);
    }
    return columns;
}

/* What has no room is left out in the middle: namespaces begin a name, and its end says what is
 * done. columns 0: there is room for all. */
static void style_put_name(const struct report *report, const char *text, size_t columns) {
    size_t all = style_columns_of(text);
    size_t left_out = columns != 0 && all > columns ? all - columns + 1 : 0;
    size_t first_out = left_out != 0 ? (columns - 1) / 3 : all;
    size_t at = 0;
    while (*text != '\0') {
        bool is_safe;
        size_t step = safetext_step(text, &is_safe);
        if (at < first_out || at >= first_out + left_out) {
            put_safe_bytes(report->out, text, step);
        } else if (at == first_out) {
            fputs(report->options.unicode ? "…" : "~", report->out);
        }
        text += step;
        at++;
    }
}

void style_text(const struct report *report, const char *text) {
    style_put_name(report, text, 0);
}

void style_text_cut(const struct report *report, const char *text, size_t columns) {
    style_put_name(report, text, columns);
}

void style_bars(const struct report *report, const uint64_t *values, size_t count) {
    enum { LEVELS = 8 };
    static const char *const bars[LEVELS + 1] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char *const typed[LEVELS + 1] = {" ", "_", ".", ":", "-", "=", "+", "*", "#"};
    uint64_t most = 1;
    for (size_t i = 0; i < count; i++) {
        most = values[i] > most ? values[i] : most;
    }
    for (size_t i = 0; i < count; i++) {
        size_t level = (size_t)((double)values[i] / (double)most * LEVELS + 0.5);
        fputs(report->options.unicode ? bars[level] : typed[level], report->out);
    }
}

/* Columns of the first `size` bytes; escape sequences take none. */
static size_t columns_in(const char *text, size_t size) {
    size_t columns = 0;
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '\033') {
            i += strcspn(text + i, "m");
        } else {
            columns += starts_character(text[i]);
        }
    }
    return columns;
}

size_t style_lines(const struct report *report, const char *text, size_t indent) {
    size_t width = report->options.width != 0 ? report->options.width : SIZE_MAX;
    size_t column = 0;
    while (*text != '\0') {
        size_t blanks = strspn(text, " ");
        size_t size = blanks + strcspn(text + blanks, " \n");
        size_t columns = columns_in(text, size);
        if (column > indent && column + columns > width) {
            fprintf(report->out, "\n%*s", (int)indent, "");
            column = indent;
            columns -= blanks;
            text += blanks;
            size -= blanks;
        }
        fwrite(text, 1, size, report->out);
        column += columns;
        text += size;
        if (*text == '\n') {
            fputc(*text++, report->out);
            column = 0;
        }
    }
    return column;
}

void style_frame(const struct report *report, const struct names_frame *frame, size_t column) {
    style_frame_lines(report, frame, column, frame->line, frame->line, 0);
}

void style_step(const struct report *report, const struct pathwalk *walk, size_t column) {
    style_frame_lines(report, walk->frame, column, walk->frame->line, walk->frame->line,
                      walk->folded);
}

/* " [inlined] (+3 library frames)", or the shortest that says so. */
static void spell_suffix(bool is_inlined, size_t folded, bool is_short, char *text, size_t size) {
    char count[64] = "";
    struct number number;
    if (folded != 0) {
        snprintf(count, sizeof count, " (+%s)",
                 is_short ? number_count(&number, folded)
                          : number_items(&number, folded, "library frame"));
    }
    snprintf(text, size, "%s%s", is_inlined && !is_short ? " [inlined]" : "", count);
}

void style_frame_lines(const struct report *report, const struct names_frame *frame, size_t column,
                       unsigned first, unsigned last, size_t folded) {
    const size_t least = 20; /* a name shorter than that says nothing */
    char suffix[96];
    char name[4096];
    const char *shown = shortname_of(frame, report->options.full_names, name, sizeof name);
    char place[512];
    size_t columns = 0;
    spell_place(frame, first, last, place, sizeof place);
    spell_suffix(frame->inlined, folded, false, suffix, sizeof suffix);
    if (report->options.width != 0) {
        size_t taken = column + style_columns_of(place) + strlen(suffix);
        size_t wanted = style_columns_of(shown) < least ? style_columns_of(shown) : least;
        if (taken + wanted > report->options.width) {
            taken -= strlen(suffix);
            spell_suffix(frame->inlined, folded, true, suffix, sizeof suffix);
            taken += strlen(suffix);
        }
        if (taken + wanted > report->options.width) {
            taken -= style_columns_of(place);
            place[0] = '\0';
        }
        columns = report->options.width > taken + least ? report->options.width - taken : least;
    }
    fputs(style_on(report, STYLE_NAME), report->out);
    style_put_name(report, shown, columns);
    fprintf(report->out, "%s%s", style_off(report), style_on(report, STYLE_PLACE));
    style_put_name(report, place, 0);
    fprintf(report->out, "%s%s%s%s", style_off(report), style_on(report, STYLE_DIM), suffix,
            style_off(report));
}

void style_path(const struct report *report, struct pathwalk walk, size_t most) {
    size_t more = 0;
    if (walk.frame == NULL) {
        fputs("         (no call path was recorded)\n", report->out);
    }
    for (; walk.frame != NULL; pathwalk_next(&walk)) {
        if (most != 0 && walk.steps >= most) {
            more++;
            continue;
        }
        fputs("         ", report->out);
        style_step(report, &walk, 9);
        fputc('\n', report->out);
    }
    if (more != 0) {
        struct number number;
        fprintf(report->out, "         %s(%s)%s\n", style_on(report, STYLE_DIM),
                number_items(&number, more, "more frame"), style_off(report));
    }
}
