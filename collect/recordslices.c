/* SPDX-License-Identifier: MIT */
/* recordslices.c: see recordslices.h. */
#include "collect/recordslices.h"

#include "analyze/base/array.h"
#include "analyze/base/scope.h"
#include "analyze/base/timedwait.h"
#include "analyze/window/wholemodel.h"
#include "analyze/window/wholereplay.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    LOOK_MS = 250,
    REST_MS = 8000, /* at most, where processors are wanted by others */
    RESTARTS = 3,
    LOOK_EVENTS = 1 << 22, /* so many at once */
    CROWDED_NS = 5000000,
};

struct recordslices {
    const struct recordparts *parts;
    struct recording **recordings; /* of the parts, opened by the thread */
    size_t count, room;
    struct model *model; /* the recording's tables, as of when they had node_blocks */
    uint64_t node_blocks;
    struct wholereplay *replay;
    unsigned restarts; /* since something came too late */
    bool is_given_up;
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t wake;
    uint32_t part_count;
    bool has_ended;
};

struct recordslices *recordslices_new(const struct recordparts *parts) {
    struct recordslices *slices;
    if ((parts->recording->flags & MEMTRACE_RECORDING_NO_SLICES) != 0) {
        return NULL;
    }
    slices = calloc(1, sizeof *slices);
    if (slices != NULL) {
        slices->parts = parts;
        slices->part_count = parts->header.part + 1;
        slices->replay = wholereplay_new();
        slices->is_given_up = slices->replay == NULL;
        pthread_mutex_init(&slices->lock, NULL);
        timedwait_init(&slices->wake);
    }
    return slices;
}

/* ---- What is in the files ---- */

static void give_up(struct recordslices *slices) {
    wholereplay_free(slices->replay);
    slices->replay = NULL;
    slices->is_given_up = true;
}

static int recordslices_open_parts(struct recordslices *slices, uint32_t part_count) {
    while (slices->count < part_count) {
        char path[sizeof slices->parts->file.path];
        recordparts_path(slices->parts, (uint32_t)slices->count, path, sizeof path);
        if (array_grow(&slices->recordings, &slices->room, slices->count,
                       sizeof *slices->recordings) != 0 ||
            (slices->recordings[slices->count] = recording_open(path, NULL)) == NULL) {
            return -1;
        }
        slices->count++;
    }
    return 0;
}

static struct timeorder_parts parts_of(const struct recordslices *slices) {
    return (struct timeorder_parts){(const struct recording *const *)slices->recordings,
                                    slices->count};
}

static uint64_t count_blocks(struct timeorder_parts parts, enum memtrace_block_kind kind) {
    uint64_t count = 0;
    for (size_t part = 0; part < parts.count; part++) {
        for (size_t i = 0; i < parts.items[part]->block_count; i++) {
            count += parts.items[part]->blocks[i].block.kind == kind;
        }
    }
    return count;
}

/* Sees what was added. 0 or -1. */
static int recordslices_refresh(struct recordslices *slices, uint32_t part_count) {
    size_t open = slices->count;
    uint64_t node_blocks;
    for (size_t i = open != 0 ? open - 1 : 0; i < open; i++) { /* those before it are whole */
        if (recording_refresh(slices->recordings[i], NULL) != 0) {
            return -1;
        }
    }
    if (recordslices_open_parts(slices, part_count) != 0) {
        return -1;
    }
    node_blocks = count_blocks(parts_of(slices), MEMTRACE_BLOCK_NODES);
    if (slices->model == NULL || node_blocks != slices->node_blocks) {
        model_free(slices->model);
        slices->model = wholemodel_tables(parts_of(slices), NULL);
        slices->node_blocks = node_blocks;
    }
    return slices->model != NULL && slices->model->node_count <= RECORDSLICES_CONTEXTS ? 0 : -1;
}

/* ---- While more is written ---- */

/* While the program runs: a second thread would only share its work out to one more of the
 * processors that the program needs, and their caches. */
static const struct replay_options background = {.is_alone = true};

