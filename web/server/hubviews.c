/* SPDX-License-Identifier: MIT */
/* hubviews.c: what is asked of sources: views, made once and kept. See hub.h. */
#include "web/server/apicache.h"
#include "web/server/hubparts.h"
#include "web/server/routes.h"

#include "analyze/base/timedwait.h"
#include "analyze/read/region.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { LOOK_MS = 20 /* at whether the asker is gone, while somebody else makes it */ };

/* ---- Which parameters say what a view is of ---- */

const struct option *hub_filter(const char *name) {
    for (struct option_walk walk = option_walk_start(filter_options);;) {
        const struct option *option = option_walk_next(&walk);
        if (option == NULL || option->key == OPTION_HELP) {
            return NULL;
        }
        if (!option_is_heading(option) && strcmp(option->name, name) == 0) {
            return option;
        }
    }
}

bool hub_is_filter(const char *name) {
    return hub_filter(name) != NULL || strcmp(name, "process") == 0 ||
           strcmp(name, "all-processes") == 0 || strcmp(name, "snap") == 0;
}

static int compare_parameters(const void *left, const void *right) {
    const struct request_parameter *a = left;
    const struct request_parameter *b = right;
    int order = strcmp(a->name, b->name);
    return order != 0 ? order : strcmp(a->value, b->value);
}

/* Those of the request with this prefix, without it, in an order that does not depend on how they
 * were asked. */
static void copy_filters(const struct hub_question *asked, struct request *to) {
    const struct request *request = asked->request;
    size_t skip = strlen(asked->prefix);
    to->parameters = job_array(request->parameter_count + 1, sizeof *to->parameters);
    for (size_t i = 0; i < request->parameter_count; i++) {
        const struct request_parameter *from = &request->parameters[i];
        struct request_parameter *copy = &to->parameters[to->parameter_count];
        if (strncmp(from->name, asked->prefix, skip) != 0 || !hub_is_filter(from->name + skip) ||
            route_names(asked->own, from->name)) {
            continue;
        }
        to->parameter_count++;
        copy->name = job_string(from->name + skip);
        copy->value = job_string(from->value);
    }
    qsort(to->parameters, to->parameter_count, sizeof *to->parameters, compare_parameters);
}

static void take_parameter(struct view *view, const struct request_parameter *given) {
    const struct option *option = hub_filter(given->name);
    bool is_process = strcmp(given->name, "process") == 0;
    bool has_value = is_process || (option != NULL && option->value != NULL);
    struct error error;
    /* Flags are given as NAME, NAME= or NAME=1. */
    if (!has_value && given->value[0] != '\0' && strcmp(given->value, "1") != 0) {
        job_fail("--%s takes no value", given->name);
    }
    if (option != NULL) {
        job_check(
            option_store(option, has_value ? given->value : NULL, &view->question.filters, &error),
            &error);
    } else if (is_process && view->question.choice.process != NULL) {
        job_fail("--process is given twice");
    } else if (is_process) {
        view->question.choice.process = given->value;
    } else if (strcmp(given->name, "snap") == 0) {
        view->snaps = true;
    } else {
        view->question.choice.all = true;
    }
}

/* Filters of call paths alone make a difference between a view with its threads and one without:
 * all others tell of both. So who asks for a window's findings finds what its summary took. */
static bool chooses_paths(const struct filters *filters) {
    for (size_t i = 0; i < filters->count; i++) {
        if (filters_kind(filters->items[i].option) == FILTERS_PATHS) {
            return true;
        }
    }
    return false;
}

/* What tells this view from all others of its source. */
static char *make_key(const struct view *view) {
    struct job_printing *key = job_print();
    for (size_t i = 0; i < view->asked.parameter_count; i++) {
        const struct request_parameter *one = &view->asked.parameters[i];
        fprintf(key->out, "%s=%zu:%s\n", one->name, strlen(one->value), one->value);
    }
    if (view->question.filters.wants_threads && chooses_paths(&view->question.filters)) {
        fputs("threads\n", key->out);
    }
    if (view->of_blocks && filters_given(&view->question.filters)) {
        fputs("blocks\n", key->out);
    }
    return job_printed(key);
}

/* ---- Making one ---- */

static void view_free(struct view *view) {
    job_free(&view->memory);
    free(view);
}

struct asking {
    const struct hub_question *asked;
    struct view *view;
};

