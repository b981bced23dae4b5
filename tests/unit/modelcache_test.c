/* SPDX-License-Identifier: MIT */
/*
 * modelcache_test.c: analyze/window/modelcache: a model from the cache is the one that was
 * replayed, array by array, and so are its views; a file that is damaged, of another recording or
 * another program is not used.
 */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include "analyze/window/index.h"
#include "analyze/window/view.h"
#include "analyze/window/wholemodel.h"
#include "tests/unit/model_equal.h"
#include "tests/unit/recording_builder.h"
#include "tests/unit/recording_random.h"

#include <dirent.h>
#include <limits.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { HIGHEST = (1 << MEMTRACE_CONTEXT_BITS) - 2 };

static char root[] = "/tmp/memtrace-modelcache-XXXXXX";
static char path[64];

struct subject {
    struct recording *recording;
    struct recording *second; /* part of it; NULL: there is one alone */
    struct timeorder_parts parts;
    const struct recording *both[2];
};

static void open_subject(struct subject *subject) {
    subject->recording = recording_open(path, NULL);
    assert_non_null(subject->recording);
    subject->parts =
        (struct timeorder_parts){(const struct recording *const *)&subject->recording, 1};
}

static void write_random(const struct recording_random *options) {
    struct recording_build build = {0};
    recording_random(&build, options);
    recording_build_write(build.bytes, build.size, path);
    recording_build_free(&build);
}

/* The files of the cache; the last one's path. */
static size_t kept_files(char file[PATH_MAX]) {
    char folder[128];
    size_t count = 0;
    DIR *list;
    snprintf(folder, sizeof folder, "%s/cache/index", root);
    list = opendir(folder);
    for (struct dirent *entry; list != NULL && (entry = readdir(list)) != NULL;) {
        if (entry->d_name[0] != '.') {
            count++;
            snprintf(file, PATH_MAX, "%s/%s", folder, entry->d_name);
        }
    }
    if (list != NULL) {
        closedir(list);
    }
    return count;
}

static void empty_cache(void) {
    char file[PATH_MAX];
    while (kept_files(file) != 0) {
        assert_int_equal(unlink(file), 0);
    }
}

static struct model *replay(struct subject *subject) {
    const struct replay_options options = {.slice_events = 200};
    struct model *model = model_replay(subject->parts, &options, NULL);
    assert_non_null(model);
    return model;
}

static void same_views(struct subject *subject, const struct model *left, const struct model *right,
                       const struct recording_random *options) {
    for (int i = 0; i < 6; i++) {
        uint64_t from = recording_random_time(options);
        uint64_t to = from + recording_random_time(options) / 2 + 1;
        struct model *a = model_view(left, subject->parts, from, to, NULL, NULL);
        struct model *b = model_view(right, subject->parts, from, to, NULL, NULL);
        assert_non_null(a);
        assert_non_null(b);
        assert_models_equal(a, b);
        model_free(a);
        model_free(b);
    }
}

static void comes_back(void **state) {
    (void)state;
    for (unsigned seed = 0; seed < 10; seed++) {
        const struct recording_random options = {.seed = seed,
                                                 .threads = 1 + seed % 5,
                                                 .is_precise = seed % 2,
                                                 .inherited = seed % 3 == 0 ? 900 : 0};
        struct subject subject;
        struct model *model;
        struct model *kept;
        write_random(&options);
        open_subject(&subject);
        assert_null(modelcache_load(subject.parts));
        model = replay(&subject);
        assert_int_equal(modelcache_store(subject.parts, model), 0);
        kept = modelcache_load(subject.parts);
        assert_non_null(kept);
        assert_models_equal(kept, model);
        assert_int_equal(kept->index->count, model->index->count);
        same_views(&subject, kept, model, &options);
        model_free(kept);
        model_free(model);
        recording_close(subject.recording);
        empty_cache();
    }
}

