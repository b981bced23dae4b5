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

#include "analyze/read/recording.h"
#include "analyze/read/region.h"
#include "analyze/read/run.h"
#include "ask/option.h"
#include "ask/runregions.h"
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
    SUCCESSOR_MS = 5000,
};

#define HELD "/proc/self/fd/" /* a file by its descriptor, whatever became of its name */

bool hublive_may_come(const char *name) {
    uint64_t pid;
    return quantity_u64(name, &pid) == 0 && access(name, F_OK) != 0 && pid != 0 &&
           pid <= INT32_MAX && (kill((pid_t)pid, 0) == 0 || errno == EPERM);
}

/* A process that starts at the same time may have the file of that name. */
static bool recording_is_of(const char *path, const struct memtrace_header *header) {
    struct recording *recording = recording_is(path) ? recording_open(path, NULL) : NULL;
    bool is_its_own = recording != NULL &&
                      (recording->header.pid == header->pid || region_is_foreign(header)) &&
                      recording->header.process_start_ticks == header->process_start_ticks &&
                      recording->program.start_monotonic_ns == header->start_monotonic_ns;
    recording_close(recording);
    return is_its_own;
}

char *hublive_recording(const struct source *file, bool *may_come) {
    struct memtrace_recording recording;
    *may_come = file->model->header.state == MEMTRACE_STATE_EXECED;
    if (!file->model->live || file->parts.count != 0) {
        return NULL;
    }
    memcpy(&recording, file->model->header.recording, sizeof recording);
    recording.path[sizeof recording.path - 1] = '\0';
    if (!memtrace_is_recorded(&recording) || recording.path[0] != '/' ||
        (recording.flags & MEMTRACE_RECORDING_MIDWAY) != 0) { /* it does not tell all */
        return NULL;
    }
    *may_come = true;
    return recording_is_of(recording.path, &file->model->header) ? strdup(recording.path) : NULL;
}

/* ---- Looking ---- */

struct follow {
    struct hub_source *source;
    struct profile *profile;   /* of a region; NULL: a recording */
    struct job_memory *memory; /* of the profile */
    pid_t pid;
    uint64_t start_ticks;
    uint64_t start_ns; /* of this image: another one may have the same number by exec */
    char output[4096]; /* where it was to go at first: it may become the folder of a run */
    char run[4096];    /* that find_run() found */
    uint64_t generation;
    uint64_t asked;  /* hub->clock at the last look */
    uint64_t bytes;  /* of the recording, at the last look */
    int64_t took_ms; /* of a processor */
};

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
static const char *follow_place(const struct profile *profile, const struct model *model) {
    const char *output = model->header.output;
    return access(profile->path, F_OK) != 0 && access(output, F_OK) == 0 ? output : profile->path;
}

static int follow_load_region(struct follow *follow, struct loaded *loaded, bool runs,
                              struct error *error) {
    struct source *file = &loaded->file;
    *file = (struct source){.process = RUN_NONE};
    if (profile_refresh(follow->profile, error) != 0 ||
        (file->model = model_load(follow->profile, error)) == NULL) {
        return -1;
    }
    model_goes_with_job(file->model);
    job_undo(loaded_undo, loaded);
    file->path = job_string(follow_place(follow->profile, file->model));
    file->model->live = runs;
    file->model->header.pid = (uint32_t)follow->pid; /* as it is called here */
    loaded->names = source_names(file, follow->source->hub->options.debug_folders, NULL, error);
    return loaded->names != NULL ? names_settle(loaded->names, &follow->source->cancel) : -1;
}

/* What collectors do with a recording at its end: they move it to the folder of its run, or remove
 * it, as too small to be kept. By its descriptor it is there still. The caller frees it. */
static char *find_recording(const struct source *file) {
    char held[40];
    char now[4200] = "";
    snprintf(held, sizeof held, HELD "%d", file->parts.items[0]->fd);
    if (readlink(held, now, sizeof now - 1) < 0 || !recording_is(now)) {
        snprintf(now, sizeof now, "%s", recording_is(file->path) ? file->path : held);
    }
    return strdup(now);
}

