/* SPDX-License-Identifier: MIT */
/* record.c: the rounds of a recording. See record.h. */
#include "collect/record.h"

#include "analyze/base/scope.h"
#include "analyze/rows/number.h"
#include "collect/clock.h"
#include "collect/modulefiles.h"
#include "collect/recordevents.h"
#include "collect/recordsample.h"
#include "collect/recordslices.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum {
    BLOCK_WORDS = 192 * 1024, /* as many as a block of events usually has */
    TABLES_MS = 1000,   /* how soon a reader of an unfinished file sees new threads and totals */
    TABLES_A_LIFE = 50, /* from 50 s on every fiftieth of the life */
    FLUSH_MS = 800,     /* how long events stay in a buffer that does not fill, so that a reader */
                        /* sees them within a second */
    FEW_WORDS = 256,    /* fewer make a small block, most of which is its header */
    SMALL_MS = 8000,    /* each stream may have a small block so often ... */
    SMALL_SHARE = 10,   /* ... and more as long as all of them take a tenth of the recording, or: */
    SMALL_BYTES = 1 << 16,
    REFRESH_MS = 20,
    CULL_MS = 50,        /* how often all buffers are looked through for what ends soon */
    CULL_MARGIN_MS = 16, /* of times that are not precise */
    SHORT_WAIT_MS = 1,
    LONG_WAIT_MS = 16,
    LINGER_MS = 5000,
};

/* What others want to be in the recording, until its thread writes it. */
struct wanted_marks {
    pthread_mutex_t lock;
    size_t count;
    struct {
        uint64_t time_ns;
        char text[600];
    } marks[8];
};

/* The marks that others ask for through the region (collect/programask), on their way into the
 * recording. */
struct asked_marks {
    uint64_t seen; /* so many were there at the last look */
    uint64_t time_ns[MEMTRACE_ASKED_MARKS];
};

struct record {
    const struct claim *claim;
    struct memtrace_recording *recording; /* in the region */
    struct recordevents events;
    struct recordsample sample;
    struct recordgap gap;
    struct recordslices *slices; /* NULL: none */
    struct modulefiles modules;
    struct wanted_marks wanted;
    struct asked_marks asked;
    uint64_t flushed_ns;
    uint64_t *small_ns; /* by stream: when its last small block was written */
    uint32_t small_streams;
    uint64_t small_bytes; /* of small blocks */
    uint64_t culled_ns;
    uint64_t tables_ns; /* when they are due again */
    unsigned wait_ms;
    bool stopped;   /* nothing more can be written */
    bool came_late; /* recording had stopped before: events are missing */
    struct error trouble;
    int news; /* the trouble is there and was not told; not changed any more while stopped. (An int:
               * not every machine can exchange a bool.) */
    pthread_t thread;
    bool running;
    bool ended; /* by who ends the thread */
    int wake;   /* eventfd: the thread is to look at `ended` */
};

/* One that began midway is to end, which its program and who asked go by. */
static bool record_is_ending(const struct memtrace_recording *recording) {
    uint32_t state = claim_load_u32(&recording->state);
    return state == MEMTRACE_RECORD_ENDING || state == MEMTRACE_RECORD_LEFT;
}

bool record_wanted(const struct claim *claim) {
    const struct memtrace_recording *recording = claim_recording(claim);
    uint32_t state = claim_load_u32(&recording->state);
    return state != MEMTRACE_RECORD_NONE && state != MEMTRACE_RECORD_REFUSED &&
           (!record_is_ending(recording) || claim_load_u64(&recording->heartbeat_ns) != 0) &&
           recording->path[0] == '/';
}

bool record_is_midway(const struct claim *claim) {
    return (claim_recording(claim)->flags & MEMTRACE_RECORDING_MIDWAY) != 0;
}

/* --- rounds ----------------------------------------------------------------------------------- */

/* Why the recording ends here, as its last event, in the room that was kept for it. */
static void mark_end(struct record *record) {
    struct recordevents *events = &record->events;
    struct error ignored;
    char text[256];
    snprintf(text, sizeof text, "recording: it could not go on: %s",
             events->parts.file.reason != 0 ? strerror(events->parts.file.reason)
                                            : "out of memory");
    events->error = &ignored;
    recordfile_reserve(&events->parts.file, 0);
    recordevents_mark(events, claim_time_ns(record->claim), text);
}

