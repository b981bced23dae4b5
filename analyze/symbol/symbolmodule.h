/* SPDX-License-Identifier: MIT */
/*
 * symbolmodule.h: what names are asked of, and what is answered. Values.
 *
 * Called by all of analyze/symbol, and by who asks it.
 */
#ifndef ANALYZE_SYMBOL_SYMBOLMODULE_H
#define ANALYZE_SYMBOL_SYMBOLMODULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A loaded object as the profile recorded it. Strings and bytes are copied where kept. */
struct symbol_module {
    const char *path; /* absolute; "" or "[...]" (as "[vdso]"): no file, every offset unknown */
    const uint8_t *build_id;
    size_t build_id_size; /* 0: not recorded, the file is taken as it is */
};

/*
 * One function at one address. Several frames of one address are an inlining chain: innermost
 * first, each `inlined` but the last, which is the function that really has a stack frame. Line and
 * column are the place in *this* function: of the innermost frame the address's own line, of every
 * other the line of the call that was inlined there (as gdb's bt shows them).
 */
struct symbol_frame {
    const char *function; /* demangled; NULL: unknown */
    const char *file;     /* NULL: unknown; absolute where the compiler said its folder */
    unsigned line;        /* 0: unknown */
    unsigned column;      /* 0: unknown */
    bool inlined;         /* inlined into the next frame of the array */
};

/* The frames of one address, owned by the symbolizer until symbolizer_close. count 0: nothing is
 * known, show module+offset. */
struct symbol_frames {
    size_t count;
    const struct symbol_frame *frames;
};

#endif
