/* SPDX-License-Identifier: MIT */
/* collector.c: the work beside one running program. See collector.h. */
#include "collect/collector.h"

#include "analyze/base/fullwrite.h"
#include "analyze/base/threadstart.h"
#include "analyze/read/filemap.h"
#include "analyze/rows/safetext.h"
#include "collect/clock.h"
#include "collect/programask.h"
#include "memtrace/sampled.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    TICK_MS = 100,          /* how soon a request for a snapshot is seen */
    BUSY_TICK_MS = 10,      /* while memory is churned and a report by churn is wanted */
    LIMIT_TICK_MS = 20,     /* memory may be gone within a second */
    RECORDING_TICK_MS = 20, /* somebody waits for its beginning or its end */
    ENDING_MS = 500,        /* so long a program may take to let go of its buffers */
    OWN_PART = 100,         /* of the time: see note_own_resident() */
    IDLE_TICKS = 50,        /* busy ticks without churn until the program counts as idle */
    SAMPLE_MS = 100,        /* the timeline's first interval */
};

enum level { LEVEL_ERROR, LEVEL_WARNING };

/* As in the program (MEMTRACE_LOG_LEVEL). The environment is the user's under `memtrace run`; the
 * companion's has the program's where the runtime hands it on. */
static bool collector_is_told(enum level level) {
    const char *most = getenv("MEMTRACE_LOG_LEVEL");
    if (most != NULL && strcmp(most, "none") == 0) {
        return false;
    }
    return most == NULL || level == LEVEL_ERROR || strcmp(most, "error") != 0;
}

static void tell_of(enum level level, const char *what, const char *message) {
    char line[5000];
    if (!collector_is_told(level)) {
        return;
    }
    snprintf(line, sizeof line - 1, "memtrace: %s%s", what, message);
    strcat(make_safe(line), "\n");
    collector_write(STDERR_FILENO, line);
}

static void tell_news(struct collector *collector) {
    const char *news = collector->record != NULL ? record_news(collector->record) : NULL;
    if (news != NULL) {
        tell_of(LEVEL_WARNING, "", news);
    }
}

/* It is opened before the program begins with it: what lies in the buffers is not for it. */
static bool is_to_begin(const struct collector *collector) {
    uint32_t state = claim_load_u32(&claim_recording(&collector->claim)->state);
    return state == MEMTRACE_RECORD_ASKED || state == MEMTRACE_RECORD_OPENED ||
           state == MEMTRACE_RECORD_REFUSED;
}

/* Where it cannot be had the program runs on, and leaves a profile. */
static void start_recording(struct collector *collector, struct error *error) {
    collector->record =
        record_wanted(&collector->claim) ? record_open(&collector->claim, error) : NULL;
    tell_news(collector); /* before its thread may have more */
    if (collector->record != NULL && !is_to_begin(collector)) {
        record_start(collector->record, error);
    }
    if (error->message[0] != '\0') {
        tell_of(LEVEL_ERROR, "", error->message);
    }
}

/* --- a recording that begins and ends in the middle of a run ---------------------------------- */

static bool collector_move_state(struct memtrace_recording *recording, uint32_t from, uint32_t to) {
    return __atomic_compare_exchange_n(&recording->state, &from, to, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_ACQUIRE);
}

/* The program looks at the state at one of its next events; another wish is not pushed aside. */
static void nudge(struct collector *collector) {
    struct memtrace_header *header = collector->claim.header;
    if (claim_load_u64(&header->control) == claim_load_u64(&header->control_done)) {
        modeswitch_ask(header, (struct modeswitch){.mode = MEMTRACE_MODE_LOOK});
    }
}

