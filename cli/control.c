/* SPDX-License-Identifier: MIT */
/*
 * control.c: `memtrace control PID [MODE]`: what is counted of a running program: all, a sample or
 * nothing; and whether it is recorded. It writes a few words into the header of the program's
 * region; the program carries it out at one of its next allocations. No signal is sent.
 */
#include "analyze/read/profile.h"
#include "analyze/read/region.h"
#include "analyze/rows/number.h"
#include "analyze/rows/safetext.h"
#include "cli/cli.h"
#include "collect/modeswitch.h"
#include "collect/recordask.h"
#include "memtrace/events.h"
#include "memtrace/sampled.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TRIES = 100, TRY_MS = 10, HELP_TRIES = 10, END_TRIES = 6000 };

/* What is wanted of it. */
struct wish {
    struct modeswitch mode;
    enum { SAY, SWITCH, RECORD, RECORD_END } what;
    const char *output;
};

static const struct option options[] = {
    {"output", 'o', "FILE",
     "with record: where the recording goes (memtrace.%e.%p.mtr; %e: program, %p: process id)",
     OPTION_TEXT, OPTION_IN(struct wish, output)},
    OPTION_END};

static uint64_t load(const uint64_t *field) {
    return __atomic_load_n(field, __ATOMIC_ACQUIRE);
}

static void print_mode(const struct memtrace_header *header) {
    const struct memtrace_recording *recording = recordask_recording(header);
    bool is_recorded = memtrace_is_recorded(recording);
    const char *what = is_recorded ? "recorded" : "counted";
    uint64_t mean = modeswitch_mean(header);
    struct number number;
    printf("process %u: ", header->pid);
    if (header->mode == MEMTRACE_MODE_OFF) {
        puts("off, nothing new is counted");
    } else if (mean != 0) {
        printf("sampled, one allocation in %s is %s\n", number_bytes(&number, mean), what);
    } else {
        printf("exact, every allocation is %s\n", what);
    }
    if (is_recorded && memtrace_distance(recording) > mean) {
        printf("process %u: more comes than can be taken: one allocation in %s is recorded\n",
               header->pid, number_bytes(&number, memtrace_distance(recording)));
    }
    if (is_recorded) {
        print_safe(stdout, "process %u: recording %s\n", header->pid, recording->path);
    }
}

static void pause_shortly(void) {
    const struct timespec pause = {.tv_nsec = TRY_MS * 1000000L};
    nanosleep(&pause, NULL);
}

static int ask(struct memtrace_header *header, const struct region *region,
               struct modeswitch wish) {
    uint64_t control = modeswitch_ask(header, wish);
    /* It says first that it does it, and then that it has. */
    for (int i = 0; i < TRIES && load(&header->control) == control &&
                    (load(&header->control_done) != control || !modeswitch_holds(header, wish));
         i++) {
        if (!region_alive(region->pid, region->start_ticks)) {
            return cli_error("process %ld is gone", (long)region->pid);
        }
        pause_shortly();
    }
    if (load(&header->control) != control) {
        printf("process %ld: asked; another 'memtrace control' came after this one\n",
               (long)region->pid);
    } else if (load(&header->control_done) != control) {
        printf("process %ld: asked; it follows when it allocates next\n", (long)region->pid);
    } else {
        print_mode(header);
    }
    return CLI_OK;
}

/* --- recordings ------------------------------------------------------------------------------- */

static int say_gone(const struct region *region) {
    return cli_error("process %ld is gone", (long)region->pid);
}

