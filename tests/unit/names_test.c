/* SPDX-License-Identifier: MIT */
/* names_test.c: frames are resolved when they are asked for, all ways of asking agree, and
 * names get shorter. */
#include "tests/unit/symbol_fixture.h"

#include "analyze/model/names.h"

enum { NODES = 600 }; /* more than are resolved one by one */

/* A model whose frames lie in the fixture's program, one byte after the other. */
struct subject {
    struct model model;
    struct model_node nodes[NODES];
    struct model_module modules[2];
    char path[256];
};

static void open_subject(struct subject *subject) {
    uint64_t start = fixture_symbol("c", "outer");
    uint8_t id[64] = {0};
    memset(subject, 0, sizeof *subject);
    snprintf(subject->path, sizeof subject->path, "%s/c", fixture_folder);
    subject->modules[0].path = "";
    subject->modules[1] = (struct model_module){.id = 1, .path = subject->path, .end = 1 << 20};
    subject->modules[1].build_id_size = (uint32_t)fixture_build_id("c", id);
    memcpy(subject->modules[1].build_id, id, subject->modules[1].build_id_size);
    for (uint32_t i = 1; i < NODES; i++)
        subject->nodes[i] = (struct model_node){
            .frame = UINT64_C(1) << MEMTRACE_FRAME_MODULE_SHIFT | (start + i % 200),
            .parent = i - 1};
    subject->model = (struct model){.nodes = subject->nodes,
                                    .node_count = NODES,
                                    .modules = subject->modules,
                                    .module_count = 2};
}

static int make(void **state) {
    setenv("MEMTRACE_CACHE", "", 1);
    return fixture_make(state) == 0 && fixture_run("gcc -g -O1 -Wl,--build-id c.c -o c") == 0 ? 0
                                                                                              : -1;
}

static size_t batches;

static void note_progress(void *context, size_t done, size_t total) {
    (void)context;
    batches += done == total;
}

static struct names *open_names(const struct subject *subject) {
    struct names_options options = {.progress = note_progress};
    struct names *names = names_open(&subject->model, &options, NULL);
    assert_non_null(names);
    batches = 0;
    return names;
}

/* What one frame says, as text. */
static void describe(const struct names *names, uint64_t frame, char *text, size_t size) {
    size_t count;
    const struct names_frame *frames = names_frames(names, frame, &count);
    size_t used = 0;
    assert_ptr_equal(names_frames(names, frame, &count), frames);
    for (size_t i = 0; i < count && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s %u %d %llx;",
                                 frames[i].function ? frames[i].function : "?", frames[i].line,
                                 frames[i].inlined, (unsigned long long)frames[i].place_key);
}

static void resolves_what_is_asked_for(void **state) {
    static struct subject subject;
    char text[1024];
    const char *const *lines;
    (void)state;
    open_subject(&subject);
    struct names *names = open_names(&subject);
    assert_int_equal(batches, 0);
    describe(names, subject.nodes[1].frame, text, sizeof text);
    assert_non_null(strstr(text, "outer"));
    for (size_t i = 1; i < 100; i++)
        describe(names, subject.nodes[i].frame, text, sizeof text);
    assert_int_equal(batches, 0); /* one by one */
    assert_int_equal(names_warnings(names, &lines), 0);
    names_close(names);
}

/* One by one, some at once, all at once, and more than are looked up one by one. */
static void all_ways_agree(void **state) {
    static struct subject subject;
    uint64_t some[150];
    (void)state;
    open_subject(&subject);
    for (size_t i = 0; i < 150; i++)
        some[i] = subject.nodes[i + 10].frame;
    struct names *ways[4];
    for (size_t i = 0; i < 4; i++)
        ways[i] = open_names(&subject);
    assert_int_equal(names_prepare(ways[1], some, 150), 0);
    assert_int_equal(batches, 1);
    assert_int_equal(names_prepare_all(ways[2]), 0);
    assert_int_equal(batches, 2);
    assert_int_equal(names_prepare_all(ways[2]), 0);
    assert_int_equal(batches, 2);
    for (size_t node = 1; node < NODES; node++) {
        char right[1024];
        describe(ways[0], subject.nodes[node].frame, right, sizeof right);
        for (size_t i = 1; i < 4; i++) {
            char text[1024];
            describe(ways[i], subject.nodes[node].frame, text, sizeof text);
            assert_string_equal(text, right);
        }
    }
    for (size_t i = 0; i < 4; i++)
        names_close(ways[i]);
}

/* Distinct frames: at some number the rest is resolved at once. */
static void many_are_resolved_at_once(void **state) {
    static struct subject subject;
    char text[1024];
    (void)state;
    open_subject(&subject);
    struct names *names = open_names(&subject);
    for (uint64_t i = 1; i < NODES; i++) {
        subject.nodes[i].frame += i / 200 * 200;
        describe(names, subject.nodes[i].frame, text, sizeof text);
    }
    assert_int_equal(batches, 1);
    names_close(names);
}