static void view_ask(void *what) {
    const struct asking *asking = what;
    struct view *view = asking->view;
    view->question.filters.wants_threads = asking->asked->wants_threads;
    view->of_blocks = asking->asked->wants_blocks;
    copy_filters(asking->asked, &view->asked);
    for (size_t i = 0; i < view->asked.parameter_count; i++) {
        take_parameter(view, &view->asked.parameters[i]);
    }
    if (view->question.choice.process != NULL && view->question.choice.all) {
        job_fail("--process and --all-processes contradict each other");
    }
    view->key = make_key(view);
}

static size_t view_model_bytes(const struct model *model) {
    return sizeof *model + model->node_count * sizeof *model->nodes +
           model->context_count * sizeof *model->contexts +
           model->lifetime_count * sizeof *model->lifetimes +
           model->thread_count * sizeof *model->threads +
           model->foreign_count * sizeof *model->foreign +
           model->timeline_count * sizeof *model->timeline +
           model->mark_count * sizeof *model->marks;
}

struct filling {
    struct view *view;
    const struct replay_options *replay;
};

static void view_fill(void *what) {
    const struct filling *filling = what;
    struct view *view = filling->view;
    struct loaded *loaded = view->loaded;
    unsigned terms = (view->snaps ? ANSWER_SNAPS : 0u) | (view->of_blocks ? ANSWER_OF_BLOCKS : 0u);
    answer_select(&view->api, &loaded->file, loaded->names, &view->question, terms,
                  filling->replay);
    view->api.cache = apicache_begin();
    if (view->api.model != view->api.whole && !view->api.lacks_sums) {
        view->bytes = view_model_bytes(view->api.model);
    }
    view->bytes += sizeof *view;
}

/* ---- Waiting for who makes it ---- */

static bool hub_is_cancelled(const struct hub *hub, const struct replay_options *replay) {
    return replay_is_cancelled(replay) || atomic_load(&hub->stops);
}

/* Under the lock. */
static void hub_wait_a_little(struct hub *hub) {
    struct timespec until = timedwait_until(LOOK_MS);
    pthread_cond_timedwait(&hub->changed, &hub->lock, &until);
}

/* ---- What is loaded ---- */

static struct loaded *loaded_find(const struct hub *hub, unsigned source, const char *key,
                                  uint64_t generation) {
    for (struct loaded *at = hub->loaded; at != NULL; at = at->next) {
        if (at->source == source && at->generation == generation && at->made != HUB_SPOILED &&
            strcmp(at->key, key) == 0) {
            return at;
        }
    }
    return NULL;
}

/* "": no choice was made. 0, or -1: error is set. */
static int choice_key(const struct source_choice *choice, char *key, size_t size,
                      struct error *error) {
    int length = choice->all               ? snprintf(key, size, "all")
                 : choice->process != NULL ? snprintf(key, size, "process %s", choice->process)
                                           : snprintf(key, size, "%s", "");
    return (size_t)length < size ? 0 : error_set(error, "--process: there is no such process");
}

/* The sum of all that run is that of a process's number, also where its recording is shown. */
static char *loaded_name(const struct hub_status *status, const struct source_choice *choice) {
    char *pid;
    if (!status->live || !choice->all) {
        return strdup(status->path);
    }
    return asprintf(&pid, "%" PRIu32, status->pid) >= 0 ? pid : NULL;
}

/* Opens it without the lock, which is held before and after. NULL: error is set. */
static struct loaded *load_anew(struct hub *hub, unsigned number, const char *key,
                                const struct source_choice *choice,
                                const struct replay_options *replay, struct error *error) {
    struct hub_source *source = hub->sources[number - 1];
    int64_t begin_ms = hub_busy_ms();
    struct loaded *loaded = loaded_new(hub, number, key, source->status.generation);
    char *path = loaded_name(&source->status, choice);
    int result = -1;
    pthread_mutex_unlock(&hub->lock);
    if (loaded == NULL || path == NULL) {
        error_set(error, "out of memory");
    } else {
        result = loaded_open(loaded, path, choice, replay, error);
    }
    free(path);
    pthread_mutex_lock(&hub->lock);
    source->sum_ms = choice->all ? hub_busy_ms() - begin_ms : source->sum_ms;
    if (loaded != NULL) {
        loaded->made = result == 0 ? HUB_READY : HUB_SPOILED;
        loaded->users--;
    }
    if (result != 0 && loaded != NULL && loaded->users == 0) {
        loaded_free(loaded);
    }
    pthread_cond_broadcast(&hub->changed);
    return result == 0 ? loaded : NULL;
}