/* Tells the program that no more is wanted; what is in the buffers is lost. */
static void record_stop(struct record *record) {
    if (record->events.encoder != NULL && !record->stopped) {
        mark_end(record);
    }
    recordgap_stop(&record->gap, claim_time_ns(record->claim));
    record->stopped = true;
    __atomic_store_n(&record->news, true, __ATOMIC_RELEASE);
    if (!record_is_ending(record->recording)) {
        __atomic_store_n(&record->recording->state, MEMTRACE_RECORD_STOPPED, __ATOMIC_RELEASE);
    }
}

/* Whose turn it is. */
enum flush { FLUSH_BLOCKS, FLUSH_FULL, FLUSH_SMALL, FLUSH_ALL };

static enum flush choose_flush(struct record *record, bool ended, uint64_t now) {
    if (ended) {
        return FLUSH_ALL;
    }
    if (now - record->flushed_ns >= FLUSH_MS * MS) {
        record->flushed_ns = now;
        return FLUSH_SMALL;
    }
    return drain_is_tight(&record->events.drain) ? FLUSH_FULL : FLUSH_BLOCKS;
}

static uint64_t bytes_written(const struct record *record) {
    return record->events.parts.earlier_bytes + record->events.parts.file.size;
}

/* An event after a pause always; those of threads that do a little all the time as long as that
 * does not swell the file. */
static bool may_be_small(const struct record *record, uint32_t stream) {
    uint64_t last_ns = stream < record->small_streams ? record->small_ns[stream] : 0;
    return last_ns == 0 || record->flushed_ns - last_ns >= SMALL_MS * MS ||
           record->small_bytes < SMALL_BYTES + bytes_written(record) / SMALL_SHARE;
}

static bool record_is_due(const struct record *record, const struct drain_span *span,
                          enum flush flush) {
    return span->words >= BLOCK_WORDS || flush == FLUSH_ALL ||
           (flush >= FLUSH_FULL && span->full != 0) ||
           (flush == FLUSH_SMALL && span->words != 0 &&
            (span->words >= FEW_WORDS || may_be_small(record, span->stream)));
}

static bool any_is_due(const struct record *record, bool ended, enum flush flush) {
    struct drain_span span = {0};
    while (drain_next_span(&record->events.drain, ended, &span)) {
        if (record_is_due(record, &span, flush)) {
            return true;
        }
    }
    return false;
}

/* Where there is no memory for it, the stream has small blocks as if it had none before. */
static void note_small(struct record *record, uint32_t stream, uint64_t bytes) {
    record->small_bytes += bytes;
    if (stream >= record->small_streams) {
        uint32_t count = stream + stream / 2 + 64;
        uint64_t *grown = reallocarray(record->small_ns, count, sizeof *grown);
        if (grown == NULL) {
            return;
        }
        memset(grown + record->small_streams, 0, (count - record->small_streams) * sizeof *grown);
        record->small_ns = grown;
        record->small_streams = count;
    }
    record->small_ns[stream] = record->flushed_ns;
}

static int write_due(struct record *record, bool ended, enum flush flush, uint64_t until_ns) {
    struct drain_span span = {0};
    while (drain_next_span(&record->events.drain, ended, &span)) {
        uint64_t before = bytes_written(record);
        if (!record_is_due(record, &span, flush)) {
            continue;
        }
        if (recordevents_write(&record->events, &span, until_ns) != 0) {
            return -1;
        }
        if (span.words < FEW_WORDS && span.full == 0) {
            note_small(record, span.stream, bytes_written(record) - before);
        }
        if (!recordevents_have_room(&record->events)) {
            break;
        }
    }
    return 0;
}

/* Where short lives are left out, events wait in the buffers until it is known what ends so soon,
 * unless those are needed, or too many wait: then what is known by now decides. */
