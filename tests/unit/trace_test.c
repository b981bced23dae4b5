/* SPDX-License-Identifier: MIT */
/*
 * trace_test.c: `memtrace trace` on a running program under the preloaded library.
 */
#include "symbol_fixture.h"

#include <signal.h>
#include <sys/wait.h>

static const char memtrace[] = MEMTRACE_BINARY_DIR "/bin/memtrace";
static const char library[] = MEMTRACE_BINARY_DIR "/lib/libmemtrace.so";

static const char subject_source[] =
    "#include <pthread.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n"
    "static inline __attribute__((always_inline)) void *take(unsigned long n) {\n"
    "    void *volatile p = malloc(n); return p; }\n"
    "__attribute__((noinline)) void *small_block(void) { void *volatile p = take(100); return p; "
    "}\n"
    "__attribute__((noinline)) void *large_block(void) {\n"
    "    void *volatile p = malloc(50000000); return p; }\n"
    "static void *thread(void *slot) { *(void **)slot = small_block(); pause(); return slot; }\n"
    "int main(void) {\n"
    "    pthread_t id; void *volatile theirs = NULL;\n"
    "    pthread_create(&id, NULL, thread, (void *)&theirs);\n"
    "    while (!theirs) usleep(1000);\n"
    "    void *freed = malloc(64); free(freed);\n"
    "    printf(\"%p %p %p %p\\n\", small_block(), large_block(), theirs, freed);\n"
    "    fflush(stdout); pause(); return 0;\n}\n";

static pid_t subject;
static unsigned long blocks[4];
static char output[16384];

static int start_subject(void) {
    int pipe_ends[2];
    char path[256], preload[256];
    snprintf(preload, sizeof preload, "%s/preload.so", fixture_folder);
    if (symlink(library, preload) != 0 || /* its own path may hold a blank */
        fixture_run("gcc -g -O1 -fno-optimize-sibling-calls subject.c -o subject -lpthread") != 0 ||
        pipe(pipe_ends) != 0)
        return -1;
    snprintf(path, sizeof path, "%s/subject", fixture_folder);
    subject = fork();
    if (subject == 0) {
        dup2(pipe_ends[1], 1);
        setenv("LD_PRELOAD", preload, 1);
        setenv("MEMTRACE_REGION_DIR", fixture_folder, 1);
        setenv("MEMTRACE_OUTPUT", "/dev/null", 1);
        execl(path, path, (char *)NULL);
        _exit(127);
    }
    close(pipe_ends[1]);
    FILE *answer = fdopen(pipe_ends[0], "r");
    int count = fscanf(answer, "%lx %lx %lx %lx", &blocks[0], &blocks[1], &blocks[2], &blocks[3]);
    fclose(answer);
    return count == 4 ? 0 : -1;
}

static int make(void **state) {
    if (fixture_make(state) != 0)
        return -1;
    if (access(memtrace, X_OK) != 0 || access(library, R_OK) != 0)
        return 0;
    setenv("MEMTRACE_REGION_DIR", fixture_folder, 1);
    fixture_write("subject.c", subject_source);
    return start_subject();
}

static int unmake(void **state) {
    if (subject > 0) {
        kill(subject, SIGKILL);
        waitpid(subject, NULL, 0);
    }
    return fixture_remove(state);
}

static void need_subject(void) {
    if (subject <= 0)
        skip();
}

/* output gets stdout, then stderr. Returns the status. */
static int trace(const char *format, unsigned long pid, unsigned long address) {
    char path[256], arguments[128];
    snprintf(arguments, sizeof arguments, format, pid, address);
    int status = fixture_run("'%s' trace %s >output 2>errors; s=$?; cat output errors >all; "
                             "(exit $s)",
                             memtrace, arguments);
    snprintf(path, sizeof path, "%s/all", fixture_folder);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    output[fread(output, 1, sizeof output - 1, file)] = '\0';
    fclose(file);
    return WEXITSTATUS(status);
}

static void expect(const char *part) {
    if (!strstr(output, part))
        fail_msg("no '%s' in: %s", part, output);
}

static void traces_a_block(void **state) {
    (void)state;
    char wanted[512];
    need_subject();
    assert_int_equal(trace("%lu 0x%lx", (unsigned long)subject, blocks[0]), 0);
    snprintf(wanted, sizeof wanted, "0x%lx is a block of 100 bytes at 0x%lx, allocated ", blocks[0],
             blocks[0]);
    expect(wanted);
    snprintf(wanted, sizeof wanted, " by thread %d", (int)subject);
    expect(wanted);
    snprintf(wanted, sizeof wanted,
             "  take at %1$s/subject.c:6 (inlined)\n  small_block at %1$s/subject.c:7\n"
             "  main at %1$s/subject.c:16\n",
             fixture_folder);
    expect(wanted);
}

static void traces_inside_blocks(void **state) {
    (void)state;
    need_subject();
    assert_int_equal(trace("%lu %lx", (unsigned long)subject, blocks[0] + 99), 0);
    expect("is 99 bytes into a block of 100 bytes");
    assert_int_equal(trace("%lu %lx", (unsigned long)subject, blocks[1]), 0);
    expect("is a block of 50,000,000 bytes");
    expect("  large_block at ");
    assert_int_equal(trace("%lu %lx", (unsigned long)subject, blocks[1] + 49999999), 0);
    expect("is 49,999,999 bytes into a block of 50,000,000 bytes");
}

static void traces_another_threads_block(void **state) {
    (void)state;
    need_subject();
    assert_int_equal(trace("%lu %lx", (unsigned long)subject, blocks[2]), 0);
    expect("  small_block at ");
    expect("  thread at ");
}

static void says_what_is_no_block(void **state) {
    (void)state;
    need_subject();
    assert_int_equal(trace("%lu %lx", (unsigned long)subject, blocks[1] + 50000000), 1);
    expect(" is not a live block of process ");
    assert_int_equal(trace("%lu %lx", (unsigned long)subject, blocks[3]), 1);
    expect(" is not a live block of process ");
    assert_int_equal(trace("%lu %lx", (unsigned long)subject, 0), 1);
    expect("memtrace: 0x0 is not a live block of process ");
}

static void says_why_it_cannot(void **state) {
    (void)state;
    need_subject();
    assert_int_equal(trace("%lu %lx", 999999999ul, 16), 1);
    expect("there is no process 999999999");
    assert_int_equal(trace("%lu %lx", (unsigned long)getpid(), 16), 1);
    expect("is not profiled");
    assert_int_equal(trace("none %lu %lx", 1, 1), 2);
    assert_int_equal(trace("none %.0lu %lx", 0, 1), 2);
    expect("is not a process id");
    assert_int_equal(trace("%lu zz%lx", 1, 1), 2);
    expect("is not an address");
    assert_int_equal(trace("--help %lu %lx", 1, 1), 0);
    expect("usage: memtrace trace PID ADDRESS");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(traces_a_block),
        cmocka_unit_test(traces_inside_blocks),
        cmocka_unit_test(traces_another_threads_block),
        cmocka_unit_test(says_what_is_no_block),
        cmocka_unit_test(says_why_it_cannot),
    };
    return cmocka_run_group_tests(tests, make, unmake);
}