static void open_asked(struct collector *collector) {
    struct memtrace_recording *recording = claim_recording(&collector->claim);
    struct error error = {""};
    if (collector->record == NULL) {
        start_recording(collector, &error);
    }
    if (collector->record == NULL) {
        /* Who asked reads why in the place of the path. */
        snprintf(recording->path, sizeof recording->path, "%s",
                 error.message[0] != '\0' ? error.message : "it cannot be written");
        __atomic_store_n(&recording->state, MEMTRACE_RECORD_REFUSED, __ATOMIC_RELEASE);
    } else if (collector_move_state(recording, MEMTRACE_RECORD_ASKED, MEMTRACE_RECORD_OPENED)) {
        nudge(collector);
    }
}

/* It has not begun, and shall not. */
static void drop_recording(struct collector *collector) {
    if (collector->record != NULL) {
        record_drop(collector->record);
        collector->record = NULL;
    }
}

/* The file is whole. A program that sleeps has not let go of its buffers yet; it does when it goes
 * on, and nobody reads them any more. */
static void collector_close_file(struct collector *collector) {
    struct memtrace_recording *recording = claim_recording(&collector->claim);
    struct record_result result = {0};
    if (recording->begun_ns == 0) {
        drop_recording(collector);
    } else {
        record_finish(collector->record, &result);
    }
    collector->record = NULL;
    collector->ending_ns = 0;
    if (result.trouble.message[0] != '\0') {
        tell_of(LEVEL_ERROR, "", result.trouble.message);
    }
    recording->flags |= result.stopped ? (uint32_t)MEMTRACE_RECORDING_CUT : 0;
    __atomic_store_n(&recording->file_events, result.events, __ATOMIC_RELAXED);
    __atomic_store_n(&recording->file_bytes, result.bytes, __ATOMIC_RELAXED);
    __atomic_store_n(&recording->heartbeat_ns, 0, __ATOMIC_RELEASE);
    collector_move_state(recording, MEMTRACE_RECORD_LEFT, MEMTRACE_RECORD_NONE);
}

static void follow_recording(struct collector *collector, uint64_t time_ns) {
    const struct memtrace_recording *recording = claim_recording(&collector->claim);
    uint32_t state = claim_load_u32(&recording->state);
    struct error error = {""};
    if (collector->claim.is_outside) { /* whose program may be hostile */
        return;
    }
    if (state == MEMTRACE_RECORD_ASKED) {
        open_asked(collector);
    } else if (collector->record == NULL || !record_is_midway(&collector->claim)) {
        return;
    } else if (state == MEMTRACE_RECORD_OPENED) {
        nudge(collector);
    } else if (state == MEMTRACE_RECORD_REFUSED) {
        drop_recording(collector);
    } else if (state == MEMTRACE_RECORD_WANTED) {
        if (record_start(collector->record, &error) != 0) {
            tell_of(LEVEL_ERROR, "", error.message);
        }
    } else if (state == MEMTRACE_RECORD_LEFT ||
               (collector->ending_ns != 0 && time_ns - collector->ending_ns > ENDING_MS * MS)) {
        collector_close_file(collector);
    } else if (state == MEMTRACE_RECORD_ENDING) {
        collector->ending_ns = collector->ending_ns != 0 ? collector->ending_ns : time_ns;
        nudge(collector);
    }
}

bool collector_only_records(const struct collector *collector) {
    const struct memtrace_header *header = collector->claim.header;
    return record_is_midway(&collector->claim) && header->every_ns == 0 &&
           header->churn_limit_bytes == 0 && header->limit.bytes == 0 && header->limit.percent == 0;
}

enum claim_status collector_attach(struct collector *collector, const char *path,
                                   struct runwriter *run, struct error *error) {
    enum claim_status status = claim_open(path, &collector->claim, error);
    return status == CLAIM_OK ? collector_attach_claimed(collector, run, error) : status;
}

