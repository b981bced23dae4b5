/* SPDX-License-Identifier: MIT */
/* runjson.c: a run as JSON. See runjson.h. */
#include "collect/runjson.h"

#include "analyze/base/filemode.h"
#include "analyze/rows/safetext.h"
#include "collect/clock.h"
#include "collect/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <yajl/yajl_gen.h>

enum { VERSION = 1 };

static void text(yajl_gen json, const char *value) {
    char *repaired = utf8_repair(value);
    const char *shown = repaired != NULL ? repaired : "";
    yajl_gen_string(json, (const unsigned char *)shown, strlen(shown));
    free(repaired);
}

static void name(yajl_gen json, const char *member) {
    yajl_gen_string(json, (const unsigned char *)member, strlen(member));
}

static void put_text(yajl_gen json, const char *member, const char *value) {
    if (value != NULL) {
        name(json, member);
        text(json, value);
    }
}

static void put_number(yajl_gen json, const char *member, uint64_t value) {
    name(json, member);
    yajl_gen_integer(json, (long long)value);
}

static uint64_t since_start(const struct runwriter *run, uint64_t time_ns) {
    return time_ns > run->start_ns ? time_ns - run->start_ns : 0;
}

static const char *end_of(const struct runwriter_process *process) {
    switch (process->state) {
    case MEMTRACE_STATE_ENDED:
    case MEMTRACE_STATE_WRITTEN:
        return "ended";
    case MEMTRACE_STATE_EXECED:
        return "execed";
    default:
        return "killed";
    }
}

static void put_arguments(yajl_gen json, struct arguments left) {
    const char *at;
    if (left.bytes == NULL) {
        return;
    }
    name(json, "arguments");
    yajl_gen_array_open(json);
    while ((at = arguments_next(&left)) != NULL) {
        text(json, at);
    }
    yajl_gen_array_close(json);
}

static void put_process(yajl_gen json, const struct runwriter *run,
                        const struct runwriter_process *process) {
    yajl_gen_map_open(json);
    put_number(json, "pid", (uint64_t)process->pid);
    put_number(json, "parent_pid", (uint64_t)process->parent_pid);
    put_number(json, "image", process->image);
    put_text(json, "program", process->program);
    put_arguments(json, process->arguments);
    put_number(json, "start_ns", since_start(run, process->start_ns));
    put_number(json, "end_ns", since_start(run, process->end_ns));
    put_text(json, "end", end_of(process));
    put_number(json, "allocations", process->allocations);
    put_number(json, "total_bytes", process->total_bytes);
    put_number(json, "frees", process->frees);
    put_number(json, "leaked_bytes", process->leaked_bytes);
    put_number(json, "suppressed_bytes", process->suppressed_bytes);
    put_number(json, "leaked_blocks", process->leaked_blocks);
    put_number(json, "peak_bytes", process->peak_bytes);
    put_number(json, "lost", process->lost);
    put_text(json, "file", process->file);
    if (process->light) {
        name(json, "light");
        yajl_gen_bool(json, 1);
    }
    yajl_gen_map_close(json);
}

static void put_samples(yajl_gen json, const struct runwriter *run) {
    name(json, "timeline");
    yajl_gen_array_open(json);
    for (size_t i = 0; i < run->sample_count; i++) {
        const struct runwriter_sample *sample = &run->samples[i];
        yajl_gen_array_open(json);
        yajl_gen_integer(json, (long long)sample->time_ns);
        yajl_gen_integer(json, (long long)sample->live_bytes);
        yajl_gen_integer(json, (long long)sample->resident_bytes);
        yajl_gen_integer(json, (long long)sample->processes);
        yajl_gen_array_close(json);
    }
    yajl_gen_array_close(json);
}

static void put_peak(yajl_gen json, const struct runwriter *run) {
    struct runwriter_peak peak = runwriter_peak(run);
    name(json, "peak");
    yajl_gen_map_open(json);
    put_number(json, "seen_bytes", peak.seen_bytes);
    put_number(json, "at_ns", peak.at_ns);
    put_number(json, "bound_bytes", peak.bound_bytes);
    yajl_gen_map_close(json);
}

static void put_command(yajl_gen json, const struct runwriter *run) {
    char *folder = getcwd(NULL, 0);
    name(json, "command");
    yajl_gen_array_open(json);
    for (char **at = run->arguments; *at != NULL; at++) {
        text(json, *at);
    }
    yajl_gen_array_close(json);
    put_text(json, "folder", folder);
    free(folder);
}

static void put_run(yajl_gen json, const struct runwriter *run, const struct runwriter_exit *how) {
    yajl_gen_map_open(json);
    put_text(json, "format", "memtrace run");
    put_number(json, "version", VERSION);
    put_command(json, run);
    put_number(json, "pid", (uint64_t)run->pid);
    put_number(json, "start_realtime_ns", run->start_realtime_ns);
    put_number(json, "duration_ns", since_start(run, clock_now_ns()));
    name(json, "exit");
    yajl_gen_map_open(json);
    put_number(json, how->signaled ? "signal" : "status", (uint64_t)how->number);
    yajl_gen_map_close(json);
    name(json, "processes");
    yajl_gen_array_open(json);
    for (size_t i = 0; i < run->process_count; i++) {
        put_process(json, run, &run->processes[i]);
    }
    yajl_gen_array_close(json);
    put_samples(json, run);
    put_peak(json, run);
    yajl_gen_map_close(json);
}

int runjson_write(const struct runwriter *run, const struct runwriter_exit *how, const char *path,
                  struct error *error) {
    yajl_gen json = yajl_gen_alloc(NULL);
    const unsigned char *bytes;
    size_t size;
    FILE *out;
    int fd;
    int result = 0;
    if (json == NULL) {
        return error_set(error, "out of memory");
    }
    yajl_gen_config(json, yajl_gen_beautify, 1);
    put_run(json, run, how);
    yajl_gen_get_buf(json, &bytes, &size);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, filemode());
    out = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (fd >= 0 && out == NULL) {
        close(fd);
    }
    if (out != NULL) {
        owner_give(fileno(out), &run->owner);
    }
    if (out == NULL || fwrite(bytes, 1, size, out) != size) {
        result = -1;
    }
    if ((out != NULL && fclose(out) != 0) || result != 0) {
        result = error_set(error, "cannot write %s: %s", path, strerror(errno));
    }
    yajl_gen_free(json);
    return result;
}
