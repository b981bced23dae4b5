/* SPDX-License-Identifier: MIT */
/* region_test.c: analyze/read/region.c, and profiles of running programs (profile_refresh). */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include "analyze/base/threadstart.h"
#include "analyze/model/model.h"
#include "analyze/read/region.h"
#include "analyze/symbol/debugfile.h"
#include "tests/unit/profile_builder.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/memtrace-region-XXXXXX";

static int set_up(void **state) {
    (void)state;
    if (mkdtemp(folder) == NULL) {
        return -1;
    }
    return setenv("MEMTRACE_REGION_DIR", folder, 1);
}

static int tear_down(void **state) {
    (void)state;
    return rmdir(folder);
}

/* Writes the builder's profile as the region of this process. */
static void write_region(struct builder *builder, char *path, size_t size, pid_t pid,
                         uint64_t ticks) {
    int fd;
    builder_header(builder)->pid = (uint32_t)pid;
    builder_header(builder)->process_start_ticks = ticks;
    builder_header(builder)->state = MEMTRACE_STATE_RUNNING;
    snprintf(path, size, "%s/%ld.%" PRIu64 ".mtp", folder, (long)pid, ticks);
    fd = open(path, O_RDWR | O_CREAT, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, builder->bytes, builder_size(builder)), builder_size(builder));
    close(fd);
}

static void names(void **state) {
    struct region region;
    (void)state;
    assert_int_equal(region_parse("/dev/shm/memtrace-0/12.345.mtp", &region), 0);
    assert_int_equal(region.pid, 12);
    assert_int_equal(region.start_ticks, 345);
    assert_int_equal(region_parse("12.345.mtp", &region), 0);
    assert_int_equal(region_parse("/a/12.345.2.mtp", &region), 0);
    assert_int_equal(region.start_ticks, 345);
    assert_int_equal(region_parse("/a/12.345.0.mtp", &region), -1);
    assert_int_equal(region_parse("/a/12.345.2.3.mtp", &region), -1);
    assert_int_equal(region_parse("/a/12.345.mtp.tmp", &region), -1);
    assert_int_equal(region_parse("/a/12.345", &region), -1);
    assert_int_equal(region_parse("/a/0.345.mtp", &region), -1);
    assert_int_equal(region_parse("/a/x12.345.mtp", &region), -1);
    assert_int_equal(region_parse("/a/99999999999.345.mtp", &region), -1);
}

static void processes(void **state) {
    uint64_t ticks;
    pid_t child = fork();
    (void)state;
    if (child == 0) {
        _exit(0);
    }
    assert_int_equal(region_start_ticks(getpid(), &ticks), 0);
    assert_true(region_alive(getpid(), ticks));
    assert_false(region_alive(getpid(), ticks + 1));
    assert_false(region_alive(0, 0));
    assert_int_equal(region_start_ticks(child, &ticks), 0);
    for (int tries = 0; tries < 500 && region_alive(child, ticks); tries++) {
        usleep(1000);
    }
    assert_false(region_alive(child, ticks)); /* a zombie by now */
    waitpid(child, NULL, 0);
    assert_int_equal(region_start_ticks(child, &ticks), -1);
}

static void find_and_list(void **state) {
    struct builder *builder = builder_new();
    struct region region;
    struct region *list;
    struct error error;
    uint64_t ticks;
    size_t count;
    size_t seen = 0;
    char path[512];
    (void)state;
    region_start_ticks(getpid(), &ticks);
    assert_int_equal(region_find(getpid(), &region, &error), -1);
    assert_non_null(strstr(error.message, "is not profiled"));
    write_region(builder, path, sizeof path, getpid(), ticks);
    assert_int_equal(region_find(getpid(), &region, &error), 0);
    assert_string_equal(region.path, path);
    assert_true(region.alive);
    assert_int_equal(region_list(&list, &count, &error), 0);
    for (size_t i = 0; i < count; i++) {
        seen += strcmp(list[i].path, path) == 0;
    }
    assert_int_equal(seen, 1);
    free(list);
    unlink(path);
    assert_int_equal(region_find(INT32_MAX, &region, &error), -1);
    assert_non_null(strstr(error.message, "there is no process"));
    free(builder);
}

