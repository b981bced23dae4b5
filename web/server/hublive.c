/* SPDX-License-Identifier: MIT */
/*
 * hublive.c: running programs, and recordings that grow. See hubparts.h.
 *
 * Each look makes a model of its own, so that nobody sees numbers change. Looks are as frequent as
 * they are cheap: they take at most a 20th of the time, and none is made where nobody looks. The
 * region of a program stays mapped, so that what it held last can be read when it was killed and
 * its file is gone.
 */
#include "web/server/hubparts.h"

#include "analyze/ask/quantity.h"
#include "analyze/read/recording.h"
#include "analyze/read/region.h"
#include "memtrace/events.h"
#include "web/server/watch.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LOOK_MS = 1000,
    SHARE = 20,        /* of the time is spent at most: 1 / SHARE */
    END_MS = 100,      /* how often it is looked whether the program has ended */
    FINISH_MS = 10000, /* its recording is finished so long after, or never */
};

bool hublive_may_come(const char *name) {
    uint64_t pid;
    return quantity_u64(name, &pid) == 0 && access(name, F_OK) != 0 && pid != 0 &&
           pid <= INT32_MAX && (kill((pid_t)pid, 0) == 0 || errno == EPERM);
}

char *hublive_recording(const struct source *file) {
    struct memtrace_recording recording;
    if (!file->model->live || file->parts.count != 0) {
        return NULL;
    }
    memcpy(&recording, file->model->header.recording, sizeof recording);
    recording.path[sizeof recording.path - 1] = '\0';
    return recording.path[0] == '/' && recording_is(recording.path) ? strdup(recording.path) : NULL;
}

/* ---- Looking ---- */

struct follow {
    struct hub_source *source;
    struct profile *profile; /* of a region; NULL: a recording */
    pid_t pid;
    uint64_t start_ticks;
    uint64_t generation;
    uint64_t asked; /* hub->clock at the last look */
    uint64_t bytes; /* of the recording, at the last look */
    int64_t took_ms;
};

static uint64_t bytes_of(const struct timeorder_parts *parts) {
    uint64_t bytes = 0;
    struct stat status;
    for (size_t i = 0; i < parts->count; i++) {
        bytes += stat(parts->items[i]->path, &status) == 0 ? (uint64_t)status.st_size : 0;
    }
    return bytes;
}

/* Whether anybody follows it, or has asked since the last look. */
static bool is_watched(struct follow *follow) {
    struct hub *hub = follow->source->hub;
    bool is_asked;
    bool is_followed = false;
    pthread_mutex_lock(&hub->lock);
    is_asked = hub->clock != follow->asked;
    pthread_mutex_unlock(&hub->lock);
    pthread_mutex_lock(&hub->listening);
    for (const struct hub_listener *at = hub->listeners; at != NULL; at = at->next) {
        is_followed |= at->source == follow->source->status.number;
    }
    pthread_mutex_unlock(&hub->listening);
    return is_asked || is_followed;
}

/* Its region, or where its profile is by now. */
static const char *place_of(const struct profile *profile, const struct model *model) {
    const char *output = model->header.output;
    return access(profile->path, F_OK) != 0 && access(output, F_OK) == 0 ? output : profile->path;
}

static int load_region(struct follow *follow, struct loaded *loaded, bool runs,
                       struct error *error) {
    struct source *file = &loaded->file;
    *file = (struct source){.process = RUN_NONE};
    if (profile_refresh(follow->profile, error) != 0 ||
        (file->model = model_load(follow->profile, error)) == NULL ||
        (file->path = strdup(place_of(follow->profile, file->model))) == NULL) {
        return -1;
    }
    file->model->live = runs;
    loaded->names = source_names(file, follow->source->hub->options.debug_folders, NULL, error);
    return loaded->names != NULL ? names_settle(loaded->names) : -1;
}

static int load(struct follow *follow, struct loaded *loaded, bool runs) {
    const struct source_choice choice = {0};
    const struct replay_options replay = {.cancel = &follow->source->cancel};
    struct error error;
    return follow->profile != NULL
               ? load_region(follow, loaded, runs, &error)
               : loaded_open(loaded, follow->source->status.path, &choice, &replay, &error);
}

static void tell(const struct follow *follow, const struct model *model) {
    const struct model_totals *totals = &model->totals;
    char data[512];
    snprintf(data, sizeof data,
             "{\"generation\":%" PRIu64 ",\"now_ns\":%" PRIu64 ",\"live_bytes\":%" PRIu64
             ",\"live_blocks\":%" PRIu64 ",\"maximum_bytes\":%" PRIu64 ",\"allocations\":%" PRIu64
             ",\"total_bytes\":%" PRIu64 ",\"frees\":%" PRIu64 "}",
             follow->generation, model->now_ns, totals->live_bytes, totals->live_blocks,
             totals->maximum_bytes, totals->allocations, totals->total_bytes, totals->frees);
    hub_tell(follow->source->hub, follow->source->status.number, NULL, "live", data);
}

