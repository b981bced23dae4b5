/* SPDX-License-Identifier: MIT */
/* hub.c: sources, opened in the background. See hub.h. */
#include "web/server/hubparts.h"

#include "analyze/base/pathname.h"
#include "analyze/base/timedwait.h"
#include "analyze/read/region.h"
#include "analyze/rows/jsonwriter.h"
#include "analyze/window/fineindex.h"
#include "analyze/window/wholemodel.h"
#include "web/server/watch.h"
#include "web/server/workers.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum {
    TELL_MS = 100,
    PATIENCE_MS = 5000,
    SETTLE_MS = 1000,
    LOOK_AGAIN_MS = 50,
    FIRST_LOOK_MS = 1000, /* the page's first questions have the machine for themselves */
    LEAST_PRIORITY = 19,
};

/* ---- Start and end ---- */

struct hub *hub_new(const struct hub_options *options, struct error *error) {
    struct hub *hub = calloc(1, sizeof *hub);
    if (hub == NULL) {
        error_set(error, "out of memory");
        return NULL;
    }
    hub->options = *options;
    pthread_mutex_init(&hub->lock, NULL);
    pthread_mutex_init(&hub->listening, NULL);
    timedwait_init(&hub->changed);
    return hub;
}

const struct hub_options *hub_options(const struct hub *hub) {
    return &hub->options;
}

void hub_free(struct hub *hub) {
    if (hub == NULL) {
        return;
    }
    pthread_mutex_lock(&hub->lock);
    atomic_store(&hub->stops, true);
    pthread_cond_broadcast(&hub->changed);
    pthread_mutex_unlock(&hub->lock);
    for (unsigned i = 0; i < hub->count; i++) {
        struct hub_source *source = hub->sources[i];
        atomic_store(&source->cancel, true);
        pthread_join(source->opener, NULL);
    }
    pthread_mutex_lock(&hub->lock);
    hub_shrink(hub, 0);
    for (unsigned i = 0; i < hub->count; i++) {
        hub_status_free(&hub->sources[i]->status);
        free(hub->sources[i]);
    }
    while (hub->loaded != NULL) {
        loaded_free(hub->loaded);
    }
    pthread_mutex_unlock(&hub->lock);
    pthread_cond_destroy(&hub->changed);
    pthread_mutex_destroy(&hub->listening);
    pthread_mutex_destroy(&hub->lock);
    free(hub);
}

/* ---- What is loaded ---- */

struct loaded *loaded_new(struct hub *hub, unsigned source, const char *key, uint64_t generation) {
    struct loaded *loaded = calloc(1, sizeof *loaded);
    char *copy = strdup(key);
    if (loaded == NULL || copy == NULL) {
        free(loaded);
        free(copy);
        return NULL;
    }
    *loaded = (struct loaded){.hub = hub,
                              .source = source,
                              .key = copy,
                              .generation = generation,
                              .users = 1,
                              .next = hub->loaded};
    hub->loaded = loaded;
    return loaded;
}

void loaded_close(struct loaded *loaded) {
    job_free(&loaded->memory);
    loaded->names = NULL;
    loaded->file = (struct source){0};
}

void loaded_free(struct loaded *loaded) {
    for (struct loaded **at = &loaded->hub->loaded; *at != NULL; at = &(*at)->next) {
        if (*at == loaded) {
            *at = loaded->next;
            break;
        }
    }
    loaded_close(loaded);
    free(loaded->key);
    free(loaded);
}

/* Who opens in this thread: names tell how far they are without saying whose. */
static _Thread_local struct hub_source *opens;

static void note_progress(struct hub_source *source, const char *what, uint64_t done,
                          uint64_t total) {
    struct hub *hub = source->hub;
    int64_t now = watch_now_ms();
    char data[160];
    bool tells;
    pthread_mutex_lock(&hub->lock);
    source->status.what = what;
    source->status.done = done;
    source->status.total = total;
    tells = now - source->told_ms >= TELL_MS;
    source->told_ms = tells ? now : source->told_ms;
    pthread_mutex_unlock(&hub->lock);
    if (tells) {
        snprintf(data, sizeof data, "{\"what\":\"%s\",\"done\":%" PRIu64 ",\"total\":%" PRIu64 "}",
                 what, done, total);
        hub_tell(hub, source->status.number, NULL, "progress", data);
    }
}