static int follow_load_recording(struct follow *follow, struct loaded *loaded,
                                 struct error *error) {
    const struct source_choice choice = {0};
    const struct replay_options replay = {.cancel = &follow->source->cancel};
    char *path = find_recording(&follow->source->whole->file);
    int result = path != NULL ? loaded_open(loaded, path, &choice, &replay, error) : -1;
    if (result == 0 && strncmp(path, HELD, sizeof HELD - 1) == 0) { /* it is called as before */
        loaded->file.path = job_string(follow->source->whole->file.path);
    }
    free(path);
    return result;
}

struct looking {
    struct follow *follow;
    struct loaded *loaded;
    bool runs;
};

static void follow_load(void *what) {
    const struct looking *looking = what;
    struct loaded *loaded = looking->loaded;
    struct error error = {""};
    job_check(looking->follow->profile != NULL
                  ? follow_load_region(looking->follow, loaded, looking->runs, &error)
                  : follow_load_recording(looking->follow, loaded, &error),
              &error);
}

static void follow_tell(const struct follow *follow, const struct model *model) {
    const struct model_totals *totals = &model->totals;
    char data[512];
    snprintf(data, sizeof data,
             "{\"generation\":%" PRIu64 ",\"now_ns\":%" PRIu64 ",\"live_bytes\":%" PRIu64
             ",\"live_blocks\":%" PRIu64 ",\"peak_bytes\":%" PRIu64 ",\"allocations\":%" PRIu64
             ",\"total_bytes\":%" PRIu64 ",\"frees\":%" PRIu64 "}",
             follow->generation, model->now_ns, totals->live_bytes, totals->live_blocks,
             totals->maximum_bytes, totals->allocations, totals->total_bytes, totals->frees);
    hub_tell(follow->source->hub, follow->source->status.number, NULL, "live", data);
}

/* Makes a new generation the source's. */
static void follow_take(struct follow *follow, struct loaded *loaded, bool is_live) {
    struct hub_source *source = follow->source;
    struct hub *hub = source->hub;
    char *path = strdup(hub_path(&loaded->file));
    pthread_mutex_lock(&hub->lock);
    if (path != NULL) {
        free(source->status.path);
        source->status.path = path;
    }
    hub_note_file(&source->status, &loaded->file);
    source->status.generation = loaded->generation = ++follow->generation;
    source->status.live = is_live && loaded->file.model->live;
    source->status.ended = model_end_word(loaded->file.model);
    follow->asked = hub->clock;
    hub_replace_whole(source, loaded);
    pthread_mutex_unlock(&hub->lock);
    follow_tell(follow, loaded->file.model);
}

/* What was read of it stays where nothing can be read any more. */
static void follow_look(struct follow *follow, bool runs) {
    struct hub *hub = follow->source->hub;
    int64_t begin_ms = hub_busy_ms();
    struct looking looking;
    struct loaded *loaded;
    pthread_mutex_lock(&hub->lock);
    loaded = loaded_new(hub, follow->source->status.number, "", follow->generation);
    pthread_mutex_unlock(&hub->lock);
    looking = (struct looking){follow, loaded, runs};
    if (loaded != NULL && job_run(follow_load, &looking, &loaded->memory, NULL) == 0) {
        follow_take(follow, loaded, runs);
    } else {
        pthread_mutex_lock(&hub->lock);
        if (loaded != NULL) {
            loaded_free(loaded);
        }
        follow->source->status.live = runs;
        pthread_mutex_unlock(&hub->lock);
    }
    follow->took_ms = hub_busy_ms() - begin_ms;
}

/* ---- Until it ends ---- */

typedef bool follow_question(struct follow *follow);

struct follow_asking {
    struct follow *follow;
    follow_question *question;
    bool is_so;
};

static void follow_ask(void *what) {
    struct follow_asking *asking = what;
    asking->is_so = asking->question(asking->follow);
}

/* As a job, of which nothing stays: it is asked as long as the program runs. */
static bool is_so(struct follow *follow, follow_question *question) {
    struct follow_asking asking = {follow, question, false};
    return job_run(follow_ask, &asking, NULL, NULL) == 0 && asking.is_so;
}

