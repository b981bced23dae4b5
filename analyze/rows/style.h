/* SPDX-License-Identifier: MIT */
/* style.h: colours, lines and places as the text reports draw them. Used by analyze/rows and
 * analyze/report. */
#ifndef ANALYZE_ROWS_STYLE_H
#define ANALYZE_ROWS_STYLE_H

#include "analyze/rows/pathwalk.h"

enum style {
    STYLE_PLAIN,
    STYLE_HEADING,
    STYLE_NAME,
    STYLE_PLACE,
    STYLE_DIM,
    STYLE_HOT,
    STYLE_WARM
};

/* The escape sequence that starts a style, "" without colour. */
const char *style_on(const struct report *report, enum style style);
const char *style_off(const struct report *report);

/* How dear a share is: hot from 25 %, warm from 5 %. */
enum style style_share(uint64_t part, uint64_t whole);

/* A heading, underlined, with an empty line before it. */
void style_heading(const struct report *report, const char *text);
/* What stands before a value in the head of a report. */
void style_label(const struct report *report, const char *label);
/* A line in that style; what is foreign in it is made safe. */
void style_note(const struct report *report, enum style style, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* "function at file.c:12", the name cut in its middle where there are too few columns; column:
 * what stands left of it. */
void style_frame(const struct report *report, const struct names_frame *frame, size_t column);
/* The same for the lines first to last of the function: "at file.c:12-30"; 0: none. folded: so
 * many library frames are not shown below it. */
void style_frame_lines(const struct report *report, const struct names_frame *frame, size_t column,
                       unsigned first, unsigned last, size_t folded);
/* The frame that a walk stands on. */
void style_step(const struct report *report, const struct pathwalk *walk, size_t column);

/* A call path, a line a frame, at most `most` of them (0: all), and how many more there are. */
void style_path(const struct report *report, struct pathwalk walk, size_t most);

/* Whole lines of ours, which may hold colours: broken between words where the terminal ends, and
 * continued that many columns from the left. Returns the columns that the last one takes. */
size_t style_lines(const struct report *report, const char *text, size_t indent);

/* Text from outside, without control characters. */
void style_text(const struct report *report, const char *text);
/* The same, of at most so many columns; 0: all. */
void style_text_cut(const struct report *report, const char *text, size_t columns);

/* Numbers as a row of bars, each one column wide. */
void style_bars(const struct report *report, const uint64_t *values, size_t count);

#endif
