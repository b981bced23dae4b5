/* SPDX-License-Identifier: MIT */
/* marktaker.c: see marktaker.h. */
#include "collect/marktaker.h"

#include "collect/liveword.h"

#include <string.h>

static struct memtrace_asked_marks *marks_of(const struct recordevents *events) {
    return events->drain.segments[0] != NULL ? memtrace_asked_marks_in(events->drain.segments[0])
                                             : NULL;
}

/* What makes no sense was not written by who asks. */
static bool make_sense(uint64_t asked, uint64_t taken) {
    return asked >= taken && asked - taken <= MEMTRACE_ASKED_MARKS;
}

void marktaker_look(struct marktaker *taker, const struct recordevents *events, uint64_t time_ns) {
    struct memtrace_asked_marks *marks = marks_of(events);
    uint64_t asked;
    uint64_t taken;
    if (marks == NULL || (asked = liveword_load(&marks->asked)) == taker->seen) {
        return;
    }
    taken = liveword_load(&marks->taken);
    if (!make_sense(asked, taken)) {
        liveword_store(&marks->taken, asked);
        taken = asked;
    }
    for (uint64_t n = taken > taker->seen ? taken : taker->seen; n < asked; n++) {
        taker->time_ns[n % MEMTRACE_ASKED_MARKS] = time_ns;
    }
    taker->seen = asked;
}

int marktaker_write(const struct marktaker *taker, struct recordevents *events) {
    struct memtrace_asked_marks *marks = marks_of(events);
    uint64_t taken = marks != NULL ? liveword_load(&marks->taken) : taker->seen;
    for (; taken < taker->seen && make_sense(taker->seen, taken); taken++) {
        char text[MEMTRACE_ASKED_MARK_BYTES];
        memcpy(text, marks->text[taken % MEMTRACE_ASKED_MARKS], sizeof text - 1);
        text[sizeof text - 1] = '\0';
        if (recordevents_mark(events, taker->time_ns[taken % MEMTRACE_ASKED_MARKS], text) != 0) {
            return -1;
        }
        liveword_store(&marks->taken, taken + 1);
    }
    return 0;
}

void marktaker_drop(const struct recordevents *events) {
    struct memtrace_asked_marks *marks = marks_of(events);
    if (marks != NULL) {
        liveword_store(&marks->taken, liveword_load(&marks->asked));
    }
}