/* The most that a process of its own needs to replay it and to take it from the cache, in KiB. */
static long memory_for(struct subject *subject, bool is_kept) {
    struct rusage before;
    struct rusage after;
    int status;
    pid_t child = fork();
    if (child == 0) {
        struct model *model = is_kept ? modelcache_load(subject->parts)
                                      : modelcache_replay(subject->parts, NULL, NULL);
        _exit(model == NULL || model->nodes[HIGHEST].parent != 4);
    }
    getrusage(RUSAGE_SELF, &before);
    assert_int_equal(wait4(child, &status, 0, &after), child);
    assert_int_equal(status, 0);
    return after.ru_maxrss - before.ru_maxrss;
}

/* Of AddressSanitizer, which takes memory of its own. */
extern void __asan_init(void) __attribute__((weak));

/* A recording, or a part of one, with one node at this id. */
static void write_high(const char *file, uint32_t id) {
    const struct memtrace_recording_node nodes[] = {{.frame = 0x400010, .id = 1 << 20, .parent = 4},
                                                    {.frame = 0x400020, .id = id, .parent = 4}};
    struct recording_build build = {0};
    recording_build_example(&build);
    recording_build_nodes(&build, nodes, 2);
    recording_build_index(&build);
    recording_build_write(build.bytes, build.size, file);
    recording_build_free(&build);
}

static void check_memory(struct subject *subject) {
    const long most_kib = __asan_init == NULL ? 64 << 10 : LONG_MAX;
    struct stat status;
    char file[PATH_MAX];
    long used = memory_for(subject, false);
    if (used > most_kib) {
        fail_msg("%ld KiB to replay it", used);
    }
    assert_int_equal(kept_files(file), 1);
    assert_int_equal(stat(file, &status), 0);
    if (status.st_size > 1 << 20) {
        fail_msg("%lld bytes are kept", (long long)status.st_size);
    }
    used = memory_for(subject, true);
    if (used > most_kib) {
        fail_msg("%ld KiB to take it from the cache", used);
    }
    empty_cache();
}

/* Part of a recording may have a few nodes with high ids, a damaged file has what it likes. */
static void ids_far_apart(void **state) {
    struct subject subject;
    (void)state;
    write_high(path, HIGHEST);
    open_subject(&subject);
    check_memory(&subject);
    recording_close(subject.recording);
}

/* The second part has one place more: what there is of the first moves. */
static void ids_far_apart_in_two_parts(void **state) {
    struct subject subject;
    char second[sizeof path + 2];
    (void)state;
    snprintf(second, sizeof second, "%s.2", path);
    write_high(path, HIGHEST - 1);
    write_high(second, HIGHEST);
    open_subject(&subject);
    subject.second = recording_open(second, NULL);
    assert_non_null(subject.second);
    subject.both[0] = subject.recording;
    subject.both[1] = subject.second;
    subject.parts = (struct timeorder_parts){subject.both, 2};
    check_memory(&subject);
    recording_close(subject.recording);
    recording_close(subject.second);
    unlink(second);
}

/* One byte changed, wherever, or the end missing: as if it were not there. */
static void damaged(void **state) {
    const struct recording_random options = {.seed = 1, .threads = 2};
    char file[PATH_MAX];
    struct subject subject;
    struct model *model;
    struct stat status;
    unsigned char *bytes;
    int fd;
    (void)state;
    write_random(&options);
    open_subject(&subject);
    model = replay(&subject);
    assert_int_equal(modelcache_store(subject.parts, model), 0);
    model_free(model);
    assert_int_equal(kept_files(file), 1);
    fd = open(file, O_RDWR);
    assert_int_equal(fstat(fd, &status), 0);
    bytes = malloc((size_t)status.st_size);
    assert_int_equal(pread(fd, bytes, (size_t)status.st_size, 0), status.st_size);
    for (off_t at = 0; at < status.st_size; at += 1 + status.st_size / 300) {
        unsigned char other = bytes[at] ^ 0x10;
        assert_int_equal(pwrite(fd, &other, 1, at), 1);
        assert_null(modelcache_load(subject.parts));
        assert_int_equal(pwrite(fd, &bytes[at], 1, at), 1);
    }
    model = modelcache_load(subject.parts);
    assert_non_null(model);
    model_free(model);
    for (off_t size = 0; size < status.st_size; size += 1 + status.st_size / 20) {
        assert_int_equal(ftruncate(fd, size), 0);
        assert_null(modelcache_load(subject.parts));
    }
    close(fd);
    model = modelcache_replay(subject.parts, NULL, NULL); /* makes it anew */
    assert_non_null(model);
    model_free(model);
    model = modelcache_load(subject.parts);
    assert_non_null(model);
    model_free(model);
    free(bytes);
    recording_close(subject.recording);
    empty_cache();
}

