/* SPDX-License-Identifier: MIT */
/* programask.c: see programask.h. */
#include "collect/programask.h"

#include "analyze/base/filemode.h"
#include "analyze/base/pathname.h"
#include "analyze/base/scope.h"
#include "analyze/read/filemap.h"
#include "analyze/read/profile.h"
#include "analyze/read/recording.h"
#include "analyze/rows/number.h"
#include "analyze/rows/safetext.h"
#include "collect/clock.h"
#include "collect/orphan.h"
#include "memtrace/events.h"
#include "memtrace/recording.h"
#include "memtrace/sampled.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- What is counted ---- */

struct memtrace_header *modeswitch_map(const char *path, struct error *error) {
    SCOPE_FD int fd = open(path, O_RDWR | O_CLOEXEC);
    void *bytes = fd >= 0 ? filemap_open(fd, 0, MEMTRACE_HEADER_SIZE, FILEMAP_WRITES) : NULL;
    if (bytes == NULL) {
        error_set(error, "cannot open %s: %s", path, strerror(errno));
    }
    return bytes;
}

struct memtrace_header *modeswitch_open(const char *path, struct error *error) {
    struct profile *profile = profile_open(path, error);
    struct memtrace_header *header = profile != NULL ? modeswitch_map(path, error) : NULL;
    profile_close(profile);
    return header;
}

void modeswitch_unmap(struct memtrace_header *header) {
    filemap_close(header, MEMTRACE_HEADER_SIZE);
}

uint64_t modeswitch_mean(const struct memtrace_header *header) {
    const struct memtrace_recording *recording = (const void *)header->recording;
    return memtrace_is_recorded(recording)         ? modeswitch_load(&recording->sample_bytes)
           : header->mode == MEMTRACE_MODE_SAMPLED ? modeswitch_load(&header->sample_bytes)
                                                   : 0;
}

const char *modeswitch_say(const struct memtrace_header *header, char *text, size_t capacity) {
    const struct memtrace_recording *recording = (const void *)header->recording;
    const char *what = memtrace_is_recorded(recording) ? "recorded" : "counted";
    uint64_t mean = modeswitch_mean(header);
    struct number number;
    if (header->mode == MEMTRACE_MODE_OFF) {
        snprintf(text, capacity, "off, nothing new is %s", what);
    } else if (mean != 0) {
        snprintf(text, capacity, "sampled, one allocation in %s is %s", number_bytes(&number, mean),
                 what);
    } else {
        snprintf(text, capacity, "exact, every allocation is %s", what);
    }
    return text;
}

/* Under a serial number that no other wish has. */
uint64_t modeswitch_ask(struct memtrace_header *header, struct modeswitch wish) {
    uint64_t before = modeswitch_load(&header->control);
    uint64_t control;
    do {
        uint64_t serial = ((before >> MEMTRACE_CONTROL_SERIAL_SHIFT) + 1) & UINT16_MAX;
        serial = serial != 0 ? serial : 1;
        control = serial << MEMTRACE_CONTROL_SERIAL_SHIFT |
                  (uint64_t)wish.mode << MEMTRACE_CONTROL_MODE_SHIFT | wish.mean;
    } while (!__atomic_compare_exchange_n(&header->control, &before, control, 0, __ATOMIC_ACQ_REL,
                                          __ATOMIC_ACQUIRE));
    return control;
}

bool modeswitch_holds(const struct memtrace_header *header, struct modeswitch wish) {
    uint32_t mode = __atomic_load_n(&header->mode, __ATOMIC_ACQUIRE);
    if (wish.mode == MEMTRACE_MODE_OFF || mode == MEMTRACE_MODE_OFF) {
        return mode == wish.mode;
    }
    return wish.mode == MEMTRACE_MODE_ON || modeswitch_mean(header) == wish.mean;
}

/* ---- A recording ---- */

static struct memtrace_recording *recording_of(struct memtrace_header *header) {
    return (void *)header->recording;
}

