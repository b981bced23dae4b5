/* SPDX-License-Identifier: MIT */
/* style.c: see style.h. */
#include "analyze/report/style.h"

#include "analyze/model/shortname.h"

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
    fprintf(report->out, "\n%s%s%s\n", style_on(report, STYLE_HEADING), text, style_off(report));
}

const char *style_base(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

/* " at parser.c:120", " in libc.so.6" or nothing. */
static void spell_place(const struct names_frame *frame, unsigned first, unsigned last, char *text,
                        size_t size) {
    text[0] = '\0';
    if (frame->file != NULL && first != 0 && last > first) {
        snprintf(text, size, " at %s:%u-%u", style_base(frame->file), first, last);
    } else if (frame->file != NULL && first != 0) {
        snprintf(text, size, " at %s:%u", style_base(frame->file), first);
    } else if (frame->file != NULL) {
        snprintf(text, size, " at %s", style_base(frame->file));
    } else if (frame->function != NULL && frame->module[0] != '\0') {
        snprintf(text, size, " in %s", style_base(frame->module));
    }
}

/* Control characters in a name would move the cursor; cuts at a whole character. */
static void put_name(const struct report *report, const char *text, size_t columns) {
    size_t used = 0;
    for (const char *at = text; *at != '\0'; at++) {
        unsigned char byte = (unsigned char)*at;
        bool starts = (byte & 0xc0) != 0x80;
        if (starts && columns != 0 && used + 1 >= columns && strlen(at) > 1) {
            fputs(report->options.unicode ? "…" : "~", report->out);
            return;
        }
        used += starts;
        fputc(byte < 32 || byte == 127 ? '?' : byte, report->out);
    }
}

void style_text(const struct report *report, const char *text) {
    put_name(report, text, 0);
}

void style_text_cut(const struct report *report, const char *text, size_t columns) {
    put_name(report, text, columns);
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

void style_frame(const struct report *report, const struct names_frame *frame, size_t column) {
    style_frame_lines(report, frame, column, frame->line, frame->line);
}

void style_frame_lines(const struct report *report, const struct names_frame *frame, size_t column,
                       unsigned first, unsigned last) {
    const size_t least = 20; /* a name shorter than that says nothing */
    const char *suffix = frame->inlined ? " [inlined]" : "";
    char name[4096];
    char brief[4096];
    const char *shown = name;
    char place[512];
    size_t columns = 0;
    names_spell(frame, name, sizeof name);
    if (!report->options.full_names && frame->function != NULL) {
        shown = shortname(name, brief, sizeof brief);
    }
    spell_place(frame, first, last, place, sizeof place);
    if (report->options.width != 0) {
        size_t taken = column + strlen(place) + strlen(suffix);
        columns = report->options.width > taken + least ? report->options.width - taken : least;
    }
    fputs(style_on(report, STYLE_NAME), report->out);
    put_name(report, shown, columns);
    fprintf(report->out, "%s%s", style_off(report), style_on(report, STYLE_PLACE));
    put_name(report, place, 0);
    fprintf(report->out, "%s%s%s%s", style_off(report), style_on(report, STYLE_DIM), suffix,
            style_off(report));
}

void style_path(const struct report *report, struct calltree_walk walk, size_t most) {
    size_t more = 0;
    if (walk.frame == NULL) {
        fputs("         (no call path was recorded)\n", report->out);
    }
    for (; walk.frame != NULL; calltree_walk_next(&walk)) {
        if (most != 0 && walk.steps >= most) {
            more++;
            continue;
        }
        fputs("         ", report->out);
        style_frame(report, walk.frame, 9);
        fputc('\n', report->out);
    }
    if (more != 0) {
        fprintf(report->out, "         %s(%zu more frames)%s\n", style_on(report, STYLE_DIM), more,
                style_off(report));
    }
}