static bool is_closed(const struct follow *follow) {
    char *path = find_recording(&follow->source->whole->file);
    struct recording *recording = path != NULL ? recording_open(path, NULL) : NULL;
    bool is_closed = recording == NULL || recording->closed;
    recording_close(recording);
    free(path);
    return is_closed;
}

/* What its process has become by exec. */
static bool has_next_image(struct follow *follow) {
    struct memtrace_header header;
    struct region region;
    return region_find_header(follow->pid, &region, &header) &&
           header.start_monotonic_ns != follow->start_ns;
}

/* One that is received from another machine goes on as long as somebody writes it. */
static bool is_received(const struct follow *follow) {
    const struct timeorder_parts *parts = &follow->source->whole->file.parts;
    bool unknown;
    return follow->profile == NULL && parts->count != 0 && !is_closed(follow) &&
           region_is_written(parts->items[parts->count - 1]->fd, &unknown);
}

static bool runs_on(struct follow *follow) {
    if (!region_alive(follow->pid, follow->start_ticks)) {
        return is_received(follow);
    }
    return follow->profile != NULL
               ? profile_load_u32(&profile_header(follow->profile)->state) == MEMTRACE_STATE_RUNNING
               : !has_next_image(follow);
}

/* An exec that failed leaves the program as it was. */
static bool comes_back(struct follow *follow) {
    return follow->profile != NULL && region_alive(follow->pid, follow->start_ticks) &&
           hub_sleep(follow->source, watch_now_ms() + END_MS) && is_so(follow, runs_on);
}

/* Whether a collector has done with what the program left. */
static bool is_finished(struct follow *follow) {
    return follow->profile != NULL ? access(follow->profile->path, F_OK) != 0 : is_closed(follow);
}

/* The program is gone. false: nobody finishes what it left, or the hub is to stop. */
static bool wait_for_collector(struct follow *follow) {
    int64_t give_up_ms = watch_now_ms() + FINISH_MS;
    while (!is_so(follow, is_finished)) {
        if (watch_now_ms() > give_up_ms || !hub_sleep(follow->source, watch_now_ms() + END_MS)) {
            return false;
        }
    }
    return true;
}

/* Whether others of its run run, too, of which the sum changes without it. */
static bool has_company(struct follow *follow) {
    struct region own;
    struct region *list = NULL;
    size_t count = 0;
    bool has_it = region_find(follow->pid, &own, NULL) == 0 &&
                  runregions_find(own.path, &list, &count, NULL) == 0 && count > 1;
    free(list);
    return has_it;
}

static bool follow_is_due(struct follow *follow, const struct source *file, int64_t *next_ms) {
    uint64_t bytes;
    if (watch_now_ms() < *next_ms || !is_watched(follow)) {
        return false;
    }
    *next_ms = watch_now_ms() + LOOK_MS;
    if (follow->profile != NULL) {
        return true;
    }
    bytes = source_bytes(file);
    if (bytes == follow->bytes && !is_so(follow, has_company)) {
        return false;
    }
    follow->bytes = bytes;
    return true;
}

static void follow_end(struct follow *follow) {
    struct hub *hub = follow->source->hub;
    pthread_mutex_lock(&hub->lock);
    follow->source->status.live = false;
    pthread_mutex_unlock(&hub->lock);
    hub_tell(hub, follow->source->status.number, NULL, "ended", "{}");
}

/* ---- What comes after it ---- */

/* Whoever asks for its number, or its file, from now on means another one. */
static void give_number_up(struct hub_source *source) {
    char *name;
    pthread_mutex_lock(&source->hub->lock);
    name = strdup(source->status.title);
    if (name != NULL) {
        free(source->status.name);
        source->status.name = name;
    }
    pthread_mutex_unlock(&source->hub->lock);
}

static bool has_process(const char *path, pid_t pid) {
    struct run *run = run_is(path) ? run_open(path, NULL) : NULL;
    bool has_it = false;
    for (size_t i = 0; run != NULL && run->has_summary && i < run->process_count; i++) {
        has_it |= run->processes[i].pid == (uint32_t)pid;
    }
    run_close(run);
    return has_it;
}

