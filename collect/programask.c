/* SPDX-License-Identifier: MIT */
/* programask.c: see programask.h. */
#include "collect/programask.h"

#include "analyze/read/filemap.h"
#include "analyze/read/profile.h"
#include "analyze/read/recording.h"
#include "analyze/rows/safetext.h"
#include "collect/clock.h"
#include "collect/modeswitch.h"
#include "collect/recordask.h"
#include "memtrace/sampled.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PATIENCE_NS UINT64_C(1000000000)

enum { PAGE = 4096 };

static bool programask_answer_with(struct programask *ask, struct programask_answer *answer,
                                   bool is_done, const char *text) {
    answer->is_done = is_done;
    snprintf(answer->text, sizeof answer->text, "%.255s", text);
    programask_end(ask);
    return true;
}

/* ---- What is counted ---- */

static struct modeswitch programask_mode(const struct programask_wish *wish) {
    static const uint32_t modes[] = {
        [PROGRAMASK_OFF] = MEMTRACE_MODE_OFF,
        [PROGRAMASK_ON] = MEMTRACE_MODE_ON,
        [PROGRAMASK_EXACT] = MEMTRACE_MODE_EXACT,
        [PROGRAMASK_SAMPLE] = MEMTRACE_MODE_SAMPLED,
    };
    return (struct modeswitch){.mode = modes[wish->what],
                               .mean = wish->what == PROGRAMASK_SAMPLE ? wish->mean : 0};
}

/* It says first that it does it, and then that it has. */
static bool programask_look_at_mode(struct programask *ask, struct programask_answer *answer,
                                    bool is_late) {
    const struct memtrace_header *header = ask->header;
    char text[PROGRAMASK_TEXT];
    if (modeswitch_load(&header->control) != ask->control) {
        return programask_answer_with(ask, answer, true,
                                      "asked; another 'memtrace control' came after this one");
    }
    if (modeswitch_load(&header->control_done) == ask->control &&
        (is_late || modeswitch_holds(header, programask_mode(&ask->wish)))) {
        return programask_answer_with(ask, answer, true, modeswitch_say(header, text, sizeof text));
    }
    return is_late &&
           programask_answer_with(ask, answer, true, "asked; it follows when it allocates next");
}

/* ---- Marks ---- */

static void programask_unmap_marks(struct programask *ask) {
    if (ask->marks != NULL) {
        filemap_close((char *)ask->marks - MEMTRACE_ASKED_MARKS_OFFSET, PAGE);
    }
    ask->marks = NULL;
}

/* Maps the places for marks in the region (memtrace/events.h), which its collector looks at
 * (collect/record). 1; 0: there are none yet; -1: error. */
static int programask_map_marks(struct programask *ask, struct error *error) {
    const char *path = ask->region.path;
    struct profile *profile = profile_open(path, error);
    bool is_open = profile != NULL;
    uint64_t offset = 0; /* where the first segment of events begins */
    void *page = NULL;
    int fd;
    for (size_t i = 0; is_open && i < profile->segment_count && offset == 0; i++) {
        const struct profile_segment *segment = &profile->segments[i];
        if (segment->kind == MEMTRACE_SEGMENT_EVENTS && segment->index == 0 &&
            segment->size >= PAGE) {
            offset = segment->offset;
        }
    }
    profile_close(profile);
    if (!is_open || offset == 0) {
        return is_open ? 0 : -1;
    }
    fd = open(path, O_RDWR | O_CLOEXEC);
    page = fd >= 0 ? filemap_open(fd, offset, PAGE, FILEMAP_WRITES) : NULL;
    if (page == NULL) {
        error_set(error, "cannot open %s: %s", path, strerror(errno));
    }
    if (fd >= 0) {
        close(fd);
    }
    ask->marks = page != NULL ? memtrace_asked_marks_in(page) : NULL;
    return page != NULL ? 1 : -1;
}

/* Asks for the mark, with the lock. 1; 0: not yet, there is no place for it; -1: error. */
static int programask_ask_mark(struct programask *ask, struct error *error) {
    struct memtrace_asked_marks *marks;
    uint64_t asked;
    int lock;
    int result = programask_map_marks(ask, error);
    if (result != 1) {
        return result;
    }
    marks = ask->marks;
    lock = recordask_lock(&ask->region, error);
    if (lock < 0) {
        result = -1;
    } else {
        asked = modeswitch_load(&marks->asked);
        if (asked - modeswitch_load(&marks->taken) >= MEMTRACE_ASKED_MARKS) {
            result = 0;
        } else {
            snprintf(marks->text[asked % MEMTRACE_ASKED_MARKS], MEMTRACE_ASKED_MARK_BYTES, "%s",
                     ask->wish.text);
            ask->mark_number = asked + 1;
            __atomic_store_n(&marks->asked, ask->mark_number, __ATOMIC_RELEASE);
        }
        close(lock);
    }
    if (result != 1) {
        programask_unmap_marks(ask);
    }
    return result;
}

