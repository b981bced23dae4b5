/* SPDX-License-Identifier: MIT */
/* recover_test.c: collect/{claim,copy,finish,recover}: regions of programs that are gone. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include "collect/recover.h"
#include "tests/unit/profile_builder.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct place {
    char folder[64];  /* of everything */
    char regions[80]; /* of regions */
    char output[96];
};

static int setup(void **state) {
    struct place *place = calloc(1, sizeof *place);
    strcpy(place->folder, "/tmp/recover_test-XXXXXX");
    if (mkdtemp(place->folder) == NULL) {
        return -1;
    }
    snprintf(place->regions, sizeof place->regions, "%s/regions", place->folder);
    snprintf(place->output, sizeof place->output, "%s/out.mtp", place->folder);
    mkdir(place->regions, 0700);
    setenv("MEMTRACE_REGION_DIR", place->regions, 1);
    setenv("TMPDIR", place->regions, 1);
    *state = place;
    return 0;
}

static int teardown(void **state) {
    struct place *place = *state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", place->folder);
    free(place);
    return system(command);
}

/* A process that exists no more: its pid, and ticks that nobody has again. */
static pid_t gone(void) {
    pid_t pid = fork();
    if (pid == 0) {
        _exit(0);
    }
    waitpid(pid, NULL, 0);
    return pid;
}

static void write_region(const struct place *place, pid_t pid, uint64_t ticks, const char *output,
                         uint32_t program_state, char path[200]) {
    struct builder *builder = builder_new();
    struct memtrace_header *header;
    int fd;
    builder_example(builder, 0x10000000);
    header = builder_header(builder);
    header->state = program_state;
    header->pid = (uint32_t)pid;
    header->process_start_ticks = ticks;
    snprintf(header->output, sizeof header->output, "%s", output);
    snprintf(path, 200, "%s/%ld.%llu.mtp", place->regions, (long)pid, (unsigned long long)ticks);
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, builder->bytes, builder_size(builder)), builder_size(builder));
    assert_int_equal(ftruncate(fd, 1 << 20), 0); /* a region is larger than what is in use */
    close(fd);
    free(builder);
}

struct notes {
    int count;
    struct recovered last;
    char line[6000];
};

static void note(void *context, const struct recovered *recovered) {
    struct notes *notes = context;
    notes->count++;
    notes->last = *recovered;
    recover_line(recovered, notes->line, sizeof notes->line);
}

static bool exists(const char *path) {
    return access(path, F_OK) == 0;
}

static uint64_t stored_bytes(const char *path) {
    struct memtrace_header header;
    assert_int_equal(region_read_header(path, &header), REGION_HEADER);
    assert_true((header.version & MEMTRACE_FORMAT_COMPRESSED) != 0);
    return header.stored_bytes;
}

static void killed_is_moved(void **state) {
    struct place *place = *state;
    struct notes notes = {0};
    struct profile *profile;
    struct stat status;
    char region[200];
    write_region(place, gone(), 17, place->output, MEMTRACE_STATE_RUNNING, region);
    assert_int_equal(recover_killed(note, &notes, NULL), 0);
    assert_int_equal(notes.count, 1);
    assert_int_equal(notes.last.finished.place, FINISH_MOVED);
    assert_string_equal(notes.last.finished.path, place->output);
    assert_non_null(strstr(notes.line, "the profile that example (pid "));
    assert_non_null(strstr(notes.line, "left unfinished is now at /tmp/recover_test-"));
    assert_false(exists(region));
    profile = profile_open(place->output, NULL);
    assert_non_null(profile);
    assert_string_equal(profile->damage, "");
    assert_int_equal(stat(place->output, &status), 0);
    assert_int_equal(status.st_size, stored_bytes(place->output)); /* and nothing behind it */
    assert_int_equal(profile->size, profile->header.end);
    profile_close(profile);
    assert_int_equal(recover_killed(note, &notes, NULL), 0);
    assert_int_equal(notes.count, 1);
}

/* A header that was overwritten: the profile is no longer than the region was. */
static void a_huge_end_is_cut(void **state) {
    struct place *place = *state;
    const uint64_t huge = UINT64_C(1) << 36;
    struct notes notes = {0};
    struct profile *profile;
    char region[200];
    int fd;
    write_region(place, gone(), 17, place->output, MEMTRACE_STATE_RUNNING, region);
    fd = open(region, O_WRONLY);
    assert_int_equal(pwrite(fd, &huge, sizeof huge, offsetof(struct memtrace_header, end)), 8);
    close(fd);
    assert_int_equal(recover_killed(note, &notes, NULL), 0);
    assert_int_equal(notes.last.finished.place, FINISH_MOVED);
    profile = profile_open(place->output, NULL);
    assert_non_null(profile);
    assert_int_equal(profile->size, 1 << 20);
    assert_non_null(strstr(profile->damage, "cut off at byte 1048576 of 68719476736"));
    profile_close(profile);
}

