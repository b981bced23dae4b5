/* SPDX-License-Identifier: MIT */
/*
 * symbol_test.c: functions, inlined chains and lines at every address of small
 * C, C++ and Rust programs, against binutils' addr2line. (tests/symbols asks other tools, too.)
 */
#include "symbol_fixture.h"

#include <dlfcn.h>
#include <link.h>

enum { ADDRESSES = 400000 };

static const char cpp_source[] =
    "#include <algorithm>\n#include <map>\n#include <string>\n#include <vector>\n"
    "#include <cstdlib>\n"
    "namespace deep {\n"
    "template <class T> struct box { T v; box(T x) : v(x) {} T get() const; };\n"
    "template <class T> T box<T>::get() const { return v; }\n"
    "static inline __attribute__((always_inline)) void *leaf(size_t n) { return malloc(n); }\n"
    "static inline __attribute__((always_inline)) void *mid(size_t n) {\n"
    "    if (n > 4) return leaf(n * 2);\n    return leaf(n);\n}\n"
    "__attribute__((noinline)) void *outer(size_t n) { void *p = mid(n); free(mid(n + 1)); "
    "return p; }\n"
    "}\n"
    "int main(int c, char **v) {\n"
    "    std::map<std::string, std::vector<int>> m;\n"
    "    for (int i = 0; i < c; i++) m[v[i]].push_back(i);\n"
    "    struct local { static int twice(int k) { return k * 2; } };\n"
    "    auto f = [&](int k) { return deep::outer(k + m.size()); };\n"
    "    for (auto &p : m) free(f(p.second.size()));\n"
    "    std::vector<std::string> s(v, v + c); std::sort(s.begin(), s.end());\n"
    "    deep::box<int> b(4); return b.get() + s[0].size() + local::twice(c);\n}\n";

/* Its linkage name is none that a demangler knows. */
static const char unknown_source[] =
    "#include <stdlib.h>\n"
    "namespace deep { struct box { static void *get(size_t n) asm(\"_ZTnNothing\"); }; }\n"
    "__attribute__((noinline)) void *deep::box::get(size_t n) { return malloc(n + 1); }\n"
    "int main(int c, char **v) { free(deep::box::get(c)); return v == 0; }\n";

static const char nested_source[] =
    "#include <stdlib.h>\n"
    "__attribute__((noinline)) void *apply(void *(*f)(int), int n) { return f(n); }\n"
    "int main(int c, char **v) {\n"
    "    __attribute__((noinline)) void *nested(int n) { return malloc(n + c); }\n"
    "    return apply(nested, 3) == (void *)v;\n}\n";

static const char rust_source[] =
    "use std::collections::HashMap;\n"
    "#[inline(always)] fn grow(v: &mut Vec<u64>, n: u64) { for i in 0..n { v.push(i * 3); } }\n"
    "trait Shape { fn area(&self) -> f64; }\nstruct Sq(f64);\n"
    "impl Shape for Sq { fn area(&self) -> f64 { self.0 * self.0 } }\n"
    "fn main() { let mut m = HashMap::new();\n"
    " for a in std::env::args() { let mut v = vec![]; grow(&mut v, a.len() as u64);"
    " m.insert(a, v); }\n"
    " let s: Vec<Box<dyn Shape>> = vec![Box::new(Sq(2.0))];\n"
    " println!(\"{} {}\", m.len(), s.iter().map(|x| x.area()).sum::<f64>()); }\n";

static struct symbol_address addresses[ADDRESSES];
static size_t address_count;

/* Every `step`th address of every function that has a size. Of Rust's programs only the crate `r`
 * itself: the standard library came compiled, with what its compiler wrote of inlined functions. */