enum claim_status collector_attach_claimed(struct collector *collector, struct runwriter *run,
                                           struct error *error) {
    static const struct memtrace_limit no_limit;
    const struct memtrace_header *header;
    bool is_outside = collector->claim.is_outside;
    struct error trouble = {""};
    collector->profile = claim_profile(&collector->claim, error);
    if (collector->profile == NULL) {
        claim_release(&collector->claim);
        return CLAIM_FAILED;
    }
    header = &collector->profile->header;
    if (!is_outside) { /* whose number means nothing there */
        __atomic_store_n(&collector->claim.header->collector_pid, (uint32_t)getpid(),
                         __ATOMIC_RELEASE);
    }
    /* Nothing is done where a region from outside asks for it: its program may be hostile. */
    logfile_start(&collector->log, is_outside ? "" : header->log, header->log_size_bytes);
    limits_start(&collector->limits, is_outside ? &no_limit : &header->limit,
                 collector->claim.region.pid, "");
    collector->seen_bytes = claim_size(&collector->claim);
    collector->run = run;
    if (run != NULL) {
        runwriter_join(run, &collector->claim);
    }
    collector->timeline =
        timeline_map(collector->profile, collector->claim.fd, &collector->timeline_size);
    if (collector->timeline != NULL && collector->timeline->interval_ns == 0) {
        collector->timeline->interval_ns = SAMPLE_MS * MS;
    }
    start_recording(collector, &trouble);
    periodic_start(&collector->periodic, header);
    return CLAIM_OK;
}

void collector_detach(struct collector *collector) {
    record_abandon(collector->record);
    if (collector->timeline != NULL) {
        filemap_close(collector->timeline, collector->timeline_size);
    }
    logfile_end(&collector->log);
    profile_close(collector->profile);
    periodic_end(&collector->periodic);
    claim_release(&collector->claim);
    *collector = COLLECTOR_NONE;
}

void collector_write(int fd, const char *text) {
    fullwrite(fd, text, strlen(text)); /* if nobody reads it, the program goes on */
}

/* The segments are looked at again only where some were added. */
static int collector_refresh(struct collector *collector) {
    uint64_t end = claim_load_u64(&collector->claim.header->end);
    if (end == collector->seen_end) {
        return 0;
    }
    if (profile_refresh(collector->profile, NULL) != 0) {
        return -1;
    }
    collector->seen_end = profile_reaches(collector->profile, end) ? end : 0;
    return 0;
}

/* Of a process that is going: what it last had. */
static uint64_t resident(struct collector *collector) {
    uint64_t bytes = timeline_resident(collector->claim.region.pid);
    if (bytes != 0) {
        collector->resident_bytes = bytes;
    }
    return collector->resident_bytes;
}

uint64_t collector_live_bytes(struct collector *collector) {
    struct memtrace_point point = {0};
    if (collector_refresh(collector) == 0) {
        timeline_sum(collector->profile, &point);
    }
    return point.live_bytes;
}

static void collector_sample(struct collector *collector, uint64_t time_ns) {
    struct memtrace_point point = {.time_ns = time_ns};
    if (collector->timeline == NULL || time_ns < collector->next_sample_ns ||
        collector_refresh(collector) != 0) {
        return;
    }
    timeline_sum(collector->profile, &point);
    point.resident_bytes = resident(collector);
    timeline_add(collector->timeline, &point);
    collector->next_sample_ns = time_ns + collector->timeline->interval_ns;
}

static struct periodic_moment moment_now(const struct collector *collector, uint64_t time_ns) {
    const struct memtrace_header *header = collector->claim.header;
    return (struct periodic_moment){
        .time_ns = time_ns,
        .churn_bytes = claim_load_u64(&header->churn_bytes),
        .requests = claim_load_u64(&header->snapshot_request),
    };
}

static void report(struct collector *collector, struct periodic_moment *moment) {
    struct model *model;
    char *text;
    collector->seen_end = 0;
    if (collector_refresh(collector) != 0) {
        return;
    }
    moment->resident_bytes = resident(collector);
    model = model_load(collector->profile, NULL);
    text = model != NULL ? periodic_report(&collector->periodic, moment, model) : NULL;
    if (text != NULL) {
        collector_write(logfile_descriptor(&collector->log, strlen(text)), text);
    }
    free(text);
}