/* It ran when it was looked at, and runs no more: of a sum its own last numbers are left. */
static bool has_just_ended(const struct hub_status *status) {
    struct region region;
    return (status->live || status->generation > 1) &&
           (region_find((pid_t)status->pid, &region, NULL) != 0 || !region.alive);
}

/* With one user more. Under the lock, which is given up meanwhile. NULL: error and *status. */
static struct loaded *get_loaded(struct hub *hub, unsigned number,
                                 const struct source_choice *choice,
                                 const struct replay_options *replay, int *status,
                                 struct error *error) {
    char key[512];
    if (choice_key(choice, key, sizeof key, error) != 0) {
        *status = 400;
        return NULL;
    }
    for (;;) {
        const struct hub_source *source = hub->sources[number - 1];
        struct loaded *loaded = key[0] == '\0'
                                    ? source->whole
                                    : loaded_find(hub, number, key, source->status.generation);
        if (hub_is_cancelled(hub, replay)) {
            *status = 503;
            error_set(error, "cancelled");
            return NULL;
        }
        if (loaded == NULL) {
            *status = 400;
            loaded = load_anew(hub, number, key, choice, replay, error);
            if (loaded == NULL && choice->all && has_just_ended(&source->status)) {
                loaded = source->whole;
            }
            if (loaded == NULL) {
                return NULL;
            }
        }
        if (loaded->made == HUB_READY) {
            loaded->users++;
            loaded->used = ++hub->clock;
            return loaded;
        }
        hub_wait_a_little(hub);
    }
}

/* ---- Views ---- */

static struct view *find_view(const struct hub *hub, const struct loaded *loaded, const char *key) {
    for (struct view *at = hub->views; at != NULL; at = at->next) {
        if (at->loaded == loaded && at->made != HUB_SPOILED && strcmp(at->key, key) == 0) {
            return at;
        }
    }
    return NULL;
}

/* Takes a view out that nobody uses. Under the lock. */
static void drop(struct hub *hub, struct view *view) {
    struct loaded *loaded = view->loaded;
    for (struct view **at = &hub->views; *at != NULL; at = &(*at)->next) {
        if (*at == view) {
            *at = view->next;
            break;
        }
    }
    view_free(view);
    loaded->users--;
    if (loaded->users == 0 && loaded->made == HUB_SPOILED) {
        loaded_free(loaded);
    }
}

static uint64_t bytes_of_all(const struct hub *hub) {
    uint64_t bytes = 0;
    for (const struct view *at = hub->views; at != NULL; at = at->next) {
        /* Others belong to who makes them. */
        bytes += at->made == HUB_READY ? at->bytes + apicache_bytes(at->api.cache) : 0;
    }
    for (const struct loaded *at = hub->loaded; at != NULL; at = at->next) {
        bytes += at->key[0] != '\0' && at->made == HUB_READY ? at->bytes : 0;
    }
    return bytes;
}

static bool is_old(const struct hub *hub, const struct loaded *loaded) {
    const struct hub_source *source = hub->sources[loaded->source - 1];
    return loaded->generation != source->status.generation ||
           (loaded->key[0] == '\0' && loaded != source->whole);
}

/* The one that was not asked for longest among those that nobody uses. */
static struct view *oldest_view(const struct hub *hub, bool of_old_generations) {
    struct view *oldest = NULL;
    for (struct view *at = hub->views; at != NULL; at = at->next) {
        if (at->users == 0 && (!of_old_generations || is_old(hub, at->loaded)) &&
            (oldest == NULL || at->used < oldest->used)) {
            oldest = at;
        }
    }
    return oldest;
}

static struct loaded *idle_loaded(const struct hub *hub, bool of_old_generations) {
    struct loaded *oldest = NULL;
    for (struct loaded *at = hub->loaded; at != NULL; at = at->next) {
        if (at->users == 0 && at->made == HUB_READY && (!of_old_generations || is_old(hub, at)) &&
            (oldest == NULL || at->used < oldest->used)) {
            oldest = at;
        }
    }
    return oldest;
}