/* Makes a new generation the source's. */
static void take(struct follow *follow, struct loaded *loaded, bool is_live) {
    struct hub_source *source = follow->source;
    struct hub *hub = source->hub;
    char *path = strdup(hub_path(&loaded->file));
    pthread_mutex_lock(&hub->lock);
    if (path != NULL) {
        free(source->status.path);
        source->status.path = path;
    }
    loaded->made = HUB_READY;
    source->whole->users--;
    source->whole = loaded;
    source->status.generation = loaded->generation = ++follow->generation;
    source->status.live = is_live;
    follow->asked = hub->clock;
    hub_shrink(hub, hub->options.cache_bytes);
    pthread_mutex_unlock(&hub->lock);
    tell(follow, loaded->file.model);
}

/* What was read of it stays where nothing can be read any more. */
static void look(struct follow *follow, bool runs) {
    struct hub *hub = follow->source->hub;
    int64_t begin = watch_now_ms();
    struct loaded *loaded;
    pthread_mutex_lock(&hub->lock);
    loaded = loaded_new(hub, follow->source->status.number, "", follow->generation);
    pthread_mutex_unlock(&hub->lock);
    if (loaded != NULL && load(follow, loaded, runs) == 0) {
        take(follow, loaded, runs);
    } else {
        pthread_mutex_lock(&hub->lock);
        if (loaded != NULL) {
            loaded_free(loaded);
        }
        follow->source->status.live = runs;
        pthread_mutex_unlock(&hub->lock);
    }
    follow->took_ms = watch_now_ms() - begin;
}

/* ---- Until it ends ---- */

static bool runs_on(const struct follow *follow) {
    return region_alive(follow->pid, follow->start_ticks) &&
           (follow->profile == NULL ||
            profile_load_u32(&profile_header(follow->profile)->state) == MEMTRACE_STATE_RUNNING);
}

/* Whether a collector has done with what the program left. */
static bool is_finished(const struct follow *follow) {
    struct recording *recording;
    bool is_closed;
    if (follow->profile != NULL) {
        return access(follow->profile->path, F_OK) != 0;
    }
    recording = recording_open(follow->source->status.path, NULL);
    is_closed = recording == NULL || recording->closed;
    recording_close(recording);
    return is_closed;
}

/* The program is gone. false: nobody finishes what it left, or the hub is to stop. */
static bool wait_for_collector(struct follow *follow) {
    int64_t give_up_ms = watch_now_ms() + FINISH_MS;
    while (!is_finished(follow)) {
        if (watch_now_ms() > give_up_ms || !hub_sleep(follow->source, watch_now_ms() + END_MS)) {
            return false;
        }
    }
    return true;
}

static bool is_due(struct follow *follow, const struct source *file, int64_t *next_ms) {
    uint64_t bytes;
    if (watch_now_ms() < *next_ms || !is_watched(follow)) {
        return false;
    }
    *next_ms = watch_now_ms() + LOOK_MS;
    if (follow->profile != NULL) {
        return true;
    }
    bytes = bytes_of(&file->parts);
    if (bytes == follow->bytes) {
        return false;
    }
    follow->bytes = bytes;
    return true;
}

static void end(struct follow *follow) {
    struct hub *hub = follow->source->hub;
    pthread_mutex_lock(&hub->lock);
    follow->source->status.live = false;
    pthread_mutex_unlock(&hub->lock);
    hub_tell(hub, follow->source->status.number, NULL, "ended", "{}");
}

static void run_follow(struct follow *follow) {
    int64_t next_ms = watch_now_ms() + LOOK_MS;
    while (runs_on(follow)) {
        if (!hub_sleep(follow->source, watch_now_ms() + END_MS)) {
            return;
        }
        if (is_due(follow, &follow->source->whole->file, &next_ms)) {
            look(follow, true);
            next_ms = watch_now_ms() +
                      (follow->took_ms * SHARE > LOOK_MS ? follow->took_ms * SHARE : LOOK_MS);
        }
    }
    if (follow->profile != NULL) { /* a recording's last events come with its end */
        look(follow, false);
        end(follow);
    }
    if (wait_for_collector(follow) || follow->profile == NULL) {
        look(follow, false);
    }
    if (follow->profile == NULL) {
        end(follow);
    }
}

void hublive_follow(struct hub_source *source) {
    const struct source *file = &source->whole->file;
    const struct model *model = file->model;
    struct follow follow = {.source = source,
                            .generation = 1,
                            .pid = (pid_t)model->header.pid,
                            .start_ticks = model->header.process_start_ticks};
    if (!model->live) {
        return;
    }
    if (file->parts.count == 0) {
        follow.profile = profile_open(file->path, NULL);
        if (follow.profile == NULL || !follow.profile->live) { /* it has just ended */
            profile_close(follow.profile);
            end(&follow);
            return;
        }
    } else {
        follow.bytes = bytes_of(&file->parts);
    }
    run_follow(&follow);
    profile_close(follow.profile);
}