/* SIGABRT, not SIGKILL: the program's own handlers may have something to save, a core is left where
 * the user wants one, and who waits for the program can tell this from the OOM killer. */
static void heed_limit(struct collector *collector, struct periodic_moment *moment) {
    const char *crossed = limits_check(&collector->limits);
    uint32_t action = collector->limits.limit.action;
    char path[4200];
    struct error error;
    if (crossed == NULL) {
        return;
    }
    tell_of(LEVEL_WARNING, "limit: ", crossed);
    if (collector->record != NULL) {
        char mark[sizeof collector->limits.text + sizeof "limit: "];
        snprintf(mark, sizeof mark, "limit: %s", crossed);
        record_mark(collector->record, moment->time_ns, mark);
    }
    report(collector, moment);
    if (action == MEMTRACE_LIMIT_DUMP || action == MEMTRACE_LIMIT_ABORT) {
        if (copy_live(&collector->claim, path, sizeof path, &error) == 0) {
            tell_of(LEVEL_WARNING, "limit: the profile as it is now: ", path);
        } else {
            tell_of(LEVEL_ERROR, "limit: ", error.message);
        }
    }
    if (action == MEMTRACE_LIMIT_ABORT) {
        tell_of(LEVEL_WARNING, "limit: ", "the program is ended by SIGABRT");
        if (collector->claim.region.pid > 0) { /* 0 would be all of ours */
            kill(collector->claim.region.pid, SIGABRT);
        }
    }
}

/* Milliseconds until `due_ns`, rounded up, at most `longest`. */
static int until(uint64_t due_ns, uint64_t time_ns, int longest) {
    uint64_t ms = due_ns > time_ns ? (due_ns - time_ns + MS - 1) / MS : 1;
    return ms < (uint64_t)longest ? (int)ms : longest;
}

/* A hundredth of the time at most goes into it. */
static void note_own_resident(struct collector *collector, uint64_t time_ns) {
    if (collector->claim.header->own_maps != 0 && time_ns >= collector->next_own_ns) {
        timeline_note_own_resident(collector->claim.region.pid, collector->claim.header);
        collector->next_own_ns = time_ns + OWN_PART * (claim_time_ns(&collector->claim) - time_ns);
    }
}

/* Somebody made the region shorter: what the program counts is gone, and the program itself ends
 * by SIGBUS as soon as it counts more. What was recorded stays. */
static bool mind_cut(struct collector *collector) {
    char line[1200];
    if (!collector->is_cut && !claim_is_cut(&collector->claim, collector->seen_bytes)) {
        collector->seen_bytes = claim_size(&collector->claim);
    } else if (!collector->is_cut) {
        collector->is_cut = true;
        snprintf(line, sizeof line,
                 "%s was made shorter: what process %ld counted is lost, and it may end by SIGBUS",
                 collector->claim.region.path, (long)collector->claim.region.pid);
        tell_of(LEVEL_ERROR, "", line);
    }
    return collector->is_cut;
}

int collector_tick(struct collector *collector) {
    uint64_t time_ns = claim_time_ns(&collector->claim);
    struct periodic_moment moment = moment_now(collector, time_ns);
    int wait = TICK_MS;
    if (mind_cut(collector)) {
        return wait;
    }
    tell_news(collector);
    follow_recording(collector, time_ns);
    if (!collector->profile->live) {
        return wait;
    }
    collector_sample(collector, time_ns);
    timeline_note_resident_peak(collector->claim.region.pid, collector->claim.header);
    note_own_resident(collector, time_ns);
    heed_limit(collector, &moment);
    if (periodic_due(&collector->periodic, &moment)) {
        report(collector, &moment);
        time_ns = claim_time_ns(&collector->claim);
    }
    collector->idle_ticks =
        moment.churn_bytes != collector->last_churn ? 0 : collector->idle_ticks + 1;
    if (collector->periodic.churn_limit_bytes != 0 && collector->idle_ticks < IDLE_TICKS) {
        wait = BUSY_TICK_MS;
    }
    collector->last_churn = moment.churn_bytes;
    if (limits_wanted(&collector->limits) && wait > LIMIT_TICK_MS) {
        wait = LIMIT_TICK_MS;
    }
    if (collector->record != NULL && record_is_midway(&collector->claim) &&
        wait > RECORDING_TICK_MS) {
        wait = RECORDING_TICK_MS;
    }
    if (collector->periodic.every_ns != 0) {
        wait = until(collector->periodic.next_ns, time_ns, wait);
    }
    return wait;
}