/* The run that it belonged to, to follow->run: in the place of its output, or where its recording
 * is by now. false: there is none, or not yet. */
static bool find_run(struct follow *follow) {
    char *path = follow->run;
    size_t size = sizeof follow->run;
    char *now = NULL;
    char *slash;
    snprintf(path, size, "%s", follow->output);
    if (has_process(path, follow->pid)) {
        return true;
    }
    if (follow->profile == NULL) {
        now = find_recording(&follow->source->whole->file);
    }
    slash = now != NULL ? strrchr(now, '/') : NULL;
    snprintf(path, size, "%.*s", slash != NULL ? (int)(slash - now) : 0, now != NULL ? now : "");
    free(now);
    return has_process(path, follow->pid);
}

/* A program that has become another one goes on as a source of its own, and a run of several
 * processes is one when all of them have ended. */
static void open_successor(struct follow *follow) {
    int64_t give_up_ms = watch_now_ms() + SUCCESSOR_MS;
    struct hub *hub = follow->source->hub;
    char number[24];
    snprintf(number, sizeof number, "%ld", (long)follow->pid);
    give_number_up(follow->source);
    do {
        bool is_over = is_so(follow, find_run);
        if (is_over || is_so(follow, has_next_image)) {
            if (is_over && follow->profile == NULL) { /* its file was moved to the others */
                follow_look(follow, false);
            }
            hub_add(hub, is_over ? follow->run : number, NULL);
            return;
        }
    } while (watch_now_ms() < give_up_ms && hub_sleep(follow->source, watch_now_ms() + END_MS));
}

/* How long nobody looks. */
static int64_t follow_rest_ms(const struct follow *follow) {
    int64_t rest_ms;
    pthread_mutex_lock(&follow->source->hub->lock);
    rest_ms = (follow->took_ms + follow->source->sum_ms) * SHARE;
    pthread_mutex_unlock(&follow->source->hub->lock);
    return rest_ms > LOOK_MS ? rest_ms : LOOK_MS;
}

static void run_follow(struct follow *follow) {
    int64_t next_ms = watch_now_ms() + LOOK_MS;
    while (is_so(follow, runs_on) || comes_back(follow)) {
        if (!hub_sleep(follow->source, watch_now_ms() + END_MS)) {
            return;
        }
        if (follow_is_due(follow, &follow->source->whole->file, &next_ms)) {
            follow_look(follow, true);
            next_ms = watch_now_ms() + follow_rest_ms(follow);
        }
    }
    if (follow->profile != NULL) { /* a recording's last events come with its end */
        follow_look(follow, false);
        follow_end(follow);
    }
    if (wait_for_collector(follow) || follow->profile == NULL) {
        follow_look(follow, false);
    }
    if (follow->profile == NULL) {
        follow_end(follow);
    }
    open_successor(follow);
}

static void follow_open_region(void *what) {
    struct follow *follow = what;
    follow->profile = profile_open(follow->source->whole->file.path, NULL);
    if (follow->profile != NULL) {
        profile_goes_with_job(follow->profile);
    }
}

void hublive_follow(struct hub_source *source) {
    const struct source *file = &source->whole->file;
    const struct model *model = file->model;
    struct follow follow = {.source = source,
                            .generation = 1,
                            .pid = (pid_t)model->header.pid,
                            .start_ticks = model->header.process_start_ticks,
                            .start_ns = model->header.start_monotonic_ns};
    if (!model->live) {
        return;
    }
    snprintf(follow.output, sizeof follow.output, "%.*s", (int)sizeof follow.output - 1,
             file->parts.count != 0 ? file->path : model->header.output);
    if (file->parts.count == 0) {
        if (job_run(follow_open_region, &follow, &follow.memory, NULL) != 0 ||
            follow.profile == NULL || !follow.profile->live) { /* it has just ended */
            job_free(&follow.memory);
            follow_end(&follow);
            return;
        }
    } else {
        follow.bytes = source_bytes(file);
    }
    run_follow(&follow);
    job_free(&follow.memory);
}