static void note_events(void *context, uint64_t done, uint64_t total) {
    note_progress(context, "events", done, total);
}

static void note_symbols(void *context, size_t done, size_t total) {
    (void)context;
    if (opens != NULL) {
        note_progress(opens, "symbols", done, total);
    }
}

/* Names read the source. */
void loaded_undo(void *what) {
    struct loaded *loaded = what;
    names_close(loaded->names);
    loaded->names = NULL;
    source_close(&loaded->file);
}

static size_t loaded_bytes(const struct loaded *loaded) {
    const struct model *model = loaded->file.model;
    return model->node_count * sizeof *model->nodes +
           model->context_count * sizeof *model->contexts;
}

struct opening {
    struct loaded *loaded;
    const char *name;
    const struct source_choice *choice;
    const struct replay_options *replay;
};

static void loaded_open_work(void *what) {
    const struct opening *opening = what;
    struct loaded *loaded = opening->loaded;
    const char *name = opening->name[0] != '\0' ? opening->name : NULL;
    const char *folders = loaded->hub->options.debug_folders;
    struct error error;
    int settled;
    job_undo(loaded_undo, loaded);
    job_check(source_open(&loaded->file, name, opening->choice, folders, opening->replay, &error),
              &error);
    loaded->names = source_names(&loaded->file, folders, note_symbols, &error);
    if (loaded->names == NULL) {
        job_fail_as(&error);
    }
    settled = names_settle(loaded->names, opening->replay->cancel);
    if (settled != 0) {
        job_fail("%s",
                 settled == NAMES_CANCELLED ? "cancelled" : "out of memory while reading symbols");
    }
    loaded->bytes = loaded_bytes(loaded);
}

int loaded_open(struct loaded *loaded, const char *name, const struct source_choice *choice,
                const struct replay_options *replay, struct error *error) {
    struct opening opening = {loaded, name, choice, replay};
    return job_run(loaded_open_work, &opening, &loaded->memory, error);
}

/* ---- Opening ---- */

enum hub_kind hub_kind_of(const struct source *file) {
    return file->run != NULL           ? HUB_RUN
           : file->parts.count != 0    ? HUB_RECORDING
           : file->model->live == true ? HUB_LIVE
                                       : HUB_PROFILE;
}

/* What is in it, whatever it is called and where it lies. */
void hub_fingerprint(const struct source *file, uint64_t fingerprint[2]) {
    const struct model *model = file->model;
    if (file->parts.count != 0) {
        struct index_cover cover = index_cover(file->parts, UINT64_MAX);
        memcpy(fingerprint, cover.hash, sizeof cover.hash);
    } else {
        const struct memtrace_header *header = &model->header;
        const uint64_t facts[] = {header->pid,
                                  header->process_start_ticks,
                                  header->start_realtime_ns,
                                  model->live ? 0 : model->totals.total_bytes,
                                  model->live ? 0 : model->totals.allocations,
                                  model->live ? 0 : model->totals.frees};
        XXH128_hash_t hash = XXH3_128bits(facts, sizeof facts);
        fingerprint[0] = hash.low64;
        fingerprint[1] = hash.high64;
    }
}

const char *hub_path(const struct source *file) {
    return file->run != NULL ? file->run->path : file->path;
}

bool hub_is_there(const struct source *file) {
    struct stat status;
    bool is_program = file->model->live && file->parts.count == 0;
    bool is_folder = file->run != NULL;
    return is_program ||
           (stat(hub_path(file), &status) == 0 && is_folder == (S_ISDIR(status.st_mode) != 0));
}

/* A file is called as it is, a program, which was asked for by its number, by its name and number.
 * NULL: out of memory. */
static char *make_title(const struct source *file, const char *asked) {
    const struct memtrace_header *header = &file->model->header;
    char *title;
    if (!file->model->live || (file->parts.count != 0 && strcmp(asked, file->path) == 0)) {
        return strdup(pathname_base(hub_path(file)));
    }
    return asprintf(&title, "%s (%" PRIu32 ")", memtrace_program(header), header->pid) >= 0 ? title
                                                                                            : NULL;
}