static void knows_frames_of_no_module(void **state) {
    static struct subject subject;
    char text[1024];
    size_t count;
    (void)state;
    open_subject(&subject);
    struct names *names = open_names(&subject);
    assert_int_equal(names_prepare(names, NULL, 0), 0);
    assert_null(names_frames(names, 0x1234567, &count)->function);
    assert_int_equal(count, 1);
    assert_null(names_frames(names, MEMTRACE_FRAME_MAPPING, &count)->function);
    assert_int_equal(count, 1);
    assert_string_equal(names_spell(names_frames(names, 0x1234567, &count), text, sizeof text),
                        "0x1234566");
    names_close(names);
}

/* Also of modules of which nothing was asked. */
static void warns_of_all_modules(void **state) {
    static struct subject subject;
    const char *const *lines;
    (void)state;
    open_subject(&subject);
    subject.modules[1].build_id[0] ^= 1;
    struct names *names = open_names(&subject);
    assert_int_equal(names_warnings(names, &lines), 1);
    assert_non_null(strstr(lines[0], "has changed"));
    assert_int_equal(names_prepare_all(names), 0);
    assert_int_equal(names_warnings(names, &lines), 1);
    names_close(names);
}

static void shortens_names(void **state) {
    static const char *const pairs[][2] = {
        {"main", "main"},
        {"", ""},
        {"parse(char const*, int)", "parse"},
        {"std::vector<int, std::allocator<int> >::push_back(int const&)",
         "std::vector<>::push_back"},
        {"std::_Rb_tree_node<int>* std::_Rb_tree<int>::_M_create_node<int&&>(int&&)",
         "std::_Rb_tree<>::_M_create_node<>"},
        {"void f<int>(int) [clone .isra.0]", "f<> [clone .isra.0]"},
        {"operator new(unsigned long)", "operator new"},
        {"std::map<int, int>::operator[](int&&)", "std::map<>::operator[]"},
        {"std::ostream& operator<< <char>(std::ostream&)", "operator<<<>"},
        {"std::string std::operator+<char, int>(char)", "std::operator+<>"},
        {"bool operator< <int>(A, A)", "operator<<>"},
        {"std::__cxx11::basic_string<char, int>::basic_string(int)", "std::string::basic_string"},
        {"A::operator->() const", "A::operator->"},
        {"A::operator()(int) const", "A::operator()"},
        {"A::operator bool() const", "A::operator bool"},
        {"(anonymous namespace)::helper(int)", "(anonymous namespace)::helper"},
        {"main::{lambda(int)#1}::operator()(int) const", "main::{lambda(int)#1}::operator()"},
        {"run(int)::{lambda()#2}::operator()() const", "run()::{lambda()#2}::operator()"},
        {"<alloc::vec::Vec<T> as core::ops::Drop>::drop",
         "<alloc::vec::Vec<> as core::ops::Drop>::drop"},
        {"std::panic::catch_unwind::<&dyn core::ops::function::Fn<(), Output = i32> + "
         "core::marker::Sync, i32>",
         "std::panic::catch_unwind::<>"},
        {"<&dyn core::ops::function::Fn<(i32,), Output = i32> + core::marker::Send as "
         "core::ops::function::FnOnce<(i32,)>>::call_once",
         "<&dyn core::ops::function::Fn<> + core::marker::Send as "
         "core::ops::function::FnOnce<>>::call_once"},
        {"core::ops::function::impls::<impl core::ops::function::Fn<(A,)> for &F>::call",
         "core::ops::function::impls::<impl core::ops::function::Fn<(A,)> for &F>::call"},
        {"<&A as a::B<(u8, &dyn C + D)>>::map::<E, {closure#0}>::f", "<&A as a::B<>>::map::<>::f"},
        {"main()::<lambda(int)>::operator()", "main()::<lambda(int)>::operator()"},
        {"core::ptr::drop_in_place<alloc::string::String>", "core::ptr::drop_in_place<>"},
        {"app::main::{{closure}}", "app::main::{{closure}}"},
        {"non-virtual thunk to A::f()", "non-virtual thunk to A::f"},
        {"A::get() const", "A::get"},
        {"std::__cxx11::to_string[abi:cxx11](int)", "std::__cxx11::to_string[abi:cxx11]"},
        {"f(<", "f"},
        {"a<b<c", "a<>"},
    };
    char buffer[256];
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        assert_string_equal(shortname(pairs[i][0], buffer, sizeof buffer), pairs[i][1]);
    }
}

/* Names of any bytes, into buffers of any size. */
static void shortens_any_bytes(void **state) {
    static const char alphabet[] = "a<>(){}[] :-operator \xc3";
    unsigned random = 1;
    (void)state;
    for (int round = 0; round < 100000; round++) {
        char name[24];
        char buffer[24];
        size_t size;
        for (size_t i = 0; i < sizeof name - 1; i++) {
            random = random * 1103515245u + 12345u;
            name[i] = alphabet[(random >> 16) % (sizeof alphabet - 1)];
        }
        name[sizeof name - 1] = '\0';
        size = 1 + random % sizeof buffer;
        assert_true(strlen(shortname(name, buffer, size)) < size);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resolves_what_is_asked_for), cmocka_unit_test(all_ways_agree),
        cmocka_unit_test(many_are_resolved_at_once),  cmocka_unit_test(knows_frames_of_no_module),
        cmocka_unit_test(warns_of_all_modules),       cmocka_unit_test(shortens_names),
        cmocka_unit_test(shortens_any_bytes),
    };
    return cmocka_run_group_tests(tests, make, fixture_remove);
}