static void list_addresses(const char *program, unsigned step) {
    const char *crate = strncmp(program, "rust", 4) == 0 ? "&& $4 ~ /^(_ZN1r|_R.*_1r)/" : "";
    char command[512], type;
    unsigned long start, size;
    snprintf(command, sizeof command,
             "cd %s && nm -S %s | awk 'NF == 4 && $3 ~ /[tTwWiuV]/ %s { print $1, $2, $3 }' | "
             "sort -u",
             fixture_folder, program, crate);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    address_count = 0;
    while (fscanf(pipe, "%lx %lx %c", &start, &size, &type) == 3)
        for (unsigned long i = 0; i < size && address_count < ADDRESSES; i += step)
            addresses[address_count++] = (struct symbol_address){0, start + i};
    pclose(pipe);
    assert_true(address_count > 30);
}

static void write_addresses(const char *name) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", fixture_folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (size_t i = 0; i < address_count; i++)
        fprintf(file, "0x%lx\n", (unsigned long)addresses[i].offset);
    fclose(file);
}

static FILE *open_output(const char *name) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", fixture_folder, name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    return file;
}

struct subject {
    struct symbolizer *symbolizer;
    struct symbol_module module;
    char path[256];
};

static size_t progress_done, progress_total;

static void note_progress(void *context, size_t done, size_t total) {
    (void)context;
    assert_true(done >= progress_done && done <= total);
    progress_done = done;
    progress_total = total;
}

/* All addresses resolved, by prepare. */
static void open_subject(struct subject *subject, const char *program) {
    struct symbolizer_options options = {.threads = 3};
    subject->symbolizer = symbolizer_open(&options, NULL);
    assert_non_null(subject->symbolizer);
    snprintf(subject->path, sizeof subject->path, "%s/%s", fixture_folder, program);
    subject->module = (struct symbol_module){.path = subject->path};
    progress_done = progress_total = 0;
    assert_int_equal(symbolizer_prepare(subject->symbolizer, &subject->module, 1, addresses,
                                        address_count, NULL, note_progress, NULL),
                     0);
    assert_true(progress_total > 0 && progress_done == progress_total);
}

static struct symbol_frames frames_at(struct subject *subject, size_t number) {
    struct symbol_frames frames;
    assert_int_equal(symbolizer_resolve(subject->symbolizer, &subject->module,
                                        addresses[number].offset, &frames),
                     0);
    return frames;
}

/* g++ gives inlined static functions and members of local classes no mangled name: we build
 * deep::leaf from the scopes, addr2line names the function they are inlined into. */
static bool is_unmangled(const struct symbol_frame *frame) {
    const char *name = frame->function;
    return frame->inlined && name &&
           ((strncmp(name, "deep::", 6) == 0 && !strchr(name, '(')) ||
            strcmp(name, "operator()") == 0 || strcmp(name, "local::twice") == 0);
}

/* addr2line does not qualify names that are not mangled. */
static bool same_name(const char *ours, const char *theirs) {
    size_t our_size = strlen(ours), their_size = strlen(theirs);
    if (strcmp(ours, theirs) == 0)
        return true;
    return our_size > their_size + 2 && !strchr(theirs, ':') &&
           strcmp(ours + our_size - their_size, theirs) == 0 &&
           memcmp(ours + our_size - their_size - 2, "::", 2) == 0;
}

/* Checks one frame of addr2line: a line with the function, a line with file:line. Frames whose
 * line addr2line does not know (start-up code) are not compared. */