static void running_is_left(void **state) {
    struct place *place = *state;
    struct notes notes = {0};
    char region[200];
    uint64_t ticks;
    region_start_ticks(getpid(), &ticks);
    write_region(place, getpid(), ticks, place->output, MEMTRACE_STATE_RUNNING, region);
    recover_killed(note, &notes, NULL);
    assert_int_equal(notes.count, 0);
    assert_int_equal(recover_region(region, note, &notes), 0);
    assert_true(exists(region));
    /* The same pid, another process. */
    write_region(place, getpid(), ticks - 1, place->output, MEMTRACE_STATE_RUNNING, region);
    recover_killed(note, &notes, NULL);
    assert_int_equal(notes.count, 1);
}

/* Another program in the same process: nobody has the old region mapped. */
static void execed_is_moved(void **state) {
    struct place *place = *state;
    struct notes notes = {0};
    char region[200];
    uint64_t ticks;
    pid_t pid = fork();
    if (pid == 0) {
        pause();
        _exit(0);
    }
    region_start_ticks(pid, &ticks);
    write_region(place, pid, ticks, place->output, MEMTRACE_STATE_EXECED, region);
    recover_killed(note, &notes, NULL);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_int_equal(notes.count, 1);
    assert_false(exists(region));
}

static void claimed_is_left(void **state) {
    struct place *place = *state;
    struct notes notes = {0};
    struct claim claim;
    struct claim second;
    char region[200];
    write_region(place, gone(), 17, place->output, MEMTRACE_STATE_RUNNING, region);
    assert_int_equal(claim_open(region, &claim, NULL), CLAIM_OK);
    assert_int_equal(claim_open(region, &second, NULL), CLAIM_BUSY);
    recover_killed(note, &notes, NULL);
    assert_int_equal(notes.count, 0);
    claim_release(&claim);
    assert_int_equal(claim.fd, -1);
    claim_release(&claim); /* nothing is left of it */
    recover_killed(note, &notes, NULL);
    assert_int_equal(notes.count, 1);
    assert_int_equal(claim_open(region, &claim, NULL), CLAIM_ABSENT);
}

/* A file that is there may be newer than what a killed program left. */
static void existing_files_stay(void **state) {
    struct place *place = *state;
    struct notes notes = {0};
    char region[200];
    char expected[200];
    pid_t pid = gone();
    int fd = open(place->output, O_WRONLY | O_CREAT, 0600);
    assert_int_equal(write(fd, "old", 3), 3);
    close(fd);
    for (int i = 1; i <= 3; i++) {
        write_region(place, pid, 17, place->output, MEMTRACE_STATE_RUNNING, region);
        recover_killed(note, &notes, NULL);
        assert_int_equal(notes.count, i);
        snprintf(expected, sizeof expected, i == 1 ? "%s.%ld" : "%s.%ld.%d", place->output,
                 (long)pid, i);
        assert_string_equal(notes.last.finished.path, expected);
        assert_true(exists(expected));
    }
}

static void links_are_not_followed(void **state) {
    struct place *place = *state;
    struct error error;
    struct claim claim;
    char region[200];
    char elsewhere[200];
    write_region(place, gone(), 17, place->output, MEMTRACE_STATE_RUNNING, region);
    snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", place->folder);
    assert_int_equal(rename(region, elsewhere), 0);
    assert_int_equal(symlink(elsewhere, region), 0);
    assert_int_equal(claim_open(region, &claim, &error), CLAIM_FAILED);
    assert_int_equal(recover_region(region, NULL, NULL), 0);
    unlink(region);
    assert_int_equal(link(elsewhere, region), 0); /* two names */
    assert_int_equal(claim_open(region, &claim, &error), CLAIM_FAILED);
    unlink(region);
    assert_int_equal(rename(elsewhere, region), 0);
    assert_int_equal(chmod(place->regions, 0777), 0); /* others can put things there */
    assert_int_equal(claim_open(region, &claim, &error), CLAIM_FAILED);
    assert_int_equal(chmod(place->regions, 0700), 0);
    assert_int_equal(claim_open(region, &claim, &error), CLAIM_OK);
    claim_release(&claim);
}

static void output_cannot_be_written(void **state) {
    struct place *place = *state;
    struct notes notes = {0};
    char region[200];
    char output[200];
    snprintf(output, sizeof output, "%s/absent/out.mtp", place->folder);
    write_region(place, gone(), 17, output, MEMTRACE_STATE_RUNNING, region);
    recover_killed(note, &notes, NULL);
    assert_int_equal(notes.count, 1);
    assert_int_equal(notes.last.finished.place, FINISH_ELSEWHERE);
    assert_non_null(strstr(notes.line, "absent/out.mtp: No such file or directory"));
    assert_true(exists(notes.last.finished.path));
    assert_false(exists(region));

    setenv("TMPDIR", MEMTRACE_BINARY_DIR "/nowhere", 1);
    write_region(place, gone(), 17, output, MEMTRACE_STATE_RUNNING, region);
    recover_killed(note, &notes, NULL);
    assert_int_equal(notes.last.finished.place, FINISH_KEPT);
    assert_string_equal(notes.last.finished.path, region);
    assert_true(exists(region));
    write_region(place, gone(), 18, place->folder, MEMTRACE_STATE_RUNNING, region);
    recover_region(region, note, &notes);
    assert_non_null(strstr(notes.line, "Is a directory"));
    write_region(place, gone(), 19, "/dev/null", MEMTRACE_STATE_RUNNING, region);
    recover_region(region, note, &notes);
    assert_int_equal(notes.last.finished.place, FINISH_MOVED);
    assert_false(exists(region));
}