const struct memtrace_recording *recordask_recording(const struct memtrace_header *header) {
    return (const void *)header->recording;
}

void recordask_path(const struct memtrace_header *header, char path[RECORDASK_PATH]) {
    memcpy(path, recordask_recording(header)->path, RECORDASK_PATH);
    path[RECORDASK_PATH - 1] = '\0';
}

enum recordask_state recordask_look(const struct memtrace_header *header) {
    const struct memtrace_recording *recording = recordask_recording(header);
    uint32_t state = __atomic_load_n(&recording->state, __ATOMIC_ACQUIRE);
    bool has_file = __atomic_load_n(&recording->heartbeat_ns, __ATOMIC_ACQUIRE) != 0;
    if (state == MEMTRACE_RECORD_NONE || (state == MEMTRACE_RECORD_LEFT && !has_file)) {
        return RECORDASK_NONE;
    }
    if ((recording->flags & MEMTRACE_RECORDING_MIDWAY) == 0) {
        return RECORDASK_START;
    }
    switch (state) {
    case MEMTRACE_RECORD_ASKED:
        return RECORDASK_OPENING;
    case MEMTRACE_RECORD_OPENED:
        return RECORDASK_ASKED;
    case MEMTRACE_RECORD_WANTED:
        return RECORDASK_ON;
    case MEMTRACE_RECORD_STOPPED:
        return RECORDASK_STOPPED;
    case MEMTRACE_RECORD_REFUSED:
        return RECORDASK_REFUSED;
    default:
        return has_file ? RECORDASK_ENDING : RECORDASK_CLOSED;
    }
}

/* --- one at a time ---------------------------------------------------------------------------- */

/* Of two that ask a program for something at once one is first: a descriptor, to be closed. -1:
 * error. The lock goes away with who holds it. */
static int recordask_lock(const struct region *region, struct error *error) {
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    SCOPE_FD int fd = open(region->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    return fd >= 0 && fcntl(fd, F_OFD_SETLKW, &whole) == 0
               ? scope_keep(&fd)
               : error_set(error, "cannot open %s: %s", region->path, strerror(errno));
}

/* --- the file --------------------------------------------------------------------------------- */

void recordask_expand(const char *pattern, pid_t pid, const char *program, unsigned number,
                      time_t now, char *to, size_t capacity) {
    size_t length = 0;
    to[0] = '\0';
    for (const char *at = pattern; *at != '\0' && length + 1 < capacity; at++) {
        char what = *at == '%' ? at[1] : '\0';
        char value[32];
        at += what != '\0';
        switch (what) {
        case 'p':
            snprintf(value, sizeof value, "%ld", (long)pid);
            break;
        case 'e':
            value[0] = '\0';
            break;
        case 't':
            snprintf(value, sizeof value, "%lld", (long long)now);
            break;
        case 'n':
            snprintf(value, sizeof value, "%u", number);
            break;
        default:
            snprintf(value, sizeof value, "%s%c", what != '\0' && what != '%' ? "%" : "",
                     what != '\0' ? what : *at);
        }
        length +=
            (size_t)snprintf(to + length, capacity - length, "%s", what == 'e' ? program : value);
    }
}

static void recordask_expand_for(const struct memtrace_header *header, const char *pattern,
                                 char *to, size_t capacity) {
    recordask_expand(pattern, (pid_t)header->pid, memtrace_program(header),
                     recordask_recording(header)->begun, time(NULL), to, capacity);
}

/* A recording that is there gives way, as under `memtrace record`; no other file does. */
static int recordask_make_room(const char *path, struct error *error) {
    char magic[sizeof MEMTRACE_RECORDING_MAGIC] = "";
    struct stat status;
    if (lstat(path, &status) != 0) {
        return 0;
    }
    SCOPE_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    ssize_t size = fd >= 0 ? read(fd, magic, strlen(MEMTRACE_RECORDING_MAGIC)) : -1;
    if (fd >= 0 && S_ISREG(status.st_mode) &&
        (status.st_size == 0 || (size == (ssize_t)strlen(MEMTRACE_RECORDING_MAGIC) &&
                                 strcmp(magic, MEMTRACE_RECORDING_MAGIC) == 0)) &&
        unlink(path) == 0) {
        return 0;
    }
    return error_set(error, "%s is there already and is not a recording; --output names another",
                     path);
}

/* Without an output memtrace.EXE.PID.mtr in this folder, or with -2, -3 and so on. What is wrong
 * with the place is said at once. */
static int choose_path(const struct memtrace_header *header, const char *output, char *path,
                       size_t capacity, struct error *error) {
    char pattern[64] = "memtrace.%e.%p.mtr";
    char folder[1024] = "";
    char name[1024];
    recordask_expand_for(header, output != NULL ? output : pattern, name, sizeof name);
    for (unsigned number = 2; output == NULL && access(name, F_OK) == 0; number++) {
        snprintf(pattern, sizeof pattern, "memtrace.%%e.%%p-%u.mtr", number);
        recordask_expand_for(header, pattern, name, sizeof name);
    }
    if (name[0] != '/' && getcwd(folder, sizeof folder) == NULL) {
        return error_set(error, "cannot tell which folder this is: %s", strerror(errno));
    }
    if ((size_t)snprintf(path, capacity, "%s%s%s", folder, folder[0] != '\0' ? "/" : "", name) >=
        capacity) {
        return error_set(error, "the name of the recording is too long");
    }
    if (recordask_make_room(path, error) != 0) {
        return -1;
    }
    SCOPE_FD int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, filemode());
    return fd >= 0 ? unlink(path) : error_set(error, "cannot write %s: %s", path, strerror(errno));
}

