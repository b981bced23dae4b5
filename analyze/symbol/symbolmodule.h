/* SPDX-License-Identifier: MIT */
/* symbolmodule.h: a loaded object as a profile recorded it: what names are asked of. A value. Used
 * by all of analyze/symbol and by who asks it. */
#ifndef ANALYZE_SYMBOL_SYMBOLMODULE_H
#define ANALYZE_SYMBOL_SYMBOLMODULE_H

#include <stddef.h>
#include <stdint.h>

/* Strings and bytes are copied where kept. */
struct symbol_module {
    const char *path; /* absolute; "" or "[...]" (as "[vdso]"): no file, every offset unknown */
    const uint8_t *build_id;
    size_t build_id_size; /* 0: not recorded, the file is taken as it is */
};

#endif
