/* SPDX-License-Identifier: MIT */
/*
 * control.c: `memtrace control PID [MODE]`: what is counted of a running program: all, a sample or
 * nothing. It writes one word into the header of the program's region; the program carries it out
 * at one of its next allocations. No signal is sent.
 */
#include "analyze/read/profile.h"
#include "analyze/read/region.h"
#include "analyze/rows/number.h"
#include "cli/cli.h"
#include "collect/modeswitch.h"
#include "memtrace/events.h"
#include "memtrace/sampled.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { TRIES = 100, TRY_MS = 10 };

static uint64_t load(const uint64_t *field) {
    return __atomic_load_n(field, __ATOMIC_ACQUIRE);
}

static void print_mode(const struct memtrace_header *header) {
    const struct memtrace_recording *recording = (const void *)header->recording;
    const char *what = recording->state != MEMTRACE_RECORD_NONE ? "recorded" : "counted";
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
}

static int ask(struct memtrace_header *header, const struct region *region,
               struct modeswitch wish) {
    const struct timespec pause = {.tv_nsec = TRY_MS * 1000000L};
    uint64_t control = modeswitch_ask(header, wish);
    /* It says first that it does it, and then that it has. */
    for (int i = 0; i < TRIES && load(&header->control) == control &&
                    (load(&header->control_done) != control || !modeswitch_holds(header, wish));
         i++) {
        if (!region_alive(region->pid, region->start_ticks)) {
            return cli_error("process %ld is gone", (long)region->pid);
        }
        nanosleep(&pause, NULL);
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

/* wish NULL: says what is. */
static int control(pid_t pid, const struct modeswitch *wish) {
    struct error error;
    struct region region;
    struct profile *profile;
    struct memtrace_header *header;
    int status = CLI_OK;
    if (region_find(pid, &region, &error) != 0) {
        return cli_error("%s", error.message);
    }
    if (!region.alive) {
        return cli_error("process %ld is gone", (long)pid);
    }
    profile = profile_open(region.path, &error); /* looks whether it is one */
    header = profile != NULL ? modeswitch_map(region.path, &error) : NULL;
    profile_close(profile);
    if (header == NULL) {
        return cli_error("%s", error.message);
    }
    if (wish != NULL) {
        status = ask(header, &region, *wish);
    } else {
        print_mode(header);
    }
    modeswitch_unmap(header);
    return cli_finish(status);
}

/* 0, or -1: not understood. */
static int read_wish(int count, char **words, struct modeswitch *wish) {
    *wish = (struct modeswitch){.mode = MEMTRACE_MODE_OFF};
    if (strcmp(words[0], "sample") == 0) {
        wish->mode = MEMTRACE_MODE_SAMPLED;
        wish->mean = MODESWITCH_MEAN;
        return count < 2 || (count == 2 && quantity_bytes(words[1], &wish->mean) == 0 &&
                             wish->mean != 0 && wish->mean >> MEMTRACE_CONTROL_MEAN_BITS == 0)
                   ? 0
                   : -1;
    }
    if (strcmp(words[0], "exact") == 0) {
        wish->mode = MEMTRACE_MODE_EXACT;
    } else if (strcmp(words[0], "on") == 0) {
        wish->mode = MEMTRACE_MODE_ON;
    } else if (strcmp(words[0], "off") != 0) {
        return -1;
    }
    return count == 1 ? 0 : -1;
}

static int run_control(int argc, char **argv) {
    struct modeswitch wish;
    uint64_t pid;
    int status = cli_read(&control_command, &argc, &argv, NULL);
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
        return cli_usage("control", "after the process id: exact, sample [SIZE], off or on");
    }
    return control((pid_t)pid, argc > 1 ? &wish : NULL);
}

const struct command control_command = {
    .name = "control",
    .run = run_control,
    .summary = "count all, a sample or nothing in a running program",
    .usage = "PID [exact|sample [SIZE]|off|on]",
    .about = "Changes what is counted of process PID, which must be profiled, while it runs, or "
             "says what is counted now. It follows at one of its next allocations; no signal is "
             "sent.\n"
             "  exact           every allocation\n"
             "  sample [SIZE]   one allocation in SIZE bytes (512K), chosen at random; reports\n"
             "                  give estimates\n"
             "  off             nothing new; what was counted is followed\n"
             "  on              as before off",
    .operands = "PID exact|sample|off|on",
};