/* --- beginning -------------------------------------------------------------------------------- */

static int recordask_check(const struct memtrace_header *header, long pid, struct error *error) {
    const char *path = recordask_recording(header)->path;
    switch (recordask_look(header)) {
    case RECORDASK_NONE:
    case RECORDASK_REFUSED:
        break;
    case RECORDASK_START:
        return error_set(error, "process %ld is recorded since its start: %s", pid, path);
    case RECORDASK_CLOSED:
    case RECORDASK_ENDING:
        return error_set(error,
                         "process %ld has not let go of its last recording; it does when it "
                         "allocates next",
                         pid);
    default:
        return error_set(error, "process %ld is recorded already: %s", pid, path);
    }
    if (header->mode != MEMTRACE_MODE_EXACT) {
        return error_set(
            error,
            "process %ld %s; a recording begins where every allocation is counted: "
            "'memtrace control %ld exact' first",
            pid, header->mode == MEMTRACE_MODE_OFF ? "counts nothing" : "counts a sample", pid);
    }
    return 0;
}

static int recordask_write_wish(struct memtrace_header *header, const struct region *region,
                                const char *output, char path[RECORDASK_PATH],
                                struct error *error) {
    struct memtrace_recording *recording = recording_of(header);
    struct memtrace_header copy = *header; /* of one moment, with strings that end */
    region_end_strings(&copy);
    if (recordask_check(&copy, (long)region->pid, error) != 0 ||
        choose_path(&copy, output, path, RECORDASK_PATH, error) != 0) {
        return -1;
    }
    recording->on_lag = MEMTRACE_LAG_WAIT;
    recording->flags = MEMTRACE_RECORDING_MIDWAY | MEMTRACE_RECORDING_PROFILE;
    recording->heartbeat_ns = recording->begun_ns = 0;
    recording->sample_bytes = recording->rotate_bytes = recording->duration_ns = 0;
    recording->queue_bytes = 0; /* it stays whole on the disk: nobody sends it */
    recording->cull_ns = recording->cull_pending = 0;
    recording->size_least = recording->size_most = 0;
    recording->embed = MEMTRACE_EMBED_SYMBOLS;
    snprintf(recording->path, sizeof recording->path, "%s", path);
    __atomic_store_n(&recording->state, MEMTRACE_RECORD_ASKED, __ATOMIC_RELEASE);
    return 0;
}

