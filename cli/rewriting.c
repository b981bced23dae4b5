/* SPDX-License-Identifier: MIT */
/*
 * rewriting.c: the commands that make a new recording of others: `memtrace repack`, `strip`,
 * `anonymize` and `merge`, and `import`, of another tool's file. docs/repack.md and so on are their
 * pages.
 */
#include "analyze/base/job.h"
#include "analyze/base/pathname.h"
#include "analyze/read/profile.h"
#include "analyze/read/region.h"
#include "analyze/read/run.h"
#include "analyze/rows/number.h"
#include "analyze/rows/safetext.h"
#include "ask/answer.h"
#include "ask/memorylimit.h"
#include "ask/source.h"
#include "cli/outfile.h"
#include "cli/reading.h"
#include "collect/compress.h"
#include "collect/mergeprofiles.h"
#include "collect/transform/anonymize.h"
#include "collect/transform/importer.h"
#include "collect/transform/strip.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { LEVEL = 9 /* of compression: nobody waits */ };

/* What was asked for, of any of these commands. */
struct rewriting {
    struct transform_options options;
    const char *output;
    const char *file;
    /* repack */
    bool no_addresses;
    bool no_symbols;
    bool raw;
    /* strip */
    uint64_t below_ns;
    /* anonymize */
    const char *debug_folders;
    const char *key_file;
    /* merge: those that were named, and those of runs */
    char **files;
    size_t count;
    size_t room;
};

#define IN(member) OPTION_IN(struct rewriting, member)

static const struct option rewriting_options[] = {
    {"output", 'o', "FILE", "what is written; may be the old one", OPTION_TEXT, IN(output)},
    {"level", 'l', "N", "how hard to compress, 1 to 19 (default: 9)", OPTION_NUMBER,
     IN(options.level), .least = 1, .most = 19},
    OPTION_END};

/* The request of a command; but for merge, it takes one file. */
static struct rewriting *rewriting_read(const struct command *command, int *argc, char ***argv) {
    struct rewriting *rewriting = job_alloc(sizeof *rewriting);
    bool takes_several = command == &merge_command;
    rewriting->options.level = LEVEL;
    cli_read(command, argc, argv, rewriting);
    if (takes_several && *argc == 0) {
        cli_usage(command->name, "which recordings?");
    } else if (!takes_several) {
        rewriting->file = cli_one(command, *argc, *argv, "a recording");
    }
    if (rewriting->output == NULL) {
        cli_usage(command->name, "--output FILE is needed");
    }
    return rewriting;
}

static void rewriting_close(void *source) {
    source_close(source);
}

/* The recording with its model, open until the job ends. profile: why it may not be one. */
static const struct source *rewriting_open(const struct rewriting *rewriting, const char *profile) {
    const struct replay_options progress = reading_replay();
    struct source *source = job_alloc(sizeof *source);
    struct error error;
    job_check(
        source_open(source, rewriting->file, NULL, rewriting->debug_folders, &progress, &error),
        &error);
    job_undo(rewriting_close, source);
    if (source->parts.count == 0) {
        job_fail("%s is a profile%s", source->path, profile);
    }
    return source;
}

static void rewriting_show_progress(void *context, uint64_t done, uint64_t total) {
    (void)context;
    reading_show("events", done, total);
}

/* The file that is written, with progress where somebody watches. */
static struct outfile *rewriting_begin(struct rewriting *rewriting) {
    rewriting->options.progress = reading_is_watched() ? rewriting_show_progress : NULL;
    return outfile_open_named(rewriting->output, "a recording");
}

/* Where not all of an input could be read. */
static void rewriting_note_incomplete(const char *output, const struct transform_result *result) {
    if (result->incomplete.message[0] != '\0') {
        print_safe(stderr, "memtrace: %s; %s says that something is missing\n",
                   result->incomplete.message, output);
    }
}

