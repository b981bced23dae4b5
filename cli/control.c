/* SPDX-License-Identifier: MIT */
/*
 * control.c: `memtrace control PID|FILE [WISH]`: what is counted of a running program: all, a
 * sample or nothing; whether it is recorded; marks. It writes a few words into the header of the
 * program's region; the program carries it out at one of its next allocations. No signal is sent. A
 * FILE that `memtrace gather` receives stands for its program on another machine: then gather is
 * asked.
 */
#include "analyze/base/job.h"
#include "analyze/read/recording.h"
#include "analyze/read/region.h"
#include "analyze/rows/number.h"
#include "analyze/rows/safetext.h"
#include "cli/cli.h"
#include "collect/gatherask.h"
#include "collect/programask.h"
#include "memtrace/events.h"
#include "memtrace/sampled.h"

#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
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

static noreturn void fail_gone(const struct region *region) {
    job_fail("process %ld is gone", (long)region->pid);
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
static void control_ask(struct memtrace_header *header, const struct region *region,
                        const struct programask_wish *wish) {
    struct programask ask;
    struct programask_answer answer;
    struct error error;
    job_check(programask_begin(&ask, region, wish, &error), &error);
    while (!programask_look(&ask, &answer)) {
        poll(NULL, 0, TRY_MS);
    }
    if (!answer.is_done && !region_alive(region->pid, region->start_ticks)) {
        fail_gone(region);
    }
    if (!answer.is_done) {
        job_fail("process %ld: %s", (long)region->pid, answer.text);
    }
    print_safe(stdout, "process %u: %s\n", header->pid, answer.text);
    if (wish->what != PROGRAMASK_MARK && strncmp(answer.text, "asked", 5) != 0) {
        print_recording(header);
    }
}

/* --- recordings ------------------------------------------------------------------------------- */

/* Waits a little for what was asked for, and helps it along. How it is then. */
static enum recordask_state wait_step(const struct memtrace_header *header,
                                      const struct region *region, enum recordask_state state,
                                      int step) {
    if (!region_alive(region->pid, region->start_ticks)) {
        fail_gone(region);
    }
    if ((state == RECORDASK_OPENING || state == RECORDASK_ENDING) &&
        step % HELP_TRIES == HELP_TRIES - 1) {
        recordask_help(region);
    }
    poll(NULL, 0, TRY_MS);
    return recordask_look(header);
}

/* It is to come within a second, or when the program goes on. The path is what was chosen here:
 * what the header says may be another user's. */
static void begin_recording(struct memtrace_header *header, const struct region *region,
                            const char *output) {
    const struct memtrace_recording *recording = recordask_recording(header);
    const long pid = (long)region->pid;
    uint32_t begun_before = recording->begun;
    char path[RECORDASK_PATH];
    char why[RECORDASK_PATH];
    enum recordask_state state;
    struct error error;
    job_check(recordask_begin(header, region, output, path, &error), &error);
    state = recordask_look(header);
    for (int i = 0; i < (state == RECORDASK_OPENING ? 4 * TRIES : TRIES) &&
                    (state == RECORDASK_OPENING || state == RECORDASK_ASKED ||
                     (state == RECORDASK_ON &&
                      __atomic_load_n(&recording->begun, __ATOMIC_ACQUIRE) == begun_before));
         i++) {
        state = wait_step(header, region, state, i);
    }
    switch (state) {
    case RECORDASK_OPENING:
        recordask_give_up(header);
        job_fail("nothing came to write the recording of process %ld: is the memtrace process that "
                 "collects it stopped?",
                 pid);
    case RECORDASK_REFUSED:
        unlink(path);
        recordask_path(header, why);
        job_fail("process %ld: %s", pid, why);
    case RECORDASK_STOPPED:
        job_fail("process %ld: %s could not be continued: is the disk full?", pid, path);
    case RECORDASK_ASKED:
        print_safe(stdout, "process %ld: asked; %s begins when it allocates next\n", pid, path);
        break;
    default:
        print_safe(stdout, "process %ld: recording %s\n", pid, path);
    }
}

static void end_recording(struct memtrace_header *header, const struct region *region) {
    const struct memtrace_recording *recording = recordask_recording(header);
    char path[RECORDASK_PATH];
    struct error error;
    enum recordask_state state = RECORDASK_ENDING;
    struct number numbers[3];
    recordask_path(header, path);
    job_check(recordask_end(header, region, &error), &error);
    for (int i = 0; i < END_TRIES && state == RECORDASK_ENDING; i++) {
        state = wait_step(header, region, state, i);
    }
    if (state == RECORDASK_ENDING) {
        job_fail("%s is still being written", path);
    }
    if (recording->begun_ns == 0) {
        printf("process %ld: the recording had not begun yet, and there is none\n",
               (long)region->pid);
    } else {
        print_safe(stdout, "process %ld: recorded %s (%s in %s, lost %s%s)\n", (long)region->pid,
                   path, number_items(&numbers[0], recording->file_events, "event"),
                   number_bytes(&numbers[1], recording->file_bytes),
                   number_count(&numbers[2], recording->lost_allocs + recording->lost_frees),
                   (recording->flags & MEMTRACE_RECORDING_CUT) != 0 ? ", and all since it stopped"
                                                                    : "");
    }
}

/* --- a process, and what a recording stands for ----------------------------------------------- */

static void control_unmap(void *header) {
    modeswitch_unmap(header);
}

static void control_region(const struct region *region, const struct wish *wish) {
    struct error error;
    struct memtrace_header *header = modeswitch_open(region->path, &error);
    job_check(header != NULL ? 0 : -1, &error);
    job_undo(control_unmap, header);
    if (wish->what == RECORD) {
        begin_recording(header, region, wish->output);
    } else if (wish->what == RECORD_END) {
        end_recording(header, region);
    } else {
        control_ask(header, region, &wish->program);
    }
}

static void control_file(const char *path, const struct wish *wish) {
    struct programask_answer answer;
    struct gatherask ask;
    struct region region;
    struct error error;
    int asked;
    if (!recording_is(path) && access(path, F_OK) != 0) {
        job_fail("%s is neither a process nor a file", path);
    }
    if (!recording_is(path)) {
        job_fail("%s is not a recording; a process id or a recording stands for the program", path);
    }
    if (wish->what == RECORD || wish->what == RECORD_END) {
        cli_usage("control", "record takes a process id: its program is recorded already");
    }
    asked = gatherask_begin(&ask, path, &wish->program, &error);
    job_check(asked < 0, &error);
    if (asked == 0) { /* a program of this machine */
        job_check(programask_find(path, &region, &error), &error);
        control_region(&region, wish);
        return;
    }
    while (!gatherask_look(&ask, &answer)) {
        struct pollfd one = {.fd = ask.fd, .events = POLLIN};
        poll(&one, 1, TRY_MS * TRY_MS);
    }
    if (!answer.is_done) {
        job_fail("%s: %s", ask.name, answer.text);
    }
    print_safe(stdout, "%s: %s\n", ask.name, answer.text);
}

/* --- what is wanted --------------------------------------------------------------------------- */

/* Whether the words are understood. */
static bool control_reads_wish(int count, char **words, struct wish *wish) {
    static const struct {
        const char *name;
        enum programask_what what;
    } names[] = {{"exact", PROGRAMASK_EXACT}, {"on", PROGRAMASK_ON}, {"off", PROGRAMASK_OFF}};
    struct programask_wish *program = &wish->program;
    const char *word = words[0];
    const char *next = count == 2 ? words[1] : NULL;
    wish->what = ASK;
    if (strcmp(word, "record") == 0) {
        wish->what = count > 1 ? RECORD_END : RECORD;
        return count == 1 || (next != NULL && strcmp(next, "off") == 0);
    }
    if (strcmp(word, "sample") == 0) {
        *program = (struct programask_wish){.what = PROGRAMASK_SAMPLE, .mean = MODESWITCH_MEAN};
        return count == 1 ||
               (next != NULL && quantity_bytes(next, &program->mean) == 0 && program->mean != 0 &&
                program->mean >> MEMTRACE_CONTROL_MEAN_BITS == 0);
    }
    if (strcmp(word, "mark") == 0) {
        program->what = PROGRAMASK_MARK;
        return next != NULL && next[0] != '\0' &&
               (size_t)snprintf(program->text, sizeof program->text, "%s", next) <
                   sizeof program->text;
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(word, names[i].name) == 0 && count == 1) {
            program->what = names[i].what;
            return true;
        }
    }
    return false;
}

static int run_control(int argc, char **argv) {
    struct wish wish = {.what = SAY, .program.what = PROGRAMASK_SAY};
    struct region region;
    struct error error;
    uint64_t number;
    cli_read(&control_command, &argc, &argv, &wish);
    if (argc < 1) {
        cli_usage("control", "a process id or a recording is needed");
    }
    if (argc > 1 && !control_reads_wish(argc - 1, argv + 1, &wish)) {
        cli_usage("control",
                  "after the process id or the recording: exact, sample [SIZE], off, on, "
                  "mark TEXT (1 to %d bytes), record or record off",
                  PROGRAMASK_TEXT - 1);
    }
    if (wish.output != NULL && wish.what != RECORD) {
        cli_usage("control", "--output belongs to record");
    }
    if (quantity_u64(argv[0], &number) != 0) {
        control_file(argv[0], &wish);
    } else {
        job_check(region_find(cli_pid(&control_command, argv[0]), &region, &error), &error);
        if (!region.alive) {
            fail_gone(&region);
        }
        control_region(&region, &wish);
    }
    return cli_finish(CLI_OK);
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