/* The recording goes on, is written again, or another one takes its place. */
static void stale(void **state) {
    struct recording_random options = {.seed = 3, .threads = 2};
    const struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    char file[PATH_MAX];
    struct subject subject;
    struct model *model;
    (void)state;
    write_random(&options);
    open_subject(&subject);
    model = replay(&subject);
    assert_int_equal(modelcache_store(subject.parts, model), 0);
    model_free(model);
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    assert_null(modelcache_load(subject.parts));
    recording_close(subject.recording);

    open_subject(&subject);
    model = replay(&subject);
    assert_int_equal(modelcache_store(subject.parts, model), 0);
    model_free(model);
    recording_close(subject.recording);
    options.seed = 4;
    write_random(&options);
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    open_subject(&subject);
    assert_null(modelcache_load(subject.parts));
    recording_close(subject.recording);
    assert_int_equal(kept_files(file), 2);
    empty_cache();
}

static void off(void **state) {
    const struct recording_random options = {.seed = 5, .threads = 1};
    char cache[sizeof root + 8];
    char file[PATH_MAX];
    struct subject subject;
    struct model *model;
    (void)state;
    snprintf(cache, sizeof cache, "%s", getenv("MEMTRACE_CACHE"));
    write_random(&options);
    open_subject(&subject);
    setenv("MEMTRACE_CACHE", "", 1);
    model = modelcache_replay(subject.parts, NULL, NULL);
    assert_non_null(model);
    assert_null(modelcache_load(subject.parts));
    assert_null(model->index->all.bytes); /* nobody would keep it */
    setenv("MEMTRACE_CACHE", cache, 1);
    assert_int_equal(kept_files(file), 0);
    model_free(model);
    recording_close(subject.recording);
}

/* Each of several processes has the whole answer, whoever is first. */
static void at_once(void **state) {
    enum { PROCESSES = 4, TURNS = 5 };
    const struct recording_random options = {.seed = 6, .threads = 3};
    char file[PATH_MAX];
    struct subject subject;
    struct model *model;
    (void)state;
    write_random(&options);
    for (int turn = 0; turn < TURNS; turn++) {
        pid_t children[PROCESSES];
        open_subject(&subject);
        model = replay(&subject);
        for (int i = 0; i < PROCESSES; i++) {
            children[i] = fork();
            if (children[i] == 0) {
                struct model *own = modelcache_replay(subject.parts, NULL, NULL);
                _exit(own != NULL && memcmp(&own->totals, &model->totals, sizeof own->totals) == 0
                          ? 0
                          : 1);
            }
        }
        for (int i = 0; i < PROCESSES; i++) {
            int status;
            assert_int_equal(waitpid(children[i], &status, 0), children[i]);
            assert_int_equal(status, 0);
        }
        assert_int_equal(kept_files(file), 1);
        model_free(model);
        recording_close(subject.recording);
        empty_cache();
    }
}

static int make_folder(void **state) {
    char cache[sizeof root + 8];
    (void)state;
    if (mkdtemp(root) == NULL) {
        return -1;
    }
    snprintf(path, sizeof path, "%s/recording.mtr", root);
    snprintf(cache, sizeof cache, "%s/cache", root);
    return setenv("MEMTRACE_CACHE", cache, 1);
}

static int remove_folder(void **state) {
    char folder[128];
    (void)state;
    empty_cache();
    snprintf(folder, sizeof folder, "%s/cache/index", root);
    rmdir(folder);
    snprintf(folder, sizeof folder, "%s/cache", root);
    rmdir(folder);
    unlink(path);
    return rmdir(root);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comes_back),
        cmocka_unit_test(ids_far_apart),
        cmocka_unit_test(ids_far_apart_in_two_parts),
        cmocka_unit_test(damaged),
        cmocka_unit_test(stale),
        cmocka_unit_test(off),
        cmocka_unit_test(at_once),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