void hub_note_file(struct hub_status *status, const struct source *file) {
    struct stat there;
    if (stat(hub_path(file), &there) == 0) {
        status->device = there.st_dev;
        status->inode = there.st_ino;
    }
}

static bool status_is_file(const struct hub_status *status, const struct stat *there) {
    return status->device == there->st_dev && status->inode == there->st_ino;
}

/* What follows is told to those who wait for it. */
static void finish_opening(struct hub_source *source, struct loaded *loaded, bool is_open,
                           const struct error *error) {
    struct hub *hub = source->hub;
    pthread_mutex_lock(&hub->lock);
    if (is_open) {
        loaded->made = HUB_READY;
        source->whole = loaded;
        source->status.kind = hub_kind_of(&loaded->file);
        source->status.live = loaded->file.model->live;
        source->status.ended = model_end_word(loaded->file.model);
        source->status.pid = loaded->file.run == NULL ? loaded->file.model->header.pid : 0;
        source->status.generation = 1;
        source->status.refines =
            loaded->file.parts.count != 0 && modelcache_is_coarse(loaded->file.model);
        loaded->generation = 1;
        hub_fingerprint(&loaded->file, source->status.fingerprint);
        hub_note_file(&source->status, &loaded->file);
        free(source->status.path);
        source->status.path = strdup(hub_path(&loaded->file));
        source->status.title = make_title(&loaded->file, source->status.name);
        source->status.state = HUB_OPEN;
    } else {
        if (loaded != NULL) {
            loaded_free(loaded);
        }
        snprintf(source->status.message, sizeof source->status.message, "%s", error->message);
        source->status.state = HUB_FAILED;
    }
    pthread_cond_broadcast(&hub->changed);
    pthread_mutex_unlock(&hub->lock);
    hub_tell(hub, source->status.number, NULL, is_open ? "open" : "failed", "{}");
}

/* Waits for a program that was started a moment ago. 0 or -1. */
static int open_patiently(struct hub_source *source, struct loaded *loaded, const char *name,
                          struct error *error) {
    const struct source_choice choice = {0};
    const struct replay_options replay = {
        .progress = note_events, .context = source, .cancel = &source->cancel};
    int64_t give_up_ms = watch_now_ms() + PATIENCE_MS;
    while (loaded_open(loaded, name, &choice, &replay, error) != 0) {
        if (!hublive_may_come(name) || watch_now_ms() > give_up_ms ||
            !hub_sleep(source, watch_now_ms() + LOOK_AGAIN_MS)) {
            return -1;
        }
    }
    return 0;
}

static int open_loaded(struct hub_source *source, struct loaded *loaded, struct error *error) {
    int64_t give_up_ms = watch_now_ms() + SETTLE_MS;
    for (;;) {
        bool may_come = false;
        int result = open_patiently(source, loaded, source->status.name, error);
        char *recording = result == 0 ? hublive_recording(&loaded->file, &may_come) : NULL;
        if (recording != NULL) {
            loaded_close(loaded);
            result = open_patiently(source, loaded, recording, error);
            free(recording);
            return result;
        }
        if (!may_come || !hublive_may_come(source->status.name) || watch_now_ms() > give_up_ms ||
            !hub_sleep(source, watch_now_ms() + LOOK_AGAIN_MS)) {
            return result;
        }
        loaded_close(loaded);
    }
}

struct first_opening {
    struct hub_source *source;
    struct loaded *loaded;
};

static void opener_open_first(void *what) {
    const struct first_opening *opening = what;
    struct error error;
    job_check(open_loaded(opening->source, opening->loaded, &error), &error);
}

void hub_replace_whole(struct hub_source *source, struct loaded *loaded) {
    loaded->made = HUB_READY;
    source->whole->users--;
    source->whole = loaded;
    hub_shrink(source->hub, source->hub->options.cache_bytes);
}