/* Why none can be put there; NULL: it can. */
static const char *programask_refuse_mark(const struct programask *ask) {
    enum recordask_state state = recordask_look(ask->header);
    if (state == RECORDASK_STOPPED ||
        recordask_recording(ask->header)->state == MEMTRACE_RECORD_STOPPED) {
        return "its recording has stopped, and takes no marks";
    }
    return state == RECORDASK_START || state == RECORDASK_ON
               ? NULL
               : "it is not recorded: marks stand in recordings";
}

static bool programask_look_at_mark(struct programask *ask, struct programask_answer *answer,
                                    bool is_late) {
    struct error error;
    const char *why = programask_refuse_mark(ask);
    if (why != NULL) {
        return programask_answer_with(ask, answer, false, why);
    }
    if (ask->marks == NULL && programask_ask_mark(ask, &error) < 0) {
        return programask_answer_with(ask, answer, false, error.message);
    }
    if (ask->marks != NULL && modeswitch_load(&ask->marks->taken) >= ask->mark_number) {
        char text[PROGRAMASK_TEXT + 16];
        snprintf(text, sizeof text, "marked \"%s\"", ask->wish.text);
        return programask_answer_with(ask, answer, true, text);
    }
    return is_late &&
           (ask->marks != NULL
                ? programask_answer_with(ask, answer, true,
                                         "asked; the mark follows when its recording goes on")
                : programask_answer_with(ask, answer, false, "its recording takes no marks now"));
}

/* ---- All of it ---- */

static int programask_check(const struct programask_wish *wish, struct error *error) {
    if (wish->what == 0 || wish->what >= PROGRAMASK_WISHES) {
        return error_set(error, "that is not known here");
    }
    if (wish->what == PROGRAMASK_SAMPLE &&
        (wish->mean == 0 || wish->mean >> MEMTRACE_CONTROL_MEAN_BITS != 0)) {
        return error_set(error, "a sample is one allocation in 1 byte to 1 TiB");
    }
    if (wish->what == PROGRAMASK_MARK && wish->text[0] == '\0') {
        return error_set(error, "a mark needs a text");
    }
    return 0;
}

int programask_find(const char *path, struct region *region, struct error *error) {
    struct recording *recording = recording_open(path, error);
    struct error why = {""};
    int found;
    if (recording == NULL) {
        return -1;
    }
    found = recording->closed
                ? error_set(&why, "complete; its program has ended")
                : region_find_recorded(recording->header.pid, recording->header.process_start_ticks,
                                       recording->program.start_realtime_ns, region, &why);
    recording_close(recording);
    return found == 0 ? 0 : error_set(error, "%s: %s", path, why.message);
}

int programask_begin(struct programask *ask, const struct region *region,
                     const struct programask_wish *wish, struct error *error) {
    *ask = (struct programask){.region = *region, .wish = *wish};
    if (programask_check(wish, error) != 0) {
        return -1;
    }
    ask->wish.text[PROGRAMASK_TEXT - 1] = '\0';
    make_safe(ask->wish.text);
    ask->header = modeswitch_open(region->path, error);
    if (ask->header == NULL) {
        return -1;
    }
    if (wish->what != PROGRAMASK_SAY && wish->what != PROGRAMASK_MARK) {
        ask->control = modeswitch_ask(ask->header, programask_mode(wish));
    }
    ask->until_ns = clock_now_ns() + PATIENCE_NS;
    return 0;
}

bool programask_look(struct programask *ask, struct programask_answer *answer) {
    bool is_alive = region_alive(ask->region.pid, ask->region.start_ticks);
    bool is_late = is_alive && clock_now_ns() >= ask->until_ns;
    char text[PROGRAMASK_TEXT];
    if (ask->wish.what == PROGRAMASK_SAY) {
        return programask_answer_with(ask, answer, true,
                                      modeswitch_say(ask->header, text, sizeof text));
    }
    if (ask->wish.what == PROGRAMASK_MARK ? programask_look_at_mark(ask, answer, is_late)
                                          : programask_look_at_mode(ask, answer, is_late)) {
        return true;
    }
    return !is_alive && programask_answer_with(ask, answer, false, "its program has ended");
}

void programask_end(struct programask *ask) {
    programask_unmap_marks(ask);
    if (ask->header != NULL) {
        modeswitch_unmap(ask->header);
    }
    ask->header = NULL;
}