/* Writes the output, which is there whole in the end or not at all, and says what became of it. */
static void rewriting_write(struct rewriting *rewriting, struct timeorder_parts parts,
                            const struct transform_step *step) {
    const char *output = rewriting->output;
    struct outfile *file = rewriting_begin(rewriting);
    struct transform_result result;
    struct number numbers[4];
    struct error error;
    job_check(transform_run(&parts, 1, file->path, step, &rewriting->options, &result, &error),
              &error);
    outfile_keep(file);
    print_safe(stderr, "memtrace: %s has %s in %s (before: %s in %s)\n", output,
               number_items(&numbers[0], result.kept, "event"),
               number_bytes(&numbers[1], result.bytes_written),
               number_count(&numbers[2], result.events), number_bytes(&numbers[3], result.bytes));
    rewriting_note_incomplete(output, &result);
    if (result.damaged != 0) {
        fprintf(stderr, "memtrace: %s damaged %s left out, as far as %s could not be read\n",
                number_count(&numbers[0], result.damaged),
                result.damaged == 1 ? "block is" : "blocks are",
                result.damaged == 1 ? "it" : "they");
    }
}

/* ---- repack ---- */

static const struct option repack_options[] = {
    {.part = rewriting_options},
    {"no-addresses", 0, NULL, "without the blocks' addresses", OPTION_FLAG, IN(no_addresses)},
    {"no-symbols", 0, NULL, "without the program files and symbols that it carries", OPTION_FLAG,
     IN(no_symbols)},
    {"raw", 0, NULL, "a profile that is not compressed, as other programs read it", OPTION_FLAG,
     IN(raw)},
    {.part = memorylimit_options},
    OPTION_END};

static bool repack_leaves_files(void *context, enum memtrace_block_kind kind,
                                struct transform_payload *payload) {
    (void)context;
    (void)payload;
    return kind != MEMTRACE_BLOCK_FILE;
}

/* Half a profile would look like a whole one afterwards. */
static void repack_profile(const struct rewriting *rewriting) {
    const char *output = rewriting->output;
    struct error error;
    struct profile *profile = profile_open(rewriting->file, &error);
    struct compress_source bytes;
    struct outfile *file;
    struct stat before;
    struct stat after;
    struct number n[2];
    job_check(profile != NULL ? 0 : -1, &error);
    profile_goes_with_job(profile);
    if (profile->is_broken || profile->live) {
        job_fail("%s stays as it is: %s", rewriting->file,
                 profile->live ? "its program is running" : profile->damage);
    }
    file = outfile_open_named(output, "a profile");
    bytes = (struct compress_source){profile->bytes, -1, profile->size};
    if ((rewriting->raw
             ? compress_store(&bytes, fileno(file->stream))
             : compress_or_store(&bytes, rewriting->options.level, fileno(file->stream))) != 0) {
        job_fail("cannot write %s: %s", output, strerror(errno));
    }
    outfile_keep(file);
    if (stat(rewriting->file, &before) == 0 && stat(output, &after) == 0) {
        print_safe(stderr, "memtrace: %s has the profile in %s (before: %s)\n", output,
                   number_bytes(&n[0], (uint64_t)after.st_size),
                   number_bytes(&n[1], (uint64_t)before.st_size));
    }
}

static int run_repack(int argc, char **argv) {
    struct rewriting *rewriting = rewriting_read(&repack_command, &argc, &argv);
    struct transform_step step = {.table = rewriting->no_symbols ? repack_leaves_files : NULL};
    struct source *source = job_alloc(sizeof *source);
    struct memtrace_header header;
    struct error error;
    if (region_read_header(rewriting->file, &header) == REGION_HEADER) {
        repack_profile(rewriting);
        return CLI_OK;
    }
    if (rewriting->raw) {
        cli_usage("repack", "--raw is for profiles");
    }
    rewriting->options.add_flags =
        rewriting->no_addresses ? (uint32_t)MEMTRACE_RECORDING_NO_ADDRESSES : 0;
    job_check(source_open_parts(source, rewriting->file, &error), &error);
    job_undo(rewriting_close, source);
    rewriting_write(rewriting, source->parts, &step);
    return CLI_OK;
}