/* Opens the file once more: more is kept of it now. */
static void open_refined(struct hub_source *source, const struct replay_options *replay) {
    const struct source_choice choice = {0};
    struct hub *hub = source->hub;
    struct loaded *loaded;
    struct error error;
    uint64_t fingerprint[2] = {0};
    pthread_mutex_lock(&hub->lock);
    loaded = loaded_new(hub, source->status.number, "", source->status.generation);
    pthread_mutex_unlock(&hub->lock);
    if (loaded == NULL) {
        return;
    }
    if (loaded_open(loaded, source->status.path, &choice, replay, &error) == 0) {
        hub_fingerprint(&loaded->file, fingerprint);
    }
    pthread_mutex_lock(&hub->lock);
    if (memcmp(fingerprint, source->status.fingerprint, sizeof fingerprint) == 0) {
        hub_replace_whole(source, loaded);
    } else {
        loaded_free(loaded);
    }
    pthread_mutex_unlock(&hub->lock);
}

/* Whether or not it came to that: those who wait for it are told that nothing more comes. */
static void end_refining(struct hub_source *source) {
    struct hub *hub = source->hub;
    pthread_mutex_lock(&hub->lock);
    source->status.refines = false;
    pthread_mutex_unlock(&hub->lock);
    hub_tell(hub, source->status.number, NULL, "refined", "{}");
}

static void opener_refine(void *what) {
    struct hub_source *source = what;
    const struct source *file = &source->whole->file;
    const struct replay_options replay = {.cancel = &source->cancel};
    if (modelcache_refine(file->model, file->parts, &replay)) {
        open_refined(source, &replay);
    }
}

static void opener_group(void *what) {
    struct hub_source *source = what;
    const struct source *file = &source->whole->file;
    const struct replay_options replay = {.cancel = &source->cancel};
    index_group(file->model->index, &replay);
    fineindex_prepare(file->model, file->parts, &replay);
}

/* So that windows of a large recording snap to slices that are fine enough, and exact ones take no
 * seconds. Whoever asks goes before it. */
static void prepare_windows(struct hub_source *source) {
    const struct source *file = &source->whole->file;
    if (file->model->live || file->parts.count == 0 ||
        !hub_sleep(source, watch_now_ms() + FIRST_LOOK_MS)) {
        return;
    }
    setpriority(PRIO_PROCESS, (id_t)gettid(), LEAST_PRIORITY);
    if (source->status.refines) {
        job_run(opener_refine, source, NULL, NULL);
        end_refining(source);
    }
    job_run(opener_group, source, NULL, NULL);
}

static void *hub_open_source(void *argument) {
    struct hub_source *source = argument;
    struct hub *hub = source->hub;
    struct error error = {""};
    struct loaded *loaded;
    struct first_opening opening;
    bool is_open;
    pthread_mutex_lock(&hub->lock);
    loaded = loaded_new(hub, source->status.number, "", 0);
    pthread_mutex_unlock(&hub->lock);
    opening = (struct first_opening){source, loaded};
    opens = source;
    is_open = loaded != NULL && job_run(opener_open_first, &opening, NULL, &error) == 0;
    opens = NULL;
    if (loaded == NULL) {
        error_set(&error, "out of memory");
    }
    finish_opening(source, loaded, is_open, &error);
    if (is_open) {
        prepare_windows(source);
        hublive_follow(source);
    }
    return NULL;
}

int64_t hub_busy_ms(void) {
    struct timespec busy;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &busy);
    return (int64_t)busy.tv_sec * 1000 + busy.tv_nsec / 1000000;
}

bool hub_sleep(struct hub_source *source, int64_t until_ms) {
    struct hub *hub = source->hub;
    bool goes_on;
    pthread_mutex_lock(&hub->lock);
    for (;;) {
        int64_t left = until_ms - watch_now_ms();
        goes_on = !atomic_load(&hub->stops) && !atomic_load(&source->cancel);
        if (!goes_on || left <= 0) {
            break;
        }
        struct timespec until = timedwait_until((unsigned)left);
        pthread_cond_timedwait(&hub->changed, &hub->lock, &until);
    }
    pthread_mutex_unlock(&hub->lock);
    return goes_on;
}

/* Whether it is what a name means now: another file may have taken its place. */
static bool is_meant(const struct hub_status *status, const char *name) {
    struct stat there;
    return strcmp(status->name, name) == 0 && status->state != HUB_FAILED &&
           (status->state == HUB_OPENING || status->live || stat(name, &there) != 0 ||
            status_is_file(status, &there));
}

