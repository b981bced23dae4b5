/* SPDX-License-Identifier: MIT */
/* programask.c: see programask.h. */
#include "collect/programask.h"

#include "analyze/read/recording.h"
#include "analyze/rows/safetext.h"
#include "collect/clock.h"
#include "collect/liveword.h"
#include "collect/modeswitch.h"
#include "collect/recordask.h"
#include "memtrace/sampled.h"

#include <stdio.h>
#include <string.h>

#define PATIENCE_NS UINT64_C(1000000000)

static bool answer_with(struct programask *ask, struct programask_answer *answer, bool is_done,
                        const char *text) {
    answer->is_done = is_done;
    snprintf(answer->text, sizeof answer->text, "%.255s", text);
    programask_end(ask);
    return true;
}

/* ---- What is counted ---- */

static struct modeswitch mode_of(const struct programask_wish *wish) {
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
static bool look_at_mode(struct programask *ask, struct programask_answer *answer, bool is_late) {
    const struct memtrace_header *header = ask->header;
    char text[PROGRAMASK_TEXT];
    if (liveword_load(&header->control) != ask->control) {
        return answer_with(ask, answer, true,
                           "asked; another 'memtrace control' came after this one");
    }
    if (liveword_load(&header->control_done) == ask->control &&
        (is_late || modeswitch_holds(header, mode_of(&ask->wish)))) {
        return answer_with(ask, answer, true, modeswitch_say(header, text, sizeof text));
    }
    return is_late && answer_with(ask, answer, true, "asked; it follows when it allocates next");
}

/* ---- Marks ---- */

/* Why none can be put there; NULL: it can. */
static const char *refuse_mark(const struct programask *ask) {
    enum recordask_state state = recordask_look(ask->header);
    if (state == RECORDASK_STOPPED ||
        recordask_recording(ask->header)->state == MEMTRACE_RECORD_STOPPED) {
        return "its recording has stopped, and takes no marks";
    }
    return state == RECORDASK_START || state == RECORDASK_ON
               ? NULL
               : "it is not recorded: marks stand in recordings";
}

static bool look_at_mark(struct programask *ask, struct programask_answer *answer, bool is_late) {
    struct error error;
    const char *why = refuse_mark(ask);
    if (why != NULL) {
        return answer_with(ask, answer, false, why);
    }
    if (ask->mark.marks == NULL &&
        markask_begin(&ask->mark, &ask->region, ask->wish.text, &error) < 0) {
        return answer_with(ask, answer, false, error.message);
    }
    if (ask->mark.marks != NULL && markask_is_taken(&ask->mark)) {
        char text[PROGRAMASK_TEXT + 16];
        snprintf(text, sizeof text, "marked \"%s\"", ask->wish.text);
        return answer_with(ask, answer, true, text);
    }
    return is_late && (ask->mark.marks != NULL
                           ? answer_with(ask, answer, true,
                                         "asked; the mark follows when its recording goes on")
                           : answer_with(ask, answer, false, "its recording takes no marks now"));
}

/* ---- All of it ---- */

static int check(const struct programask_wish *wish, struct error *error) {
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
    if (check(wish, error) != 0) {
        return -1;
    }
    ask->wish.text[PROGRAMASK_TEXT - 1] = '\0';
    make_safe(ask->wish.text);
    ask->header = modeswitch_open(region->path, error);
    if (ask->header == NULL) {
        return -1;
    }
    if (wish->what != PROGRAMASK_SAY && wish->what != PROGRAMASK_MARK) {
        ask->control = modeswitch_ask(ask->header, mode_of(wish));
    }
    ask->until_ns = clock_now_ns() + PATIENCE_NS;
    return 0;
}

bool programask_look(struct programask *ask, struct programask_answer *answer) {
    bool is_alive = region_alive(ask->region.pid, ask->region.start_ticks);
    bool is_late = is_alive && clock_now_ns() >= ask->until_ns;
    char text[PROGRAMASK_TEXT];
    if (ask->wish.what == PROGRAMASK_SAY) {
        return answer_with(ask, answer, true, modeswitch_say(ask->header, text, sizeof text));
    }
    if (ask->wish.what == PROGRAMASK_MARK ? look_at_mark(ask, answer, is_late)
                                          : look_at_mode(ask, answer, is_late)) {
        return true;
    }
    return !is_alive && answer_with(ask, answer, false, "its program has ended");
}

void programask_end(struct programask *ask) {
    markask_end(&ask->mark);
    if (ask->header != NULL) {
        modeswitch_unmap(ask->header);
    }
    ask->header = NULL;
}
