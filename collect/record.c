/* SPDX-License-Identifier: MIT */
/* record.c: the rounds of a recording. See record.h. */
#include "collect/record.h"

#include "analyze/read/eventcode.h"
#include "collect/drain.h"
#include "collect/embed.h"
#include "collect/recordparts.h"
#include "collect/recordsample.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define MS UINT64_C(1000000)

enum {
    BLOCK_EVENTS = 1 << 16,
    BLOCK_BYTES = 16 << 20,             /* of marks' texts, in the end */
    BLOCK_WORDS = BLOCK_EVENTS * 3 / 2, /* as many words as a block of events usually has */
    BLOCK_NODES = 1 << 18,
    TABLES_MS = 1000,   /* how soon a reader of an unfinished file sees new threads and totals */
    TABLES_A_LIFE = 50, /* from 50 s on every fiftieth of the life */
    FLUSH_MS = 1000,    /* how long events stay in a buffer that does not fill */
    FEW_WORDS = 256, /* ... these eight times as long, so that quiet threads make no tiny blocks */
    FEW_FLUSHES = 8,
    REFRESH_MS = 20,
    SHORT_WAIT_MS = 1,
    LONG_WAIT_MS = 16,
};

struct record {
    const struct held *held;
    struct memtrace_recording *recording; /* in the region */
    struct profile *profile;              /* the region, mapped read-only */
    struct recordparts parts;             /* its files */
    struct drain drain;
    struct recordtables tables;
    struct recordsample sample;
    struct event_encoder *encoder;
    uint64_t seen_end; /* header.end at the last refresh */
    uint64_t refreshed_ns;
    uint64_t flushed_ns;
    unsigned flushes;
    uint64_t tables_ns; /* when they are due again */
    unsigned wait_ms;
    uint64_t events;
    bool stopped; /* nothing more can be written */
    struct error trouble;
    bool news; /* the trouble is there and was not told; not changed any more while stopped */
    pthread_t thread;
    bool running;
    bool ended; /* by who ends the thread */
    int wake;   /* eventfd: the thread is to look at `ended` */
};

static uint64_t clock_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The program's threads wait for free buffers only while this goes on. */
static void beat(struct record *record) {
    __atomic_store_n(&record->recording->heartbeat_ns, clock_now(), __ATOMIC_RELEASE);
}

bool record_wanted(const struct held *held) {
    const struct memtrace_recording *recording = held_recording(held);
    return held_load_u32(&recording->state) != MEMTRACE_RECORD_NONE && recording->path[0] == '/';
}

/* --- blocks ----------------------------------------------------------------------------------- */

static int refresh(struct record *record) {
    uint64_t end = held_load_u64(&record->held->header->end);
    record->refreshed_ns = clock_now();
    if (end == record->seen_end) {
        return 0;
    }
    record->seen_end = end;
    if (record->profile->live && profile_refresh(record->profile, &record->trouble) != 0) {
        return -1;
    }
    drain_map(&record->drain, record->profile, record->held->fd);
    recordtables_refresh(&record->tables);
    return 0;
}

/* The context and its ancestors come before the event. One that is nowhere to be found is damage
 * that a reader has to live with. */
static int note_context(struct record *record, uint32_t context) {
    int result = recordtables_note(&record->tables, context);
    if (result > 0 && refresh(record) == 0) {
        result = recordtables_note(&record->tables, context);
    }
    return result < 0 ? error_set(&record->trouble, "out of memory while recording") : 0;
}

static int add_event(struct record *record, const struct event *event) {
    if (!recordtables_has(&record->tables, event->context) &&
        note_context(record, event->context) != 0) {
        return -1;
    }
    if (record->tables.node_count >= BLOCK_NODES && recordparts_write_nodes(&record->parts) != 0) {
        return -1;
    }
    if (event_encoder_add(record->encoder, event) != 0) {
        return error_set(&record->trouble, "out of memory while recording");
    }
    return 0;
}

/* The bytes are asked for now and then: no text of a mark is longer than 64 KiB. */
static bool is_full(const struct event_encoder *encoder) {
    size_t count = event_encoder_count(encoder);
    return count >= BLOCK_EVENTS ||
           (count % 256 == 0 && event_encoder_bytes(encoder) >= BLOCK_BYTES);
}

/* Encodes what follows the cursor. 0 or -1. */
static int encode(struct record *record, struct drain_cursor *cursor) {
    struct event event;
    int found = drain_next(cursor, &event);
    event_encoder_start(record->encoder, cursor->span->thread,
                        found > 0 && event.kind == EVENT_ALLOC ? event.block.number
                                                               : drain_number(cursor));
    while (found > 0) {
        if (add_event(record, &event) != 0) {
            return -1;
        }
        found = !is_full(record->encoder) && drain_next(cursor, &event) > 0;
    }
    return 0;
}

/* One block of what follows the cursor; also one without events, where a whole buffer had none, so
 * that the blocks of a stream join. 1; 0: there is nothing more for now; -1: it failed. */