/* A region in a folder that only the program knows is found by what it has mapped. */
static void find_by_maps(void **state) {
    char path[] = "/tmp/memtrace-elsewhere-XXXXXX";
    char name[128];
    struct builder *builder = builder_new();
    struct profile *profile;
    struct region region;
    struct error error;
    uint64_t ticks;
    char in[512];
    (void)state;
    assert_non_null(mkdtemp(path));
    region_start_ticks(getpid(), &ticks);
    write_region(builder, in, sizeof in, getpid(), ticks);
    snprintf(name, sizeof name, "%s/1.2.mtp", path);
    assert_int_equal(rename(in, name), 0);
    profile = profile_open(name, &error); /* maps it */
    assert_non_null(profile);
    assert_true(profile->live);
    assert_int_equal(region_find(getpid(), &region, &error), 0);
    assert_string_equal(region.path, name);
    profile_close(profile);
    unlink(name);
    rmdir(path);
    free(builder);
}

/* What the program adds is seen after a refresh; a second model shows the difference. */
static void running(void **state) {
    struct builder *builder = builder_new();
    struct profile *profile;
    struct model *before;
    struct model *after;
    struct memtrace_cell *cells;
    struct error error;
    uint64_t ticks;
    char path[512];
    int fd;
    (void)state;
    region_start_ticks(getpid(), &ticks);
    builder_tree(builder, 0)[10] = (struct memtrace_node){builder_frame(0, 0x1000), 0, 0};
    write_region(builder, path, sizeof path, getpid(), ticks);
    profile = profile_open(path, &error);
    assert_non_null(profile);
    assert_true(profile->live);
    before = model_load(profile, &error);
    assert_int_equal(before->context_count, 0);

    cells = builder_ledger(builder, 1, 0);
    cells[10] = (struct memtrace_cell){100, 2, 50, 1, 0, 0, 0, 0};
    fd = open(path, O_RDWR);
    assert_int_equal(pwrite(fd, builder->bytes, builder_size(builder), 0), builder_size(builder));
    assert_int_equal(profile_refresh(profile, &error), 0);
    after = model_load(profile, &error);
    assert_true(after->live);
    assert_null(model_find(before, 10));
    assert_int_equal(model_find(after, 10)->live_bytes, 50);
    assert_int_equal(after->totals.allocations, 2);
    model_free(before);
    model_free(after);
    profile_close(profile);
    close(fd);
    unlink(path);
    free(builder);
}

/* Without cmocka's own handler: the status of a child, or the signal that ended it. */
static int in_child(void (*body)(const char *path), const char *path) {
    int status;
    pid_t child = fork();
    if (child == 0) {
        signal(SIGBUS, SIG_DFL);
        body(path);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status);
}

#define EXPECT(condition) ((condition) ? (void)0 : _exit(__LINE__ % 100 + 1))

/* Its owner makes the file of a running program shorter, behind the back of who reads it. */
static void read_while_cut(const char *path) {
    struct error error = {""};
    struct profile *profile = profile_open(path, &error);
    uint64_t size = profile->mapped;
    struct model *model;
    EXPECT(profile->live && !profile_is_cut(profile));
    EXPECT(truncate(path, MEMTRACE_HEADER_SIZE) == 0);
    model = model_load(profile, &error);
    EXPECT(model != NULL && model->totals.allocations == 0);
    EXPECT(strcmp(model->damage, "it became shorter while it was read") == 0);
    model_free(model);
    EXPECT(profile_refresh(profile, &error) == -1);
    EXPECT(strstr(error.message, "became shorter while it was read") != NULL);
    EXPECT(truncate(path, (off_t)size) == 0); /* too late */
    EXPECT(profile_refresh(profile, &error) == -1);
    profile_close(profile);
}

/* The next mapping, maybe at the same address; now the header goes, too. */
static void read_while_emptied(const char *path) {
    struct error error = {""};
    struct profile *profile = profile_open(path, &error);
    struct model *model;
    EXPECT(profile->live && !profile_is_cut(profile));
    EXPECT(truncate(path, 0) == 0);
    model = model_load(profile, &error);
    EXPECT(model != NULL && model->damage[0] != '\0');
    model_free(model);
    profile_close(profile);
}

