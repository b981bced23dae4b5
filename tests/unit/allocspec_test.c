/* SPDX-License-Identifier: MIT */
/* allocspec_test.c: specifications of functions that allocate, right and wrong ones. */
#include "collect/allocators/allocsets.h"
#include "collect/allocators/allocspec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct allocspecs specs;
static struct error problem;

static const struct allocspec *parse(const char *text) {
    allocspec_free(&specs);
    if (allocspec_add(&specs, text, &problem) != 0) {
        print_error("%s\n", problem.message);
        fail();
    }
    assert_int_equal(specs.count, 1);
    assert_string_equal(specs.items[0].text, text);
    return &specs.items[0];
}

static int release(void **state) {
    (void)state;
    allocspec_free(&specs);
    return 0;
}

static void test_parts(void **state) {
    const struct allocspec *spec = parse("libpool!pool_calloc(size=2*3,align=4)=zalloc:my pool");
    (void)state;
    assert_string_equal(spec->object, "libpool");
    assert_string_equal(spec->symbol, "pool_calloc");
    assert_int_equal(spec->signature.kind, MEMTRACE_ALLOCATOR_ZALLOC);
    assert_int_equal(spec->signature.size, 2);
    assert_int_equal(spec->signature.times, 3);
    assert_int_equal(spec->signature.align, 4);
    assert_int_equal(spec->signature.old_block, 0);
    assert_int_equal(spec->signature.pointer, 0);
    assert_string_equal(spec->pool, "my pool");
    assert_false(spec->signature.is_heap || spec->is_pattern || spec->in_program_only);
    assert_null(spec->set);

    spec = parse("grow(old=1,size=6)=realloc:heap");
    assert_null(spec->object);
    assert_int_equal(spec->signature.kind, MEMTRACE_ALLOCATOR_REALLOC);
    assert_int_equal(spec->signature.old_block, 1);
    assert_int_equal(spec->signature.size, 6);
    assert_int_equal(spec->signature.times, 0);
    assert_true(spec->signature.is_heap);
    assert_string_equal(spec->pool, "");

    spec = parse("get(ptr=1,align=2,size=3)=alloc");
    assert_int_equal(spec->signature.pointer, 1);
    assert_int_equal(spec->signature.align, 2);
    assert_string_equal(spec->pool, "");
}

static void test_defaults(void **state) {
    (void)state;
    assert_int_equal(parse("pool_free=free")->signature.pointer, 1);
    assert_int_equal(parse("pool_free()=free:p")->signature.pointer, 1);
    assert_int_equal(parse("pool_free(ptr=2)=free")->signature.pointer, 2);
    assert_int_equal(parse("pool_clear=reset:p")->signature.kind, MEMTRACE_ALLOCATOR_RESET);
    assert_int_equal(specs.items[0].signature.pointer, 0);
}

/* A function's parameters, and characters that operators have, are part of its name. */
static void test_names(void **state) {
    (void)state;
    assert_string_equal(parse("Pool::take(unsigned long)(size=2)=alloc")->symbol,
                        "Pool::take(unsigned long)");
    assert_string_equal(parse("Pool::drop(void*)=free")->symbol, "Pool::drop(void*)");
    assert_false(specs.items[0].is_pattern);
    assert_string_equal(parse("f<(anonymous namespace)::T>(size=1)=alloc")->symbol,
                        "f<(anonymous namespace)::T>");
    assert_string_equal(parse("T::operator()(size=2)=alloc")->symbol, "T::operator()");
    assert_string_equal(parse("a::operator!=(T)(size=1)=alloc")->symbol, "a::operator!=(T)");
    assert_null(specs.items[0].object);
    assert_string_equal(parse("libx.so.1!a::operator!(size=1)=alloc")->object, "libx.so.1");
    assert_string_equal(specs.items[0].symbol, "a::operator!");
    assert_string_equal(parse("_ZN4Pool4takeEm(size=2)=alloc:a:b")->pool, "a:b");
    assert_true(parse("Pool::*(size=2)=alloc")->is_pattern);
    assert_true(parse("pool_al?oc(size=2)=alloc")->is_pattern);
    assert_false(parse("a::operator*(T)(size=1)=alloc")->is_pattern);
}

