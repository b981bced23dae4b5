/* SPDX-License-Identifier: MIT */
/* outfile_test.c: cli/outfile: a file is there whole or not at all. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include "analyze/base/job.h"
#include "cli/outfile.h"

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int enter_folder(void **state) {
    char folder[] = "/tmp/outfile-test-XXXXXX";
    *state = mkdtemp(folder) != NULL && chdir(folder) == 0 ? strdup(folder) : NULL;
    return *state != NULL ? 0 : -1;
}

/* Names in the folder, without . and .. */
static size_t count_files(void) {
    DIR *folder = opendir(".");
    size_t count = 0;
    assert_non_null(folder);
    while (readdir(folder) != NULL) {
        count++;
    }
    closedir(folder);
    return count - 2;
}

static int leave_folder(void **state) {
    unlink("a");
    unlink("link");
    return chdir("/") == 0 && rmdir(*state) == 0 ? free(*state), 0 : -1;
}

static void write_old(void) {
    FILE *file = fopen("a", "w");
    assert_non_null(file);
    fputs("old", file);
    fclose(file);
}

static void expect_content(const char *expected) {
    char text[16] = "";
    FILE *file = fopen("a", "r");
    assert_non_null(file);
    assert_true(fread(text, 1, sizeof text - 1, file) > 0);
    fclose(file);
    assert_string_equal(text, expected);
}

static struct outfile *open_new(const char *path) {
    struct outfile *file = outfile_open(path);
    fputs("new", file->stream);
    fflush(file->stream);
    return file;
}

static void keep(void *path) {
    struct outfile *file = open_new(path);
    expect_content("old");
    outfile_keep(file);
}

static void keeps(void **state) {
    struct stat status;
    (void)state;
    write_old();
    assert_int_equal(chmod("a", 0640), 0);
    assert_int_equal(symlink("a", "link"), 0);
    assert_int_equal(job_run(keep, "link", NULL, NULL), 0);
    expect_content("new");
    assert_int_equal(count_files(), 2);
    assert_int_equal(lstat("link", &status), 0);
    assert_true(S_ISLNK(status.st_mode));
    assert_int_equal(stat("a", &status), 0);
    assert_int_equal(status.st_mode & 0777, 0640);
}

static void keep_without_bits(void *path) {
    struct outfile *file = open_new(path);
    struct stat status;
    assert_int_equal(fstat(fileno(file->stream), &status), 0);
    assert_int_equal(status.st_mode & 07777, 0755);
    outfile_keep(file);
}

/* What a set-user-id program wrote into a file of its owner must not run with its owner's rights.
 */
static void keeps_no_special_bits(void **state) {
    struct stat status;
    (void)state;
    write_old();
    assert_int_equal(chmod("a", 06755), 0);
    assert_int_equal(job_run(keep_without_bits, "a", NULL, NULL), 0);
    assert_int_equal(stat("a", &status), 0);
    assert_int_equal(status.st_mode & 07777, 0755);
}

static void begin(void *path) {
    open_new(path);
    assert_int_equal(count_files(), 2);
}

static void begin_and_fail(void *path) {
    begin(path);
    job_fail("something else");
}

static void drops(void **state) {
    (void)state;
    write_old();
    assert_int_equal(job_run(begin, "a", NULL, NULL), 0);
    assert_int_equal(count_files(), 1);
    assert_int_equal(job_run(begin_and_fail, "a", NULL, NULL), -1);
    assert_int_equal(count_files(), 1);
    expect_content("old");
}

static void signals(void **state) {
    static const int all[] = {SIGINT, SIGTERM, SIGHUP};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        int status;
        pid_t child = fork();
        if (child == 0) {
            open_new("a");
            kill(getpid(), all[i]);
            _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), all[i]);
        assert_int_equal(count_files(), 0);
    }
}

static void open_and_keep(void *path) {
    outfile_keep(open_new(path));
}

static void cannot(void **state) {
    struct error error;
    (void)state;
    assert_int_equal(job_run(open_and_keep, "nowhere/a", NULL, &error), -1);
    assert_string_equal(error.message, "cannot write nowhere/a: No such file or directory");
    assert_int_equal(job_run(open_and_keep, "/tmp", NULL, &error), -1);
    assert_string_equal(error.message, "cannot write /tmp: Is a directory");
}

static void full(void **state) {
    struct error error;
    (void)state;
    assert_int_equal(job_run(open_and_keep, "/dev/full", NULL, &error), -1);
    assert_string_equal(error.message, "cannot write /dev/full: No space left on device");
    assert_int_equal(access("/dev/full", F_OK), 0);
}

static void open_stdout(void *path) {
    struct outfile *file = outfile_open(path);
    assert_ptr_equal(file->stream, stdout);
    assert_null(file->path);
}

static void to_stdout(void **state) {
    (void)state;
    assert_int_equal(job_run(open_stdout, "-", NULL, NULL), 0);
    assert_int_equal(count_files(), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(keeps, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(keeps_no_special_bits, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(drops, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(signals, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(cannot, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(full, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(to_stdout, enter_folder, leave_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
