/* SPDX-License-Identifier: MIT */
/*
 * symbolize.c: `memtrace symbolize`, a filter that turns module+0xOFFSET into function at
 * file:line, and `memtrace trace PID ADDRESS`: who allocated the block that contains this address?
 */
#include "analyze/base/job.h"
#include "analyze/model/model.h"
#include "analyze/read/liveheap.h"
#include "analyze/read/region.h"
#include "analyze/rows/number.h"
#include "analyze/rows/safetext.h"
#include "analyze/symbol/symbol.h"
#include "ask/answer.h"
#include "ask/memorylimit.h"
#include "cli/reading.h"
#include "collect/clock.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- The frames of one address ---- */

static void frames_resolve(struct symbolizer *symbolizer, const struct symbol_module *module,
                           uint64_t offset, struct symbol_frames *frames) {
    if (symbolizer_resolve(symbolizer, module, offset, frames) != 0) {
        job_fail("no memory for the names");
    }
}

/* "function at file:line" of one, "(inlined)" added where it is, without newline. `place` is what
 * to say where the function is unknown: "module+0xOFFSET". */
static void frames_write(const struct symbol_frame *frame, const char *place) {
    put_safe(stdout, frame->function ? frame->function : place);
    if (frame->file && frame->line) {
        print_safe(stdout, " at %s:%u", frame->file, frame->line);
    }
    if (frame->inlined) {
        fputs(" (inlined)", stdout);
    }
}

/* What the user must know about the names, a line each. */
static void frames_warn(const struct symbolizer *symbolizer) {
    const char *const *lines;
    size_t count = symbolizer_warnings(symbolizer, &lines);
    for (size_t i = 0; i < count; i++) {
        cli_error("%s", lines[i]);
    }
}

/* ---- symbolize: Whatever it cannot name it leaves as it is ---- */

/* A place in a line: [start, end) is "module+0xOFFSET". */
struct place {
    size_t start;
    size_t end;
    uint64_t offset;
    char module[PATH_MAX];
};

struct filter {
    struct symbolizer *symbolizer;
    FILE *input;
    const char *name; /* of the input */
    char *line;
    const char *root; /* folder below which modules are looked for first; NULL: none */
};

/* Characters that end a module's name in running text. Paths with blanks are met in find_start. */
static bool ends_name(char c) {
    return isspace((unsigned char)c) || c == '(' || c == '\'' || c == '"' || c == '<' || c == '=' ||
           c == ',' || c == '\0';
}

/* Where the module's name starts that ends before `plus`: after the last blank, or, where the path
 * itself has blanks, at the first '/' from which on the file exists. */
static size_t find_start(const char *line, size_t from, size_t plus) {
    size_t start = plus;
    while (start > from && !ends_name(line[start - 1])) {
        start--;
    }
    for (size_t i = from; i < start; i++) {
        char path[PATH_MAX];
        if (line[i] != '/' || (i > from && !ends_name(line[i - 1])) || plus - i >= sizeof path) {
            continue;
        }
        memcpy(path, line + i, plus - i);
        path[plus - i] = '\0';
        if (access(path, F_OK) == 0) {
            return i;
        }
    }
    return start;
}

/* Fills the token if one ends with the hexadecimal digits after the "+0x" at `plus`. */
static bool symbolize_read_place(const char *line, size_t length, size_t from, size_t plus,
                                 struct place *place) {
    size_t end = plus + 3;
    uint64_t offset = 0;
    while (end < length && isxdigit((unsigned char)line[end]) && end - plus - 3 < 16) {
        int digit = tolower((unsigned char)line[end++]);
        offset = offset << 4 | (uint64_t)(digit <= '9' ? digit - '0' : digit - 'a' + 10);
    }
    /* A kernel's function+0x12/0x40 and a name like x+0x1y are none of ours. */
    bool whole = end > plus + 3 && (end == length || (!isalnum((unsigned char)line[end]) &&
                                                      line[end] != '/' && line[end] != '_'));
    size_t start = find_start(line, from, plus);
    if (!whole || start == plus || plus - start >= sizeof place->module) {
        return false;
    }
    place->start = start;
    place->end = end;
    place->offset = offset;
    memcpy(place->module, line + start, plus - start);
    place->module[plus - start] = '\0';
    return true;
}

static bool symbolize_next_place(const char *line, size_t length, size_t from,
                                 struct place *place) {
    for (size_t at = from; at + 3 < length; at++) {
        if (memcmp(line + at, "+0x", 3) == 0 &&
            symbolize_read_place(line, length, from, at, place)) {
            return true;
        }
    }
    return false;
}