static unsigned find_name(const struct hub *hub, const char *name) {
    for (unsigned i = 0; i < hub->count; i++) {
        if (is_meant(&hub->sources[i]->status, name)) {
            return i + 1;
        }
    }
    return 0;
}

static unsigned hub_add_named(struct hub *hub, const char *name, struct error *error) {
    struct hub_source *source;
    unsigned number = find_name(hub, name);
    if (number != 0) {
        return number;
    }
    if (hub->count == HUB_SOURCES) {
        error_set(error, "%d files are open; that is the most", HUB_SOURCES);
        return 0;
    }
    source = calloc(1, sizeof *source);
    if (source != NULL) {
        source->hub = hub;
        source->status = (struct hub_status){
            .number = hub->count + 1, .name = strdup(name), .path = strdup(name), .what = "file"};
    }
    if (source == NULL || source->status.name == NULL || source->status.path == NULL ||
        worker_start(&source->opener, "opener", hub_open_source, source) != 0) {
        if (source != NULL) {
            hub_status_free(&source->status);
        }
        free(source);
        error_set(error, "out of memory");
        return 0;
    }
    hub->sources[hub->count++] = source;
    return hub->count;
}

unsigned hub_add(struct hub *hub, const char *name, struct error *error) {
    unsigned number;
    pthread_mutex_lock(&hub->lock); /* the opener waits until the source is in the list */
    number = hub_add_named(hub, name, error);
    pthread_mutex_unlock(&hub->lock);
    return number;
}

/* ---- What is known ---- */

bool hub_knows(struct hub *hub, unsigned source) {
    return source != 0 && source <= hub_count(hub);
}

unsigned hub_find(struct hub *hub, const char *path, uint32_t pid) {
    struct stat there = {0};
    bool is_there = stat(path, &there) == 0;
    unsigned found = 0;
    pthread_mutex_lock(&hub->lock);
    for (unsigned i = 0; i < hub->count && found == 0; i++) {
        const struct hub_status *status = &hub->sources[i]->status;
        if (status->state == HUB_OPEN && ((is_there && status_is_file(status, &there)) ||
                                          (pid != 0 && status->live && status->pid == pid))) {
            found = i + 1;
        }
    }
    pthread_mutex_unlock(&hub->lock);
    return found;
}

unsigned hub_count(struct hub *hub) {
    unsigned count;
    pthread_mutex_lock(&hub->lock);
    count = hub->count;
    pthread_mutex_unlock(&hub->lock);
    return count;
}

bool hub_status(struct hub *hub, unsigned source, struct hub_status *status) {
    bool is_known;
    pthread_mutex_lock(&hub->lock);
    is_known = source != 0 && source <= hub->count;
    if (is_known) {
        *status = hub->sources[source - 1]->status;
        status->name = strdup(status->name);
        status->title = strdup(status->title != NULL ? status->title : status->name);
        status->path = strdup(status->path != NULL ? status->path : "");
    }
    pthread_mutex_unlock(&hub->lock);
    return is_known;
}

void hub_status_free(struct hub_status *status) {
    free(status->name);
    free(status->title);
    free(status->path);
    *status = (struct hub_status){0};
}

/* ---- Listeners ---- */

void hub_listen(struct hub *hub, struct hub_listener *listener) {
    pthread_mutex_lock(&hub->listening);
    listener->next = hub->listeners;
    hub->listeners = listener;
    pthread_mutex_unlock(&hub->listening);
}

void hub_unlisten(struct hub *hub, struct hub_listener *listener) {
    pthread_mutex_lock(&hub->listening);
    for (struct hub_listener **at = &hub->listeners; *at != NULL; at = &(*at)->next) {
        if (*at == listener) {
            *at = listener->next;
            break;
        }
    }
    pthread_mutex_unlock(&hub->listening);
}

void hub_tell(struct hub *hub, unsigned source, const char *job, const char *event,
              const char *data) {
    pthread_mutex_lock(&hub->listening);
    for (struct hub_listener *at = hub->listeners; at != NULL; at = at->next) {
        if (at->source == source &&
            (job == NULL || (at->job != NULL && strcmp(at->job, job) == 0))) {
            at->tell(at, event, data);
        }
    }
    pthread_mutex_unlock(&hub->listening);
}
