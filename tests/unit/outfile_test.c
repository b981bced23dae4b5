/* SPDX-License-Identifier: MIT */
/* outfile_test.c: cli/outfile: a file is there whole or not at all. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

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

static void open_new(struct outfile *file) {
    struct error error = {""};
    if (outfile_open(file, "a", &error) != 0) {
        fail_msg("%s", error.message);
    }
    fputs("new", file->stream);
    fflush(file->stream);
}

static void keeps(void **state) {
    struct outfile file;
    struct stat status;
    (void)state;
    write_old();
    assert_int_equal(chmod("a", 0640), 0);
    assert_int_equal(symlink("a", "link"), 0);
    assert_int_equal(outfile_open(&file, "link", NULL), 0);
    fputs("new", file.stream);
    fflush(file.stream);
    expect_content("old");
    assert_int_equal(outfile_keep(&file, NULL), 0);
    expect_content("new");
    assert_int_equal(count_files(), 2);
    assert_int_equal(lstat("link", &status), 0);
    assert_true(S_ISLNK(status.st_mode));
    assert_int_equal(stat("a", &status), 0);
    assert_int_equal(status.st_mode & 0777, 0640);
}

/* What a set-user-id program wrote into a file of its owner must not run with its owner's rights.
 */
static void keeps_no_special_bits(void **state) {
    struct outfile file;
    struct stat status;
    (void)state;
    write_old();
    assert_int_equal(chmod("a", 06755), 0);
    open_new(&file);
    assert_int_equal(fstat(fileno(file.stream), &status), 0);
    assert_int_equal(status.st_mode & 07777, 0755);
    assert_int_equal(outfile_keep(&file, NULL), 0);
    assert_int_equal(stat("a", &status), 0);
    assert_int_equal(status.st_mode & 07777, 0755);
}

static void drops(void **state) {
    struct outfile file;
    (void)state;
    write_old();
    open_new(&file);
    assert_int_equal(count_files(), 2);
    outfile_drop(&file);
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
            struct outfile file;
            open_new(&file);
            kill(getpid(), all[i]);
            _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), all[i]);
        assert_int_equal(count_files(), 0);
    }
}

static void cannot(void **state) {
    struct outfile file;
    struct error error = {""};
    (void)state;
    assert_int_equal(outfile_open(&file, "nowhere/a", &error), -1);
    assert_string_equal(error.message, "cannot write nowhere/a: No such file or directory");
    assert_int_equal(outfile_open(&file, "/tmp", &error), -1);
    assert_string_equal(error.message, "cannot write /tmp: Is a directory");
}

static void full(void **state) {
    struct outfile file;
    struct error error = {""};
    (void)state;
    assert_int_equal(outfile_open(&file, "/dev/full", &error), 0);
    fputs("new", file.stream);
    assert_int_equal(outfile_keep(&file, &error), -1);
    assert_string_equal(error.message, "cannot write /dev/full: No space left on device");
    assert_int_equal(access("/dev/full", F_OK), 0);
}

static void to_stdout(void **state) {
    struct outfile file;
    (void)state;
    assert_int_equal(outfile_open(&file, "-", NULL), 0);
    assert_ptr_equal(file.stream, stdout);
    assert_null(file.path);
    outfile_drop(&file);
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