/* What is wrong, what of it is named, and what the line says to do. */
static const struct {
    const char *text, *place, *advice;
} wrong[] = {
    {"f", "\"f\"", "SYMBOL(size=N)=alloc"},
    {"", "\"\"", "SYMBOL(size=N)=alloc"},
    {"f(size=1)", "\"f(size=1)\"", "=alloc"},
    {"f(size=1)=malloc", "\"malloc\"", "zalloc, realloc, free or reset"},
    {"f(size=1)=", "\"\" behind", "alloc"},
    {"f=alloc", "size is missing", "f(size=1)=alloc"},
    {"f(align=1)=zalloc", "size is missing", "f(size=1)=zalloc"},
    {"f(size=2)=realloc", "old block is missing", "f(old=1,size=2)=realloc"},
    {"f(old=1)=realloc", "size is missing", "f(size=1)=realloc"},
    {"f(siz=1)=alloc", "\"siz=1\"", "size=, align=, old= and ptr="},
    {"f(size=0)=alloc", "\"size=0\"", "1 to 6"},
    {"f(size=7)=alloc", "\"size=7\"", "1 to 6"},
    {"f(size=11)=alloc", "\"size=11\"", "1 to 6"},
    {"f(size=)=alloc", "\"size=\"", "size=1"},
    {"f(size=n)=alloc", "\"size=n\"", "by its number"},
    {"f(size=1*)=alloc", "\"size=1*\"", "size=1*2"},
    {"f(size=1*2*3)=alloc", "\"size=1*2*3\"", "size=1*2"},
    {"f(align=1*2,size=1)=alloc", "\"align=1*2\"", "by its number"},
    {"f(size=1,size=2)=alloc", "\"size=\"", "twice"},
    {"f(size=1)=free", "\"size=1\"", "leave it out"},
    {"f(old=1,size=1)=alloc", "\"old=1\"", "leave it out"},
    {"f(ptr=1)=reset:p", "\"ptr=1\"", "leave it out"},
    {"f=reset:heap", "heap", "f=reset:POOL"},
    {"(size=1)=alloc", "name is missing", "SYMBOL"},
    {"libx!(size=1)=alloc", "name is missing", "SYMBOL"},
    {"!f(size=1)=alloc", "object's name", "!"},
    {"f(size=1)=alloc:", "pool's name", "1 to 63"},
    {"f(size=1)=alloc:0123456789012345678901234567890123456789012345678901234567890123",
     "pool's name", "1 to 63"},
    {"f(size=1)=alloc:a\tb", "pool's name", "control character"},
    {"obstack", "\"obstack\"", "SYMBOL(size=N)=alloc:obstack"},
};

static void test_wrong(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        allocspec_free(&specs);
        problem.message[0] = '\0';
        if (allocspec_add(&specs, wrong[i].text, &problem) == 0 ||
            strstr(problem.message, wrong[i].place) == NULL ||
            strstr(problem.message, wrong[i].advice) == NULL ||
            strchr(problem.message, '\n') != NULL) {
            print_error("%s: %s\n", wrong[i].text, problem.message);
            fail();
        }
        assert_int_equal(specs.count, 0);
    }
}

/* Each specification of each set is right, and no function is there twice. */
static void test_sets(void **state) {
    (void)state;
    for (size_t i = 0; allocsets[i].name != NULL; i++) {
        allocspec_free(&specs);
        if (allocsets[i].hint != NULL) {
            continue;
        }
        assert_int_equal(allocspec_add(&specs, allocsets[i].name, &problem), 0);
        assert_true(specs.count > 0 && allocsets[i].marks[0] != NULL);
        for (size_t j = 0; j < specs.count; j++) {
            assert_string_equal(specs.items[j].set, allocsets[i].name);
            assert_true(specs.items[j].symbol[0] != '^' && !specs.items[j].is_pattern);
            assert_true(specs.items[j].signature.is_heap || specs.items[j].pool[0] != '\0');
            for (size_t k = 0; k < j; k++) {
                assert_string_not_equal(specs.items[j].symbol, specs.items[k].symbol);
            }
        }
    }
    allocspec_free(&specs);
    assert_int_equal(allocspec_add(&specs, "auto", &problem), 0);
    assert_true(specs.has_auto && specs.count == 0);
}

static char *expand(const char *text, int *status) {
    char *result = NULL;
    size_t size;
    FILE *out = open_memstream(&result, &size);
    *status = allocspec_expand(text, out, &problem);
    fclose(out);
    return result;
}

static void write_file(const char *path, const char *text) {
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    fputs(text, out);
    assert_int_equal(fclose(out), 0);
}

static void test_files(void **state) {
    char path[] = "/tmp/allocspec_test.XXXXXX";
    char name[sizeof path + 1];
    int status;
    char *text;
    (void)state;
    assert_true(close(mkstemp(path)) == 0);
    snprintf(name, sizeof name, "@%s", path);
    write_file(path,
               "# ours\n\n  f(size=1)=alloc  # the first\r\n\tjemalloc\nauto\ng#h(size=1)=alloc");
    text = expand(name, &status);
    assert_int_equal(status, 0);
    assert_string_equal(text, "f(size=1)=alloc\njemalloc\nauto\ng#h(size=1)=alloc\n");
    free(text);
    allocspec_free(&specs);
    assert_int_equal(allocspec_add(&specs, name, &problem), 0);
    assert_true(specs.has_auto && specs.count > 10);
    assert_string_equal(specs.items[0].text, "f(size=1)=alloc");
    assert_string_equal(specs.items[specs.count - 1].symbol, "g#h");
    write_file(path, "f(size=1)=alloc\n\nf(siz=1)=alloc\n");
    free(expand(name, &status));
    assert_int_equal(status, -1);
    assert_non_null(strstr(problem.message, "line 3"));
    assert_non_null(strstr(problem.message, "\"siz=1\""));
    write_file(path, "@other\n");
    free(expand(name, &status));
    assert_int_equal(status, -1);
    assert_non_null(strstr(problem.message, "line 1"));
    unlink(path);
    free(expand(name, &status));
    assert_int_equal(status, -1);
    assert_non_null(strstr(problem.message, path));
    free(expand("f(size=1)=alloc\ng(size=1)=alloc", &status));
    assert_int_equal(status, -1);
    text = expand("f(size=1)=alloc", &status);
    assert_string_equal(text, "f(size=1)=alloc\n");
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_parts, release),
        cmocka_unit_test_teardown(test_defaults, release),
        cmocka_unit_test_teardown(test_names, release),
        cmocka_unit_test_teardown(test_wrong, release),
        cmocka_unit_test_teardown(test_sets, release),
        cmocka_unit_test_teardown(test_files, release),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
