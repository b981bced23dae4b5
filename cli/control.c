/* SPDX-License-Identifier: MIT */
/*
 * control.c: `memtrace control PID|FILE [WISH]`: what is counted of a running program: all, a
 * sample or nothing; whether it is recorded; marks. It writes a few words into the header of the
 * program's region; the program carries it out at one of its next allocations. No signal is sent. A
 * FILE that `memtrace gather` receives stands for its program on another machine: then gather is
 * asked.
 */
#include "analyze/read/recording.h"
#include "analyze/read/region.h"
#include "analyze/rows/number.h"
#include "analyze/rows/safetext.h"
#include "cli/cli.h"
#include "collect/gatherask.h"
#include "collect/modeswitch.h"
#include "collect/programask.h"
#include "collect/recordask.h"
#include "memtrace/events.h"
#include "memtrace/sampled.h"

#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TRIES = 100, TRY_MS = 10, HELP_TRIES = 10, END_TRIES = 6000 };

/* What is wanted of it. */
struct wish {
    struct programask_wish program;
    enum { SAY, ASK, RECORD, RECORD_END } what;
    const char *output;
};

static const struct option options[] = {
    {"output", 'o', "FILE",
     "with record: where the recording goes (memtrace.%e.%p.mtr; %e: program, %p: process id)",
     OPTION_TEXT, OPTION_IN(struct wish, output)},
    OPTION_END};

static void pause_shortly(void) {
    const struct timespec pause = {.tv_nsec = TRY_MS * 1000000L};
    nanosleep(&pause, NULL);
}

static int say_gone(const struct region *region) {
    return cli_error("process %ld is gone", (long)region->pid);
}

/* Where a recording of it goes, too. */
static void print_recording(const struct memtrace_header *header) {
    const struct memtrace_recording *recording = recordask_recording(header);
    char path[RECORDASK_PATH];
    struct number number;
    if (memtrace_is_recorded(recording)) {
        if (memtrace_distance(recording) > modeswitch_mean(header)) {
            printf("process %u: more comes than can be taken: one allocation in %s is recorded\n",
                   header->pid, number_bytes(&number, memtrace_distance(recording)));
        }
        recordask_path(header, path);
        print_safe(stdout, "process %u: recording %s\n", header->pid, path);
    }
}

/* What is counted, or a mark. */
static int ask(struct memtrace_header *header, const struct region *region,
               const struct programask_wish *wish) {
    struct programask ask;
    struct programask_answer answer;
    struct error error;
    if (programask_begin(&ask, region, wish, &error) != 0) {
        return cli_error("%s", error.message);
    }
    while (!programask_look(&ask, &answer)) {
        pause_shortly();
    }
    if (!answer.is_done) {
        return region_alive(region->pid, region->start_ticks)
                   ? cli_error("process %ld: %s", (long)region->pid, answer.text)
                   : say_gone(region);
    }
    print_safe(stdout, "process %u: %s\n", header->pid, answer.text);
    if (wish->what != PROGRAMASK_MARK && strncmp(answer.text, "asked", 5) != 0) {
        print_recording(header);
    }
    return CLI_OK;
}

/* --- recordings ------------------------------------------------------------------------------- */

/* What was asked for is to come within a second, or when the program goes on. The path is what was
 * chosen here: what the header says may be another user's. */
static int wait_for_begin(struct memtrace_header *header, const struct region *region,
                          uint32_t begun_before, const char *path) {
    const struct memtrace_recording *recording = recordask_recording(header);
    const long pid = (long)region->pid;
    char why[RECORDASK_PATH];
    enum recordask_state state = recordask_look(header);
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
        return cli_error("nothing came to write the recording of process %ld: is the memtrace "
                         "process that collects it stopped?",
                         pid);
    case RECORDASK_REFUSED:
        unlink(path);
        recordask_path(header, why);
        return cli_error("process %ld: %s", pid, why);
    case RECORDASK_STOPPED:
        return cli_error("process %ld: %s could not be continued: is the disk full?", pid, path);
    case RECORDASK_ASKED:
        print_safe(stdout, "process %ld: asked; %s begins when it allocates next\n", pid, path);
        return CLI_OK;
    default:
        print_safe(stdout, "process %ld: recording %s\n", pid, path);
        return CLI_OK;
    }
}