static int write_events(struct record *record, struct drain_cursor *cursor) {
    struct drain_place first = drain_here(cursor);
    struct drain_place end;
    struct memtrace_block block = {.kind = MEMTRACE_BLOCK_EVENTS};
    size_t size;
    const void *payload;
    if (encode(record, cursor) != 0) {
        return -1;
    }
    end = drain_here(cursor);
    if (event_encoder_count(record->encoder) == 0 && end.sequence == first.sequence) {
        return 0;
    }
    payload = event_encoder_finish(record->encoder, &size, &block);
    if (payload == NULL) {
        return error_set(&record->trouble, "out of memory while recording");
    }
    block.stream = cursor->span->stream;
    block.thread = cursor->span->thread;
    block.first_sequence = first.sequence;
    block.first_word = (uint16_t)first.word;
    block.end_sequence = end.sequence;
    block.end_word = (uint16_t)end.word;
    if (recordparts_write_nodes(&record->parts) != 0 ||
        recordfile_append(&record->parts.file, &block, payload, size, &record->trouble) != 0) {
        return -1;
    }
    record->events += block.items;
    drain_commit(cursor);
    return 1;
}

static int write_span(struct record *record, const struct drain_span *span) {
    struct drain_cursor cursor;
    int result;
    drain_start(&record->drain, span, &cursor);
    do {
        beat(record);
        result = write_events(record, &cursor);
    } while (result > 0);
    return result;
}

/* --- rounds ----------------------------------------------------------------------------------- */

/* Tells the program that no more is wanted; what is in the buffers is lost. */
static void stop(struct record *record) {
    record->stopped = true;
    __atomic_store_n(&record->news, true, __ATOMIC_RELEASE);
    __atomic_store_n(&record->recording->state, MEMTRACE_RECORD_STOPPED, __ATOMIC_RELEASE);
}

/* Whose turn it is. */
enum flush { FLUSH_BLOCKS, FLUSH_FULL, FLUSH_MOST, FLUSH_ALL };

static enum flush choose_flush(struct record *record, bool ended, uint64_t now) {
    if (ended) {
        return FLUSH_ALL;
    }
    if (now - record->flushed_ns >= FLUSH_MS * MS) {
        record->flushed_ns = now;
        return ++record->flushes % FEW_FLUSHES == 0 ? FLUSH_ALL : FLUSH_MOST;
    }
    return drain_is_tight(&record->drain) ? FLUSH_FULL : FLUSH_BLOCKS;
}

static bool is_due(const struct drain_span *span, enum flush flush) {
    return span->words >= BLOCK_WORDS || flush == FLUSH_ALL ||
           (flush >= FLUSH_FULL && span->full != 0) ||
           (flush == FLUSH_MOST && span->words >= FEW_WORDS);
}

/* Empties the buffers as far as it is time. 0 or -1. */
static int drain_all(struct record *record, bool ended) {
    struct drain_span span = {0};
    enum flush flush = choose_flush(record, ended, clock_now());
    bool any = false;
    if (drain_look(&record->drain) != 0) {
        return error_set(&record->trouble, "out of memory while recording");
    }
    while (drain_next_span(&record->drain, ended, &span)) {
        if (is_due(&span, flush)) {
            any = true;
            if (write_span(record, &span) != 0) {
                return -1;
            }
        }
    }
    record->wait_ms = any ? SHORT_WAIT_MS : record->wait_ms * 2;
    record->wait_ms = record->wait_ms < LONG_WAIT_MS ? record->wait_ms : LONG_WAIT_MS;
    return 0;
}

/* For readers of a file that is being written, or never finished. */
static int write_tables(struct record *record) {
    uint64_t time_ns = held_time_ns(record->held);
    uint64_t interval_ns = time_ns / TABLES_A_LIFE;
    if (time_ns < record->tables_ns) {
        return 0;
    }
    interval_ns = interval_ns > TABLES_MS * MS ? interval_ns : TABLES_MS * MS;
    record->tables_ns = time_ns + interval_ns;
    return recordparts_write_tables(&record->parts);
}

static int look_at_process(struct record *record, bool ended) {
    int64_t live = __atomic_load_n(&record->held->header->live_bytes, __ATOMIC_RELAXED);
    return recordsample_tick(&record->sample, &record->parts.file, held_time_ns(record->held),
                             live > 0 ? (uint64_t)live : 0, ended, &record->trouble);
}

static void mind_duration(struct record *record) {
    uint64_t most = record->recording->duration_ns;
    if (most != 0 && held_time_ns(record->held) >= most) {
        __atomic_store_n(&record->recording->state, MEMTRACE_RECORD_STOPPED, __ATOMIC_RELEASE);
    }
}

static void round_of(struct record *record, bool ended) {
    beat(record);
    mind_duration(record);
    if (clock_now() - record->refreshed_ns >= REFRESH_MS * MS && refresh(record) != 0) {
        stop(record);
    }
    if (!record->stopped &&
        (recordparts_rotate(&record->parts) != 0 || drain_all(record, ended) != 0 ||
         look_at_process(record, ended) != 0 || write_tables(record) != 0)) {
        stop(record);
    }
}

