/* SPDX-License-Identifier: MIT */
/*
 * sourcetext.h: the text of a source file, as it is on this machine.
 *
 * Called by apisource.c, for files that the debug information of an opened source names, and no
 * others. Any thread.
 */
#ifndef WEB_SERVER_SOURCETEXT_H
#define WEB_SERVER_SOURCETEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SOURCETEXT_MOST = 8 << 20 };

enum sourcetext_state {
    SOURCETEXT_CURRENT,
    SOURCETEXT_NEWER,   /* than what was compiled from it */
    SOURCETEXT_DIFFERS, /* from what was compiled, by the hash in the debug information */
    SOURCETEXT_MISSING,
    SOURCETEXT_FORBIDDEN /* it is there, but nothing to be shown */
};

struct sourcetext_wish {
    const char *file;   /* as it was when it was compiled */
    const char *module; /* what was compiled from it; "" where not known */
    const uint8_t *build_id;
    size_t build_id_size;
    const char *debug_folders;
    uint64_t start_ns; /* when the program ran, time of day: where the module is not there */
    const char *const
        *maps; /* OLD=NEW: what begins with OLD is to be found at NEW; the first counts */
    size_t map_count;
    const char *const *folders; /* what lies below them may be shown */
    size_t folder_count;
    bool only_named;    /* nothing else may be: others than this machine ask */
    const char *served; /* the profile or recording; NULL: it has no file */
};

struct sourcetext {
    enum sourcetext_state state;
    char *text; /* of the job; NULL: only where it is missing or forbidden */
    size_t size;
    const char *note; /* what is to be said of it; static, NULL: nothing */
};

struct sourcetext sourcetext_read(const struct sourcetext_wish *wish);

/* "c", "cpp", "rust", ... by the name's end; "text": none that is known. */
const char *sourcetext_language(const char *file);

#endif