static void read_both(const char *path) {
    read_while_cut(path);
    read_while_emptied(path);
}

static void cut_off_meanwhile(void **state) {
    struct builder *builder = builder_new();
    uint64_t ticks;
    char path[512];
    (void)state;
    region_start_ticks(getpid(), &ticks);
    builder_tree(builder, 0)[10] = (struct memtrace_node){builder_frame(0, 0x1000), 0, 0};
    builder_ledger(builder, 1, 0)[10] = (struct memtrace_cell){100, 2, 50, 1, 0, 0, 0, 0};
    write_region(builder, path, sizeof path, getpid(), ticks);
    assert_int_equal(in_child(read_both, path), 0);
    unlink(path);
    free(builder);
}

/* The same in a thread that leaves signals to others. */
static void *read_all(void *argument) {
    volatile const unsigned char *bytes = ((struct profile *)argument)->bytes;
    unsigned sum = 0;
    for (uint64_t at = 0; at < ((struct profile *)argument)->size; at += 4096) {
        sum += bytes[at];
    }
    return sum == 0 ? NULL : argument;
}

static void read_in_thread(const char *path) {
    struct profile *profile = profile_open(path, NULL);
    pthread_t thread;
    EXPECT(profile != NULL && profile->live && truncate(path, 0) == 0);
    EXPECT(threadstart(&thread, NULL, read_all, profile) == 0);
    EXPECT(pthread_join(thread, NULL) == 0 && profile_is_cut(profile));
    profile_close(profile);
}

static void cut_off_in_a_thread(void **state) {
    struct builder *builder = builder_new();
    uint64_t ticks;
    char path[512];
    (void)state;
    region_start_ticks(getpid(), &ticks);
    write_region(builder, path, sizeof path, getpid(), ticks);
    assert_int_equal(in_child(read_in_thread, path), 0);
    unlink(path);
    free(builder);
}

/* And of a program file that debug information is read of. */
static void read_program(const char *path) {
    struct debugfile_elf file;
    size_t size;
    const volatile char *bytes;
    EXPECT(debugfile_open(path, &file, NULL) == 0);
    bytes = elf_rawfile(file.elf, &size);
    EXPECT(truncate(path, 0) == 0 && bytes[size / 2] == 0 && bytes[size - 1] == 0);
    debugfile_close(&file);
}

static void program_cut_off_meanwhile(void **state) {
    char path[64];
    char command[128];
    (void)state;
    snprintf(path, sizeof path, "/tmp/region_test.%ld.program", (long)getpid());
    snprintf(command, sizeof command, "cp /proc/%ld/exe %s", (long)getpid(), path);
    assert_int_equal(system(command), 0);
    assert_int_equal(in_child(read_program, path), 0);
    unlink(path);
}

/* What is no mapping of ours is as fatal as ever, also while there is one. */
static void fault_elsewhere(const char *path) {
    struct profile *profile = profile_open(path, NULL);
    char other[] = "/tmp/memtrace-bus-XXXXXX";
    int fd = mkstemp(other);
    volatile char *bytes;
    unlink(other);
    EXPECT(profile != NULL && profile->live && ftruncate(fd, 4096) == 0);
    bytes = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    EXPECT(bytes[0] == 0 && ftruncate(fd, 0) == 0);
    _exit(bytes[0] + 1);
}

static void other_faults(void **state) {
    struct builder *builder = builder_new();
    uint64_t ticks;
    char path[512];
    (void)state;
    region_start_ticks(getpid(), &ticks);
    write_region(builder, path, sizeof path, getpid(), ticks);
    assert_int_equal(in_child(fault_elsewhere, path), SIGBUS);
    unlink(path);
    free(builder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names),
        cmocka_unit_test(processes),
        cmocka_unit_test(find_and_list),
        cmocka_unit_test(find_by_maps),
        cmocka_unit_test(running),
        cmocka_unit_test(cut_off_meanwhile),
        cmocka_unit_test(other_faults),
        cmocka_unit_test(cut_off_in_a_thread),
        cmocka_unit_test(program_cut_off_meanwhile),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