static void check_frame(const struct symbol_frames *frames, size_t number, const char *function,
                        char *place, const char *where) {
    char *colon = strrchr(place, ':');
    unsigned line = colon ? (unsigned)strtoul(colon + 1, NULL, 10) : 0;
    if (number == 0 && line == 0)
        return;
    const char *ours = number < frames->count ? frames->frames[number].function : NULL;
    if (ours && is_unmangled(&frames->frames[number]) &&
        strcmp(function, frames->frames[frames->count - 1].function) == 0)
        return;
    /* A mangled name is newer than its demangler: ours comes from the scopes. */
    bool scopes = ours && strncmp(function, "_Z", 2) == 0 && strncmp(ours, "_Z", 2) != 0;
    if (!ours || !(scopes || same_name(ours, function)))
        fail_msg("%s frame %zu: addr2line says %s, we %s", where, number, function,
                 ours ? ours : "nothing");
    const char *file = frames->frames[number].file;
    if (frames->frames[number].line != line)
        fail_msg("%s frame %zu (%s): addr2line says line %u, we %u", where, number, function, line,
                 frames->frames[number].line);
    const char *slash = file ? strrchr(file, '/') : NULL;
    char *their_slash = strrchr(place, '/');
    *colon = '\0';
    /* binutils 2.40 gives the first row of a DWARF 5 sequence the unit's own file. */
    if (number > 0)
        assert_string_equal(slash ? slash + 1 : "?", their_slash ? their_slash + 1 : place);
}

static void next_line(FILE *file, char *line, int size) {
    if (!fgets(line, size, file))
        line[0] = '\0';
    line[strcspn(line, "\n")] = '\0';
}

static void compare_addr2line(struct subject *subject, const char *program) {
    static char function[65536], place[8192];
    write_addresses("addresses");
    assert_int_equal(fixture_run("addr2line -a -i -f -C -e %s <addresses >lines", program), 0);
    FILE *lines = open_output("lines");
    next_line(lines, function, sizeof function);
    for (size_t i = 0; i < address_count; i++) {
        struct symbol_frames frames = frames_at(subject, i);
        char where[300];
        snprintf(where, sizeof where, "%s %.200s", program, function);
        assert_int_equal(strtoull(function, NULL, 16), addresses[i].offset);
        size_t count = 0;
        bool known = true;
        for (;;) {
            next_line(lines, function, sizeof function);
            if (strncmp(function, "0x", 2) == 0 || !function[0])
                break;
            next_line(lines, place, sizeof place);
            /* Without a function it is data: newer ones of addr2line tell where that is declared.
             */
            known = known && (count > 0 || !strstr(place, ":?")) && !strstr(place, "?:") &&
                    strcmp(function, "??") != 0;
            if (known)
                check_frame(&frames, count, function, place, where);
            count++;
        }
        if (known)
            assert_int_equal(frames.count, count);
        for (size_t k = 0; k < frames.count; k++)
            assert_int_equal(frames.frames[k].inlined, k + 1 < frames.count);
    }
    fclose(lines);
}

static void compare(const char *program, unsigned step) {
    struct subject subject;
    list_addresses(program, step);
    open_subject(&subject, program);
    compare_addr2line(&subject, program);
    symbolizer_close(subject.symbolizer);
}

/* The same code with its debug information in two forms. */
static void expect_same(const char *one, const char *other) {
    struct subject a, b;
    char first[16384], second[16384];
    list_addresses(one, 1);
    open_subject(&a, one);
    open_subject(&b, other);
    for (size_t i = 0; i < address_count; i++) {
        struct symbol_frames left = frames_at(&a, i), right = frames_at(&b, i);
        fixture_text(&left, first, sizeof first);
        fixture_text(&right, second, sizeof second);
        assert_string_equal(first, second);
    }
    symbolizer_close(a.symbolizer);
    symbolizer_close(b.symbolizer);
}

static bool missing(const char *command) {
    return fixture_run("command -v %s", command) != 0;
}

static void reads_c(void **state) {
    (void)state;
    fixture_write("n.c", nested_source);
    assert_int_equal(fixture_run("gcc -gdwarf-4 -O2 c.c -o c4 && gcc -gdwarf-5 -O2 c.c -o c5 && "
                                 "gcc -g -O0 c.c -o c0 && gcc -g -O1 n.c -o nested"),
                     0);
    compare("c4", 1);
    compare("c5", 1);
    compare("c0", 1);
    compare("nested", 1);
}