/* Killed before its header was whole: nothing to keep. */
static void empty_is_removed(void **state) {
    struct place *place = *state;
    struct notes notes = {0};
    char region[200];
    snprintf(region, sizeof region, "%s/%ld.17.mtp", place->regions, (long)gone());
    close(open(region, O_WRONLY | O_CREAT, 0600));
    recover_killed(note, &notes, NULL);
    assert_int_equal(notes.count, 0);
    assert_false(exists(region));
}

static void each_is_taken_once(void **state) {
    enum { REGIONS = 40, COMMANDS = 4 };
    struct place *place = *state;
    pid_t commands[COMMANDS];
    int total = 0;
    for (int i = 0; i < REGIONS; i++) {
        char region[200];
        write_region(place, gone(), (uint64_t)i, place->output, MEMTRACE_STATE_RUNNING, region);
    }
    for (int i = 0; i < COMMANDS; i++) {
        commands[i] = fork();
        if (commands[i] == 0) {
            struct notes notes = {0};
            recover_killed(note, &notes, NULL);
            _exit(notes.count);
        }
    }
    for (int i = 0; i < COMMANDS; i++) {
        int status;
        waitpid(commands[i], &status, 0);
        assert_true(WIFEXITED(status));
        total += WEXITSTATUS(status);
    }
    assert_int_equal(total, REGIONS);
}

static void holes_take_no_room(void **state) {
    struct place *place = *state;
    struct memtrace_header header = {.version = MEMTRACE_FORMAT_VERSION,
                                     .header_size = sizeof header,
                                     .byte_order = MEMTRACE_BYTE_ORDER,
                                     .end = 48 << 20,
                                     .state = MEMTRACE_STATE_ENDED};
    struct profile *profile;
    struct stat status;
    struct error error;
    char source[200];
    char path[4200];
    int fd;
    memcpy(header.magic, MEMTRACE_MAGIC, sizeof header.magic);
    snprintf(source, sizeof source, "%s/source", place->folder);
    fd = open(source, O_RDWR | O_CREAT, 0600);
    assert_int_equal(ftruncate(fd, 64 << 20), 0);
    assert_int_equal(pwrite(fd, &header, sizeof header, 0), sizeof header);
    assert_int_equal(pwrite(fd, "y", 1, 40 << 20), 1);
    assert_int_equal(
        copy_region(fd, 48 << 20, place->output, COPY_REPLACE, 0, path, sizeof path, &error), 0);
    close(fd);
    assert_int_equal(stat(place->output, &status), 0);
    assert_uint_in_range(status.st_size, sizeof header, sizeof header + 512);
    profile = profile_open(place->output, NULL);
    assert_non_null(profile);
    assert_int_equal(profile->size, 48 << 20);
    assert_int_equal(profile->bytes[40 << 20], 'y');
    profile_close(profile);
}

static void summary_text(void **state) {
    struct builder *builder = builder_new();
    struct profile *profile;
    struct model *model;
    const struct leftout left_out = {.is_known = true};
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    (void)state;
    builder_example(builder, 0x10000000);
    profile = profile_wrap(builder->bytes, builder_size(builder), "test", NULL);
    model = model_load(profile, NULL);
    finish_print_summary(out, model, &left_out, "/tmp/with blank.mtp", NULL);
    fclose(out);
    assert_string_equal(text,
                        "memtrace: peak               1.3 KiB (1,300 bytes)\n"
                        "memtrace: leaked             1.3 KiB (1,300 bytes in 5 blocks)\n"
                        "memtrace: allocations        8 (1.5 KiB in total), frees 3\n"
                        "memtrace: call paths         3, lost 0\n"
                        "memtrace: profile            /tmp/with blank.mtp\n"
                        "memtrace: read it with       memtrace report '/tmp/with blank.mtp'\n");
    free(text);
    model_free(model);
    profile_close(profile);
    free(builder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(killed_is_moved, setup, teardown),
        cmocka_unit_test_setup_teardown(a_huge_end_is_cut, setup, teardown),
        cmocka_unit_test_setup_teardown(running_is_left, setup, teardown),
        cmocka_unit_test_setup_teardown(execed_is_moved, setup, teardown),
        cmocka_unit_test_setup_teardown(claimed_is_left, setup, teardown),
        cmocka_unit_test_setup_teardown(existing_files_stay, setup, teardown),
        cmocka_unit_test_setup_teardown(links_are_not_followed, setup, teardown),
        cmocka_unit_test_setup_teardown(output_cannot_be_written, setup, teardown),
        cmocka_unit_test_setup_teardown(empty_is_removed, setup, teardown),
        cmocka_unit_test_setup_teardown(each_is_taken_once, setup, teardown),
        cmocka_unit_test_setup_teardown(holes_take_no_room, setup, teardown),
        cmocka_unit_test(summary_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