const struct command repack_command = {
    .name = "repack",
    .run = run_repack,
    .summary = "write a recording anew: joined, packed, without damage; or a profile",
    .usage = "[OPTION]... --output FILE FILE",
    .about = "Writes a recording anew: the parts of a rotated one joined, small blocks "
             "merged, packed harder, damaged blocks left out, an index at the end. Or a "
             "profile: packed harder, or not at all (--raw). What it says stays the same.",
    .options = repack_options,
    .operands = "PROFILE",
};

/* ---- strip ---- */

static const struct option strip_table[] = {
    {.part = rewriting_options},
    {"below", 'b', "DURATION", "leave out blocks that lived shorter instead: 10ms, 1s",
     OPTION_DURATION, IN(below_ns), .least = 1},
    {.part = memorylimit_options},
    OPTION_END};

static int run_strip(int argc, char **argv) {
    struct rewriting *rewriting = rewriting_read(&strip_command, &argc, &argv);
    const struct strip_options options = {.below_ns = rewriting->below_ns,
                                          .temporary = rewriting->below_ns == 0};
    const struct replay_options progress = reading_replay();
    const struct source *source = rewriting_open(rewriting, ": it holds no single blocks");
    struct strip *strip = strip_new(source->parts, source->model, &options, &progress);
    struct transform_step step = strip_step(strip);
    struct number numbers[2];
    uint64_t bytes;
    uint64_t count;
    rewriting_write(rewriting, source->parts, &step);
    count = strip_count(strip, &bytes);
    fprintf(stderr, "memtrace: %s of %s left out\n",
            number_items(&numbers[0], count, "short-lived block"),
            number_bytes(&numbers[1], bytes));
    return CLI_OK;
}

const struct command strip_command = {
    .name = "strip",
    .run = run_strip,
    .summary = "leave short-lived blocks out of a recording",
    .usage = "[OPTION]... --output FILE FILE.mtr",
    .about = "Writes a recording anew without its temporary allocations: blocks that "
             "were freed before their thread's next allocation, both ends. Their sums "
             "stay in the file, so that bytes and counts of each call path are the same "
             "in reports; what is gone are the single blocks.",
    .options = strip_table,
    .operands = "RECORDING",
};

/* ---- anonymize ---- */

enum { KEY_BYTES_LEAST = 16, KEY_BYTES_MOST = 1 << 16 };

static const struct option anonymize_options[] = {
    {.part = rewriting_options},
    {"key", 'k', "FILE",
     "make the names from what is in this file: they are the same in all recordings made with it, "
     "so that these can be compared (default: names are numbered as they come)",
     OPTION_TEXT, IN(key_file)},
    {"debug-folders", 0, "FOLDERS", "where debug files lie, separated by colons", OPTION_TEXT,
     IN(debug_folders)},
    {.part = root_options},
    {.part = memorylimit_options},
    OPTION_END};

static size_t anonymize_read_key(const char *path, char key[KEY_BYTES_MOST]) {
    FILE *file = fopen(path, "re");
    size_t size;
    bool failed;
    if (file == NULL) {
        job_fail("cannot open %s: %s", path, strerror(errno));
    }
    size = fread(key, 1, KEY_BYTES_MOST, file);
    failed = ferror(file) != 0;
    fclose(file);
    if (failed) {
        job_fail("cannot read %s", path);
    }
    if (size < KEY_BYTES_LEAST) {
        job_fail("%s is too short for a key: at least %d bytes are needed, for example from "
                 "/dev/urandom",
                 path, KEY_BYTES_LEAST);
    }
    return size;
}

static void anonymize_end(void *names) {
    names_close(names);
}