static int cull_due(struct record *record, bool ended, enum flush flush) {
    uint64_t waits_ns = record->events.cull.below_ns + CULL_MARGIN_MS * MS;
    uint64_t time_ns = claim_time_ns(record->claim);
    uint64_t until_ns = time_ns > waits_ns ? time_ns - waits_ns : 0;
    uint64_t most = record->recording->cull_pending; /* blocks that wait, as the user wants */
    if (ended || flush == FLUSH_FULL) {
        until_ns = UINT64_MAX;
    } else if (flush == FLUSH_BLOCKS && time_ns < record->culled_ns + CULL_MS * MS) {
        return 0;
    }
    record->culled_ns = time_ns;
    if (recordevents_note(&record->events, ended) != 0) {
        return -1;
    }
    if (most != 0 && record->events.cull.noted.count > most) {
        until_ns = UINT64_MAX;
        flush = FLUSH_ALL;
    }
    return write_due(record, ended, flush, until_ns);
}

/* Empties the buffers as far as it is time. 0 or -1. */
static int drain_all(struct record *record, bool ended) {
    enum flush flush = choose_flush(record, ended, clock_now_ns());
    bool due;
    if (drain_look(&record->events.drain) != 0) {
        return error_set(&record->trouble, "out of memory while recording");
    }
    due = any_is_due(record, ended, flush);
    record->wait_ms = due ? SHORT_WAIT_MS : record->wait_ms * 2;
    record->wait_ms = record->wait_ms < LONG_WAIT_MS ? record->wait_ms : LONG_WAIT_MS;
    if (!due) {
        return 0;
    }
    return record->events.cull.below_ns != 0 ? cull_due(record, ended, flush)
                                             : write_due(record, ended, flush, UINT64_MAX);
}

/* For readers of a file that is being written, or never finished. */
static int write_tables(struct record *record) {
    uint64_t time_ns = claim_time_ns(record->claim);
    uint64_t interval_ns = time_ns / TABLES_A_LIFE;
    if (time_ns < record->tables_ns) {
        return 0;
    }
    interval_ns = interval_ns > TABLES_MS * MS ? interval_ns : TABLES_MS * MS;
    record->tables_ns = time_ns + interval_ns;
    recordparts_reserve(&record->events.parts);
    return recordparts_write_tables(&record->events.parts);
}

void record_mark(struct record *record, uint64_t time_ns, const char *text) {
    struct wanted_marks *wanted = &record->wanted;
    pthread_mutex_lock(&wanted->lock);
    if (wanted->count < sizeof wanted->marks / sizeof wanted->marks[0]) {
        wanted->marks[wanted->count].time_ns = time_ns;
        snprintf(wanted->marks[wanted->count].text, sizeof wanted->marks[0].text, "%s", text);
        wanted->count++;
    }
    pthread_mutex_unlock(&wanted->lock);
}

static struct memtrace_asked_marks *asked_marks(const struct record *record) {
    struct memtrace_chunk *segment = record->events.drain.segments[0];
    return segment != NULL ? memtrace_asked_marks_in(segment) : NULL;
}

/* What makes no sense was not written by who asks. */
static bool asked_marks_make_sense(uint64_t asked, uint64_t taken) {
    return asked >= taken && asked - taken <= MEMTRACE_ASKED_MARKS;
}

/* New ones have this time. */
static void asked_marks_look(struct record *record, uint64_t time_ns) {
    struct memtrace_asked_marks *marks = asked_marks(record);
    struct asked_marks *known = &record->asked;
    uint64_t asked;
    uint64_t taken;
    if (marks == NULL || (asked = claim_load_u64(&marks->asked)) == known->seen) {
        return;
    }
    taken = claim_load_u64(&marks->taken);
    if (!asked_marks_make_sense(asked, taken)) {
        __atomic_store_n(&marks->taken, asked, __ATOMIC_RELEASE);
        taken = asked;
    }
    for (uint64_t n = taken > known->seen ? taken : known->seen; n < asked; n++) {
        known->time_ns[n % MEMTRACE_ASKED_MARKS] = time_ns;
    }
    known->seen = asked;
}

