/* SPDX-License-Identifier: MIT */
/*
 * frames.h: how `memtrace trace` and `memtrace symbolize` spell the frames of one address.
 */
#ifndef CLI_FRAMES_H
#define CLI_FRAMES_H

#include "analyze/symbol/symbol.h"

/* Writes "function at file:line" of one frame, "(inlined)" added where it is, without newline.
 * `place` is what to say where the function is unknown: "module+0xOFFSET". */
void frames_write(const struct symbol_frame *frame, const char *place);

/* Prints what the user must know about the names, a line each on stderr. */
void frames_warn(const struct symbolizer *symbolizer);

#endif