/* What was asked for is to come within a second, or when the program goes on. */
static int wait_for_begin(struct memtrace_header *header, const struct region *region,
                          uint32_t begun_before) {
    const struct memtrace_recording *recording = recordask_recording(header);
    const long pid = (long)region->pid;
    char path[sizeof recording->path];
    enum recordask_state state = recordask_look(header);
    snprintf(path, sizeof path, "%s", recording->path);
    for (int i = 0; i < (state == RECORDASK_OPENING ? 4 * TRIES : TRIES) &&
                    (state == RECORDASK_OPENING || state == RECORDASK_ASKED ||
                     (state == RECORDASK_ON &&
                      __atomic_load_n(&recording->begun, __ATOMIC_ACQUIRE) == begun_before));
         i++) {
        if (!region_alive(region->pid, region->start_ticks)) {
            return say_gone(region);
        }
        if (state == RECORDASK_OPENING && i % HELP_TRIES == HELP_TRIES - 1) {
            recordask_help(region);
        }
        pause_shortly();
        state = recordask_look(header);
    }
    switch (state) {
    case RECORDASK_OPENING:
        recordask_give_up(header);
        return cli_error("nobody came to write the recording of process %ld: is the program "
                         "'memtrace' stopped that collects it?",
                         pid);
    case RECORDASK_REFUSED:
        unlink(path);
        return cli_error("process %ld: %s", pid, recording->path);
    case RECORDASK_STOPPED:
        return cli_error("process %ld: %s could not be gone on with: is the disk full?", pid,
                         recording->path);
    case RECORDASK_ASKED:
        print_safe(stdout, "process %ld: asked; %s begins when it allocates next\n", pid,
                   recording->path);
        return CLI_OK;
    default:
        print_safe(stdout, "process %ld: recording %s\n", pid, recording->path);
        return CLI_OK;
    }
}

static int begin_recording(struct memtrace_header *header, const struct region *region,
                           const char *output) {
    uint32_t begun_before = recordask_recording(header)->begun;
    struct error error;
    return recordask_begin(header, region, output, &error) != 0
               ? cli_error("%s", error.message)
               : wait_for_begin(header, region, begun_before);
}

static void print_file(const struct memtrace_recording *recording, const char *path, long pid) {
    struct number events;
    struct number bytes;
    struct number lost;
    uint64_t losses = recording->lost_allocs + recording->lost_frees;
    print_safe(stdout, "process %ld: recorded %s (%s in %s, lost %s%s)\n", pid, path,
               number_items(&events, recording->file_events, "event"),
               number_bytes(&bytes, recording->file_bytes), number_count(&lost, losses),
               (recording->flags & MEMTRACE_RECORDING_CUT) != 0 ? ", and all since it stopped"
                                                                : "");
}

static int end_recording(struct memtrace_header *header, const struct region *region) {
    const struct memtrace_recording *recording = recordask_recording(header);
    char path[sizeof recording->path];
    struct error error;
    enum recordask_state state = RECORDASK_ENDING;
    snprintf(path, sizeof path, "%s", recording->path);
    if (recordask_end(header, region, &error) != 0) {
        return cli_error("%s", error.message);
    }
    for (int i = 0; i < END_TRIES && state == RECORDASK_ENDING; i++) {
        pause_shortly();
        state = recordask_look(header);
        if (!region_alive(region->pid, region->start_ticks)) {
            return say_gone(region);
        }
        if (state == RECORDASK_ENDING && i % HELP_TRIES == HELP_TRIES - 1) {
            recordask_help(region);
        }
    }
    if (state == RECORDASK_ENDING) {
        return cli_error("%s is still being written", path);
    }
    if (recording->begun_ns == 0) {
        printf("process %ld: the recording had not begun yet, and there is none\n",
               (long)region->pid);
        return CLI_OK;
    }
    print_file(recording, path, (long)region->pid);
    return CLI_OK;
}

/* --- what is wanted --------------------------------------------------------------------------- */

static int carry_out(struct memtrace_header *header, const struct region *region,
                     const struct wish *wish) {
    switch (wish->what) {
    case SWITCH:
        return ask(header, region, wish->mode);
    case RECORD:
        return begin_recording(header, region, wish->output);
    case RECORD_END:
        return end_recording(header, region);
    default:
        print_mode(header);
        return CLI_OK;
    }
}

