/* SPDX-License-Identifier: MIT */
/* heaptrack_test.c: analyze/export/heaptrack: what a recording left out is made up within a bound.
 */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include "analyze/base/job.h"
#include "analyze/export/export.h"
#include "analyze/window/wholemodel.h"
#include "tests/unit/recording_builder.h"

#include <signal.h>
#include <sys/wait.h>

/* A recording whose context 5 has so many blocks that were culled, and 6 as many. */
static void write_culled(const char *path, uint64_t count) {
    const struct memtrace_culled culled[] = {
        {.context = 5, .thread = 2, .count = count, .bytes = count * 16},
        {.context = 6, .thread = 2, .count = count, .bytes = count * 16}};
    struct recording_build build = {0};
    recording_build_header(&build);
    recording_build_program(&build, "/usr/bin/example");
    recording_build_tree(&build);
    recording_build_items(&build, MEMTRACE_BLOCK_CULLED, culled, sizeof culled[0], 2);
    recording_build_index(&build);
    recording_build_write(build.bytes, build.size, path);
    recording_build_free(&build);
}

static void write_export(void *export) {
    export_heaptrack(export);
}

/* The lines of the file that begin with a plus; -1: refused. */
static long export(const char *path, struct error *error) {
    struct recording *recording = recording_open(path, error);
    const struct timeorder_parts parts = {(const struct recording *const *)&recording, 1};
    struct model *model = model_replay(parts, NULL, error);
    struct names *names = names_open(model, NULL, error);
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    struct export export = {.model = model,
                            .whole = model,
                            .names = names,
                            .parts = parts,
                            .out = out,
                            .name = "a.txt"};
    long count = 0;
    int result = job_run(write_export, &export, NULL, error);
    fclose(out);
    for (const char *at = text; at != NULL && (at = strstr(at, "\n+")) != NULL; at++) {
        count++;
    }
    free(text);
    names_close(names);
    model_free(model);
    recording_close(recording);
    return result == 0 ? count : -1;
}

static void culled(void **state) {
    static const uint64_t too_many[] = {6000000, 90000000, 150000000, UINT64_C(1) << 40,
                                        UINT64_C(1) << 47};
    char path[] = "/tmp/memtrace-culled-XXXXXX";
    struct error error = {""};
    (void)state;
    close(mkstemp(path));
    write_culled(path, 0);
    assert_int_equal(export(path, &error), 0);
    write_culled(path, 1000);
    assert_int_equal(export(path, &error), 2000);
    for (size_t i = 0; i < sizeof too_many / sizeof too_many[0]; i++) {
        int status;
        pid_t child;
        write_culled(path, too_many[i]);
        child = fork();
        if (child == 0) {
            alarm(5); /* else it would fill the memory */
            _exit(export(path, &error) != -1 || strstr(error.message, "--cull") == NULL);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(culled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