bool collector_over(const struct collector *collector) {
    return !claim_in_use(&collector->claim);
}

/* What the program asked for in its last moments. A report by time is owed at its time only. */
static void report_owed(struct collector *collector) {
    struct periodic_moment moment = moment_now(collector, claim_time_ns(&collector->claim));
    uint64_t next_ns = collector->periodic.next_ns;
    collector->periodic.next_ns = UINT64_MAX;
    if (periodic_due(&collector->periodic, &moment)) {
        report(collector, &moment);
    }
    collector->periodic.next_ns = next_ns;
}

/* What there is to say at the end; finished and recording may each be NULL. */
static char *lines(const struct collector *collector, const struct model *model,
                   const struct leftout *left_out, const struct finished *finished,
                   const struct record_result *recording) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL) {
        return NULL;
    }
    if (recording != NULL && recording->trouble.message[0] != '\0' &&
        collector_is_told(LEVEL_ERROR)) {
        print_safe(out, "memtrace: %s\n", recording->trouble.message);
    }
    if (finished != NULL && finished->place != FINISH_MOVED && collector_is_told(LEVEL_ERROR)) {
        print_safe(out, "memtrace: %s; it is at %s%s\n", finished->trouble.message, finished->path,
                   finished->place == FINISH_KEPT ? " and the next memtrace command tries again"
                                                  : "");
    }
    if (model != NULL && collector->profile->header.summary != 0) {
        finish_print_summary(out, model, left_out, finished != NULL ? finished->path : NULL,
                             recording);
    }
    if (fclose(out) != 0) {
        free(text);
        text = NULL;
    }
    return text;
}

/* Whether the file at the output path is this program's profile with the same counts. Asked only
 * where the region has lost its name: then the runtime has written a profile at least once. */
static bool is_written(const struct collector *collector) {
    struct profile *written = profile_open(collector->profile->header.output, NULL);
    const struct memtrace_header *header = &collector->profile->header;
    struct memtrace_point there = {0};
    struct memtrace_point here = {0};
    bool same = written != NULL && written->header.pid == header->pid &&
                written->header.process_start_ticks == header->process_start_ticks &&
                written->header.start_monotonic_ns == header->start_monotonic_ns;
    if (same) {
        timeline_sum(written, &there);
        timeline_sum(collector->profile, &here);
        same = there.alloc_count == here.alloc_count && there.live_bytes == here.live_bytes;
    }
    profile_close(written);
    return same;
}

/* A model that is loaded while the profile is packed: of many call paths each takes its time. */
struct loading {
    const struct profile *profile;
    struct model *model;
    pthread_t thread;
    bool has_thread;
    bool has_ended;
};

static void *collector_load(void *context) {
    struct loading *loading = context;
    loading->model = model_load(loading->profile, NULL);
    return NULL;
}

/* NULL: it could not be loaded. */
static struct model *end_loading(struct loading *loading) {
    if (loading->has_thread && !loading->has_ended) {
        pthread_join(loading->thread, NULL);
    } else if (!loading->has_ended) {
        collector_load(loading);
    }
    loading->has_ended = true;
    return loading->model;
}

/* recording: NULL where there is none. Of a process of a run with others only what went wrong is
 * said; the run has one summary. */
