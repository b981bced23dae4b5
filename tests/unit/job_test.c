/* SPDX-License-Identifier: MIT */
/* Memory goes with its job, what cannot be had ends it, and what is kept stays. */
#include "analyze/base/job.h"
#include "analyze/base/numbermap.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
// clang-format on

struct subject {
    struct job_memory *kept;
    const char *text;
    int *numbers;
    size_t room;
    size_t count;
    char undone[8];
    int fails;
    struct numbermap map;
    struct error inner;
};

static void note_a(void *what) {
    strcat(((struct subject *)what)->undone, "a");
}

static void note_b(void *what) {
    strcat(((struct subject *)what)->undone, "b");
}

static void add_numbers(struct subject *subject, int count) {
    for (int i = 0; i < count; i++) {
        job_grow(&subject->numbers, &subject->room, subject->count, sizeof *subject->numbers);
        subject->count++;
        subject->numbers[subject->count - 1] = (int)subject->count;
    }
}

static void fill(void *what) {
    struct subject *subject = what;
    subject->text = job_text("%s %d", job_string("number"), 7);
    job_undo(note_a, subject);
    job_undo(note_b, subject);
    subject->undone[0] = '\0';
    job_undo_now(subject); /* the last one that was noted of it */
    assert_string_equal(subject->undone, "b");
    job_undo(note_b, subject);
    subject->undone[0] = '\0';
    job_undo_now(&subject->room); /* nothing was */
    add_numbers(subject, 1000);
    if (subject->fails) {
        job_fail("no %s", subject->text);
    }
}

static void check_numbers(const struct subject *subject, size_t count) {
    assert_int_equal(subject->count, count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(subject->numbers[i], i + 1);
    }
}

static void test_keeps(void **state) {
    struct subject subject = {0};
    struct error error = {""};
    (void)state;
    assert_int_equal(job_run(fill, &subject, &subject.kept, &error), 0);
    assert_string_equal(subject.text, "number 7");
    assert_string_equal(subject.undone, "");
    check_numbers(&subject, 1000);
    job_free(&subject.kept);
    assert_null(subject.kept);
    assert_string_equal(subject.undone, "ba");
    job_free(&subject.kept);
}

static void test_fails(void **state) {
    struct subject subject = {.fails = 1};
    struct error error = {""};
    (void)state;
    assert_int_equal(job_run(fill, &subject, &subject.kept, &error), -1);
    assert_string_equal(error.message, "no number 7");
    assert_null(subject.kept);
    assert_string_equal(subject.undone, "ba");
    assert_int_equal(job_run(fill, &(struct subject){.fails = 1}, NULL, NULL), -1);
}

/* What is added to kept memory stays with it, or is gone without a trace. */
static void test_adds_to_kept(void **state) {
    struct subject first = {0};
    struct subject more = {0};
    (void)state;
    assert_int_equal(job_run(fill, &first, &first.kept, NULL), 0);
    assert_int_equal(job_run(fill, &more, &first.kept, NULL), 0);
    more.fails = 1;
    more.numbers = NULL;
    more.count = more.room = 0;
    assert_int_equal(job_run(fill, &more, &first.kept, NULL), -1);
    assert_string_equal(more.undone, "ba");
    check_numbers(&first, 1000);
    job_free(&first.kept);
    assert_string_equal(first.undone, "ba");
    assert_string_equal(more.undone, "baba");
}

static void inner(void *what) {
    struct subject *subject = what;
    struct subject own = {0};
    add_numbers(subject, 5000); /* begun by the outer one: it stays there */
    fill(&own);
    job_fail("inner");
}

static void outer(void *what) {
    struct subject *subject = what;
    int *large = job_array(1000, sizeof *large);
    int *larger = job_array(2000, sizeof *larger);
    job_alloc(100000);
    add_numbers(subject, 10);
    assert_int_equal(job_run(inner, subject, NULL, &subject->inner), -1);
    add_numbers(subject, 10);
    check_numbers(subject, 5020);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(large[i], 0);
    }
    job_release(large);
    job_release(larger);
    job_release(NULL);
    add_numbers(subject, 100000);
    job_release(subject->numbers);
}

static void test_nests(void **state) {
    struct subject subject = {0};
    (void)state;
    assert_int_equal(job_run(outer, &subject, NULL, NULL), 0);
    assert_string_equal(subject.inner.message, "inner");
}

static void ask_too_much(void *what) {
    volatile size_t most = SIZE_MAX; /* else the compiler sees it */
    switch (*(int *)what) {
    case 0:
        job_alloc(most - 100);
        break;
    case 1:
        job_array(most / 2, 4);
        break;
    case 2: {
        char *items = NULL;
        size_t room = 0;
        job_reserve(&items, &room, SIZE_MAX / 2, 16);
        break;
    }
    case 3:
        job_array(most - 8, 1);
        break;
    default:
        job_take(NULL);
    }
    fail();
}