static void *run(void *argument) {
    struct record *record = argument;
    struct pollfd wake = {.fd = record->wake, .events = POLLIN};
    while (!__atomic_load_n(&record->ended, __ATOMIC_ACQUIRE)) {
        round_of(record, false);
        poll(&wake, 1, (int)record->wait_ms);
    }
    return NULL;
}

/* --- life ------------------------------------------------------------------------------------- */

/* Opens the file and takes in what it holds that somebody else wrote. */
static int open_file(struct record *record) {
    int result = recordparts_open(&record->parts, record->held, &record->tables, &record->trouble);
    record->news = result == 0 && record->trouble.message[0] != '\0';
    for (size_t i = 0; i < record->parts.file.index_count && result == 0; i++) {
        const struct memtrace_block *block = &record->parts.file.index[i].block;
        struct drain_place end = {block->end_sequence, block->end_word};
        if (block->kind == MEMTRACE_BLOCK_EVENTS) {
            result = drain_note_written(&record->drain, block->stream, end);
            record->events += block->items;
        }
    }
    return result;
}

/* By the descriptor: the name may belong to another region by now. */
static struct profile *open_region(const struct held *held, struct error *error) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", held->fd);
    return profile_open(path, error);
}

static int open_parts(struct record *record) {
    record->profile = open_region(record->held, &record->trouble);
    if (record->profile == NULL) {
        return -1;
    }
    record->encoder = event_encoder_new(record->recording->flags);
    record->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (record->encoder == NULL || record->wake < 0 ||
        drain_open(&record->drain, record->recording) != 0 ||
        recordtables_open(&record->tables, record->profile) != 0) {
        return error_set(&record->trouble, "out of memory while recording");
    }
    drain_map(&record->drain, record->profile, record->held->fd);
    return open_file(record);
}

static void release(struct record *record) {
    recordsample_close(&record->sample);
    recordfile_release(&record->parts.file);
    recordtables_close(&record->tables);
    drain_close(&record->drain);
    event_encoder_free(record->encoder);
    profile_close(record->profile);
    if (record->wake >= 0) {
        close(record->wake);
    }
    free(record);
}

struct record *record_open(const struct held *held, struct error *error) {
    struct record *record = calloc(1, sizeof *record);
    if (record == NULL) {
        error_set(error, "out of memory while recording");
        return NULL;
    }
    record->held = held;
    record->recording = held_recording(held);
    record->parts.file = RECORDFILE_NONE;
    record->wake = -1;
    record->wait_ms = SHORT_WAIT_MS;
    recordsample_open(&record->sample, held->region.pid);
    if (open_parts(record) != 0) {
        error_set(error, "%s", record->trouble.message);
        stop(record);
        release(record);
        return NULL;
    }
    beat(record);
    return record;
}

int record_start(struct record *record, struct error *error) {
    int reason = pthread_create(&record->thread, NULL, run, record);
    if (reason != 0) {
        return error_set(error, "cannot start a thread: %s", strerror(reason));
    }
    record->running = true;
    return 0;
}

static void end_thread(struct record *record) {
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
    for (size_t i = 0; i < record->profile->segment_count; i++) {
        const struct profile_segment *segment = &record->profile->segments[i];
        if (segment->kind == MEMTRACE_SEGMENT_EVENTS && segment->size > MEMTRACE_CHUNK_BYTES &&
            fallocate(record->held->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                      (off_t)(segment->offset + MEMTRACE_CHUNK_BYTES),
                      (off_t)(segment->size - MEMTRACE_CHUNK_BYTES)) != 0) {
            return; /* they are only of no use */
        }
    }
}

/* Program files, once, in the last part. */
static int embed(struct record *record) {
    unsigned left_out;
    int result =
        embed_modules(record->profile, (enum memtrace_embed)record->recording->embed,
                      &record->parts.file, held_time_ns(record->held), &left_out, &record->trouble);
    if (result == 0 && left_out != 0) {
        error_set(&record->trouble,
                  "%u of the program's files are too large to go into the recording: it needs them "
                  "to be read with names",
                  left_out);
        record->news = true;
    }
    return result;
}

void record_finish(struct record *record, struct record_result *result) {
    end_thread(record);
    record->refreshed_ns = 0;
    round_of(record, true);
    if (!record->stopped && (embed(record) != 0 || recordparts_close(&record->parts) != 0)) {
        stop(record);
    }
    *result = (struct record_result){
        .events = record->events,
        .bytes = record->parts.earlier_bytes + record->parts.file.size,
        .lost_allocs = held_load_u64(&record->recording->lost_allocs),
        .lost_frees = held_load_u64(&record->recording->lost_frees),
        .parts = record->parts.header.part + 1,
    };
    snprintf(result->path, sizeof result->path, "%s", record->recording->path);
    if (record_news(record) != NULL) {
        result->trouble = record->trouble;
    }
    free_buffers(record);
    release(record);
}

void record_abandon(struct record *record) {
    if (record != NULL) {
        end_thread(record);
        release(record);
    }
}