/* Goes through some events, if there are enough of which all is there. Whether there were. */
static bool recordslices_advance(struct recordslices *slices) {
    struct timeorder_parts parts = parts_of(slices);
    uint64_t settled_ns = wholereplay_settled(parts);
    uint64_t enough = LOOK_EVENTS;
    enum wholereplay_result result;
    uint64_t edge_ns;
    bool is_enough;
    enough = enough > 2 * slices->model->node_count ? enough : 2 * slices->model->node_count;
    edge_ns = index_first_edge(parts, slices->replay->until_ns, enough);
    is_enough = edge_ns != 0 && edge_ns <= settled_ns;
    if (is_enough) {
        result = wholereplay_run(slices->replay, slices->model, parts, edge_ns, &background);
        if (result == WHOLEREPLAY_ANEW && slices->restarts++ < RESTARTS) {
            wholereplay_free(slices->replay);
            slices->replay = wholereplay_new();
        } else if (result != WHOLEREPLAY_OK ||
                   pairing_living(slices->replay->pass->pairing) > RECORDSLICES_BLOCKS) {
            give_up(slices);
            slices->is_given_up = result != WHOLEREPLAY_ANEW; /* then the close does it all */
        }
    }
    return is_enough;
}

static bool wait_for_more(struct recordslices *slices, unsigned wait_ms, uint32_t *part_count) {
    struct timespec until = timedwait_until(wait_ms);
    bool goes_on;
    pthread_mutex_lock(&slices->lock);
    if (wait_ms != 0 && !slices->has_ended) {
        pthread_cond_timedwait(&slices->wake, &slices->lock, &until);
    }
    goes_on = !slices->has_ended;
    *part_count = slices->part_count;
    pthread_mutex_unlock(&slices->lock);
    return goes_on;
}

/* How long this thread could have run and a processor had others to run, so far (the second number
 * of schedstat, Documentation/scheduler/sched-stats of the kernel). 0: the kernel does not say. */
static uint64_t read_delay(void) {
    unsigned long long ran_ns;
    unsigned long long waited_ns;
    SCOPE_FILE FILE *file = fopen("/proc/thread-self/schedstat", "re");
    return file != NULL && fscanf(file, "%llu %llu", &ran_ns, &waited_ns) == 2 ? waited_ns : 0;
}

/* Whether all processors are in use: others came before this thread since the last call. What it
 * did then it would do at the cost of the program, whose caches it shares. */
static bool is_crowded(uint64_t *delay_ns) {
    uint64_t before_ns = *delay_ns;
    *delay_ns = read_delay();
    return *delay_ns - before_ns > CROWDED_NS;
}

static void *recordslices_run(void *argument) {
    struct recordslices *slices = argument;
    const struct sched_param lowest = {0};
    uint64_t delay_ns = read_delay();
    unsigned rest_ms = LOOK_MS;
    bool had_enough = false;
    uint32_t part_count;
    pthread_setschedparam(pthread_self(), SCHED_IDLE, &lowest); /* threads made here inherit it */
    while (slices->replay != NULL && wait_for_more(slices, had_enough ? 0 : rest_ms, &part_count)) {
        if (is_crowded(&delay_ns)) {
            had_enough = false;
            rest_ms = rest_ms < REST_MS / 4 ? 4 * rest_ms : REST_MS;
        } else if (recordslices_refresh(slices, part_count) != 0) {
            give_up(slices);
        } else {
            rest_ms = rest_ms > 2 * LOOK_MS ? rest_ms / 2 : LOOK_MS;
            had_enough = recordslices_advance(slices);
        }
    }
    return NULL;
}

void recordslices_start(struct recordslices *slices) {
    if (slices != NULL) {
        slices->has_thread = pthread_create(&slices->thread, NULL, recordslices_run, slices) == 0;
    }
}

void recordslices_note_part(struct recordslices *slices) {
    if (slices != NULL) {
        pthread_mutex_lock(&slices->lock);
        slices->part_count = slices->parts->header.part + 1;
        pthread_mutex_unlock(&slices->lock);
    }
}