int recordask_begin(struct memtrace_header *header, const struct region *region, const char *output,
                    char path[RECORDASK_PATH], struct error *error) {
    int lock = recordask_lock(region, error);
    int result = lock >= 0 ? recordask_write_wish(header, region, output, path, error) : -1;
    scope_close(&lock);
    if (result == 0) {
        recordask_help(region);
    }
    return result;
}

void recordask_help(const struct region *region) {
    if (orphan_is(region->path)) {
        orphan_start(region->path);
    }
}

void recordask_give_up(struct memtrace_header *header) {
    uint32_t asked = MEMTRACE_RECORD_ASKED;
    __atomic_compare_exchange_n(&recording_of(header)->state, &asked, MEMTRACE_RECORD_NONE, false,
                                __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/* --- the end ---------------------------------------------------------------------------------- */

int recordask_end(struct memtrace_header *header, const struct region *region,
                  struct error *error) {
    struct memtrace_recording *recording = recording_of(header);
    enum recordask_state now = recordask_look(header);
    uint32_t state = __atomic_load_n(&recording->state, __ATOMIC_ACQUIRE);
    if (now == RECORDASK_START) {
        return error_set(error,
                         "process %ld is recorded since its start, and to its end; 'memtrace "
                         "control %ld off' counts and records nothing new",
                         (long)region->pid, (long)region->pid);
    }
    if ((now != RECORDASK_ON && now != RECORDASK_STOPPED && now != RECORDASK_ASKED) ||
        !__atomic_compare_exchange_n(&recording->state, &state, MEMTRACE_RECORD_ENDING, false,
                                     __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        return error_set(error, "process %ld is not recorded", (long)region->pid);
    }
    recordask_help(region);
    return 0;
}

/* ---- One wish, carried out ---- */

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
    uint64_t offset = 0; /* where the first segment of events begins */
    void *page;
    if (profile == NULL) {
        return -1;
    }
    for (size_t i = 0; i < profile->segment_count && offset == 0; i++) {
        const struct profile_segment *segment = &profile->segments[i];
        if (segment->kind == MEMTRACE_SEGMENT_EVENTS && segment->index == 0 &&
            segment->size >= PAGE) {
            offset = segment->offset;
        }
    }
    profile_close(profile);
    if (offset == 0) {
        return 0;
    }
    SCOPE_FD int fd = open(path, O_RDWR | O_CLOEXEC);
    page = fd >= 0 ? filemap_open(fd, offset, PAGE, FILEMAP_WRITES) : NULL;
    ask->marks = page != NULL ? memtrace_asked_marks_in(page) : NULL;
    return page != NULL ? 1 : error_set(error, "cannot open %s: %s", path, strerror(errno));
}

/* Asks for the mark, with the lock. 1; 0: not yet, there is no place for it; -1: error. */
static int programask_ask_mark(struct programask *ask, struct error *error) {
    uint64_t asked;
    int result = programask_map_marks(ask, error);
    SCOPE_FD int lock = result == 1 ? recordask_lock(&ask->region, error) : -1;
    if (result == 1 && lock < 0) {
        result = -1;
    } else if (result == 1) {
        struct memtrace_asked_marks *marks = ask->marks;
        asked = modeswitch_load(&marks->asked);
        if (asked - modeswitch_load(&marks->taken) >= MEMTRACE_ASKED_MARKS) {
            result = 0;
        } else {
            snprintf(marks->text[asked % MEMTRACE_ASKED_MARKS], MEMTRACE_ASKED_MARK_BYTES, "%s",
                     ask->wish.text);
            ask->mark_number = asked + 1;
            __atomic_store_n(&marks->asked, ask->mark_number, __ATOMIC_RELEASE);
        }
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