/* Writes what was there at the last look. 0 or -1. */
static int asked_marks_write(struct record *record) {
    struct memtrace_asked_marks *marks = asked_marks(record);
    const struct asked_marks *known = &record->asked;
    uint64_t taken = marks != NULL ? claim_load_u64(&marks->taken) : known->seen;
    for (; taken < known->seen && asked_marks_make_sense(known->seen, taken); taken++) {
        char text[MEMTRACE_ASKED_MARK_BYTES];
        memcpy(text, marks->text[taken % MEMTRACE_ASKED_MARKS], sizeof text - 1);
        text[sizeof text - 1] = '\0';
        if (recordevents_mark(&record->events, known->time_ns[taken % MEMTRACE_ASKED_MARKS],
                              text) != 0) {
            return -1;
        }
        __atomic_store_n(&marks->taken, taken + 1, __ATOMIC_RELEASE);
    }
    return 0;
}

static int record_write_marks(struct record *record) {
    struct wanted_marks *wanted = &record->wanted;
    int result = 0;
    pthread_mutex_lock(&wanted->lock);
    for (size_t i = 0; result == 0 && i < wanted->count; i++) {
        result =
            recordevents_mark(&record->events, wanted->marks[i].time_ns, wanted->marks[i].text);
    }
    wanted->count = 0;
    pthread_mutex_unlock(&wanted->lock);
    return result == 0 ? asked_marks_write(record) : result;
}

static void mind_duration(struct record *record) {
    uint64_t most = record->recording->duration_ns;
    if (most != 0 && claim_time_ns(record->claim) >= most &&
        __atomic_exchange_n(&record->recording->state, MEMTRACE_RECORD_STOPPED, __ATOMIC_ACQ_REL) !=
            MEMTRACE_RECORD_STOPPED) {
        record_mark(record, most, "recording: its duration is over");
    }
}

/* `ended`: nobody adds to the buffers any more. */
static void round_of(struct record *record, bool ended) {
    recordevents_beat(&record->events);
    int64_t live = __atomic_load_n(&record->claim->header->live_bytes, __ATOMIC_RELAXED);
    mind_duration(record);
    bool looks = record->recording->embed != MEMTRACE_EMBED_NONE && !ended &&
                 modulefiles_are_new(&record->modules, record->claim);
    if ((looks || clock_now_ns() - record->events.refreshed_ns >= REFRESH_MS * MS) &&
        recordevents_refresh(&record->events) != 0) {
        record_stop(record);
    }
    if (looks) {
        modulefiles_look(&record->modules, record->claim, record->events.profile);
    }
    recordgap_look(&record->gap, &record->events, claim_time_ns(record->claim));
    asked_marks_look(record, claim_time_ns(record->claim));
    if (!record->stopped && !recordevents_have_room(&record->events)) {
        record->wait_ms = LONG_WAIT_MS; /* until some of it was sent */
        return;
    }
    if (!record->stopped &&
        (recordparts_rotate(&record->events.parts) != 0 || drain_all(record, ended) != 0 ||
         record_write_marks(record) != 0 ||
         recordgap_write(&record->gap, &record->events, ended) != 0 ||
         recordthin_write(&record->events.thin, &record->events.parts.file,
                          claim_time_ns(record->claim), &record->trouble) != 0 ||
         recordsample_tick(&record->sample, &record->events.parts.file,
                           claim_time_ns(record->claim), live > 0 ? (uint64_t)live : 0, ended,
                           &record->trouble) != 0 ||
         write_tables(record) != 0)) {
        record_stop(record);
    }
    recordslices_note_part(record->slices);
}

static void *record_run(void *argument) {
    struct record *record = argument;
    struct pollfd wake = {.fd = record->wake, .events = POLLIN};
    while (!__atomic_load_n(&record->ended, __ATOMIC_ACQUIRE)) {
        round_of(record, false);
        poll(&wake, 1, record->stopped ? -1 : (int)record->wait_ms);
    }
    return NULL;
}

/* --- life ------------------------------------------------------------------------------------- */

static void record_release(struct record *record) {
    recordslices_free(record->slices);
    modulefiles_close(&record->modules);
    recordsample_close(&record->sample);
    recordevents_close(&record->events);
    scope_close(&record->wake);
    pthread_mutex_destroy(&record->wanted.lock);
    free(record->small_ns);
    free(record);
}