static char *collector_finish_region(struct collector *collector,
                                     const struct record_result *recording, bool is_last) {
    struct finished finished;
    struct loading loading;
    struct model *model = NULL;
    struct leftout left_out = {0};
    char *text;
    enum runwriter_place place = RUNWRITER_ALONE;
    const struct record_result *own = record_is_midway(&collector->claim) ? NULL : recording;
    bool profiled = own == NULL || finish_wants_profile(&collector->claim);
    report_owed(collector);
    loading = (struct loading){.profile = collector->profile};
    loading.has_thread = /* signals are for the others */
        threadstart(&loading.thread, NULL, collector_load, &loading) == 0;
    if (collector->run != NULL) {
        model = runwriter_is_alone(collector->run, is_last) ? NULL : end_loading(&loading);
        place =
            runwriter_place(collector->run, &collector->claim, model, collector->profile, is_last);
    }
    if (place == RUNWRITER_SMALL && own != NULL) {
        unlink(own->path); /* its sums will do */
        own = recording = NULL;
        profiled = true;
    }
    if (profiled) {
        finish_region(&collector->claim, place == RUNWRITER_ALONE ? COPY_REPLACE : COPY_KEEP,
                      &finished);
    } else {
        claim_unlink(&collector->claim);
    }
    model = end_loading(&loading);
    if (model != NULL) {
        left_out = leftout_find(model);
    }
    if (collector->run != NULL) {
        runwriter_add(collector->run, &collector->claim, model, &left_out, collector->profile,
                      profiled ? finished.path : NULL, own);
    }
    text = lines(collector, place == RUNWRITER_ALONE ? model : NULL, &left_out,
                 profiled ? &finished : NULL, recording);
    model_free(model);
    return text;
}

/* There is no profile any more, at most a recording of what came before. */
static char *finish_cut(struct collector *collector) {
    struct record_result recording;
    bool recorded = collector->record != NULL &&
                    finish_recording(&collector->claim, collector->record, &recording);
    char *text;
    collector->record = NULL;
    recording.trouble.message[0] = '\0'; /* it comes from that */
    text = lines(collector, NULL, NULL, NULL, recorded ? &recording : NULL);
    claim_unlink(&collector->claim);
    collector_detach(collector);
    return text;
}

static void note_not_followed(struct runwriter *run, const struct memtrace_header *header) {
    for (size_t i = 0; run != NULL && i < MEMTRACE_NOT_FOLLOWED_KINDS; i++) {
        uint8_t count = __atomic_load_n(&header->not_followed[i], __ATOMIC_RELAXED);
        run->not_followed[i] += count;
        run->not_followed_more |= count == UINT8_MAX;
    }
    if (run != NULL) {
        run->not_followed[MEMTRACE_NOT_FOLLOWED_KINDS] +=
            __atomic_load_n(&header->run.not_reached, __ATOMIC_RELAXED);
    }
}

char *collector_finish(struct collector *collector, bool is_last) {
    struct record_result recording;
    bool recorded;
    struct profile *whole;
    char *text;
    if (mind_cut(collector)) {
        return finish_cut(collector);
    }
    if (is_to_begin(collector)) {
        drop_recording(collector);
        collector_move_state(claim_recording(&collector->claim), MEMTRACE_RECORD_OPENED,
                             MEMTRACE_RECORD_NONE);
    }
    note_not_followed(collector->run, collector->claim.header);
    profile_refresh(collector->profile, NULL);
    finish_note_malloc(&collector->claim, collector->profile);
    recorded = finish_recording(&collector->claim, collector->record, &recording);
    whole = claim_profile(&collector->claim, NULL);
    collector->record = NULL;
    if (whole != NULL) { /* no longer live: a copy, read as a file */
        profile_close(collector->profile);
        collector->profile = whole;
    }
    text = (!recorded || record_is_midway(&collector->claim)) && !collector->claim.is_outside &&
                   !claim_named(&collector->claim) && is_written(collector)
               ? strdup("")
               : collector_finish_region(collector, recorded ? &recording : NULL, is_last);
    claim_tell_children(&collector->claim);
    collector_detach(collector);
    return text;
}