static void symbolize_write_place(const struct filter *filter, const char *line,
                                  const struct place *place) {
    char path[PATH_MAX];
    const char *file = place->module;
    struct symbol_frames frames = {0};
    /* Below the root if it is there, else as written. */
    if (filter->root && snprintf(path, PATH_MAX, "%s/%s", filter->root, file) < PATH_MAX &&
        access(path, F_OK) == 0) {
        file = path;
    }
    /* A word that is no file is no module: nothing to warn of. */
    if (strchr(place->module, '/') || access(file, F_OK) == 0) {
        struct symbol_module module = {.path = file};
        frames_resolve(filter->symbolizer, &module, place->offset, &frames);
    }
    char spelled[PATH_MAX + 32];
    snprintf(spelled, sizeof spelled, "%s+0x%llx", place->module,
             (unsigned long long)place->offset);
    if (frames.count == 0) {
        fwrite(line + place->start, 1, place->end - place->start, stdout);
    }
    for (size_t i = 0; i < frames.count; i++) {
        if (i > 0) {
            /* The rest of the frame's text is repeated in front of every further frame: tabs stay
             * tabs, all else becomes one blank. */
            putchar('\n');
            for (size_t at = 0; at < place->start; at++) {
                if (((unsigned char)line[at] & 0xc0) != 0x80) {
                    putchar(line[at] == '\t' ? '\t' : ' ');
                }
            }
        }
        frames_write(&frames.frames[i], spelled);
    }
}

static void symbolize_write_line(const struct filter *filter, const char *line, size_t length) {
    struct place place;
    size_t written = 0;
    while (symbolize_next_place(line, length, written, &place)) {
        fwrite(line + written, 1, place.start - written, stdout);
        symbolize_write_place(filter, line, &place);
        written = place.end;
    }
    fwrite(line + written, 1, length - written, stdout);
}

/* Copies the input. */
static void filter_lines(void *what) {
    struct filter *filter = what;
    size_t room = 0;
    ssize_t length;
    /* Someone may be reading along: a pipe from a running program. */
    setvbuf(stdout, NULL, _IOLBF, 0);
    while ((length = getline(&filter->line, &room, filter->input)) >= 0 && !ferror(stdout)) {
        symbolize_write_line(filter, filter->line, (size_t)length);
    }
    if (ferror(filter->input)) {
        job_fail("%s: %s", filter->name, strerror(errno));
    }
}

static void end_filter(void *what) {
    struct filter *filter = what;
    frames_warn(filter->symbolizer);
    symbolizer_close(filter->symbolizer);
    free(filter->line);
    if (filter->input != stdin) {
        fclose(filter->input);
    }
}

struct symbolize_request {
    const char *root;
    const char *debug_folders;
};

static const struct option symbolize_options[] = {
    {"root", 0, "FOLDER", "look for modules below it first: a copy of another machine", OPTION_TEXT,
     OPTION_IN(struct symbolize_request, root)},
    {"debug", 0, "FOLDERS", "where debug files lie, separated by colons (default: /usr/lib/debug)",
     OPTION_TEXT, OPTION_IN(struct symbolize_request, debug_folders)},
    {.part = debuginfod_options},
    {.part = memorylimit_options},
    OPTION_END};

static int run_symbolize(int argc, char **argv) {
    struct symbolize_request request = {0};
    struct filter filter = {.input = stdin, .name = "standard input"};
    struct symbolizer_options symbols = {.threads = 1};
    struct error error;
    const char *file;
    cli_read(&symbolize_command, &argc, &argv, &request);
    file = cli_one(&symbolize_command, argc, argv, NULL);
    if (file && strcmp(file, "-") != 0) {
        filter.name = file;
        filter.input = fopen(file, "re");
    }
    if (!filter.input) {
        job_fail("%s: %s", filter.name, strerror(errno));
    }
    filter.root = request.root;
    symbols.debug_folders = request.debug_folders;
    reading_allow_fetching();
    filter.symbolizer = symbolizer_open(&symbols, &error);
    if (!filter.symbolizer) {
        job_fail_as(&error);
    }
    job_finally(filter_lines, end_filter, &filter);
    return cli_finish(CLI_OK);
}

const struct command symbolize_command = {
    .name = "symbolize",
    .run = run_symbolize,
    .summary = "turn module+offset lines into function and line",
    .usage = "[OPTION]... [FILE]",
    .about = "Copies FILE (or standard input) to standard output and replaces each "
             "module+0xOFFSET by \"function at file:line\". Functions inlined there follow "
             "one per line, innermost first, marked (inlined). What is unknown stays as it is.",
    .options = symbolize_options,
    .operands = "FILE",
};

/* ---- trace ---- */