struct record *record_open(const struct claim *claim, struct error *error) {
    struct record *record = calloc(1, sizeof *record);
    if (record == NULL) {
        error_set(error, "out of memory while recording");
        return NULL;
    }
    record->claim = claim;
    record->recording = claim_recording(claim);
    pthread_mutex_init(&record->wanted.lock, NULL);
    record->wait_ms = SHORT_WAIT_MS;
    record->flushed_ns = clock_now_ns();
    record->came_late = claim_load_u32(&record->recording->state) == MEMTRACE_RECORD_STOPPED;
    recordsample_open(&record->sample, claim->region.pid);
    record->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (record->wake < 0) {
        error_set(&record->trouble, "cannot record: %s", strerror(errno));
    }
    if (recordevents_open(&record->events, claim, &record->trouble) != 0 || record->wake < 0) {
        error_set(error, "%s", record->trouble.message);
        record_stop(record);
        record_release(record);
        return NULL;
    }
    recordgap_open(&record->gap, &record->events);
    record->news = record->trouble.message[0] != '\0';
    record->slices = recordslices_new(&record->events.parts);
    recordevents_beat(&record->events);
    return record;
}

int record_start(struct record *record, struct error *error) {
    int reason;
    if (record->running) {
        return 0;
    }
    reason = pthread_create(&record->thread, NULL, record_run, record);
    if (reason != 0) {
        return error_set(error, "cannot start a thread: %s", strerror(reason));
    }
    record->running = true;
    recordslices_start(record->slices);
    return 0;
}

static void record_end_thread(struct record *record) {
    uint64_t one = 1;
    if (record->running) {
        __atomic_store_n(&record->ended, true, __ATOMIC_RELEASE);
        if (write(record->wake, &one, sizeof one) == (ssize_t)sizeof one) {
            pthread_join(record->thread, NULL);
        }
        record->running = false;
    }
}

const char *record_news(struct record *record) {
    return __atomic_exchange_n(&record->news, false, __ATOMIC_ACQ_REL) ? record->trouble.message
                                                                       : NULL;
}

/* A profile of the same region is to hold no buffers. */
static void free_buffers(const struct record *record) {
    for (size_t i = 0; i < record->events.profile->segment_count; i++) {
        const struct profile_segment *segment = &record->events.profile->segments[i];
        if (segment->kind == MEMTRACE_SEGMENT_EVENTS && segment->size > MEMTRACE_CHUNK_BYTES &&
            fallocate(record->claim->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                      (off_t)(segment->offset + MEMTRACE_CHUNK_BYTES),
                      (off_t)(segment->size - MEMTRACE_CHUNK_BYTES)) != 0) {
            return; /* they are only of no use */
        }
    }
}

/* Program files. */
static int embed_in(struct record *record, struct recordfile *file, unsigned *left_out) {
    return modulefiles_embed(&record->modules, record->events.profile,
                             (enum memtrace_embed)record->recording->embed, file,
                             claim_time_ns(record->claim), left_out, &record->trouble);
}

/* Parts that were closed before get the files at the end, too, so that each can be read alone and
 * the program does not wait for it. One that was taken away meanwhile is not missed. */
static int embed_earlier(struct record *record) {
    const struct recordparts *parts = &record->events.parts;
    enum memtrace_embed what = (enum memtrace_embed)record->recording->embed;
    int result = 0;
    for (uint32_t part = 0; part < parts->header.part && result == 0 && what != MEMTRACE_EMBED_NONE;
         part++) {
        struct recordfile file;
        unsigned left_out;
        result = recordparts_reopen(parts, part, &file);
        if (result > 0) {
            result = embed_in(record, &file, &left_out);
            result |= recordfile_close(&file, &record->trouble);
        }
    }
    return result;
}

static int embed(struct record *record) {
    struct number number;
    unsigned left_out;
    int result = embed_in(record, &record->events.parts.file, &left_out);
    if (result == 0 && left_out != 0) {
        error_set(&record->trouble,
                  "too large to go into the recording, which needs them to be read with names: %s "
                  "of the program",
                  number_items(&number, left_out, "file"));
        record->news = true;
    }
    return result;
}

