/* SPDX-License-Identifier: MIT */
/*
 * trace.c: `memtrace trace PID ADDRESS`: who allocated the block that contains this address?
 */
#include "analyze/base/job.h"
#include "analyze/model/model.h"
#include "analyze/read/liveheap.h"
#include "analyze/read/region.h"
#include "analyze/rows/number.h"
#include "analyze/rows/safetext.h"
#include "cli/cli.h"
#include "cli/frames.h"
#include "collect/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Hexadecimal, with or without 0x. */
static int trace_parse_address(const char *text, uint64_t *address) {
    char *end;
    if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
        text += 2;
    if (!text[0] || strspn(text, "0123456789abcdefABCDEF") != strlen(text))
        return -1;
    errno = 0;
    *address = strtoull(text, &end, 16);
    return errno == 0 && *end == '\0' ? 0 : -1;
}

static void trace_write_age(uint64_t ns) {
    double seconds = (double)ns / 1e9;
    if (ns == 0)
        fputs("just now", stdout);
    else if (seconds < 1)
        printf("%.0f ms ago", seconds * 1e3);
    else if (seconds < 120)
        printf("%.1f s ago", seconds);
    else if (seconds < 7200)
        printf("%.1f min ago", seconds / 60);
    else
        printf("%.1f h ago", seconds / 3600);
}

static const struct model_thread *trace_find_thread(const struct model *model, uint32_t id) {
    for (size_t i = 0; i < model->thread_count; i++)
        if (model->threads[i].id == id)
            return &model->threads[i];
    return NULL;
}

static void trace_write_thread(const struct model *model, uint32_t id) {
    const struct model_thread *thread = trace_find_thread(model, id);
    if (id == 0 || !thread) {
        fputs(" by a thread that is not kept apart", stdout);
        return;
    }
    printf(" by thread %" PRIu32, thread->tid);
    if (thread->name[0])
        print_safe(stdout, " (%s)", thread->name);
    if (!thread->alive)
        fputs(", which has ended", stdout);
}

/* Pools and mappings end their path with a frame that is no code. */
static const char *trace_class_of(const struct model *model, uint64_t frame) {
    if (frame == 0 || frame >= MEMTRACE_FRAME_CLASSES)
        return NULL;
    if (frame == MEMTRACE_FRAME_MAPPING)
        return "a mapping";
    uint64_t pool = frame - MEMTRACE_FRAME_POOL;
    return frame >= MEMTRACE_FRAME_POOL && pool < model->pool_count ? model->pools[pool] : "a pool";
}

static void trace_write_block(const struct model *model, const struct liveheap_block *block,
                              uint64_t address) {
    uint64_t frame = block->context < model->node_count ? model->nodes[block->context].frame : 0;
    const char *class = trace_class_of(model, frame);
    struct number number;
    printf("0x%" PRIx64 " is ", address);
    if (address != block->start)
        printf("%s into ", number_items(&number, address - block->start, "byte"));
    printf("a block of %s at 0x%" PRIx64, number_items(&number, block->size, "byte"), block->start);
    if (class)
        print_safe(stdout, " (%s%s)", strncmp(class, "a ", 2) != 0 ? "pool " : "", class);
    fputs(", allocated ", stdout);
    trace_write_age(block->age_ns);
    trace_write_thread(model, block->thread);
    putchar('\n');
}

/* One recorded frame and what was inlined into it. */
static void trace_write_frame(const struct model *model, struct symbolizer *symbolizer,
                              uint64_t frame) {
    struct model_place place = model_place(model, frame);
    char text[1200];
    struct symbol_frames frames = {0};
    if (place.module) {
        const struct model_module *module = &model->modules[place.module];
        struct symbol_module wanted = {module->path, module->build_id, module->build_id_size};
        snprintf(text, sizeof text, "%s+0x%" PRIx64, module->path[0] ? module->path : "?",
                 place.offset);
        if (symbolizer_resolve(symbolizer, &wanted, place.offset, &frames) != 0)
            job_fail("no memory for the names");
    } else {
        snprintf(text, sizeof text, "0x%" PRIx64, place.address);
    }
    if (frames.count == 0)
        print_safe(stdout, "  %s\n", text);
    for (size_t i = 0; i < frames.count; i++) {
        fputs("  ", stdout);
        frames_write(&frames.frames[i], text);
        putchar('\n');
    }
}

static void close_symbolizer(void *symbolizer) {
    symbolizer_close(symbolizer);
}

static void trace_write_path(const struct model *model, uint32_t context) {
    struct error error;
    struct symbolizer *symbolizer = symbolizer_open(NULL, &error);
    size_t written = 0;
    if (!symbolizer)
        job_fail_as(&error);
    job_undo(close_symbolizer, symbolizer);
    for (uint32_t id = context; id && id < model->node_count; id = model->nodes[id].parent) {
        if (model->nodes[id].frame < MEMTRACE_FRAME_CLASSES)
            continue;
        trace_write_frame(model, symbolizer, model->nodes[id].frame);
        written++;
    }
    if (written == 0)
        puts("  (no backtrace was kept for it)");
    frames_warn(symbolizer);
}

/* The block is found first and the profile read then, so that its context is in there. */
static int trace(pid_t pid, uint64_t address) {
    struct error error;
    struct region region;
    struct profile *profile;
    struct liveheap_block block;
    struct model *model;
    int found;
    job_check(region_find(pid, &region, &error), &error);
    if (!region.alive)
        job_fail("process %ld is gone", (long)pid);
    profile = profile_open(region.path, &error);
    if (!profile)
        job_fail_as(&error);
    profile_goes_with_job(profile);
    found = liveheap_find(region.pid, &profile->header, address, clock_now_ns(), &block, &error);
    if (found < 0)
        job_fail_as(&error);
    if (found == 0)
        job_fail("0x%" PRIx64 " is not a live block of process %ld", address, (long)region.pid);
    job_check(profile_refresh(profile, &error), &error);
    model = model_load(profile, &error);
    if (!model)
        job_fail_as(&error);
    model_goes_with_job(model);
    trace_write_block(model, &block, address);
    trace_write_path(model, block.context);
    return cli_finish(CLI_OK);
}

static int run_trace(int argc, char **argv) {
    uint64_t pid, address;
    int status = cli_read(&trace_command, &argc, &argv, NULL);
    if (status != CLI_OK)
        return status;
    if (argc != 2)
        return cli_usage("trace", "a process id and an address are needed");
    if (quantity_u64(argv[0], &pid) != 0 || pid == 0 || pid > INT32_MAX)
        return cli_usage("trace", "'%s' is not a process id", argv[0]);
    if (trace_parse_address(argv[1], &address) != 0)
        return cli_usage("trace", "'%s' is not an address", argv[1]);
    address &= UINT64_MAX >> 8; /* without a tag, which AArch64's MTE puts there */
    return trace((pid_t)pid, address);
}

const struct command trace_command = {
    .name = "trace",
    .run = run_trace,
    .summary = "say which code allocated the block at an address",
    .usage = "PID ADDRESS",
    .about = "Says which code allocated the live block of process PID that contains "
             "ADDRESS (hexadecimal, as gdb prints it), how large and how old it is and "
             "which thread took it. The process must be profiled; it is not stopped. "
             "Status 1: not a live block.",
    .operands = "PID",
};