static int run_anonymize(int argc, char **argv) {
    struct rewriting *rewriting = rewriting_read(&anonymize_command, &argc, &argv);
    char *key = job_alloc(KEY_BYTES_MOST);
    size_t key_size =
        rewriting->key_file != NULL ? anonymize_read_key(rewriting->key_file, key) : 0;
    const struct source *source =
        rewriting_open(rewriting, ", which has no room for other names; make a recording");
    struct error error;
    struct names *names = source_names(source, rewriting->debug_folders,
                                       reading_is_watched() ? reading_symbols : NULL, &error);
    struct anonymize anonymize = {.model = source->model, .names = names};
    struct transform_step step;
    job_check(names != NULL ? 0 : -1, &error);
    job_undo(anonymize_end, names);
    anonymize.fakenames = fakenames_new(key, key_size);
    step = anonymize_step(&anonymize);
    rewriting_write(rewriting, source->parts, &step);
    return CLI_OK;
}

const struct command anonymize_command = {
    .name = "anonymize",
    .run = run_anonymize,
    .summary = "hide the names in a recording",
    .usage = "[OPTION]... --output FILE FILE.mtr",
    .about = "Writes a recording in which made-up names stand for functions, files, "
             "modules, threads, pools, marks, paths and the command line. Numbers and "
             "structure stay: reports have the same figures. Program files and symbols "
             "that it carries are left out.",
    .options = anonymize_options,
    .operands = "RECORDING",
};

/* ---- merge ---- */

static const struct option merge_options[] = {
    {.part = rewriting_options}, {.part = memorylimit_options}, OPTION_END};

static void merge_add_file(struct rewriting *rewriting, char *path) {
    job_grow(&rewriting->files, &rewriting->room, rewriting->count, sizeof path);
    rewriting->files[rewriting->count++] = path;
}

static void merge_add_run(struct rewriting *rewriting, const char *path) {
    struct error error;
    struct run *run = run_open(path, &error);
    job_check(run != NULL ? 0 : -1, &error);
    for (size_t i = 0; i < run->file_count; i++) {
        merge_add_file(rewriting, job_take(run_file_path(run, run->files[i])));
    }
    run_close(run);
}

static void merge_recorded(struct rewriting *rewriting) {
    const char *output = rewriting->output;
    struct outfile *file = rewriting_begin(rewriting);
    struct merge_result result;
    struct number numbers[4];
    struct error error;
    job_check(source_merge(rewriting->files, rewriting->count, file->path, &rewriting->options,
                           &result, &error),
              &error);
    outfile_keep(file);
    print_safe(stderr, "memtrace: %s has %s of %s (%s) in %s\n", output,
               number_items(&numbers[0], result.written.kept, "event"),
               number_items(&numbers[1], result.processes, "process"),
               number_items(&numbers[2], result.files, "file"),
               number_bytes(&numbers[3], result.written.bytes_written));
    rewriting_note_incomplete(output, &result.written);
    if (result.written.damaged != 0) {
        fprintf(stderr, "memtrace: damaged blocks are left out: %s\n",
                number_count(&numbers[0], result.written.damaged));
    }
}

static void merge_sums(const struct rewriting *rewriting) {
    struct number number;
    struct outfile *file = outfile_open_named(rewriting->output, "a profile");
    struct error error;
    job_check(merge_profiles(rewriting->files, rewriting->count, NULL, NULL, file->stream, &error),
              &error);
    outfile_keep(file);
    print_safe(stderr, "memtrace: %s has the sums of %s\n", rewriting->output,
               number_items(&number, rewriting->count, "profile"));
}

/* Recordings become a recording, profiles a profile. */
static int run_merge(int argc, char **argv) {
    struct rewriting *rewriting = rewriting_read(&merge_command, &argc, &argv);
    size_t recordings = 0;
    for (int i = 0; i < argc; i++) {
        if (run_is(argv[i])) {
            merge_add_run(rewriting, argv[i]);
        } else {
            merge_add_file(rewriting, argv[i]);
        }
    }
    for (size_t i = 0; i < rewriting->count; i++) {
        recordings += recording_is(rewriting->files[i]);
    }
    if (recordings != 0 && recordings != rewriting->count) {
        job_fail("some of these files are profiles, some recordings: not both at once");
    }
    if (recordings == 0) {
        merge_sums(rewriting);
    } else {
        merge_recorded(rewriting);
    }
    return CLI_OK;
}