static int control(pid_t pid, const struct wish *wish) {
    struct error error;
    struct region region;
    struct profile *profile;
    struct memtrace_header *header;
    int status;
    if (region_find(pid, &region, &error) != 0) {
        return cli_error("%s", error.message);
    }
    if (!region.alive) {
        return say_gone(&region);
    }
    profile = profile_open(region.path, &error); /* looks whether it is one */
    header = profile != NULL ? modeswitch_map(region.path, &error) : NULL;
    profile_close(profile);
    if (header == NULL) {
        return cli_error("%s", error.message);
    }
    status = carry_out(header, &region, wish);
    modeswitch_unmap(header);
    return cli_finish(status);
}

/* 0, or -1: not understood. */
static int read_record(int count, char **words, struct wish *wish) {
    wish->what = count > 1 ? RECORD_END : RECORD;
    return count == 1 || (count == 2 && strcmp(words[1], "off") == 0) ? 0 : -1;
}

static int read_sample(int count, char **words, struct modeswitch *mode) {
    *mode = (struct modeswitch){.mode = MEMTRACE_MODE_SAMPLED, .mean = MODESWITCH_MEAN};
    return count < 2 || (count == 2 && quantity_bytes(words[1], &mode->mean) == 0 &&
                         mode->mean != 0 && mode->mean >> MEMTRACE_CONTROL_MEAN_BITS == 0)
               ? 0
               : -1;
}

static int read_wish(int count, char **words, struct wish *wish) {
    wish->what = SWITCH;
    wish->mode.mode = MEMTRACE_MODE_OFF;
    if (strcmp(words[0], "record") == 0) {
        return read_record(count, words, wish);
    }
    if (strcmp(words[0], "sample") == 0) {
        return read_sample(count, words, &wish->mode);
    }
    if (strcmp(words[0], "exact") == 0) {
        wish->mode.mode = MEMTRACE_MODE_EXACT;
    } else if (strcmp(words[0], "on") == 0) {
        wish->mode.mode = MEMTRACE_MODE_ON;
    } else if (strcmp(words[0], "off") != 0) {
        return -1;
    }
    return count == 1 ? 0 : -1;
}

static int run_control(int argc, char **argv) {
    struct wish wish = {.what = SAY};
    uint64_t pid;
    int status = cli_read(&control_command, &argc, &argv, &wish);
    if (status != CLI_OK) {
        return status;
    }
    if (argc < 1) {
        return cli_usage("control", "a process id is needed");
    }
    if (quantity_u64(argv[0], &pid) != 0 || pid == 0 || pid > INT32_MAX) {
        return cli_usage("control", "'%s' is not a process id", argv[0]);
    }
    if (argc > 1 && read_wish(argc - 1, argv + 1, &wish) != 0) {
        return cli_usage("control",
                         "after the process id: exact, sample [SIZE], off, on, record or "
                         "record off");
    }
    if (wish.output != NULL && wish.what != RECORD) {
        return cli_usage("control", "--output belongs to record");
    }
    return control((pid_t)pid, &wish);
}

const struct command control_command = {
    .name = "control",
    .run = run_control,
    .summary = "count all, a sample or nothing in a running program; record it from now on",
    .usage = "PID [exact|sample [SIZE]|off|on|record [-o FILE]|record off]",
    .options = options,
    .about = "Changes what is counted of process PID, which must be profiled, while it runs, or "
             "says what is counted now. It follows at one of its next allocations; no signal is "
             "sent.\n"
             "  exact           every allocation\n"
             "  sample [SIZE]   one allocation in SIZE bytes (512K), chosen at random; reports\n"
             "                  give estimates\n"
             "  off             nothing new; what was counted is followed\n"
             "  on              as before off\n"
             "  record          also record each event with its time, from now on\n"
             "  record off      end that recording; the profile goes on",
    .operands = "PID exact|sample|off|on|record",
};