static void reads_cpp(void **state) {
    (void)state;
    if (missing("g++"))
        skip();
    fixture_write("a.cpp", cpp_source);
    assert_int_equal(fixture_run("g++ -gdwarf-4 -O2 a.cpp -o cpp4 && "
                                 "g++ -gdwarf-5 -O2 a.cpp -o cpp5 && g++ -g -O0 a.cpp -o cpp0"),
                     0);
    compare("cpp4", 1);
    compare("cpp5", 1);
    compare("cpp0", 1);
}

/* The name appears: among the inlined functions, or among those that they are inlined into. */
static void expect_function(struct subject *subject, const char *name, bool inlined) {
    for (size_t i = 0; i < address_count; i++) {
        struct symbol_frames frames = frames_at(subject, i);
        for (size_t k = 0; k < frames.count; k++)
            if ((k + 1 < frames.count) == inlined && frames.frames[k].function &&
                strcmp(frames.frames[k].function, name) == 0)
                return;
    }
    fail_msg("%s is nowhere", name);
}

static void qualifies_names_without_symbol(void **state) {
    (void)state;
    if (missing("g++"))
        skip();
    struct subject subject;
    fixture_write("a.cpp", cpp_source);
    assert_int_equal(fixture_run("g++ -g -O2 a.cpp -o qualified"), 0);
    list_addresses("qualified", 1);
    open_subject(&subject, "qualified");
    expect_function(&subject, "deep::leaf", true);
    expect_function(&subject, "deep::mid", true);
    expect_function(&subject, "operator()", true);
    symbolizer_close(subject.symbolizer);

    fixture_write("unknown.cpp", unknown_source);
    assert_int_equal(fixture_run("g++ -g -O0 unknown.cpp -o unknown"), 0);
    list_addresses("unknown", 1);
    open_subject(&subject, "unknown");
    expect_function(&subject, "deep::box::get", false);
    symbolizer_close(subject.symbolizer);
}

static void reads_clang(void **state) {
    (void)state;
    if (missing("clang++"))
        skip();
    fixture_write("a.cpp", cpp_source);
    assert_int_equal(fixture_run("clang++ -gdwarf-4 -O2 a.cpp -o clang4 && "
                                 "clang++ -gdwarf-5 -O2 a.cpp -o clang5"),
                     0);
    compare("clang4", 1);
    /* binutils 2.40 misreads clang's DWARF 5 range lists: the two versions must agree. */
    expect_same("clang4", "clang5");
}

static void reads_compressed_and_split(void **state) {
    (void)state;
    assert_int_equal(fixture_run("gcc -g -O2 c.c -o plain && gcc -g -O2 -gz c.c -o packed && "
                                 "gcc -g -O2 -gsplit-dwarf c.c -o split && "
                                 "objcopy --compress-debug-sections=zstd plain zstd && "
                                 "gcc -g -O2 -gsplit-dwarf -gz c.c -o splitz && "
                                 "gcc -gdwarf-4 -O2 -gsplit-dwarf c.c -o split4"),
                     0);
    expect_same("plain", "packed");
    expect_same("plain", "split");
    expect_same("plain", "split4");
    expect_same("plain", "splitz");
    expect_same("plain", "zstd");
}

static void reads_rust(void **state) {
    (void)state;
    if (missing("rustc"))
        skip();
    fixture_write("r.rs", rust_source);
    if (fixture_run("rustc -g -O r.rs -o rust && "
                    "rustc -g -O -C symbol-mangling-version=v0 r.rs -o rust0") != 0)
        skip();
    compare("rust", 1);
    compare("rust0", 1);
}