static int begin_recording(struct memtrace_header *header, const struct region *region,
                           const char *output) {
    uint32_t begun_before = recordask_recording(header)->begun;
    char path[RECORDASK_PATH];
    struct error error;
    return recordask_begin(header, region, output, path, &error) != 0
               ? cli_error("%s", error.message)
               : wait_for_begin(header, region, begun_before, path);
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
    char path[RECORDASK_PATH];
    struct error error;
    enum recordask_state state = RECORDASK_ENDING;
    recordask_path(header, path);
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

/* --- a process -------------------------------------------------------------------------------- */

static int carry_out(struct memtrace_header *header, const struct region *region,
                     const struct wish *wish) {
    switch (wish->what) {
    case RECORD:
        return begin_recording(header, region, wish->output);
    case RECORD_END:
        return end_recording(header, region);
    default:
        return ask(header, region, &wish->program);
    }
}

static int control_region(const struct region *region, const struct wish *wish) {
    struct error error;
    struct memtrace_header *header = modeswitch_open(region->path, &error);
    int status;
    if (header == NULL) {
        return cli_error("%s", error.message);
    }
    status = carry_out(header, region, wish);
    modeswitch_unmap(header);
    return cli_finish(status);
}

static int control_process(pid_t pid, const struct wish *wish) {
    struct error error;
    struct region region;
    if (region_find(pid, &region, &error) != 0) {
        return cli_error("%s", error.message);
    }
    return region.alive ? control_region(&region, wish) : say_gone(&region);
}

/* --- by a recording --------------------------------------------------------------------------- */

/* Of a program of this machine. */
static int control_recorded(const char *path, const struct wish *wish) {
    struct error error;
    struct region region;
    return programask_find(path, &region, &error) == 0 ? control_region(&region, wish)
                                                       : cli_error("%s", error.message);
}

static int control_file(const char *path, const struct wish *wish) {
    struct programask_answer answer;
    struct gatherask ask;
    struct error error;
    int asked;
    if (!recording_is(path)) {
        return access(path, F_OK) != 0
                   ? cli_error("%s is neither a process nor a file", path)
                   : cli_error("%s is not a recording; a process id or a recording stands for the "
                               "program",
                               path);
    }
    if (wish->what == RECORD || wish->what == RECORD_END) {
        return cli_usage("control", "record takes a process id: its program is recorded already");
    }
    asked = gatherask_begin(&ask, path, &wish->program, &error);
    if (asked <= 0) {
        return asked < 0 ? cli_error("%s", error.message) : control_recorded(path, wish);
    }
    while (!gatherask_look(&ask, &answer)) {
        struct pollfd one = {.fd = ask.fd, .events = POLLIN};
        poll(&one, 1, TRY_MS * TRY_MS);
    }
    if (!answer.is_done) {
        return cli_error("%s: %s", ask.name, answer.text);
    }
    print_safe(stdout, "%s: %s\n", ask.name, answer.text);
    return cli_finish(CLI_OK);
}

/* --- what is wanted --------------------------------------------------------------------------- */

/* 0, or -1: not understood. */
static int read_record(int count, char **words, struct wish *wish) {
    wish->what = count > 1 ? RECORD_END : RECORD;
    return count == 1 || (count == 2 && strcmp(words[1], "off") == 0) ? 0 : -1;
}

static int read_sample(int count, char **words, struct programask_wish *wish) {
    *wish = (struct programask_wish){.what = PROGRAMASK_SAMPLE, .mean = MODESWITCH_MEAN};
    return count < 2 || (count == 2 && quantity_bytes(words[1], &wish->mean) == 0 &&
                         wish->mean != 0 && wish->mean >> MEMTRACE_CONTROL_MEAN_BITS == 0)
               ? 0
               : -1;
}

static int read_mark(int count, char **words, struct programask_wish *wish) {
    wish->what = PROGRAMASK_MARK;
    return count == 2 && words[1][0] != '\0' &&
                   (size_t)snprintf(wish->text, sizeof wish->text, "%s", words[1]) <
                       sizeof wish->text
               ? 0
               : -1;
}

static int read_wish(int count, char **words, struct wish *wish) {
    static const struct {
        const char *name;
        enum programask_what what;
    } names[] = {{"exact", PROGRAMASK_EXACT}, {"on", PROGRAMASK_ON}, {"off", PROGRAMASK_OFF}};
    wish->what = ASK;
    if (strcmp(words[0], "record") == 0) {
        return read_record(count, words, wish);
    }
    if (strcmp(words[0], "sample") == 0) {
        return read_sample(count, words, &wish->program);
    }
    if (strcmp(words[0], "mark") == 0) {
        return read_mark(count, words, &wish->program);
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(words[0], names[i].name) == 0 && count == 1) {
            wish->program.what = names[i].what;
            return 0;
        }
    }
    return -1;
}

static int run_control(int argc, char **argv) {
    struct wish wish = {.what = SAY, .program.what = PROGRAMASK_SAY};
    uint64_t pid;
    int status = cli_read(&control_command, &argc, &argv, &wish);
    if (status != CLI_OK) {
        return status;
    }
    if (argc < 1) {
        return cli_usage("control", "a process id or a recording is needed");
    }
    if (argc > 1 && read_wish(argc - 1, argv + 1, &wish) != 0) {
        return cli_usage("control",
                         "after the process id or the recording: exact, sample [SIZE], off, on, "
                         "mark TEXT (1 to %d bytes), record or record off",
                         PROGRAMASK_TEXT - 1);
    }
    if (wish.output != NULL && wish.what != RECORD) {
        return cli_usage("control", "--output belongs to record");
    }
    if (quantity_u64(argv[0], &pid) != 0) {
        return control_file(argv[0], &wish);
    }
    return pid != 0 && pid <= INT32_MAX ? control_process((pid_t)pid, &wish)
                                        : cli_usage("control", "'%s' is not a process id", argv[0]);
}

const struct command control_command = {
    .name = "control",
    .run = run_control,
    .summary = "count all, a sample or nothing in a running program; record it from now on",
    .usage = "PID|FILE [exact|sample [SIZE]|off|on|mark TEXT]\n"
             "PID record [-o FILE]|record off",
    .options = options,
    .about = "Changes what is counted of process PID, which must be profiled, while it runs, or "
             "says what is counted now. It follows at one of its next allocations; no signal is "
             "sent. FILE, a recording, stands for its program; where `memtrace gather` receives "
             "it from another machine, it is controlled there, if its sender allows it.\n"
             "  exact           every allocation\n"
             "  sample [SIZE]   one allocation in SIZE bytes (512K) on average, at random;\n"
             "                  reports give estimates\n"
             "  off             no new allocation; what was counted is followed on\n"
             "  on              as before off\n"
             "  mark TEXT       put a mark into its recording\n"
             "  record          also record each event with its time, from now on\n"
             "  record off      end that recording; the profile goes on",
    .operands = "PID|RECORDING exact|sample|off|on|mark|record",
};