static void recordslices_end_thread(struct recordslices *slices) {
    if (slices->has_thread) {
        pthread_mutex_lock(&slices->lock);
        slices->has_ended = true;
        pthread_cond_signal(&slices->wake);
        pthread_mutex_unlock(&slices->lock);
        pthread_join(slices->thread, NULL);
        slices->has_thread = false;
    }
}

/* ---- The close ---- */

/* The model of all of it, whose index has the sum of all slices. NULL: it cannot be had. */
static struct model *recordslices_finish(struct recordslices *slices) {
    struct timeorder_parts parts = parts_of(slices);
    struct model *model = slices->model;
    struct wholereplay *replay;
    enum wholereplay_result result = WHOLEREPLAY_ANEW;
    for (int turn = 0; turn < 2 && result == WHOLEREPLAY_ANEW; turn++) {
        if (turn != 0 || slices->replay == NULL) {
            wholereplay_free(slices->replay);
            slices->replay = wholereplay_new();
        }
        result = slices->replay != NULL
                     ? wholereplay_run(slices->replay, model, parts, UINT64_MAX, NULL)
                     : WHOLEREPLAY_FAILED;
    }
    if (result != WHOLEREPLAY_OK) {
        return NULL;
    }
    replay = slices->replay;
    replay->index->keeps_all = true;
    slices->replay = NULL; /* it is the model's from here on */
    slices->model = NULL;
    if (wholemodel_finish(model, parts, replay) != 0) {
        model_free(model);
        return NULL;
    }
    return model;
}

/* Coarser until they take no more than their share of the files. */
static void recordslices_append(const struct recordslices *slices, struct index *index,
                                struct recordfile *file) {
    struct timeorder_parts parts = parts_of(slices);
    uint64_t most = (slices->parts->earlier_bytes + file->size) / RECORDSLICES_SHARE;
    ZSTD_CCtx *zstd = ZSTD_createCCtx();
    bool is_done = zstd == NULL;
    most = most > RECORDSLICES_BYTES ? most : RECORDSLICES_BYTES;
    while (!is_done) {
        struct memtrace_block_header block = {.kind = MEMTRACE_BLOCK_SLICES};
        struct varint_writer bytes = {0};
        unsigned char *packed;
        size_t size;
        index_pack(index, index_cover(parts, UINT64_MAX), &bytes);
        packed = malloc(BLOCK_PACK_BOUND(bytes.size));
        is_done = bytes.failed || packed == NULL;
        size = is_done ? 0
                       : block_pack(zstd, MEMTRACE_BLOCK_SLICES, bytes.bytes, bytes.size,
                                    file->level, packed);
        if (!is_done && bytes.size <= MEMTRACE_BLOCK_MOST && size != 0 &&
            size + sizeof block <= most) {
            block.items = (uint32_t)index->count;
            recordfile_append(file, &block, bytes.bytes, bytes.size, NULL);
            is_done = true;
        }
        free(packed);
        free(bytes.bytes);
        is_done = is_done || index->count == 1 || index_halve(index) != 0;
    }
    ZSTD_freeCCtx(zstd);
}

void recordslices_write(struct recordslices *slices, struct recordfile *file) {
    struct model *model;
    if (slices == NULL) {
        return;
    }
    recordslices_end_thread(slices);
    if (slices->is_given_up || recordslices_refresh(slices, slices->part_count) != 0 ||
        index_count_events(parts_of(slices)) < RECORDSLICES_EVENTS) {
        return;
    }
    model = recordslices_finish(slices);
    if (model != NULL) {
        recordslices_append(slices, model->index, file);
    }
    model_free(model);
}

void recordslices_free(struct recordslices *slices) {
    if (slices == NULL) {
        return;
    }
    recordslices_end_thread(slices);
    wholereplay_free(slices->replay);
    model_free(slices->model);
    for (size_t i = 0; i < slices->count; i++) {
        recording_close(slices->recordings[i]);
    }
    free(slices->recordings);
    pthread_mutex_destroy(&slices->lock);
    pthread_cond_destroy(&slices->wake);
    free(slices);
}