void hub_shrink(struct hub *hub, uint64_t limit) {
    struct view *view;
    struct loaded *loaded;
    while ((view = oldest_view(hub, true)) != NULL) {
        drop(hub, view);
    }
    while ((loaded = idle_loaded(hub, true)) != NULL) {
        loaded_free(loaded);
    }
    while ((limit == 0 || bytes_of_all(hub) > limit) && (view = oldest_view(hub, false)) != NULL) {
        drop(hub, view);
    }
    while ((limit == 0 || bytes_of_all(hub) > limit) &&
           (loaded = idle_loaded(hub, false)) != NULL) {
        loaded_free(loaded);
    }
}

/* Whose model is to be made, in the list. Under the lock, which is given up meanwhile. 0 or -1. */
static int hubviews_view_make(struct hub *hub, struct view *view,
                              const struct replay_options *replay, struct error *error) {
    struct filling filling = {view, replay};
    int result;
    view->made = HUB_MAKING;
    view->users = 1;
    view->used = ++hub->clock;
    view->next = hub->views;
    hub->views = view;
    pthread_mutex_unlock(&hub->lock);
    result = job_run(view_fill, &filling, &view->memory, error);
    pthread_mutex_lock(&hub->lock);
    view->made = result == 0 ? HUB_READY : HUB_SPOILED;
    pthread_cond_broadcast(&hub->changed);
    if (result != 0) {
        view->users--;
        drop(hub, view);
    } else {
        hub_shrink(hub, hub->options.cache_bytes);
    }
    return result;
}

/* The view, made by this thread or by another. `view` is used, or freed. Under the lock. */
static struct view *hubviews_get_view(struct hub *hub, unsigned number, struct view *view,
                                      const struct replay_options *replay, int *status,
                                      struct error *error) {
    struct view *found;
    view->loaded = get_loaded(hub, number, &view->question.choice, replay, status, error);
    if (view->loaded == NULL) {
        view_free(view);
        return NULL;
    }
    while ((found = find_view(hub, view->loaded, view->key)) != NULL && found->made == HUB_MAKING &&
           !hub_is_cancelled(hub, replay)) {
        hub_wait_a_little(hub);
    }
    if (found == NULL) {
        *status = 400;
        found = hubviews_view_make(hub, view, replay, error) == 0 ? view : NULL;
        *status = found == NULL && hub_is_cancelled(hub, replay) ? 503 : *status;
        return found;
    }
    view->loaded->users--;
    view_free(view);
    if (found->made != HUB_READY) {
        *status = 503;
        error_set(error, "cancelled");
        return NULL;
    }
    found->users++;
    found->used = ++hub->clock;
    return found;
}

/* 0, or the status of why there is nothing to ask yet. Under the lock. */
static int check_source(const struct hub *hub, unsigned number, struct error *error) {
    const struct hub_status *status;
    if (number == 0 || number > hub->count) {
        error_set(error, "there is no source %u", number);
        return 404;
    }
    status = &hub->sources[number - 1]->status;
    if (status->state == HUB_OPENING) {
        error_set(error, "%s is still being opened", status->name);
        return 503;
    }
    if (status->state == HUB_FAILED) {
        error_set(error, "%s", status->message);
        return 410;
    }
    return 0;
}

const struct answer *hub_view(struct hub *hub, const struct hub_question *asked,
                              const struct replay_options *replay, int *status,
                              struct error *error) {
    struct view *view = calloc(1, sizeof *view);
    struct view *found = NULL;
    struct asking asking = {asked, view};
    if (view == NULL) {
        *status = 500;
        error_set(error, "out of memory");
        return NULL;
    }
    *status = 400;
    if (job_run(view_ask, &asking, &view->memory, error) != 0) {
        view_free(view);
        return NULL;
    }
    pthread_mutex_lock(&hub->lock);
    *status = check_source(hub, asked->source, error);
    if (*status != 0) {
        view_free(view);
    } else {
        found = hubviews_get_view(hub, asked->source, view, replay, status, error);
    }
    pthread_mutex_unlock(&hub->lock);
    return found != NULL ? &found->api : NULL;
}

void hub_release(struct hub *hub, const struct answer *view) {
    if (view != NULL) {
        struct view *own = (struct view *)(uintptr_t)view;
        pthread_mutex_lock(&hub->lock);
        own->users--;
        hub_shrink(hub, hub->options.cache_bytes);
        pthread_mutex_unlock(&hub->lock);
    }
}