static void prepare_equals_resolve(void **state) {
    (void)state;
    struct symbolizer_options options = {.threads = 1};
    struct subject all;
    assert_int_equal(fixture_run("gcc -g -O2 c.c -o again"), 0);
    list_addresses("again", 1);
    open_subject(&all, "again");
    struct symbolizer *single = symbolizer_open(&options, NULL);
    for (size_t i = 0; i < address_count; i++) {
        struct symbol_frames left = frames_at(&all, i), right, repeated;
        char one[4096], two[4096];
        assert_int_equal(symbolizer_resolve(single, &all.module, addresses[i].offset, &right), 0);
        assert_int_equal(symbolizer_resolve(single, &all.module, addresses[i].offset, &repeated),
                         0);
        assert_ptr_equal(right.frames, repeated.frames);
        fixture_text(&left, one, sizeof one);
        fixture_text(&right, two, sizeof two);
        assert_string_equal(one, two);
    }
    symbolizer_close(single);
    symbolizer_close(all.symbolizer);
}

static void names_libc_without_debug_information(void **state) {
    (void)state;
    Dl_info info;
    struct link_map *map;
    char text[4096], warning[600];
    void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD); /* past any interceptor */
    void *function = libc ? dlsym(libc, "qsort") : NULL;
    assert_true(function && dladdr1(function, &info, (void **)&map, RTLD_DL_LINKMAP));
    fixture_resolve(info.dli_fname, NULL, 0, MEMTRACE_BINARY_DIR "/nowhere",
                    (uint64_t)function - map->l_addr + 3, text, warning);
    assert_string_equal(text, "qsort ?:0");
    assert_string_equal(warning, "");
}

static void knows_nothing_of_modules_without_file(void **state) {
    (void)state;
    const char *const names[] = {"", "[vdso]", "[heap]"};
    for (size_t i = 0; i < 3; i++) {
        struct symbolizer *symbolizer = symbolizer_open(NULL, NULL);
        struct symbol_module module = {.path = names[i]};
        struct symbol_frames frames;
        const char *const *lines;
        assert_int_equal(symbolizer_resolve(symbolizer, &module, 0x123, &frames), 0);
        assert_int_equal(frames.count, 0);
        assert_int_equal(symbolizer_warnings(symbolizer, &lines), 0);
        symbolizer_close(symbolizer);
    }
}

static void expect_demangled(const char *mangled, const char *readable) {
    char *text = symbol_demangle(mangled);
    if (readable)
        assert_string_equal(text, readable);
    else
        assert_null(text);
    free(text);
}

static void demangles(void **state) {
    (void)state;
    expect_demangled("_ZN4deep5outerEm", "deep::outer(unsigned long)");
    expect_demangled("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE",
                     "core::fmt::Write::write_fmt");
    expect_demangled("_RNvCs1234_7mycrate3foo", "mycrate::foo");
    expect_demangled("_D3std5stdio7writelnFZv", "std.stdio.writeln()");
    expect_demangled("_DTi32_D3app4Node5visitMFiZv", "non-virtual thunk to app.Node.visit(int)");
    expect_demangled("_DT16_D3app4Node5visitMFZv", "non-virtual thunk to app.Node.visit()");
    expect_demangled("_ZN4deep5outerEm.cold", "deep::outer(unsigned long) [clone .cold]");
    expect_demangled("__work_MOD_fill", "work::fill");
    expect_demangled("__work_MOD_fill.part.0", "work::fill [clone .part.0]");
    expect_demangled("__work_MOD_", NULL);
    expect_demangled("___MOD_fill", NULL);
    expect_demangled("main", NULL);
    expect_demangled("_", NULL);
    expect_demangled("", NULL);
    expect_demangled("_Zfoo", NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_c),
        cmocka_unit_test(reads_cpp),
        cmocka_unit_test(qualifies_names_without_symbol),
        cmocka_unit_test(reads_clang),
        cmocka_unit_test(reads_compressed_and_split),
        cmocka_unit_test(reads_rust),
        cmocka_unit_test(prepare_equals_resolve),
        cmocka_unit_test(names_libc_without_debug_information),
        cmocka_unit_test(knows_nothing_of_modules_without_file),
        cmocka_unit_test(demangles),
    };
    return cmocka_run_group_tests(tests, fixture_make, fixture_remove);
}