static void test_out_of_memory(void **state) {
    (void)state;
    for (int i = 0; i < 5; i++) {
        struct error error;
        assert_int_equal(job_run(ask_too_much, &i, NULL, &error), -1);
        assert_string_equal(error.message, "out of memory");
    }
}

static void take(void *what) {
    struct error error;
    (void)what;
    assert_string_equal(job_take(strdup("text")), "text");
    assert_memory_equal(job_copy("copy", 5, 1), "copy", 5);
    assert_non_null(job_copy(NULL, 0, 100));
    error_set(&error, "why");
    job_check(0, &error);
    job_check(-1, &error);
    fail();
}

static void test_takes(void **state) {
    struct error error;
    (void)state;
    assert_int_equal(job_run(take, NULL, NULL, &error), -1);
    assert_string_equal(error.message, "why");
    assert_string_equal(job_text("%d", 1), "1"); /* outside of all jobs */
}

static void print(void *what) {
    struct subject *subject = what;
    struct job_printing *left = job_print();
    struct job_printing *printing = job_print();
    fputs("left open", left->out);
    fprintf(printing->out, "%s %d", "number", 7);
    subject->text = job_printed(printing);
    for (uintptr_t i = 1; i <= 1000; i++) {
        numbermap_set(&subject->map, i * 3, (void *)i);
    }
    if (subject->fails) {
        job_fail("no %s", subject->text);
    }
}

static void test_prints_and_maps(void **state) {
    struct subject subject = {.fails = 1};
    (void)state;
    assert_int_equal(job_run(print, &subject, &subject.kept, NULL), -1);
    subject = (struct subject){0};
    assert_int_equal(job_run(print, &subject, &subject.kept, NULL), 0);
    assert_string_equal(subject.text, "number 7");
    for (uintptr_t i = 1; i <= 1000; i++) {
        assert_ptr_equal(numbermap_get(&subject.map, i * 3), (void *)i);
    }
    assert_null(numbermap_get(&subject.map, 3003));
    job_free(&subject.kept);
}

struct finished {
    char *text; /* of the work, still there when it is finished */
    int times;
    bool fails;
};

static void work_and_fail(void *what) {
    struct finished *finished = what;
    finished->text = job_string("of the job");
    if (finished->fails) {
        job_fail("too bad");
    }
}

static void finish_work(void *what) {
    struct finished *finished = what;
    assert_string_equal(finished->text, "of the job");
    finished->times++;
}

static void work_that_is_finished(void *what) {
    struct finished *finished = what;
    job_finally(work_and_fail, finish_work, finished);
    assert_string_equal(finished->text, "of the job");
    assert_false(finished->fails);
    assert_int_equal(finished->times, 1);
}

static void test_finishes(void **state) {
    struct finished well = {.fails = false};
    struct finished badly = {.fails = true};
    struct finished outside = {.fails = false};
    struct error error;
    (void)state;
    assert_int_equal(job_run(work_that_is_finished, &well, NULL, &error), 0);
    assert_int_equal(job_run(work_that_is_finished, &badly, NULL, &error), -1);
    assert_string_equal(error.message, "too bad");
    assert_int_equal(badly.times, 1);
    work_that_is_finished(&outside);
}

struct parts {
    char *text; /* of the part, still there when the job is undone */
    int undone;
    bool fails;
};

static void undo_part(void *what) {
    struct parts *parts = what;
    assert_string_equal(parts->text, "of the part");
    parts->undone++;
}

static void work_as_part(void *what) {
    struct parts *parts = what;
    parts->text = job_string("of the part");
    job_undo(undo_part, parts);
    if (parts->fails) {
        job_fail("too bad");
    }
}

static void work_with_parts(void *what) {
    struct parts *parts = what;
    struct error error;
    char *before = job_string("before");
    parts->fails = true;
    assert_int_equal(job_part(work_as_part, parts, &error), -1);
    assert_string_equal(error.message, "too bad");
    assert_int_equal(parts->undone, 1);
    parts->fails = false;
    assert_int_equal(job_part(work_as_part, parts, &error), 0);
    assert_string_equal(parts->text, "of the part");
    assert_int_equal(parts->undone, 1);
    job_release(job_array(1000, 1)); /* the list of blocks is whole */
    assert_string_equal(before, "before");
}

static void test_parts(void **state) {
    struct parts parts = {.undone = 0};
    struct job_memory *kept = NULL;
    struct error error;
    (void)state;
    assert_int_equal(job_run(work_with_parts, &parts, &kept, &error), 0);
    assert_string_equal(parts.text, "of the part");
    job_free(&kept);
    assert_int_equal(parts.undone, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keeps),           cmocka_unit_test(test_fails),
        cmocka_unit_test(test_adds_to_kept),    cmocka_unit_test(test_nests),
        cmocka_unit_test(test_out_of_memory),   cmocka_unit_test(test_takes),
        cmocka_unit_test(test_prints_and_maps), cmocka_unit_test(test_finishes),
        cmocka_unit_test(test_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