/* The end of a whole recording. */
static int record_close_parts(struct record *record) {
    struct recordparts *parts = &record->events.parts;
    if (embed_earlier(record) != 0 || embed(record) != 0 || recordparts_write_tables(parts) != 0 ||
        recordgap_write_totals(&record->gap, &record->events) != 0) {
        return -1;
    }
    recordslices_write(record->slices, &parts->file);
    return recordfile_close(&parts->file, parts->error);
}

/* ---- The end of what is sent ---- */

bool (*record_lingers)(uint64_t since_ns);

/* Others than who sends it do not wait long. */
static bool lingers(uint64_t since_ns) {
    const struct timespec pause = {.tv_nsec = LONG_WAIT_MS * MS};
    if (record_lingers != NULL) {
        return record_lingers(since_ns);
    }
    nanosleep(&pause, NULL);
    return clock_now_ns() - since_ns < LINGER_MS * MS;
}

/* A chunk that its thread took and put nothing in stays, and is none. */
static bool has_rest(struct record *record) {
    struct drain_span span = {0};
    if (record->stopped || drain_look(&record->events.drain) != 0) {
        return false;
    }
    while (drain_next_span(&record->events.drain, true, &span)) {
        if (span.words != 0) {
            return true;
        }
    }
    return false;
}

/* Where only so much may wait to be sent, also now: writes as what is sent makes room. */
static void write_rest(struct record *record) {
    uint64_t since_ns = clock_now_ns();
    uint64_t lost = record->gap.allocs + record->gap.frees;
    struct number number;
    do {
        round_of(record, true);
    } while (has_rest(record) && (recordevents_have_room(&record->events) || lingers(since_ns)));
    if (!has_rest(record) || recordevents_drop(&record->events) != 0) {
        return;
    }
    recordgap_look(&record->gap, &record->events, claim_time_ns(record->claim));
    lost = record->gap.allocs + record->gap.frees - lost;
    error_set(&record->trouble,
              "%.200s: what waits to be sent takes all that --queue allows; %s at the program's "
              "end are lost",
              record->events.parts.path, number_items(&number, lost, "event"));
    record->news = true;
}

void record_finish(struct record *record, struct record_result *result) {
    struct memtrace_asked_marks *marks;
    record_end_thread(record);
    record->events.parts.is_left = record_is_ending(record->recording);
    record->events.refreshed_ns = record->events.seen_end = 0;
    recordthin_end(&record->events.thin, claim_time_ns(record->claim));
    if (record->recording->queue_bytes != 0) {
        write_rest(record);
    }
    record->events.is_ending = true;
    round_of(record, true);
    if (!record->stopped && record_close_parts(record) != 0) {
        record_stop(record);
    }
    if (record->stopped) { /* what is left to say is small, there may be room for it */
        struct error ignored;
        record->events.error = record->events.parts.error = &ignored;
        recordgap_write(&record->gap, &record->events, true);
        recordthin_write(&record->events.thin, &record->events.parts.file,
                         claim_time_ns(record->claim), &ignored);
        recordgap_write_totals(&record->gap, &record->events);
        recordparts_close(&record->events.parts);
    }
    *result = (struct record_result){
        .events = record->events.count,
        .bytes = record->events.parts.earlier_bytes + record->events.parts.file.size,
        .lost_allocs = claim_load_u64(&record->recording->lost_allocs),
        .lost_frees = claim_load_u64(&record->recording->lost_frees),
        .parts = record->events.parts.header.part + 1,
    };
    result->is_queue = record->recording->queue_bytes != 0;
    result->is_thinned = (record->recording->flags & MEMTRACE_RECORDING_THINNED) != 0;
    result->stopped = record->stopped || record->came_late;
    snprintf(result->path, sizeof result->path, "%s", record->events.parts.path);
    if (record_news(record) != NULL) {
        result->trouble = record->trouble;
    }
    marks = asked_marks(record);
    if (marks != NULL) { /* what could not be written is not for the next recording */
        __atomic_store_n(&marks->taken, claim_load_u64(&marks->asked), __ATOMIC_RELEASE);
    }
    free_buffers(record);
    record_release(record);
}

void record_drop(struct record *record) {
    unlink(record->events.parts.file.path);
    record_abandon(record);
}

void record_abandon(struct record *record) {
    if (record != NULL) {
        record_end_thread(record);
        record_release(record);
    }
}
