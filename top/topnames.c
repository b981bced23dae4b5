/* SPDX-License-Identifier: MIT */
/* topnames.c: see topnames.h. */
#include "top/topnames.h"

#include "analyze/base/array.h"
#include "analyze/base/job.h"
#include "analyze/base/threadstart.h"
#include "analyze/base/timedwait.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    size_t count;
    struct names_frame frames[];
};

/* What the thread does at a time. The names outlive it in its memory. */
struct batch {
    const char *debug_folders;
    struct model *model;
    uint64_t *frames;
    struct entry **entries; /* as many; NULL: out of memory */
    size_t count;
    struct job_memory *memory;
    struct batch *next;
};

struct topnames {
    char *debug_folders;
    const struct names *given;
    struct numbermap entries; /* by frame; `unknown` while they are looked for */
    uint64_t *wanted;
    size_t wanted_count;
    size_t wanted_room;
    uint64_t generation;
    struct batch *done; /* whose names are in `entries` */

    pthread_t thread;
    bool has_thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct batch *batch; /* it is at work on, or has done */
    bool is_found;       /* that one is done */
    bool stops;
};

static struct entry unknown;

/* ---- In the thread ---- */

static void topnames_close_found(void *names) {
    names_close(names);
}

/* A job that keeps what it finds. */
static void find_names(void *what) {
    struct batch *batch = what;
    const struct names_options options = {.debug_folders = batch->debug_folders};
    struct error error;
    struct names *found = names_open(batch->model, &options, &error);
    job_check(found != NULL ? 0 : -1, &error);
    job_undo(topnames_close_found, found);
    if (names_prepare(found, batch->frames, batch->count) != 0) {
        job_fail_memory();
    }
    for (size_t i = 0; i < batch->count; i++) {
        size_t count;
        const struct names_frame *frames = names_frames(found, batch->frames[i], &count);
        struct entry *entry = job_alloc(sizeof *entry + count * sizeof entry->frames[0]);
        entry->count = count;
        for (size_t j = 0; j < count; j++) {
            struct names_frame *frame = &entry->frames[j];
            *frame = frames[j];
            frame->function = frame->function != NULL ? job_string(frame->function) : NULL;
            frame->file = frame->file != NULL ? job_string(frame->file) : NULL;
            frame->module = frame->module != NULL ? job_string(frame->module) : "";
        }
        batch->entries[i] = entry;
    }
    job_undo_now(found);
}

static void *names_work(void *context) {
    struct topnames *names = context;
    pthread_mutex_lock(&names->lock);
    while (!names->stops) {
        struct batch *batch = names->batch;
        if (batch == NULL || names->is_found) {
            pthread_cond_wait(&names->changed, &names->lock);
            continue;
        }
        pthread_mutex_unlock(&names->lock);
        if (job_run(find_names, batch, &batch->memory, NULL) != 0) { /* none are known */
            memset(batch->entries, 0, batch->count * sizeof(struct entry *));
        }
        pthread_mutex_lock(&names->lock);
        names->is_found = true;
        pthread_cond_broadcast(&names->changed);
    }
    pthread_mutex_unlock(&names->lock);
    return NULL;
}

/* ---- Batches ---- */

static void free_batch(struct batch *batch) {
    model_free(batch->model);
    job_free(&batch->memory);
    free(batch->frames);
    free(batch->entries);
    free(batch);
}

/* Of all that is wanted. NULL: not now. */
static struct batch *new_batch(struct topnames *names, const struct profile *profile) {
    struct batch *batch = calloc(1, sizeof *batch);
    if (batch == NULL) {
        return NULL;
    }
    batch->debug_folders = names->debug_folders;
    batch->model = model_load_records(profile, NULL);
    batch->entries = calloc(names->wanted_count, sizeof(struct entry *));
    if (batch->model == NULL || batch->entries == NULL) {
        free_batch(batch);
        return NULL;
    }
    batch->frames = names->wanted;
    batch->count = names->wanted_count;
    names->wanted = NULL;
    names->wanted_count = names->wanted_room = 0;
    return batch;
}