const struct command merge_command = {
    .name = "merge",
    .run = run_merge,
    .summary = "make one recording or profile of several",
    .usage = "[OPTION]... --output FILE FILE|RUN...",
    .about = "Writes one recording of several: the parts of a rotated one, wherever they"
             " lie, or those of several processes, say a program and its children: paths"
             " that are the same in both become one, their threads stay apart, and times"
             " count from when the first process started. Profiles become one profile in"
             " the same way. A run of several processes (a folder) stands for all files "
             "in it.",
    .options = merge_options,
    .operands = "PROFILE",
};

/* ---- import ---- */

static const struct option import_options[] = {
    {"output", 'o', "FILE", "default: the file's name with .mtr in place of its ending",
     OPTION_TEXT, IN(output)},
    {.part = memorylimit_options},
    OPTION_END};

/* heaptrack.ls.123.zst, heaptrack.ls.123.raw.zst: heaptrack.ls.123.mtr, in this folder. */
static char *import_default_output(const char *path) {
    static const char *const endings[] = {".zst", ".gz", ".raw"};
    const char *name = pathname_base(path);
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        size_t ending = strlen(endings[i]);
        if (length > ending && memcmp(name + length - ending, endings[i], ending) == 0) {
            length -= ending;
        }
    }
    return job_text("%.*s.mtr", (int)length, name);
}

static void import_show_progress(void *context, uint64_t done, uint64_t total) {
    (void)context;
    if (total != 0) { /* of a pipe nobody knows */
        reading_show("imported", done, total);
    }
}

/* What a user should know of what was left out. */
static void import_note_losses(const char *path, const struct importer_result *result) {
    struct number number;
    if (result->file.damage[0] != '\0') {
        cli_error("%s: %s; what comes before that was imported", path, result->file.damage);
    }
    if (result->file.is_incomplete) {
        cli_error("%s: %s", path, PROFILE_INCOMPLETE);
    }
    if (result->file.bad_lines != 0) {
        cli_error("%s: left out, since it makes no sense: %s", path,
                  number_items(&number, result->file.bad_lines, "line"));
    }
    if (result->missing_paths != 0) {
        cli_error("%s: more than a recording holds: %s; their callers bear the cost", path,
                  number_items(&number, result->missing_paths, "call path"));
    }
}

static int run_import(int argc, char **argv) {
    struct rewriting request = {0};
    struct importer_result result;
    struct outfile *file;
    const char *output;
    struct error error;
    struct number numbers[2];
    cli_read(&import_command, &argc, &argv, &request);
    request.file = cli_one(&import_command, argc, argv, "a heaptrack data file");
    if (request.output != NULL && strcmp(request.output, "-") == 0) {
        cli_usage("import", "a recording cannot go to stdout: --output FILE");
    }
    output = request.output != NULL ? request.output : import_default_output(request.file);
    file = outfile_open(output);
    job_check(importer_run(request.file, file->path,
                           reading_is_watched() ? import_show_progress : NULL, &result, &error),
              &error);
    outfile_keep(file);
    import_note_losses(request.file, &result);
    printf("%s: %s, %s\n", output, number_items(&numbers[0], result.begins, "allocation"),
           number_items(&numbers[1], result.ends, "free"));
    return cli_finish(CLI_OK);
}

const struct command import_command = {
    .name = "import",
    .run = run_import,
    .summary = "make a recording from a heaptrack data file",
    .usage = "[OPTION]... FILE",
    .about = "Makes a recording from a heaptrack data file (heaptrack.PROGRAM.PID.zst or"
             " .gz, raw ones and unpacked ones, too), for memtrace report and all the "
             "others.",
    .options = import_options,
    .operands = "FILE",
};