/* Hexadecimal, with or without 0x. */
static int trace_parse_address(const char *text, uint64_t *address) {
    char *end;
    if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
        text += 2;
    }
    if (!text[0] || strspn(text, "0123456789abcdefABCDEF") != strlen(text)) {
        return -1;
    }
    errno = 0;
    *address = strtoull(text, &end, 16);
    return errno == 0 && *end == '\0' ? 0 : -1;
}

static void trace_write_age(uint64_t ns) {
    double seconds = (double)ns / 1e9;
    if (ns == 0) {
        fputs("just now", stdout);
    } else if (seconds < 1) {
        printf("%.0f ms ago", seconds * 1e3);
    } else if (seconds < 120) {
        printf("%.1f s ago", seconds);
    } else if (seconds < 7200) {
        printf("%.1f min ago", seconds / 60);
    } else {
        printf("%.1f h ago", seconds / 3600);
    }
}

static void trace_write_thread(const struct model *model, uint32_t id) {
    const struct model_thread *thread = NULL;
    for (size_t i = 0; i < model->thread_count && !thread; i++) {
        if (model->threads[i].id == id) {
            thread = &model->threads[i];
        }
    }
    if (id == 0 || !thread) {
        fputs(" by a thread that is not kept apart", stdout);
        return;
    }
    printf(" by thread %" PRIu32, thread->tid);
    if (thread->name[0]) {
        print_safe(stdout, " (%s)", thread->name);
    }
    if (!thread->alive) {
        fputs(", which has ended", stdout);
    }
}

/* Pools and mappings end their path with a frame that is no code. */
static const char *trace_class_of(const struct model *model, uint64_t frame) {
    if (frame == 0 || frame >= MEMTRACE_FRAME_CLASSES) {
        return NULL;
    }
    if (frame == MEMTRACE_FRAME_MAPPING) {
        return "a mapping";
    }
    uint64_t pool = frame - MEMTRACE_FRAME_POOL;
    return frame >= MEMTRACE_FRAME_POOL && pool < model->pool_count ? model->pools[pool] : "a pool";
}

static void trace_write_block(const struct model *model, const struct liveheap_block *block,
                              uint64_t address) {
    uint64_t frame = block->context < model->node_count ? model->nodes[block->context].frame : 0;
    const char *class = trace_class_of(model, frame);
    struct number number;
    printf("0x%" PRIx64 " is ", address);
    if (address != block->start) {
        printf("%s into ", number_items(&number, address - block->start, "byte"));
    }
    printf("a block of %s at 0x%" PRIx64, number_items(&number, block->size, "byte"), block->start);
    if (class) {
        print_safe(stdout, " (%s%s)", strncmp(class, "a ", 2) != 0 ? "pool " : "", class);
    }
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
        frames_resolve(symbolizer, &wanted, place.offset, &frames);
    } else {
        snprintf(text, sizeof text, "0x%" PRIx64, place.address);
    }
    if (frames.count == 0) {
        print_safe(stdout, "  %s\n", text);
    }
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
    if (!symbolizer) {
        job_fail_as(&error);
    }
    job_undo(close_symbolizer, symbolizer);
    for (uint32_t id = context; id && id < model->node_count; id = model->nodes[id].parent) {
        if (model->nodes[id].frame < MEMTRACE_FRAME_CLASSES) {
            continue;
        }
        trace_write_frame(model, symbolizer, model->nodes[id].frame);
        written++;
    }
    if (written == 0) {
        puts("  (no backtrace was kept for it)");
    }
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
    if (!region.alive) {
        job_fail("process %ld is gone", (long)pid);
    }
    profile = profile_open(region.path, &error);
    if (!profile) {
        job_fail_as(&error);
    }
    profile_goes_with_job(profile);
    found = liveheap_find(region.pid, &profile->header, address, clock_now_ns(), &block, &error);
    if (found < 0) {
        job_fail_as(&error);
    }
    if (found == 0) {
        job_fail("0x%" PRIx64 " is not a live block of process %ld", address, (long)region.pid);
    }
    job_check(profile_refresh(profile, &error), &error);
    model = model_load(profile, &error);
    if (!model) {
        job_fail_as(&error);
    }
    model_goes_with_job(model);
    trace_write_block(model, &block, address);
    trace_write_path(model, block.context);
    return cli_finish(CLI_OK);
}

static int run_trace(int argc, char **argv) {
    uint64_t address;
    pid_t pid;
    cli_read(&trace_command, &argc, &argv, NULL);
    if (argc != 2) {
        cli_usage("trace", "a process id and an address are needed");
    }
    pid = cli_pid(&trace_command, argv[0]);
    if (trace_parse_address(argv[1], &address) != 0) {
        cli_usage("trace", "'%s' is not an address", argv[1]);
    }
    address &= UINT64_MAX >> 8; /* without a tag, which AArch64's MTE puts there */
    return trace(pid, address);
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