/* Whether there was one. */
static bool topnames_take_batch(struct topnames *names) {
    struct batch *batch = NULL;
    pthread_mutex_lock(&names->lock);
    if (names->is_found) {
        batch = names->batch;
        names->batch = NULL;
        names->is_found = false;
    }
    pthread_mutex_unlock(&names->lock);
    if (batch == NULL) {
        return false;
    }
    for (size_t i = 0; i < batch->count; i++) {
        if (batch->entries[i] != NULL) {
            numbermap_put(&names->entries, batch->frames[i], batch->entries[i]);
        }
    }
    model_free(batch->model);
    batch->model = NULL;
    batch->next = names->done;
    names->done = batch;
    names->generation++;
    return true;
}

bool topnames_look(struct topnames *names, const struct profile *profile) {
    bool is_new = topnames_take_batch(names);
    if (names->wanted_count != 0 && !topnames_is_busy(names)) {
        struct batch *batch = new_batch(names, profile);
        pthread_mutex_lock(&names->lock);
        names->batch = batch;
        pthread_cond_broadcast(&names->changed);
        pthread_mutex_unlock(&names->lock);
    }
    return is_new;
}

bool topnames_is_busy(struct topnames *names) {
    bool is_busy;
    pthread_mutex_lock(&names->lock);
    is_busy = names->batch != NULL;
    pthread_mutex_unlock(&names->lock);
    return is_busy;
}

void topnames_wait(struct topnames *names, unsigned ms) {
    struct timespec until = timedwait_until(ms);
    int result = 0;
    pthread_mutex_lock(&names->lock);
    while (names->batch != NULL && !names->is_found && result == 0) {
        result = pthread_cond_timedwait(&names->changed, &names->lock, &until);
    }
    pthread_mutex_unlock(&names->lock);
}

/* ---- Asking ---- */

struct topnames_found topnames_find(struct topnames *names, uint64_t frame) {
    struct topnames_found found = {0};
    struct entry *entry;
    if (names->given != NULL) {
        found.frames = names_frames(names->given, frame, &found.count);
        return found;
    }
    entry = numbermap_get(&names->entries, frame);
    if (entry != NULL) {
        return (struct topnames_found){entry->frames, entry->count};
    }
    if (array_grow(&names->wanted, &names->wanted_room, names->wanted_count,
                   sizeof *names->wanted) == 0 &&
        numbermap_put(&names->entries, frame, &unknown) == 0) {
        names->wanted[names->wanted_count++] = frame;
    }
    return found;
}

uint64_t topnames_generation(const struct topnames *names) {
    return names->generation;
}

void topnames_give(struct topnames *names, const struct names *given) {
    names->given = given;
    names->generation++;
}

/* ---- Beginning and end ---- */

struct topnames *topnames_start(const char *debug_folders, struct error *error) {
    struct topnames *names = calloc(1, sizeof *names);
    if (names == NULL ||
        (debug_folders != NULL && (names->debug_folders = strdup(debug_folders)) == NULL)) {
        free(names);
        error_set(error, "out of memory");
        return NULL;
    }
    pthread_mutex_init(&names->lock, NULL);
    timedwait_init(&names->changed);
    names->has_thread = threadstart(&names->thread, NULL, names_work, names) == 0;
    if (!names->has_thread) {
        topnames_stop(names);
        error_set(error, "cannot start a thread for names");
        return NULL;
    }
    return names;
}

void topnames_stop(struct topnames *names) {
    if (names == NULL) {
        return;
    }
    pthread_mutex_lock(&names->lock);
    names->stops = true;
    pthread_cond_broadcast(&names->changed);
    pthread_mutex_unlock(&names->lock);
    if (names->has_thread) {
        pthread_join(names->thread, NULL);
    }
    if (names->batch != NULL) {
        free_batch(names->batch);
    }
    for (struct batch *batch = names->done; batch != NULL;) {
        struct batch *next = batch->next;
        free_batch(batch);
        batch = next;
    }
    pthread_cond_destroy(&names->changed);
    pthread_mutex_destroy(&names->lock);
    numbermap_free(&names->entries);
    free(names->wanted);
    free(names->debug_folders);
    free(names);
}
